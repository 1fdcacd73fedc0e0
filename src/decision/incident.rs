//! An incident: one match of a rule in the output of a watched process, and what became of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Category, Severity};

/// One of the two output streams of a watched process. They are scanned apart and never joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl OutputStream {
    /// Both streams.
    pub const ALL: [Self; 2] = [Self::Stdout, Self::Stderr];

    /// The lower-case name used in records and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// What is to happen to the watched process. Ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum VerdictKind {
    /// Nothing wrong within the work asked for.
    Safe,
    /// Unusual, perhaps legitimate. Let somebody know.
    Warn,
    /// Stop the process now.
    Kill,
}

impl VerdictKind {
    /// Every verdict, mildest first.
    pub const ALL: [Self; 3] = [Self::Safe, Self::Warn, Self::Kill];

    /// The upper-case name, as in the contract without its prefix.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "SAFE",
            Self::Warn => "WARN",
            Self::Kill => "KILL",
        }
    }

    /// The verdict of that name, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who gave a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictSource {
    /// The rule that fired, because it is certain on its own.
    Rule,
    /// The judging model.
    Judge,
    /// The policy: its map from severity to verdict, or its list of what is known to be safe.
    Policy,
    /// The fail mode, because the judge could not judge.
    FailMode,
}

impl VerdictSource {
    /// Every source, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::Rule, Self::Judge, Self::Policy, Self::FailMode];

    /// The snake-case name used in records and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Judge => "judge",
            Self::Policy => "policy",
            Self::FailMode => "fail_mode",
        }
    }
}

/// What was done about an incident. The monitor has no hand on the process: killing is the client's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncidentAction {
    /// Nothing: it was judged safe, or its rule runs in shadow.
    None,
    /// The client was warned.
    Warned,
    /// The client was told to kill.
    KillAdvised,
    /// The client could not be told, for example because it had gone.
    Error,
}

impl IncidentAction {
    /// Every action, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::None, Self::Warned, Self::KillAdvised, Self::Error];

    /// The snake-case name used in records and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Warned => "warned",
            Self::KillAdvised => "kill_advised",
            Self::Error => "error",
        }
    }
}

/// What a watched agent was asked to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkContext {
    /// What the work is for. Empty when unknown.
    pub goal: String,
    /// What must be true when the work is done.
    pub acceptance_criteria: Vec<String>,
    /// What is not part of the work.
    pub non_goals: Vec<String>,
    /// Where the work may reach, in words. Empty when unknown.
    pub scope: String,
    /// Free labels, such as a run or project id; lists of what is known to be safe may name them.
    pub labels: BTreeMap<String, String>,
}

/// Who asks and on whose behalf, as the caller stated it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Caller {
    /// Id of the agent. Empty when unknown.
    pub agent_id: String,
    /// Key of the agent's session. Empty when unknown.
    pub session_key: String,
    /// Tenant the call belongs to. Empty means the default tenant.
    pub tenant: String,
    /// The caller's own id of the request. Empty when it has none.
    pub request_id: String,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
}

/// One match of a rule in the output of a watched process, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Incident {
    /// Id (UUIDv7).
    pub id: Arc<str>,
    /// The session it happened in.
    pub session_id: Arc<str>,
    /// When the match was seen.
    pub time: Timestamp,
    /// Stable id of the rule.
    pub rule_id: Arc<str>,
    /// Category of the rule.
    pub category: Category,
    /// How bad it is when certain.
    pub severity: Severity,
    /// The stream it was seen on.
    pub stream: OutputStream,
    /// Raw bytes of that stream before the match.
    pub offset: u64,
    /// What was matched: control sequences removed, secrets masked.
    pub matched_text: String,
    /// The text around it, at most 2,000 characters, treated alike.
    pub excerpt: Arc<str>,
    /// The strongest verdict so far; `None` while none has landed.
    pub verdict: Option<VerdictKind>,
    /// Why, for a person. Empty while no verdict has landed.
    pub reason: String,
    /// Who gave that verdict.
    pub source: Option<VerdictSource>,
    /// What was done about it; `None` while nothing was.
    pub action: Option<IncidentAction>,
    /// From the match to the verdict.
    pub latency: Option<Duration>,
    /// Whether a person has marked it as a false positive.
    pub false_positive: bool,
    /// What that person wrote.
    pub false_positive_reason: String,
    /// The work context of the session.
    pub work: Option<Arc<WorkContext>>,
    /// Id of the decision (UUIDv7); the audit record carries the same.
    pub decision_id: Arc<str>,
    /// Revision of the policy that was in force.
    pub policy_revision: Arc<str>,
    /// Further matches of the same rule and text that fell into the cool-down.
    pub repeats: u64,
    /// Who asked.
    pub context: Option<Arc<Caller>>,
    /// Whether the rule runs in shadow: reported, and nobody is warned or killed for it.
    pub shadow: bool,
}
