//! Our own standard output and standard error: bytes that wait to be written, and the thread that writes them.
//!
//! Whoever reads what we write may be slow, or stand still. That must hold up neither the scanning of what the command
//! wrote nor the one who decides. So bytes are taken at once and in order, and a thread of its own writes them. When a
//! bounded amount waits, whoever brings bytes of the command reads no more of them for the time being.

use std::io::{self, PipeReader, PipeWriter, pipe};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::relay::write_all;

/// Bytes that may wait before no more is read from the command.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// Bytes beyond that for what we say ourselves.
const OWN_BYTES_MAX: usize = 1 << 20;
/// Bytes that are written at once.
const PART_BYTES: usize = 64 << 10;
/// Room that is kept for what comes next.
const KEPT_BYTES: usize = 256 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Shown {
    state: Mutex<State>,
    changed: Condvar,
    /// Ends when nobody reads any longer.
    gone: PipeReader,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    /// Bytes that the thread has taken and not written.
    writing: usize,
    /// Whether little more can come, so that all of it is taken.
    is_last: bool,
    /// Whether nothing more comes.
    is_closed: bool,
    /// Whether nobody reads any longer.
    is_gone: bool,
}

impl Shown {
    /// Takes bytes for `to` from now on; `tell` hears when all were written, or nobody reads them.
    pub(super) fn start(
        to: BorrowedFd<'static>,
        name: &str,
        tell: impl FnOnce() + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let (gone, is_read) = pipe()?;
        let shown = Arc::new(Self { state: Mutex::default(), changed: Condvar::new(), gone });
        let writer = shown.clone();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            writer.write(to, is_read);
            tell();
        })?;
        Ok(shown)
    }

    /// Takes what the command wrote. Never waits.
    pub(super) fn show(&self, data: &[u8]) {
        let mut state = self.lock();
        if !state.is_gone {
            state.waiting.extend_from_slice(data);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Takes what we say ourselves. Never waits; answers false where too much waits already.
    pub(super) fn say(&self, text: &str) -> bool {
        let has_room = self.lock().pending() + text.len() <= WAITING_BYTES_MAX + OWN_BYTES_MAX;
        if has_room {
            self.show(text.as_bytes());
        }
        has_room
    }

    /// Waits until more may be read from the command.
    pub(super) fn wait_for_room(&self) {
        let is_full =
            |state: &mut State| state.pending() >= WAITING_BYTES_MAX && !state.is_last && !state.is_gone;
        drop(self.changed.wait_while(self.lock(), is_full));
    }

    /// The command is dead: what may still be in its pipes is little, so that nobody waits for room any longer.
    pub(super) fn expect_last(&self) {
        self.lock().is_last = true;
        self.changed.notify_all();
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Whether nobody reads any longer.
    pub(super) fn is_gone(&self) -> bool {
        self.lock().is_gone
    }

    /// Ends when nobody reads any longer.
    pub(super) fn gone(&self) -> &PipeReader {
        &self.gone
    }

    /// Writes until there is nothing more to write. `is_read` is open for as long as somebody reads.
    fn write(&self, to: BorrowedFd<'_>, is_read: PipeWriter) {
        let mut batch = Vec::new();
        loop {
            let is_idle = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
            let waited = self.changed.wait_while(self.lock(), is_idle);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            if state.waiting.is_empty() {
                return;
            }
            std::mem::swap(&mut batch, &mut state.waiting);
            state.writing = batch.len();
            drop(state);
            for part in batch.chunks(PART_BYTES) {
                let is_written = write_all(to, part);
                let mut state = self.lock();
                state.writing -= part.len();
                if !is_written {
                    *state = State { is_gone: true, ..State::default() };
                    drop(is_read);
                    drop(state);
                    return self.changed.notify_all();
                }
                drop(state);
                self.changed.notify_all();
            }
            batch.clear();
            batch.shrink_to(KEPT_BYTES);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while it held the lock leaves a state that is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn pending(&self) -> usize {
        self.waiting.len() + self.writing
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::fd::AsFd as _;
    use std::sync::mpsc::channel;

    use super::*;

    /// A pipe whose writing side lives as long as the process, as our own output does.
    fn stalled() -> (PipeReader, BorrowedFd<'static>) {
        let (reader, writer) = pipe().expect("a pipe");
        let writer: &'static PipeWriter = Box::leak(Box::new(writer));
        (reader, writer.as_fd())
    }

    #[test]
    fn what_nobody_reads_is_taken_up_to_a_limit_and_written_in_order() {
        let (mut reader, to) = stalled();
        let (written, is_written) = channel();
        let shown = Shown::start(to, "test", move || written.send(()).expect("heard")).expect("a thread");
        let part: Vec<u8> = (0..PART_BYTES).map(|at| (at % 251) as u8).collect();
        let parts = WAITING_BYTES_MAX / PART_BYTES;
        for _ in 0..parts {
            shown.wait_for_room();
            shown.show(&part);
        }
        // One part at most is in the pipe.
        assert!(shown.lock().pending() >= WAITING_BYTES_MAX - PART_BYTES);
        while shown.lock().pending() < WAITING_BYTES_MAX {
            shown.show(b"x");
        }
        assert!(shown.say("a word\n"), "our own words find room");
        // Some of what waited may have gone into the pipe meanwhile.
        assert!(!shown.say(&"x".repeat(OWN_BYTES_MAX + 2 * PART_BYTES)), "and not without end");
        let waiting = thread::spawn({
            let shown = shown.clone();
            move || shown.wait_for_room()
        });
        shown.close();
        let mut seen = Vec::new();
        let mut buffer = vec![0; PART_BYTES];
        while !seen.ends_with(b"a word\n") {
            let length = reader.read(&mut buffer).expect("it is open");
            assert!(length > 0, "all of it is written");
            seen.extend_from_slice(&buffer[..length]);
        }
        is_written.recv().expect("it says so");
        waiting.join().expect("there is room");
        assert!(seen.starts_with(&part.repeat(parts)), "the same bytes");
        assert!(seen[part.len() * parts..seen.len() - 7].iter().all(|byte| *byte == b'x'));
    }

    #[test]
    fn nobody_waits_for_a_reader_that_is_gone_or_for_the_last_bytes() {
        let (reader, to) = stalled();
        let shown = Shown::start(to, "test", || ()).expect("a thread");
        shown.show(&vec![b'x'; WAITING_BYTES_MAX + 1]);
        shown.expect_last();
        shown.wait_for_room();
        drop(reader);
        assert_eq!(shown.gone().read(&mut [0]).expect("it ends"), 0);
        assert!(shown.is_gone());
        shown.show(b"more");
        assert_eq!(shown.lock().pending(), 0, "nothing is kept");
    }
}
