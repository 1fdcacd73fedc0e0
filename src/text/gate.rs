//! Cheap looks at a text, many bytes at a time, that tell whether a costlier pass could find anything.
//!
//! A gate may let through what turns out to be nothing; it may never lose what the pass behind it would find.

use std::ops::Range;

use super::lanes::{self, BLOCK, Lanes};

/// Shortest run of letters and digits that is looked at as base64 or hex.
pub(super) const RUN_MIN: usize = 16;

/// A one in each of eight bytes.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = ONES << 7;

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
    let mut at = from;
    while at < bytes.len() {
        let block = Lanes::at(bytes, at);
        // All that leet uses lie here, and little else that stands before a letter.
        let signs = block.bits(|bytes| lanes::is_in(bytes, b'!'..=b'@'));
        let is_letter_behind = bytes.get(at + BLOCK).is_some_and(u8::is_ascii_alphabetic);
        let before_letters = block.bits(lanes::is_letter) >> 1 | u64::from(is_letter_behind) << (BLOCK - 1);
        let mut found = lanes::places(signs & before_letters).map(|place| at + place);
        if let Some(place) = found.find(|place| is_leet(bytes[*place])) {
            return Some(place);
        }
        at += BLOCK;
    }
    None
}

/// Whether `byte` is one that leet writes for a letter.
pub(super) fn is_leet(byte: u8) -> bool {
    matches!(byte, b'0' | b'1' | b'3' | b'4' | b'5' | b'7' | b'@' | b'$' | b'!')
}

/// The first separator at or after `from` of four letters that stand set apart by one same separator, as in `i-g-n-o`, if all
/// of them stand there. ASCII text only.
pub(super) fn next_spaced(bytes: &[u8], from: usize) -> Option<usize> {
    /// From the first of four letters to the last.
    const RUN: usize = 6;
    let mut at = from;
    while at < bytes.len() {
        let block = Lanes::at(bytes, at);
        let letters = block.bits(lanes::is_letter);
        let repeats = block.same(&Lanes::at(bytes, at + 2)) & letters << 1 & letters >> 1;
        let runs = letters & repeats >> 1 & repeats >> 3 & letters >> RUN;
        // Letters and digits part nothing.
        let mut separators = lanes::places(runs).map(|letter| at + letter + 1);
        if let Some(separator) = separators.find(|place| !bytes[*place].is_ascii_alphanumeric()) {
            return Some(separator);
        }
        at += BLOCK - RUN;
    }
    None
}

fn block_at(bytes: &[u8], at: usize) -> Option<u64> {
    let block = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*block))
}

/// Whether any byte of `block` is less than `limit`, which is at most 128.
fn has_byte_below(block: u64, limit: u8) -> bool {
    block.wrapping_sub(ONES * u64::from(limit)) & !block & HIGH != 0
}
