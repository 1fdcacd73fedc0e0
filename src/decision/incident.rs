//! An incident: one match of a rule in the output of a watched process, and what became of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Category, Severity};

/// One of the two output streams of a watched process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl OutputStream {
    /// Both, in the order in which they stand in arrays.
    pub const ALL: [Self; 2] = [Self::Stdout, Self::Stderr];

    /// The lower-case name used in metric labels, records and the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// What is to happen to the watched process. Ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictKind {
    /// Nothing wrong within the work asked for.
    Safe,
    /// Let somebody know.
    Warn,
    /// Stop the process now.
    Kill,
}

impl VerdictKind {
    /// Every verdict, mildest first.
    pub const ALL: [Self; 3] = [Self::Safe, Self::Warn, Self::Kill];

    /// The lower-case name used in policies, metric labels, records and the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Warn => "warn",
            Self::Kill => "kill",
        }
    }
}

/// Who gave a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// Every source.
    pub const ALL: [Self; 4] = [Self::Rule, Self::Judge, Self::Policy, Self::FailMode];

    /// The snake-case name used in metric labels, records and the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Judge => "judge",
            Self::Policy => "policy",
            Self::FailMode => "fail_mode",
        }
    }
}

/// What the server did about an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncidentAction {
    /// Nothing: it was judged safe, or the rule runs in shadow.
    None,
    /// The client was warned.
    Warned,
    /// The client was told to kill.
    KillAdvised,
    /// The client could not be told.
    Error,
}

impl IncidentAction {
    /// Every action.
    pub const ALL: [Self; 4] = [Self::None, Self::Warned, Self::KillAdvised, Self::Error];

    /// The snake-case name used in metric labels, records and the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Warned => "warned",
            Self::KillAdvised => "kill_advised",
            Self::Error => "error",
        }
    }
}

/// What a watched agent was asked to do. The judge compares its doings with this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkContext {
    /// What the work is for; empty when unknown.
    pub goal: String,
    /// What must be true when the work is done.
    pub acceptance_criteria: Vec<String>,
    /// What is not part of the work.
    pub non_goals: Vec<String>,
    /// Where the work may reach, in words; empty when unknown.
    pub scope: String,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
}

/// Who asks and on whose behalf, as the caller states it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallContext {
    /// Id of the agent; empty when unknown.
    pub agent_id: String,
    /// Key of the agent's session; empty when unknown.
    pub session_key: String,
    /// Tenant; empty means the default one.
    pub tenant: String,
    /// The caller's own id of the request; empty when it has none.
    pub request_id: String,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
}

/// One match of a rule in the output of a watched process, and what became of it. Its texts are masked.
#[derive(Clone, Debug, PartialEq)]
pub struct Incident {
    /// UUIDv7, the same in every message about this incident.
    pub id: Arc<str>,
    /// The session it happened in.
    pub session_id: Arc<str>,
    /// When the match was seen.
    pub time: Timestamp,
    /// Stable id of the rule.
    pub rule_id: Arc<str>,
    /// Category, such as `credential_access`.
    pub category: Category,
    /// How bad it is when certain.
    pub severity: Severity,
    /// The stream it was seen on.
    pub stream: OutputStream,
    /// Raw bytes of that stream before the match, counted from Attach.
    pub offset: u64,
    /// The text that was matched, without terminal control sequences and with secrets masked.
    pub matched_text: Arc<str>,
    /// The text around it, at most 2,000 characters, treated alike.
    pub excerpt: Arc<str>,
    /// The strongest verdict so far; `None` while none has landed.
    pub verdict: Option<VerdictKind>,
    /// Why, for a person; empty while no verdict has landed.
    pub reason: Arc<str>,
    /// Who gave that verdict.
    pub source: Option<VerdictSource>,
    /// What was done about it; `None` while nothing was.
    pub action: Option<IncidentAction>,
    /// From the match to the verdict.
    pub latency: Option<Duration>,
    /// The work context of the session, if it had one.
    pub work: Option<Arc<WorkContext>>,
    /// UUIDv7 of the decision; the audit record carries the same.
    pub decision_id: Arc<str>,
    /// Revision of the policy that was in force.
    pub policy_revision: Arc<str>,
    /// Further matches of the same rule and text that fell into the cool-down.
    pub repeats: u64,
    /// Who asked, if that was told.
    pub context: Option<Arc<CallContext>>,
    /// Whether the rule runs in shadow.
    pub shadow: bool,
}
