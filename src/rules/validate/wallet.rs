//! Wallet addresses and keys that carry their own checksum.

use bs58::Alphabet;
use sha2::{Digest, Sha256};

use super::keccak::keccak256;

/// Longer text is no address; decoding is quadratic, so it is bounded here.
const BASE58_CHARS_MAX: usize = 120;

/// Room for what base58 says: a byte for each character is the most.
pub(super) type Base58Room = [u8; BASE58_CHARS_MAX];

/// Room with nothing in it yet.
pub(super) const BASE58_ROOM: Base58Room = [0; BASE58_CHARS_MAX];

/// Decodes base58 with these letters; `None` for a foreign character, no text or over-long text.
pub(super) fn base58_decode<'r>(
    text: &str,
    letters: &Alphabet,
    room: &'r mut Base58Room,
) -> Option<&'r [u8]> {
    if text.is_empty() || text.len() > BASE58_CHARS_MAX {
        return None;
    }
    let len = bs58::decode(text).with_alphabet(letters).onto(&mut room[..]).ok()?;
    room.get(..len)
}

/// Whether the last four bytes are the head of the double SHA-256 of the rest.
pub(super) fn is_base58check(value: &str) -> bool {
    // The XRP Ledger has an order of letters of its own, in which addresses begin with the `r`; see
    // <https://xrpl.org/docs/references/protocol/data-types/base58-encodings>.
    let letters = if value.starts_with('r') { Alphabet::RIPPLE } else { Alphabet::BITCOIN };
    let mut room = BASE58_ROOM;
    let Some(bytes) = base58_decode(value, letters, &mut room) else { return false };
    let Some(cut) = bytes.len().checked_sub(4).filter(|cut| *cut >= 20) else { return false };
    let (payload, check) = bytes.split_at(cut);
    Sha256::digest(Sha256::digest(payload))[..4] == *check
}

pub(super) const BECH32: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// Whether `value` is Bech32 or Bech32m; letters of one case only.
pub(super) fn is_bech32(value: &str) -> bool {
    let is_mixed =
        value.bytes().any(|b| b.is_ascii_lowercase()) && value.bytes().any(|b| b.is_ascii_uppercase());
    let lower = value.to_ascii_lowercase();
    let Some((prefix, data)) = lower.rsplit_once('1') else { return false };
    if is_mixed || prefix.is_empty() || data.len() < 6 || !prefix.is_ascii() {
        return false;
    }
    let mut sum = 1u32;
    for byte in prefix.bytes() {
        sum = bech32_step(sum, byte >> 5);
    }
    sum = bech32_step(sum, 0);
    for byte in prefix.bytes() {
        sum = bech32_step(sum, byte & 31);
    }
    for byte in data.bytes() {
        let Some(value) = BECH32.iter().position(|known| *known == byte) else { return false };
        sum = bech32_step(sum, value as u8);
    }
    sum == 1 || sum == 0x2bc8_30a3
}

fn bech32_step(sum: u32, value: u8) -> u32 {
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let top = sum >> 25;
    let mut next = ((sum & 0x01ff_ffff) << 5) ^ u32::from(value);
    for (bit, generator) in GENERATOR.iter().enumerate() {
        if (top >> bit) & 1 == 1 {
            next ^= generator;
        }
    }
    next
}

/// Whether `0x` and forty hexadecimal digits can be an address in use: they hold enough different digits, and where
/// letters of both cases stand among them, these are the checksum of <https://eips.ethereum.org/EIPS/eip-55>.
pub(super) fn is_hex_wallet(value: &str) -> bool {
    let hex = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")).unwrap_or(value);
    let mut seen = [false; 256];
    for byte in hex.bytes() {
        seen[usize::from(byte.to_ascii_lowercase())] = true;
    }
    let has_both_cases = hex.bytes().any(|byte| byte.is_ascii_lowercase())
        && hex.bytes().any(|byte| byte.is_ascii_uppercase());
    hex.len() == 40
        && seen.iter().filter(|seen| **seen).count() >= 8
        && (!has_both_cases || has_address_checksum(hex.as_bytes()))
}

/// Whether each letter is a capital where the digit of the digest at its place is 8 or more.
fn has_address_checksum(hex: &[u8]) -> bool {
    let Some(digest) = keccak256(&hex.to_ascii_lowercase()) else { return false };
    hex.iter().enumerate().all(|(at, byte)| {
        let digit = if at % 2 == 0 { digest[at / 2] >> 4 } else { digest[at / 2] & 15 };
        !byte.is_ascii_alphabetic() || byte.is_ascii_uppercase() == (digit >= 8)
    })
}
