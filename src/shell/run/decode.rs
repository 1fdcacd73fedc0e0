//! Decoders over bytes: base64, base32, hexadecimal, UTF-16.

pub(super) use crate::text::{base32_of_program as base32, base64_of_program as base64};

/// Bytes of a plain hexadecimal dump; other characters than digits separate.
pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    for c in text.chars() {
        let Some(digit) = c.to_digit(16) else {
            if c.is_whitespace() || matches!(c, ':' | ',') {
                continue;
            }
            return None;
        };
        high = match high {
            None => Some(digit),
            Some(high) => {
                bytes.push(u8::try_from(high * 16 + digit).unwrap_or(0));
                None
            }
        };
    }
    Some(bytes)
}

/// Text of UTF-16 bytes, low byte first.
pub(super) fn utf16(bytes: &[u8]) -> Option<String> {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    String::from_utf16(&units).ok().map(|text| text.replace('\0', ""))
}

/// Bytes as text; NUL, which no argument can hold, goes, and what is no UTF-8 becomes a sign that no command holds.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoders_read_what_encoders_write() {
        assert_eq!(hex("68 65:6c6c6f").as_deref(), Some(&b"hello"[..]));
        assert_eq!(hex("zz"), None);
        assert_eq!(utf16(&[0x68, 0, 0x69, 0]).as_deref(), Some("hi"));
    }
}
