//! Reviews of bundles as a person reads them: shared by `review` and `submissions`.
//!
//! Nearly everything here is text of a stranger: nothing reaches the terminal but by [`line`] and [`printable`].

use super::findings::print_unjudged;
use super::progress::size;
use super::snippet::printable;
use super::{Output, Style};
use crate::pb::v1;

/// Findings of one check that are shown; the rest is counted.
const FINDINGS_MAX: usize = 100;
/// Capabilities that are shown.
const CAPABILITIES_MAX: usize = 40;
/// Files without full coverage that are shown.
const FILES_MAX: usize = 20;

/// Text of a stranger on one line, at most `chars_max` characters of it.
pub(super) fn line(text: &str, chars_max: usize) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.chars().nth(chars_max).is_some() {
            words = words.chars().take(chars_max.saturating_sub(1)).collect();
            words.push('…');
            break;
        }
    }
    printable(&words)
}

/// A status as people name it, such as `blocked_inline`.
pub(super) fn status_name(status: v1::SubmissionStatus) -> String {
    status.as_str_name().trim_start_matches("SUBMISSION_STATUS_").to_ascii_lowercase()
}

/// How a status is set off.
pub(super) fn status_style(status: v1::SubmissionStatus) -> Style {
    use v1::SubmissionStatus as S;
    match status {
        S::Approved | S::Overridden => Style::Green,
        S::PendingInline | S::PendingLlm | S::ReviewError => Style::Yellow,
        S::BlockedInline | S::BlockedLlm | S::Deleted | S::Unspecified => Style::Red,
    }
}

/// A kind as people name it.
pub(super) fn kind_name(kind: v1::BundleKind) -> String {
    kind.as_str_name().trim_start_matches("BUNDLE_KIND_").to_ascii_lowercase()
}

/// A visibility as people name it; `-` when the entity is gone.
pub(super) fn visibility_name(visibility: v1::Visibility) -> String {
    match visibility {
        v1::Visibility::Unspecified => "-".to_owned(),
        known => known.as_str_name().trim_start_matches("VISIBILITY_").to_ascii_lowercase(),
    }
}

/// Why a submission is held, as a sentence; `None` when it is not.
pub(super) fn hold_sentence(reason: v1::HoldReason) -> Option<&'static str> {
    match reason {
        v1::HoldReason::NoKey => {
            Some("held: review by a model is switched on, and no model can be reached for want of a key")
        }
        v1::HoldReason::Coverage => {
            Some("held: something that an agent could run or read was not scanned; see the coverage")
        }
        v1::HoldReason::None | v1::HoldReason::Unspecified => None,
    }
}

/// Prints the checks one by one, with what they found; `verbose` adds advice that asks for
/// nothing, and what suppressions need.
pub(super) fn print_checks(checks: &v1::BundleChecks, verbose: bool, output: &mut Output) {
    let parts = [
        ("archive", checks.archive.as_ref()),
        ("manifest", checks.manifest.as_ref()),
        ("static security", checks.static_security.as_ref()),
        ("quality", checks.quality.as_ref()),
    ];
    output.line("");
    for (name, check) in parts {
        let none = v1::CheckResult::default();
        let check = check.unwrap_or(&none);
        print_check_line(name, check.status(), check.findings.len(), output);
    }
    match &checks.llm_review {
        None => print_check_line("review by a model", v1::CheckStatus::Skipped, 0, output),
        Some(review) => print_check_line("review by a model", review.status(), review.findings.len(), output),
    }
    for (_, check) in parts {
        let findings = check.map(|check| check.findings.as_slice()).unwrap_or_default();
        print_findings(findings, verbose, output);
    }
    if let Some(review) = &checks.llm_review {
        print_review(review, output);
    }
    // Nearly no bundle has any: the advice is for those who ask for everything.
    match checks.template_placeholders {
        0 if verbose && !checks.template_recommendation.is_empty() => {
            output.line(format_args!("\nplaceholders: {}", line(&checks.template_recommendation, 400)));
        }
        0 => {}
        1 => output.line("\n1 placeholder to be filled in at the first use"),
        more => output.line(format_args!("\n{more} placeholders to be filled in at the first use")),
    }
}

fn print_check_line(name: &str, status: v1::CheckStatus, findings: usize, output: &mut Output) {
    let word = match status {
        v1::CheckStatus::Pass => output.styled(Style::Green, "pass"),
        v1::CheckStatus::Warn => output.styled(Style::Yellow, "warn"),
        v1::CheckStatus::Fail | v1::CheckStatus::Unspecified => output.styled(Style::Red, "FAIL"),
        v1::CheckStatus::Skipped => output.styled(Style::Dim, "not run"),
    };
    let count = match findings {
        0 => String::new(),
        1 => "  1 finding".to_owned(),
        more => format!("  {more} findings"),
    };
    output.line(format_args!("  {name:18} {word}{count}"));
}

fn print_findings(findings: &[v1::CheckFinding], verbose: bool, output: &mut Output) {
    for finding in findings.iter().take(FINDINGS_MAX) {
        print_finding(finding, verbose, output);
    }
    if findings.len() > FINDINGS_MAX {
        output
            .line(format_args!("\nand {} more findings; --json has them all", findings.len() - FINDINGS_MAX));
    }
}

/// A severity as people name it.
pub(super) fn severity_name(severity: v1::Severity) -> &'static str {
    match severity {
        v1::Severity::Low => "low",
        v1::Severity::Medium => "medium",
        v1::Severity::High => "high",
        v1::Severity::Critical => "critical",
        v1::Severity::Unspecified => "unknown",
    }
}

fn print_finding(finding: &v1::CheckFinding, verbose: bool, output: &mut Output) {
    let style = match finding.severity() {
        v1::Severity::High | v1::Severity::Critical => Style::Red,
        _ => Style::Yellow,
    };
    let severity = output.styled(style, severity_name(finding.severity()));
    let rule = output.styled(Style::Bold, line(&finding.rule_id, 120));
    let place = match (finding.file.as_str(), finding.line) {
        ("", _) => String::new(),
        (file, 0) => format!("  {}", line(file, 300)),
        (file, at) => format!("  {}:{at}", line(file, 300)),
    };
    let category = line(&finding.category, 80);
    let excuse = match (finding.suppressed, finding.shadow) {
        (true, _) => "  suppressed by the policy",
        (false, true) => "  on trial, without effect",
        (false, false) => "",
    };
    output.line(format_args!("\n{severity} {rule} ({category}){place}{excuse}"));
    output.line(format_args!("  {}", line(&finding.reason, 600)));
    if !finding.snippet.is_empty() {
        let number = if finding.line == 0 { String::new() } else { finding.line.to_string() };
        let snippet = line(&finding.snippet, 200);
        let snippet = output.styled(Style::Dim, format_args!("{number:>5} | {snippet}"));
        output.line(snippet);
    }
    if !finding.fix_hint.is_empty() {
        output.line(format_args!("  fix: {}", line(&finding.fix_hint, 600)));
    }
    if verbose && !finding.fingerprint.is_empty() {
        output.line(format_args!("  fingerprint: {}", line(&finding.fingerprint, 40)));
    }
}

fn print_review(review: &v1::LlmReview, output: &mut Output) {
    if !review.risk_level.is_empty() {
        let (risk, model) = (line(&review.risk_level, 20), line(&review.model, 80));
        output.line(format_args!("\n{model} calls the risk {risk}: {}", line(&review.summary, 1_000)));
    }
    if !review.reason.is_empty() {
        output.line(format_args!("\nreview by a model: {}", line(&review.reason, 600)));
    }
    print_findings(&review.findings, false, output);
}

/// Prints what the bundle is able to do.
pub(super) fn print_capabilities(capabilities: &[v1::Capability], output: &mut Output) {
    if capabilities.is_empty() {
        return;
    }
    let heading = output.styled(Style::Bold, "able to");
    output.line(format_args!("\n{heading}"));
    for one in capabilities.iter().take(CAPABILITIES_MAX) {
        let place = if one.line == 0 {
            line(&one.file, 200)
        } else {
            format!("{}:{}", line(&one.file, 200), one.line)
        };
        let text = format!("  {:14} {place}  {}", line(&one.kind, 40), line(&one.detail, 200));
        output.line(text.trim_end());
    }
    if capabilities.len() > CAPABILITIES_MAX {
        output.line(format_args!("  and {} more", capabilities.len() - CAPABILITIES_MAX));
    }
}

/// Prints how much was scanned, and of which files not all was.
pub(super) fn print_coverage(coverage: &[v1::FileCoverage], output: &mut Output) {
    if coverage.is_empty() {
        return;
    }
    let partly: Vec<_> = coverage.iter().filter(|file| file.bytes_scanned < file.bytes).collect();
    let whole = coverage.len() - partly.len();
    let heading = output.styled(Style::Bold, "scanned");
    output.line(format_args!("\n{heading} {whole} of {} files wholly", coverage.len()));
    for file in partly.iter().take(FILES_MAX) {
        let left = size(file.bytes - file.bytes_scanned);
        let reason = line(&file.unscanned_reason, 60);
        output.line(format_args!("  not scanned: {left} of {} ({reason})", line(&file.path, 300)));
    }
    if partly.len() > FILES_MAX {
        output.line(format_args!("  and {} more", partly.len() - FILES_MAX));
    }
}

/// Prints checks that did not run to their end.
pub(super) fn print_gaps(unjudged: &[v1::Unjudged], output: &mut Output) {
    for one in unjudged {
        print_unjudged(one, output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_strangers_stays_on_its_line() {
        for (text, wanted) in [
            ("", ""),
            ("  two\n\twords ", "two w…"),
            ("\u{1b}[2J", "<U+001B>[2J"),
            ("abcdef", "abcdef"),
            ("abcdefg", "abcde…"),
            ("ab cd ef", "ab cd…"),
            ("right\u{202e}left", "right…"),
        ] {
            assert_eq!(line(text, 6), wanted, "{text:?}");
        }
        assert_eq!(line("a\u{202e}b", 60), "a<U+202E>b");
    }
}
