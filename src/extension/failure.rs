//! Why one attempt has no answer, and what follows from that.

use std::time::Duration;

use crate::decision::Reason;
use crate::tools::InterceptError;

/// Longest text of a cause, in characters.
const CAUSE_CHARS_MAX: usize = 200;

/// Why one attempt has no answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failure {
    /// The kind of failure.
    pub(super) reason: Reason,
    /// What happened. Holds neither secrets nor text that somebody else wrote.
    pub(super) detail: String,
    /// Whether the attempt had no effect on the other side, so that another one is harmless.
    pub(super) is_retryable: bool,
    /// How long the other side wants to be left alone first.
    pub(super) retry_after: Option<Duration>,
    /// Whether it tells that the address is in trouble.
    pub(super) is_outage: bool,
}

impl Failure {
    /// The address could not be reached, or is overloaded: another attempt is harmless.
    pub(super) fn away(detail: impl Into<String>) -> Self {
        Self { is_retryable: true, ..Self::broken(Reason::Unavailable, detail) }
    }

    /// The address is in trouble, and the call may have had its effect.
    pub(super) fn broken(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into(), is_retryable: false, retry_after: None, is_outage: true }
    }

    /// The address works, and this call is refused or its answer of no use.
    pub(super) fn refused(reason: Reason, detail: impl Into<String>) -> Self {
        Self { is_outage: false, ..Self::broken(reason, detail) }
    }

    pub(super) fn into_error(self) -> InterceptError {
        InterceptError::new(self.reason, self.detail)
    }
}

/// The innermost cause of an error of a library, cut: the outer ones only say that there was one.
pub(super) fn cause_of(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost
        .to_string()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(CAUSE_CHARS_MAX)
        .collect()
}

/// The first error of type `T` in a chain of causes.
pub(super) fn find<'a, T: std::error::Error + 'static>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
