//! What goes into a session and what comes out of it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::incident::{Summary, Verdict};
use crate::decision::{Caller, Incident, OutputStream, Reason, VerdictKind, WorkContext};

/// A moment, told by whoever drives the session: the session has no clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// By the wall clock, for records.
    pub wall: Timestamp,
    /// By a clock that never goes back, since a fixed moment of the driver's choice.
    pub monotonic: Duration,
}

/// Makes ids; the driver's are UUIDv7, those of tests count.
pub trait Ids: Send {
    /// An id that was never given before.
    fn next(&mut self) -> Arc<str>;

    /// How much time has passed since a moment that an event came with, by the driver's clock. Where nothing is timed,
    /// none.
    fn passed(&self, _since: Duration) -> Duration {
        Duration::ZERO
    }
}

/// What a session begins with.
#[derive(Clone, Debug, Default)]
pub struct Attachment {
    /// Id of the session; never empty.
    pub session_id: Arc<str>,
    /// What the process was asked to do.
    pub work: Option<Arc<WorkContext>>,
    /// Who asks.
    pub context: Option<Arc<Caller>>,
    /// Whether acknowledgements are wanted.
    pub acks: bool,
    /// Revision of rules and policies in force; holds for the whole session.
    pub policy_revision: Arc<str>,
    /// Whether a model can be asked.
    pub has_judge: bool,
}

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The client attached once more, which is an error.
    Attach,
    /// Bytes of the watched process.
    Chunk {
        /// Where they were written to.
        stream: OutputStream,
        /// The bytes.
        data: &'a [u8],
        /// Number of the chunk; 0 when the client does not count.
        seq: u64,
    },
    /// Further bytes of the chunk before: the driver cuts long chunks, so that other sessions get their turn. Part of that
    /// chunk in every respect, so it is neither counted nor acknowledged; the driver holds the chunk's Ack back until the
    /// last piece is scanned.
    More {
        /// Where they were written to.
        stream: OutputStream,
        /// The bytes.
        data: &'a [u8],
    },
    /// The process has ended, or is no longer watched.
    Detach {
        /// Its exit code, if known.
        exit_code: Option<i32>,
    },
    /// The client closed its side and still listens.
    Closed,
    /// The client can no longer be told anything.
    Gone,
    /// The judge has answered an [`Effect::Ask`].
    Judged {
        /// The incident it was asked about.
        incident: Arc<str>,
        /// What it said.
        result: Result<Judgement, Failure>,
    },
    /// The deadline of [`super::Session::next_deadline`] has come.
    Timer,
    /// The server shuts down.
    Draining,
    /// The client sent nothing for longer than the server allows.
    Idle,
    /// The session is over at once, for a reason that the driver knows and tells itself: the client sent what no session
    /// understands, or its deadline has come. Ends with [`Effect::End`] and `Ok`.
    Broken,
}

/// What a session wants done, in this order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Say that the session is attached.
    Attached {
        /// Id of the session.
        session_id: Arc<str>,
        /// Revision of rules and policies.
        policy_revision: Arc<str>,
    },
    /// Say that everything up to this chunk has been scanned.
    Ack {
        /// Stream of that chunk.
        stream: OutputStream,
        /// Its number.
        seq: u64,
    },
    /// Tell the client of an incident.
    Incident(Arc<Incident>),
    /// Tell the client of a verdict.
    Verdict(Verdict),
    /// Ask the judge and bring the answer back as [`Event::Judged`].
    Ask(Box<JudgeRequest>),
    /// Keep the incident as it stands now, in place of an earlier state of it.
    Save(Arc<Incident>),
    /// Tell the client what the session saw.
    Summary(Summary),
    /// The session is over; nothing follows.
    End(Result<(), SessionError>),
}

/// A question to the judge. What it holds is masked already.
#[derive(Clone, Debug)]
pub struct JudgeRequest {
    /// The incident as reported; its excerpt and matched text are what the judge reads.
    pub incident: Arc<Incident>,
    /// What the rule is about, in one sentence.
    pub rule_description: Arc<str>,
    /// How long an answer is waited for.
    pub timeout: Duration,
}

/// What the judge said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What is to happen.
    pub verdict: VerdictKind,
    /// Why.
    pub reason: String,
}

/// Why the judge could not judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure.
    pub reason: Reason,
    /// What happened, for a person; holds no text of the stream and no secret.
    pub detail: String,
}

/// How a session ends other than well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// A second Attach.
    #[error("the session is attached already; one stream carries one session")]
    AlreadyAttached,
    /// A chunk after Detach.
    #[error("the session was detached; nothing may follow but the end of the stream")]
    Detached,
    /// A chunk whose number does not follow on the last.
    #[error(
        "chunk number {found} does not follow; {expected} was expected, and a lost chunk is a lost check"
    )]
    BadSeq {
        /// The number that had to come.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// The client sent nothing for too long.
    #[error("the client sent nothing for longer than the server waits")]
    Idle,
    /// The server shuts down.
    #[error("the server is shutting down")]
    Draining,
}

/// Limits of one session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// How long one question to the judge may take.
    pub judge_timeout: Duration,
    /// Questions to the judge that may be out at once.
    pub judges_max: usize,
    /// Questions that may wait for their turn; beyond them an incident is not judged.
    pub questions_max: usize,
    /// How long the summary waits for verdicts once the client has closed its side.
    pub verdict_wait: Duration,
    /// How long a client that has detached may take to close its side.
    pub close_wait: Duration,
    /// Incidents that are reported at most; what goes beyond is counted.
    pub incidents_max: u64,
    /// How long a line without an end may stand before it is looked at as far as further bytes cannot change it.
    pub line_wait: Duration,
    /// How long it may stand before all of it is looked at, with no more than suspicion.
    pub quiet_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            judge_timeout: Duration::from_secs(12),
            judges_max: 4,
            questions_max: 64,
            verdict_wait: Duration::from_secs(15),
            close_wait: Duration::from_millis(500),
            incidents_max: 10_000,
            line_wait: Duration::from_millis(200),
            quiet_wait: Duration::from_secs(3),
        }
    }
}
