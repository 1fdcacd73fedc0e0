//! Incidents in the database.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Error;

use super::rows::{as_number, check_indexed, count, decode, microseconds_up, timestamp};
use super::{Row, SqlStore, Statement, rows};
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

impl SqlStore {
    async fn save_now(&self, incidents: Vec<KeptIncident>) -> Result<(), StoreError> {
        let mut write = self.database.write().await?;
        for KeptIncident { tenant, incident } in &incidents {
            check_indexed(&[
                ("incident.tenant", tenant),
                ("incident.id", &incident.id),
                ("incident.session_id", &incident.session_id),
            ])?;
            let agent_id = incident.context.as_ref().map_or("", |context| &context.agent_id);
            let insert = Statement::new(INSERT)
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
                .bind(&json(incident.work.as_deref()))
                .bind(&json(incident.context.as_deref()))
                .bind(&*incident.decision_id)
                .bind(&*incident.policy_revision)
                .bind(as_number(incident.repeats))
                .bind(incident.shadow)
                .bind(incident.false_positive)
                .bind(&*incident.false_positive_reason);
            write.run(insert).await?;
        }
        write.commit().await
    }

    async fn incident_now(&self, tenant: &str, id: &str) -> Result<Option<Incident>, StoreError> {
        let select = Statement::new(format!("SELECT {COLUMNS} FROM incident WHERE tenant = ? AND id = ?"));
        let row = self.database.row(select.bind(tenant).bind(id)).await?;
        self.read(row.as_ref().map(stored).transpose())
    }

    async fn incidents_now(&self, query: IncidentQuery) -> Result<IncidentPage, StoreError> {
        // One transaction, so that the total is that of the moment of the rows.
        let mut read = self.database.read().await?;
        let total = count(read.number(incident_count(&query), "total").await?);
        if total == 0 {
            return Ok(IncidentPage { incidents: Vec::new(), next: None, total });
        }
        let listing = incident_list(&query, total);
        let mut incidents = self.read_all(&read.rows(listing).await?, stored)?;
        let has_more = incidents.len() > query.limit;
        incidents.truncate(query.limit);
        let next = incidents.last().filter(|_| has_more).map(|last| place(last, query.key));
        Ok(IncidentPage { incidents, next, total })
    }

    async fn mark_now(
        &self,
        tenant: &str,
        id: &str,
        reason: Option<&str>,
    ) -> Result<Option<Incident>, StoreError> {
        let update = Statement::new(format!(
            "UPDATE incident SET false_positive = ?, false_positive_reason = ? WHERE tenant = ? AND id = ? \
             RETURNING {COLUMNS}"
        ))
        .bind(reason.is_some())
        .bind(reason.unwrap_or_default())
        .bind(tenant)
        .bind(id);
        let rows = self.database.write_one(update).await?;
        self.read(rows.first().map(stored).transpose())
    }

    async fn stats_now(&self, query: StatsQuery) -> Result<Vec<RuleCounts>, StoreError> {
        let rows = self.database.rows(stats_statement(&query)).await?;
        let mut rules: Vec<RuleCounts> = Vec::new();
        for (rule_id, category, long, short) in self.read_all(&rows, alike)? {
            // They come in the order of their rules.
            match rules.last_mut().filter(|last| last.rule_id == rule_id) {
                Some(last) => {
                    last.category = last.category.clone().max(category);
                    last.long.add(long);
                    last.short.add(short);
                }
                None => rules.push(RuleCounts { rule_id, category, long, short }),
            }
        }
        Ok(rules)
    }

    async fn purge_now(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut purged = 0;
        loop {
            let delete = Statement::new(
                "DELETE FROM incident WHERE id IN (SELECT id FROM incident WHERE time_us < ? ORDER BY time_us LIMIT ?)",
            );
            let mut write = self.database.write().await?;
            let deleted = write.run(delete.bind(before.as_microsecond()).bind(PURGE_ROWS)).await?;
            write.commit().await?;
            purged += deleted;
            if deleted < PURGE_ROWS.unsigned_abs() {
                return Ok(purged);
            }
        }
    }
}

impl IncidentStore for SqlStore {
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
pub(super) fn place(incident: &Incident, key: IncidentKey) -> IncidentPlace {
    let value = match key {
        IncidentKey::Time => KeyValue::Number(incident.time.as_microsecond()),
        IncidentKey::Severity => KeyValue::Number(incident.severity as i64),
        IncidentKey::RuleId => KeyValue::Text(incident.rule_id.to_string()),
        IncidentKey::Category => KeyValue::Text(incident.category.as_str().to_owned()),
        IncidentKey::Latency => KeyValue::Number(incident.latency.map_or(NO_LATENCY, nanoseconds)),
    };
    IncidentPlace { value, id: incident.id.to_string() }
}

/// As many as this are found by what they have in common and sorted; of more, a page is found soon enough in the order of
/// the list.
const FEW_MAX: u64 = 1_000;

/// How many pass the filter.
pub(super) fn incident_count(query: &IncidentQuery) -> Statement {
    let Some(most) = query.count_max else {
        let mut counting = Statement::new("SELECT COUNT(*) AS total FROM incident");
        push_filter(&mut counting, &query.tenant, &query.filter);
        return counting;
    };
    let mut counting = Statement::new("SELECT COUNT(*) AS total FROM (SELECT 1 AS one FROM incident");
    push_filter(&mut counting, &query.tenant, &query.filter);
    counting.push(" LIMIT ").push_value(as_number(most.saturating_add(1))).push(") found");
    counting
}

/// The rows of one page, of so many in all.
pub(super) fn incident_list(query: &IncidentQuery, total: u64) -> Statement {
    let mut listing = Statement::new(format!("SELECT {COLUMNS} FROM incident"));
    push_filter(&mut listing, &query.tenant, &query.filter);
    let mut column = column_of(query.key).to_owned();
    if total <= FEW_MAX && query.filter != IncidentFilter::default() {
        // Of an expression no index knows the order, so none is walked through to its end for the last of the few.
        column = format!("COALESCE({column}, {column})");
    }
    if let Some(IncidentPlace { value, id }) = &query.after {
        listing.push_after(&column, "id", query.is_descending, value, id);
    }
    listing.push_order(&column, "id", query.is_descending, query.limit);
    listing
}

/// Counts of incidents that are alike in all that rates tell apart, rule by rule. Whole days are counted already; of the day
/// that a span begins in, its incidents since then are.
pub(super) fn stats_statement(query: &StatsQuery) -> Statement {
    const ALIKE: &str = "rule_id, category, verdict, false_positive, shadow";
    const COUNTED: [&str; 3] = ["incidents", "landed", "latency_ns"];
    let long = Span::since(query.long_since);
    let short = Span::since(query.short_since);
    let sums = ["long", "short"].into_iter().flat_map(|span| COUNTED.map(|what| format!("{span}_{what}")));
    let sums: Vec<String> = sums.map(|sum| format!("CAST(SUM({sum}) AS BIGINT) AS {sum}")).collect();
    let mut counting = Statement::new(format!("SELECT {ALIKE}, {} FROM (", sums.join(", ")));

    counting.push(&format!("SELECT {ALIKE}"));
    for (name, span) in [("long", &long), ("short", &short)] {
        for what in COUNTED {
            counting.push(", CASE WHEN day >= ").push_value(span.first_day);
            counting.push(&format!(" THEN {what} ELSE 0 END AS {name}_{what}"));
        }
    }
    counting.push(" FROM incident_day");
    let filter = IncidentFilter {
        rule_id: query.rule_id.clone(),
        category: query.category.clone(),
        ..IncidentFilter::default()
    };
    push_filter(&mut counting, &query.tenant, &filter);
    counting.push(" AND day >= ").push_value(long.first_day.min(short.first_day));

    const ONE: &str = "1, CASE WHEN latency_ns >= 0 THEN 1 ELSE 0 END, CASE WHEN latency_ns < 0 THEN 0 \
        WHEN latency_ns > 3600000000000 THEN 3600000000000 ELSE latency_ns END";
    const NONE: &str = "0, 0, 0";
    for (span, counts) in [(&long, [ONE, NONE]), (&short, [NONE, ONE])] {
        counting.push(&format!(" UNION ALL SELECT {ALIKE}, {}, {} FROM incident", counts[0], counts[1]));
        push_filter(&mut counting, &query.tenant, &filter);
        counting.push(" AND time_us >= ").push_value(span.start_us);
        counting.push(" AND time_us < ").push_value(span.first_day.saturating_mul(DAY_US));
    }
    counting.push(&format!(") counted GROUP BY {ALIKE} ORDER BY {ALIKE}"));
    counting
}

/// Microseconds of a day; incidents are counted day by day, in UTC.
const DAY_US: i64 = 24 * 3_600 * 1_000_000;

/// A span of time up to now: a rest of the day it begins in, and the days from then on.
struct Span {
    /// Where it begins, in microseconds since 1970.
    start_us: i64,
    /// The first day that is in it as a whole, counted from 1970.
    first_day: i64,
}

impl Span {
    fn since(start: Timestamp) -> Self {
        let start_us = microseconds_up(start);
        let first_day = start_us.div_euclid(DAY_US) + i64::from(start_us.rem_euclid(DAY_US) > 0);
        Self { start_us, first_day }
    }
}

fn push_filter(query: &mut Statement, tenant: &str, filter: &IncidentFilter) {
    query.push(" WHERE tenant = ").push_value(tenant);
    for (column, value) in [
        ("session_id", filter.session_id.as_str()),
        ("rule_id", &filter.rule_id),
        ("agent_id", &filter.agent_id),
        ("verdict", filter.verdict.map_or("", VerdictKind::as_str)),
        ("source", filter.source.map_or("", VerdictSource::as_str)),
        ("action", filter.action.map_or("", IncidentAction::as_str)),
    ] {
        if value.is_empty() {
            continue;
        }
        // A session has few; of an expression no index knows anything, so theirs finds them and not one of something that
        // half of all have.
        let is_other = !filter.session_id.is_empty() && column != "session_id";
        let column = if is_other { format!("({column} || '')") } else { column.to_owned() };
        query.push(&format!(" AND {column} = ")).push_value(value);
    }
    if !filter.category.is_empty() {
        query.push(" AND (category = ").push_value(&filter.category);
        query.push(" OR ").push_prefix("category", &format!("{}.", filter.category)).push(")");
    }
    if let Some(severity) = filter.severity_min {
        query.push(" AND severity >= ").push_value(severity as i64);
    }
    if let Some(is_marked) = filter.false_positive {
        query.push(" AND false_positive = ").push_value(is_marked);
    }
    query.push_span("time_us", filter.start, filter.end);
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Empty for what is absent.
fn json<T: Serialize>(value: Option<&T>) -> String {
    value.map(rows::json).unwrap_or_default()
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<Option<T>, Error> {
    if text.is_empty() { Ok(None) } else { rows::from_json(text).map(Some) }
}

/// The value of that name; `None` for the empty name.
fn named<T: Copy>(all: &[T], name_of: fn(T) -> &'static str, name: &str) -> Result<Option<T>, Error> {
    if name.is_empty() {
        return Ok(None);
    }
    let found = all.iter().copied().find(|one| name_of(*one) == name);
    found.map(Some).ok_or_else(|| decode(format!("unknown name `{name}`")))
}

fn stored(row: &Row) -> Result<Incident, Error> {
    let text = |column: &str| row.text(column);
    let number = |column: &str| row.number(column);
    let severity = usize::try_from(number("severity")?).ok().and_then(|at| Severity::ALL.get(at).copied());
    let stream = named(&OutputStream::ALL, OutputStream::as_str, &text("stream")?)?;
    let missing = |what: &str| decode(format!("no {what}"));
    Ok(Incident {
        id: text("id")?.into(),
        session_id: text("session_id")?.into(),
        time: timestamp(number("time_us")?)?,
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

/// Rule, category and counts of incidents that are alike.
fn alike(row: &Row) -> Result<(String, String, IncidentCounts, IncidentCounts), Error> {
    let verdict = named(&VerdictKind::ALL, VerdictKind::as_str, &row.text("verdict")?)?;
    let (is_false, is_shadow) = (row.number("false_positive")? != 0, row.number("shadow")? != 0);
    let counts = |name: &str| -> Result<IncidentCounts, Error> {
        let of = |counted: &str| row.number(&format!("{name}_{counted}")).map(count);
        let incidents = of("incidents")?;
        let those = |is: bool| if is { incidents } else { 0 };
        Ok(IncidentCounts {
            incidents,
            false_positives: those(is_false),
            safe: those(verdict == Some(VerdictKind::Safe)),
            warn: those(verdict == Some(VerdictKind::Warn)),
            kill: those(verdict == Some(VerdictKind::Kill)),
            shadow: those(is_shadow),
            shadow_kill: those(is_shadow && verdict == Some(VerdictKind::Kill)),
            landed: of("landed")?,
            latency_ns: of("latency_ns")?,
        })
    };
    Ok((row.text("rule_id")?, row.text("category")?, counts("long")?, counts("short")?))
}
