//! Leases, and what the regular jobs of the service ask for.

use std::collections::{HashMap, HashSet};

use super::*;
use crate::store::{Lease, StatusCount};

on_both!(
    no_two_claims_get_the_same_review,
    what_is_not_waiting_is_not_taken,
    a_lease_is_prolonged_by_its_owner_alone,
    whoever_lost_a_lease_cannot_write_any_more,
    what_nobody_will_take_any_more_is_found,
    blocked_bytes_are_purged_after_their_time_unless_they_are_live,
    bytes_are_kept_for_rows_that_have_them,
    a_regular_job_begins_once_in_its_time,
    counts_tell_what_waits_and_since_when,
);

async fn no_two_claims_get_the_same_review(place: TestPlace) {
    const REVIEWS: usize = 40;
    let stores = [place.open().await, place.open().await];
    for n in 0..REVIEWS {
        let waits = submission(&format!("s{n:02}"), SubmissionStatus::PendingLlm);
        accept(&stores[0], StoredSubmission { created: at(n as i64), ..waits }).await;
    }
    let workers = (0..8).map(|worker: usize| {
        let store = &stores[worker % 2];
        async move {
            let mut taken = Vec::new();
            let owner = || format!("w{worker}");
            while let Some(one) = store.claim(owner(), at(100), at(200), 3).await.expect("claimed") {
                assert_eq!(one.lease, Some(Lease { owner: owner(), until: at(200) }));
                assert_eq!((one.tries, one.version, one.updated), (1, 2, at(0)));
                taken.push(one.id);
            }
            taken
        }
    });
    let taken: Vec<String> = futures_util::future::join_all(workers).await.concat();
    assert_eq!(taken.len(), REVIEWS);
    assert_eq!(taken.iter().collect::<HashSet<_>>().len(), REVIEWS, "{taken:?}");
    assert_eq!(stores[0].claim("w".into(), at(199), at(300), 3).await.expect("claimed"), None);
    let oldest = stores[0].claim("w".into(), at(200), at(300), 3).await.expect("claimed").expect("ran out");
    assert_eq!((oldest.id.as_str(), oldest.tries, oldest.version), ("s00", 2, 3));
}

async fn what_is_not_waiting_is_not_taken(place: TestPlace) {
    let store = place.open().await;
    let pending = |id: &str| submission(id, SubmissionStatus::PendingLlm);
    let lease = |until| Some(Lease { owner: "other".to_owned(), until });
    for (one, tenant) in [
        (StoredSubmission { hold_reason: HoldReason::NoKey, ..pending("no-key") }, ""),
        (StoredSubmission { hold_reason: HoldReason::Coverage, ..pending("coverage") }, ""),
        (StoredSubmission { lease: lease(at(11)), ..pending("taken") }, ""),
        (StoredSubmission { not_before: Some(at(11)), ..pending("later") }, ""),
        (StoredSubmission { tries: 3, ..pending("tried") }, ""),
        (submission("approved", SubmissionStatus::Approved), ""),
        (submission("error", SubmissionStatus::ReviewError), ""),
        (submission("inline", SubmissionStatus::PendingInline), "acme"),
        (StoredSubmission { lease: lease(at(10)), not_before: Some(at(10)), ..pending("free") }, ""),
    ] {
        accept(&store, StoredSubmission { tenant: tenant.to_owned(), ..one }).await;
    }
    let mut taken = Vec::new();
    while let Some(one) = store.claim("w".into(), at(10), at(20), 3).await.expect("claimed") {
        taken.push(one.id);
    }
    assert_eq!(taken, ["free", "inline"], "in order of age, then of id");
}

async fn a_lease_is_prolonged_by_its_owner_alone(place: TestPlace) {
    let store = place.open().await;
    accept(&store, submission("s1", SubmissionStatus::PendingLlm)).await;
    let taken = store.claim("w".into(), at(0), at(10), 3).await.expect("claimed").expect("waits");
    for (id, attempt, owner, is_prolonged) in
        [("s1", 1, "w", true), ("s1", 1, "v", false), ("s1", 2, "w", false), ("s2", 1, "w", false)]
    {
        let prolonged = store.renew(id.into(), attempt, owner.into(), at(50)).await.expect("answered");
        assert_eq!(prolonged, is_prolonged, "{id} {attempt} {owner}");
    }
    let now = get(&store, "s1").await;
    assert_eq!(now.lease, Some(Lease { owner: "w".to_owned(), until: at(50) }));
    assert_eq!(now.version, taken.version, "whoever holds it can still write");
    let done = StoredSubmission { status: SubmissionStatus::Approved, lease: None, ..now.clone() };
    assert!(store.apply(change(done, now.version)).await.expect("applied"));
    assert!(!store.renew("s1".into(), 1, "w".into(), at(60)).await.expect("answered"));
}

async fn whoever_lost_a_lease_cannot_write_any_more(place: TestPlace) {
    let store = place.open().await;
    accept(&store, submission("s1", SubmissionStatus::PendingLlm)).await;
    let first = store.claim("a".into(), at(0), at(10), 3).await.expect("claimed").expect("waits");
    let second = store.claim("b".into(), at(10), at(20), 3).await.expect("claimed").expect("ran out");
    let verdict = |of: &StoredSubmission, status| {
        change(StoredSubmission { status, lease: None, ..of.clone() }, of.version)
    };
    assert!(!store.apply(verdict(&first, SubmissionStatus::Approved)).await.expect("answered"));
    assert!(store.apply(verdict(&second, SubmissionStatus::BlockedLlm)).await.expect("answered"));
    assert!(!store.apply(verdict(&second, SubmissionStatus::Approved)).await.expect("answered"), "once");
    assert_eq!(get(&store, "s1").await.status, SubmissionStatus::BlockedLlm);
}

async fn what_nobody_will_take_any_more_is_found(place: TestPlace) {
    let store = place.open().await;
    let pending = |id: &str, tries, until: Option<i64>| StoredSubmission {
        tries,
        lease: until.map(|until| Lease { owner: "w".to_owned(), until: at(until) }),
        ..submission(id, SubmissionStatus::PendingLlm)
    };
    for one in [
        pending("gone", 3, Some(10)),
        pending("working", 3, Some(11)),
        pending("has-another-try", 2, Some(1)),
        pending("given-back", 3, None),
        StoredSubmission { updated: at(11), ..pending("given-back-just-now", 3, None) },
        StoredSubmission { hold_reason: HoldReason::NoKey, ..pending("held", 3, None) },
        StoredSubmission { created: at(-9_999_999), ..pending("old-and-new", 0, None) },
        StoredSubmission { tenant: "acme".to_owned(), ..pending("foreign", 3, Some(1)) },
    ] {
        accept(&store, one).await;
    }
    let ids = |found: Vec<StoredSubmission>| found.into_iter().map(|one| one.id).collect::<Vec<_>>();
    let all = store.expired(None, at(10), 3).await.expect("read");
    assert_eq!(ids(all), ["foreign", "given-back", "gone"]);
    let own = store.expired(Some(String::new()), at(10), 3).await.expect("read");
    assert_eq!(ids(own), ["given-back", "gone"]);
}

async fn blocked_bytes_are_purged_after_their_time_unless_they_are_live(place: TestPlace) {
    let store = place.open().await;
    let aged =
        |id: &str, status, updated| StoredSubmission { updated: at(updated), ..submission(id, status) };
    for one in [
        aged("inline", SubmissionStatus::BlockedInline, 1),
        aged("llm", SubmissionStatus::BlockedLlm, 2),
        aged("young", SubmissionStatus::BlockedLlm, 10),
        aged("error", SubmissionStatus::ReviewError, 1),
        aged("approved", SubmissionStatus::Approved, 1),
        aged("live", SubmissionStatus::BlockedLlm, 1),
        StoredSubmission { purged: Some(at(5)), ..aged("purged", SubmissionStatus::BlockedLlm, 1) },
        StoredSubmission { tenant: "acme".into(), ..aged("foreign", SubmissionStatus::BlockedLlm, 1) },
    ] {
        accept(&store, one).await;
    }
    publish(&store, "live", Visibility::Hidden).await;
    let ids = |found: Vec<StoredSubmission>| found.into_iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids(store.purgeable(None, at(10)).await.expect("read")), ["foreign", "inline", "llm"]);
    let own = store.purgeable(Some(String::new()), at(10)).await.expect("read");
    assert_eq!(ids(own), ["inline", "llm"]);
}

async fn bytes_are_kept_for_rows_that_have_them(place: TestPlace) {
    let store = place.open().await;
    accept(&store, submission("kept", SubmissionStatus::BlockedLlm)).await;
    let purged = Some(at(5));
    accept(&store, StoredSubmission { purged, ..submission("purged", SubmissionStatus::BlockedLlm) }).await;
    accept(&store, submission("deleted", SubmissionStatus::Deleted)).await;
    let mut ids: Vec<String> = ["kept", "purged", "deleted", "stray"].map(str::to_owned).to_vec();
    // More than fit into one statement.
    ids.extend((0..1_500).map(|n| format!("stray-{n}")));
    let found = store.with_bytes(ids).await.expect("read");
    assert_eq!(found, HashSet::from(["kept".to_owned()]));
    assert!(store.with_bytes(Vec::new()).await.expect("read").is_empty());
}

async fn a_regular_job_begins_once_in_its_time(place: TestPlace) {
    let stores = [place.open().await, place.open().await];
    let begin = |n: usize, name: &str, now: i64, not_since: i64| {
        stores[n % 2].begin_job(name.to_owned(), at(now), at(not_since))
    };
    for (now, not_since) in [(0, -100), (100, 0)] {
        let tries = (0..8).map(|n| begin(n, "purge", now, not_since));
        let begun = futures_util::future::join_all(tries).await;
        let begun = begun.into_iter().filter(|begun| *begun.as_ref().expect("answered")).count();
        assert_eq!(begun, 1, "{now}");
    }
    assert!(!begin(0, "purge", 150, 50).await.expect("answered"), "too early");
    assert!(begin(0, "sweep", 150, 50).await.expect("answered"), "another one");
}

async fn counts_tell_what_waits_and_since_when(place: TestPlace) {
    let store = place.open().await;
    assert_eq!(store.counts_by_status().await.expect("read"), []);
    assert_eq!(store.oldest_waiting().await.expect("read"), None);
    let pending = |id: &str, updated| StoredSubmission {
        updated: at(updated),
        ..submission(id, SubmissionStatus::PendingLlm)
    };
    for one in [
        pending("a", 7),
        StoredSubmission { tenant: "acme".into(), ..pending("b", 5) },
        StoredSubmission { hold_reason: HoldReason::NoKey, ..pending("held", 1) },
        submission("approved", SubmissionStatus::Approved),
    ] {
        accept(&store, one).await;
    }
    assert_eq!(store.oldest_waiting().await.expect("read"), Some(at(5)));
    let counts = store.counts_by_status().await.expect("read");
    let counts: HashMap<_, _> =
        counts.into_iter().map(|StatusCount { status, count }| (status, count)).collect();
    assert_eq!(counts, HashMap::from([(SubmissionStatus::PendingLlm, 3), (SubmissionStatus::Approved, 1)]));
}
