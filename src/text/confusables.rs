//! Letters of other scripts, and styled symbols, that look like ASCII letters and digits.
//!
//! Mapping all of them would turn genuine Russian or Greek into noise, so it is done by the word: a word is mapped if
//! it mixes ASCII letters with others, mixes scripts, or consists of close look-alikes alone. A genuine word nearly always
//! has a letter that looks like no Latin one.
//!
//! The look-alikes are those of Unicode's confusables whose prototype is one ASCII letter or digit, and a supplement
//! for styles that are not confusable by Unicode's reckoning but read as plain letters by every model: small capitals,
//! circled, squared and flag letters, stroked and turned ones.

use super::layer::{Layer, Layers};
use super::rewrite::Rewriter;
use super::view::View;
use std::ops::Range;
use std::sync::OnceLock;
use unicode_security::mixed_script::AugmentedScriptSet;

/// Set on look-alikes by way of a small capital only, such as Cyrillic `в`: so many genuine words consist of these
/// that such a word must also mix scripts.
const WEAK: u8 = 0x80;

/// Past the last character that looks like an ASCII one.
const TABLE_LEN: usize = 0x2_0000;

/// Shortest word that is mapped for consisting of look-alikes alone: the shorter ones are mostly genuine.
const WHOLLY_ALIKE_MIN: usize = 3;

/// Letters of a supplement for each of `a` to `z`.
const SUPPLEMENT: [(char, &str); 26] = [
    ('a', "ᴀɐⱥ"),
    ('b', "ʙƀɓ"),
    ('c', "ᴄȼɔ"),
    ('d', "ᴅđɖɗ"),
    ('e', "ᴇǝɇəɛ"),
    ('f', "ꜰɟƒ"),
    ('g', "ɢǥɠ"),
    ('h', "ʜħɥɦ"),
    ('i', "ɪɨᴉı"),
    ('j', "ᴊɉɾ"),
    ('k', "ᴋĸʞƙ"),
    ('l', "ʟłƚɫ"),
    ('m', "ᴍɯɱ"),
    ('n', "ɴɲŋ"),
    ('o', "ᴏøɵ"),
    ('p', "ᴘƥ"),
    ('q', "ꞯɋ"),
    ('r', "ʀɹɍ"),
    ('s', "ꜱʂ"),
    ('t', "ᴛʇŧƭ"),
    ('u', "ᴜʉ"),
    ('v', "ᴠʌ"),
    ('w', "ᴡʍ"),
    ('x', "ˣ"),
    ('y', "ʏʎɏƴ"),
    ('z', "ᴢƶȥ"),
];

/// The first of 26 symbols for A to Z: circled, squared and flag letters.
const STYLED: [u32; 3] = [0x1F150, 0x1F170, 0x1F1E6];

/// For each code point the ASCII character it looks like, perhaps with [`WEAK`], or 0.
fn table() -> &'static [u8] {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = vec![0; TABLE_LEN];
        for (letter, likes) in SUPPLEMENT {
            likes.chars().for_each(|like| table[like as usize] = letter as u8);
        }
        for first in STYLED {
            (0..26).for_each(|index| table[first as usize + index] = b'a' + index as u8);
        }
        // No look-alikes among the ideographs and the Hangul syllables, which are most of the range.
        for code in (0x80..0x3100).chain(0xA000..0xAC00).chain(0xD7B0..TABLE_LEN as u32) {
            let Some(c) = char::from_u32(code) else { continue };
            if table[code as usize] == 0
                && let Some(ascii) = prototype(c, &table)
            {
                table[code as usize] = ascii;
            }
        }
        table
    })
}

/// Builds the table now rather than at the first text that needs it.
pub(super) fn warm_up() {
    table();
}

/// The ASCII letter or digit that is the prototype of `c`, by way of the supplement if need be.
fn prototype(c: char, supplement: &[u8]) -> Option<u8> {
    let mut buffer = [0; 4];
    let mut skeleton = unicode_security::skeleton(c.encode_utf8(&mut buffer));
    let (Some(first), None) = (skeleton.next(), skeleton.next()) else { return None };
    if !first.is_ascii() {
        return supplement
            .get(first as usize)
            .filter(|&&ascii| ascii.is_ascii_alphabetic())
            .map(|ascii| ascii | WEAK);
    }
    match first as u8 {
        // All that looks like a bar has this prototype; a capital was meant for a capital.
        b'l' if c.is_uppercase() => Some(b'I'),
        ascii => ascii.is_ascii_alphanumeric().then_some(ascii),
    }
}

/// The ASCII letter or digit that `c`, which is not ASCII, looks like.
fn look_alike(c: char) -> Option<char> {
    if c.is_ascii() {
        return None;
    }
    table().get(c as usize).filter(|&&ascii| ascii != 0).map(|&ascii| char::from(ascii & !WEAK))
}

/// Whether `c` looks like an ASCII letter or digit in any typeface.
fn is_strong(c: char) -> bool {
    table().get(c as usize).is_some_and(|&ascii| ascii != 0 && ascii & WEAK == 0)
}

/// Whether `text` holds any look-alike, so that mapping is worth trying.
pub(super) fn has_look_alike(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(|c| look_alike(c).is_some())
}

/// Shortest run that is taken for a code, in characters: shorter ones say too little to be worth hiding.
const CODE_MIN: usize = 16;
/// Of a code at most one character in so many is a look-alike; words of prose have more, or are short.
const CODE_PER_LOOK_ALIKE: usize = 4;

/// Whether a look-alike stands in a run of what is otherwise base64, base32 or hex, the pairs of hex set apart or not.
pub(super) fn is_in_code(text: &str) -> bool {
    let is_base64 =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    let is_hex =
        |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b' ' | b':' | b',' | b'\\' | b'x' | b'%');
    let mut taken_to = 0;
    let bytes = text.as_bytes();
    for (at, c) in text.char_indices().filter(|(_, c)| !c.is_ascii()) {
        let end = at + c.len_utf8();
        // Among letters of its own script it is one of a word.
        let is_joined = |byte: Option<&u8>| byte.is_some_and(|byte| is_base64(*byte) || is_hex(*byte));
        let touches = is_joined(bytes.get(end)) || (at > 0 && is_joined(bytes.get(at - 1)));
        if at < taken_to || !touches || look_alike(c).is_none() {
            continue;
        }
        let (is_long, end) = code_around(text, taken_to, at, is_base64);
        let (are_long, ends) = code_around(text, taken_to, at, is_hex);
        if is_long || are_long {
            return true;
        }
        taken_to = end.max(ends);
    }
    false
}

/// Whether the run of a code around a place is long enough and almost all ASCII, and where it ends. It begins at `from` or later.
fn code_around(text: &str, from: usize, at: usize, is_of_code: impl Fn(u8) -> bool) -> (bool, usize) {
    let is_of_run = |c: &char| match c.is_ascii() {
        true => is_of_code(*c as u8),
        false => look_alike(*c).is_some(),
    };
    let after = text[at..].chars().take_while(is_of_run);
    let end = at + after.clone().map(char::len_utf8).sum::<usize>();
    let (mut count, mut alike) = (0, 0);
    for c in text[from..at].chars().rev().take_while(is_of_run).chain(after) {
        // Blanks and other signs between pairs say nothing.
        count += usize::from(c.is_alphanumeric());
        alike += usize::from(!c.is_ascii());
    }
    (count >= CODE_MIN && count >= alike * CODE_PER_LOOK_ALIKE, end)
}

/// Maps the look-alikes of every word that is not genuine; none if there is no such word. Letters left alone become
/// lower case, because `parent` was folded with its case kept: a capital may look Latin where its small form does not.
pub fn map<'t>(parent: &View<'t>) -> Option<View<'t>> {
    let text = parent.text();
    let mut rewriter = Rewriter::new(text);
    let mut has_mapped = false;
    let mut position = 0;
    while position < text.len() {
        let word = next_word(text, position);
        position = word.end;
        let is_mapped = is_disguised(&text[word.clone()]);
        has_mapped |= is_mapped;
        for (offset, c) in text[word.clone()].char_indices().filter(|(_, c)| !c.is_ascii()) {
            let range = word.start + offset..word.start + offset + c.len_utf8();
            match look_alike(c).filter(|_| is_mapped) {
                Some(ascii) => {
                    rewriter.replace(range, ascii.encode_utf8(&mut [0; 4]), Layers::of(Layer::Confusables))
                }
                None if c.is_uppercase() => {
                    rewriter.replace(range, &c.to_lowercase().collect::<String>(), Layers::of(Layer::Case));
                }
                None => {}
            }
        }
    }
    if has_mapped { rewriter.finish(parent) } else { None }
}

/// The next run of letters, digits and look-alikes at or after `from`; empty at the end if there is none.
fn next_word(text: &str, from: usize) -> Range<usize> {
    let is_word = |c: char| c.is_alphanumeric() || look_alike(c).is_some();
    let start = text[from..].find(is_word).map_or(text.len(), |at| from + at);
    let end = text[start..].find(|c| !is_word(c)).map_or(text.len(), |at| start + at);
    start..end
}

/// Whether the word is written to look like a Latin one.
fn is_disguised(word: &str) -> bool {
    if word.is_ascii() || !word.chars().any(|c| look_alike(c).is_some()) {
        return false;
    }
    let is_latin_mix = word.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_wholly_alike = || {
        word.chars().all(|c| c.is_ascii_digit() || is_strong(c)) && word.chars().count() >= WHOLLY_ALIKE_MIN
    };
    let is_script_mix = || AugmentedScriptSet::for_str(word).is_empty();
    is_latin_mix || is_wholly_alike() || is_script_mix()
}
