//! Why the life of a submission did not go on as asked.

use crate::decision::{HoldReason, SubmissionStatus, Visibility};
use crate::store::StoreError;

/// Why something was not done. Each says what to do about it; none holds text of a bundle.
#[derive(Debug, thiserror::Error)]
pub enum SubmissionError {
    /// There is none, or none that the caller may see.
    #[error("there is no {what} `{id}`")]
    NotFound {
        /// `submission` or `entity`.
        what: &'static str,
        /// The id asked for.
        id: String,
    },
    /// What the submission went through does not allow it.
    #[error("a submission that is {found}{} cannot be {action}; {advice}", held(*.hold))]
    NotAllowed {
        /// What was asked for, as a participle: `overridden`, `rescanned`, `retried`, `deleted`.
        action: &'static str,
        /// The status found.
        found: SubmissionStatus,
        /// Why it is held, if it is.
        hold: HoldReason,
        /// What would be allowed instead.
        advice: &'static str,
    },
    /// The entity's visibility does not allow it.
    #[error("an entity that is {found} cannot be {action}; {advice}")]
    EntityState {
        /// What was asked for, as a participle: `archived`, `restored`.
        action: &'static str,
        /// The visibility found.
        found: Visibility,
        /// What would be allowed instead.
        advice: &'static str,
    },
    /// Somebody else changed it in the same moment. Nothing was done; asking again is safe.
    #[error("{what} `{id}` was changed by somebody else at the same time; look at it and try again")]
    LostRace {
        /// `submission` or `entity`.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// The submitter had too many uploads within a day that were blocked or ended without a verdict.
    #[error(
        "of the uploads of submitter `{submitter}` in the last 24 hours {found} were blocked or ended without a verdict, and \
         {limit} may; fix what was found, and upload again when the first of them is a day old"
    )]
    QuotaExceeded {
        /// Whose quota.
        submitter: String,
        /// How many are allowed: `guardrails.blocked_quota_per_day`.
        limit: u64,
        /// How many there are.
        found: u64,
    },
    /// The bytes are gone.
    #[error("the bytes of submission `{id}` were removed; upload them again")]
    Purged {
        /// Its id.
        id: String,
    },
    /// The archive check refused the bytes, so that there are no files that could be published.
    #[error(
        "submission `{id}` cannot be {action}: its archive could not be opened, so there is nothing to publish; fix what \
         the archive check found and upload it again"
    )]
    Unopened {
        /// Its id.
        id: String,
        /// What was asked for, as a participle: `overridden`, `retried`.
        action: &'static str,
    },
    /// The entity has no version that passed.
    #[error("entity `{id}` has no approved version")]
    NotApproved {
        /// Its id.
        id: String,
    },
    /// An argument is wrong.
    #[error("`{field}` {message}")]
    Invalid {
        /// Path of the field, as in the contract.
        field: &'static str,
        /// What is wrong and what is right.
        message: String,
    },
    /// The caller may not do this.
    #[error("{needs} is needed for this")]
    PermissionDenied {
        /// What the caller lacks.
        needs: &'static str,
    },
    /// The checks did not run to their end; nothing was kept.
    #[error("the bundle could not be checked: {0}; try again")]
    Unchecked(String),
    /// There are no usable rules or policies.
    #[error("{0}")]
    NotServing(String),
    /// The bytes could not be kept or read; nothing was changed.
    #[error("{0}")]
    Bytes(String),
    /// The store failed. The caller cannot tell whether the change was made: look before trying again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn held(hold: HoldReason) -> &'static str {
    match hold {
        HoldReason::None => "",
        HoldReason::NoKey => " (held: no model has a key)",
        HoldReason::Coverage => " (held: not everything was scanned)",
    }
}
