//! An upload from its file to its row: checked, kept, written in one transaction, answered.

use std::sync::Arc;
use std::time::Instant;

use jiff::SignedDuration;
use uuid::Uuid;

use super::change::{Checked, tell_no_key};
use super::record::{self, Action, Record};
use super::types::attempt_of;
use super::{
    Actor, Asked, RACES_MAX, Reviewed, Reviewing, SubmissionError, Submissions, Upload, decision_of,
};
use crate::bundles::archive::FileSource;
use crate::bundles::life::{self, Bytes, Event, Live, Standing};
use crate::bundles::{InlineVerdict, Inspection};
use crate::decision::{BundleKind, CheckStatus, LlmReview, SubmissionStatus};
use crate::store::{AcceptError, AcceptedEntity, NewSubmission, Quota, StoredEntity, StoredSubmission};
use crate::telemetry::{ReviewStage, ReviewStageRan, SubmissionMoved};

/// The span over which blocked uploads are counted.
const QUOTA_SPAN: SignedDuration = SignedDuration::from_hours(24);
/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 200;
/// Longest version, in characters.
const VERSION_CHARS_MAX: usize = 200;
/// Longest description that is kept, in characters: four times what a manifest may have.
const DESCRIPTION_CHARS_MAX: usize = 4_096;
/// Longest submitter, in bytes.
const SUBMITTER_BYTES_MAX: usize = 256;
/// Name of a bundle that has none.
const NAMELESS: &str = "unnamed";

impl Submissions {
    /// Refuses what [`Submissions::submit`] would refuse whatever the bytes are, before they are uploaded.
    ///
    /// # Errors
    /// The name or the submitter is wrong, the entity is none of the submitter's, or its quota is used up.
    pub async fn admit(
        &self,
        actor: &Actor,
        submitter: &str,
        name: &str,
        kind: BundleKind,
        entity_id: Option<&str>,
        dry_run: bool,
    ) -> Result<(), SubmissionError> {
        if name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
            let message =
                format!("must have at most {NAME_CHARS_MAX} characters, none of them a control character");
            return Err(SubmissionError::Invalid { field: "header.name", message });
        }
        if submitter.len() > SUBMITTER_BYTES_MAX || submitter.chars().any(char::is_control) {
            let message = format!("must have at most {SUBMITTER_BYTES_MAX} bytes and no control character");
            return Err(SubmissionError::Invalid { field: "header.submitter", message });
        }
        self.own_entity(actor, submitter, kind, entity_id).await?;
        if dry_run {
            return Ok(());
        }
        let Some(Quota { limit, since }) = self.quota(actor) else { return Ok(()) };
        let found = self.store().blocked_since(actor.tenant.clone(), submitter.to_owned(), since).await?;
        if found >= limit {
            return Err(SubmissionError::QuotaExceeded { submitter: submitter.to_owned(), limit, found });
        }
        Ok(())
    }

    /// Checks an upload and, unless it is a dry run, keeps it: what was answered is on the disk.
    ///
    /// # Errors
    /// As [`Submissions::admit`]; the checks could not run; or the store failed. Nothing is then kept.
    pub async fn submit(&self, actor: &Actor, upload: Upload) -> Result<Reviewed, SubmissionError> {
        let entity_id = upload.entity_id.as_deref();
        self.admit(actor, &upload.submitter, &upload.name, upload.kind, entity_id, upload.dry_run).await?;
        let source =
            upload.spooled.source().map_err(|error| SubmissionError::Unchecked(error.to_string()))?;
        let asked = self.asked(&upload.policy, &actor.tenant);
        let (mut inspection, revision) = self.inspect(source, upload.kind, asked).await?;
        let would_block = std::mem::take(&mut inspection.would_block);
        let event = self.after_check(&inspection);
        // The first attempt begins and goes through its checks in one step.
        let bytes = Bytes::of(false, &inspection.bundle_sha256);
        let transition = life::next(Standing::PendingInline, bytes, event)
            .map_err(|_| SubmissionError::Unchecked("the life cycle has no such step".to_owned()))?;
        let (checked, manifest) = checked(inspection);
        let id = if upload.dry_run { String::new() } else { Uuid::now_v7().to_string() };
        let now = self.now();
        let name = [upload.name.trim(), manifest.name.trim()].into_iter().find(|name| !name.is_empty());
        let submission = StoredSubmission {
            id,
            entity_id: upload.entity_id.clone().unwrap_or_default(),
            tenant: actor.tenant.clone(),
            kind: upload.kind,
            name: plain(name.unwrap_or(NAMELESS), NAME_CHARS_MAX),
            version_text: plain(&manifest.version, VERSION_CHARS_MAX),
            description: plain(&manifest.description, DESCRIPTION_CHARS_MAX),
            submitter: upload.submitter.clone(),
            status: transition.to.status(),
            hold_reason: transition.to.hold(),
            attempt: 1,
            decision_id: upload.decision_id.clone(),
            policy: upload.policy.clone(),
            policy_revision: revision,
            bundle_sha256: checked.bundle_sha256.clone(),
            file_size: upload.spooled.size(),
            file_count: checked.file_count,
            created: now,
            updated: now,
            purged: None,
            review_model: String::new(),
            overridden: None,
            tries: 0,
            lease: None,
            not_before: None,
            version: 1,
        };
        let mut checked = checked;
        tell_no_key(&mut checked.unjudged, transition.to);
        if event == Event::CheckPassed {
            checked.checks.llm_review = Some(self.not_reviewed());
        }
        if upload.dry_run {
            let entity = self.own_entity(actor, &upload.submitter, upload.kind, entity_id).await?;
            let visibility = match entity {
                Some(entity) => entity.visibility,
                None => life::visibility(false, transition.live == Live::Raise, submission.status),
            };
            return Ok(Reviewed { would_block, ..reviewed(&submission, visibility, checked) });
        }
        let bytes = &self.parts().bytes;
        let kept = bytes.put_file(submission.id.clone(), upload.spooled.path().to_owned()).await;
        kept.map_err(|error| SubmissionError::Bytes(error.to_string()))?;
        match self.accept(actor, &upload, submission, &checked, transition.live).await {
            Ok(reviewed) => Ok(Reviewed { would_block, ..reviewed }),
            Err((id, error)) => {
                // After an error of the store it is not known whether the row was written; the sweep knows.
                if !matches!(error, SubmissionError::Store(_)) {
                    self.drop_bytes(&id).await;
                }
                Err(error)
            }
        }
    }

    /// Writes the row, once the bytes are kept.
    async fn accept(
        &self,
        actor: &Actor,
        upload: &Upload,
        mut submission: StoredSubmission,
        checked: &Checked,
        live: Live,
    ) -> Result<Reviewed, (String, SubmissionError)> {
        let id = submission.id.clone();
        // Counted again where it is written, and for every upload: of many that came at once, none is taken after the one
        // that used the quota up, whatever its own verdict is.
        let quota = self.quota(actor);
        for _ in 0..RACES_MAX {
            let existing = self
                .own_entity(actor, &upload.submitter, upload.kind, upload.entity_id.as_deref())
                .await
                .map_err(|error| (id.clone(), error))?;
            let (entity, accepted) = entity_of(existing, &submission, live);
            submission.entity_id.clone_from(&entity.id);
            let mut attempt = attempt_of(&submission, submission.created);
            attempt.checks = checked.checks.clone();
            attempt.coverage.clone_from(&checked.coverage);
            attempt.capabilities.clone_from(&checked.capabilities);
            attempt.unjudged.clone_from(&checked.unjudged);
            let waits = Standing::of(submission.status, submission.hold_reason)
                .is_some_and(|standing| standing.status() == SubmissionStatus::PendingLlm);
            attempt.ended = (!waits).then_some(submission.created);
            let new = NewSubmission {
                entity: accepted,
                submission: submission.clone(),
                attempt,
                quota,
                events: self.events_of_upload(actor, &submission, checked),
            };
            match self.store().accept(new).await {
                Ok(()) => {
                    SubmissionMoved { status: submission.status }.emit(&self.parts().metrics);
                    self.tell(&entity.id);
                    return Ok(reviewed(&submission, entity.visibility, checked.clone()));
                }
                Err(AcceptError::LostRace) => {}
                Err(AcceptError::EntityGone) => {
                    let what = "entity";
                    return Err((id, SubmissionError::NotFound { what, id: submission.entity_id }));
                }
                Err(AcceptError::QuotaExceeded { found, limit }) => {
                    let submitter = submission.submitter;
                    return Err((id, SubmissionError::QuotaExceeded { submitter, limit, found }));
                }
                Err(AcceptError::Store(error)) => return Err((id, error.into())),
            }
        }
        Err((id, SubmissionError::LostRace { what: "entity", id: submission.entity_id }))
    }

    fn events_of_upload(
        &self,
        actor: &Actor,
        submission: &StoredSubmission,
        checked: &Checked,
    ) -> Vec<crate::store::NewAuditEvent> {
        let time = submission.created;
        let resource = record::submission(&submission.id);
        let about = |record: Record| {
            let decided = record.decided(&submission.decision_id, &submission.policy_revision);
            decided.bundle(submission).with("entity_id", submission.entity_id.as_str())
        };
        if submission.status == SubmissionStatus::BlockedInline {
            let blocked = Record::by(Action::BlockedInline, actor, resource, time);
            return vec![about(blocked).rules(&checked.checks).finish()];
        }
        let mut accepted = about(Record::by(Action::Accepted, actor, resource.clone(), time));
        if submission.hold_reason != crate::decision::HoldReason::None {
            accepted = accepted.with("hold_reason", submission.hold_reason.as_str());
        }
        let mut events = vec![accepted.finish()];
        if submission.status == SubmissionStatus::Approved {
            let approved = Record::by_system(Action::Approved, &actor.tenant, resource, time);
            events.push(about(approved).with("review", "skipped").finish());
        }
        events
    }

    /// The inline checks of a file, off the workers that answer calls, a few at once.
    pub(super) async fn inspect(
        &self,
        source: FileSource,
        kind: BundleKind,
        asked: Asked,
    ) -> Result<(Inspection, String), SubmissionError> {
        let gone = |_| SubmissionError::Unchecked("the service is stopping".to_owned());
        let place = Arc::clone(&self.0.checks).acquire_owned().await.map_err(gone)?;
        let inspect = Arc::clone(&self.parts().inspect);
        let started = Instant::now();
        let done = self.0.checkers.run(place, move || inspect.inspect(&source, kind, &asked)).await;
        // A panic is in the log already; silence must not be taken for safety.
        let done = done.ok_or_else(|| SubmissionError::Unchecked("a check broke off".to_owned()))?;
        ReviewStageRan { stage: ReviewStage::Inline, elapsed: started.elapsed() }.emit(&self.parts().metrics);
        done.map_err(SubmissionError::NotServing)
    }

    /// How checks are asked for now.
    pub(super) fn asked(&self, policy: &str, tenant: &str) -> Asked {
        Asked { policy: policy.to_owned(), tenant: tenant.to_owned(), now: self.now() }
    }

    /// What follows from the inline checks.
    pub(super) fn after_check(&self, inspection: &Inspection) -> Event {
        match inspection.verdict() {
            InlineVerdict::Blocked => return Event::CheckBlocked,
            InlineVerdict::Held => return Event::CheckHeldCoverage,
            InlineVerdict::Passed => {}
        }
        match self.reviewing() {
            Reviewing::Ready => Event::CheckQueued,
            Reviewing::Off => Event::CheckPassed,
            Reviewing::NoKey => Event::CheckHeldNoKey,
        }
    }

    /// The review of what is approved without one.
    pub(super) fn not_reviewed(&self) -> LlmReview {
        let reason = if self.parts().guardrails.enabled {
            "No model has a key, and guardrails.without_key is approve: approved without a review."
        } else {
            "Review by a model is switched off (guardrails.enabled): approved without a review."
        };
        LlmReview { status: CheckStatus::Skipped, reason: reason.to_owned(), ..LlmReview::default() }
    }

    /// The limit on blocked uploads; `None` when there is none.
    fn quota(&self, actor: &Actor) -> Option<Quota> {
        let of_all = self.parts().guardrails.blocked_quota_per_day;
        let limit = actor.blocked_quota_per_day.unwrap_or(of_all) as u64;
        let since = self.now().checked_sub(QUOTA_SPAN).ok()?;
        (limit > 0).then_some(Quota { limit, since })
    }

    /// The existing entity that an upload is a new version of; `None` when it is the first of a new one.
    async fn own_entity(
        &self,
        actor: &Actor,
        submitter: &str,
        kind: BundleKind,
        id: Option<&str>,
    ) -> Result<Option<StoredEntity>, SubmissionError> {
        let Some(id) = id else { return Ok(None) };
        let found = self.store().entity(actor.tenant.clone(), id.to_owned()).await?;
        let own = found.filter(|entity| entity.owner == submitter);
        let own = own.ok_or_else(|| SubmissionError::NotFound { what: "entity", id: id.to_owned() })?;
        if own.kind != kind {
            let message = format!("is {kind}, and the entity it is a new version of is {}", own.kind);
            return Err(SubmissionError::Invalid { field: "header.kind", message });
        }
        Ok(Some(own))
    }
}

/// The entity once it has this submission, and how it is written.
fn entity_of(
    existing: Option<StoredEntity>,
    submission: &StoredSubmission,
    live: Live,
) -> (StoredEntity, AcceptedEntity) {
    let goes_live = live == Live::Raise;
    let latest_submission_id = submission.id.clone();
    match existing {
        Some(before) => {
            let mut entity = before.clone();
            entity.latest_submission_id = latest_submission_id;
            if goes_live {
                entity.live_submission_id = Some(submission.id.clone());
                entity.name.clone_from(&submission.name);
            }
            let (is_archived, has_live) = (entity.archived.is_some(), entity.live_submission_id.is_some());
            entity.visibility = life::visibility(is_archived, has_live, submission.status);
            entity.updated = submission.created.max(before.updated);
            let accepted =
                AcceptedEntity::Existing { entity: entity.clone(), expect_version: before.version };
            (entity, accepted)
        }
        None => {
            let entity = StoredEntity {
                id: Uuid::now_v7().to_string(),
                tenant: submission.tenant.clone(),
                kind: submission.kind,
                name: submission.name.clone(),
                owner: submission.submitter.clone(),
                visibility: life::visibility(false, goes_live, submission.status),
                live_submission_id: goes_live.then(|| submission.id.clone()),
                latest_submission_id,
                created: submission.created,
                updated: submission.created,
                archived: None,
                archived_by: String::new(),
                version: 1,
            };
            (entity.clone(), AcceptedEntity::New(entity))
        }
    }
}

/// What an inspection leaves for the row, and what the manifest says.
pub(super) fn checked(inspection: Inspection) -> (Checked, crate::bundles::Manifest) {
    let checked = Checked {
        checks: inspection.checks,
        coverage: inspection.coverage,
        capabilities: inspection.capabilities,
        unjudged: inspection.unjudged,
        bundle_sha256: inspection.bundle_sha256,
        file_count: inspection.file_count,
    };
    (checked, inspection.manifest)
}

fn reviewed(
    submission: &StoredSubmission,
    visibility: crate::decision::Visibility,
    checked: Checked,
) -> Reviewed {
    Reviewed {
        submission_id: submission.id.clone(),
        entity_id: submission.entity_id.clone(),
        name: submission.name.clone(),
        status: submission.status,
        hold_reason: submission.hold_reason,
        visibility,
        checks: checked.checks,
        bundle_sha256: submission.bundle_sha256.clone(),
        file_size: submission.file_size,
        file_count: submission.file_count,
        coverage: checked.coverage,
        capabilities: checked.capabilities,
        unjudged: checked.unjudged,
        would_block: Vec::new(),
        decision: decision_of(submission.status),
        decision_id: submission.decision_id.clone(),
        policy_revision: submission.policy_revision.clone(),
    }
}

/// A text of a stranger without control characters, shortened.
fn plain(text: &str, chars_max: usize) -> String {
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(chars_max).collect()
}
