//! Images, fonts and sounds: whether a file is wholly what its name and its first bytes say.
//!
//! Such a file is inert: no agent runs it, and nothing is hidden in it, since each byte of it belongs to the structure of
//! its format. A file with anything before, after or between is none: an archive behind an image, a script in a font.
//! Parts that hold text for people (PNG `tEXt`, JPEG comments) are named, to be scanned like every other text; packed ones are
//! unpacked, and so is every run of bytes that reads like text, wherever it stands: an agent can be told to read it there.
//!
//! Only the structure is walked; outlines and sounds are not decoded, and pixels only unpacked where something could stand
//! behind them. Time is linear in the file and in what `MayUnpack` admits. Not looked into: the tables of WOFF 2, which are
//! one Brotli stream.

mod finder;
mod font;
mod gif;
mod jpeg;
mod mpeg;
mod ogg;
mod packed;
mod parts;
mod png;
mod read;
mod riff;

use std::ops::Range;

use parts::Parts;

/// A format that is known to be inert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Media {
    /// PNG (W3C PNG, third edition).
    Png,
    /// JPEG (ITU-T T.81).
    Jpeg,
    /// GIF (GIF89a specification).
    Gif,
    /// WebP (RFC 9649).
    WebP,
    /// TrueType and OpenType fonts (OpenType 1.9).
    Font,
    /// WOFF (W3C WOFF 1.0) and WOFF 2.
    Woff,
    /// WAVE sound (RIFF).
    Wave,
    /// MP3 sound (ISO/IEC 11172-3), with ID3 tags.
    Mp3,
    /// Ogg sound (RFC 3533).
    Ogg,
    /// A file that the Finder of macOS leaves beside others: AppleDouble (RFC 1740), `.DS_Store`.
    Finder,
}

/// What was found out about a file of such a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inert {
    /// Its format.
    pub media: Media,
    /// Parts that hold text for people, or read like text, as bytes of the file.
    pub texts: Vec<Range<usize>>,
    /// Such parts that had to be unpacked or put together.
    pub unpacked: Vec<Vec<u8>>,
}

/// What stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotInert {
    /// The name has no extension of such a format.
    OtherName,
    /// The first bytes are of another format than the name.
    OtherMagic,
    /// The structure is broken, or bytes belong to no part of it.
    BrokenStructure,
    /// To see whether it is would take more work than may be done.
    TooMuch,
}

/// Asked whether so many bytes may be unpacked.
pub type MayUnpack<'m> = &'m mut dyn FnMut(usize) -> bool;

/// Whether the file at `path` is wholly of the inert format that its extension names.
///
/// # Errors
/// It is not, and why.
pub fn inert(path: &str, bytes: &[u8], may_unpack: MayUnpack<'_>) -> Result<Inert, NotInert> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if finder::is_named(name) && finder::is_marked(name, bytes) {
        let mut parts = Parts::default();
        finder::walk(name, bytes, &mut parts).ok_or(NotInert::BrokenStructure)?;
        let (texts, unpacked) = parts.finish(bytes);
        return Ok(Inert { media: Media::Finder, texts, unpacked });
    }
    let (_, extension) = name.rsplit_once('.').ok_or(NotInert::OtherName)?;
    let (media, magics, walk) = format_of(&extension.to_ascii_lowercase()).ok_or(NotInert::OtherName)?;
    if !magics.iter().any(|magic| bytes.starts_with(magic)) {
        return Err(NotInert::OtherMagic);
    }
    let mut parts = Parts::default();
    match walk {
        Walk::Plain(walk) => walk(bytes, &mut parts).ok_or(NotInert::BrokenStructure)?,
        Walk::Packed(walk) => walk(bytes, &mut parts, may_unpack)?,
    }
    let (texts, unpacked) = parts.finish(bytes);
    Ok(Inert { media, texts, unpacked })
}

/// Walks a file; `None` when a byte of it is out of place. Adds the parts that hold text.
enum Walk {
    Plain(fn(&[u8], Texts<'_>) -> Option<()>),
    /// Some of it must be unpacked to be seen to its end.
    Packed(fn(&[u8], Texts<'_>, MayUnpack<'_>) -> Result<(), NotInert>),
}

/// Where the parts that hold text are noted.
type Texts<'t> = &'t mut Parts;

fn format_of(extension: &str) -> Option<(Media, &'static [&'static [u8]], Walk)> {
    use Walk::{Packed, Plain};
    Some(match extension {
        "png" => (Media::Png, &[b"\x89PNG\r\n\x1a\n"], Packed(png::walk)),
        "jpg" | "jpeg" => (Media::Jpeg, &[b"\xff\xd8\xff"], Plain(jpeg::walk)),
        "gif" => (Media::Gif, &[b"GIF87a", b"GIF89a"], Plain(gif::walk)),
        "webp" => (Media::WebP, &[b"RIFF"], Plain(riff::walk_webp)),
        "ttf" | "otf" => (Media::Font, &[b"\0\x01\0\0", b"OTTO", b"true"], Plain(font::walk)),
        "woff" => (Media::Woff, &[b"wOFF"], Packed(font::walk_woff)),
        "woff2" => (Media::Woff, &[b"wOF2"], Plain(font::walk_woff2)),
        "wav" => (Media::Wave, &[b"RIFF"], Plain(riff::walk_wave)),
        "mp3" => {
            (Media::Mp3, &[b"ID3", b"\xff\xfb", b"\xff\xfa", b"\xff\xf3", b"\xff\xf2"], Plain(mpeg::walk))
        }
        "ogg" | "oga" | "opus" => (Media::Ogg, &[b"OggS"], Plain(ogg::walk)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
