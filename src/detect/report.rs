//! Findings as a caller sees them: offsets in the caller's unit, lines, matched text masked or revealed, fingerprints.

use sha2::{Digest, Sha256};

use super::{CODE, INJECTION};
use crate::decision::Finding;
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

/// Turns findings in one text into reports, in their order. One whose path is empty is about the whole: it has no place
/// and no text.
pub fn report_text(
    text: &str,
    findings: Vec<Finding>,
    encoding: OffsetEncoding,
    reveal: bool,
) -> Vec<Reported> {
    if findings.is_empty() {
        return Vec::new();
    }
    let sensitive: Vec<_> = findings
        .iter()
        .filter(|finding| is_sensitive(&finding.plugin) && !finding.span.path.is_empty())
        .map(|finding| finding.span.start..finding.span.end)
        .collect();
    let starts: Vec<usize> = findings.iter().map(|f| f.span.start).collect();
    let places = line_columns(text, encoding, &starts);
    let mut offsets: Vec<usize> = findings.iter().flat_map(|f| [f.span.start, f.span.end]).collect();
    convert_offsets(text, encoding, &mut offsets);
    let report = |(nth, finding): (usize, Finding)| {
        let has_place = !finding.span.path.is_empty();
        let range = finding.span.start..finding.span.end;
        let matched = if has_place { text.get(range.clone()).unwrap_or_default() } else { "" };
        let hides = sensitive.iter().any(|other| other.start < range.end && range.start < other.end);
        Reported {
            start: offsets[2 * nth] as u64,
            end: offsets[2 * nth + 1] as u64,
            line: if has_place { places[nth].0 } else { 0 },
            column: if has_place { places[nth].1 } else { 0 },
            matched_text: match (reveal, hides) {
                (true, _) => matched.to_owned(),
                (false, true) => mask(matched),
                (false, false) => shorten(matched),
            },
            fingerprint: fingerprint(&finding.rule_id, matched),
            finding,
        }
    };
    findings.into_iter().enumerate().map(report).collect()
}

fn is_sensitive(plugin: &str) -> bool {
    // What an unknown plugin matched may be anything.
    !matches!(plugin, INJECTION | CODE | "command_safety" | "path_audit")
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
