//! That reading only what views changed finds what reading all of each view finds.
//!
//! Not compared is what the model weighs: it adds up signs that lie far apart, and reading everything backwards sees more of
//! them by chance.

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use proptest::prelude::*;

use super::concepts::RULE_ID;
use super::{Request, Scanner};
use crate::rules::{Budget, Role, RuleSet, RuleSetConfig, Surface, builtin_sources};

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
    let rotate = |c: char, first: u8| char::from((c as u8 - first + 13) % 26 + first);
    match way {
        0 => piece
            .chars()
            .map(|c| match c {
                'a'..='z' => rotate(c, b'a'),
                'A'..='Z' => rotate(c, b'A'),
                _ => c,
            })
            .collect(),
        1 => piece.chars().rev().collect(),
        2 => base64::engine::general_purpose::STANDARD.encode(piece),
        3 => piece.replace('e', "e\u{200b}"),
        4 => piece.replace('\n', "\\n").replace('"', "\\\""),
        5 => piece.replace('a', "4").replace('o', "0").replace('e', "3"),
        6 => piece.replace(' ', "\n    // "),
        7 => piece.replace('a', "\u{430}"),
        8 => piece.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        9 => piece.chars().flat_map(|c| [c, ' ']).collect(),
        _ => piece.to_owned(),
    }
}

fn text() -> impl Strategy<Value = String> {
    let part = (any::<prop::sample::Index>(), 0usize..14, 0usize..FILLERS.len(), 0usize..40);
    prop::collection::vec(part, 1..6).prop_map(|parts| {
        let part = |(at, way, filler, times): (prop::sample::Index, usize, usize, usize)| {
            dressed(&PIECES[at.index(PIECES.len())], way) + "\n" + &FILLERS[filler].repeat(times)
        };
        parts.into_iter().map(part).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

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
