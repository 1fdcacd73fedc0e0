//! Lists of submissions and entities: filters, searches, orders and pages.

use super::*;
use crate::store::sql::Statement;
use crate::store::sql::database::Engine;
use crate::store::sql::rows::{ENTITY, SUBMISSION, folded};
use crate::store::sql::submission_lists::Reach;
use crate::store::{
    ArchivedFilter, EntityFilter, EntityKey, EntityQuery, KeyValue, ListedEntity, ListedSubmission, Place,
    SEARCHED_MAX, SubmissionFilter, SubmissionKey, SubmissionQuery,
};

on_both!(
    each_filter_passes_the_submissions_it_says,
    a_search_takes_every_character_as_it_is_and_no_letter_case,
    a_search_finds_the_same_among_few_and_among_many,
    hits_of_a_text_that_many_have_are_counted_to_a_limit,
    a_page_is_the_same_whichever_way_it_is_found,
    a_page_is_what_comparing_one_by_one_finds,
    who_is_archived_stands_beside_each_submission,
    what_is_listed_is_what_the_rows_say,
    a_submission_is_found_by_its_new_name_only,
    a_submission_is_listed_with_its_entity_as_it_stands,
    pages_of_submissions_join_to_the_list_in_every_order,
    each_filter_passes_the_entities_it_says,
    pages_of_entities_join_to_the_list_in_every_order,
);

/// How far each way goes: so that each is gone, and each ends early.
const REACHES: [Reach; 5] = [
    Reach { few: 0, walk: 1, hits: 0 },
    Reach { few: 0, walk: 1, hits: 100 },
    Reach { few: 2, walk: 3, hits: 4 },
    Reach { few: 5, walk: 12, hits: 8 },
    Reach { few: 9, walk: 5, hits: 100 },
];

fn query(filter: SubmissionFilter) -> SubmissionQuery {
    SubmissionQuery {
        tenant: String::new(),
        filter,
        key: SubmissionKey::Name,
        is_descending: false,
        after: None,
        limit: 1_000,
        count_max: None,
    }
}

fn entity_query(filter: EntityFilter) -> EntityQuery {
    EntityQuery {
        tenant: String::new(),
        filter,
        key: EntityKey::Name,
        is_descending: false,
        after: None,
        limit: 1_000,
    }
}

fn ids(listed: &[ListedSubmission]) -> Vec<&str> {
    listed.iter().map(|one| one.submission.id.as_str()).collect()
}

fn entity_ids(listed: &[ListedEntity]) -> Vec<&str> {
    listed.iter().map(|one| one.entity.id.as_str()).collect()
}

async fn each_filter_passes_the_submissions_it_says(place: TestPlace) {
    use SubmissionStatus::{Approved, BlockedInline, Deleted, PendingLlm};
    let store = place.open().await;
    let base = SubmissionFilter::default;
    for one in [
        submission("s1", Approved),
        StoredSubmission { kind: BundleKind::Plugin, created: at(10), ..submission("s2", PendingLlm) },
        StoredSubmission { submitter: "bob".into(), created: at(20), ..submission("s3", BlockedInline) },
        StoredSubmission { bundle_sha256: "cd".repeat(32), ..submission("s4", Approved) },
        StoredSubmission { created: at(-5), ..submission("s5", Deleted) },
        StoredSubmission { tenant: "acme".into(), ..submission("s6", Approved) },
    ] {
        accept(&store, one).await;
    }
    publish(&store, "s4", Visibility::Archived).await;
    let archived = |archived| SubmissionFilter { archived, ..base() };
    let statuses = |statuses: &[SubmissionStatus]| SubmissionFilter { statuses: statuses.to_vec(), ..base() };
    let viewer = |name: &str| SubmissionFilter { viewer: Some(name.to_owned()), ..base() };
    for (filter, wanted) in [
        (base(), vec!["s1", "s2", "s3"]),
        (statuses(&[Approved, PendingLlm]), vec!["s1", "s2"]),
        (statuses(&[Deleted]), vec!["s5"]),
        (SubmissionFilter { kinds: vec![BundleKind::Plugin, BundleKind::Agent], ..base() }, vec!["s2"]),
        (SubmissionFilter { submitter: "bob".into(), ..base() }, vec!["s3"]),
        (viewer("bob"), vec!["s3"]),
        (SubmissionFilter { submitter: "bob".into(), ..viewer("ada") }, vec![]),
        (viewer(""), vec![]),
        (archived(ArchivedFilter::Only), vec!["s4"]),
        (archived(ArchivedFilter::Include), vec!["s1", "s2", "s3", "s4"]),
        (SubmissionFilter { entity_id: "e-s2".into(), ..base() }, vec!["s2"]),
        (
            SubmissionFilter { bundle_sha256: "CD".repeat(32), ..archived(ArchivedFilter::Include) },
            vec!["s4"],
        ),
        (SubmissionFilter { start: Some(at(10)), ..base() }, vec!["s2", "s3"]),
        (SubmissionFilter { end: Some(at(10)), ..base() }, vec!["s1"]),
        (SubmissionFilter { start: Some(at(10)), end: Some(at(20)), ..base() }, vec!["s2"]),
        (SubmissionFilter { submitter: "' OR 1=1 --".into(), ..base() }, vec![]),
    ] {
        let page = store.submissions(query(filter.clone())).await.expect("read");
        assert_eq!(ids(&page.submissions), wanted, "{filter:?}");
        assert_eq!(page.total, wanted.len() as u64, "{filter:?}");
        assert_eq!(page.next, None);
        for most in [0, 1, 2, 100] {
            let bounded = SubmissionQuery { count_max: Some(most), ..query(filter.clone()) };
            let page = store.submissions(bounded).await.expect("read");
            assert_eq!(ids(&page.submissions), wanted, "{filter:?}");
            assert_eq!(page.total, (wanted.len() as u64).min(most + 1), "{filter:?}, counted to {most}");
        }
    }
}

async fn a_search_takes_every_character_as_it_is_and_no_letter_case(place: TestPlace) {
    let store = place.open().await;
    for (id, name, description) in [
        ("s1", "percent", "grows 100% a year"),
        ("s2", "percents", "grows 1000 a year"),
        ("s3", "snake_case", "back\\slash"),
        ("s4", "snakeXcase", "it's \"quoted\""),
        ("s5", "Straße", "ΟΔΟΣ в Москве"),
        ("s6", "Ärger", "İstanbul ﬁle"),
        ("s7", "glob", "[a-z]* as in a*b?"),
    ] {
        let one = submission(id, SubmissionStatus::Approved);
        let one = StoredSubmission { name: name.into(), description: description.into(), ..one };
        accept(&store, StoredSubmission { version_text: "2.0-Beta".into(), submitter: "Zoë".into(), ..one })
            .await;
        publish(&store, id, Visibility::Approved).await;
    }
    let all = ["s1", "s2", "s3", "s4", "s5", "s6", "s7"];
    for (text, wanted) in [
        ("100%", vec!["s1"]),
        ("%", vec!["s1"]),
        ("_", vec!["s3"]),
        ("E_C", vec!["s3"]),
        ("\\", vec!["s3"]),
        ("k\\s", vec!["s3"]),
        ("IT'S \"Q", vec!["s4"]),
        ("strasse", vec!["s5"]),
        ("STRAßE", vec!["s5"]),
        ("οδος", vec!["s5"]),
        ("οδοσ", vec!["s5"]),
        ("МОСК", vec!["s5"]),
        ("ärger", vec!["s6"]),
        ("A\u{308}RG", vec!["s6"]),
        ("FILE", vec!["s6"]),
        ("percent grows", vec![]),
        ("*", vec!["s7"]),
        ("?", vec!["s7"]),
        ("[", vec!["s7"]),
        ("[A-Z]*", vec!["s7"]),
        ("a*b", vec!["s7"]),
        ("per*nt", vec![]),
        ("[p]ercent", vec![]),
        ("p?rcent", vec![]),
        ("S4", vec!["s4"]),
        ("BETA", all.to_vec()),
        ("ZOË", all.to_vec()),
        ("'; DROP TABLE submission; --", vec![]),
    ] {
        let filter = SubmissionFilter { text: text.to_owned(), ..SubmissionFilter::default() };
        let query = SubmissionQuery { key: SubmissionKey::CreateTime, ..query(filter) };
        let page = store.submissions(query).await.expect("read");
        assert_eq!(ids(&page.submissions), wanted, "{text}");
        let filter = EntityFilter { text: text.to_owned(), ..EntityFilter::default() };
        let query = EntityQuery { key: EntityKey::CreateTime, ..entity_query(filter) };
        let page = store.entities(query).await.expect("read");
        // Of entities only the name and the description are searched.
        let wanted: Vec<String> = if ["S4", "BETA", "ZOË"].contains(&text) {
            Vec::new()
        } else {
            wanted.iter().map(|id| format!("e-{id}")).collect()
        };
        assert_eq!(entity_ids(&page.entities), wanted, "{text}");
    }
}

/// Adds copies of a submission and its entity, with ids of their own that begin with `prefix`.
async fn add_copies(store: &SqlStore, id: &str, prefix: &str, count: i64) {
    let numbers = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)";
    for (table, columns, of) in [
        ("entity", format!("{ENTITY}, folded"), format!("e-{id}")),
        ("submission", format!("{SUBMISSION}, folded, description_folded"), id.to_owned()),
    ] {
        let values: Vec<String> = columns
            .split(", ")
            .map(|column| match (table, column) {
                ("entity", "id") | (_, "entity_id") => format!("'e-{prefix}' || n"),
                (_, "id" | "live_submission_id" | "latest_submission_id") => format!("'{prefix}' || n"),
                _ => format!("m.{column}"),
            })
            .collect();
        let copy = format!(
            "{numbers} INSERT INTO {table} ({columns}) SELECT {} FROM {table} m CROSS JOIN numbers WHERE m.id = ?",
            values.join(", ")
        );
        store.database.write_one(Statement::new(copy).bind(count).bind(&of)).await.expect("copied");
    }
}

async fn a_search_finds_the_same_among_few_and_among_many(place: TestPlace) {
    let store = place.open().await;
    for id in ["s1", "s2", "s3"] {
        let one = submission(id, SubmissionStatus::Approved);
        accept(&store, StoredSubmission { name: format!("brown fox {id}"), ..one }).await;
    }
    accept(
        &store,
        StoredSubmission { tenant: "acme".into(), ..submission("s4", SubmissionStatus::Approved) },
    )
    .await;
    publish(&store, "s1", Visibility::Approved).await;
    publish(&store, "s2", Visibility::Archived).await;
    let search = |text: &str, archived| {
        let filter = SubmissionFilter { text: text.to_owned(), archived, ..SubmissionFilter::default() };
        let store = &store;
        async move {
            let page =
                store.submissions(SubmissionQuery { limit: 3_000, ..query(filter) }).await.expect("read");
            assert_eq!(page.total, (page.submissions.len() as u64).min(SEARCHED_MAX + 1));
            let mut found: Vec<String> = ids(&page.submissions).into_iter().map(str::to_owned).collect();
            found.sort_unstable();
            found
        }
    };
    use ArchivedFilter::{Exclude, Include, Only};
    let (mut of_live, mut of_gone) = (2, 1);
    for (live, archived) in [(0, 0), (1_100, 0), (0, 1_100)] {
        if live > 0 {
            add_copies(&store, "s1", "live-", live).await;
            of_live += 1_100;
        }
        if archived > 0 {
            add_copies(&store, "s2", "gone-", archived).await;
            of_gone += 1_100;
        }
        for text in ["ox", "fox", "brown fox"] {
            assert_eq!(search(text, Exclude).await.len(), of_live, "{text}");
            assert_eq!(search(text, Only).await.len(), of_gone, "{text}");
            assert_eq!(search(text, Include).await.len(), of_live + of_gone, "{text}");
        }
        assert_eq!(search("fox s3", Exclude).await, ["s3"]);
        assert_eq!(search("fox s2", Only).await.len(), of_gone);
    }
}

/// Whatever else is asked for: to where hits are counted, and that no page is lost behind it.
async fn hits_of_a_text_that_many_have_are_counted_to_a_limit(place: TestPlace) {
    let store = place.open().await;
    for n in 0..SEARCHED_MAX + 20 {
        let status = if n < 7 { SubmissionStatus::BlockedInline } else { SubmissionStatus::PendingLlm };
        let id = format!("s{n:04}");
        let one = StoredSubmission { name: format!("quail {n}"), ..submission(&id, status) };
        accept(&store, one).await;
    }
    let asked = |text: &str, statuses: &[SubmissionStatus]| SubmissionFilter {
        text: text.to_owned(),
        statuses: statuses.to_vec(),
        ..SubmissionFilter::default()
    };
    let all = SubmissionQuery { limit: 600, ..query(asked("quail", &[])) };
    let first = store.submissions(all.clone()).await.expect("read");
    assert_eq!((first.submissions.len(), first.total), (600, SEARCHED_MAX + 1));
    let second = store.submissions(SubmissionQuery { after: first.next, ..all }).await.expect("read");
    assert_eq!((second.submissions.len() as u64, second.next), (SEARCHED_MAX + 20 - 600, None));
    for (statuses, found) in [(SubmissionStatus::BlockedInline, 7), (SubmissionStatus::Approved, 0)] {
        for is_descending in [false, true] {
            let query = SubmissionQuery { is_descending, ..query(asked("quail", &[statuses])) };
            let page = store.submissions(query).await.expect("read");
            assert_eq!((page.total, page.submissions.len() as u64), (found, found), "{statuses}");
        }
    }
}

async fn a_page_is_the_same_whichever_way_it_is_found(place: TestPlace) {
    use SubmissionStatus::{Approved, BlockedInline, Deleted, PendingLlm};
    let store = place.open().await;
    for n in 0..24_i64 {
        let status = [Approved, BlockedInline, PendingLlm, BlockedInline, Deleted, Approved][n as usize % 6];
        let id = format!("s{:02}", n * 7 % 24);
        let one = StoredSubmission {
            name: format!("{} {}", if n < 12 { "bad" } else { "fine" }, n % 5),
            submitter: ["ada", "bob", "eve"][n as usize / 8].into(),
            kind: if n % 4 == 3 { BundleKind::Plugin } else { BundleKind::Skill },
            created: at(n / 2),
            updated: at(100 - n),
            file_size: n as u64 % 3,
            tenant: if n % 11 == 10 { "acme".into() } else { String::new() },
            ..submission(&id, status)
        };
        let is_archived = status == Approved && one.tenant.is_empty() && n % 4 < 2;
        accept(&store, one).await;
        if is_archived {
            publish(&store, &id, Visibility::Archived).await;
        }
    }
    let base = SubmissionFilter::default;
    let text = |text: &str| SubmissionFilter { text: text.into(), ..base() };
    let mut filters = vec![
        base(),
        text("fine"),
        text("bad"),
        text("d"),
        text("nothing"),
        SubmissionFilter { kinds: vec![BundleKind::Plugin], ..base() },
        SubmissionFilter { submitter: "eve".into(), ..base() },
        SubmissionFilter { viewer: Some("bob".into()), ..text("fine") },
        SubmissionFilter { start: Some(at(3)), end: Some(at(9)), ..text("a") },
        SubmissionFilter { entity_id: "e-s07".into(), ..text("a") },
    ];
    for statuses in [vec![BlockedInline], vec![Approved, Deleted], vec![Deleted]] {
        filters
            .extend([base(), text("fine")].map(|one| SubmissionFilter { statuses: statuses.clone(), ..one }));
    }
    for filter in filters {
        for archived in [ArchivedFilter::Exclude, ArchivedFilter::Only, ArchivedFilter::Include] {
            let filter = SubmissionFilter { archived, ..filter.clone() };
            for (_, key) in SubmissionKey::ALL {
                for is_descending in [false, true] {
                    let whole = SubmissionQuery { key, is_descending, ..query(filter.clone()) };
                    let wanted = store.submissions(whole.clone()).await.expect("read");
                    for reach in REACHES {
                        let (mut found, mut after) = (Vec::new(), None);
                        loop {
                            let part = SubmissionQuery { limit: 4, after, ..whole.clone() };
                            let page = store.submissions_within(part, reach).await.expect("read");
                            let counted = match filter.text.is_empty() {
                                true => wanted.total,
                                false => page.total.max(wanted.total.min(reach.few as u64 + 1)),
                            };
                            assert_eq!(page.total, counted, "{filter:?}");
                            assert!(page.total <= wanted.total, "{filter:?}");
                            found.extend(page.submissions);
                            after = page.next;
                            if after.is_none() {
                                break;
                            }
                        }
                        assert_eq!(ids(&found), ids(&wanted.submissions), "{filter:?} {key:?} {reach:?}");
                    }
                }
            }
        }
    }
}

/// Whether a filter passes a submission, by the words of the filter.
fn passes(filter: &SubmissionFilter, one: &StoredSubmission, is_archived: bool) -> bool {
    let texts = [&one.id, &one.name, &one.version_text, &one.description, &one.submitter];
    one.tenant.is_empty()
        && filter.viewer.as_ref().is_none_or(|viewer| *viewer == one.submitter)
        && match filter.statuses.as_slice() {
            [] => one.status != SubmissionStatus::Deleted,
            statuses => statuses.contains(&one.status),
        }
        && (filter.kinds.is_empty() || filter.kinds.contains(&one.kind))
        && (filter.submitter.is_empty() || filter.submitter == one.submitter)
        && match filter.archived {
            ArchivedFilter::Exclude => !is_archived,
            ArchivedFilter::Only => is_archived,
            ArchivedFilter::Include => true,
        }
        && (filter.entity_id.is_empty() || filter.entity_id == one.entity_id)
        && texts.into_iter().any(|text| folded(text).contains(&folded(&filter.text)))
        && filter.start.is_none_or(|start| one.created >= start)
        && filter.end.is_none_or(|end| one.created < end)
}

fn key_of(one: &StoredSubmission, key: SubmissionKey) -> (i64, String) {
    match key {
        SubmissionKey::CreateTime => (one.created.as_microsecond(), String::new()),
        SubmissionKey::UpdateTime => (one.updated.as_microsecond(), String::new()),
        SubmissionKey::FileSize => (one.file_size as i64, String::new()),
        SubmissionKey::Name => (0, one.name.clone()),
        SubmissionKey::Submitter => (0, one.submitter.clone()),
        SubmissionKey::Kind => (0, one.kind.as_str().to_owned()),
        SubmissionKey::Status => (0, one.status.as_str().to_owned()),
    }
}

/// Questions of all sorts, each asked to the last page, against the same answered without a database.
async fn a_page_is_what_comparing_one_by_one_finds(place: TestPlace) {
    use SubmissionStatus::{Approved, BlockedInline, BlockedLlm, Deleted, PendingLlm};
    let store = place.open().await;
    let mut seed = 41_u64;
    // The numbers that follow each other by Knuth's multiplier: spread, and the same in every run.
    let mut pick = |count: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % count
    };
    let statuses = [Approved, Approved, BlockedInline, BlockedLlm, PendingLlm, Deleted];
    let names = ["bad", "fine", "Fine é", "Ärger 日本語", "日本", "e-4", "ｆｉｎｅ", "x"];
    let mut all = Vec::new();
    for n in 0..70_i64 {
        let id = format!("s{:02}", n * 37 % 70);
        let one = StoredSubmission {
            name: format!("{}-{}", names[pick(names.len())], pick(12)),
            description: ["of a part", "für Größen", "of \"each\" 100% part", ""][pick(4)].into(),
            submitter: ["ada", "bob", "Zoë"][pick(3)].into(),
            kind: BundleKind::ALL[pick(3)],
            created: at(pick(9) as i64),
            updated: at(20 + pick(9) as i64),
            file_size: pick(4) as u64,
            tenant: if n % 13 == 12 { "acme".into() } else { String::new() },
            ..submission(&id, statuses[pick(statuses.len())])
        };
        accept(&store, one.clone()).await;
        let is_archived = one.status == Approved && one.tenant.is_empty() && pick(2) == 0;
        if is_archived {
            publish(&store, &id, Visibility::Archived).await;
        }
        all.push((one, is_archived));
    }
    // Some change, and are found as they are now.
    for (one, _) in all.iter_mut().filter(|(one, _)| one.tenant.is_empty() && one.status == PendingLlm) {
        let before = get(&store, &one.id).await;
        let (expect, name) = (before.version, format!("{} anew", before.name));
        let changed = StoredSubmission { name, status: BlockedLlm, updated: at(40), ..before };
        assert!(store.apply(change(changed.clone(), expect)).await.expect("applied"));
        *one = changed;
    }
    let texts = [
        "",
        "fine",
        "FINE",
        "e",
        "é",
        "-1",
        "本",
        "日本",
        "日本語",
        "ärger",
        "größe",
        "of a part",
        "\" 100%",
        "4-",
        "ad",
        "zoë",
        "anew",
        "nothing",
        "s1",
    ];
    for asked in 0..500 {
        let base = SubmissionFilter { text: texts[pick(texts.len())].into(), ..SubmissionFilter::default() };
        let mut filter = match pick(8) {
            0 => SubmissionFilter { statuses: vec![Approved], ..base },
            1 => SubmissionFilter { statuses: vec![BlockedLlm, Deleted], ..base },
            2 => SubmissionFilter { kinds: vec![BundleKind::Plugin], ..base },
            3 => SubmissionFilter { submitter: "bob".into(), ..base },
            4 => SubmissionFilter { viewer: Some("Zoë".into()), ..base },
            5 => SubmissionFilter { start: Some(at(2)), end: Some(at(6)), ..base },
            6 => SubmissionFilter { entity_id: "e-s07".into(), ..base },
            _ => base,
        };
        filter.archived = [ArchivedFilter::Exclude, ArchivedFilter::Only, ArchivedFilter::Include][pick(3)];
        let (_, key) = SubmissionKey::ALL[pick(SubmissionKey::ALL.len())];
        let (is_descending, reach, limit) =
            (pick(2) == 0, REACHES[pick(REACHES.len())], [1, 4, 7, 200][pick(4)]);
        let about = format!("{asked}: {filter:?} {key:?} {is_descending} {reach:?} {limit}");
        let passing = all.iter().filter(|(one, is_archived)| passes(&filter, one, *is_archived));
        let mut wanted: Vec<_> = passing.map(|(one, _)| (key_of(one, key), one.id.clone())).collect();
        wanted.sort_unstable();
        if is_descending {
            wanted.reverse();
        }
        let wanted: Vec<String> = wanted.into_iter().map(|(_, id)| id).collect();
        let count_max = [None, Some(1), Some(4), Some(100)][pick(4)];
        let whole = SubmissionQuery { key, is_descending, limit, count_max, ..query(filter.clone()) };
        let (mut found, mut after, mut rest) = (Vec::new(), None, wanted.len());
        loop {
            let part = SubmissionQuery { after, ..whole.clone() };
            let page = store.submissions_within(part, reach).await.expect("read");
            let most = count_max.unwrap_or(u64::MAX).min(match filter.text.as_str() {
                "" => u64::MAX,
                _ => reach.few as u64,
            });
            let counted = (wanted.len() as u64).min(most.saturating_add(1));
            assert_eq!(page.total, counted, "{about} {count_max:?}");
            assert_eq!(page.submissions.len(), rest.min(limit), "{about}");
            rest -= page.submissions.len();
            found.extend(page.submissions.into_iter().map(|one| one.submission.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, wanted, "{about}");
    }
}

/// Whichever is written first, and whatever happens to the entity then.
async fn who_is_archived_stands_beside_each_submission(place: TestPlace) {
    let store = place.open().await;
    accept(&store, submission("s1", SubmissionStatus::Approved)).await;
    accept(&store, submission("s2", SubmissionStatus::Approved)).await;
    let run = |statement: &'static str| {
        let store = &store;
        async move { store.database.write_one(Statement::new(statement)).await.expect("written") }
    };
    let archived = || async {
        let select = "SELECT id FROM submission WHERE is_archived = 1 ORDER BY id";
        let rows = store.database.rows(Statement::new(select)).await.expect("read");
        rows.iter().map(|row| row.text("id").expect("an id")).collect::<Vec<_>>()
    };
    assert!(archived().await.is_empty());
    run("UPDATE entity SET visibility = 'archived' WHERE id = 'e-s1'").await;
    assert_eq!(archived().await, ["s1"]);
    // Another one of the same entity.
    add_copies(&store, "s2", "n", 1).await;
    run("UPDATE entity SET visibility = 'archived' WHERE id = 'e-n1'").await;
    assert_eq!(archived().await, ["n1", "s1"]);
    run("UPDATE entity SET visibility = 'hidden' WHERE id = 'e-s1'").await;
    assert_eq!(archived().await, ["n1"]);
    // A submission of an entity that is archived already, and an entity that comes later than its submission.
    add_copies(&store, "n1", "m", 1).await;
    assert_eq!(archived().await, ["m1", "n1"]);
    run("DELETE FROM entity WHERE id = 'e-m1'").await;
    assert_eq!(archived().await, ["n1"]);
    let columns = format!("{ENTITY}, folded");
    let copy = format!(
        "INSERT INTO entity ({columns}) SELECT {} FROM entity m WHERE id = 'e-n1'",
        columns.replacen("id", "'e-m1'", 1)
    );
    store.database.write_one(Statement::new(copy)).await.expect("written");
    assert_eq!(archived().await, ["m1", "n1"]);
}

/// Where all stands that lists are filtered and ordered by.
fn listed_in(store: &SqlStore) -> &'static str {
    match store.database.engine() {
        Engine::Sqlite => "submission_listed",
        Engine::Postgres => "submission_text",
    }
}

/// How many submissions are kept; each must be listed as its row says.
async fn count_listed(store: &SqlStore) -> i64 {
    let columns =
        "tenant, is_archived, status, kind, submitter, name, create_time_us, update_time_us, file_size";
    let same: Vec<String> = columns.split(", ").map(|column| format!("s.{column} = l.{column}")).collect();
    let listed = listed_in(store);
    let counts = format!(
        "SELECT (SELECT COUNT(*) FROM submission) AS rows_kept, (SELECT COUNT(*) FROM {listed}) AS listed, \
         (SELECT COUNT(*) FROM submission s JOIN {listed} l ON l.id = s.id WHERE {}) AS same",
        same.join(" AND ")
    );
    let row = store.database.row(Statement::new(counts)).await.expect("read").expect("a row");
    let number = |column| row.number(column).expect("a number");
    assert_eq!((number("listed"), number("same")), (number("rows_kept"), number("rows_kept")));
    number("rows_kept")
}

/// What lists are filtered and ordered by stands apart from the rows, and says the same after every change.
async fn what_is_listed_is_what_the_rows_say(place: TestPlace) {
    let store = place.open().await;
    let agree = || count_listed(&store);
    assert_eq!(agree().await, 0);
    accept(&store, submission("s1", SubmissionStatus::PendingLlm)).await;
    accept(
        &store,
        StoredSubmission { tenant: "acme".into(), ..submission("s2", SubmissionStatus::Approved) },
    )
    .await;
    assert_eq!(agree().await, 2);
    let before = get(&store, "s1").await;
    let expect = before.version;
    let changed = StoredSubmission {
        status: SubmissionStatus::Approved,
        name: "another".into(),
        submitter: "bob".into(),
        kind: BundleKind::Agent,
        updated: at(7),
        file_size: before.file_size + 1,
        ..before
    };
    assert!(store.apply(change(changed, expect)).await.expect("applied"));
    agree().await;
    publish(&store, "s1", Visibility::Archived).await;
    agree().await;
    // Of an entity that is archived already.
    add_copies(&store, "s1", "n", 3).await;
    assert_eq!(agree().await, 5);
    let archived = format!("SELECT COUNT(*) AS archived FROM {} WHERE is_archived = 1", listed_in(&store));
    let row = store.database.row(Statement::new(archived)).await.expect("read").expect("a row");
    assert_eq!(row.number("archived").expect("a number"), 4);
    publish(&store, "s1", Visibility::Hidden).await;
    agree().await;
    // What nobody changes by the service, but by hand.
    let by_hand = "UPDATE submission SET tenant = 'beta', create_time_us = 3 WHERE id = 's2'";
    store.database.write_one(Statement::new(by_hand)).await.expect("written");
    agree().await;
}

/// A text that is longer than any pattern may be is searched as well, and found nowhere.
#[tokio::test]
async fn a_search_for_a_very_long_text_finds_nothing() {
    let place = TestPlace::sqlite();
    let store = place.open().await;
    accept(&store, submission("s1", SubmissionStatus::Approved)).await;
    for text in ["s".repeat(9_000), "*".repeat(9_000), "s1".repeat(60_000)] {
        for entity_id in ["", "e-s1"] {
            let filter = SubmissionFilter {
                text: text.clone(),
                entity_id: entity_id.into(),
                ..SubmissionFilter::default()
            };
            let page = store.submissions(query(filter)).await.expect("read");
            assert_eq!((page.submissions.len(), page.total), (0, 0));
        }
    }
}

/// A file of the release before has its rows listed when it is opened.
#[tokio::test]
async fn what_was_kept_before_there_was_a_list_is_listed() {
    let place = TestPlace::sqlite();
    let store = place.open().await;
    for step_back in [
        "DROP TRIGGER submission_listed_begins",
        "DROP TRIGGER submission_listed_changes",
        "DROP TABLE submission_listed",
        "CREATE INDEX submission_searched ON submission (tenant, create_time_us, id)",
        "DELETE FROM _sqlx_migrations WHERE version = 10",
    ] {
        store.database.write_one(Statement::new(step_back)).await.expect("written");
    }
    accept(&store, submission("s1", SubmissionStatus::Approved)).await;
    publish(&store, "s1", Visibility::Archived).await;
    accept(
        &store,
        StoredSubmission { tenant: "acme".into(), ..submission("s2", SubmissionStatus::PendingLlm) },
    )
    .await;
    drop(store);
    let store = place.open().await;
    assert_eq!(count_listed(&store).await, 2);
    let filter =
        SubmissionFilter { text: "s1".into(), archived: ArchivedFilter::Only, ..SubmissionFilter::default() };
    let page = store.submissions(query(filter)).await.expect("read");
    assert_eq!(ids(&page.submissions), ["s1"]);
}

/// A database of the release before gets the index of classes when it is opened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_kept_before_there_were_classes_has_its_index() {
    let Some(place) = TestPlace::postgres().await else { return };
    let store = place.open().await;
    accept(&store, submission("s1", SubmissionStatus::Approved)).await;
    for step_back in
        ["DROP INDEX submission_text_by_class", "DELETE FROM _sqlx_migrations WHERE version = 11"]
    {
        store.database.write_one(Statement::new(step_back)).await.expect("written");
    }
    drop(store);
    let store = place.open().await;
    let indexes = "SELECT COUNT(*) AS indexes FROM pg_indexes WHERE indexname = 'submission_text_by_class'";
    let row = store.database.row(Statement::new(indexes)).await.expect("read").expect("a row");
    assert_eq!(row.number("indexes").expect("a number"), 1);
    let filter = SubmissionFilter { text: "s1".into(), ..SubmissionFilter::default() };
    let page = store.submissions(query(filter)).await.expect("read");
    assert_eq!(ids(&page.submissions), ["s1"]);
}

async fn a_submission_is_found_by_its_new_name_only(place: TestPlace) {
    let store = place.open().await;
    accept(
        &store,
        StoredSubmission { name: "unnamed".into(), ..submission("s1", SubmissionStatus::PendingLlm) },
    )
    .await;
    let before = get(&store, "s1").await;
    let expect = before.version;
    let renamed = change(StoredSubmission { name: "table-maker".into(), ..before }, expect);
    assert!(store.apply(renamed).await.expect("applied"));
    for (text, found) in [("unnamed", 0), ("un", 0), ("table-maker", 1), ("tab", 1), ("ta", 1)] {
        let filter = SubmissionFilter { text: text.to_owned(), ..SubmissionFilter::default() };
        let page = store.submissions(query(filter)).await.expect("read");
        assert_eq!(page.total, found, "{text}");
    }
}

async fn a_submission_is_listed_with_its_entity_as_it_stands(place: TestPlace) {
    let store = place.open().await;
    accept(&store, submission("s1", SubmissionStatus::Approved)).await;
    publish(&store, "s1", Visibility::Approved).await;
    accept(&store, submission("s2", SubmissionStatus::PendingLlm)).await;
    accept(&store, submission("s3", SubmissionStatus::BlockedLlm)).await;
    let delete = Some(EntityWrite::Delete { id: "e-s3".to_owned(), expect_version: 1 });
    assert!(store.apply(Change { entity: delete, ..Change::default() }).await.expect("applied"));
    let page = store.submissions(query(SubmissionFilter::default())).await.expect("read");
    let seen: Vec<_> = page.submissions.iter().map(|one| (one.visibility, one.is_live)).collect();
    assert_eq!(seen, [(Some(Visibility::Approved), true), (Some(Visibility::Pending), false), (None, false)]);
    let entities = store.entities(entity_query(EntityFilter::default())).await.expect("read").entities;
    assert_eq!(entity_ids(&entities), ["e-s1", "e-s2"]);
    let id_of = |one: &Option<StoredSubmission>| one.as_ref().map(|one| one.id.clone());
    assert_eq!(
        (id_of(&entities[0].live), id_of(&entities[0].latest)),
        (Some("s1".into()), Some("s1".into()))
    );
    assert_eq!((id_of(&entities[1].live), id_of(&entities[1].latest)), (None, Some("s2".into())));
}

/// Twenty-three rows with many equal values.
async fn fill(store: &SqlStore) {
    for n in 0..23_i64 {
        let status = SubmissionStatus::ALL[n as usize % 6];
        let one = StoredSubmission {
            kind: BundleKind::ALL[n as usize % 3],
            name: ["Beta", "alpha", "Ärger", "_x"][n as usize % 4].to_owned(),
            submitter: ["bob", "Ada", "eve"][n as usize % 3].to_owned(),
            created: at(n / 4),
            updated: at(n % 5),
            file_size: (n as u64 % 7) * 1_000,
            ..submission(&format!("s{n:02}"), status)
        };
        accept(store, one).await;
        if n % 2 == 0 {
            let visibility = if n % 4 == 0 { Visibility::Approved } else { Visibility::Hidden };
            publish(store, &format!("s{n:02}"), visibility).await;
        }
    }
}

/// Whether a list is in order, equal ones by id in the same direction.
fn is_sorted(keys: &[(KeyValue, String)], is_descending: bool) -> bool {
    keys.windows(2).all(|pair| {
        let [(a, a_id), (b, b_id)] = pair else { return false };
        let order = match (a, b) {
            (KeyValue::Number(a), KeyValue::Number(b)) => a.cmp(b),
            (KeyValue::Text(a), KeyValue::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            _ => return false,
        };
        let order = order.then(a_id.cmp(b_id));
        if is_descending { order.is_gt() } else { order.is_lt() }
    })
}

async fn pages_of_submissions_join_to_the_list_in_every_order(place: TestPlace) {
    let store = place.open().await;
    fill(&store).await;
    for (name, key) in SubmissionKey::ALL {
        for is_descending in [false, true] {
            let query = SubmissionQuery { key, is_descending, ..query(SubmissionFilter::default()) };
            let whole = store.submissions(query.clone()).await.expect("read").submissions;
            assert_eq!(whole.len(), 23);
            let mut joined = Vec::new();
            let mut places = Vec::new();
            let mut after = None;
            loop {
                let query = SubmissionQuery { after, limit: 4, ..query.clone() };
                let page = store.submissions(query).await.expect("read");
                assert_eq!(page.total, 23);
                joined.extend(page.submissions);
                after = page.next.clone();
                let Some(Place { value, id }) = page.next else { break };
                assert_eq!(joined.last().map(|last| &last.submission.id), Some(&id));
                places.push((value, id));
            }
            assert_eq!(joined, whole, "{name} {is_descending}");
            assert!(is_sorted(&places, is_descending), "{name} {is_descending} {places:?}");
        }
    }
}

async fn pages_of_entities_join_to_the_list_in_every_order(place: TestPlace) {
    let store = place.open().await;
    fill(&store).await;
    for (name, key) in EntityKey::ALL {
        for is_descending in [false, true] {
            let query = EntityQuery { key, is_descending, ..entity_query(EntityFilter::default()) };
            let whole = store.entities(query.clone()).await.expect("read").entities;
            assert_eq!(whole.len(), 23);
            let mut joined = Vec::new();
            let mut places = Vec::new();
            let mut after = None;
            loop {
                let page =
                    store.entities(EntityQuery { after, limit: 1, ..query.clone() }).await.expect("read");
                assert_eq!(page.total, 23);
                joined.extend(page.entities);
                after = page.next.clone();
                let Some(Place { value, id }) = page.next else { break };
                places.push((value, id));
            }
            assert_eq!(joined, whole, "{name} {is_descending}");
            assert!(is_sorted(&places, is_descending), "{name} {is_descending} {places:?}");
        }
    }
}

async fn each_filter_passes_the_entities_it_says(place: TestPlace) {
    let store = place.open().await;
    for (id, owner, visibility) in [
        ("s1", "ada", Some(Visibility::Approved)),
        ("s2", "ada", Some(Visibility::Hidden)),
        ("s3", "bob", Some(Visibility::Hidden)),
        ("s4", "bob", Some(Visibility::Archived)),
        ("s5", "ada", None),
    ] {
        let one = submission(id, SubmissionStatus::Approved);
        let kind = if id == "s5" { BundleKind::Agent } else { BundleKind::Skill };
        accept(&store, StoredSubmission { submitter: owner.to_owned(), kind, ..one }).await;
        if let Some(visibility) = visibility {
            publish(&store, id, visibility).await;
        }
    }
    accept(
        &store,
        StoredSubmission { tenant: "acme".into(), ..submission("s6", SubmissionStatus::Approved) },
    )
    .await;
    let base = EntityFilter::default;
    let viewer = |name: &str| EntityFilter { viewer: Some(name.to_owned()), ..base() };
    let visible = |of: EntityFilter, visibilities: &[Visibility]| EntityFilter {
        visibilities: visibilities.to_vec(),
        ..of
    };
    for (filter, wanted) in [
        (base(), vec!["s1", "s2", "s3", "s5"]),
        (viewer("ada"), vec!["s1", "s2", "s5"]),
        (viewer("bob"), vec!["s1", "s3"]),
        (viewer("eve"), vec!["s1"]),
        (visible(base(), &[Visibility::Archived]), vec!["s4"]),
        (visible(viewer("bob"), &[Visibility::Archived]), vec!["s4"]),
        (visible(viewer("ada"), &[Visibility::Archived, Visibility::Hidden]), vec!["s2"]),
        (EntityFilter { owner: "bob".into(), ..base() }, vec!["s3"]),
        (EntityFilter { owner: "bob".into(), ..viewer("ada") }, vec![]),
        (EntityFilter { kinds: vec![BundleKind::Agent], ..base() }, vec!["s5"]),
    ] {
        let page = store.entities(entity_query(filter.clone())).await.expect("read");
        let wanted: Vec<String> = wanted.iter().map(|id| format!("e-{id}")).collect();
        assert_eq!(entity_ids(&page.entities), wanted, "{filter:?}");
        assert_eq!(page.total, wanted.len() as u64, "{filter:?}");
    }
}
