//! What redaction promises, over texts put together from all rules; and disguised personal data, put on by machine.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;

use super::redact::{Placeholders, Secret, kind_of, redact};
use super::{PII, Request, SECRETS, Scanner};
use crate::decision::Severity;
use crate::rules::{Budget, RuleSet, RuleSetConfig, builtin_sources};

static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
    let rules =
        RuleSet::compile(&builtin_sources(), &RuleSetConfig::default()).expect("built-in rules compile");
    Scanner::new(Arc::new(rules))
});

/// Examples of every rule about credentials and personal data.
static PIECES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let rules = SCANNER.rules().rules().iter();
    let wanted = rules.filter(|rule| matches!(&*rule.info.plugin, PII | SECRETS));
    wanted.flat_map(|rule| rule.def.examples.iter().chain(&rule.def.negative_examples).cloned()).collect()
});

fn find(text: &str) -> Vec<Secret> {
    let plugins = SCANNER.rules().plugin_bits([PII, SECRETS]);
    let request = Request { text, plugins, role: None, surface: None };
    let scanned = SCANNER.scan(request, &Budget::UNLIMITED).expect("no budget");
    let secret = |found: super::Detected| Secret {
        range: found.range,
        category: found.info.category.clone(),
        severity: found.info.severity,
    };
    scanned.findings.into_iter().map(secret).collect()
}

fn redacted(text: &str) -> String {
    let again = |text: &str| Ok::<_, Infallible>(find(text));
    redact(text, false, find(text), &mut Placeholders::default(), again).expect("cannot fail")
}

/// Byte for byte, what of `text` stands in `redacted` in the same order, placeholders left out.
fn is_made_of(redacted: &str, text: &str, taken: &[Range<usize>]) -> bool {
    // Everything between the found spans, with anything or nothing of it gone further.
    let mut gaps = Vec::new();
    let mut at = 0;
    for range in taken {
        if range.start > at {
            gaps.push(&text[at..range.start]);
        }
        at = at.max(range.end);
    }
    gaps.push(&text[at..]);
    let kept: usize = gaps.iter().map(|gap| gap.len()).sum();
    let shown: usize = redacted.len().saturating_sub(placeholders(redacted));
    shown <= kept
}

/// Bytes of placeholders.
fn placeholders(text: &str) -> usize {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    let opened = text.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    opened.filter(|(name, _)| is_name(name)).map(|(name, _)| name.len() + 2).sum()
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => any::<prop::sample::Index>().prop_map(|at| PIECES[at.index(PIECES.len())].clone()),
        2 => "[ -~]{0,24}",
        1 => "\\PC{0,12}",
    ];
    let joint = prop::sample::select(vec![" ", "\n", ", ", "", "\u{200b}", "\"", " = "]);
    prop::collection::vec((piece, joint), 1..6)
        .prop_map(|parts| parts.into_iter().map(|(piece, joint)| piece + joint).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    /// No byte of a found span is left, nothing more is found, and a second pass changes nothing.
    #[test]
    fn redaction_leaves_nothing_and_is_done_after_one_pass(text in text()) {
        let found: Vec<_> = find(&text).into_iter().map(|secret| secret.range).collect();
        let once = redacted(&text);
        prop_assert!(find(&once).is_empty(), "{text:?} -> {once:?}");
        prop_assert_eq!(redacted(&once), once.clone());
        prop_assert!(is_made_of(&once, &text, &found), "{text:?} -> {once:?}");
        for secret in find(&text) {
            let value = &text[secret.range];
            // Personal data may stand elsewhere in another sense; a credential is one wherever it stands.
            let is_told = secret.category.family() == SECRETS && secret.severity >= Severity::Medium;
            prop_assert!(!is_told || value.len() < 8 || !once.contains(value), "{text:?} -> {once:?}");
        }
        if found.is_empty() {
            prop_assert_eq!(once, text);
        }
    }
}

/// What redaction leaves of every example, and a placeholder of every kind under every kind of name, is found by no rule.
#[test]
fn placeholders_are_no_values() {
    let rules = SCANNER.rules().rules().iter();
    let of_values = rules.filter(|rule| matches!(&*rule.info.plugin, PII | SECRETS));
    let kinds: BTreeSet<String> = of_values.map(|rule| kind_of(&rule.info.category)).collect();
    let named = kinds.iter().flat_map(|kind| {
        let forms =
            ["API_TOKEN={}", "password: \"{}\"", "https://app:{}@db.example.org/", "my passport is {}."];
        forms.map(|form| form.replace("{}", &format!("[{kind}_1]")))
    });
    let left = PIECES.iter().map(|piece| redacted(&format!("{piece} ")));
    let wrong: Vec<_> = named.chain(left).filter(|text| !find(text).is_empty()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(!find("API_TOKEN=[q8c9rHsucWBV19vdmyPK_1]").is_empty(), "brackets alone excuse nothing");
}

/// What stands beside something that was taken out is not taken out because of the placeholder.
#[test]
fn placeholders_are_no_context() {
    for (text, wanted) in [
        ("CPF 111.444.777-35 and order 4391463466", "CPF [NATIONAL_ID_1] and order 4391463466"),
        ("AHV 756.4347.2262.86 order 439 146 3466 shipped", "AHV [NATIONAL_ID_1] order 439 146 3466 shipped"),
        (
            "Server=db1;Database=shop;User ID=sa;Pwd=Xk9vQz7kk2pLm;Encrypt=true",
            "Server=db1;Database=shop;User ID=sa;Pwd=[SECRET_CONNECTION_STRING_1];Encrypt=true",
        ),
        ("card 4111 1111 1111 1111, order 123456789", "card [CREDIT_CARD_1], order 123456789"),
    ] {
        assert_eq!(redacted(text), wanted, "{text}");
    }
}

/// A name and what it makes of a value.
type Disguise = (&'static str, fn(&str) -> String);

/// Ways in which people and scripts write a number or an address so that patterns miss it.
fn disguises() -> Vec<Disguise> {
    fn map(value: &str, with: impl Fn(char) -> char) -> String {
        value.chars().map(with).collect()
    }
    fn digits(value: &str, zero: u32) -> String {
        map(value, |c| c.to_digit(10).and_then(|d| char::from_u32(zero + d)).unwrap_or(c))
    }
    fn gaps(value: &str, with: &str) -> String {
        value.replace([' ', '-'], with)
    }
    fn inside(value: &str, mark: &str) -> String {
        let (head, tail) = value.split_at(value.len() / 2);
        format!("{head}{mark}{tail}")
    }
    vec![
        ("full-width digits", |v| digits(v, 0xFF10)),
        ("full-width all", |v| {
            map(v, |c| if c.is_ascii_graphic() { char::from_u32(c as u32 + 0xFEE0).unwrap_or(c) } else { c })
        }),
        ("full-width at sign", |v| v.replace('@', "\u{FF20}")),
        ("Arabic-Indic digits", |v| digits(v, 0x660)),
        ("Persian digits", |v| digits(v, 0x6F0)),
        ("Devanagari digits", |v| digits(v, 0x966)),
        ("zero-width space inside", |v| inside(v, "\u{200B}")),
        ("zero-width joiner inside", |v| inside(v, "\u{200D}")),
        ("soft hyphen inside", |v| inside(v, "\u{AD}")),
        ("word joiner inside", |v| inside(v, "\u{2060}")),
        ("no-break spaces", |v| gaps(v, "\u{A0}")),
        ("narrow no-break spaces", |v| gaps(v, "\u{202F}")),
        ("en dashes", |v| gaps(v, "\u{2013}")),
        ("em dashes", |v| gaps(v, "\u{2014}")),
        ("minus signs", |v| gaps(v, "\u{2212}")),
        ("double spaces", |v| gaps(v, "  ")),
        ("middle dots", |v| gaps(v, "\u{B7}")),
        ("tabs", |v| gaps(v, "\t")),
        ("small letters", str::to_ascii_lowercase),
    ]
}

/// A card of the test range of its network, its check digit worked out.
fn card(body: u64) -> String {
    let body = format!("45{:013}", body % 10_000_000_000_000);
    let sum: u32 = body
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, byte)| {
            let digit = u32::from(byte - b'0');
            match (at % 2, digit * 2) {
                (1, _) => digit,
                (_, double) if double > 9 => double - 9,
                (_, double) => double,
            }
        })
        .sum();
    let all = format!("{body}{}", (10 - sum % 10) % 10);
    format!("{} {} {} {}", &all[..4], &all[4..8], &all[8..12], &all[12..])
}

/// A German bank account with its check digits.
fn iban(body: u64) -> String {
    let body = format!("{:018}", body % 1_000_000_000_000_000_000);
    let number = format!("{body}131400");
    let rest = number.bytes().fold(0u32, |rest, byte| (rest * 10 + u32::from(byte - b'0')) % 97);
    let all = format!("DE{:02}{body}", 98 - rest);
    let groups: Vec<&str> = (0..all.len()).step_by(4).map(|at| &all[at..(at + 4).min(all.len())]).collect();
    groups.join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A disguised value is covered from end to end, whatever it is dressed in.
    #[test]
    fn disguised_values_are_covered(body in 1u64.., at in any::<prop::sample::Index>()) {
        let disguises = disguises();
        let (name, dress) = disguises[at.index(disguises.len())];
        let area = 100 + body % 500;
        let values = [
            ("My card is ", card(body)),
            ("IBAN: ", iban(body)),
            ("my SSN is ", format!("{area}-{:02}-{:04}", 1 + body % 99, 1 + body % 9_999)),
            ("call me at ", format!("+49 30 {:07}", 1_000_000 + body % 8_999_999)),
            ("write to ", format!("anna.{}@mail.example.org", body % 1_000)),
        ];
        for (before, value) in values {
            let dressed = dress(&value);
            let text = format!("{before}{dressed}");
            let mut covered = before.len();
            for secret in find(&text) {
                if secret.range.start <= covered {
                    covered = covered.max(secret.range.end);
                }
            }
            prop_assert!(covered >= text.len(), "{name}: {text:?} is covered up to byte {covered}");
        }
    }
}
