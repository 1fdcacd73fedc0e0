//! What a command wrote, on its way to the monitor: numbered, kept until it was scanned, and sent again to another
//! monitor when the first one goes away.
//!
//! Both streams meet here, each in its own order. A chunk stays until the monitor acknowledges it; when more than a
//! bounded amount waits, whoever brings more has to wait too, and with it the command: nothing goes unscanned, however
//! slow the monitor is. Of what was acknowledged a tail is kept, so that a match that begins before the place where one
//! monitor stopped and ends behind it is found by the next.
//!
//! Does not: read, write or wait for anything but its own lock.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use prost::bytes::Bytes;
use tokio::sync::mpsc::UnboundedSender;

use crate::pb::v1;

/// Most bytes that wait to be scanned, over both streams.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Most chunks that wait to be scanned; a command may write single bytes.
const WAITING_CHUNKS_MAX: usize = 4096;
/// Bytes of each stream that are kept after they were scanned: more than the longest match.
const TAIL_BYTES: usize = 16 << 10;

/// One of the two streams, as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// Standard output, or a terminal.
    Output = 0,
    /// Standard error.
    Errors = 1,
}

impl Stream {
    /// The name in the contract.
    pub(super) fn wire(self) -> v1::OutputStream {
        match self {
            Self::Output => v1::OutputStream::Stdout,
            Self::Errors => v1::OutputStream::Stderr,
        }
    }
}

/// What takes the requests of one monitor.
pub(super) type Requests = UnboundedSender<v1::StreamMonitorRequest>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    link: Link,
    /// Number of the last chunk sent to this monitor.
    seq: u64,
    /// Sent and not acknowledged, in order.
    waiting: VecDeque<Sent>,
    waiting_bytes: usize,
    /// The last bytes that were acknowledged, of each stream.
    tails: [Vec<u8>; 2],
    /// Bytes acknowledged, of each stream, from the start of the command.
    scanned: [u64; 2],
    /// The end of the command, once told.
    detach: Option<v1::Detach>,
}

/// Who is told.
#[derive(Debug, Default)]
enum Link {
    /// Nobody yet, or one has gone and the next is not there: everything waits.
    #[default]
    Waiting,
    /// This monitor.
    Monitor(Requests),
    /// Nobody ever again: nothing is kept.
    Nobody,
}

#[derive(Debug)]
struct Sent {
    seq: u64,
    stream: Stream,
    data: Bytes,
    /// Not to be sent to another monitor: that was scanned before, or is empty.
    is_repeated: bool,
}

impl Outbox {
    /// Sends to `monitor` from now on, which has been attached: first what was kept, then the rest. Answers how many
    /// bytes of each stream, standard output first, come before the first one that this monitor sees.
    pub(super) fn connect(&self, monitor: Requests) -> [u64; 2] {
        let mut state = self.lock();
        state.seq = 0;
        let rest = std::mem::take(&mut state.waiting);
        state.waiting_bytes = 0;
        state.link = Link::Monitor(monitor);
        let mut starts = state.scanned;
        for stream in [Stream::Output, Stream::Errors] {
            let tail = from_line_start(&state.tails[stream as usize]);
            if !tail.is_empty() {
                starts[stream as usize] -= tail.len() as u64;
                let data = Bytes::copy_from_slice(tail);
                state.send(stream, data, true);
            }
        }
        for sent in rest.into_iter().filter(|sent| !sent.is_repeated) {
            state.send(sent.stream, sent.data, false);
        }
        if let Some(detach) = state.detach {
            state.tell_end(detach);
        }
        drop(state);
        self.changed.notify_all();
        starts
    }

    /// The monitor is gone: everything waits for the next.
    pub(super) fn disconnect(&self) {
        self.lock().link = Link::Waiting;
    }

    /// There will be no other: nothing is kept, and nobody waits.
    pub(super) fn give_up(&self) {
        let mut state = self.lock();
        state.link = Link::Nobody;
        state.waiting.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// Hands over what came out of `stream` unless that would mean to wait; answers whether it did.
    pub(super) fn try_push(&self, stream: Stream, data: &Bytes) -> bool {
        let mut state = self.lock();
        let has_room = state.has_room();
        if has_room {
            state.push(stream, data.clone());
        }
        has_room
    }

    /// Hands over what came out of `stream`, as soon as there is room.
    pub(super) fn push(&self, stream: Stream, data: Bytes) {
        let state = self.lock();
        let waited = self.changed.wait_while(state, |state| !state.has_room());
        waited.unwrap_or_else(PoisonError::into_inner).push(stream, data);
    }

    /// Says that we are still here, by an empty chunk.
    pub(super) fn keep_alive(&self) {
        let mut state = self.lock();
        if matches!(state.link, Link::Monitor(_)) && state.waiting.is_empty() {
            state.send(Stream::Output, Bytes::new(), true);
        }
    }

    /// Everything up to the chunk `seq` was scanned.
    pub(super) fn acknowledge(&self, seq: u64) {
        let mut state = self.lock();
        while state.waiting.front().is_some_and(|sent| sent.seq <= seq) {
            let Some(sent) = state.waiting.pop_front() else { break };
            state.waiting_bytes -= sent.data.len();
            if !sent.is_repeated {
                let index = sent.stream as usize;
                state.scanned[index] += sent.data.len() as u64;
                keep_tail(&mut state.tails[index], &sent.data);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The command has ended; nothing more comes.
    pub(super) fn detach(&self, exit_code: i32) {
        let mut state = self.lock();
        let detach = v1::Detach { exit_code: Some(exit_code.into()) };
        state.detach = Some(detach);
        state.tell_end(detach);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while it held the lock leaves a state that is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has_room(&self) -> bool {
        match self.link {
            Link::Nobody => true,
            Link::Waiting => false,
            Link::Monitor(_) => {
                self.waiting_bytes < WAITING_BYTES_MAX && self.waiting.len() < WAITING_CHUNKS_MAX
            }
        }
    }

    fn push(&mut self, stream: Stream, data: Bytes) {
        if !matches!(self.link, Link::Nobody) {
            self.send(stream, data, false);
        }
    }

    fn send(&mut self, stream: Stream, data: Bytes, is_repeated: bool) {
        self.seq += 1;
        let chunk = v1::Chunk { stream: stream.wire().into(), data: data.clone(), seq: self.seq };
        self.waiting_bytes += data.len();
        self.waiting.push_back(Sent { seq: self.seq, stream, data, is_repeated });
        self.tell(v1::stream_monitor_request::Kind::Chunk(chunk));
    }

    /// Says that the command has ended, and closes this side.
    fn tell_end(&mut self, detach: v1::Detach) {
        self.tell(v1::stream_monitor_request::Kind::Detach(detach));
        if matches!(self.link, Link::Monitor(_)) {
            self.link = Link::Waiting;
        }
    }

    fn tell(&self, kind: v1::stream_monitor_request::Kind) {
        if let Link::Monitor(requests) = &self.link {
            // A monitor that is gone is noticed by whoever listens to it, and told all of this again.
            let _ = requests.send(v1::StreamMonitorRequest { kind: Some(kind) });
        }
    }
}

/// What of a tail is sent again: from the beginning of a line, if it has one, since a cut may look like the start of a
/// word.
fn from_line_start(tail: &[u8]) -> &[u8] {
    if tail.len() < TAIL_BYTES {
        return tail;
    }
    memchr::memchr(b'\n', tail).map_or(tail, |at| &tail[at + 1..])
}

fn keep_tail(tail: &mut Vec<u8>, data: &[u8]) {
    let data = &data[data.len().saturating_sub(TAIL_BYTES)..];
    let excess = (tail.len() + data.len()).saturating_sub(TAIL_BYTES);
    tail.drain(..excess.min(tail.len()));
    tail.extend_from_slice(data);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
    use v1::stream_monitor_request::Kind;

    use super::*;

    /// What a monitor was told, as text: `out:…`, `err:…`, `end:…`; chunk numbers are checked on the way.
    fn told(requests: &mut UnboundedReceiver<v1::StreamMonitorRequest>) -> Vec<String> {
        let (mut told, mut last) = (Vec::new(), 0);
        while let Ok(request) = requests.try_recv() {
            told.push(match request.kind.expect("a kind") {
                Kind::Chunk(chunk) => {
                    if last != 0 {
                        assert_eq!(chunk.seq, last + 1, "no gap");
                    }
                    last = chunk.seq;
                    let name = if chunk.stream() == v1::OutputStream::Stdout { "out" } else { "err" };
                    format!("{name}:{}", String::from_utf8_lossy(&chunk.data))
                }
                Kind::Detach(detach) => format!("end:{}", detach.exit_code.expect("a code").value),
                Kind::Attach(_) => "attach".to_owned(),
            });
        }
        told
    }

    fn push(outbox: &Outbox, stream: Stream, text: &str) {
        outbox.push(stream, Bytes::copy_from_slice(text.as_bytes()));
    }

    #[test]
    fn what_was_not_scanned_and_a_tail_go_to_the_next_monitor() {
        let outbox = Outbox::default();
        let (first, mut heard) = unbounded_channel();
        assert_eq!(outbox.connect(first), [0, 0]);
        push(&outbox, Stream::Output, "one ");
        push(&outbox, Stream::Errors, "bad ");
        push(&outbox, Stream::Output, "two ");
        outbox.acknowledge(2);
        assert_eq!(told(&mut heard), ["out:one ", "err:bad ", "out:two "]);

        outbox.disconnect();
        assert!(!outbox.try_push(Stream::Output, &Bytes::from_static(b"x")), "it waits for the next monitor");
        let (second, mut heard) = unbounded_channel();
        assert_eq!(outbox.connect(second), [0, 0], "the tails are whole");
        assert_eq!(told(&mut heard), ["out:one ", "err:bad ", "out:two "]);
        push(&outbox, Stream::Output, "three");
        outbox.detach(7);
        assert_eq!(told(&mut heard), ["out:three", "end:7"]);
        assert!(heard.is_closed(), "the side is closed after the end");
        outbox.acknowledge(4);

        let (third, mut heard) = unbounded_channel();
        outbox.connect(third);
        assert_eq!(
            told(&mut heard),
            ["out:one two three", "err:bad ", "end:7"],
            "also the end is told again"
        );
    }

    #[test]
    fn a_long_tail_begins_with_a_line() {
        let outbox = Outbox::default();
        let (first, _heard) = unbounded_channel();
        outbox.connect(first);
        let line = format!("{}\n", "a".repeat(999));
        for seq in 1..=40 {
            push(&outbox, Stream::Errors, &line);
            outbox.acknowledge(seq);
        }
        outbox.disconnect();
        let (second, mut heard) = unbounded_channel();
        assert_eq!(outbox.connect(second), [0, 24_000]);
        assert_eq!(told(&mut heard), [format!("err:{}", line.repeat(16))]);
    }

    #[test]
    fn whoever_brings_too_much_waits_until_it_was_scanned() {
        let outbox = Arc::new(Outbox::default());
        let (monitor, mut heard) = unbounded_channel();
        outbox.connect(monitor);
        let half = Bytes::from(vec![b'x'; WAITING_BYTES_MAX / 2]);
        assert!(outbox.try_push(Stream::Output, &half) && outbox.try_push(Stream::Output, &half));
        assert!(!outbox.try_push(Stream::Errors, &Bytes::from_static(b"y")));
        let waiting = std::thread::spawn({
            let outbox = outbox.clone();
            move || push(&outbox, Stream::Errors, "y")
        });
        outbox.acknowledge(1);
        waiting.join().expect("there is room");
        assert_eq!(told(&mut heard).last().expect("chunks"), "err:y");
    }

    #[test]
    fn with_nobody_to_tell_nobody_waits() {
        let outbox = Outbox::default();
        let big = Bytes::from(vec![b'x'; WAITING_BYTES_MAX]);
        outbox.give_up();
        for _ in 0..3 {
            assert!(outbox.try_push(Stream::Output, &big));
        }
        outbox.detach(0);
    }

    #[test]
    fn a_tail_is_the_last_bytes() {
        for (first, second) in [(0, 5), (5, 0), (TAIL_BYTES, 1), (1, TAIL_BYTES), (3 * TAIL_BYTES, 7)] {
            let whole: Vec<u8> = (0..first + second).map(|at| (at % 251) as u8).collect();
            let mut tail = Vec::new();
            keep_tail(&mut tail, &whole[..first]);
            keep_tail(&mut tail, &whole[first..]);
            assert_eq!(tail, whole[whole.len().saturating_sub(TAIL_BYTES)..], "{first} and {second}");
        }
    }
}
