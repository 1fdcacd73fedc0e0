//! JPEG: segments from SOI to EOI, with entropy-coded data after each scan header.

use super::parts::Parts;
use super::read::{big16, byte};

pub(super) fn walk(bytes: &[u8], texts: &mut Parts) -> Option<()> {
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
        if !is_sized(marker, bytes.get(body.clone())?) {
            return None;
        }
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

/// Whether a segment has the size that its contents tell (T.81, annex B.2): nothing stands behind them.
fn is_sized(marker: u8, body: &[u8]) -> bool {
    let tables = |mut body: &[u8], size: &dyn Fn(&[u8]) -> Option<usize>| {
        while !body.is_empty() {
            match size(body).and_then(|size| body.get(size..)) {
                Some(rest) => body = rest,
                None => return false,
            }
        }
        true
    };
    let of =
        |at: usize, base: usize, each: usize| byte(body, at).map(|count| base + each * usize::from(count));
    match marker {
        // Tables of Huffman codes: a class, sixteen counts, so many values.
        0xC4 => tables(body, &|table| {
            let counts = table.get(1..17)?;
            Some(17 + counts.iter().map(|count| usize::from(*count)).sum::<usize>())
        }),
        // Tables for quantisation, of one or two bytes each.
        0xDB => tables(body, &|table| Some(if byte(table, 0)? >> 4 == 0 { 65 } else { 129 })),
        // Frame and scan headers list their components.
        0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => of(5, 6, 3) == Some(body.len()),
        0xDA => of(0, 4, 2) == Some(body.len()),
        0xDC | 0xDD => body.len() == 2,
        0xCC => body.len().is_multiple_of(2),
        0xE0..=0xEF | 0xFE => true,
        // Extensions that no reader knows.
        _ => false,
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
