//! What goes on beside the calls: reviews, interrupted rescans, reaper, purge, sweep, and the gauges of all that.
//!
//! Every step can be repeated: a worker holds a submission by a lease that it prolongs, and writes its result only where
//! nothing changed meanwhile. A worker that is killed leaves a lease that runs out; one that stops gives it back.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::Tree;
use super::review::{self, PROMPT_VERSION, Prompt, Unseen};
use super::service::Submissions;
use super::service::step::{Landed, Released, TRIES_MAX, Unfetched, pause_after};
use crate::decision::{CheckStatus, LlmReview, SubmissionStatus};
use crate::judge::{Answer, Judge, NotJudged, Trouble};
use crate::store::{StoreError, StoredSubmission, VerdictEntry, VerdictKey};
use crate::telemetry::{ReviewStage, ReviewStageRan};

/// How often stuck reviews are looked for, and the gauges set.
const TICK: Duration = Duration::from_secs(10);
/// How often it is looked whether a daily job is due.
const DAILY_LOOK: Duration = Duration::from_secs(600);
/// How long a review rests whose model could not be asked at all.
const AWAY_PAUSE: SignedDuration = SignedDuration::from_secs(15);
/// How often a model is asked in one review, each time with the attempts of its client.
const ASKED_MAX: u32 = 3;
/// Which part of its time a review rests before it asks a second time; doubled before the next.
const ASK_PAUSE_SHARE: u32 = 30;
/// How long a model may be away before its reviews are given up, counted from the begin of the attempt.
const AWAY_MAX: SignedDuration = SignedDuration::from_hours(24);

/// Most files that are named of those that a model was not shown whole.
const UNSEEN_NAMED_MAX: usize = 10;

/// Reviews and jobs of this process.
pub struct Worker {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Worker {
    /// Begins. Needs the runtime of tokio.
    pub fn start(submissions: &Submissions) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let (taking, until) = (submissions.clone(), stopped.clone());
        tasks.spawn(async move { reviews(&taking, until).await });
        let (regular, daily) = (submissions.clone(), submissions.clone());
        tasks.spawn(unless_stopped(stopped.clone(), async move { regular_jobs(&regular).await }));
        tasks.spawn(unless_stopped(stopped, async move { daily_jobs(&daily).await }));
        Self { stop, tasks }
    }

    /// Stops taking work, gives back what is under way, and waits for that at most so long.
    pub async fn stop(mut self, wait: Duration) {
        self.stop.send_replace(true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(wait, all).await.is_err() {
            tracing::warn!("reviews under way were left; they are taken again when their leases run out");
        }
    }
}

async fn unless_stopped(mut stopped: watch::Receiver<bool>, work: impl Future<Output = ()>) {
    tokio::select! {
        () = work => {}
        () = stop_of(&mut stopped) => {}
    }
}

async fn stop_of(stopped: &mut watch::Receiver<bool>) {
    // An error means that the worker itself is gone.
    let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
}

/// Takes what waits, as long as there is a place for it, until it is stopped; ends once nothing is under way.
async fn reviews(submissions: &Submissions, mut stopped: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(submissions.guardrails().reviews_max));
    let mut under_way = JoinSet::new();
    while !*stopped.borrow() {
        while under_way.try_join_next().is_some() {}
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            () = stop_of(&mut stopped) => break,
        };
        // It is never closed.
        let Ok(place) = place else { break };
        // One owner for each thing taken: a lease that was lost and taken again is another one.
        let owner = Uuid::now_v7().to_string();
        let pause = match submissions.claim(&owner).await {
            Ok(Some(row)) => {
                let (submissions, mut stopped) = (submissions.clone(), stopped.clone());
                under_way.spawn(async move {
                    if let Err(error) = one(&submissions, &row, &owner, &mut stopped).await {
                        tracing::error!(%error, submission = row.id, "a review could not go on; it is taken again later");
                    }
                    drop(place);
                });
                continue;
            }
            Ok(None) => submissions.poll_interval(),
            Err(error) => {
                tracing::error!(%error, "waiting reviews cannot be read");
                submissions.poll_interval().max(Duration::from_secs(1))
            }
        };
        drop(place);
        tokio::select! {
            () = submissions.waiting() => {}
            () = tokio::time::sleep(pause) => {}
            () = stop_of(&mut stopped) => {}
        }
    }
    while under_way.join_next().await.is_some() {}
}

/// Works on what was taken, prolonging the lease meanwhile.
async fn one(
    submissions: &Submissions,
    row: &StoredSubmission,
    owner: &str,
    stopped: &mut watch::Receiver<bool>,
) -> Result<(), StoreError> {
    tokio::select! {
        done = step(submissions, row) => done,
        // Whoever has it now does it; a result of ours would be thrown away.
        () = lease_lost(submissions, row, owner) => {
            tracing::warn!(submission = row.id, "the lease of a review was lost; another worker has it");
            Ok(())
        }
        () = stop_of(stopped) => submissions.release(row, Released::Stopping).await.map(|_| ()),
    }
}

/// Prolongs a lease for as long as it is there; ends once it is lost.
pub(super) async fn lease_lost(submissions: &Submissions, row: &StoredSubmission, owner: &str) {
    let every = submissions.guardrails().review_lease / 3;
    loop {
        tokio::time::sleep(every).await;
        match submissions.renew(row, owner).await {
            Ok(true) => {}
            Ok(false) => return,
            // The lease may hold all the same; the write at the end tells.
            Err(error) => tracing::warn!(%error, submission = row.id, "a lease could not be prolonged"),
        }
    }
}

/// Takes one submission a step further.
pub(super) async fn step(submissions: &Submissions, row: &StoredSubmission) -> Result<(), StoreError> {
    match row.status {
        SubmissionStatus::PendingInline => match submissions.recheck(row).await {
            Ok(Landed::Done(_) | Landed::Skipped) => Ok(()),
            Err(super::service::SubmissionError::Store(error)) => Err(error),
            Err(error) => {
                tracing::warn!(%error, submission = row.id, "inline checks could not run; they are tried again");
                Ok(())
            }
        },
        SubmissionStatus::PendingLlm => {
            let started = Instant::now();
            let done = llm(submissions, row).await;
            let elapsed = started.elapsed();
            ReviewStageRan { stage: ReviewStage::Llm, elapsed }.emit(submissions.metrics());
            done.map(|_| ())
        }
        // Nothing else is ever given out.
        _ => Ok(()),
    }
}

/// The review by a model.
async fn llm(submissions: &Submissions, row: &StoredSubmission) -> Result<Landed, StoreError> {
    let Some(judge) = submissions.reviewer() else { return submissions.land_held(row).await };
    let fetched = match submissions.fetch(row).await {
        Ok(fetched) => fetched,
        Err(Unfetched::Never(error)) => return submissions.land_failure(row, error).await,
        Err(Unfetched::Later(cause)) => {
            tracing::warn!(submission = row.id, cause, "a bundle could not be fetched for its review");
            return later(submissions, row, "bundle_unavailable").await;
        }
    };
    let inspection = fetched.inspection;
    let tree = inspection.tree.unwrap_or_default();
    let key = verdict_key(row, &*judge, &tree);
    let nonce = Uuid::new_v4().simple().to_string();
    let prompt = Prompt::new(row.kind, &inspection.manifest, &tree, &inspection.capabilities, &nonce);
    let unseen = told_unseen(prompt.unseen(), &|text| submissions.masked(text));
    // Who asks again wants a fresh answer; everybody else gets the one that these bytes were given.
    if row.attempt == 1
        && let Some(known) = submissions.verdict(&key).await?
    {
        let is_passed = known.status == CheckStatus::Pass;
        return submissions.land_verdict(row, known, (is_passed, unseen), None).await;
    }
    let answer = match ask(&*judge, &prompt, submissions.guardrails().review_timeout).await {
        Ok(answer) => answer,
        Err(not_judged) => return unanswered(submissions, row, &*judge, &not_judged).await,
    };
    match review::read(&answer, PROMPT_VERSION, &|text| submissions.masked(text)) {
        Ok(verdict) => {
            let entry = VerdictEntry { key, review: verdict.review.clone(), time: submissions.now() };
            submissions.land_verdict(row, verdict.review, (verdict.is_passed, unseen), Some(entry)).await
        }
        Err(error) => {
            let review = no_review(&answer.model, error.sentence());
            submissions.land_no_verdict(row, review, error.as_str()).await
        }
    }
}

/// What a model was not shown, as a sentence that names the first few files; empty when it saw all.
fn told_unseen(unseen: &[Unseen], mask: &dyn Fn(&str) -> String) -> String {
    if unseen.is_empty() {
        return String::new();
    }
    let bytes: usize = unseen.iter().map(|one| one.bytes).sum();
    let mut named: Vec<String> = unseen
        .iter()
        .take(UNSEEN_NAMED_MAX)
        .map(|one| format!("{} ({} bytes)", plain_path(&mask(&one.path)), one.bytes))
        .collect();
    if unseen.len() > UNSEEN_NAMED_MAX {
        named.push(format!("{} more", unseen.len() - UNSEEN_NAMED_MAX));
    }
    format!(
        "The model was not shown {bytes} bytes of text for want of room, in {}; the static scan read them.",
        named.join(", ")
    )
}

/// A path for a sentence: no control characters, shortened.
fn plain_path(path: &str) -> String {
    path.chars().map(|c| if c.is_control() { ' ' } else { c }).take(120).collect()
}

/// Asks until there is an answer, a trouble that stays, or no time left: all questions of one review share its budget.
async fn ask(judge: &dyn Judge, prompt: &Prompt, budget: Duration) -> Result<Answer, NotJudged> {
    let until = Instant::now() + budget;
    let mut pause = budget / ASK_PAUSE_SHARE;
    let mut asked = 0;
    loop {
        let outcome = judge.ask(&prompt.question(), until).await;
        asked += 1;
        let Err(not_judged) = outcome else { return outcome };
        let is_worth_it = patience(not_judged.trouble) == Patience::Again && asked < ASKED_MAX;
        if !is_worth_it || Instant::now() + pause >= until {
            return Err(not_judged);
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

/// A question that got no answer: asked again once the model is back, or given up.
async fn unanswered(
    submissions: &Submissions,
    row: &StoredSubmission,
    judge: &dyn Judge,
    why: &NotJudged,
) -> Result<Landed, StoreError> {
    let give_up = async || {
        let review = no_review(judge.model(), &submissions.masked(&why.detail));
        submissions.land_no_verdict(row, review, why.trouble.as_str()).await
    };
    match patience(why.trouble) {
        Patience::Away => {
            let waited = submissions.now().duration_since(row.updated);
            if waited >= AWAY_MAX {
                return give_up().await;
            }
            submissions.release(row, Released::Away(AWAY_PAUSE)).await?;
            Ok(Landed::Skipped)
        }
        Patience::Again | Patience::None => give_up().await,
    }
}

/// Gives a submission back, or up when it was tried often enough.
async fn later(submissions: &Submissions, row: &StoredSubmission, error: &str) -> Result<Landed, StoreError> {
    if row.tries >= TRIES_MAX {
        return submissions.land_failure(row, error).await;
    }
    submissions.release(row, Released::Failed(pause_after(row.tries))).await?;
    Ok(Landed::Skipped)
}

/// What a failed question is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// The model was not asked: wait, without counting a try.
    Away,
    /// It may answer the next time, if there is time left.
    Again,
    /// It will not.
    None,
}

const fn patience(trouble: Trouble) -> Patience {
    match trouble {
        Trouble::RateLimited | Trouble::Overloaded | Trouble::CircuitOpen => Patience::Away,
        Trouble::Timeout | Trouble::Unreachable | Trouble::Broken | Trouble::ServerError => Patience::Again,
        Trouble::Tls
        | Trouble::Quota
        | Trouble::Unauthorized
        | Trouble::NotFound
        | Trouble::Rejected
        | Trouble::Internal
        | Trouble::TooLarge
        | Trouble::Truncated
        | Trouble::Refused
        | Trouble::Blocked
        | Trouble::Empty
        | Trouble::NotJson
        | Trouble::WrongShape
        | Trouble::UnknownEnd => Patience::None,
    }
}

/// A review without a verdict.
fn no_review(model: &str, reason: &str) -> LlmReview {
    LlmReview {
        status: CheckStatus::Skipped,
        model: model.to_owned(),
        prompt_version: PROMPT_VERSION.to_owned(),
        reason: reason.to_owned(),
        ..LlmReview::default()
    }
}

/// What a verdict about a submission is bound to.
fn verdict_key(row: &StoredSubmission, judge: &dyn Judge, tree: &Tree) -> VerdictKey {
    VerdictKey {
        bundle_sha256: row.bundle_sha256.clone(),
        model: format!("{}/{}", judge.backend(), judge.model()),
        // The kind changes what is the primary document, and so what is asked.
        prompt_version: format!("{PROMPT_VERSION}/{}/{}{}", row.kind, layout(tree), of_tenant(&row.tenant)),
    }
}

/// What keeps the verdicts of tenants apart: from a verdict that is there already one would learn what another uploaded.
fn of_tenant(tenant: &str) -> String {
    if tenant.is_empty() {
        return String::new();
    }
    let digest = Sha256::digest(tenant.as_bytes());
    digest.iter().take(16).fold("/".to_owned(), |all, byte| format!("{all}{byte:02x}"))
}

/// A digest of where each file begins and ends and whether it may be executed. The hash of a bundle joins paths and bytes
/// by zero bytes, which a file may hold, too: alone it cannot tell two files from one that looks like both.
fn layout(tree: &Tree) -> String {
    let mut hash = Sha256::new();
    for file in &tree.files {
        hash.update((file.path.len() as u64).to_le_bytes());
        hash.update(&file.path);
        hash.update(file.size.to_le_bytes());
        hash.update([u8::from(file.is_executable)]);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Releases once what is held for want of a key, looks for stuck reviews and sets the gauges. Never ends.
async fn regular_jobs(submissions: &Submissions) {
    let mut timer = tokio::time::interval(TICK);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut is_released = false;
    loop {
        timer.tick().await;
        if !is_released {
            match submissions.release_held().await {
                Ok(_) => is_released = true,
                Err(error) => tracing::error!(%error, "held submissions cannot be released; tried again"),
            }
        }
        if let Err(error) = submissions.reap_regularly().await {
            tracing::error!(%error, "stuck reviews cannot be looked for");
        }
        if let Err(error) = submissions.show_gauges().await {
            tracing::warn!(%error, "submissions cannot be counted");
        }
    }
}

/// Sweeps at the start, again when the strays of the process before are old enough, and then daily; purges daily. Never
/// ends.
async fn daily_jobs(submissions: &Submissions) {
    let sweep = async || {
        if let Err(error) = submissions.sweep().await {
            tracing::error!(%error, "strays cannot be swept up");
        }
    };
    sweep().await;
    let grace = submissions.stray_grace();
    if !grace.is_zero() {
        tokio::time::sleep(grace).await;
        sweep().await;
    }
    let mut timer = tokio::time::interval(DAILY_LOOK);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        timer.tick().await;
        if let Err(error) = submissions.purge_daily().await {
            tracing::error!(%error, "blocked bundles cannot be purged");
        }
        if let Err(error) = submissions.sweep_daily().await {
            tracing::error!(%error, "strays cannot be swept up");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_of_one_hash_have_different_layouts() {
        let tree = |files: &[(&str, &str, bool)]| {
            let mut tree = Tree::default();
            for (path, text, is_executable) in files {
                tree.add((*path).to_owned(), text.len() as u64, *is_executable, Some(text));
            }
            layout(&tree)
        };
        // Joined by zero bytes the first three read the same.
        let layouts = [
            tree(&[("a", "x\0b\0y", false)]),
            tree(&[("a", "x", false), ("b", "y", false)]),
            tree(&[("a\0x\0b", "y", false)]),
            tree(&[("a", "x", false), ("b", "y", true)]),
            tree(&[]),
        ];
        for (at, layout) in layouts.iter().enumerate() {
            assert!(!layouts[..at].contains(layout), "{at}");
        }
        assert_eq!(
            layouts[0],
            tree(&[("a", "z\0c\0z", false)]),
            "what is in a file is the affair of the hash"
        );
    }

    #[test]
    fn no_trouble_is_patience_without_end() {
        for trouble in Trouble::ALL {
            let is_bad_answer = trouble.reason() == crate::decision::Reason::BadAnswer;
            assert!(!is_bad_answer || patience(trouble) == Patience::None, "{trouble:?}");
        }
    }
}
