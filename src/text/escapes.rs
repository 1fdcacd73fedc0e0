//! Escapes that a sign announces: percent encoding, HTML character references, backslash escapes.
//!
//! Each reader takes the text and the place of the sign, and answers what is written there, or nothing.

use super::hex;
use super::layer::Layer;
use std::ops::Range;

/// The longest character reference that is read, in bytes.
const REFERENCE_MAX: usize = 32;

/// Characters that one escape, or a run of escapes that make sense together only, stands for.
pub(super) struct Escape {
    /// What kind of escape it is.
    pub layer: Layer,
    /// The characters.
    pub text: String,
    /// Where they are written.
    pub range: Range<usize>,
    /// Source bytes for one byte of `text`; none if the escape is one atom.
    pub unit: Option<usize>,
}

/// Reads the escape whose sign stands at `at`.
pub(super) fn read(text: &[u8], at: usize) -> Option<Escape> {
    match text.get(at)? {
        b'%' => percent(text, at),
        b'&' => html(text, at),
        b'\\' => backslash(text, at),
        _ => None,
    }
}

fn atom(layer: Layer, c: char, range: Range<usize>) -> Option<Escape> {
    Some(Escape { layer, text: c.into(), range, unit: None })
}

/// `%69%67`, taken as far as it is UTF-8; and `%u0069`.
fn percent(text: &[u8], at: usize) -> Option<Escape> {
    if text.get(at + 1) == Some(&b'u') {
        let code = number(text.get(at + 2..at + 6)?, 16)?;
        return atom(Layer::Percent, char::from_u32(code)?, at..at + 6);
    }
    signs_in_a_row(text, at, b"25", Layer::Percent, '%')
        .or_else(|| byte_run(text, at, b"%", Layer::Percent))
        .or_else(|| overlong(text, at))
}

/// A sign that was escaped again and again, as in `%252525` and `&amp;amp;amp;`: whoever writes it so, be it a feed that
/// escapes once too often, hides no more behind many than behind two.
fn signs_in_a_row(text: &[u8], at: usize, name: &[u8], layer: Layer, sign: char) -> Option<Escape> {
    let count = text[at + 1..].chunks_exact(name.len()).take_while(|next| *next == name).count();
    (count > 1).then(|| Escape {
        layer,
        text: sign.into(),
        range: at..at + 1 + count * name.len(),
        unit: None,
    })
}

/// An ASCII character in more bytes than it needs, as in `%c0%af`: no UTF-8, yet some decoders take it, up to the six bytes
/// that UTF-8 once had.
fn overlong(text: &[u8], at: usize) -> Option<Escape> {
    let byte = |nth: usize| match text.get(at + 3 * nth..at + 3 * nth + 3)? {
        [b'%', high, low] => hex::byte(*high, *low),
        _ => None,
    };
    let count = match byte(0)? {
        0xC0 | 0xC1 => 2,
        0xE0 => 3,
        0xF0 => 4,
        0xF8 => 5,
        0xFC => 6,
        _ => return None,
    };
    let mut code = u32::from(byte(0)? & 1);
    for nth in 1..count {
        code = code << 6 | u32::from(byte(nth).filter(|byte| byte & 0xC0 == 0x80)? & 0x3F);
    }
    let c = char::from_u32(code).filter(char::is_ascii)?;
    atom(Layer::Percent, c, at..at + 3 * count)
}

/// A run of bytes, each two hex digits after `sign`, as far as it is UTF-8.
pub(super) fn byte_run(text: &[u8], at: usize, sign: &[u8], layer: Layer) -> Option<Escape> {
    let byte = |unit: &[u8]| match unit.strip_prefix(sign)? {
        &[high, low] => hex::byte(high, low),
        _ => None,
    };
    utf8_run(text, at, sign.len() + 2, layer, byte)
}

/// A run of bytes, each of which `byte` reads from `unit` bytes of text, as far as it is UTF-8. No further than that is read.
fn utf8_run(
    text: &[u8],
    at: usize,
    unit: usize,
    layer: Layer,
    byte: impl Fn(&[u8]) -> Option<u8>,
) -> Option<Escape> {
    let mut said = String::new();
    let mut units = text[at..].chunks_exact(unit);
    loop {
        // One character at a time.
        let mut ahead = units.clone();
        let Some(first) = ahead.next().and_then(&byte) else { break };
        let mut bytes = [first; 4];
        let len = match first {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        if !bytes[1..len].iter_mut().all(|next| {
            ahead.next().and_then(&byte).is_some_and(|read| {
                *next = read;
                true
            })
        }) {
            break;
        }
        let Ok(read) = std::str::from_utf8(&bytes[..len]) else { break };
        said.push_str(read);
        units = ahead;
    }
    let range = at..at + said.len() * unit;
    (!said.is_empty()).then_some(Escape { layer, text: said, range, unit: Some(unit) })
}

/// `&#105;`, `&#x69;` and the named references that texts hold, most of them with a part in markup or disguise.
fn html(text: &[u8], at: usize) -> Option<Escape> {
    let rest = &text[at + 1..text.len().min(at + REFERENCE_MAX)];
    if let Some(number_part) = rest.strip_prefix(b"#") {
        let (radix, skipped) = match number_part {
            [b'x' | b'X', ..] => (16, 1),
            _ => (10, 0),
        };
        let digits =
            number_part[skipped..].iter().take_while(|&&byte| char::from(byte).is_digit(radix)).count();
        let code = number(&number_part[skipped..skipped + digits], radix);
        if digits == 0 {
            return None;
        }
        let end = at + 2 + skipped + digits;
        let end = end + usize::from(text.get(end) == Some(&b';'));
        let c = code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
        return atom(Layer::HtmlEntities, c, at..end);
    }
    let len = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    if rest.get(len) != Some(&b';') {
        return None;
    }
    let c = named(&rest[..len])?;
    if c == '&'
        && let Some(escape) = signs_in_a_row(text, at, b"amp;", Layer::HtmlEntities, '&')
    {
        return Some(escape);
    }
    atom(Layer::HtmlEntities, c, at..at + len + 2)
}

fn named(name: &[u8]) -> Option<char> {
    Some(match name {
        b"amp" | b"AMP" => '&',
        b"lt" | b"LT" => '<',
        b"gt" | b"GT" => '>',
        b"quot" | b"QUOT" => '"',
        b"apos" => '\'',
        b"nbsp" => '\u{A0}',
        b"shy" => '\u{AD}',
        b"zwj" => '\u{200D}',
        b"zwnj" => '\u{200C}',
        b"ZeroWidthSpace" => '\u{200B}',
        b"ensp" => '\u{2002}',
        b"emsp" => '\u{2003}',
        b"thinsp" => '\u{2009}',
        b"Tab" => '\t',
        b"NewLine" => '\n',
        b"excl" => '!',
        b"num" => '#',
        b"dollar" => '$',
        b"percnt" => '%',
        b"lpar" => '(',
        b"rpar" => ')',
        b"ast" | b"midast" => '*',
        b"plus" => '+',
        b"comma" => ',',
        b"period" => '.',
        b"sol" => '/',
        b"colon" => ':',
        b"semi" => ';',
        b"equals" => '=',
        b"quest" => '?',
        b"commat" => '@',
        b"lsqb" | b"lbrack" => '[',
        b"bsol" => '\\',
        b"rsqb" | b"rbrack" => ']',
        b"Hat" => '^',
        b"lowbar" | b"UnderBar" => '_',
        b"grave" => '`',
        b"lcub" | b"lbrace" => '{',
        b"verbar" | b"vert" | b"VerticalLine" => '|',
        b"rcub" | b"rbrace" => '}',
        b"hyphen" | b"dash" => '\u{2010}',
        b"ndash" => '\u{2013}',
        b"mdash" => '\u{2014}',
        b"lsquo" => '\u{2018}',
        b"rsquo" => '\u{2019}',
        b"ldquo" => '\u{201C}',
        b"rdquo" => '\u{201D}',
        b"laquo" => '\u{AB}',
        b"raquo" => '\u{BB}',
        b"bull" => '\u{2022}',
        b"middot" => '\u{B7}',
        b"hellip" => '\u{2026}',
        _ => return None,
    })
}

/// The escapes of JSON, JavaScript, C and Python.
fn backslash(text: &[u8], at: usize) -> Option<Escape> {
    let simple = |c: char| atom(Layer::Escapes, c, at..at + 2);
    match text.get(at + 1)? {
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        b'b' => simple('\u{8}'),
        b'f' => simple('\u{C}'),
        b'v' => simple('\u{B}'),
        sign @ (b'"' | b'\'' | b'\\' | b'/') => simple(char::from(*sign)),
        b'x' => bytes_escape(text, at),
        b'u' => unicode_escape(text, at),
        b'U' => {
            let c = char::from_u32(number(text.get(at + 2..at + 10)?, 16)?)?;
            atom(Layer::Escapes, c, at..at + 10)
        }
        b'0'..=b'3' => octal_escape(text, at),
        _ => None,
    }
}

/// `\x69`, as UTF-8 over a run of them if they are, else as Latin-1.
fn bytes_escape(text: &[u8], at: usize) -> Option<Escape> {
    byte_run(text, at, b"\\x", Layer::Escapes).or_else(|| {
        let &[high, low] = text.get(at + 2..at + 4)? else { return None };
        atom(Layer::Escapes, char::from(hex::byte(high, low)?), at..at + 4)
    })
}

/// `\151`, as UTF-8 over a run of them if they are, else as Latin-1.
fn octal_escape(text: &[u8], at: usize) -> Option<Escape> {
    let byte = |unit: &[u8]| u8::try_from(number(unit.strip_prefix(b"\\")?, 8)?).ok();
    utf8_run(text, at, 4, Layer::Escapes, byte).or_else(|| {
        let byte = byte(text.get(at..at + 4)?)?;
        atom(Layer::Escapes, char::from(byte), at..at + 4)
    })
}

/// `\u0069`, `\u{69}`, and a pair of surrogates as one character. A lone surrogate is U+FFFD.
fn unicode_escape(text: &[u8], at: usize) -> Option<Escape> {
    if text.get(at + 2) == Some(&b'{') {
        let digits = text[at + 3..].iter().take(7).take_while(|byte| byte.is_ascii_hexdigit()).count();
        if text.get(at + 3 + digits) != Some(&b'}') {
            return None;
        }
        let code = number(&text[at + 3..at + 3 + digits], 16)?;
        return atom(Layer::Escapes, char::from_u32(code)?, at..at + digits + 4);
    }
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        number(digits, 16).map(|code| code as u16)
    };
    let first = unit(at)?;
    let mut decoded = char::decode_utf16(std::iter::once(first).chain(unit(at + 6)));
    let c = decoded.next()?.unwrap_or(char::REPLACEMENT_CHARACTER);
    atom(Layer::Escapes, c, at..at + 6 * c.len_utf16())
}

/// The number that `digits` spell, all of them and at least one.
fn number(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    digits
        .iter()
        .try_fold(0_u32, |sum, &byte| sum.checked_mul(radix)?.checked_add(char::from(byte).to_digit(radix)?))
}
