//! The repository of incidents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::decision::{
    Caller, Category, Incident, IncidentAction, OutputStream, Severity, VerdictKind, VerdictSource,
    WorkContext,
};
use crate::store::sql::Statement;
use crate::store::sql::database::Engine;
use crate::store::sql::incidents::place as place_in_list;
use crate::store::{
    IncidentCounts, IncidentFilter, IncidentKey, IncidentQuery, IncidentStore, KeptIncident, KeyValue,
    RuleCounts, StatsQuery,
};

on_both!(
    every_field_comes_back_after_a_reopening_and_a_later_state_takes_its_place,
    a_tenant_sees_and_marks_its_own_only,
    each_filter_passes_what_it_says,
    pages_join_to_the_list_in_every_order,
    stats_count_each_rule_over_both_spans,
    stats_are_those_of_the_incidents_that_are_there_whatever_was_done,
    incidents_of_a_release_before_are_counted,
    who_write_the_same_counts_at_once_do_not_wait_for_each_other_for_ever,
    a_purge_deletes_what_is_older_and_nothing_else,
);

const DAY_US: i64 = 86_400_000_000;

/// Number `n` of rule `rule`, seen at `time_us`.
fn incident(n: u32, rule: &str, time_us: i64) -> Incident {
    Incident {
        id: format!("id-{n:04}").into(),
        session_id: format!("session-{}", n % 2).into(),
        time: Timestamp::from_microsecond(time_us).expect("in range"),
        rule_id: rule.into(),
        category: Category::new(if n.is_multiple_of(3) {
            "dangerous_command.remote_code"
        } else {
            "dangerous_command"
        }),
        severity: Severity::ALL[n as usize % 4],
        stream: if n.is_multiple_of(2) { OutputStream::Stdout } else { OutputStream::Stderr },
        offset: u64::from(n) * 1000,
        matched_text: format!("text {n} ☃"),
        excerpt: format!("around text {n}").into(),
        verdict: None,
        reason: String::new(),
        source: None,
        action: None,
        latency: None,
        false_positive: false,
        false_positive_reason: String::new(),
        work: Some(Arc::new(WorkContext {
            goal: "build".into(),
            non_goals: vec!["deploy".into()],
            ..WorkContext::default()
        })),
        decision_id: format!("decision-{n}").into(),
        policy_revision: "r".into(),
        repeats: 0,
        context: Some(Arc::new(Caller {
            agent_id: format!("agent-{}", n % 2),
            labels: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
            ..Caller::default()
        })),
        shadow: n.is_multiple_of(5),
    }
}

fn landed(incident: &Incident, verdict: VerdictKind, latency: Duration) -> Incident {
    Incident {
        verdict: Some(verdict),
        reason: "because".to_owned(),
        source: Some(VerdictSource::Judge),
        action: Some(IncidentAction::Warned),
        latency: Some(latency),
        repeats: 7,
        ..incident.clone()
    }
}

fn kept(tenant: &str, incident: &Incident) -> KeptIncident {
    KeptIncident { tenant: tenant.into(), incident: Arc::new(incident.clone()) }
}

fn query(filter: IncidentFilter) -> IncidentQuery {
    IncidentQuery {
        tenant: String::new(),
        filter,
        key: IncidentKey::Time,
        is_descending: false,
        after: None,
        limit: 1_000,
        count_max: None,
    }
}

fn ids(incidents: &[Incident]) -> Vec<&str> {
    incidents.iter().map(|one| &*one.id).collect()
}

async fn every_field_comes_back_after_a_reopening_and_a_later_state_takes_its_place(place: TestPlace) {
    let first = place.open().await;
    let mut one = incident(5, "rule", 1_700_000_000_000_001);
    let bare = Incident { work: None, context: None, offset: u64::MAX >> 1, ..incident(6, "rule", 0) };
    first.save(vec![kept("", &one), kept("", &bare)]).await.expect("kept");
    drop(first);
    let again = place.open().await;
    assert_eq!(again.incident(String::new(), one.id.to_string()).await.expect("read"), Some(one.clone()));
    assert_eq!(again.incident(String::new(), bare.id.to_string()).await.expect("read"), Some(bare));
    assert_eq!(again.incident(String::new(), "none".into()).await.expect("read"), None);
    let marked = again.mark(String::new(), one.id.to_string(), Some("no harm".into())).await.expect("marked");
    one.false_positive = true;
    one.false_positive_reason = "no harm".to_owned();
    assert_eq!(marked, Some(one.clone()));
    let later = landed(
        &Incident { false_positive: false, ..one.clone() },
        VerdictKind::Kill,
        Duration::from_nanos(1_234_567),
    );
    again.save(vec![kept("", &later)]).await.expect("kept");
    let later = Incident { false_positive: true, ..later };
    assert_eq!(
        again.incident(String::new(), one.id.to_string()).await.expect("read"),
        Some(later.clone()),
        "the mark stays"
    );
    let unmarked =
        again.mark(String::new(), one.id.to_string(), None).await.expect("unmarked").expect("there");
    assert!(!unmarked.false_positive && unmarked.false_positive_reason.is_empty());
}

async fn a_tenant_sees_and_marks_its_own_only(place: TestPlace) {
    let store = place.open().await;
    let one = incident(1, "rule", 10);
    store.save(vec![kept("acme", &one)]).await.expect("kept");
    let id = one.id.to_string();
    assert_eq!(store.incident(String::new(), id.clone()).await.expect("read"), None);
    assert_eq!(store.mark("other".into(), id.clone(), Some("x".into())).await.expect("read"), None);
    assert_eq!(store.incidents(query(IncidentFilter::default())).await.expect("read").total, 0);
    assert_eq!(store.incident("acme".into(), id).await.expect("read"), Some(one));
}

async fn each_filter_passes_what_it_says(place: TestPlace) {
    let store = place.open().await;
    let all: Vec<Incident> =
        (0..12).map(|n| incident(n, if n < 6 { "a" } else { "b" }, i64::from(n) * 10)).collect();
    let mut kept_ones: Vec<KeptIncident> = all.iter().map(|one| kept("", one)).collect();
    kept_ones[3] = kept("", &landed(&all[3], VerdictKind::Warn, Duration::from_millis(3)));
    store.save(kept_ones).await.expect("kept");
    store.mark(String::new(), all[4].id.to_string(), Some(String::new())).await.expect("marked");
    let at = |us: i64| Some(Timestamp::from_microsecond(us).expect("in range"));
    let base = IncidentFilter::default;
    for (filter, wanted) in [
        (base(), (0..12).collect::<Vec<u32>>()),
        (IncidentFilter { session_id: "session-1".into(), ..base() }, vec![1, 3, 5, 7, 9, 11]),
        (IncidentFilter { agent_id: "agent-0".into(), rule_id: "b".into(), ..base() }, vec![6, 8, 10]),
        (
            IncidentFilter { category: "dangerous_command".into(), rule_id: "a".into(), ..base() },
            (0..6).collect(),
        ),
        (IncidentFilter { category: "dangerous_command.remote_code".into(), ..base() }, vec![0, 3, 6, 9]),
        (IncidentFilter { category: "dangerous".into(), ..base() }, vec![]),
        (IncidentFilter { severity_min: Some(Severity::High), ..base() }, vec![2, 3, 6, 7, 10, 11]),
        (IncidentFilter { verdict: Some(VerdictKind::Warn), ..base() }, vec![3]),
        (IncidentFilter { source: Some(VerdictSource::Judge), ..base() }, vec![3]),
        (IncidentFilter { source: Some(VerdictSource::Rule), ..base() }, vec![]),
        (IncidentFilter { action: Some(IncidentAction::Warned), ..base() }, vec![3]),
        (IncidentFilter { false_positive: Some(true), ..base() }, vec![4]),
        (IncidentFilter { false_positive: Some(false), rule_id: "a".into(), ..base() }, vec![0, 1, 2, 3, 5]),
        (IncidentFilter { start: at(30), end: at(60), ..base() }, vec![3, 4, 5]),
        (IncidentFilter { rule_id: "' OR 1=1 --".into(), ..base() }, vec![]),
    ] {
        for most in [0, 1, 100] {
            let bounded = IncidentQuery { count_max: Some(most), ..query(filter.clone()) };
            let page = store.incidents(bounded).await.expect("read");
            assert_eq!(page.total, (page.incidents.len() as u64).min(most + 1), "{filter:?}, to {most}");
        }
        let page = store.incidents(query(filter.clone())).await.expect("read");
        let wanted: Vec<String> = wanted.iter().map(|n| format!("id-{n:04}")).collect();
        assert_eq!(ids(&page.incidents), wanted, "{filter:?}");
        assert_eq!(page.total, wanted.len() as u64, "{filter:?}");
        assert_eq!(page.next, None);
    }
}

async fn pages_join_to_the_list_in_every_order(place: TestPlace) {
    let store = place.open().await;
    let mut all = Vec::new();
    for n in 0..23 {
        let one = incident(n, ["a", "b", "c"][n as usize % 3], i64::from(n / 4));
        let one = if n.is_multiple_of(2) {
            landed(&one, VerdictKind::Safe, Duration::from_millis(u64::from(n % 5)))
        } else {
            one
        };
        all.push(kept("", &one));
    }
    store.save(all).await.expect("kept");
    for key in [
        IncidentKey::Time,
        IncidentKey::Severity,
        IncidentKey::RuleId,
        IncidentKey::Category,
        IncidentKey::Latency,
    ] {
        for is_descending in [false, true] {
            let query = IncidentQuery { key, is_descending, ..query(IncidentFilter::default()) };
            let whole = store.incidents(query.clone()).await.expect("read").incidents;
            let sorted = |pair: &[Incident]| {
                let of = |one: &Incident| match place_in_list(one, key).value {
                    KeyValue::Number(number) => (number, String::new()),
                    KeyValue::Text(text) => (0, text),
                };
                let (a, b) = (of(&pair[0]), of(&pair[1]));
                let forward = if is_descending { a > b } else { a < b };
                let ids = if is_descending { pair[0].id > pair[1].id } else { pair[0].id < pair[1].id };
                forward || (a == b && ids)
            };
            assert!(whole.windows(2).all(sorted), "{key:?} {is_descending}");
            let (mut joined, mut after) = (Vec::new(), None);
            loop {
                let page =
                    store.incidents(IncidentQuery { after, limit: 4, ..query.clone() }).await.expect("read");
                assert_eq!(page.total, 23);
                joined.extend(page.incidents);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(ids(&joined), ids(&whole), "{key:?} {is_descending}");
        }
    }
}

async fn stats_count_each_rule_over_both_spans(place: TestPlace) {
    let store = place.open().await;
    let now = 100 * DAY_US;
    let ms = Duration::from_millis;
    let all = [
        landed(&incident(1, "b", now - DAY_US), VerdictKind::Kill, ms(30)),
        landed(&incident(2, "b", now - 20 * DAY_US), VerdictKind::Safe, ms(10)),
        incident(4, "b", now - 2 * DAY_US),
        landed(&incident(5, "a", now - 8 * DAY_US), VerdictKind::Warn, ms(5)),
        landed(&incident(7, "c", now - 31 * DAY_US), VerdictKind::Kill, ms(1)),
        Incident { shadow: true, ..landed(&incident(8, "b", now - 3 * DAY_US), VerdictKind::Kill, ms(2)) },
    ];
    store.save(all.iter().map(|one| kept("", one)).collect()).await.expect("kept");
    store.mark(String::new(), all[1].id.to_string(), Some("x".into())).await.expect("marked");
    let at = |us: i64| Timestamp::from_microsecond(us).expect("in range");
    let query = StatsQuery {
        tenant: String::new(),
        rule_id: String::new(),
        category: String::new(),
        long_since: at(now - 30 * DAY_US),
        short_since: at(now - 7 * DAY_US),
    };
    let counted = store.stats(query.clone()).await.expect("counted");
    assert_eq!(counted.iter().map(|one| one.rule_id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let b = &counted[1];
    let long = IncidentCounts {
        incidents: 4,
        false_positives: 1,
        safe: 1,
        warn: 0,
        kill: 2,
        shadow: 1,
        shadow_kill: 1,
        landed: 3,
        latency_ns: 42_000_000,
    };
    let short = IncidentCounts {
        incidents: 3,
        kill: 2,
        shadow: 1,
        shadow_kill: 1,
        landed: 2,
        latency_ns: 32_000_000,
        ..IncidentCounts::default()
    };
    assert_eq!((b.long, b.short), (long, short));
    let one = store.stats(StatsQuery { rule_id: "a".into(), ..query.clone() }).await.expect("counted");
    assert_eq!(one.len(), 1);
    let other = store.stats(StatsQuery { tenant: "acme".into(), ..query }).await.expect("counted");
    assert!(other.is_empty());
}

/// The counts of rules, worked out from every incident of a tenant.
async fn counted_one_by_one(store: &SqlStore, query: &StatsQuery) -> Vec<RuleCounts> {
    let listed = IncidentQuery {
        tenant: query.tenant.clone(),
        limit: 10_000,
        ..self::query(IncidentFilter::default())
    };
    let mut rules: BTreeMap<String, RuleCounts> = BTreeMap::new();
    for one in store.incidents(listed).await.expect("read").incidents {
        let is_of = |category: &str| {
            category == query.category || category.starts_with(&format!("{}.", query.category))
        };
        if one.time < query.long_since
            || !(query.rule_id.is_empty() || *one.rule_id == *query.rule_id)
            || !(query.category.is_empty() || is_of(one.category.as_str()))
        {
            continue;
        }
        let has = |verdict| u64::from(one.verdict == Some(verdict));
        let latency = one.latency.map(|latency| latency.min(Duration::from_secs(3_600)));
        let counts = IncidentCounts {
            incidents: 1,
            false_positives: one.false_positive.into(),
            safe: has(VerdictKind::Safe),
            warn: has(VerdictKind::Warn),
            kill: has(VerdictKind::Kill),
            shadow: one.shadow.into(),
            shadow_kill: u64::from(one.shadow) * has(VerdictKind::Kill),
            landed: latency.is_some().into(),
            latency_ns: latency.map_or(0, |latency| u64::try_from(latency.as_nanos()).expect("small")),
        };
        let rule = rules.entry(one.rule_id.to_string()).or_insert_with(|| RuleCounts {
            rule_id: one.rule_id.to_string(),
            category: one.category.as_str().to_owned(),
            long: IncidentCounts::default(),
            short: IncidentCounts::default(),
        });
        rule.category = rule.category.clone().max(one.category.as_str().to_owned());
        rule.long.add(counts);
        if one.time >= query.short_since {
            rule.short.add(counts);
        }
    }
    rules.into_values().collect()
}

async fn stats_are_those_of_the_incidents_that_are_there_whatever_was_done(place: TestPlace) {
    let store = place.open().await;
    let now = 100 * DAY_US + 12_345_678;
    // The same on every run.
    let mut state = 7_u64;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let at = |us: i64| Timestamp::from_microsecond(us).expect("in range");
    let spans = [(30, 7), (30, 30), (1, 1), (9, 0)];
    for round in 0..12 {
        let batch: Vec<KeptIncident> = (0..20)
            .map(|_| {
                // Some ids come again, with a verdict of their own.
                let n = u32::try_from(next(150)).expect("small");
                let rule = ["a", "b", "c"][n as usize % 3];
                let seen = now - i64::from(n) * (DAY_US / 4) + i64::from(n % 5);
                let one = Incident { shadow: n.is_multiple_of(7), ..incident(n, rule, seen) };
                let one = match next(4) {
                    0 => one,
                    1 => landed(&one, VerdictKind::Kill, Duration::from_millis(next(90))),
                    2 => landed(&one, VerdictKind::Warn, Duration::from_secs(next(9_000))),
                    _ => landed(&one, VerdictKind::Safe, Duration::ZERO),
                };
                kept(if n.is_multiple_of(5) { "acme" } else { "" }, &one)
            })
            .collect();
        store.save(batch).await.expect("kept");
        for _ in 0..4 {
            let id = format!("id-{:04}", next(150));
            let tenant = if next(2) == 0 { "acme" } else { "" };
            store
                .mark(tenant.into(), id, (next(3) > 0).then(|| "x".into()))
                .await
                .expect("marked, or not there");
        }
        if round % 5 == 4 {
            store.purge(at(now - 25 * DAY_US - round * DAY_US)).await.expect("purged");
        }
        for (tenant, rule_id, category) in [
            ("", "", ""),
            ("acme", "", ""),
            ("", "b", ""),
            ("", "", "dangerous_command.remote_code"),
            ("acme", "a", "dangerous_command"),
        ] {
            for (long, short) in spans {
                let query = StatsQuery {
                    tenant: tenant.into(),
                    rule_id: rule_id.into(),
                    category: category.into(),
                    long_since: at(now - long * DAY_US),
                    short_since: at(now - short * DAY_US),
                };
                let counted = store.stats(query.clone()).await.expect("counted");
                assert_eq!(counted, counted_one_by_one(&store, &query).await, "round {round}: {query:?}");
            }
        }
    }
    assert!(store.purge(at(now + DAY_US)).await.expect("purged") > 0);
    let left = store.database.rows(Statement::new("SELECT day FROM incident_day")).await.expect("read");
    assert!(left.is_empty(), "no count of what is no more stays");
}

/// What the migration that began to count by days did, undone.
const UNCOUNTED: [&str; 12] = [
    "DROP TRIGGER incident_day_alone ON incident",
    "DROP TRIGGER incident_day_begins ON incident",
    "DROP TRIGGER incident_day_changes ON incident",
    "DROP TRIGGER incident_day_ends ON incident",
    "DROP FUNCTION incident_day_alone",
    "DROP FUNCTION incident_day_begin",
    "DROP FUNCTION incident_day_change",
    "DROP FUNCTION incident_day_end",
    "DROP FUNCTION incident_day_add",
    "DROP TABLE incident_day",
    "CREATE INDEX incident_rates ON incident (tenant, rule_id)",
    "DELETE FROM _sqlx_migrations WHERE version = 12",
];

async fn incidents_of_a_release_before_are_counted(place: TestPlace) {
    let now = 100 * DAY_US;
    let at = |us: i64| Timestamp::from_microsecond(us).expect("in range");
    let query = StatsQuery {
        tenant: String::new(),
        rule_id: String::new(),
        category: String::new(),
        long_since: at(now - 30 * DAY_US),
        short_since: at(now - 7 * DAY_US),
    };
    let store = place.open().await;
    let is_sqlite = store.database.engine() == Engine::Sqlite;
    for undo in UNCOUNTED {
        let undo = if is_sqlite { undo.trim_end_matches(" ON incident") } else { undo };
        if is_sqlite && (undo.contains("FUNCTION") || undo.contains("_alone")) {
            continue;
        }
        let mut write = store.database.write().await.expect("a transaction");
        write.run(Statement::new(undo)).await.expect(undo);
        write.commit().await.expect("committed");
    }
    let all = (0..40).map(|n| {
        let one = incident(n, ["a", "b"][n as usize % 2], now - i64::from(n) * DAY_US);
        kept(
            "",
            &if n.is_multiple_of(3) {
                landed(&one, VerdictKind::Warn, Duration::from_millis(7))
            } else {
                one
            },
        )
    });
    store.save(all.collect()).await.expect("kept");
    drop(store);
    let store = place.open().await;
    let counted = store.stats(query.clone()).await.expect("counted");
    assert_eq!(counted, counted_one_by_one(&store, &query).await);
    assert_eq!(counted.iter().map(|one| one.long.incidents).sum::<u64>(), 31);
}

async fn who_write_the_same_counts_at_once_do_not_wait_for_each_other_for_ever(place: TestPlace) {
    let stores = [place.open().await, place.open().await];
    let now = 100 * DAY_US;
    // One begins with what the other ends with.
    let batch = |writer: u32, round: u32| -> Vec<KeptIncident> {
        let mut all: Vec<KeptIncident> = (0..40)
            .map(|n| {
                let id = (writer * 30 + round) * 40 + n;
                kept("", &incident(id, ["a", "b", "c", "d"][n as usize % 4], now - i64::from(n % 3) * DAY_US))
            })
            .collect();
        if writer == 1 {
            all.reverse();
        }
        all
    };
    let write = |writer: u32| {
        let store = &stores[writer as usize];
        async move {
            for round in 0..30 {
                store.save(batch(writer, round)).await.expect("kept");
            }
        }
    };
    tokio::join!(write(0), write(1));
    let at = |us: i64| Timestamp::from_microsecond(us).expect("in range");
    let query = StatsQuery {
        tenant: String::new(),
        rule_id: String::new(),
        category: String::new(),
        long_since: at(0),
        short_since: at(now),
    };
    let counted = stores[0].stats(query).await.expect("counted");
    assert_eq!(counted.iter().map(|one| one.long.incidents).sum::<u64>(), 2 * 30 * 40);
}

async fn a_purge_deletes_what_is_older_and_nothing_else(place: TestPlace) {
    let store = place.open().await;
    let all: Vec<KeptIncident> = (0..2_500).map(|n| kept("", &incident(n, "a", i64::from(n)))).collect();
    store.save(all).await.expect("kept");
    let before = Timestamp::from_microsecond(2_400).expect("in range");
    assert_eq!(store.purge(before).await.expect("purged"), 2_400);
    let left = store.incidents(query(IncidentFilter::default())).await.expect("read");
    assert_eq!((left.total, &*left.incidents[0].id), (100, "id-2400"));
    assert_eq!(store.purge(before).await.expect("purged"), 0);
}
