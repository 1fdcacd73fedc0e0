//! Recent decisions, in memory and bounded, for people who want to see what happened just now.
//!
//! Remembered where the audit record is made. Where nothing was found no text is kept at all; where something was, what is
//! kept is masked. Each tenant has its own; one that nothing was decided for lately is forgotten when there are too many.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::{MaskedText, Piece};
use crate::decision::{Decision, Finding, RiskLevel, Thresholds, Unjudged};

/// Tenants that are remembered at most.
const TENANTS_MAX: usize = 256;
/// Findings that are kept of one decision, the first of those that are given.
pub const REMEMBERED_FINDINGS_MAX: usize = 50;
/// What the decisions of one tenant may hold, in bytes; older ones give way.
const TENANT_BYTES_MAX: usize = 16 << 20;
/// What the decisions of all tenants may hold, in bytes; the oldest of whoever holds most give way.
const ALL_BYTES_MAX: usize = 64 << 20;
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
    pub rpc: &'static str,
    /// The policy that decided.
    pub policy: Arc<str>,
    /// Revision of policies and rules.
    pub policy_revision: Arc<str>,
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
    /// The same as the caller calls it.
    pub tool_sent: String,
    /// The submission, for bundles; empty otherwise.
    pub submission_id: String,
    /// What the bundle is called; empty otherwise.
    pub bundle: String,
    /// Why, in one sentence; empty where nothing was found, nothing failed and nothing gave a reason.
    pub why: String,
    /// What was found, first what decided; spans count in bytes.
    pub findings: Vec<Weighed>,
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
    /// Further texts in which something was found, of which nothing is kept.
    pub texts_left_out: usize,
    /// How long it took.
    pub elapsed: Duration,
}

/// A finding, and what the policy that decided made of it.
#[derive(Clone, Debug)]
pub struct Weighed {
    /// The finding.
    pub finding: Finding,
    /// What it decided by itself.
    pub decides: Decision,
    /// What its score was held against; none where no threshold decides.
    pub thresholds: Option<Thresholds>,
    /// Whether it is on trial in messages of its role alone.
    pub is_of_role: bool,
}

/// A plugin or interceptor that ran.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its id.
    pub id: Arc<str>,
    /// What it did; empty for plugins, whose findings say it.
    pub outcome: &'static str,
    /// One line for a person; may be empty.
    pub summary: String,
    /// What it alone decided.
    pub decision: Decision,
    /// Whether it only shadows.
    pub shadow: bool,
    /// How long it took; that of the pass for what shares one.
    pub elapsed: Duration,
    /// Whether it looked at the text in one pass with the others that did, and so at the same time.
    pub is_joint: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Recent {
    most: usize,
    rings: Mutex<HashMap<String, Ring>>,
}

/// The decisions of one tenant, the oldest first.
#[derive(Debug, Default)]
struct Ring {
    decisions: VecDeque<Kept>,
    /// About what they hold.
    bytes: usize,
}

/// A decision, and about what it holds: whoever drops it need not read it.
#[derive(Debug)]
struct Kept {
    decision: Arc<Remembered>,
    bytes: usize,
}

impl Ring {
    fn push(&mut self, kept: Kept) {
        self.bytes += kept.bytes;
        self.decisions.push_back(kept);
    }

    /// Takes the oldest out.
    fn pop_oldest(&mut self) -> Option<Kept> {
        let oldest = self.decisions.pop_front()?;
        self.bytes -= oldest.bytes;
        Some(oldest)
    }
}

impl Remembered {
    /// About how much memory it takes. Never changes, as nothing of it does.
    fn bytes(&self) -> usize {
        let own = [
            &self.decision_id,
            &self.agent_id,
            &self.session_key,
            &self.request_id,
            &self.why,
            &self.tool,
            &self.tool_sent,
            &self.submission_id,
            &self.bundle,
        ];
        let finding = |one: &Weighed| {
            size_of::<Weighed>() + one.finding.description.len() + one.finding.span.path.len()
        };
        let piece = |one: &Piece| size_of::<Piece>() + one.text.len() + size_of_val(one.findings.as_slice());
        let text = |one: &MaskedText| {
            size_of::<MaskedText>() + one.path.len() + one.pieces.iter().map(piece).sum::<usize>()
        };
        size_of::<Self>()
            + own.iter().map(|text| text.len()).sum::<usize>()
            + self.findings.iter().map(finding).sum::<usize>()
            + self.unjudged.iter().map(|one| size_of::<Unjudged>() + one.detail.len()).sum::<usize>()
            + self.ran.iter().map(|one| size_of::<Run>() + one.summary.len()).sum::<usize>()
            + self.concepts.iter().map(|(name, _)| size_of::<(String, f64)>() + name.len()).sum::<usize>()
            + self.texts.iter().map(text).sum::<usize>()
    }
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
        decision.findings.truncate(REMEMBERED_FINDINGS_MAX);
        for value in [
            &mut decision.agent_id,
            &mut decision.session_key,
            &mut decision.request_id,
            &mut decision.tool_sent,
            &mut decision.bundle,
        ] {
            value.truncate(value.floor_char_boundary(CALLER_BYTES_MAX));
        }
        let bytes = decision.bytes();
        let kept = Kept { decision: Arc::new(decision), bytes };
        // Calls wait for this lock: what gives way is freed behind it.
        let mut given_way = Vec::new();
        let mut rings = self.rings();
        if !rings.contains_key(tenant) && rings.len() >= TENANTS_MAX {
            let newest = |ring: &Ring| ring.decisions.back().map(|last| last.decision.time);
            let oldest = rings.iter().min_by_key(|(_, ring)| newest(ring)).map(|(name, _)| name.clone());
            if let Some(ring) = oldest.and_then(|oldest| rings.remove(&oldest)) {
                given_way.extend(ring.decisions);
            }
        }
        let ring = rings.entry(tenant.to_owned()).or_default();
        while ring.decisions.len() >= self.most {
            given_way.extend(ring.pop_oldest());
        }
        ring.push(kept);
        // The newest one stays, however much it holds: what is kept of one decision is bounded.
        while ring.bytes > TENANT_BYTES_MAX && ring.decisions.len() > 1 {
            given_way.extend(ring.pop_oldest());
        }
        let mut all: usize = rings.values().map(|ring| ring.bytes).sum();
        while all > ALL_BYTES_MAX {
            let Some(largest) = rings.values_mut().max_by_key(|ring| ring.bytes) else { break };
            all -= largest.bytes;
            given_way.extend(largest.pop_oldest());
            all += largest.bytes;
        }
        drop(rings);
        drop(given_way);
    }

    /// Those of a tenant, newest first.
    pub fn list(&self, tenant: &str) -> Vec<Arc<Remembered>> {
        let rings = self.rings();
        rings
            .get(tenant)
            .map(|ring| ring.decisions.iter().rev().map(|kept| kept.decision.clone()).collect())
            .unwrap_or_default()
    }

    /// One of a tenant.
    pub fn get(&self, tenant: &str, decision_id: &str) -> Option<Arc<Remembered>> {
        let rings = self.rings();
        let mut decisions = rings.get(tenant)?.decisions.iter().map(|kept| &kept.decision);
        decisions.find(|one| one.decision_id == decision_id).cloned()
    }

    fn rings(&self) -> MutexGuard<'_, HashMap<String, Ring>> {
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
            rpc: "CheckMessages",
            policy: "default".into(),
            policy_revision: "r".into(),
            decision: Decision::Allow,
            risk_level: RiskLevel::Safe,
            risk_score: 0.0,
            agent_id: "é".repeat(500),
            session_key: String::new(),
            request_id: String::new(),
            tool: String::new(),
            tool_sent: String::new(),
            submission_id: String::new(),
            bundle: String::new(),
            why: String::new(),
            findings: Vec::new(),
            findings_total: 0,
            unjudged: Vec::new(),
            ran: Vec::new(),
            concepts: Vec::new(),
            texts: Vec::new(),
            texts_left_out: 0,
            elapsed: Duration::ZERO,
        }
    }

    /// One that holds about so many bytes.
    fn large(id: &str, bytes: usize) -> Remembered {
        Remembered { concepts: vec![("x".repeat(bytes), 0.0)], ..decision(id) }
    }

    #[test]
    fn memory_is_bounded_for_each_tenant_and_for_all() {
        let recent = Recent::new(1_000);
        for at in 0..100 {
            recent.remember("alpha", large(&at.to_string(), 1 << 20));
        }
        let kept = recent.list("alpha");
        assert!((14..=16).contains(&kept.len()), "{}", kept.len());
        assert_eq!(kept[0].decision_id, "99", "the newest stay");
        for tenant in 0..10 {
            for at in 0..15 {
                recent.remember(&tenant.to_string(), large(&at.to_string(), 1 << 20));
            }
            recent.remember("small", decision("kept"));
        }
        let rings = recent.rings();
        let held: usize = rings.values().map(|ring| ring.bytes).sum();
        let counted: usize =
            rings.values().flat_map(|ring| &ring.decisions).map(|one| one.decision.bytes()).sum();
        assert_eq!(held, counted);
        assert!(held <= ALL_BYTES_MAX && held > ALL_BYTES_MAX / 2, "{held}");
        assert_eq!(rings["small"].decisions.len(), 10, "who holds little loses nothing");
        drop(rings);
        // One alone may be larger than all may be: it is shown all the same.
        let recent = Recent::new(10);
        recent.remember("", large("huge", TENANT_BYTES_MAX + 1));
        assert_eq!(recent.list("").len(), 1);
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
