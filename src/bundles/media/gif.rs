//! GIF: a screen descriptor, blocks made of sub-blocks, a trailer.

use super::parts::Parts;
use super::read::{byte, run};

pub(super) fn walk(bytes: &[u8], texts: &mut Parts) -> Option<()> {
    let mut at = 13 + table(byte(bytes, 10)?);
    let mut has_image = false;
    loop {
        match byte(bytes, at)? {
            0x3B => return (has_image && at + 1 == bytes.len()).then_some(()),
            0x21 => {
                let label = byte(bytes, at + 1)?;
                let body = at + 2;
                at = sub_blocks(bytes, body)?;
                // Comments, plain text, and what applications add (XMP among it).
                match label {
                    0xFE | 0x01 | 0xFF => {
                        texts.push(body..at);
                        texts.add(joined(&bytes[body..at]));
                    }
                    0xF9 => {}
                    _ => return None,
                }
            }
            0x2C => {
                has_image = true;
                run(bytes, at, 10)?;
                // The descriptor, its colour table, the size of codes, the data.
                at = sub_blocks(bytes, at + 10 + table(byte(bytes, at + 9)?) + 1)?;
            }
            _ => return None,
        }
    }
}

/// Size of the colour table that a packed field announces.
fn table(packed: u8) -> usize {
    if packed & 0x80 == 0 { 0 } else { 3 << ((packed & 7) + 1) }
}

/// What sub-blocks hold: their sizes stand between words otherwise.
fn joined(mut blocks: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(blocks.len());
    while let Some((len, rest)) = blocks.split_first() {
        let len = usize::from(*len).min(rest.len());
        out.extend_from_slice(&rest[..len]);
        blocks = &rest[len..];
    }
    out
}

/// Where a row of sub-blocks ends.
fn sub_blocks(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let len = usize::from(byte(bytes, at)?);
        at += 1 + len;
        if len == 0 {
            return (at <= bytes.len()).then_some(at);
        }
    }
}
