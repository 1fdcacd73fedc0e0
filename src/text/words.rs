//! The words of a text: runs of letters and digits with apostrophes amid them; a tag of markup is none.
//!
//! Most of a text is words of ASCII with one blank between them. Whoever looks for other gaps passes over those at once
//! (`Words::skip_plain`): where they end is told for 64 bytes at a time, as the bits of a word.

use std::ops::Range;

/// Longest tag, in bytes.
pub(super) const TAG_MAX: usize = 120;
/// Bytes that are looked at together: one bit of a word for each.
const BLOCK: usize = 64;

/// Words one after the other.
pub(super) struct Words<'t> {
    text: &'t str,
    at: usize,
    end: usize,
    block: Block,
}

/// Words that were passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Skipped {
    /// How many, each one blank behind the word before it.
    pub count: usize,
    /// The last of them.
    pub last: Range<usize>,
}

impl<'t> Words<'t> {
    pub(super) fn new(text: &'t str, range: Range<usize>) -> Self {
        Self { text, at: range.start, end: range.end.min(text.len()), block: Block::NONE }
    }

    /// Length of the letter or digit at `at`; 0 if there is none.
    fn letter(&self, at: usize) -> usize {
        match self.text.as_bytes().get(at).filter(|_| at < self.end) {
            Some(byte) if byte.is_ascii() => usize::from(byte.is_ascii_alphanumeric()),
            Some(_) => {
                self.text[at..].chars().next().filter(|c| c.is_alphanumeric()).map_or(0, char::len_utf8)
            }
            None => 0,
        }
    }

    /// Passes over words that follow behind one blank each, are of ASCII letters and digits alone, and have no capital
    /// behind a small letter; none where the next word is no such. It may stop early.
    pub(super) fn skip_plain(&mut self) -> Option<Skipped> {
        let bytes = &self.text.as_bytes()[..self.end];
        let start = self.at;
        if bytes.get(start) != Some(&b' ') {
            return None;
        }
        let (stop, mut count) = self.block.next_stop(bytes, start);
        // A word that goes on there, or has a capital, is not passed over.
        let is_word_end =
            bytes.get(stop).is_none_or(|byte| CLASSES[usize::from(*byte)] == SIGN && *byte != b'\'');
        let blank =
            |before: usize| bytes[start..before].iter().rposition(|byte| *byte == b' ').map(|at| start + at);
        let mut end = stop;
        let mut last = blank(end)?;
        if !is_word_end {
            end = last;
            count -= 1;
            last = blank(end)?;
        }
        self.at = end;
        Some(Skipped { count, last: last + 1..end })
    }
}

/// What a byte begins.
const SIGN: u8 = 0;
const LETTER: u8 = 1;
const WIDE: u8 = 2;
static CLASSES: [u8; 256] = {
    let mut classes = [SIGN; 256];
    let mut byte = 0_u8;
    loop {
        classes[byte as usize] = if byte >= 0x80 {
            WIDE
        } else if byte.is_ascii_alphanumeric() {
            LETTER
        } else {
            SIGN
        };
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let all = self.text.as_bytes();
        let bytes = &all[..self.end];
        let mut at = self.at;
        loop {
            let byte = *bytes.get(at)?;
            match CLASSES[usize::from(byte)] {
                LETTER => break,
                WIDE if self.letter(at) > 0 => break,
                WIDE => at += self.text[at..].chars().next().map_or(1, char::len_utf8),
                _ if byte == b'<' => at = tag_end(all, at).unwrap_or(at + 1),
                _ => at += 1,
            }
        }
        let start = at;
        loop {
            let byte = bytes.get(at).copied().unwrap_or(b' ');
            let len = match CLASSES[usize::from(byte)] {
                LETTER => 1,
                WIDE => self.letter(at),
                _ => usize::from(byte == b'\'' && self.letter(at + 1) > 0),
            };
            if len == 0 {
                self.at = at;
                return Some(start..at);
            }
            at += len;
        }
    }
}

/// Where the tag of markup ends that begins at `at`.
pub(super) fn tag_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at + 1..bytes.len().min(at + TAG_MAX)];
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
    /// Bytes at which plain words stop: all but letters, digits and a blank before one of those; and capitals behind a
    /// small letter.
    stops: u64,
    blanks: u64,
}

impl Block {
    /// None of a text.
    const NONE: Self = Self { start: usize::MAX, stops: 0, blanks: 0 };

    /// The first stop at or after `from`, at most the end of the text; and how many blanks stand before it.
    fn next_stop(&mut self, bytes: &[u8], from: usize) -> (usize, usize) {
        let mut at = from;
        let mut count = 0;
        while at < bytes.len() {
            let start = at - at % BLOCK;
            if self.start != start {
                *self = Self::read(bytes, start);
            }
            let ahead = u64::MAX << (at - start);
            let stops = self.stops & ahead;
            let blanks = self.blanks & ahead;
            if stops != 0 {
                let before = (stops & stops.wrapping_neg()) - 1;
                return (
                    start + stops.trailing_zeros() as usize,
                    count + (blanks & before).count_ones() as usize,
                );
            }
            count += blanks.count_ones() as usize;
            at = start + BLOCK;
        }
        (bytes.len(), count)
    }

    /// What is beyond the text stops words.
    fn read(bytes: &[u8], start: usize) -> Self {
        /// A block with the byte before it and the one behind it.
        const WIDE: usize = BLOCK + 2;
        let padded;
        let wide: &[u8; WIDE] = match start.checked_sub(1).and_then(|before| bytes[before..].first_chunk()) {
            Some(wide) => wide,
            None => {
                let mut copy = [0; WIDE];
                let from = start.saturating_sub(1);
                let len = (bytes.len() - from).min(WIDE - usize::from(start == 0));
                copy[usize::from(start == 0)..][..len].copy_from_slice(&bytes[from..from + len]);
                padded = copy;
                &padded
            }
        };
        // Without branches, which the compiler turns into vector code.
        let (mut stops, mut blanks) = ([0; BLOCK], [0; BLOCK]);
        for at in 0..BLOCK {
            let (before, byte, behind) = (wide[at], wide[at + 1], wide[at + 2]);
            let is_blank = byte == b' ';
            let is_plain = is_letter(byte) | (is_blank & is_letter(behind));
            let is_amid = (byte.wrapping_sub(b'A') < 26) & (before.wrapping_sub(b'a') < 26);
            stops[at] = u8::from(!is_plain | is_amid);
            blanks[at] = u8::from(is_blank);
        }
        Self { start, stops: bits(&stops), blanks: bits(&blanks) }
    }
}

/// Whether a byte is an ASCII letter or digit, without branches.
fn is_letter(byte: u8) -> bool {
    ((byte | 0x20).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10)
}

/// Bytes of which each is 0 or 1 as the bits of a word.
fn bits(flags: &[u8; BLOCK]) -> u64 {
    /// Brings the lowest bit of each of eight bytes to the highest byte, side by side.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (eights, _) = flags.as_chunks::<8>();
    let gathered = eights.iter().rev().map(|eight| u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56);
    gathered.fold(0, |bits, eight| bits << 8 | eight)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All words of a range, told by the skips and the words between them, without those that were passed over but for the
    /// last of each skip.
    fn with_skips(text: &str, range: Range<usize>) -> (Vec<Range<usize>>, usize) {
        let mut words = Words::new(text, range);
        let (mut told, mut count) = (Vec::new(), 0);
        loop {
            if let Some(skipped) = words.skip_plain() {
                count += skipped.count;
                told.push(skipped.last);
            }
            let Some(word) = words.next() else { return (told, count) };
            told.push(word);
            count += 1;
        }
    }

    fn check(text: &str, range: Range<usize>) -> Result<(), TestCaseError> {
        let all: Vec<Range<usize>> = Words::new(text, range.clone()).collect();
        let (told, count) = with_skips(text, range.clone());
        prop_assert_eq!(count, all.len(), "{:?} {:?}", text, range);
        prop_assert!(told.iter().all(|word| all.contains(word)), "{:?} {:?} {:?}", text, told, all);
        let bytes = text.as_bytes();
        for (nth, word) in all.iter().enumerate().filter(|(_, word)| !told.contains(word)) {
            let start = if nth == 0 { range.start } else { all[nth - 1].end };
            prop_assert_eq!(&text[start..word.start], " ");
            prop_assert!(bytes[word.clone()].iter().all(u8::is_ascii_alphanumeric));
            let has_capital = bytes[word.clone()]
                .windows(2)
                .any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
            prop_assert!(!has_capital, "{}", &text[word.clone()]);
        }
        Ok(())
    }

    #[test]
    fn plain_words_are_passed_over() {
        let text = format!("{}is. Two don't; iPhone one two", "some words ".repeat(20));
        let mut words = Words::new(&text, 0..text.len());
        assert_eq!(words.skip_plain(), None);
        assert_eq!(words.next(), Some(0..4));
        assert_eq!(words.skip_plain(), Some(Skipped { count: 40, last: 220..222 }));
        assert_eq!(words.next(), Some(224..227));
        assert_eq!(words.skip_plain(), None);
        assert_eq!(words.next(), Some(228..233));
    }

    proptest! {
        #[test]
        fn skips_lose_no_word(
            text in prop::collection::vec(prop_oneof![
                6 => "( [a-zA-Z0-9]{1,9}){1,12}",
                2 => "[ a-zA-Z]{1,9}",
                1 => "[.,'< \n\t>]{1,3}",
                1 => "'[a-z]",
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
