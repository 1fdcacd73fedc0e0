//! What goes into the life of a submission and what is told of it, in terms of the contract.

use jiff::Timestamp;

use crate::bundles::life::Standing;
use crate::bundles::spool::Spooled;
use crate::decision::{
    BundleChecks, BundleKind, Capability, Decision, FileCoverage, HoldReason, SubmissionStatus, Unjudged,
    Visibility,
};
use crate::store::{ListedEntity, ListedSubmission, Place, StoredAttempt, StoredSubmission};

/// Who asks. What it says of the caller was established by whoever took the call; nothing of it is the caller's word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actor {
    /// Who: the identity. Owner of what it uploads, and the actor of audit events.
    pub name: String,
    /// The tenant whose things it sees and changes; empty is the default tenant.
    pub tenant: String,
    /// Whether it decides about all submissions of its tenant.
    pub is_admin: bool,
    /// Whether it sees all submissions of its tenant; an administrator does anyway.
    pub is_auditor: bool,
    /// Blocked uploads a day of one submitter of its tenant, in place of the setting of all; 0 for no limit.
    pub blocked_quota_per_day: Option<usize>,
    /// The caller's own id of the request, for audit events; may be empty.
    pub request_id: String,
}

impl Actor {
    /// Whether it sees what others of its tenant uploaded.
    pub(super) fn sees_all(&self) -> bool {
        self.is_admin || self.is_auditor
    }
}

/// An upload that is whole, its declared hash and size verified.
#[derive(Debug)]
pub struct Upload {
    /// Its bytes.
    pub spooled: Spooled,
    /// What it is.
    pub kind: BundleKind,
    /// Name to list it under; empty means the one its manifest gives.
    pub name: String,
    /// Who uploads it.
    pub submitter: String,
    /// The entity it is a new version of; `None` for a new one.
    pub entity_id: Option<String>,
    /// Name of the policy it is checked under, now and whenever it is checked again; empty is the default one.
    pub policy: String,
    /// Whether to check only: nothing is written, and no quota is used.
    pub dry_run: bool,
    /// Id of the decision.
    pub decision_id: String,
}

/// How the inline checks of an upload ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Reviewed {
    /// Id of the submission; empty in a dry run.
    pub submission_id: String,
    /// Id of the entity; empty in a dry run of a new one.
    pub entity_id: String,
    /// What the bundle is called.
    pub name: String,
    /// The verdict so far; in a dry run what it would be.
    pub status: SubmissionStatus,
    /// Why it is held.
    pub hold_reason: HoldReason,
    /// Who can see the entity now.
    pub visibility: Visibility,
    /// The checks one by one.
    pub checks: BundleChecks,
    /// Hash over the sorted files, hex; empty when the archive could not be opened.
    pub bundle_sha256: String,
    /// Size of the archive as uploaded, in bytes.
    pub file_size: u64,
    /// Files in it.
    pub file_count: u32,
    /// How much of each file was scanned, by path.
    pub coverage: Vec<FileCoverage>,
    /// What it is able to do, by file and line.
    pub capabilities: Vec<Capability>,
    /// Checks that did not run to their end.
    pub unjudged: Vec<Unjudged>,
    /// The checks that would have blocked, had what the policy has on trial been in force.
    pub would_block: Vec<String>,
    /// What the caller may do with it.
    pub decision: Decision,
    /// Id of the decision: that of the upload.
    pub decision_id: String,
    /// Revision of the policy it was made under.
    pub policy_revision: String,
}

/// One uploaded bundle: verdict and live visibility side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// Its id.
    pub id: String,
    /// The entity it is a version of.
    pub entity_id: String,
    /// Tenant it belongs to.
    pub tenant: String,
    /// What the bundle is.
    pub kind: BundleKind,
    /// Its name.
    pub name: String,
    /// Its version as the manifest gives it; may be empty.
    pub version: String,
    /// Its description as the manifest gives it: text of a stranger.
    pub description: String,
    /// Who uploaded it.
    pub submitter: String,
    /// The verdict of the latest attempt.
    pub status: SubmissionStatus,
    /// Why it is held.
    pub hold_reason: HoldReason,
    /// Who can see the entity now; `None` when the entity was deleted.
    pub visibility: Option<Visibility>,
    /// Whether this is the live version of the entity.
    pub is_live: bool,
    /// What a caller may do with it.
    pub decision: Decision,
    /// Id of the latest decision.
    pub decision_id: String,
    /// Revision of the policy it was made under.
    pub policy_revision: String,
    /// Hash over the sorted files, hex.
    pub bundle_sha256: String,
    /// Size of the archive as uploaded, in bytes.
    pub file_size: u64,
    /// Files in it.
    pub file_count: u32,
    /// When it was received.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// When its bytes were removed.
    pub purged: Option<Timestamp>,
    /// The model of the latest review; empty when there was none.
    pub review_model: String,
    /// The override, if an administrator ever published it against a verdict.
    pub overridden: Option<Overridden>,
    /// Everything else; only where it was asked for.
    pub details: Option<Details>,
}

/// What is known of a submission besides its row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// The checks of the latest attempt.
    pub checks: BundleChecks,
    /// How much of each file was scanned, by path.
    pub coverage: Vec<FileCoverage>,
    /// What the bundle is able to do.
    pub capabilities: Vec<Capability>,
    /// Checks of the latest attempt that did not run to their end.
    pub unjudged: Vec<Unjudged>,
    /// All attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// What happened, oldest first.
    pub timeline: Vec<TimelineEvent>,
}

/// One run of the checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// 1 for the first.
    pub number: u32,
    /// Its verdict, or where it stands.
    pub status: SubmissionStatus,
    /// Why it is held.
    pub hold_reason: HoldReason,
    /// Its checks.
    pub checks: BundleChecks,
    /// Why it ended without a verdict, such as `timeout_or_crash`; empty otherwise.
    pub error: String,
    /// Id of the decision.
    pub decision_id: String,
    /// Revision of the policy it ran under.
    pub policy_revision: String,
    /// When it began.
    pub started: Timestamp,
    /// When it ended; `None` while it runs or is held.
    pub ended: Option<Timestamp>,
}

/// Who published a submission against its verdict, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overridden {
    /// The administrator.
    pub actor: String,
    /// The reason given.
    pub reason: String,
    /// The verdict before.
    pub prior_status: SubmissionStatus,
    /// When.
    pub time: Timestamp,
}

/// One thing that happened to a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEvent {
    /// When.
    pub time: Timestamp,
    /// The audit action, such as `store.submission.approved`.
    pub action: String,
    /// Who: a person, or `system`.
    pub actor: String,
    /// More about it, for a person; may be empty.
    pub detail: String,
}

/// Something published, or about to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// Its id.
    pub id: String,
    /// Tenant it belongs to.
    pub tenant: String,
    /// What it is.
    pub kind: BundleKind,
    /// Its name.
    pub name: String,
    /// Version of the live bytes; may be empty.
    pub version: String,
    /// Description of the live bytes: text of a stranger.
    pub description: String,
    /// Who owns it: the first submitter.
    pub owner: String,
    /// Who can see it now.
    pub visibility: Visibility,
    /// The submission whose bytes are live.
    pub live_submission_id: Option<String>,
    /// The newest submission and its verdict; `None` for those who may not know.
    pub latest: Option<(String, SubmissionStatus)>,
    /// Hash over the sorted live files, hex; empty when nothing is live.
    pub bundle_sha256: String,
    /// Size of the live archive as uploaded, in bytes; 0 when nothing is live.
    pub file_size: u64,
    /// When it was first submitted.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// When it was archived, and by whom.
    pub archived: Option<(Timestamp, String)>,
}

/// One page of submissions.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmissionList {
    /// In the order asked for.
    pub submissions: Vec<Submission>,
    /// Where the next page begins; `None` when this is the last.
    pub next: Option<Place>,
    /// How many pass the filter, over all pages.
    pub total: u64,
}

/// One page of entities.
#[derive(Clone, Debug, PartialEq)]
pub struct Entities {
    /// In the order asked for.
    pub entities: Vec<Entity>,
    /// Where the next page begins; `None` when this is the last.
    pub next: Option<Place>,
    /// How many pass the filter, over all pages.
    pub total: u64,
}

/// A submission as it stands after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// How it stands.
    pub submission: Submission,
    /// Whether nothing more will happen by itself.
    pub is_final: bool,
}

/// What a purge removed, or would.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Submissions whose bytes were removed, oldest first.
    pub submission_ids: Vec<String>,
    /// Bytes of storage that this freed.
    pub bytes_freed: u64,
}

/// What a caller may do with a submission that stands so.
pub const fn decision_of(status: SubmissionStatus) -> Decision {
    match status {
        SubmissionStatus::Approved | SubmissionStatus::Overridden => Decision::Allow,
        SubmissionStatus::PendingInline | SubmissionStatus::PendingLlm | SubmissionStatus::ReviewError => {
            Decision::Ask
        }
        SubmissionStatus::BlockedInline | SubmissionStatus::BlockedLlm | SubmissionStatus::Deleted => {
            Decision::Block
        }
    }
}

impl Submission {
    /// A row beside the live state of its entity, without details.
    pub(super) fn of(listed: ListedSubmission) -> Self {
        let ListedSubmission { submission: row, visibility, is_live } = listed;
        Self {
            decision: decision_of(row.status),
            id: row.id,
            entity_id: row.entity_id,
            tenant: row.tenant,
            kind: row.kind,
            name: row.name,
            version: row.version_text,
            description: row.description,
            submitter: row.submitter,
            status: row.status,
            hold_reason: row.hold_reason,
            visibility,
            is_live,
            decision_id: row.decision_id,
            policy_revision: row.policy_revision,
            bundle_sha256: row.bundle_sha256,
            file_size: row.file_size,
            file_count: row.file_count,
            created: row.created,
            updated: row.updated,
            purged: row.purged,
            review_model: row.review_model,
            overridden: row.overridden.map(|o| Overridden {
                actor: o.actor,
                reason: o.reason,
                prior_status: o.prior_status,
                time: o.time,
            }),
            details: None,
        }
    }

    /// Whether nothing more will happen to it by itself.
    pub fn is_final(&self) -> bool {
        Standing::of(self.status, self.hold_reason).is_none_or(|standing| !standing.is_running())
    }
}

impl From<StoredAttempt> for Attempt {
    fn from(row: StoredAttempt) -> Self {
        Self {
            number: row.number,
            status: row.status,
            hold_reason: row.hold_reason,
            checks: row.checks,
            error: row.error,
            decision_id: row.decision_id,
            policy_revision: row.policy_revision,
            started: row.started,
            ended: row.ended,
        }
    }
}

impl Entity {
    /// An entity beside its submissions; `knows_all` for its owner and administrators.
    pub(super) fn of(listed: ListedEntity, knows_all: bool) -> Self {
        let ListedEntity { entity, live, latest } = listed;
        let latest = latest.filter(|_| knows_all).map(|row| (row.id, row.status));
        let (version, description, bundle_sha256, file_size) = live.map_or_else(Default::default, |row| {
            (row.version_text, row.description, row.bundle_sha256, row.file_size)
        });
        Self {
            id: entity.id,
            tenant: entity.tenant,
            kind: entity.kind,
            name: entity.name,
            version,
            description,
            owner: entity.owner,
            visibility: entity.visibility,
            live_submission_id: entity.live_submission_id,
            latest,
            bundle_sha256,
            file_size,
            created: entity.created,
            updated: entity.updated,
            archived: entity.archived.map(|time| (time, entity.archived_by)),
        }
    }
}

/// A new, open attempt of a submission that stands as its row says.
pub(super) fn attempt_of(row: &StoredSubmission, now: Timestamp) -> StoredAttempt {
    StoredAttempt {
        submission_id: row.id.clone(),
        number: row.attempt,
        status: row.status,
        hold_reason: row.hold_reason,
        checks: BundleChecks::default(),
        coverage: Vec::new(),
        capabilities: Vec::new(),
        unjudged: Vec::new(),
        error: String::new(),
        decision_id: row.decision_id.clone(),
        policy_revision: row.policy_revision.clone(),
        started: now,
        ended: None,
    }
}
