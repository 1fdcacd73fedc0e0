//! A report as tables for a person.

use std::fmt::Write as _;

use super::figures::figures;
use super::record::Kind;
use super::sweep::{Sweep, SweepRow, fpr_max};
use super::tally::{FileTally, Group, Report, Totals};

/// Width of the name column; longer names push their row to the right.
const NAME_WIDTH: usize = 28;

/// Tables of every file, then of all files of a kind together with its sources, then the figures that detection is held
/// against.
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
    for kind in report.totals.kinds.keys() {
        render_sources(&mut out, &report.totals, *kind);
    }
    render_figures(&mut out, &report.totals);
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

/// One row for each source and label, where there is more than one source.
fn render_sources(out: &mut String, totals: &Totals, kind: Kind) {
    let rows = totals.sources(kind);
    if rows.first().is_none_or(|first| rows.iter().all(|row| row.name == first.name)) {
        return;
    }
    let _ = writeln!(out, "sources of {}:", kind.as_str());
    for Group { name, label, count } in rows {
        let (n, found, rate) = (count.n, count.found, percent(count.rate()));
        let what = meaning(&name, &label);
        let _ = writeln!(out, "  {name:NAME_WIDTH$} {label:9} {n:>7} {found:>7} {rate:>8} {what}");
    }
    out.push('\n');
}

fn render_figures(out: &mut String, totals: &Totals) {
    let all = figures(totals);
    if all.is_empty() {
        return;
    }
    let _ =
        writeln!(out, "figures:\n  {:64} {:>8} {:>13} {:>13} {:>13}", "", "of", "measured", "gate", "goal");
    for figure in all {
        let name = format!("{}: {}", figure.kind.as_str(), figure.name);
        let show = |value| figure.unit.show(value);
        let (n, value, reached) = (figure.n, show(figure.value), figure.standing().as_str());
        let (gate, goal) = (show(figure.gate), show(figure.goal));
        let _ = writeln!(out, "  {name:64} {n:>8} {value:>13} {gate:>13} {goal:>13} {reached}");
    }
    out.push('\n');
}

/// Tables of sweeps.
pub fn render_sweeps(sweeps: &[Sweep]) -> String {
    let mut out = String::new();
    for sweep in sweeps {
        let kind = sweep.kind.as_str();
        let tiers: Vec<(bool, String)> =
            sweep.rows.first().map(|row| row.tiers.keys().cloned().collect()).unwrap_or_default();
        let _ = write!(
            out,
            "{kind} by threshold:\n  {:14} {:>9} {:>9} {:>9}",
            "from", "found", "macro", "flagged"
        );
        for (is_negative, tier) in &tiers {
            let mark = if *is_negative { "-" } else { "+" };
            let _ = write!(out, " {:>14}", format!("{mark}{tier}"));
        }
        out.push('\n');
        for row in &sweep.rows {
            render_sweep_row(&mut out, &row.name, row, &tiers);
        }
        if let Some(best) = &sweep.best {
            let most = percent(Some(fpr_max(sweep.kind)));
            let _ = writeln!(out, "  the lowest threshold with at most {most} of negatives flagged:");
            render_sweep_row(&mut out, &best.name, best, &tiers);
        }
        if !sweep.left_out.is_empty() {
            let _ = writeln!(out, "  each source under the threshold that the others would have chosen so:");
        }
        for one in &sweep.left_out {
            let (found, flagged) = (percent(one.positive.rate()), percent(one.negative.rate()));
            let name = &one.source;
            let _ = writeln!(
                out,
                "  {name:NAME_WIDTH$} {:.3} found {found:>9} flagged {flagged:>9}",
                one.threshold
            );
        }
        if let Some(recall) = sweep.left_out_recall() {
            let (recall, fpr) = (percent(Some(recall)), percent(sweep.left_out_fpr()));
            let _ = writeln!(
                out,
                "  mean over sources left out in turn: {recall} found, {fpr} of negatives flagged"
            );
        }
        out.push('\n');
    }
    out
}

fn render_sweep_row(out: &mut String, name: &str, row: &SweepRow, tiers: &[(bool, String)]) {
    let [found, mean, flagged] = [row.positive.rate(), row.macro_recall, row.negative.rate()].map(percent);
    let _ = write!(out, "  {name:14} {found:>9} {mean:>9} {flagged:>9}");
    for tier in tiers {
        let _ = write!(out, " {:>14}", percent(row.tiers.get(tier).and_then(|count| count.rate())));
    }
    out.push('\n');
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
        (_, "benign" | "negative" | "accept") => "FPR",
        _ => "recall",
    }
}

pub(super) fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.2} %", 100.0 * rate))
}

fn microseconds(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}
