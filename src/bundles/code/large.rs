//! Whole numbers that are larger than a machine word, and numbers packed into bytes: texts are hidden in both.

/// Digits of the largest number that is read.
const DIGITS_MAX: usize = 8 << 10;

/// The bytes of a number, the most telling first, of a text of decimal digits or of `0x…`, `0o…`, `0b…`; `None` for anything
/// else.
pub(super) fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let text = digits.trim().replace('_', "");
    let (radix, digits) = match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, &text[2..]),
        Some("0o") => (8, &text[2..]),
        Some("0b") => (2, &text[2..]),
        _ => (10, text.as_str()),
    };
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    // The least telling byte first, while it grows.
    let mut out: Vec<u8> = Vec::new();
    for digit in digits.chars() {
        let mut carry = digit.to_digit(radix)?;
        for byte in &mut out {
            let sum = u32::from(*byte) * radix + carry;
            (*byte, carry) = (sum as u8, sum >> 8);
        }
        if carry > 0 {
            out.push(carry as u8);
        }
    }
    out.reverse();
    Some(out)
}

/// The bytes of a number in a row of `length`; `None` where it does not fit.
pub(super) fn padded(mut bytes: Vec<u8>, length: usize, is_little: bool) -> Option<Vec<u8>> {
    if bytes.len() > length || length > DIGITS_MAX {
        return None;
    }
    let mut out = vec![0; length - bytes.len()];
    out.append(&mut bytes);
    if is_little {
        out.reverse();
    }
    Some(out)
}

/// Bytes of numbers as `struct.pack` lays them out (Python library reference, `struct`); `None` for what is not followed.
pub(super) fn packed(format: &str, numbers: &[Option<f64>]) -> Option<Vec<u8>> {
    let is_little = !format.starts_with(['>', '!']);
    let codes = format.trim_start_matches(['<', '>', '!', '=', '@']);
    let (mut out, mut numbers, mut count) = (Vec::new(), numbers.iter(), None::<usize>);
    for code in codes.chars().filter(|code| !code.is_whitespace()) {
        if let Some(digit) = code.to_digit(10) {
            count = Some(count.unwrap_or(0).checked_mul(10)?.checked_add(digit as usize)?);
            continue;
        }
        let width = match code {
            'b' | 'B' | 'x' => 1,
            'h' | 'H' => 2,
            'i' | 'I' | 'l' | 'L' => 4,
            'q' | 'Q' => 8,
            _ => return None,
        };
        for _ in 0..count.take().unwrap_or(1) {
            if out.len() > DIGITS_MAX {
                return None;
            }
            let number = if code == 'x' { 0.0 } else { (*numbers.next()?)? };
            let bytes = (number as i64).to_be_bytes();
            let start = out.len();
            out.extend_from_slice(&bytes[8 - width..]);
            if is_little {
                out[start..].reverse();
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_bytes() {
        for (digits, wanted) in [
            ("513", Some(vec![2, 1])),
            ("0x0201", Some(vec![2, 1])),
            ("340282366920938463463374607431768211455", Some(vec![255; 16])),
            ("0b1_0000_0000", Some(vec![1, 0])),
            ("12a", None),
            ("", None),
        ] {
            assert_eq!(bytes_of(digits), wanted, "{digits}");
        }
        assert_eq!(padded(vec![2, 1], 3, false), Some(vec![0, 2, 1]));
        assert_eq!(padded(vec![2, 1], 3, true), Some(vec![1, 2, 0]));
        assert_eq!(padded(vec![2, 1], 1, true), None);
    }

    #[test]
    fn numbers_are_packed_as_their_format_says() {
        for (format, numbers, wanted) in [
            ("3B", vec![1.0, 2.0, 3.0], Some(vec![1, 2, 3])),
            (">HB", vec![258.0, 3.0], Some(vec![1, 2, 3])),
            ("<I", vec![1.0], Some(vec![1, 0, 0, 0])),
            ("2B", vec![1.0], None),
            ("4s", vec![1.0], None),
        ] {
            let numbers: Vec<_> = numbers.into_iter().map(Some).collect();
            assert_eq!(packed(format, &numbers), wanted, "{format}");
        }
    }
}
