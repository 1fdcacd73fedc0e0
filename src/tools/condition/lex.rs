//! A look at an expression before it is parsed: what would cost the parser much stack or time is refused here.
//!
//! The parser of the library is recursive. Its depth grows with brackets and with chains of operators and selections,
//! so both are counted first, outside of strings and comments.

use super::{EXPRESSION_BYTES_MAX, ExpressionError};
use crate::text::{OffsetEncoding, line_columns};

/// Deepest nesting of brackets.
const NESTING_MAX: usize = 24;
/// Most operators, selections and brackets together.
const SIGNS_MAX: usize = 300;

/// Refuses what should not be parsed.
pub(super) fn check(text: &str) -> Result<(), ExpressionError> {
    let error = |at: usize, what: String| Err(error_at(text, at, what));
    if text.len() > EXPRESSION_BYTES_MAX {
        return error(EXPRESSION_BYTES_MAX, format!("longer than {EXPRESSION_BYTES_MAX} bytes; split it up"));
    }
    if text.trim().is_empty() {
        return error(0, "an expression is missing".to_owned());
    }
    let bytes = text.as_bytes();
    let (mut at, mut nesting, mut signs) = (0, 0_usize, 0);
    while at < bytes.len() {
        let mut sign = true;
        match bytes[at] {
            b'"' | b'\'' => match string_end(bytes, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => return error(at, "a string without its closing quote".to_owned()),
            },
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += bytes[at..].iter().position(|b| *b == b'\n').unwrap_or(bytes.len() - at);
                continue;
            }
            b'`' => {
                return error(at, "names in backquotes are not supported; write `x[\"name\"]`".to_owned());
            }
            b'(' | b'[' | b'{' => {
                nesting += 1;
                if nesting > NESTING_MAX {
                    return error(at, format!("brackets nested deeper than {NESTING_MAX}"));
                }
            }
            b')' | b']' | b'}' => nesting = nesting.saturating_sub(1),
            b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'!' | b'?' | b':' | b'<' | b'>' | b'=' | b'&'
            | b'|' => {}
            _ => sign = false,
        }
        signs += usize::from(sign);
        if signs > SIGNS_MAX {
            return error(at, format!("more than {SIGNS_MAX} operators and brackets; split it up"));
        }
        at += 1;
    }
    Ok(())
}

/// Where the string that begins with the quote at `at` ends; strings of all forms, raw ones included.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let quote = bytes[at];
    let prefix = bytes[..at].iter().rev().take(2).take_while(|b| b"rRbB".contains(b));
    let is_raw = prefix.into_iter().any(|b| b"rR".contains(b));
    let is_long = bytes[at..].starts_with(&[quote; 3]);
    let mut end = at + if is_long { 3 } else { 1 };
    loop {
        match *bytes.get(end)? {
            b'\\' if !is_raw => end += 2,
            b'\n' | b'\r' if !is_long => return None,
            byte if byte == quote && !is_long => return Some(end + 1),
            byte if byte == quote && bytes[end..].starts_with(&[quote; 3]) => return Some(end + 3),
            _ => end += 1,
        }
    }
}

/// An error at a byte of the text.
pub(super) fn error_at(text: &str, at: usize, what: String) -> ExpressionError {
    let (line, column) = line_columns(text, OffsetEncoding::Utf32, &[at])[0];
    ExpressionError { line, column, what }
}
