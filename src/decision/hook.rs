//! The points of an agent's run where interceptors stand, and what an interceptor can have done there.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point in the agent's run where interceptors stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Hook {
    /// Before the agent sees a message.
    #[serde(rename = "message.before")]
    MessageBefore,
    /// Before the model is called.
    #[serde(rename = "params.before")]
    ParamsBefore,
    /// Before a tool runs.
    #[serde(rename = "tool.before")]
    ToolBefore,
    /// After a tool ran, before the agent sees the result.
    #[serde(rename = "tool.after")]
    ToolAfter,
}

impl Hook {
    /// Every hook, in the order of a run.
    pub const ALL: [Self; 4] = [Self::MessageBefore, Self::ParamsBefore, Self::ToolBefore, Self::ToolAfter];

    /// The name used in policies, conditions, records and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MessageBefore => "message.before",
            Self::ParamsBefore => "params.before",
            Self::ToolBefore => "tool.before",
            Self::ToolAfter => "tool.after",
        }
    }

    /// The hook of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.as_str() == name)
    }

    /// Whether it is about a tool call.
    pub const fn is_tool(self) -> bool {
        matches!(self, Self::ToolBefore | Self::ToolAfter)
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What one interceptor did. A bounded set: it is a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterceptorOutcome {
    /// It let the call pass unchanged.
    Passed,
    /// It changed something.
    Modified,
    /// It wants a person to approve.
    Asked,
    /// It blocked the call.
    Blocked,
    /// It failed; its fail mode was applied.
    Error,
    /// It ran out of time; its fail mode was applied.
    Timeout,
    /// It matched but did not run.
    Skipped,
}

impl InterceptorOutcome {
    /// Every outcome, in the order of the contract.
    pub const ALL: [Self; 7] =
        [Self::Passed, Self::Modified, Self::Asked, Self::Blocked, Self::Error, Self::Timeout, Self::Skipped];

    /// The snake-case name used in records and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Modified => "modified",
            Self::Asked => "asked",
            Self::Blocked => "blocked",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Skipped => "skipped",
        }
    }
}
