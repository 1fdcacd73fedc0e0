//! Which of 64 neighbouring bytes of a text are of a kind, as the bits of a word: the lowest is the first of them.
//!
//! Told with vector instructions that every processor of the target has, so that nothing is asked while the program runs;
//! where a target has none, the same is worked out byte by byte.

use std::ops::RangeInclusive;

use wide::u8x16;

/// Bytes that are looked at together.
pub(crate) const BLOCK: usize = 64;
/// Bytes of one vector.
pub(crate) const LANES: usize = 16;

/// 64 neighbouring bytes.
#[derive(Clone, Copy)]
pub(crate) struct Lanes([u8x16; BLOCK / LANES]);

impl Lanes {
    #[inline]
    pub(crate) fn new(block: &[u8; BLOCK]) -> Self {
        let (parts, _) = block.as_chunks::<LANES>();
        let part = |nth: usize| u8x16::new(parts[nth]);
        Self([part(0), part(1), part(2), part(3)])
    }

    /// The bytes of a text from `at` on; those beyond it are 0.
    #[inline]
    pub(crate) fn at(text: &[u8], at: usize) -> Self {
        let rest = &text[at.min(text.len())..];
        match rest.first_chunk() {
            Some(block) => Self::new(block),
            None => {
                let mut block = [0; BLOCK];
                block[..rest.len()].copy_from_slice(rest);
                Self::new(&block)
            }
        }
    }

    /// Those that `is` tells: for them it answers a byte of which the highest bit is set.
    #[inline]
    pub(crate) fn bits(&self, is: impl Fn(u8x16) -> u8x16) -> u64 {
        self.0.iter().rev().fold(0, |bits, part| bits << LANES | u64::from(is(*part).to_bitmask()))
    }

    /// Those that are the same as the byte at their place of `others`.
    #[inline]
    pub(crate) fn same(&self, others: &Self) -> u64 {
        let pairs = self.0.iter().zip(&others.0).rev();
        pairs.fold(0, |bits, (one, other)| bits << LANES | u64::from(one.simd_eq(*other).to_bitmask()))
    }
}

/// Bytes that are `byte`.
#[inline]
pub(crate) fn is(bytes: u8x16, byte: u8) -> u8x16 {
    bytes.simd_eq(u8x16::splat(byte))
}

/// Bytes of a range.
#[inline]
pub(crate) fn is_in(bytes: u8x16, range: RangeInclusive<u8>) -> u8x16 {
    let above = bytes - u8x16::splat(*range.start());
    above.min(u8x16::splat(range.end() - range.start())).simd_eq(above)
}

/// Letters of ASCII as small ones; what is none becomes something else.
#[inline]
pub(crate) fn small(bytes: u8x16) -> u8x16 {
    bytes | u8x16::splat(b'a' - b'A')
}

/// Letters of ASCII.
#[inline]
pub(crate) fn is_letter(bytes: u8x16) -> u8x16 {
    is_in(small(bytes), b'a'..=b'z')
}

/// Digits of ASCII.
#[inline]
pub(crate) fn is_digit(bytes: u8x16) -> u8x16 {
    is_in(bytes, b'0'..=b'9')
}

/// Letters and digits of ASCII.
#[inline]
pub(crate) fn is_alphanumeric(bytes: u8x16) -> u8x16 {
    is_letter(bytes) | is_digit(bytes)
}

/// White space of ASCII.
#[inline]
pub(crate) fn is_blank(bytes: u8x16) -> u8x16 {
    // A tab, the ends of lines and a form feed stand side by side; so does the vertical tab, which is none.
    let others = is_in(bytes, b'\t'..=b'\r') & !is(bytes, 0x0B);
    others | is(bytes, b' ')
}

/// Those with the bit by which a small letter of ASCII differs from a capital.
#[inline]
pub(crate) fn has_case_bit(bytes: u8x16) -> u8x16 {
    // Only the highest bit is asked for.
    let twice = bytes + bytes;
    twice + twice
}

/// How many letters and digits of ASCII there are before anything else.
#[inline]
pub(crate) fn word_len(bytes: &[u8; LANES]) -> usize {
    let others = !is_alphanumeric(u8x16::new(*bytes)).to_bitmask();
    others.trailing_zeros() as usize
}

/// The lowest `count` bits of a word, at most all.
#[inline]
pub(crate) fn below(count: usize) -> u64 {
    if count < BLOCK { (1 << count) - 1 } else { u64::MAX }
}

/// The bits of a word from the lowest on.
pub(crate) fn places(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(place)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wanted(block: &[u8; BLOCK], is: impl Fn(usize, u8) -> bool) -> u64 {
        (0..BLOCK).filter(|at| is(*at, block[*at])).fold(0, |bits, at| bits | 1 << at)
    }

    proptest! {
        #[test]
        fn bits_tell_which_bytes_are_of_a_kind(
            block in prop::array::uniform32((any::<u8>(), prop_oneof![any::<u8>(), b'/'..=b'{'])),
            first: u8,
            last: u8,
        ) {
            let block: [u8; BLOCK] = std::array::from_fn(|at| if at % 2 == 0 { block[at / 2].0 } else { block[at / 2].1 });
            let lanes = Lanes::new(&block);
            prop_assert_eq!(lanes.bits(|bytes| is(bytes, first)), wanted(&block, |_, byte| byte == first));
            let range = first.min(last)..=first.max(last);
            let in_range = lanes.bits(|bytes| is_in(bytes, range.clone()));
            prop_assert_eq!(in_range, wanted(&block, |_, byte| range.contains(&byte)));
            prop_assert_eq!(lanes.bits(is_letter), wanted(&block, |_, byte| byte.is_ascii_alphabetic()));
            prop_assert_eq!(lanes.bits(is_blank), wanted(&block, |_, byte| byte.is_ascii_whitespace()));
            prop_assert_eq!(lanes.bits(has_case_bit), wanted(&block, |_, byte| byte & 0x20 != 0));
            prop_assert_eq!(lanes.bits(is_alphanumeric), wanted(&block, |_, byte| byte.is_ascii_alphanumeric()));
            let behind = Lanes::at(&block, 3);
            let byte = |at: usize| block.get(at).copied().unwrap_or(0);
            prop_assert_eq!(lanes.same(&behind), wanted(&block, |at, one| one == byte(at + 3)));
            let start = block.first_chunk().expect("sixteen bytes");
            let word = start.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            prop_assert_eq!(word_len(start).min(LANES), word);
            let of_places = places(in_range).fold(0, |bits, at| bits | 1_u64 << at);
            prop_assert_eq!(of_places, in_range);
        }
    }
}
