//! The repository of submissions and entities: rows, changes of them, and the queue that the rows of reviews are.
//!
//! It knows nothing of the life cycle. It loads rows, writes a change only where every row in it is still as it was when
//! it was read, gives waiting reviews out under leases, and appends the audit events of a change in its transaction.

mod brief;
mod list;
mod rows;

pub use brief::{ChecksBrief, ReviewBrief};
pub use list::{
    ArchivedFilter, EntityFilter, EntityKey, EntityPage, EntityQuery, ListedEntity, ListedSubmission, Place,
    SEARCHED_MAX, SubmissionFilter, SubmissionKey, SubmissionPage, SubmissionQuery,
};
pub use rows::{Lease, Override, StoredAttempt, StoredEntity, StoredSubmission, VerdictEntry, VerdictKey};

use std::collections::{HashMap, HashSet};

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::{NewAuditEvent, StoreError};
use crate::decision::{HoldReason, LlmReview, SubmissionStatus};

/// What a new submission does to its entity.
#[derive(Clone, Debug, PartialEq)]
pub enum AcceptedEntity {
    /// It is the first of a new one; the row is written with version 1.
    New(StoredEntity),
    /// It is another one of this, which is written as it stands here.
    Existing {
        /// The new state.
        entity: StoredEntity,
        /// The version it was read with.
        expect_version: i64,
    },
}

/// How many blocked submissions one submitter may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// So many are allowed; with that many there already, no further row is taken.
    pub limit: u64,
    /// Those received at or after this time count.
    pub since: Timestamp,
}

/// A submission to keep, with everything that becomes true at once with it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSubmission {
    /// Its entity.
    pub entity: AcceptedEntity,
    /// The row; written with version 1.
    pub submission: StoredSubmission,
    /// Its first attempt.
    pub attempt: StoredAttempt,
    /// Checked, and race-free: two that take the last place at once do not both get it. `None` is no quota.
    pub quota: Option<Quota>,
    /// What is recorded with it.
    pub events: Vec<NewAuditEvent>,
}

/// Why a submission was not taken. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// The submitter has used up its quota.
    #[error("the submitter has {found} blocked submissions, and {limit} are allowed")]
    QuotaExceeded {
        /// Blocked ones that count.
        found: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// The entity it is another version of was deleted, or never was in this tenant.
    #[error("the entity is not there any more")]
    EntityGone,
    /// The entity was changed by somebody else since it was read.
    #[error("the entity was changed by somebody else in the same moment")]
    LostRace,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What happens to an attempt. One that has ended never changes again: the database refuses it.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptWrite {
    /// A new one; its number must be free.
    Insert(StoredAttempt),
    /// One that had not ended, as it stands now.
    Update(StoredAttempt),
}

/// One submission of a change.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmissionWrite {
    /// The new state. `version` is not looked at: the row gets `expect_version + 1`.
    pub submission: StoredSubmission,
    /// The version it was read with.
    pub expect_version: i64,
    /// What happens to its attempts, in this order.
    pub attempts: Vec<AttemptWrite>,
}

/// What a change does to an entity.
#[expect(clippy::large_enum_variant, reason = "there is one in a change, and never a list of them")]
#[derive(Clone, Debug, PartialEq)]
pub enum EntityWrite {
    /// It stands so now. `version` is not looked at: the row gets `expect_version + 1`.
    Update {
        /// The new state.
        entity: StoredEntity,
        /// The version it was read with.
        expect_version: i64,
    },
    /// It is deleted for good.
    Delete {
        /// Its id.
        id: String,
        /// The version it was read with.
        expect_version: i64,
    },
}

/// Several writes that become true at once, or not at all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Tenant that all of it belongs to.
    pub tenant: String,
    /// Submissions of one entity; each at most once.
    pub submissions: Vec<SubmissionWrite>,
    /// Their entity.
    pub entity: Option<EntityWrite>,
    /// A verdict to remember.
    pub verdict: Option<VerdictEntry>,
    /// What is recorded with it.
    pub events: Vec<NewAuditEvent>,
}

/// Submissions in one state, over all tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusCount {
    /// The state.
    pub status: SubmissionStatus,
    /// How many are in it.
    pub count: u64,
}

/// Keeps submissions and entities. A change that was answered with `Ok` is on the disk.
///
/// Whoever asks for one by id names the tenant, and gets nothing of another one. What takes no tenant, or
/// an optional one, is for the jobs of the service itself.
pub trait SubmissionStore: Send + Sync {
    /// Takes a new submission. The bytes must be kept already.
    fn accept(&self, new: NewSubmission) -> BoxFuture<'_, Result<(), AcceptError>>;

    /// Blocked submissions (`blocked_inline`, `blocked_llm`, `review_error`) of a submitter received at or after `since`.
    fn blocked_since(
        &self,
        tenant: String,
        submitter: String,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// One submission.
    fn submission(
        &self,
        tenant: String,
        id: String,
    ) -> BoxFuture<'_, Result<Option<StoredSubmission>, StoreError>>;

    /// All submissions of an entity, tombstones too, oldest first.
    fn submissions_of(
        &self,
        tenant: String,
        entity_id: String,
    ) -> BoxFuture<'_, Result<Vec<StoredSubmission>, StoreError>>;

    /// Attempts of these submissions, ordered by submission and number.
    fn attempts(
        &self,
        tenant: String,
        submission_ids: Vec<String>,
    ) -> BoxFuture<'_, Result<Vec<StoredAttempt>, StoreError>>;

    /// What a list shows of the checks of the latest attempt of each of these submissions, by the id of the submission.
    fn briefs(
        &self,
        tenant: String,
        submission_ids: Vec<String>,
    ) -> BoxFuture<'_, Result<HashMap<String, ChecksBrief>, StoreError>>;

    /// One entity.
    fn entity(&self, tenant: String, id: String) -> BoxFuture<'_, Result<Option<StoredEntity>, StoreError>>;

    /// One page of submissions.
    fn submissions(&self, query: SubmissionQuery) -> BoxFuture<'_, Result<SubmissionPage, StoreError>>;

    /// One page of entities.
    fn entities(&self, query: EntityQuery) -> BoxFuture<'_, Result<EntityPage, StoreError>>;

    /// Writes a change if each of its rows still has the version it was read with; `false`: one had not, and nothing was
    /// written.
    fn apply(&self, change: Change) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Gives the oldest waiting review to `owner` until `lease_until`, and counts the try: `pending_inline` or
    /// `pending_llm`, not held, with fewer than `tries_max` tries, no lease in force at `now` and no later
    /// `not_before`. Two never get the same. Raises the version, so that whoever had it before cannot write any more.
    fn claim(
        &self,
        owner: String,
        now: Timestamp,
        lease_until: Timestamp,
        tries_max: u32,
    ) -> BoxFuture<'_, Result<Option<StoredSubmission>, StoreError>>;

    /// Prolongs a lease; `false`: `owner` does not hold that of this attempt any more. The version stays.
    fn renew(
        &self,
        id: String,
        attempt: u32,
        owner: String,
        until: Timestamp,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Reviews that nobody will take any more: `tries_max` tries, and the lease ran out at or before `before`. Oldest
    /// first, 10,000 at most; of one tenant, or of all (`None`).
    fn expired(
        &self,
        tenant: Option<String>,
        before: Timestamp,
        tries_max: u32,
    ) -> BoxFuture<'_, Result<Vec<StoredSubmission>, StoreError>>;

    /// Submissions that are held for this reason, over all tenants. Oldest first, 10,000 at most.
    fn held(&self, reason: HoldReason) -> BoxFuture<'_, Result<Vec<StoredSubmission>, StoreError>>;

    /// Blocked submissions (`blocked_inline`, `blocked_llm`) whose bytes are there, that are not live, and that last
    /// changed before a time. Oldest first, 10,000 at most; of one tenant, or of all (`None`).
    fn purgeable(
        &self,
        tenant: Option<String>,
        before: Timestamp,
    ) -> BoxFuture<'_, Result<Vec<StoredSubmission>, StoreError>>;

    /// Those of these submissions whose bytes must be kept: there is a row, it is no tombstone and not purged.
    fn with_bytes(&self, ids: Vec<String>) -> BoxFuture<'_, Result<HashSet<String>, StoreError>>;

    /// The remembered verdict of a model about these very bytes.
    fn verdict(&self, key: VerdictKey) -> BoxFuture<'_, Result<Option<LlmReview>, StoreError>>;

    /// Submissions by state, over all tenants; states without one are left out.
    fn counts_by_status(&self) -> BoxFuture<'_, Result<Vec<StatusCount>, StoreError>>;

    /// Since when the longest waiting review waits: pending and not held, over all tenants.
    fn oldest_waiting(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>>;

    /// Whether it is this process that does a regular job now: `true` for one caller of all processes, unless it began
    /// after `not_since`.
    fn begin_job(
        &self,
        name: String,
        now: Timestamp,
        not_since: Timestamp,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;
}

/// The states that count for the quota. What waits for a model does not: nothing is known against it, and many good
/// uploads at once are no attack.
pub const QUOTA_STATUSES: [SubmissionStatus; 3] =
    [SubmissionStatus::BlockedInline, SubmissionStatus::BlockedLlm, SubmissionStatus::ReviewError];

/// The states whose bytes are purged after a time.
pub const PURGED_STATUSES: [SubmissionStatus; 2] =
    [SubmissionStatus::BlockedInline, SubmissionStatus::BlockedLlm];

/// The states in which a submission that is not held waits for somebody to take it.
pub const WAITING_STATUSES: [SubmissionStatus; 2] =
    [SubmissionStatus::PendingInline, SubmissionStatus::PendingLlm];
