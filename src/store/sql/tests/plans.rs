//! How lists are answered: by indexes, whatever is asked for, so that a page takes as long with a hundred thousand rows as
//! with ten.

use super::*;
use crate::decision::{BundleKind, Severity, SubmissionStatus, VerdictKind};
use crate::store::sql::Statement;
use crate::store::sql::database::Engine;
use crate::store::sql::incidents::{incident_count, incident_list, stats_statement};
use crate::store::sql::submission_selects::{Among, hits_statement};
use crate::store::sql::submissions::of_entity;
use crate::store::{
    ArchivedFilter, IncidentFilter, IncidentKey, IncidentQuery, KeyValue, Place, RuleCount, RuleCountStore,
    StatsQuery, SubmissionFilter, SubmissionKey, SubmissionQuery,
};

on_both!(
    every_page_of_submissions_is_read_from_an_index,
    what_few_have_is_found_by_its_index,
    every_page_of_incidents_is_read_from_an_index,
    counts_of_rules_add_up_and_are_forgotten,
);

/// What the engine would do for a statement, in its words.
async fn plan(store: &SqlStore, statement: &Statement) -> String {
    let database = &store.database;
    match database.engine() {
        Engine::Sqlite => {
            let rows = database.rows(statement.clone().after("EXPLAIN QUERY PLAN ")).await.expect("a plan");
            let details = rows.iter().map(|row| row.text("detail").expect("a detail"));
            details.collect::<Vec<_>>().join("\n")
        }
        Engine::Postgres => {
            let mut read = database.read().await.expect("a transaction");
            // The tables are all but empty, where reading them whole is best; what can be done without is asked for.
            read.run(Statement::new("SET LOCAL enable_seqscan = off")).await.expect("set");
            let rows = read.rows(statement.clone().after("EXPLAIN ")).await.expect("a plan");
            let lines = rows.iter().map(|row| row.text("QUERY PLAN").expect("a line"));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Refuses a plan that reads a whole table.
fn assert_indexed(engine: Engine, about: &str, plan: &str) {
    for line in plan.lines() {
        let is_whole = match engine {
            // A constant row, a list made of an index and the rows that a count is over are no tables.
            Engine::Sqlite => {
                line.starts_with("SCAN ")
                    && !line.contains("USING")
                    && !line.contains("CONSTANT ROW")
                    && line != "SCAN found"
            }
            Engine::Postgres => line.contains("Seq Scan"),
        };
        assert!(!is_whole, "{about} reads a whole table:\n{plan}");
    }
}

/// Refuses a plan that sorts more than what an index brought in order but for equal ones.
fn assert_in_order(about: &str, plan: &str) {
    assert!(
        !plan.lines().any(|line| line.contains("USE TEMP B-TREE FOR ORDER BY")),
        "{about} sorts everything:\n{plan}"
    );
}

async fn every_page_of_submissions_is_read_from_an_index(place: TestPlace) {
    let store = place.open().await;
    let engine = store.database.engine();
    let base = SubmissionFilter::default;
    let filters = [
        ("all", base()),
        ("a verdict", SubmissionFilter { statuses: vec![SubmissionStatus::BlockedInline], ..base() }),
        ("a kind", SubmissionFilter { kinds: vec![BundleKind::Skill], ..base() }),
        ("archived ones", SubmissionFilter { archived: ArchivedFilter::Only, ..base() }),
        ("all and archived ones", SubmissionFilter { archived: ArchivedFilter::Include, ..base() }),
        ("a submitter", SubmissionFilter { submitter: "ada".into(), ..base() }),
        ("one's own", SubmissionFilter { viewer: Some("ada".into()), ..base() }),
        ("a text", SubmissionFilter { text: "one of many".into(), ..base() }),
    ];
    for (about, filter) in filters {
        for (name, key) in SubmissionKey::ALL {
            for is_descending in [false, true] {
                let query = SubmissionQuery {
                    tenant: "alpha".into(),
                    filter: filter.clone(),
                    key,
                    is_descending,
                    after: None,
                    limit: 25,
                    count_max: None,
                };
                let about = format!("{about} by {name}");
                let bounded = SubmissionQuery { count_max: Some(1_000), ..query.clone() };
                for query in [&query, &bounded] {
                    let counting = store.submission_count(query);
                    assert_indexed(engine, &about, &plan(&store, &counting).await);
                }
                let few = ["one".to_owned(), "two".to_owned()];
                let listing = store.submission_list(&query, Some(&few), None);
                assert_indexed(engine, &about, &plan(&store, &listing).await);
                let at = match key {
                    SubmissionKey::CreateTime | SubmissionKey::UpdateTime | SubmissionKey::FileSize => {
                        KeyValue::Number(7)
                    }
                    _ => KeyValue::Text("m".into()),
                };
                let place = Place { value: at, id: "m".into() };
                let later = SubmissionQuery { after: Some(place.clone()), ..query.clone() };
                for (query, until) in [(&query, None), (&query, Some(&place)), (&later, Some(&place))] {
                    let told = plan(&store, &store.submission_list(query, None, until)).await;
                    assert_indexed(engine, &about, &told);
                    assert_in_order(&about, &told);
                    // Where those of one verdict stand in the order of the list, no others are walked through.
                    if filter.statuses.len() == 1 && engine == Engine::Sqlite {
                        assert!(told.contains("tenant=? AND status=?"), "{about}: {told}");
                    }
                }
                let told = plan(&store, &store.walk_end_statement(&later, 100)).await;
                assert_indexed(engine, &about, &told);
                assert_in_order(&about, &told);
                if engine == Engine::Sqlite {
                    assert!(told.contains("COVERING INDEX"), "{about}: {told}");
                }
                let is_text = !filter.text.is_empty();
                let mut among = vec![Among::All];
                if is_text && engine == Engine::Sqlite {
                    among.push(Among::Hits);
                }
                for among in among {
                    let about = format!("{about}, {among:?}");
                    let passing = plan(&store, &store.passing_statement(&query, among, 1_000)).await;
                    assert_listed_alone(engine, &about, is_text, &passing);
                    // What was looked at first is never looked at again, so it comes by its numbers.
                    assert!(!passing.contains("TEMP B-TREE"), "{about}: {passing}");
                    for statement in [
                        store.far_statement(&later, among, None, None),
                        store.far_statement(&later, among, Some(&place), Some(7)),
                    ] {
                        let told = plan(&store, &statement).await;
                        assert_listed_alone(engine, &about, is_text, &told);
                    }
                }
                if !is_text {
                    let counted = store.passing_statement(&query, Among::Counted, 1_000);
                    assert_indexed(engine, &about, &plan(&store, &counted).await);
                }
            }
        }
    }
}

/// Refuses a plan that reads rows of submissions, where all that is looked at stands apart from them.
fn assert_listed_alone(engine: Engine, about: &str, is_text: bool, plan: &str) {
    match engine {
        Engine::Sqlite => {
            assert!(plan.contains("SEARCH s USING PRIMARY KEY (tenant=?"), "{about}: {plan}");
            let is_by_number = plan.contains("SEARCH t USING INTEGER PRIMARY KEY (rowid=?)")
                || plan.contains("SEARCH s USING PRIMARY KEY (tenant=? AND number=?)");
            assert!(!is_text || is_by_number, "{about}: {plan}");
            const READ: [&str; 3] = [
                "SEARCH s USING PRIMARY KEY (tenant=?",
                "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)",
                "SCAN h VIRTUAL TABLE INDEX",
            ];
            let reads = plan.lines().filter(|line| line.starts_with("SCAN ") || line.starts_with("SEARCH "));
            for line in reads {
                assert!(READ.iter().any(|known| line.starts_with(known)), "{about}: {plan}");
            }
        }
        Engine::Postgres => {
            assert!(plan.contains("submission_text") && !plan.contains("on submission "), "{about}: {plan}");
        }
    }
}

/// The submissions of an entity, and those of a hash: whatever else is asked for, no others are looked at.
async fn what_few_have_is_found_by_its_index(place: TestPlace) {
    let store = place.open().await;
    let engine = store.database.engine();
    let told = plan(&store, &of_entity("alpha", "e")).await;
    assert!(told.contains("submission_by_entity"), "{told}");
    let base = SubmissionFilter::default;
    let keys = [
        ("entity", SubmissionFilter { entity_id: "e".into(), ..base() }),
        ("hash", SubmissionFilter { bundle_sha256: "ab".into(), ..base() }),
    ];
    for (name, key) in keys {
        let others = [
            key.clone(),
            SubmissionFilter { statuses: vec![SubmissionStatus::Approved], ..key.clone() },
            SubmissionFilter { kinds: vec![BundleKind::Skill], ..key.clone() },
            SubmissionFilter { archived: ArchivedFilter::Include, ..key.clone() },
            SubmissionFilter { submitter: "ada".into(), ..key.clone() },
            SubmissionFilter { viewer: Some("ada".into()), ..key.clone() },
            SubmissionFilter { start: Some(jiff::Timestamp::UNIX_EPOCH), ..key.clone() },
            SubmissionFilter { text: "one of many".into(), ..key },
        ];
        for filter in others {
            let query = SubmissionQuery {
                tenant: "alpha".into(),
                filter,
                key: SubmissionKey::Name,
                is_descending: false,
                after: None,
                limit: 25,
                count_max: Some(1_000),
            };
            for statement in [
                store.submission_count(&query),
                store.passing_statement(&query, Among::Counted, 1_000),
                store.passing_statement(&query, Among::All, 1_000),
                store.far_statement(&query, Among::All, None, None),
            ] {
                let told = plan(&store, &statement).await;
                // PostgreSQL knows how many have what, once they are many.
                if engine == Engine::Sqlite {
                    assert!(told.contains(&format!("submission_by_{name} ")), "{:?}: {told}", query.filter);
                } else {
                    assert_indexed(engine, name, &told);
                }
            }
        }
    }
}

/// One cache of pages for all connections has them push each other's pages out: see `.cargo/config.toml`.
#[tokio::test]
async fn each_connection_of_sqlite_has_a_cache_of_its_own() {
    let place = TestPlace::sqlite();
    let store = place.open().await;
    let rows = store.database.rows(Statement::new("PRAGMA compile_options")).await.expect("options");
    let options: Vec<_> = rows.iter().map(|row| row.text("compile_options").expect("a name")).collect();
    assert!(options.iter().any(|option| option == "ENABLE_FTS5"), "{options:?}");
    assert!(!options.iter().any(|option| option == "ENABLE_MEMORY_MANAGEMENT"), "{options:?}");
}

/// Whether few have a text is asked of the index of groups of characters alone.
#[tokio::test]
async fn hits_of_a_text_are_counted_in_its_index() {
    let place = TestPlace::sqlite();
    let store = place.open().await;
    let told = plan(&store, &hits_statement("one of many", 1_000)).await;
    assert_eq!(told.lines().filter(|line| line.contains("SCAN")).count(), 2, "{told}");
    assert!(told.contains("SCAN submission_trigram VIRTUAL TABLE INDEX"), "{told}");
}

async fn every_page_of_incidents_is_read_from_an_index(place: TestPlace) {
    let store = place.open().await;
    let base = IncidentFilter::default;
    let filters = [
        ("all", base()),
        ("a verdict", IncidentFilter { verdict: Some(VerdictKind::Kill), ..base() }),
        ("a severity", IncidentFilter { severity_min: Some(Severity::High), ..base() }),
        ("false positives", IncidentFilter { false_positive: Some(true), ..base() }),
        ("a rule", IncidentFilter { rule_id: "r".into(), ..base() }),
        ("a session", IncidentFilter { session_id: "s".into(), ..base() }),
        ("a rule in a session", IncidentFilter { session_id: "s".into(), rule_id: "r".into(), ..base() }),
    ];
    let engine = store.database.engine();
    for (about, filter) in filters {
        for is_descending in [false, true] {
            let query = IncidentQuery {
                tenant: "alpha".into(),
                filter: filter.clone(),
                key: IncidentKey::Time,
                is_descending,
                after: None,
                limit: 25,
                count_max: None,
            };
            assert_indexed(engine, about, &plan(&store, &incident_count(&query)).await);
            let bounded = IncidentQuery { count_max: Some(1_000), ..query.clone() };
            assert_indexed(engine, about, &plan(&store, &incident_count(&bounded)).await);
            for total in [1, 1_000_000] {
                let told = plan(&store, &incident_list(&query, total)).await;
                assert_indexed(engine, about, &told);
                if engine == Engine::Sqlite && !query.filter.session_id.is_empty() {
                    assert!(told.contains("tenant=? AND session_id=?"), "{about}: {told}");
                }
                // Few are sorted.
                if total > 1 {
                    assert_in_order(about, &told);
                }
            }
        }
    }
    let now = jiff::Timestamp::now();
    let stats = StatsQuery {
        tenant: "alpha".into(),
        rule_id: String::new(),
        category: String::new(),
        long_since: now,
        short_since: now,
    };
    let of_all = plan(&store, &stats_statement(&stats)).await;
    let of_rule = plan(&store, &stats_statement(&StatsQuery { rule_id: "a".into(), ..stats })).await;
    for told in [of_all, of_rule] {
        let whole = ["SCAN counted", "Subquery Scan"];
        let told: Vec<_> = told.lines().filter(|line| !whole.contains(line)).collect();
        assert_indexed(engine, "rates", &told.join("\n"));
        assert!(told.iter().any(|line| line.contains("incident_day")), "{told:?}");
    }
}

async fn counts_of_rules_add_up_and_are_forgotten(place: TestPlace) {
    use crate::store::DayCount;
    let store = place.open().await;
    let one = |tenant: &str, rule: &str, day, findings, would_block| DayCount {
        tenant: tenant.into(),
        rule_id: rule.into(),
        day,
        count: RuleCount { findings, would_block },
    };
    let first =
        vec![one("", "a", 10, 2, 1), one("", "a", 11, 3, 0), one("", "b", 11, 1, 1), one("t", "a", 11, 7, 7)];
    store.add_rule_counts(first).await.expect("written");
    store.add_rule_counts(vec![one("", "a", 11, 4, 2)]).await.expect("written");
    let sums = |tenant: &'static str, day| {
        let store = &store;
        async move {
            let mut sums = store.rule_counts(tenant.into(), day).await.expect("read");
            sums.sort_by(|a, b| a.0.cmp(&b.0));
            sums.into_iter()
                .map(|(rule, count)| (rule, count.findings, count.would_block))
                .collect::<Vec<_>>()
        }
    };
    assert_eq!(sums("", 11).await, [("a".to_owned(), 7, 2), ("b".to_owned(), 1, 1)]);
    assert_eq!(sums("", 10).await, [("a".to_owned(), 9, 3), ("b".to_owned(), 1, 1)]);
    assert_eq!(sums("t", 0).await, [("a".to_owned(), 7, 7)]);
    store.forget_rule_counts(11).await.expect("forgotten");
    assert_eq!(sums("", 0).await, [("a".to_owned(), 7, 2), ("b".to_owned(), 1, 1)]);
}
