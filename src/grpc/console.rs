//! What the console asks for and no RPC answers: over the same engines, as the same caller.

use super::local::{LocalCalls, Refusal};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::bundle_convert::standing_of;
use super::list_rules::with_coded;
use super::{Identity, RequestError};
use crate::audit::{Remembered, masked_name};
use crate::bundles::life::Bytes;
use crate::bundles::rules::BUNDLES;
use crate::bundles::service::{Choice, FileLines};
use crate::decision::{Decision, Finding, Thresholds, Unjudged};
use crate::detect::concepts::RULE_ID;
use crate::detect::wording;
use crate::identity::needs;
use crate::pb::v1;
use crate::policy::{PastReload, Sources};
use crate::store::{ChecksBrief, RuleCount, RuleCounts};
use crate::telemetry::Rpc;
use crate::tools::{COMMAND_SAFETY, PATH_AUDIT};

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

    /// What a list shows of the checks of submissions that `ListSubmissions` answered to the caller.
    ///
    /// # Errors
    /// The store failed.
    pub async fn briefs(
        &self,
        identity: &Identity,
        submission_ids: Vec<String>,
    ) -> Result<HashMap<String, ChecksBrief>, Refusal> {
        let submissions = &self.shared().submissions;
        submissions.briefs(&identity.actor(""), submission_ids).await.map_err(|e| refused(e.into()))
    }

    /// Largest text that is judged, in bytes.
    pub fn request_bytes_max(&self) -> usize {
        self.shared().request_bytes_max
    }

    /// The lines of files of an archive that somebody tries out.
    pub async fn lines_of(&self, archive: Vec<u8>, paths: Vec<String>) -> Vec<FileLines> {
        self.shared().submissions.lines_of(archive, paths).await
    }

    /// What a caller chose to call something, without the credentials and personal data in it.
    pub fn masked_name(&self, name: &str) -> String {
        match self.shared().live.snapshot() {
            Some(snapshot) => masked_name(snapshot.scanner(), name).into_owned(),
            None if name.is_empty() => String::new(),
            None => "[REDACTED]".to_owned(),
        }
    }

    /// Path of the primary document of a submission that the caller may see; `None` where there is none.
    ///
    /// # Errors
    /// There is no such submission, or its bytes cannot be read.
    pub async fn primary(&self, identity: &Identity, submission_id: &str) -> Result<Option<String>, Refusal> {
        let submissions = &self.shared().submissions;
        submissions.primary(&identity.actor(""), submission_id).await.map_err(|e| refused(e.into()))
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
        let bytes = Bytes::of(submission.bundle_purge_time.is_some(), &submission.bundle_sha256);
        standing
            .map(|(status, hold)| self.shared().submissions.choices(status, hold, bytes))
            .unwrap_or_default()
    }

    /// Where rules and policies come from, and the latest reloads, newest first.
    pub fn reloads(&self) -> (Sources, Vec<PastReload>) {
        let live = &self.shared().live;
        (live.sources().clone(), live.history())
    }

    /// The files that policies came from, by the names of the policies. One that is built in has none.
    pub fn policy_files(&self, names: &[String]) -> Vec<Option<Arc<str>>> {
        let snapshot = self.shared().live.snapshot();
        let file = |name: &String| snapshot.as_ref()?.policies().file(name).cloned();
        names.iter().map(file).collect()
    }

    /// What each rule found for the caller's tenant within the last seven days: what was counted by decisions, and for
    /// rules of watched streams their incidents, and those in shadow that would have ended the stream. `rule_id` asks for
    /// one rule; empty means all.
    ///
    /// # Errors
    /// The caller is no auditor, or the store failed.
    pub async fn rule_counts(
        &self,
        identity: &Identity,
        rule_id: &str,
    ) -> Result<HashMap<String, RuleCount>, Refusal> {
        identity.require_auditor().map_err(refused)?;
        let shared = self.shared();
        let tenant = identity.tenant();
        let mut sums = shared.counts.sums(tenant, DAYS).await.map_err(|error| refused(error.into()))?;
        let request = v1::GetIncidentStatsRequest { rule_id: rule_id.to_owned(), ..Default::default() };
        let days = DAYS.unsigned_abs() as u32;
        let incidents = shared.incidents.counted(tenant, request, (days, days)).await.map_err(refused)?;
        for rule in incidents {
            let count = RuleCount { findings: rule.long.incidents, would_block: rule.long.shadow_kill };
            sums.entry(rule.rule_id).or_default().add(count);
        }
        Ok(sums)
    }

    /// What each rule of watched streams reported for the caller's tenant within 30 and 7 days; of `IncidentCounts` the
    /// contract tells less.
    ///
    /// # Errors
    /// The caller may not see incidents, or the store failed.
    pub async fn incident_rates(&self, identity: &Identity) -> Result<Vec<RuleCounts>, Refusal> {
        self.check_role(identity, "IncidentService/GetIncidentStats")?;
        let request = v1::GetIncidentStatsRequest::default();
        self.shared().incidents.counted(identity.tenant(), request, (30, 7)).await.map_err(refused)
    }

    /// One rule with its examples.
    ///
    /// # Errors
    /// There is none with this id, or nothing is loaded.
    pub fn rule(&self, _: &Identity, id: &str) -> Result<KnownRule, Refusal> {
        let snapshot = self.shared().live.snapshot().ok_or_else(|| refused(RequestError::NotServing))?;
        let all = with_coded(&snapshot);
        let Some(rule) = all.iter().find(|rule| rule.id == id) else {
            let name = id.chars().take(128).collect();
            return Err(refused(RequestError::NotFound { what: "rule", name }));
        };
        let thresholds = snapshot.policies().default_policy().thresholds_for(rule.category);
        let detector = snapshot.scanner().rules().rule(id);
        let is_of_phrases = detector.is_some_and(|detector| detector.is_of_phrases());
        Ok(KnownRule {
            decides: match rule.plugin {
                BUNDLES => Decides::Bundles,
                COMMAND_SAFETY | PATH_AUDIT => Decides::Tools,
                _ if detector.is_some() || rule.is_in_code() => Decides::Messages,
                _ => Decides::Streams,
            },
            rule: rule.told(&snapshot),
            score: rule.severity.score() * rule.confidence,
            is_graded: [RULE_ID, wording::RULE_ID].contains(&id),
            applies_to: detector.map(|detector| detector.applies_to()).unwrap_or_default(),
            warn: thresholds.warn,
            block: thresholds.block,
            place: match rule.is_in_code() {
                true => "in code".to_owned(),
                false => format!("{}:{}", rule.file, rule.line),
            },
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
        with_coded(&snapshot).into_iter().map(|rule| rule.id.to_owned()).collect()
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

    /// What other thresholds of a category would have decided about the messages that are remembered, each under its own
    /// policy as it is in force now. `None` leaves a threshold as each policy has it. What was left out is counted.
    ///
    /// # Errors
    /// The caller is no auditor, or nothing is loaded.
    pub fn what_if(
        &self,
        identity: &Identity,
        category: &str,
        warn: Option<f64>,
        block: Option<f64>,
    ) -> Result<WhatIf, Refusal> {
        let snapshot = self.shared().live.snapshot().ok_or_else(|| refused(RequestError::NotServing))?;
        let mut what_if = WhatIf::default();
        for one in self.decisions(identity)? {
            if one.rpc != Rpc::CheckMessages.as_str() {
                what_if.other_calls += 1;
                continue;
            }
            if one.findings.len() != one.findings_total {
                what_if.too_many += 1;
                continue;
            }
            let Some(policy) = snapshot.policies().get(&one.policy) else {
                what_if.without_policy += 1;
                continue;
            };
            what_if.seen += 1;
            let is_meant = |finding: &Finding| finding.category.is_within(category);
            let all = one.findings.iter().map(|one| &one.finding);
            let counted: Vec<&Finding> = all.filter(|one| one.is_effective()).collect();
            let score =
                counted.iter().filter(|one| is_meant(one)).map(|one| one.score).max_by(f64::total_cmp);
            let Some(score) = score else { continue };
            what_if.concerned += 1;
            let changed = |own: Thresholds| Thresholds {
                warn: warn.unwrap_or(own.warn),
                block: block.unwrap_or(own.block),
            };
            let failed = one.unjudged.iter().map(Unjudged::decision).max().unwrap_or_default();
            let (mut before, mut after, mut contradicts) = (failed, failed, false);
            for finding in counted {
                let own = policy.thresholds_for(&finding.category);
                let other = if is_meant(finding) { changed(own) } else { own };
                contradicts |= other.warn > other.block;
                before = before.max(own.decide(finding.score));
                after = after.max(other.decide(finding.score));
            }
            if contradicts {
                what_if.contradicting += 1;
            } else if after != before {
                let decision_id = one.decision_id.clone();
                what_if.changed.push(Changed { decision_id, before, after, score });
            }
        }
        Ok(what_if)
    }
}

/// What a rule decides about, and so what a threshold means for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decides {
    /// Messages: the thresholds of its category alone.
    Messages,
    /// Tool calls: the thresholds of its category, and interceptors beside them.
    Tools,
    /// Bundles: severities.
    Bundles,
    /// Watched streams: severities, verdicts of a judge and `streams.kill_from`.
    Streams,
}

/// One rule with everything that a person wants to know of it.
#[derive(Clone, Debug)]
pub struct KnownRule {
    /// What it decides about.
    pub decides: Decides,
    /// The rule as the contract tells it.
    pub rule: v1::Rule,
    /// Score of its findings; the highest where it is graded.
    pub score: f64,
    /// Whether its findings score by how sure a model is.
    pub is_graded: bool,
    /// Where it applies, in words; empty where that is no matter of roles and texts.
    pub applies_to: String,
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
    /// Left out: decisions about tool calls and bundles, in which more than thresholds has a say.
    pub other_calls: usize,
    /// Left out: decisions of which not every finding is remembered.
    pub too_many: usize,
    /// Left out: decisions of a policy that is not in force any more.
    pub without_policy: usize,
    /// Left out of those that are concerned: it would warn later than it blocks, which no policy may.
    pub contradicting: usize,
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
