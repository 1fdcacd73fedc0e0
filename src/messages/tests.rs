//! The engine with asynchronous plugins that answer, fail, panic and keep silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::*;
use crate::decision::{Category, Decision, Direction, FailMode, Finding, Reason, Severity, SpanRef};
use crate::detect::Scanner;
use crate::policy::{CallerRole, PolicySet, Snapshot, Source, Vocabulary, compile};
use crate::rules::{CountrySet, Role, RuleSet, RuleSetConfig, RuleSource};
use crate::text::OffsetEncoding;

const RULES: &str = r#"
plugin = "secrets"
[[rule]]
id = "secrets.test"
category = "secrets.test"
severity = "critical"
literals = ["key_"]
pattern = 'key_[a-z0-9]{8}'
description = "A key of these tests."
recommendation = "None."
examples = ["key_12345678"]
negative_examples = ["key_1"]
"#;

/// What a plugin does when asked.
#[derive(Clone)]
enum Act {
    Find(usize, usize),
    FindOutside,
    Fail,
    Panic,
    Silence,
    /// Waits until this many plugins are at work at the same time.
    Together(Arc<AtomicUsize>, usize),
}

struct Actor {
    descriptor: Descriptor,
    act: Act,
}

impl Actor {
    fn plugin(name: &str, act: Act) -> Arc<dyn Plugin> {
        let descriptor =
            Descriptor { name: name.into(), description: "For tests.".into(), version: "1".into() };
        Arc::new(Self { descriptor, act })
    }

    fn finding(&self, message_index: u32, start: usize, end: usize) -> Finding {
        Finding {
            // Poses as somebody else, which the engine must not believe.
            plugin: "pii".into(),
            plugin_version: "9".into(),
            rule_id: "actor.rule".into(),
            category: Category::new("acted"),
            severity: Severity::High,
            score: f64::NAN,
            description: "".into(),
            recommendation: "".into(),
            span: SpanRef { message_index, path: "/text".into(), start, end },
            evasions: Vec::new(),
            shadow: false,
            suppressed: false,
        }
    }
}

impl Plugin for Actor {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn check<'a>(&'a self, _: &'a PluginCall<'a>) -> PluginFuture<'a> {
        Box::pin(async move {
            match &self.act {
                Act::Find(start, end) => Ok(vec![self.finding(0, *start, *end)].into()),
                Act::FindOutside => Ok(vec![self.finding(7, 0, 1)].into()),
                Act::Fail => Err(PluginError { reason: Reason::Unavailable, detail: "no route".to_owned() }),
                Act::Panic => panic!("on purpose"),
                Act::Silence => std::future::pending().await,
                Act::Together(at_work, wanted) => {
                    at_work.fetch_add(1, Ordering::SeqCst);
                    while at_work.load(Ordering::SeqCst) < *wanted {
                        tokio::task::yield_now().await;
                    }
                    Ok(Found::default())
                }
            }
        })
    }
}

fn snapshot(policy: &str) -> Snapshot {
    let source = RuleSource::custom("t.toml", "secrets", RULES);
    let rules = RuleSet::compile(&[source], &RuleSetConfig::default()).expect("valid rules");
    let vocabulary = Vocabulary { plugins: &["a", "b", "c"], rules: None };
    let policies = compile(&[Source { file: "p.yaml", text: policy }], &vocabulary);
    let policies = if policy.is_empty() { PolicySet::built_in() } else { policies.expect("a valid policy") };
    Snapshot::for_trial(policies, Scanner::new(Arc::new(rules)))
}

fn engine(plugins: Vec<Arc<dyn Plugin>>) -> MessageEngine {
    MessageEngine::new(MessagesConfig::default(), &CacheConfig::default(), plugins, Vec::new())
}

fn message(text: &str) -> Message<'_> {
    Message { role: Role::User, fields: vec![Field { path: FieldPath::Text, text }], media_parts: 0 }
}

fn request<'a>(messages: &'a [Message<'a>]) -> CheckRequest<'a> {
    CheckRequest {
        messages,
        policy: "",
        caller_roles: &[CallerRole::Agent],
        tenant: "",
        plugins: &[],
        allow_list: &[],
        countries: CountrySet::EMPTY,
        direction: Direction::Input,
        encoding: OffsetEncoding::Utf8,
        redact: false,
        reveal: false,
        deadline: None,
        decision_id: "",
        sent: None,
    }
}

async fn judge(policy: &str, act: Act, text: &str) -> CheckOutcome {
    let messages = [message(text)];
    engine(vec![Actor::plugin("a", act)])
        .check(&snapshot(policy), request(&messages))
        .await
        .expect("an outcome")
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_cannot_judge_fails_as_its_policy_says() {
    for (act, reason) in [
        (Act::Fail, Reason::Unavailable),
        (Act::Panic, Reason::Error),
        (Act::Silence, Reason::Timeout),
        (Act::FindOutside, Reason::BadAnswer),
    ] {
        for (policy, decision, failed_open) in [
            ("", Decision::Block, false),
            ("name: default\nplugins: {a: {fail: closed}}", Decision::Block, false),
            ("name: default\nplugins: {a: {fail: ask}}", Decision::Ask, false),
            ("name: default\nplugins: {a: {fail: open}}", Decision::Allow, true),
            ("name: default\nplugins: {a: {mode: shadow}}", Decision::Allow, true),
            ("name: default\nplugins: {a: {fail: {input: ask, output: open}}}", Decision::Ask, false),
        ] {
            let outcome = judge(policy, act.clone(), "hello").await;
            let [unjudged] = outcome.unjudged.as_slice() else { panic!("{policy}: {:?}", outcome.unjudged) };
            assert_eq!((&*unjudged.plugin, unjudged.reason), ("a", reason), "{policy}");
            assert_eq!(
                (outcome.verdict.decision, unjudged.failed_open()),
                (decision, failed_open),
                "{policy}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_plugin_does_not_hide_what_others_found() {
    let policy = "name: default\nplugins: {a: {fail: open}}";
    let outcome = judge(policy, Act::Silence, "my key_12345678").await;
    assert_eq!(outcome.verdict.decision, Decision::Block);
    assert_eq!(outcome.reported.len(), 1);
    assert_eq!(outcome.unjudged[0].fail_mode, FailMode::Open);
}

#[tokio::test]
async fn answers_of_plugins_are_put_right() {
    // The span ends inside `é`, and the score is no number.
    let outcome = judge("", Act::Find(1, 3), "a\u{e9}\u{e9}").await;
    let finding = &outcome.reported[0].finding;
    assert_eq!((finding.span.start, finding.span.end), (1, 3));
    assert_eq!((&*finding.plugin, finding.score), ("a", 1.0));
    let outcome = judge("", Act::Find(2, 900), "a\u{e9}b").await;
    assert_eq!((outcome.reported[0].finding.span.start, outcome.reported[0].finding.span.end), (1, 4));
}

#[tokio::test]
async fn plugins_run_side_by_side() {
    let at_work = Arc::new(AtomicUsize::new(0));
    let plugins = ["a", "b", "c"].map(|name| Actor::plugin(name, Act::Together(at_work.clone(), 3)));
    let messages = [message("hello")];
    // One after another the first would wait for ever.
    let outcome =
        engine(plugins.to_vec()).check(&snapshot(""), request(&messages)).await.expect("an outcome");
    assert!(outcome.unjudged.is_empty());
    assert_eq!(outcome.ran.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_callers_deadline_ends_the_call() {
    let messages = [message("hello")];
    let engine = engine(vec![Actor::plugin("a", Act::Silence)]);
    let late = CheckRequest { deadline: Some(Instant::now()), ..request(&messages) };
    assert_eq!(engine.check(&snapshot(""), late).await.err(), Some(CheckError::DeadlineExceeded));
}

#[tokio::test]
async fn callers_may_add_plugins_and_never_remove_them() {
    let policy = "name: default\nrequired_plugins: [secrets]";
    let messages = [message("key_12345678")];
    let engine = engine(vec![Actor::plugin("a", Act::Fail), Actor::plugin("b", Act::Fail)]);
    let names = |outcome: &CheckOutcome| -> Vec<String> {
        outcome.ran.iter().map(|(name, _)| name.to_string()).collect()
    };
    let plain = engine.check(&snapshot(policy), request(&messages)).await.expect("an outcome");
    assert_eq!(names(&plain), ["secrets"]);
    let plugins = ["b".to_owned()];
    let added =
        engine.check(&snapshot(policy), CheckRequest { plugins: &plugins, ..request(&messages) }).await;
    assert_eq!(names(&added.expect("an outcome")), ["secrets", "b"]);
    let plugins = ["nobody".to_owned()];
    let unknown =
        engine.check(&snapshot(policy), CheckRequest { plugins: &plugins, ..request(&messages) }).await;
    assert!(matches!(unknown, Err(CheckError::UnknownPlugin { index: 0, .. })));
    let off = "name: default\nplugins: {b: {mode: off}}";
    let plugins = ["b".to_owned()];
    let off = engine.check(&snapshot(off), CheckRequest { plugins: &plugins, ..request(&messages) }).await;
    assert!(matches!(off, Err(CheckError::PluginOff { index: 0, .. })));
}

#[tokio::test]
async fn a_cached_answer_is_the_answer() {
    let text = format!("{} key_12345678 and key_abcdefgh", "Some words before it. ".repeat(8));
    let messages = [message(&text)];
    let (engine, snapshot) = (engine(Vec::new()), snapshot(""));
    let first = engine.check(&snapshot, request(&messages)).await.expect("an outcome");
    let second = engine.check(&snapshot, request(&messages)).await.expect("an outcome");
    assert_eq!((first.cache_hits, first.cache_misses), (0, 1));
    assert_eq!((second.cache_hits, second.cache_misses), (1, 0));
    assert_eq!(first.reported, second.reported);
    assert_eq!(first.reported.len(), 2);
}

#[tokio::test]
async fn more_findings_than_an_answer_holds_are_counted_and_fail_closed() {
    let text = "key_12345678 ".repeat(30);
    let messages = [message(&text)];
    let config = MessagesConfig { findings_max: 10, ..MessagesConfig::default() };
    let engine = MessageEngine::new(config, &CacheConfig::default(), Vec::new(), Vec::new());
    let redacting = CheckRequest { redact: true, ..request(&messages) };
    let outcome = engine.check(&snapshot(""), redacting).await.expect("an outcome");
    assert_eq!((outcome.reported.len(), outcome.findings_total), (10, 30));
    assert_eq!(outcome.unjudged[0].reason, Reason::Limit);
    assert!(!outcome.redacted[0].text.contains("key_"), "{}", outcome.redacted[0].text);
    assert_eq!(outcome.redacted[0].text.matches("[SECRET_TEST_1]").count(), 30);
}

#[tokio::test]
async fn media_is_never_taken_for_safe() {
    let messages = [Message { media_parts: 1, ..message("look") }];
    let outcome = engine(Vec::new()).check(&snapshot(""), request(&messages)).await.expect("an outcome");
    assert_eq!(outcome.verdict.decision, Decision::Block);
    assert_eq!(
        (&*outcome.unjudged[0].plugin, outcome.unjudged[0].reason),
        ("media", Reason::UnsupportedContent)
    );
}

#[tokio::test]
async fn a_timeout_of_the_shared_pass_is_told_for_every_plugin_in_it() {
    let policy = "name: default\nplugins: {secrets: {timeout: 1ms}}";
    // Long enough to look at the clock more than once, whatever the machine.
    let text = "key_1 ".repeat(3_000_000);
    let messages = [message(&text)];
    let outcome = engine(Vec::new()).check(&snapshot(policy), request(&messages)).await.expect("an outcome");
    assert_eq!(outcome.verdict.decision, Decision::Block);
    assert_eq!((&*outcome.unjudged[0].plugin, outcome.unjudged[0].reason), ("secrets", Reason::Timeout));
}

const PERSONAL: &str = r#"
plugin = "pii"
[[rule]]
id = "pii.test-mail"
category = "pii.email"
severity = "critical"
trigger = "separator"
separators = "@"
pattern = '[a-z]{1,20}@[a-z]{1,20}[.]example'
description = "An address of these tests."
recommendation = "None."
examples = ["ann@corp.example"]
negative_examples = ["ann"]
[[rule]]
id = "pii.test-german"
category = "pii.national_id"
severity = "critical"
countries = ["DE"]
literals = ["de-no"]
pattern = 'de-no [0-9]{6}'
description = "A German number of these tests."
recommendation = "None."
examples = ["de-no 123456"]
negative_examples = ["de-no 1"]
[[rule]]
id = "pii.test-french"
category = "pii.national_id"
severity = "critical"
countries = ["FR"]
literals = ["fr-no"]
pattern = 'fr-no [0-9]{6}'
description = "A French number of these tests."
recommendation = "None."
examples = ["fr-no 123456"]
negative_examples = ["fr-no 1"]
"#;

/// What a request sends about personal data.
#[derive(Clone, Copy, Default)]
struct Asked<'a> {
    allow_list: &'a [&'a str],
    countries: &'a [&'a str],
}

async fn judge_personal(policy: &str, asked: Asked<'_>, text: &str) -> CheckOutcome {
    let sources =
        [RuleSource::custom("t.toml", "secrets", RULES), RuleSource::custom("p.toml", "pii", PERSONAL)];
    let rules = RuleSet::compile(&sources, &RuleSetConfig::default()).expect("valid rules");
    let policies = compile(&[Source { file: "default.yaml", text: policy }], &Vocabulary::default());
    let snapshot = Snapshot::for_trial(policies.expect("a valid policy"), Scanner::new(Arc::new(rules)));
    let allow_list: Vec<String> = asked.allow_list.iter().map(|entry| (*entry).to_owned()).collect();
    let messages = [message(text)];
    let request = CheckRequest {
        allow_list: &allow_list,
        countries: CountrySet::of(asked.countries.iter().copied()).expect("codes"),
        redact: true,
        ..request(&messages)
    };
    engine(Vec::new()).check(&snapshot, request).await.expect("an outcome")
}

#[tokio::test]
async fn a_caller_excuses_personal_data_only_where_the_policy_lets_it() {
    const MAIL: &str = "write to ann@corp.example";
    for (policy, allow_list, text, decision, excused) in [
        ("{}", &["ann@corp.example"][..], MAIL, Decision::Block, (0, 0)),
        ("{ pii: { caller_allow_list: true } }", &["ann@corp.example"][..], MAIL, Decision::Allow, (0, 1)),
        ("{ pii: { caller_allow_list: true } }", &["@corp.example"][..], MAIL, Decision::Allow, (0, 1)),
        ("{ pii: { caller_allow_list: true } }", &["bob@corp.example"][..], MAIL, Decision::Block, (0, 0)),
        ("{ pii: { caller_allow_list: true } }", &[][..], MAIL, Decision::Block, (0, 0)),
        ("{ pii: { allow_list: [ann@corp.example] } }", &[][..], MAIL, Decision::Allow, (1, 0)),
        (
            "{ pii: { allow_list: ['@corp.example'], caller_allow_list: true } }",
            &["ann@corp.example"][..],
            MAIL,
            Decision::Allow,
            (1, 0),
        ),
        // A credential is never excused.
        (
            "{ pii: { caller_allow_list: true } }",
            &["key_12345678"][..],
            "key_12345678",
            Decision::Block,
            (0, 0),
        ),
    ] {
        let outcome = judge_personal(policy, Asked { allow_list, ..Asked::default() }, text).await;
        assert_eq!(outcome.verdict.decision, decision, "{policy} {allow_list:?}");
        assert_eq!(
            (outcome.excused.by_policy, outcome.excused.by_request),
            excused,
            "{policy} {allow_list:?}"
        );
        assert_eq!(outcome.reported.len(), 1, "what is excused is reported");
        // What is excused stays in the text.
        assert_eq!(outcome.redacted.is_empty(), decision == Decision::Allow, "{policy} {allow_list:?}");
    }
}

#[tokio::test]
async fn rules_of_other_countries_do_not_run() {
    const TEXT: &str = "de-no 123456 and fr-no 123456 and ann@corp.example";
    const ALL: &[&str] = &["pii.test-german", "pii.test-french", "pii.test-mail"];
    const GERMAN: &[&str] = &["pii.test-german", "pii.test-mail"];
    const FRENCH: &[&str] = &["pii.test-french", "pii.test-mail"];
    for (policy, countries, wanted) in [
        ("{}", &[][..], ALL),
        ("{ pii: { countries: [de] } }", &[][..], GERMAN),
        ("{ pii: { countries: [US] } }", &[][..], &["pii.test-mail"][..]),
        // The caller's set has no effect unless the policy lets it, and never widens.
        ("{}", &["DE"][..], ALL),
        ("{ pii: { caller_countries: true } }", &["DE"][..], GERMAN),
        ("{ pii: { countries: [DE, FR], caller_countries: true } }", &["FR", "US"][..], FRENCH),
        ("{ pii: { countries: [DE], caller_countries: true } }", &["FR"][..], GERMAN),
    ] {
        let outcome = judge_personal(policy, Asked { countries, ..Asked::default() }, TEXT).await;
        let found: Vec<&str> = outcome.reported.iter().map(|one| &*one.finding.rule_id).collect();
        assert_eq!(found, wanted, "{policy} {countries:?}");
    }
}

#[tokio::test]
async fn what_was_found_for_one_country_is_not_remembered_for_another() {
    let text = "de-no 123456 and fr-no 123456, in a text that is long enough to be remembered";
    let sources = [RuleSource::custom("p.toml", "pii", PERSONAL)];
    let rules = RuleSet::compile(&sources, &RuleSetConfig::default()).expect("valid rules");
    let policy = Source { file: "default.yaml", text: "{ pii: { caller_countries: true } }" };
    let policies = compile(&[policy], &Vocabulary::default()).expect("a valid policy");
    let snapshot = Snapshot::for_trial(policies, Scanner::new(Arc::new(rules)));
    let engine = engine(Vec::new());
    let messages = [message(text)];
    for (country, wanted, is_known) in
        [("DE", "pii.test-german", false), ("FR", "pii.test-french", false), ("DE", "pii.test-german", true)]
    {
        let countries = CountrySet::of([country]).expect("a code");
        let request = CheckRequest { countries, ..request(&messages) };
        let outcome = engine.check(&snapshot, request).await.expect("an outcome");
        let found: Vec<&str> = outcome.reported.iter().map(|one| &*one.finding.rule_id).collect();
        assert_eq!((found, outcome.cache_hits == 1), (vec![wanted], is_known), "{country}");
    }
}
