//! Base64 in both alphabets, with or without padding, in one line or wrapped.

use super::gate::is_run_byte;
use std::ops::Range;

/// Base64 that was decoded: the bytes, and the source of each three of them.
pub(super) struct Decoded {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where each group of four characters, the last perhaps fewer, is written.
    pub quads: Vec<Range<usize>>,
}

/// Decodes the base64 characters in `range`, passing over everything else in it, such as line breaks and padding.
/// At most `bytes_max` bytes are decoded, rounded up to whole groups.
pub(super) fn decode(text: &[u8], range: Range<usize>, bytes_max: usize) -> Decoded {
    let symbols_max = range.len().min(bytes_max.div_ceil(3).saturating_mul(4));
    let mut decoded = Decoded {
        bytes: Vec::with_capacity(symbols_max / 4 * 3 + 3),
        quads: Vec::with_capacity(symbols_max / 4 + 1),
    };
    let (mut bits, mut count, mut start) = (0_u32, 0, range.start);
    let mut end = range.start;
    for (position, value) in range.clone().filter_map(|at| Some((at, symbol(text[at])?))).take(symbols_max) {
        if count == 0 {
            start = position;
        }
        bits = bits << 6 | u32::from(value);
        count += 1;
        end = position + 1;
        if count == 4 {
            decoded.bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
            decoded.quads.push(start..end);
            (bits, count) = (0, 0);
        }
    }
    // One character over is six bits of nothing; two and three end a text without padding.
    if count >= 2 {
        let whole = (bits << (6 * (4 - count))).to_be_bytes();
        decoded.bytes.extend_from_slice(&whole[1..count]);
        decoded.quads.push(start..end);
    }
    // Padding belongs to the last group.
    if let Some(last) = decoded.quads.last_mut()
        && last.end == end
        && text[end..range.end].iter().all(|&byte| byte == b'=')
    {
        last.end = range.end;
    }
    decoded
}

/// The bytes of the first eight groups; none where the run is shorter or something stands between its characters.
pub(super) fn opening(run: &[u8]) -> Option<[u8; 24]> {
    let symbols: &[u8; 32] = run.first_chunk()?;
    let mut bytes = [0; 24];
    for (group, out) in symbols.chunks_exact(4).zip(bytes.chunks_exact_mut(3)) {
        let bits = group.iter().try_fold(0_u32, |bits, byte| Some(bits << 6 | u32::from(symbol(*byte)?)))?;
        out.copy_from_slice(&bits.to_be_bytes()[1..]);
    }
    Some(bytes)
}

fn symbol(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

/// Lengthens a run by its padding.
pub(super) fn with_padding(text: &[u8], run: Range<usize>) -> Range<usize> {
    let padding = text[run.end..].iter().take(2).take_while(|&&byte| byte == b'=').count();
    run.start..run.end + padding
}

/// Lengthens a run by the lines that follow it, if it is wrapped: every line as long as the first but the last, which
/// may be shorter. Answers where each line ends, the first line's end first.
pub(super) fn wrapped_ends(text: &[u8], run: &Range<usize>) -> Vec<usize> {
    let mut ends = vec![run.end];
    let mut end = run.end;
    loop {
        let breaks = match &text[end..] {
            [b'\r', b'\n', ..] => 2,
            [b'\n', ..] => 1,
            _ => return ends,
        };
        let start = end + breaks;
        let len = text[start..].iter().take(run.len() + 1).take_while(|&&byte| is_run_byte(byte)).count();
        let line = with_padding(text, start..start + len);
        let has_padding = line.len() > len;
        let is_last = len < run.len() || has_padding;
        let is_line = has_padding
            || matches!(text.get(line.end), None | Some(b'\r' | b'\n' | b'"' | b'\'' | b'<' | b'`' | b')'));
        if len == 0 || len > run.len() || (is_last && !is_line) {
            return ends;
        }
        end = line.end;
        ends.push(end);
        if is_last {
            return ends;
        }
    }
}
