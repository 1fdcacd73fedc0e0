//! That reading only what views changed finds what reading all of each view finds.
//!
//! Not compared is what the model weighs, and what stands backwards, in ROT13 or in leetspeak: these are read around places
//! where a phrase shows through, and reading everything that way sees more by chance.

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::concepts::RULE_ID;
use super::{Request, Scanner};
use crate::rules::{Budget, Role, RuleSet, RuleSetConfig, RuleSource, Surface, builtin_sources};

/// The scanner as it is, and one that reads everything.
static SCANNERS: LazyLock<[Scanner; 2]> = LazyLock::new(|| {
    let rules =
        RuleSet::compile(&builtin_sources(), &RuleSetConfig::default()).expect("built-in rules compile");
    let rules = Arc::new(rules);
    [Scanner::new(rules.clone()), Scanner::thorough(rules)]
});

/// Examples of every rule.
static PIECES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let rules = SCANNERS[0].rules().rules().iter();
    rules.flat_map(|rule| rule.def.examples.iter().chain(&rule.def.negative_examples).cloned()).collect()
});

/// Texts in which nothing is found, as they stand between what is.
const FILLERS: [&str; 3] = [
    "The boxes for the small hall come on Thursday, and the keys lie with the porter. ",
    "let total = items.iter().map(|item| item.price).sum::<u64>();\n    report(total, &names);\n",
    "2026-03-14 07:00:12 INFO  request path=/stock/list status=200 took=17\n",
];

/// One piece dressed in one of the ways that views undo.
fn dressed(piece: &str, way: usize) -> String {
    match way {
        0 => base64::engine::general_purpose::STANDARD.encode(piece),
        1 => piece.replace('e', "e\u{200b}"),
        2 => piece.replace('\n', "\\n").replace('"', "\\\""),
        3 => piece.replace(' ', "\n    // "),
        4 => piece.replace('a', "\u{430}"),
        5 => piece.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        6 => piece.chars().flat_map(|c| [c, ' ']).collect(),
        _ => piece.to_owned(),
    }
}

fn text() -> impl Strategy<Value = String> {
    let part = (any::<prop::sample::Index>(), 0usize..9, 0usize..FILLERS.len(), 0usize..40);
    prop::collection::vec(part, 1..6).prop_map(|parts| {
        let part = |(at, way, filler, times): (prop::sample::Index, usize, usize, usize)| {
            dressed(&PIECES[at.index(PIECES.len())], way) + "\n" + &FILLERS[filler].repeat(times)
        };
        parts.into_iter().map(part).collect()
    })
}

/// What is left out between two parts joins nothing.
#[test]
fn phrases_do_not_go_on_over_what_was_left_out() {
    let between = "The boxes for the small hall come on Thursday, and the keys lie with the porter. ";
    let far = between.repeat(40);
    let text = format!(
        "one\u{a0}two pr0mpts {far} three\u{a0}four ignor3 {between} previous instructions {far} five\u{a0}six pr0mpts"
    );
    let request =
        Request { text: &text, plugins: u32::MAX, role: Some(Role::User), surface: Some(Surface::Text) };
    let scanned = SCANNERS[0].scan(request, &Budget::UNLIMITED).expect("no budget");
    assert!(scanned.findings.is_empty(), "{:?}", scanned.findings);
}

/// A rule that digits start is asked as far from what changed as it reaches.
#[test]
fn rules_without_a_literal_reach_as_far_as_they_say() {
    let text = r#"
plugin = "custom"
[[rule]]
id = "custom.record"
category = "custom.record"
severity = "high"
confidence = 0.9
trigger = "digits"
trigger_min = 8
pattern = '\d{8} [^\n]{0,3000}END-OF-RECORD'
description = "A record."
recommendation = "Leave it out."
"#;
    let source = RuleSource { text: text.into(), json: None, ..builtin_sources()[0].clone() };
    let rules = RuleSet::compile(&[source], &RuleSetConfig::default()).expect("it compiles");
    let scanner = Scanner::new(Arc::new(rules));
    for words in [1, 100, 300] {
        let text = format!("12345678 {}END-OF-REC\u{200b}ORD", "a word or two ".repeat(words / 2));
        let request = Request { text: &text, plugins: u32::MAX, role: None, surface: None };
        let scanned = scanner.scan(request, &Budget::UNLIMITED).expect("no budget");
        assert_eq!(scanned.findings.len(), 1, "{words}");
    }
}

proptest! {
    // By chance, parts of two pieces can make a third that only shows where everything is read.
    #![proptest_config(ProptestConfig { cases: 256, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn what_views_did_not_change_need_not_be_read_again(text in text()) {
        for role in [Role::User, Role::Tool] {
            let request =
                Request { text: &text, plugins: u32::MAX, role: Some(role), surface: Some(Surface::Text) };
            let [found, wanted] = [0, 1].map(|nth: usize| {
                let scanned = SCANNERS[nth].scan(request, &Budget::UNLIMITED).expect("no budget");
                let one = |found: super::Detected| (found.info.id.clone(), found.range);
                let by_rules = scanned.findings.into_iter().filter(|found| &*found.info.id != RULE_ID);
                by_rules.map(one).collect::<Vec<_>>()
            });
            prop_assert_eq!(found, wanted, "{:?}", text);
        }
    }
}
