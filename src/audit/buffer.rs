//! The bounded buffer between request threads and the writer.
//!
//! `pushed` and `written` count bytes that went in and came out for good, so that a flush knows what it waits for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The line does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

pub(super) struct Buffer {
    bytes_max: usize,
    state: Mutex<State>,
    /// Wakes the writer: first line, a flush, or the close.
    to_writer: Condvar,
    /// Wakes those that flush.
    to_flushers: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    /// Bytes that the writer has taken and not finished; they count against the bound.
    in_flight: usize,
    pushed: u64,
    written: u64,
    /// Somebody waits: gather no longer.
    is_urgent: bool,
    is_closed: bool,
}

impl Buffer {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, state: Mutex::default(), to_writer: Condvar::new(), to_flushers: Condvar::new() }
    }

    /// Adds a line, or refuses it. Never waits for the writer.
    pub(super) fn push(&self, line: &[u8]) -> Result<(), Full> {
        let mut state = self.lock();
        if state.is_closed || state.lines.len() + state.in_flight + line.len() > self.bytes_max {
            return Err(Full);
        }
        let is_first = state.lines.is_empty();
        state.lines.extend_from_slice(line);
        state.pushed += line.len() as u64;
        drop(state);
        // Later lines find the writer awake, gathering.
        if is_first {
            self.to_writer.notify_one();
        }
        Ok(())
    }

    /// Waits for lines, gathers for `gather`, and moves them into `batch`, which is empty. False when the buffer is
    /// closed and empty.
    pub(super) fn next_batch(&self, batch: &mut Vec<u8>, gather: Duration) -> bool {
        let mut state = self.lock();
        while state.lines.is_empty() {
            if state.is_closed {
                return false;
            }
            // With nothing to write there is nothing to hurry for.
            state.is_urgent = false;
            state = self.to_writer.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let until = Instant::now() + gather;
        while !state.is_urgent && !state.is_closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.to_writer.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_urgent = false;
        std::mem::swap(&mut state.lines, batch);
        state.in_flight = batch.len();
        true
    }

    /// The writer is done with its batch, for better or worse.
    pub(super) fn batch_done(&self) {
        let mut state = self.lock();
        state.written += state.in_flight as u64;
        state.in_flight = 0;
        drop(state);
        self.to_flushers.notify_all();
    }

    /// Waits until everything pushed so far is written, at most `timeout`. Returns whether it is.
    pub(super) fn flush(&self, timeout: Duration) -> bool {
        let state = self.lock();
        self.wait_written(state, timeout)
    }

    /// Takes no more lines, and waits until everything is written, at most `timeout`. Returns whether it is.
    pub(super) fn close(&self, timeout: Duration) -> bool {
        let mut state = self.lock();
        state.is_closed = true;
        self.to_writer.notify_one();
        self.wait_written(state, timeout)
    }

    fn wait_written(&self, mut state: MutexGuard<'_, State>, timeout: Duration) -> bool {
        let (target, until) = (state.pushed, Instant::now() + timeout);
        while state.written < target {
            state.is_urgent = true;
            self.to_writer.notify_one();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.to_flushers.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// OK to go on after a panic elsewhere: no code panics while the state is between two valid ones.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
