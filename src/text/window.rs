//! Overlapping windows over a long text.
//!
//! A match can lie across a window's border, so each window begins inside the one before.
//!
//! Invariant: a range of at most `overlap` bytes lies whole inside at least one window.
//! Not caught: a longer range. Whoever chooses the overlap bounds the length of a match.

use std::ops::Range;

/// Cuts `text` into windows on character boundaries. Each holds at most `size` bytes, plus up to three to reach a
/// boundary, and shares at least `overlap` bytes with the next. An empty text has one empty window.
///
/// `size` is raised to `overlap` + 4 where it is less, so that every window makes progress.
pub fn windows(text: &str, size: usize, overlap: usize) -> impl Iterator<Item = Range<usize>> {
    let size = size.max(overlap.saturating_add(4));
    let mut next = Some(0_usize);
    std::iter::from_fn(move || {
        let start = next?;
        let end = text.ceil_char_boundary(start.saturating_add(size));
        next = (end < text.len()).then(|| text.floor_char_boundary(end - overlap));
        Some(start..end)
    })
}
