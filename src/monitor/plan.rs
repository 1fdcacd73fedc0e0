//! What a policy says about streams, compiled: which rules run, what is known to be safe, what a severity leads to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use regex_automata::meta::Regex;

use super::rules::{STREAMS, StreamRules};
use crate::decision::{Category, FailMode, Mode, Severity, VerdictKind, WorkContext};
use crate::detect::Scanner;
use crate::policy::{Policy, Snapshot};
use crate::rules::MetaInfo;

/// What sessions under one policy go by. Immutable; a session holds one from Attach to its end.
#[derive(Clone)]
pub struct Plan {
    pub(super) rules: Arc<StreamRules>,
    pub(super) scanner: Arc<Scanner>,
    pub(super) policy: Arc<PolicyPlan>,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("policy", &self.policy.policy.name()).finish_non_exhaustive()
    }
}

impl Plan {
    /// The plan of a policy; `None` when there is no such policy, or the snapshot was made without the monitor.
    pub fn of(snapshot: &Snapshot, policy: &str) -> Option<Arc<Self>> {
        let prepared: &super::PreparedMonitor = snapshot.prepared()?;
        let scanner = snapshot.shared_scanner().clone();
        let bits = |plan: &PolicyPlan| {
            scanner.rules().plugin_bits(plan.policy.streams().families.iter().map(String::as_str))
        };
        let plan = prepared.plan(policy)?;
        plan.families.get_or_init(|| bits(plan));
        Some(Arc::new(Self { rules: prepared.rules().clone(), scanner, policy: plan.clone() }))
    }

    /// A plan for tests and measurements.
    pub fn new(rules: Arc<StreamRules>, scanner: Arc<Scanner>, policy: PolicyPlan) -> Self {
        let families = policy.policy.streams().families.iter().map(String::as_str);
        policy.families.get_or_init(|| scanner.rules().plugin_bits(families));
        Self { rules, scanner, policy: Arc::new(policy) }
    }

    /// Plugins whose rules run over streams too, as bits of the scanner's rules.
    pub(super) fn families(&self) -> u32 {
        self.policy.families.get().copied().unwrap_or_default()
    }

    /// The mode of a rule.
    pub(super) fn mode(&self, info: &MetaInfo) -> Mode {
        let settings = self.policy.policy.streams();
        let own =
            if &*info.plugin == STREAMS { settings.mode_of(&info.id, &info.category) } else { Mode::Enforce };
        let general = self.policy.policy.mode_of(&info.plugin, &info.id, &info.category, false);
        match (own, general) {
            (Mode::Off, _) | (_, Mode::Off) => Mode::Off,
            (Mode::Shadow, _) | (_, Mode::Shadow) => Mode::Shadow,
            (Mode::Enforce, Mode::Enforce) => Mode::Enforce,
        }
    }

    /// Why a match is known to be safe, if it is.
    pub(super) fn known_safe(
        &self,
        matched: &str,
        category: &Category,
        rule: &str,
        work: Option<&WorkContext>,
    ) -> Option<&str> {
        let known = self.policy.known_safe.iter().find(|known| {
            known.category.as_deref().is_none_or(|wanted| category.is_within(wanted))
                && known.rule.as_deref().is_none_or(|wanted| wanted == rule)
                && known
                    .labels
                    .iter()
                    .all(|(name, value)| work.and_then(|work| work.labels.get(name)) == Some(value))
                && known.pattern.is_match(matched)
        });
        known.map(|known| known.reason.as_str())
    }

    pub(super) fn cooldown(&self) -> Duration {
        self.policy.policy.streams().cooldown
    }

    /// Whether a finding this bad and this certain kills at once. What is of little harm never does.
    pub(super) fn is_certain(&self, severity: Severity, confidence: f64) -> bool {
        severity >= Severity::High && confidence >= self.policy.policy.streams().kill_from
    }

    pub(super) fn verdict_of(&self, severity: Severity) -> VerdictKind {
        self.policy.policy.streams().verdicts[severity as usize]
    }

    pub(super) fn fail_mode(&self, severity: Severity) -> FailMode {
        self.policy.policy.streams().fail[severity as usize]
    }
}

/// What one policy says, compiled.
#[derive(Debug)]
pub struct PolicyPlan {
    policy: Arc<Policy>,
    known_safe: Vec<KnownSafe>,
    families: std::sync::OnceLock<u32>,
}

/// Matches that are known to be safe.
#[derive(Debug)]
struct KnownSafe {
    pattern: Regex,
    category: Option<String>,
    rule: Option<String>,
    labels: BTreeMap<String, String>,
    reason: String,
}

impl PolicyPlan {
    /// Compiles what a policy says.
    ///
    /// # Errors
    /// Index of the entry of the list of what is known to be safe, and what is wrong with its pattern.
    pub fn compile(policy: &Arc<Policy>) -> Result<Self, Vec<(usize, String)>> {
        let mut problems = Vec::new();
        let mut known_safe = Vec::new();
        for (index, entry) in policy.streams().known_safe.iter().enumerate() {
            match pattern(&entry.pattern) {
                Ok(pattern) => known_safe.push(KnownSafe {
                    pattern,
                    category: entry.category.clone(),
                    rule: entry.rule.clone(),
                    labels: entry.labels.clone(),
                    reason: entry.reason.clone(),
                }),
                Err(message) => problems.push((index, message)),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self { policy: policy.clone(), known_safe, families: std::sync::OnceLock::new() })
    }
}

/// A pattern of a policy. It must fit the whole match: a safe word somewhere in an attack makes nothing safe.
fn pattern(text: &str) -> Result<Regex, String> {
    // Alone first, so that an unbalanced bracket cannot reach over what is put around it.
    let builder = || {
        let mut builder = Regex::builder();
        builder.configure(Regex::config().nfa_size_limit(Some(1 << 20)).dfa(false));
        builder
    };
    builder().build(text).map_err(|error| match error.syntax_error() {
        Some(error) => error.to_string(),
        None => "is too large; make its repeats smaller".to_owned(),
    })?;
    builder().build(&format!(r"\A(?:{text})\z")).map_err(|error| error.to_string())
}
