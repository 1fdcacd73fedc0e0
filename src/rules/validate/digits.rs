//! Digit strings: reading them out of separated text, and the check digits many numbers share.

/// The ASCII digits of `value` as numbers, everything else dropped.
pub(super) fn digits_of(value: &str) -> Vec<u8> {
    value.bytes().filter(u8::is_ascii_digit).map(|byte| byte - b'0').collect()
}

/// The ASCII letters and digits of `value` in upper case, everything else dropped.
pub(super) fn alphanumerics_of(value: &str) -> Vec<u8> {
    value.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_uppercase()).collect()
}

/// Whether the digits of `value` pass the Luhn check and are not all zero.
pub(super) fn is_luhn(value: &str) -> bool {
    let digits = digits_of(value);
    digits.len() >= 2 && digits.iter().any(|digit| *digit != 0) && luhn_sum(&digits).is_multiple_of(10)
}

/// The Luhn sum, the last digit counted once.
pub(super) fn luhn_sum(digits: &[u8]) -> u32 {
    let doubled = |digit: u8| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| u32::from(if place % 2 == 1 { doubled(*digit) } else { *digit }))
        .sum()
}

/// Whether at least two different digits stand in `digits`.
pub(super) fn is_varied(digits: &[u8]) -> bool {
    digits.iter().any(|digit| Some(digit) != digits.first())
}

/// The sum of digit times weight, as far as the shorter of the two reaches.
pub(super) fn weighted_sum(digits: &[u8], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| u32::from(*digit) * weight).sum()
}

/// The number the decimal digits spell, modulo `modulus`.
pub(super) fn decimal_mod(digits: &[u8], modulus: u64) -> u64 {
    digits.iter().fold(0, |rest, digit| (rest * 10 + u64::from(*digit)) % modulus)
}

/// The number the decimal digits spell; `digits` has at most 9 entries where exactness matters.
pub(super) fn number(digits: &[u8]) -> u32 {
    digits.iter().fold(0u32, |sum, digit| sum.wrapping_mul(10).wrapping_add(u32::from(*digit)))
}

const VERHOEFF_PRODUCT: [[u8; 10]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    [1, 2, 3, 4, 0, 6, 7, 8, 9, 5],
    [2, 3, 4, 0, 1, 7, 8, 9, 5, 6],
    [3, 4, 0, 1, 2, 8, 9, 5, 6, 7],
    [4, 0, 1, 2, 3, 9, 5, 6, 7, 8],
    [5, 9, 8, 7, 6, 0, 4, 3, 2, 1],
    [6, 5, 9, 8, 7, 1, 0, 4, 3, 2],
    [7, 6, 5, 9, 8, 2, 1, 0, 4, 3],
    [8, 7, 6, 5, 9, 3, 2, 1, 0, 4],
    [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
];
const VERHOEFF_PERMUTATION: [[u8; 10]; 8] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
    [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
    [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
    [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
    [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
    [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
    [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
];

/// Whether the digits, check digit last, pass the Verhoeff check.
pub(super) fn is_verhoeff(digits: &[u8]) -> bool {
    let check = digits.iter().rev().enumerate().fold(0u8, |state, (place, digit)| {
        let permuted = VERHOEFF_PERMUTATION[place % 8][usize::from(*digit % 10)];
        VERHOEFF_PRODUCT[usize::from(state)][usize::from(permuted)]
    });
    !digits.is_empty() && check == 0
}

/// Whether the digits pass ISO 7064 mod 11,10 (German and Croatian tax numbers).
pub(super) fn is_iso7064_mod11_10(digits: &[u8]) -> bool {
    let Some((check, body)) = digits.split_last() else { return false };
    let product = body.iter().fold(10u32, |product, digit| {
        let sum = (product + u32::from(*digit)) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    (11 - product) % 10 == u32::from(*check)
}

/// Whether day, month and year make a date; `year` is taken as it is.
pub(super) fn is_date(day: u32, month: u32, year: u32) -> bool {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(is_leap),
        _ => return false,
    };
    (1..=days).contains(&day)
}
