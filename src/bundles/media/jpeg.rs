//! JPEG: segments from SOI to EOI, with entropy-coded data after each scan header.

use std::ops::Range;

use super::read::{big16, byte};

pub(super) fn walk(bytes: &[u8], texts: &mut Vec<Range<usize>>) -> Option<()> {
    let mut at = 2;
    let mut has_scan = false;
    loop {
        if byte(bytes, at)? != 0xFF {
            return None;
        }
        // Any number of fill bytes may stand before a marker.
        while byte(bytes, at + 1)? == 0xFF {
            at += 1;
        }
        let marker = byte(bytes, at + 1)?;
        at += 2;
        match marker {
            0xD9 => return (has_scan && at == bytes.len()).then_some(()),
            // SOI again, restart markers outside a scan, and reserved ones.
            0x00..=0xBF | 0xD0..=0xD8 => return None,
            _ => {}
        }
        let len = big16(bytes, at).filter(|len| *len >= 2)?;
        let body = at + 2..at + len;
        bytes.get(body.clone())?;
        // Application segments hold metadata (EXIF, XMP, profiles), 0xFE a comment.
        if matches!(marker, 0xE0..=0xEF | 0xFE) {
            texts.push(body.clone());
        }
        at = body.end;
        if marker == 0xDA {
            has_scan = true;
            at = after_scan(bytes, at)?;
        }
    }
}

/// Where the entropy-coded data ends: at a marker that is neither a stuffed zero nor a restart.
fn after_scan(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr(0xFF, bytes.get(at..)?)?;
        match byte(bytes, at + 1)? {
            0x00 | 0xD0..=0xD7 => at += 2,
            0xFF => at += 1,
            _ => return Some(at),
        }
    }
}
