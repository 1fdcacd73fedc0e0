//! `$'…'`: quotes with the escapes of C.

use std::borrow::Cow;

use super::cursor::add_quoted_text;
use super::frame::WordFrame;
use super::machine::Machine;
use crate::shell::ast::Part;

impl<'s> Machine<'_, 's> {
    /// Reads `$'…'`, whose quote stands at a place.
    pub(super) fn ansi_quote(&mut self, word: &mut WordFrame<'s>, quote: usize) {
        let start = quote + 1;
        let mut at = start;
        let mut is_escaped = false;
        let close = loop {
            match memchr::memchr2(b'\'', b'\\', &self.bytes[at.min(self.end)..self.end]) {
                None => {
                    self.unterminated(self.pos);
                    break self.end;
                }
                Some(len) if self.bytes[at + len] == b'\'' => break at + len,
                Some(len) => {
                    is_escaped = true;
                    at += len + 2;
                }
            }
        };
        self.out.tick(close - start);
        self.pos = (close + 1).min(self.end);
        word.double_is_empty = false;
        if is_escaped {
            let text = unescape(&self.bytes[start..close]);
            match word.parts.last_mut() {
                Some(Part::Quoted(before)) => before.to_mut().push_str(&text),
                _ => word.add(Part::Quoted(Cow::Owned(text))),
            }
        } else if start == close {
            add_quoted_text(&mut word.parts, "");
        } else {
            self.add_quoted_raw(&mut word.parts, start, close);
        }
    }
}

/// Resolves the escapes. Text after a NUL is dropped, as arguments end there; what is no UTF-8 is replaced.
fn unescape(text: &[u8]) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let escape = &rest[at + 1..];
        let Some(&kind) = escape.first() else {
            out.push(b'\\');
            rest = escape;
            break;
        };
        let used = match kind {
            b'x' if escape.get(1) == Some(&b'{') => braced_hex(escape, &mut out),
            b'x' => hex(escape, 2, |code| out.push(code as u8)),
            b'u' => hex(escape, 4, |code| push_code(&mut out, code)),
            b'U' => hex(escape, 8, |code| push_code(&mut out, code)),
            b'0'..=b'7' => {
                let digits = digits(escape, 3, 8);
                out.push(number(&escape[..digits], 8) as u8);
                digits
            }
            b'c' => match escape.get(1) {
                Some(control) => {
                    out.push(if *control == b'?' { 0x7F } else { control & 0x1F });
                    2
                }
                None => 0,
            },
            _ => match plain(kind) {
                Some(byte) => {
                    out.push(byte);
                    1
                }
                None => 0,
            },
        };
        if used == 0 {
            // Not an escape: the backslash stays, and so does what follows it, which may be a backslash only if it was
            // an escape.
            out.extend_from_slice(&[b'\\', kind]);
            rest = &escape[1..];
        } else {
            rest = &escape[used..];
        }
    }
    out.extend_from_slice(rest);
    if let Some(nul) = memchr::memchr(0, &out) {
        out.truncate(nul);
    }
    match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// What an escape of one letter stands for.
const fn plain(kind: u8) -> Option<u8> {
    Some(match kind {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'a' => 7,
        b'b' => 8,
        b'e' | b'E' => 27,
        b'f' => 12,
        b'v' => 11,
        b'\\' | b'\'' | b'"' | b'?' => kind,
        _ => return None,
    })
}

/// Reads up to `most` hexadecimal digits after the letter; the number of bytes used, 0 if there is no digit.
fn hex(escape: &[u8], most: usize, use_code: impl FnOnce(u32)) -> usize {
    let len = digits(&escape[1..], most, 16);
    if len == 0 {
        return 0;
    }
    use_code(number(&escape[1..=len], 16));
    len + 1
}

/// `\x{…}`
fn braced_hex(escape: &[u8], out: &mut Vec<u8>) -> usize {
    let len = digits(&escape[2..], usize::MAX, 16);
    if len == 0 {
        return 0;
    }
    out.push(number(&escape[2..2 + len], 16) as u8);
    2 + len + usize::from(escape.get(2 + len) == Some(&b'}'))
}

fn digits(text: &[u8], most: usize, radix: u32) -> usize {
    text.iter().take(most).take_while(|byte| char::from(**byte).is_digit(radix)).count()
}

fn number(digits: &[u8], radix: u32) -> u32 {
    let values = digits.iter().filter_map(|digit| char::from(*digit).to_digit(radix));
    values.fold(0, |number, digit| number.wrapping_mul(radix).wrapping_add(digit))
}

fn push_code(out: &mut Vec<u8>, code: u32) {
    let char = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
}
