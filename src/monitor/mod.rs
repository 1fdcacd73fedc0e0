//! StreamMonitor: watches the output of a live process and says when to stop it.
//!
//! A [`Session`] is a pure state machine: bytes, verdicts and moments go in as [`Event`]s, and what is to be done comes
//! out as [`Effect`]s, so that order and time-outs are tested without a network and without waiting. The task that
//! drives it performs the effects: it sends, asks the judge, and keeps incidents.
//!
//! Invariants: what is found depends on the bytes of a stream alone, never on where they were cut; the two streams never
//! mix; memory per stream is bounded whatever arrives; a KILL is never withdrawn.

mod cases;
mod command;
mod config;
mod doubts;
mod event;
mod expected;
mod incident;
mod keep;
mod line;
mod lists;
mod mapped;
mod mask;
mod outbox;
mod plan;
mod prefix;
mod prepare;
mod question;
pub mod rules;
mod scan;
mod seams;
mod session;
mod strings;
mod task;
mod terminal;
#[cfg(test)]
mod tests;
mod triggers;
mod warm;

pub use config::StreamsConfig;
pub use event::{
    Attachment, Effect, Event, Failure, Ids, JudgeRequest, Judgement, Limits, SessionError, Time,
};
pub use incident::{KillAdvice, Summary, Verdict};
pub use keep::Keeper;
pub use outbox::{Answers, Message, Outbox, outbox};
pub use plan::{Plan, PolicyPlan};
pub use prepare::{MonitorPreparer, PreparedMonitor};
pub use session::Session;
pub use task::{Broken, Ending, Incoming, Surroundings, decision_of_session, drive, now};
pub use warm::{warm, warm_beside};
