//! One transition of the life cycle as rows to write: pure, no clock and no store.

use jiff::Timestamp;

use super::types::attempt_of;
use crate::bundles::life::{self, Attempts, Bytes, Event, Live, Refused, Standing};
use crate::decision::{
    BundleChecks, Capability, FailMode, FileCoverage, LlmReview, Reason, SubmissionStatus, Unjudged,
};
use crate::store::{
    AttemptWrite, Change, EntityWrite, NewAuditEvent, Override, StoredAttempt, StoredEntity,
    StoredSubmission, SubmissionWrite, VerdictEntry,
};

/// Name of the review by a model among checks that could not judge.
const REVIEW: &str = "llm_review";

/// Everything that a transition of one submission looks at, as it was read.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    /// The submission.
    pub(super) submission: StoredSubmission,
    /// Its latest attempt.
    pub(super) attempt: StoredAttempt,
    /// Its entity; `None` when that was deleted.
    pub(super) entity: Option<StoredEntity>,
    /// All submissions of the entity, this one too, oldest first.
    pub(super) siblings: Vec<StoredSubmission>,
}

/// What the inline checks of an attempt said.
#[derive(Clone, Debug, Default)]
pub(super) struct Checked {
    pub(super) checks: BundleChecks,
    pub(super) coverage: Vec<FileCoverage>,
    pub(super) capabilities: Vec<Capability>,
    pub(super) unjudged: Vec<Unjudged>,
    pub(super) bundle_sha256: String,
    pub(super) file_count: u32,
}

/// What a transition brings along.
#[derive(Clone, Debug, Default)]
pub(super) struct Brought {
    /// The inline checks, if they ran.
    pub(super) checked: Option<Checked>,
    /// What the model said, or why it said nothing.
    pub(super) review: Option<LlmReview>,
    /// What the model was not shown, as a sentence; empty when it saw all there is.
    pub(super) unseen: String,
    /// Why there is no verdict.
    pub(super) error: String,
    /// Who publishes against the verdict, and why.
    pub(super) overriding: Option<(String, String)>,
    /// Id of the decision that this is, if it is one.
    pub(super) decision_id: Option<String>,
    /// Revision of the policy in force, if something was decided under it.
    pub(super) policy_revision: Option<String>,
    /// A verdict to remember.
    pub(super) verdict: Option<VerdictEntry>,
}

impl Ground {
    /// Where the submission stands.
    ///
    /// # Errors
    /// Its row says something that no release writes.
    pub(super) fn standing(&self) -> Result<Standing, Refused> {
        Standing::of(self.submission.status, self.submission.hold_reason).ok_or(Refused::Illegal)
    }

    /// What became of its bytes; `checked` is the hash over its files that checks worked out just now.
    fn bytes(&self, checked: Option<&str>) -> Bytes {
        let hash = checked.unwrap_or(&self.submission.bundle_sha256);
        Bytes::of(self.submission.purged.is_some(), hash)
    }

    /// The rows after `event`, with the events to record.
    ///
    /// # Errors
    /// The life cycle does not allow it.
    pub(super) fn change(
        &self,
        event: Event,
        brought: Brought,
        now: Timestamp,
        events: Vec<NewAuditEvent>,
    ) -> Result<Change, Refused> {
        let checked = brought.checked.as_ref().map(|checked| checked.bundle_sha256.as_str());
        let transition = life::next(self.standing()?, self.bytes(checked), event)?;
        let submission = self.submission_after(transition.to, transition.attempts, event, &brought, now);
        let attempts = self.attempts_after(transition.to, transition.attempts, &brought, &submission, now);
        let entity = self.entity_after(transition.live, &submission, now);
        Ok(Change {
            tenant: submission.tenant.clone(),
            submissions: vec![SubmissionWrite {
                expect_version: self.submission.version,
                submission,
                attempts,
            }],
            entity,
            verdict: brought.verdict,
            events,
        })
    }

    fn submission_after(
        &self,
        to: Standing,
        attempts: Attempts,
        event: Event,
        brought: &Brought,
        now: Timestamp,
    ) -> StoredSubmission {
        let mut row = self.submission.clone();
        let was = row.status;
        row.status = to.status();
        row.hold_reason = to.hold();
        row.updated = now.max(row.updated);
        row.lease = None;
        row.not_before = None;
        if attempts == Attempts::Begin {
            row.attempt += 1;
        }
        if attempts == Attempts::Begin || to != Standing::PendingInline {
            row.tries = 0;
        }
        if let Some(checked) = &brought.checked {
            row.bundle_sha256.clone_from(&checked.bundle_sha256);
            row.file_count = checked.file_count;
        }
        if let Some(review) = &brought.review
            && !review.model.is_empty()
        {
            row.review_model.clone_from(&review.model);
        }
        if let Some((actor, reason)) = &brought.overriding {
            let (actor, reason) = (actor.clone(), reason.clone());
            row.overridden = Some(Override { actor, reason, prior_status: was, time: now });
        }
        if let Some(id) = &brought.decision_id {
            row.decision_id.clone_from(id);
        }
        if let Some(revision) = &brought.policy_revision {
            row.policy_revision.clone_from(revision);
        }
        if matches!(event, Event::Purge | Event::Delete) {
            row.purged = row.purged.or(Some(now));
        }
        row
    }

    fn attempts_after(
        &self,
        to: Standing,
        what: Attempts,
        brought: &Brought,
        row: &StoredSubmission,
        now: Timestamp,
    ) -> Vec<AttemptWrite> {
        let mut present = self.attempt.clone();
        let was_open = present.ended.is_none();
        let fill = |attempt: &mut StoredAttempt| {
            if let Some(checked) = &brought.checked {
                let llm_review = attempt.checks.llm_review.take();
                attempt.checks = BundleChecks { llm_review, ..checked.checks.clone() };
                attempt.coverage.clone_from(&checked.coverage);
                attempt.capabilities.clone_from(&checked.capabilities);
                attempt.unjudged.clone_from(&checked.unjudged);
            }
            if let Some(review) = &brought.review {
                attempt.checks.llm_review = Some(review.clone());
            }
            tell_no_key(&mut attempt.unjudged, to);
            if !brought.unseen.is_empty() {
                attempt.unjudged.push(unseen(&brought.unseen));
            }
            attempt.decision_id.clone_from(&row.decision_id);
            attempt.policy_revision.clone_from(&row.policy_revision);
        };
        match what {
            Attempts::Keep if was_open => {
                fill(&mut present);
                present.status = to.status();
                present.hold_reason = to.hold();
                vec![AttemptWrite::Update(present)]
            }
            Attempts::Keep => Vec::new(),
            Attempts::End => {
                fill(&mut present);
                present.status = to.status();
                present.hold_reason = to.hold();
                present.error.clone_from(&brought.error);
                present.ended = Some(now.max(present.started));
                vec![AttemptWrite::Update(present)]
            }
            Attempts::Close => {
                present.error.clone_from(&brought.error);
                present.ended = Some(now.max(present.started));
                vec![AttemptWrite::Update(present)]
            }
            Attempts::Begin => {
                let mut new = attempt_of(row, now);
                // What the checks found stays true where only the review is done again.
                if to != Standing::PendingInline {
                    new.checks = BundleChecks { llm_review: None, ..present.checks.clone() };
                    new.coverage.clone_from(&present.coverage);
                    new.capabilities.clone_from(&present.capabilities);
                    new.unjudged.clone_from(&present.unjudged);
                }
                fill(&mut new);
                let mut writes = Vec::new();
                if was_open {
                    "superseded".clone_into(&mut present.error);
                    present.ended = Some(now.max(present.started));
                    writes.push(AttemptWrite::Update(present));
                }
                writes.push(AttemptWrite::Insert(new));
                writes
            }
        }
    }

    /// The entity after a transition of this submission; `None` when nothing of it depends on that.
    fn entity_after(&self, live: Live, row: &StoredSubmission, now: Timestamp) -> Option<EntityWrite> {
        let entity = self.entity.as_ref()?;
        let place = |row: &StoredSubmission| (row.created, row.id.clone());
        let live_now = entity.live_submission_id.as_ref();
        // A live version whose row is missing is older than anything.
        let live_place = live_now.map(|id| {
            self.siblings.iter().find(|row| row.id == *id).map_or((Timestamp::MIN, id.clone()), place)
        });
        let live_after = life::live_after(live, &place(row), live_place.as_ref()).map(|(_, id)| id);
        let mut after = entity.clone();
        if live_after.as_ref() == Some(&row.id) && live_now != Some(&row.id) {
            after.name.clone_from(&row.name);
        }
        after.live_submission_id = live_after;
        let newest = if entity.latest_submission_id == row.id {
            row.status
        } else {
            self.status_of(&entity.latest_submission_id)
        };
        after.visibility =
            life::visibility(entity.archived.is_some(), after.live_submission_id.is_some(), newest);
        // Whoever looked at the live version to leave it alone relies on it all the same.
        if after == *entity && live == Live::Keep {
            return None;
        }
        if after != *entity {
            after.updated = now.max(entity.updated);
        }
        Some(EntityWrite::Update { entity: after, expect_version: entity.version })
    }

    fn status_of(&self, id: &str) -> SubmissionStatus {
        let found = self.siblings.iter().find(|row| row.id == id);
        found.map_or(SubmissionStatus::Deleted, |row| row.status)
    }

    /// The rows once this submission is deleted: it alone, or the whole entity where it is the live version or the last
    /// one left. `attempts` are the latest attempts of all siblings.
    ///
    /// # Errors
    /// It is deleted already.
    pub(super) fn deletion(
        &self,
        attempts: &[StoredAttempt],
        now: Timestamp,
        events: Vec<NewAuditEvent>,
    ) -> Result<Change, Refused> {
        let others = || {
            let id = &self.submission.id;
            self.siblings.iter().filter(move |row| row.id != *id && row.status != SubmissionStatus::Deleted)
        };
        let is_live =
            self.entity.as_ref().is_some_and(|e| e.live_submission_id.as_ref() == Some(&self.submission.id));
        if is_live || others().next().is_none() {
            life::next(self.standing()?, self.bytes(None), Event::Delete)?;
            return deletion_of_entity(self.entity.as_ref(), &self.siblings, attempts, now, events);
        }
        let mut change = self.change(Event::Delete, deleted(), now, events)?;
        let newest = others().max_by_key(|row| (row.created, row.id.clone()));
        if let (Some(entity), Some(newest)) = (&self.entity, newest)
            && entity.latest_submission_id == self.submission.id
        {
            let mut after = entity.clone();
            after.latest_submission_id.clone_from(&newest.id);
            after.visibility = life::visibility(
                entity.archived.is_some(),
                entity.live_submission_id.is_some(),
                newest.status,
            );
            after.updated = now.max(entity.updated);
            change.entity = Some(EntityWrite::Update { entity: after, expect_version: entity.version });
        }
        Ok(change)
    }
}

/// Lists the review among what could not be judged for as long as no model has a key, and no longer.
pub(super) fn tell_no_key(unjudged: &mut Vec<Unjudged>, standing: Standing) {
    unjudged.retain(|check| &*check.plugin != REVIEW);
    if standing == Standing::HeldNoKey {
        unjudged.push(Unjudged {
            plugin: REVIEW.into(),
            reason: Reason::Unavailable,
            detail:
                "No model has a key to review it with: it is held until an administrator decides, or the \
                     service starts with one."
                    .to_owned(),
            fail_mode: FailMode::Ask,
            shadow: false,
        });
    }
}

/// That a model did not see everything: told, and no reason to hold what was scanned by other means.
fn unseen(detail: &str) -> Unjudged {
    Unjudged {
        plugin: REVIEW.into(),
        reason: Reason::Limit,
        detail: detail.to_owned(),
        fail_mode: FailMode::Open,
        shadow: false,
    }
}

/// What a deletion leaves on an attempt that had not ended.
fn deleted() -> Brought {
    Brought { error: "deleted".to_owned(), ..Brought::default() }
}

/// The rows once an entity is deleted: no entity, tombstones of its submissions.
///
/// # Errors
/// A row says something that no release writes.
pub(super) fn deletion_of_entity(
    entity: Option<&StoredEntity>,
    siblings: &[StoredSubmission],
    attempts: &[StoredAttempt],
    now: Timestamp,
    events: Vec<NewAuditEvent>,
) -> Result<Change, Refused> {
    let mut change = Change { events, ..Change::default() };
    for submission in siblings.iter().filter(|row| row.status != SubmissionStatus::Deleted) {
        let latest = attempts.iter().filter(|attempt| attempt.submission_id == submission.id);
        let attempt = latest.max_by_key(|attempt| attempt.number).cloned();
        let ground = Ground {
            submission: submission.clone(),
            // A submission without an attempt has none to end.
            attempt: attempt
                .unwrap_or_else(|| StoredAttempt { ended: Some(now), ..attempt_of(submission, now) }),
            entity: None,
            siblings: Vec::new(),
        };
        let one = ground.change(Event::Delete, deleted(), now, Vec::new())?;
        change.tenant = one.tenant;
        change.submissions.extend(one.submissions);
    }
    if let Some(entity) = entity {
        change.tenant.clone_from(&entity.tenant);
        change.entity = Some(EntityWrite::Delete { id: entity.id.clone(), expect_version: entity.version });
    }
    Ok(change)
}
