//! Drives one session: brings it requests, verdicts and moments in order, and does what it wants done.
//!
//! Requests are read one at a time, and the next one not before the last one is scanned, so that a flood slows its sender
//! by flow control and nothing is buffered. Long chunks are scanned in pieces, between which other sessions get their
//! turn. Questions to the judge run beside the scanning.

use std::collections::HashSet;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::keep::{self, Keeper};
use super::outbox::{Message, Outbox};
use super::question::{judgement, question};
use super::{Effect, Event, Failure, JudgeRequest, Judgement, Session, SessionError, Summary, Time};
use crate::decision::{Decision, OutputStream, Reason, VerdictKind, VerdictSource};
use crate::judge::Judge;
use crate::telemetry::Metrics;

/// Bytes that are scanned at once at most, and before others get their turn.
const PIECE_BYTES: usize = 32 * 1024;
/// Bytes that are scanned at once at least.
const PIECE_BYTES_MIN: usize = 256;
/// Bytes of the first piece, of which the price is not known yet.
const PIECE_BYTES_FIRST: usize = 4 * 1024;
/// Work after which others get their turn. What costs more than usual is scanned in smaller pieces.
const TURN: Duration = Duration::from_millis(4);
/// What one message costs besides its bytes, in bytes.
const MESSAGE_COST: usize = 512;
/// How long records of incidents wait, so that their threads do not take the processor from those that carry verdicts to
/// the client, nor from a client on the same machine that kills. Scanning goes on meanwhile.
const RECORDS_WAIT: Duration = Duration::from_millis(25);
/// The same once a process is to be killed: what it did is to be known, and this process may be the next to die.
const KILL_RECORDS_WAIT: Duration = Duration::from_millis(5);
/// Records that wait at most: what is kept of an incident may take 8 KiB.
const RECORDS_MAX: usize = 256;
/// Records that are made before the client gets its turn: a chunk that comes meanwhile waits for them.
const RECORDS_TURN: usize = 1;
/// What the judge may take beyond its time-out before it is given up: it keeps to it by itself.
const JUDGE_GRACE: Duration = Duration::from_millis(250);

/// Where the monotonic clock of sessions begins.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Something that a client says after it has attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming<D> {
    /// Attaches once more, which is an error.
    Attach,
    /// Output of the process.
    Chunk {
        /// Where it was written to.
        stream: OutputStream,
        /// The bytes.
        data: D,
        /// Number of the chunk; 0 when the client does not count.
        seq: u64,
    },
    /// The process has ended, or is no longer watched.
    Detach {
        /// Its exit code, if known.
        exit_code: Option<i32>,
    },
}

/// Why there are no further requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken<E> {
    /// The client or its connection is gone.
    Gone,
    /// It sent what cannot be understood.
    Refused(E),
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending<E> {
    /// Well.
    Well,
    /// The session ended it.
    Session(SessionError),
    /// What the client sent could not be understood.
    Refused(E),
    /// The deadline of the call passed.
    DeadlineExceeded,
}

/// What a session works with.
pub struct Surroundings {
    /// Judges incidents, where a model is configured.
    pub judge: Option<Arc<dyn Judge>>,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// True once the server shuts down.
    pub draining: watch::Receiver<bool>,
    /// How long the client may send nothing.
    pub idle_timeout: Option<Duration>,
    /// When the caller stops waiting.
    pub deadline: Option<std::time::Instant>,
}

/// The moment, as sessions count it. Whole microseconds, as records keep no less.
pub fn now() -> Time {
    let wall = Timestamp::now();
    Time {
        wall: Timestamp::from_microsecond(wall.as_microsecond()).unwrap_or(wall),
        monotonic: Instant::now().saturating_duration_since(*EPOCH),
    }
}

/// Drives `session` to its end. `effects` are those of its beginning. The last message in `outbox` is the summary.
pub async fn drive<D, E, X>(
    session: Session,
    effects: Vec<Effect>,
    keeper: Keeper,
    requests: impl Stream<Item = Result<Incoming<D>, Broken<E>>> + Send,
    outbox: &Outbox<X>,
    surroundings: Surroundings,
) -> (Ending<E>, Summary)
where
    D: AsRef<[u8]> + Send,
{
    let mut requests = pin!(requests);
    let Surroundings { judge, metrics, mut draining, idle_timeout, deadline } = surroundings;
    let mut driver = Driver {
        session,
        outbox,
        keeper,
        metrics,
        judge,
        asked: FuturesUnordered::new(),
        effects,
        held_ack: None,
        untold: HashSet::new(),
        piece: PIECE_BYTES_FIRST,
        worked: Duration::ZERO,
        record_at: None,
        is_recording: false,
        received: Instant::now(),
        judged: Duration::ZERO,
        summary: None,
        ending: None,
    };
    driver.perform().await;
    let mut gone = pin!(outbox.gone());
    let mut drain = pin!(draining.wait_for(|is_draining| *is_draining).map(drop));
    let (mut is_gone, mut is_told_to_drain, mut is_open) = (false, false, true);
    let deadline = deadline.map(Instant::from_std);
    let mut heard = Instant::now();
    let mut own_ending = None;
    let mut wake = pin!(sleep_until(heard));
    let mut wake_at = None;
    let mut cost = 0;
    while driver.ending.is_none() {
        let idle_at = idle_timeout.filter(|_| is_open).map(|timeout| heard + timeout);
        let timer = driver.session.next_deadline().map(|at| *EPOCH + at);
        let next = [idle_at, timer, deadline, driver.record_at].into_iter().flatten().min();
        if let Some(next) = next.filter(|next| wake_at.is_none_or(|at| *next < at)) {
            wake.as_mut().reset(next);
            wake_at = Some(next);
        }
        tokio::select! {
            biased;
            () = &mut gone, if !is_gone => {
                (is_gone, is_open) = (true, false);
                driver.feed(Event::Gone).await;
            }
            // An error means that the sender is gone, which only the end of the process does.
            () = &mut drain, if !is_told_to_drain => {
                is_told_to_drain = true;
                driver.feed(Event::Draining).await;
            }
            Some(judged) = driver.asked.next(), if !driver.asked.is_empty() => {
                driver.judged = judged.elapsed;
                driver.feed(Event::Judged { incident: judged.incident, result: judged.result }).await;
            }
            () = &mut wake, if wake_at.is_some() => {
                let now = Instant::now();
                wake_at = None;
                driver.record_in_time(now);
                if deadline.is_some_and(|at| at <= now) {
                    own_ending = Some(Ending::DeadlineExceeded);
                    driver.feed(Event::Broken).await;
                } else if timer.is_some_and(|at| at <= now) {
                    driver.feed(Event::Timer).await;
                } else if idle_at.is_some_and(|at| at <= now) {
                    driver.feed(Event::Idle).await;
                }
            }
            request = requests.next(), if is_open => {
                heard = Instant::now();
                driver.received = heard;
                cost += MESSAGE_COST;
                match request {
                    Some(Ok(Incoming::Chunk { stream, data, seq })) => {
                        cost += driver.scan(stream, data.as_ref(), seq).await;
                    }
                    Some(Ok(Incoming::Detach { exit_code })) => driver.feed(Event::Detach { exit_code }).await,
                    Some(Ok(Incoming::Attach)) => driver.feed(Event::Attach).await,
                    None => {
                        is_open = false;
                        driver.feed(Event::Closed).await;
                    }
                    Some(Err(Broken::Gone)) => {
                        (is_gone, is_open) = (true, false);
                        driver.feed(Event::Gone).await;
                    }
                    Some(Err(Broken::Refused(error))) => {
                        is_open = false;
                        own_ending = Some(Ending::Refused(error));
                        driver.feed(Event::Broken).await;
                    }
                }
                if cost > PIECE_BYTES || driver.worked >= TURN {
                    cost = 0;
                    driver.worked = Duration::ZERO;
                    // A client that never pauses does not keep records from being made.
                    if driver.is_recording {
                        driver.record_some().await;
                    } else {
                        tokio::task::yield_now().await;
                    }
                }
            }
            // Last, so that whatever the client sent comes first.
            () = std::future::ready(()), if driver.is_recording => driver.record_some().await,
        }
    }
    driver.keeper.finish().await;
    let summary = driver.summary.take().unwrap_or_default();
    outbox.push(Message::Summary(summary.clone()));
    let ending = match (own_ending, driver.ending) {
        (Some(ending), _) => ending,
        (None, Some(Err(error))) => Ending::Session(error),
        (None, _) => Ending::Well,
    };
    (ending, summary)
}

/// A session's verdicts as one decision: that of its strongest.
pub fn decision_of_session(summary: &Summary) -> Decision {
    summary.worst.map_or(Decision::Allow, |worst| keep::decision_of(Some(worst), false))
}

/// What came of a question to the judge.
struct Judged {
    incident: Arc<str>,
    result: Result<Judgement, Failure>,
    elapsed: Duration,
}

type Asking = Pin<Box<dyn Future<Output = Judged> + Send>>;

struct Driver<'a, X> {
    session: Session,
    outbox: &'a Outbox<X>,
    keeper: Keeper,
    metrics: Arc<Metrics>,
    judge: Option<Arc<dyn Judge>>,
    asked: FuturesUnordered<Asking>,
    effects: Vec<Effect>,
    /// The acknowledgement of a chunk whose last piece is not scanned yet.
    held_ack: Option<Message>,
    /// Incidents whose verdict the client could not be told.
    untold: HashSet<Arc<str>>,
    /// Bytes of the next piece, by what the last ones cost.
    piece: usize,
    /// Work since others had their turn.
    worked: Duration,
    /// When what is told about incidents is recorded, if any waits for that.
    record_at: Option<Instant>,
    /// Whether that time has come, and the client is slower than the recording.
    is_recording: bool,
    /// When the last message came.
    received: Instant,
    /// How long the judge took that answered last.
    judged: Duration,
    summary: Option<Summary>,
    ending: Option<Result<(), SessionError>>,
}

impl<X> Driver<'_, X> {
    async fn feed(&mut self, event: Event<'_>) {
        self.session.on(event, now(), &mut self.effects);
        self.perform().await;
    }

    /// Scans one chunk, in pieces if it is long. Answers what of it was not yet paid for by yielding.
    async fn scan(&mut self, stream: OutputStream, data: &[u8], seq: u64) -> usize {
        let (first, mut rest) = data.split_at(cut(data, self.piece));
        let started = Instant::now();
        self.session.on(Event::Chunk { stream, data: first, seq }, now(), &mut self.effects);
        self.measure(first.len(), started);
        self.metrics.count_monitored(stream, first.len() as u64);
        self.perform_of_chunk(rest.is_empty()).await;
        let mut unpaid = first.len();
        while !rest.is_empty() && self.ending.is_none() {
            if unpaid >= PIECE_BYTES || self.worked >= TURN {
                tokio::task::yield_now().await;
                self.worked = Duration::ZERO;
                unpaid = 0;
            }
            let (piece, after) = rest.split_at(cut(rest, self.piece));
            rest = after;
            let started = Instant::now();
            self.session.on(Event::More { stream, data: piece }, now(), &mut self.effects);
            self.measure(piece.len(), started);
            self.metrics.count_monitored(stream, piece.len() as u64);
            self.perform_of_chunk(rest.is_empty()).await;
            unpaid += piece.len();
        }
        unpaid
    }

    /// Takes note of what a piece of `bytes` cost, and makes the next one as long as a part of a turn allows.
    fn measure(&mut self, bytes: usize, started: Instant) {
        let elapsed = started.elapsed();
        self.worked += elapsed;
        self.piece = next_piece(self.piece, bytes, elapsed);
    }

    /// Performs what came of a piece; the acknowledgement of the chunk follows its last piece.
    async fn perform_of_chunk(&mut self, is_last: bool) {
        if !is_last || self.held_ack.is_some() {
            let ack = self.effects.iter().position(|effect| matches!(effect, Effect::Ack { .. }));
            if let Some(Effect::Ack { stream, seq }) = ack.map(|at| self.effects.remove(at)) {
                self.held_ack = Some(Message::Ack { stream, seq });
            }
        }
        self.perform().await;
        if let Some(ack) = self.held_ack.take_if(|_| is_last) {
            self.outbox.push(ack);
        }
    }

    /// What the client is to be told is on its way before anything is logged or recorded: the task that writes to the
    /// connection may run only when this one lets it, and what records wake competes with it. What is to be kept is
    /// handed over before, so that a client can ask for an incident as soon as it was told; the writer is woken after.
    async fn perform(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        effects.sort_by_key(turn);
        let urgent = effects.partition_point(|effect| turn(effect) < LATER);
        let is_told = effects[..urgent].iter().any(|effect| matches!(effect, Effect::Incident(_)));
        let keeps = is_told || effects[..urgent].iter().any(|effect| matches!(effect, Effect::Save(_)));
        let kills =
            |effect: &Effect| matches!(effect, Effect::Verdict(told) if told.verdict == VerdictKind::Kill);
        let wait = if effects[..urgent].iter().any(kills) { KILL_RECORDS_WAIT } else { RECORDS_WAIT };
        let outbox = self.outbox;
        outbox.gathered(|| effects.drain(..urgent).for_each(|effect| self.perform_one(effect)));
        for effect in effects.drain(..) {
            self.perform_one(effect);
        }
        // The room is used again.
        self.effects = effects;
        if is_told {
            tokio::task::yield_now().await;
        }
        if keeps && !self.is_recording {
            let at = Instant::now() + wait;
            self.record_at = Some(self.record_at.map_or(at, |known| known.min(at)));
        }
        // One message brings few incidents as a rule, and what more it brings is recorded at once.
        if self.keeper.waiting() >= RECORDS_MAX {
            self.keeper.record_some((self.keeper.waiting() - RECORDS_MAX).max(RECORDS_TURN));
        }
    }

    /// Lets the recording of what waits for it begin, if its time has come.
    fn record_in_time(&mut self, now: Instant) {
        if self.record_at.is_some_and(|at| at <= now) {
            self.record_at = None;
            self.is_recording = true;
        }
    }

    /// Records a few of what waits for it.
    async fn record_some(&mut self) {
        self.keeper.record_some(RECORDS_TURN);
        self.is_recording = self.keeper.waiting() > 0;
        tokio::task::yield_now().await;
    }

    fn perform_one(&mut self, effect: Effect) {
        match effect {
            Effect::Attached { session_id, policy_revision } => {
                self.outbox.push(Message::Attached { session_id, policy_revision });
            }
            Effect::Ack { stream, seq } => {
                self.outbox.push(Message::Ack { stream, seq });
            }
            Effect::Incident(incident) => {
                self.keeper.reported(&incident);
                self.outbox.push(Message::Incident(incident));
            }
            Effect::Verdict(verdict) => {
                let elapsed = match verdict.source {
                    VerdictSource::Rule | VerdictSource::Policy => self.received.elapsed(),
                    VerdictSource::Judge | VerdictSource::FailMode => self.judged,
                };
                self.metrics.record_verdict(verdict.source, elapsed);
                let id = (verdict.verdict > VerdictKind::Safe).then(|| verdict.incident_id.clone());
                // A client that is gone is the business of the session; this is one that does not read.
                if !self.outbox.push(Message::Verdict(verdict)) {
                    self.untold.extend(id);
                }
            }
            Effect::Save(incident) => {
                let incident =
                    if self.untold.remove(&incident.id) { keep::untold(&incident) } else { incident };
                self.keeper.save(incident);
            }
            Effect::Ask(request) => self.asked.push(Box::pin(ask(self.judge.clone(), request))),
            Effect::Summary(summary) => self.summary = Some(summary),
            Effect::End(result) => self.ending = Some(result),
        }
    }
}

/// Where the next piece of at most `most` bytes ends: where a line does, if one does, since whole lines are read quicker.
fn cut(data: &[u8], most: usize) -> usize {
    match data.get(..most) {
        None => data.len(),
        Some(piece) => memchr::memrchr(b'\n', piece).map_or(most, |newline| newline + 1),
    }
}

/// Bytes of the next piece, after one of `bytes` bytes took `elapsed` and could have had `piece`: at most twice as many,
/// and at most what fits half a turn at this price.
fn next_piece(piece: usize, bytes: usize, elapsed: Duration) -> usize {
    let half = TURN.as_nanos() / 2;
    let fits = (bytes as u128 * half).checked_div(elapsed.as_nanos()).unwrap_or(u128::MAX);
    let fits = usize::try_from(fits).unwrap_or(usize::MAX);
    // A short piece that was quick says little about long ones.
    let longest = if bytes >= piece / 2 || fits < piece { piece.saturating_mul(2) } else { piece };
    fits.min(longest).clamp(PIECE_BYTES_MIN, PIECE_BYTES)
}

/// Turn of effects that can wait until the client was told.
const LATER: u8 = 2;

/// When an effect has its turn: messages to the client first, then what is to be kept, then the rest.
fn turn(effect: &Effect) -> u8 {
    match effect {
        Effect::Attached { .. } | Effect::Ack { .. } | Effect::Incident(_) | Effect::Verdict(_) => 0,
        Effect::Save(_) => 1,
        // The summary waits until everything is kept.
        Effect::Ask(_) | Effect::Summary(_) | Effect::End(_) => LATER,
    }
}

async fn ask(judge: Option<Arc<dyn Judge>>, request: Box<JudgeRequest>) -> Judged {
    let started = Instant::now();
    let failed = |reason, detail: &str| Err(Failure { reason, detail: detail.to_owned() });
    let result = match judge {
        None => failed(Reason::Unavailable, "no judge is configured"),
        Some(judge) => {
            let question = question(&request);
            let until = (started + request.timeout).into_std();
            match tokio::time::timeout(request.timeout + JUDGE_GRACE, judge.ask(&question, until)).await {
                Ok(Ok(answer)) => match judgement(&answer) {
                    Some(judgement) => Ok(judgement),
                    None => failed(Reason::BadAnswer, "the answer is of another shape"),
                },
                Ok(Err(not_judged)) => Err(Failure { reason: not_judged.reason, detail: not_judged.detail }),
                Err(_) => failed(Reason::Timeout, "no answer in time"),
            }
        }
    };
    Judged { incident: request.incident.id.clone(), result, elapsed: started.elapsed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_with_a_line_where_they_can() {
        for (data, most, end) in
            [("ab\ncd\nef", 7, 6), ("ab\ncd", 9, 5), ("ab\n", 3, 3), ("abcd", 2, 2), ("", 9, 0)]
        {
            assert_eq!(cut(data.as_bytes(), most), end, "{data:?}");
        }
    }

    #[test]
    fn pieces_are_as_long_as_their_price_allows() {
        let (quick, slow) = (Duration::from_micros(1), Duration::from_millis(20));
        let mut piece = PIECE_BYTES_MIN;
        for _ in 0..10 {
            piece = next_piece(piece, piece, quick);
        }
        assert_eq!(piece, PIECE_BYTES);
        assert_eq!(next_piece(piece, piece, slow), PIECE_BYTES / 10);
        assert_eq!(next_piece(1_000, 1_000, Duration::from_secs(1)), PIECE_BYTES_MIN);
        assert_eq!(next_piece(1_000, 10, quick), 1_000, "a short piece says little");
        assert_eq!(next_piece(1_000, 0, Duration::ZERO), 1_000);
    }
}
