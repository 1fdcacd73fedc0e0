//! One session: a pure state machine from events to effects.

use std::sync::Arc;
use std::time::Duration;

use super::event::{Attachment, Effect, Event, Ids, Limits, SessionError, Time};
use super::incident::Summary;
use super::plan::Plan;

/// The state of one session.
pub struct Session {
    attachment: Attachment,
    plan: Arc<Plan>,
    limits: Limits,
    ids: Box<dyn Ids>,
    phase: Phase,
    next_seq: Option<u64>,
    summary: Summary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Attached,
    Detached,
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
        let summary = Summary { policy_revision: attachment.policy_revision.clone(), ..Summary::default() };
        Self { attachment, plan, limits, ids, phase: Phase::Attached, next_seq: None, summary }
    }

    /// Takes note of something that happened and appends what is to be done, in this order. After
    /// [`Effect::End`] every event is ignored.
    pub fn on(&mut self, event: Event<'_>, now: Time, effects: &mut Vec<Effect>) {
        let _ = (now, &self.plan, &self.ids, &self.limits, self.next_seq);
        match (self.phase, event) {
            (Phase::Ended, _) => {}
            (_, Event::Attach) => self.end(Err(SessionError::AlreadyAttached), effects),
            (Phase::Attached, Event::Chunk { stream, data, seq }) => {
                self.summary.bytes += data.len() as u64;
                self.summary.chunks += 1;
                if self.attachment.acks {
                    effects.push(Effect::Ack { stream, seq });
                }
            }
            (Phase::Attached, Event::More { data, .. }) => self.summary.bytes += data.len() as u64,
            (_, Event::More { .. }) => {}
            (_, Event::Chunk { .. }) => self.end(Err(SessionError::Detached), effects),
            (_, Event::Detach { .. }) => self.phase = Phase::Detached,
            (_, Event::Closed | Event::Gone | Event::Broken) => self.end(Ok(()), effects),
            (_, Event::Draining) => self.end(Err(SessionError::Draining), effects),
            (_, Event::Idle) => self.end(Err(SessionError::Idle), effects),
            (_, Event::Judged { .. } | Event::Timer) => {}
        }
    }

    /// When [`Event::Timer`] is due, by the monotonic clock; `None` when nothing waits for time to pass.
    pub fn next_deadline(&self) -> Option<Duration> {
        None
    }

    fn end(&mut self, result: Result<(), SessionError>, effects: &mut Vec<Effect>) {
        self.phase = Phase::Ended;
        effects.push(Effect::Summary(self.summary.clone()));
        effects.push(Effect::End(result));
    }
}
