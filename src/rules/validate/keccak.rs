//! Keccak-256 as Ethereum uses it, of one short message: <https://keccak.team/files/Keccak-reference-3.0.pdf>.
//!
//! It is SHA-3 but for the padding, which SHA-3 changed after Ethereum had chosen it.

/// Bytes that one round of absorbing takes: 1600 bits of state less twice the digest.
const RATE: usize = 136;
/// Longest message: one that leaves a byte for the padding, so that one round is enough.
pub(super) const MESSAGE_MAX: usize = RATE - 1;

/// What is added to the first lane after each round.
const ROUNDS: [u64; 24] = [
    0x0000_0000_0000_0001,
    0x0000_0000_0000_8082,
    0x8000_0000_0000_808a,
    0x8000_0000_8000_8000,
    0x0000_0000_0000_808b,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8009,
    0x0000_0000_0000_008a,
    0x0000_0000_0000_0088,
    0x0000_0000_8000_8009,
    0x0000_0000_8000_000a,
    0x0000_0000_8000_808b,
    0x8000_0000_0000_008b,
    0x8000_0000_0000_8089,
    0x8000_0000_0000_8003,
    0x8000_0000_0000_8002,
    0x8000_0000_0000_0080,
    0x0000_0000_0000_800a,
    0x8000_0000_8000_000a,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8080,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8008,
];

/// The first 32 bytes that the sponge gives for `message`; none for one longer than [`MESSAGE_MAX`].
pub(super) fn keccak256(message: &[u8]) -> Option<[u8; 32]> {
    if message.len() > MESSAGE_MAX {
        return None;
    }
    let mut block = [0u8; RATE];
    block[..message.len()].copy_from_slice(message);
    block[message.len()] ^= 0x01;
    block[RATE - 1] ^= 0x80;
    let mut lanes = [0u64; 25];
    for (lane, bytes) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
        *lane = u64::from_le_bytes(*bytes);
    }
    for constant in ROUNDS {
        round(&mut lanes, constant);
    }
    let mut digest = [0u8; 32];
    for (bytes, lane) in digest.as_chunks_mut::<8>().0.iter_mut().zip(lanes) {
        *bytes = lane.to_le_bytes();
    }
    Some(digest)
}

/// One round: theta, rho and pi, chi, iota. Lane `x + 5 * y` stands in column `x` of row `y`.
fn round(lanes: &mut [u64; 25], constant: u64) {
    let column = |x: usize, lanes: &[u64; 25]| (0..5).fold(0, |sum, y| sum ^ lanes[x + 5 * y]);
    let columns: [u64; 5] = std::array::from_fn(|x| column(x, lanes));
    for (at, lane) in lanes.iter_mut().enumerate() {
        *lane ^= columns[(at + 4) % 5] ^ columns[(at + 1) % 5].rotate_left(1);
    }
    let (mut x, mut y) = (1, 0);
    let mut carried = lanes[1];
    for step in 0..24u32 {
        (x, y) = (y, (2 * x + 3 * y) % 5);
        let turned = carried.rotate_left((step + 1) * (step + 2) / 2 % 64);
        carried = std::mem::replace(&mut lanes[x + 5 * y], turned);
    }
    for row in lanes.as_chunks_mut::<5>().0 {
        let old = *row;
        for x in 0..5 {
            row[x] = old[x] ^ (!old[(x + 1) % 5] & old[(x + 2) % 5]);
        }
    }
    lanes[0] ^= constant;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_published() {
        let hex = |message: &str| {
            let digest = keccak256(message.as_bytes()).expect("is short");
            digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(hex(""), "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
        assert_eq!(hex("abc"), "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45");
        assert!(keccak256(&[0; MESSAGE_MAX]).is_some() && keccak256(&[0; RATE]).is_none());
    }
}
