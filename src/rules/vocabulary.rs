//! The words that phrases of prompt injection are made of, by their first letters.
//!
//! Digits stand amid letters in every log and identifier. Reading them as letters is worth it only where one of these
//! words comes out.

use std::collections::BTreeSet;

/// Letters by which a word is known. Shorter words come out of any digits by chance.
const LETTERS: usize = 4;

/// First letters of words, in lower case.
#[derive(Debug, Default)]
pub(super) struct Vocabulary(BTreeSet<[u8; LETTERS]>);

impl Vocabulary {
    /// Adds every word of ASCII letters that stands in a phrase, a literal or a pattern.
    pub(super) fn add(&mut self, text: &str) {
        // What follows a backslash is no letter of a word.
        let mut is_escaped = false;
        let plain: Vec<u8> = text
            .bytes()
            .map(|byte| {
                let is_letter = !is_escaped && byte.is_ascii_alphabetic();
                is_escaped = !is_escaped && byte == b'\\';
                if is_letter { byte } else { b' ' }
            })
            .collect();
        self.0.extend(plain.split(|byte| *byte == b' ').filter_map(first_letters));
    }

    /// Whether a word begins as one of these does.
    pub(super) fn holds(&self, word: &[u8]) -> bool {
        first_letters(word).is_some_and(|letters| self.0.contains(&letters))
    }
}

fn first_letters(word: &[u8]) -> Option<[u8; LETTERS]> {
    let mut letters: [u8; LETTERS] = *word.first_chunk()?;
    letters.make_ascii_lowercase();
    Some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_words_by_their_first_letters() {
        let mut words = Vocabulary::default();
        words.add(r"(?i)\bignor(?:e|ing)\s+all\\prior");
        for (word, wanted) in [
            ("Ignoring", true),
            ("ignite", false),
            ("bign", false),
            ("all", false),
            ("priority", true),
            ("", false),
        ] {
            assert_eq!(words.holds(word.as_bytes()), wanted, "{word}");
        }
    }
}
