//! Configurations of gitleaks and what becomes of them.

use proptest::prelude::*;

use super::{Imported, NoteWeight, import_gitleaks};
use crate::decision::Severity;
use crate::rules::{Budget, RuleSet, RuleSetConfig, RuleSource, Scope};

fn import(text: &str) -> Imported {
    import_gitleaks(text, Severity::High).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What the imported rules find in a text.
fn found(imported: &Imported, text: &str) -> Vec<String> {
    let source = RuleSource::custom("imported.toml", "secrets", imported.toml.clone());
    let set = RuleSet::compile(&[source], &RuleSetConfig::default())
        .unwrap_or_else(|problems| panic!("{problems}\n{}", imported.toml));
    let mut matches = Vec::new();
    let scope = Scope { plugins: u32::MAX, role: None, surface: None };
    set.with_scratch(|scratch| set.scan(text, scope, None, scratch, &Budget::UNLIMITED, &mut matches))
        .expect("no budget");
    matches.iter().map(|found| text[found.range.clone()].to_owned()).collect()
}

fn weights(imported: &Imported) -> Vec<NoteWeight> {
    imported.notes.iter().map(|note| note.weight).collect()
}

const ACME: &str = r#"
title = "corp"
[[rules]]
id = "acme-token"
description = "A token of Acme"
regex = '''(?i)\b(?:acme|acm)[\w.-]{0,20}?[=:]\s{0,4}["']?([a-z0-9]{20})\b'''
entropy = 3.0
keywords = ["ACME", "acm"]
"#;

#[test]
fn a_rule_finds_what_it_found() {
    let imported = import(ACME);
    assert_eq!((imported.rules, imported.left_out, weights(&imported)), (1, 0, vec![]));
    assert!(imported.is_whole());
    assert_eq!(found(&imported, "ACME_TOKEN=k3vq9xt7mwb2lcr8nyf5"), ["k3vq9xt7mwb2lcr8nyf5"]);
    // Entropy and keywords are honoured.
    assert!(found(&imported, "ACME_TOKEN=aaaaaaaaaaaaaaaaaaab").is_empty());
    assert!(found(&imported, "OTHER_TOKEN=k3vq9xt7mwb2lcr8nyf5").is_empty());
    assert!(imported.toml.contains("examples = ['''"), "an example is made: {}", imported.toml);
}

#[test]
fn the_group_of_the_secret_is_what_is_reported() {
    for (group, wanted) in [("secretGroup = 2", "9xk2"), ("secretGroup = 1", "key"), ("", "key")] {
        let text =
            format!("[[rules]]\nid = \"g\"\nregex = '(key)-([0-9a-z]{{4}})'\nkeywords = ['key']\n{group}\n");
        assert_eq!(found(&import(&text), "a key-9xk2"), [wanted], "{group}");
    }
    // Several groups and none named: the first is taken, and that is said.
    let unnamed = import("[[rules]]\nid = \"g\"\nregex = '(key)-([0-9]{4})'\nkeywords = ['key']\n");
    assert_eq!(weights(&unnamed), [NoteWeight::Changed]);
    assert!(!unnamed.is_whole());
}

#[test]
fn allow_lists_are_honoured() {
    let text = "ACME_TOKEN=k3vq9xt7mwb2lcr8nyf5 # for tests";
    let with = |allow: &str| import(&format!("{ACME}{allow}"));
    for allow in [
        "[[rules.allowlists]]\nregexes = ['^k3vq']",
        "[[rules.allowlists]]\nregexTarget = 'match'\nregexes = ['ACME_TOKEN=k3']",
        "[[rules.allowlists]]\nregexTarget = 'line'\nregexes = ['# for tests$']",
        "[[rules.allowlists]]\nstopwords = ['nothing', 'MWB2']",
        "[rules.allowlist]\nstopwords = ['mwb2']",
        "[allowlist]\nregexes = ['mwb2']",
        "[[allowlists]]\ntargetRules = ['acme-token']\nregexes = ['mwb2']",
        "[[rules.allowlists]]\ncondition = 'AND'\nregexes = ['mwb2']",
    ] {
        let imported = with(allow);
        assert!(imported.is_whole(), "{allow}: {:?}", imported.notes);
        assert!(found(&imported, text).is_empty(), "{allow}");
        assert_eq!(found(&imported, "acme: r8nyf5k3vq9xt7zzb2lc").len(), 1, "{allow}");
    }
    let other = with("[[allowlists]]\ntargetRules = ['another']\nregexes = ['mwb2']");
    assert_eq!(found(&other, text).len(), 1);
}

#[test]
fn what_cannot_be_carried_over_is_said() {
    let rule = "[[rules]]\nid = \"r\"\nregex = 'abc-[0-9]{4}'\nkeywords = ['abc']\n";
    let and_paths = "[[rules.allowlists]]\ncondition = 'AND'\npaths = ['x']\nregexes = ['y']\n";
    let of_page = "[[rules.allowlists]]\nregexTarget = 'page'\nregexes = ['y']\n";
    for (text, wanted) in [
        (format!("{rule}path = 'x'\n"), NoteWeight::Changed),
        (format!("{rule}tags = ['x']\n"), NoteWeight::Remark),
        (format!("{rule}newKey = 1\n"), NoteWeight::Changed),
        (format!("{rule}skipReport = true\n"), NoteWeight::Changed),
        (format!("{rule}entropy = 9.5\n"), NoteWeight::Changed),
        (format!("{rule}[[rules.allowlists]]\npaths = ['x']\n"), NoteWeight::Remark),
        (format!("{rule}{and_paths}"), NoteWeight::Changed),
        (format!("{rule}{of_page}"), NoteWeight::Changed),
        (format!("{rule}[[rules.allowlists]]\nregexes = ['(']\n"), NoteWeight::Changed),
        (format!("[extend]\nuseDefault = true\n{rule}"), NoteWeight::Changed),
        ("[[rules]]\nid = \"p\"\npath = 'x'\n".to_owned(), NoteWeight::LeftOut),
        ("[[rules]]\nid = \"p\"\nregex = '('\n".to_owned(), NoteWeight::LeftOut),
        ("[[rules]]\nid = \"p\"\nregex = '[a-z]{4}'\n".to_owned(), NoteWeight::LeftOut),
        ("[[rules]]\nid = \"p\"\nregex = 'abc'\nsecretGroup = 2\n".to_owned(), NoteWeight::LeftOut),
        (format!("{rule}[[rules.required]]\nid = 'x'\n"), NoteWeight::LeftOut),
        // The keyword need not be in the match: it is asked for nearby.
        (
            "[[rules]]\nid = \"p\"\nregex = 'xyz-[0-9]{4}'\nkeywords = ['acme']\n".to_owned(),
            NoteWeight::Changed,
        ),
    ] {
        let imported = import(&text);
        assert_eq!(weights(&imported), [wanted], "{text}\n{:?}", imported.notes);
        assert_eq!(imported.left_out, usize::from(wanted == NoteWeight::LeftOut), "{text}");
        assert_eq!(imported.is_whole(), wanted == NoteWeight::Remark, "{text}");
    }
    let near = import("[[rules]]\nid = \"p\"\nregex = 'xyz-[0-9]{4}'\nkeywords = ['acme']\n");
    assert_eq!(found(&near, "acme says xyz-1234"), ["xyz-1234"]);
    assert!(found(&near, "somebody says xyz-1234").is_empty());
}

#[test]
fn ids_are_made_plain_and_unlike_each_other() {
    let rule = "[[rules]]\nid = \"My Rule_1\"\nregex = 'abc-[0-9]{4}'\nkeywords = ['abc']\n";
    let imported = import(&format!("{rule}{rule}"));
    assert_eq!(imported.rules, 2);
    for id in ["\"gitleaks.my-rule-1\"", "\"gitleaks.my-rule-1-2\""] {
        assert!(imported.toml.contains(id), "{}", imported.toml);
    }
}

#[test]
fn a_file_of_another_kind_is_refused_with_its_line() {
    for (text, line) in [("[[rules]]\nid = 5\n", 2), ("x = = 1", 1), ("title = 'x'\n", 0), ("", 0)] {
        let error = import_gitleaks(text, Severity::High).expect_err("no configuration of gitleaks");
        assert!(error.line == line || error.line == 1, "{text}: {error}");
    }
}

proptest! {
    /// No text makes the import panic, and whatever comes out compiles.
    #[test]
    fn any_rule_is_imported_or_said(regex in ".{0,40}", word in "[a-z]{0,6}", group in 0usize..3) {
        let (regex, word) = (toml::Value::String(regex), toml::Value::String(word));
        let text =
            format!("[[rules]]\nid = \"r\"\nregex = {regex}\nkeywords = [{word}]\nsecretGroup = {group}\n");
        let imported = import(&text);
        prop_assert_eq!(imported.rules + imported.left_out, 1);
        let _ = found(&imported, "x");
    }
}
