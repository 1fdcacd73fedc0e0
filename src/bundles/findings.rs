//! Findings of one check, each place once, bounded in number.

use std::collections::{HashMap, HashSet};

use crate::decision::{CheckFinding, CheckResult, CheckStatus, Severity};

/// Most findings of one check.
const FINDINGS_MAX: usize = 500;
/// Most findings of one rule in one file; more tell nothing new.
const PER_RULE_MAX: usize = 10;

/// Findings of one check so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    list: Vec<CheckFinding>,
    places: HashSet<(String, String, u32)>,
    per_rule: HashMap<(String, String), usize>,
}

impl Findings {
    /// Adds a finding, unless the rule was found at that place before.
    pub(super) fn add(&mut self, finding: CheckFinding) {
        let place = (finding.rule_id.clone(), finding.file.clone(), finding.line);
        if !self.places.insert(place) {
            return;
        }
        let count = self.per_rule.entry((finding.rule_id.clone(), finding.file.clone())).or_default();
        *count += 1;
        if *count <= PER_RULE_MAX {
            self.list.push(finding);
        }
    }

    /// The result: what is HIGH or CRITICAL fails, what is less warns.
    pub(super) fn into_result(mut self) -> CheckResult {
        let status = match self.list.iter().map(|finding| finding.severity).max() {
            None => CheckStatus::Pass,
            Some(Severity::Low | Severity::Medium) => CheckStatus::Warn,
            Some(Severity::High | Severity::Critical) => CheckStatus::Fail,
        };
        // Worst first, so that the limit never drops what blocks; then by place.
        self.list.sort_by(|a, b| {
            (b.severity, &a.file, a.line, &a.rule_id).cmp(&(a.severity, &b.file, b.line, &b.rule_id))
        });
        self.list.truncate(FINDINGS_MAX);
        CheckResult { status, findings: self.list }
    }
}
