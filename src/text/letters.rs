//! What letters are to whoever reads words: parts of a word, words of their own, or marks that only change how one looks.

/// Whether a letter can be part of a word.
pub fn is_part_of_word(letter: char) -> bool {
    letter.is_alphanumeric()
}

/// Whether a letter is a word of its own, as far as blanks tell: of Japanese syllabaries, Chinese (and the
/// sign that repeats a letter), or Korean.
pub fn stands_alone(letter: char) -> bool {
    matches!(letter, '\u{3005}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{3ffff}')
}

/// Whether it only changes how the letter before it looks, or cannot be seen: accents set apart, vowel marks of Arabic, the
/// nukta and virama of Hindi, what joins letters.
pub fn is_mark(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{93c}' | '\u{94d}' | '\u{ad}' | '\u{2019}'
        | '\u{200b}'..='\u{200d}' | '\u{feff}')
}

/// Bytes before a part of a text that are read for what its first words stand behind.
const LEAD_BYTES: usize = 48;
/// Bytes behind a part of a text to which its last word is followed.
const REST_BYTES: usize = 64;

/// Where to begin reading so that the two words before a place are met in most texts, and none is begun amid it: at a blank, where
/// one is near.
pub fn lead(text: &str, at: usize) -> usize {
    let from = text.floor_char_boundary(at.saturating_sub(LEAD_BYTES));
    if from == 0 {
        return 0;
    }
    let blank = text.as_bytes()[from..at].iter().position(u8::is_ascii_whitespace);
    from + blank.unwrap_or(0)
}

/// A text until somewhat behind a place, so that the word that stands there is read whole.
pub fn until(text: &str, at: usize) -> &str {
    &text[..text.floor_char_boundary((at + REST_BYTES).min(text.len()))]
}
