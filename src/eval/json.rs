//! A report, and the answer to one record, as JSON of a fixed shape.

use serde_json::{Value, json};

use super::Outcome;
use super::figures::{figures, figures_json};
use super::record::Kind;
use super::tally::{FileTally, Group, Report, Totals};

/// `{"files":[{"path","records","groups":[{"name","label","n","found","rate"}],…}]}`; a rate of nothing is null. Beside
/// the files stand `kinds`, all records of one kind together with their sources, and `figures`, what detection is held
/// against.
pub fn report(report: &Report, with_categories: bool) -> Value {
    let files: Vec<Value> = report.files.iter().map(|file| file_json(file, with_categories)).collect();
    let kinds = report.totals.kinds.iter();
    let kinds: Vec<Value> =
        kinds.map(|(kind, tally)| kind_json(&report.totals, *kind, tally, with_categories)).collect();
    json!({ "files": files, "kinds": kinds, "figures": figures_json(&figures(&report.totals)) })
}

fn kind_json(totals: &Totals, kind: Kind, tally: &FileTally, with_categories: bool) -> Value {
    let mut all = file_json(tally, with_categories);
    if let Value::Object(fields) = &mut all {
        fields.remove("path");
        fields.insert("kind".to_owned(), kind.as_str().into());
        let sources: Vec<Value> = totals.sources(kind).iter().map(group_json).collect();
        fields.insert("sources".to_owned(), sources.into());
        let recall = totals.macro_recall(kind).map(|(recall, _)| recall);
        fields.insert("macro_recall".to_owned(), recall.into());
        let redaction = json!({
            "found_bytes": tally.redaction_found_bytes,
            "left_bytes": tally.redaction_left_bytes,
            "changed_by_second_pass": tally.redaction_unstable,
        });
        fields.insert("redaction".to_owned(), redaction);
        fields.insert("unjudged".to_owned(), tally.unjudged.into());
    }
    all
}

fn file_json(file: &FileTally, with_categories: bool) -> Value {
    let groups: Vec<Value> = file.groups(with_categories).iter().map(group_json).collect();
    json!({
        "path": file.path,
        "records": file.records,
        "groups": groups,
        "exact_span_rate": file.spans.exact.rate(),
        "overlap_span_rate": file.spans.overlapped.rate(),
        "false_incidents_per_mb": file.false_incidents_per_mb(),
        "us_per_kb": file.us_per_kb().map(tenths),
        "us_p50": file.us_quantile(0.5).map(tenths),
        "us_p99": file.us_quantile(0.99).map(tenths),
    })
}

fn group_json(group: &Group) -> Value {
    json!({
        "name": group.name,
        "label": group.label,
        "n": group.count.n,
        "found": group.count.found,
        "rate": group.count.rate(),
    })
}

/// One line for one record, without its text: from these lines anyone can compute the figures again.
pub fn record_line(outcome: &Outcome<'_>) -> Value {
    let Outcome { file, record, judged, redaction, .. } = outcome;
    let findings: Vec<Value> = judged
        .findings
        .iter()
        .map(|found| {
            json!({
                "category": found.category,
                "rule_id": found.rule_id,
                "severity": found.severity.as_str().to_ascii_uppercase(),
                "path": found.path,
                "start": found.start,
                "end": found.end,
                "score": found.score,
            })
        })
        .collect();
    let incidents: Vec<Value> = judged
        .incidents
        .iter()
        .map(|seen| {
            json!({ "rule_id": seen.rule_id, "stream": seen.stream, "offset": seen.offset, "verdict": seen.verdict })
        })
        .collect();
    let unjudged: Vec<Value> = judged
        .unjudged
        .iter()
        .map(|one| json!({ "plugin": one.plugin, "reason": one.reason, "failed_open": one.failed_open }))
        .collect();
    json!({
        "file": file,
        "id": record.id,
        "label": record.label,
        "decision": judged.decision.as_str(),
        "risk_score": judged.risk_score,
        "findings": findings,
        "incidents": incidents,
        "checks": judged.reviewed.as_ref().map_or_else(|| json!({}), |reviewed| reviewed.checks.clone().into()),
        "archive": judged.reviewed.as_ref().map(|one| if one.is_accepted { "accept" } else { "reject" }),
        "redacted_left_bytes": redaction.left_bytes,
        "redaction_stable": redaction.is_stable,
        "unjudged": unjudged,
        "us": tenths(judged.elapsed.as_secs_f64() * 1e6),
    })
}

/// Rounded to tenths: finer than the clock is noise.
fn tenths(us: f64) -> f64 {
    (us * 10.0).round() / 10.0
}
