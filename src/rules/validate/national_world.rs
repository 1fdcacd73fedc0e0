//! Tax, company and card numbers that stand beside their name in text: France, the United Kingdom, Poland, Spain, Portugal,
//! Belarus and Mexico.
//!
//! Sources: the TIN pages of the European Commission (France, United Kingdom), GUS and the identity card rules of Poland,
//! Orden EHA/451/2008 (Spain), the AMA's note on document numbers (Portugal), Instruction 80 of the Ministry of Taxes
//! (Belarus), and the SAT's rules for the RFC (Mexico).

use super::digits::{decimal_mod, is_date, luhn_sum, number, weighted_sum};
use super::national::{Scheme, with_digits, with_digits_in};

/// The scheme in which two signs besides letters and digits count.
pub(super) const MX_RFC: &str = "mx-rfc";
/// What stands for `Ñ`.
const ENYE: u8 = b'~';

/// Schemes of this file.
pub(super) const SCHEMES: &[Scheme] = &[
    Scheme { name: "by-unp", check: is_by_unp },
    Scheme { name: "es-cif", check: is_es_cif },
    Scheme { name: "fr-spi", check: |v| with_digits(v, 13, is_fr_spi) },
    Scheme { name: MX_RFC, check: is_mx_rfc },
    Scheme { name: "pl-id-card", check: is_pl_id_card },
    Scheme { name: "pl-regon", check: |v| with_digits_in(v, 9..=14, is_pl_regon) },
    Scheme { name: "pt-cc", check: is_pt_cc },
    Scheme { name: "uk-utr", check: is_uk_utr },
];

/// What a digit or a capital is worth where letters go on after 9.
fn worth(byte: u8) -> u32 {
    u32::from(if byte.is_ascii_digit() { byte - b'0' } else { byte.wrapping_sub(b'A').wrapping_add(10) })
}

fn is_digits(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_digit)
}

/// The last three digits are the rest of the others by 511.
fn is_fr_spi(d: &[u8]) -> bool {
    d[0] <= 3 && decimal_mod(&d[..10], 511) == u64::from(number(&d[10..]))
}

/// The check digit comes first, and a K may stand on either side.
fn is_uk_utr(v: &[u8]) -> bool {
    let v = v.strip_prefix(b"K").or_else(|| v.strip_suffix(b"K")).unwrap_or(v);
    with_digits(v, 10, |d| {
        let rest = weighted_sum(&d[1..], &[6, 7, 8, 9, 10, 5, 4, 3, 2]) % 11;
        b"21987654321"[rest as usize] == d[0] + b'0'
    })
}

/// Nine digits, and five more for a part of the business.
fn is_pl_regon(d: &[u8]) -> bool {
    let is_checked = |d: &[u8], weights: &[u32]| {
        let (check, body) = d.split_at(d.len() - 1);
        weighted_sum(check, weights) % 11 % 10 == u32::from(body[0])
    };
    matches!(d.len(), 9 | 14)
        && is_checked(&d[..9], &[8, 9, 2, 3, 4, 5, 6, 7])
        && (d.len() == 9 || is_checked(d, &[2, 4, 8, 5, 0, 9, 7, 3, 6, 1, 2, 4, 8]))
}

/// Three letters, the check digit, five digits.
fn is_pl_id_card(v: &[u8]) -> bool {
    const WEIGHTS: [u32; 9] = [7, 3, 1, 9, 7, 3, 1, 7, 3];
    let sum: u32 = v.iter().zip(WEIGHTS).map(|(byte, weight)| worth(*byte) * weight).sum();
    v.len() == 9 && v[..3].iter().all(u8::is_ascii_uppercase) && is_digits(&v[3..]) && sum.is_multiple_of(10)
}

/// A letter for the kind of company, seven digits, and a check that is a digit or a letter.
fn is_es_cif(v: &[u8]) -> bool {
    let [kind, body @ .., check] = v else { return false };
    if body.len() != 7 || !is_digits(body) || !b"ABCDEFGHJNPQRSUVW".contains(kind) {
        return false;
    }
    let digits: Vec<u8> = body.iter().map(|byte| byte - b'0').chain([0]).collect();
    let digit = (10 - luhn_sum(&digits) % 10) % 10;
    u32::from(*check) == digit + u32::from(b'0') || b"JABCDEFGHI"[digit as usize] == *check
}

/// Nine digits, two letters or digits of the version, and a check over all by Luhn's rule with letters worth ten and more.
fn is_pt_cc(v: &[u8]) -> bool {
    if v.len() != 12 || !is_digits(&v[..9]) || !v[11].is_ascii_digit() {
        return false;
    }
    let once = |worth: u32| if worth > 9 { worth - 9 } else { worth };
    let worth_at = |(place, byte): (usize, &u8)| match place % 2 {
        0 => once(worth(*byte) * 2),
        _ => worth(*byte),
    };
    v.iter().enumerate().map(worth_at).sum::<u32>().is_multiple_of(10)
}

/// Nine digits of a company, or two letters and seven digits of a person.
fn is_by_unp(v: &[u8]) -> bool {
    const LETTERS: &[u8] = b"ABCEHKMOPT";
    const WEIGHTS: [u32; 8] = [29, 23, 19, 17, 13, 7, 5, 3];
    if v.len() != 9 || !is_digits(&v[2..]) || !b"1234567ABCEHKM".contains(&v[0]) {
        return false;
    }
    let second = match v[1] {
        digit if digit.is_ascii_digit() && v[0].is_ascii_digit() => worth(digit),
        letter if v[0].is_ascii_uppercase() => match LETTERS.iter().position(|known| *known == letter) {
            Some(at) => at as u32,
            None => return false,
        },
        _ => return false,
    };
    let worths = [worth(v[0]), second].into_iter().chain(v[2..8].iter().map(|byte| worth(*byte)));
    let rest = worths.zip(WEIGHTS).map(|(worth, weight)| worth * weight).sum::<u32>() % 11;
    rest == worth(v[8])
}

/// The letters and digits of an RFC, `&` and `Ñ` among them.
pub(super) fn rfc_signs(value: &str) -> Vec<u8> {
    let sign = |c: char| match c {
        'Ñ' | 'ñ' => Some(ENYE),
        '&' => Some(b'&'),
        _ => u8::try_from(c).ok().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_uppercase()),
    };
    value.chars().filter_map(sign).collect()
}

/// Letters of a name, a date, two signs that tell namesakes apart, and the check.
fn is_mx_rfc(v: &[u8]) -> bool {
    const ORDER: &[u8] = b"0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ ~";
    let Some(name_len) = v.len().checked_sub(9).filter(|len| (3..=4).contains(len)) else { return false };
    let (name, rest) = v.split_at(name_len);
    let Some(date) = rest.get(..6).filter(|date| is_digits(date)) else { return false };
    let two = |at: usize| worth(date[at]) * 10 + worth(date[at + 1]);
    if name.iter().any(u8::is_ascii_digit) || !is_date(two(4), two(2), 2000 + two(0)) {
        return false;
    }
    // Counted from the end, as shorter ones are filled up with blanks in front.
    let blanks = 4 - name_len;
    let signs = std::iter::repeat_n(&b' ', blanks).chain(&v[..v.len() - 1]);
    let value_of = |sign: &u8| ORDER.iter().position(|known| known == sign).unwrap_or(0) as u32;
    let sum: u32 = signs.zip((2..=13).rev()).map(|(sign, weight)| value_of(sign) * weight).sum();
    let check = ORDER[((11 - sum % 11) % 11) as usize];
    check == v[v.len() - 1]
}
