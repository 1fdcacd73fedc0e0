//! Decisions, findings and gaps as a person reads them: shared by every command that prints an answer.

use std::ops::Range;

use super::snippet::{printable, snippet};
use super::{Output, Style};
use crate::decision::Decision;
use crate::pb::v1;

/// How a decision is set off.
pub(super) fn decision_style(decision: Decision) -> Style {
    match decision {
        Decision::Allow => Style::Green,
        Decision::Warn | Decision::Ask => Style::Yellow,
        Decision::Block => Style::Red,
    }
}

/// Prints one check that did not run to its end.
pub(super) fn print_unjudged(unjudged: &v1::Unjudged, output: &mut Output) {
    let effect = if unjudged.failed_open { "went on without it" } else { "counts against it" };
    let (plugin, reason) = (printable(&unjudged.plugin), printable(&unjudged.reason));
    let detail = printable(&unjudged.detail);
    let line =
        output.styled(Style::Yellow, format_args!("unjudged: {plugin}, {reason}: {detail} ({effect})"));
    output.line(format_args!("\n{line}"));
}

/// Prints one finding, with `span` underlined in `text`.
pub(super) fn print_finding(finding: &v1::Finding, text: &str, span: Range<usize>, output: &mut Output) {
    let severity = finding.severity().as_str_name().trim_start_matches("SEVERITY_").to_ascii_lowercase();
    let place = finding.span.clone().unwrap_or_default();
    let counts = !finding.shadow && !finding.suppressed;
    let style = match finding.severity() {
        _ if !counts => Style::Dim,
        v1::Severity::High | v1::Severity::Critical => Style::Red,
        _ => Style::Yellow,
    };
    let rule = output.styled(Style::Bold, printable(&finding.rule_id));
    let severity = output.styled(style, severity);
    let note = match (finding.suppressed, finding.shadow) {
        (true, _) => ", suppressed",
        (false, true) => ", in shadow",
        (false, false) => "",
    };
    output.line(format_args!(
        "\n{severity} {rule} ({}, score {:.2}{note}) at {}:{}",
        printable(&finding.category),
        finding.score,
        place.line,
        place.column
    ));
    let description = printable(&finding.description);
    output.line(format_args!("  {description}"));
    let (lines, more) = snippet(text, span);
    let width = lines.last().map_or(1, |line| line.number.to_string().len());
    for line in lines {
        let inside = output.styled(style, &line.inside);
        let carets = output.styled(style, "^".repeat(line.carets));
        output.line(format_args!("  {:>width$} | {}{inside}{}", line.number, line.before, line.after));
        output.line(format_args!("  {:>width$} | {}{carets}", "", " ".repeat(line.indent)));
    }
    if more > 0 {
        output.line(format_args!("  {:>width$} | and {more} more lines", ""));
    }
    if !finding.evasions.is_empty() {
        output.line(format_args!("  hidden by: {}", printable(&finding.evasions.join(", "))));
    }
    if !finding.recommendation.is_empty() {
        output.line(format_args!("  {}", printable(&finding.recommendation)));
    }
}
