//! Bytes in hexadecimal: `69676e6f7265`, `0x69676e…`, `69 67 6e …`, `0x69, 0x67, …`.

use super::gate;
use std::ops::Range;

/// Fewest separate pairs of digits that are read as text.
const PAIRS_MIN: usize = 8;

/// The value of two hex digits.
pub(super) fn byte(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? * 16 + digit(low)?) as u8)
}

/// The bytes that `run` spells, and where its digits begin; none if it is not an even number of hex digits, or what they
/// spell cannot be UTF-8.
pub(super) fn decode_run(run: &[u8]) -> Option<(Vec<u8>, usize)> {
    let start = if run.starts_with(b"0x") || run.starts_with(b"0X") { 2 } else { 0 };
    let digits = &run[start..];
    if digits.len() < gate::RUN_MIN || !digits.len().is_multiple_of(2) {
        return None;
    }
    // Digests and ids are the most of what is written in hex, and nearly all of them are no text after a few bytes.
    let mut first = [0; 8];
    for (out, pair) in first.iter_mut().zip(digits.chunks_exact(2)) {
        *out = byte(pair[0], pair[1])?;
    }
    if std::str::from_utf8(&first).is_err_and(|error| error.error_len().is_some()) {
        return None;
    }
    let bytes: Option<Vec<u8>> = digits.chunks_exact(2).map(|pair| byte(pair[0], pair[1])).collect();
    Some((bytes?, start))
}

/// Pairs of hex digits set apart.
pub(super) struct Pairs {
    /// Each byte and where it is written, its `0x` included, its separator not.
    pub bytes: Vec<(u8, Range<usize>)>,
}

impl Pairs {
    /// All that the pairs cover.
    pub(super) fn range(&self) -> Range<usize> {
        let start = self.bytes.first().map_or(0, |(_, range)| range.start);
        start..self.bytes.last().map_or(start, |(_, range)| range.end)
    }
}

/// The next separate pairs at or after `from`.
pub(super) fn next_pairs(bytes: &[u8], from: usize) -> Option<Pairs> {
    let mut at = from;
    while let Some(block) = gate::next_dense_digits(bytes, at) {
        let first = block.saturating_sub(8).max(at);
        let starts = (first..block + 8).filter(|&start| {
            bytes[start].is_ascii_hexdigit() && (start == from || !bytes[start - 1].is_ascii_alphanumeric())
        });
        let pairs = starts.map(|start| read_pairs(bytes, start)).find(|pairs| pairs.len() >= PAIRS_MIN);
        if let Some(pairs) = pairs {
            return Some(Pairs { bytes: pairs });
        }
        at = block + 8;
    }
    None
}

fn read_pairs(bytes: &[u8], start: usize) -> Vec<(u8, Range<usize>)> {
    let mut pairs = Vec::new();
    let mut at = start;
    let has_prefix = is_prefix(&bytes[start..]);
    loop {
        let digits = if has_prefix { at + 2 } else { at };
        if has_prefix && !is_prefix(&bytes[at.min(bytes.len())..]) {
            break;
        }
        let Some(&[high, low]) = bytes.get(digits..digits + 2) else { break };
        let Some(value) = byte(high, low) else { break };
        if bytes.get(digits + 2).is_some_and(u8::is_ascii_alphanumeric) {
            break;
        }
        pairs.push((value, at..digits + 2));
        let gap = bytes[digits + 2..].iter().take(3).take_while(|byte| b" ,:;-\t\r\n".contains(byte)).count();
        if gap == 0 {
            break;
        }
        at = digits + 2 + gap;
    }
    pairs
}

fn is_prefix(bytes: &[u8]) -> bool {
    bytes.starts_with(b"0x") || bytes.starts_with(b"0X")
}
