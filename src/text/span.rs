//! Offsets in the unit the caller counts in, and line and column numbers.
//!
//! Inside the crate every offset counts UTF-8 bytes. Callers whose strings are UTF-16 or UTF-32 get theirs by one
//! pass over the text for all offsets together. An offset inside a character counts as the start of it; one past the
//! end counts as the end.

/// The unit in which offsets count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OffsetEncoding {
    /// Bytes of UTF-8.
    #[default]
    Utf8,
    /// 16-bit units of UTF-16, as JavaScript and Java count.
    Utf16,
    /// Unicode code points, as Python counts.
    Utf32,
}

impl OffsetEncoding {
    fn units(self, text: &str) -> usize {
        match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.bytes().map(utf16_units).sum(),
            Self::Utf32 => text.bytes().filter(|&byte| is_char_start(byte)).count(),
        }
    }
}

/// Converts byte offsets of `text`, in any order, to `encoding` in one pass. On ASCII text and for
/// [`OffsetEncoding::Utf8`] nothing changes but offsets that lay past the end or inside a character.
pub fn convert_offsets(text: &str, encoding: OffsetEncoding, byte_offsets: &mut [usize]) {
    for offset in byte_offsets.iter_mut() {
        *offset = text.floor_char_boundary(*offset);
    }
    if encoding == OffsetEncoding::Utf8 || byte_offsets.is_empty() || text.is_ascii() {
        return;
    }
    let mut order: Vec<usize> = (0..byte_offsets.len()).collect();
    order.sort_unstable_by_key(|&index| byte_offsets[index]);
    let (mut seen, mut units) = (0, 0);
    for index in order {
        let offset = byte_offsets[index];
        units += encoding.units(&text[seen..offset]);
        seen = offset;
        byte_offsets[index] = units;
    }
}

/// Line of one byte offset, from 1; an offset past the end counts as the end. For problems in files, which are few.
pub fn line_of(text: &str, byte_offset: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..byte_offset.min(text.len())]).count() + 1
}

/// Lines and columns of byte offsets, in any order; both count from 1, columns in units of `encoding`. A line ends at
/// `\n`, `\r\n` or a lone `\r`. Numbers beyond `u32::MAX` stay at that.
pub fn line_columns(text: &str, encoding: OffsetEncoding, byte_offsets: &[usize]) -> Vec<(u32, u32)> {
    let bytes = text.as_bytes();
    let mut order: Vec<usize> = (0..byte_offsets.len()).collect();
    order.sort_unstable_by_key(|&index| byte_offsets[index]);
    let mut answers = vec![(1, 1); byte_offsets.len()];
    let mut breaks = memchr::memchr2_iter(b'\n', b'\r', bytes).peekable();
    // `counted` bytes of the current line are already in `units`, so that many offsets on one long line stay linear.
    let (mut line, mut counted, mut units) = (1_usize, 0, 0);
    for index in order {
        let offset = text.floor_char_boundary(byte_offsets[index]);
        while let Some(position) = breaks.next_if(|&position| position < offset) {
            let is_pair = bytes[position] == b'\r' && bytes.get(position + 1) == Some(&b'\n');
            if !is_pair {
                (line, counted, units) = (line + 1, position + 1, 0);
            }
        }
        units += encoding.units(&text[counted..offset]);
        counted = offset;
        answers[index] = (saturate(line), saturate(units + 1));
    }
    answers
}

fn saturate(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn is_char_start(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// A lead byte of four announces a surrogate pair, a continuation byte adds nothing.
fn utf16_units(byte: u8) -> usize {
    usize::from(is_char_start(byte)) + usize::from(byte >= 0xF0)
}
