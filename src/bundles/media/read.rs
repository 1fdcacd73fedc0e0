//! Numbers and runs of bytes at offsets, `None` past the end.

/// The byte at `at`.
pub(super) fn byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// `len` bytes from `at` on.
pub(super) fn run(bytes: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    bytes.get(at..at.checked_add(len)?)
}

/// Two bytes, the high one first.
pub(super) fn big16(bytes: &[u8], at: usize) -> Option<usize> {
    run(bytes, at, 2).map(|b| usize::from(u16::from_be_bytes([b[0], b[1]])))
}

/// Four bytes, the highest one first.
pub(super) fn big32(bytes: &[u8], at: usize) -> Option<usize> {
    run(bytes, at, 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize)
}

/// Four bytes, the lowest one first.
pub(super) fn little32(bytes: &[u8], at: usize) -> Option<usize> {
    run(bytes, at, 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
}

/// Whether all of it is zero, as padding is.
pub(super) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}
