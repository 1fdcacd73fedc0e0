//! Findings as a caller sees them: offsets in the caller's unit, lines, matched text masked or revealed, fingerprints.

use sha2::{Digest, Sha256};

use super::Conversation;
use crate::decision::{Finding, SpanRef};
use crate::detect::{CODE, INJECTION};
use crate::text::{OffsetEncoding, convert_offsets, line_columns};

/// Longest text shown for a finding that is no personal data and no credential, in characters.
const SHOWN_CHARS_MAX: usize = 200;

/// A finding ready for the wire or a terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct Reported {
    /// What was found; its span counts in UTF-8 bytes.
    pub finding: Finding,
    /// Start in the caller's unit.
    pub start: u64,
    /// End in the caller's unit.
    pub end: u64,
    /// 1-based line of the start.
    pub line: u32,
    /// 1-based column of the start, in the caller's unit.
    pub column: u32,
    /// The matched text: revealed, or masked.
    pub matched_text: String,
    /// Stable id of this rule on this text. Computed from the matched text without a key, so it is for the caller and
    /// for suppressions, and never written to logs or audit records.
    pub fingerprint: String,
}

/// The fingerprint of a finding: 16 hex digits over the rule and the matched text.
pub fn fingerprint(rule_id: &str, matched: &str) -> String {
    let mut hash = Sha256::new();
    hash.update((rule_id.len() as u64).to_le_bytes());
    hash.update(rule_id);
    hash.update(matched);
    hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// Turns findings, sorted by message and field, into reports.
pub(super) fn report(
    messages: &Conversation<'_>,
    findings: Vec<Finding>,
    encoding: OffsetEncoding,
    reveal: bool,
) -> Vec<Reported> {
    let sensitive: Vec<SpanRef> =
        findings.iter().filter(|f| is_sensitive(&f.plugin)).map(|f| f.span.clone()).collect();
    let mut out = Vec::with_capacity(findings.len());
    let mut rest = findings.into_iter().peekable();
    while let Some(first) = rest.next() {
        let mut group = vec![first];
        while let Some(finding) = rest.next_if(|f| {
            f.span.message_index == group[0].span.message_index && f.span.path == group[0].span.path
        }) {
            group.push(finding);
        }
        let text = field_text(messages, &group[0].span);
        let starts: Vec<usize> = group.iter().map(|f| f.span.start).collect();
        let places = line_columns(text, encoding, &starts);
        let mut offsets: Vec<usize> = group.iter().flat_map(|f| [f.span.start, f.span.end]).collect();
        convert_offsets(text, encoding, &mut offsets);
        for (nth, finding) in group.into_iter().enumerate() {
            let matched = text.get(finding.span.start..finding.span.end).unwrap_or_default();
            let hides = sensitive.iter().any(|span| overlaps(span, &finding.span));
            out.push(Reported {
                start: offsets[2 * nth] as u64,
                end: offsets[2 * nth + 1] as u64,
                line: places[nth].0,
                column: places[nth].1,
                matched_text: match (reveal, hides) {
                    (true, _) => matched.to_owned(),
                    (false, true) => mask(matched),
                    (false, false) => shorten(matched),
                },
                fingerprint: fingerprint(&finding.rule_id, matched),
                finding,
            });
        }
    }
    out
}

/// The text a span points into; empty for a field that the message does not have.
pub(super) fn field_text<'a>(messages: &Conversation<'a>, span: &SpanRef) -> &'a str {
    messages
        .get(span.message_index as usize)
        .and_then(|m| m.fields.iter().find(|f| f.path.to_pointer() == *span.path))
        .map_or("", |f| f.text)
}

fn overlaps(a: &SpanRef, b: &SpanRef) -> bool {
    a.message_index == b.message_index && a.path == b.path && a.start < b.end && b.start < a.end
}

fn is_sensitive(plugin: &str) -> bool {
    // What an unknown plugin matched may be anything.
    !matches!(plugin, INJECTION | CODE)
}

/// First and last characters with the length between; short texts show their first character only.
fn mask(text: &str) -> String {
    let count = text.chars().count();
    let head: String = text.chars().take(if count >= 12 { 2 } else { 1 }).collect();
    let tail: String = if count >= 12 { text.chars().skip(count - 2).collect() } else { String::new() };
    if count <= 1 { "…".to_owned() } else { format!("{head}…{tail}") }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
