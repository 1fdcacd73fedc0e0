//! Tokens with a structure of their own: checksums of issuers, JSON web tokens, basic credentials.

use super::encoded::base64_decode;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// `sum` in base62, digits before capitals before small letters, six characters with leading zeros.
fn base62_of(mut sum: u32) -> [u8; 6] {
    let mut out = [b'0'; 6];
    for place in out.iter_mut().rev() {
        *place = BASE62[(sum % 62) as usize];
        sum /= 62;
    }
    out
}

/// Whether the last six characters of `value` are the CRC-32 of `covered`.
fn ends_in_crc(value: &str, covered: &str) -> bool {
    value.as_bytes().ends_with(&base62_of(crc32fast::hash(covered.as_bytes())))
}

/// How many characters of a token `value` has, line breaks and what leads lines left out.
pub(super) fn characters(value: &str) -> usize {
    value.bytes().filter(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')).count()
}

/// Whether a classic GitHub token (`ghp_` and its family) carries the checksum of its random part.
pub(super) fn is_github(value: &str) -> bool {
    let Some((_, body)) = value.split_once('_') else { return false };
    body.len() > 6 && body.is_char_boundary(body.len() - 6) && ends_in_crc(value, &body[..body.len() - 6])
}

/// Whether an npm token carries the checksum of its random part, or of prefix and random part.
pub(super) fn is_npm(value: &str) -> bool {
    let Some(cut) = value.len().checked_sub(6).filter(|cut| value.is_char_boundary(*cut)) else {
        return false;
    };
    let covered = &value[..cut];
    ends_in_crc(value, covered) || covered.split_once('_').is_some_and(|(_, body)| ends_in_crc(value, body))
}

/// Whether the first segment decodes to a JSON object with an algorithm (or an encryption) in it.
pub(super) fn is_jwt(value: &str) -> bool {
    let header = value.split('.').next().unwrap_or_default();
    let Some(json) = base64_decode(header) else { return false };
    let parsed: Option<serde_json::Map<String, serde_json::Value>> = serde_json::from_slice(&json).ok();
    parsed.is_some_and(|header| header.contains_key("alg") || header.contains_key("enc"))
}

/// Whether base64 decodes to `user:password` with at least one of the two filled.
///
/// The user has to be printable ASCII; a password may hold anything, and a few bad bytes are more often a transcript that
/// was altered than no credential at all.
pub(super) fn is_basic_auth(value: &str) -> bool {
    let Some(bytes) = base64_decode(value) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    let is_printable = |part: &str| part.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    match text.split_once(':') {
        None | Some(("", "")) => false,
        Some((user, _)) if !is_printable(user) => false,
        // An API key often stands in the place of the user, with nothing behind the colon.
        Some((_, "")) => true,
        Some((user, password)) => {
            let unreadable = password.chars().filter(|c| c.is_control() || *c == '\u{FFFD}').count();
            unreadable * 4 <= password.chars().count()
                && (unreadable == 0 || user.len() >= 3)
                && !super::placeholder::is_placeholder(password)
        }
    }
}

/// Whether what stands before the first dot is base64 of decimal digits alone, such as the id of a Discord bot.
pub(super) fn begins_with_encoded_digits(value: &str) -> bool {
    let head = value.split('.').next().unwrap_or_default();
    base64_decode(head).is_some_and(|bytes| bytes.len() >= 6 && bytes.iter().all(u8::is_ascii_digit))
}

/// Whether base64 decodes to something that opens like JSON.
pub(super) fn is_base64_json(value: &str) -> bool {
    // OK to cut at a multiple of four: every four characters decode by themselves.
    let head = value.get(..value.len().min(64) / 4 * 4).unwrap_or_default();
    base64_decode(head).is_some_and(|bytes| matches!(bytes.first(), Some(b'{' | b'[')))
}
