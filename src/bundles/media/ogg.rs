//! Ogg: pages with checksums, each one naming its size.

use super::parts::Parts;
use super::read::{byte, little32, run};

/// Generator of the checksum (RFC 3533, 6): not reflected, no inversion.
const POLYNOMIAL: u32 = 0x04C1_1DB7;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut value = (at as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 0x8000_0000 == 0 { value << 1 } else { value << 1 ^ POLYNOMIAL };
            bit += 1;
        }
        table[at] = value;
        at += 1;
    }
    table
};

pub(super) fn walk(bytes: &[u8], texts: &mut Parts) -> Option<()> {
    let mut at = 0;
    while at < bytes.len() {
        if run(bytes, at, 4)? != b"OggS" || byte(bytes, at + 4)? != 0 {
            return None;
        }
        let segments = usize::from(byte(bytes, at + 26)?);
        let body: usize = run(bytes, at + 27, segments)?.iter().map(|len| usize::from(*len)).sum();
        let page = run(bytes, at, 27 + segments + body)?;
        if checksum(page) as usize != little32(page, 22)? {
            return None;
        }
        // The first pages hold what describes the sound, comments among it.
        if little32(page, 18)? <= 2 {
            texts.push(at + 27 + segments..at + page.len());
        }
        at += page.len();
    }
    (at > 0).then_some(())
}

/// Checksum of a page, its own field counting as zeros.
pub(super) fn checksum(page: &[u8]) -> u32 {
    page.iter().enumerate().fold(0, |sum, (at, byte)| {
        let byte = if (22..26).contains(&at) { 0 } else { *byte };
        sum << 8 ^ TABLE[(sum >> 24) as usize ^ usize::from(byte)]
    })
}
