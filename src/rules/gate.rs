//! The gate: one pass over a text that tells which rules may match, and where.
//!
//! Literals of all rules are looked for together (`literals`). Rules without a literal are started by digit clusters,
//! long tokens or single separators, each found by a loop that skips most of a text. Phrases written backwards or in
//! ROT13 stand among the literals too, so that those two views of a text are made only where they can pay.

use std::collections::HashMap;
use std::ops::Range;

use crate::text::lanes::{self, BLOCK, Lanes};

use super::literals::{Bounds, Literal, Literals};
use super::phrases::Phrases;
use super::schema::Trigger;
use super::shapes::{Kind, Place};

/// Where phrases of rules show through, in bytes of the scanned text and in order, joined where they are near each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Literals of phrase rules in ROT13.
    pub rot13: Vec<Range<usize>>,
    /// Literals of phrase rules backwards.
    pub reversed: Vec<Range<usize>>,
}

/// Shortest literal that is also looked for in ROT13 and backwards, in characters; shorter ones are seen by chance.
const DISGUISED_LITERAL_MIN: usize = 8;
/// Line breaks of one literal that may go on, at most.
const FLOWING_BREAKS_MAX: usize = 6;
/// Literals that a set of rules has, about.
const LITERALS_USUAL: usize = 24_000;
/// Shortest run of token characters that a token rule may ask for.
pub(super) const TOKEN_MIN: usize = 12;

/// What one literal stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sense {
    /// Literal of the rules from the first number up to the second.
    Rules(u32, u32),
    /// A literal that holds a line break, as it is where lines go on: its index in [`Gate::sent`].
    Sent(u32),
    /// A phrase literal in ROT13.
    Rot13,
    /// A phrase literal backwards.
    Reversed,
}

/// What the gate needs to know of a rule.
pub(super) struct GateRule<'r> {
    pub index: u32,
    pub literals: &'r [String],
    /// Whether they count only where a word begins.
    pub literals_begin_words: bool,
    /// Literals that count only as whole words.
    pub literal_words: &'r [String],
    /// What its matches begin with instead, for a rule that is made of phrases.
    pub phrases: Option<&'r Phrases>,
    pub trigger: Option<Trigger>,
    pub trigger_min: usize,
    pub separators: &'r str,
    /// Whether the rule reads phrases, which are worth looking for in ROT13 and backwards.
    pub is_phrase: bool,
}

/// Told about each candidate.
pub(super) trait Sink {
    /// `rule` may match around the literal `at`.
    fn candidate(&mut self, rule: u32, at: Range<usize>);
    /// Rules without a literal may match around a place.
    fn place(&mut self, place: Place);
    /// A literal of a phrase rule stands there in ROT13.
    fn rot13(&mut self, at: Range<usize>);
    /// A literal of a phrase rule stands there backwards.
    fn reversed(&mut self, at: Range<usize>);
}

/// The compiled gate of a rule set.
pub(super) struct Gate {
    literals: Literals,
    /// What each literal stands for, in their order.
    senses: Vec<Sense>,
    /// Rule indices, cut up by `Sense::Rules`.
    rules: Vec<u32>,
    /// Literals that hold a line break, in lower case, each with the rule that it opens where it was sent so.
    sent: Vec<(Box<[u8]>, u32)>,
    /// Fewest digits that a rule asks for.
    digits: Option<usize>,
    /// Shortest token that a rule asks for.
    tokens: Option<usize>,
    separators: Vec<u8>,
}

impl Gate {
    pub(super) fn build<'r>(rules: impl Iterator<Item = GateRule<'r>>) -> Self {
        // Numbered in the order in which they first come, which depends on the rules alone.
        let mut numbers: HashMap<Literal, usize> = HashMap::with_capacity(LITERALS_USUAL);
        let mut number_of = |literal: Literal| {
            let next = numbers.len();
            *numbers.entry(literal).or_insert(next)
        };
        let (mut of_rules, mut of_sent, mut disguised) = (Vec::new(), Vec::new(), Vec::new());
        let (mut digits, mut tokens, mut separators) = (None, None, Vec::new());
        let least = |of: &mut Option<usize>, min: usize| *of = Some(of.map_or(min, |other| other.min(min)));
        for rule in rules {
            let bounds = Bounds { starts_word: rule.literals_begin_words, ends_word: false };
            let whole = Bounds { starts_word: true, ends_word: true };
            let plain = rule.literals.iter().map(|literal| (literal, bounds));
            let plain = plain.chain(rule.literal_words.iter().map(|word| (word, whole)));
            let plain = plain.filter(|_| rule.phrases.is_none());
            for (literal, bounds) in plain.chain(rule.phrases.into_iter().flat_map(Phrases::anchors)) {
                let lower = literal.to_ascii_lowercase();
                if rule.is_phrase && lower.chars().count() >= DISGUISED_LITERAL_MIN {
                    if lower.is_ascii() {
                        disguised.push((number_of(Literal::anywhere(rot13(lower.as_bytes()))), Sense::Rot13));
                    }
                    let backwards: String = lower.chars().rev().collect();
                    disguised.push((number_of(Literal::anywhere(backwards.into_bytes())), Sense::Reversed));
                }
                for flowing in flowing(&lower) {
                    let text = flowing.into_bytes().into();
                    of_sent.push((number_of(Literal { text, bounds }), lower.clone(), rule.index));
                }
                of_rules.push((number_of(Literal { text: lower.into_bytes().into(), bounds }), rule.index));
            }
            match rule.trigger {
                Some(Trigger::Digits) => least(&mut digits, rule.trigger_min),
                Some(Trigger::Token) => least(&mut tokens, rule.trigger_min),
                Some(Trigger::Separator) => separators.extend(rule.separators.bytes()),
                None => {}
            }
        }
        separators.sort_unstable();
        separators.dedup();
        let mut flat = Vec::with_capacity(of_rules.len());
        of_rules.sort_unstable();
        of_rules.dedup();
        let mut senses = disguised;
        for alike in of_rules.chunk_by(|(one, _), (other, _)| one == other) {
            let start = flat.len() as u32;
            flat.extend(alike.iter().map(|(_, rule)| *rule));
            senses.push((alike[0].0, Sense::Rules(start, flat.len() as u32)));
        }
        let mut sent = Vec::new();
        of_sent.sort_unstable();
        of_sent.dedup();
        for (number, lower, rule) in of_sent {
            senses.push((number, Sense::Sent(sent.len() as u32)));
            sent.push((lower.into_bytes().into(), rule));
        }
        senses.sort_unstable();
        senses.dedup();
        let mut literals: Vec<(Literal, usize)> = numbers.into_iter().collect();
        literals.sort_unstable_by_key(|(_, number)| *number);
        // Nearly every literal has one sense, and then it need not be copied.
        let mut patterns = Vec::with_capacity(senses.len());
        for alike in senses.chunk_by(|(one, _), (other, _)| one == other) {
            let literal = std::mem::take(&mut literals[alike[0].0].0);
            patterns.extend(alike[1..].iter().map(|_| literal.clone()));
            patterns.push(literal);
        }
        let senses = senses.into_iter().map(|(_, sense)| sense).collect();
        Self { literals: Literals::new(patterns), senses, rules: flat, sent, digits, tokens, separators }
    }

    /// Heap used for literals, in bytes.
    pub(super) fn memory_usage(&self) -> usize {
        self.literals.memory_usage()
    }

    /// Reports every literal that is seen from `slice`; slices that follow on each other see each literal once. `flow` is the
    /// text in which lines go on, as long as the one that was sent, and is read; or that text as well.
    pub(super) fn literals(&self, (sent, flow): (&[u8], &[u8]), slice: Range<usize>, sink: &mut impl Sink) {
        self.literals.find(flow, slice, |literal, at| match self.senses[literal] {
            Sense::Sent(nth) => {
                let (text, rule) = &self.sent[nth as usize];
                if sent[at.clone()].eq_ignore_ascii_case(text) {
                    sink.candidate(*rule, at);
                }
            }
            Sense::Rules(from, to) => {
                for rule in &self.rules[from as usize..to as usize] {
                    sink.candidate(*rule, at.clone());
                }
            }
            Sense::Rot13 => sink.rot13(at),
            Sense::Reversed => sink.reversed(at),
        });
    }

    /// Reports digit clusters, long tokens and separators of a stretch of the text, which white space bounds.
    pub(super) fn shapes(&self, text: &[u8], stretch: Range<usize>, sink: &mut impl Sink) {
        let (from, text) = (stretch.start, &text[stretch]);
        let mut place =
            |kind, at: Range<usize>| sink.place(Place { kind, at: from + at.start..from + at.end });
        if let Some(least) = self.digits {
            digit_clusters(text, least, |at, count| place(Kind::Digits(count), at));
        }
        if let Some(least) = self.tokens {
            tokens(text, least, |at| place(Kind::Token(at.len()), at));
        }
        separators(text, &self.separators, |byte, at| place(Kind::Separator(byte), at..at + 1));
    }
}

/// What a literal that holds line breaks may be where lines go on: a blank for each of them that goes on.
fn flowing(literal: &str) -> Vec<String> {
    let breaks: Vec<usize> = literal.match_indices('\n').map(|(at, _)| at).take(FLOWING_BREAKS_MAX).collect();
    let blanks = |chosen: u32| {
        let is_blank =
            |at: usize| (0..).zip(&breaks).any(|(nth, other)| *other == at && chosen >> nth & 1 != 0);
        literal.char_indices().map(|(at, letter)| if is_blank(at) { ' ' } else { letter }).collect()
    };
    (1..1 << breaks.len()).map(blanks).collect()
}

fn rot13(bytes: &[u8]) -> Vec<u8> {
    bytes
        .iter()
        .map(|b| match b {
            b'a'..=b'z' => (b - b'a' + 13) % 26 + b'a',
            other => *other,
        })
        .collect()
}

/// Calls `found(range, number of digits)` for each cluster of at least `min` digits.
fn digit_clusters(text: &[u8], min: usize, mut found: impl FnMut(Range<usize>, usize)) {
    let mut at = 0;
    while let Some(start) = next_digit(text, at) {
        let mut end = start;
        let mut count = 0;
        let mut probe = start;
        // A cluster goes on over at most two separators in a row, as in `(020) 7946`.
        while probe < text.len() {
            match IN_NUMBER[usize::from(text[probe])] {
                InNumber::Digit => {
                    count += 1;
                    end = probe + 1;
                }
                InNumber::Separator if probe - end < 2 => {}
                _ => break,
            }
            probe += 1;
        }
        if count >= min {
            found(start..end, count);
        }
        at = end;
    }
}

/// What a byte is in a number.
#[derive(Clone, Copy)]
enum InNumber {
    Digit,
    Separator,
    Nothing,
}

/// What each byte is in a number; the last two separators are the middle dot in UTF-8.
static IN_NUMBER: [InNumber; 256] = {
    let mut table = [InNumber::Nothing; 256];
    let separators = b" \t.,-/()+:_\xC2\xB7";
    let mut at = 0;
    while at < separators.len() {
        table[separators[at] as usize] = InNumber::Separator;
        at += 1;
    }
    let mut digit = b'0';
    while digit <= b'9' {
        table[digit as usize] = InNumber::Digit;
        digit += 1;
    }
    table
};

/// The first digit at or after `from`.
fn next_digit(text: &[u8], from: usize) -> Option<usize> {
    (from..text.len()).step_by(BLOCK).find_map(|at| {
        let digits = Lanes::at(text, at).bits(lanes::is_digit);
        lanes::places(digits).next().map(|place| at + place)
    })
}

/// Calls `found(separator, place)` for each of these separators that joins what stands on its sides: those of each kind in
/// order. Blanks are not joined.
fn separators(text: &[u8], separators: &[u8], mut found: impl FnMut(u8, usize)) {
    let mut is_blank_before = true;
    for at in (0..text.len()).step_by(BLOCK) {
        let block = Lanes::at(text, at);
        let blanks = block.bits(lanes::is_blank);
        let is_blank_after = text.get(at + BLOCK).is_none_or(u8::is_ascii_whitespace);
        // Behind the text stands nothing that could be joined.
        let inside = lanes::below(text.len() - at - 1);
        let before = blanks << 1 | u64::from(is_blank_before);
        let after = blanks >> 1 | u64::from(is_blank_after) << (BLOCK - 1) | !inside;
        is_blank_before = blanks >> (BLOCK - 1) != 0;
        for separator in separators {
            let joining = block.bits(|bytes| lanes::is(bytes, *separator)) & !(before | after);
            lanes::places(joining).for_each(|place| found(*separator, at + place));
        }
    }
}

const fn token_table() -> [bool; 256] {
    let mut table = [false; 256];
    let mut b = 0usize;
    while b < 256 {
        let c = b as u8;
        table[b] = c.is_ascii_alphanumeric() || matches!(c, b'_' | b'+' | b'/' | b'=' | b'-');
        b += 1;
    }
    table
}

static TOKEN: [bool; 256] = token_table();

/// Whether a byte belongs to a token.
pub(super) fn is_token_byte(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

/// Calls `found(range)` for each run of at least `min` token characters.
fn tokens(text: &[u8], min: usize, mut found: impl FnMut(Range<usize>)) {
    // A run of `min` bytes holds a multiple of `min`, so looking at every `min`-th byte misses none.
    let mut at = min - 1;
    while at < text.len() {
        if !TOKEN[usize::from(text[at])] {
            at += min;
            continue;
        }
        let start = text[..at].iter().rposition(|b| !TOKEN[usize::from(*b)]).map_or(0, |i| i + 1);
        let end = text[at..].iter().position(|b| !TOKEN[usize::from(*b)]).map_or(text.len(), |i| at + i);
        if end - start >= min {
            found(start..end);
        }
        at = end + min;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_digit_clusters() {
        let clusters = |text: &str, min| {
            let mut out = Vec::new();
            digit_clusters(text.as_bytes(), min, |at, n| out.push((text[at].to_owned(), n)));
            out
        };
        assert_eq!(clusters("call (020) 7946-0958 now, 12", 4), [("020) 7946-0958".to_owned(), 11)]);
        assert_eq!(clusters("a1b2c3d4", 2), []);
        assert_eq!(clusters(&format!("{}123", "x".repeat(100)), 3), [("123".to_owned(), 3)]);
        assert_eq!(clusters("1   2", 1), [("1".to_owned(), 1), ("2".to_owned(), 1)]);
    }

    #[test]
    fn finds_separators_that_join_wherever_they_stand() {
        for pad in 0..2 * BLOCK {
            let text = format!("{}:a:b :c d: e - f-\x0bg.\n1.2-:.", "x".repeat(pad));
            let mut found = Vec::new();
            separators(text.as_bytes(), b"-.:", |byte, at| found.push((byte, at)));
            found.sort_unstable();
            let joins = |b: Option<&u8>| b.is_some_and(|b| !b.is_ascii_whitespace());
            let bytes = text.as_bytes();
            let is_one = |at: &usize| {
                b"-.:".contains(&bytes[*at])
                    && *at > 0
                    && joins(bytes.get(at - 1))
                    && joins(bytes.get(at + 1))
            };
            let mut wanted: Vec<_> = (0..bytes.len()).filter(is_one).map(|at| (bytes[at], at)).collect();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{pad}");
        }
    }

    #[test]
    fn finds_every_long_token_wherever_it_stands() {
        for pad in 0..40 {
            let text = format!("{} {} end", "a b ".repeat(pad), "T0ken_".repeat(4));
            let mut out = Vec::new();
            tokens(text.as_bytes(), 20, |at| out.push(text[at].to_owned()));
            assert_eq!(out, ["T0ken_".repeat(4)], "{pad}");
        }
    }
}
