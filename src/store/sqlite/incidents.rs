//! Incidents in SQLite.

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteRow;
use sqlx::{Error, QueryBuilder, Row, Sqlite};

use super::SqliteStore;
use crate::decision::{
    Category, Incident, IncidentAction, OutputStream, Severity, VerdictKind, VerdictSource,
};
use crate::store::StoreError;
use crate::store::incidents::{
    IncidentCounts, IncidentFilter, IncidentKey, IncidentPage, IncidentPlace, IncidentQuery, IncidentStore,
    KeptIncident, KeyValue, RuleCounts, StatsQuery,
};

const COLUMNS: &str = "id, session_id, time_us, rule_id, category, severity, stream, byte_offset, \
    matched_text, excerpt, verdict, reason, source, action, latency_ns, work, context, decision_id, \
    policy_revision, repeats, shadow, false_positive, false_positive_reason";

const INSERT: &str = "INSERT INTO incident (tenant, agent_id, id, session_id, time_us, rule_id, category, severity, \
    stream, byte_offset, matched_text, excerpt, verdict, reason, source, action, latency_ns, work, context, \
    decision_id, policy_revision, repeats, shadow, false_positive, false_positive_reason) \
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
    ON CONFLICT (id) DO UPDATE SET verdict = excluded.verdict, reason = excluded.reason, source = excluded.source, \
    action = excluded.action, latency_ns = excluded.latency_ns, repeats = excluded.repeats";

/// Rows deleted at once: a purge of many must not keep the writer of new ones waiting.
const PURGE_ROWS: i64 = 1_000;

/// Stands for the latency of an incident without a verdict.
const NO_LATENCY: i64 = -1;

impl SqliteStore {
    async fn save_now(&self, incidents: Vec<KeptIncident>) -> Result<(), StoreError> {
        let mut write = self.write().await?;
        for KeptIncident { tenant, incident } in &incidents {
            let agent_id = incident.context.as_ref().map_or("", |context| &context.agent_id);
            sqlx::query(INSERT)
                .bind(&**tenant)
                .bind(agent_id)
                .bind(&*incident.id)
                .bind(&*incident.session_id)
                .bind(incident.time.as_microsecond())
                .bind(&*incident.rule_id)
                .bind(incident.category.as_str())
                .bind(incident.severity as i64)
                .bind(incident.stream.as_str())
                .bind(as_number(incident.offset))
                .bind(&*incident.matched_text)
                .bind(&*incident.excerpt)
                .bind(incident.verdict.map_or("", VerdictKind::as_str))
                .bind(&*incident.reason)
                .bind(incident.source.map_or("", VerdictSource::as_str))
                .bind(incident.action.map_or("", IncidentAction::as_str))
                .bind(incident.latency.map_or(NO_LATENCY, nanoseconds))
                .bind(json(incident.work.as_deref()))
                .bind(json(incident.context.as_deref()))
                .bind(&*incident.decision_id)
                .bind(&*incident.policy_revision)
                .bind(as_number(incident.repeats))
                .bind(i64::from(incident.shadow))
                .bind(i64::from(incident.false_positive))
                .bind(&*incident.false_positive_reason)
                .execute(&mut *write)
                .await
                .map_err(|error| self.failed(&error))?;
        }
        self.commit(write).await
    }

    async fn incident_now(&self, tenant: &str, id: &str) -> Result<Option<Incident>, StoreError> {
        let mut query =
            QueryBuilder::<Sqlite>::new(format!("SELECT {COLUMNS} FROM incident WHERE tenant = "));
        query.push_bind(tenant).push(" AND id = ").push_bind(id);
        let row = query.build().fetch_optional(&self.pool).await.map_err(|error| self.failed(&error))?;
        row.as_ref().map(stored).transpose().map_err(|error| self.failed(&error))
    }

    async fn incidents_now(&self, query: IncidentQuery) -> Result<IncidentPage, StoreError> {
        // One transaction, so that the total is that of the moment of the rows.
        let mut read = self.pool.begin().await.map_err(|error| self.failed(&error))?;
        let mut counting = QueryBuilder::<Sqlite>::new("SELECT COUNT(*) FROM incident");
        push_filter(&mut counting, &query.tenant, &query.filter);
        let total: i64 =
            counting.build_query_scalar().fetch_one(&mut *read).await.map_err(|error| self.failed(&error))?;
        let mut listing = QueryBuilder::<Sqlite>::new(format!("SELECT {COLUMNS} FROM incident"));
        push_filter(&mut listing, &query.tenant, &query.filter);
        let column = column_of(query.key);
        if let Some(IncidentPlace { value, id }) = &query.after {
            let after = if query.is_descending { '<' } else { '>' };
            listing.push(format!(" AND ({column} {after} "));
            push_value(&mut listing, value);
            listing.push(format!(" OR ({column} = "));
            push_value(&mut listing, value);
            listing.push(" AND id > ").push_bind(id.clone()).push("))");
        }
        let direction = if query.is_descending { "DESC" } else { "ASC" };
        let one_more = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
        listing.push(format!(" ORDER BY {column} {direction}, id ASC LIMIT ")).push_bind(one_more);
        let rows = listing.build().fetch_all(&mut *read).await.map_err(|error| self.failed(&error))?;
        let mut incidents: Vec<Incident> =
            rows.iter().map(stored).collect::<Result<_, _>>().map_err(|error| self.failed(&error))?;
        let has_more = incidents.len() > query.limit;
        incidents.truncate(query.limit);
        let next = incidents.last().filter(|_| has_more).map(|last| place(last, query.key));
        Ok(IncidentPage { incidents, next, total: count(total) })
    }

    async fn mark_now(
        &self,
        tenant: &str,
        id: &str,
        reason: Option<&str>,
    ) -> Result<Option<Incident>, StoreError> {
        sqlx::query(
            "UPDATE incident SET false_positive = ?, false_positive_reason = ? WHERE tenant = ? AND id = ?",
        )
        .bind(i64::from(reason.is_some()))
        .bind(reason.unwrap_or_default())
        .bind(tenant)
        .bind(id)
        .execute(&self.pool)
        .await
        .map_err(|error| self.failed(&error))?;
        self.incident_now(tenant, id).await
    }

    async fn stats_now(&self, query: StatsQuery) -> Result<Vec<RuleCounts>, StoreError> {
        let short = query.short_since.as_microsecond();
        let mut counting = QueryBuilder::<Sqlite>::new("SELECT rule_id, MAX(category) AS category");
        for (name, since) in [("long", i64::MIN), ("short", short)] {
            for (counted, condition) in [
                ("incidents", "1 = 1"),
                ("false_positives", "false_positive = 1"),
                ("safe", "verdict = 'SAFE'"),
                ("warn", "verdict = 'WARN'"),
                ("kill", "verdict = 'KILL'"),
                ("landed", "latency_ns >= 0"),
            ] {
                counting.push(format!(", CAST(SUM(CASE WHEN {condition} AND time_us >= "));
                counting.push_bind(since);
                counting.push(format!(" THEN 1 ELSE 0 END) AS BIGINT) AS {name}_{counted}"));
            }
            counting.push(", CAST(SUM(CASE WHEN latency_ns >= 0 AND time_us >= ").push_bind(since);
            counting.push(format!(" THEN latency_ns ELSE 0 END) AS BIGINT) AS {name}_latency_ns"));
        }
        counting.push(" FROM incident");
        let filter = IncidentFilter {
            rule_id: query.rule_id,
            category: query.category,
            start: Some(query.long_since),
            ..IncidentFilter::default()
        };
        push_filter(&mut counting, &query.tenant, &filter);
        counting.push(" GROUP BY rule_id ORDER BY rule_id");
        let rows = counting.build().fetch_all(&self.pool).await.map_err(|error| self.failed(&error))?;
        rows.iter().map(rule_counts).collect::<Result<_, _>>().map_err(|error| self.failed(&error))
    }

    async fn purge_now(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut purged = 0;
        loop {
            let deleted = sqlx::query(
                "DELETE FROM incident WHERE id IN (SELECT id FROM incident WHERE time_us < ? ORDER BY time_us LIMIT ?)",
            )
            .bind(before.as_microsecond())
            .bind(PURGE_ROWS)
            .execute(&self.pool)
            .await
            .map_err(|error| self.failed(&error))?
            .rows_affected();
            purged += deleted;
            if deleted < PURGE_ROWS.unsigned_abs() {
                return Ok(purged);
            }
        }
    }
}

impl IncidentStore for SqliteStore {
    fn save(&self, incidents: Vec<KeptIncident>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.save_now(incidents).boxed()
    }

    fn incident(&self, tenant: String, id: String) -> BoxFuture<'_, Result<Option<Incident>, StoreError>> {
        async move { self.incident_now(&tenant, &id).await }.boxed()
    }

    fn incidents(&self, query: IncidentQuery) -> BoxFuture<'_, Result<IncidentPage, StoreError>> {
        self.incidents_now(query).boxed()
    }

    fn mark(
        &self,
        tenant: String,
        id: String,
        reason: Option<String>,
    ) -> BoxFuture<'_, Result<Option<Incident>, StoreError>> {
        async move { self.mark_now(&tenant, &id, reason.as_deref()).await }.boxed()
    }

    fn stats(&self, query: StatsQuery) -> BoxFuture<'_, Result<Vec<RuleCounts>, StoreError>> {
        self.stats_now(query).boxed()
    }

    fn purge(&self, before: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.purge_now(before).boxed()
    }
}

/// The column that holds the values of a key.
fn column_of(key: IncidentKey) -> &'static str {
    match key {
        IncidentKey::Time => "time_us",
        IncidentKey::Severity => "severity",
        IncidentKey::RuleId => "rule_id",
        IncidentKey::Category => "category",
        IncidentKey::Latency => "latency_ns",
    }
}

/// Where an incident stands in a list ordered by `key`.
fn place(incident: &Incident, key: IncidentKey) -> IncidentPlace {
    let value = match key {
        IncidentKey::Time => KeyValue::Number(incident.time.as_microsecond()),
        IncidentKey::Severity => KeyValue::Number(incident.severity as i64),
        IncidentKey::RuleId => KeyValue::Text(incident.rule_id.to_string()),
        IncidentKey::Category => KeyValue::Text(incident.category.as_str().to_owned()),
        IncidentKey::Latency => KeyValue::Number(incident.latency.map_or(NO_LATENCY, nanoseconds)),
    };
    IncidentPlace { value, id: incident.id.to_string() }
}

fn push_value(query: &mut QueryBuilder<Sqlite>, value: &KeyValue) {
    match value {
        KeyValue::Number(number) => query.push_bind(*number),
        KeyValue::Text(text) => query.push_bind(text.clone()),
    };
}

fn push_filter(query: &mut QueryBuilder<Sqlite>, tenant: &str, filter: &IncidentFilter) {
    query.push(" WHERE tenant = ").push_bind(tenant.to_owned());
    for (column, value) in [
        ("session_id", filter.session_id.as_str()),
        ("rule_id", &filter.rule_id),
        ("agent_id", &filter.agent_id),
        ("verdict", filter.verdict.map_or("", VerdictKind::as_str)),
        ("source", filter.source.map_or("", VerdictSource::as_str)),
        ("action", filter.action.map_or("", IncidentAction::as_str)),
    ] {
        if !value.is_empty() {
            query.push(format!(" AND {column} = ")).push_bind(value.to_owned());
        }
    }
    if !filter.category.is_empty() {
        let below = format!("{}.", filter.category);
        let length = i64::try_from(below.chars().count()).unwrap_or(i64::MAX);
        query.push(" AND (category = ").push_bind(filter.category.clone());
        query.push(" OR substr(category, 1, ").push_bind(length).push(") = ").push_bind(below).push(")");
    }
    if let Some(severity) = filter.severity_min {
        query.push(" AND severity >= ").push_bind(severity as i64);
    }
    if let Some(is_marked) = filter.false_positive {
        query.push(" AND false_positive = ").push_bind(i64::from(is_marked));
    }
    if let Some(start) = filter.start {
        query.push(" AND time_us >= ").push_bind(microseconds_up(start));
    }
    if let Some(end) = filter.end {
        query.push(" AND time_us < ").push_bind(microseconds_up(end));
    }
}

/// The first whole microsecond at or after `time`: times are kept to the microsecond, bounds may be finer.
fn microseconds_up(time: Timestamp) -> i64 {
    let floor = time.as_nanosecond().div_euclid(1_000);
    let is_whole = time.as_nanosecond().rem_euclid(1_000) == 0;
    i64::try_from(floor + i128::from(!is_whole)).unwrap_or(i64::MAX)
}

/// A counter as the database keeps it; it has no unsigned numbers.
fn as_number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Empty for what is absent.
fn json<T: Serialize>(value: Option<&T>) -> String {
    value
        .map(|value| serde_json::to_string(value).expect("texts and maps of texts have a JSON form"))
        .unwrap_or_default()
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<Option<T>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    serde_json::from_str(text).map(Some).map_err(|error| Error::Decode(error.into()))
}

/// The value of that name; `None` for the empty name.
fn named<T: Copy>(all: &[T], name_of: fn(T) -> &'static str, name: &str) -> Result<Option<T>, Error> {
    if name.is_empty() {
        return Ok(None);
    }
    let found = all.iter().copied().find(|one| name_of(*one) == name);
    found.map(Some).ok_or_else(|| Error::Decode(format!("unknown name `{name}`").into()))
}

fn stored(row: &SqliteRow) -> Result<Incident, Error> {
    let text = |column: &str| row.try_get::<String, _>(column);
    let number = |column: &str| row.try_get::<i64, _>(column);
    let severity = usize::try_from(number("severity")?).ok().and_then(|at| Severity::ALL.get(at).copied());
    let stream = named(&OutputStream::ALL, OutputStream::as_str, &text("stream")?)?;
    let missing = |what: &str| Error::Decode(format!("no {what}").into());
    Ok(Incident {
        id: text("id")?.into(),
        session_id: text("session_id")?.into(),
        time: Timestamp::from_microsecond(number("time_us")?).map_err(|error| Error::Decode(error.into()))?,
        rule_id: text("rule_id")?.into(),
        category: Category::new(&text("category")?),
        severity: severity.ok_or_else(|| missing("severity"))?,
        stream: stream.ok_or_else(|| missing("stream"))?,
        offset: count(number("byte_offset")?),
        matched_text: text("matched_text")?,
        excerpt: text("excerpt")?.into(),
        verdict: named(&VerdictKind::ALL, VerdictKind::as_str, &text("verdict")?)?,
        reason: text("reason")?,
        source: named(&VerdictSource::ALL, VerdictSource::as_str, &text("source")?)?,
        action: named(&IncidentAction::ALL, IncidentAction::as_str, &text("action")?)?,
        latency: u64::try_from(number("latency_ns")?).ok().map(Duration::from_nanos),
        false_positive: number("false_positive")? != 0,
        false_positive_reason: text("false_positive_reason")?,
        work: from_json(&text("work")?)?,
        decision_id: text("decision_id")?.into(),
        policy_revision: text("policy_revision")?.into(),
        repeats: count(number("repeats")?),
        context: from_json(&text("context")?)?,
        shadow: number("shadow")? != 0,
    })
}

fn rule_counts(row: &SqliteRow) -> Result<RuleCounts, Error> {
    let counts = |name: &str| -> Result<IncidentCounts, Error> {
        let of = |counted: &str| row.try_get::<i64, _>(format!("{name}_{counted}").as_str()).map(count);
        Ok(IncidentCounts {
            incidents: of("incidents")?,
            false_positives: of("false_positives")?,
            safe: of("safe")?,
            warn: of("warn")?,
            kill: of("kill")?,
            landed: of("landed")?,
            latency_ns: of("latency_ns")?,
        })
    };
    Ok(RuleCounts {
        rule_id: row.try_get("rule_id")?,
        category: row.try_get("category")?,
        long: counts("long")?,
        short: counts("short")?,
    })
}
