use std::collections::BTreeMap;

use super::*;
use crate::decision::{Category, FailMode, Hook, InterceptorOutcome, Severity, SpanRef};
use crate::telemetry::{MetricsHandle, install};

/// Every sample of a scrape, by series, but what the process takes, which changes by itself.
fn scrape(handle: &MetricsHandle) -> BTreeMap<String, f64> {
    handle
        .render()
        .lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("process_") && !line.is_empty())
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').expect("a sample is a series and a value");
            (series.to_owned(), value.parse().expect("a value is a number"))
        })
        .collect()
}

/// What changed between two scrapes; durations, whose sums vary, by their counts alone.
fn delta(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> Vec<(String, f64)> {
    after
        .iter()
        .filter(|(series, _)| !series.contains("_bucket{") && !series.contains("_sum{"))
        .map(|(series, value)| (series.clone(), value - before.get(series).unwrap_or(&0.0)))
        .filter(|(_, change)| *change != 0.0)
        .collect()
}

fn finding(plugin: &str, category: &str, severity: Severity) -> Finding {
    Finding {
        plugin: plugin.into(),
        plugin_version: "1".into(),
        rule_id: "rule".into(),
        category: Category::new(category),
        severity,
        score: severity.score(),
        description: "".into(),
        recommendation: "".into(),
        span: SpanRef { message_index: 0, path: "/text".into(), start: 0, end: 1 },
        evasions: Vec::new(),
        shadow: false,
        suppressed: false,
    }
}

fn unjudged(plugin: &str, fail_mode: FailMode) -> Unjudged {
    Unjudged {
        plugin: plugin.into(),
        reason: Reason::Timeout,
        detail: String::new(),
        fail_mode,
        shadow: false,
    }
}

#[test]
fn a_decided_request_counts_exactly() {
    let (metrics, handle) = install();
    metrics.declare_plugin("pii", [("pii.email", Severity::Low), ("pii.us_ssn", Severity::High)]);
    let before = scrape(&handle);
    assert_eq!(
        before[r#"portcullis_findings_total{plugin="pii",category="pii.email",severity="low"}"#], 0.0,
        "declared series start at 0"
    );
    RequestDecided {
        rpc: Rpc::CheckMessages,
        decision: Decision::Block,
        elapsed: Duration::from_micros(80),
        decision_id: "0190",
        policy: "default",
        policy_revision: "r1",
        risk_level: RiskLevel::High,
        findings: &[
            &finding("pii", "pii.email", Severity::Low),
            &finding("pii", "pii.email", Severity::Low),
            &finding("pii", "pii.never-declared", Severity::Low),
            &finding("someone", "their.own", Severity::Critical),
        ],
        unjudged: &[unjudged("pii", FailMode::Closed), unjudged("someone", FailMode::Open)],
        would_block: &["pii"],
        scanned_bytes: 1024,
    }
    .emit(&metrics);
    let want = [
        (r#"portcullis_fail_open_total{plugin="other"}"#, 1.0),
        (r#"portcullis_findings_total{plugin="other",category="other",severity="critical"}"#, 1.0),
        (r#"portcullis_findings_total{plugin="pii",category="other",severity="low"}"#, 1.0),
        (r#"portcullis_findings_total{plugin="pii",category="pii.email",severity="low"}"#, 2.0),
        (r#"portcullis_request_duration_seconds_count{rpc="CheckMessages"}"#, 1.0),
        (r#"portcullis_requests_total{rpc="CheckMessages",decision="BLOCK",code="OK"}"#, 1.0),
        (r#"portcullis_scanned_bytes_total{rpc="CheckMessages"}"#, 1024.0),
        (r#"portcullis_unjudged_total{plugin="other",reason="timeout"}"#, 1.0),
        (r#"portcullis_unjudged_total{plugin="pii",reason="timeout"}"#, 1.0),
        (r#"portcullis_would_block_total{source="pii"}"#, 1.0),
    ];
    let after = scrape(&handle);
    assert_eq!(delta(&before, &after), want.map(|(series, change)| (series.to_owned(), change)));
    let bucket = |le: &str| {
        after[&format!(r#"portcullis_request_duration_seconds_bucket{{rpc="CheckMessages",le="{le}"}}"#)]
    };
    assert_eq!((bucket("0.00005"), bucket("0.0001"), bucket("10"), bucket("+Inf")), (0.0, 1.0, 1.0, 1.0));
}

#[test]
fn every_other_event_counts_exactly() {
    let (metrics, handle) = install();
    metrics.declare_plugin("code", []);
    let before = scrape(&handle);
    RequestRefused { rpc: Rpc::CheckMessagesStream, code: Code::InvalidArgument, field: "messages" }
        .emit(&metrics);
    for reason in ShedReason::ALL {
        OverloadShed { rpc: Rpc::CheckMessages, reason }.emit(&metrics);
    }
    PluginRan { plugin: "code", elapsed: Duration::from_millis(1) }.emit(&metrics);
    CacheLookedUp { cache: Cache::Messages, hits: 7, misses: 2 }.emit(&metrics);
    PolicyReloaded { revision: "r2" }.emit(&metrics);
    PolicyRejected { kept_revision: "r2", problems: &["policy.yaml:3: no"] }.emit(&metrics);
    AuditDropped { count: 5, cause: &"buffer full" }.emit(&metrics);
    let want = [
        ("portcullis_audit_dropped_total", 5.0),
        (r#"portcullis_cache_requests_total{cache="messages",outcome="hit"}"#, 7.0),
        (r#"portcullis_cache_requests_total{cache="messages",outcome="miss"}"#, 2.0),
        (r#"portcullis_plugin_duration_seconds_count{plugin="code"}"#, 1.0),
        (r#"portcullis_policy_info{revision="r2"}"#, 1.0),
        (r#"portcullis_policy_reloads_total{outcome="applied"}"#, 1.0),
        (r#"portcullis_policy_reloads_total{outcome="rejected"}"#, 1.0),
        (r#"portcullis_requests_total{rpc="CheckMessages",decision="NONE",code="UNAVAILABLE"}"#, 2.0),
        (
            r#"portcullis_requests_total{rpc="CheckMessagesStream",decision="NONE",code="INVALID_ARGUMENT"}"#,
            1.0,
        ),
        (r#"portcullis_shed_total{reason="places"}"#, 1.0),
        (r#"portcullis_shed_total{reason="wait"}"#, 1.0),
    ];
    assert_eq!(delta(&before, &scrape(&handle)), want.map(|(series, change)| (series.to_owned(), change)));
}

#[test]
fn a_redeclared_plugin_goes_on_counting() {
    let (metrics, handle) = install();
    let series = r#"portcullis_findings_total{plugin="code",category="code_injection.sql",severity="high"}"#;
    for count in 1..=3 {
        metrics.declare_plugin("code", [("code_injection.sql", Severity::High)]);
        metrics.count_finding("code", "code_injection.sql", Severity::High);
        assert_eq!(scrape(&handle)[series], f64::from(count));
    }
}

#[test]
fn one_revision_is_shown_at_a_time() {
    let (metrics, handle) = install();
    assert!(!handle.render().contains("policy_info"));
    PolicyLoaded { revision: "r1" }.emit(&metrics);
    PolicyReloaded { revision: "r\"2" }.emit(&metrics);
    let text = handle.render();
    let shown: Vec<&str> = text.lines().filter(|line| line.starts_with("portcullis_policy_info{")).collect();
    assert_eq!(shown, [r#"portcullis_policy_info{revision="r\"2"} 1"#]);
}

/// What a linter of the exposition format asks: help and type before the samples, counters that end in `_total`,
/// histograms in base units with a bucket for infinity, and no family told twice.
#[test]
fn the_exposition_is_well_formed() {
    let (metrics, handle) = install();
    metrics.declare_plugin("pii", [("pii.email", Severity::Low)]);
    PolicyLoaded { revision: "r1" }.emit(&metrics);
    PluginRan { plugin: "pii", elapsed: Duration::from_millis(1) }.emit(&metrics);
    InterceptorRan {
        interceptor: "builtin:x",
        hook: Hook::ToolBefore,
        outcome: InterceptorOutcome::Passed,
        shadow: false,
        elapsed: Duration::from_micros(9),
        decision_id: "d",
        summary: "",
    }
    .emit(&metrics);
    LlmAsked {
        backend: "gemini",
        model: "m",
        purpose: "stream",
        outcome: "answered",
        is_answered: true,
        elapsed: Duration::from_millis(300),
        attempts: 1,
        input_tokens: 1_000_000,
        output_tokens: 250_000,
        cost_usd: 0.2,
    }
    .emit(&metrics);
    CertificatesLoaded { certificate: Certificate::Server, not_after: 1_900_000_000 }.emit(&metrics);
    handle.run_upkeep();
    let text = handle.render();
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    let mut helped: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("help has a text");
            assert!(help.ends_with('.') && !helped.contains(&name), "{line}");
            helped.push(name);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type has a name and a kind");
            assert_eq!(helped.last(), Some(&name), "help comes first");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(kind != "histogram" || name.ends_with("_seconds"), "{line}");
            assert!(kind != "counter" || !name.ends_with("_seconds"), "{line}");
            assert!(types.insert(name, kind).is_none(), "{line}");
        } else {
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .filter_map(|suffix| name.strip_suffix(suffix))
                .find(|family| types.get(family) == Some(&"histogram"))
                .unwrap_or(name);
            let is_ours = family.starts_with("portcullis_") || family.starts_with("process_");
            assert!(types.contains_key(family) && is_ours, "{line}");
        }
    }
    types.retain(|name, _| name.starts_with("portcullis_"));
    assert_eq!(types.len(), 38, "every metric is shown: {types:?}");
    assert!(text.contains("portcullis_llm_cost_usd_total{backend=\"gemini\"} 0.2\n"), "{text}");
    assert!(text.contains(r#"portcullis_llm_tokens_total{backend="gemini",kind="output"} 250000"#));
    assert!(text.contains(r#"le="+Inf"#));
    assert!(text.contains(r#"portcullis_plugin_duration_seconds_count{plugin="pii"} 1"#));
}
