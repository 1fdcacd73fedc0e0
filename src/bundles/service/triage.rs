//! Looking at submissions and deciding about them.

use std::collections::HashMap;

use uuid::Uuid;

use super::change::{Brought, Ground};
use super::record::{self, Action, Record};
use super::step::Landed;
use super::{
    Actor, Attempt, Details, RACES_MAX, Reviewing, Submission, SubmissionError, SubmissionList, Submissions,
    TimelineEvent,
};
use crate::bundles::life::{Event, Refused, Standing};
use crate::bundles::lines::is_invisible;
use crate::bundles::worker;
use crate::decision::{HoldReason, SubmissionStatus};
use crate::store::{
    AuditPage, AuditQuery, Change, ChecksBrief, EntityWrite, Lease, ListedSubmission, NewAuditEvent,
    StoredAttempt, StoredSubmission, SubmissionQuery,
};
use crate::telemetry::SubmissionMoved;

/// Fewest characters of a reason that can be seen.
const REASON_CHARS_MIN: usize = 4;
/// Longest reason, in bytes.
const REASON_BYTES_MAX: usize = 4_096;

impl Submissions {
    /// One submission as it stands now.
    ///
    /// # Errors
    /// There is none that the caller may see, or the store failed.
    pub async fn get(&self, actor: &Actor, id: &str, details: bool) -> Result<Submission, SubmissionError> {
        let row = self.visible(actor, id).await?;
        let entity = self.store().entity(actor.tenant.clone(), row.entity_id.clone()).await?;
        let listed = ListedSubmission {
            visibility: entity.as_ref().map(|entity| entity.visibility),
            is_live: entity.is_some_and(|entity| entity.live_submission_id.as_ref() == Some(&row.id)),
            submission: row,
        };
        let mut all = vec![Submission::of(listed)];
        if details {
            self.fill(actor, &mut all).await?;
        }
        all.pop().ok_or_else(|| not_found(id))
    }

    /// One page of submissions. Tenant and viewer of the query are those of the caller, whatever it says.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(
        &self,
        actor: &Actor,
        mut query: SubmissionQuery,
        details: bool,
    ) -> Result<SubmissionList, SubmissionError> {
        query.tenant.clone_from(&actor.tenant);
        query.filter.viewer = (!actor.sees_all()).then(|| actor.name.clone());
        let page = self.store().submissions(query).await?;
        let mut submissions: Vec<Submission> = page.submissions.into_iter().map(Submission::of).collect();
        if details {
            self.fill(actor, &mut submissions).await?;
        }
        Ok(SubmissionList { submissions, next: page.next, total: page.total })
    }

    /// What a list shows of the checks of submissions that were listed for the caller.
    ///
    /// # Errors
    /// The store failed.
    pub async fn briefs(
        &self,
        actor: &Actor,
        ids: Vec<String>,
    ) -> Result<HashMap<String, ChecksBrief>, SubmissionError> {
        Ok(self.store().briefs(actor.tenant.clone(), ids).await?)
    }

    /// Adds the details.
    pub(super) async fn fill(
        &self,
        actor: &Actor,
        submissions: &mut [Submission],
    ) -> Result<(), SubmissionError> {
        let ids: Vec<String> = submissions.iter().map(|submission| submission.id.clone()).collect();
        let attempts = self.store().attempts(actor.tenant.clone(), ids).await?;
        for submission in submissions {
            let own: Vec<&StoredAttempt> =
                attempts.iter().filter(|attempt| attempt.submission_id == submission.id).collect();
            let mut details = Details::default();
            if let Some(latest) = own.last() {
                details.checks.clone_from(&latest.checks);
                details.coverage.clone_from(&latest.coverage);
                details.capabilities.clone_from(&latest.capabilities);
                details.unjudged.clone_from(&latest.unjudged);
            }
            details.attempts = own.into_iter().cloned().map(Attempt::from).collect();
            let about = vec![record::submission(&submission.id), record::entity(&submission.entity_id)];
            let events = self.parts().audit.audit_events_of(actor.tenant.clone(), about).await?;
            let happened = |event: NewAuditEvent| TimelineEvent {
                detail: record::sentence(&event),
                time: event.time,
                action: event.action,
                actor: event.actor,
            };
            // What became of the entity before this version of it is not its affair.
            let events = events.into_iter().filter(|event| event.time >= submission.created);
            details.timeline = events.map(happened).collect();
            submission.details = Some(details);
        }
        Ok(())
    }

    /// Publishes a submission against its verdict.
    ///
    /// # Errors
    /// The caller is no administrator, the reason is too short, the submission does not allow it, or a race was lost.
    pub async fn publish(
        &self,
        actor: &Actor,
        id: &str,
        reason: &str,
    ) -> Result<Submission, SubmissionError> {
        admin(actor)?;
        let reason = reason.trim();
        if reason.chars().filter(|c| is_seen(*c)).count() < REASON_CHARS_MIN {
            let message = format!("must have at least {REASON_CHARS_MIN} characters that can be seen");
            return Err(SubmissionError::Invalid { field: "reason", message });
        }
        let reason = self.kept_reason(reason)?;
        let brought = Brought {
            overriding: Some((actor.name.clone(), reason.clone())),
            error: "overridden".to_owned(),
            decision_id: Some(Uuid::now_v7().to_string()),
            policy_revision: Some(self.parts().inspect.revision()),
            ..Brought::default()
        };
        let ground = self.known(actor, id).await?;
        let action = (Event::Override, Action::Overridden, "overridden");
        self.decide(actor, &ground, action, brought, &reason, None).await?;
        self.get(actor, id, true).await
    }

    /// Runs all checks again, as a new attempt. Once it is answered, the inline checks are done.
    ///
    /// # Errors
    /// The caller is no administrator, the submission does not allow it, or a race was lost. [`SubmissionError::Unchecked`]:
    /// the attempt has begun, and a worker goes on with it.
    pub async fn rescan(&self, actor: &Actor, id: &str) -> Result<Submission, SubmissionError> {
        let row = self.begin_rescan(actor, id).await?;
        // The caller may go away; the checks go on.
        let this = self.clone();
        let checking = tokio::spawn(async move {
            let owner = row.lease.as_ref().map_or("", |lease| lease.owner.as_str());
            tokio::select! {
                landed = this.recheck(&row) => landed,
                // A worker has it now, and does the same.
                () = worker::lease_lost(&this, &row, owner) => Ok(Landed::Skipped),
            }
        });
        match checking.await {
            Ok(Ok(Landed::Done(_) | Landed::Skipped)) => self.get(actor, id, true).await,
            Ok(Err(error)) => Err(error),
            Err(_) => Err(SubmissionError::Unchecked("a check broke off".to_owned())),
        }
    }

    /// Begins a new attempt, and holds it by a lease. Whoever crashes from here on leaves a lease that runs out, and a
    /// worker goes on.
    pub(super) async fn begin_rescan(
        &self,
        actor: &Actor,
        id: &str,
    ) -> Result<StoredSubmission, SubmissionError> {
        admin(actor)?;
        let ground = self.known(actor, id).await?;
        let lease =
            Lease { owner: format!("rescan-{}", Uuid::new_v4().simple()), until: self.lease_end(self.now()) };
        let brought = Brought {
            decision_id: Some(Uuid::now_v7().to_string()),
            policy_revision: Some(self.parts().inspect.revision()),
            ..Brought::default()
        };
        let action = (Event::Rescan, Action::Rescan, "rescanned");
        self.decide(actor, &ground, action, brought, "", Some(lease)).await
    }

    /// Has a model review it again, as a new attempt.
    ///
    /// # Errors
    /// The caller is no administrator, review is switched off, the submission does not allow it, or a race was lost.
    pub async fn retry(&self, actor: &Actor, id: &str) -> Result<Submission, SubmissionError> {
        admin(actor)?;
        let ground = self.known(actor, id).await?;
        // Without a model nothing is approved that a model did not pass; a rescan follows the settings instead.
        let event = match (self.reviewing(), self.parts().guardrails.enabled) {
            (Reviewing::Ready, _) => Event::Retry,
            (_, true) => Event::RetryHeld,
            (_, false) => {
                return Err(not_allowed(
                    &ground.submission,
                    "retried",
                    "review by a model is switched off (guardrails.enabled); rescan it instead",
                ));
            }
        };
        let brought = Brought {
            decision_id: Some(Uuid::now_v7().to_string()),
            policy_revision: Some(self.parts().inspect.revision()),
            ..Brought::default()
        };
        self.decide(actor, &ground, (event, Action::Retry, "retried"), brought, "", None).await?;
        self.get(actor, id, true).await
    }

    /// Deletes a submission for good; where it is the live version or the last one left, its entity with all of them.
    ///
    /// # Errors
    /// The caller is no administrator, it is deleted already, or a race was lost.
    pub async fn delete(&self, actor: &Actor, id: &str, reason: &str) -> Result<Submission, SubmissionError> {
        admin(actor)?;
        let reason = self.kept_reason(reason)?;
        let ground = self.known(actor, id).await?;
        let now = self.now();
        let siblings: Vec<String> = ground.siblings.iter().map(|row| row.id.clone()).collect();
        let attempts = self.store().attempts(actor.tenant.clone(), siblings).await?;
        let mut change = ground
            .deletion(&attempts, now, Vec::new())
            .map_err(|_| not_allowed(&ground.submission, "deleted", "it is deleted already"))?;
        change.events = self.events_of_deletion(actor, &change, &ground.siblings, &reason);
        self.remove(change, ("submission", id)).await?;
        self.get(actor, id, true).await
    }

    /// A reason as it is kept for ever, in rows and in audit events: without the credentials and personal data that whoever
    /// typed it may have put in.
    ///
    /// # Errors
    /// It is too long.
    pub(super) fn kept_reason(&self, reason: &str) -> Result<String, SubmissionError> {
        if reason.len() > REASON_BYTES_MAX {
            let message = format!("must have at most {REASON_BYTES_MAX} bytes");
            return Err(SubmissionError::Invalid { field: "reason", message });
        }
        Ok(self.masked(reason.trim()))
    }

    /// Writes a deletion, then removes the bytes; answers the ids of the tombstones, oldest first.
    pub(super) async fn remove(
        &self,
        change: Change,
        (what, id): (&'static str, &str),
    ) -> Result<Vec<String>, SubmissionError> {
        let mut gone: Vec<StoredSubmission> =
            change.submissions.iter().map(|write| write.submission.clone()).collect();
        gone.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        if !self.store().apply(change).await? {
            return Err(SubmissionError::LostRace { what, id: id.to_owned() });
        }
        for row in &gone {
            SubmissionMoved { status: SubmissionStatus::Deleted }.emit(&self.parts().metrics);
            self.drop_bytes(&row.id).await;
            self.tell(&row.entity_id);
        }
        Ok(gone.into_iter().map(|row| row.id).collect())
    }

    /// One event for each tombstone, and one for the entity if it goes too.
    pub(super) fn events_of_deletion(
        &self,
        actor: &Actor,
        change: &Change,
        before: &[StoredSubmission],
        reason: &str,
    ) -> Vec<NewAuditEvent> {
        let now = self.now();
        let mut events = Vec::new();
        if let Some(EntityWrite::Delete { id, .. }) = &change.entity {
            let record = Record::by(Action::EntityDeleted, actor, record::entity(id), now).reason(reason);
            events.push(record.with("submissions", change.submissions.len()).finish());
        }
        for write in &change.submissions {
            let row = &write.submission;
            let prior = before.iter().find(|old| old.id == row.id).map_or("", |old| old.status.as_str());
            let resource = record::submission(&row.id);
            let record = Record::by(Action::Deleted, actor, resource, now).reason(reason).bundle(row);
            events.push(record.with("prior_status", prior).finish());
        }
        events
    }

    /// One page of audit events of the caller's tenant. Whether the caller may see them is for whoever took the call.
    ///
    /// # Errors
    /// The store failed.
    pub async fn audit_events(
        &self,
        actor: &Actor,
        mut query: AuditQuery,
    ) -> Result<AuditPage, SubmissionError> {
        query.tenant.clone_from(&actor.tenant);
        Ok(self.parts().audit.audit_events(query).await?)
    }

    /// One transition that an administrator asked for; answers the row as it was written.
    async fn decide(
        &self,
        actor: &Actor,
        ground: &Ground,
        (event, action, participle): (Event, Action, &'static str),
        brought: Brought,
        reason: &str,
        lease: Option<Lease>,
    ) -> Result<StoredSubmission, SubmissionError> {
        let first = ground.submission.clone();
        let mut ground = ground.clone();
        for _ in 0..RACES_MAX {
            let now = self.now();
            let before = &ground.submission;
            let mut change = ground
                .change(event, brought.clone(), now, Vec::new())
                .map_err(|refused| refusal(refused, before, participle))?;
            let write = &mut change.submissions[0];
            if let Some(lease) = &lease {
                write.submission.lease = Some(lease.clone());
                write.submission.tries = 1;
            }
            let mut after = write.submission.clone();
            after.version = write.expect_version + 1;
            let mut record = Record::by(action, actor, record::submission(&after.id), now)
                .reason(reason)
                .decided(&after.decision_id, &after.policy_revision)
                .bundle(&after)
                .with("prior_status", before.status.as_str());
            if before.hold_reason != HoldReason::None {
                record = record.with("prior_hold_reason", before.hold_reason.as_str());
            }
            if after.hold_reason != HoldReason::None {
                record = record.with("hold_reason", after.hold_reason.as_str());
            }
            change.events = vec![record.finish()];
            if self.store().apply(change).await? {
                if after.status != before.status {
                    SubmissionMoved { status: after.status }.emit(&self.parts().metrics);
                }
                self.tell(&after.entity_id);
                return Ok(after);
            }
            // That the entity moved on, or that a worker took it, is no reason to refuse; that it changed is one.
            ground = self.known(actor, &first.id).await?;
            if !is_unchanged(&first, &ground.submission) {
                break;
            }
        }
        Err(SubmissionError::LostRace { what: "submission", id: first.id })
    }

    /// The submission with everything around it, for an administrator.
    async fn known(&self, actor: &Actor, id: &str) -> Result<Ground, SubmissionError> {
        check_id(id, "submission_id")?;
        self.ground(&actor.tenant, id).await?.ok_or_else(|| not_found(id))
    }

    /// The row, if the caller may see it.
    pub(super) async fn visible(&self, actor: &Actor, id: &str) -> Result<StoredSubmission, SubmissionError> {
        check_id(id, "submission_id")?;
        let found = self.store().submission(actor.tenant.clone(), id.to_owned()).await?;
        found.filter(|row| actor.sees_all() || row.submitter == actor.name).ok_or_else(|| not_found(id))
    }
}

/// Whether somebody who looks at a submission sees no difference.
fn is_unchanged(before: &StoredSubmission, after: &StoredSubmission) -> bool {
    let seen = |row: &StoredSubmission| (row.status, row.hold_reason, row.attempt, row.updated, row.purged);
    seen(before) == seen(after)
}

/// Refuses a caller who is no administrator.
pub(super) fn admin(actor: &Actor) -> Result<(), SubmissionError> {
    if actor.is_admin { Ok(()) } else { Err(SubmissionError::PermissionDenied { needs: "the admin role" }) }
}

/// Refuses an empty id.
pub(super) fn check_id(id: &str, field: &'static str) -> Result<(), SubmissionError> {
    if id.is_empty() {
        return Err(SubmissionError::Invalid { field, message: "must not be empty".to_owned() });
    }
    Ok(())
}

fn not_found(id: &str) -> SubmissionError {
    SubmissionError::NotFound { what: "submission", id: id.to_owned() }
}

fn not_allowed(row: &StoredSubmission, action: &'static str, advice: &'static str) -> SubmissionError {
    SubmissionError::NotAllowed { action, found: row.status, hold: row.hold_reason, advice }
}

fn refusal(refused: Refused, row: &StoredSubmission, action: &'static str) -> SubmissionError {
    match refused {
        Refused::Purged => SubmissionError::Purged { id: row.id.clone() },
        Refused::Unopened => SubmissionError::Unopened { id: row.id.clone(), action },
        Refused::Illegal => not_allowed(row, action, advice(row.status, row.hold_reason, action)),
    }
}

/// What would be allowed instead.
pub(super) fn advice(status: SubmissionStatus, hold: HoldReason, action: &str) -> &'static str {
    match (Standing::of(status, hold), action) {
        (Some(Standing::Deleted), _) | (None, _) => "upload it again",
        (Some(Standing::PendingInline), _) => "its checks are running; wait for their end",
        (Some(Standing::Queued), _) => "its review is running; wait for its verdict, or rescan it",
        (Some(Standing::Approved | Standing::Overridden), "overridden") => "it is published already",
        (_, "retried") => {
            "only review errors, submissions blocked by a review, and those held for want of a key are; \
                          rescan it instead"
        }
        _ => "look at how it stands",
    }
}

/// Whether a character leaves ink: a reason of blanks is none.
fn is_seen(c: char) -> bool {
    !c.is_whitespace()
        && !c.is_control()
        && !is_invisible(c)
        // Letters that are drawn as nothing: fillers of Hangul, and the blank of Braille.
        && !matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}')
}
