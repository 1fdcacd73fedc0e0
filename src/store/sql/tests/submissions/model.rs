//! Random operations, several at once, against what must hold whatever their order.
//!
//! Every worker plays its own script against its own connection to the same database; each script is drawn at random.
//! What each of them was answered is checked against what is in the database afterwards.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use proptest::test_runner::{Config as RunnerConfig, TestRunner};

use super::*;
use crate::store::{AcceptError, AttemptWrite, AuditStore, Quota};

/// Blocked submissions that are taken at most.
const LIMIT: u64 = 5;
/// Tries of one review.
const TRIES: u32 = 2;
/// Scripts that are played at once.
const WORKERS: usize = 3;
/// Submissions that all workers change.
const SHARED: usize = 3;

/// One step of a script.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Submits a bundle that is blocked.
    Block,
    /// Submits a bundle that waits for its review.
    Submit,
    /// Takes a review, and gives a verdict or does not.
    Review { gives_verdict: bool },
    /// Rewrites one of the shared submissions with the version it was read with.
    Rewrite { shared: usize },
    /// Rewrites one with a version that is older.
    RewriteLate { shared: usize },
}

/// What a worker was told.
#[derive(Debug, Default)]
struct Told {
    blocked: Vec<String>,
    refused: usize,
    submitted: Vec<String>,
    /// Claims: which review, under which version.
    claims: Vec<(String, i64)>,
    verdicts: Vec<String>,
    rewrites: Vec<usize>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => Just(Step::Block),
        2 => Just(Step::Submit),
        4 => any::<bool>().prop_map(|gives_verdict| Step::Review { gives_verdict }),
        3 => (0..SHARED).prop_map(|shared| Step::Rewrite { shared }),
        1 => (0..SHARED).prop_map(|shared| Step::RewriteLate { shared }),
    ];
    proptest::collection::vec(step, 1..12)
}

async fn play(store: &SqlStore, worker: usize, script: &[Step]) -> Told {
    let mut told = Told::default();
    for (n, step) in script.iter().enumerate() {
        let id = format!("w{worker}-{n:02}");
        match *step {
            Step::Block => {
                let quota = Some(Quota { limit: LIMIT, since: at(-1) });
                let blocked = submission(&id, SubmissionStatus::BlockedInline);
                match store.accept(NewSubmission { quota, ..new(blocked) }).await {
                    Ok(()) => told.blocked.push(id),
                    Err(AcceptError::QuotaExceeded { found: LIMIT, limit: LIMIT }) => told.refused += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Submit => {
                // Of another submitter: what waits counts for the quota of its own.
                let waiting = submission(&id, SubmissionStatus::PendingLlm);
                accept(store, StoredSubmission { submitter: "bob".to_owned(), ..waiting }).await;
                told.submitted.push(id);
            }
            Step::Review { gives_verdict } => {
                // A lease that has run out at once: others may take it too, and then only one can write.
                let owner = format!("w{worker}");
                let Some(taken) = store.claim(owner, at(10), at(10), TRIES).await.expect("claimed") else {
                    continue;
                };
                told.claims.push((taken.id.clone(), taken.version));
                if gives_verdict && give_verdict(store, &taken).await {
                    told.verdicts.push(taken.id);
                }
            }
            Step::Rewrite { shared } => {
                let now = get(store, &format!("shared-{shared}")).await;
                if rewrite(store, &now, now.version).await {
                    told.rewrites.push(shared);
                }
            }
            Step::RewriteLate { shared } => {
                let now = get(store, &format!("shared-{shared}")).await;
                assert!(!rewrite(store, &now, now.version - 1).await, "that version is gone");
            }
        }
    }
    told
}

async fn give_verdict(store: &SqlStore, taken: &StoredSubmission) -> bool {
    let approved = StoredSubmission { status: SubmissionStatus::Approved, lease: None, ..taken.clone() };
    let ended = StoredAttempt { ended: Some(at(11)), ..attempt(&approved) };
    let mut change = change(approved, taken.version);
    change.submissions[0].attempts = vec![AttemptWrite::Update(ended)];
    change.events = vec![NewAuditEvent {
        action: "store.submission.approved".to_owned(),
        ..event(&format!("approved-{}", taken.id), taken)
    }];
    store.apply(change).await.expect("applied")
}

/// Counts in the tries how often a row was written.
async fn rewrite(store: &SqlStore, now: &StoredSubmission, expect_version: i64) -> bool {
    let next = StoredSubmission { tries: now.tries + 1, ..now.clone() };
    store.apply(change(next, expect_version)).await.expect("applied")
}

async fn check(place: &TestPlace, scripts: &[Vec<Step>]) {
    let store = place.open().await;
    for shared in 0..SHARED {
        accept(&store, submission(&format!("shared-{shared}"), SubmissionStatus::Approved)).await;
    }
    let mut workers = Vec::new();
    for worker in 0..scripts.len() {
        workers.push(place.open().await);
        assert_eq!(workers.len(), worker + 1);
    }
    let plays = scripts.iter().enumerate().map(|(worker, script)| play(&workers[worker], worker, script));
    let told: Vec<Told> = futures_util::future::join_all(plays).await;

    let blocked: usize = told.iter().map(|told| told.blocked.len()).sum();
    let refused: usize = told.iter().map(|told| told.refused).sum();
    assert_eq!(
        blocked as u64,
        ((blocked + refused) as u64).min(LIMIT),
        "the quota is used up, never exceeded"
    );

    let claims: Vec<&(String, i64)> = told.iter().flat_map(|told| &told.claims).collect();
    assert_eq!(claims.iter().collect::<HashSet<_>>().len(), claims.len(), "no version was given out twice");
    let verdicts: Vec<&String> = told.iter().flat_map(|told| &told.verdicts).collect();
    assert_eq!(verdicts.iter().collect::<HashSet<_>>().len(), verdicts.len(), "one verdict each");
    for id in told.iter().flat_map(|told| &told.submitted) {
        let now = get(&store, id).await;
        let claimed = claims.iter().filter(|(claimed, _)| claimed == id).count();
        assert!(claimed <= TRIES as usize, "{id}");
        assert_eq!(now.tries as usize, claimed, "{id}");
        let has_verdict = verdicts.contains(&id);
        assert_eq!(now.status == SubmissionStatus::Approved, has_verdict, "{id}");
        assert_eq!(now.version, 1 + claimed as i64 + i64::from(has_verdict), "{id}");
    }

    let mut rewrites: BTreeMap<usize, i64> = BTreeMap::new();
    for shared in told.iter().flat_map(|told| &told.rewrites) {
        *rewrites.entry(*shared).or_default() += 1;
    }
    for shared in 0..SHARED {
        let now = get(&store, &format!("shared-{shared}")).await;
        let wanted = rewrites.get(&shared).copied().unwrap_or(0);
        assert_eq!((now.version, i64::from(now.tries)), (1 + wanted, wanted), "no write was lost");
    }

    let submitted: usize = told.iter().map(|told| told.submitted.len()).sum();
    let events = (SHARED + blocked + submitted + verdicts.len()) as u64;
    let report = store.verify_audit(String::new(), Default::default()).await.expect("read");
    assert_eq!((report.length, report.broken_at), (events, None), "one event each, in one chain");
}

/// Draws scripts and plays them in a new place each time.
fn run(cases: u32, place: impl AsyncFn() -> Option<TestPlace>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let config =
        RunnerConfig { cases, max_shrink_iters: 30, failure_persistence: None, ..RunnerConfig::default() };
    let scripts = proptest::collection::vec(steps(), WORKERS);
    let played = TestRunner::new(config).run(&scripts, |scripts| {
        runtime.block_on(async {
            if let Some(place) = place().await {
                check(&place, &scripts).await;
            }
        });
        Ok(())
    });
    if let Err(error) = played {
        panic!("{error}");
    }
}

#[test]
fn whatever_the_order_nothing_is_lost_on_sqlite() {
    run(24, async || Some(TestPlace::sqlite()));
}

#[test]
fn whatever_the_order_nothing_is_lost_on_postgres() {
    run(24, TestPlace::postgres);
}
