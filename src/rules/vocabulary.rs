//! The words that phrases of prompt injection are made of, by their first letters.
//!
//! Digits stand amid letters in every log and identifier. Reading them as letters is worth it only where one of these
//! words comes out.

/// Letters by which a word is known. Shorter words come out of any digits by chance.
const LETTERS: usize = 4;

/// First letters of words, in lower case; sorted.
#[derive(Debug)]
pub(super) struct Vocabulary(Box<[[u8; LETTERS]]>);

impl Vocabulary {
    /// Every word of ASCII letters that stands in phrases, literals and patterns.
    pub(super) fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut words = Vec::new();
        for text in texts {
            let (mut letters, mut count, mut is_escaped) = ([0; LETTERS], 0, false);
            for byte in text.bytes() {
                // What follows a backslash is no letter of a word.
                let is_letter = !is_escaped && byte.is_ascii_alphabetic();
                is_escaped = !is_escaped && byte == b'\\';
                if !is_letter {
                    count = 0;
                    continue;
                }
                if count < LETTERS {
                    letters[count] = byte.to_ascii_lowercase();
                    if count + 1 == LETTERS {
                        words.push(letters);
                    }
                }
                count += 1;
            }
        }
        words.sort_unstable();
        words.dedup();
        Self(words.into())
    }

    /// Whether a word begins as one of these does.
    pub(super) fn holds(&self, word: &[u8]) -> bool {
        word.first_chunk::<LETTERS>()
            .is_some_and(|letters| self.0.binary_search(&letters.map(|l| l.to_ascii_lowercase())).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_words_by_their_first_letters() {
        let words = Vocabulary::of([r"(?i)\bignor(?:e|ing)\s+all\\prior"].into_iter());
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
