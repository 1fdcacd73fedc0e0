//! Who answers: this process or a server, behind one interface.

use std::time::Duration;

use crate::decision::{Decision, Severity};
use crate::rules::Role;

/// One finding of an answer that takes part in the decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its category.
    pub category: String,
    /// Its rule.
    pub rule_id: String,
    /// Its severity.
    pub severity: Severity,
    /// Field of the message.
    pub path: String,
    /// First byte, in UTF-8 bytes of the field.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Its score.
    pub score: f64,
}

/// One check that did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotJudged {
    /// The plugin.
    pub plugin: String,
    /// Why.
    pub reason: String,
    /// Whether the decision went on without it.
    pub failed_open: bool,
}

/// The answer to one text.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The decision.
    pub decision: Decision,
    /// Highest score of a finding.
    pub risk_score: f64,
    /// Findings that take part in the decision, in the order of the text.
    pub findings: Vec<Found>,
    /// What could not be judged.
    pub unjudged: Vec<NotJudged>,
    /// How long the answer took.
    pub elapsed: Duration,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// The server could not be reached, or went away.
    #[error("the server is away: {0}")]
    Away(String),
    /// The text was refused.
    #[error("not judged: {0}")]
    Refused(String),
}

/// Judges texts as messages of one role, under the default policy.
pub trait Judge {
    /// Judges one text.
    ///
    /// # Errors
    /// When there is no answer; a decision is never an error.
    fn judge(&mut self, text: &str, role: Role) -> Result<Judged, JudgeError>;

    /// The text with credentials and personal data replaced.
    ///
    /// # Errors
    /// When there is no answer.
    fn redact(&mut self, text: &str, role: Role) -> Result<String, JudgeError>;
}
