//! BLAKE2b-512 of one short message: <https://www.rfc-editor.org/rfc/rfc7693>.

/// Bytes of a block.
const BLOCK: usize = 128;

const START: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// In which order each round takes the words of the message.
const ORDERS: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

/// The words that are mixed together: columns, then diagonals.
const MIXED: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];

/// The digest of a message of at most one block; none for a longer one.
pub(super) fn blake2b(message: &[u8]) -> Option<[u8; 64]> {
    if message.len() > BLOCK {
        return None;
    }
    let mut block = [0u8; BLOCK];
    block[..message.len()].copy_from_slice(message);
    let mut words = [0u64; 16];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let mut state = START;
    // A digest of 64 bytes, no key, one leaf.
    state[0] ^= 0x0101_0040;
    let mut v = [0u64; 16];
    v[..8].copy_from_slice(&state);
    v[8..].copy_from_slice(&START);
    v[12] ^= message.len() as u64;
    v[14] = !v[14];
    for round in 0..12 {
        let order = &ORDERS[round % 10];
        for (nth, [a, b, c, d]) in MIXED.into_iter().enumerate() {
            v[a] = v[a].wrapping_add(v[b]).wrapping_add(words[order[2 * nth]]);
            v[d] = (v[d] ^ v[a]).rotate_right(32);
            v[c] = v[c].wrapping_add(v[d]);
            v[b] = (v[b] ^ v[c]).rotate_right(24);
            v[a] = v[a].wrapping_add(v[b]).wrapping_add(words[order[2 * nth + 1]]);
            v[d] = (v[d] ^ v[a]).rotate_right(16);
            v[c] = v[c].wrapping_add(v[d]);
            v[b] = (v[b] ^ v[c]).rotate_right(63);
        }
    }
    let mut digest = [0u8; 64];
    for (nth, bytes) in digest.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *bytes = (state[nth] ^ v[nth] ^ v[nth + 8]).to_le_bytes();
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_published() {
        let hex = |message: &[u8]| {
            blake2b(message)
                .map(|digest| digest[..16].iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        };
        assert_eq!(hex(b"abc").as_deref(), Some("ba80a53f981c4d0d6a2797b69f12f6e9"));
        assert_eq!(hex(b"").as_deref(), Some("786a02f742015903c6c6fd852552d272"));
        assert!(hex(&[0; BLOCK]).is_some() && hex(&[0; BLOCK + 1]).is_none());
    }
}
