//! PNG: chunks with checksums, from IHDR to IEND, and pixel data that is one packed stream of exactly the image's size.
//!
//! Readers stop at the end of the stream and of the image: what stands behind either is seen by nobody but a script that
//! cuts it out.

use std::ops::Range;

use flate2::{Decompress, FlushDecompress, Status};

use super::read::{big32, byte, run};
use super::{MayUnpack, NotInert, Texts};

/// Chunks for people's text.
const TEXTS: [&[u8]; 4] = [b"tEXt", b"zTXt", b"iTXt", b"eXIf"];

pub(super) fn walk(bytes: &[u8], texts: Texts<'_>, may_unpack: MayUnpack<'_>) -> Result<(), NotInert> {
    let data = chunks(bytes, texts).ok_or(NotInert::BrokenStructure)?;
    let size = pixels(bytes).ok_or(NotInert::BrokenStructure)?;
    if !may_unpack(size) {
        return Err(NotInert::TooMuch);
    }
    is_whole(bytes, &data, size).then_some(()).ok_or(NotInert::BrokenStructure)
}

/// Walks the chunks; answers where the pieces of the pixel data stand.
fn chunks(bytes: &[u8], texts: &mut Vec<Range<usize>>) -> Option<Vec<Range<usize>>> {
    let mut at = 8;
    let mut data: Vec<Range<usize>> = Vec::new();
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
            // One row of them, without anything between.
            b"IDAT" if data.last().is_none_or(|last| last.end + 12 == body.start) => data.push(body.clone()),
            b"IDAT" => return None,
            b"IEND" => {
                return (len == 0 && !data.is_empty() && body.end + 4 == bytes.len()).then_some(data);
            }
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

/// Bytes of the pixels, a filter byte before each row, as the header says (PNG, third edition, sections 7 and 11.2.1).
fn pixels(bytes: &[u8]) -> Option<usize> {
    let (width, height) = (big32(bytes, 16)?, big32(bytes, 20)?);
    let (depth, colour) = (byte(bytes, 24)?, byte(bytes, 25)?);
    let samples = match (colour, depth) {
        (0, 1 | 2 | 4 | 8 | 16) | (3, 1 | 2 | 4 | 8) => 1,
        (2, 8 | 16) => 3,
        (4, 8 | 16) => 2,
        (6, 8 | 16) => 4,
        _ => return None,
    };
    let bits = samples * usize::from(depth);
    let of = |width: usize, height: usize| {
        if width == 0 || height == 0 {
            return Some(0);
        }
        width.checked_mul(bits)?.div_ceil(8).checked_add(1)?.checked_mul(height)
    };
    match byte(bytes, 28)? {
        0 if width > 0 && height > 0 => of(width, height),
        // Adam7: where each pass begins, and how far apart its pixels are.
        1 if width > 0 && height > 0 => {
            let passes = [
                (0, 8, 0, 8),
                (4, 8, 0, 8),
                (0, 4, 4, 8),
                (2, 4, 0, 4),
                (0, 2, 2, 4),
                (1, 2, 0, 2),
                (0, 1, 1, 2),
            ];
            passes.into_iter().try_fold(0_usize, |sum, (x, x_step, y, y_step)| {
                let across = width.saturating_sub(x).div_ceil(x_step);
                let down = height.saturating_sub(y).div_ceil(y_step);
                sum.checked_add(of(across, down)?)
            })
        }
        _ => None,
    }
}

/// Whether the pieces are one stream (RFC 1950) that ends with the last of them and holds `size` bytes.
fn is_whole(bytes: &[u8], pieces: &[Range<usize>], size: usize) -> bool {
    let mut stream = Decompress::new(true);
    let mut room = vec![0; 64 << 10];
    let mut ended = false;
    for piece in pieces {
        let Some(mut rest) = bytes.get(piece.clone()) else { return false };
        while !rest.is_empty() {
            if ended || stream.total_out() > size as u64 {
                return false;
            }
            let before = (stream.total_in(), stream.total_out());
            let Ok(status) = stream.decompress(rest, &mut room, FlushDecompress::None) else { return false };
            let taken = (stream.total_in() - before.0) as usize;
            ended = status == Status::StreamEnd;
            if taken == 0 && stream.total_out() == before.1 && !ended {
                return false;
            }
            rest = &rest[taken.min(rest.len())..];
        }
    }
    // What was taken in whole may still wait to be given out.
    while !ended && stream.total_out() <= size as u64 {
        let before = stream.total_out();
        match stream.decompress(&[], &mut room, FlushDecompress::None) {
            Ok(status) => ended = status == Status::StreamEnd,
            Err(_) => return false,
        }
        if stream.total_out() == before && !ended {
            return false;
        }
    }
    ended && stream.total_out() == size as u64
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
            | b"oFFs"
            | b"vpAg"
            | b"orNT"
            | b"iDOT"
    )
}
