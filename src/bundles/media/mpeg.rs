//! MP3: an ID3v2 tag perhaps, frames one after another, an ID3v1 tag perhaps.

use super::parts::Parts;
use super::read::{byte, is_zero, run};

/// Kilobits a second by index, for layer III of MPEG 1 and of MPEG 2 and 2.5.
const RATES_1: [usize; 15] = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const RATES_2: [usize; 15] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
/// Samples a second by index, for MPEG 1.
const SAMPLES: [usize; 3] = [44_100, 48_000, 32_000];
/// Size of an ID3v1 tag.
const ID3V1_BYTES: usize = 128;

pub(super) fn walk(bytes: &[u8], texts: &mut Parts) -> Option<()> {
    let mut at = 0;
    if bytes.starts_with(b"ID3") {
        // Four bytes of seven bits (ID3v2, 3.1).
        let size = run(bytes, 6, 4)?;
        if size.iter().any(|byte| byte & 0x80 != 0) {
            return None;
        }
        let len = size.iter().fold(0, |len, byte| len << 7 | usize::from(*byte));
        let footer = if byte(bytes, 5)? & 0x10 == 0 { 0 } else { 10 };
        at = 10 + len + footer;
        bytes.get(..at)?;
        texts.push(10..at);
    }
    let mut end = bytes.len();
    if let Some(tag) = end.checked_sub(ID3V1_BYTES).filter(|tag| bytes[*tag..].starts_with(b"TAG")) {
        texts.push(tag..end);
        end = tag;
    }
    let mut frames = 0;
    while at < end {
        match frame_len(bytes, at) {
            Some(len) if at + len <= end => {
                frames += 1;
                at += len;
            }
            // Writers pad between the tag and the frames.
            _ => {
                let zeros = bytes[at..end].iter().take_while(|byte| **byte == 0).count();
                if zeros == 0 || !is_zero(&bytes[at..at + zeros]) || frames > 0 && at + zeros < end {
                    return None;
                }
                at += zeros;
            }
        }
    }
    (frames >= 2).then_some(())
}

/// Size of the frame at `at` (ISO/IEC 11172-3, 2.4.2.3).
fn frame_len(bytes: &[u8], at: usize) -> Option<usize> {
    let header = run(bytes, at, 4)?;
    if header[0] != 0xFF || header[1] & 0xE0 != 0xE0 || header[1] & 0x06 != 0x02 {
        return None;
    }
    let version = header[1] >> 3 & 3;
    let rate = usize::from(header[2] >> 4);
    let samples = *SAMPLES.get(usize::from(header[2] >> 2 & 3))?;
    let padding = usize::from(header[2] >> 1 & 1);
    let (rates, samples, factor) = match version {
        3 => (RATES_1, samples, 144_000),
        2 => (RATES_2, samples / 2, 72_000),
        0 => (RATES_2, samples / 4, 72_000),
        _ => return None,
    };
    let rate = *rates.get(rate).filter(|rate| **rate > 0)?;
    Some(factor * rate / samples + padding)
}
