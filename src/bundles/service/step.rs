//! What a worker does to a submission: take it, keep it, give it back, write what came of it.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::change::{Brought, Checked};
use super::record::{self, Action, Record};
use super::submit::checked;
use super::verdict::Verdict;
use super::{RACES_MAX, SubmissionError, Submissions};
use crate::bundles::Inspection;
use crate::bundles::archive::FileSource;
use crate::bundles::life::{self, Bytes, Event, Standing};
use crate::decision::{HoldReason, LlmReview, SubmissionStatus};
use crate::store::{
    BytesError, Change, NewAuditEvent, StoreError, StoredSubmission, SubmissionWrite, VerdictEntry,
};
use crate::telemetry::SubmissionMoved;

/// How often one attempt is taken before it is given up.
pub(in crate::bundles) const TRIES_MAX: u32 = 3;

/// What came of writing a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bundles) enum Landed {
    /// It is written; the submission stands so now.
    Done(SubmissionStatus),
    /// Somebody else had changed the submission; that stays, and the result is thrown away.
    Skipped,
}

/// Why a submission goes back to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// Its worker stops; another one may take it at once. It counts as not tried.
    Stopping,
    /// It failed for now, and is not taken again for this long.
    Failed(SignedDuration),
    /// The model could not be asked at all; not taken again for this long, and not counted as tried.
    Away(SignedDuration),
}

/// A bundle that was fetched and checked once more.
pub(in crate::bundles) struct Fetched {
    pub(in crate::bundles) inspection: Inspection,
    pub(in crate::bundles) revision: String,
}

/// Why a bundle could not be checked once more.
#[derive(Debug)]
pub(in crate::bundles) enum Unfetched {
    /// Trying again will not help: the error of the attempt.
    Never(&'static str),
    /// It may work later.
    Later(String),
}

impl Submissions {
    /// Takes the oldest submission that waits.
    pub(in crate::bundles) async fn claim(
        &self,
        owner: &str,
    ) -> Result<Option<StoredSubmission>, StoreError> {
        let now = self.now();
        self.store().claim(owner.to_owned(), now, self.lease_end(now), TRIES_MAX).await
    }

    /// When a lease that is taken or prolonged now runs out.
    pub(super) fn lease_end(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.parts().guardrails.review_lease).unwrap_or(Timestamp::MAX)
    }

    /// Prolongs a lease; `false` when it is lost.
    pub(in crate::bundles) async fn renew(
        &self,
        row: &StoredSubmission,
        owner: &str,
    ) -> Result<bool, StoreError> {
        let until = self.lease_end(self.now());
        self.store().renew(row.id.clone(), row.attempt, owner.to_owned(), until).await
    }

    /// Gives a submission back as it is; `false` when it was lost meanwhile, which is as good.
    pub(in crate::bundles) async fn release(
        &self,
        row: &StoredSubmission,
        why: Released,
    ) -> Result<bool, StoreError> {
        let mut back = row.clone();
        back.lease = None;
        let (pause, is_tried) = match why {
            Released::Stopping => (None, false),
            Released::Failed(pause) => (Some(pause), true),
            Released::Away(pause) => (Some(pause), false),
        };
        if !is_tried {
            back.tries = back.tries.saturating_sub(1);
        }
        back.not_before = pause.and_then(|pause| self.now().checked_add(pause).ok());
        let change = Change {
            tenant: row.tenant.clone(),
            submissions: vec![SubmissionWrite {
                submission: back,
                expect_version: row.version,
                attempts: Vec::new(),
            }],
            ..Change::default()
        };
        let is_given = self.store().apply(change).await?;
        if is_given && why == Released::Stopping {
            self.wake();
        }
        Ok(is_given)
    }

    /// Wakes a worker.
    pub(super) fn wake(&self) {
        self.0.waiting.notify_one();
    }

    /// Waits until a worker of this process may have something to do.
    pub(in crate::bundles) async fn waiting(&self) {
        self.0.waiting.notified().await;
    }

    /// The bytes of a submission, checked by the rules in force, if they still are those that were uploaded.
    pub(in crate::bundles) async fn fetch(&self, row: &StoredSubmission) -> Result<Fetched, Unfetched> {
        let spare = self.parts().spool.spare();
        match self.parts().bytes.get_file(row.id.clone(), spare.path().to_owned()).await {
            Ok(_) => {}
            Err(BytesError::NotFound { .. }) => return Err(Unfetched::Never("bytes_missing")),
            Err(error) => return Err(Unfetched::Later(error.to_string())),
        }
        let source = open(spare.path()).map_err(|error| Unfetched::Later(error.to_string()))?;
        let asked = self.asked(&row.policy, &row.tenant);
        let (inspection, revision) = match self.inspect(source, row.kind, asked).await {
            Ok(done) => done,
            Err(error) => return Err(Unfetched::Later(error.to_string())),
        };
        // A verdict is about the very bytes that will be handed out.
        if inspection.bundle_sha256 != row.bundle_sha256 && !row.bundle_sha256.is_empty() {
            return Err(Unfetched::Never("bytes_changed"));
        }
        Ok(Fetched { inspection, revision })
    }

    /// Goes on with inline checks that are to be run again: fetches, checks, writes. The row must be held by a lease.
    pub(in crate::bundles) async fn recheck(
        &self,
        row: &StoredSubmission,
    ) -> Result<Landed, SubmissionError> {
        match self.fetch(row).await {
            Ok(Fetched { inspection, revision }) => {
                let event = self.after_check(&inspection);
                let (checked, _) = checked(inspection);
                Ok(self.land_check(row, event, checked, revision).await?)
            }
            Err(Unfetched::Never(error)) => Ok(self.land_failure(row, error).await?),
            Err(Unfetched::Later(cause)) => {
                if row.tries >= TRIES_MAX {
                    tracing::error!(submission = row.id, cause, "inline checks given up");
                    return Ok(self.land_failure(row, "checks_failed").await?);
                }
                self.release(row, Released::Failed(pause_after(row.tries))).await?;
                Err(SubmissionError::Unchecked(cause))
            }
        }
    }

    async fn land_check(
        &self,
        row: &StoredSubmission,
        event: Event,
        checked: Checked,
        revision: String,
    ) -> Result<Landed, StoreError> {
        let review = (event == Event::CheckPassed).then(|| self.not_reviewed());
        let brought = Brought {
            checked: Some(checked),
            review,
            decision_id: Some(Uuid::now_v7().to_string()),
            policy_revision: Some(revision),
            ..Brought::default()
        };
        self.land(row, event, brought).await
    }

    /// Writes the verdict of a model, and what it was not shown.
    pub(in crate::bundles) async fn land_verdict(
        &self,
        row: &StoredSubmission,
        review: LlmReview,
        (is_passed, unseen): (bool, String),
        remembered: Option<VerdictEntry>,
    ) -> Result<Landed, StoreError> {
        let brought = Brought {
            review: Some(review),
            unseen,
            decision_id: Some(Uuid::now_v7().to_string()),
            policy_revision: Some(self.parts().inspect.revision()),
            verdict: remembered,
            ..Brought::default()
        };
        let event = if is_passed { Event::ReviewPassed } else { Event::ReviewBlocked };
        self.land(row, event, brought).await
    }

    /// Writes that there is no verdict and why; `review` is what is known of the model all the same.
    pub(in crate::bundles) async fn land_no_verdict(
        &self,
        row: &StoredSubmission,
        review: LlmReview,
        error: &str,
    ) -> Result<Landed, StoreError> {
        let brought = Brought { review: Some(review), error: error.to_owned(), ..self.failure() };
        self.land(row, Event::ReviewFailed, brought).await
    }

    /// Writes that an attempt ended without a verdict.
    pub(in crate::bundles) async fn land_failure(
        &self,
        row: &StoredSubmission,
        error: &str,
    ) -> Result<Landed, StoreError> {
        let event = match row.status {
            SubmissionStatus::PendingInline => Event::CheckFailed,
            _ => Event::ReviewFailed,
        };
        self.land(row, event, Brought { error: error.to_owned(), ..self.failure() }).await
    }

    /// Holds a submission that waits for a model that there is no more.
    pub(in crate::bundles) async fn land_held(&self, row: &StoredSubmission) -> Result<Landed, StoreError> {
        self.land(row, Event::ReviewHeld, Brought::default()).await
    }

    fn failure(&self) -> Brought {
        Brought {
            decision_id: Some(Uuid::now_v7().to_string()),
            policy_revision: Some(self.parts().inspect.revision()),
            ..Brought::default()
        }
    }

    /// Writes what came of work on `row`, if the row still is as it was.
    async fn land(
        &self,
        row: &StoredSubmission,
        event: Event,
        brought: Brought,
    ) -> Result<Landed, StoreError> {
        for _ in 0..RACES_MAX {
            let now = self.now();
            let ground = self.ground(&row.tenant, &row.id).await?;
            let Some(ground) = ground.filter(|ground| ground.submission.version == row.version) else {
                return self.skip(row, event).await;
            };
            let Ok(mut change) = ground.change(event, brought.clone(), now, Vec::new()) else {
                return self.skip(row, event).await;
            };
            let after = change.submissions[0].submission.clone();
            change.events = events_of(&ground.submission, &after, event, &brought, now);
            if self.store().apply(change).await? {
                if after.status != row.status {
                    SubmissionMoved { status: after.status }.emit(&self.parts().metrics);
                }
                if brought.decision_id.is_some() {
                    self.tell_verdict(&Verdict {
                        submission: &after,
                        checks: brought.checked.as_ref().map(|checked| &checked.checks),
                        review: brought.review.as_ref(),
                        elapsed: now.duration_since(ground.attempt.started),
                    });
                }
                self.tell(&after.entity_id);
                return Ok(Landed::Done(after.status));
            }
            // Either the entity or the submission changed; the next round tells which.
        }
        self.skip(row, event).await
    }

    /// Records that a result was thrown away.
    async fn skip(&self, row: &StoredSubmission, event: Event) -> Result<Landed, StoreError> {
        let resource = record::submission(&row.id);
        let skipped = Record::by_system(Action::VerdictSkipped, &row.tenant, resource, self.now())
            .with("attempt", row.attempt)
            .with("verdict", to_of(row, event).map_or("", SubmissionStatus::as_str));
        self.parts().audit.append_audit(vec![skipped.finish()]).await?;
        tracing::info!(submission = row.id, "a result came too late and was thrown away");
        Ok(Landed::Skipped)
    }
}

fn to_of(row: &StoredSubmission, event: Event) -> Option<SubmissionStatus> {
    let standing = Standing::of(row.status, row.hold_reason)?;
    Some(life::next(standing, Bytes::Opened, event).ok()?.to.status())
}

/// What is recorded of a result: the new verdict, or that it is held. A step further in the queue is no event.
fn events_of(
    before: &StoredSubmission,
    after: &StoredSubmission,
    event: Event,
    brought: &Brought,
    now: Timestamp,
) -> Vec<NewAuditEvent> {
    let action = match record::action_of(after.status) {
        Some(action) => action,
        None if after.hold_reason != HoldReason::None => Action::Held,
        None => return Vec::new(),
    };
    let resource = record::submission(&after.id);
    let mut record = Record::by_system(action, &after.tenant, resource, now)
        .decided(&after.decision_id, &after.policy_revision)
        .bundle(after)
        .with("prior_status", before.status.as_str());
    if after.hold_reason != HoldReason::None {
        record = record.with("hold_reason", after.hold_reason.as_str());
    }
    if let Some(checked) = &brought.checked
        && event == Event::CheckBlocked
    {
        record = record.rules(&checked.checks);
    }
    if let Some(review) = &brought.review {
        record = record.with("model", review.model.as_str()).with("risk_level", review.risk_level.as_str());
    }
    if !brought.error.is_empty() {
        record = record.with("error", brought.error.as_str());
    }
    vec![record.finish()]
}

/// How long a submission rests after it failed for the `tries`-th time.
pub(in crate::bundles) fn pause_after(tries: u32) -> SignedDuration {
    SignedDuration::from_secs(2 << tries.min(6))
}

/// A file as a source of an archive.
pub(super) fn open(path: &Path) -> std::io::Result<FileSource> {
    FileSource::new(std::fs::File::open(PathBuf::from(path))?)
}
