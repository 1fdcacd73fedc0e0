//! Encodings that constants are hidden in: base 64, 85, 32 and 16, ROT13, deflate and percent signs, all bounded.

use std::io::Read;
use std::rc::Rc;

use super::value::TEXT_BYTES_MAX;

pub(super) use crate::text::{base32_of_program as base32, base64_of_program as base64};

/// Hexadecimal digits; blanks, colons and `\x` are left out.
pub(super) fn hex(text: &[u8]) -> Option<Vec<u8>> {
    let is_digit = |byte: &&u8| !byte.is_ascii_whitespace() && !matches!(byte, b':' | b'\\' | b'x');
    let digits: Vec<u8> = text.iter().filter(is_digit).copied().collect();
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Base 85 as `base64.b85decode` (`is_ascii85` false) or `base64.a85decode` reads it.
pub(super) fn base85(text: &[u8], is_ascii85: bool) -> Option<Vec<u8>> {
    const B85: &[u8; 85] =
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    let text = text.strip_prefix(b"<~").unwrap_or(text);
    let text = text.strip_suffix(b"~>").unwrap_or(text);
    let mut out = Vec::with_capacity(text.len() * 4 / 5);
    let mut group = Vec::with_capacity(5);
    let flush = |group: &mut Vec<u32>, out: &mut Vec<u8>| {
        let missing = 5 - group.len();
        group.resize(5, 84);
        let number = group.iter().fold(0_u64, |sum, digit| sum * 85 + u64::from(*digit));
        out.extend_from_slice(&(number as u32).to_be_bytes()[..4 - missing]);
        group.clear();
    };
    for byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        if is_ascii85 && *byte == b'z' && group.is_empty() {
            out.extend_from_slice(&[0; 4]);
            continue;
        }
        let digit = if is_ascii85 {
            byte.checked_sub(b'!').filter(|digit| *digit < 85).map(u32::from)
        } else {
            B85.iter().position(|known| known == byte).map(|digit| digit as u32)
        };
        group.push(digit?);
        if group.len() == 5 {
            flush(&mut group, &mut out);
        }
    }
    if group.len() > 1 {
        flush(&mut group, &mut out);
    }
    Some(out)
}

/// ROT13 of ASCII letters.
pub(super) fn rot13(text: &str) -> String {
    let turn = |c: char, base: u8| char::from((c as u8 - base + 13) % 26 + base);
    let one = |c| match c {
        'a'..='z' => turn(c, b'a'),
        'A'..='Z' => turn(c, b'A'),
        _ => c,
    };
    text.chars().map(one).collect()
}

/// Escapes of literals: `\\xHH`, `\\uHHHH`, `\\UHHHHHHHH` and octal ones.
pub(super) fn escapes(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (skip, digits, radix) = match after.as_bytes().first() {
            Some(b'x') => (1, 2, 16),
            Some(b'u') => (1, 4, 16),
            Some(b'U') => (1, 8, 16),
            Some(b'0'..=b'7') => {
                let octal = after.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                (0, octal, 8)
            }
            _ => (0, 0, 16),
        };
        let number =
            after.get(skip..skip + digits).and_then(|digits| u32::from_str_radix(digits, radix).ok());
        match number.and_then(char::from_u32).filter(|_| digits > 0) {
            Some(c) => {
                out.push(c);
                rest = &after[skip + digits..];
            }
            None => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Percent signs and `%uXXXX`.
pub(super) fn percent(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range)?;
        digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    };
    while at < bytes.len() {
        if bytes[at] == b'%' {
            if let Some(byte) = number(at + 1..at + 3) {
                out.push(byte as u8);
                at += 3;
                continue;
            }
            if bytes.get(at + 1) == Some(&b'u')
                && let Some(c) = number(at + 2..at + 6).and_then(char::from_u32)
            {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                at += 6;
                continue;
            }
        }
        out.push(bytes[at]);
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// What deflate gives, with the head of zlib or gzip or without one.
pub(super) fn inflate(bytes: &[u8]) -> Option<Rc<[u8]>> {
    let mut out = Vec::new();
    let limit = TEXT_BYTES_MAX as u64;
    let done = match bytes {
        [0x1f, 0x8b, ..] => flate2::read::GzDecoder::new(bytes).take(limit).read_to_end(&mut out),
        [head, second, ..]
            if head & 0x0f == 8 && (u16::from(*head) << 8 | u16::from(*second)).is_multiple_of(31) =>
        {
            flate2::read::ZlibDecoder::new(bytes).take(limit).read_to_end(&mut out)
        }
        _ => flate2::read::DeflateDecoder::new(bytes).take(limit).read_to_end(&mut out),
    };
    done.ok().filter(|_| !out.is_empty()).map(|_| Rc::from(out))
}
