//! What gzip and zlib packed: how either begins, and what it holds.

use flate2::{Decompress, FlushDecompress};

/// How either begins, in base64.
const HEADS: [&[u8]; 5] = [b"H4sI", b"eJ", b"eN", b"eA", b"eF"];

/// Whether what `base64` says may be packed.
pub(super) fn may_begin(base64: &[u8]) -> bool {
    HEADS.iter().any(|head| base64.starts_with(head))
}

/// What gzip or zlib packed, up to so many bytes; none where it is neither, or nothing.
pub(super) fn unpack(packed: &[u8], room: usize) -> Option<Vec<u8>> {
    let (is_zlib, packed) = match packed {
        [0x1F, 0x8B, 8, ..] => (false, behind_gzip_header(packed)?),
        [0x78, ..] => (true, packed),
        _ => return None,
    };
    let mut out = Vec::with_capacity(room);
    // What is cut short or damaged says what it says up to there.
    let _ = Decompress::new(is_zlib).decompress_vec(packed, &mut out, FlushDecompress::None);
    out.truncate(room);
    (!out.is_empty()).then_some(out)
}

/// What a member of gzip holds behind its header (RFC 1952, 2.3); none where the header is cut short.
fn behind_gzip_header(bytes: &[u8]) -> Option<&[u8]> {
    const HEADER: usize = 10;
    const CHECK: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    let has = |flag: u8| bytes[3] & flag != 0;
    let mut rest = bytes.get(HEADER..)?;
    if has(EXTRA) {
        let len = u16::from_le_bytes(*rest.first_chunk()?);
        rest = rest.get(2 + usize::from(len)..)?;
    }
    for flag in [NAME, COMMENT] {
        if has(flag) {
            rest = &rest[memchr::memchr(0, rest)? + 1..];
        }
    }
    if has(CHECK) { rest.get(2..) } else { Some(rest) }
}
