//! Views that make sense for phrases only, made when the engine asks for them.
//!
//! Each undoes a way of writing that people and models read without being told: letters rotated, reversed, replaced
//! by digits, set apart. [`rot13`] and [`reversed`] change every text, so they are worth scanning only where the
//! parent gives a reason; [`leet`] and [`spaced`] have gates cheap enough for every text.

use super::codes;
use super::gate;
use super::layer::{Layer, Layers};
use super::rewrite::Rewriter;
use super::turned::rotate;
use super::view::View;
use std::ops::Range;

/// The text with its ASCII letters rotated by thirteen.
pub fn rot13<'t>(parent: &View<'t>) -> View<'t> {
    let text = parent.text();
    let mut rewriter = Rewriter::new(text);
    let bytes = text.as_bytes();
    let mut position = 0;
    while position < bytes.len() {
        let is_letter = bytes[position].is_ascii_alphabetic();
        let len = bytes[position..].iter().take_while(|byte| byte.is_ascii_alphabetic() == is_letter).count();
        let range = position..position + len;
        position = range.end;
        if is_letter {
            let rotated: String = bytes[range.clone()].iter().map(|&byte| char::from(rotate(byte))).collect();
            let parts = range.clone().map(|at| (1, at..at + 1));
            rewriter.replace_parts(range, &rotated, parts, Layers::of(Layer::Rot13));
        }
    }
    rewriter.copy_to(text.len());
    rewriter.finish_exact(parent)
}

/// The text backwards, character by character.
pub fn reversed<'t>(parent: &View<'t>) -> View<'t> {
    let text = parent.text();
    let mut rewriter = Rewriter::new(text);
    let mut end = text.len();
    while end > 0 {
        let ascii = text.as_bytes()[..end].iter().rev().take_while(|byte| byte.is_ascii()).count();
        // One character beyond ASCII is an atom of its own; its bytes must stay in order.
        let start = if ascii > 0 { end - ascii } else { text.floor_char_boundary(end - 1) };
        let piece = &text[start..end];
        if ascii > 0 {
            rewriter.reverse(
                start..end,
                &piece.chars().rev().collect::<String>(),
                Layers::of(Layer::Reversed),
            );
        } else {
            rewriter.replace_out_of_order(start..end, piece, Layers::of(Layer::Reversed));
        }
        end = start;
    }
    rewriter.finish_exact(parent)
}

/// The text with messages in Morse written out; none if there is no message of some length.
pub fn morse<'t>(parent: &View<'t>) -> Option<View<'t>> {
    let plain = with_plain_dots(parent);
    let parent = plain.as_ref().unwrap_or(parent);
    let text = parent.text();
    let mut rewriter = Rewriter::new(text);
    let mut at = 0;
    while let Some(message) = codes::next_morse(text.as_bytes(), at) {
        at = message.range.end;
        let said: String = message.letters.iter().map(|(letter, _)| letter).collect();
        let parts = message.letters.iter().map(|(letter, range)| (letter.len_utf8(), range.clone()));
        rewriter.replace_parts(message.range, &said, parts, Layers::of(Layer::Morse));
    }
    rewriter.finish(parent)
}

/// The text with messages in Morse that are written backwards, sign by sign; none if there is no message of some length. Which
/// way one is to be read its signs hardly tell.
pub fn morse_backwards<'t>(parent: &View<'t>) -> Option<View<'t>> {
    let plain = with_plain_dots(parent);
    let parent = plain.as_ref().unwrap_or(parent);
    let text = parent.text();
    let bytes = text.as_bytes();
    let mut rewriter = Rewriter::new(text);
    let layers = Layers::of(Layer::Morse).union(Layers::of(Layer::Reversed));
    let mut at = 0;
    while let Some(row) = codes::next_signs(bytes, at) {
        at = row.end;
        let backwards: Vec<u8> = bytes[row.clone()].iter().rev().copied().collect();
        let (mut messages, mut read) = (Vec::new(), 0);
        while let Some(message) = codes::next_morse(&backwards, read) {
            read = message.range.end;
            messages.push(message);
        }
        // The last of them stands first.
        for message in messages.iter().rev() {
            let said: String = message.letters.iter().map(|(letter, _)| letter).collect();
            let range = row.end - message.range.end..row.end - message.range.start;
            rewriter.replace(range, &said, layers);
        }
    }
    rewriter.finish(parent)
}

/// The text with dots and dashes of other kinds as those that Morse is mostly written in; none if it has no such dots.
fn with_plain_dots<'t>(parent: &View<'t>) -> Option<View<'t>> {
    let text = parent.text();
    let has_dots = !text.is_ascii() && text.contains(['·', '•', '∙', '⋅', '●']);
    if !has_dots {
        return None;
    }
    let mut rewriter = Rewriter::new(text);
    for (at, c) in text.char_indices().filter(|(_, c)| !c.is_ascii()) {
        let plain = match c {
            '·' | '•' | '∙' | '⋅' | '●' => ".",
            '−' | '–' | '—' | '‐' | '▬' | '━' => "-",
            _ => continue,
        };
        rewriter.replace(at..at + c.len_utf8(), plain, Layers::of(Layer::Morse));
    }
    rewriter.finish(parent)
}

/// Words with a digit or sign amid letters that read as one that `is_known` once these are letters: the reasons to make the
/// view [`leet`]. A digit that ends a word, as in `sha256`, is none.
pub fn leet_reasons(parent: &View<'_>, is_known: impl Fn(&[u8]) -> bool) -> Vec<Range<usize>> {
    let bytes = parent.text().as_bytes();
    let is_reason = |word: &Range<usize>| {
        let mut letters = [0; LEET_WORD_MAX];
        is_leet_word(bytes, word) && is_known(read_leet(bytes, word, &mut letters))
    };
    leet_words_with_sign(bytes).filter(is_reason).collect()
}

/// The text with digits and signs read as the letters they stand for, in words that mix them with letters; none if it has no
/// such word.
///
/// `1` is read as `i`, but as `l` between vowels, after a vowel and before another `l`, and where it ends a word.
pub fn leet<'t>(parent: &View<'t>) -> Option<View<'t>> {
    let text = parent.text();
    let bytes = text.as_bytes();
    let mut rewriter = Rewriter::new(text);
    for word in leet_words(bytes) {
        if !bytes[word.clone()].iter().any(u8::is_ascii_alphabetic) {
            continue;
        }
        for at in word.clone().filter(|&at| gate::is_leet(bytes[at])) {
            let is_exclamation = bytes[at] == b'!' && at + 1 == word.end;
            if let Some(letter) = leet_letter(bytes, &word, at).filter(|_| !is_exclamation) {
                rewriter.replace(at..at + 1, letter, Layers::of(Layer::Leet));
            }
        }
    }
    rewriter.finish(parent)
}

/// Longest word that is read as leet, in bytes: a sentence without blanks may be as long. Lines of encoded data, of 64
/// and more, are longer.
const LEET_WORD_MAX: usize = 60;

/// Runs of ASCII letters, digits and the signs that leet uses, up to [`LEET_WORD_MAX`].
fn leet_words(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + bytes[at..].iter().position(is_leet_part)?;
            at = start + bytes[start..].iter().take_while(|byte| is_leet_part(byte)).count();
            if at - start <= LEET_WORD_MAX {
                return Some(start..at);
            }
        }
    })
}

/// Those of [`leet_words`] in which a leet character stands before a letter.
fn leet_words_with_sign(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let sign = gate::next_leet(bytes, at)?;
            let before = bytes[at..sign].iter().rev().take_while(|byte| is_leet_part(byte)).count();
            let start = sign - before;
            at = sign + bytes[sign..].iter().take_while(|byte| is_leet_part(byte)).count();
            if at - start <= LEET_WORD_MAX {
                return Some(start..at);
            }
        }
    })
}

fn is_leet_part(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || gate::is_leet(*byte)
}

/// Whether a leet character stands amid letters, or opens a word of some length. `@` in what looks like an address
/// does not count; nor does a word that holds digits which stand for no letter before its end, as identifiers do.
fn is_leet_word(bytes: &[u8], word: &Range<usize>) -> bool {
    let is_address = matches!(bytes[word.end..], [b'.', next, ..] if next.is_ascii_alphanumeric());
    let is_letter = |at: usize| word.contains(&at) && bytes[at].is_ascii_alphabetic();
    let is_long = || bytes[word.clone()].iter().filter(|byte| byte.is_ascii_alphabetic()).count() >= 4;
    let is_amid_letters = |at: usize| {
        let is_leet = gate::is_leet(bytes[at]) && !(is_address && bytes[at] == b'@');
        is_leet && is_letter(at + 1) && (is_letter(at.wrapping_sub(1)) || is_long())
    };
    let letters_end = word.clone().rev().find(|&at| bytes[at].is_ascii_alphabetic()).unwrap_or(word.start);
    let is_other = |byte: &u8| byte.is_ascii_digit() && !gate::is_leet(*byte);
    !bytes[word.start..letters_end].iter().any(is_other) && word.clone().any(is_amid_letters)
}

/// The word in letters.
fn read_leet<'b>(bytes: &[u8], word: &Range<usize>, letters: &'b mut [u8; LEET_WORD_MAX]) -> &'b [u8] {
    for (letter, at) in letters.iter_mut().zip(word.clone()) {
        *letter = leet_letter(bytes, word, at).and_then(|said| said.bytes().next()).unwrap_or(bytes[at]);
    }
    &letters[..word.len().min(LEET_WORD_MAX)]
}

fn leet_letter(bytes: &[u8], word: &Range<usize>, at: usize) -> Option<&'static str> {
    Some(match bytes[at] {
        b'0' => "o",
        b'1' if is_ell(bytes, word, at) => "l",
        b'1' | b'!' => "i",
        b'3' => "e",
        b'4' | b'@' => "a",
        b'5' | b'$' => "s",
        b'7' => "t",
        _ => return None,
    })
}

fn is_ell(bytes: &[u8], word: &Range<usize>, at: usize) -> bool {
    let byte = |at: usize| if word.contains(&at) { bytes[at].to_ascii_lowercase() } else { 0 };
    let (before, after) = (byte(at.wrapping_sub(1)), byte(at + 1));
    let is_vowel = |byte: u8| b"aeiou034@".contains(&byte);
    let is_like_ell = |byte: u8| matches!(byte, b'l' | b'1');
    match (before, after) {
        (0, _) => false,
        (_, 0) => true,
        (before, after) if is_vowel(before) => is_vowel(after) || is_like_ell(after),
        (before, after) => is_like_ell(before) && is_vowel(after),
    }
}

/// Fewest letters set apart that make a word.
const SPACED_MIN: usize = 4;
/// Longest gap, in characters, between two words of letters set apart.
const SPACED_GAP_MAX: usize = 8;

/// The text with letters joined that were set apart by one same separator, as in `i g n o r e` or `i-g-n-o-r-e`; none
/// if there is no such run of at least four. Words of such letters, set apart by a wider gap or by another separator,
/// come to stand one space apart; where the gap between words is no wider they join to one.
pub fn spaced<'t>(parent: &View<'t>) -> Option<View<'t>> {
    spaced_in(parent, parent.text().is_ascii())
}

/// `skips` reads only what is around runs that the gate sees; ASCII text only.
fn spaced_in<'t>(parent: &View<'t>, skips: bool) -> Option<View<'t>> {
    let text = parent.text();
    let layers = Layers::of(Layer::Spaced);
    let mut rewriter = Rewriter::new(text);
    let mut at = 0;
    let mut is_word_start = true;
    // Behind the run that was seen last.
    let mut read_to = 0;
    loop {
        if skips {
            if at >= read_to {
                let Some(run) = gate::next_spaced(text.as_bytes(), at) else { break };
                read_to = run + 1;
                let start = letters_start(text.as_bytes(), at..run);
                is_word_start |= start > at;
                at = start;
            }
            // Nothing else is a letter that stands alone.
            let Some(next) = next_single_letter(text.as_bytes(), at) else { break };
            is_word_start |= next > at;
            at = next;
        }
        let Some(c) = text[at..].chars().next() else { break };
        let sentence = if is_word_start && c.is_alphabetic() { SpacedSentence::read(text, at) } else { None };
        match sentence {
            Some(sentence) if !sentence.has_long_word => {
                at = sentence.last_word_start;
                is_word_start = true;
            }
            Some(sentence) => {
                for gap in sentence.gaps {
                    match gap.joins {
                        true => rewriter.remove(gap.range, layers),
                        false => rewriter.replace(gap.range, " ", layers),
                    }
                }
                at = sentence.end;
                is_word_start = false;
            }
            None => {
                at += c.len_utf8();
                is_word_start = !c.is_alphanumeric();
            }
        }
    }
    rewriter.finish(parent)
}

/// Where letters that stand alone begin, if nothing else but what parts them stands up to the end of a range; not before the
/// range does.
fn letters_start(bytes: &[u8], range: Range<usize>) -> usize {
    let joins = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let is_in_word = |at: &usize| joins(*at) && (joins(at + 1) || (*at > 0 && joins(at - 1)));
    range.clone().rev().find(is_in_word).map_or(range.start, |last| last + 1)
}

/// The next letter of ASCII at or after `from` with none and no digit beside it.
fn next_single_letter(bytes: &[u8], from: usize) -> Option<usize> {
    let joins = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let mut was_joined = from > 0 && joins(from - 1);
    (from..bytes.len()).find(|&at| {
        let joined = bytes[at].is_ascii_alphanumeric();
        let is_start = !std::mem::replace(&mut was_joined, joined);
        is_start && bytes[at].is_ascii_alphabetic() && !joins(at + 1)
    })
}

/// Words of letters set apart, one after the other.
struct SpacedSentence {
    gaps: Vec<Gap>,
    /// Where its last word begins.
    last_word_start: usize,
    end: usize,
    /// Whether it has a word long enough to be more than chance.
    has_long_word: bool,
}

/// What stands between two letters.
struct Gap {
    range: Range<usize>,
    /// Whether it joins letters of one word, or stands between words.
    joins: bool,
}

impl SpacedSentence {
    /// Reads the letters set apart that begin at `start`; none if there is but one word, and that too short.
    fn read(text: &str, start: usize) -> Option<Self> {
        let first_gap = single_letter(text, start)?;
        let separator = text[first_gap..].chars().next()?;
        let (mut gaps, mut letters, mut has_long_word, mut last_word_start) = (Vec::new(), 1, false, start);
        let mut end = first_gap;
        loop {
            let rest = &text[end..];
            let gap_len: usize = rest
                .chars()
                .take(SPACED_GAP_MAX + 1)
                .take_while(|c| !c.is_alphanumeric())
                .map(char::len_utf8)
                .sum();
            let next = end + gap_len;
            let joins = gap_len == separator.len_utf8() && rest.starts_with(separator);
            let Some(letter_end) = single_letter(text, next).filter(|_| gap_len > 0) else { break };
            // A word further on counts only if it is written in the same way.
            if !joins && !is_spaced_on(text, letter_end, separator) {
                break;
            }
            if joins {
                letters += 1;
            } else {
                (letters, last_word_start) = (1, next);
            }
            has_long_word |= letters >= SPACED_MIN;
            gaps.push(Gap { range: end..next, joins });
            end = letter_end;
        }
        (has_long_word || last_word_start > start).then_some(Self {
            gaps,
            last_word_start,
            end,
            has_long_word,
        })
    }
}

/// Whether what follows a letter's end is `separator` and one more single letter.
fn is_spaced_on(text: &str, end: usize, separator: char) -> bool {
    text[end..].starts_with(separator) && single_letter(text, end + separator.len_utf8()).is_some()
}

/// The end of the letter at `at`, if no letter or digit follows it.
fn single_letter(text: &str, at: usize) -> Option<usize> {
    let mut chars = text[at..].chars();
    let letter = chars.next().filter(|c| c.is_alphabetic())?;
    chars.next().is_none_or(|c| !c.is_alphanumeric()).then_some(at + letter.len_utf8())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Reading only what is around runs that the gate sees changes nothing.
        #[test]
        fn letters_set_apart_are_found_wherever_they_stand(
            texts in prop::collection::vec(prop::collection::vec(prop_oneof![
                2 => "([a-c][-. _]){1,8}",
                2 => "[a-c]{2,5}",
                2 => "[-. _]{1,3}",
                1 => "[a-c1]",
                1 => "([a-c]-){2}[a-c]  ([a-c]-){2,4}[a-c]",
            ], 0..12).prop_map(|pieces| pieces.concat()), 64),
        ) {
            for text in &texts {
                let source = View::identity(text);
                let read = |skips| spaced_in(&source, skips).map(|view| view.text().to_owned());
                prop_assert_eq!(read(true), read(false), "{:?}", text);
                prop_assert!(read(true).is_none() || gate::Looks::at(text).may_be_spaced(), "{:?}", text);
            }
        }
    }
}
