//! The words of a text: runs of letters and digits with apostrophes amid them; a tag of markup is none.
//!
//! Most gaps between words are one blank. Whoever looks for others passes over those at once (`Words::next_odd`): what the
//! bytes are is told for 64 at a time, as the bits of words. What the bytes of a gap are is told where it is read
//! (`Words::pass_gap`), so that gaps need not be read again.

use std::ops::Range;

use super::lanes::{self, BLOCK, Lanes};

/// Longest tag, in bytes.
pub(super) const TAG_MAX: usize = 120;

/// Words one after the other.
pub(super) struct Words<'t> {
    text: &'t str,
    range: Range<usize>,
    at: usize,
    block: Block,
}

/// Where something else than words with one blank between them stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Odd {
    /// Where a gap begins that is not one blank; or a capital behind a small letter.
    pub at: usize,
    pub is_capital: bool,
    /// How many gaps of one blank were passed over on the way.
    pub plain: usize,
    /// The last of them; where nothing was passed over, any place.
    pub last_plain: usize,
}

impl<'t> Words<'t> {
    pub(super) fn new(text: &'t str, range: Range<usize>) -> Self {
        let range = range.start..range.end.min(text.len());
        Self { text, at: range.start, range, block: Block::NONE }
    }

    /// Where what was not read yet begins: at the end of the last word, or behind the last gap.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The word that is next, and what the bytes before it are: from the end of the last word, or from where the range
    /// begins.
    #[inline]
    pub(super) fn next_behind(&mut self) -> Option<(Range<usize>, Signs)> {
        let signs = self.pass_gap()?;
        let start = self.at;
        self.at = self.end_of_word(start);
        Some((start..self.at, signs))
    }

    /// Where the word ends that begins at `start`.
    #[inline]
    pub(super) fn end_of_word(&mut self, start: usize) -> usize {
        let mut at = start;
        loop {
            at = self.block.letters_end(self.text, self.range.end, at);
            match self.text.as_bytes().get(at) {
                Some(b'\'') if self.is_letter(at + 1) => at += 1,
                _ => return at,
            }
        }
    }

    /// Passes over what stands before the next word, if there is one, and tells what it is.
    #[inline]
    pub(super) fn pass_gap(&mut self) -> Option<Signs> {
        let all = self.text.as_bytes();
        let bytes = &all[..self.range.end];
        let mut signs = Signs::default();
        let mut start = self.at;
        loop {
            start = signs.read(bytes, start);
            let (len, sign) = match bytes.get(start)? {
                0x80.. => self.wide(start),
                b'<' => tag(all, start),
                _ => break,
            };
            let Some(sign) = sign else { break };
            signs.add(sign);
            start += len;
        }
        self.at = start;
        Some(signs)
    }

    /// Passes over words with one blank between them, from amid a word or its end on, and tells what comes behind them: a gap,
    /// at which this stops, or a capital behind a small letter, behind which it does. None where the text ends first.
    #[inline]
    pub(super) fn next_odd(&mut self) -> Option<Odd> {
        let mut odd = Odd { at: self.at, is_capital: false, plain: 0, last_plain: self.at };
        while odd.at < self.range.end {
            let start = self.block.turn_to(self.text, self.range.end, odd.at);
            let Block { letters, plain, capitals, .. } = self.block;
            let ahead = u64::MAX << (odd.at - start);
            let stops = (!(letters | plain) | capitals) & ahead;
            // All, where nothing stops.
            let before = stops.wrapping_sub(1) & !stops;
            let passed = plain & ahead & before;
            if let Some(last) = passed.checked_ilog2() {
                odd.plain += passed.count_ones() as usize;
                odd.last_plain = start + last as usize;
            }
            odd.at = start + stops.trailing_zeros() as usize;
            if stops == 0 {
                continue;
            }
            if odd.at >= self.range.end {
                break;
            }
            odd.is_capital = capitals & stops & stops.wrapping_neg() != 0;
            if !odd.is_capital && self.is_in_word(odd.at) {
                odd.at += 1;
                continue;
            }
            self.at = odd.at + usize::from(odd.is_capital);
            return Some(odd);
        }
        self.at = self.range.end;
        None
    }

    /// Whether what stands at `at`, which is no letter, is an apostrophe amid a word.
    #[inline]
    fn is_in_word(&self, at: usize) -> bool {
        let is_apostrophe = self.text.as_bytes()[at] == b'\'';
        is_apostrophe && at > self.range.start && is_of_letter(self.text, at - 1) && self.is_letter(at + 1)
    }

    /// Whether a letter or digit stands at `at`.
    fn is_letter(&self, at: usize) -> bool {
        at < self.range.end && is_of_letter(self.text, at)
    }

    /// Length of the character at `at`, which is none of ASCII, and what it is: a letter or another sign.
    #[inline(never)]
    fn wide(&self, at: usize) -> (usize, Option<u64>) {
        let Some(c) = self.text[at..].chars().next() else { return (1, Some(OTHER)) };
        (c.len_utf8(), if c.is_alphanumeric() { None } else { Some(OTHER) })
    }
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_behind().map(|(word, _)| word)
    }
}

/// What the bytes before a word are: how many there are of each kind, seven bits for each. A tag is one, whatever is in
/// it. Of more than 127 bytes it tells nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signs(u64);

impl Signs {
    /// Takes the bytes from `at` up to a letter, a tag or what is none of ASCII, and tells where that is.
    fn read(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while let Some(&byte) = bytes.get(at) {
            let kind = kind(byte);
            if kind == END {
                break;
            }
            self.add(kind);
            at += 1;
        }
        at
    }

    fn add(&mut self, kind: u64) {
        self.0 = self.0.wrapping_add(kind);
    }

    /// How many there are of one kind.
    pub(super) fn count(self, kind: u64) -> u64 {
        self.0 / kind % (MANY + 1)
    }

    /// Whether there is one of `kinds`.
    pub(super) fn has(self, kinds: u64) -> bool {
        self.0 & (kinds * MANY) != 0
    }

    /// Whether there are as many of each kind as in `others`, but for one kind.
    pub(super) fn is_same_but(self, kind: u64, others: Self) -> bool {
        (self.0 ^ others.0) & !(kind * MANY) == 0
    }

    /// Whether there are none but `kinds`.
    pub(super) fn has_only(self, kinds: u64) -> bool {
        self.0 & !(kinds * MANY) == 0
    }
}

/// Most of a kind that are counted.
const MANY: u64 = 0x7F;
// One of each kind of signs.
pub(super) const BLANK: u64 = 1;
pub(super) const BREAK: u64 = 1 << 7;
/// White space that is neither a blank nor a line break.
pub(super) const WHITE: u64 = 1 << 14;
/// A mark of sentences.
pub(super) const MARK: u64 = 1 << 21;
pub(super) const EMPHASIS: u64 = 1 << 28;
pub(super) const LOW_LINE: u64 = 1 << 35;
/// What leads the lines of comments and quotations, unless it is a mark or emphasis too.
pub(super) const LEAD: u64 = 1 << 42;
pub(super) const TAG: u64 = 1 << 49;
/// Any other sign.
pub(super) const OTHER: u64 = 1 << 56;
/// What may end a gap: a letter, what begins a tag, and a byte of a character that is none of ASCII.
const END: u64 = 1 << 63;

static KINDS: [u64; 256] = {
    let mut kinds = [OTHER; 256];
    let mut byte = 0_u8;
    loop {
        kinds[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'<' | 0x80.. => END,
            b' ' => BLANK,
            b'\n' => BREAK,
            b'\t' | 0x0B | 0x0C | b'\r' => WHITE,
            b'.' | b',' | b'!' | b'?' | b':' | b';' | b'"' | b'\'' | b'(' | b')' => MARK,
            b'*' | b'~' => EMPHASIS,
            b'_' => LOW_LINE,
            b'/' | b'#' | b'>' | b'|' | b'%' => LEAD,
            _ => OTHER,
        };
        if byte == u8::MAX {
            break kinds;
        }
        byte += 1;
    }
};

/// Length of what `<` at `at` begins, and what it is: a tag or another sign.
#[inline(never)]
fn tag(bytes: &[u8], at: usize) -> (usize, Option<u64>) {
    tag_end(bytes, at).map_or((1, Some(OTHER)), |end| (end - at, Some(TAG)))
}

/// What a byte is.
pub(super) fn kind(byte: u8) -> u64 {
    KINDS[usize::from(byte)]
}

/// Where the tag or comment of markup ends that begins at `at`.
pub(super) fn tag_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at + 1..bytes.len().min(at + TAG_MAX)];
    if rest.starts_with(b"!--") {
        return memchr::memmem::find(&rest[3..], b"-->").map(|len| at + 1 + 3 + len + 3);
    }
    let name = usize::from(rest.first() == Some(&b'/'));
    if !rest.get(name).is_some_and(u8::is_ascii_alphabetic) {
        return None;
    }
    let end = rest.iter().position(|byte| matches!(byte, b'<' | b'>'))?;
    (rest[end] == b'>').then_some(at + end + 2)
}

/// What 64 neighbouring bytes of a text are.
#[derive(Clone, Copy)]
struct Block {
    /// Where it begins.
    start: usize,
    /// Those of letters and digits.
    letters: u64,
    /// Blanks between two of those.
    plain: u64,
    /// Capitals behind a small letter, both of ASCII.
    capitals: u64,
}

impl Block {
    /// None of a text.
    const NONE: Self = Self { start: usize::MAX, letters: 0, plain: 0, capitals: 0 };

    /// Makes this the block around `at` of a text up to `end`, and tells where it begins.
    #[inline]
    fn turn_to(&mut self, text: &str, end: usize, at: usize) -> usize {
        let start = at - at % BLOCK;
        if self.start != start {
            *self = Self::read(text, end, start);
        }
        start
    }

    /// Where the letters and digits end that stand from `from` on.
    fn letters_end(&mut self, text: &str, end: usize, from: usize) -> usize {
        let mut at = from;
        while at < end {
            let start = self.turn_to(text, end, at);
            // What is shifted in from behind the block ends nothing.
            let others = !self.letters >> (at - start);
            if others != 0 {
                return at + others.trailing_zeros() as usize;
            }
            at = start + BLOCK;
        }
        end.max(from)
    }

    #[inline(never)]
    fn read(text: &str, end: usize, start: usize) -> Self {
        let bytes = &text.as_bytes()[..end];
        let block = Lanes::at(bytes, start);
        let ascii_letters = block.bits(lanes::is_letter);
        let small = ascii_letters & block.bits(lanes::has_case_bit);
        let blanks = block.bits(|bytes| lanes::is(bytes, b' '));
        let mut letters = ascii_letters | block.bits(lanes::is_digit);
        let wide = block.bits(|bytes| bytes);
        if wide != 0 {
            letters |= wide_letters(text, start, wide);
        }
        let before = start.checked_sub(1).filter(|before| is_of_letter(text, *before));
        let is_small_before = before.is_some_and(|before| bytes[before].is_ascii_lowercase());
        let is_letter_behind = start + BLOCK < end && is_of_letter(text, start + BLOCK);
        let behind_letters = letters << 1 | u64::from(before.is_some());
        let before_letters = letters >> 1 | u64::from(is_letter_behind) << (BLOCK - 1);
        Self {
            start,
            letters,
            plain: blanks & behind_letters & before_letters,
            capitals: ascii_letters & !small & (small << 1 | u64::from(is_small_before)),
        }
    }
}

/// Bytes of letters and digits among those of the block from `start` on that are none of ASCII, which `wide` tells.
#[inline(never)]
fn wide_letters(text: &str, start: usize, mut wide: u64) -> u64 {
    let mut letters = 0;
    while wide != 0 {
        let at = text.floor_char_boundary(start + wide.trailing_zeros() as usize);
        let Some(c) = text[at..].chars().next() else { break };
        let here = at.max(start) - start..(at + c.len_utf8() - start).min(BLOCK);
        let bytes = u64::MAX << here.start & u64::MAX >> (BLOCK - here.end);
        if c.is_alphanumeric() {
            letters |= bytes;
        }
        wide &= !bytes;
    }
    letters
}

/// Whether the byte at `at` is one of a letter or digit.
#[inline]
fn is_of_letter(text: &str, at: usize) -> bool {
    match text.as_bytes()[at] {
        0x80.. => text[text.floor_char_boundary(at)..].starts_with(char::is_alphanumeric),
        byte => byte.is_ascii_alphanumeric(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the gaps of a range are, and where they and the capitals amid words begin, told by reading all words.
    fn odd_of(text: &str, range: Range<usize>) -> Vec<Odd> {
        let mut all = Vec::new();
        let mut next = Odd { at: 0, is_capital: false, plain: 0, last_plain: range.start };
        let mut tell = |at, is_capital, next: &mut Odd| {
            all.push(Odd {
                at,
                is_capital,
                last_plain: if next.plain == 0 { 0 } else { next.last_plain },
                ..*next
            });
            next.plain = 0;
        };
        let mut last = range.start;
        for word in by_characters(text, range.clone()) {
            let gap = last..word.start;
            let is_behind_letter = text[..gap.start].ends_with(char::is_alphanumeric);
            if text[gap.clone()] == *" " && is_behind_letter {
                next.plain += 1;
                next.last_plain = gap.start;
            } else if !gap.is_empty() {
                tell(gap.start, false, &mut next);
            }
            let bytes = text.as_bytes();
            for at in word.clone().filter(|at| *at > 0 && bytes[*at].is_ascii_uppercase()) {
                if bytes[at - 1].is_ascii_lowercase() {
                    tell(at, true, &mut next);
                }
            }
            last = word.end;
        }
        all
    }

    /// All words of a range, read character by character.
    fn by_characters(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
        let character = |at: usize| text.get(at..range.end).and_then(|rest| rest.chars().next());
        let is_letter = |at: usize| character(at).is_some_and(char::is_alphanumeric);
        let (mut words, mut at) = (Vec::new(), range.start);
        while let Some(c) = character(at) {
            let start = at;
            while is_letter(at) || (at > start && character(at) == Some('\'') && is_letter(at + 1)) {
                at += character(at).map_or(0, char::len_utf8);
            }
            if at > start {
                words.push(start..at);
            } else {
                let tag = tag_end(text.as_bytes(), at).filter(|_| c == '<');
                at = tag.unwrap_or(at + c.len_utf8());
            }
        }
        words
    }

    fn check(text: &str, range: Range<usize>) -> Result<(), TestCaseError> {
        let all: Vec<Range<usize>> = Words::new(text, range.clone()).collect();
        prop_assert_eq!(&all, &by_characters(text, range.clone()), "{:?} {:?}", text, range);
        let mut words = Words::new(text, range.clone());
        let mut odd = Vec::new();
        while let Some(one) = words.next_odd() {
            if !one.is_capital && words.pass_gap().is_none() {
                break;
            }
            odd.push(Odd { last_plain: if one.plain == 0 { 0 } else { one.last_plain }, ..one });
        }
        prop_assert_eq!(odd, odd_of(text, range.clone()), "{:?} {:?}", text, range);
        Ok(())
    }

    #[test]
    fn words_with_one_blank_between_them_are_passed_over() {
        let text = format!("{}is. Two don't; iPhone été one", "some words ".repeat(20));
        let mut words = Words::new(&text, 0..text.len());
        let gap = |at, plain, last_plain| Some(Odd { at, is_capital: false, plain, last_plain });
        assert_eq!(words.next_odd(), gap(222, 40, 219));
        assert!(words.pass_gap().is_some_and(|signs| signs.has_only(MARK | BLANK)));
        assert_eq!(words.next(), Some(224..227));
        assert_eq!(words.next_odd(), gap(233, 1, 227));
        assert!(words.pass_gap().is_some());
        assert_eq!(words.next_odd().map(|odd| (odd.at, odd.is_capital)), Some((236, true)));
        assert_eq!(words.next_odd(), None);
    }

    proptest! {
        #[test]
        fn words_and_gaps_are_told_whatever_the_block(
            text in prop::collection::vec(prop_oneof![
                6 => "( [a-zA-Z0-9]{1,9}){1,12}",
                2 => "[ a-zA-Z]{1,9}",
                1 => "[.,'< \n\t>]{1,3}",
                1 => "'[a-zé]",
                1 => " {1,70}|\n {1,9}|[a-z0-9]{50,140}",
                1 => "</?[a-z]{1,3}( [a-z ]{1,70})?>",
                1 => "[äß—é\u{3000}]{1,2}",
            ], 0..20).prop_map(|pieces| pieces.concat()),
            (from, to) in (0.0..1.0_f64, 0.0..1.0_f64),
        ) {
            check(&text, 0..text.len())?;
            let at = |share: f64| text.floor_char_boundary((share * text.len() as f64) as usize);
            check(&text, at(from).min(at(to))..at(from).max(at(to)))?;
        }
    }
}
