//! From findings and failed checks to one decision under a policy.
//!
//! Deny wins: the decision is the strongest of all contributions, so adding a finding or a failed check never weakens it.

use super::Policy;
use crate::decision::{Decision, Finding, RiskLevel, Unjudged, risk_score};

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// What the caller may do.
    pub decision: Decision,
    /// The risk as a word.
    pub risk_level: RiskLevel,
    /// Highest score of an effective finding, from 0.0 to 1.0; 0.0 when there is none.
    pub risk_score: f64,
    /// Whether something in shadow would have blocked, had it been enforced.
    pub would_block: bool,
}

impl Policy {
    /// What one finding would decide if it counted: shadow and suppression are not looked at.
    pub fn decide_finding(&self, finding: &Finding) -> Decision {
        self.thresholds_for(&finding.category).decide(finding.score)
    }

    /// The decision over everything that was found and everything that could not be judged.
    ///
    /// Findings in shadow or suppressed, and failed checks in shadow, have no effect on it.
    pub fn decide(&self, findings: &[Finding], unjudged: &[Unjudged]) -> Verdict {
        let found = findings.iter().filter(|f| f.is_effective()).map(|f| self.decide_finding(f));
        let failed = unjudged.iter().map(Unjudged::decision);
        let score = risk_score(findings);
        Verdict {
            decision: found.chain(failed).max().unwrap_or_default(),
            risk_level: RiskLevel::of(score),
            risk_score: score.unwrap_or(0.0),
            would_block: self.would_block(findings, unjudged),
        }
    }

    fn would_block(&self, findings: &[Finding], unjudged: &[Unjudged]) -> bool {
        let shadowed = findings.iter().filter(|f| f.shadow && !f.suppressed);
        let failed_in_shadow = unjudged.iter().filter(|u| u.shadow);
        shadowed.map(|f| self.decide_finding(f)).any(|d| d == Decision::Block)
            || failed_in_shadow.map(|u| u.fail_mode.decision()).any(|d| d == Decision::Block)
    }
}
