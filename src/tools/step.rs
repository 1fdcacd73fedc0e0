//! What one interceptor answers.

use crate::decision::{Decision, Finding, Reason, Unjudged};
use crate::policy::Params;

/// What one interceptor says about a call.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// What the caller may do, as far as this interceptor is concerned. ALLOW passes the call on.
    pub decision: Decision,
    /// Why, fit to be shown to a person; filled with ASK and BLOCK.
    pub reason: String,
    /// What it changes.
    pub changes: Changes,
    /// One line for each thing it did, fit to be shown to a person: which member was set, how many values were
    /// redacted and of which kind. Never holds a secret or a value of the caller.
    pub did: Vec<String>,
    /// What it found. Counts by the thresholds of the policy.
    pub findings: Vec<Finding>,
    /// What it found and dealt with, such as a secret that it redacted: told, and without effect on the decision.
    pub dealt_with: Vec<Finding>,
    /// What it could not judge, with the fail mode of each.
    pub unjudged: Vec<Unjudged>,
    /// Notes for the audit record, as the operator wrote them.
    pub notes: Vec<String>,
}

/// What an interceptor changes; `None` leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// The new arguments, a JSON object as text.
    pub args: Option<String>,
    /// The new result, JSON text.
    pub result: Option<String>,
    /// The new message.
    pub message: Option<String>,
    /// The new parameters, all of them.
    pub params: Option<Params>,
    /// The new metadata, a JSON object as text.
    pub metadata: Option<String>,
}

impl Changes {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Why an interceptor has no answer. Its fail mode then decides.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct InterceptError {
    /// The kind of failure.
    pub reason: Reason,
    /// What happened, for a person; holds nothing of the caller's text.
    pub detail: String,
}

impl InterceptError {
    /// A failure.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}
