//! The words that phrases of prompt injection are made of.
//!
//! Digits stand amid letters in every log and identifier. Reading them as letters is worth it only where one of these
//! words comes out.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Letters of the shortest word. Shorter ones come out of any digits by chance.
const LETTERS_MIN: usize = 4;
/// Letters by which a longer word is known.
const LETTERS_MAX: usize = 8;

/// Words and beginnings of words, each as its letters in lower case.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// Words that stand whole in rules.
    words: Letters,
    /// Letters that words of rules begin with, of which the rest is left open or longer than what is kept.
    begins: Letters,
    /// The first letters of all of them, as few as count.
    firsts: Letters,
}

/// The first letters of words, one in each byte of a number; those that are missing are zero.
type Letters = HashSet<u64, BuildHasherDefault<Spread>>;

/// Spreads the letters of a word over all bits: they are no choice of whoever sends a text but of whoever writes rules.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, letters: u64) {
        // The golden ratio, and the upper half over the lower one, since tables look at either.
        let spread = (self.0 ^ letters).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = spread ^ spread >> 32;
    }
}

impl Vocabulary {
    /// Every word of ASCII letters that stands in phrases, literals and patterns.
    pub(super) fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut known =
            Self { words: Letters::default(), begins: Letters::default(), firsts: Letters::default() };
        for text in texts {
            let bytes = text.as_bytes();
            let mut at = 0;
            while at < bytes.len() {
                // What follows a backslash is no letter of a word.
                if bytes[at] == b'\\' {
                    at += 2;
                    continue;
                }
                let len = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
                known.add(&bytes[at..at + len], bytes.get(at + len).copied());
                at += len.max(1);
            }
        }
        known
    }

    /// Adds a word, which goes on as `next` says.
    fn add(&mut self, word: &[u8], next: Option<u8>) {
        if word.len() < LETTERS_MIN {
            return;
        }
        self.firsts.insert(letters(&word[..LETTERS_MIN]));
        let is_whole = match next {
            None => true,
            Some(next) => b" +|^\",.:!~_-?".contains(&next),
        };
        if word.len() > LETTERS_MAX || !is_whole {
            self.begins.insert(letters(word));
            return;
        }
        self.words.insert(letters(word));
        // In a pattern the last letter may be missing.
        let but_last = &word[..word.len() - 1];
        if next == Some(b'?') && but_last.len() >= LETTERS_MIN {
            self.words.insert(letters(but_last));
        }
    }

    /// Whether a word is one of these, or one that they leave open how it ends.
    pub(super) fn holds(&self, word: &[u8]) -> bool {
        let len = word.iter().take(LETTERS_MAX + 1).take_while(|byte| byte.is_ascii_alphabetic()).count();
        if len < LETTERS_MIN {
            return false;
        }
        let all = letters(word);
        let first = |count: usize| all & u64::MAX >> (64 - 8 * count);
        (len <= LETTERS_MAX && self.words.contains(&first(len)))
            || (LETTERS_MIN..=len.min(LETTERS_MAX)).any(|count| self.begins.contains(&first(count)))
    }

    /// Whether one of these begins with the same few letters as what is given, which may be several words without blanks.
    pub(super) fn begins(&self, letters_of_words: &[u8]) -> bool {
        letters_of_words.get(..LETTERS_MIN).is_some_and(|first| self.firsts.contains(&letters(first)))
    }
}

/// The first letters of a word, in lower case, as far as they are kept.
fn letters(word: &[u8]) -> u64 {
    let mut letters = [0; LETTERS_MAX];
    let len = word.len().min(LETTERS_MAX);
    letters[..len].copy_from_slice(&word[..len]);
    letters.make_ascii_lowercase();
    u64::from_le_bytes(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_words_and_what_they_begin_with() {
        let texts = [r"(?i)\bignor(?:e|ing)\s+all\\prior", "reveal*|rules+about rul? prompts?|instructions"];
        let words = Vocabulary::of(texts.into_iter());
        for (word, wanted) in [
            ("Ignoring", true),
            ("ignite", false),
            ("bign", false),
            ("all", false),
            ("prior", true),
            ("priority", false),
            ("Revealing", true),
            ("rules", true),
            ("rules1", true),
            ("ruler", false),
            ("prompt", true),
            ("prompts", true),
            ("instruc", false),
            ("instructions", true),
            ("", false),
        ] {
            assert_eq!(words.holds(word.as_bytes()), wanted, "{word}");
        }
        for (word, wanted) in [("IGNOrepriorrules", true), ("inst", true), ("insane", false), ("all", false)]
        {
            assert_eq!(words.begins(word.as_bytes()), wanted, "{word}");
        }
    }
}
