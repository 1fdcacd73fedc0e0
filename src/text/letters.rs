//! What letters are to whoever reads words: parts of a word, words of their own, or marks that only change how one looks.

/// Whether a letter can be part of a word.
pub fn is_part_of_word(letter: char) -> bool {
    letter.is_alphanumeric()
}

/// Whether a letter is a word of its own, as far as blanks tell: of Japanese syllabaries, Chinese, or Korean.
pub fn stands_alone(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{3ffff}')
}

/// Whether it only changes how the letter before it looks, or cannot be seen: accents set apart, vowel marks of Arabic, the
/// nukta and virama of Hindi, what joins letters.
pub fn is_mark(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{93c}' | '\u{94d}' | '\u{ad}' | '\u{2019}'
        | '\u{200b}'..='\u{200d}' | '\u{feff}')
}
