//! Encodings that scripts hide constants in: base64, hexadecimal, ROT13.

/// Parts of scripts of other languages that decode.
const DECODING: &[&str] = &[
    "b64decode",
    "b32decode",
    "b16decode",
    "a85decode",
    "b85decode",
    "unhexlify",
    "fromhex",
    "decompress(",
    "codecs.decode",
    "a2b_",
    "atob(",
    "'base64'",
    "\"base64\"",
    "'hex'",
    "\"hex\"",
    "base64_decode",
    "decode_base64",
    "decode64",
    "gzinflate",
    "str_rot13",
    "unpack(",
    "pack(",
    "FromBase64String",
];

/// Whether a script makes text out of what nobody can read, by the names of what it calls.
pub(in crate::shell) fn decodes(script: &str) -> bool {
    DECODING.iter().any(|sign| script.contains(sign))
}

/// The bytes of base64 in either alphabet, padded or not, blanks left out.
pub(super) fn base64_bytes(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            b' ' | b'\n' | b'\r' | b'\t' => continue,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 1;
        if count == 4 {
            out.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, count) = (0, 0);
        }
    }
    match count {
        0 => {}
        2 => out.push((bits >> 4) as u8),
        3 => out.extend_from_slice(&[(bits >> 10) as u8, (bits >> 2) as u8]),
        _ => return None,
    }
    Some(out)
}

/// The text of base64.
pub(super) fn base64(text: &str) -> Option<String> {
    String::from_utf8(base64_bytes(text)?).ok()
}

/// The text of hexadecimal digits, blanks and `\x` left out.
pub(super) fn hex(text: &str) -> Option<String> {
    let digits: Vec<u8> = text.replace("\\x", "").bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let bytes: Option<Vec<u8>> =
        digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect();
    String::from_utf8(bytes?).ok()
}

/// ROT13 of ASCII letters.
pub(super) fn rot13(text: &str) -> String {
    let turn = |c: char, base: u8| char::from((c as u8 - base + 13) % 26 + base);
    text.chars()
        .map(|c| match c {
            'a'..='z' => turn(c, b'a'),
            'A'..='Z' => turn(c, b'A'),
            _ => c,
        })
        .collect()
}
