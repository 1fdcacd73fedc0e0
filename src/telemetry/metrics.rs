//! Every metric: its name, its help text, its labels, and handles to its series.
//!
//! Series of bounded sets are registered at the start and stand in arrays indexed by enums, so that counting is one
//! atomic addition. Plugins and categories are known when rules and policies load: `declare_plugin` registers theirs.
//! What was never declared is counted under `other`, so that no caller can make new series.
//!
//! The recorder is a value, not the global one: two servers in one process, or two tests, do not mix their counts.
//!
//! Samples of histograms pile up until they are summed: call `MetricsHandle::run_upkeep` every `UPKEEP_INTERVAL`.

mod definitions;
mod handle;
mod series;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use metrics::{Counter, Gauge, Histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};

use super::labels::{
    AuthReason, Cache, CacheOutcome, Certificate, Code, ReloadOutcome, ReviewStage, Rpc, ShedReason,
};
use super::limiter::LineLimiter;
use super::process::ProcessMetrics;
use crate::decision::{
    Decision, Hook, InterceptorOutcome, OutputStream, Severity, SubmissionStatus, VerdictSource,
};
use definitions::{
    AUDIT_DROPPED, AUDIT_RECORDS, AUDIT_SAMPLED_OUT, AUTH_FAILURES, AUTH_RELOADS, BUILD_INFO, CACHE_REQUESTS,
    CERTIFICATE_END, DEFINITIONS, Definition, INCIDENTS, INCIDENTS_LOST, INTERCEPTOR_RUNS, Kind,
    LLM_DURATION, LLM_REQUESTS, LLM_TOKENS, LONG_DECISIONS, MONITOR_BYTES, MONITOR_STREAMS, PII_EXCUSED,
    POLICY_RELOADS, RATE_LIMITED, REQUEST_DURATION, REQUESTS, REVIEW_DURATION, REVIEW_QUEUE_AGE,
    SCANNED_BYTES, SECONDS_BUCKETS, SHED, STORE_UP, SUBMISSIONS, SUBMISSIONS_MOVED, VERDICT_BUCKETS,
    VERDICT_DURATION, describe,
};
use handle::LlmCost;
use series::{InterceptorSeries, PluginSeries, counter, findings_counter, gauge, histogram};

pub use handle::MetricsHandle;

/// How often the caller of `install` runs the upkeep.
pub const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Label value for whatever was not declared.
const OTHER: &str = "other";

/// Label value of `interceptor` for those added by API, whose ids anybody with the admin role makes up.
const API: &str = "api";

/// Label value of `decision` for a request that got none.
const NO_DECISION: &str = "NONE";

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
