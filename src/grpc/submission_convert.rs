//! Submissions and entities on the wire, and their errors as statuses.

use super::RequestError;
use super::bundle_convert::{capability, checks, coverage, hold_reason, kind, status, visibility};
use super::convert::{decision, timestamp, unjudged};
use crate::bundles::service::{
    Attempt, Details, Entity, Overridden, Reviewed, Submission, SubmissionError, TimelineEvent,
};
use crate::pb::v1;

/// The answer to an upload.
pub(crate) fn reviewed(of: Reviewed) -> v1::ReviewBundleResponse {
    v1::ReviewBundleResponse {
        submission_id: of.submission_id,
        entity_id: of.entity_id,
        status: status(of.status).into(),
        visibility: visibility(of.visibility).into(),
        checks: Some(checks(of.checks)),
        bundle_sha256: of.bundle_sha256,
        file_size: of.file_size,
        file_count: of.file_count,
        decision_id: of.decision_id,
        policy_revision: of.policy_revision,
        decision: decision(of.decision).into(),
        coverage: of.coverage.into_iter().map(coverage).collect(),
        capabilities: of.capabilities.into_iter().map(capability).collect(),
        unjudged: of.unjudged.into_iter().map(unjudged).collect(),
        hold_reason: hold_reason(of.hold_reason).into(),
    }
}

/// The kind of a bundle, for a request.
pub(crate) fn wire_kind(of: crate::decision::BundleKind) -> v1::BundleKind {
    kind(of)
}

/// A submission on the wire.
pub(super) fn submission(of: Submission) -> v1::Submission {
    let has_details = of.details.is_some();
    let Details { checks: all, coverage: covered, capabilities, unjudged: gaps, attempts, timeline } =
        of.details.unwrap_or_default();
    v1::Submission {
        id: of.id,
        entity_id: of.entity_id,
        kind: kind(of.kind).into(),
        name: of.name,
        version: of.version,
        description: of.description,
        submitter: of.submitter,
        tenant: of.tenant,
        status: status(of.status).into(),
        hold_reason: hold_reason(of.hold_reason).into(),
        visibility: of.visibility.map(visibility).unwrap_or_default().into(),
        live: of.is_live,
        decision: decision(of.decision).into(),
        decision_id: of.decision_id,
        policy_revision: of.policy_revision,
        bundle_sha256: of.bundle_sha256,
        file_size: of.file_size,
        file_count: of.file_count,
        create_time: Some(timestamp(of.created)),
        update_time: Some(timestamp(of.updated)),
        bundle_purge_time: of.purged.map(timestamp),
        review_model: of.review_model,
        checks: has_details.then(|| checks(all)),
        coverage: covered.into_iter().map(coverage).collect(),
        capabilities: capabilities.into_iter().map(capability).collect(),
        unjudged: gaps.into_iter().map(unjudged).collect(),
        attempts: attempts.into_iter().map(attempt).collect(),
        r#override: of.overridden.map(overridden),
        timeline: timeline.into_iter().map(event).collect(),
    }
}

fn attempt(of: Attempt) -> v1::SubmissionAttempt {
    v1::SubmissionAttempt {
        number: of.number,
        status: status(of.status).into(),
        hold_reason: hold_reason(of.hold_reason).into(),
        checks: Some(checks(of.checks)),
        error: of.error,
        decision_id: of.decision_id,
        policy_revision: of.policy_revision,
        start_time: Some(timestamp(of.started)),
        end_time: of.ended.map(timestamp),
    }
}

fn overridden(of: Overridden) -> v1::SubmissionOverride {
    v1::SubmissionOverride {
        actor: of.actor,
        reason: of.reason,
        prior_status: status(of.prior_status).into(),
        time: Some(timestamp(of.time)),
    }
}

fn event(of: TimelineEvent) -> v1::SubmissionEvent {
    v1::SubmissionEvent {
        time: Some(timestamp(of.time)),
        action: of.action,
        actor: of.actor,
        detail: of.detail,
    }
}

/// An entity on the wire.
pub(super) fn entity(of: Entity) -> v1::Entity {
    let (latest_id, latest_status) = of.latest.map(|(id, of)| (id, status(of))).unwrap_or_default();
    let (archived, archived_by) = of.archived.map(|(time, by)| (timestamp(time), by)).unzip();
    v1::Entity {
        id: of.id,
        kind: kind(of.kind).into(),
        name: of.name,
        version: of.version,
        description: of.description,
        owner: of.owner,
        tenant: of.tenant,
        visibility: visibility(of.visibility).into(),
        live_submission_id: of.live_submission_id.unwrap_or_default(),
        latest_submission_id: latest_id,
        latest_status: latest_status.into(),
        bundle_sha256: of.bundle_sha256,
        file_size: of.file_size,
        create_time: Some(timestamp(of.created)),
        update_time: Some(timestamp(of.updated)),
        archive_time: archived,
        archived_by: archived_by.unwrap_or_default(),
    }
}

impl From<SubmissionError> for RequestError {
    fn from(error: SubmissionError) -> Self {
        let message = error.to_string();
        match error {
            SubmissionError::NotFound { what, id } => {
                Self::NotFound { what, name: id.chars().take(128).collect() }
            }
            SubmissionError::NotAllowed { .. } => {
                Self::State { kind: "SUBMISSION_STATUS", subject: "submission".to_owned(), message }
            }
            SubmissionError::EntityState { .. } => {
                Self::State { kind: "ENTITY_VISIBILITY", subject: "entity".to_owned(), message }
            }
            SubmissionError::Purged { id } => {
                Self::State { kind: "BUNDLE_PURGED", subject: format!("submission/{id}"), message }
            }
            SubmissionError::Unopened { id, .. } => {
                Self::State { kind: "ARCHIVE_REFUSED", subject: format!("submission/{id}"), message }
            }
            SubmissionError::NotApproved { id } => {
                Self::State { kind: "ENTITY_NOT_APPROVED", subject: format!("entity/{id}"), message }
            }
            SubmissionError::LostRace { .. } => Self::LostRace { message },
            SubmissionError::QuotaExceeded { submitter, .. } => {
                Self::Quota { subject: format!("submitter/{submitter}"), message }
            }
            SubmissionError::Invalid { field, message } => Self::field(field, message),
            SubmissionError::PermissionDenied { .. } => Self::NotYourAffair { message },
            SubmissionError::Unchecked(_) => Self::Unchecked { message },
            SubmissionError::NotServing(_) => Self::NotServing,
            SubmissionError::Bytes(cause) => {
                // The caller has no use for the path of a file on our disk; the operator has.
                tracing::error!(cause, "bytes of a bundle could not be kept or read");
                Self::StoreUnavailable
            }
            SubmissionError::Store(error) => error.into(),
        }
    }
}
