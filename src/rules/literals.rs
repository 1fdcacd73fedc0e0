//! Thousands of literals in one pass, without an automaton.
//!
//! Idea: every literal is represented by four neighbouring bytes of it, the rarest it has. At each position of a text
//! the four bytes there, with letter case folded away, are looked up in a bitmap of 128 KiB; only a hit is looked at
//! closer, first the exact four bytes, then the whole literal around them.
//!
//! Why not an Aho-Corasick DFA: for the five thousand literals of the built-in rules it takes 55 MiB, so that every
//! byte of a text waits for memory (150 MB/s measured); the bitmap stays close to the core. See the benchmark
//! `engine` for both in one run.
//!
//! Invariants: every occurrence of every literal is reported, in any ASCII case; never anything else. Work is linear in
//! the text: at most the number of literals that share one piece is compared per position.

use std::ops::Range;

/// Bytes that represent a literal.
const PIECE: usize = 4;
/// Bits of the bitmap's index: 2^20 bits are 128 KiB, well inside a second-level cache, and few of them are set.
const BITMAP_BITS: u32 = 20;
/// Bits of the bucket table's index.
const BUCKET_BITS: u32 = 14;
/// Sets the case bit of four bytes. It also joins some punctuation with others, which the closer look tells apart.
const FOLD: u32 = 0x2020_2020;

/// One literal through one of its pieces.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The folded piece.
    piece: u32,
    literal: u32,
    /// Where the piece stands in the literal.
    offset: u32,
    /// The folded bytes of the literal that follow the piece, as far as there are any: nearly every look ends here,
    /// without a trip to the literal itself.
    next: u32,
    next_mask: u32,
}

impl Entry {
    fn new(piece: [u8; PIECE], literal: u32, text: &[u8], offset: usize) -> Self {
        let rest = text.get(offset + PIECE..).unwrap_or_default();
        let mut mask = [0u8; PIECE];
        mask[..rest.len().min(PIECE)].fill(0xFF);
        let next_mask = u32::from_le_bytes(mask);
        Self {
            piece: u32::from_le_bytes(piece) | FOLD,
            literal,
            offset: offset as u32,
            next: (load(rest) | FOLD) & next_mask,
            next_mask,
        }
    }
}

/// Up to four bytes; those that are missing are zero.
fn load(bytes: &[u8]) -> u32 {
    let mut out = [0u8; PIECE];
    let len = bytes.len().min(PIECE);
    out[..len].copy_from_slice(&bytes[..len]);
    u32::from_le_bytes(out)
}

/// Literals to be found.
pub(super) struct Literals {
    texts: Vec<Box<[u8]>>,
    bitmap: Box<[u64]>,
    /// Bounds of each bucket in `entries`.
    buckets: Box<[u32]>,
    entries: Box<[Entry]>,
}

impl Literals {
    /// Prepares literals of at least three bytes; ASCII letters in lower case. Shorter ones are not found.
    pub(super) fn new(texts: Vec<Box<[u8]>>) -> Self {
        let mut entries = Vec::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            add_pieces(index as u32, text, &mut entries);
        }
        entries.sort_by_key(|e: &Entry| (bucket_of(e.piece), e.piece, e.literal));
        let mut bitmap = vec![0u64; 1 << (BITMAP_BITS - 6)];
        let mut buckets = vec![0u32; (1 << BUCKET_BITS) + 1];
        for entry in &entries {
            let bit = bit_of(entry.piece);
            bitmap[bit >> 6] |= 1 << (bit & 63);
            buckets[bucket_of(entry.piece) + 1] += 1;
        }
        for at in 1..buckets.len() {
            buckets[at] += buckets[at - 1];
        }
        Self { texts, bitmap: bitmap.into(), buckets: buckets.into(), entries: entries.into() }
    }

    /// Heap used, in bytes.
    pub(super) fn memory_usage(&self) -> usize {
        self.bitmap.len() * 8
            + self.buckets.len() * 4
            + self.entries.len() * size_of::<Entry>()
            + self.texts.iter().map(|t| t.len() + size_of::<Box<[u8]>>()).sum::<usize>()
    }

    /// Calls `found(literal, where)` for every occurrence of which a piece begins in `slice`. Slices that follow on each
    /// other report every occurrence of the whole text once.
    pub(super) fn find(&self, text: &[u8], slice: Range<usize>, mut found: impl FnMut(usize, Range<usize>)) {
        let bitmap: &[u64; 1 << (BITMAP_BITS - 6)] =
            self.bitmap[..].try_into().expect("built with exactly this size");
        let whole = slice.end.min(text.len().saturating_sub(PIECE - 1));
        if slice.start < whole {
            let pieces = text[slice.start..whole + PIECE - 1].windows(PIECE);
            for (at, piece) in (slice.start..).zip(pieces) {
                let piece = u32::from_le_bytes(piece.try_into().expect("windows have this length")) | FOLD;
                let bit = bit_of(piece);
                if bitmap[bit >> 6] >> (bit & 63) & 1 != 0 {
                    self.look_closer(text, at, piece, &mut found);
                }
            }
        }
        // The last three bytes stand alone; what is missing of a piece counts as a folded zero.
        for at in whole.max(slice.start)..slice.end.min(text.len()) {
            self.look_closer(text, at, load(&text[at..]) | FOLD, &mut found);
        }
    }

    #[cold]
    #[inline(never)]
    fn look_closer(&self, text: &[u8], at: usize, piece: u32, found: &mut impl FnMut(usize, Range<usize>)) {
        let bucket = bucket_of(piece);
        let next = load(text.get(at + PIECE..).unwrap_or_default()) | FOLD;
        for entry in &self.entries[self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize] {
            if entry.piece != piece || next & entry.next_mask != entry.next {
                continue;
            }
            let literal = &self.texts[entry.literal as usize];
            let Some(start) = at.checked_sub(entry.offset as usize) else { continue };
            if text.get(start..start + literal.len()).is_some_and(|t| t.eq_ignore_ascii_case(literal)) {
                found(entry.literal as usize, start..start + literal.len());
            }
        }
    }
}

/// The entries of one literal: its rarest piece, or for three bytes every piece that begins with them.
fn add_pieces(literal: u32, text: &[u8], entries: &mut Vec<Entry>) {
    if let [a, b, c] = *text {
        // The case bit is set in every folded byte, so half of all values stand for the byte that follows.
        for next in (0..=255u8).filter(|byte| byte & 0x20 != 0) {
            entries.push(Entry::new([a, b, c, next], literal, text, 0));
        }
        return;
    }
    let rarest = text.windows(PIECE).enumerate().min_by_key(|(_, piece)| commonness(piece));
    if let Some((offset, piece)) = rarest {
        entries.push(Entry::new(piece.try_into().expect("windows have this length"), literal, text, offset));
    }
}

/// How common a piece is in ordinary text and code: the sum of the ranks of its bytes.
fn commonness(piece: &[u8]) -> u32 {
    piece.iter().map(|byte| u32::from(COMMONNESS[usize::from(*byte)])).sum()
}

/// How common each byte is; the rarest have 0.
const COMMONNESS: [u8; 256] = {
    /// From the commonest to the rarest; what is not listed is rarer still.
    const BY_FREQUENCY: &[u8] = b" etaoinsrhldcumfpgwyb.,v_k()\"=-;:'/x{}0j1z2q[]*<>3#456789";
    let mut ranks = [0; 256];
    let mut at = 0;
    while at < BY_FREQUENCY.len() {
        let rank = (BY_FREQUENCY.len() - at) as u8;
        ranks[BY_FREQUENCY[at] as usize] = rank;
        ranks[BY_FREQUENCY[at].to_ascii_uppercase() as usize] = rank;
        at += 1;
    }
    ranks
};

/// Index into the bitmap, by multiplicative hashing (Knuth, TAOCP 3, 6.4).
fn bit_of(piece: u32) -> usize {
    (piece.wrapping_mul(0x9E37_79B1) >> (32 - BITMAP_BITS)) as usize
}

/// Index into the buckets.
fn bucket_of(piece: u32) -> usize {
    (piece.wrapping_mul(0x85EB_CA6B) >> (32 - BUCKET_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(literals: &[&str], text: &str, slice_len: usize) -> Vec<(usize, Range<usize>)> {
        let set =
            Literals::new(literals.iter().map(|l| l.to_ascii_lowercase().into_bytes().into()).collect());
        let mut out = Vec::new();
        let mut start = 0;
        while start < text.len() {
            let end = (start + slice_len).min(text.len());
            set.find(text.as_bytes(), start..end, |literal, at| out.push((literal, at)));
            start = end;
        }
        out.sort_by_key(|(literal, at)| (*literal, at.start));
        out
    }

    fn by_hand(literals: &[&str], text: &str) -> Vec<(usize, Range<usize>)> {
        let text = text.to_ascii_lowercase();
        let mut out = Vec::new();
        for (index, literal) in literals.iter().enumerate() {
            let literal = literal.to_ascii_lowercase();
            for start in 0..text.len().saturating_sub(literal.len() - 1) {
                if text.as_bytes()[start..].starts_with(literal.as_bytes()) {
                    out.push((index, start..start + literal.len()));
                }
            }
        }
        out
    }

    #[test]
    fn finds_at_the_ends_and_in_any_case() {
        let literals = ["abc", "abcd", "SK-", "instructions", "ключ", "@@[`", "\u{7}{[;"];
        for text in [
            "abc",
            "xabc",
            "ABCD",
            "sk-",
            "xxSK-",
            "Instructions",
            "ключ",
            "@@[`",
            "``{@",
            "ab",
            "",
            "abcabcd",
        ] {
            assert_eq!(all(&literals, text, 1 << 20), by_hand(&literals, text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn finds_what_a_search_by_hand_finds(text in "[a-cA-C\\-_ é]{0,80}", slice_len in 1usize..20) {
            let literals = ["abc", "aab", "cabb", "b-c_a", "aaaaaa", "éab", " a ", "c c c"];
            prop_assert_eq!(all(&literals, &text, slice_len), by_hand(&literals, &text));
        }
    }
}
