//! What a session says about incidents, beside the incidents themselves: verdicts and the summary.

use std::sync::Arc;

use crate::decision::{Incident, Unjudged, VerdictKind, VerdictSource};

/// How to stop a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillAdvice {
    /// Kill the whole process group.
    pub kill_group: bool,
    /// Continue the group before killing it, as a stopped process may otherwise linger.
    pub continue_first: bool,
}

impl KillAdvice {
    /// What every KILL advises.
    pub const STANDARD: Self = Self { kill_group: true, continue_first: true };
}

/// What is to happen because of one incident.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The incident it is about.
    pub incident_id: Arc<str>,
    /// What is to happen.
    pub verdict: VerdictKind,
    /// Why, for a person; masked.
    pub reason: String,
    /// Who says so.
    pub source: VerdictSource,
    /// Whether no further verdict follows for this incident.
    pub is_final: bool,
    /// How to stop the process; present exactly when the verdict is KILL.
    pub kill: Option<KillAdvice>,
    /// Id of the decision.
    pub decision_id: Arc<str>,
}

/// What a session saw, told last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Raw bytes scanned, both streams together.
    pub bytes: u64,
    /// Chunks scanned.
    pub chunks: u64,
    /// The newest incidents, oldest first, each as it stands now.
    pub incidents: Vec<Arc<Incident>>,
    /// All incidents, those that are not listed included.
    pub incidents_total: u64,
    /// The strongest verdict; `None` when there was none. Shadowed incidents do not count.
    pub worst: Option<VerdictKind>,
    /// Every check that did not run to its end.
    pub unjudged: Vec<Unjudged>,
    /// How often each of them happened, in the same order.
    pub unjudged_times: Vec<u64>,
    /// Revision of the policy.
    pub policy_revision: Arc<str>,
}
