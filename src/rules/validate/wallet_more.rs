//! Wallet addresses with a check of their chain: Bitcoin Cash, Monero, Solana, Stellar, TON, and Polkadot with its relatives.

use blake2::{Blake2b512, Digest};
use bs58::Alphabet;

use super::keccak::keccak256;
use super::wallet::{BASE58_ROOM, BECH32, base58_decode};
use crate::text::{base64_digit, bytes_of_digits};

/// Whether `value` is an address of Bitcoin Cash or a relative: the letters of Bech32 with a check of forty bits over them and
/// the prefix, which stands before it (`bitcoincash:` where none does).
pub(super) fn is_cashaddr(value: &str, before: &str) -> bool {
    let prefix = before.strip_suffix(':').map_or("", |before| {
        let letters = before.bytes().rev().take_while(u8::is_ascii_alphabetic).count();
        &before[before.len() - letters..]
    });
    let prefix = if prefix.is_empty() { "bitcoincash" } else { prefix };
    let letters = |byte: u8| BECH32.iter().position(|known| *known == byte.to_ascii_lowercase());
    let Some(data) = value.bytes().map(letters).collect::<Option<Vec<usize>>>() else { return false };
    let parts = prefix.bytes().map(|byte| u64::from(byte & 31)).chain([0]);
    let sum = parts.chain(data.iter().map(|value| *value as u64)).fold(1, cashaddr_step);
    data.len() > 8 && sum == 1
}

fn cashaddr_step(sum: u64, value: u64) -> u64 {
    const GENERATOR: [u64; 5] =
        [0x98_f2bc_8e61, 0x79_b76d_99e2, 0xf3_3e5f_b3c4, 0xae_2eab_e2a8, 0x1e_4f43_e470];
    let top = sum >> 35;
    let next = ((sum & 0x07_ffff_ffff) << 5) ^ value;
    GENERATOR
        .iter()
        .enumerate()
        .filter(|(bit, _)| top >> bit & 1 == 1)
        .fold(next, |next, (_, part)| next ^ part)
}

/// Whether `value` is an address of Substrate's form SS58 for an account of 32 bytes: one or two bytes of the network, the
/// account, and two bytes of BLAKE2b.
pub(super) fn is_ss58(value: &str) -> bool {
    let mut room = BASE58_ROOM;
    let Some(bytes) = base58_decode(value, Alphabet::BITCOIN, &mut room) else { return false };
    let network_len = match bytes.first() {
        Some(0..=63) => 1,
        Some(64..=127) => 2,
        _ => return false,
    };
    let Some((checked, check)) =
        bytes.split_last_chunk::<2>().filter(|(rest, _)| rest.len() == network_len + 32)
    else {
        return false;
    };
    Blake2b512::new().chain_update(b"SS58PRE").chain_update(checked).finalize()[..2] == *check
}

/// Whether `value` is 32 bytes in base58, as keys of Ed25519 on Solana are.
pub(super) fn is_solana(value: &str) -> bool {
    base58_decode(value, Alphabet::BITCOIN, &mut { BASE58_ROOM }).is_some_and(|bytes| bytes.len() == 32)
}

/// The letters of base58 in the order of their values.
const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/// Characters that Monero makes of so many bytes: base58 in blocks of eight, so that lengths are fixed.
const BLOCK_CHARS: [usize; 9] = [0, 2, 3, 5, 6, 7, 9, 10, 11];

/// Whether `value` is an address of Monero: base58 in blocks, and four bytes of Keccak at its end.
pub(super) fn is_monero(value: &str) -> bool {
    let mut bytes = Vec::with_capacity(80);
    for block in value.as_bytes().chunks(BLOCK_CHARS[8]) {
        let Some(len) = BLOCK_CHARS.iter().position(|chars| *chars == block.len()) else { return false };
        let digits = block.iter().map(|byte| BASE58.iter().position(|known| known == byte));
        let number = digits.into_iter().try_fold(0_u128, |sum, digit| Some(sum * 58 + digit? as u128));
        let Some(number) = number.filter(|number| number >> (8 * len) == 0) else { return false };
        bytes.extend_from_slice(&number.to_be_bytes()[16 - len..]);
    }
    let Some((checked, check)) = bytes.split_last_chunk::<4>() else { return false };
    matches!(checked.len(), 65 | 73) && keccak256(checked).is_some_and(|digest| digest[..4] == *check)
}

/// Whether `value` is the key of an account of Stellar: base32 of a byte of its kind, 32 bytes, and CRC-16, low byte first.
pub(super) fn is_stellar(value: &str) -> bool {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    };
    let Some(bytes) = bytes_of_digits(value.bytes().map(digit), 5, value.len()) else { return false };
    let Some((checked, check)) = bytes.split_last_chunk::<2>() else { return false };
    checked.len() == 33 && crc16(checked).to_le_bytes() == *check
}

/// Whether `value` is an address of TON: base64 of a tag, the number of a chain, 32 bytes, and CRC-16, high byte first.
pub(super) fn is_ton(value: &str) -> bool {
    let digits = value.bytes().map(base64_digit);
    let Some(bytes) = bytes_of_digits(digits, 6, value.len()) else { return false };
    let Some((checked, check)) = bytes.split_last_chunk::<2>() else { return false };
    checked.len() == 34 && crc16(checked).to_be_bytes() == *check
}

/// CRC-16 as XMODEM has it.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x1021,
        })
    })
}
