//! Every metric: its name, what it is, its help text, and the buckets of its durations.

use metrics::Recorder;
use metrics_exporter_prometheus::PrometheusRecorder;

/// Upper bounds of every duration histogram, in seconds: 25 us, where a short check ends, to the 10 s of a slow model.
pub(super) const SECONDS_BUCKETS: [f64; 18] = [
    25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3,
    1.0, 2.5, 5.0, 10.0,
];

/// Those of verdicts about streams: the verdict of a rule is a matter of some ten microseconds, that of a judge of
/// seconds.
pub(super) const VERDICT_BUCKETS: [f64; 25] = [
    10e-6, 20e-6, 30e-6, 40e-6, 50e-6, 75e-6, 100e-6, 125e-6, 150e-6, 175e-6, 200e-6, 250e-6, 300e-6, 400e-6,
    500e-6, 1e-3, 2.5e-3, 10e-3, 50e-3, 250e-3, 500e-3, 1.0, 2.5, 5.0, 10.0,
];

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    /// In seconds, with `SECONDS_BUCKETS` or `VERDICT_BUCKETS`.
    Seconds,
}

/// One metric: name, kind, help.
pub(super) struct Definition(pub &'static str, pub Kind, pub &'static str);

pub(super) const REQUESTS: &str = "portcullis_requests_total";
pub(super) const REQUEST_DURATION: &str = "portcullis_request_duration_seconds";
pub(super) const FINDINGS: &str = "portcullis_findings_total";
pub(super) const PII_EXCUSED: &str = "portcullis_pii_excused_total";
pub(super) const WOULD_BLOCK: &str = "portcullis_would_block_total";
pub(super) const PLUGIN_DURATION: &str = "portcullis_plugin_duration_seconds";
pub(super) const UNJUDGED: &str = "portcullis_unjudged_total";
pub(super) const FAIL_OPEN: &str = "portcullis_fail_open_total";
pub(super) const SCANNED_BYTES: &str = "portcullis_scanned_bytes_total";
pub(super) const CACHE_REQUESTS: &str = "portcullis_cache_requests_total";
pub(super) const POLICY_RELOADS: &str = "portcullis_policy_reloads_total";
pub(super) const POLICY_INFO: &str = "portcullis_policy_info";
pub(super) const AUDIT_RECORDS: &str = "portcullis_audit_records_total";
pub(super) const AUDIT_DROPPED: &str = "portcullis_audit_dropped_total";
pub(super) const AUDIT_SAMPLED_OUT: &str = "portcullis_audit_sampled_out_total";
pub(super) const INTERCEPTOR_RUNS: &str = "portcullis_interceptor_runs_total";
pub(super) const INTERCEPTOR_DURATION: &str = "portcullis_interceptor_duration_seconds";
pub(super) const MONITOR_STREAMS: &str = "portcullis_monitor_streams";
pub(super) const MONITOR_BYTES: &str = "portcullis_monitor_bytes_total";
pub(super) const INCIDENTS: &str = "portcullis_incidents_total";
pub(super) const INCIDENTS_LOST: &str = "portcullis_incidents_lost_total";
pub(super) const VERDICT_DURATION: &str = "portcullis_verdict_duration_seconds";
pub(super) const LLM_REQUESTS: &str = "portcullis_llm_requests_total";
pub(super) const LLM_DURATION: &str = "portcullis_llm_duration_seconds";
pub(super) const LLM_TOKENS: &str = "portcullis_llm_tokens_total";
pub(super) const LLM_COST: &str = "portcullis_llm_cost_usd_total";
pub(super) const SUBMISSIONS_MOVED: &str = "portcullis_submissions_total";
pub(super) const SUBMISSIONS: &str = "portcullis_submissions";
pub(super) const REVIEW_QUEUE_AGE: &str = "portcullis_review_queue_age_seconds";
pub(super) const REVIEW_DURATION: &str = "portcullis_review_duration_seconds";
pub(super) const STORE_UP: &str = "portcullis_store_up";
pub(super) const AUTH_FAILURES: &str = "portcullis_auth_failures_total";
pub(super) const AUTH_RELOADS: &str = "portcullis_auth_reloads_total";
pub(super) const CERTIFICATE_END: &str = "portcullis_tls_certificate_not_after_seconds";
pub(super) const SHED: &str = "portcullis_shed_total";
pub(super) const LONG_DECISIONS: &str = "portcullis_long_decisions_total";
pub(super) const RATE_LIMITED: &str = "portcullis_rate_limited_total";
pub(super) const BUILD_INFO: &str = "portcullis_build_info";

/// Help of `portcullis_llm_cost_usd_total`, which is written by hand: counters of the library hold whole numbers.
pub(super) const LLM_COST_HELP: &str =
    "US dollars for what models read and wrote, by the prices of the settings.";

/// Help of `portcullis_policy_info`, which is written by hand: only the revision in force may have a series.
pub(super) const POLICY_INFO_HELP: &str = "Always 1; the label holds the revision of the policy in force.";

/// All but those that are written by hand.
pub(super) const DEFINITIONS: [Definition; 36] = [
    Definition(
        REQUESTS,
        Kind::Counter,
        "Requests answered, by decision (NONE when refused) and gRPC status code.",
    ),
    Definition(
        REQUEST_DURATION,
        Kind::Seconds,
        "Time from a call taken to its answer ready, the wait for a processor included; decided requests only.",
    ),
    Definition(FINDINGS, Kind::Counter, "Findings reported, shadow and suppressed ones included."),
    Definition(
        PII_EXCUSED,
        Kind::Counter,
        "Findings of personal data that an allow-list excused, by whose list: policy or request.",
    ),
    Definition(
        WOULD_BLOCK,
        Kind::Counter,
        "Decisions that would have been BLOCK had a shadow check been enforced.",
    ),
    Definition(PLUGIN_DURATION, Kind::Seconds, "Time one plugin took for one request."),
    Definition(UNJUDGED, Kind::Counter, "Checks that did not run to their end, by reason."),
    Definition(FAIL_OPEN, Kind::Counter, "Checks that did not run to their end and were let pass."),
    Definition(
        SCANNED_BYTES,
        Kind::Counter,
        "Bytes of text that were scanned; what a cache answered is not.",
    ),
    Definition(CACHE_REQUESTS, Kind::Counter, "Look-ups in a cache, by outcome."),
    Definition(
        POLICY_RELOADS,
        Kind::Counter,
        "Loads of a changed policy; rejected ones kept the last good policy.",
    ),
    Definition(AUDIT_RECORDS, Kind::Counter, "Audit records taken for writing."),
    Definition(AUDIT_DROPPED, Kind::Counter, "Audit records lost: the buffer was full or the sink failed."),
    Definition(
        AUDIT_SAMPLED_OUT,
        Kind::Counter,
        "ALLOW decisions without an audit record, as the policy asks.",
    ),
    Definition(
        INTERCEPTOR_RUNS,
        Kind::Counter,
        "Runs of an interceptor, by hook and outcome; those added by API are counted as api.",
    ),
    Definition(INTERCEPTOR_DURATION, Kind::Seconds, "Time one interceptor took for one call."),
    Definition(MONITOR_STREAMS, Kind::Gauge, "Sessions of the stream monitor that are open."),
    Definition(MONITOR_BYTES, Kind::Counter, "Bytes of watched output that were scanned, by output stream."),
    Definition(INCIDENTS, Kind::Counter, "Incidents, by category, strongest verdict and what was done."),
    Definition(
        INCIDENTS_LOST,
        Kind::Counter,
        "Incidents that could not be kept: the queue was full or the store failed.",
    ),
    Definition(
        VERDICT_DURATION,
        Kind::Seconds,
        "Time to a verdict: from the chunk received (rule, policy) or the judge asked (judge, fail_mode).",
    ),
    Definition(LLM_REQUESTS, Kind::Counter, "Questions to a model, by what came of them."),
    Definition(
        LLM_DURATION,
        Kind::Seconds,
        "Time from a question to its end: the wait for a place, all attempts and pauses.",
    ),
    Definition(LLM_TOKENS, Kind::Counter, "Tokens that models read (input) and wrote (output)."),
    Definition(
        SUBMISSIONS_MOVED,
        Kind::Counter,
        "Submissions that came to stand so in this process, by status; a second attempt counts again.",
    ),
    Definition(SUBMISSIONS, Kind::Gauge, "Submissions that stand so now, by status, over all replicas."),
    Definition(STORE_UP, Kind::Gauge, "1 while the last look into the store succeeded, 0 since it failed."),
    Definition(
        REVIEW_QUEUE_AGE,
        Kind::Gauge,
        "Seconds for which the oldest submission waits that is not held; 0 when none waits.",
    ),
    Definition(
        REVIEW_DURATION,
        Kind::Seconds,
        "Time of one stage of the review of a bundle: inline checks, or the review by a model.",
    ),
    Definition(
        AUTH_FAILURES,
        Kind::Counter,
        "Calls refused for want of credentials or of a role, by reason.",
    ),
    Definition(
        AUTH_RELOADS,
        Kind::Counter,
        "Loads of changed tokens, keys or certificates; rejected ones kept the last good ones.",
    ),
    Definition(
        CERTIFICATE_END,
        Kind::Gauge,
        "When the first certificate of a file in use ends, in seconds since 1970; absent without TLS.",
    ),
    Definition(
        SHED,
        Kind::Counter,
        "Requests refused for overload: too many under way (places), or too many that wait for a processor (wait).",
    ),
    Definition(
        LONG_DECISIONS,
        Kind::Counter,
        "Times that a decision kept a thread that reads connections for more than a millisecond of its processor.",
    ),
    Definition(RATE_LIMITED, Kind::Counter, "Calls refused because their identity called too often."),
    Definition(BUILD_INFO, Kind::Gauge, "Always 1; the label holds the version of the program."),
];

/// Tells a recorder what each metric is.
pub(super) fn describe(recorder: &PrometheusRecorder) {
    for Definition(name, kind, help) in &DEFINITIONS {
        match kind {
            Kind::Counter => recorder.describe_counter((*name).into(), None, (*help).into()),
            Kind::Gauge => recorder.describe_gauge((*name).into(), None, (*help).into()),
            Kind::Seconds => recorder.describe_histogram((*name).into(), None, (*help).into()),
        }
    }
}
