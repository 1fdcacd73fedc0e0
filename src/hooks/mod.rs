//! Hooks of agents: an event of theirs becomes requests of the contract, and the answers become one of theirs.
//!
//! Pure: no engine is asked here and nothing is read. The command line and the HTTP side ask, each in its own way, so that
//! the same event has the same answer on both.

mod answer;
mod claude_code;
mod event;

pub use answer::Answer;
pub use claude_code::{Question, Setup, reason};
pub use event::Event;

/// Why an event has no answer. Whoever meets it must refuse the step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// The event is malformed.
    #[error("{0}")]
    Event(String),
    /// What the policy made of the step cannot be passed on.
    #[error("{0}")]
    Change(String),
}
