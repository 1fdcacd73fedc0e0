//! RIFF: chunks with sizes inside one chunk that is the whole file. WebP images and WAVE sounds.

use super::parts::Parts;
use super::read::{little32, run};

pub(super) fn walk_webp(bytes: &[u8], texts: &mut Parts) -> Option<()> {
    let is_known = |kind: &[u8]| {
        matches!(
            kind,
            b"VP8 " | b"VP8L" | b"VP8X" | b"ALPH" | b"ANIM" | b"ANMF" | b"ICCP" | b"EXIF" | b"XMP "
        )
    };
    walk(bytes, b"WEBP", is_known, &[b"EXIF", b"XMP "], texts)
}

pub(super) fn walk_wave(bytes: &[u8], texts: &mut Parts) -> Option<()> {
    let is_known = |kind: &[u8]| {
        matches!(
            kind,
            b"fmt " | b"data" | b"fact" | b"LIST" | b"cue " | b"smpl" | b"inst" | b"bext" | b"id3 " | b"PEAK"
        )
    };
    walk(bytes, b"WAVE", is_known, &[b"LIST", b"bext", b"id3 "], texts)
}

fn walk(
    bytes: &[u8],
    form: &[u8],
    is_known: impl Fn(&[u8]) -> bool,
    with_text: &[&[u8]],
    texts: &mut Parts,
) -> Option<()> {
    let whole = little32(bytes, 4)?.checked_add(8)?;
    if whole != bytes.len() || run(bytes, 8, 4)? != form {
        return None;
    }
    let mut at = 12;
    while at < whole {
        let kind = run(bytes, at, 4)?;
        let len = little32(bytes, at + 4)?;
        let body = at + 8..(at + 8).checked_add(len)?;
        bytes.get(body.clone())?;
        if !is_known(kind) {
            return None;
        }
        if with_text.contains(&kind) {
            texts.push(body.clone());
        }
        at = body.end;
        // Chunks begin at even offsets; some writers leave the last pad byte out.
        if len % 2 == 1 && at < whole {
            if bytes[at] != 0 {
                return None;
            }
            at += 1;
        }
    }
    (at == whole && whole > 12).then_some(())
}
