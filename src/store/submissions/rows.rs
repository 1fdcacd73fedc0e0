//! Rows of submissions and entities, as the life cycle reads and writes them.
//!
//! Times are kept to the microsecond. A zero character in a text is kept as U+FFFD, since PostgreSQL cannot keep it.

use jiff::Timestamp;

use crate::decision::{
    BundleChecks, BundleKind, Capability, FileCoverage, HoldReason, LlmReview, SubmissionStatus, Unjudged,
    Visibility,
};

/// Something published, or about to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntity {
    /// Id (UUIDv7).
    pub id: String,
    /// Tenant it belongs to.
    pub tenant: String,
    /// What it is.
    pub kind: BundleKind,
    /// Its name.
    pub name: String,
    /// Who owns it: the first submitter.
    pub owner: String,
    /// Who can see it now.
    pub visibility: Visibility,
    /// The submission whose bytes are live.
    pub live_submission_id: Option<String>,
    /// The newest submission.
    pub latest_submission_id: String,
    /// When it was first submitted.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// When it was archived; `None` while it is not.
    pub archived: Option<Timestamp>,
    /// Who archived it; empty while it is not.
    pub archived_by: String,
    /// Raised by every write; 1 for a new one.
    pub version: i64,
}

/// One uploaded bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSubmission {
    /// Id (UUIDv7).
    pub id: String,
    /// The entity it is a version of; stays after that was deleted.
    pub entity_id: String,
    /// Tenant it belongs to.
    pub tenant: String,
    /// What the bundle is.
    pub kind: BundleKind,
    /// Its name.
    pub name: String,
    /// Its version as the manifest gives it; may be empty.
    pub version_text: String,
    /// Its description as the manifest gives it; may be empty.
    pub description: String,
    /// Who uploaded it.
    pub submitter: String,
    /// The verdict of the latest attempt.
    pub status: SubmissionStatus,
    /// Why it is held.
    pub hold_reason: HoldReason,
    /// Number of the latest attempt, from 1.
    pub attempt: u32,
    /// Id of the latest decision.
    pub decision_id: String,
    /// Name of the policy it is checked under; empty is the default one.
    pub policy: String,
    /// Revision of the policy that was made under.
    pub policy_revision: String,
    /// Hash over the sorted files, hex; empty when the archive could not be opened.
    pub bundle_sha256: String,
    /// Size of the archive as uploaded, in bytes.
    pub file_size: u64,
    /// Files in it.
    pub file_count: u32,
    /// When it was received.
    pub created: Timestamp,
    /// When it last changed. Neither taking it nor prolonging a lease is a change.
    pub updated: Timestamp,
    /// When its bytes were given up; `None` while they are there.
    pub purged: Option<Timestamp>,
    /// The model of the latest review; empty when there was none.
    pub review_model: String,
    /// The latest override.
    pub overridden: Option<Override>,
    /// How often this attempt was taken.
    pub tries: u32,
    /// Who works on it.
    pub lease: Option<Lease>,
    /// It is not taken before this time.
    pub not_before: Option<Timestamp>,
    /// Raised by every write and every claim; 1 for a new one.
    pub version: i64,
}

/// A publication against the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The administrator.
    pub actor: String,
    /// The reason given.
    pub reason: String,
    /// The verdict before.
    pub prior_status: SubmissionStatus,
    /// When.
    pub time: Timestamp,
}

/// The right to work on one attempt for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Who has it: one worker of one process.
    pub owner: String,
    /// Until when.
    pub until: Timestamp,
}

/// One run of the checks. Never changed once it has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredAttempt {
    /// The submission it is of.
    pub submission_id: String,
    /// 1 for the first.
    pub number: u32,
    /// Its verdict, or where it stands.
    pub status: SubmissionStatus,
    /// Why it is held.
    pub hold_reason: HoldReason,
    /// Its checks.
    pub checks: BundleChecks,
    /// How much of each file was scanned.
    pub coverage: Vec<FileCoverage>,
    /// What the bundle is able to do.
    pub capabilities: Vec<Capability>,
    /// Checks that did not run to their end.
    pub unjudged: Vec<Unjudged>,
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

/// What a verdict of a model is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VerdictKey {
    /// Hash over the sorted files, hex.
    pub bundle_sha256: String,
    /// The model that was asked.
    pub model: String,
    /// Version of everything else the answer depends on: prompt, kind of bundle, pass rule.
    pub prompt_version: String,
}

/// A verdict of a model to remember. The first one for a key stays.
#[derive(Clone, Debug, PartialEq)]
pub struct VerdictEntry {
    /// What it is bound to.
    pub key: VerdictKey,
    /// The verdict.
    pub review: LlmReview,
    /// When it was given.
    pub time: Timestamp,
}
