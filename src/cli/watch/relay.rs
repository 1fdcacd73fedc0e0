//! The bytes between a command and us: its output to ours and to the monitor, our keyboard to its terminal.
//!
//! Every byte goes out as it came in, in the order of its stream, and without waiting for a verdict: it is handed to the
//! monitor first if that takes no waiting, handed to whoever shows it, and to the monitor then if not. So neither a slow
//! monitor delays what is on its way to the screen nor a slow reader of the screen a verdict; what waits is the next read,
//! and with it the command.

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use prost::bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;

use super::outbox::{Outbox, Stream};
use super::shown::Shown;
use super::terminal;

/// Most bytes of one chunk: what a pipe holds.
const CHUNK_BYTES: usize = 64 << 10;
/// How long a terminal may take to hand out what was written to it before its last writer ended.
const LAST_BYTES: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// One stream of the command.
pub(super) struct Relay {
    /// Where it comes out.
    pub(super) from: OwnedFd,
    /// Which one it is.
    pub(super) stream: Stream,
    /// Who wants to know.
    pub(super) outbox: Arc<Outbox>,
    /// Who shows it.
    pub(super) shown: Arc<Shown>,
    /// Ends when nobody of the command is left: others who hold the stream open are not waited for.
    pub(super) command_is_gone: PipeReader,
    /// Whether it is a terminal, whose writers do not notice when nobody reads any longer.
    pub(super) is_terminal: bool,
}

/// How a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// There is nothing more.
    Whole,
    /// Nobody reads our side any longer. On pipes the command will notice the same way as without us.
    NobodyReads,
}

impl Relay {
    /// Copies until the stream ends, on a thread of its own; `tell` hears how it ended.
    pub(super) fn start(self, tell: impl FnOnce(End) + Send + 'static) -> io::Result<()> {
        let name = format!("watch-{:?}", self.stream).to_lowercase();
        thread::Builder::new().name(name).spawn(move || tell(self.run())).map(drop)
    }

    fn run(self) -> End {
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut end = End::Whole;
        loop {
            self.shown.wait_for_room();
            if self.shown.is_gone() {
                end = End::NobodyReads;
                // Closing our end is how the writer of a pipe learns of it; that of a terminal is told by a signal.
                if !self.is_terminal {
                    return end;
                }
            }
            let length = match self.read(&mut buffer, end == End::Whole) {
                Read::Bytes(length) => length,
                Read::NobodyReads => continue,
                Read::End => return end,
            };
            let data = Bytes::copy_from_slice(&buffer[..length]);
            let is_told = self.outbox.try_push(self.stream, &data);
            self.shown.show(&data);
            if !is_told {
                self.outbox.push(self.stream, data);
            }
        }
    }

    /// Reads what is there, waiting for it while somebody of the command could still write, and, where that `matters`,
    /// while somebody reads what we write.
    fn read(&self, buffer: &mut [u8], matters: bool) -> Read {
        let count = if matters { 3 } else { 2 };
        loop {
            let mut all = [
                PollFd::new(&self.from, PollFlags::IN),
                PollFd::from_borrowed_fd(self.command_is_gone.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.shown.gone().as_fd(), PollFlags::IN),
            ];
            match poll(&mut all[..count], None) {
                Err(Errno::INTR) => continue,
                Err(_) => return Read::End,
                Ok(_) => {}
            }
            if all[0].revents().is_empty() {
                if matters && !all[2].revents().is_empty() {
                    return Read::NobodyReads;
                }
                // Everything the command ever wrote has been written.
                match poll(&mut all[..1], Some(&LAST_BYTES)) {
                    Err(Errno::INTR) => continue,
                    Ok(ready) if ready > 0 => {}
                    _ => return Read::End,
                }
            }
            match rustix::io::read(&self.from, &mut *buffer) {
                Ok(0) => return Read::End,
                Ok(length) => return Read::Bytes(length),
                Err(Errno::INTR | Errno::AGAIN) => {}
                // EIO is how a terminal says that its last user has gone.
                Err(_) => return Read::End,
            }
        }
    }
}

/// What came of reading.
enum Read {
    /// So many bytes.
    Bytes(usize),
    /// Nobody reads our side any longer.
    NobodyReads,
    /// There is nothing more.
    End,
}

/// Writes all of `data`, also where others have made the file non-blocking; answers whether that could be done.
pub(super) fn write_all(to: BorrowedFd<'_>, mut data: &[u8]) -> bool {
    while !data.is_empty() {
        match rustix::io::write(to, data) {
            Ok(written) => data = &data[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None);
            }
            Err(_) => return false,
        }
    }
    true
}

/// Copies our keyboard to the terminal of the command, on a thread of its own; `on_suspend` hears of the key that
/// suspends. The thread ends with the process.
pub(super) fn relay_keys(
    near: OwnedFd,
    leader: Pid,
    on_suspend: impl Fn() + Send + 'static,
) -> io::Result<()> {
    let copy = move || {
        let mut keys = [0; 4096];
        loop {
            let length = match rustix::io::read(rustix::stdio::stdin(), &mut keys) {
                Ok(0) => return,
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    let _ = poll(&mut [PollFd::new(&rustix::stdio::stdin(), PollFlags::IN)], None);
                    continue;
                }
                Err(_) => return,
            };
            let keys = &keys[..length];
            let key = terminal::suspend_key(near.as_fd(), leader);
            if !write_all(near.as_fd(), keys) {
                return;
            }
            if key.is_some_and(|key| keys.contains(&key)) {
                on_suspend();
            }
        }
    };
    thread::Builder::new().name("watch-keys".to_owned()).spawn(copy).map(drop)
}
