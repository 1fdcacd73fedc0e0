//! What figures over many records need of each graded one.

use std::collections::BTreeMap;
use std::path::Path;

use super::grade::Graded;
use super::judge::Judged;
use super::record::{Kind, Record};
use super::tally::Count;
use crate::decision::Decision;

/// Tier of attacks that only meaning gives away. Reported, and left out of the recall over sources.
pub(super) const SEMANTIC: &str = "semantic";

/// One graded record.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// What it is about.
    pub kind: Kind,
    /// Whether something is to be found in it.
    pub is_positive: bool,
    /// Its label as written.
    pub label: String,
    /// Its tier.
    pub tier: String,
    /// Its category; may be empty.
    pub category: String,
    /// Where it comes from; see [`source_name`].
    pub source: String,
    /// Whether it was found, or falsely flagged.
    pub is_flagged: bool,
    /// The score that decides: the risk of a text, or for records with spans the best finding that counts.
    pub score: f64,
    /// The decision.
    pub decision: Decision,
    /// Expected spans, and those that findings cover from end to end.
    pub covered: Count,
    /// Whether its text holds a header with a credential (`Authorization: Bearer …`).
    pub has_header: bool,
    /// Bytes of the text.
    pub bytes: usize,
    /// Microseconds of the answer.
    pub us: f64,
}

impl Point {
    /// The point of one record that is graded.
    pub(super) fn of(record: &Record, source: &str, judged: &Judged, graded: &Graded) -> Self {
        let covered = graded.spans.iter().filter(|span| span.is_covered).count();
        Self {
            kind: record.kind,
            is_positive: record.is_positive,
            label: record.label.clone(),
            tier: record.tier.clone(),
            category: record.category.clone(),
            source: source.to_owned(),
            is_flagged: graded.is_flagged,
            score: graded.score,
            decision: judged.decision,
            covered: Count { n: graded.spans.len(), found: covered },
            has_header: record.kind == Kind::Secrets && has_header(&record.text),
            bytes: record.text.len(),
            us: judged.elapsed.as_secs_f64() * 1e6,
        }
    }
}

/// Whether a text holds an `Authorization` header of the schemes Bearer or Basic.
fn has_header(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let after = lower.match_indices("authorization").map(|(at, word)| &lower[at + word.len()..]);
    let has_scheme = |rest: &str| {
        let head = rest.trim_start_matches(|c: char| c.is_ascii_punctuation() || c.is_ascii_whitespace());
        ["bearer", "basic"].iter().any(|scheme| {
            head.strip_prefix(scheme).is_some_and(|rest| rest.starts_with(|c: char| !c.is_alphanumeric()))
        })
    };
    after.into_iter().any(has_scheme)
}

/// Where a record comes from, short enough to count by: for texts its `source`, for bundles the repository or generator
/// in front of `@` or the first `/` after it, for everything else the file it stands in.
pub(super) fn source_name(record: &Record, file: &Path) -> String {
    let stem = || file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    if record.source.is_empty() || record.call.is_some() || record.transcript.is_some() {
        // Where a command comes from is a page or a run, no source of its own.
        return stem();
    }
    if record.upload.is_none() {
        return record.source.clone();
    }
    match record.source.split_once('@') {
        Some((repository, _)) => repository.to_owned(),
        None => record.source.split('/').next().unwrap_or_default().to_owned(),
    }
}

/// Counts by whether the records are negative, label and `name` of a point.
pub(super) fn count_by<'p>(
    points: impl Iterator<Item = &'p Point>,
    name: impl Fn(&'p Point) -> &'p str,
) -> BTreeMap<(bool, &'p str, &'p str), Count> {
    let mut counts: BTreeMap<_, Count> = BTreeMap::new();
    for point in points {
        counts
            .entry((!point.is_positive, point.label.as_str(), name(point)))
            .or_default()
            .add(point.is_flagged);
    }
    counts
}

/// How many of `points` there are, and how many of them were flagged.
pub(super) fn count<'p>(points: impl Iterator<Item = &'p Point>) -> Count {
    let mut count = Count::default();
    points.for_each(|point| count.add(point.is_flagged));
    count
}

/// Whether a positive record counts for the recall over sources.
pub(super) fn is_of_recall(point: &Point) -> bool {
    point.is_positive && point.tier != SEMANTIC
}

/// Mean of the recall of each source over what `is_found` says, and how many sources there are; the semantic tier is
/// left out. `None` without a positive record.
pub(super) fn macro_recall<'p>(
    points: impl Iterator<Item = &'p Point>,
    is_found: impl Fn(&Point) -> bool,
) -> Option<(f64, usize)> {
    let mut sources: BTreeMap<&str, Count> = BTreeMap::new();
    for point in points.filter(|point| is_of_recall(point)) {
        sources.entry(&point.source).or_default().add(is_found(point));
    }
    let sum: f64 = sources.values().filter_map(|count| count.rate()).sum();
    (!sources.is_empty()).then(|| (sum / sources.len() as f64, sources.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_told_by_name_and_scheme() {
        for text in
            ["Authorization: Bearer abc", "'authorization' => 'basic Zm9v'", "x Authorization=\"Bearer  t\""]
        {
            assert!(has_header(text), "{text}");
        }
        for text in ["Authorization failed", "Authorization: bearers wait", "bearer abc", ""] {
            assert!(!has_header(text), "{text}");
        }
    }
}
