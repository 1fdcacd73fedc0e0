//! What redaction leaves of the labelled spans, and whether a second pass changes anything.
//!
//! Measured on records in which a labelled span was found: what was not found cannot be taken out, and recall already
//! tells about it. What is left of a span is told from the redacted text itself, laid beside the text as sent, and not
//! from what the findings promise.

use std::ops::Range;

use super::grade::{is_within, overlaps};
use super::judge::{Judge, JudgeError, Judged};
use super::record::{Labelled, Record};
use crate::detect::{PII, SECRETS};

/// The outcome for one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redaction {
    /// Bytes of labelled spans that were found.
    pub found_bytes: usize,
    /// Bytes of these that the redacted text still shows.
    pub left_bytes: usize,
    /// Whether redacting the redacted text changes nothing.
    pub is_stable: bool,
}

impl Redaction {
    /// The outcome where there was nothing to take out.
    const NOTHING: Self = Self { found_bytes: 0, left_bytes: 0, is_stable: true };
}

/// Redacts the text of a record twice and measures.
pub(super) fn measure(
    record: &Record,
    judged: &Judged,
    judge: &mut dyn Judge,
) -> Result<Redaction, JudgeError> {
    let findings = judged.findings.iter();
    let taken: Vec<_> =
        findings.filter(|f| is_within(&f.category, PII) || is_within(&f.category, SECRETS)).collect();
    if !record.spans.iter().any(|span| taken.iter().any(|found| overlaps(found, span))) {
        return Ok(Redaction::NOTHING);
    }
    // A label that says only that something stands in the text has no bytes that could be left. And a secret is not found
    // by the mail address in it.
    let is_found = |span: &&Labelled| {
        let family = record.kind.family().filter(|_| record.has_exact_spans);
        family.is_some_and(|family| {
            taken.iter().any(|found| is_within(&found.category, family) && overlaps(found, span))
        })
    };
    let found: Vec<&Labelled> = record.spans.iter().filter(is_found).collect();
    let once = judge.redact(&record.text, record.role)?;
    let twice = judge.redact(&once, record.role)?;
    let kept = kept(&record.text, &once, &merge(taken.iter().map(|f| f.start..f.end).collect()));
    let left = found.iter().map(|span| kept.iter().map(|kept| shared(kept, &span.range)).sum::<usize>());
    Ok(Redaction {
        found_bytes: found.iter().map(|span| span.range.len()).sum(),
        left_bytes: left.sum(),
        is_stable: once == twice,
    })
}

/// Ranges of `text` that `redacted` still shows.
///
/// Expected is that exactly `taken` was replaced. Where more was (a later round found more), the pieces between the
/// placeholders are looked up in the text one after the other.
fn kept(text: &str, redacted: &str, taken: &[Range<usize>]) -> Vec<Range<usize>> {
    let expected = between(text.len(), taken);
    let pieces: Vec<&str> = expected.iter().map(|range| &text[range.clone()]).collect();
    if replaces_gaps(redacted, &pieces) {
        return expected;
    }
    let mut kept = Vec::new();
    let mut at = 0;
    for piece in literal_pieces(redacted) {
        if let Some(found) = text[at..].find(piece) {
            kept.push(at + found..at + found + piece.len());
            at += found + piece.len();
        }
    }
    kept
}

/// Whether `redacted` is `pieces` with a placeholder between each two.
fn replaces_gaps(redacted: &str, pieces: &[&str]) -> bool {
    let Some((first, rest)) = pieces.split_first() else { return false };
    let Some(mut tail) = redacted.strip_prefix(first) else { return false };
    for piece in rest {
        let Some(len) = placeholder_len(tail) else { return false };
        match tail[len..].strip_prefix(piece) {
            Some(next) => tail = next,
            None => return false,
        }
    }
    tail.is_empty()
}

/// The parts of a redacted text that are no placeholder, the empty ones left out.
fn literal_pieces(redacted: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(open) = redacted[at..].find('[') {
        let open = at + open;
        match placeholder_len(&redacted[open..]) {
            Some(len) => {
                pieces.push(&redacted[from..open]);
                at = open + len;
                from = at;
            }
            None => at = open + 1,
        }
    }
    pieces.push(&redacted[from..]);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Length of the placeholder (`[EMAIL_1]`) that `text` begins with.
fn placeholder_len(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let close = inner.find(']')?;
    let name = &inner[..close];
    let is_name = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    (is_name && !name.is_empty()).then_some(close + 2)
}

/// The gaps between sorted, disjoint ranges in a text of `len` bytes, the empty ones included.
fn between(len: usize, taken: &[Range<usize>]) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(taken.iter().map(|range| range.end));
    let ends = taken.iter().map(|range| range.start).chain(std::iter::once(len));
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

/// Joins ranges that overlap, and sorts them.
fn merge(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    ranges.dedup_by(|next, kept| {
        let joins = next.start < kept.end;
        if joins {
            kept.end = kept.end.max(next.end);
        }
        joins
    });
    ranges
}

fn shared(a: &Range<usize>, b: &Range<usize>) -> usize {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_read_off_the_redacted_text() {
        let text = "mail a@b.c or d@e.f now";
        let taken = [5..10, 14..19];
        assert_eq!(kept(text, "mail [EMAIL_1] or [EMAIL_2] now", &taken), [0..5, 10..14, 19..23]);
        // The second address stayed although a finding covers it.
        assert_eq!(kept(text, "mail [EMAIL_1] or d@e.f now", &taken), [0..5, 10..23]);
        assert_eq!(kept(text, "[REDACTED]", &taken), Vec::<Range<usize>>::new());
    }

    #[test]
    fn ranges_are_merged_as_redaction_merges_them() {
        assert_eq!(merge(vec![5..9, 0..3, 2..4, 9..10]), [0..4, 5..9, 9..10]);
    }
}
