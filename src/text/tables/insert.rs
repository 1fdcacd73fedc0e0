//! Rows of SQL: `INSERT INTO name (columns) VALUES (…), (…)`.

use std::ops::Range;

use memchr::memmem;

use super::{CELLS_MAX, Found};

/// How statements begin, in the letter cases that they are written in.
const BEGINNINGS: [&[u8]; 4] = [b"INSERT ", b"insert ", b"Insert ", b"REPLACE INTO "];
/// Longest part of a statement before its columns, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// Longest list of columns or row, in bytes.
const LIST_BYTES_MAX: usize = 16 * 1024;

/// Lists are read of so many bytes together, by the bytes of the text: those that do not end could be read again and again.
const READ_FACTOR_MAX: usize = 4;

/// Reads every row of that kind.
pub(super) fn read(found: &mut Found<'_>) {
    let bytes = found.text.as_bytes();
    if memchr::memchr(b'(', bytes).is_none() {
        return;
    }
    let mut left = bytes.len().saturating_mul(READ_FACTOR_MAX);
    for beginning in BEGINNINGS {
        let mut done = 0;
        while let Some(at) = memmem::find(&bytes[done..], beginning).filter(|_| left > 0) {
            let from = done + at + beginning.len();
            done = statement(found, from, &mut left).unwrap_or(from);
        }
    }
}

/// Reads one statement; where it ends.
fn statement(found: &mut Found<'_>, from: usize, left: &mut usize) -> Option<usize> {
    let bytes = found.text.as_bytes();
    let near = &bytes[from..bytes.len().min(from + NAME_BYTES_MAX)];
    let open = from + memchr::memchr3(b'(', b';', b'\n', near).filter(|at| near[*at] == b'(')?;
    let (heads, mut at) = list(bytes, open, left)?;
    at += blanks(bytes, at);
    let is_values = bytes.get(at..at + 6).is_some_and(|word| word.eq_ignore_ascii_case(b"values"));
    let wanted = if is_values { found.wanted(&heads) } else { Vec::new() };
    if wanted.is_empty() {
        return Some(at);
    }
    at += 6;
    loop {
        at += blanks(bytes, at);
        if bytes.get(at) != Some(&b'(') {
            return Some(at);
        }
        let Some((cells, end)) = list(bytes, at, left) else { return Some(at) };
        if cells.len() == heads.len() {
            found.row(&wanted, &cells);
        }
        at = end + blanks(bytes, end);
        if bytes.get(at) != Some(&b',') {
            return Some(at);
        }
        at += 1;
    }
}

fn blanks(bytes: &[u8], at: usize) -> usize {
    bytes[at.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The parts of a list in parentheses that begins at `open`, and where it ends.
fn list(bytes: &[u8], open: usize, left: &mut usize) -> Option<(Vec<Range<usize>>, usize)> {
    let end = bytes.len().min(open + LIST_BYTES_MAX.min(*left));
    let (mut parts, mut start, mut depth, mut mark) = (Vec::new(), open + 1, 0_usize, None);
    let mut at = open + 1;
    while at < end {
        let byte = bytes[at];
        match (mark, byte) {
            (Some(_), b'\\') => at += 1,
            // Doubled, a mark ends one part of a string and begins the next.
            (Some(open), _) if byte == open => mark = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"' | b'`') => mark = Some(byte),
            (None, b'(') => depth += 1,
            (None, b')') if depth > 0 => depth -= 1,
            (None, b')') => {
                parts.push(start..at);
                *left -= at - open;
                return Some((parts, at + 1));
            }
            (None, b',') if depth == 0 && parts.len() < CELLS_MAX => {
                parts.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    *left -= end.saturating_sub(open);
    None
}
