//! Cheap looks at a text, eight bytes at a time, that tell whether a costlier pass could find anything.
//!
//! A gate may let through what turns out to be nothing; it may never lose what the pass behind it would find.

use std::ops::Range;

/// Shortest run of letters and digits that is looked at as base64 or hex.
pub(super) const RUN_MIN: usize = 16;

const LANES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = LANES << 7;

/// Whether `byte` belongs to base64, standard or URL-safe, without its padding.
pub(super) fn is_run_byte(byte: u8) -> bool {
    RUN_BYTES[usize::from(byte)]
}

const RUN_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let value = byte as u8;
        table[byte] = value.is_ascii_alphanumeric() || matches!(value, b'+' | b'/' | b'-' | b'_');
        byte += 1;
    }
    table
};

/// The next run of at least [`RUN_MIN`] base64 characters at or after `from`, without padding.
pub(super) fn next_run(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    // A run this long holds at least one whole block of eight, wherever the blocks begin.
    let mut at = from;
    while let Some(block) = block_at(bytes, at) {
        if has_byte_below(block, b'+') || !bytes[at..at + 8].iter().all(|&byte| is_run_byte(byte)) {
            at += 8;
            continue;
        }
        let before = bytes[from..at].iter().rev().take_while(|&&byte| is_run_byte(byte)).count();
        let after = bytes[at..].iter().take_while(|&&byte| is_run_byte(byte)).count();
        if before + after >= RUN_MIN {
            return Some(at - before..at + after);
        }
        at += after;
    }
    None
}

/// The next digit or sign at or after `from` that leet uses and that stands before a letter.
pub(super) fn next_leet(bytes: &[u8], from: usize) -> Option<usize> {
    let is_found = |at: &usize| is_leet(bytes[*at]) && bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic);
    let mut at = from;
    while let Some(block) = block_at(bytes, at) {
        // Digits lie in row 3 of ASCII with some punctuation; `!` and `$` are in row 2, `@` heads row 4.
        let digits = zero_bytes((block ^ (LANES * 0x30)) & (LANES * 0xF0));
        let signs = [b'!', b'$', b'@']
            .iter()
            .fold(0, |seen, &sign| seen | zero_bytes(block ^ (LANES * u64::from(sign))));
        let mut places = digits | signs;
        while places != 0 {
            let place = at + places.trailing_zeros() as usize / 8;
            if is_found(&place) {
                return Some(place);
            }
            places &= places - 1;
        }
        at += 8;
    }
    (at..bytes.len()).find(is_found)
}

/// Whether `byte` is one that leet writes for a letter.
pub(super) fn is_leet(byte: u8) -> bool {
    matches!(byte, b'0' | b'1' | b'3' | b'4' | b'5' | b'7' | b'@' | b'$' | b'!')
}

/// The next separator at or after `from` of four letters that stand set apart by one same separator, as in `i-g-n-o`; some are
/// passed over, but none of a run that stands behind `from` as a whole. ASCII text only.
pub(super) fn next_spaced(bytes: &[u8], from: usize) -> Option<usize> {
    let at_or_zero = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let is_pair =
        |letter: usize, sign: u8| at_or_zero(letter).is_ascii_alphabetic() && at_or_zero(letter + 1) == sign;
    let is_found_from = |letter: usize| {
        let sign = at_or_zero(letter + 1);
        if sign.is_ascii_alphanumeric() || !is_pair(letter, sign) || !is_pair(letter + 2, sign) {
            return false;
        }
        let before =
            (1..=2).take_while(|back| letter >= 2 * back && is_pair(letter - 2 * back, sign)).count();
        let after = (2..=3).take_while(|ahead| at_or_zero(letter + 2 * ahead).is_ascii_alphabetic());
        // The last letter needs no separator behind it, so that only the ones between count.
        let after = after.take_while(|ahead| at_or_zero(letter + 2 * ahead - 1) == sign).count();
        2 + before + after >= 4
    };
    // A separator stands twice at a distance of two; it is looked for at the places where two of them must lie, since
    // a run is seven bytes long and so holds four on a multiple of four.
    let is_found = |&sign: &usize| {
        let is_sign = bytes.get(sign).is_some_and(|byte| !byte.is_ascii_alphanumeric());
        is_sign && (is_found_from(sign + 1) || (sign > 0 && is_found_from(sign - 1)))
    };
    let mut at = from;
    while let Some(block) = block_at(bytes, at) {
        // A letter must stand between; what has not the bit that all letters have is none, such as a blank.
        let repeats = zero_bytes(block ^ (block >> 16)) & (block >> 8) << 1;
        if repeats & 0x0000_8080_0000_8080 != 0
            && let Some(found) = [at, at + 1, at + 4, at + 5].into_iter().find(is_found)
        {
            return Some(found);
        }
        at += 8;
    }
    (at..bytes.len()).find(is_found)
}

fn block_at(bytes: &[u8], at: usize) -> Option<u64> {
    let block = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*block))
}

/// Whether any byte of `block` is less than `limit`, which is at most 128.
fn has_byte_below(block: u64, limit: u8) -> bool {
    block.wrapping_sub(LANES * u64::from(limit)) & !block & HIGH != 0
}

/// The high bit of each byte of `block` that is zero.
fn zero_bytes(block: u64) -> u64 {
    !(((block & !HIGH) + !HIGH) | block) & HIGH
}
