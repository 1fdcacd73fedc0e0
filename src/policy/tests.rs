//! Policies over cases written as data (`tests/cases/policy`), and the laws of a decision.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::*;
use crate::decision::{
    Category, Decision, Direction, FailMode, FailModes, Finding, Hook, Mode, Reason, Severity, SpanRef,
    Thresholds, Unjudged,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases<T> {
    case: Vec<T>,
}

fn cases<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/policy").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    toml::from_str::<Cases<T>>(&text).unwrap().case
}

fn compile_one(text: &str) -> Arc<Policy> {
    let set = compile(&[Source { file: "case.yaml", text }], &Vocabulary::default());
    set.unwrap_or_else(|problems| panic!("{problems}")).get("case").unwrap().clone()
}

fn told(sources: &[Source<'_>], vocabulary: &Vocabulary<'_>) -> Vec<String> {
    match compile(sources, vocabulary) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProblemCase {
    about: String,
    files: BTreeMap<String, String>,
    #[serde(default)]
    plugins: Vec<String>,
    rules: Option<Vec<String>>,
    problems: Vec<String>,
}

/// A decision as filters of the audit log ask for it.
fn about<'a>(rpc: &'a str, tool: &'a str, agent: &'a str) -> AuditQuery<'a> {
    AuditQuery { rpc, tool, agent }
}

#[test]
fn broken_files_are_told_in_full() {
    let mut wrong = String::new();
    for case in cases::<ProblemCase>("problems.toml") {
        let sources: Vec<_> = case.files.iter().map(|(file, text)| Source { file, text }).collect();
        let plugins: Vec<_> = case.plugins.iter().map(String::as_str).collect();
        let rules: Option<Vec<_>> =
            case.rules.as_ref().map(|rules| rules.iter().map(String::as_str).collect());
        let found = told(&sources, &Vocabulary { plugins: &plugins, rules: rules.as_deref() });
        if found != case.problems {
            let _ = writeln!(wrong, "{}\n  found {found:#?}\n  wanted {:#?}", case.about, case.problems);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionCase {
    about: String,
    #[serde(default)]
    policy: Option<String>,
    #[serde(default)]
    findings: Vec<FindingCase>,
    #[serde(default)]
    unjudged: Vec<UnjudgedCase>,
    want: Want,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FindingCase {
    category: String,
    score: f64,
    #[serde(default)]
    shadow: bool,
    #[serde(default)]
    suppressed: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnjudgedCase {
    fail: FailMode,
    #[serde(default)]
    shadow: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Want {
    decision: Decision,
    risk: crate::decision::RiskLevel,
    #[serde(default)]
    score: f64,
    #[serde(default)]
    would_block: bool,
}

fn finding(category: &str, score: f64, shadow: bool, suppressed: bool) -> Finding {
    Finding {
        plugin: "pii".into(),
        plugin_version: "1".into(),
        rule_id: "pii.email".into(),
        category: Category::new(category),
        severity: Severity::Medium,
        score,
        description: "".into(),
        recommendation: "".into(),
        span: SpanRef { message_index: 0, path: "/text".into(), start: 0, end: 1 },
        evasions: Vec::new(),
        shadow,
        suppressed,
    }
}

fn unjudged(fail_mode: FailMode, shadow: bool) -> Unjudged {
    Unjudged { plugin: "pii".into(), reason: Reason::Timeout, detail: String::new(), fail_mode, shadow }
}

#[test]
fn decisions_are_as_the_cases_say() {
    for case in cases::<DecisionCase>("decisions.toml") {
        let policy = match &case.policy {
            Some(text) => compile_one(text),
            None => PolicySet::built_in().default_policy().clone(),
        };
        let findings: Vec<_> =
            case.findings.iter().map(|f| finding(&f.category, f.score, f.shadow, f.suppressed)).collect();
        let failed: Vec<_> = case.unjudged.iter().map(|u| unjudged(u.fail, u.shadow)).collect();
        let wanted = Verdict {
            decision: case.want.decision,
            risk_level: case.want.risk,
            risk_score: case.want.score,
            would_block: case.want.would_block,
        };
        assert_eq!(policy.decide(&findings, &failed), wanted, "{}", case.about);
    }
}

#[test]
fn the_built_in_policy_says_what_the_code_would_assume() {
    let set = PolicySet::built_in();
    let policy = set.default_policy();
    assert_eq!(policy.name().as_ref(), DEFAULT_POLICY);
    assert_eq!(policy.thresholds_for(&Category::new("pii.email")), Thresholds::default());
    assert_eq!(policy.plugin_mode("structure"), Mode::Off);
    for plugin in BUILT_IN_PLUGINS {
        // A command that cannot be resolved is a question, not an attack.
        let fail = if *plugin == "command_safety" { FailMode::Ask } else { FailMode::Closed };
        assert_eq!(policy.fail_modes(plugin), FailModes { input: fail, output: fail }, "{plugin}");
        assert_eq!(policy.timeout(plugin), Duration::from_secs(5), "{plugin}");
    }
    let required = policy.required_plugins(BUILT_IN_PLUGINS);
    assert_eq!(required, ["injection", "pii", "secrets", "code", "media", "command_safety", "path_audit"]);
    assert!(policy.allows_caller(&[]));
    assert!(!policy.reveal());
    assert_eq!(policy.sample_allow(&about("CheckMessages", "", "")), 1.0);
    assert!(policy.suppressions().is_empty());
    assert_eq!(set.get("").unwrap(), policy);
    assert!(set.get("absent").is_none());
}

#[test]
fn the_weakest_mode_of_plugin_rule_and_category_wins() {
    let policy = compile_one(
        "
plugins: { code: { mode: shadow }, pii: { mode: off } }
rules: { secrets.jwt: { mode: shadow }, code.sql: { mode: off } }
categories:
  secrets: { mode: off }
  secrets.aws: { mode: enforce }
",
    );
    let mode = |plugin, rule, category| policy.mode_of(plugin, rule, &Category::new(category), false);
    assert_eq!(mode("injection", "injection.x", "prompt_injection"), Mode::Enforce);
    assert_eq!(mode("code", "code.x", "code_injection.shell"), Mode::Shadow);
    assert_eq!(mode("code", "code.sql", "code_injection.sql"), Mode::Off);
    assert_eq!(mode("pii", "pii.x", "pii.email"), Mode::Off);
    assert_eq!(mode("secrets", "secrets.x", "secrets.openai"), Mode::Off);
    assert_eq!(mode("secrets", "secrets.x", "secrets.aws.access_key"), Mode::Enforce);
    assert_eq!(mode("secrets", "secrets.jwt", "secrets.aws"), Mode::Shadow);
    assert_eq!(mode("unheard_of", "x", "y"), Mode::Enforce);
}

#[test]
fn injection_in_the_system_role_has_a_mode_of_its_own() {
    let category = Category::new("prompt_injection.override");
    let built_in = PolicySet::built_in();
    let default = built_in.default_policy();
    assert_eq!(default.mode_of("injection", "x", &category, true), Mode::Shadow);
    assert_eq!(default.mode_of("injection", "x", &category, false), Mode::Enforce);
    assert_eq!(default.mode_of("secrets", "x", &category, true), Mode::Enforce);
    let strict = compile_one("injection: { system_role: enforce }");
    assert_eq!(strict.mode_of("injection", "x", &category, true), Mode::Enforce);
}

#[test]
fn a_child_wins_field_by_field_and_suppressions_add_up() {
    let default = "
reveal: true
plugins: { pii: { fail: { input: open }, timeout: 1s } }
suppressions:
  - { rule: a, reason: one, expires: 2031-12-31 }
";
    let child = "
description: mine
thresholds: { block: 0.9 }
plugins: { pii: { fail: { output: ask } } }
suppressions:
  - { rule: a, reason: one, expires: 2031-12-31 }
  - { rule: b, reason: two, expires: 2031-12-31 }
";
    let sources =
        [Source { file: "default.yaml", text: default }, Source { file: "dir/child.yml", text: child }];
    let set = compile(&sources, &Vocabulary::default()).unwrap();
    let child = set.get("child").unwrap();
    assert_eq!(child.description(), "mine");
    assert!(child.reveal());
    assert_eq!(child.thresholds_for(&Category::new("x")), Thresholds { warn: 0.3, block: 0.9 });
    assert_eq!(child.timeout("pii"), Duration::from_secs(1));
    assert_eq!(child.fail_modes("pii").of(Direction::Input), FailMode::Open);
    assert_eq!(child.fail_modes("pii").of(Direction::Output), FailMode::Ask);
    assert_eq!(child.suppressions().len(), 2);
    assert!(set.default_policy().reveal(), "a file named default takes the built-in one's place");
    assert_eq!(set.default_policy().suppressions().len(), 1);
}

#[test]
fn lists_of_a_parent_can_be_lifted_by_name() {
    let default = "{ allowed_callers: [admin, agent], required_plugins: [pii] }";
    let child =
        "{ allowed_callers: everybody, required_plugins: enforced, plugins: { code: { mode: off } } }";
    let sources =
        [Source { file: "default.yaml", text: default }, Source { file: "child.yaml", text: child }];
    let set = compile(&sources, &Vocabulary::default()).unwrap();
    let default = set.default_policy();
    assert!(default.allows_caller(&[CallerRole::Submitter, CallerRole::Agent]));
    assert!(!default.allows_caller(&[CallerRole::Submitter]));
    assert!(!default.allows_caller(&[]));
    assert_eq!(default.required_plugins(&["code", "pii", "acme"]), ["pii"]);
    let child = set.get("child").unwrap();
    assert!(child.allows_caller(&[]));
    assert_eq!(child.required_plugins(&["code", "pii", "acme"]), ["pii", "acme"]);
}

#[test]
fn settings_of_personal_data_are_inherited_and_the_safe_ones_hold_where_nothing_is_said() {
    let default = "{ pii: { countries: [DE, NO], caller_allow_list: true } }";
    let child = "{ pii: { countries: [fr], caller_countries: true } }";
    let sources =
        [Source { file: "default.yaml", text: default }, Source { file: "child.yaml", text: child }];
    let set = compile(&sources, &Vocabulary::default()).unwrap();
    let codes = |policy: &Policy| policy.countries().codes().collect::<Vec<_>>();
    let (default, child) = (set.default_policy(), set.get("child").unwrap());
    assert_eq!((codes(default), default.heeds_caller_allow_list()), (vec!["DE", "NO"], true));
    assert_eq!((codes(child), child.heeds_caller_allow_list()), (vec!["FR"], true));
    let asked = crate::rules::CountrySet::of(["FR", "US"]).unwrap();
    assert_eq!(default.countries_for(&asked), *default.countries());
    assert_eq!(child.countries_for(&asked).codes().collect::<Vec<_>>(), ["FR"]);
    let built_in = PolicySet::built_in();
    let built_in = built_in.default_policy();
    assert!(!built_in.heeds_caller_allow_list() && built_in.countries_for(&asked).is_empty());
}

#[test]
fn off_survives_tools_that_write_it_as_false() {
    assert_eq!(compile_one("plugins: { pii: { mode: false } }").plugin_mode("pii"), Mode::Off);
}

#[test]
fn a_fingerprint_that_looks_like_a_number_keeps_its_spelling() {
    let policy = compile_one("suppressions: [{ fingerprint: 00123e45, reason: x, expires: 2031-12-31 }]");
    assert_eq!(policy.suppressions()[0].fingerprint.as_deref(), Some("00123e45"));
}

#[test]
fn a_suppression_fits_when_all_its_scopes_do() {
    let policy = compile_one(
        "
suppressions:
  - { rule: pii.email, path: /parts/*, tenant: acme, reason: first, expires: 2031-12-31 }
  - { category: secrets, fingerprint: f1, reason: second, expires: 2031-12-31T12:00:00Z }
",
    );
    let now = "2031-12-31T11:59:59Z".parse().unwrap();
    let reason = |rule_id, category: &str, path, tenant, now| {
        let category = Category::new(category);
        let query =
            SuppressionQuery { rule_id, category: &category, fingerprint: &|| "f1".to_owned(), path, tenant };
        policy.suppression(&query, now).map(|suppression| suppression.reason.as_str())
    };
    assert_eq!(reason("pii.email", "pii.email", "/parts/0/text", "acme", now), Some("first"));
    assert_eq!(reason("pii.phone", "pii.email", "/parts/0/text", "acme", now), None);
    assert_eq!(reason("pii.email", "pii.email", "/text", "acme", now), None);
    assert_eq!(reason("pii.email", "pii.email", "/parts/0/text", "", now), None);
    assert_eq!(reason("secrets.x", "secrets.aws", "/text", "", now), Some("second"));
    assert_eq!(reason("secrets.x", "secretsish", "/text", "", now), None);
    let end = "2031-12-31T12:00:00Z".parse().unwrap();
    assert_eq!(reason("secrets.x", "secrets.aws", "/text", "", end), None, "it ends at its end");
    let last = "2031-12-31T23:59:59Z".parse().unwrap();
    assert_eq!(reason("pii.email", "pii.email", "/parts/0/text", "acme", last), Some("first"), "a whole day");
    let next_day = "2032-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(reason("pii.email", "pii.email", "/parts/0/text", "acme", next_day), None);
}

#[test]
fn a_fingerprint_is_computed_only_when_needed_and_only_once() {
    let policy = compile_one(
        "
suppressions:
  - { rule: a, fingerprint: f1, reason: x, expires: 2031-12-31 }
  - { rule: a, fingerprint: f2, reason: x, expires: 2031-12-31 }
",
    );
    let now = "2031-01-01T00:00:00Z".parse().unwrap();
    let calls = std::cell::Cell::new(0);
    let fingerprint = || {
        calls.set(calls.get() + 1);
        "f2".to_owned()
    };
    let category = Category::new("x");
    let query = |rule_id| SuppressionQuery {
        rule_id,
        category: &category,
        fingerprint: &fingerprint,
        path: "",
        tenant: "",
    };
    assert!(policy.suppression(&query("b"), now).is_none());
    assert_eq!(calls.get(), 0);
    assert!(policy.suppression(&query("a"), now).is_some());
    assert_eq!(calls.get(), 1);
}

#[test]
fn categories_that_nothing_has_are_told_with_their_place() {
    let text = "categories:\n  pii: { warn: 0.2 }\n  pii.emial: { mode: shadow }\n  content_safety.x: { mode: off }\n\
                suppressions:\n  - { category: secretz, reason: r, expires: 2999-12-31 }\n\
                streams:\n  rules: { sandbox_escape.key: shadow, sandbox_escape.kez: shadow }\n\
                \u{20} known_safe:\n    - { pattern: a, category: moon, reason: r }\n\
                interceptors:\n  - { id: 'builtin:redact-secrets', categories: [secrets, PII] }\n\
                \u{20} - { id: 'my:own', hook: tool.after, do: [{ redact: [pii.mail, pii.email] }] }\n";
    let sources = [Source { file: "a.yaml", text }];
    let set = compile(&sources, &Vocabulary::default()).unwrap_or_else(|problems| panic!("{problems}"));
    let known = ["pii.email", "secrets.token", "sandbox_escape.key", "network_violation"];
    let told = set.unknown_categories(&known, &["content_safety"]);
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    let wanted = [
        "a.yaml:3:3: categories.pii.emial: no rule has the category `pii.emial`, so that this concerns nothing; did you \
         mean `pii.email`?",
        "a.yaml:6:17: suppressions[0].category: no rule has the category `secretz`, so that this concerns nothing; did \
         you mean `secrets`?",
    ];
    assert_eq!(told[..2], wanted, "{told:#?}");
    for (name, more) in ["`sandbox_escape.kez`", "`moon`", "`PII`", "`pii.mail`"].into_iter().zip(&told[2..])
    {
        assert!(more.contains(name), "{name} in {told:#?}");
    }
    assert_eq!(told.len(), 6, "{told:#?}");
    assert!(
        told[3].ends_with("see `portcullis rules list` for the categories that there are"),
        "{}",
        told[3]
    );
}

#[test]
fn expired_suppressions_are_listed_with_their_policy() {
    let text = "
suppressions:
  - { rule: old, reason: x, expires: 2001-01-01 }
  - { rule: new, reason: x, expires: 2031-12-31 }
";
    let set = compile(&[Source { file: "case.yaml", text }], &Vocabulary::default()).unwrap();
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let expired: Vec<_> = set
        .expired_suppressions(now)
        .map(|(policy, suppression)| (policy.name().as_ref(), suppression.rule.as_deref().unwrap()))
        .collect();
    assert_eq!(expired, [("case", "old")]);
}

#[test]
fn the_digest_follows_the_meaning_and_not_the_wording() {
    let set = |text| compile(&[Source { file: "a.yaml", text }], &Vocabulary::default()).unwrap();
    let one = set("thresholds: { warn: 0.1, block: 0.5 }");
    let same = set("# remark\nname: a\nthresholds:\n  block: 0.50\n  warn: 0.1\n");
    let other = set("thresholds: { warn: 0.1, block: 0.6 }");
    assert_eq!(one.digest(), same.digest());
    assert_ne!(one.digest(), other.digest());
    assert_ne!(one.digest(), PolicySet::built_in().digest());
    assert_eq!((one.digest().len(), one.revision().len()), (64, 12));
    assert!(one.digest().starts_with(one.revision()));
}

#[test]
fn every_listed_key_is_read() {
    let blank = |keys: &[&str], indent: &str| keys.iter().map(|key| format!("{indent}{key}: \n")).collect();
    let nested = |head: &str, keys: &[&str]| -> String {
        let inner: String = blank(keys, "      ");
        format!("{head}\n{inner}")
    };
    let root: String = blank(schema::ROOT_KEYS, "");
    let texts = [
        root,
        nested("thresholds:", schema::THRESHOLD_KEYS),
        nested("categories:\n  pii:", schema::CATEGORY_KEYS),
        nested("rules:\n  pii.email:", schema::RULE_KEYS),
        nested("plugins:\n  pii:", schema::PLUGIN_KEYS),
        nested("plugins:\n  pii:\n    fail:", schema::FAIL_KEYS),
        nested("injection:", schema::INJECTION_KEYS),
        nested("pii:", schema::PII_KEYS),
        nested("audit:", schema::AUDIT_KEYS),
        nested("audit:\n  filters:\n  -", schema::AUDIT_FILTER_KEYS),
        nested("suppressions:\n  -", schema::SUPPRESSION_KEYS),
        nested("tools:", schema::TOOLS_KEYS),
        nested("tools:\n  arguments:\n    exec:", schema::ARGUMENT_KIND_KEYS),
        nested("interceptors:\n  -\n      id: a", &schema::INTERCEPTOR_KEYS[1..]),
        nested("interceptors:\n  - id: a\n    extension:", schema::EXTENSION_KEYS),
    ];
    for text in &texts {
        for problem in told(&[Source { file: "a.yaml", text }], &Vocabulary::default()) {
            assert!(problem.contains(": has no value; "), "{problem}\n{text}");
        }
    }
}

#[test]
fn ten_thousand_levels_are_refused_quickly() {
    let flow = "[".repeat(10_000);
    let block: String = (0..10_000).map(|level| format!("{}a:\n", " ".repeat(level % 1_000))).collect();
    let lists = "- ".repeat(10_000);
    let quoted = format!("name: {}", "{a: ".repeat(10_000));
    for text in [flow, block, lists, quoted] {
        let problems = told(&[Source { file: "a.yaml", text: &text }], &Vocabulary::default());
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("cannot be read as YAML"), "{problems:?}");
    }
}

#[test]
fn a_large_text_repeated_by_aliases_is_refused() {
    let text = format!("description: &a {}\nname: [{}]\n", "x".repeat(900_000), "*a, ".repeat(900));
    let problems = told(&[Source { file: "a.yaml", text: &text }], &Vocabulary::default());
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains(": too large once its aliases are written out; "), "{problems:?}");
}

#[test]
fn long_and_unprintable_values_are_shortened_in_messages() {
    let text = format!("\"{}\\e[2J\": 1", "x".repeat(10));
    let long = format!("{}: 1", "y".repeat(900));
    for text in [text, long] {
        let problems = told(&[Source { file: "a.yaml", text: &text }], &Vocabulary::default());
        assert!(problems[0].len() < 400 && !problems[0].contains('\u{1b}'), "{problems:?}");
    }
}

/// Policies with something in every field.
fn any_policy() -> impl Strategy<Value = String> {
    let mode = prop_oneof![Just("enforce"), Just("shadow"), Just("off")];
    let fail = prop_oneof![Just("closed"), Just("ask"), Just("open")];
    let scope = any::<String>().prop_filter("a scope is not blank", |text| !text.trim().is_empty());
    (
        any::<String>(),
        (0.0..=0.5, 0.5..=1.0),
        proptest::collection::btree_map("[a-z]{1,3}(\\.[a-z]{1,3}){0,2}", (mode.clone(), 0.0..=0.5), 0..4),
        (mode.clone(), fail.clone(), fail, 1_u64..600_000),
        proptest::collection::vec((scope.clone(), scope.clone(), scope), 0..3),
        (mode, any::<bool>(), 0.0..=1.0),
    )
        .prop_map(|(description, (warn, block), categories, plugin, suppressions, (role, reveal, share))| {
            let mut out = format!("description: {}\n", quoted(&description));
            let _ = writeln!(out, "thresholds: {{ warn: {warn}, block: {block} }}\nreveal: {reveal}");
            let _ = writeln!(out, "injection: {{ system_role: {role} }}\naudit:\n  sample_allow: {share}");
            let _ = writeln!(out, "  filters: [{{ rpcs: [InterceptTool], tools: ['re*d'], sample_allow: {share} }}]");
            let _ = writeln!(out, "allowed_callers: [agent]\nrequired_plugins: [code]");
            let (mode, input, output, ms) = plugin;
            let _ = writeln!(
                out,
                "plugins: {{ pii: {{ mode: {mode}, fail: {{ input: {input}, output: {output} }}, timeout: {ms}ms }} }}"
            );
            out.push_str("categories: {");
            for (name, (mode, warn)) in categories {
                let _ = write!(out, "\"{name}\": {{ mode: {mode}, warn: {warn} }}, ");
            }
            out.push_str("}\nsuppressions:\n  - { rule: r, reason: x, expires: 2031-12-31 }\n");
            for (rule, path, reason) in suppressions {
                let (rule, path, reason) = (quoted(&rule), quoted(&path), quoted(&reason));
                let _ = writeln!(
                    out,
                    "  - {{ rule: {rule}, path: {path}, reason: {reason}, expires: 2031-01-02T03:04:05Z }}"
                );
            }
            out
        })
}

/// A quoted scalar as JSON writers make it: everything outside printable ASCII as UTF-16 escapes.
fn quoted(text: &str) -> String {
    let pieces = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        ' '..='~' => c.to_string(),
        _ => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    });
    format!("\"{}\"", pieces.collect::<String>())
}

fn any_finding() -> impl Strategy<Value = Finding> {
    let category = prop_oneof![Just("pii.email"), Just("pii"), Just("secrets.aws"), Just("other")];
    (category, 0.0..=1.0, any::<bool>(), any::<bool>())
        .prop_map(|(category, score, shadow, suppressed)| finding(category, score, shadow, suppressed))
}

fn any_unjudged() -> impl Strategy<Value = Unjudged> {
    let fail = prop_oneof![Just(FailMode::Closed), Just(FailMode::Ask), Just(FailMode::Open)];
    (fail, any::<bool>()).prop_map(|(fail, shadow)| unjudged(fail, shadow))
}

fn layered() -> Arc<Policy> {
    compile_one("categories: { pii: { warn: 0.2, block: 0.4 }, secrets.aws: { warn: 0.9, block: 0.95 } }")
}

#[test]
fn interceptors_written_out_read_back_the_same() {
    let text = r#"
tools:
  known: { deploy: [ship, "Sh:ip"], exec: [run] }
  arguments: { deploy: { command: [script], write_path: [to, into] }, empty: {} }
workspace_roots: [/srv/app, 'C:\work']
interceptors:
  - { id: 'builtin:redact-secrets', mode: shadow, fail: open, timeout: 300ms, categories: [secrets] }
  - { id: 'builtin:injection-guard', injection: off }
  - id: all.actions
    hook: tool.before
    priority: -7
    tools: ^exec$
    agents: "coder|tester"
    description: "With: every \"action\""
    mode: shadow
    fail: ask
    timeout: 90ms
    allow_unknown_tools: true
    when: 'args.command == "x\ny"'
    do:
      - merge_args: { a: [1, 2.5, null, true, "off"], "b.c": { d: 18446744073709551615 } }
      - set_args: { "env.PATH": '"/bin"', command: 'args.command + "!"' }
      - set_metadata: { seen: 'true' }
      - redact: [pii.email]
      - redact: true
      - audit: "note: one"
      - ask: why?
      - block: "no\nway"
  - { id: p, hook: params.before, do: [{ set_params: { think_level: off, reasoning_level: on, temperature: 0.5, model: m, provider: p } }] }
  - { id: m, hook: message.before, do: [{ append: ' end' }, { strip_ansi: true }] }
  - { id: x, hook: tool.after, extension: { endpoint: 'http://localhost:1', credential: c, attempts_max: 3 } }
  - { id: w, hook: tool.after, webhook: { url: 'https://h/x' } }
"#;
    let policy = compile_one(text);
    assert_eq!(policy.interceptors().len(), 5);
    let written = policy.to_yaml();
    let again = compile_one(&written);
    assert_eq!(again, policy, "{written}");
}

#[test]
fn interceptors_are_inherited_by_id() {
    let parent = "name: parent\ninterceptors:\n  - { id: a, hook: tool.before, do: [{ block: one }] }\n  - { id: b, hook: tool.before, do: [{ block: two }] }\n  - { id: 'builtin:strip-ansi', mode: off, timeout: 1s }\n";
    let child = "name: child\nextends: parent\ninterceptors:\n  - { id: a, hook: tool.after, do: [{ ask: three }] }\n  - { id: c, hook: tool.before, do: [{ block: four }] }\n  - { id: 'builtin:strip-ansi', mode: shadow }\n";
    let sources = [Source { file: "p.yaml", text: parent }, Source { file: "c.yaml", text: child }];
    let set = compile(&sources, &Vocabulary::default()).unwrap();
    let child = set.get("child").unwrap();
    let ids: Vec<_> = child.interceptors().iter().map(|one| (one.spec.id.as_str(), one.spec.hook)).collect();
    assert_eq!(ids, [("a", Hook::ToolAfter), ("b", Hook::ToolBefore), ("c", Hook::ToolBefore)]);
    let switch = child.builtin_switch("builtin:strip-ansi").unwrap();
    assert_eq!((switch.mode, switch.timeout), (Some(Mode::Shadow), Some(Duration::from_secs(1))));
}

proptest! {
    #[test]
    fn a_policy_written_out_reads_back_the_same(text in any_policy()) {
        let policy = compile_one(&text);
        let written = policy.to_yaml();
        let sources = [Source { file: "written.yaml", text: &written }];
        let again = compile(&sources, &Vocabulary::default());
        let again = again.map_err(|problems| TestCaseError::fail(format!("{problems}\n{written}")))?;
        prop_assert_eq!(again.get("case").unwrap(), &policy, "{}", written);
        // Whatever the default says where it is read: it names every value.
        let elsewhere = [
            Source { file: "default.yaml", text: "{ reveal: true, allowed_callers: [admin], thresholds: { block: 0.31 } }" },
            sources[0],
        ];
        let again = compile(&elsewhere, &Vocabulary::default()).unwrap();
        prop_assert_eq!(again.get("case").unwrap(), &policy);
    }

    #[test]
    fn one_more_finding_or_failure_never_weakens(
        findings in proptest::collection::vec(any_finding(), 0..6),
        failed in proptest::collection::vec(any_unjudged(), 0..4),
        more in any_finding(),
        failure in any_unjudged(),
    ) {
        let policy = layered();
        let before = policy.decide(&findings, &failed);
        let with_finding = policy.decide(&[findings.clone(), vec![more]].concat(), &failed);
        let with_failure = policy.decide(&findings, &[failed, vec![failure]].concat());
        for after in [with_finding, with_failure] {
            prop_assert!(after.decision >= before.decision);
            prop_assert!(after.risk_level >= before.risk_level);
            prop_assert!(after.risk_score >= before.risk_score);
            prop_assert!(after.would_block >= before.would_block);
        }
    }

    #[test]
    fn deny_wins(
        findings in proptest::collection::vec(any_finding(), 0..6),
        failed in proptest::collection::vec(any_unjudged(), 0..4),
    ) {
        let policy = layered();
        let alone = findings.iter().map(|f| policy.decide(std::slice::from_ref(f), &[]));
        let alone = alone.chain(failed.iter().map(|u| policy.decide(&[], std::slice::from_ref(u))));
        let strongest = alone.map(|verdict| verdict.decision).max().unwrap_or_default();
        prop_assert_eq!(policy.decide(&findings, &failed).decision, strongest);
    }

    #[test]
    fn a_higher_score_never_weakens(
        findings in proptest::collection::vec(any_finding(), 1..6),
        index in any::<prop::sample::Index>(),
        score in 0.0..=1.0,
    ) {
        let policy = layered();
        let before = policy.decide(&findings, &[]);
        let mut raised = findings;
        let index = index.index(raised.len());
        raised[index].score = raised[index].score.max(score);
        let after = policy.decide(&raised, &[]);
        prop_assert!(after.decision >= before.decision && after.risk_level >= before.risk_level);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z:\\-\\[\\]{}&*!|>'\"#%@ \\n\\t0-9.~<?,]{0,200}") {
        let _ = compile(&[Source { file: "a.yaml", text: &text }], &Vocabulary::default());
    }
}

#[test]
fn the_first_filter_of_the_audit_log_that_fits_decides() {
    let parent = "audit: { filters: [{ tools: [read], sample_allow: 0.5 }, { agents: [\"ci-*\"] }] }\n";
    let child = "name: child\naudit: { sample_allow: 0.25, filters: [{ rpcs: [InterceptTool], agents: [ci-7], sample_allow: 1 }] }\n";
    let sources = [Source { file: "default.yaml", text: parent }, Source { file: "child.yaml", text: child }];
    let set = compile(&sources, &Vocabulary::default()).unwrap();
    for (policy, rpc, tool, agent, share) in [
        ("", "CheckMessages", "", "", 1.0),
        ("", "CheckMessages", "", "ci-7", 0.0),
        ("", "InterceptTool", "read", "ci-7", 0.5),
        ("", "InterceptTool", "write", "ci-7", 0.0),
        ("", "InterceptTool", "read_all", "cli", 1.0),
        ("child", "InterceptTool", "read", "ci-7", 1.0),
        ("child", "InterceptTool", "read", "ci-8", 0.5),
        ("child", "CheckMessages", "", "ci-7", 0.0),
        ("child", "CheckMessages", "", "a", 0.25),
    ] {
        let policy = set.get(policy).unwrap();
        assert_eq!(policy.sample_allow(&about(rpc, tool, agent)), share, "{rpc} {tool} {agent}");
    }
}
