//! Until when somebody else may take to answer, and who set that.

use std::time::Instant;

/// A deadline of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// When nobody waits any more.
    pub at: Instant,
    /// Whether our caller set it, and not a setting. Whoever does not answer within a time that anybody may choose is not
    /// out of order: such a time-out says nothing to a circuit breaker.
    pub is_callers: bool,
}

impl Until {
    /// The deadline of a setting, or that of the caller where it comes first.
    pub fn sooner(own: Instant, callers: Option<Instant>) -> Self {
        match callers {
            Some(at) if at < own => Self { at, is_callers: true },
            _ => Self { at: own, is_callers: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_first_deadline_counts() {
        let own = Instant::now();
        let (earlier, later) = (own.checked_sub(Duration::from_millis(1)), own + Duration::from_millis(1));
        for (callers, at, is_callers) in [
            (None, own, false),
            (Some(later), own, false),
            (Some(own), own, false),
            (earlier, earlier.unwrap_or(own), true),
        ] {
            assert_eq!(Until::sooner(own, callers), Until { at, is_callers });
        }
    }
}
