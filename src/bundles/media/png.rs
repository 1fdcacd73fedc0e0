//! PNG: chunks with checksums, from IHDR to IEND.

use std::ops::Range;

use super::read::{big32, run};

/// Chunks for people's text.
const TEXTS: [&[u8]; 4] = [b"tEXt", b"zTXt", b"iTXt", b"eXIf"];

pub(super) fn walk(bytes: &[u8], texts: &mut Vec<Range<usize>>) -> Option<()> {
    let mut at = 8;
    let mut has_data = false;
    loop {
        let len = big32(bytes, at)?;
        let kind = run(bytes, at + 4, 4)?;
        let body = at + 8..(at + 8).checked_add(len)?;
        let sum = big32(bytes, body.end)?;
        if crc32fast::hash(bytes.get(at + 4..body.end)?) as usize != sum {
            return None;
        }
        let is_first = at == 8;
        match kind {
            b"IHDR" if is_first && len == 13 => {}
            _ if is_first => return None,
            b"IDAT" => has_data = true,
            b"IEND" => return (len == 0 && has_data && body.end + 4 == bytes.len()).then_some(()),
            // Packed text is not read here, so a file with some is not wholly looked at.
            b"zTXt" => return None,
            kind if TEXTS.contains(&kind) => texts.push(body.clone()),
            kind if kind.iter().all(u8::is_ascii_alphabetic) && is_known(kind) => {}
            // What is in a chunk of one's own, nobody knows.
            _ => return None,
        }
        at = body.end + 4;
    }
}

/// Chunks of the standard and of its registered extensions.
fn is_known(kind: &[u8]) -> bool {
    matches!(
        kind,
        b"PLTE"
            | b"tRNS"
            | b"cHRM"
            | b"gAMA"
            | b"iCCP"
            | b"sBIT"
            | b"sRGB"
            | b"cICP"
            | b"mDCV"
            | b"cLLI"
            | b"bKGD"
            | b"hIST"
            | b"pHYs"
            | b"sPLT"
            | b"tIME"
            | b"acTL"
            | b"fcTL"
            | b"fdAT"
            | b"oFFs"
            | b"vpAg"
            | b"orNT"
            | b"iDOT"
    )
}
