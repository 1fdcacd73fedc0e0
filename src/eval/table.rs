//! A report as tables for a person.

use std::fmt::Write as _;

use super::record::Kind;
use super::tally::{FileTally, Group, Report, Totals};

/// Width of the name column; longer names push their row to the right.
const NAME_WIDTH: usize = 28;

/// Tables of every file, then of all files of a kind together.
pub fn render(report: &Report, with_categories: bool) -> String {
    let mut out = String::new();
    for file in &report.files {
        render_file(&mut out, &file.path, file, with_categories);
    }
    if report.files.len() > 1 {
        for (kind, tally) in &report.totals.kinds {
            render_file(&mut out, &format!("all {}", kind.as_str()), tally, with_categories);
            render_macro(&mut out, &report.totals, *kind);
        }
    }
    out
}

// Writing to a String cannot fail, so the results of `writeln!` are let go throughout.

fn render_file(out: &mut String, title: &str, file: &FileTally, with_categories: bool) {
    let _ = writeln!(out, "{title}: {} records, {:.1} KB", file.records, file.kilobytes());
    let _ = writeln!(out, "  {:NAME_WIDTH$} {:9} {:>7} {:>7} {:>8}", "group", "label", "n", "found", "rate");
    for Group { name, label, count } in file.groups(with_categories) {
        let what = meaning(&name, &label);
        let rate = percent(count.rate());
        let (n, found) = (count.n, count.found);
        let row = format!("  {name:NAME_WIDTH$} {label:9} {n:>7} {found:>7} {rate:>8} {what}");
        let _ = writeln!(out, "{}", row.trim_end());
    }
    let spans = file.spans;
    if spans.overlapped.n > 0 {
        let _ = writeln!(
            out,
            "  spans: {} of {} overlapped ({}), {} of {} exact ({})",
            spans.overlapped.found,
            spans.overlapped.n,
            percent(spans.overlapped.rate()),
            spans.exact.found,
            spans.exact.n,
            percent(spans.exact.rate()),
        );
    }
    if file.redaction_found_bytes > 0 {
        let _ = writeln!(
            out,
            "  redaction: {} of {} bytes of found spans left, {} records changed by a second pass",
            file.redaction_left_bytes, file.redaction_found_bytes, file.redaction_unstable,
        );
    }
    if let Some(rate) = file.false_incidents_per_mb() {
        let megabytes = file.benign_stream_bytes as f64 / 1e6;
        let _ = writeln!(
            out,
            "  streams: {} false incidents in {megabytes:.2} MB of benign output, {rate:.2} per MB",
            file.false_incidents,
        );
    }
    if file.unjudged > 0 {
        let _ = writeln!(out, "  unjudged: something could not be judged in {} records", file.unjudged);
    }
    let _ = writeln!(
        out,
        "  time: {} us/KB, {} us p50, {} us p99\n",
        microseconds(file.us_per_kb()),
        microseconds(file.us_quantile(0.5)),
        microseconds(file.us_quantile(0.99)),
    );
}

fn render_macro(out: &mut String, totals: &Totals, kind: Kind) {
    if let Some((recall, sources)) = totals.macro_recall(kind) {
        // Joins the block above.
        out.truncate(out.trim_end().len());
        let left_out = if kind == Kind::Injection { ", semantic tier left out" } else { "" };
        let recall = percent(Some(recall));
        let _ = writeln!(out, "\n  macro recall over {sources} sources{left_out}: {recall}\n");
    }
}

/// What the rate of a row is called.
fn meaning(name: &str, label: &str) -> &'static str {
    match (name, label) {
        ("precision", _) | (_, "verdict" | "ungraded") => "",
        (_, "benign" | "negative") => "FPR",
        _ => "recall",
    }
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.2} %", 100.0 * rate))
}

fn microseconds(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}
