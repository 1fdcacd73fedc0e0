//! Windows and their sums against sums taken one by one.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::rules::wording::{BUCKETS, WordingBounds, WordingDef};
use crate::rules::{MODEL_FORMAT, ModelDef, Speaker};

fn model(weigh: &[(&str, i8)]) -> Model {
    let mut numbers = vec![0i8; BUCKETS];
    for (word, number) in weigh {
        each(word, |token| numbers[usize::from(token.buckets[0])] = *number);
    }
    let table = WordingDef::written(&numbers);
    let bounds = vec![WordingBounds { speaker: Speaker::Tool, foreign: false, warn: 0.6, block: 0.95 }];
    let wording = WordingDef { scale: 0.001, bias: -2.0, warn: 0.5, block: 0.9, bounds, table };
    let def = ModelDef {
        format: MODEL_FORMAT,
        description: String::new(),
        window: 2000,
        scale: 0.05,
        bias: -60,
        warn: 0.4,
        block: 0.8,
        bounds: Vec::new(),
        wording: Some(wording),
        weights: BTreeMap::new(),
    };
    Model::new(def, "m.toml".to_owned())
}

fn wording() -> Wording {
    model(&[("xyzzy", 127), ("plugh", 90), ("tea", -100)]).wording.expect("it has one")
}

#[test]
fn the_words_that_tell_are_the_span() {
    let wording = wording();
    let text = "some tea first, then xyzzy the plugh and so on";
    let window = best(&wording, text, |_| true).expect("words");
    assert_eq!(window.range, 0..text.len());
    assert_eq!(window.units, 16_129 + 8_100 - 10_000);
    assert_eq!(&text[span(&wording, text, &window)], "xyzzy the plugh");
    let terms = terms(&wording, text, &window);
    assert_eq!(&text[terms[0].0.clone()], "xyzzy");
    assert_eq!(&text[terms[1].0.clone()], "plugh");
    assert!(terms.len() == 2 && terms[0].1 > terms[1].1);
    assert_eq!(best(&wording, " \n ", |_| true), None);
}

#[test]
fn what_stands_far_away_does_not_thin_it_out() {
    let wording = wording();
    let odds = |text: &str| {
        best(&wording, text, |_| true).map(|one| wording.odds(one.units, one.features)).expect("words")
    };
    let filler = "and ".repeat(4 * BLOCK_TOKENS);
    let attack = "xyzzy plugh xyzzy plugh";
    let alone = odds(&format!("{} {attack}", "and ".repeat(2 * BLOCK_TOKENS - 4)));
    for text in
        [format!("{filler} {attack}"), format!("{attack} {filler}"), format!("{filler} {attack} {filler}")]
    {
        // Pairs at its edges are others.
        assert!(odds(&text) >= 0.9 * alone, "{} < {alone}", odds(&text));
    }
}

#[test]
fn only_windows_with_a_sign_are_read() {
    let wording = wording();
    let filler = "and ".repeat(4 * BLOCK_TOKENS);
    let text = format!("{filler}xyzzy plugh {filler}");
    let near = |at: usize| Vec::from_iter(std::iter::once(at..at + 1));
    let read = |signs: &[Range<usize>]| best(&wording, &text, |window| has_sign(signs, window));
    let there = read(&near(filler.len())).expect("a window");
    assert!(there.units > 0 && there.range.contains(&filler.len()));
    assert_eq!(there.of, 2, "windows overlap by half");
    assert_eq!(read(&near(0)).map(|one| (one.units, one.of)), Some((0, 1)));
    assert_eq!(read(&[]), None);
    let has_sign = windows(&text, &near(filler.len())).iter().filter(|window| window.has_sign).count();
    assert_eq!(has_sign, 2);
}

proptest! {
    #[test]
    fn the_best_window_is_the_best_of_all(words in prop::collection::vec(0usize..4, 0..700)) {
        let wording = wording();
        let words: Vec<&str> = words.into_iter().map(|nth| ["xyzzy", "plugh", "tea", "so"][nth]).collect();
        let text = words.join(" ");
        let odds = |window: &Window| {
            let units = window.features.iter().map(|bucket| wording.weight(*bucket)).sum();
            wording.odds(units, window.features.len())
        };
        let wanted = windows(&text, &[]).iter().map(odds).reduce(f64::max);
        let found = best(&wording, &text, |_| true).map(|one| wording.odds(one.units, one.features));
        prop_assert_eq!(found, wanted);
    }
}
