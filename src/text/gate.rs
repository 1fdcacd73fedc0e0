//! Cheap looks at a text, many bytes at a time, that tell whether a costlier pass could find anything.
//!
//! A gate may let through what turns out to be nothing; it may never lose what the pass behind it would find.

use std::ops::Range;

use super::lanes::{self, BLOCK, Lanes};

/// Shortest run of letters and digits that is looked at as base64 or hex.
pub(super) const RUN_MIN: usize = 16;

/// Whether `byte` belongs to base64, standard or URL-safe, without its padding.
pub(super) fn is_run_byte(byte: u8) -> bool {
    RUN_BYTES[usize::from(byte)]
}

const RUN_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let value = byte as u8;
        table[byte] = value.is_ascii_alphanumeric() || matches!(value, b'+' | b'/' | b'-' | b'_');
        byte += 1;
    }
    table
};

/// The next run of at least [`RUN_MIN`] base64 characters at or after `from`, without padding.
pub(super) fn next_run(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let mut at = from;
    while at + RUN_MIN <= bytes.len() {
        let parts = Lanes::at(bytes, at).bits(|bytes| {
            // `+` and `/`, and `-` and `_`.
            let signs = lanes::is(bytes, b'+') | lanes::is(bytes, b'/');
            lanes::is_alphanumeric(bytes) | signs | lanes::is(bytes, b'-') | lanes::is(bytes, b'_')
        });
        let two = parts & parts >> 1;
        let four = two & two >> 2;
        let eight = four & four >> 4;
        let runs = eight & eight >> 8;
        if runs != 0 {
            // What begins before this block would have been found in the one before it.
            let start = at + runs.trailing_zeros() as usize;
            let len = bytes[start..].iter().take_while(|&&byte| is_run_byte(byte)).count();
            return Some(start..start + len);
        }
        at += BLOCK - RUN_MIN + 1;
    }
    None
}

/// The next digit or sign at or after `from` that leet uses and that stands before a letter.
pub(super) fn next_leet(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while at < bytes.len() {
        let block = Lanes::at(bytes, at);
        // All that leet uses lie here, and little else that stands before a letter.
        let signs = block.bits(|bytes| lanes::is_in(bytes, b'!'..=b'@'));
        let is_letter_behind = bytes.get(at + BLOCK).is_some_and(u8::is_ascii_alphabetic);
        let before_letters = block.bits(lanes::is_letter) >> 1 | u64::from(is_letter_behind) << (BLOCK - 1);
        let mut found = lanes::places(signs & before_letters).map(|place| at + place);
        if let Some(place) = found.find(|place| is_leet(bytes[*place])) {
            return Some(place);
        }
        at += BLOCK;
    }
    None
}

/// Whether `byte` is one that leet writes for a letter.
pub(super) fn is_leet(byte: u8) -> bool {
    matches!(byte, b'0' | b'1' | b'3' | b'4' | b'5' | b'7' | b'@' | b'$' | b'!')
}

/// The first separator at or after `from` of four letters that stand set apart by one same separator, as in `i-g-n-o`, if all
/// of them stand there. ASCII text only.
pub(super) fn next_spaced(bytes: &[u8], from: usize) -> Option<usize> {
    /// From the first of four letters to the last.
    const RUN: usize = 6;
    let mut at = from;
    while at < bytes.len() {
        let block = Lanes::at(bytes, at);
        let letters = block.bits(lanes::is_letter);
        let repeats = block.same(&Lanes::at(bytes, at + 2)) & letters << 1 & letters >> 1;
        let runs = letters & repeats >> 1 & repeats >> 3 & letters >> RUN;
        // Letters and digits part nothing.
        let mut separators = lanes::places(runs).map(|letter| at + letter + 1);
        if let Some(separator) = separators.find(|place| !bytes[*place].is_ascii_alphanumeric()) {
            return Some(separator);
        }
        at += BLOCK - RUN;
    }
    None
}

/// Fewest numbers among 64 bytes, and among 128, that are looked at as letters.
const NUMBERS_IN_BLOCK: u32 = 9;
const NUMBERS_IN_TWO: u32 = 10;
/// Letters and digits that stand alone among 64 bytes, and among 128, from which on they may be words set apart.
const SINGLES_IN_BLOCK: u32 = 6;
const SINGLES_IN_TWO: u32 = 8;
/// Fewest letters among 64 bytes that ordinary text has few of, and with so many of which vowels tell nothing.
const RARE_IN_BLOCK: u32 = 3;
const MANY_RARE_IN_BLOCK: u32 = 6;
/// Fewest blanks among 64 bytes: encoded data has none.
const BLANKS_IN_BLOCK: u32 = 4;
/// Fewest letters and signs between the digits and the capitals among 64 bytes, as ROT47 makes of letters; code has fewer.
const SIGNS_IN_BLOCK: u32 = 8;

/// Where a text may hide phrases in one of several ways, all told by one look at it; ordinary text has next to none of these
/// places. Each list is in order.
#[derive(Debug, Default)]
pub struct Looks {
    /// Where 64 bytes begin in which, or from which on, numbers are dense, or which are all digits.
    pub(super) numbers: Vec<usize>,
    /// Where 64 bytes begin in which, or from which on, many letters or digits stand alone.
    pub(super) singles: Vec<usize>,
    /// Whether four letters of ASCII stand alone near each other anywhere.
    has_four_singles: bool,
    /// Behind one to three letters that begin a word: what may break it.
    pub(super) broken: Vec<usize>,
    /// Where 64 bytes begin that may be in a cipher which puts one sign for another: with many letters that ordinary text
    /// has few of and with few vowels, or with many signs that stand in ASCII between digits and capitals.
    pub(super) ciphered: Vec<usize>,
}

impl Looks {
    /// Looks at a text.
    pub fn at(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut looks = Self::default();
        let mut carried = Carried::default();
        for at in (0..bytes.len()).step_by(BLOCK) {
            looks.take(bytes, at, &mut carried);
        }
        looks
    }

    /// Whether [`super::spaced`] could find anything in the text, which is of ASCII.
    pub fn may_be_spaced(&self) -> bool {
        self.has_four_singles
    }

    #[inline]
    fn take(&mut self, bytes: &[u8], at: usize, carried: &mut Carried) {
        let block = Lanes::at(bytes, at);
        let letters = block.bits(lanes::is_letter);
        let digits = block.bits(lanes::is_digit);
        let blanks = block.bits(|bytes| lanes::is(bytes, b' '));
        let words = letters | digits;
        let numbers = if digits == 0 { 0 } else { (digits & !(digits << 1)).count_ones() };
        if numbers >= NUMBERS_IN_BLOCK || digits == u64::MAX {
            self.numbers.push(at);
        } else if numbers + carried.numbers >= NUMBERS_IN_TWO {
            self.numbers.push(at.saturating_sub(BLOCK));
        }

        let before = words << 1 | carried.word;
        let is_word_behind = bytes.get(at + BLOCK).is_some_and(u8::is_ascii_alphanumeric);
        let behind = words >> 1 | u64::from(is_word_behind) << (BLOCK - 1);
        let singles = words & !before & !behind;
        let singles = if singles == 0 { 0 } else { singles.count_ones() };
        self.has_four_singles |= singles + carried.singles >= 4;
        if singles >= SINGLES_IN_BLOCK {
            self.singles.push(at);
        } else if singles + carried.singles >= SINGLES_IN_TWO {
            self.singles.push(at.saturating_sub(BLOCK));
        }

        let first = letters & !before;
        let second = (first << 1 | carried.first) & letters;
        let third = (second << 1 | carried.second) & letters;
        let ends = (first | second | third) << 1 | carried.any;
        let signs = lanes::places(ends & !(words | blanks)).map(|place| at + place);
        self.broken.extend(signs.filter(|place| bytes.get(*place).is_some_and(|byte| is_break(*byte))));
        let last = |bits: u64| bits >> (BLOCK - 1);
        *carried = Carried {
            word: last(words),
            first: last(first),
            second: last(second),
            any: last(first | second | third),
            singles,
            numbers,
        };

        let rare = rare_letters(&block);
        let is_odd = are_many_signs(&block)
            || has_many(rare, RARE_IN_BLOCK)
                && (has_many(rare, MANY_RARE_IN_BLOCK) || !has_many_vowels(&block, letters));
        if is_odd && has_many(blanks, BLANKS_IN_BLOCK) {
            self.ciphered.push(at);
        }
    }
}

/// What the next 64 bytes must know of those before them: whether the last byte belongs to a word and is the first or second
/// letter of one or any of the first three; and how many letters stood alone and how many numbers began.
#[derive(Default)]
struct Carried {
    word: u64,
    first: u64,
    second: u64,
    any: u64,
    singles: u32,
    numbers: u32,
}

/// Whether so many bits are set; mostly there are few.
#[inline]
fn has_many(bits: u64, count: u32) -> bool {
    let but_one = bits & bits.wrapping_sub(1);
    but_one & but_one.wrapping_sub(1) != 0 && bits.count_ones() >= count
}

/// Whether it is signs for which [`Looks`] takes 64 bytes for ciphered.
pub(super) fn has_many_signs(bytes: &[u8], at: usize) -> bool {
    are_many_signs(&Lanes::at(bytes, at))
}

/// Whether so many letters stand among 64 bytes of which ordinary text has few that vowels tell nothing.
pub(super) fn has_many_rare(bytes: &[u8], at: usize) -> bool {
    has_many(rare_letters(&Lanes::at(bytes, at)), MANY_RARE_IN_BLOCK)
}

/// Letters of which ordinary text has few.
#[inline]
fn rare_letters(block: &Lanes) -> u64 {
    block.bits(|bytes| {
        let small = lanes::small(bytes);
        lanes::is(small, b'j') | lanes::is(small, b'q') | lanes::is(small, b'x') | lanes::is(small, b'z')
    })
}

#[inline]
fn are_many_signs(block: &Lanes) -> bool {
    has_many(block.bits(|bytes| lanes::is_in(bytes, b':'..=b'@')), SIGNS_IN_BLOCK)
}

/// Whether so many letters are vowels as in the languages of ordinary text.
fn has_many_vowels(block: &Lanes, letters: u64) -> bool {
    let vowels = block.bits(|bytes| {
        let small = lanes::small(bytes);
        b"aeiou".iter().fold(lanes::is(small, b'y'), |any, vowel| any | lanes::is(small, *vowel))
    });
    vowels.count_ones() * 3 > letters.count_ones()
}

/// Letters and digits of each group that [`next_groups`] finds.
const GROUPS: [u32; 3] = [4, 5, 8];

/// Where the separator stands, at or after `from`, behind which four groups of as many letters and digits follow, each but the
/// last with a blank or hyphen behind it; and how many each has.
pub(super) fn next_groups(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    /// Four groups of eight and what stands before and behind them.
    const SPAN: usize = 4 * 9 + 1;
    let mut at = from;
    while at < bytes.len() {
        let block = Lanes::at(bytes, at);
        let one = block.bits(lanes::is_alphanumeric);
        let parts = block.bits(|bytes| lanes::is(bytes, b' ') | lanes::is(bytes, b'-'));
        let two = one & one >> 1;
        let four = two & two >> 2;
        let runs = [four, four & one >> 4, four & four >> 4];
        for (run, len) in runs.into_iter().zip(GROUPS) {
            let groups = parts & run >> 1;
            let pairs = groups & groups >> (len + 1);
            let found = pairs & pairs >> (2 * (len + 1));
            if found != 0 {
                return Some((at + found.trailing_zeros() as usize, len as usize));
            }
        }
        at += BLOCK - SPAN;
    }
    None
}

/// Whether `byte` may begin what breaks a word.
pub(super) fn is_break(byte: u8) -> bool {
    BREAKS[usize::from(byte)]
}

const BREAKS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let value = byte as u8;
        table[byte] = match value {
            b'\t' | b'\n' | b'\r' => false,
            b'*' | b'_' | b'~' | b'`' | b'-' | b'.' | b'|' | b'^' | b'<' | b'/' | b'\\' => true,
            _ => value.is_ascii_control() || !value.is_ascii(),
        };
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The first run that is long enough is found, wherever blocks begin.
        #[test]
        fn runs_are_found_whole(
            parts in prop::collection::vec("[a-zA-Z0-9+/_-]{1,9}|[a-z0-9]{10,20}|[A-Z]{60,140}|[ .=é\u{0}]{1,40}", 0..16),
            from in 0_usize..300,
        ) {
            let text = parts.concat();
            let bytes = text.as_bytes();
            let from = from.min(bytes.len());
            let mut wanted = None;
            let mut at = from;
            while wanted.is_none() && at < bytes.len() {
                let len = bytes[at..].iter().take_while(|byte| is_run_byte(**byte)).count();
                wanted = (len >= RUN_MIN).then_some(at..at + len);
                at += len + 1;
            }
            prop_assert_eq!(next_run(bytes, from), wanted, "{:?}", text);
        }
    }
}
