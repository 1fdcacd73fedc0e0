//! The words of a text as hashes, one after the other, and the features that they make.
//!
//! A token is a run of letters and digits with apostrophes amid them (letter case does not matter, all numbers are one token),
//! one letter of a script that sets no blanks between words (Chinese, Japanese, Korean), a sign, or a blank line. Each makes
//! three features: itself, itself behind the token before, and itself behind the one before that.

use std::ops::Range;

use crate::rules::Speaker;
use crate::rules::wording::SENSES;
use crate::text::letters::{is_mark, is_part_of_word, lead, stands_alone, until};

/// Features of a token.
pub const FEATURES: usize = 3;
/// Odd constants without a meaning, which spread bits (the golden ratio, and primes of xxHash).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const NEXT: u64 = 0xc2b2_ae3d_27d4_eb4f;
const AFTER_NEXT: u64 = 0x1656_67b1_9e37_79f9;
/// Hashes of what is no word.
const START: u64 = 0x27d4_eb2f_1656_67c5;
const NUMBER: u64 = 0x85eb_ca77_c2b2_ae63;
const BLANK_LINE: u64 = 0x2545_f491_4f6c_dd1d;
const NAME: u64 = 0xff51_afd7_ed55_8ccd;
const CLASS: u64 = 0xc4ce_b9fe_1a85_ec53;
const BEGINS: u64 = 0x94d0_49bb_1331_11eb;
const USER: u64 = 0xbf58_476d_1ce4_e5b9;
const TOOL: u64 = 0xd6e8_feb8_6659_fd93;

/// A token: where it stands, in bytes, and the places of its features in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Where it stands.
    pub range: Range<usize>,
    /// Where its features begin: at the token, at the one before, and at the one before that.
    pub starts: [usize; FEATURES],
    /// Of the token, of the pair with the one before, and of the pair with the one before that.
    pub buckets: [u16; FEATURES],
}

/// What a byte can be part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Blank,
    Line,
    Digit,
    Letter,
    Sign,
    Wide,
}

const CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut all = [Class::Blank; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        all[byte] = match b {
            b'\n' => Class::Line,
            b'0'..=b'9' => Class::Digit,
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            0x80.. => Class::Wide,
            _ if b.is_ascii_punctuation() => Class::Sign,
            _ => Class::Blank,
        };
        byte += 1;
    }
    all
}

/// Calls `token` with each token of a text, in order.
#[inline]
pub fn each(text: &str, mut token: impl FnMut(Token)) {
    let mut reader = Reader::new(text, 0..text.len());
    while reader.step(&mut token) {}
}

/// Reads the tokens that begin in a part of a text, in order; one may end behind the part. Makes pairs with tokens that stand
/// shortly before it.
pub(super) struct Reader<'t> {
    tokens: Tokens<'t>,
    part: Range<usize>,
    /// Where the last two tokens begin, and their hashes.
    last: (usize, u64),
    last_but_one: (usize, u64),
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str, part: Range<usize>) -> Self {
        let tokens = Tokens { text: until(text, part.end), at: lead(text, part.start) };
        let start = (tokens.at, START);
        Self { tokens, part, last: start, last_but_one: start }
    }

    /// The text that is read, until somewhat behind the part.
    #[inline]
    pub(super) fn text(&self) -> &'t str {
        self.tokens.text
    }

    /// Where what was not read yet begins.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.tokens.at
    }

    /// Passes over one blank.
    #[inline]
    pub(super) fn pass_blank(&mut self) {
        self.tokens.at += 1;
    }

    /// Passes over a word that ends there and has this hash, and calls `token` with it.
    #[inline]
    pub(super) fn pass_word(&mut self, end: usize, hash: u64, token: &mut impl FnMut(Token)) {
        let start = self.tokens.at;
        self.tokens.at = end;
        self.pass(start..end, hash, token);
    }

    /// Reads one token. False where none is left.
    pub(super) fn step(&mut self, token: &mut impl FnMut(Token)) -> bool {
        let Some((range, hash)) = self.tokens.next().filter(|(range, _)| range.start < self.part.end) else {
            return false;
        };
        self.pass(range, hash, token);
        true
    }

    #[inline]
    fn pass(&mut self, range: Range<usize>, hash: u64, token: &mut impl FnMut(Token)) {
        let here = (range.start, hash);
        if range.start >= self.part.start {
            let buckets = [
                bucket(hash),
                bucket(self.last.1.wrapping_mul(NEXT) ^ hash),
                bucket(self.last_but_one.1.wrapping_mul(AFTER_NEXT).rotate_left(17) ^ hash),
            ];
            let starts = [here.0, self.last.0, self.last_but_one.0];
            token(Token { range, starts, buckets });
        }
        (self.last_but_one, self.last) = (self.last, here);
    }
}

/// The hash of a word of letters and digits of ASCII that begins at a place, and that nothing else goes on.
pub(super) fn of_plain(text: &str, start: usize) -> u64 {
    Tokens { text, at: start }.word().1
}

/// The places of a feature that is no word, among those of senses: one whoever speaks, and one for who does.
pub(super) type Places = [u16; 2];

/// The places of what has a name.
pub(super) fn named(name: &str, who: Speaker) -> Places {
    places(name.bytes().fold(NAME, add), who)
}

/// The places of a class of words, of which the id is given.
#[inline]
pub(super) fn class(id: u64, who: Speaker) -> Places {
    places(id ^ CLASS, who)
}

/// The places of a class that begins a sentence.
#[inline]
pub(super) fn beginning(id: u64, who: Speaker) -> Places {
    places(id ^ BEGINS, who)
}

/// The places of two classes of words, in any order.
#[inline]
pub(super) fn pair(one: u64, other: u64, who: Speaker) -> Places {
    places(one.min(other).wrapping_mul(NEXT) ^ one.max(other) ^ CLASS, who)
}

#[inline]
fn places(hash: u64, who: Speaker) -> Places {
    let own = match who {
        Speaker::User => USER,
        Speaker::Tool => TOOL,
    };
    let place = |hash: u64| bucket(hash) % SENSES as u16;
    [place(hash), place(hash ^ own)]
}

/// The upper bits of a product depend on all bits of its factors.
fn bucket(hash: u64) -> u16 {
    let spread = (hash ^ (hash >> 29)).wrapping_mul(SPREAD);
    (spread >> 48) as u16
}

fn add(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl Tokens<'_> {
    #[inline]
    fn next(&mut self) -> Option<(Range<usize>, u64)> {
        let bytes = self.text.as_bytes();
        loop {
            let start = self.at;
            let byte = *bytes.get(start)?;
            match CLASSES[usize::from(byte)] {
                Class::Blank => self.at += 1,
                Class::Letter | Class::Digit => return Some(self.word()),
                Class::Sign => {
                    self.at += 1;
                    return Some((start..self.at, add(SPREAD, byte)));
                }
                Class::Line => {
                    if self.blank_line() {
                        return Some((start..self.at, BLANK_LINE));
                    }
                }
                Class::Wide => {
                    let letter = self.letter_at(start).unwrap_or('\u{fffd}');
                    if is_part_of_word(letter) && !stands_alone(letter) {
                        return Some(self.word());
                    }
                    self.at += letter.len_utf8();
                    if !letter.is_whitespace() && !is_mark(letter) {
                        return Some((start..self.at, add_letter(SPREAD, letter)));
                    }
                }
            }
        }
    }

    /// Passes over the end of a line and blank lines behind it, and says whether there was one.
    fn blank_line(&mut self) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        let len = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += len;
        rest[..len].iter().filter(|byte| **byte == b'\n').count() > 1
    }

    fn word(&mut self) -> (Range<usize>, u64) {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start;
        let mut hash = START;
        let mut is_number = true;
        while let Some(byte) = bytes.get(at) {
            match CLASSES[usize::from(*byte)] {
                Class::Letter => {
                    hash = add(hash, byte | 0x20);
                    is_number = false;
                }
                Class::Digit => hash = add(hash, *byte),
                Class::Sign if *byte == b'\'' && bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic) => {}
                Class::Wide => {
                    let Some(letter) = self.letter_at(at) else { break };
                    if !is_mark(letter) {
                        if !is_part_of_word(letter) || stands_alone(letter) {
                            break;
                        }
                        is_number = false;
                        hash = letter.to_lowercase().fold(hash, add_letter);
                    }
                    at += letter.len_utf8();
                    continue;
                }
                _ => break,
            }
            at += 1;
        }
        self.at = at;
        (start..at, if is_number { NUMBER } else { hash })
    }

    fn letter_at(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }
}

fn add_letter(hash: u64, letter: char) -> u64 {
    let mut bytes = [0; 4];
    letter.encode_utf8(&mut bytes).bytes().fold(hash, add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let mut out = Vec::new();
        each(text, |token| out.push(&text[token.range]));
        out
    }

    fn buckets(text: &str) -> Vec<[u16; FEATURES]> {
        let mut out = Vec::new();
        each(text, |token| out.push(token.buckets));
        out
    }

    #[test]
    fn texts_are_cut_into_words_and_signs() {
        for (text, wanted) in [
            ("Don't stop, now!", &["Don't", "stop", ",", "now", "!"][..]),
            ("a_b 12 x2 'q'", &["a", "_", "b", "12", "x2", "'", "q", "'"]),
            ("one\ntwo\n \n\nthree", &["one", "two", "\n \n\n", "three"]),
            ("忘れて ignoriere Äpfel", &["忘", "れ", "て", "ignoriere", "Äpfel"]),
            ("विद्या कर्म", &["विद्या", "कर्म"]),
            ("무시해 👍 ok", &["무", "시", "해", "👍", "ok"]),
            ("cafe\u{301} l’état", &["cafe\u{301}", "l’état"]),
            ("", &[]),
        ] {
            assert_eq!(words(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn what_reads_the_same_is_the_same() {
        assert_eq!(buckets("Ignore ALL 12 rules"), buckets("ignore  all\n7 Rules"));
        assert_eq!(buckets("don't"), buckets("dont"));
        assert_eq!(buckets("ÄPFEL"), buckets("äpfel"));
        let (one, other) = (buckets("ignore all rules"), buckets("all rules ignore"));
        assert_eq!(one[2][0], other[1][0], "the word alone");
        assert_eq!(one[2][1], other[1][1], "and behind the same word");
        assert_ne!(one[2][2], other[1][2], "but not behind the one before");
    }

    proptest! {
        #[test]
        fn tokens_lie_in_order_on_boundaries(text in "\\PC{0,60}|[a-z' \\n0-9é忘ा़]{0,60}") {
            let mut end = 0;
            let mut is_fine = true;
            each(&text, |token| {
                is_fine &= token.range.start >= end && !token.range.is_empty();
                is_fine &= text.get(token.range.clone()).is_some();
                end = token.range.end;
            });
            prop_assert!(is_fine);
        }

        #[test]
        fn a_text_begins_alike_whatever_follows(text in "[a-zé忘 ,.]{0,40}", more in "[a-z ,.]{0,20}") {
            let (short, long) = (buckets(&text), buckets(&format!("{text} {more}")));
            prop_assert_eq!(&long[..short.len()], &short[..]);
        }
    }
}
