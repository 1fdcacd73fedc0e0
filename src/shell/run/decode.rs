//! Decoders over bytes: base64, base32, hexadecimal, UTF-16.

/// Bytes of base64 text, standard or URL alphabet, blanks and missing padding allowed.
pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    packed(text, 6, |byte| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    })
}

/// Bytes of base32 text.
pub(super) fn base32(text: &str) -> Option<Vec<u8>> {
    packed(text, 5, |byte| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    })
}

fn packed(text: &str, width: u32, value: impl Fn(u8) -> Option<u8>) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4 + 1);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in text.bytes() {
        if byte.is_ascii_whitespace() {
            continue;
        }
        if byte == b'=' {
            break;
        }
        bits = (bits << width) | u32::from(value(byte)?);
        count += width;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap_or(0));
        }
    }
    Some(bytes)
}

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
        assert_eq!(base64("aGVsbG8gd29ybGQ=").as_deref(), Some(&b"hello world"[..]));
        assert_eq!(base64("aGVs\nbG8").as_deref(), Some(&b"hello"[..]));
        assert_eq!(base64("a*b"), None);
        assert_eq!(base32("NBSWY3DP").as_deref(), Some(&b"hello"[..]));
        assert_eq!(hex("68 65:6c6c6f").as_deref(), Some(&b"hello"[..]));
        assert_eq!(hex("zz"), None);
        assert_eq!(utf16(&[0x68, 0, 0x69, 0]).as_deref(), Some("hi"));
    }
}
