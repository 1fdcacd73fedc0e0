//! Findings of one check, each place once, bounded in number, and what a policy makes of them.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use super::weigh::{Scales, severity_decision};
use crate::decision::{CheckFinding, CheckResult, CheckStatus, Decision, Severity};
use crate::detect::fingerprint;

/// Most findings of one check.
const FINDINGS_MAX: usize = 500;
/// Most findings of one rule and severity in one file; more tell nothing new.
const PER_RULE_MAX: usize = 10;

/// Findings of one check so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    list: Vec<CheckFinding>,
    /// Where each of the list is, and by what it was found there.
    places: HashMap<(String, String, u32, String), usize>,
    per_rule: HashMap<(String, String, Severity), usize>,
    /// Rules of which a file has more findings than are listed.
    crowded: HashSet<(String, String)>,
    /// Lines of the present file before the text that is being looked at.
    pub(super) lines_before: u32,
}

/// What came of the findings of one check.
#[derive(Debug, Default)]
pub(super) struct Weighed {
    /// How the check ended.
    pub(super) result: CheckResult,
    /// Whether something on trial would have blocked.
    pub(super) would_block: bool,
}

impl Findings {
    /// Adds a finding. Of several of one rule at one place the gravest stays.
    pub(super) fn add(&mut self, mut finding: CheckFinding) {
        if finding.line > 0 {
            finding.line = finding.line.saturating_add(self.lines_before);
        }
        let (rule, file) = (finding.rule_id.clone(), finding.file.clone());
        let place = (rule.clone(), file.clone(), finding.line, finding.fingerprint.clone());
        if let Some(at) = self.places.get(&place) {
            let known = &mut self.list[*at];
            if known.severity < finding.severity {
                finding.fingerprint.clone_from(&known.fingerprint);
                *known = finding;
            }
            return;
        }
        // By severity, so that harmless ones never crowd out what blocks.
        let count = self.per_rule.entry((rule, file, finding.severity)).or_default();
        *count += 1;
        if *count <= PER_RULE_MAX {
            self.places.insert(place, self.list.len());
            self.list.push(finding);
        } else {
            self.crowded.insert((finding.rule_id, finding.file));
        }
    }

    /// Whether as many findings of this rule and severity are listed for the file as are listed at most.
    pub(super) fn is_crowded(&self, finding: &CheckFinding) -> bool {
        let key = (finding.rule_id.clone(), finding.file.clone(), finding.severity);
        self.per_rule.get(&key).is_some_and(|count| *count >= PER_RULE_MAX)
    }

    /// Lowers what rules whose ids begin with `prefix` found in a file: it warns, and does not block.
    pub(super) fn soften(&mut self, file: &str, prefix: &str) {
        for finding in self.list.iter_mut().rev().take_while(|finding| finding.file == file) {
            if finding.rule_id.starts_with(prefix) {
                finding.severity = finding.severity.min(Severity::Medium);
            }
        }
    }

    /// Takes the lines off what was added since `from`: it was found in a text that the file holds in other letters.
    pub(super) fn unplace(&mut self, from: usize) {
        for finding in self.list.iter_mut().skip(from) {
            finding.line = 0;
        }
    }

    /// How many are listed.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Binds what was added since `from` to the lines of the text that it was found in, where nothing more exact is known.
    pub(super) fn bind_to_lines(&mut self, from: usize, text: &str) {
        let mut lines: Option<Vec<&str>> = None;
        let mut digests: HashMap<u32, String> = HashMap::new();
        for finding in self.list.iter_mut().skip(from).filter(|finding| finding.fingerprint.is_empty()) {
            let line = finding.line.saturating_sub(self.lines_before);
            let digest = digests.entry(line).or_insert_with(|| {
                let lines = lines.get_or_insert_with(|| text.split('\n').collect());
                // Line 0 is the whole text.
                let what =
                    (line as usize).checked_sub(1).map_or(text, |at| lines.get(at).copied().unwrap_or(text));
                digest(what.trim().as_bytes())
            });
            finding.fingerprint = fingerprint(&finding.rule_id, digest);
        }
    }

    /// The result where no policy is asked: what is HIGH or CRITICAL fails, what is less warns.
    pub(super) fn into_result(self) -> CheckResult {
        self.weighed_by(|finding, _| Some(severity_decision(finding.severity)), CheckStatus::Fail).result
    }

    /// The result under a policy; `worst` is the most that this check may say.
    pub(super) fn weighed(self, scales: &Scales<'_>, worst: CheckStatus) -> Weighed {
        self.weighed_by(|finding, is_crowded| scales.weigh(finding, is_crowded), worst)
    }

    fn weighed_by(
        self,
        mut weigh: impl FnMut(&mut CheckFinding, bool) -> Option<Decision>,
        worst: CheckStatus,
    ) -> Weighed {
        let Self { list, crowded, .. } = self;
        let mut weighed: Vec<(Decision, CheckFinding)> = Vec::with_capacity(list.len());
        let mut would_block = false;
        for mut finding in list {
            if finding.fingerprint.is_empty() {
                let what = format!("{}\0{}\0{}", finding.file, finding.reason, finding.snippet);
                finding.fingerprint = fingerprint(&finding.rule_id, &what);
            }
            let is_crowded = crowded.contains(&(finding.rule_id.clone(), finding.file.clone()));
            let Some(decision) = weigh(&mut finding, is_crowded) else { continue };
            would_block |= finding.shadow && !finding.suppressed && decision == Decision::Block;
            let counts = if finding.is_effective() { decision } else { Decision::Allow };
            weighed.push((counts, finding));
        }
        let status = if weighed.iter().any(|(decision, _)| *decision == Decision::Block) {
            CheckStatus::Fail
        } else if weighed.iter().any(|(_, finding)| finding.is_effective()) {
            CheckStatus::Warn
        } else {
            CheckStatus::Pass
        };
        // What blocks first, so that the limit never drops it; then the worst, then by place.
        weighed.sort_by(|(a_counts, a), (b_counts, b)| {
            let key = |counts: Decision, one: &CheckFinding| {
                (counts == Decision::Block, one.is_effective(), one.severity)
            };
            key(*b_counts, b)
                .cmp(&key(*a_counts, a))
                .then_with(|| (&a.file, a.line, &a.rule_id).cmp(&(&b.file, b.line, &b.rule_id)))
        });
        let mut shown: HashSet<(String, String, u32)> = HashSet::new();
        let mut findings: Vec<CheckFinding> = weighed.into_iter().map(|(_, finding)| finding).collect();
        findings.retain(|one| shown.insert((one.rule_id.clone(), one.file.clone(), one.line)));
        findings.truncate(FINDINGS_MAX);
        let status = if worst == CheckStatus::Warn && status == CheckStatus::Fail { worst } else { status };
        Weighed { result: CheckResult { status, findings }, would_block }
    }
}

/// SHA-256 of some bytes, hex.
pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &str, line: u32, severity: Severity) -> CheckFinding {
        CheckFinding {
            rule_id: rule.to_owned(),
            file: "a.md".to_owned(),
            line,
            severity,
            ..CheckFinding::default()
        }
    }

    #[test]
    fn harmless_findings_never_hide_what_blocks() {
        let mut findings = Findings::default();
        for line in 1..=40 {
            findings.add(finding("r", line, Severity::Medium));
        }
        findings.add(finding("r", 50, Severity::High));
        let result = findings.into_result();
        assert_eq!(result.status, CheckStatus::Fail);
        assert_eq!((result.findings[0].line, result.findings.len()), (50, 11));
    }

    #[test]
    fn the_gravest_at_a_place_stays() {
        let mut findings = Findings::default();
        findings.add(finding("r", 3, Severity::Low));
        findings.add(finding("r", 3, Severity::Critical));
        findings.add(finding("r", 3, Severity::Medium));
        let result = findings.into_result();
        assert_eq!(result.findings.len(), 1);
        assert_eq!(result.findings[0].severity, Severity::Critical);
    }

    #[test]
    fn lines_count_from_the_begin_of_the_file() {
        let mut findings = Findings { lines_before: 100, ..Findings::default() };
        findings.add(finding("r", 2, Severity::Low));
        findings.add(finding("s", 0, Severity::Low));
        findings.bind_to_lines(0, "one\ntwo\n");
        let lines: Vec<u32> = findings.into_result().findings.iter().map(|one| one.line).collect();
        assert_eq!(lines, [0, 102]);
    }

    #[test]
    fn a_fingerprint_is_that_of_the_line_wherever_it_stands() {
        let print = |line: u32, text: &str| {
            let mut findings = Findings::default();
            findings.add(finding("r", line, Severity::Low));
            findings.bind_to_lines(0, text);
            findings.into_result().findings[0].fingerprint.clone()
        };
        assert_eq!(print(1, "rm x\nls"), print(3, "a\nb\n  rm x\r\n"));
        assert_ne!(print(1, "rm x"), print(1, "rm y"));
    }
}
