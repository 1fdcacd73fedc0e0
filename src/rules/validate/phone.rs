//! Telephone numbers by numbering plan: what can be dialled, and what only looks like it.

use super::bank::is_inside_number;
use super::digits::{digits_of, is_date, is_varied, number};

/// Country calling codes with the shortest and longest national number in use there.
///
/// Longest codes first, so that a prefix search finds the most specific.
const CALLING_CODES: &[(&str, usize, usize)] = &[
    ("210", 9, 9),
    ("211", 9, 9),
    ("212", 9, 9),
    ("213", 8, 9),
    ("216", 8, 8),
    ("218", 8, 9),
    ("220", 7, 7),
    ("221", 9, 9),
    ("222", 8, 8),
    ("223", 8, 8),
    ("224", 8, 9),
    ("225", 8, 10),
    ("226", 8, 8),
    ("227", 8, 8),
    ("228", 8, 8),
    ("229", 8, 10),
    ("230", 7, 8),
    ("231", 7, 9),
    ("232", 8, 8),
    ("233", 9, 9),
    ("234", 8, 10),
    ("235", 8, 8),
    ("236", 8, 8),
    ("237", 8, 9),
    ("238", 7, 7),
    ("239", 7, 7),
    ("240", 9, 9),
    ("241", 7, 8),
    ("242", 9, 9),
    ("243", 7, 9),
    ("244", 9, 9),
    ("245", 7, 9),
    ("246", 7, 7),
    ("247", 4, 6),
    ("248", 6, 7),
    ("249", 9, 9),
    ("250", 8, 9),
    ("251", 9, 9),
    ("252", 6, 9),
    ("253", 8, 8),
    ("254", 7, 10),
    ("255", 9, 9),
    ("256", 9, 9),
    ("257", 8, 8),
    ("258", 8, 9),
    ("260", 9, 9),
    ("261", 9, 10),
    ("262", 9, 9),
    ("263", 5, 10),
    ("264", 6, 10),
    ("265", 7, 9),
    ("266", 8, 8),
    ("267", 7, 8),
    ("268", 8, 9),
    ("269", 7, 7),
    ("290", 4, 5),
    ("291", 7, 7),
    ("297", 7, 7),
    ("298", 6, 6),
    ("299", 6, 6),
    ("350", 8, 8),
    ("351", 9, 9),
    ("352", 4, 11),
    ("353", 7, 10),
    ("354", 7, 9),
    ("355", 6, 9),
    ("356", 8, 8),
    ("357", 8, 8),
    ("358", 5, 12),
    ("359", 7, 9),
    ("370", 8, 8),
    ("371", 8, 8),
    ("372", 7, 10),
    ("373", 8, 8),
    ("374", 8, 8),
    ("375", 9, 10),
    ("376", 6, 9),
    ("377", 8, 9),
    ("378", 6, 10),
    ("380", 9, 9),
    ("381", 6, 12),
    ("382", 8, 8),
    ("383", 8, 9),
    ("385", 8, 9),
    ("386", 8, 8),
    ("387", 8, 9),
    ("389", 8, 8),
    ("420", 9, 9),
    ("421", 9, 9),
    ("423", 7, 9),
    ("500", 5, 5),
    ("501", 7, 7),
    ("502", 8, 8),
    ("503", 7, 8),
    ("504", 8, 8),
    ("505", 8, 8),
    ("506", 8, 8),
    ("507", 7, 8),
    ("508", 6, 6),
    ("509", 8, 8),
    ("590", 9, 9),
    ("591", 8, 8),
    ("592", 7, 7),
    ("593", 8, 9),
    ("594", 9, 9),
    ("595", 9, 9),
    ("596", 9, 9),
    ("597", 6, 7),
    ("598", 7, 8),
    ("599", 7, 8),
    ("670", 7, 8),
    ("672", 5, 6),
    ("673", 7, 7),
    ("674", 7, 7),
    ("675", 7, 8),
    ("676", 5, 7),
    ("677", 5, 7),
    ("678", 5, 7),
    ("679", 7, 7),
    ("680", 7, 7),
    ("681", 6, 6),
    ("682", 5, 5),
    ("683", 4, 7),
    ("685", 5, 7),
    ("686", 5, 8),
    ("687", 6, 6),
    ("688", 5, 7),
    ("689", 6, 8),
    ("690", 4, 7),
    ("691", 7, 7),
    ("692", 7, 7),
    ("800", 8, 8),
    ("850", 8, 10),
    ("852", 8, 9),
    ("853", 8, 8),
    ("855", 8, 9),
    ("856", 8, 10),
    ("880", 8, 10),
    ("886", 8, 9),
    ("960", 7, 7),
    ("961", 7, 8),
    ("962", 8, 9),
    ("963", 8, 9),
    ("964", 8, 10),
    ("965", 8, 8),
    ("966", 8, 9),
    ("967", 7, 9),
    ("968", 8, 8),
    ("970", 8, 9),
    ("971", 8, 9),
    ("972", 8, 9),
    ("973", 8, 8),
    ("974", 8, 8),
    ("975", 7, 8),
    ("976", 8, 8),
    ("977", 8, 10),
    ("992", 9, 9),
    ("993", 8, 8),
    ("994", 9, 9),
    ("995", 9, 9),
    ("996", 9, 9),
    ("998", 9, 9),
    ("20", 8, 10),
    ("27", 9, 9),
    ("30", 10, 10),
    ("31", 9, 9),
    ("32", 8, 9),
    ("33", 9, 9),
    ("34", 9, 9),
    ("36", 8, 9),
    ("39", 6, 11),
    ("40", 9, 9),
    ("41", 9, 9),
    ("43", 4, 13),
    ("44", 9, 10),
    ("45", 8, 8),
    ("46", 7, 10),
    ("47", 8, 8),
    ("48", 9, 9),
    ("49", 6, 11),
    ("51", 8, 9),
    ("52", 10, 11),
    ("53", 6, 8),
    ("54", 10, 11),
    ("55", 10, 11),
    ("56", 9, 9),
    ("57", 8, 10),
    ("58", 10, 10),
    ("60", 8, 10),
    ("61", 9, 9),
    ("62", 8, 12),
    ("63", 8, 10),
    ("64", 8, 10),
    ("65", 8, 8),
    ("66", 8, 9),
    ("81", 9, 10),
    ("82", 8, 10),
    ("84", 9, 10),
    ("86", 9, 11),
    ("90", 10, 10),
    ("91", 10, 10),
    ("92", 9, 10),
    ("93", 9, 9),
    ("94", 9, 9),
    ("95", 7, 10),
    ("98", 10, 10),
    ("1", 10, 10),
    ("7", 10, 10),
];

/// Whether ten digits, or eleven with a leading 1, are dialled in the North American plan.
pub(super) fn is_nanp(value: &str, before: &str, after: &str) -> bool {
    let digits = digits_of(value);
    let national = match digits.as_slice() {
        [1, rest @ ..] if rest.len() == 10 => rest,
        rest if rest.len() == 10 => rest,
        _ => return false,
    };
    // `217/857/1092/4` goes on.
    let goes_on = value.contains('/') && after.strip_prefix('/').is_some_and(starts_with_digit);
    is_nanp_national(national) && !goes_on && !is_part_of_more(before, after)
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn is_nanp_national(national: &[u8]) -> bool {
    let [area, area_2, area_3, exchange, exchange_2, exchange_3, line @ ..] = national else { return false };
    *area >= 2
        && *area_2 != 9
        && !(*area_2 == 1 && *area_3 == 1)
        && *exchange >= 2
        && !(*exchange_2 == 1 && *exchange_3 == 1)
        && line.len() == 4
        && is_varied(&national[1..])
}

/// The text behind a number; none of it where that begins with an extension.
fn behind_extension(after: &str) -> &str {
    let is_extension = after.strip_prefix(['x', 'X']).is_some_and(starts_with_digit)
        || after.get(..3).is_some_and(|head| head.eq_ignore_ascii_case("ext"));
    if is_extension { "" } else { after }
}

/// Whether the digits continue on either side as one number, a decimal or an identifier.
fn is_part_of_more(before: &str, after: &str) -> bool {
    let after = behind_extension(after);
    let is_signed = before.ends_with('+') || before.ends_with('#') || before.ends_with('$');
    is_signed || is_inside_number(before, after)
}

/// Whether the digits are those of a number, and neither one digit again and again nor bits.
fn can_be_dialled(digits: &[u8]) -> bool {
    is_varied(digits) && !is_binary(digits)
}

/// Digits of bytes that are written in base two; no number in use has as many of them and no other digit.
fn is_binary(digits: &[u8]) -> bool {
    digits.len() >= 8 && digits.iter().all(|digit| *digit <= 1)
}

/// Whether `value` (with `+`, `00` or neither in front) has a calling code and a length in use there.
pub(super) fn is_e164(value: &str, before: &str, after: &str) -> bool {
    let mut digits: String = value.chars().filter(char::is_ascii_digit).collect();
    if let Some(rest) = digits.strip_prefix("00") {
        digits = rest.to_owned();
    }
    let Some((code, shortest, longest)) = CALLING_CODES.iter().find(|(code, _, _)| digits.starts_with(code))
    else {
        return false;
    };
    let national = &digits[code.len()..];
    // A trunk zero is often kept behind the country code, in brackets or not: +44 (0)20 7946 0958.
    let significant = national.strip_prefix('0').unwrap_or(national);
    let fits = |length: usize| (*shortest..=*longest).contains(&length);
    let is_length_right = fits(national.len()) || fits(significant.len());
    let is_plan_right = *code != "1" || is_nanp_national(&digits_of(national));
    is_length_right
        && is_plan_right
        && is_varied(&digits_of(national))
        && !is_binary(&digits_of(value))
        && !is_inside_number(before, behind_extension(after))
}

/// Whether digits can be a number in international form, whatever the plans say.
pub(super) fn is_international(value: &str, before: &str, after: &str) -> bool {
    let digits = digits_of(value);
    (7..=17).contains(&digits.len())
        && can_be_dialled(&digits)
        && !is_inside_number(before, behind_extension(after))
}

/// Whether digits can be a number in a national form, whatever the plans say: no date, no amount, no version.
pub(super) fn is_national(value: &str, before: &str, after: &str) -> bool {
    let digits = digits_of(value);
    (6..=14).contains(&digits.len())
        && can_be_dialled(&digits)
        && !is_written_date(&digits, value)
        && !is_part_of_more(before, after)
}

/// Whether digits written in a national style can be a telephone number: 7 to 12 of them, and no date or time stamp.
pub(super) fn is_local(value: &str, before: &str, after: &str) -> bool {
    let digits = digits_of(value);
    let longest = if digits.starts_with(&[0, 0]) { 16 } else { 13 };
    (7..=longest).contains(&digits.len())
        && can_be_dialled(&digits)
        && !is_written_date(&digits, value)
        && !is_part_of_more(before, after)
}

/// Whether eight digits in three groups make a date in one of the usual orders.
fn is_written_date(digits: &[u8], value: &str) -> bool {
    let is_grouped = value.bytes().any(|byte| b"-/.".contains(&byte));
    if digits.len() != 8 || !is_grouped {
        return false;
    }
    let year_first = (number(&digits[..4]), number(&digits[4..6]), number(&digits[6..]));
    let year_last = (number(&digits[4..]), number(&digits[2..4]), number(&digits[..2]));
    [year_first, year_last].iter().any(|(year, month, day)| {
        (1800..=2200).contains(year) && (is_date(*day, *month, *year) || is_date(*month, *day, *year))
    })
}
