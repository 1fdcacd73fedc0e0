//! Personal, tax and company numbers: the checks of the bodies that issue them.
//!
//! Each scheme sees the letters and digits of the value only, upper case; separators are the pattern's business.

use super::bank::is_inside_number;
use super::digits::{
    alphanumerics_of, decimal_mod, digits_of, is_date, is_iso7064_mod11_10, is_varied, is_verhoeff, luhn_sum,
    number, weighted_sum,
};
use super::{national_more, national_world};

/// One country's numbering scheme.
#[derive(Debug)]
pub struct Scheme {
    /// Name in rules: country, dash, number.
    pub name: &'static str,
    pub(super) check: fn(&[u8]) -> bool,
}

impl PartialEq for Scheme {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Scheme {
    /// Every scheme.
    pub(super) fn all() -> impl Iterator<Item = &'static Self> {
        SCHEMES.iter().chain(national_more::SCHEMES).chain(national_world::SCHEMES)
    }

    /// The scheme of that name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        Self::all().find(|scheme| scheme.name == name)
    }

    /// Whether the letters and digits of `value` make a number of this scheme.
    pub(super) fn accepts(&self, value: &str) -> bool {
        let signs = match self.name {
            national_world::MX_RFC => national_world::rfc_signs(value),
            _ => alphanumerics_of(value),
        };
        (self.check)(&signs)
    }
}

/// Schemes of this file.
const SCHEMES: &[Scheme] = &[
    Scheme { name: "au-abn", check: |v| with_digits(v, 11, is_au_abn) },
    Scheme { name: "au-acn", check: |v| with_digits(v, 9, is_au_acn) },
    Scheme { name: "au-medicare", check: |v| with_digits_in(v, 10..=11, is_au_medicare) },
    Scheme { name: "au-tfn", check: |v| with_digits_in(v, 8..=9, is_au_tfn) },
    Scheme { name: "be-nn", check: |v| with_digits(v, 11, is_be_nn) },
    Scheme { name: "bg-egn", check: |v| with_digits(v, 10, is_bg_egn) },
    Scheme { name: "br-cnpj", check: |v| with_digits(v, 14, is_br_cnpj) },
    Scheme { name: "br-cpf", check: |v| with_digits(v, 11, is_br_cpf) },
    Scheme {
        name: "ca-sin",
        check: |v| with_digits(v, 9, |d| !matches!(d[0], 0 | 8) && luhn_sum(d).is_multiple_of(10)),
    },
    Scheme { name: "ch-ahv", check: |v| with_digits(v, 13, |d| d.starts_with(&[7, 5, 6]) && is_ean(d)) },
    Scheme { name: "cl-rut", check: is_cl_rut },
    Scheme { name: "cn-id", check: is_cn_id },
    Scheme { name: "cz-rc", check: |v| with_digits(v, 10, |d| decimal_mod(d, 11) == 0 && is_cz_date(d)) },
    Scheme { name: "de-tax-id", check: |v| with_digits(v, 11, is_de_tax_id) },
    Scheme { name: "de-id-card", check: is_de_id_card },
    Scheme { name: "de-health", check: is_de_health },
    Scheme { name: "de-social", check: is_de_social },
    Scheme { name: "dk-cpr", check: |v| with_digits(v, 10, |d| is_date_at(d, 0, 2, 4, 2000)) },
    Scheme { name: "ee-ik", check: |v| with_digits(v, 11, is_baltic) },
    Scheme { name: "es-dni", check: is_es_dni },
    Scheme { name: "fi-hetu", check: is_fi_hetu },
    Scheme { name: "fr-nir", check: is_fr_nir },
    Scheme { name: "hr-oib", check: |v| with_digits(v, 11, is_iso7064_mod11_10) },
    Scheme { name: "hk-id", check: is_hk_id },
    Scheme { name: "il-id", check: |v| with_digits(v, 9, |d| luhn_sum(d).is_multiple_of(10)) },
    Scheme { name: "in-aadhaar", check: |v| with_digits(v, 12, |d| d[0] >= 2 && is_verhoeff(d)) },
    Scheme { name: "in-gstin", check: is_in_gstin },
    Scheme { name: "ir-id", check: |v| with_digits(v, 10, is_ir_id) },
    Scheme { name: "it-fiscal-code", check: is_it_fiscal_code },
    Scheme { name: "it-vat", check: |v| with_digits(v, 11, |d| luhn_sum(d).is_multiple_of(10)) },
    Scheme { name: "kr-rrn", check: |v| with_digits(v, 13, is_kr_rrn) },
    Scheme { name: "kr-brn", check: |v| with_digits(v, 10, is_kr_brn) },
    Scheme { name: "mx-curp", check: is_mx_curp },
    Scheme { name: "nl-bsn", check: |v| with_digits(v, 9, is_nl_bsn) },
    Scheme { name: "no-fnr", check: |v| with_digits(v, 11, is_no_fnr) },
    Scheme { name: "pl-pesel", check: |v| with_digits(v, 11, is_pl_pesel) },
    Scheme {
        name: "pl-nip",
        check: |v| {
            with_digits(v, 10, |d| weighted_sum(d, &[6, 5, 7, 2, 3, 4, 5, 6, 7]) % 11 == u32::from(d[9]))
        },
    },
    Scheme { name: "pt-nif", check: |v| with_digits(v, 9, is_pt_nif) },
    Scheme { name: "ro-cnp", check: |v| with_digits(v, 13, is_ro_cnp) },
    Scheme { name: "se-pnr", check: |v| with_digits_in(v, 10..=12, is_se_pnr) },
    Scheme { name: "se-org", check: |v| with_digits(v, 10, |d| d[2] >= 2 && luhn_sum(d).is_multiple_of(10)) },
    Scheme { name: "sg-nric", check: is_sg_nric },
    Scheme { name: "th-id", check: |v| with_digits(v, 13, is_th_id) },
    Scheme { name: "tr-id", check: |v| with_digits(v, 11, is_tr_id) },
    Scheme { name: "tw-id", check: is_tw_id },
    Scheme { name: "uk-nhs", check: |v| with_digits(v, 10, is_uk_nhs) },
    Scheme { name: "uk-nino", check: is_uk_nino },
    Scheme { name: "us-itin", check: |v| with_digits(v, 9, is_us_itin) },
    Scheme { name: "us-npi", check: |v| with_digits(v, 10, is_us_npi) },
    Scheme { name: "us-dea", check: is_us_dea },
    Scheme {
        name: "za-id",
        check: |v| {
            with_digits(v, 13, |d| {
                is_date_at(d, 4, 2, 0, 2000) && d[10] <= 2 && luhn_sum(d).is_multiple_of(10)
            })
        },
    },
];

/// Runs `check` on all-digit text of `length` varied digits.
pub(super) fn with_digits(value: &[u8], length: usize, check: impl Fn(&[u8]) -> bool) -> bool {
    with_digits_in(value, length..=length, check)
}

pub(super) fn with_digits_in(
    value: &[u8],
    lengths: std::ops::RangeInclusive<usize>,
    check: impl Fn(&[u8]) -> bool,
) -> bool {
    if !lengths.contains(&value.len()) || !value.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let digits: Vec<u8> = value.iter().map(|byte| byte - b'0').collect();
    is_varied(&digits) && check(&digits)
}

/// Whether two digits each at the given places make a day, a month and a year of `century`.
///
/// The century matters for 29 February only.
pub(super) fn is_date_at(digits: &[u8], day: usize, month: usize, year: usize, century: u32) -> bool {
    let two = |at: usize| digits.get(at..at + 2).map_or(99, number);
    is_date(two(day), two(month), century + two(year))
}

/// The check digit of EAN-13: weights 1 and 3 in turn.
fn is_ean(digits: &[u8]) -> bool {
    weighted_sum(digits, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]).is_multiple_of(10)
}

/// Whether area, group and serial could be issued and the number is not one printed in advertisements.
pub(super) fn is_us_ssn(value: &str, before: &str, after: &str) -> bool {
    let digits = digits_of(value);
    if digits.len() != 9 || !is_varied(&digits) || is_inside_number(before, after) {
        return false;
    }
    let (area, group, serial) = (number(&digits[..3]), number(&digits[3..5]), number(&digits[5..]));
    let is_advertised = matches!((area, group, serial), (78, 5, 1120) | (219, 9, 9999) | (457, 55, 5462));
    (1..900).contains(&area) && area != 666 && group != 0 && serial != 0 && !is_advertised
}

fn is_us_itin(d: &[u8]) -> bool {
    let group = number(&d[3..5]);
    d[0] == 9 && matches!(group, 50..=65 | 70..=88 | 90..=92 | 94..=99)
}

/// National provider identifier: Luhn with the prefix 80840.
fn is_us_npi(d: &[u8]) -> bool {
    matches!(d[0], 1 | 2) && (luhn_sum(d) + 24).is_multiple_of(10)
}

/// Registration of the Drug Enforcement Administration: two letters, seven digits.
fn is_us_dea(v: &[u8]) -> bool {
    if v.len() != 9 || !v[0].is_ascii_alphabetic() || !(v[1].is_ascii_alphabetic() || v[1] == b'9') {
        return false;
    }
    with_digits(&v[2..], 7, |d| {
        let sum = d[0] + d[2] + d[4] + 2 * (d[1] + d[3] + d[5]);
        sum % 10 == d[6]
    })
}

fn is_au_abn(d: &[u8]) -> bool {
    let weights = [10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19];
    d[0] >= 1 && (weighted_sum(d, &weights) - weights[0]).is_multiple_of(89)
}

fn is_au_acn(d: &[u8]) -> bool {
    (10 - weighted_sum(d, &[8, 7, 6, 5, 4, 3, 2, 1]) % 10) % 10 == u32::from(d[8])
}

fn is_au_medicare(d: &[u8]) -> bool {
    (2..=6).contains(&d[0]) && weighted_sum(d, &[1, 3, 7, 9, 1, 3, 7, 9]) % 10 == u32::from(d[8])
}

fn is_au_tfn(d: &[u8]) -> bool {
    let weights: &[u32] =
        if d.len() == 9 { &[1, 4, 3, 7, 5, 8, 6, 9, 10] } else { &[10, 7, 8, 4, 6, 3, 5, 1] };
    weighted_sum(d, weights).is_multiple_of(11)
}

fn is_be_nn(d: &[u8]) -> bool {
    let check = u64::from(number(&d[9..]));
    let body = decimal_mod(&d[..9], 97);
    // Born from 2000 on: a 2 is put in front of the number before the check.
    let body_2000 = (2_000_000_000 % 97 + body) % 97;
    number(&d[2..4]) <= 12 && (97 - body == check || 97 - body_2000 == check)
}

fn is_bg_egn(d: &[u8]) -> bool {
    let month = number(&d[2..4]) % 20;
    let sum = weighted_sum(d, &[2, 4, 8, 5, 10, 9, 7, 3, 6]) % 11 % 10;
    (1..=12).contains(&month) && (1..=31).contains(&number(&d[4..6])) && sum == u32::from(d[9])
}

fn is_br_cpf(d: &[u8]) -> bool {
    let check = |length: usize| {
        let sum: u32 =
            d[..length].iter().zip((2..=length as u32 + 1).rev()).map(|(d, w)| u32::from(*d) * w).sum();
        sum * 10 % 11 % 10
    };
    check(9) == u32::from(d[9]) && check(10) == u32::from(d[10])
}

fn is_br_cnpj(d: &[u8]) -> bool {
    let weights = [6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2];
    let check = |sum: u32| if sum % 11 < 2 { 0 } else { 11 - sum % 11 };
    check(weighted_sum(&d[..12], &weights[1..])) == u32::from(d[12])
        && check(weighted_sum(&d[..13], &weights)) == u32::from(d[13])
}

fn is_cl_rut(v: &[u8]) -> bool {
    let Some((check, body)) = v.split_last() else { return false };
    if !(7..=8).contains(&body.len()) || !body.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 =
        body.iter().rev().zip([2, 3, 4, 5, 6, 7, 2, 3]).map(|(b, w)| u32::from(b - b'0') * w).sum();
    match 11 - sum % 11 {
        11 => *check == b'0',
        10 => *check == b'K',
        digit => u32::from(*check) == digit + u32::from(b'0'),
    }
}

fn is_cn_id(v: &[u8]) -> bool {
    if v.len() != 18 || !v[..17].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let digits: Vec<u8> = v[..17].iter().map(|byte| byte - b'0').collect();
    let weights = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let check = b"10X98765432"[(weighted_sum(&digits, &weights) % 11) as usize];
    is_date(number(&digits[12..14]), number(&digits[10..12]), number(&digits[6..10])) && v[17] == check
}

fn is_cz_date(d: &[u8]) -> bool {
    let month = match number(&d[2..4]) {
        month @ 1..=12 => month,
        month @ 21..=32 => month - 20,
        month @ 51..=62 => month - 50,
        month @ 71..=82 => month - 70,
        _ => return false,
    };
    is_date(number(&d[4..6]), month, 2000)
}

fn is_de_tax_id(d: &[u8]) -> bool {
    // Of the first ten digits exactly one comes twice or three times.
    let count = |digit: u8| d[..10].iter().filter(|other| **other == digit).count();
    let repeated = (0..10).filter(|digit| count(*digit) > 1).count();
    d[0] != 0 && repeated == 1 && is_iso7064_mod11_10(d)
}

/// The value a letter or digit has in the machine-readable zone of identity papers.
fn mrz_value(byte: u8) -> u32 {
    match byte {
        b'0'..=b'9' => u32::from(byte - b'0'),
        _ => u32::from(byte.saturating_sub(b'A')) + 10,
    }
}

/// German identity card or passport number: nine characters and, in ten, the check of ICAO 9303.
fn is_de_id_card(v: &[u8]) -> bool {
    let is_set = |byte: &u8| b"CFGHJKLMNPRTVWXYZ0123456789".contains(byte);
    let is_body = v.len() >= 9 && b"CFGHJKLMNPRTVWXYZ".contains(&v[0]) && v[1..9].iter().all(is_set);
    let has_digit = v.iter().any(u8::is_ascii_digit);
    match v.len() {
        9 => is_body && has_digit,
        10 => {
            let sum: u32 =
                v[..9].iter().zip([7, 3, 1, 7, 3, 1, 7, 3, 1]).map(|(b, w)| mrz_value(*b) * w).sum();
            is_body && v[9].is_ascii_digit() && sum % 10 == u32::from(v[9] - b'0')
        }
        _ => false,
    }
}

/// German health insurance number: letter as two digits, weights 1 and 2 with digit sums.
fn is_de_health(v: &[u8]) -> bool {
    if v.len() != 10 || !v[0].is_ascii_uppercase() || !v[1..].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let letter = v[0] - b'A' + 1;
    let mut digits = vec![letter / 10, letter % 10];
    digits.extend(v[1..].iter().map(|byte| byte - b'0'));
    let sum: u32 = digits[..10]
        .iter()
        .enumerate()
        .map(|(at, digit)| u32::from(*digit) * (1 + at as u32 % 2))
        .map(|product| product / 10 + product % 10)
        .sum();
    sum % 10 == u32::from(digits[10])
}

/// German pension insurance number: area, birth date, letter, serial, check.
fn is_de_social(v: &[u8]) -> bool {
    if v.len() != 12 || !v[8].is_ascii_uppercase() {
        return false;
    }
    let is_digits = v.iter().enumerate().all(|(at, byte)| at == 8 || byte.is_ascii_digit());
    if !is_digits {
        return false;
    }
    let letter = v[8] - b'A' + 1;
    let mut digits: Vec<u8> = v[..8].iter().map(|byte| byte - b'0').collect();
    digits.extend([letter / 10, letter % 10]);
    digits.extend(v[9..].iter().map(|byte| byte - b'0'));
    let weights = [2u32, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1];
    let sum: u32 = digits
        .iter()
        .zip(weights)
        .map(|(d, w)| u32::from(*d) * w)
        .map(|product| product / 10 + product % 10)
        .sum();
    sum % 10 == u32::from(digits[12])
}

/// Estonian and Lithuanian personal code: two rounds of weights.
fn is_baltic(d: &[u8]) -> bool {
    let check = match weighted_sum(d, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 1]) % 11 {
        10 => weighted_sum(d, &[3, 4, 5, 6, 7, 8, 9, 1, 2, 3]) % 11 % 10,
        check => check,
    };
    (1..=8).contains(&d[0]) && is_date_at(d, 5, 3, 1, 2000) && check == u32::from(d[10])
}

/// Spanish DNI (eight digits, letter) and NIE (X, Y or Z, seven digits, letter).
fn is_es_dni(v: &[u8]) -> bool {
    let Some((check, body)) = v.split_last() else { return false };
    let mut body = body.to_vec();
    if let (8, Some(place)) = (body.len(), b"XYZ".iter().position(|letter| Some(letter) == body.first())) {
        body[0] = b'0' + place as u8;
    }
    (7..=8).contains(&body.len()) && body.iter().all(u8::is_ascii_digit) && {
        let digits: Vec<u8> = body.iter().map(|byte| byte - b'0').collect();
        b"TRWAGMYFPDXBNJZSQVHLCKE"[(number(&digits) % 23) as usize] == *check
    }
}

fn is_fi_hetu(v: &[u8]) -> bool {
    // The sign of the century is a letter or a dash; the dash is gone here, so ten or eleven characters are left.
    let serial = match v.len() {
        10 => &v[6..9],
        11 if b"ABCDEFYXWVU".contains(&v[6]) => &v[7..10],
        _ => return false,
    };
    let text: Vec<u8> = v[..6].iter().chain(serial).copied().collect();
    text.iter().all(u8::is_ascii_digit) && {
        let digits: Vec<u8> = text.iter().map(|byte| byte - b'0').collect();
        let check = b"0123456789ABCDEFHJKLMNPRSTUVWXY"[(number(&digits) % 31) as usize];
        is_date_at(&digits, 0, 2, 4, 2000) && v.last() == Some(&check)
    }
}

/// French social security number; Corsica's departments are 2A and 2B.
fn is_fr_nir(v: &[u8]) -> bool {
    if v.len() != 15 || !matches!(v[0], b'1' | b'2' | b'7' | b'8') {
        return false;
    }
    let text = match &v[5..7] {
        b"2A" => [&v[..5], b"19", &v[7..]].concat(),
        b"2B" => [&v[..5], b"18", &v[7..]].concat(),
        _ => v.to_vec(),
    };
    with_digits(&text, 15, |d| {
        let month = number(&d[3..5]);
        let is_month = (1..=12).contains(&month) || (20..=42).contains(&month) || month >= 50;
        is_month && 97 - decimal_mod(&d[..13], 97) == u64::from(number(&d[13..]))
    })
}

fn is_hk_id(v: &[u8]) -> bool {
    let letters = v.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    if !(1..=2).contains(&letters)
        || v.len() != letters + 7
        || !v[letters..v.len() - 1].iter().all(u8::is_ascii_digit)
    {
        return false;
    }
    let first = if letters == 1 { 36 * 9 } else { 0 };
    let body = &v[..v.len() - 1];
    let sum: u32 = body.iter().rev().zip(2u32..).map(|(byte, weight)| mrz_value(*byte) * weight).sum();
    let check = match v[v.len() - 1] {
        b'A' => 10,
        byte @ b'0'..=b'9' => u32::from(byte - b'0'),
        _ => return false,
    };
    (first + sum + check).is_multiple_of(11)
}

/// Indian tax registration: state, PAN, entity, Z, check over base 36.
fn is_in_gstin(v: &[u8]) -> bool {
    let is_shape = v.len() == 15
        && v[..2].iter().all(u8::is_ascii_digit)
        && v[2..7].iter().all(u8::is_ascii_uppercase)
        && v[7..11].iter().all(u8::is_ascii_digit)
        && v[11].is_ascii_uppercase();
    is_shape && (1..=38).contains(&(u32::from(v[0] - b'0') * 10 + u32::from(v[1] - b'0')))
}

fn is_ir_id(d: &[u8]) -> bool {
    let rest = weighted_sum(d, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    u32::from(d[9]) == if rest < 2 { rest } else { 11 - rest }
}

fn is_it_fiscal_code(v: &[u8]) -> bool {
    const ODD: [u32; 26] =
        [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
    if v.len() != 16 || !v[..6].iter().all(u8::is_ascii_uppercase) || !v[15].is_ascii_uppercase() {
        return false;
    }
    let index = |byte: u8| match byte {
        b'0'..=b'9' => usize::from(byte - b'0'),
        _ => usize::from(byte.saturating_sub(b'A')) % 26,
    };
    let sum: u32 = v[..15]
        .iter()
        .enumerate()
        .map(|(at, byte)| if at % 2 == 0 { ODD[index(*byte)] } else { index(*byte) as u32 })
        .sum();
    sum % 26 == u32::from(v[15] - b'A')
}

fn is_kr_rrn(d: &[u8]) -> bool {
    // Numbers issued since October 2020 carry no check digit, so date and sex digit have to do.
    is_date_at(d, 4, 2, 0, 2000) && (1..=8).contains(&d[6])
}

fn is_kr_brn(d: &[u8]) -> bool {
    let sum =
        weighted_sum(d, &[1, 3, 7, 1, 3, 7, 1, 3]) + u32::from(d[8]) * 5 / 10 + u32::from(d[8]) * 5 % 10;
    // The ninth digit counts five times, and its tens are added once more.
    let sum_plain = weighted_sum(d, &[1, 3, 7, 1, 3, 7, 1, 3, 5]) + u32::from(d[8]) * 5 / 10;
    [sum, sum_plain].iter().any(|sum| (10 - sum % 10) % 10 == u32::from(d[9]))
}

/// Mexican population registry code, by shape, date and state letter count.
fn is_mx_curp(v: &[u8]) -> bool {
    let is_shape = v.len() == 18
        && v[..4].iter().all(u8::is_ascii_uppercase)
        && v[4..10].iter().all(u8::is_ascii_digit)
        && matches!(v[10], b'H' | b'M' | b'X')
        && v[11..16].iter().all(u8::is_ascii_uppercase)
        && v[17].is_ascii_digit();
    is_shape && {
        let digits: Vec<u8> = v[4..10].iter().map(|byte| byte - b'0').collect();
        is_date_at(&digits, 4, 2, 0, 2000)
    }
}

fn is_nl_bsn(d: &[u8]) -> bool {
    (weighted_sum(d, &[9, 8, 7, 6, 5, 4, 3, 2]) + 11 * 9 - u32::from(d[8])).is_multiple_of(11)
}

fn is_no_fnr(d: &[u8]) -> bool {
    let day = number(&d[..2]) % 40;
    let first = (11 - weighted_sum(d, &[3, 7, 6, 1, 8, 9, 4, 5, 2]) % 11) % 11;
    let second = (11 - weighted_sum(d, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11;
    is_date(day, number(&d[2..4]) % 40, 2000) && first == u32::from(d[9]) && second == u32::from(d[10])
}

fn is_pl_pesel(d: &[u8]) -> bool {
    let month = number(&d[2..4]) % 20;
    let sum = weighted_sum(d, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]);
    is_date(number(&d[4..6]), month, 2000) && sum.is_multiple_of(10)
}

fn is_pt_nif(d: &[u8]) -> bool {
    let rest = weighted_sum(d, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    matches!(d[0], 1..=3 | 5 | 6 | 8 | 9) && u32::from(d[8]) == if rest < 2 { 0 } else { 11 - rest }
}

fn is_ro_cnp(d: &[u8]) -> bool {
    let check = weighted_sum(d, &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11;
    (1..=9).contains(&d[0])
        && is_date_at(d, 5, 3, 1, 2000)
        && u32::from(d[12]) == if check == 10 { 1 } else { check }
}

fn is_se_pnr(d: &[u8]) -> bool {
    let short = match d.len() {
        10 => d,
        12 if matches!(number(&d[..2]), 18..=20) => &d[2..],
        _ => return false,
    };
    // Coordination numbers add sixty to the day.
    let day = number(&short[4..6]) % 60;
    is_date(day, number(&short[2..4]), 2000) && luhn_sum(short).is_multiple_of(10)
}

fn is_sg_nric(v: &[u8]) -> bool {
    if v.len() != 9 || !v[1..8].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let digits: Vec<u8> = v[1..8].iter().map(|byte| byte - b'0').collect();
    let sum = weighted_sum(&digits, &[2, 7, 6, 5, 4, 3, 2]);
    let (offset, letters): (u32, &[u8; 11]) = match v[0] {
        b'S' => (0, b"JZIHGFEDCBA"),
        b'T' => (4, b"JZIHGFEDCBA"),
        b'F' => (0, b"XWUTRQPNMLK"),
        b'G' => (4, b"XWUTRQPNMLK"),
        b'M' => (3, b"KLJNPQRTUWX"),
        _ => return false,
    };
    let at = ((sum + offset) % 11) as usize;
    let at = if v[0] == b'M' { 10 - at } else { at };
    v[8] == letters[at]
}

fn is_th_id(d: &[u8]) -> bool {
    let sum = weighted_sum(d, &[13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
    (1..=8).contains(&d[0]) && (11 - sum % 11) % 10 == u32::from(d[12])
}

fn is_tr_id(d: &[u8]) -> bool {
    let odd: u32 = d[..9].iter().step_by(2).map(|digit| u32::from(*digit)).sum();
    let even: u32 = d[1..8].iter().step_by(2).map(|digit| u32::from(*digit)).sum();
    let total: u32 = d[..10].iter().map(|digit| u32::from(*digit)).sum();
    d[0] != 0 && (odd * 7 + 90 - even) % 10 == u32::from(d[9]) && total % 10 == u32::from(d[10])
}

fn is_tw_id(v: &[u8]) -> bool {
    if v.len() != 10 || !v[0].is_ascii_uppercase() || !matches!(v[1], b'1' | b'2' | b'8' | b'9') {
        return false;
    }
    let Some(place) = b"ABCDEFGHJKLMNPQRSTUVXYWZIO".iter().position(|letter| *letter == v[0]) else {
        return false;
    };
    with_digits(&v[1..], 9, |d| {
        let code = place as u32 + 10;
        let sum = code / 10 + code % 10 * 9 + weighted_sum(d, &[8, 7, 6, 5, 4, 3, 2, 1, 1]);
        sum.is_multiple_of(10)
    })
}

fn is_uk_nhs(d: &[u8]) -> bool {
    let check = 11 - weighted_sum(d, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    check % 11 == u32::from(d[9]) && check != 10
}

fn is_uk_nino(v: &[u8]) -> bool {
    let is_prefix = |p: &[u8]| {
        !b"DFIQUV".contains(&p[0])
            && !b"DFIQUVO".contains(&p[1])
            && ![b"BG", b"GB", b"KN", b"NK", b"NT", b"TN", b"ZZ"].iter().any(|barred| *barred == p)
    };
    v.len() == 9
        && v[..2].iter().all(u8::is_ascii_uppercase)
        && is_prefix(&v[..2])
        && v[2..8].iter().all(u8::is_ascii_digit)
        && matches!(v[8], b'A'..=b'D')
}

/// Whether the digits of `value` make a birth date from 1900 to 2030 in one of the usual orders.
pub(super) fn is_birth_date(value: &str) -> bool {
    let groups: Vec<&str> =
        value.split(|c: char| !c.is_ascii_alphanumeric()).filter(|g| !g.is_empty()).collect();
    let parse = |group: &str| group.parse::<u32>().ok();
    let year_of = |year: u32, group: &str| match group.len() {
        4 => (1900..=2030).contains(&year),
        2 => true,
        _ => false,
    };
    let numbers: Vec<Option<u32>> = groups.iter().map(|group| parse(group)).collect();
    match numbers.as_slice() {
        [Some(a), Some(b), Some(c)] if groups[0].len() == 4 => year_of(*a, groups[0]) && is_date(*c, *b, *a),
        [Some(a), Some(b), Some(c)] => {
            let year = if groups[2].len() == 2 { 2000 + c } else { *c };
            year_of(*c, groups[2]) && (is_date(*a, *b, year) || is_date(*b, *a, year))
        }
        // A month written as a word: the pattern has seen to it.
        [_, _, _] => numbers.iter().flatten().any(|year| (1900..=2030).contains(year)),
        _ => false,
    }
}
