//! What the checks of a bundle found and what they scanned, as the page of a submission and the playground show it.

use std::collections::{BTreeMap, HashSet};

use super::submissions::checks_of;
use super::view;
use crate::bundles::service::FileLines;
use crate::decision::{Weight, worst_first};
use crate::pb::v1;

/// Lines shown before and after one that something was found in.
const CONTEXT_LINES: usize = 3;
/// Findings shown of one bundle.
const FINDINGS_MAX: usize = 200;
/// Files of the ledger shown.
const LEDGER_MAX: usize = 2_000;

/// See the module.
pub(super) struct Scanned {
    /// What was found, first what decided.
    pub(super) findings: Vec<Finding>,
    /// How many are left out.
    pub(super) more_findings: usize,
    /// Files, first those that were not scanned to their end.
    pub(super) ledger: Vec<Ledger>,
    /// How many there are in all.
    pub(super) files: usize,
    /// How many of all were not scanned to their end.
    pub(super) unscanned: usize,
    /// The RPC that tells what is left out.
    pub(super) rpc: &'static str,
}

/// One thing that was found, with the lines around it.
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) rule_id: String,
    /// The page of the rule; empty where there is none.
    pub(super) rule_href: String,
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) category: String,
    pub(super) severity: String,
    pub(super) reason: String,
    pub(super) snippet: String,
    pub(super) fix: String,
    pub(super) mode: Option<&'static str>,
    pub(super) lines: Vec<Line>,
}

/// A line of a file.
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) text: String,
    pub(super) is_hit: bool,
}

/// What became of one file.
pub(super) struct Ledger {
    pub(super) path: String,
    pub(super) size: String,
    pub(super) scanned: String,
    pub(super) engines: String,
    pub(super) reason: String,
    pub(super) is_whole: bool,
}

/// The findings of a bundle, each with the check that has it, as many as are shown: first what decided.
pub(super) struct Told<'c> {
    shown: Vec<(&'static str, &'c v1::CheckFinding)>,
    more: usize,
}

impl<'c> Told<'c> {
    /// Those of checks, the review by a model among them.
    pub(super) fn of(checks: Option<&'c v1::BundleChecks>) -> Self {
        let mut all: Vec<(&'static str, &v1::CheckFinding, Weight)> = Vec::new();
        let mut add = |name, status, findings: &'c [v1::CheckFinding]| {
            let has_failed = status == v1::CheckStatus::Fail;
            all.extend(findings.iter().map(|one| {
                let severity = view::severity_of(one.severity());
                (name, one, Weight::of_check(!one.shadow && !one.suppressed, severity, has_failed))
            }));
        };
        for (name, check) in checks_of(checks) {
            add(name, check.status(), &check.findings);
        }
        if let Some(review) = checks.and_then(|checks| checks.llm_review.as_ref()) {
            add("review by a model", review.status(), &review.findings);
        }
        worst_first(&mut all, |(.., weight)| *weight);
        let more = all.len().saturating_sub(FINDINGS_MAX);
        let shown = all.into_iter().take(FINDINGS_MAX).map(|(name, finding, _)| (name, finding));
        Self { shown: shown.collect(), more }
    }

    /// The files whose lines are shown, in this order.
    pub(super) fn files(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let with_lines = self.shown.iter().filter(|(_, finding)| finding.line > 0);
        let new = with_lines.filter(|(_, finding)| seen.insert(finding.file.as_str()));
        new.map(|(_, finding)| finding.file.clone()).collect()
    }
}

impl Scanned {
    /// What was found and scanned. `lines` are those of the files that they are shown of.
    pub(super) fn of(
        told: &Told<'_>,
        coverage: &[v1::FileCoverage],
        lines: &[FileLines],
        known: &HashSet<String>,
        rpc: &'static str,
    ) -> Self {
        let files: BTreeMap<&str, &[String]> =
            lines.iter().map(|file| (file.path.as_str(), file.lines.as_slice())).collect();
        let is_whole = |file: &&v1::FileCoverage| file.unscanned_reason.is_empty();
        let unscanned = coverage.iter().filter(|file| !is_whole(file));
        let first = unscanned.clone().chain(coverage.iter().filter(is_whole));
        Self {
            findings: told.shown.iter().map(|(check, one)| Finding::of(check, one, &files, known)).collect(),
            more_findings: told.more,
            ledger: first.take(LEDGER_MAX).map(Ledger::of).collect(),
            files: coverage.len(),
            unscanned: unscanned.count(),
            rpc,
        }
    }

    /// How many files the ledger leaves out.
    pub(super) fn more_files(&self) -> usize {
        self.files - self.ledger.len()
    }
}

impl Finding {
    fn of(
        check: &'static str,
        finding: &v1::CheckFinding,
        files: &BTreeMap<&str, &[String]>,
        known: &HashSet<String>,
    ) -> Self {
        let lines = files.get(finding.file.as_str()).copied().unwrap_or_default();
        let at = usize::try_from(finding.line).unwrap_or(0);
        let is_there = at > 0 && at <= lines.len();
        let shown = if is_there {
            let from = at.saturating_sub(CONTEXT_LINES).max(1);
            from..(at + CONTEXT_LINES).min(lines.len()) + 1
        } else {
            0..0
        };
        Self {
            check,
            rule_href: match known.contains(&finding.rule_id) {
                true => format!("{}/{}", super::rules::PLACE, view::segment(&finding.rule_id)),
                false => String::new(),
            },
            rule_id: finding.rule_id.clone(),
            file: finding.file.clone(),
            line: finding.line,
            category: finding.category.clone(),
            severity: view::severity(finding.severity),
            reason: finding.reason.clone(),
            snippet: finding.snippet.clone(),
            fix: finding.fix_hint.clone(),
            mode: match (finding.suppressed, finding.shadow) {
                (true, _) => Some("suppressed"),
                (false, true) => Some("shadow"),
                (false, false) => None,
            },
            lines: shown
                .map(|number| Line { number, text: lines[number - 1].clone(), is_hit: number == at })
                .collect(),
        }
    }
}

impl Ledger {
    fn of(file: &v1::FileCoverage) -> Self {
        Self {
            path: file.path.clone(),
            size: view::size(file.bytes),
            scanned: view::size(file.bytes_scanned),
            engines: file.engines.join(", "),
            reason: view::spoken(&file.unscanned_reason),
            is_whole: file.unscanned_reason.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(file: String, severity: v1::Severity) -> v1::CheckFinding {
        v1::CheckFinding { file, line: 1, severity: severity.into(), ..Default::default() }
    }

    #[test]
    fn the_finding_that_blocked_is_shown_whatever_else_was_found() {
        let mild = (0..300).map(|at| finding(format!("a{at}"), v1::Severity::Medium)).collect();
        let checks = v1::BundleChecks {
            static_security: Some(v1::CheckResult { status: v1::CheckStatus::Warn.into(), findings: mild }),
            llm_review: Some(v1::LlmReview {
                status: v1::CheckStatus::Fail.into(),
                findings: vec![
                    v1::CheckFinding { shadow: true, ..finding("trial".to_owned(), v1::Severity::Critical) },
                    finding("beside".to_owned(), v1::Severity::Medium),
                    finding("why".to_owned(), v1::Severity::Critical),
                ],
                ..Default::default()
            }),
            ..Default::default()
        };
        let told = Told::of(Some(&checks));
        assert_eq!(told.files()[..3], ["why", "beside", "a0"], "its lines are read first, too");
        let scanned = Scanned::of(&told, &[], &[], &HashSet::new(), "GetSubmission");
        assert_eq!((scanned.findings.len(), scanned.more_findings), (FINDINGS_MAX, 103));
        assert_eq!(scanned.findings[0].check, "review by a model");
    }

    #[test]
    fn what_was_not_scanned_is_never_left_out_of_a_ledger() {
        let file = |path: String, reason: &str| v1::FileCoverage {
            path,
            unscanned_reason: reason.to_owned(),
            ..Default::default()
        };
        let mut coverage: Vec<_> = (0..2_500).map(|at| file(format!("a{at}"), "")).collect();
        coverage.push(file("z/last.bin".to_owned(), "binary"));
        let scanned = Scanned::of(&Told::of(None), &coverage, &[], &HashSet::new(), "GetSubmission");
        assert_eq!((scanned.files, scanned.unscanned, scanned.more_files()), (2_501, 1, 501));
        assert_eq!(scanned.ledger[0].path, "z/last.bin");
    }
}
