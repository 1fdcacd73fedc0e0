//! Bytes to text: UTF-8, UTF-16 with a mark, or one byte a character; and the readable pieces of what is no text.

/// Share of control characters from which bytes are no text, as one in so many.
const CONTROLS_ONE_IN: usize = 64;
/// Shortest readable piece that is looked at in a binary, in bytes.
const STRING_BYTES_MIN: usize = 6;

/// A text.
#[derive(Debug)]
pub(in crate::bundles) struct Decoded {
    /// The text, without a byte order mark.
    pub text: String,
    /// Whether its bytes are UTF-8.
    pub is_utf8: bool,
}

/// The text of a file; `None` when it is none.
pub(in crate::bundles) fn decode(bytes: &[u8]) -> Option<Decoded> {
    if let Some(rest) = bytes.strip_prefix(b"\xff\xfe") {
        return utf16(rest, u16::from_le_bytes);
    }
    if let Some(rest) = bytes.strip_prefix(b"\xfe\xff") {
        return utf16(rest, u16::from_be_bytes);
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let controls =
        bytes.iter().filter(|byte| matches!(byte, 0..=8 | 14..=31 | 127) && **byte != 0x1b).count();
    if bytes.contains(&0) || controls * CONTROLS_ONE_IN > bytes.len() {
        return None;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(Decoded { text: text.to_owned(), is_utf8: true });
    }
    // What is neither is read as Latin-1: every byte is a character, so none is overlooked. Binary data has more of the
    // upper half than any text in it.
    let upper = bytes.iter().filter(|byte| **byte >= 0x80).count();
    (upper * 3 < bytes.len())
        .then(|| Decoded { text: bytes.iter().map(|byte| char::from(*byte)).collect(), is_utf8: false })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Decoded> {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: String = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    let is_text = bytes.len().is_multiple_of(2) && !text.contains(['\0', char::REPLACEMENT_CHARACTER]);
    is_text.then_some(Decoded { text, is_utf8: false })
}

/// The readable pieces of parts of a binary that hold text, in any script, one a line, at most `max` bytes of them; and whether
/// that is all of them.
pub(in crate::bundles) fn readable<'p>(parts: impl Iterator<Item = &'p [u8]>, max: usize) -> (String, bool) {
    let mut out = String::new();
    for part in parts {
        for piece in
            part.utf8_chunks().flat_map(|chunk| chunk.valid().split(|c: char| c.is_control() && c != '\t'))
        {
            if piece.chars().nth(STRING_BYTES_MIN - 1).is_none() {
                continue;
            }
            if out.len() + piece.len() >= max {
                return (out, false);
            }
            out.push_str(piece);
            out.push('\n');
        }
    }
    (out, true)
}

/// The readable pieces of a binary, one a line, at most `max` bytes of them.
pub(in crate::bundles) fn strings(bytes: &[u8], max: usize) -> String {
    let mut out = String::new();
    for piece in bytes.split(|byte| !matches!(byte, b' '..=b'~' | b'\t')) {
        if piece.len() >= STRING_BYTES_MIN {
            if out.len() + piece.len() >= max {
                break;
            }
            // All of it is ASCII.
            out.push_str(std::str::from_utf8(piece).unwrap_or_default());
            out.push('\n');
        }
    }
    out
}
