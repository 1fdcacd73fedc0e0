//! The life of a submission: one table of everything that can happen to it, everything else refused.
//!
//! Pure: states and events, no clock and no store. Whoever performs a transition writes it with a compare-and-swap on the
//! state that it was worked out from, so that of two that race one is refused.
//!
//! Two axes. The verdict ([`Standing`]) belongs to a submission and is that of its latest attempt; what an attempt was
//! given stays. The visibility belongs to the entity and follows from three facts ([`visibility`]): whether it was
//! archived, whether a version is live, and how the newest one stands.

use crate::decision::{HoldReason, SubmissionStatus, Visibility};

/// How a submission stands: its status, and for one that waits whether and why it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// The inline checks have not ended.
    PendingInline,
    /// An inline check blocked it.
    BlockedInline,
    /// Waits for the review by a model.
    Queued,
    /// Held: no model has a key.
    HeldNoKey,
    /// Held: something that an agent could run or read was not scanned.
    HeldCoverage,
    /// Every check passed.
    Approved,
    /// The review by a model blocked it.
    BlockedLlm,
    /// The review ended without a verdict.
    ReviewError,
    /// An administrator published it against the verdict.
    Overridden,
    /// Deleted for good.
    Deleted,
}

impl Standing {
    /// Every one.
    pub const ALL: [Self; 10] = [
        Self::PendingInline,
        Self::BlockedInline,
        Self::Queued,
        Self::HeldNoKey,
        Self::HeldCoverage,
        Self::Approved,
        Self::BlockedLlm,
        Self::ReviewError,
        Self::Overridden,
        Self::Deleted,
    ];

    /// The standing of a row; `None` for a hold on something that does not wait, which no release writes.
    pub const fn of(status: SubmissionStatus, hold: HoldReason) -> Option<Self> {
        Some(match (status, hold) {
            (SubmissionStatus::PendingLlm, HoldReason::None) => Self::Queued,
            (SubmissionStatus::PendingLlm, HoldReason::NoKey) => Self::HeldNoKey,
            (SubmissionStatus::PendingLlm, HoldReason::Coverage) => Self::HeldCoverage,
            (_, HoldReason::NoKey | HoldReason::Coverage) => return None,
            (SubmissionStatus::PendingInline, HoldReason::None) => Self::PendingInline,
            (SubmissionStatus::BlockedInline, HoldReason::None) => Self::BlockedInline,
            (SubmissionStatus::Approved, HoldReason::None) => Self::Approved,
            (SubmissionStatus::BlockedLlm, HoldReason::None) => Self::BlockedLlm,
            (SubmissionStatus::ReviewError, HoldReason::None) => Self::ReviewError,
            (SubmissionStatus::Overridden, HoldReason::None) => Self::Overridden,
            (SubmissionStatus::Deleted, HoldReason::None) => Self::Deleted,
        })
    }

    /// The status of the row.
    pub const fn status(self) -> SubmissionStatus {
        match self {
            Self::PendingInline => SubmissionStatus::PendingInline,
            Self::BlockedInline => SubmissionStatus::BlockedInline,
            Self::Queued | Self::HeldNoKey | Self::HeldCoverage => SubmissionStatus::PendingLlm,
            Self::Approved => SubmissionStatus::Approved,
            Self::BlockedLlm => SubmissionStatus::BlockedLlm,
            Self::ReviewError => SubmissionStatus::ReviewError,
            Self::Overridden => SubmissionStatus::Overridden,
            Self::Deleted => SubmissionStatus::Deleted,
        }
    }

    /// Why it is held.
    pub const fn hold(self) -> HoldReason {
        match self {
            Self::HeldNoKey => HoldReason::NoKey,
            Self::HeldCoverage => HoldReason::Coverage,
            _ => HoldReason::None,
        }
    }

    /// Whether a worker will go on with it by itself.
    pub const fn is_running(self) -> bool {
        matches!(self, Self::PendingInline | Self::Queued)
    }
}

/// Something that happens to a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The inline checks found a reason to block it.
    CheckBlocked,
    /// The inline checks passed, and a model is to review it.
    CheckQueued,
    /// The inline checks passed, and no model has a key.
    CheckHeldNoKey,
    /// The inline checks passed, and not everything was scanned.
    CheckHeldCoverage,
    /// The inline checks passed, and the operator wants no review.
    CheckPassed,
    /// The inline checks could not run to their end.
    CheckFailed,
    /// The model found nothing that blocks.
    ReviewPassed,
    /// The model found something that blocks.
    ReviewBlocked,
    /// The model gave no verdict.
    ReviewFailed,
    /// There is no model any more.
    ReviewHeld,
    /// An administrator publishes it against the verdict.
    Override,
    /// An administrator has all checks run again.
    Rescan,
    /// An administrator has it reviewed again.
    Retry,
    /// The same, and no model has a key.
    RetryHeld,
    /// Its bytes are past the retention time.
    Purge,
    /// An administrator deletes it.
    Delete,
}

impl Event {
    /// Every one.
    pub const ALL: [Self; 16] = [
        Self::CheckBlocked,
        Self::CheckQueued,
        Self::CheckHeldNoKey,
        Self::CheckHeldCoverage,
        Self::CheckPassed,
        Self::CheckFailed,
        Self::ReviewPassed,
        Self::ReviewBlocked,
        Self::ReviewFailed,
        Self::ReviewHeld,
        Self::Override,
        Self::Rescan,
        Self::Retry,
        Self::RetryHeld,
        Self::Purge,
        Self::Delete,
    ];

    /// Whether it is about bytes, and cannot happen once they are gone.
    pub const fn needs_bytes(self) -> bool {
        !matches!(self, Self::Delete | Self::CheckFailed | Self::ReviewFailed | Self::ReviewHeld)
    }

    /// Whether it publishes, or leads to a review that may, and so cannot happen where the archive did not open: there is
    /// nothing that could be handed out.
    pub const fn needs_files(self) -> bool {
        matches!(
            self,
            Self::CheckQueued
                | Self::CheckHeldNoKey
                | Self::CheckHeldCoverage
                | Self::CheckPassed
                | Self::ReviewPassed
                | Self::Override
                | Self::Retry
                | Self::RetryHeld
        )
    }
}

/// What became of the bytes of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bytes {
    /// They are kept, and the checks could open them.
    Opened,
    /// They are kept, and no check could open them: the archive was refused.
    Unopened,
    /// They are removed.
    Gone,
}

impl Bytes {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Opened, Self::Unopened, Self::Gone];

    /// Of a submission whose bytes were removed or not, and whose files have this hash; only what was opened has one.
    pub const fn of(is_purged: bool, bundle_sha256: &str) -> Self {
        match (is_purged, bundle_sha256.is_empty()) {
            (true, _) => Self::Gone,
            (false, true) => Self::Unopened,
            (false, false) => Self::Opened,
        }
    }
}

/// What a transition does to the live version of the entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Live {
    /// Nothing.
    Keep,
    /// This submission becomes the live version, unless a newer one is.
    Raise,
    /// This submission becomes the live version.
    Make,
    /// This submission is no longer the live version, if it was.
    Drop,
}

/// What a transition does to the attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attempts {
    /// Nothing: the attempt goes on, or stands as it ended.
    Keep,
    /// The present attempt ends with the new standing as its verdict.
    End,
    /// A present attempt without a verdict ends as it stands; a new one begins.
    Begin,
    /// A present attempt without a verdict ends as it stands.
    Close,
}

/// One transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// From where.
    pub from: Standing,
    /// By what.
    pub event: Event,
    /// To where.
    pub to: Standing,
    /// What becomes of the attempts.
    pub attempts: Attempts,
    /// What becomes of the live version.
    pub live: Live,
}

/// Everything that can happen. What is not here is refused.
pub const TABLE: &[Transition] = {
    use Attempts::{Begin, Close, End, Keep as Same};
    use Event as E;
    use Live::{Drop, Keep, Make, Raise};
    use Standing as S;
    const fn row(from: S, event: E, to: S, attempts: Attempts, live: Live) -> Transition {
        Transition { from, event, to, attempts, live }
    }
    &[
        row(S::PendingInline, E::CheckBlocked, S::BlockedInline, End, Drop),
        row(S::PendingInline, E::CheckQueued, S::Queued, Same, Keep),
        row(S::PendingInline, E::CheckHeldNoKey, S::HeldNoKey, Same, Keep),
        row(S::PendingInline, E::CheckHeldCoverage, S::HeldCoverage, Same, Keep),
        row(S::PendingInline, E::CheckPassed, S::Approved, End, Raise),
        row(S::PendingInline, E::CheckFailed, S::ReviewError, End, Keep),
        row(S::PendingInline, E::Delete, S::Deleted, Close, Drop),
        row(S::Queued, E::ReviewPassed, S::Approved, End, Raise),
        row(S::Queued, E::ReviewBlocked, S::BlockedLlm, End, Drop),
        row(S::Queued, E::ReviewFailed, S::ReviewError, End, Keep),
        row(S::Queued, E::ReviewHeld, S::HeldNoKey, Same, Keep),
        row(S::Queued, E::Rescan, S::PendingInline, Begin, Keep),
        row(S::Queued, E::Delete, S::Deleted, Close, Drop),
        row(S::HeldNoKey, E::Override, S::Overridden, Close, Make),
        row(S::HeldNoKey, E::Rescan, S::PendingInline, Begin, Keep),
        row(S::HeldNoKey, E::Retry, S::Queued, Begin, Keep),
        row(S::HeldNoKey, E::RetryHeld, S::HeldNoKey, Begin, Keep),
        row(S::HeldNoKey, E::Delete, S::Deleted, Close, Drop),
        row(S::HeldCoverage, E::Override, S::Overridden, Close, Make),
        row(S::HeldCoverage, E::Rescan, S::PendingInline, Begin, Keep),
        row(S::HeldCoverage, E::Delete, S::Deleted, Close, Drop),
        row(S::BlockedInline, E::Override, S::Overridden, Same, Make),
        row(S::BlockedInline, E::Rescan, S::PendingInline, Begin, Keep),
        row(S::BlockedInline, E::Purge, S::BlockedInline, Same, Keep),
        row(S::BlockedInline, E::Delete, S::Deleted, Same, Drop),
        row(S::BlockedLlm, E::Override, S::Overridden, Same, Make),
        row(S::BlockedLlm, E::Rescan, S::PendingInline, Begin, Keep),
        row(S::BlockedLlm, E::Retry, S::Queued, Begin, Keep),
        row(S::BlockedLlm, E::RetryHeld, S::HeldNoKey, Begin, Keep),
        row(S::BlockedLlm, E::Purge, S::BlockedLlm, Same, Keep),
        row(S::BlockedLlm, E::Delete, S::Deleted, Same, Drop),
        row(S::ReviewError, E::Override, S::Overridden, Same, Make),
        row(S::ReviewError, E::Rescan, S::PendingInline, Begin, Keep),
        row(S::ReviewError, E::Retry, S::Queued, Begin, Keep),
        row(S::ReviewError, E::RetryHeld, S::HeldNoKey, Begin, Keep),
        row(S::ReviewError, E::Delete, S::Deleted, Same, Drop),
        row(S::Approved, E::Rescan, S::PendingInline, Begin, Keep),
        row(S::Approved, E::Delete, S::Deleted, Same, Drop),
        row(S::Overridden, E::Rescan, S::PendingInline, Begin, Keep),
        row(S::Overridden, E::Delete, S::Deleted, Same, Drop),
    ]
};

/// Why something cannot happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The table does not have it.
    Illegal,
    /// The bytes are gone.
    Purged,
    /// The archive could not be opened.
    Unopened,
}

/// What happens to a submission that stands at `from` with such bytes. For the end of the inline checks: as these found them.
///
/// # Errors
/// It cannot happen.
pub fn next(from: Standing, bytes: Bytes, event: Event) -> Result<Transition, Refused> {
    let found = TABLE.iter().find(|row| row.from == from && row.event == event);
    let transition = *found.ok_or(Refused::Illegal)?;
    match bytes {
        Bytes::Gone if event.needs_bytes() => Err(Refused::Purged),
        Bytes::Unopened if event.needs_files() => Err(Refused::Unopened),
        _ => Ok(transition),
    }
}

/// The live version after a transition. `this` and `live` are whatever orders submissions by when they were received.
pub fn live_after<P: Ord + Clone>(effect: Live, this: &P, live: Option<&P>) -> Option<P> {
    match effect {
        Live::Keep => live.cloned(),
        Live::Make => Some(this.clone()),
        Live::Raise => Some(live.map_or(this, |live| live.max(this)).clone()),
        Live::Drop => live.filter(|live| *live != this).cloned(),
    }
}

/// Who can see an entity: archived or not, with a live version or not, its newest submission standing so.
pub const fn visibility(is_archived: bool, has_live: bool, newest: SubmissionStatus) -> Visibility {
    match (is_archived, has_live, newest) {
        (true, _, _) => Visibility::Archived,
        (false, true, _) => Visibility::Approved,
        (
            false,
            false,
            SubmissionStatus::BlockedInline | SubmissionStatus::BlockedLlm | SubmissionStatus::Deleted,
        ) => Visibility::Hidden,
        (false, false, _) => Visibility::Pending,
    }
}

#[cfg(test)]
mod tests;
