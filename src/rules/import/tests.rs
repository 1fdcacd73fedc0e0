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
    // Where none is named, it is the first that matched something, else the whole match.
    for (regex, text, wanted) in [
        ("key (?:Basic ([a-z]{8})|Bearer ([a-z.]{8}))", "key Basic abcdefgh", "abcdefgh"),
        ("key (?:Basic ([a-z]{8})|Bearer ([a-z.]{8}))", "key Bearer abcd.fgh", "abcd.fgh"),
        ("key([a-z]{0,9})-([0-9]{4})", "key-1234", "1234"),
        ("key([a-z]{0,9})-([0-9]{4})", "keys-1234", "s"),
        ("key(?:s=([0-9]{4})|-x)", "key-x", "key-x"),
        ("(?P<value>key)-(?P<span>[0-9]{4})", "key-1234", "key"),
    ] {
        let imported = import(&rule(regex, "'key'"));
        assert!(imported.notes.is_empty(), "{regex}: {:?}", imported.notes);
        assert_eq!(found(&imported, text), [wanted], "{regex}: {}", imported.toml);
    }
}

/// A rule with a pattern and keywords.
fn rule(regex: &str, keywords: &str) -> String {
    format!("[[rules]]\nid = \"r\"\nregex = '''{regex}'''\nkeywords = [{keywords}]\n")
}

/// Some twenty letters and digits that are no words.
const VALUE: &str = "zq7wk3vdm4p8x2jtb5n9";

#[test]
fn keywords_that_every_match_holds_are_asked_for_nowhere_else() {
    let either = r"\b(hvs\.[\w-]{90,120}|s\.(?i:[a-z0-9]{24}))(?:\s|$)";
    let within =
        r#"(?:^|[\\'"\x60\s>=:(,)])([a-zA-Z0-9_~.]{3}\dQ~[a-zA-Z0-9_~.-]{31,34})(?:$|[\\'"\x60\s<),])"#;
    for (regex, keywords, text) in [
        ("SK[0-9a-fA-F]{32}", "'sk'", "k = \"SK9f8e7d6c5b4a39281706f5e4d3c2b1a0\"".to_owned()),
        (either, "'hvs.', 's.'", format!("t=s.{VALUE}abcd")),
        (either, "'hvs.', 's.'", format!("t=hvs.{}", VALUE.repeat(5))),
        (within, "'q~'", format!("secret=\"aB~8Q~{VALUE}x1Y2z3A4b5C6d\"")),
        (r"\b(ey[a-zA-Z0-9]{17,99}\.ey[a-zA-Z0-9_-]{17,99})", "'ey'", format!("t: ey{VALUE}.ey{VALUE}")),
        ("(?i)passw(?:or)?d[=:]{1,3}([0-9a-z]{20})", "'passwd', 'password'", format!("dbPasswd={VALUE}")),
        ("(?i)(?:meraki|mercury)[=:]{1,3}([0-9a-z]{20})", "'meraki', 'mercury'", format!("myMeraki={VALUE}")),
        ("(?i)datadogs?(?:_key)?=([0-9a-z]{20})", "'datadog', 'datadog'", format!("myDatadog={VALUE}")),
        ("ключ_[0-9]{9}", "'КЛЮЧ'", "ключ_123987456".to_owned()),
        ("unq_[äöü]{3}[0-9]{6}", "'unq_'", "unq_äöü123987".to_owned()),
    ] {
        let imported = import(&rule(regex, keywords));
        assert!(imported.notes.is_empty(), "{regex}: {:?}", imported.notes);
        assert_eq!(found(&imported, &text).len(), 1, "{text}: {}", imported.toml);
        assert!(!imported.toml.contains("near"), "{}", imported.toml);
        assert!(imported.toml.contains("examples = ['''"), "an example is made: {}", imported.toml);
        assert!(imported.toml.matches("'''datadog'''").count() < 2, "once is enough: {}", imported.toml);
    }
}

#[test]
fn keywords_outside_of_a_match_are_looked_for_around_it() {
    let hex = "9f8e7d6c5b4a39281706f5e4d3c2b1a0";
    let optional = "(?:opx_)?[0-9a-f]{32}";
    for (regex, keywords, text, is_found) in [
        (r"\bQX[0-9]{14}\b", "'flubber'", "myFlubberApi=QX12345678901234".to_owned(), true),
        (r"\bQX[0-9]{14}\b", "'flubber'", "QX12345678901234".to_owned(), false),
        (optional, "'opx'", format!("opx_{hex}"), true),
        (optional, "'opx'", format!("myopx: {hex}"), true),
        (optional, "'opx'", hex.to_owned(), false),
        ("(?i)tok[:= ]{1,9}([0-9a-f]{32})", "'tok:', 'tok='", format!("tok={hex}"), true),
        ("(?i)tok[:= ]{1,9}([0-9a-f]{32})", "'tok:', 'tok='", format!("tok {hex}"), false),
        // It begins before the match and ends in it.
        ("key=[0-9]{8}", "'api_key'", "api_key=12398745".to_owned(), true),
        ("[0-9]{8}", "'acme'", "the acmes have 12398745".to_owned(), true),
        ("[0-9]{8}", "'acme'", "they have 12398745".to_owned(), false),
    ] {
        let imported = import(&rule(regex, keywords));
        assert_eq!(weights(&imported), [NoteWeight::Changed], "{:?}", imported.notes);
        assert_eq!(!found(&imported, &text).is_empty(), is_found, "{text}: {}", imported.toml);
    }
}

#[test]
fn what_an_allow_list_drops_is_not_found_from_its_second_letter_on() {
    for (regex, allow, dropped, kept) in [
        (
            r#"[\w.-]{0,50}?zorbz[\w.-]{0,20}="([a-z0-9]{20})""#,
            "regexTarget = 'match'\nregexes = ['^test']",
            format!("test_zorbz=\"{VALUE}\""),
            format!("my_zorbz=\"{VALUE}\""),
        ),
        (
            r"[a-z0-9]{4,40}\.zorbz\.example",
            "stopwords = ['public']",
            "publicab12.zorbz.example".to_owned(),
            "ab12cd34.zorbz.example".to_owned(),
        ),
        (
            r"[a-z0-9]{4,40}\.zorbz\.example",
            "regexes = ['^www[0-9]*[.]']",
            "www12345.zorbz.example".to_owned(),
            "www12345.zorbz.example ab12cd34.zorbz.example".to_owned(),
        ),
    ] {
        let imported = import(&format!("{}[[rules.allowlists]]\n{allow}\n", rule(regex, "'zorbz'")));
        assert!(found(&imported, &dropped).is_empty(), "{dropped}: {}", imported.toml);
        assert_eq!(found(&imported, &kept).len(), 1, "{kept}: {}", imported.toml);
    }
}

#[test]
fn long_matches_are_found_up_to_a_bound_that_is_said() {
    let regex = r"(?i)-----BEGIN[ A-Z0-9_-]{0,100}ZORBLE KEY-----[\s\S-]{64,}?KEY-----";
    let imported = import(&rule(regex, "'-----BEGIN'"));
    assert_eq!(weights(&imported), [NoteWeight::Remark]);
    assert!(imported.notes[0].message.contains("16384 bytes"), "{:?}", imported.notes);
    for (lines, is_found) in [(3, true), (26, true), (200, true), (300, false)] {
        let body = "aZ7k".repeat(16 * lines);
        let text = format!("-----BEGIN ZORBLE KEY-----\n{body}-----END ZORBLE KEY-----\n");
        assert_eq!(!found(&imported, &text).is_empty(), is_found, "{lines}");
    }
}

#[test]
fn entropy_has_to_be_more_than_is_asked_for() {
    let imported = import(&format!("{}entropy = 3\n", rule("ent_([0-9a-z]{8,9})", "'ent_'")));
    assert!(found(&imported, "ent_qz7wk3vd").is_empty());
    assert_eq!(found(&imported, "ent_qz7wk3vdm").len(), 1);
}

#[test]
fn what_all_rules_share_is_said_once() {
    let first = rule("abc-[0-9]{4}", "'abc'");
    let second = rule("abd-[0-9]{4}", "'abd'").replace("\"r\"", "\"s\"");
    let imported = import(&format!("[allowlist]\npaths = ['x']\nregexes = ['(']\n{first}{second}"));
    assert_eq!(weights(&imported), [NoteWeight::Remark, NoteWeight::Changed], "{:?}", imported.notes);
    assert!(imported.notes.iter().all(|note| note.rule.is_empty()));
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
        "[[rules.allowlists]]\ncondition = 'AND'\nregexes = ['k3vq']\nstopwords = ['nothing', 'MWB2']",
        "[[rules.allowlists]]\ncondition = '&&'\nregexTarget = 'match'\nregexes = ['TOKEN=k', 'zzz']\nstopwords = ['vq']",
        "[[rules.allowlists]]\ncondition = 'AND'\nregexTarget = 'line'\nregexes = ['tests$']\nstopwords = ['vq']",
        "[[allowlists]]\ncondition = 'AND'\nregexes = ['k3vq']\nstopwords = ['mwb2']",
    ] {
        let imported = with(allow);
        assert!(imported.is_whole(), "{allow}: {:?}", imported.notes);
        assert!(found(&imported, text).is_empty(), "{allow}");
        assert_eq!(found(&imported, "acme: r8nyf5k3vq9xt7zzb2lc").len(), 1, "{allow}");
    }
    let other = with("[[allowlists]]\ntargetRules = ['another']\nregexes = ['mwb2']");
    assert_eq!(found(&other, text).len(), 1);
    for half in ["regexes = ['k3vq']\nstopwords = ['nothing']", "regexes = ['^mwb2']\nstopwords = ['k3vq']"] {
        let imported = with(&format!("[[rules.allowlists]]\ncondition = 'AND'\n{half}"));
        assert!(imported.is_whole(), "{half}: {:?}", imported.notes);
        assert_eq!(found(&imported, text).len(), 1, "{half}");
    }
}

#[test]
fn what_cannot_be_carried_over_is_said() {
    let rule = "[[rules]]\nid = \"r\"\nregex = 'abc-[0-9]{4}'\nkeywords = ['abc']\n";
    let and_paths = "[[rules.allowlists]]\ncondition = 'AND'\npaths = ['x']\nregexes = ['y']\n";
    let of_values = "[[rules.allowlists]]\nregexes = ['y']\n";
    let of_page = "[[rules.allowlists]]\nregexTarget = 'page'\nregexes = ['y']\n";
    for (text, wanted) in [
        (format!("{rule}path = 'x'\n"), NoteWeight::Changed),
        (format!("{rule}tags = ['x']\n"), NoteWeight::Remark),
        (format!("{rule}newKey = 1\n"), NoteWeight::Changed),
        (format!("{rule}skipReport = true\n"), NoteWeight::Changed),
        (format!("{rule}entropy = 9.5\n"), NoteWeight::LeftOut),
        (format!("{rule}entropy = -1\n"), NoteWeight::Remark),
        (format!("{rule}[[rules.allowlists]]\npaths = ['x']\n"), NoteWeight::Remark),
        (format!("{rule}{and_paths}"), NoteWeight::Remark),
        (format!("{rule}[[rules.allowlists]]\ncondition = 'XOR'\nregexes = ['y']\n"), NoteWeight::Changed),
        (format!("{rule}[[rules.allowlists]]\ndescription = 'y'\n"), NoteWeight::Remark),
        (format!("{rule}[rules.allowlist]\nregexes = ['x']\n{of_values}"), NoteWeight::Remark),
        (format!("{rule}{of_values}newKey = 1\n"), NoteWeight::Changed),
        (format!("{rule}{of_page}"), NoteWeight::Changed),
        (format!("{rule}[[rules.allowlists]]\nregexes = ['(']\n"), NoteWeight::Changed),
        (format!("[extend]\nuseDefault = true\n{rule}"), NoteWeight::Changed),
        (format!("[[allowlists]]\ntargetRules = ['r', 'x']\nregexes = ['y']\n{rule}"), NoteWeight::Remark),
        (format!("{rule}{of_values}targetRules = ['r']\n"), NoteWeight::Remark),
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
fn what_the_configuration_below_has_is_named() {
    let rule = rule("abc-[0-9]{4}", "'abc'");
    let allow = "[[allowlists]]\ndescription = 'mine'\ntargetRules = ['r', 'aws']\nregexes = ['y']\n";
    for (extend, told) in [
        ("useDefault = true", &["the default configuration of gitleaks"][..]),
        ("path = 'b.toml'\ndisabledRules = ['gcp', 'npm']", &["`b.toml`", "`gcp`, `npm`"]),
        ("url = 'b'\nnewKey = 1", &["`b`", "`newKey` of [extend] is not known"]),
    ] {
        let imported = import(&format!("[extend]\n{extend}\n{allow}{rule}"));
        let messages: Vec<&str> = imported.notes.iter().map(|note| note.message.as_str()).collect();
        for told in
            told.iter().chain(&["an allow-list (mine) is for rules that this file does not have", ": `aws`"])
        {
            assert!(messages.iter().any(|message| message.contains(told)), "{told} in {messages:?}");
        }
        assert_eq!(weights(&imported), vec![NoteWeight::Changed; told.len() + 1], "{messages:?}");
    }
}

#[test]
fn ids_are_made_plain_and_unlike_each_other() {
    let rule = "[[rules]]\nid = \"My Rule_1\"\nregex = 'abc-[0-9]{4}'\nkeywords = ['abc']\n";
    let alike = rule.replace("My Rule_1", "my-rule-1");
    let nameless = rule.replace("id = \"My Rule_1\"\n", "");
    let plain = "gitleaks.my-rule-1";
    for (text, ids, wanted) in [
        (format!("{rule}{rule}"), [plain, "gitleaks.my-rule-1-2"], NoteWeight::Changed),
        (format!("{rule}{alike}"), [plain, "gitleaks.my-rule-1-2"], NoteWeight::Remark),
        (format!("{rule}{nameless}"), [plain, "gitleaks.without-an-id"], NoteWeight::Remark),
    ] {
        let imported = import(&text);
        assert_eq!((imported.rules, weights(&imported)), (2, vec![wanted]), "{:?}", imported.notes);
        for id in ids {
            assert!(imported.toml.contains(&format!("\"{id}\"")), "{}", imported.toml);
        }
        assert!(imported.notes[0].message.contains(ids[1]), "{:?}", imported.notes);
    }
}

#[test]
fn a_file_of_another_kind_is_refused_with_its_line() {
    let rule = "[[rules]]\nid = \"r\"\nregex = 'abc'\n";
    for (text, told) in [
        ("[[rules]]\nid = 5\n".to_owned(), "line 2: `id` must be a text in quotes; this is a whole number"),
        ("x = = 1".to_owned(), "line 1: "),
        ("title = 'x'\n".to_owned(), "holds no [[rules]] of gitleaks"),
        (String::new(), "holds no [[rules]] of gitleaks"),
        (
            format!("{rule}{rule}entropy = \"3\"\n"),
            "line 7: `entropy` must be a number, such as 3.5; this is a text",
        ),
        (format!("{rule}secretGroup = -1\n"), "line 4: `secretGroup` must be a whole number from 0 on"),
        (format!("{rule}secretGroup = 1.5\n"), "line 4: `secretGroup` must be a whole number from 0 on"),
        (format!("{rule}skipReport = 1\n"), "line 4: `skipReport` must be true or false"),
        (format!("{rule}required = 'x'\n"), "line 4: `required` must be a list"),
        (
            format!("{rule}[rules.allowlist]\nregexes = \"abc\"\n"),
            "line 5: `regexes` must be a list of texts",
        ),
        (
            format!("{rule}[[rules.allowlists]]\nregexes = [\n\"a\",\n5]\n"),
            "line 7: `regexes` must hold texts; this is a whole number",
        ),
        (format!("[allowlist]\nregexes = \"abc\"\n{rule}"), "line 2: `regexes` must be a list of texts"),
        (format!("allowlist = 3\n{rule}"), "line 1: `allowlist` must be a table, or a list of tables"),
        (format!("extend = \"base.toml\"\n{rule}"), "line 1: `extend` must be a table; this is a text"),
        (format!("[extend]\ndisabledRules = 'x'\n{rule}"), "line 2: `disabledRules` must be a list of texts"),
        ("[rules]\nid = 'r'\n".to_owned(), "line 1: `rules` must be a list of tables: write [[…rules]]"),
        ("rules = [1]\n".to_owned(), "line 1: `rules` must hold tables; this is a whole number"),
        // The first of two, in the order of the text.
        ("[[rules]]\nregex = 1\nentropy = ''\n".to_owned(), "line 2: `regex` must be a text"),
    ] {
        let error = import_gitleaks(&text, Severity::High).expect_err("no configuration of gitleaks");
        assert!(error.to_string().starts_with(told), "{text}: {error}");
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
