//! Code of bundles: what must block and what must not, spelling after spelling, and what holds for any text.

use std::path::Path;

use portcullis::bundles::code::{self, Language, NotParsed, Report, Taint};
use portcullis::bundles::rules::{BundleRuleSource, BundleRules, builtin_bundle_sources};
use portcullis::commands::CommandRules;
use portcullis::decision::Severity;
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

/// One file, and the rules that are found in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    language: String,
    path: Option<String>,
    #[serde(default)]
    rules: Vec<String>,
    code: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Groups {
    group: Vec<Group>,
}

/// The same thing said in several ways.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    language: String,
    plain: String,
    spellings: Vec<String>,
}

fn table<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/bundles/code").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn scan(language: &str, path: Option<&str>, text: &str) -> Report {
    let (language, name) = match language {
        "python" => (Language::Python, "run.py"),
        "javascript" => (Language::JavaScript, "run.js"),
        other => panic!("no language `{other}`"),
    };
    code::scan(language, path.unwrap_or(name), text, BundleRules::builtin(), CommandRules::builtin())
}

fn worst(report: &Report) -> Option<Severity> {
    report.findings.iter().map(|finding| finding.severity).max()
}

#[test]
fn what_must_block_does_and_by_its_rule() {
    let mut wrong = Vec::new();
    for case in table::<Cases>("malicious.toml").case {
        let report = scan(&case.language, case.path.as_deref(), &case.code);
        let is_found = |rule: &String| report.findings.iter().any(|finding| finding.rule_id == *rule);
        if worst(&report) < Some(Severity::High) || !case.rules.iter().all(is_found) {
            wrong.push(format!("{}: wanted {:?}, found {:?}", case.name, case.rules, report.findings));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ordinary_scripts_pass() {
    let mut wrong = Vec::new();
    for case in table::<Cases>("benign.toml").case {
        let report = scan(&case.language, case.path.as_deref(), &case.code);
        let is_wanted = |rule: &str| case.rules.iter().any(|wanted| wanted == rule);
        let is_fine = report.findings.iter().all(|finding| is_wanted(&finding.rule_id));
        if !is_fine || worst(&report) >= Some(Severity::High) || report.not_parsed.is_some() {
            wrong.push(format!("{}: {report:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_spelling_is_judged_more_mildly() {
    let mut wrong = Vec::new();
    for group in table::<Groups>("spellings.toml").group {
        let plain = worst(&scan(&group.language, None, &group.plain));
        assert!(plain >= Some(Severity::High), "{}: the plain one does not block", group.name);
        for spelling in &group.spellings {
            let found = worst(&scan(&group.language, None, spelling));
            if found < plain.min(Some(Severity::High)) {
                wrong.push(format!("{}: {found:?} for {spelling}", group.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_holds_for_its_examples() {
    let checked = BundleRules::builtin().self_check(CommandRules::builtin(), |_| true);
    assert!(checked.rules > 30 && checked.texts > 100, "{} rules, {} texts", checked.rules, checked.texts);
    let problems: Vec<String> = checked.problems.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(BundleRules::builtin().phrase_problems(), Vec::<String>::new());
}

/// They wait until they are needed, where an error could only be a panic.
#[test]
fn every_built_in_pattern_compiles() {
    let sources: Vec<_> =
        builtin_bundle_sources().map(|source| BundleRuleSource { is_builtin: false, ..source }).collect();
    let loaded = BundleRules::load(&sources).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.rules().len(), BundleRules::builtin().rules().len());
}

#[test]
fn a_broken_rule_file_names_every_problem() {
    let text = r#"
[[api]]
class = "x"
names = []

[[rule]]
id = "A b"
category = "c"
severity = "high"
description = ""
fix = "f"
examples = [{ cobol = "x" }]
negative_examples = [{ python = "y" }]
call.of = ["nowhere"]
call.taints = ["unheard"]
"#;
    let problems = BundleRules::load(&[BundleRuleSource { file: "f.toml", text, is_builtin: false }])
        .expect_err("it is broken");
    let told = problems.to_string();
    for part in
        ["f.toml:2", "no names", "f.toml:6", "must be lower-case", "description is empty", "cobol", "unheard"]
    {
        assert!(told.contains(part), "{part:?} is not told in {told}");
    }
}

#[test]
fn languages_are_known_by_name_and_by_first_line() {
    for (path, head, wanted) in [
        ("scripts/run.py", "", Some(Language::Python)),
        ("a/b.PYW", "", Some(Language::Python)),
        ("x.tsx", "", Some(Language::JavaScript)),
        ("x.cjs", "", Some(Language::JavaScript)),
        ("bin/tool", "#!/usr/bin/env python3\nprint(1)", Some(Language::Python)),
        ("bin/tool", "#!/usr/bin/python3.11 -u\n", Some(Language::Python)),
        ("bin/tool", "#!/usr/bin/env -S deno run --allow-net\n", Some(Language::JavaScript)),
        ("bin/tool", "#!/bin/sh\npython3 x", None),
        ("a/run.py.j2", "import os", Some(Language::Python)),
        ("run.mjs.tmpl", "", Some(Language::JavaScript)),
        ("py.tmpl", "", None),
        ("README.md", "import os", None),
        ("data.json", "{}", None),
    ] {
        assert_eq!(code::language_of(path, head.as_bytes()), wanted, "{path} {head}");
    }
}

#[test]
fn what_is_not_parsed_is_told() {
    let deep = |open: &str, close: &str, n: usize| format!("x = {}1{}", open.repeat(n), close.repeat(n));
    let commented = format!("{}x = 1\n", "# a\n".repeat(300_000));
    for (language, text, wanted) in [
        ("python", "def f(:\n".to_owned(), Some(NotParsed::Syntax)),
        ("javascript", "let = = ;;; {".to_owned(), Some(NotParsed::Syntax)),
        ("python", deep("(", ")", 20_000), Some(NotParsed::TooDeep)),
        ("python", deep("[", "]", 5_000), Some(NotParsed::TooDeep)),
        ("javascript", deep("(", ")", 20_000), Some(NotParsed::TooDeep)),
        ("javascript", deep("!", "", 50_000), Some(NotParsed::TooDeep)),
        ("javascript", deep("{a:", "}", 3_000), Some(NotParsed::TooDeep)),
        ("python", deep("not ", "", 3_000), Some(NotParsed::TooDeep)),
        ("python", deep("(", ")", 100), None),
        ("python", format!("x = {}'a'", "'a' + ".repeat(50_000)), None),
        ("javascript", format!("x = {}'a'", "'a' + ".repeat(50_000)), None),
        ("javascript", format!("x = {}1", "a = ".repeat(20_000)), Some(NotParsed::TooDeep)),
        ("python", commented, Some(NotParsed::TooLarge)),
        ("python", String::new(), None),
        ("javascript", String::new(), None),
    ] {
        let start: String = text.chars().take(30).collect();
        assert_eq!(scan(language, None, &text).not_parsed, wanted, "{language} {start}…");
    }
}

#[test]
fn capabilities_are_listed() {
    let report = scan(
        "python",
        None,
        "import os, requests, subprocess\nkey = os.environ['K']\nrequests.get('https://api.example.org/v1')\n\
         subprocess.run(['git', 'status'])\nopen('out.txt', 'w').write('x')\n",
    );
    let told: Vec<(&str, u32, &str)> = report
        .capabilities
        .iter()
        .map(|capability| (&*capability.kind, capability.line, &*capability.detail))
        .collect();
    for wanted in [("network", 3, "api.example.org"), ("process", 4, "git"), ("write_files", 5, "out.txt")] {
        assert!(told.contains(&wanted), "{wanted:?} is not in {told:?}");
    }
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn what_is_shown_of_a_line_holds_no_secret() {
    let secret = "sk-proj-abcDEF0123456789abcDEF0123456789";
    let report = scan("python", None, &format!("exec(base64.b64decode(x), '{secret}')"));
    assert!(worst(&report) >= Some(Severity::High));
    assert!(report.findings.iter().all(|finding| !finding.snippet.contains(secret)), "{report:?}");
}

#[test]
fn labels_have_names_of_their_own() {
    for name in Taint::names() {
        assert!(Taint::named(name).is_some_and(|taint| !taint.is_none()), "{name}");
    }
    assert_eq!(Taint::named("nothing"), None);
}

/// Every text of the tables.
fn samples() -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for name in ["malicious.toml", "benign.toml"] {
        out.extend(table::<Cases>(name).case.into_iter().map(|case| (case.language, case.code)));
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gives_the_same_report_twice(text in "(?s).{0,300}", is_python in any::<bool>()) {
        let language = if is_python { "python" } else { "javascript" };
        prop_assert_eq!(scan(language, None, &text), scan(language, None, &text));
    }

    #[test]
    fn a_part_of_a_text_is_no_trouble(nth in any::<prop::sample::Index>(), from in 0.0..1.0f64, to in 0.0..1.0f64) {
        let samples = samples();
        let (language, text) = &samples[nth.index(samples.len())];
        let at = |part: f64| (0..=(part * text.len() as f64) as usize).rev().find(|at| text.is_char_boundary(*at));
        let (a, b) = (at(from).unwrap_or(0), at(to).unwrap_or(0));
        let part = &text[a.min(b)..a.max(b)];
        let lines = part.split('\n').count();
        for finding in scan(language, None, part).findings {
            prop_assert!((1..=lines).contains(&(finding.line as usize)));
        }
    }

    #[test]
    fn harmless_code_around_it_hides_nothing(nth in any::<prop::sample::Index>(), before in 0usize..40, after in 0usize..40) {
        let cases = table::<Cases>("malicious.toml").case;
        let case = &cases[nth.index(cases.len())];
        let line = if case.language == "python" { "noise = 1 + 2\n" } else { "var noise = 1 + 2;\n" };
        let text = format!("{}{}{}", line.repeat(before), case.code, line.repeat(after));
        let (alone, among) = (scan(&case.language, case.path.as_deref(), &case.code), scan(&case.language, case.path.as_deref(), &text));
        prop_assert!(worst(&among) >= worst(&alone), "{}", case.name);
    }
}
