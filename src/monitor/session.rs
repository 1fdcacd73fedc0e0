//! One session: a pure state machine from events to effects.
//!
//! The client attaches, sends chunks, detaches and closes its side. Each hit of a rule becomes an incident with one or
//! two verdicts (`cases`); the session ends with a summary once all verdicts are in or have been waited for.

use std::sync::Arc;
use std::time::Duration;

use super::cases::Cases;
use super::event::{Attachment, Effect, Event, Ids, Limits, SessionError, Time};
use super::incident::Summary;
use super::plan::Plan;
use super::scan::{Hit, Pause, StreamScan};
use crate::decision::{OutputStream, Reason};

/// The state of one session.
pub struct Session {
    plan: Arc<Plan>,
    limits: Limits,
    acks: bool,
    phase: Phase,
    /// The number that the next chunk must bear; `None` before the first.
    next_seq: Option<u64>,
    streams: [Option<Box<StreamScan>>; 2],
    /// When each stream's unfinished line is looked at as it stands.
    pauses: [Option<(Duration, Pause)>; 2],
    cases: Cases,
    bytes: u64,
    chunks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Attached,
    /// The process is no longer watched, and the client's side may still be open until then.
    Detached {
        until: Duration,
    },
    /// No event of the client follows; verdicts are waited for until then.
    Closed {
        until: Duration,
    },
    Ended,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("phase", &self.phase).finish_non_exhaustive()
    }
}

impl Session {
    /// Begins a session.
    pub fn attach(
        attachment: Attachment,
        plan: Arc<Plan>,
        limits: Limits,
        ids: Box<dyn Ids>,
        effects: &mut Vec<Effect>,
    ) -> Self {
        effects.push(Effect::Attached {
            session_id: attachment.session_id.clone(),
            policy_revision: attachment.policy_revision.clone(),
        });
        Self {
            acks: attachment.acks,
            cases: Cases::new(attachment, plan.clone(), limits, ids),
            plan,
            limits,
            phase: Phase::Attached,
            next_seq: None,
            streams: [None, None],
            pauses: [None, None],
            bytes: 0,
            chunks: 0,
        }
    }

    /// Takes note of something that happened and appends what is to be done, in this order. After
    /// [`Effect::End`] every event is ignored.
    pub fn on(&mut self, event: Event<'_>, now: Time, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Ended {
            return;
        }
        match event {
            Event::Attach => self.fail(SessionError::AlreadyAttached, now, effects),
            Event::Chunk { stream, data, seq } => match self.check_chunk(seq) {
                Ok(()) => self.chunk(stream, data, seq, now, effects),
                Err(error) => self.fail(error, now, effects),
            },
            Event::More { stream, data } => {
                if self.phase == Phase::Attached {
                    self.read(stream, data, now, effects);
                }
            }
            Event::Detach { .. } => match self.phase {
                Phase::Attached => {
                    self.read_to_end(now, effects);
                    self.phase = Phase::Detached { until: now.monotonic + self.limits.close_wait };
                }
                _ => self.fail(SessionError::Detached, now, effects),
            },
            Event::Closed => self.close(now, effects),
            Event::Gone => {
                self.cases.client_is_gone();
                self.close(now, effects);
            }
            Event::Judged { incident, result } => self.cases.judged(&incident, result, now, effects),
            Event::Timer => self.timer(now, effects),
            Event::Draining => {
                self.read_to_end(now, effects);
                self.give_up(Reason::Unavailable, "the server was shutting down", now, effects);
                self.end(Err(SessionError::Draining), effects);
            }
            Event::Idle => self.fail(SessionError::Idle, now, effects),
            Event::Broken => self.stop(Ok(()), now, effects),
        }
        self.settle(now, effects);
    }

    /// When [`Event::Timer`] is due, by the monotonic clock; `None` when nothing waits for time to pass.
    pub fn next_deadline(&self) -> Option<Duration> {
        let phase = match self.phase {
            Phase::Attached => None,
            Phase::Detached { until } | Phase::Closed { until } => Some(until),
            Phase::Ended => return None,
        };
        let pauses = self.pauses.into_iter().flatten().map(|(due, _)| due);
        phase.into_iter().chain(pauses).chain(self.cases.next_deadline()).min()
    }

    /// Whether the session is over.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Memory that the session holds beside what it shares, in bytes.
    pub fn memory(&self) -> usize {
        let streams = self.streams.iter().flatten();
        size_of::<Self>()
            + streams.map(|scan| size_of::<StreamScan>() + scan.heap()).sum::<usize>()
            + self.cases.heap()
    }

    fn check_chunk(&mut self, seq: u64) -> Result<(), SessionError> {
        if self.phase != Phase::Attached {
            return Err(SessionError::Detached);
        }
        // Who does not count from the first chunk on never does.
        let expected = self.next_seq.unwrap_or(u64::from(seq != 0));
        if seq != expected {
            return Err(SessionError::BadSeq { expected, found: seq });
        }
        self.next_seq = Some(if seq == 0 { 0 } else { seq.saturating_add(1) });
        Ok(())
    }

    fn chunk(&mut self, stream: OutputStream, data: &[u8], seq: u64, now: Time, effects: &mut Vec<Effect>) {
        self.chunks += 1;
        self.read(stream, data, now, effects);
        if self.acks {
            effects.push(Effect::Ack { stream, seq });
        }
    }

    fn read(&mut self, stream: OutputStream, data: &[u8], now: Time, effects: &mut Vec<Effect>) {
        self.bytes += data.len() as u64;
        if data.is_empty() {
            return;
        }
        let mut hits = Vec::new();
        let scan = self.streams[stream as usize].get_or_insert_default();
        scan.feed(data, &self.plan, &mut hits);
        self.pauses[stream as usize] =
            scan.is_unfinished().then(|| (now.monotonic + self.limits.line_wait, Pause::Short));
        self.cases.hits(stream, &mut hits, now, effects);
    }

    fn timer(&mut self, now: Time, effects: &mut Vec<Effect>) {
        for stream in OutputStream::ALL {
            let Some((due, pause)) = self.pauses[stream as usize].filter(|(due, _)| *due <= now.monotonic)
            else {
                continue;
            };
            let more = self.limits.quiet_wait.saturating_sub(self.limits.line_wait);
            self.pauses[stream as usize] = (pause == Pause::Short).then_some((due + more, Pause::Long));
            let mut hits = Vec::new();
            if let Some(scan) = &mut self.streams[stream as usize] {
                scan.pause(pause, &self.plan, &mut hits);
            }
            self.cases.hits(stream, &mut hits, now, effects);
        }
        self.cases.timer(now, effects);
        match self.phase {
            Phase::Detached { until } if until <= now.monotonic => self.close(now, effects),
            Phase::Closed { until } if until <= now.monotonic => {
                self.give_up(Reason::Timeout, "the verdict did not come in time", now, effects);
            }
            _ => {}
        }
    }

    /// No byte follows: what has no end is looked at as it stands.
    fn read_to_end(&mut self, now: Time, effects: &mut Vec<Effect>) {
        self.pauses = [None, None];
        for stream in OutputStream::ALL {
            let mut hits: Vec<Hit> = Vec::new();
            if let Some(mut scan) = self.streams[stream as usize].take() {
                scan.finish(&self.plan, &mut hits);
            }
            self.cases.hits(stream, &mut hits, now, effects);
        }
    }

    fn close(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if matches!(self.phase, Phase::Attached | Phase::Detached { .. }) {
            self.read_to_end(now, effects);
            self.phase = Phase::Closed { until: now.monotonic + self.limits.verdict_wait };
        }
    }

    /// Ends the session once nothing is waited for.
    fn settle(&mut self, _now: Time, effects: &mut Vec<Effect>) {
        if matches!(self.phase, Phase::Closed { .. }) && !self.cases.is_waiting() {
            self.end(Ok(()), effects);
        }
    }

    fn give_up(&mut self, reason: Reason, detail: &str, now: Time, effects: &mut Vec<Effect>) {
        self.cases.give_up(reason, detail, now, effects);
    }

    /// The client did something wrong.
    fn fail(&mut self, error: SessionError, now: Time, effects: &mut Vec<Effect>) {
        self.stop(Err(error), now, effects);
    }

    /// Ends the session at once. What was seen so far is kept, and what waits for a verdict gets that of its fail mode.
    fn stop(&mut self, result: Result<(), SessionError>, now: Time, effects: &mut Vec<Effect>) {
        self.read_to_end(now, effects);
        self.give_up(Reason::Unavailable, "the session ended before the verdict", now, effects);
        self.end(result, effects);
    }

    fn end(&mut self, result: Result<(), SessionError>, effects: &mut Vec<Effect>) {
        self.cases.save_changed(effects);
        self.phase = Phase::Ended;
        effects.push(Effect::Summary(self.summary()));
        effects.push(Effect::End(result));
    }

    fn summary(&self) -> Summary {
        Summary { bytes: self.bytes, chunks: self.chunks, ..self.cases.summary() }
    }
}
