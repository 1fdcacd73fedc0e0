//! Accepting submissions, and compare-and-swap changes of them.

use super::*;
use crate::store::sql::Statement;
use crate::store::{AcceptError, AttemptWrite, Lease, Override, Quota, StoreError, VerdictEntry, VerdictKey};

on_both!(
    every_field_comes_back_after_a_reopening,
    of_two_changes_of_one_version_one_is_made,
    a_lost_race_writes_nothing_at_all,
    an_attempt_that_has_ended_never_changes,
    a_new_version_needs_its_entity_as_it_was_read,
    the_last_places_of_a_quota_are_given_once,
    the_quota_counts_what_was_blocked_of_this_submitter_in_this_time,
    a_deleted_entity_leaves_tombstones,
    a_tenant_gets_nothing_of_another_one,
    the_database_keeps_its_rules,
    a_verdict_is_remembered_for_the_very_same_bytes_model_and_prompt,
    a_zero_character_harms_nobody,
    texts_that_no_index_takes_are_refused,
);

async fn every_field_comes_back_after_a_reopening(place: TestPlace) {
    let store = place.open().await;
    let mut one = submission("s1", SubmissionStatus::Overridden);
    one.tenant = "acme".to_owned();
    one.overridden = Some(Override {
        actor: "root".to_owned(),
        reason: "known good".to_owned(),
        prior_status: SubmissionStatus::BlockedLlm,
        time: at(5),
    });
    one.not_before = Some(at(9));
    one.purged = Some(at(10));
    one.file_size = u64::MAX >> 1;
    one.tries = 2;
    one.review_model = "m".to_owned();
    one.created = Timestamp::from_microsecond(1_700_000_000_123_456).expect("in range");
    let new = new(one.clone());
    store.accept(new.clone()).await.expect("accepted");
    drop(store);
    let again = place.open().await;
    let tenant = || "acme".to_owned();
    assert_eq!(again.submission(tenant(), "s1".into()).await.expect("read"), Some(one.clone()));
    assert_eq!(again.attempts(tenant(), vec!["s1".into()]).await.expect("read"), [new.attempt]);
    let AcceptedEntity::New(mut entity) = new.entity else { unreachable!("made so") };
    assert_eq!(again.entity(tenant(), "e-s1".into()).await.expect("read"), Some(entity.clone()));

    one.status = SubmissionStatus::PendingLlm;
    one.overridden = None;
    one.purged = None;
    one.lease = Some(Lease { owner: "w".to_owned(), until: at(77) });
    entity.visibility = Visibility::Archived;
    entity.archived = Some(at(6));
    entity.archived_by = "ada".to_owned();
    entity.live_submission_id = Some("s1".to_owned());
    let mut change = change(one.clone(), 1);
    change.entity = Some(EntityWrite::Update { entity: entity.clone(), expect_version: 1 });
    assert!(again.apply(change).await.expect("applied"));
    (one.version, entity.version) = (2, 2);
    assert_eq!(again.submission(tenant(), "s1".into()).await.expect("read"), Some(one.clone()));
    assert_eq!(again.submissions_of(tenant(), "e-s1".into()).await.expect("read"), [one]);
    assert_eq!(again.entity(tenant(), "e-s1".into()).await.expect("read"), Some(entity));
}

async fn of_two_changes_of_one_version_one_is_made(place: TestPlace) {
    let (store, other) = (place.open().await, place.open().await);
    for n in 0..10 {
        let id = format!("s{n}");
        accept(&store, submission(&id, SubmissionStatus::PendingLlm)).await;
        let approve = |status| StoredSubmission { status, ..submission(&id, status) };
        let (a, b) = tokio::join!(
            store.apply(change(approve(SubmissionStatus::Approved), 1)),
            other.apply(change(approve(SubmissionStatus::BlockedLlm), 1)),
        );
        let (a, b) = (a.expect("applied"), b.expect("applied"));
        assert!(a != b, "one of both");
        let status = if a { SubmissionStatus::Approved } else { SubmissionStatus::BlockedLlm };
        let now = get(&store, &id).await;
        assert_eq!((now.status, now.version), (status, 2));
    }
}

async fn a_lost_race_writes_nothing_at_all(place: TestPlace) {
    let store = place.open().await;
    let one = submission("s1", SubmissionStatus::PendingLlm);
    accept(&store, one.clone()).await;
    let before = (get(&store, "s1").await, get_entity(&store, "e-s1").await);
    let entity = StoredEntity { name: "other".to_owned(), ..before.1.clone() };
    let late = StoredSubmission { name: "other".to_owned(), ..one };
    for (expect_submission, expect_entity) in [(2, 1), (1, 2)] {
        let mut change = change(late.clone(), expect_submission);
        let expect_version = expect_entity;
        change.entity = Some(EntityWrite::Update { entity: entity.clone(), expect_version });
        change.events = vec![event("late", &late)];
        let second = StoredAttempt { number: 2, ..attempt(&late) };
        change.submissions[0].attempts = vec![AttemptWrite::Insert(second)];
        assert!(!store.apply(change).await.expect("answered"));
    }
    assert_eq!((get(&store, "s1").await, get_entity(&store, "e-s1").await), before);
    assert_eq!(store.attempts(String::new(), vec!["s1".into()]).await.expect("read").len(), 1);
}

async fn an_attempt_that_has_ended_never_changes(place: TestPlace) {
    let store = place.open().await;
    let one = submission("s1", SubmissionStatus::PendingLlm);
    accept(&store, one.clone()).await;
    let running = StoredAttempt { error: "so far".to_owned(), ..attempt(&one) };
    let ended = StoredAttempt { ended: Some(at(9)), status: SubmissionStatus::BlockedLlm, ..running.clone() };
    let second = StoredAttempt { number: 2, ..attempt(&one) };
    let missing = StoredAttempt { number: 7, ..attempt(&one) };
    let writes = [
        (AttemptWrite::Update(running.clone()), true),
        (AttemptWrite::Update(ended.clone()), true),
        (AttemptWrite::Update(running), false),
        (AttemptWrite::Update(ended.clone()), false),
        (AttemptWrite::Insert(ended.clone()), false),
        (AttemptWrite::Update(missing), false),
        (AttemptWrite::Insert(second.clone()), true),
    ];
    for (write, is_fine) in writes {
        let now = get(&store, "s1").await;
        let version = now.version;
        let mut change = change(now, version);
        change.submissions[0].attempts = vec![write.clone()];
        match store.apply(change).await {
            Ok(applied) => assert!(applied && is_fine, "{write:?}"),
            Err(error) => {
                assert!(!is_fine && matches!(error, StoreError::Refused { .. }), "{write:?} {error}");
                assert_eq!(get(&store, "s1").await.version, version, "nothing was written");
            }
        }
    }
    assert_eq!(store.attempts(String::new(), vec!["s1".into()]).await.expect("read"), [ended, second]);
}

async fn a_new_version_needs_its_entity_as_it_was_read(place: TestPlace) {
    let store = place.open().await;
    accept(&store, submission("s1", SubmissionStatus::Approved)).await;
    let next = |id: &str, entity_id: &str, expect_version| {
        let second = StoredSubmission {
            entity_id: entity_id.to_owned(),
            ..submission(id, SubmissionStatus::PendingLlm)
        };
        let existing =
            StoredEntity { id: entity_id.to_owned(), latest_submission_id: id.to_owned(), ..entity("s1") };
        NewSubmission { entity: AcceptedEntity::Existing { entity: existing, expect_version }, ..new(second) }
    };
    store.accept(next("s2", "e-s1", 1)).await.expect("accepted");
    let lost = store.accept(next("s3", "e-s1", 1)).await;
    assert!(matches!(lost, Err(AcceptError::LostRace)), "{lost:?}");
    let gone = store.accept(next("s4", "e-none", 1)).await;
    assert!(matches!(gone, Err(AcceptError::EntityGone)), "{gone:?}");
    let now = get_entity(&store, "e-s1").await;
    assert_eq!((now.version, now.latest_submission_id.as_str()), (2, "s2"));
    let all = store.submissions_of(String::new(), "e-s1".into()).await.expect("read");
    assert_eq!(all.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["s1", "s2"]);
    assert_eq!(store.submission(String::new(), "s3".into()).await.expect("read"), None);
}

async fn the_last_places_of_a_quota_are_given_once(place: TestPlace) {
    let stores = [place.open().await, place.open().await];
    let tries = (0..24).map(|n: usize| {
        let blocked = submission(&format!("s{n}"), SubmissionStatus::BlockedInline);
        let quota = Some(Quota { limit: 7, since: at(-100) });
        stores[n % 2].accept(NewSubmission { quota, ..new(blocked) })
    });
    let outcomes = futures_util::future::join_all(tries).await;
    let accepted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(accepted, 7);
    for outcome in outcomes {
        if let Err(error) = outcome {
            assert!(matches!(error, AcceptError::QuotaExceeded { found: 7, limit: 7 }), "{error}");
        }
    }
    let found = stores[0].blocked_since(String::new(), "ada".into(), at(-100)).await.expect("counted");
    assert_eq!(found, 7);
}

async fn the_quota_counts_what_was_blocked_of_this_submitter_in_this_time(place: TestPlace) {
    let store = place.open().await;
    for (n, status) in SubmissionStatus::ALL.iter().enumerate() {
        let mut one = submission(&format!("s{n}"), *status);
        if *status == SubmissionStatus::Overridden {
            let actor = "root".to_owned();
            let prior_status = SubmissionStatus::BlockedInline;
            one.overridden = Some(Override { actor, reason: "fine".into(), prior_status, time: at(0) });
        }
        accept(&store, one).await;
    }
    let blocked = SubmissionStatus::BlockedInline;
    let other = StoredSubmission { submitter: "bob".into(), ..submission("other", blocked) };
    let foreign = StoredSubmission { tenant: "acme".into(), ..submission("foreign", blocked) };
    let old = StoredSubmission { created: at(-50), ..submission("old", blocked) };
    let held = StoredSubmission {
        hold_reason: HoldReason::Coverage,
        ..submission("held", SubmissionStatus::PendingLlm)
    };
    for one in [other, foreign, old, held] {
        accept(&store, one).await;
    }
    // Of all states the three that are verdicts against it; what waits is none.
    for (submitter, since, wanted) in
        [("ada", at(0), 3), ("ada", at(-50), 4), ("ada", at(1), 0), ("bob", at(-50), 1), ("eve", at(-50), 0)]
    {
        let found = store.blocked_since(String::new(), submitter.into(), since).await.expect("counted");
        assert_eq!(found, wanted, "{submitter} {since}");
    }
}

async fn a_deleted_entity_leaves_tombstones(place: TestPlace) {
    let store = place.open().await;
    accept(&store, submission("s1", SubmissionStatus::Approved)).await;
    let second =
        StoredSubmission { entity_id: "e-s1".to_owned(), ..submission("s2", SubmissionStatus::BlockedLlm) };
    let latest = StoredEntity { latest_submission_id: "s2".to_owned(), ..entity("s1") };
    let existing = AcceptedEntity::Existing { entity: latest, expect_version: 1 };
    store.accept(NewSubmission { entity: existing, ..new(second) }).await.expect("accepted");
    let mut submissions = Vec::new();
    for submission in store.submissions_of(String::new(), "e-s1".into()).await.expect("read") {
        let expect_version = submission.version;
        let submission =
            StoredSubmission { status: SubmissionStatus::Deleted, purged: Some(at(9)), ..submission };
        submissions.push(SubmissionWrite { submission, expect_version, attempts: Vec::new() });
    }
    // In any order.
    submissions.reverse();
    let delete = |expect_version| Some(EntityWrite::Delete { id: "e-s1".to_owned(), expect_version });
    let change = Change { submissions, entity: delete(2), ..Change::default() };
    assert!(!store.apply(Change { entity: delete(1), ..change.clone() }).await.expect("answered"));
    assert!(store.apply(change.clone()).await.expect("applied"));
    assert_eq!(store.entity(String::new(), "e-s1".into()).await.expect("read"), None);
    let left = store.submissions_of(String::new(), "e-s1".into()).await.expect("read");
    assert!(left.len() == 2 && left.iter().all(|one| one.status == SubmissionStatus::Deleted));
    assert!(!store.apply(change).await.expect("answered"), "it is gone");
    let mut back = left[0].clone();
    back.status = SubmissionStatus::Approved;
    let refused = store.apply(super::change(back, 2)).await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
}

async fn a_tenant_gets_nothing_of_another_one(place: TestPlace) {
    let store = place.open().await;
    let one = StoredSubmission { tenant: "acme".to_owned(), ..submission("s1", SubmissionStatus::Approved) };
    accept(&store, one.clone()).await;
    for tenant in ["", "acm", "acme2", "%"] {
        let tenant = || tenant.to_owned();
        assert_eq!(store.submission(tenant(), "s1".into()).await.expect("read"), None);
        assert!(store.submissions_of(tenant(), "e-s1".into()).await.expect("read").is_empty());
        assert_eq!(store.entity(tenant(), "e-s1".into()).await.expect("read"), None);
        assert!(store.attempts(tenant(), vec!["s1".into()]).await.expect("read").is_empty());
        let foreign = Change { tenant: tenant(), ..change(one.clone(), 1) };
        assert!(!store.apply(foreign).await.expect("answered"), "not its row");
        let delete = Some(EntityWrite::Delete { id: "e-s1".to_owned(), expect_version: 1 });
        let foreign = Change { tenant: tenant(), entity: delete, ..Change::default() };
        assert!(!store.apply(foreign).await.expect("answered"), "not its row");
    }
    assert_eq!(store.submission("acme".into(), "s1".into()).await.expect("read"), Some(one));
}

async fn the_database_keeps_its_rules(place: TestPlace) {
    let store = place.open().await;
    accept(&store, submission("s1", SubmissionStatus::PendingLlm)).await;
    let lease = || Some(Lease { owner: "w".to_owned(), until: at(9) });
    let now = || submission("s1", SubmissionStatus::PendingLlm);
    for (what, broken) in [
        (
            "a lease on what waits for nobody",
            StoredSubmission { status: SubmissionStatus::Approved, lease: lease(), ..now() },
        ),
        (
            "a lease on what is held",
            StoredSubmission { hold_reason: HoldReason::NoKey, lease: lease(), ..now() },
        ),
        (
            "a hold of what does not wait",
            StoredSubmission {
                status: SubmissionStatus::Approved,
                hold_reason: HoldReason::Coverage,
                ..now()
            },
        ),
        ("an override by nobody", StoredSubmission { status: SubmissionStatus::Overridden, ..now() }),
    ] {
        let refused = store.apply(change(broken, 1)).await;
        assert!(matches!(refused, Err(StoreError::Refused { .. })), "{what}: {refused:?}");
    }
    let published = StoredEntity { visibility: Visibility::Approved, ..entity("s1") };
    let entity = Some(EntityWrite::Update { entity: published, expect_version: 1 });
    let refused = store.apply(Change { entity, ..Change::default() }).await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })), "published without bytes: {refused:?}");
    let twice = store.accept(new(now())).await;
    assert!(matches!(twice, Err(AcceptError::Store(StoreError::Refused { .. }))), "{twice:?}");
    for statement in [
        "DELETE FROM submission",
        "DELETE FROM attempt",
        "DELETE FROM audit_event",
        "UPDATE audit_event SET actor = 'eve'",
    ] {
        let mut write = store.database.write().await.expect("begun");
        let refused = write.run(Statement::new(statement)).await;
        assert!(matches!(refused, Err(StoreError::Refused { .. })), "{statement}: {refused:?}");
    }
}

async fn a_verdict_is_remembered_for_the_very_same_bytes_model_and_prompt(place: TestPlace) {
    let store = place.open().await;
    let key = |sha: &str, model: &str, prompt: &str| VerdictKey {
        bundle_sha256: sha.to_owned(),
        model: model.to_owned(),
        prompt_version: prompt.to_owned(),
    };
    let entry = VerdictEntry { key: key("aa", "m", "1"), review: review(), time: at(1) };
    let remember = |entry| Change { verdict: Some(entry), ..Change::default() };
    assert!(store.apply(remember(entry.clone())).await.expect("applied"));
    // The newest counts: what was found later must not be handed out as what was thought before.
    let later = LlmReview { risk_level: "high".to_owned(), ..review() };
    for (review, time) in [(later.clone(), at(2)), (review(), at(1))] {
        assert!(
            store.apply(remember(VerdictEntry { review, time, ..entry.clone() })).await.expect("applied")
        );
    }
    for (wanted, found) in [
        (key("aa", "m", "1"), Some(later)),
        (key("ab", "m", "1"), None),
        (key("aa", "n", "1"), None),
        (key("aa", "m", "2"), None),
    ] {
        assert_eq!(store.verdict(wanted.clone()).await.expect("read"), found, "{wanted:?}");
    }
}

async fn a_zero_character_harms_nobody(place: TestPlace) {
    let store = place.open().await;
    let mut one = submission("s1", SubmissionStatus::BlockedInline);
    one.description = "a\0b".to_owned();
    one.submitter = "a\0da".to_owned();
    let mut new = new(one);
    new.attempt.checks.static_security.findings[0].snippet = "x\0y".to_owned();
    new.events[0].reason = "r\0".to_owned();
    new.quota = Some(Quota { limit: 1, since: at(-1) });
    store.accept(new.clone()).await.expect("accepted");
    let kept = get(&store, "s1").await;
    assert_eq!((kept.description.as_str(), kept.submitter.as_str()), ("a\u{FFFD}b", "a\u{FFFD}da"));
    let attempts = store.attempts(String::new(), vec!["s1".into()]).await.expect("read");
    assert_eq!(attempts, [new.attempt], "JSON keeps it");
    let found = store.blocked_since(String::new(), "a\0da".into(), at(-1)).await.expect("counted");
    assert_eq!(found, 1);
}

/// Puts a text into a column.
type Set = fn(&mut NewSubmission, String);

/// What an index of one engine could not take is refused by both, before anything is written.
async fn texts_that_no_index_takes_are_refused(place: TestPlace) {
    let store = place.open().await;
    // Not to be compressed: an index of PostgreSQL would take a long run of one letter.
    let long = |bytes: usize| {
        let mut state = 1_u32;
        let letter = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'!' + (state >> 24) as u8 % 90)
        };
        std::iter::repeat_with(letter).take(bytes).collect::<String>()
    };
    let longest = long(850);
    let set: [(&str, Set); 5] = [
        ("submission.submitter", |new, text| new.submission.submitter = text),
        ("submission.bundle_sha256", |new, text| new.submission.bundle_sha256 = text),
        ("entity.name", |new, text| entity_of(new).name = text),
        ("entity.owner", |new, text| entity_of(new).owner = text),
        ("audit_event.resource", |new, text| new.events[0].resource = text),
    ];
    for (nth, (column, set)) in set.into_iter().enumerate() {
        let id = format!("s{nth}");
        let mut refused = new(submission(&id, SubmissionStatus::Approved));
        set(&mut refused, long(3_000));
        let error = store.accept(refused.clone()).await.expect_err("refused");
        let told = error.to_string();
        assert!(told.contains(&format!("`{column}` takes 850 bytes, and got 3000")), "{column}: {told}");
        let kept = store.submission(String::new(), id.clone()).await.expect("read");
        assert_eq!(kept, None, "{column}: nothing was written");
        // What it says it takes it takes, in every column at once.
        set(&mut refused, longest.clone());
        store.accept(refused).await.unwrap_or_else(|error| panic!("{column}: {error}"));
    }
}

fn entity_of(new: &mut NewSubmission) -> &mut StoredEntity {
    match &mut new.entity {
        AcceptedEntity::New(entity) | AcceptedEntity::Existing { entity, .. } => entity,
    }
}
