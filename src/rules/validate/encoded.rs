//! Base64 decoding, tolerant of alphabet and padding.

use crate::text::{base64_digit, bytes_of_digits};

/// Decodes standard or URL-safe base64, padded or not; `None` when a foreign character stands in it.
pub(super) fn base64_decode(text: &str) -> Option<Vec<u8>> {
    let body = text.trim_end_matches('=').as_bytes();
    if body.is_empty() || body.len() % 4 == 1 {
        return None;
    }
    bytes_of_digits(body.iter().map(|byte| base64_digit(*byte)), 6, body.len())
}
