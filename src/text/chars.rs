//! What single characters are to folding: invisible, a mark, or another way of writing an ASCII one.

use super::layer::Layer;
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

/// The layer of a character that shows nothing and is removed, by Unicode's default-ignorable property and a few
/// that render as nothing besides.
pub(super) fn invisible(c: char) -> Option<Layer> {
    match c {
        '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
            Some(Layer::Bidi)
        }
        '\u{AD}'
        | '\u{34F}'
        | '\u{115F}'
        | '\u{1160}'
        | '\u{17B4}'
        | '\u{17B5}'
        | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200D}'
        | '\u{2060}'..='\u{206F}'
        | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}'
        | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFFB}'
        | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}' => Some(Layer::Invisible),
        _ => None,
    }
}

/// Whether a character shows nothing and means nothing.
pub fn is_invisible(c: char) -> bool {
    invisible(c).is_some()
}

/// A value as it would be typed: compatibility forms, digits, spaces and dashes of other scripts as their ASCII
/// counterparts, invisible characters left out. Letters that only look like others stay what they are.
pub fn as_typed(value: &str) -> Cow<'_, str> {
    if value.is_ascii() {
        return Cow::Borrowed(value);
    }
    let typed = |c: char| ascii_symbol(c).map_or(c, |(ascii, _)| ascii);
    Cow::Owned(value.nfkc().filter(|c| !is_invisible(*c)).map(typed).collect())
}

/// A space, line separator, dash, quote or digit beyond ASCII, as its ASCII counterpart.
pub(super) fn ascii_symbol(c: char) -> Option<(char, Layer)> {
    let whitespace = |to| Some((to, Layer::Whitespace));
    let punctuation = |to| Some((to, Layer::Punctuation));
    match c {
        '\u{85}' | '\u{2028}' | '\u{2029}' => whitespace('\n'),
        '\u{A0}'
        | '\u{1680}'
        | '\u{2000}'..='\u{200A}'
        | '\u{202F}'
        | '\u{205F}'
        | '\u{2800}'
        | '\u{3000}' => whitespace(' '),
        '\u{58A}'
        | '\u{5BE}'
        | '\u{2010}'..='\u{2015}'
        | '\u{2043}'
        | '\u{2212}'
        | '\u{2E3A}'
        | '\u{2E3B}' => punctuation('-'),
        '\u{B4}'
        | '\u{2B9}'
        | '\u{2BB}'
        | '\u{2BC}'
        | '\u{2018}'..='\u{201B}'
        | '\u{2032}'
        | '\u{2039}'
        | '\u{203A}' => punctuation('\''),
        '\u{AB}' | '\u{BB}' | '\u{201C}'..='\u{201F}' | '\u{2033}' => punctuation('"'),
        '\u{2044}' | '\u{2215}' => punctuation('/'),
        '\u{2217}' => punctuation('*'),
        '\u{2236}' => punctuation(':'),
        '\u{3002}' => punctuation('.'),
        '\u{3001}' => punctuation(','),
        _ => Some((decimal_digit(c)?, Layer::Digits)),
    }
}

/// The first digit, zero, of each run of ten in general category Nd, but for those that compatibility forms cover.
const ZEROS: [char; 70] = [
    '\u{660}',
    '\u{6F0}',
    '\u{7C0}',
    '\u{966}',
    '\u{9E6}',
    '\u{A66}',
    '\u{AE6}',
    '\u{B66}',
    '\u{BE6}',
    '\u{C66}',
    '\u{CE6}',
    '\u{D66}',
    '\u{DE6}',
    '\u{E50}',
    '\u{ED0}',
    '\u{F20}',
    '\u{1040}',
    '\u{1090}',
    '\u{17E0}',
    '\u{1810}',
    '\u{1946}',
    '\u{19D0}',
    '\u{1A80}',
    '\u{1A90}',
    '\u{1B50}',
    '\u{1BB0}',
    '\u{1C40}',
    '\u{1C50}',
    '\u{A620}',
    '\u{A8D0}',
    '\u{A900}',
    '\u{A9D0}',
    '\u{A9F0}',
    '\u{AA50}',
    '\u{ABF0}',
    '\u{104A0}',
    '\u{10D30}',
    '\u{10D40}',
    '\u{11066}',
    '\u{110F0}',
    '\u{11136}',
    '\u{111D0}',
    '\u{112F0}',
    '\u{11450}',
    '\u{114D0}',
    '\u{11650}',
    '\u{116C0}',
    '\u{116D0}',
    '\u{116DA}',
    '\u{11730}',
    '\u{118E0}',
    '\u{11950}',
    '\u{11BF0}',
    '\u{11C50}',
    '\u{11D50}',
    '\u{11DA0}',
    '\u{11DE0}',
    '\u{11F50}',
    '\u{16130}',
    '\u{16A60}',
    '\u{16AC0}',
    '\u{16B50}',
    '\u{16D70}',
    '\u{1CCF0}',
    '\u{1E140}',
    '\u{1E2F0}',
    '\u{1E4F0}',
    '\u{1E5F1}',
    '\u{1E950}',
    '\u{1FBF0}',
];

fn decimal_digit(c: char) -> Option<char> {
    let index = ZEROS.partition_point(|&zero| zero <= c).checked_sub(1)?;
    char::from_digit((c as u32) - (ZEROS[index] as u32), 10)
}

/// A diacritic that any letter can carry. Marks that belong to one script (vowel signs, voicing marks) are not.
pub(super) fn is_diacritic(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}' | '\u{483}'..='\u{489}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}'
        | '\u{20D0}'..='\u{20FF}' | '\u{FE20}'..='\u{FE2F}')
}

/// Whether `c` forms one character with what stands before it.
pub(super) fn is_joining(c: char) -> bool {
    // The vowels and finals of Hangul are starters that compose none the less.
    matches!(c, '\u{1161}'..='\u{1175}' | '\u{11A8}'..='\u{11C2}')
        || canonical_combining_class(c) != 0
        || is_combining_mark(c)
}

/// ASCII, and letters of the Latin script: what loses its diacritics.
pub(super) fn is_latin(c: char) -> bool {
    matches!(c, '\0'..='\u{7F}' | '\u{A1}'..='\u{2AF}' | '\u{1D00}'..='\u{1D25}' | '\u{1E00}'..='\u{1EFF}'
        | '\u{2C60}'..='\u{2C7F}' | '\u{A720}'..='\u{A7FF}' | '\u{AB30}'..='\u{AB64}')
}

/// Whether folding leaves `c` alone for certain, so that text of most scripts is passed over quickly.
pub(super) fn is_plain(c: char) -> bool {
    matches!(c, '\u{5D0}'..='\u{5EA}' | '\u{627}'..='\u{63A}' | '\u{641}'..='\u{64A}' | '\u{E01}'..='\u{E2E}'
        | '\u{432}' | '\u{434}'..='\u{437}' | '\u{43A}'..='\u{442}' | '\u{444}'..='\u{44D}'
        | '\u{3041}'..='\u{304A}' | '\u{306A}'..='\u{306E}' | '\u{307E}'..='\u{3093}' | '\u{30CA}'..='\u{30CE}'
        | '\u{30DE}'..='\u{30EA}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}')
}
