//! Whether a document has its reader do what it calls bad: a sentence anywhere in it that orders something which stands elsewhere,
//! and what it refers to.
//!
//! "The block above", "the next step", "the left column", "the bad example", "it": each is looked up among the blocks of the document,
//! so that an order about another block adopts nothing.

use std::ops::Range;

use super::{LINE_BYTES_MAX, line_at, says};
use crate::bundles::rules::{BundleRules, PhraseKind};

/// How far behind a place a sentence still speaks of it as "it", in bytes.
const CLOSE_BYTES: usize = 500;
/// Sentences of one document that are looked at.
const SENTENCES_MAX: usize = 4_000;

/// A sentence that has something done which stands elsewhere in the document.
#[derive(Debug)]
struct Order {
    /// Where it begins.
    at: usize,
    /// Whether it means whatever is marked as bad, or a table.
    is_of_bad: bool,
    is_of_table: bool,
    /// Whether it speaks of what stands before it, or behind it.
    back: bool,
    ahead: bool,
    /// Whether it does not say which.
    is_loose: bool,
    /// Whether it only means what was just spoken of, and whether it names a block.
    is_close: bool,
    is_of_block: bool,
    /// Whether it has what it speaks of as "it" run.
    is_after_all: bool,
}

/// All such sentences of a document.
#[derive(Debug, Default)]
pub(super) struct Orders {
    list: Vec<Order>,
    /// Whether there are more than are looked at: then anything may be meant.
    is_cut: bool,
}

impl Orders {
    /// Those of a document. `fences` are where lines begin that open or close a block.
    pub(super) fn of(text: &str, fences: &[usize]) -> Self {
        let mut out = Self::default();
        let (mut at, mut nth, mut left) = (0, 0, SENTENCES_MAX);
        for line in text.split_inclusive('\n') {
            let start = at;
            at += line.len();
            while nth < fences.len() && fences[nth] < start {
                nth += 1;
            }
            let is_mark = fences.get(nth) == Some(&start);
            if nth % 2 == 1 || is_mark || line.len() > LINE_BYTES_MAX || line.trim().is_empty() {
                continue;
            }
            let words = without_code(line);
            for (offset, sentence) in sentences(&words) {
                if left == 0 {
                    out.is_cut = true;
                    return out;
                }
                left -= 1;
                out.list.extend(Order::of(start + offset, sentence));
            }
        }
        out
    }

    /// Whether one of them has the place done.
    pub(super) fn mean(&self, text: &str, fences: &[usize], place: &Range<usize>) -> bool {
        let is_table = line_at(text, place.start).trim_start().starts_with('|');
        self.is_cut || self.list.iter().any(|order| order.means(text, fences, place, is_table))
    }
}

impl Order {
    /// The order of a sentence that begins at a place, if it is one.
    fn of(at: usize, sentence: &str) -> Option<Self> {
        if !is_order(sentence) {
            return None;
        }
        let is_colon = sentence.trim_end().trim_end_matches(['*', '_', ' ']).ends_with(':');
        let back = says(PhraseKind::RefersBack, sentence);
        let ahead = says(PhraseKind::RefersAhead, sentence) || is_colon;
        let is_loose = !back && !ahead;
        Some(Self {
            at,
            is_of_bad: says(PhraseKind::RefersToBad, sentence),
            is_of_table: says(PhraseKind::RefersToTable, sentence),
            // Neither is said: both are meant, and what was just spoken of only where it stands close.
            back: back || is_loose,
            ahead: ahead || is_loose,
            is_loose,
            is_close: says(PhraseKind::RefersClose, sentence),
            is_of_block: sentence.contains("block"),
            is_after_all: says(PhraseKind::AfterAll, sentence),
        })
    }

    /// Whether it has the place done.
    fn means(&self, text: &str, fences: &[usize], place: &Range<usize>, is_table: bool) -> bool {
        if self.is_of_bad || self.is_of_table && is_table {
            return true;
        }
        if place.contains(&self.at) {
            // Beside the code itself, only what is spoken of as "it" is meant.
            return is_table && self.is_close || self.at > place.start && self.is_after_all;
        }
        if self.at >= place.end {
            let between = &text[place.end..self.at];
            let is_apart = || has_heading(between) && !begins_with_heading(between);
            let is_far = self.is_loose && (between.len() > CLOSE_BYTES || is_apart());
            return self.back && !is_far && !has_block(fences, place.end, self.at);
        }
        let between = &text[self.at..place.start];
        let is_far = self.is_loose && (between.len() > CLOSE_BYTES || self.is_close && !self.is_of_block);
        self.ahead && !is_far && !has_block(fences, self.at, place.start)
    }
}

/// Whether a sentence orders something that stands elsewhere, and does not take it back.
fn is_order(sentence: &str) -> bool {
    if says(PhraseKind::AdoptsForeign, sentence) {
        return !says(PhraseKind::Declines, sentence);
    }
    let Some(pattern) = BundleRules::builtin().phrase(PhraseKind::Adopts) else { return false };
    let mut clauses = sentence.split_inclusive([',', ';', ':', '—', '–']);
    let is_order = clauses.any(|clause| {
        let clause = clause.trim_start_matches(|c: char| !c.is_alphanumeric());
        pattern.find(clause).is_some_and(|found| {
            // What is said before the order, and up to its end, may take it back.
            let upto = clause.get(..found.end()).unwrap_or(clause);
            let rest = clause.get(found.end()..).unwrap_or_default();
            !says(PhraseKind::Declines, upto) && !says(PhraseKind::OnlyToKnow, rest)
        })
    });
    // A case in which somebody else wants it is a case of its own.
    let first = sentence.split(',').next().unwrap_or_default();
    let is_of_others =
        sentence.contains(',') && says(PhraseKind::Declines, first) && is_conditional(sentence);
    is_order && !is_of_others
}

fn is_conditional(sentence: &str) -> bool {
    let lower = sentence.trim_start().to_ascii_lowercase();
    ["if ", "when ", "whenever ", "even if ", "should "].iter().any(|start| lower.starts_with(start))
}

/// Whether a heading stands in a text.
fn has_heading(text: &str) -> bool {
    text.lines().any(|line| line.starts_with('#'))
}

/// Whether the sentence itself stands in the heading.
fn begins_with_heading(text: &str) -> bool {
    text.lines().filter(|line| !line.trim().is_empty()).count() <= 1
}

/// Whether a block of code stands between two places.
fn has_block(fences: &[usize], from: usize, to: usize) -> bool {
    fences.iter().filter(|at| (from..to).contains(*at)).count() > 0
}

/// A line without what stands in code in it; the bytes stay where they are.
fn without_code(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let marks = line.matches('`').count() / 2 * 2;
    let (mut is_code, mut seen) = (false, 0);
    for c in line.chars() {
        if c == '`' && seen < marks {
            seen += 1;
            is_code = !is_code;
            out.push(' ');
        } else if is_code {
            out.extend(std::iter::repeat_n(' ', c.len_utf8()));
        } else {
            out.push(c);
        }
    }
    out
}

/// The sentences of a line, or the cells of a row, each with where it begins.
fn sentences(line: &str) -> Vec<(usize, &str)> {
    let is_row = line.trim_start().starts_with('|');
    let (mut out, mut start) = (Vec::new(), 0);
    let bytes = line.as_bytes();
    for (at, c) in line.char_indices() {
        let ends = match c {
            '|' => is_row,
            '.' | '!' | '?' => bytes
                .get(at + 1)
                .is_none_or(|next| next.is_ascii_whitespace() || matches!(next, b'*' | b'_' | b')' | b'"')),
            '。' => true,
            _ => false,
        };
        if ends {
            out.push((start, &line[start..at + c.len_utf8()]));
            start = at + c.len_utf8();
        }
    }
    out.push((start, &line[start..]));
    out.retain(|(_, sentence)| sentence.chars().any(char::is_alphabetic));
    out
}

/// The other documents of a bundle that a document has its reader do, by their paths as it writes them.
pub(in crate::bundles::scan) fn ordered_documents(text: &str) -> Vec<String> {
    let rules = BundleRules::builtin();
    let Some(pattern) = rules.phrase(PhraseKind::OrdersDocument) else { return Vec::new() };
    let mut out = Vec::new();
    for line in text
        .lines()
        .filter(|line| line.len() <= LINE_BYTES_MAX && (line.contains(".m") || line.contains(".txt")))
    {
        for found in pattern.find_iter(line) {
            let phrase = &line[found.start()..found.end()];
            let before = &line[..found.start()];
            let sentence = before.rsplit(['.', '!', '?']).next().unwrap_or_default();
            let is_declined = says(PhraseKind::Declines, sentence) || says(PhraseKind::Declines, phrase);
            let path =
                phrase.rsplit(|c: char| c.is_whitespace() || "(`'\"[".contains(c)).next().unwrap_or_default();
            if !is_declined && !path.is_empty() {
                out.push(path.trim_start_matches("./").to_owned());
            }
        }
    }
    out
}
