//! Every metric: its name, its help text, its labels, and handles to its series.
//!
//! Series of bounded sets are registered at the start and stand in arrays indexed by enums, so that counting is one
//! atomic addition. Plugins and categories are known when rules and policies load: `declare_plugin` registers theirs.
//! What was never declared is counted under `other`, so that no caller can make new series.
//!
//! The recorder is a value, not the global one: two servers in one process, or two tests, do not mix their counts.
//!
//! Samples of histograms pile up until they are summed: call `MetricsHandle::run_upkeep` every `UPKEEP_INTERVAL`.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use super::labels::{
    AuthReason, Cache, CacheOutcome, Certificate, Code, REASONS, ReloadOutcome, ReviewStage, Rpc, ShedReason,
    reason_index,
};
use super::limiter::LineLimiter;
use super::process::ProcessMetrics;
use crate::decision::{
    Decision, Hook, InterceptorOutcome, OutputStream, Reason, Severity, SubmissionStatus, VerdictSource,
};

/// How often the caller of `install` runs the upkeep.
pub const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Label value for whatever was not declared.
const OTHER: &str = "other";

/// Label value of `interceptor` for those added by API, whose ids anybody with the admin role makes up.
const API: &str = "api";

/// Label value of `decision` for a request that got none.
const NO_DECISION: &str = "NONE";

/// Upper bounds of every duration histogram, in seconds: 25 us, where a short check ends, to the 10 s of a slow model.
const SECONDS_BUCKETS: [f64; 18] = [
    25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3,
    1.0, 2.5, 5.0, 10.0,
];

/// Those of verdicts about streams: the verdict of a rule is a matter of some ten microseconds, that of a judge of
/// seconds.
const VERDICT_BUCKETS: [f64; 25] = [
    10e-6, 20e-6, 30e-6, 40e-6, 50e-6, 75e-6, 100e-6, 125e-6, 150e-6, 175e-6, 200e-6, 250e-6, 300e-6, 400e-6,
    500e-6, 1e-3, 2.5e-3, 10e-3, 50e-3, 250e-3, 500e-3, 1.0, 2.5, 5.0, 10.0,
];

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    /// In seconds, with `SECONDS_BUCKETS` or `VERDICT_BUCKETS`.
    Seconds,
}

/// One metric: name, kind, help.
struct Definition(&'static str, Kind, &'static str);

const REQUESTS: &str = "portcullis_requests_total";
const REQUEST_DURATION: &str = "portcullis_request_duration_seconds";
const FINDINGS: &str = "portcullis_findings_total";
const PII_EXCUSED: &str = "portcullis_pii_excused_total";
const WOULD_BLOCK: &str = "portcullis_would_block_total";
const PLUGIN_DURATION: &str = "portcullis_plugin_duration_seconds";
const UNJUDGED: &str = "portcullis_unjudged_total";
const FAIL_OPEN: &str = "portcullis_fail_open_total";
const SCANNED_BYTES: &str = "portcullis_scanned_bytes_total";
const CACHE_REQUESTS: &str = "portcullis_cache_requests_total";
const POLICY_RELOADS: &str = "portcullis_policy_reloads_total";
const POLICY_INFO: &str = "portcullis_policy_info";
const AUDIT_RECORDS: &str = "portcullis_audit_records_total";
const AUDIT_DROPPED: &str = "portcullis_audit_dropped_total";
const AUDIT_SAMPLED_OUT: &str = "portcullis_audit_sampled_out_total";
const INTERCEPTOR_RUNS: &str = "portcullis_interceptor_runs_total";
const INTERCEPTOR_DURATION: &str = "portcullis_interceptor_duration_seconds";
const MONITOR_STREAMS: &str = "portcullis_monitor_streams";
const MONITOR_BYTES: &str = "portcullis_monitor_bytes_total";
const INCIDENTS: &str = "portcullis_incidents_total";
const INCIDENTS_LOST: &str = "portcullis_incidents_lost_total";
const VERDICT_DURATION: &str = "portcullis_verdict_duration_seconds";
const LLM_REQUESTS: &str = "portcullis_llm_requests_total";
const LLM_DURATION: &str = "portcullis_llm_duration_seconds";
const LLM_TOKENS: &str = "portcullis_llm_tokens_total";
const LLM_COST: &str = "portcullis_llm_cost_usd_total";
const SUBMISSIONS_MOVED: &str = "portcullis_submissions_total";
const SUBMISSIONS: &str = "portcullis_submissions";
const REVIEW_QUEUE_AGE: &str = "portcullis_review_queue_age_seconds";
const REVIEW_DURATION: &str = "portcullis_review_duration_seconds";
const STORE_UP: &str = "portcullis_store_up";
const AUTH_FAILURES: &str = "portcullis_auth_failures_total";
const AUTH_RELOADS: &str = "portcullis_auth_reloads_total";
const CERTIFICATE_END: &str = "portcullis_tls_certificate_not_after_seconds";
const SHED: &str = "portcullis_shed_total";
const LONG_DECISIONS: &str = "portcullis_long_decisions_total";
const RATE_LIMITED: &str = "portcullis_rate_limited_total";
const BUILD_INFO: &str = "portcullis_build_info";

/// Help of `portcullis_llm_cost_usd_total`, which is written by hand: counters of the library hold whole numbers.
const LLM_COST_HELP: &str = "US dollars for what models read and wrote, by the prices of the settings.";

/// Help of `portcullis_policy_info`, which is written by hand: only the revision in force may have a series.
const POLICY_INFO_HELP: &str = "Always 1; the label holds the revision of the policy in force.";

const DEFINITIONS: [Definition; 36] = [
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

/// Builds a recorder and every handle. Nothing global is touched, so it may be called any number of times.
pub fn install() -> (Arc<Metrics>, MetricsHandle) {
    let mut builder = PrometheusBuilder::new();
    for Definition(name, _, _) in DEFINITIONS.iter().filter(|definition| definition.1 == Kind::Seconds) {
        let buckets: &[f64] = if *name == VERDICT_DURATION { &VERDICT_BUCKETS } else { &SECONDS_BUCKETS };
        builder = builder
            .set_buckets_for_metric(Matcher::Full((*name).to_owned()), buckets)
            .expect("the list of buckets is not empty");
    }
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    let policy_revision = Arc::new(ArcSwapOption::empty());
    let metrics = Arc::new(Metrics::new(recorder, Arc::clone(&policy_revision)));
    let llm_cost = Arc::clone(&metrics.llm_cost);
    (metrics, MetricsHandle { handle, policy_revision, llm_cost, process: Arc::new(ProcessMetrics::new()) })
}

/// Reads what was counted.
#[derive(Clone, Debug)]
pub struct MetricsHandle {
    handle: PrometheusHandle,
    policy_revision: Arc<ArcSwapOption<Box<str>>>,
    llm_cost: Arc<LlmCost>,
    process: Arc<ProcessMetrics>,
}

/// Billionths of a US dollar by kind of provider.
type LlmCost = Mutex<BTreeMap<&'static str, u64>>;

impl MetricsHandle {
    /// Every series in the Prometheus text format 0.0.4.
    pub fn render(&self) -> String {
        let mut text = self.handle.render();
        if let Some(revision) = self.policy_revision.load().as_deref() {
            let revision = escape_label(revision);
            // OK because writing to a String cannot fail.
            let _ = write!(
                text,
                "# HELP {POLICY_INFO} {POLICY_INFO_HELP}\n# TYPE {POLICY_INFO} gauge\n\
                 {POLICY_INFO}{{revision=\"{revision}\"}} 1\n"
            );
        }
        let costs = self.llm_cost.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, (backend, nanos)) in costs.iter().enumerate() {
            if index == 0 {
                let _ = write!(text, "# HELP {LLM_COST} {LLM_COST_HELP}\n# TYPE {LLM_COST} counter\n");
            }
            let dollars = *nanos as f64 / 1e9;
            let _ = writeln!(text, "{LLM_COST}{{backend=\"{backend}\"}} {dollars}");
        }
        text.push_str(&self.process.render());
        text
    }

    /// Sums up the samples of histograms. Without it they stay in memory until the next scrape.
    pub fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }
}

/// Handles to every series. Cheap to share, safe to use from any thread.
#[derive(Debug)]
pub struct Metrics {
    /// Kept because plugins and categories are declared after the start.
    recorder: PrometheusRecorder,
    decided: [[Counter; Decision::ALL.len()]; Rpc::ALL.len()],
    refused: [[Counter; Code::ALL.len()]; Rpc::ALL.len()],
    request_duration: [Histogram; Rpc::ALL.len()],
    scanned_bytes: [Counter; Rpc::ALL.len()],
    cache_requests: [[Counter; CacheOutcome::ALL.len()]; Cache::ALL.len()],
    policy_reloads: [Counter; ReloadOutcome::ALL.len()],
    long_decisions: Counter,
    audit_records: Counter,
    audit_dropped: Counter,
    audit_sampled_out: Counter,
    /// By the list of the policy, and by that of the request.
    pub(super) pii_excused: [Counter; 2],
    plugins: ArcSwap<HashMap<Arc<str>, Arc<PluginSeries>>>,
    /// Where undeclared plugins are counted.
    other_plugin: Arc<PluginSeries>,
    interceptors: ArcSwap<HashMap<Arc<str>, Arc<InterceptorSeries>>>,
    /// Where undeclared interceptors are counted.
    api_interceptors: Arc<InterceptorSeries>,
    monitor_streams: Gauge,
    monitor_bytes: [Counter; OutputStream::ALL.len()],
    incidents_lost: Counter,
    verdict_duration: [Histogram; VerdictSource::ALL.len()],
    submissions_moved: [Counter; SubmissionStatus::ALL.len()],
    submissions: [Gauge; SubmissionStatus::ALL.len()],
    review_queue_age: Gauge,
    store_up: Gauge,
    review_duration: [Histogram; ReviewStage::ALL.len()],
    auth_failures: [Counter; AuthReason::ALL.len()],
    auth_reloads: [Counter; ReloadOutcome::ALL.len()],
    shed: [Counter; ShedReason::ALL.len()],
    rate_limited: Counter,
    policy_revision: Arc<ArcSwapOption<Box<str>>>,
    llm_cost: Arc<LlmCost>,
    pub(super) lines: Lines,
}

/// The series of one interceptor.
#[derive(Debug)]
struct InterceptorSeries {
    id: Arc<str>,
    duration: Histogram,
    /// By hook and outcome; most combinations never happen and have no series.
    runs: [[OnceLock<Counter>; InterceptorOutcome::ALL.len()]; Hook::ALL.len()],
}

/// Log lines that could come thousands of times a second.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) fail_open: LineLimiter,
    pub(super) audit_dropped: LineLimiter,
    pub(super) refused: LineLimiter,
    pub(super) shed: LineLimiter,
    pub(super) store: LineLimiter,
    pub(super) llm: LineLimiter,
    pub(super) auth: LineLimiter,
    pub(super) rate: LineLimiter,
}

/// The series of one plugin.
#[derive(Debug)]
pub(super) struct PluginSeries {
    id: Arc<str>,
    pub(super) duration: Histogram,
    pub(super) fail_open: Counter,
    pub(super) would_block: Counter,
    unjudged: [Counter; REASONS.len()],
    categories: HashMap<Arc<str>, [OnceLock<Counter>; Severity::ALL.len()]>,
    other_category: [OnceLock<Counter>; Severity::ALL.len()],
}

impl Metrics {
    fn new(recorder: PrometheusRecorder, policy_revision: Arc<ArcSwapOption<Box<str>>>) -> Self {
        describe(&recorder);
        let r = &recorder;
        gauge(r, BUILD_INFO, &[("version", env!("CARGO_PKG_VERSION"))]).set(1.0);
        let requests = |rpc: Rpc, decision, code: Code| {
            counter(r, REQUESTS, &[("rpc", rpc.as_str()), ("decision", decision), ("code", code.as_str())])
        };
        Self {
            decided: Rpc::ALL.map(|rpc| Decision::ALL.map(|d| requests(rpc, d.as_str(), Code::Ok))),
            // A refusal is never OK, so that this one slot has no series.
            refused: Rpc::ALL.map(|rpc| {
                Code::ALL.map(|code| match code {
                    Code::Ok => Counter::noop(),
                    code => requests(rpc, NO_DECISION, code),
                })
            }),
            request_duration: Rpc::ALL.map(|rpc| histogram(r, REQUEST_DURATION, &[("rpc", rpc.as_str())])),
            scanned_bytes: Rpc::ALL.map(|rpc| counter(r, SCANNED_BYTES, &[("rpc", rpc.as_str())])),
            cache_requests: Cache::ALL.map(|cache| {
                CacheOutcome::ALL.map(|outcome| {
                    counter(r, CACHE_REQUESTS, &[("cache", cache.as_str()), ("outcome", outcome.as_str())])
                })
            }),
            policy_reloads: ReloadOutcome::ALL
                .map(|outcome| counter(r, POLICY_RELOADS, &[("outcome", outcome.as_str())])),
            long_decisions: counter(r, LONG_DECISIONS, &[]),
            audit_records: counter(r, AUDIT_RECORDS, &[]),
            audit_dropped: counter(r, AUDIT_DROPPED, &[]),
            audit_sampled_out: counter(r, AUDIT_SAMPLED_OUT, &[]),
            pii_excused: ["policy", "request"].map(|by| counter(r, PII_EXCUSED, &[("by", by)])),
            plugins: ArcSwap::default(),
            other_plugin: Arc::new(PluginSeries::new(r, OTHER, [])),
            interceptors: ArcSwap::default(),
            api_interceptors: Arc::new(InterceptorSeries::new(r, API)),
            monitor_streams: gauge(r, MONITOR_STREAMS, &[]),
            monitor_bytes: OutputStream::ALL
                .map(|stream| counter(r, MONITOR_BYTES, &[("stream", stream.as_str())])),
            incidents_lost: counter(r, INCIDENTS_LOST, &[]),
            verdict_duration: VerdictSource::ALL
                .map(|source| histogram(r, VERDICT_DURATION, &[("source", source.as_str())])),
            submissions_moved: std::array::from_fn(|at| {
                counter(r, SUBMISSIONS_MOVED, &[("status", SubmissionStatus::ALL[at].as_str())])
            }),
            submissions: std::array::from_fn(|at| {
                gauge(r, SUBMISSIONS, &[("status", SubmissionStatus::ALL[at].as_str())])
            }),
            review_queue_age: gauge(r, REVIEW_QUEUE_AGE, &[]),
            store_up: gauge(r, STORE_UP, &[]),
            review_duration: ReviewStage::ALL
                .map(|stage| histogram(r, REVIEW_DURATION, &[("stage", stage.as_str())])),
            auth_failures: AuthReason::ALL
                .map(|reason| counter(r, AUTH_FAILURES, &[("reason", reason.as_str())])),
            auth_reloads: ReloadOutcome::ALL
                .map(|outcome| counter(r, AUTH_RELOADS, &[("outcome", outcome.as_str())])),
            shed: ShedReason::ALL.map(|reason| counter(r, SHED, &[("reason", reason.as_str())])),
            rate_limited: counter(r, RATE_LIMITED, &[]),
            policy_revision,
            llm_cost: Arc::default(),
            lines: Lines {
                fail_open: LineLimiter::new(),
                audit_dropped: LineLimiter::new(),
                refused: LineLimiter::new(),
                shed: LineLimiter::new(),
                store: LineLimiter::new(),
                llm: LineLimiter::new(),
                auth: LineLimiter::new(),
                rate: LineLimiter::new(),
            },
            recorder,
        }
    }

    /// Registers the series of a plugin and of the categories and severities that its rules can report.
    ///
    /// Called when rules or policies load, never for names that a caller gave. Declaring a plugin again replaces its
    /// categories; its counts go on.
    pub fn declare_plugin<'a>(&self, id: &str, categories: impl IntoIterator<Item = (&'a str, Severity)>) {
        let series = Arc::new(PluginSeries::new(&self.recorder, id, categories));
        self.plugins.rcu(|plugins| {
            let mut plugins = HashMap::clone(plugins);
            plugins.insert(Arc::clone(&series.id), Arc::clone(&series));
            plugins
        });
    }

    /// Registers the series of an interceptor: one that is built in or stands in a policy file, never one that was added
    /// by API. Declaring it again changes nothing.
    pub fn declare_interceptor(&self, id: &str) {
        if self.interceptors.load().contains_key(id) {
            return;
        }
        let series = Arc::new(InterceptorSeries::new(&self.recorder, id));
        self.interceptors.rcu(|known| {
            let mut known = HashMap::clone(known);
            known.entry(Arc::clone(&series.id)).or_insert_with(|| Arc::clone(&series));
            known
        });
    }

    /// Counts one run of an interceptor and the time it took.
    pub(super) fn count_interceptor(
        &self,
        id: &str,
        hook: Hook,
        outcome: InterceptorOutcome,
        elapsed: Duration,
    ) {
        let known = self.interceptors.load();
        let series = known.get(id).unwrap_or(&self.api_interceptors);
        series.runs[hook as usize][outcome as usize]
            .get_or_init(|| {
                let labels =
                    [("interceptor", &*series.id), ("hook", hook.as_str()), ("outcome", outcome.as_str())];
                counter(&self.recorder, INTERCEPTOR_RUNS, &labels)
            })
            .increment(1);
        if outcome != InterceptorOutcome::Skipped {
            series.duration.record(elapsed);
        }
    }

    /// Counts a session of the stream monitor as open until what is returned is dropped.
    pub fn monitor_stream(self: &Arc<Self>) -> OpenStream {
        self.monitor_streams.increment(1.0);
        OpenStream(self.clone())
    }

    /// Counts bytes of watched output as scanned.
    pub fn count_monitored(&self, stream: OutputStream, bytes: u64) {
        self.monitor_bytes[stream as usize].increment(bytes);
        self.scanned_bytes[Rpc::StreamMonitor as usize].increment(bytes);
    }

    /// Records the time to one verdict.
    pub fn record_verdict(&self, source: VerdictSource, elapsed: Duration) {
        self.verdict_duration[source as usize].record(elapsed);
    }

    pub(super) fn submissions_moved(&self, status: SubmissionStatus) -> &Counter {
        &self.submissions_moved[status as usize]
    }

    pub(super) fn review_duration(&self, stage: ReviewStage) -> &Histogram {
        &self.review_duration[stage as usize]
    }

    /// Shows how many submissions stand how, and for how long the oldest one waits. States that are not named have none.
    pub fn show_submissions(&self, counts: &[(SubmissionStatus, u64)], queue_age: Duration) {
        for status in SubmissionStatus::ALL {
            let found = counts.iter().find(|(counted, _)| counted == status);
            self.submissions[*status as usize].set(found.map_or(0.0, |(_, count)| *count as f64));
        }
        self.review_queue_age.set(queue_age.as_secs_f64());
    }

    /// Counts decisions that kept a thread that reads connections for long.
    pub fn long_decisions(&self) -> Counter {
        self.long_decisions.clone()
    }

    /// Shows whether the store could be read just now.
    pub fn set_store_up(&self, is_up: bool) {
        self.store_up.set(f64::from(u8::from(is_up)));
    }

    pub(super) fn incidents_lost(&self) -> &Counter {
        &self.incidents_lost
    }

    /// Counts an incident. Incidents are rare, and their categories are those of the rules: none is registered before.
    pub(super) fn count_incident(&self, category: &str, verdict: &str, action: &str) {
        let labels = [("category", category), ("verdict", verdict), ("action", action)];
        counter(&self.recorder, INCIDENTS, &labels).increment(1);
    }

    /// Counts one question to a model. Its labels come from bounded sets of the program.
    pub(super) fn count_llm(&self, backend: &'static str, outcome: &'static str, elapsed: Duration) {
        let r = &self.recorder;
        counter(r, LLM_REQUESTS, &[("backend", backend), ("outcome", outcome)]).increment(1);
        histogram(r, LLM_DURATION, &[("backend", backend)]).record(elapsed);
    }

    /// Counts what a model read and wrote, and what that cost in US dollars.
    pub(super) fn count_llm_tokens(&self, backend: &'static str, input: u64, output: u64, cost_usd: f64) {
        for (kind, tokens) in [("input", input), ("output", output)] {
            counter(&self.recorder, LLM_TOKENS, &[("backend", backend), ("kind", kind)]).increment(tokens);
        }
        let mut costs = self.llm_cost.lock().unwrap_or_else(PoisonError::into_inner);
        let nanos = costs.entry(backend).or_default();
        *nanos = nanos.saturating_add((cost_usd * 1e9) as u64);
    }

    /// Counter of audit records, for the audit log.
    pub fn audit_records(&self) -> Counter {
        self.audit_records.clone()
    }

    /// Counter of decisions that were sampled out of the audit log.
    pub fn audit_sampled_out(&self) -> Counter {
        self.audit_sampled_out.clone()
    }

    pub(super) fn audit_dropped(&self) -> &Counter {
        &self.audit_dropped
    }

    pub(super) fn decided(&self, rpc: Rpc, decision: Decision) -> &Counter {
        &self.decided[rpc as usize][decision as usize]
    }

    pub(super) fn refused(&self, rpc: Rpc, code: Code) -> &Counter {
        &self.refused[rpc as usize][code as usize]
    }

    pub(super) fn request_duration(&self, rpc: Rpc) -> &Histogram {
        &self.request_duration[rpc as usize]
    }

    pub(super) fn scanned_bytes(&self, rpc: Rpc) -> &Counter {
        &self.scanned_bytes[rpc as usize]
    }

    pub(super) fn cache_requests(&self, cache: Cache, outcome: CacheOutcome) -> &Counter {
        &self.cache_requests[cache as usize][outcome as usize]
    }

    pub(super) fn auth_failures(&self, reason: AuthReason) -> &Counter {
        &self.auth_failures[reason as usize]
    }

    pub(super) fn auth_reloads(&self, outcome: ReloadOutcome) -> &Counter {
        &self.auth_reloads[outcome as usize]
    }

    /// Registered when there is a certificate: a series of 0 would be one that ended in 1970.
    pub(super) fn certificate_end(&self, certificate: Certificate) -> Gauge {
        gauge(&self.recorder, CERTIFICATE_END, &[("certificate", certificate.as_str())])
    }

    pub(super) fn shed(&self, reason: ShedReason) -> &Counter {
        &self.shed[reason as usize]
    }

    pub(super) fn rate_limited(&self) -> &Counter {
        &self.rate_limited
    }

    pub(super) fn policy_reloads(&self, outcome: ReloadOutcome) -> &Counter {
        &self.policy_reloads[outcome as usize]
    }

    pub(super) fn set_policy_revision(&self, revision: &str) {
        self.policy_revision.store(Some(Arc::new(revision.into())));
    }

    /// Gives the series of a plugin to `use_series`; those of `other` when it was not declared.
    pub(super) fn with_plugin<T>(&self, id: &str, use_series: impl FnOnce(&PluginSeries) -> T) -> T {
        let plugins = self.plugins.load();
        use_series(plugins.get(id).unwrap_or(&self.other_plugin))
    }

    pub(super) fn count_finding(&self, plugin: &str, category: &str, severity: Severity) {
        self.with_plugin(plugin, |series| {
            let (category, slots) = match series.categories.get_key_value(category) {
                Some((category, slots)) => (&**category, slots),
                None => (OTHER, &series.other_category),
            };
            slots[severity as usize]
                .get_or_init(|| findings_counter(&self.recorder, &series.id, category, severity))
                .increment(1);
        });
    }
}

/// An open session of the stream monitor, as the gauge counts it.
#[derive(Debug)]
pub struct OpenStream(Arc<Metrics>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.monitor_streams.decrement(1.0);
    }
}

impl PluginSeries {
    fn new<'a>(
        recorder: &PrometheusRecorder,
        id: &str,
        declared: impl IntoIterator<Item = (&'a str, Severity)>,
    ) -> Self {
        let mut categories: HashMap<Arc<str>, [OnceLock<Counter>; Severity::ALL.len()]> = HashMap::new();
        for (category, severity) in declared {
            let slots = categories.entry(category.into()).or_default();
            slots[severity as usize].get_or_init(|| findings_counter(recorder, id, category, severity));
        }
        let label = [("plugin", id)];
        Self {
            id: id.into(),
            duration: histogram(recorder, PLUGIN_DURATION, &label),
            fail_open: counter(recorder, FAIL_OPEN, &label),
            would_block: counter(recorder, WOULD_BLOCK, &[("source", id)]),
            unjudged: REASONS
                .map(|reason| counter(recorder, UNJUDGED, &[("plugin", id), ("reason", reason.as_str())])),
            categories,
            other_category: Default::default(),
        }
    }

    pub(super) fn unjudged(&self, reason: Reason) -> &Counter {
        &self.unjudged[reason_index(reason)]
    }
}

impl InterceptorSeries {
    fn new(recorder: &PrometheusRecorder, id: &str) -> Self {
        let duration = histogram(recorder, INTERCEPTOR_DURATION, &[("interceptor", id)]);
        Self { id: id.into(), duration, runs: Default::default() }
    }
}

fn describe(recorder: &PrometheusRecorder) {
    for Definition(name, kind, help) in &DEFINITIONS {
        match kind {
            Kind::Counter => recorder.describe_counter((*name).into(), None, (*help).into()),
            Kind::Gauge => recorder.describe_gauge((*name).into(), None, (*help).into()),
            Kind::Seconds => recorder.describe_histogram((*name).into(), None, (*help).into()),
        }
    }
}

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

fn key(name: &'static str, labels: &[(&'static str, &str)]) -> Key {
    let labels: Vec<Label> =
        labels.iter().map(|(label, value)| Label::new(*label, (*value).to_owned())).collect();
    Key::from_parts(name, labels)
}

fn counter(recorder: &PrometheusRecorder, name: &'static str, labels: &[(&'static str, &str)]) -> Counter {
    recorder.register_counter(&key(name, labels), &METADATA)
}

fn gauge(recorder: &PrometheusRecorder, name: &'static str, labels: &[(&'static str, &str)]) -> Gauge {
    recorder.register_gauge(&key(name, labels), &METADATA)
}

fn histogram(
    recorder: &PrometheusRecorder,
    name: &'static str,
    labels: &[(&'static str, &str)],
) -> Histogram {
    recorder.register_histogram(&key(name, labels), &METADATA)
}

fn findings_counter(
    recorder: &PrometheusRecorder,
    plugin: &str,
    category: &str,
    severity: Severity,
) -> Counter {
    counter(
        recorder,
        FINDINGS,
        &[("plugin", plugin), ("category", category), ("severity", severity.as_str())],
    )
}

fn escape_label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
