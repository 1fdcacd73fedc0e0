//! Thousands of literals in one pass, without an automaton.
//!
//! Idea: every literal is represented by a piece of neighbouring bytes, the rarest it has: seven, or four or three where it
//! is shorter. At each position of a text the pieces there, with letter case folded away, are looked up in bitmaps; only a
//! hit is looked at closer, first in a second bitmap, then the exact piece, then the whole literal around it. A long literal
//! is represented by two pieces, one byte apart, so that pieces of seven need be looked up at every other position only.
//! Where there are few literals, the first three bytes of all pieces have one small bitmap together, and the others are asked
//! only where that holds.
//!
//! The answers for 64 positions are gathered as the bits of a word before any of them is looked at, and so are those of the
//! second bitmap: a branch at each position would be guessed wrong at nearly every hit, which takes longer than all of the
//! look-ups between two of them.
//!
//! Why not an Aho-Corasick DFA: for the five thousand literals of the built-in rules it takes 55 MiB, so that every
//! byte of a text waits for memory (150 MB/s measured); the bitmap stays close to the core. See the benchmark
//! `engine` for both in one run.
//!
//! A literal may ask to be a whole word, or the beginning of one: `the` then costs nothing in `other`.
//!
//! Invariants: every occurrence of every literal is reported, in any ASCII case; never anything else. Work is linear in
//! the text: at most the number of literals that share one piece is compared per position.

use std::ops::Range;

/// Bytes of a piece, by the length of the literal. Seven and not four of a longer one: it then nearly always holds parts of two
/// words, which stand beside each other far more rarely than either stands anywhere.
const SHORT: usize = 3;
const MIDDLE: usize = 4;
const LONG: usize = 7;
/// Most literals whose pieces are first looked up by their beginnings: of more, too many positions hold one.
const FEW: usize = 6_000;
/// Words of the bitmap of beginnings: 8 KiB, well inside a first-level cache.
const BEGIN_WORDS: usize = 1 << 10;
/// Words of a bitmap of pieces: 64 KiB, well inside a second-level cache, and few of the bits are set.
const PIECE_WORDS: usize = 1 << 13;
/// Buckets of a table at most.
const BUCKETS_MAX: usize = 1 << 17;
/// How much more the first bytes of a piece count than the others where the rarest of few is chosen.
const BEGIN_WEIGHT: u32 = 4;
/// How much each doubling of the literals that hold a piece counts, beside the ranks of its bytes.
const SHARE_WEIGHT: u32 = 32;
/// Bits of the hash by which pieces are counted.
const SHARE_BITS: u32 = 18;
/// Longest escape that may end in a letter, in bytes: a colour, `\u001b[38;5;12m`.
const ESCAPE_BYTES_MAX: usize = 16;
/// What pieces are multiplied with to be looked up (Knuth, TAOCP 3, 6.4), in the two bitmaps of a table.
const FACTORS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93];
/// Positions whose look-ups are gathered: one bit of a word for each.
const BLOCK: usize = 64;
/// Bytes that pieces of one block are made of.
const BLOCK_BYTES: usize = BLOCK + 7;
/// Sets the case bit of every byte. It also joins some punctuation with others, which the closer look tells apart.
const FOLD: u64 = 0x2020_2020_2020_2020;

/// The first `LEN` bytes of eight.
const fn first<const LEN: usize>(bytes: u64) -> u64 {
    bytes & (u64::MAX >> (64 - 8 * LEN))
}

/// What may stand on either side of a literal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Bounds {
    /// A literal that begins with an ASCII letter or digit has none before it, but for those of an escape.
    pub starts_word: bool,
    /// A literal that ends in an ASCII letter or digit has none after it.
    pub ends_word: bool,
}

/// Bytes to be found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Literal {
    /// At least three bytes, ASCII letters in lower case.
    pub text: Box<[u8]>,
    pub bounds: Bounds,
}

impl Literal {
    /// Bytes that may stand anywhere.
    pub(super) fn anywhere(text: impl Into<Box<[u8]>>) -> Self {
        Self { text: text.into(), bounds: Bounds::default() }
    }

    /// The same, asking only for those bounds that its own bytes make matter.
    fn with_needed_bounds(self) -> Self {
        let joins = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bounds = Bounds {
            starts_word: self.bounds.starts_word && joins(self.text.first()),
            ends_word: self.bounds.ends_word && joins(self.text.last()),
        };
        Self { bounds, ..self }
    }

    /// Whether it stands at a place; its bounds are those [needed](Self::with_needed_bounds).
    fn is_at(&self, text: &[u8], start: usize) -> bool {
        let joins = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let end = start + self.text.len();
        // What one byte tells comes first: short words stand amid others all the time.
        !(self.bounds.ends_word && joins(text.get(end)))
            && text.get(start..end).is_some_and(|t| t.eq_ignore_ascii_case(&self.text))
            && !(self.bounds.starts_word
                && joins(start.checked_sub(1).and_then(|at| text.get(at)))
                && !may_be_escaped(&text[..start]))
    }
}

/// Whether the letters and digits at the end of `before` may belong to an escape, such as `\n`, `\x0a` or `\u001b[1m`.
fn may_be_escaped(before: &[u8]) -> bool {
    let escape = &before[before.len().saturating_sub(ESCAPE_BYTES_MAX)..];
    memchr::memrchr(b'\\', escape).is_some()
}

/// One literal through one of its pieces.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The folded piece.
    piece: u64,
    /// The folded bytes of the literal that follow the piece, as far as there are any: nearly every look ends here,
    /// without a trip to the literal itself.
    next: u32,
    next_mask: u32,
    /// The same of the bytes before the piece.
    before: u32,
    before_mask: u32,
    literal: u32,
    /// Where the piece stands in the literal.
    offset: u32,
}

impl Entry {
    /// The entry of the piece at `offset` of a literal, with what stands before and behind it there.
    fn new(piece: u64, literal: u32, (before, rest): (&[u8], &[u8]), offset: usize) -> Self {
        let mut mask = [0u8; 4];
        mask[..rest.len().min(4)].fill(0xFF);
        let next_mask = u32::from_le_bytes(mask);
        let mut mask = [0u8; 4];
        mask[4 - before.len().min(4)..].fill(0xFF);
        let before_mask = u32::from_le_bytes(mask);
        Self {
            piece,
            next: ((load(rest) | FOLD) as u32) & next_mask,
            next_mask,
            before: (load_before(before) | FOLD as u32) & before_mask,
            before_mask,
            literal,
            offset: offset as u32,
        }
    }
}

/// Up to eight bytes; those that are missing are zero.
fn load(bytes: &[u8]) -> u64 {
    if let Some(whole) = bytes.first_chunk() {
        return u64::from_le_bytes(*whole);
    }
    let mut out = [0u8; 8];
    out[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(out)
}

/// The last four bytes; those that are missing are zero.
fn load_before(bytes: &[u8]) -> u32 {
    if let Some(whole) = bytes.last_chunk() {
        return u32::from_le_bytes(*whole);
    }
    let mut out = [0u8; 4];
    out[4 - bytes.len()..].copy_from_slice(bytes);
    u32::from_le_bytes(out)
}

/// A set of pieces of `LEN` bytes, by one of two hashes. Says of a few others too that it holds them.
struct Bitmap<const LEN: usize, const HASH: usize, const WORDS: usize>(Box<[u64; WORDS]>);

impl<const LEN: usize, const HASH: usize, const WORDS: usize> Bitmap<LEN, HASH, WORDS> {
    /// Takes a hash to the index of a bit.
    const SHIFT: u32 = 64 - (WORDS.trailing_zeros() + 6);

    fn new(pieces: impl Iterator<Item = u64>) -> Self {
        let mut words = Box::new([0; WORDS]);
        for piece in pieces {
            let bit = Self::bit_of(piece);
            words[bit >> 6] |= 1 << (bit & 63);
        }
        Self(words)
    }

    /// By multiplicative hashing; what follows the piece is shifted out.
    #[inline(always)]
    fn bit_of(folded: u64) -> usize {
        ((folded << (64 - 8 * LEN)).wrapping_mul(FACTORS[HASH]) >> Self::SHIFT) as usize
    }

    /// Whether it may hold the first bytes of `folded`.
    #[inline(always)]
    fn may_hold(&self, folded: u64) -> bool {
        let bit = Self::bit_of(folded);
        self.0[bit >> 6] >> (bit & 63) & 1 != 0
    }

    fn memory_usage(&self) -> usize {
        WORDS * 8
    }
}

/// The pieces of one length.
struct Table<const LEN: usize> {
    bitmap: Bitmap<LEN, 0, PIECE_WORDS>,
    /// The same by another hash: of what the first holds wrongly, this one holds one in twenty. A table is far from the core.
    other: Bitmap<LEN, 1, PIECE_WORDS>,
    /// Bounds of each bucket in `entries`.
    buckets: Box<[u32]>,
    /// Takes a hash to a bucket.
    shift: u32,
    entries: Box<[Entry]>,
}

impl<const LEN: usize> Table<LEN> {
    fn new(mut entries: Vec<Entry>) -> Self {
        let bitmap = Bitmap::new(entries.iter().map(|entry| entry.piece));
        let other = Bitmap::new(entries.iter().map(|entry| entry.piece));
        let count = entries.len().next_power_of_two().clamp(2, BUCKETS_MAX);
        let shift = 64 - count.trailing_zeros();
        let mut buckets = vec![0u32; count + 1];
        for entry in &entries {
            buckets[bucket_of(entry.piece, shift) + 1] += 1;
        }
        for at in 1..buckets.len() {
            buckets[at] += buckets[at - 1];
        }
        // Each goes to the next place of its bucket; sorting all of them would take longer than all the rest.
        let (mut next, unsorted) = (buckets.clone(), entries.clone());
        for entry in unsorted {
            let place = &mut next[bucket_of(entry.piece, shift)];
            entries[*place as usize] = entry;
            *place += 1;
        }
        for bucket in buckets.windows(2) {
            let bucket = &mut entries[bucket[0] as usize..bucket[1] as usize];
            bucket.sort_unstable_by_key(|entry| (entry.piece, entry.literal));
        }
        Self { bitmap, other, buckets: buckets.into(), shift, entries: entries.into() }
    }

    fn memory_usage(&self) -> usize {
        self.bitmap.memory_usage()
            + self.other.memory_usage()
            + self.buckets.len() * 4
            + self.entries.len() * size_of::<Entry>()
    }

    /// Those of some positions of a block at which the other bitmap too may hold a piece.
    fn among(&self, places: u64, block: &[u8; BLOCK_BYTES]) -> u64 {
        let mut held = 0;
        each(places, block, |nth, folded| held |= u64::from(self.other.may_hold(folded)) << nth);
        held
    }

    /// Reports the literals of which a piece stands at a position, if there are any.
    #[inline(always)]
    fn look(
        &self,
        literals: &[Literal],
        text: &[u8],
        at: usize,
        folded: u64,
        found: &mut impl FnMut(usize, Range<usize>),
    ) {
        if self.bitmap.may_hold(folded) && self.other.may_hold(folded) {
            self.look_closer(literals, text, at, folded, found);
        }
    }

    /// Reports the literals of which a piece stands at a position.
    fn look_closer(
        &self,
        literals: &[Literal],
        text: &[u8],
        at: usize,
        folded: u64,
        found: &mut impl FnMut(usize, Range<usize>),
    ) {
        let piece = first::<LEN>(folded);
        let next = (load(text.get(at + LEN..).unwrap_or_default()) | FOLD) as u32;
        let before = load_before(&text[..at]) | FOLD as u32;
        let bucket = bucket_of(piece, self.shift);
        for entry in &self.entries[self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize] {
            let is_other = next & entry.next_mask != entry.next || before & entry.before_mask != entry.before;
            if entry.piece != piece || is_other {
                continue;
            }
            let literal = &literals[entry.literal as usize];
            let Some(start) = at.checked_sub(entry.offset as usize) else { continue };
            if literal.is_at(text, start) {
                found(entry.literal as usize, start..start + literal.text.len());
            }
        }
    }
}

/// Literals to be found.
pub(super) struct Literals {
    literals: Vec<Literal>,
    /// What all pieces begin with, where those are few.
    begins: Option<Bitmap<SHORT, 0, BEGIN_WORDS>>,
    /// The pieces by their length. Where there are many, short ones stand among those of middle length, and a long literal has
    /// two of its own.
    short: Table<SHORT>,
    middle: Table<MIDDLE>,
    long: Table<LONG>,
}

impl Literals {
    /// Prepares literals. Those shorter than three bytes are not found.
    pub(super) fn new(literals: Vec<Literal>) -> Self {
        let literals: Vec<Literal> = literals.into_iter().map(Literal::with_needed_bounds).collect();
        let are_few = literals.len() <= FEW;
        let long_min = if are_few { LONG } else { LONG + 1 };
        let weight = if are_few { BEGIN_WEIGHT } else { 1 };
        let (mut shares, mut long_shares) = (Shares::default(), Shares::default());
        for literal in &literals {
            match literal.text.len() {
                len if len >= long_min => long_shares.add(&literal.text, LONG),
                len if len >= MIDDLE => shares.add(&literal.text, MIDDLE),
                _ => {}
            }
        }
        let (mut short, mut middle, mut long) = (Vec::new(), Vec::new(), Vec::new());
        for (index, literal) in (0..).zip(&literals) {
            match literal.text.len() {
                ..SHORT => {}
                // One bitmap less to be asked at every position of a text.
                SHORT if !are_few => add_three(index, literal, &mut middle),
                SHORT => short.extend(entry_at::<SHORT>(index, literal, 0)),
                len if len >= long_min => {
                    let pieces = if are_few { 1 } else { 2 };
                    let rarest = rarest::<LONG>(literal, pieces, weight, &long_shares);
                    long.extend(
                        (rarest..rarest + pieces).filter_map(|at| entry_at::<LONG>(index, literal, at)),
                    );
                }
                _ => {
                    let rarest = rarest::<MIDDLE>(literal, 1, weight, &shares);
                    middle.extend(entry_at::<MIDDLE>(index, literal, rarest));
                }
            }
        }
        let pieces = [&short, &middle, &long].into_iter().flatten().map(|entry: &Entry| entry.piece);
        let begins = are_few.then(|| Bitmap::new(pieces));
        Self {
            literals,
            begins,
            short: Table::new(short),
            middle: Table::new(middle),
            long: Table::new(long),
        }
    }

    /// Heap used, in bytes.
    pub(super) fn memory_usage(&self) -> usize {
        self.short.memory_usage()
            + self.middle.memory_usage()
            + self.long.memory_usage()
            + self.begins.as_ref().map_or(0, Bitmap::memory_usage)
            + self.literals.iter().map(|l| l.text.len() + size_of::<Literal>()).sum::<usize>()
    }

    /// Calls `found(literal, where)` for every occurrence of which a piece begins in `slice`. Slices that follow on each
    /// other report every occurrence of the whole text once.
    pub(super) fn find(&self, text: &[u8], slice: Range<usize>, mut found: impl FnMut(usize, Range<usize>)) {
        let end = slice.end.min(text.len());
        // Long pieces are looked up where the text has an even number of bytes before them, wherever a slice begins.
        let mut at = slice.start & !1;
        let mut wanted = u64::MAX << (slice.start - at);
        while at < end {
            let padded;
            let block = match text[at..].first_chunk() {
                Some(block) => block,
                // What is missing of a piece counts as a folded zero.
                None => {
                    padded = padded_block(&text[at..]);
                    &padded
                }
            };
            if end - at < BLOCK {
                wanted &= (1 << (end - at)) - 1;
            }
            match &self.begins {
                Some(begins) => {
                    let places = bits_of(|folded| begins.may_hold(folded), block);
                    each(places & wanted, block, |nth, folded| {
                        self.short.look(&self.literals, text, at + nth, folded, &mut found);
                        self.middle.look(&self.literals, text, at + nth, folded, &mut found);
                        self.long.look(&self.literals, text, at + nth, folded, &mut found);
                    });
                }
                None => {
                    let [middle, long] = self.places(block);
                    each(self.middle.among(middle & wanted, block), block, |nth, folded| {
                        self.middle.look_closer(&self.literals, text, at + nth, folded, &mut found);
                    });
                    each(self.long.among(long & wanted, block), block, |nth, folded| {
                        self.long.look_closer(&self.literals, text, at + nth, folded, &mut found);
                    });
                }
            }
            wanted = u64::MAX;
            at += BLOCK;
        }
    }

    /// The positions of a block at which a piece of middle length may stand, and the even ones at which a long one may, as
    /// bits.
    fn places(&self, block: &[u8; BLOCK_BYTES]) -> [u64; 2] {
        let (mut middle, mut long) = (0, 0);
        // By eights, with which all shifts are constants, and by pairs of positions, which are read together.
        for eight in 0..BLOCK / 8 {
            let (mut middles, mut longs) = (0, 0);
            for nth in [0, 2, 4, 6] {
                let at = 8 * eight + nth;
                let bytes = block[at..at + 8].try_into().expect("eight bytes");
                let folded = u64::from_le_bytes(bytes) | FOLD;
                middles |= u64::from(self.middle.bitmap.may_hold(folded)) << nth;
                middles |= u64::from(self.middle.bitmap.may_hold(folded >> 8)) << (nth + 1);
                longs |= u64::from(self.long.bitmap.may_hold(folded)) << nth;
            }
            middle |= middles << (8 * eight);
            long |= longs << (8 * eight);
        }
        [middle, long]
    }
}

/// The positions of a block that pass a test, as bits.
fn bits_of(test: impl Fn(u64) -> bool, block: &[u8; BLOCK_BYTES]) -> u64 {
    let mut places = 0;
    for eight in 0..BLOCK / 8 {
        let mut bits = 0;
        for nth in 0..8 {
            let at = 8 * eight + nth;
            let bytes = block[at..at + 8].try_into().expect("eight bytes");
            bits |= u64::from(test(u64::from_le_bytes(bytes) | FOLD)) << nth;
        }
        places |= bits << (8 * eight);
    }
    places
}

/// Calls `look` for each position of a block of which the bit is set, with the folded bytes there.
fn each(mut places: u64, block: &[u8; BLOCK_BYTES], mut look: impl FnMut(usize, u64)) {
    while places != 0 {
        let nth = places.trailing_zeros() as usize;
        places &= places - 1;
        let bytes = block[nth..nth + 8].try_into().expect("eight bytes");
        look(nth, u64::from_le_bytes(bytes) | FOLD);
    }
}

#[cold]
fn padded_block(text: &[u8]) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    block[..text.len()].copy_from_slice(text);
    block
}

/// The entries of a literal of three bytes: every short piece that begins with them.
fn add_three(index: u32, literal: &Literal, entries: &mut Vec<Entry>) {
    let text = &*literal.text;
    // The case bit is set in every folded byte, so half of all values stand for the byte that follows. Letters are the
    // only bytes that fold to letters, so none follows a whole word.
    let is_whole = literal.bounds.ends_word && text.last().is_some_and(u8::is_ascii_alphanumeric);
    let may_follow = |byte: &u8| byte & 0x20 != 0 && !(is_whole && byte.is_ascii_lowercase());
    entries.extend((0..=255u8).filter(may_follow).map(|next| {
        let piece = first::<SHORT>(load(text) | FOLD) | u64::from(next) << 24;
        Entry::new(piece, index, (&[], &[]), 0)
    }));
}

/// The entry of a literal by the piece that begins at a place of it.
fn entry_at<const LEN: usize>(index: u32, literal: &Literal, at: usize) -> Option<Entry> {
    let piece = literal.text.get(at..at + LEN)?;
    let around = (&literal.text[..at], &literal.text[at + LEN..]);
    Some(Entry::new(first::<LEN>(load(piece) | FOLD), index, around, at))
}

/// Where the rarest of so many pieces that follow on each other begin in a literal: those that few others hold, of rare bytes.
fn rarest<const LEN: usize>(literal: &Literal, pieces: usize, weight: u32, shares: &Shares) -> usize {
    let rank = |piece: &[u8]| commonness(piece, weight) + SHARE_WEIGHT * shares.of(piece);
    let ranks: Vec<u32> = literal.text.windows(LEN).map(rank).collect();
    let together = ranks.windows(pieces).map(|ranks| ranks.iter().sum::<u32>()).enumerate();
    together.min_by_key(|(_, rank)| *rank).map_or(0, |(at, _)| at)
}

/// How many literals hold each piece, about: those of one hash count together. What many of them hold is common in texts
/// too, and each place where it stands costs a look at all of them.
#[derive(Default)]
struct Shares(Vec<u8>);

impl Shares {
    fn add(&mut self, text: &[u8], len: usize) {
        self.0.resize(1 << SHARE_BITS, 0);
        for piece in text.windows(len) {
            let count = &mut self.0[Self::slot(piece)];
            *count = count.saturating_add(1);
        }
    }

    /// The binary logarithm of the number of literals that hold a piece which one of them does hold.
    fn of(&self, piece: &[u8]) -> u32 {
        self.0[Self::slot(piece)].max(1).ilog2()
    }

    fn slot(piece: &[u8]) -> usize {
        ((load(piece) | FOLD).wrapping_mul(FACTORS[0]) >> (64 - SHARE_BITS)) as usize
    }
}

/// How common a piece is in ordinary text and code: the sum of the ranks of its bytes, those of the first ones times
/// `weight`.
fn commonness(piece: &[u8], weight: u32) -> u32 {
    let ranks =
        |bytes: &[u8]| bytes.iter().map(|byte| u32::from(COMMONNESS[usize::from(*byte)])).sum::<u32>();
    let (begin, rest) = piece.split_at(SHORT);
    weight * ranks(begin) + ranks(rest)
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

/// Index into the buckets.
fn bucket_of(piece: u64, shift: u32) -> usize {
    (piece.wrapping_mul(0xC2B2_AE3D_27D4_EB4F) >> shift) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Literals as they are written here: `<` and `>` ask for the bounds of a word.
    fn read(literals: &[&str]) -> Vec<Literal> {
        let one = |literal: &&str| {
            let bounds = Bounds { starts_word: literal.starts_with('<'), ends_word: literal.ends_with('>') };
            let text = literal.trim_start_matches('<').trim_end_matches('>').to_ascii_lowercase();
            Literal { text: text.into_bytes().into(), bounds }
        };
        literals.iter().map(one).collect()
    }

    fn all(literals: &[&str], text: &str, slice_len: usize) -> Vec<(usize, Range<usize>)> {
        all_of(&Literals::new(read(literals)), text, slice_len)
    }

    fn all_of(set: &Literals, text: &str, slice_len: usize) -> Vec<(usize, Range<usize>)> {
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
        let joined = |at: usize| {
            at > 0
                && text.as_bytes()[at - 1..].iter().take(2).filter(|b| b.is_ascii_alphanumeric()).count() == 2
        };
        let mut out = Vec::new();
        for (index, Literal { text: literal, bounds }) in read(literals).iter().enumerate() {
            for start in 0..text.len().saturating_sub(literal.len() - 1) {
                let end = start + literal.len();
                if text.as_bytes()[start..].starts_with(literal)
                    && !(bounds.starts_word && joined(start))
                    && !(bounds.ends_word && joined(end))
                {
                    out.push((index, start..end));
                }
            }
        }
        out
    }

    #[test]
    fn words_begin_behind_escapes() {
        for (text, count) in [
            (r"a\nabc", 1),
            (r"x\x0aabc", 1),
            (r"x\u000aabc \tABC", 2),
            (r"\u001b[38;5;12mabc", 1),
            (r"\nnnnnnnnnnnnnnnnnabc", 0),
            ("nabc", 0),
        ] {
            assert_eq!(all(&["<abc"], text, 1 << 20).len(), count, "{text}");
        }
    }

    #[test]
    fn finds_at_the_ends_and_in_any_case() {
        let literals = ["abc", "abcd", "SK-", "instructions", "ключ", "@@[`", "\u{7}{[;", "<abc>"];
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

    /// Literals of all lengths, many of which hold the same pieces.
    const MANY: [&str; 17] = [
        "abc",
        "aab",
        "cabb",
        "b-c_a",
        "aaaaaa",
        "éab",
        " a ",
        "aaaaaaaa",
        "<cabcabcab",
        "abcabcab",
        "a b c a b>",
        "<abc>",
        "<a b c a>",
        "abc-abc-é",
        "bcabcabca",
        "<ab ab ab>",
        "cab-cabc>",
    ];

    /// [`MANY`], and so many others that they are looked for in another way than few.
    fn many() -> Literals {
        let mut literals = read(&MANY);
        literals.extend((0..=FEW).map(|n| Literal::anywhere(format!("x{n:07}").into_bytes())));
        Literals::new(literals)
    }

    proptest! {
        #[test]
        fn many_are_found_as_by_hand(
            texts in prop::collection::vec("([a-cA-C\\-_ é]{0,12}|[Cc][aA]bc(abc){0,3}|[aA]( ?[a-c]){3,9}|a{6,70}){0,14}", 64),
            slice_len in 1usize..150,
        ) {
            let set = many();
            for text in &texts {
                prop_assert_eq!(all_of(&set, text, slice_len), by_hand(&MANY, text), "{:?}", text);
            }
        }

        #[test]
        fn finds_what_a_search_by_hand_finds(text in "[a-cA-C\\-_ é]{0,80}", slice_len in 1usize..20) {
            let literals = [
                "abc", "aab", "cabb", "b-c_a", "aaaaaa", "éab", " a ", "c c c", "<abc", "cab>", "<bac>", "<a-b>",
                "<acab>", "ab->", "<abé>",
            ];
            prop_assert_eq!(all(&literals, &text, slice_len), by_hand(&literals, &text));
        }
    }
}
