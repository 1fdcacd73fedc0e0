//! Recent decisions, in memory and bounded, for people who want to see what happened just now.
//!
//! Remembered where the audit record is made. Where nothing was found no text is kept at all; where something was, what is
//! kept is masked. Each tenant has its own; one that nothing was decided for lately is forgotten when there are too many.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::MaskedText;
use crate::decision::{Decision, Finding, RiskLevel, Unjudged};

/// Tenants that are remembered at most.
const TENANTS_MAX: usize = 256;
/// Findings that are kept of one decision.
const FINDINGS_MAX: usize = 50;
/// Longest value that a caller chose, in bytes.
const CALLER_BYTES_MAX: usize = 256;

/// One decision.
#[derive(Clone, Debug)]
pub struct Remembered {
    /// When it was made.
    pub time: Timestamp,
    /// Its id.
    pub decision_id: String,
    /// The call.
    pub rpc: String,
    /// The policy that decided.
    pub policy: String,
    /// Revision of policies and rules.
    pub policy_revision: String,
    /// What was decided.
    pub decision: Decision,
    /// The risk as a word.
    pub risk_level: RiskLevel,
    /// Highest score that counted.
    pub risk_score: f64,
    /// Which agent.
    pub agent_id: String,
    /// Which of its sessions.
    pub session_key: String,
    /// The caller's own id for the request.
    pub request_id: String,
    /// The tool, for tool calls; empty otherwise.
    pub tool: String,
    /// The submission, for bundles; empty otherwise.
    pub submission_id: String,
    /// What was found; spans count in bytes.
    pub findings: Vec<Finding>,
    /// How many there were in all.
    pub findings_total: usize,
    /// What could not be judged.
    pub unjudged: Vec<Unjudged>,
    /// Plugins and interceptors that ran.
    pub ran: Vec<Run>,
    /// Concepts that were weighed, with the log-odds that each gave.
    pub concepts: Vec<(String, f64)>,
    /// Texts in which something was found.
    pub texts: Vec<MaskedText>,
    /// How long it took.
    pub elapsed: Duration,
}

/// A plugin or interceptor that ran.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// What it did; empty for plugins, whose findings say it.
    pub outcome: &'static str,
    /// One line for a person; may be empty.
    pub summary: String,
    /// What it alone decided.
    pub decision: Decision,
    /// Whether it only shadows.
    pub shadow: bool,
    /// How long it took. Built-in plugins share one pass, and so one time.
    pub elapsed: Duration,
}

/// See the module.
#[derive(Debug)]
pub struct Recent {
    most: usize,
    rings: Mutex<HashMap<String, VecDeque<Arc<Remembered>>>>,
}

impl Recent {
    /// Remembers at most `most` decisions of each tenant; none with 0.
    pub fn new(most: usize) -> Self {
        Self { most, rings: Mutex::default() }
    }

    /// Whether anything is remembered: what is not need not be built.
    pub fn is_on(&self) -> bool {
        self.most > 0
    }

    /// Remembers one.
    pub fn remember(&self, tenant: &str, mut decision: Remembered) {
        if !self.is_on() {
            return;
        }
        decision.findings.truncate(FINDINGS_MAX);
        for value in [&mut decision.agent_id, &mut decision.session_key, &mut decision.request_id] {
            value.truncate(value.floor_char_boundary(CALLER_BYTES_MAX));
        }
        let mut rings = self.rings();
        if !rings.contains_key(tenant) && rings.len() >= TENANTS_MAX {
            let newest = |ring: &VecDeque<Arc<Remembered>>| ring.back().map(|last| last.time);
            let oldest = rings.iter().min_by_key(|(_, ring)| newest(ring)).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest {
                rings.remove(&oldest);
            }
        }
        let ring = rings.entry(tenant.to_owned()).or_default();
        while ring.len() >= self.most {
            ring.pop_front();
        }
        ring.push_back(Arc::new(decision));
    }

    /// Those of a tenant, newest first.
    pub fn list(&self, tenant: &str) -> Vec<Arc<Remembered>> {
        let rings = self.rings();
        rings.get(tenant).map(|ring| ring.iter().rev().cloned().collect()).unwrap_or_default()
    }

    /// One of a tenant.
    pub fn get(&self, tenant: &str, decision_id: &str) -> Option<Arc<Remembered>> {
        self.rings().get(tenant)?.iter().find(|one| one.decision_id == decision_id).cloned()
    }

    fn rings(&self) -> MutexGuard<'_, HashMap<String, VecDeque<Arc<Remembered>>>> {
        // Nothing panics between two changes that belong together.
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(id: &str) -> Remembered {
        Remembered {
            time: Timestamp::now(),
            decision_id: id.to_owned(),
            rpc: "CheckMessages".to_owned(),
            policy: "default".to_owned(),
            policy_revision: "r".to_owned(),
            decision: Decision::Allow,
            risk_level: RiskLevel::Safe,
            risk_score: 0.0,
            agent_id: "é".repeat(500),
            session_key: String::new(),
            request_id: String::new(),
            tool: String::new(),
            submission_id: String::new(),
            findings: Vec::new(),
            findings_total: 0,
            unjudged: Vec::new(),
            ran: Vec::new(),
            concepts: Vec::new(),
            texts: Vec::new(),
            elapsed: Duration::ZERO,
        }
    }

    #[test]
    fn each_tenant_has_its_own_and_not_too_many() {
        let recent = Recent::new(2);
        for id in ["1", "2", "3"] {
            recent.remember("alpha", decision(id));
        }
        recent.remember("beta", decision("4"));
        let ids =
            |tenant: &str| recent.list(tenant).iter().map(|one| one.decision_id.clone()).collect::<Vec<_>>();
        assert_eq!(ids("alpha"), ["3", "2"]);
        assert_eq!(ids("beta"), ["4"]);
        assert!(
            ids("").is_empty() && recent.get("beta", "3").is_none() && recent.get("alpha", "1").is_none()
        );
        assert_eq!(recent.get("alpha", "3").expect("it is there").agent_id.len(), 256);
    }

    #[test]
    fn tenants_are_bounded_and_nothing_is_kept_when_it_is_off() {
        let recent = Recent::new(1);
        for tenant in 0..TENANTS_MAX + 10 {
            recent.remember(&tenant.to_string(), decision("x"));
        }
        assert_eq!(recent.rings().len(), TENANTS_MAX);
        assert!(recent.get(&(TENANTS_MAX + 9).to_string(), "x").is_some());
        let off = Recent::new(0);
        off.remember("", decision("x"));
        assert!(off.list("").is_empty() && !off.is_on());
    }
}
