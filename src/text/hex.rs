//! Bytes in hexadecimal: `69676e6f7265`, `0x69676e…`, `69 67 6e …`, `0x69, 0x67, …`.

use super::gate;
use std::ops::Range;

/// Fewest separate pairs of digits that are read as text.
const PAIRS_MIN: usize = 8;
/// Bytes that the fewest pairs span, with one byte between two.
const SPAN_MIN: usize = 3 * PAIRS_MIN - 1;

/// The value of each hex digit; 16 for every other byte, and no value has that bit.
const DIGITS: [u8; 256] = {
    let mut digits = [16; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value] as usize] = value as u8;
        digits[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

/// The value of two hex digits.
pub(super) fn byte(high: u8, low: u8) -> Option<u8> {
    let (high, low) = (DIGITS[usize::from(high)], DIGITS[usize::from(low)]);
    (high | low < 16).then_some(high << 4 | low)
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

/// Whether a run is hex digits alone, as digests are. It is no base64 of a text then: in each group of four,
/// the second digit alone lets the second byte be one of a few letters, and the others narrow down their bytes as much.
pub(super) fn is_made_of_digits(run: &[u8]) -> bool {
    run.iter().all(|byte| DIGITS[usize::from(*byte)] < 16)
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
    let is_part = |byte: &u8| IN_PAIRS[usize::from(*byte)];
    // Pairs span so many bytes that one of every `SPAN_MIN` lies in them.
    let mut at = from + SPAN_MIN - 1;
    while at < bytes.len() {
        if !is_part(&bytes[at]) {
            at += SPAN_MIN;
            continue;
        }
        let start = at - bytes[from..at].iter().rev().take_while(|byte| is_part(byte)).count();
        let end = at + bytes[at..].iter().take_while(|byte| is_part(byte)).count();
        let is_start = |start: &usize| {
            let is_edge = *start == from || !bytes[start - 1].is_ascii_alphanumeric();
            is_edge && Walk::from(bytes, *start).take(PAIRS_MIN).count() == PAIRS_MIN
        };
        if let Some(start) = (start..(end + 1).saturating_sub(SPAN_MIN)).find(is_start) {
            return Some(Pairs { bytes: Walk::from(bytes, start).collect() });
        }
        at = end + SPAN_MIN;
    }
    None
}

/// What stands in pairs: hex digits, the `x` of a prefix, and what parts them.
const IN_PAIRS: [bool; 256] = {
    let mut table = [false; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = DIGITS[at] < 16;
        at += 1;
    }
    let mut at = 0;
    while at < GAP.len() {
        table[GAP[at] as usize] = true;
        at += 1;
    }
    table[b'x' as usize] = true;
    table[b'X' as usize] = true;
    table
};

/// What may stand between two pairs.
const GAP: &[u8] = b" ,:;-\t\r\n";

/// Separate pairs one after the other, all written with a prefix or all without: each byte and where it is written.
struct Walk<'b> {
    bytes: &'b [u8],
    /// Where the next pair begins, if one may follow.
    next: Option<usize>,
    has_prefix: bool,
}

impl<'b> Walk<'b> {
    fn from(bytes: &'b [u8], start: usize) -> Self {
        Self { bytes, next: Some(start), has_prefix: is_prefix(&bytes[start..]) }
    }
}

impl Iterator for Walk<'_> {
    type Item = (u8, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.next.take()?;
        if self.has_prefix && !is_prefix(&self.bytes[start..]) {
            return None;
        }
        let digits = start + if self.has_prefix { 2 } else { 0 };
        let &[high, low] = self.bytes.get(digits..digits + 2)? else { return None };
        let value = byte(high, low)?;
        let end = digits + 2;
        let after = &self.bytes[end..];
        if after.first().is_some_and(u8::is_ascii_alphanumeric) {
            return None;
        }
        let gap = after.iter().take(3).take_while(|byte| GAP.contains(byte)).count();
        self.next = (gap > 0).then_some(end + gap);
        Some((value, start..end))
    }
}

fn is_prefix(bytes: &[u8]) -> bool {
    bytes.starts_with(b"0x") || bytes.starts_with(b"0X")
}
