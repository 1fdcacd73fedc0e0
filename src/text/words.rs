//! The words of a text: runs of letters and digits with apostrophes amid them; a tag of markup is none.
//!
//! Most of a text is words of ASCII with one blank between them. Whoever looks for other gaps passes over those at once
//! (`Words::skip_plain`): where they end is told for 64 bytes at a time, as the bits of a word. What the bytes before any
//! other word are is told with it (`Words::next_behind`), so that gaps need not be read again.

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

    /// The word that is next, and what the bytes before it are: from the end of the last word, or from where the range
    /// begins.
    #[inline]
    pub(super) fn next_behind(&mut self) -> Option<(Range<usize>, Signs)> {
        let all = self.text.as_bytes();
        let bytes = &all[..self.end];
        let mut signs = Signs::default();
        let mut start = self.at;
        let first = loop {
            start = signs.read(bytes, start);
            let (len, sign) = match bytes.get(start)? {
                0x80.. => self.wide(start),
                b'<' => tag(all, start),
                _ => break 1,
            };
            let Some(sign) = sign else { break len };
            signs.add(sign);
            start += len;
        };
        let mut at = start + first;
        loop {
            at = self.block.letters_end(bytes, at);
            at += match bytes.get(at) {
                Some(b'\'') if self.is_letter(at + 1) => 1,
                Some(0x80..) => match self.wide(at) {
                    (len, None) => len,
                    _ => break,
                },
                _ => break,
            };
        }
        self.at = at;
        Some((start..at, signs))
    }

    /// Whether a letter or digit stands at `at`.
    fn is_letter(&self, at: usize) -> bool {
        match self.text.as_bytes().get(at).filter(|_| at < self.end) {
            Some(0x80..) => self.wide(at).1.is_none(),
            byte => byte.is_some_and(u8::is_ascii_alphanumeric),
        }
    }

    /// Length of the character at `at`, which is none of ASCII, and what it is: a letter or another sign.
    #[inline(never)]
    fn wide(&self, at: usize) -> (usize, Option<u64>) {
        let Some(c) = self.text[at..].chars().next() else { return (1, Some(OTHER)) };
        (c.len_utf8(), if c.is_alphanumeric() { None } else { Some(OTHER) })
    }

    /// Passes over words that follow behind one blank each, are of ASCII letters and digits alone, and have no capital
    /// behind a small letter; none where the next word is no such. It may stop early.
    #[inline]
    pub(super) fn skip_plain(&mut self) -> Option<Skipped> {
        // Nearly all other gaps are known by two bytes.
        match self.text.as_bytes().get(self.at..self.end) {
            Some([b' ', byte, ..]) if is_letter(*byte) => self.skip_words(),
            _ => None,
        }
    }

    /// `skip_plain` where a letter follows the blank. Apart from it, so that the look at two bytes is taken in where it is
    /// called.
    #[inline(never)]
    fn skip_words(&mut self) -> Option<Skipped> {
        let bytes = &self.text.as_bytes()[..self.end];
        let start = self.at;
        let (stop, mut count) = self.block.next_stop(bytes, start);
        // A word that goes on there, or has a capital, is not passed over.
        let is_word_end =
            bytes.get(stop).is_none_or(|byte| byte.is_ascii() && !is_letter(*byte) && *byte != b'\'');
        let mut end = stop;
        let mut last = self.block.last_blank(bytes, start..end)?;
        if !is_word_end {
            end = last;
            count -= 1;
            last = self.block.last_blank(bytes, start..end)?;
        }
        self.at = end;
        Some(Skipped { count, last: last + 1..end })
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
    /// Letters and digits of ASCII.
    letters: u64,
}

impl Block {
    /// None of a text.
    const NONE: Self = Self { start: usize::MAX, stops: 0, blanks: 0, letters: 0 };

    /// Makes this the block around `at`, and tells where it begins.
    fn turn_to(&mut self, bytes: &[u8], at: usize) -> usize {
        let start = at - at % BLOCK;
        if self.start != start {
            *self = Self::read(bytes, start);
        }
        start
    }

    /// Where the letters and digits of ASCII end that stand from `from` on.
    fn letters_end(&mut self, bytes: &[u8], from: usize) -> usize {
        let mut at = from;
        while at < bytes.len() {
            let start = self.turn_to(bytes, at);
            // What is shifted in from behind the block ends nothing.
            let others = !self.letters >> (at - start);
            if others != 0 {
                return at + others.trailing_zeros() as usize;
            }
            at = start + BLOCK;
        }
        bytes.len().max(from)
    }

    /// The first stop at or after `from`, at most the end of the text; and how many blanks stand before it.
    fn next_stop(&mut self, bytes: &[u8], from: usize) -> (usize, usize) {
        let mut at = from;
        let mut count = 0;
        while at < bytes.len() {
            let start = self.turn_to(bytes, at);
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

    /// The last blank of a range that ends in this block or where it ends.
    fn last_blank(&self, bytes: &[u8], range: Range<usize>) -> Option<usize> {
        let here = range.end.checked_sub(self.start).map_or(0, |len| match len {
            0..BLOCK => self.blanks & ((1 << len) - 1),
            _ => self.blanks,
        });
        match here.checked_ilog2() {
            Some(bit) => Some(self.start + bit as usize).filter(|at| *at >= range.start),
            // What came before is told no more.
            None => bytes[range.clone()].iter().rposition(|byte| *byte == b' ').map(|at| range.start + at),
        }
    }

    /// What is beyond the text stops words.
    #[inline(never)]
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
        let (mut amid, mut blanks, mut letters) = ([0; BLOCK], [0; BLOCK], [0; BLOCK]);
        for at in 0..BLOCK {
            let (before, byte) = (wide[at], wide[at + 1]);
            let is_amid = (byte.wrapping_sub(b'A') < 26) & (before.wrapping_sub(b'a') < 26);
            amid[at] = u8::from(is_amid);
            blanks[at] = u8::from(byte == b' ');
            letters[at] = u8::from(is_letter(byte));
        }
        let (amid, blanks, letters) = (bits(&amid), bits(&blanks), bits(&letters));
        let behind = letters >> 1 | u64::from(is_letter(wide[WIDE - 1])) << (BLOCK - 1);
        Self { start, stops: !(letters | blanks & behind) | amid, blanks, letters }
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
