//! Every validator by name, on any value in any neighbourhood, and every look-up of a telephone number.
//!
//! Within the engine a validator only sees what its rule's pattern lets through. Here each sees everything; and as a check
//! digit is hit by chance only, the input names one validator that is asked about every last character as well.

use std::ops::Range;
use std::sync::LazyLock;

use portcullis::rules::validate::Validator;
use portcullis::rules::{CountrySet, PhonePlan, is_dialled, phone_look_ups};

/// Text on either side that a validator is given, in bytes.
const AROUND_MAX: usize = 64;

/// Characters that a check may end in.
const LAST: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Every validator with its name; those with a parameter with one that divides texts.
static EVERY: LazyLock<Vec<(String, Validator)>> = LazyLock::new(|| {
    let plain = Validator::NAMES.iter().filter(|name| !name.contains('<')).map(|name| (*name).to_owned());
    let schemes = Validator::schemes().map(|scheme| format!("national-id:{scheme}"));
    let all = plain.chain(schemes).chain(["entropy:3.2", "characters:16"].map(str::to_owned));
    all.map(|name| (name.clone(), Validator::parse(&name).expect("a name that is listed"))).collect()
});

/// A value and what stands before and behind it, cut at bytes 0xFF: every validator answers, the same each time, and a
/// national number is the same one with separators and in small letters.
///
/// The first byte chooses the validator that is asked about every last character.
pub fn validators(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let texts: Vec<_> = rest.splitn(3, |byte| *byte == 0xFF).map(String::from_utf8_lossy).collect();
    let text = |nth: usize| texts.get(nth).map_or("", |text| &**text);
    let value = text(0);
    let before = &text(1)[text(1).ceil_char_boundary(text(1).len().saturating_sub(AROUND_MAX))..];
    let after = &text(2)[..text(2).floor_char_boundary(AROUND_MAX)];
    for (name, validator) in EVERY.iter() {
        let answer = validator.accepts(value, before, after);
        assert_eq!(validator.accepts(value, before, after), answer, "{name} asked twice");
    }
    let (name, validator) = &EVERY[usize::from(*choice) % EVERY.len()];
    let cut = value.char_indices().next_back().map_or(0, |(at, _)| at);
    for last in LAST.chars() {
        let value = format!("{}{last}", &value[..cut]);
        let answer = validator.accepts(&value, before, after);
        if matches!(validator, Validator::NationalId(_)) {
            let parted: String = value.to_lowercase().chars().flat_map(|c| [c, '-']).collect();
            let is_same = !value.is_ascii() || validator.accepts(&parted, before, after) == answer;
            assert!(is_same, "{name} takes {value} and {parted} for two numbers");
        }
    }
    let _ = Validator::parse(value);
    check_numbers(&format!("{before}{value}{after}"), before.len()..before.len() + value.len(), *choice);
}

/// Telephone numbers are looked up no more often than allowed, and without look-ups none is doubted.
fn check_numbers(text: &str, range: Range<usize>, choice: u8) {
    let countries =
        [&[][..], &["US"], &["DE", "FR", "GB"], &["IN", "BR", "JP", "KE"]][usize::from(choice) % 4];
    let countries = CountrySet::of(countries.iter().copied()).expect("codes of countries");
    for plan in [PhonePlan::World, PhonePlan::Hinted] {
        let allowed = phone_look_ups(text.len());
        let mut left = allowed;
        let is_number = is_dialled(text, &range, plan, &countries, &mut left);
        assert!(left <= allowed, "{left} look-ups are left of {allowed}");
        let undoubted = is_dialled(text, &range, plan, &countries, &mut 0);
        assert!(
            undoubted || !is_number,
            "{:?} by {plan:?} is a number only when it is looked up",
            &text[range]
        );
    }
}
