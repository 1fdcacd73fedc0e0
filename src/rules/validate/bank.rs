//! Card, account and routing numbers.

use super::digits::{digits_of, is_varied, number, weighted_sum};

/// First six digits from .. to (both included), and the lengths in use, as (from, to, shortest, longest).
///
/// Networks overlap (co-branded ranges); a number is accepted when any line takes it.
const ISSUERS: &[(u32, u32, usize, usize)] = &[
    (400_000, 499_999, 13, 19), // Visa; 13, 16 and 19 digits, see `is_issued`
    (510_000, 559_999, 16, 16), // Mastercard
    (222_100, 272_099, 16, 16), // Mastercard, second series
    (340_000, 349_999, 15, 15), // American Express
    (370_000, 379_999, 15, 15),
    (300_000, 305_999, 14, 19), // Diners Club
    (309_500, 309_699, 14, 19),
    (360_000, 369_999, 14, 19),
    (380_000, 399_999, 14, 19),
    (601_100, 601_199, 16, 19), // Discover
    (644_000, 659_999, 16, 19),
    (352_800, 358_999, 16, 19), // JCB
    (620_000, 629_999, 14, 19), // UnionPay
    (810_000, 817_199, 16, 19),
    (500_000, 509_999, 16, 19), // Maestro, Verve, Elo, RuPay, Dankort
    (560_000, 589_999, 16, 19), // Maestro
    (630_400, 630_499, 12, 19),
    (633_400, 633_499, 16, 19),
    (675_900, 676_399, 12, 19),
    (677_100, 677_499, 16, 19),
    (220_000, 220_499, 16, 19), // Mir
    (600_000, 610_000, 16, 16), // RuPay, Hipercard
    (636_297, 636_297, 16, 16), // Elo
    (636_368, 636_369, 16, 16),
    (820_000, 829_999, 16, 16), // RuPay
    (979_200, 979_299, 16, 16), // Troy
    (860_000, 860_099, 16, 16), // Uzcard
    (986_000, 986_099, 16, 16), // Humo
];

/// Whether prefix and length belong to a card network.
fn is_issued(digits: &[u8]) -> bool {
    let Some(prefix) = digits.get(..6) else { return false };
    let (prefix, length) = (number(prefix), digits.len());
    if digits[0] == 4 && !matches!(length, 13 | 16 | 19) {
        return false;
    }
    ISSUERS.iter().any(|(from, to, shortest, longest)| {
        (*from..=*to).contains(&prefix) && (*shortest..=*longest).contains(&length)
    })
}

/// Whether the text around digits makes them part of a larger number, a UUID or an identifier.
pub(super) fn is_inside_number(before: &str, after: &str) -> bool {
    let mut back = before.bytes().rev();
    let (last, last_but_one) = (back.next(), back.next());
    let mut ahead = after.bytes();
    let (first, second) = (ahead.next(), ahead.next());
    let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
    let joined_left = match last {
        Some(b',') => is_digit(last_but_one) && !is_in_row(before, after),
        Some(b'.') => is_digit(last_but_one),
        Some(b'-') => is_hex_word(before[..before.len() - 1].bytes().rev()),
        Some(b'_') => true,
        Some(byte) => byte.is_ascii_alphanumeric(),
        None => false,
    };
    let joined_right = match first {
        Some(b',') => is_digit(second) && !is_in_row(before, after),
        Some(b'.') => is_digit(second),
        Some(b'-') => is_hex_word(after[1..].bytes()),
        Some(b'_') => true,
        Some(byte) => byte.is_ascii_alphanumeric(),
        None => false,
    };
    joined_left || joined_right
}

/// Whether the word that comes next is one of hexadecimal digits, as a part of a UUID or of an identifier is and `Fax` is
/// not.
fn is_hex_word(bytes: impl Iterator<Item = u8>) -> bool {
    let mut word = bytes.take_while(u8::is_ascii_alphanumeric).peekable();
    word.peek().is_some() && word.all(|byte| byte.is_ascii_hexdigit())
}

/// Whether commas around a value part it from its neighbours in a row of values, and are no decimal comma: there is one
/// on either side, or the digits behind the only one are more than decimals have, or go on in groups.
fn is_in_row(before: &str, after: &str) -> bool {
    let left = before.strip_suffix(',').map(trailing_digits);
    let right = after.strip_prefix(',').map(leading_digits);
    match (left, right) {
        (Some(_), Some(_)) => true,
        (Some(digits), None) => digits > 6 || came_in_groups(&before[..before.len() - 1 - digits]),
        (None, Some(digits)) => digits > 6 || goes_on_in_groups(&after[1 + digits..]),
        (None, None) => false,
    }
}

/// Whether a dash or a slash and a digit come next.
fn goes_on_in_groups(text: &str) -> bool {
    text.strip_prefix(['-', '/']).is_some_and(|rest| leading_digits(rest) > 0)
}

/// Whether a digit and a dash or a slash came last.
fn came_in_groups(text: &str) -> bool {
    text.strip_suffix(['-', '/']).is_some_and(|rest| trailing_digits(rest) > 0)
}

fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn trailing_digits(text: &str) -> usize {
    text.bytes().rev().take_while(u8::is_ascii_digit).count()
}

/// Whether `value` can be a card number where it stands.
pub(super) fn is_card(value: &str, before: &str, after: &str) -> bool {
    let digits = digits_of(value);
    is_varied(&digits)
        && (is_issued(&digits) || is_of_airlines(&digits, before, after))
        && !is_inside_number(before, after)
}

/// Whether it is a card of airlines (UATP). A tenth of all numbers have that form, so its name must stand beside it.
fn is_of_airlines(digits: &[u8], before: &str, after: &str) -> bool {
    let is_named = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.contains("uatp") || text.contains("air travel card")
    };
    digits.len() == 15 && digits[0] == 1 && (is_named(before) || is_named(after))
}

/// Countries of the IBAN registry with the length of the whole number.
const IBAN_LENGTHS: &[(&[u8; 2], usize)] = &[
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BI", 27),
    (b"BR", 29),
    (b"BY", 28),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DJ", 27),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FK", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HN", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IQ", 23),
    (b"IR", 26),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LC", 32),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"LY", 25),
    (b"MA", 28),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MN", 20),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"MZ", 25),
    (b"NI", 28),
    (b"NL", 18),
    (b"NO", 15),
    (b"OM", 23),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"RU", 33),
    (b"SA", 24),
    (b"SC", 31),
    (b"SD", 18),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"SO", 23),
    (b"ST", 25),
    (b"SV", 28),
    (b"TL", 23),
    (b"TN", 24),
    (b"TR", 26),
    (b"UA", 29),
    (b"VA", 22),
    (b"VG", 24),
    (b"XK", 20),
    (b"YE", 30),
    (b"DZ", 26),
    (b"AO", 25),
    (b"BJ", 28),
    (b"BF", 28),
    (b"CM", 27),
    (b"CV", 25),
    (b"CI", 28),
    (b"MG", 27),
    (b"ML", 28),
    (b"SN", 28),
    (b"KM", 27),
    (b"TD", 27),
    (b"CG", 27),
    (b"GA", 27),
    (b"GQ", 27),
    (b"CF", 27),
    (b"GW", 25),
    (b"NE", 28),
    (b"TG", 28),
];

/// Whether `value` is an IBAN of its country's length with a right check; spaces, dots and dashes are skipped.
pub(super) fn is_iban(value: &str) -> bool {
    let text = super::digits::alphanumerics_of(value);
    let is_length_right =
        IBAN_LENGTHS.iter().any(|(country, length)| text.starts_with(*country) && text.len() == *length);
    if !is_length_right || !text[2..4].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let (head, body) = text.split_at(4);
    let rest = body.iter().chain(head).fold(0u32, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte - b'A') + 10) % 97,
    });
    rest == 1 && body.iter().any(|byte| *byte != b'0')
}

/// Whether `value` is a routing number of the American Bankers Association.
pub(super) fn is_aba_routing(value: &str) -> bool {
    let digits = digits_of(value);
    if digits.len() != 9 || !is_varied(&digits) {
        return false;
    }
    let is_district = matches!(number(&digits[..2]), 0..=12 | 21..=32 | 61..=72 | 80);
    is_district && weighted_sum(&digits, &[3, 7, 1, 3, 7, 1, 3, 7, 1]).is_multiple_of(10)
}
