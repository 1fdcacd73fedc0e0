//! Base64 decoding, tolerant of alphabet and padding.

/// Decodes standard or URL-safe base64, padded or not; `None` when a foreign character stands in it.
pub(super) fn base64_decode(text: &str) -> Option<Vec<u8>> {
    let body = text.trim_end_matches('=').as_bytes();
    if body.is_empty() || body.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(body.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0u32);
    for byte in body {
        bits = (bits << 6) | u32::from(base64_value(*byte)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(out)
}

fn base64_value(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}
