//! Telephone numbers by the numbering plans of all regions, which a port of libphonenumber brings along.
//!
//! A number in international form is asked for as it is. One in a national form means nothing without a region: those of
//! the policy are tried, and those that the words around the number name. The plans are read when a text first holds a
//! candidate, and each pattern is compiled when its region is first asked about.

use std::ops::Range;

use rlibphonenumber::{PHONE_NUMBER_UTIL, Region};

use crate::rules::country::CountrySet;

/// Look-ups that any text has, that it has more for each so many bytes, and that none has more than. Each takes some ten
/// microseconds.
const LOOK_UPS_MIN: usize = 16;
const LOOK_UP_EVERY_BYTES: usize = 256;
const LOOK_UPS_MAX: usize = 256;
/// Regions of a policy that a national number is tried in.
const REGIONS_MAX: usize = 16;
/// Bytes before and after a number in which a region may be named.
const BEFORE_BYTES: usize = 48;
const AFTER_BYTES: usize = 24;
/// Digits of a number: the shortest in a national form, and the longest with everything that is dialled before it.
const DIGITS: std::ops::RangeInclusive<usize> = 6..=18;

/// Which plans decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// That of the calling code that the number begins with.
    World,
    /// Those of the countries of the policy and of the regions that are named around the number.
    Hinted,
}

/// Words that name the region of a number, in lower case.
const REGION_WORDS: &[(&str, &str)] = &[
    ("american", "US"),
    ("usa", "US"),
    ("argentina", "AR"),
    ("argentine", "AR"),
    ("australia", "AU"),
    ("australian", "AU"),
    ("austria", "AT"),
    ("austrian", "AT"),
    ("österreich", "AT"),
    ("bangladesh", "BD"),
    ("bangladeshi", "BD"),
    ("belgian", "BE"),
    ("belgium", "BE"),
    ("belgique", "BE"),
    ("brasil", "BR"),
    ("brazil", "BR"),
    ("brazilian", "BR"),
    ("britain", "GB"),
    ("british", "GB"),
    ("england", "GB"),
    ("uk", "GB"),
    ("bulgaria", "BG"),
    ("bulgarian", "BG"),
    ("canada", "CA"),
    ("canadian", "CA"),
    ("chile", "CL"),
    ("chilean", "CL"),
    ("china", "CN"),
    ("chinese", "CN"),
    ("colombia", "CO"),
    ("colombian", "CO"),
    ("croatia", "HR"),
    ("croatian", "HR"),
    ("czech", "CZ"),
    ("danish", "DK"),
    ("denmark", "DK"),
    ("dutch", "NL"),
    ("netherlands", "NL"),
    ("egypt", "EG"),
    ("egyptian", "EG"),
    ("estonia", "EE"),
    ("estonian", "EE"),
    ("finland", "FI"),
    ("finnish", "FI"),
    ("france", "FR"),
    ("french", "FR"),
    ("deutsch", "DE"),
    ("deutsche", "DE"),
    ("deutschland", "DE"),
    ("german", "DE"),
    ("germany", "DE"),
    ("greece", "GR"),
    ("greek", "GR"),
    ("hungarian", "HU"),
    ("hungary", "HU"),
    ("india", "IN"),
    ("indian", "IN"),
    ("indonesia", "ID"),
    ("indonesian", "ID"),
    ("iran", "IR"),
    ("iranian", "IR"),
    ("ireland", "IE"),
    ("irish", "IE"),
    ("israel", "IL"),
    ("israeli", "IL"),
    ("italia", "IT"),
    ("italian", "IT"),
    ("italy", "IT"),
    ("japan", "JP"),
    ("japanese", "JP"),
    ("kenya", "KE"),
    ("kenyan", "KE"),
    ("korea", "KR"),
    ("korean", "KR"),
    ("latvia", "LV"),
    ("latvian", "LV"),
    ("lithuania", "LT"),
    ("lithuanian", "LT"),
    ("malaysia", "MY"),
    ("malaysian", "MY"),
    ("mexican", "MX"),
    ("mexico", "MX"),
    ("méxico", "MX"),
    ("nigeria", "NG"),
    ("nigerian", "NG"),
    ("norway", "NO"),
    ("norwegian", "NO"),
    ("pakistan", "PK"),
    ("pakistani", "PK"),
    ("peru", "PE"),
    ("peruvian", "PE"),
    ("philippine", "PH"),
    ("philippines", "PH"),
    ("poland", "PL"),
    ("polish", "PL"),
    ("polska", "PL"),
    ("portugal", "PT"),
    ("portuguese", "PT"),
    ("romania", "RO"),
    ("romanian", "RO"),
    ("russia", "RU"),
    ("russian", "RU"),
    ("saudi", "SA"),
    ("scotland", "GB"),
    ("serbia", "RS"),
    ("serbian", "RS"),
    ("singapore", "SG"),
    ("slovak", "SK"),
    ("slovakia", "SK"),
    ("slovenia", "SI"),
    ("slovenian", "SI"),
    ("españa", "ES"),
    ("spain", "ES"),
    ("spanish", "ES"),
    ("sweden", "SE"),
    ("swedish", "SE"),
    ("schweiz", "CH"),
    ("suisse", "CH"),
    ("swiss", "CH"),
    ("switzerland", "CH"),
    ("taiwan", "TW"),
    ("taiwanese", "TW"),
    ("thai", "TH"),
    ("thailand", "TH"),
    ("turkey", "TR"),
    ("turkish", "TR"),
    ("türkiye", "TR"),
    ("ukraine", "UA"),
    ("ukrainian", "UA"),
    ("vietnam", "VN"),
    ("vietnamese", "VN"),
    ("wales", "GB"),
];

/// Words after which, or before which, two capitals are the code of a country.
const NUMBER_WORDS: &[&str] =
    &["number", "phone", "mobile", "cell", "tel", "line", "fax", "landline", "contact", "region", "country"];

/// How many numbers of a text of so many bytes are looked up, each region counting once. Further ones count as numbers:
/// who sends so many does not send prose.
pub fn look_ups(bytes: usize) -> usize {
    (LOOK_UPS_MIN + bytes / LOOK_UP_EVERY_BYTES).min(LOOK_UPS_MAX)
}

/// Countries in which numbers with an area code, and those of mobiles, are written with a leading zero. There, digits
/// without one are no number unless the words around them say so.
const WRITTEN_WITH_ZERO: &[&str] = &[
    "AT", "AU", "BA", "BE", "BG", "CH", "DE", "EG", "FI", "FR", "GB", "HR", "ID", "IE", "IL", "JP", "KE",
    "KR", "MA", "ME", "MK", "MY", "NG", "NL", "NZ", "PH", "PK", "RO", "RS", "SA", "SE", "SI", "SK", "TH",
    "TR", "TW", "UA", "VN", "ZA",
];

/// Whether the number at `range` of `text` is one by the plans that `plan` asks. `calls` is how many look-ups are left;
/// without any, everything is a number.
pub fn is_dialled(
    text: &str,
    range: &Range<usize>,
    plan: Plan,
    countries: &CountrySet,
    calls: &mut usize,
) -> bool {
    let Some(value) = text.get(range.clone()) else { return false };
    let Some(number) = plain(value) else { return false };
    match plan {
        Plan::World => {
            if !number.starts_with('+') {
                return false;
            }
            spend(calls).is_none_or(|()| is_valid(&number, None))
        }
        Plan::Hinted => {
            let before =
                &text[text.ceil_char_boundary(range.start.saturating_sub(BEFORE_BYTES))..range.start];
            let after = &text[range.end..text.floor_char_boundary((range.end + AFTER_BYTES).min(text.len()))];
            let named = named_regions(before).chain(named_regions(after));
            let has_zero = number.starts_with('0');
            let is_written_so = |code: &&str| has_zero || !WRITTEN_WITH_ZERO.contains(code);
            let of_policy = countries.codes().take(REGIONS_MAX).filter(is_written_so);
            named
                .chain(of_policy)
                .filter_map(|code| Region::from_code(code).ok())
                .any(|region| spend(calls).is_none_or(|()| is_valid(&number, Some(region))))
        }
    }
}

/// One look-up less; none when there is none left.
fn spend(calls: &mut usize) -> Option<()> {
    *calls = calls.checked_sub(1)?;
    Some(())
}

fn is_valid(number: &str, region: Option<Region>) -> bool {
    PHONE_NUMBER_UTIL.parse(number, region).is_ok_and(|number| number.is_valid())
}

/// The digits of a number with its plus sign, without an extension; none when there are too few or too many.
fn plain(value: &str) -> Option<String> {
    let end = value.find(|c: char| c.is_ascii_alphabetic() || c == ';' || c == '#').unwrap_or(value.len());
    let dialled: String = value[..end].chars().filter(|c| c.is_ascii_digit() || *c == '+').collect();
    let digits = dialled.trim_start_matches('+');
    let dialled = match digits.strip_prefix("00") {
        Some(rest) => format!("+{rest}"),
        None => dialled.clone(),
    };
    DIGITS.contains(&digits.len()).then_some(dialled)
}

/// The regions that a piece of text names, by a word or by a code beside a word for a number.
fn named_regions(text: &str) -> impl Iterator<Item = &'static str> {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).collect();
    let is_of_number = |at: usize| {
        words.get(at).is_some_and(|word| NUMBER_WORDS.contains(&word.to_ascii_lowercase().as_str()))
    };
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let lower = word.to_lowercase();
        found.extend(REGION_WORDS.iter().find(|(known, _)| *known == lower).map(|(_, code)| *code));
        let is_code = word.len() == 2 && word.bytes().all(|byte| byte.is_ascii_uppercase());
        if is_code && (is_of_number(at + 1) || (at > 0 && is_of_number(at - 1))) {
            found.extend(CountrySet::of([*word]).iter().flat_map(|set| set.codes()));
        }
    }
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialled(text: &str, number: &str, plan: Plan, countries: &[&str]) -> bool {
        let start = text.find(number).expect("the number stands in the text");
        let countries = CountrySet::of(countries.iter().copied()).expect("codes");
        is_dialled(text, &(start..start + number.len()), plan, &countries, &mut 10)
    }

    #[test]
    fn numbers_with_a_calling_code_are_known_by_its_plan() {
        for (number, wanted) in [
            ("+44 20 7946 0958", true),
            ("+44 (0)20 7946 0958", true),
            ("0044 20 7946 0958", true),
            ("+1-212-555-0123 x42", true),
            ("+1 583 726 1034", false),
            ("+33 6 97 67 05", false),
            ("+999 123456", false),
            ("020 7946 0958", false),
        ] {
            assert_eq!(dialled(number, number, Plan::World, &[]), wanted, "{number}");
        }
    }

    #[test]
    fn national_numbers_need_a_region() {
        for (text, number, countries, wanted) in [
            ("see 030 1234567", "030 1234567", &[][..], false),
            ("see 030 1234567", "030 1234567", &["DE"][..], true),
            ("see 030 1234567", "030 1234567", &["US"][..], false),
            ("SSN 536-22-8714", "536-22-8714", &["DE", "FR"][..], false),
            ("my German number: 030 1234567", "030 1234567", &[][..], true),
            ("My CN number is 13812345678", "13812345678", &[][..], true),
            ("ON 13812345678", "13812345678", &[][..], false),
            ("13812345678 (CN mobile)", "13812345678", &[][..], true),
            ("the Israeli one, 09-7625400", "09-7625400", &[][..], true),
        ] {
            assert_eq!(dialled(text, number, Plan::Hinted, countries), wanted, "{text}");
        }
    }

    #[test]
    fn beyond_the_look_ups_everything_is_a_number() {
        let text = "+1 583 726 1034";
        let mut calls = 1;
        let ask =
            |calls: &mut usize| is_dialled(text, &(0..text.len()), Plan::World, &CountrySet::EMPTY, calls);
        assert!(!ask(&mut calls));
        assert!(ask(&mut calls));
        assert_eq!(calls, 0);
    }
}
