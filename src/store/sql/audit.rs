//! Administrative events in the database, and the chain of hashes over them.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};

use super::database::Transaction;
use super::rows::{
    self, EVENT, as_number, bind_event, check_indexed, count, microseconds, timestamp, values,
};
use super::{SqlStore, Statement};
use crate::store::{
    AuditPage, AuditQuery, AuditStore, ChainReport, KeyValue, KnownEnd, NewAuditEvent, Place, StoreError,
};

/// Events that are checked at once.
const VERIFIED_AT_ONCE: i64 = 1_000;
/// Resources in one statement at most.
const RESOURCES_MAX: usize = 500;

impl SqlStore {
    /// Appends events to the chains of their tenants. The last thing a transaction does: from here to its end, no other
    /// one of these tenants can append.
    pub(super) async fn append_events(
        &self,
        write: &mut Transaction<'_>,
        events: &[NewAuditEvent],
    ) -> Result<(), StoreError> {
        for event in events {
            check_indexed(&[
                ("audit_event.id", &event.id),
                ("audit_event.tenant", &event.tenant),
                ("audit_event.resource", &event.resource),
                ("audit_event.decision_id", &event.decision_id),
            ])?;
        }
        let mut tenants: Vec<&str> = events.iter().map(|event| event.tenant.as_str()).collect();
        // The same order in every process, so that no two wait for each other in a circle.
        tenants.sort_unstable();
        tenants.dedup();
        for tenant in tenants {
            let of_tenant: Vec<&NewAuditEvent> =
                events.iter().filter(|event| event.tenant == tenant).collect();
            // This row is the lock of the chain: whoever comes next waits here and then sees the new end.
            let lock = Statement::new(
                "INSERT INTO audit_chain (tenant, length, last_hash) VALUES (?, ?, '') ON CONFLICT (tenant) DO UPDATE \
                 SET length = audit_chain.length + excluded.length RETURNING length, last_hash",
            );
            let end = write.row(lock.bind(tenant).bind(as_number(of_tenant.len() as u64))).await?;
            let end = end.ok_or(sqlx::Error::RowNotFound);
            let (length, mut last) =
                self.read(end.and_then(|row| Ok((row.number("length")?, row.text("last_hash")?))))?;
            let first = length - as_number(of_tenant.len() as u64) + 1;
            for (number, event) in (first..).zip(of_tenant) {
                // As it will be read again: with the times and the texts that the database can keep.
                let kept = as_kept(event);
                last = hash(&last, number, &kept);
                let insert = Statement::new(format!("INSERT INTO audit_event {}", values(EVENT)));
                write.run(bind_event(insert, &kept, number, &last)).await?;
            }
            let finish = Statement::new("UPDATE audit_chain SET last_hash = ? WHERE tenant = ?");
            write.run(finish.bind(&last).bind(tenant)).await?;
        }
        Ok(())
    }

    async fn append_now(&self, events: Vec<NewAuditEvent>) -> Result<(), StoreError> {
        let mut write = self.database.write().await?;
        self.append_events(&mut write, &events).await?;
        write.commit().await
    }

    async fn page_now(&self, query: AuditQuery) -> Result<AuditPage, StoreError> {
        let mut select = Statement::new(format!("SELECT {EVENT} FROM audit_event WHERE tenant = ?"));
        select = select.bind(&query.tenant);
        let filter = &query.filter;
        if !filter.actions.is_empty() {
            select.push(" AND (");
            for (at, action) in filter.actions.iter().enumerate() {
                if at > 0 {
                    select.push(" OR ");
                }
                if action.ends_with('.') {
                    select.push_prefix("action", action);
                } else {
                    select.push("action = ").push_value(action);
                }
            }
            select.push(")");
        }
        for (column, value) in
            [("actor", &filter.actor), ("resource", &filter.resource), ("decision_id", &filter.decision_id)]
        {
            if !value.is_empty() {
                select.push(&format!(" AND {column} = ")).push_value(value);
            }
        }
        select.push_span("time_us", filter.start, filter.end);
        if let Some(Place { value, id }) = &query.after {
            select.push_after("time_us", "id", query.is_descending, value, id);
        }
        select.push_order("time_us", "id", query.is_descending, query.limit);
        let mut events = self.read_all(&self.database.rows(select).await?, rows::event)?;
        let has_more = events.len() > query.limit;
        events.truncate(query.limit);
        let next = events
            .last()
            .filter(|_| has_more)
            .map(|last| Place { value: KeyValue::Number(microseconds(last.time)), id: last.id.clone() });
        Ok(AuditPage { events, next })
    }

    async fn events_of_now(
        &self,
        tenant: &str,
        resources: &[String],
    ) -> Result<Vec<NewAuditEvent>, StoreError> {
        let mut events = Vec::new();
        for resources in resources.chunks(RESOURCES_MAX) {
            let mut select = Statement::new(format!("SELECT {EVENT} FROM audit_event WHERE tenant = ?"));
            select = select.bind(tenant);
            select.push_in("resource", resources);
            let rows = self.database.rows(select).await?;
            let numbered = |row: &super::Row| Ok((row.number("number")?, rows::event(row)?));
            events.extend(self.read(rows.iter().map(numbered).collect::<Result<Vec<_>, sqlx::Error>>())?);
        }
        // Numbers tell what came first when two have the same time.
        events.sort_by_key(|(number, event)| (event.time, *number));
        Ok(events.into_iter().map(|(_, event)| event).collect())
    }

    async fn tenants_now(&self) -> Result<Vec<String>, StoreError> {
        let mut read = self.database.read().await?;
        // Whoever took out the end of a chain may have left its events, and the other way round.
        let select = Statement::new(
            "SELECT tenant FROM audit_chain UNION SELECT DISTINCT tenant FROM audit_event ORDER BY tenant",
        );
        let rows = read.rows(select).await?;
        self.read(rows.iter().map(|row| row.text("tenant")).collect())
    }

    async fn verify_now(&self, tenant: &str, known: &KnownEnd) -> Result<ChainReport, StoreError> {
        // One moment: what is appended meanwhile is not looked at.
        let mut read = self.database.read().await?;
        let end = Statement::new("SELECT length, last_hash FROM audit_chain WHERE tenant = ?").bind(tenant);
        let end = read.row(end).await?;
        let end = end.map(|row| Ok((row.number("length")?, row.text("last_hash")?))).transpose();
        let (length, last_hash) = self.read(end)?.unwrap_or_default();
        let mut last = String::new();
        let mut checked = 0;
        let report = |broken_at: Option<i64>, last_hash: String| ChainReport {
            length: count(length),
            last_hash,
            broken_at: broken_at.map(count),
        };
        loop {
            let select = Statement::new(format!(
                "SELECT {EVENT} FROM audit_event WHERE tenant = ? AND number > ? ORDER BY number LIMIT ?"
            ));
            let rows = read.rows(select.bind(tenant).bind(checked).bind(VERIFIED_AT_ONCE)).await?;
            for row in &rows {
                let (number, kept, event) =
                    self.read((|| Ok((row.number("number")?, row.text("hash")?, rows::event(row)?)))())?;
                last = hash(&last, checked + 1, &event);
                let is_known = number != as_number(known.length) || kept == known.last_hash;
                if number != checked + 1 || kept != last || !is_known {
                    return Ok(report(Some(checked + 1), last_hash));
                }
                checked = number;
            }
            if as_number(rows.len() as u64) < VERIFIED_AT_ONCE {
                break;
            }
        }
        // An end that somebody noted and that is not there was cut off.
        let is_whole = checked == length && last == last_hash && as_number(known.length) <= length;
        Ok(report((!is_whole).then_some(checked.min(length) + 1), last_hash))
    }
}

impl AuditStore for SqlStore {
    fn append_audit(&self, events: Vec<NewAuditEvent>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.append_now(events).boxed()
    }

    fn audit_events(&self, query: AuditQuery) -> BoxFuture<'_, Result<AuditPage, StoreError>> {
        self.page_now(query).boxed()
    }

    fn audit_events_of(
        &self,
        tenant: String,
        resources: Vec<String>,
    ) -> BoxFuture<'_, Result<Vec<NewAuditEvent>, StoreError>> {
        async move { self.events_of_now(&tenant, &resources).await }.boxed()
    }

    fn audit_tenants(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        self.tenants_now().boxed()
    }

    fn verify_audit(
        &self,
        tenant: String,
        known: KnownEnd,
    ) -> BoxFuture<'_, Result<ChainReport, StoreError>> {
        async move { self.verify_now(&tenant, &known).await }.boxed()
    }
}

/// The event with the precision and the characters that the database keeps.
fn as_kept(event: &NewAuditEvent) -> NewAuditEvent {
    let mut kept = event.clone();
    kept.time = timestamp(microseconds(event.time)).unwrap_or(event.time);
    for text in [
        &mut kept.id,
        &mut kept.action,
        &mut kept.actor,
        &mut kept.tenant,
        &mut kept.resource,
        &mut kept.reason,
        &mut kept.detail_json,
        &mut kept.decision_id,
        &mut kept.policy_revision,
        &mut kept.request_id,
    ] {
        *text = super::statement::storable(text);
    }
    kept
}

/// SHA-256, hex, over the hash before and every field; each text with its length before it, so that no two events give
/// the same bytes.
fn hash(last: &str, number: i64, event: &NewAuditEvent) -> String {
    let mut hash = Sha256::new();
    hash.update(number.to_be_bytes());
    hash.update(microseconds(event.time).to_be_bytes());
    for text in [
        last,
        &event.id,
        &event.action,
        &event.actor,
        &event.tenant,
        &event.resource,
        &event.reason,
        &event.detail_json,
        &event.decision_id,
        &event.policy_revision,
        &event.request_id,
    ] {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
