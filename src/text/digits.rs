//! Codes in which each character is a digit of so many bits: base64 and base32.
//!
//! Here is what their readers have in common. What a text must be like to be taken for such a code is theirs to say.

pub use super::base64::symbol as base64_digit;

/// The five bits that a character of base32 (RFC 4648) in either case stands for.
pub fn base32_digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    }
}

/// The whole bytes of digits of so many bits each; `None` where a character is no digit. Makes room for `count` digits.
pub fn bytes_of_digits(digits: impl Iterator<Item = Option<u8>>, bits: u32, count: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count * bits as usize / 8);
    let (mut held, mut held_bits) = (0_u32, 0);
    for digit in digits {
        held = held << bits | u32::from(digit?);
        held_bits += bits;
        if held_bits >= 8 {
            held_bits -= 8;
            bytes.push((held >> held_bits) as u8);
            held &= (1 << held_bits) - 1;
        }
    }
    Some(bytes)
}

/// Base64 in either alphabet as programs read it that decode whatever they are given: white space is left out, and padding
/// may be missing.
pub fn base64_of_program(text: &[u8]) -> Option<Vec<u8>> {
    bytes_of_digits(digits_of_program(text).map(base64_digit), 6, text.len())
}

/// Base32 likewise.
pub fn base32_of_program(text: &[u8]) -> Option<Vec<u8>> {
    bytes_of_digits(digits_of_program(text).map(base32_digit), 5, text.len())
}

fn digits_of_program(text: &[u8]) -> impl Iterator<Item = u8> {
    text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).take_while(|byte| *byte != b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_with_blanks_and_without_padding() {
        assert_eq!(base64_of_program(b"aGVsbG8gd29ybGQ=").as_deref(), Some(&b"hello world"[..]));
        assert_eq!(base64_of_program(b"aGVs\nbG8").as_deref(), Some(&b"hello"[..]));
        assert_eq!(base64_of_program(b"-_+/").as_deref(), Some(&[0xFB, 0xFF, 0xBF][..]));
        assert_eq!(base64_of_program(b"a*b"), None);
        assert_eq!(base32_of_program(b"NBSWY3DP").as_deref(), Some(&b"hello"[..]));
        assert_eq!(base32_of_program(b"nbsw y3dp====").as_deref(), Some(&b"hello"[..]));
        assert_eq!(base32_of_program(b"1"), None);
    }
}
