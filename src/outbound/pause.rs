//! How long to wait before another attempt.

use std::time::Duration;

/// The pause before an attempt, the second being the first with one: `first`, doubled before each further one, `longest`
/// at most. `jitter` is from 0.0 to 1.0. Half of the pause is fixed, so that callers who failed together do not come back
/// together, and none comes back at once.
pub fn pause_before(attempt: u32, first: Duration, longest: Duration, jitter: f64) -> Duration {
    let doubled = first.saturating_mul(1 << attempt.saturating_sub(2).min(10));
    doubled.min(longest).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
}

/// A random number from 0.0 to 1.0 for [`pause_before`].
pub fn jitter() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_u128() as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_in_bounds() {
        let (first, longest) = (Duration::from_millis(50), Duration::from_secs(1));
        for (attempt, least_ms, most_ms) in
            [(2, 25, 50), (3, 50, 100), (4, 100, 200), (5, 200, 400), (60, 500, 1000)]
        {
            assert_eq!(pause_before(attempt, first, longest, 0.0).as_millis(), least_ms, "{attempt}");
            assert_eq!(pause_before(attempt, first, longest, 1.0).as_millis(), most_ms, "{attempt}");
        }
        assert!((0.0..=1.0).contains(&jitter()));
    }
}
