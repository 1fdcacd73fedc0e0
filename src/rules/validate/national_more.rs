//! Personal and tax numbers of further countries: Latin America, the rest of Europe, Asia and the Pacific.
//!
//! Sources are the publications of the bodies that issue the numbers: AFIP (Argentina), DIAN (Colombia), SUNAT (Peru),
//! the civil registers of Ecuador, Uruguay and the Dominican Republic, SENIAT (Venezuela), SAT (Guatemala), the My Number
//! ordinance (Japan), the tax services of Russia and Ukraine, the IIN rules of Kazakhstan, IKA and AADE (Greece), NAV
//! (Hungary), PMLP (Latvia), Registers Iceland, the Department of Social Protection (Ireland), the Hauptverband (Austria),
//! the JMBG law of Yugoslavia and its successors, Moldova, Inland Revenue (New Zealand), the tax department of Viet Nam,
//! and ACRA (Singapore).

use super::digits::{digits_of, is_varied, luhn_sum, number, weighted_sum};
use super::national::{Scheme, is_date_at, with_digits, with_digits_in};

/// Schemes of this file.
pub(super) const SCHEMES: &[Scheme] = &[
    Scheme { name: "ar-cuit", check: |v| with_digits(v, 11, is_ar_cuit) },
    Scheme { name: "at-svnr", check: |v| with_digits(v, 10, is_at_svnr) },
    Scheme { name: "co-nit", check: |v| with_digits_in(v, 9..=11, is_co_nit) },
    Scheme { name: "do-cedula", check: |v| with_digits(v, 11, |d| luhn_sum(d).is_multiple_of(10)) },
    Scheme { name: "ec-ci", check: |v| with_digits(v, 10, is_ec_ci) },
    Scheme { name: "gr-afm", check: |v| with_digits(v, 9, is_gr_afm) },
    Scheme {
        name: "gr-amka",
        check: |v| with_digits(v, 11, |d| is_date_at(d, 0, 2, 4, 2000) && luhn_sum(d).is_multiple_of(10)),
    },
    Scheme { name: "gt-nit", check: is_gt_nit },
    Scheme { name: "hu-taj", check: |v| with_digits(v, 9, is_hu_taj) },
    Scheme { name: "hu-tax", check: |v| with_digits(v, 10, is_hu_tax) },
    Scheme { name: "ie-pps", check: is_ie_pps },
    Scheme { name: "is-kt", check: |v| with_digits(v, 10, is_is_kt) },
    Scheme { name: "jp-my-number", check: |v| with_digits(v, 12, is_jp_my_number) },
    Scheme { name: "kz-iin", check: |v| with_digits(v, 12, is_kz_iin) },
    Scheme { name: "lv-pk", check: |v| with_digits(v, 11, is_lv_pk) },
    Scheme { name: "md-idnp", check: |v| with_digits(v, 13, is_md_idnp) },
    Scheme { name: "nz-ird", check: |v| with_digits_in(v, 8..=9, is_nz_ird) },
    Scheme { name: "pe-ruc", check: |v| with_digits(v, 11, is_pe_ruc) },
    Scheme { name: "rs-jmbg", check: |v| with_digits(v, 13, is_rs_jmbg) },
    Scheme { name: "ru-inn", check: is_ru_inn },
    Scheme { name: "ru-snils", check: |v| with_digits(v, 11, is_ru_snils) },
    Scheme { name: "sg-uen", check: is_sg_uen },
    Scheme { name: "ua-rntrc", check: |v| with_digits(v, 10, is_ua_rntrc) },
    Scheme { name: "uy-ci", check: |v| with_digits_in(v, 7..=8, is_uy_ci) },
    Scheme { name: "ve-rif", check: is_ve_rif },
    Scheme { name: "vn-mst", check: |v| with_digits(v, 10, is_vn_mst) },
];

/// What is missing to the next multiple of eleven: 0 to 10.
fn to_eleven(sum: u32) -> u32 {
    (11 - sum % 11) % 11
}

fn is_ar_cuit(d: &[u8]) -> bool {
    let check = match 11 - weighted_sum(d, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11 {
        11 => 0,
        10 => 9,
        check => check,
    };
    matches!(number(&d[..2]), 20 | 23 | 24 | 27 | 30 | 33 | 34) && check == u32::from(d[10])
}

/// Serial, check digit, birth date.
fn is_at_svnr(d: &[u8]) -> bool {
    let check = weighted_sum(d, &[3, 7, 9, 0, 5, 8, 4, 2, 1, 6]) % 11;
    // Where a day was used up, the months go on from 13 to 15.
    d[0] != 0 && check == u32::from(d[3]) && (1..=31).contains(&number(&d[4..6])) && number(&d[6..8]) <= 15
}

fn is_co_nit(d: &[u8]) -> bool {
    let Some((check, body)) = d.split_last() else { return false };
    let weights = [3, 7, 13, 17, 19, 23, 29, 37, 41, 43];
    let sum: u32 = body.iter().rev().zip(weights).map(|(digit, weight)| u32::from(*digit) * weight).sum();
    let rest = sum % 11;
    u32::from(*check) == if rest < 2 { rest } else { 11 - rest }
}

fn is_ec_ci(d: &[u8]) -> bool {
    let province = number(&d[..2]);
    ((1..=24).contains(&province) || province == 30) && d[2] < 6 && luhn_sum(d).is_multiple_of(10)
}

fn is_gr_afm(d: &[u8]) -> bool {
    weighted_sum(d, &[256, 128, 64, 32, 16, 8, 4, 2]) % 11 % 10 == u32::from(d[8])
}

/// Digits, the last of them or a K being the check.
fn is_gt_nit(v: &[u8]) -> bool {
    let Some((check, body)) = v.split_last() else { return false };
    if !(4..=11).contains(&body.len()) || !body.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = body.iter().rev().zip(2u32..).map(|(b, weight)| u32::from(b - b'0') * weight).sum();
    match to_eleven(sum) {
        10 => *check == b'K',
        digit => u32::from(*check) == digit + u32::from(b'0'),
    }
}

/// Social insurance number: weights 3 and 7 in turns.
fn is_hu_taj(d: &[u8]) -> bool {
    is_varied(d) && weighted_sum(d, &[3, 7, 3, 7, 3, 7, 3, 7]) % 10 == u32::from(d[8])
}

/// Personal tax number: begins with 8, then days since 1867.
fn is_hu_tax(d: &[u8]) -> bool {
    d[0] == 8 && weighted_sum(d, &[1, 2, 3, 4, 5, 6, 7, 8, 9]) % 11 == u32::from(d[9])
}

/// Seven digits, a check letter and at times a second letter.
fn is_ie_pps(v: &[u8]) -> bool {
    if !(8..=9).contains(&v.len()) || !v[..7].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let second = match v.get(8) {
        None | Some(b'W') => 0,
        Some(letter @ b'A'..=b'I') => u32::from(letter - b'A') + 1,
        Some(_) => return false,
    };
    let digits: Vec<u8> = v[..7].iter().map(|byte| byte - b'0').collect();
    let sum = weighted_sum(&digits, &[8, 7, 6, 5, 4, 3, 2]) + second * 9;
    b"WABCDEFGHIJKLMNOPQRSTUV"[(sum % 23) as usize] == v[7]
}

fn is_is_kt(d: &[u8]) -> bool {
    // The day of a company has forty added.
    let date = [&[d[0] % 4, d[1]], &d[2..]].concat();
    matches!(d[9], 0 | 8 | 9)
        && d[0] < 8
        && is_date_at(&date, 0, 2, 4, 2000)
        && weighted_sum(d, &[3, 2, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11)
}

fn is_jp_my_number(d: &[u8]) -> bool {
    let rest = weighted_sum(d, &[6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    u32::from(d[11]) == if rest < 2 { 0 } else { 11 - rest }
}

fn is_kz_iin(d: &[u8]) -> bool {
    let check = match weighted_sum(d, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]) % 11 {
        10 => weighted_sum(d, &[3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2]) % 11,
        check => check,
    };
    is_date_at(d, 4, 2, 0, 2000) && (1..=6).contains(&d[6]) && check == u32::from(d[11])
}

/// Codes issued since July 2017 begin with 32 and hold no date.
fn is_lv_pk(d: &[u8]) -> bool {
    if d.starts_with(&[3, 2]) {
        return true;
    }
    let sum = 1 + weighted_sum(d, &[10, 5, 8, 4, 2, 1, 6, 3, 7, 9]);
    is_date_at(d, 0, 2, 4, 2000) && d[6] <= 2 && sum % 11 % 10 == u32::from(d[10])
}

fn is_md_idnp(d: &[u8]) -> bool {
    matches!(d[0], 0..=2) && weighted_sum(d, &[7, 3, 1, 7, 3, 1, 7, 3, 1, 7, 3, 1]) % 10 == u32::from(d[12])
}

fn is_nz_ird(d: &[u8]) -> bool {
    let padded = if d.len() == 8 { [&[0], d].concat() } else { d.to_vec() };
    let check = match to_eleven(weighted_sum(&padded, &[3, 2, 7, 6, 5, 4, 3, 2])) {
        10 => to_eleven(weighted_sum(&padded, &[7, 4, 3, 2, 5, 2, 7, 6])),
        check => check,
    };
    (10_000_000..150_000_000).contains(&number(&padded)) && check == u32::from(padded[8])
}

fn is_pe_ruc(d: &[u8]) -> bool {
    let check = (11 - weighted_sum(d, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 10;
    matches!(number(&d[..2]), 10 | 15 | 17 | 20) && check == u32::from(d[10])
}

/// Serbia, Bosnia and Herzegovina, Montenegro, North Macedonia, Kosovo, and the EMŠO of Slovenia.
fn is_rs_jmbg(d: &[u8]) -> bool {
    let year = number(&d[4..7]);
    let check = to_eleven(weighted_sum(d, &[7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2])) % 10;
    is_date_at(&[d[0], d[1], d[2], d[3], d[5], d[6]], 0, 2, 4, 2000)
        && (year >= 870 || year <= 40)
        && check == u32::from(d[12])
}

/// Ten digits of a company, twelve of a person.
fn is_ru_inn(v: &[u8]) -> bool {
    let check = |d: &[u8], weights: &[u32]| {
        weighted_sum(&d[..weights.len()], weights) % 11 % 10 == u32::from(d[weights.len()])
    };
    match v.len() {
        10 => with_digits(v, 10, |d| check(d, &[2, 4, 10, 3, 5, 9, 4, 6, 8])),
        12 => with_digits(v, 12, |d| {
            check(d, &[7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) && check(d, &[3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8])
        }),
        _ => false,
    }
}

fn is_ru_snils(d: &[u8]) -> bool {
    weighted_sum(d, &[9, 8, 7, 6, 5, 4, 3, 2, 1]) % 101 % 100 == number(&d[9..])
}

/// Unique entity number: of a business, of a company by year, of others by kind.
fn is_sg_uen(v: &[u8]) -> bool {
    let digits = |range: std::ops::Range<usize>| {
        v.get(range)
            .filter(|part| part.iter().all(u8::is_ascii_digit))
            .map(|part| part.iter().map(|byte| byte - b'0').collect::<Vec<u8>>())
    };
    match v.len() {
        9 => digits(0..8).is_some_and(|d| {
            b"XMKECAWLJDB"[(weighted_sum(&d, &[10, 4, 9, 3, 8, 2, 7, 1]) % 11) as usize] == v[8]
        }),
        10 if v[0].is_ascii_digit() => digits(0..9).is_some_and(|d| {
            let letter = b"ZKCMDNERGWH"[(weighted_sum(&d, &[10, 8, 6, 4, 9, 7, 5, 3, 1]) % 11) as usize];
            (1800..=2100).contains(&number(&d[..4])) && letter == v[9]
        }),
        10 => {
            const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWX0123456789";
            let place = |byte: &u8| LETTERS.iter().position(|letter| letter == byte).map(|at| at as u8);
            let is_shape = matches!(v[0], b'R' | b'S' | b'T')
                && digits(1..3).is_some()
                && v[3].is_ascii_uppercase()
                && digits(5..9).is_some();
            let places: Option<Vec<u8>> = v[..9].iter().map(place).collect();
            is_shape
                && places.is_some_and(|d| {
                    let sum = weighted_sum(&d, &[4, 3, 5, 3, 10, 2, 2, 5, 7]) + 11 - 5;
                    LETTERS[(sum % 11) as usize] == v[9]
                })
        }
        _ => false,
    }
}

fn is_ua_rntrc(d: &[u8]) -> bool {
    // The first weight is -1.
    let sum = weighted_sum(&d[1..], &[5, 7, 9, 4, 6, 10, 5, 7]) + 11 * 9 - u32::from(d[0]);
    sum % 11 % 10 == u32::from(d[9])
}

fn is_uy_ci(d: &[u8]) -> bool {
    let padded = if d.len() == 7 { [&[0], d].concat() } else { d.to_vec() };
    (10 - weighted_sum(&padded, &[2, 9, 8, 7, 6, 3, 4]) % 10) % 10 == u32::from(padded[7])
}

/// A letter for the kind of person, eight digits, a check digit.
fn is_ve_rif(v: &[u8]) -> bool {
    let Some((kind, body)) = v.split_first() else { return false };
    let kind = match kind {
        b'V' => 4,
        b'E' => 8,
        b'J' => 12,
        b'P' => 16,
        b'G' => 20,
        _ => return false,
    };
    let text = String::from_utf8_lossy(body);
    let digits = digits_of(&text);
    if body.len() != 9 || digits.len() != 9 {
        return false;
    }
    let check = match to_eleven(kind + weighted_sum(&digits, &[3, 2, 7, 6, 5, 4, 3, 2])) {
        10 => 0,
        check => check,
    };
    check == u32::from(digits[8])
}

fn is_vn_mst(d: &[u8]) -> bool {
    10 - weighted_sum(d, &[31, 29, 23, 19, 17, 13, 7, 5, 3]) % 11 == u32::from(d[9])
}
