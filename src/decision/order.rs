//! Which findings are told first, and so are those that stay where not all do: the ones that decided.

use super::{Decision, Finding, Severity};

/// How much a finding has to do with a decision: whether it counts, what it decides by itself, how bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight {
    is_effective: bool,
    decides: Decision,
    severity: Severity,
    /// In millionths.
    score: u32,
}

impl Weight {
    /// That of a finding which `decides` so by itself.
    pub fn of(finding: &Finding, decides: Decision) -> Self {
        Self::new(finding.is_effective(), decides, finding.severity, finding.score)
    }

    /// That of a finding of a check of a bundle, and whether the check failed: severities decide.
    pub fn of_check(is_effective: bool, severity: Severity, has_failed: bool) -> Self {
        let decides = match severity {
            _ if !has_failed => Decision::Allow,
            Severity::High | Severity::Critical => Decision::Block,
            Severity::Low | Severity::Medium => Decision::Warn,
        };
        Self::new(is_effective, decides, severity, severity.score())
    }

    /// The same from its parts.
    pub fn new(is_effective: bool, decides: Decision, severity: Severity, score: f64) -> Self {
        Self { is_effective, decides, severity, score: (score.clamp(0.0, 1.0) * 1e6) as u32 }
    }
}

/// Orders by weight: what counts before what does not, the worst first. Those of one weight stay as they are.
pub fn worst_first<T>(items: &mut [T], weight: impl Fn(&T) -> Weight) {
    items.sort_by_cached_key(|item| std::cmp::Reverse(weight(item)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decided_comes_first() {
        use Decision::{Allow, Block, Warn};
        use Severity::{Critical, High, Low, Medium};
        let mut all = [
            ("low", Weight::new(true, Allow, Low, 0.2)),
            ("critical, in shadow", Weight::new(false, Block, Critical, 1.0)),
            ("first of two", Weight::new(true, Warn, Medium, 0.5)),
            ("high, under lax thresholds", Weight::new(true, Allow, High, 0.8)),
            ("second of two", Weight::new(true, Warn, Medium, 0.5)),
            ("medium, under strict thresholds", Weight::new(true, Block, Medium, 0.4)),
            ("the same, more certain", Weight::new(true, Block, Medium, 0.5)),
            ("critical", Weight::new(true, Block, Critical, 1.0)),
        ];
        worst_first(&mut all, |(_, weight)| *weight);
        let wanted = [
            "critical",
            "the same, more certain",
            "medium, under strict thresholds",
            "first of two",
            "second of two",
            "high, under lax thresholds",
            "low",
            "critical, in shadow",
        ];
        assert_eq!(all.map(|(name, _)| name), wanted);
    }

    #[test]
    fn of_bundles_what_failed_a_check_comes_first() {
        let mut all = [
            ("warned", Weight::of_check(true, Severity::Medium, false)),
            ("failed, excused", Weight::of_check(false, Severity::Critical, true)),
            ("failed, beside", Weight::of_check(true, Severity::Medium, true)),
            ("failed", Weight::of_check(true, Severity::Critical, true)),
        ];
        worst_first(&mut all, |(_, weight)| *weight);
        assert_eq!(all.map(|(name, _)| name), ["failed", "failed, beside", "warned", "failed, excused"]);
    }
}
