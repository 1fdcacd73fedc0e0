//! The circuit breaker of one address: after failures in a row it is left alone for a while, then one call tries it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub struct Breaker {
    failures_max: usize,
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Failed calls since the last good one.
    failures: usize,
    /// Until when nobody calls; `None` while the circuit is closed.
    open_until: Option<Instant>,
    /// Whether the one call that tries again is under way.
    is_probing: bool,
}

/// Leave to make one call. Dropping it without a word means that the call was given up by its caller, which says
/// nothing about the address.
#[derive(Debug)]
pub struct Permit<'a> {
    breaker: &'a Breaker,
    is_probe: bool,
    is_settled: bool,
}

impl Breaker {
    /// A closed circuit that opens for `pause` after `failures_max` failed calls in a row.
    pub fn new(failures_max: usize, pause: Duration) -> Self {
        Self { failures_max, pause, state: Mutex::default() }
    }

    /// Leave to call, or how long there is none.
    pub fn enter(&self, now: Instant) -> Result<Permit<'_>, Duration> {
        let mut state = self.lock();
        let is_probe = match state.open_until {
            None => false,
            Some(until) if now < until => return Err(until - now),
            Some(_) if state.is_probing => return Err(Duration::ZERO),
            Some(_) => {
                state.is_probing = true;
                true
            }
        };
        Ok(Permit { breaker: self, is_probe, is_settled: false })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// The address answered.
    pub fn succeeded(mut self) {
        self.is_settled = true;
        *self.breaker.lock() = State::default();
    }

    /// The address failed. Answers whether that opened the circuit.
    pub fn failed(mut self, now: Instant) -> bool {
        self.is_settled = true;
        let mut state = self.breaker.lock();
        state.failures = state.failures.saturating_add(1);
        if self.is_probe {
            state.is_probing = false;
        }
        let opens =
            self.is_probe || (state.failures >= self.breaker.failures_max && state.open_until.is_none());
        if opens {
            state.open_until = Some(now + self.breaker.pause);
        }
        opens
    }
}

/// Whoever drops a permit has learnt nothing about the address.
impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.is_probe && !self.is_settled {
            self.breaker.lock().is_probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(10);

    fn fail(breaker: &Breaker, now: Instant) -> bool {
        breaker.enter(now).expect("closed").failed(now)
    }

    #[test]
    fn it_opens_after_failures_in_a_row_and_one_call_tries_again() {
        let (breaker, start) = (Breaker::new(3, PAUSE), Instant::now());
        assert!(!fail(&breaker, start) && !fail(&breaker, start));
        breaker.enter(start).expect("closed").succeeded();
        assert!(!fail(&breaker, start) && !fail(&breaker, start), "the good call began a new row");
        assert!(fail(&breaker, start));
        assert_eq!(breaker.enter(start).err(), Some(PAUSE));
        let later = start + PAUSE;
        let probe = breaker.enter(later).expect("one may try");
        assert!(breaker.enter(later).is_err(), "one alone");
        assert!(probe.failed(later), "and it opens again");
        assert_eq!(breaker.enter(later).err(), Some(PAUSE));
        breaker.enter(later + PAUSE).expect("one may try").succeeded();
        let one = breaker.enter(later + PAUSE).expect("closed");
        let two = breaker.enter(later + PAUSE).expect("closed");
        drop((one, two));
    }

    #[test]
    fn a_try_that_was_given_up_makes_place_for_the_next() {
        let (breaker, start) = (Breaker::new(1, PAUSE), Instant::now());
        assert!(fail(&breaker, start));
        drop(breaker.enter(start + PAUSE).expect("one may try"));
        breaker.enter(start + PAUSE).expect("the place is free").succeeded();
        assert!(breaker.enter(start + PAUSE).is_ok());
    }

    #[test]
    fn calls_under_way_when_it_opens_do_not_lengthen_the_pause() {
        let (breaker, start) = (Breaker::new(1, PAUSE), Instant::now());
        let slow = breaker.enter(start).expect("closed");
        assert!(fail(&breaker, start));
        assert!(!slow.failed(start + Duration::from_secs(9)));
        assert!(breaker.enter(start + PAUSE).is_ok());
    }
}
