//! What the console asks for and no RPC answers: over the same engines, as the same caller.

use super::local::{LocalCalls, Refusal};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::bundle_convert::standing_of;
use super::list_rules::{Listed, all_rules};
use super::{Identity, RequestError};
use crate::audit::Remembered;
use crate::bundles::service::{Choice, FileLines};
use crate::decision::{Decision, Finding, Thresholds, Unjudged};
use crate::identity::needs;
use crate::pb::v1;
use crate::policy::{PastReload, Snapshot, Sources};
use crate::rules::MetaInfo;
use crate::store::RuleCount;
use crate::telemetry::Rpc;

/// Days over which rules are counted.
const DAYS: i64 = 7;

impl LocalCalls {
    /// The lines of files of a submission that the caller may see.
    ///
    /// # Errors
    /// There is no such submission, or its bytes are gone.
    pub async fn lines(
        &self,
        identity: &Identity,
        submission_id: &str,
        paths: Vec<String>,
    ) -> Result<Vec<FileLines>, Refusal> {
        let submissions = &self.shared().submissions;
        submissions.lines(&identity.actor(""), submission_id, paths).await.map_err(|e| refused(e.into()))
    }

    /// Refuses a caller who lacks the role that an RPC such as `EntityService/RestoreEntity` needs.
    ///
    /// # Errors
    /// It does.
    pub fn check_role(&self, identity: &Identity, rpc: &str) -> Result<(), Refusal> {
        let roles = needs(&format!("/portcullis.v1.{rpc}")).unwrap_or_default();
        if roles.iter().any(|role| identity.has(*role)) {
            return Ok(());
        }
        Err(refused(RequestError::NeedsRole { roles, has: identity.roles }))
    }

    /// What an administrator could do with a submission as it stands.
    pub fn choices(&self, submission: &v1::Submission) -> Vec<Choice> {
        let standing = standing_of(submission);
        let has_bytes = submission.bundle_purge_time.is_none();
        standing
            .map(|(status, hold)| self.shared().submissions.choices(status, hold, has_bytes))
            .unwrap_or_default()
    }

    /// Where rules and policies come from, and the latest reloads, newest first.
    pub fn reloads(&self) -> (Sources, Vec<PastReload>) {
        let live = &self.shared().live;
        (live.sources().clone(), live.history())
    }

    /// What each rule found for the caller's tenant within the last seven days: what was counted by decisions, and for
    /// rules of watched streams their incidents.
    ///
    /// # Errors
    /// The caller is no auditor, or the store failed.
    pub async fn rule_counts(&self, identity: &Identity) -> Result<HashMap<String, RuleCount>, Refusal> {
        identity.require_auditor().map_err(refused)?;
        let shared = self.shared();
        let tenant = identity.tenant();
        let mut sums = shared.counts.sums(tenant, DAYS).await.map_err(|error| refused(error.into()))?;
        let request = v1::GetIncidentStatsRequest::default();
        let incidents = shared.incidents.stats(tenant, request).await.map_err(refused)?;
        for rule in incidents.rules {
            let findings = rule.last_7_days.map_or(0, |counts| counts.incidents);
            sums.entry(rule.rule_id).or_default().add(RuleCount { findings, would_block: 0 });
        }
        Ok(sums)
    }

    /// One rule with its examples.
    ///
    /// # Errors
    /// There is none with this id, or nothing is loaded.
    pub fn rule(&self, _: &Identity, id: &str) -> Result<KnownRule, Refusal> {
        let snapshot = self.shared().live.snapshot().ok_or_else(|| refused(RequestError::NotServing))?;
        let all = all_rules(&snapshot);
        if let Some(coded) = snapshot.scanner().coded().find(|info| *info.id == *id) {
            return Ok(in_code(&snapshot, coded));
        }
        let Some(rule) = all.iter().find(|rule| rule.id == id) else {
            let name = id.chars().take(128).collect();
            return Err(refused(RequestError::NotFound { what: "rule", name }));
        };
        let thresholds = snapshot.policies().default_policy().thresholds_for(rule.category);
        let detector = snapshot.scanner().rules().rule(id);
        let is_of_phrases = detector.is_some_and(|detector| detector.is_of_phrases());
        Ok(KnownRule {
            rule: rule.told(&snapshot),
            score: rule.severity.score() * rule.confidence,
            warn: thresholds.warn,
            block: thresholds.block,
            place: format!("{}:{}", rule.file, rule.line),
            pattern: detector
                .filter(|_| !is_of_phrases)
                .map(|detector| detector.def.pattern.trim().to_owned())
                .unwrap_or_default(),
            phrases: detector.map(|detector| detector.def.phrases_written.clone()).unwrap_or_default(),
            examples: rule.examples.to_vec(),
            negative_examples: rule.negative_examples.to_vec(),
            known_misses: rule.known_misses.to_vec(),
        })
    }

    /// Ids of all rules, those in code among them: what a page can lead to.
    pub fn rule_ids(&self) -> HashSet<String> {
        let Some(snapshot) = self.shared().live.snapshot() else { return HashSet::new() };
        let coded = snapshot.scanner().coded().map(|info| info.id.to_string());
        all_rules(&snapshot).into_iter().map(|rule| rule.id.to_owned()).chain(coded).collect()
    }

    /// Recent decisions of the caller's tenant, newest first.
    ///
    /// # Errors
    /// The caller is no auditor.
    pub fn decisions(&self, identity: &Identity) -> Result<Vec<Arc<Remembered>>, Refusal> {
        identity.require_auditor().map_err(refused)?;
        Ok(self.shared().recent.list(identity.tenant()))
    }

    /// One of them.
    ///
    /// # Errors
    /// The caller is no auditor, or no such decision is remembered.
    pub fn decision(&self, identity: &Identity, id: &str) -> Result<Arc<Remembered>, Refusal> {
        identity.require_auditor().map_err(refused)?;
        self.shared().recent.get(identity.tenant(), id).ok_or_else(|| {
            let name = id.chars().take(128).collect();
            refused(RequestError::NotFound { what: "recent decision", name })
        })
    }

    /// What other thresholds of a category would have decided about the messages that are remembered, under the policies
    /// in force. Decisions of which not every finding is remembered are left out.
    ///
    /// # Errors
    /// The caller is no auditor, or nothing is loaded.
    pub fn what_if(
        &self,
        identity: &Identity,
        category: &str,
        warn: f64,
        block: f64,
    ) -> Result<WhatIf, Refusal> {
        let snapshot = self.shared().live.snapshot().ok_or_else(|| refused(RequestError::NotServing))?;
        let mut what_if = WhatIf::default();
        let decisions = self.decisions(identity)?;
        let whole = decisions.iter().filter(|one| one.rpc == Rpc::CheckMessages.as_str());
        for one in whole.filter(|one| one.findings.len() == one.findings_total) {
            what_if.seen += 1;
            let is_meant =
                |finding: &&Finding| finding.is_effective() && finding.category.is_within(category);
            let Some(score) =
                one.findings.iter().filter(is_meant).map(|finding| finding.score).max_by(f64::total_cmp)
            else {
                continue;
            };
            what_if.concerned += 1;
            let policies = snapshot.policies();
            let policy = policies.get(&one.policy).unwrap_or_else(|| policies.default_policy());
            let others = one.findings.iter().filter(|finding| finding.is_effective() && !is_meant(finding));
            let others = others.map(|finding| policy.decide_finding(finding));
            let failed = one.unjudged.iter().map(Unjudged::decision);
            let own = Thresholds { warn, block }.decide(score);
            let after = others.chain(failed).fold(own, Ord::max);
            if after != one.decision {
                let (decision_id, before) = (one.decision_id.clone(), one.decision);
                what_if.changed.push(Changed { decision_id, before, after, score });
            }
        }
        Ok(what_if)
    }
}

/// A detector in code, or the model that weighs concepts: it has no examples of its own.
fn in_code(snapshot: &Snapshot, info: &MetaInfo) -> KnownRule {
    let listed = Listed {
        id: &info.id,
        plugin: &info.plugin,
        category: &info.category,
        severity: info.severity,
        confidence: info.confidence,
        description: &info.description,
        recommendation: &info.recommendation,
        references: &info.references,
        examples: &[],
        negative_examples: &[],
        known_misses: &[],
        file: &info.file,
        line: info.line,
    };
    let thresholds = snapshot.policies().default_policy().thresholds_for(&info.category);
    KnownRule {
        rule: v1::Rule { source: "builtin".to_owned(), ..listed.told(snapshot) },
        score: info.score,
        warn: thresholds.warn,
        block: thresholds.block,
        place: "in code".to_owned(),
        pattern: String::new(),
        phrases: Vec::new(),
        examples: Vec::new(),
        negative_examples: Vec::new(),
        known_misses: Vec::new(),
    }
}

/// One rule with everything that a person wants to know of it.
#[derive(Clone, Debug)]
pub struct KnownRule {
    /// The rule as the contract tells it.
    pub rule: v1::Rule,
    /// Score of its findings.
    pub score: f64,
    /// Score from which its category warns under the default policy.
    pub warn: f64,
    /// Score from which its category blocks under the default policy.
    pub block: f64,
    /// File and line.
    pub place: String,
    /// Its pattern; empty where it has none.
    pub pattern: String,
    /// Its phrases, as they are written.
    pub phrases: Vec<String>,
    /// What it must find.
    pub examples: Vec<String>,
    /// What it must not find.
    pub negative_examples: Vec<String>,
    /// What it ought to find and does not yet.
    pub known_misses: Vec<String>,
}

/// What other thresholds would have decided.
#[derive(Clone, Debug, Default)]
pub struct WhatIf {
    /// Decisions that were looked at.
    pub seen: usize,
    /// Those with a finding of the category that counts.
    pub concerned: usize,
    /// Those that would have been others, newest first.
    pub changed: Vec<Changed>,
}

/// A decision that would have been another.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// Its id.
    pub decision_id: String,
    /// As it was.
    pub before: Decision,
    /// As it would have been.
    pub after: Decision,
    /// Highest score of the category in it.
    pub score: f64,
}

pub(super) fn refused(error: RequestError) -> Refusal {
    Refusal::from(error.to_status())
}
