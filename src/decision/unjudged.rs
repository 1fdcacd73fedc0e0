//! What could not be judged, and what that does to a decision.
//!
//! "Could not judge" is never "safe": every check that did not run to its end is listed, and fails in the way that the
//! policy chose for it and for the direction of the text.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Decision;

/// Which way the text goes, seen from the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Into the model.
    #[default]
    Input,
    /// Out of the model.
    Output,
}

/// What a check that could not judge does to the decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailMode {
    /// BLOCK.
    #[default]
    Closed,
    /// ASK.
    Ask,
    /// No effect; counted and logged.
    Open,
}

impl FailMode {
    /// The decision a failed check contributes.
    pub const fn decision(self) -> Decision {
        match self {
            Self::Closed => Decision::Block,
            Self::Ask => Decision::Ask,
            Self::Open => Decision::Allow,
        }
    }
}

/// A fail mode for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FailModes {
    /// For text that goes into the model.
    pub input: FailMode,
    /// For text that comes out of the model.
    pub output: FailMode,
}

impl FailModes {
    /// The mode for `direction`.
    pub const fn of(self, direction: Direction) -> FailMode {
        match direction {
            Direction::Input => self.input,
            Direction::Output => self.output,
        }
    }
}

/// Why a check did not run to its end. A bounded set: it is a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It ran longer than its time-out.
    Timeout,
    /// It failed.
    Error,
    /// What it depends on could not be reached.
    Unavailable,
    /// Its answer could not be understood.
    BadAnswer,
    /// A size, depth or count limit was hit.
    Limit,
    /// The content is of a kind that it cannot look into.
    UnsupportedContent,
}

impl Reason {
    /// The snake-case name used in answers and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Error => "error",
            Self::Unavailable => "unavailable",
            Self::BadAnswer => "bad_answer",
            Self::Limit => "limit",
            Self::UnsupportedContent => "unsupported_content",
        }
    }
}

/// One check that did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unjudged {
    /// Plugin, interceptor or check that could not judge.
    pub plugin: Arc<str>,
    /// Why.
    pub reason: Reason,
    /// What happened, for a person; never holds text of the caller.
    pub detail: String,
    /// How it failed.
    pub fail_mode: FailMode,
    /// Whether the check only shadows: then it has no effect on the decision, whatever its fail mode.
    pub shadow: bool,
}

impl Unjudged {
    /// Whether the decision went on as if the check had found nothing.
    pub fn failed_open(&self) -> bool {
        self.shadow || self.fail_mode == FailMode::Open
    }

    /// The decision this contributes.
    pub fn decision(&self) -> Decision {
        if self.shadow { Decision::Allow } else { self.fail_mode.decision() }
    }
}
