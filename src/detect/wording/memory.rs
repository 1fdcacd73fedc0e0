//! Words that were met before: their hash among tokens, and what they mean.
//!
//! Most words of a text are a few hundred that stand in every text. Reading one letter by letter and looking for each stem
//! that it may begin with takes far longer than to know it again by its letters, sixteen bytes at most.

use super::reading::Part;
use super::sums::Sums;
use super::tokens;
use crate::rules::caches::Forgetful;
use crate::rules::meanings::{Classes, Meanings};
use crate::text::lanes;

/// Words that are remembered, at most: 64 KiB, which stay close to the core.
const WORDS: usize = 1 << 11;
/// The bit by which a small letter of ASCII differs from a capital; digits have it too.
const CASE: u128 = u128::from_le_bytes([b'a' - b'A'; lanes::LANES]);
/// Spreads the letters of a word over all bits (the golden ratio, and a prime of xxHash).
const SPREAD: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

/// What is known of a word.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Word {
    /// Its hash among tokens.
    pub hash: u64,
    /// What it means.
    pub classes: Classes,
}

/// A word by its letters; no word has none.
#[derive(Clone, Copy, Default)]
struct Entry {
    letters: u128,
    word: Word,
}

/// Which places of the table were seen in a window. What is said twice counts once, or a row of the same sign would drown
/// all else.
pub(super) struct Seen<const WORDS_OF_64: usize>([u64; WORDS_OF_64]);

impl<const WORDS_OF_64: usize> Seen<WORDS_OF_64> {
    pub(super) const NOTHING: Self = Self([0; WORDS_OF_64]);

    /// Notes a place, and says whether it is new.
    #[inline]
    pub(super) fn is_new(&mut self, place: u16) -> bool {
        let (word, bit) = (&mut self.0[usize::from(place) / 64], 1 << (place % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Whether a place was noted.
    #[inline]
    pub(super) fn has(&self, place: u16) -> bool {
        self.0[usize::from(place) / 64] & 1 << (place % 64) != 0
    }
}

/// What reading leaves behind for the next text.
#[derive(Default)]
pub(in crate::detect) struct Memory {
    pub(super) words: Words,
    /// The halves that were read last: one of an even number, and one of an odd number.
    pub(super) halves: [(Option<usize>, Part); 2],
    pub(super) sums: Sums,
}

impl Forgetful for Memory {
    fn bytes(&self) -> usize {
        size_of_val(&*self.words.0)
            + self.halves.iter().map(|(_, half)| half.bytes()).sum::<usize>()
            + self.sums.bytes()
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Words that were met before, each in the one place that its letters tell. Of one set of meanings.
pub(super) struct Words(Box<[Entry]>);

impl Default for Words {
    fn default() -> Self {
        Self(vec![Entry::default(); WORDS].into())
    }
}

impl Words {
    /// The word that begins at a place and its length, where it is of letters and digits of ASCII alone and not long; none
    /// otherwise, and where too little of the text is left to tell.
    #[inline]
    pub(super) fn word(&mut self, text: &str, at: usize, meanings: &Meanings) -> Option<(usize, Word)> {
        let bytes = text.as_bytes().get(at..)?.first_chunk()?;
        let len = lanes::word_len(bytes);
        // What stands behind it may go on with it: an apostrophe, a letter of another script, a mark.
        let ends = bytes.get(len).is_some_and(|next| next.is_ascii() && *next != b'\'');
        if len == 0 || !ends {
            return None;
        }
        let letters = (u128::from_le_bytes(*bytes) | CASE) & !(u128::MAX << (8 * len));
        let [low, high] = [letters as u64, (letters >> 64) as u64];
        let hash = (low.wrapping_mul(SPREAD[0]) ^ high).wrapping_mul(SPREAD[1]);
        let entry = &mut self.0[(hash >> 32) as usize % WORDS];
        if entry.letters != letters {
            let word = Word { hash: tokens::of_plain(text, at), classes: meanings.of_plain(text, at) };
            *entry = Entry { letters, word };
        }
        Some((len, entry.word))
    }
}
