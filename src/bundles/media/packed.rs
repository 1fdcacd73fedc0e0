//! Streams of RFC 1950 inside a file: one that begins and ends where its part does, and is no larger than it may be.

use flate2::{Decompress, FlushDecompress, Status};

/// The bytes that a whole part holds packed; `None` when it is no such stream, is cut, holds more than `max` bytes or has
/// anything behind its end.
pub(super) fn unpacked(part: &[u8], max: usize) -> Option<Vec<u8>> {
    let mut stream = Decompress::new(true);
    let mut out = Vec::with_capacity(part.len().saturating_mul(2).min(max).max(64));
    loop {
        let (taken, given) = (stream.total_in() as usize, out.len());
        let status = stream.decompress_vec(part.get(taken..)?, &mut out, FlushDecompress::None).ok()?;
        if out.len() > max {
            return None;
        }
        if status == Status::StreamEnd {
            return (stream.total_in() as usize == part.len()).then_some(out);
        }
        if out.len() == out.capacity() {
            out.reserve(out.len().max(64));
        } else if stream.total_in() as usize == taken && out.len() == given {
            return None;
        }
    }
}
