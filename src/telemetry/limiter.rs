//! At most one log line a second for something that can happen thousands of times a second.
//!
//! Only lines are held back, never counts: whoever logs says how many went unsaid.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Pause between two lines.
const PAUSE: Duration = Duration::from_secs(1);

/// Lets one line a second through and counts the others.
#[derive(Debug)]
pub(super) struct LineLimiter {
    start: Instant,
    /// Milliseconds after `start` at which the next line may pass; 0 at first.
    next_ms: AtomicU64,
    held_back: AtomicU64,
}

impl LineLimiter {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), next_ms: AtomicU64::new(0), held_back: AtomicU64::new(0) }
    }

    /// How many lines were held back since the last one that passed, if this one may pass.
    pub(super) fn pass(&self) -> Option<u64> {
        self.pass_at(self.start.elapsed())
    }

    fn pass_at(&self, now: Duration) -> Option<u64> {
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let next_ms = self.next_ms.load(Ordering::Relaxed);
        let pause_ms = u64::try_from(PAUSE.as_millis()).unwrap_or(u64::MAX);
        let until = now_ms.saturating_add(pause_ms);
        // Whoever loses the exchange is the second of two at the same moment.
        if now_ms >= next_ms
            && self.next_ms.compare_exchange(next_ms, until, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return Some(self.held_back.swap(0, Ordering::Relaxed));
        }
        self.held_back.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_passes_and_tells_of_the_others() {
        let limiter = LineLimiter::new();
        let at = |ms| limiter.pass_at(Duration::from_millis(ms));
        assert_eq!(at(0), Some(0));
        assert_eq!(at(1), None);
        assert_eq!(at(999), None);
        assert_eq!(at(1000), Some(2));
        assert_eq!(at(1001), None);
        assert_eq!(at(5000), Some(1));
    }
}
