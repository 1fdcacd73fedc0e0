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
pub(super) fn decode(text: &[u8], range: Range<usize>) -> Decoded {
    let groups = range.len() / 4 + 1;
    let mut decoded = Decoded { bytes: Vec::with_capacity(groups * 3), quads: Vec::with_capacity(groups) };
    let (mut bits, mut count, mut start) = (0_u32, 0, range.start);
    let mut end = range.start;
    for (position, value) in range.clone().filter_map(|at| Some((at, symbol(text[at])?))) {
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

/// The first bytes that `range` decodes to, as [`decode`] would, and how many they are.
pub(super) fn probe<const BYTES: usize>(text: &[u8], range: Range<usize>) -> ([u8; BYTES], usize) {
    let (mut bytes, mut len) = ([0; BYTES], 0);
    let (mut bits, mut count) = (0_u32, 0);
    for value in text[range].iter().filter_map(|byte| symbol(*byte)) {
        bits = bits << 6 | u32::from(value);
        count += 1;
        if count == 4 {
            let Some(group) = bytes.get_mut(len..len + 3) else { return (bytes, len) };
            group.copy_from_slice(&bits.to_be_bytes()[1..]);
            len += 3;
            (bits, count) = (0, 0);
        }
    }
    if count >= 2 {
        let whole = (bits << (6 * (4 - count))).to_be_bytes();
        if let Some(rest) = bytes.get_mut(len..len + count - 1) {
            rest.copy_from_slice(&whole[1..count]);
            len += count - 1;
        }
    }
    (bytes, len)
}

/// What a byte that is no base64 character stands for.
const NO_SYMBOL: u8 = 64;

/// The six bits that each byte stands for.
const SYMBOLS: [u8; 256] = {
    let mut symbols = [NO_SYMBOL; 256];
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut value = 0;
    while value < 64 {
        symbols[letters[value] as usize] = value as u8;
        value += 1;
    }
    symbols[b'-' as usize] = 62;
    symbols[b'_' as usize] = 63;
    symbols
};

/// The six bits that a character of base64 in either alphabet stands for.
pub fn symbol(byte: u8) -> Option<u8> {
    let symbol = SYMBOLS[usize::from(byte)];
    (symbol != NO_SYMBOL).then_some(symbol)
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
