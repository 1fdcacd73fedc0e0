//! PNG: chunks with checksums, from IHDR to IEND, and pixel data that is one packed stream of exactly the image's size. Packed
//! texts and the colour profile are whole streams, too, and are read.
//!
//! Readers stop at the end of the stream and of the image: what stands behind either is seen by nobody but a script that
//! cuts it out.

use std::ops::Range;

use flate2::{Decompress, FlushDecompress, Status};

use super::packed::unpacked;
use super::parts::Parts;
use super::read::{big32, byte, run};
use super::{MayUnpack, NotInert, Texts};

/// Largest packed text and largest colour profile, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;
const PROFILE_BYTES_MAX: usize = 8 << 20;
/// Longest keyword of a text (PNG, third edition, section 11.3.3.2).
const KEYWORD_BYTES_MAX: usize = 79;
/// Bytes of the head of a colour profile, and of each entry of the table behind it (ICC.1:2022, sections 7.2 and 7.3).
const PROFILE_HEAD_BYTES: usize = 128;
const PROFILE_TAG_BYTES: usize = 12;

pub(super) fn walk(bytes: &[u8], texts: Texts<'_>, may_unpack: MayUnpack<'_>) -> Result<(), NotInert> {
    let mut may_more = |packed: usize, max: usize| may_unpack(packed.saturating_mul(RATIO_MAX).min(max));
    let data = chunks(bytes, texts, &mut may_more)?;
    let size = pixels(bytes).ok_or(NotInert::BrokenStructure)?;
    if !may_unpack(size) {
        return Err(NotInert::TooMuch);
    }
    is_whole(bytes, &data, size).then_some(()).ok_or(NotInert::BrokenStructure)
}

/// Walks the chunks and unpacks what is packed in them; answers where the pieces of the pixel data stand.
fn chunks(
    bytes: &[u8],
    texts: &mut Parts,
    may_unpack: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Vec<Range<usize>>, NotInert> {
    let mut packed = Vec::new();
    let data = tiled(bytes, texts, &mut packed).ok_or(NotInert::BrokenStructure)?;
    for part in packed {
        let (stream, max) = match part {
            Packed::Text(stream) => (stream, TEXT_BYTES_MAX),
            Packed::Profile(stream) => (stream, PROFILE_BYTES_MAX),
        };
        if !may_unpack(stream.len(), max) {
            return Err(NotInert::TooMuch);
        }
        let whole = unpacked(stream, max).ok_or(NotInert::BrokenStructure)?;
        if matches!(part, Packed::Profile(_)) && !is_profile(&whole) {
            return Err(NotInert::BrokenStructure);
        }
        texts.add(whole);
    }
    Ok(data)
}

/// Most bytes that a packed byte can stand for (RFC 1951).
const RATIO_MAX: usize = 1_032;

/// A packed part of a chunk.
enum Packed<'b> {
    Text(&'b [u8]),
    Profile(&'b [u8]),
}

/// What stands behind the keyword of a chunk.
fn behind_keyword(body: &[u8]) -> Option<&[u8]> {
    let end = body.iter().position(|byte| *byte == 0).filter(|end| (1..=KEYWORD_BYTES_MAX).contains(end))?;
    body.get(end + 1..)
}

/// The packed part of an international text; `None` inside when it is not packed.
fn packed_text(body: &[u8]) -> Option<Option<&[u8]>> {
    let rest = behind_keyword(body)?;
    let is_packed = match rest.get(..2)? {
        [0, _] => false,
        [1, 0] => true,
        _ => return None,
    };
    // A language and the keyword in it, each with its end.
    let rest = rest.get(2..)?;
    let language = rest.iter().position(|byte| *byte == 0)?;
    let rest = rest.get(language + 1..)?;
    let keyword = rest.iter().position(|byte| *byte == 0)?;
    Some(is_packed.then_some(rest.get(keyword + 1..)?))
}

/// Whether bytes are a colour profile (ICC.1:2022): its size, its signature, and a table whose entries lie in it.
fn is_profile(profile: &[u8]) -> bool {
    let is_headed = big32(profile, 0) == Some(profile.len()) && run(profile, 36, 4) == Some(b"acsp");
    let Some(count) = big32(profile, PROFILE_HEAD_BYTES).filter(|_| is_headed) else { return false };
    let table = PROFILE_HEAD_BYTES + 4;
    let fits = |nth: usize| {
        let entry = table + PROFILE_TAG_BYTES * nth;
        let (from, len) = (big32(profile, entry + 4)?, big32(profile, entry + 8)?);
        run(profile, from, len).filter(|_| from >= table)
    };
    count <= profile.len() / PROFILE_TAG_BYTES && (0..count).all(|nth| fits(nth).is_some())
}

/// Walks the chunks; answers where the pieces of the pixel data stand.
fn tiled<'b>(bytes: &'b [u8], texts: &mut Parts, packed: &mut Vec<Packed<'b>>) -> Option<Vec<Range<usize>>> {
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
            b"tEXt" | b"eXIf" => texts.push(body.clone()),
            b"zTXt" | b"iCCP" => {
                let whole = bytes.get(body.clone())?;
                let stream = behind_keyword(whole)?.strip_prefix(&[0])?;
                // The keyword is text as well.
                texts.push(body.start..body.end - stream.len());
                packed.push(if kind == b"zTXt" { Packed::Text(stream) } else { Packed::Profile(stream) });
            }
            b"iTXt" => match packed_text(bytes.get(body.clone())?)? {
                Some(stream) => {
                    texts.push(body.start..body.end - stream.len());
                    packed.push(Packed::Text(stream));
                }
                None => texts.push(body.clone()),
            },
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
