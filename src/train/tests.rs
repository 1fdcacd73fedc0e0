//! Training on a handful of texts: what is learned, and that it is learned the same way twice.

use std::sync::Arc;

use super::*;
use crate::rules::{RuleSet, RuleSetConfig, RuleSource};

const CONCEPTS: &str = r#"
[[concept]]
id = "t.bad"
family = "bad"
description = "d"
phrases = ["xyzzy"]

[[concept]]
id = "t.common"
family = "common"
description = "d"
phrases = ["plugh"]

[[concept]]
id = "t.against"
family = "calm"
against = true
description = "d"
phrases = ["tea+time"]
"#;

fn scanner(model: Option<&ModelDef>) -> Scanner {
    let mut sources = vec![RuleSource::custom("t.toml", "injection", CONCEPTS)];
    sources.extend(model.map(|model| RuleSource::custom("m.toml", "injection", model_file(model))));
    let set =
        RuleSet::compile(&sources, &RuleSetConfig::default()).unwrap_or_else(|problems| panic!("{problems}"));
    Scanner::new(Arc::new(set))
}

fn texts() -> Vec<Labelled> {
    let mut out = Vec::new();
    for source in ["a", "b", "c"] {
        for n in 0..40 {
            for (is_attack, text) in
                [(true, format!("Say xyzzy and plugh {n}.")), (false, format!("Then plugh at tea time {n}."))]
            {
                let (source, tier) = (source.to_owned(), "t".to_owned());
                out.push(Labelled { id: n.to_string(), source, tier, is_attack, role: Role::User, text });
            }
        }
    }
    out
}

#[test]
fn what_tells_is_learned_and_found() {
    let trained = train(&scanner(None), &texts()).expect("enough to learn from");
    let weights = &trained.model.weights;
    assert!(weights["bad"] > 50 && weights["calm"] < -50 && weights["common"].abs() < 30, "{weights:?}");
    for ((is_attack, _, _), (found, all)) in &trained.held_out {
        assert_eq!(*found, if *is_attack { *all } else { 0 });
    }
    let scanner = scanner(Some(&trained.model));
    let find = |text: &str| {
        let plugins = scanner.rules().plugin_bits([INJECTION]);
        let request = Request { text, plugins, role: Some(Role::User), surface: Some(Surface::Text) };
        scanner.scan(request, &Budget::UNLIMITED).expect("no budget").findings
    };
    let found = find("Now say xyzzy and plugh.");
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(&*finding.info.id, "injection.concepts");
    assert!(finding.info.score >= 0.7, "{:?}", finding.info);
    assert!(finding.info.description.contains("bad (") && finding.info.description.contains("at 8..13"));
    assert_eq!(finding.range, 8..13);
    assert!(find("Then plugh at tea time.").is_empty());
}

/// Enough harmless texts of each kind: one in ten of the long ones of users, and half of what tools return, says `xyzzy`.
fn texts_of_kinds() -> Vec<Labelled> {
    let mut out = Vec::new();
    for source in ["a", "b", "c"] {
        for n in 0..100 {
            let long = "and so on, ".repeat(30);
            let harmless = if n % 10 == 0 { "xyzzy plugh" } else { "plugh" };
            let manual = if n % 2 == 0 { "xyzzy plugh" } else { "plugh" };
            for (is_attack, role, text) in [
                (true, Role::User, format!("Say xyzzy and plugh {n}.")),
                (true, Role::User, format!("Say xyzzy and plugh {n}, {long}.")),
                (false, Role::User, format!("Then plugh {n}.")),
                (false, Role::User, format!("Then {harmless} {n}, {long}.")),
                (false, Role::Tool, format!("Then {manual} {n}.")),
            ] {
                let (source, tier) = (source.to_owned(), "t".to_owned());
                out.push(Labelled { id: n.to_string(), source, tier, is_attack, role, text });
            }
        }
    }
    out
}

#[test]
fn kinds_of_text_have_bounds_of_their_own() {
    let trained = train(&scanner(None), &texts_of_kinds()).expect("enough to learn from");
    let model = &trained.model;
    assert_eq!(model.bounds.len(), KINDS.len());
    for (own, kind) in model.bounds.iter().zip(&KINDS) {
        assert_eq!((own.speaker, own.from_bytes), (kind.speaker, kind.from_bytes));
        assert!(own.warn < own.block, "{own:?}");
    }
    // Long texts of users say so often what attacks say that only more than that blocks there; not so short ones.
    assert!(model.bounds[0].block < model.bounds[1].block, "{:?}", model.bounds);
    assert!(card(&trained).contains("| user | 250 |"), "{}", card(&trained));

    let scanner = scanner(Some(model));
    let blocks = |role: Role, text: &str| {
        let plugins = scanner.rules().plugin_bits([INJECTION]);
        let request = Request { text, plugins, role: Some(role), surface: Some(surface(role)) };
        let findings = scanner.scan(request, &Budget::UNLIMITED).expect("no budget").findings;
        findings.iter().any(|one| *one.info.id == *"injection.concepts" && one.info.score >= 0.7)
    };
    assert!(blocks(Role::User, "Say xyzzy and plugh."));
    assert!(!blocks(Role::Tool, "Say xyzzy and plugh."));
    assert!(!blocks(Role::User, "Then plugh."));

    let is_kept = |text: &Labelled| text.source != "c" && text.id.len() == 1;
    let few: Vec<Labelled> = texts_of_kinds().into_iter().filter(is_kept).collect();
    let trained = train(&self::scanner(None), &few).expect("two sources");
    assert!(trained.model.bounds.is_empty(), "twenty harmless texts of a kind are too few");
}

#[test]
fn the_file_says_the_whole_model() {
    for texts in [texts(), texts_of_kinds()] {
        let trained = train(&scanner(None), &texts).expect("enough to learn from");
        let scanner = scanner(Some(&trained.model));
        let read = &scanner.rules().model().expect("the model").def;
        assert_eq!(model_file(read), model_file(&trained.model));
        assert_eq!(read.bounds, trained.model.bounds);
    }
}

#[test]
fn the_same_texts_give_the_same_file() {
    let once = train(&scanner(None), &texts()).expect("enough to learn from");
    let twice = train(&scanner(None), &texts()).expect("enough to learn from");
    assert_eq!(model_file(&once.model), model_file(&twice.model));
    assert_eq!(card(&once), card(&twice));
    assert!(card(&once).contains("| attack | a | t | 40 | 100.0 % |"));
}

#[test]
fn too_little_is_said() {
    let one: Vec<Labelled> = texts().into_iter().filter(|text| text.source == "a").collect();
    let only_benign: Vec<Labelled> = texts().into_iter().filter(|text| !text.is_attack).collect();
    let silent = |text: Labelled| Labelled { text: "Nothing.".to_owned(), ..text };
    let nothing: Vec<Labelled> = texts().into_iter().map(silent).collect();
    assert!(
        train(&scanner(None), &[]).is_err_and(|e| e.to_string().contains("no record in any of the files"))
    );
    let only_attacks: Vec<Labelled> = texts().into_iter().filter(|text| text.is_attack).collect();
    for (texts, told) in [(only_benign, "no attack among"), (only_attacks, "no benign among")] {
        assert!(train(&scanner(None), &texts).is_err_and(|e| e.to_string().contains(told)), "{told}");
    }
    let tiered = |text: Labelled, tier: &str| Labelled { tier: tier.to_owned(), ..text };
    let semantic: Vec<Labelled> =
        texts().into_iter().map(|text| if text.is_attack { tiered(text, SEMANTIC) } else { text }).collect();
    let wording: Vec<Labelled> = texts().into_iter().map(|text| tiered(text, WORDING)).collect();
    let of_system = |text: Labelled| Labelled { role: Role::System, ..text };
    let of_system: Vec<Labelled> = texts().into_iter().map(of_system).collect();
    for (texts, told) in [
        (semantic, "from the attacks: of 120 there are 120 of tier `semantic`"),
        (wording, "from the attacks: of 120 there are 120 of tier `wording`"),
        (of_system, "from the attacks: of 120 there are 120 of the system"),
    ] {
        let error = train(&scanner(None), &texts).expect_err("nothing to learn from").to_string();
        assert!(error.contains(told), "{told} in {error}");
    }
    assert!(train(&scanner(None), &nothing).is_err_and(|e| e.to_string().contains("holds any concept")));
    // A tier that one source alone brings is cut, but its parts are no sources.
    assert!(train(&scanner(None), &one).is_err_and(|e| e.to_string().contains("at least two sources")));
    let unnamed = |text: Labelled| Labelled { source: String::new(), ..text };
    let unnamed: Vec<Labelled> = texts().into_iter().map(unnamed).collect();
    assert!(
        train(&scanner(None), &unnamed)
            .is_err_and(|e| e.to_string().contains("240 records have no `source`"))
    );
}

#[test]
fn what_is_likely_harmless_never_blocks() {
    // No harmless text holds anything that speaks for an attack, so that their shares say nothing.
    let clean = |text: Labelled| match text.is_attack {
        true => text,
        false => Labelled { text: text.text.replace("xyzzy", "nothing").replace("plugh", "at all"), ..text },
    };
    let clean: Vec<Labelled> = texts_of_kinds().into_iter().map(clean).collect();
    // Benign texts that hold a concept are needed at all.
    let clean = clean.into_iter().chain(texts());
    let trained = train(&scanner(None), &Vec::from_iter(clean)).expect("enough to learn from");
    let model = &trained.model;
    assert_eq!((model.warn, model.block), (WARN_MIN, BLOCK_MIN));
    assert_eq!(model.bounds.len(), KINDS.len());
    for own in &model.bounds {
        assert!(own.block >= BLOCK_MIN && own.warn >= WARN_MIN && own.warn < own.block, "{own:?}");
    }
    assert!(card(&trained).contains("No kind of text blocks below 0.5 or warns below 0.25"));
    assert!(!card(&trained).contains("999999"), "{}", card(&trained));
    let told = json(&trained);
    assert_eq!(
        (told["block"].as_f64(), told["held_out"].as_array().map(Vec::len)),
        (Some(BLOCK_MIN), Some(6))
    );

    // The bounds of the built-in model are far above.
    let set = RuleSet::compile(&crate::rules::builtin_sources(), &RuleSetConfig::default());
    let set = set.unwrap_or_else(|problems| panic!("{problems}"));
    let built_in = &set.model().expect("the built-in model").def;
    let own = built_in.bounds.iter().map(|own| (own.warn, own.block));
    for (warn, block) in own.chain([(built_in.warn, built_in.block)]) {
        assert!(warn >= WARN_MIN && block > BLOCK_MIN, "{warn} {block}");
    }
}

#[test]
fn thresholds_are_round_numbers() {
    for harmless in [vec![-3.04; 400], vec![-40.0; 10], vec![0.3, 0.29]] {
        let (warn, block) = shares(harmless.into_iter(), RATES);
        for bound in [warn, block] {
            assert!(bound.to_string().len() <= 6, "{bound}");
        }
    }
}

#[test]
fn words_that_no_concept_knows_are_learned() {
    let mut texts = texts_of_kinds();
    for source in ["a", "b", "c"] {
        for n in 0..100 {
            for (is_attack, text) in [
                (true, format!("Kindly plugh and frobnicate the gadget {n}.")),
                (false, format!("Kindly plugh and water the garden {n}.")),
            ] {
                let (source, tier) = (source.to_owned(), WORDING.to_owned());
                texts.push(Labelled { id: n.to_string(), source, tier, is_attack, role: Role::User, text });
            }
        }
    }
    let trained = train(&scanner(None), &texts).expect("enough to learn from");
    let with_words_only = trained.held_out.keys().any(|(_, _, tier)| tier == WORDING);
    assert!(!with_words_only, "such texts teach nothing about concepts");
    assert_eq!(trained.words_held_out[&(true, "a".to_owned(), WORDING.to_owned())], (100, 100));
    assert_eq!(trained.words_held_out[&(false, "a".to_owned(), WORDING.to_owned())], (0, 100));
    let wording = trained.model.wording.as_ref().expect("words");
    let kinds: Vec<_> = wording.bounds.iter().map(|own| (own.speaker, own.foreign)).collect();
    assert_eq!(
        kinds,
        [(Speaker::User, false), (Speaker::Tool, false)],
        "too few texts are in other languages"
    );

    let scanner = scanner(Some(&trained.model));
    let find = |text: &str| {
        let plugins = scanner.rules().plugin_bits([INJECTION]);
        let request = Request { text, plugins, role: Some(Role::User), surface: Some(Surface::Text) };
        scanner.scan(request, &Budget::UNLIMITED).expect("no budget").findings
    };
    let found = find("Kindly plugh and frobnicate the gadget.");
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(&*finding.info.id, "injection.wording");
    assert!(finding.info.score >= 0.7, "{:?}", finding.info);
    for harmless in [
        "Kindly plugh and water the garden.",
        // No concept speaks for an attack, or it is quoted.
        "Kindly stay and frobnicate the gadget.",
        "He wrote \"plugh\" and kindly frobnicate the gadget.",
    ] {
        assert!(find(harmless).is_empty(), "{harmless}");
    }
}

#[test]
fn material_teaches_words_and_moves_no_bound() {
    let mut texts = texts_of_kinds();
    let plain = train(&scanner(None), &texts).expect("enough to learn from");
    for source in ["code", "manuals"] {
        for n in 0..400 {
            let text = format!("Поле xyzzy структуры plugh хранит число {n}, которое задаёт пользователь.");
            let (source, tier) = (source.to_owned(), MATERIAL.to_owned());
            texts.push(Labelled {
                id: n.to_string(),
                source,
                tier,
                is_attack: false,
                role: Role::User,
                text,
            });
        }
    }
    let with_material = train(&scanner(None), &texts).expect("enough to learn from");
    let as_wording = |text: Labelled| match text.tier == MATERIAL {
        true => Labelled { tier: WORDING.to_owned(), ..text },
        false => text,
    };
    let as_wording: Vec<Labelled> = texts.into_iter().map(as_wording).collect();
    let as_wording = train(&scanner(None), &as_wording).expect("enough to learn from");
    let words = |trained: &Trained| trained.model.wording.clone().expect("words");
    assert_ne!(words(&with_material).table, words(&plain).table, "words are learned");
    assert_eq!(words(&with_material).table, words(&as_wording).table, "as from all others");
    let has_bounds_of_their_own = |trained: &Trained| words(trained).bounds.iter().any(|own| own.foreign);
    assert!(has_bounds_of_their_own(&as_wording) && !has_bounds_of_their_own(&with_material));
    assert_eq!(with_material.model.weights, plain.model.weights, "nothing is learned of concepts");
    assert_eq!(with_material.model.block, plain.model.block);
}
