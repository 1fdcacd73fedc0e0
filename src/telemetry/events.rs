//! What can happen, one struct per event. `emit` does the counting and the log line together.
//!
//! Architecture invariant: no field holds text of a caller. What a caller wrote is in its own logs; ours go to people
//! and systems that may not see it.

use std::fmt::Display;
use std::time::Duration;

use tracing::{debug, error, info, warn};

use super::labels::{
    AuthReason, Cache, CacheOutcome, Certificate, Code, ReloadOutcome, ReviewStage, Rpc, ShedReason,
};
use super::metrics::Metrics;
use crate::decision::{
    Decision, Finding, Hook, Incident, IncidentAction, InterceptorOutcome, Reason, RiskLevel,
    SubmissionStatus, Unjudged, VerdictKind, VerdictSource,
};

/// What the stream monitor itself is called where plugins are counted.
pub const MONITOR: &str = "monitor";

/// A request got its decision.
#[derive(Clone, Debug)]
pub struct RequestDecided<'a> {
    /// Which RPC.
    pub rpc: Rpc,
    /// The decision in the answer.
    pub decision: Decision,
    /// From the call taken to the answer ready, the wait for a processor included.
    pub elapsed: Duration,
    /// Id of the decision, as the caller got it.
    pub decision_id: &'a str,
    /// Name of the policy that decided; one that exists, never what a caller asked for in vain.
    pub policy: &'a str,
    /// Revision of that policy.
    pub policy_revision: &'a str,
    /// Risk as a word.
    pub risk_level: RiskLevel,
    /// Everything that was reported.
    pub findings: &'a [&'a Finding],
    /// Every check that did not run to its end.
    pub unjudged: &'a [Unjudged],
    /// Plugins that shadow only, and would have made this BLOCK; each once.
    pub would_block: &'a [&'a str],
    /// Bytes of text that were scanned, in UTF-8.
    pub scanned_bytes: u64,
}

impl RequestDecided<'_> {
    /// Counts the request, its findings and its unjudged checks; logs ALLOW at debug, everything else at info.
    pub fn emit(self, metrics: &Metrics) {
        metrics.decided(self.rpc, self.decision).increment(1);
        metrics.request_duration(self.rpc).record(self.elapsed);
        metrics.scanned_bytes(self.rpc).increment(self.scanned_bytes);
        for finding in self.findings {
            metrics.count_finding(&finding.plugin, finding.category.as_str(), finding.severity);
        }
        for source in self.would_block {
            metrics.with_plugin(source, |series| series.would_block.increment(1));
        }
        count_unjudged(self.unjudged, metrics);
        self.log();
    }

    fn log(&self) {
        // The level of a callsite is fixed when it is compiled, hence two of them.
        macro_rules! line {
            ($level:ident) => {
                $level!(
                    rpc = self.rpc.as_str(),
                    decision = self.decision.as_str(),
                    risk_level = self.risk_level.as_str(),
                    decision_id = self.decision_id,
                    policy = self.policy,
                    policy_revision = self.policy_revision,
                    findings = self.findings.len(),
                    unjudged = self.unjudged.len(),
                    elapsed_us = micros(self.elapsed),
                    "request decided"
                )
            };
        }
        match self.decision {
            Decision::Allow => line!(debug),
            Decision::Warn | Decision::Ask | Decision::Block => line!(info),
        }
    }
}

/// A request was refused with a gRPC error: there is no decision.
#[derive(Clone, Copy, Debug)]
pub struct RequestRefused<'a> {
    /// Which RPC.
    pub rpc: Rpc,
    /// The status code that the caller got.
    pub code: Code,
    /// Path of the offending field as in the contract, such as `messages[0].role`; empty when it is not about one.
    pub field: &'a str,
}

impl RequestRefused<'_> {
    /// Counts the refusal. Logs our own faults at error, the caller's at info, at most one line a second.
    pub fn emit(self, metrics: &Metrics) {
        metrics.refused(self.rpc, self.code).increment(1);
        let (rpc, code, field) = (self.rpc.as_str(), self.code.as_str(), self.field);
        if matches!(self.code, Code::Internal | Code::Unknown | Code::DataLoss) {
            error!(rpc, code, field, "request failed");
        } else if let Some(held_back) = metrics.lines.refused.pass() {
            info!(rpc, code, field, held_back, "request refused");
        }
    }
}

/// A call was refused for want of credentials or of a role.
#[derive(Clone, Copy, Debug)]
pub struct CallerRefused {
    /// Why.
    pub reason: AuthReason,
}

impl CallerRefused {
    /// Counts the refusal; logs at info, at most one line a second, and nothing that the caller sent.
    pub fn emit(self, metrics: &Metrics) {
        metrics.auth_failures(self.reason).increment(1);
        if let Some(held_back) = metrics.lines.auth.pass() {
            info!(reason = self.reason.as_str(), held_back, "caller refused");
        }
    }
}

/// An identity called too often; the call was refused.
#[derive(Clone, Copy, Debug)]
pub struct RateLimited<'a> {
    /// Name of the identity, as its credential has it.
    pub name: &'a str,
    /// Its tenant.
    pub tenant: &'a str,
}

impl RateLimited<'_> {
    /// Counts the refusal; logs at warn, at most one line a second.
    pub fn emit(self, metrics: &Metrics) {
        metrics.rate_limited().increment(1);
        if let Some(held_back) = metrics.lines.rate.pass() {
            warn!(caller = self.name, tenant = self.tenant, held_back, "calls too often, refused");
        }
    }
}

/// Certificates of the listener are in force.
#[derive(Clone, Copy, Debug)]
pub struct CertificatesLoaded {
    /// Which.
    pub certificate: Certificate,
    /// When the first of them ends, in seconds since 1970.
    pub not_after: i64,
}

impl CertificatesLoaded {
    /// Shows when they end; logs at info, at warn when they have ended already.
    pub fn emit(self, metrics: &Metrics) {
        metrics.certificate_end(self.certificate).set(self.not_after as f64);
        let (certificate, not_after) = (self.certificate.as_str(), self.not_after);
        if jiff::Timestamp::now().as_second() > not_after {
            warn!(certificate, not_after, "a certificate has ended, clients will refuse it");
        } else {
            info!(certificate, not_after, "certificate loaded");
        }
    }
}

/// Changed tokens, keys or certificates are in force.
#[derive(Clone, Copy, Debug)]
pub struct AuthReloaded {
    /// What changed.
    pub what: &'static str,
}

impl AuthReloaded {
    /// Counts the reload; logs at info.
    pub fn emit(self, metrics: &Metrics) {
        metrics.auth_reloads(ReloadOutcome::Applied).increment(1);
        info!(what = self.what, "credentials reloaded");
    }
}

/// Changed tokens, keys or certificates cannot be used; the last good ones stay in force.
#[derive(Clone, Copy, Debug)]
pub struct AuthRejected<'a> {
    /// What changed.
    pub what: &'static str,
    /// What is wrong; nothing secret.
    pub problem: &'a str,
}

impl AuthRejected<'_> {
    /// Counts the rejection; logs at error.
    pub fn emit(self, metrics: &Metrics) {
        metrics.auth_reloads(ReloadOutcome::Rejected).increment(1);
        error!(
            what = self.what,
            problem = self.problem,
            "credentials rejected, the last good ones stay in force"
        );
    }
}

/// More requests were under way or waited than may; this one was answered UNAVAILABLE at once.
#[derive(Clone, Copy, Debug)]
pub struct OverloadShed {
    /// Which RPC.
    pub rpc: Rpc,
    /// What there is too much of.
    pub reason: ShedReason,
}

impl OverloadShed {
    /// Counts the refusal; logs at warn, at most one line a second.
    pub fn emit(self, metrics: &Metrics) {
        metrics.refused(self.rpc, Code::Unavailable).increment(1);
        metrics.shed(self.reason).increment(1);
        if let Some(held_back) = metrics.lines.shed.pass() {
            let (rpc, reason) = (self.rpc.as_str(), self.reason.as_str());
            warn!(rpc, reason, held_back, "overloaded, request shed");
        }
    }
}

/// Personal data was found and excused by an allow-list.
#[derive(Clone, Copy, Debug)]
pub struct PersonalDataExcused {
    /// Findings that the list of the policy excused.
    pub by_policy: u64,
    /// Findings that the list of the request alone excused.
    pub by_request: u64,
}

impl PersonalDataExcused {
    /// Counts them; no log line.
    pub fn emit(self, metrics: &Metrics) {
        let [policy, request] = &metrics.pii_excused;
        policy.increment(self.by_policy);
        request.increment(self.by_request);
    }
}

/// A check did not run to its end and the decision went on without it. `RequestDecided` emits it.
#[derive(Clone, Copy, Debug)]
pub struct CheckFailedOpen<'a> {
    /// Which plugin.
    pub plugin: &'a str,
    /// Why it did not run to its end.
    pub reason: Reason,
}

impl CheckFailedOpen<'_> {
    /// Counts it; logs at warn, at most one line a second.
    pub fn emit(self, metrics: &Metrics) {
        metrics.with_plugin(self.plugin, |series| series.fail_open.increment(1));
        if let Some(held_back) = metrics.lines.fail_open.pass() {
            warn!(plugin = self.plugin, reason = self.reason.as_str(), held_back, "check failed open");
        }
    }
}

/// A plugin ran for one request, to its end or not.
#[derive(Clone, Copy, Debug)]
pub struct PluginRan<'a> {
    /// Which plugin.
    pub plugin: &'a str,
    /// How long it took.
    pub elapsed: Duration,
}

impl PluginRan<'_> {
    /// Records the time; no log line.
    pub fn emit(self, metrics: &Metrics) {
        metrics.with_plugin(self.plugin, |series| series.duration.record(self.elapsed));
    }
}

/// An interceptor ran in one call, to its end or not, or was skipped because another one had blocked.
#[derive(Clone, Copy, Debug)]
pub struct InterceptorRan<'a> {
    /// Its id. One that was not declared is counted as `api`.
    pub interceptor: &'a str,
    /// The hook it stands on.
    pub hook: Hook,
    /// What it did, or in shadow would have done.
    pub outcome: InterceptorOutcome,
    /// Whether it only shadows.
    pub shadow: bool,
    /// How long it took.
    pub elapsed: Duration,
    /// Id of the decision, as the caller got it.
    pub decision_id: &'a str,
    /// One line for a person; masked.
    pub summary: &'a str,
}

impl InterceptorRan<'_> {
    /// Counts the run and its time. Logs at info what it stopped, changed or failed at; a pass is not logged.
    pub fn emit(self, metrics: &Metrics) {
        metrics.count_interceptor(self.interceptor, self.hook, self.outcome, self.elapsed);
        if matches!(self.outcome, InterceptorOutcome::Passed | InterceptorOutcome::Skipped) {
            return;
        }
        info!(
            interceptor = self.interceptor,
            hook = self.hook.as_str(),
            outcome = self.outcome.as_str(),
            shadow = self.shadow,
            decision_id = self.decision_id,
            elapsed_us = micros(self.elapsed),
            summary = self.summary,
            "interceptor"
        );
    }
}

/// Somebody looked into a cache.
#[derive(Clone, Copy, Debug)]
pub struct CacheLookedUp {
    /// Which cache.
    pub cache: Cache,
    /// How many look-ups found what they looked for.
    pub hits: u64,
    /// How many did not.
    pub misses: u64,
}

impl CacheLookedUp {
    /// Counts the look-ups; no log line.
    pub fn emit(self, metrics: &Metrics) {
        metrics.cache_requests(self.cache, CacheOutcome::Hit).increment(self.hits);
        metrics.cache_requests(self.cache, CacheOutcome::Miss).increment(self.misses);
    }
}

/// A model was asked.
#[derive(Clone, Copy, Debug)]
pub struct LlmAsked<'a> {
    /// The kind of provider.
    pub backend: &'static str,
    /// The model of the settings.
    pub model: &'a str,
    /// Who asked.
    pub purpose: &'static str,
    /// What came of it, from the bounded set of the judges.
    pub outcome: &'static str,
    /// Whether there is an answer.
    pub is_answered: bool,
    /// From the question to its end.
    pub elapsed: Duration,
    /// Calls made.
    pub attempts: u32,
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Tokens that it wrote.
    pub output_tokens: u64,
    /// What that cost, in US dollars.
    pub cost_usd: f64,
}

impl LlmAsked<'_> {
    /// Counts the question, its time, tokens and cost. Logs answers at debug, the rest at warn, at most one line a
    /// second.
    pub fn emit(self, metrics: &Metrics) {
        metrics.count_llm(self.backend, self.outcome, self.elapsed);
        metrics.count_llm_tokens(self.backend, self.input_tokens, self.output_tokens, self.cost_usd);
        macro_rules! line {
            ($level:ident, $held_back:expr) => {
                $level!(
                    backend = self.backend,
                    model = self.model,
                    purpose = self.purpose,
                    outcome = self.outcome,
                    attempts = self.attempts,
                    input_tokens = self.input_tokens,
                    output_tokens = self.output_tokens,
                    elapsed_ms = self.elapsed.as_millis() as u64,
                    held_back = $held_back,
                    "model asked"
                )
            };
        }
        if self.is_answered {
            line!(debug, 0_u64);
        } else if let Some(held_back) = metrics.lines.llm.pass() {
            line!(warn, held_back);
        }
    }
}

/// A first policy is in force, at the start. Reloads are counted apart.
#[derive(Clone, Copy, Debug)]
pub struct PolicyLoaded<'a> {
    /// Its revision.
    pub revision: &'a str,
}

impl PolicyLoaded<'_> {
    /// Shows the revision in `portcullis_policy_info`; logs at info.
    pub fn emit(self, metrics: &Metrics) {
        metrics.set_policy_revision(self.revision);
        info!(policy_revision = self.revision, "policy loaded");
    }
}

/// A changed policy is in force.
#[derive(Clone, Copy, Debug)]
pub struct PolicyReloaded<'a> {
    /// Its revision.
    pub revision: &'a str,
}

impl PolicyReloaded<'_> {
    /// Counts the reload and shows the revision in `portcullis_policy_info`; logs at info.
    pub fn emit(self, metrics: &Metrics) {
        metrics.policy_reloads(ReloadOutcome::Applied).increment(1);
        metrics.set_policy_revision(self.revision);
        info!(policy_revision = self.revision, "policy reloaded");
    }
}

/// A changed policy has problems; the last good one stays in force.
#[derive(Clone, Copy, Debug)]
pub struct PolicyRejected<'a, P> {
    /// Revision of the policy that stays; empty when there is none yet.
    pub kept_revision: &'a str,
    /// What is wrong, with file and line.
    pub problems: &'a [P],
}

impl<P: Display> PolicyRejected<'_, P> {
    /// Counts the rejection; logs every problem at error, up to a limit, and how many there are.
    pub fn emit(self, metrics: &Metrics) {
        /// A broken generator can make thousands; the first ones tell what is wrong with it.
        const LINES_MAX: usize = 20;
        metrics.policy_reloads(ReloadOutcome::Rejected).increment(1);
        for problem in self.problems.iter().take(LINES_MAX) {
            error!(problem = %problem, "policy problem");
        }
        let (kept_revision, problems) = (self.kept_revision, self.problems.len());
        if kept_revision.is_empty() {
            error!(
                problems,
                "policy rejected, and none is in force: every call is refused until it is corrected"
            );
        } else {
            error!(kept_revision, problems, "policy rejected, the last good one stays in force");
        }
    }
}

/// Audit records were lost.
#[derive(Clone, Copy)]
pub struct AuditDropped<'a> {
    /// How many.
    pub count: u64,
    /// Why, for a person: `buffer full`, or the error of the sink.
    pub cause: &'a dyn Display,
}

impl AuditDropped<'_> {
    /// Counts the records; logs at error, at most one line a second.
    pub fn emit(self, metrics: &Metrics) {
        metrics.audit_dropped().increment(self.count);
        if let Some(held_back) = metrics.lines.audit_dropped.pass() {
            error!(count = self.count, cause = %self.cause, held_back, "audit records dropped");
        }
    }
}

/// A rule fired in the output of a watched process, and what came of it is known.
#[derive(Clone, Copy, Debug)]
pub struct IncidentDecided<'a> {
    /// As it stands now.
    pub incident: &'a Incident,
}

impl IncidentDecided<'_> {
    /// Counts it, and a KILL on trial as what would have blocked; logs at warn. Neither the session nor the text is told: the caller chose both.
    pub fn emit(self, metrics: &Metrics) {
        let Incident { category, verdict, source, action, .. } = self.incident;
        let verdict = verdict.map_or("NONE", VerdictKind::as_str);
        let action = action.map_or("none", IncidentAction::as_str);
        metrics.count_incident(category.as_str(), verdict, action);
        if self.incident.shadow && self.incident.verdict == Some(VerdictKind::Kill) {
            metrics.with_plugin(MONITOR, |series| series.would_block.increment(1));
        }
        warn!(
            incident = &*self.incident.id,
            decision_id = &*self.incident.decision_id,
            rule_id = &*self.incident.rule_id,
            category = category.as_str(),
            severity = self.incident.severity.as_str(),
            stream = self.incident.stream.as_str(),
            offset = self.incident.offset,
            verdict,
            source = source.map_or("none", VerdictSource::as_str),
            action,
            shadow = self.incident.shadow,
            latency_us = self.incident.latency.map(micros),
            policy_revision = &*self.incident.policy_revision,
            "incident"
        );
    }
}

/// A session of the stream monitor has ended well.
#[derive(Clone, Copy, Debug)]
pub struct SessionEnded<'a> {
    /// The strongest verdict, as a decision.
    pub decision: Decision,
    /// Chunks that came.
    pub chunks: u64,
    /// Bytes that were scanned.
    pub bytes: u64,
    /// Incidents in all.
    pub incidents: u64,
    /// Every check that did not run to its end.
    pub unjudged: &'a [Unjudged],
    /// How often each of them happened, in the same order.
    pub unjudged_times: &'a [u64],
    /// How long it was open.
    pub elapsed: Duration,
}

impl SessionEnded<'_> {
    /// Counts the session as one decided request; logs at debug. Its length says nothing about our speed and is in no
    /// histogram.
    pub fn emit(self, metrics: &Metrics) {
        metrics.decided(Rpc::StreamMonitor, self.decision).increment(1);
        count_unjudged(self.unjudged, metrics);
        // Once each is counted.
        for (unjudged, times) in self.unjudged.iter().zip(self.unjudged_times) {
            let more = times.saturating_sub(1);
            metrics.with_plugin(&unjudged.plugin, |series| {
                series.unjudged(unjudged.reason).increment(more);
                if unjudged.failed_open() {
                    series.fail_open.increment(more);
                }
            });
        }
        debug!(
            decision = self.decision.as_str(),
            chunks = self.chunks,
            bytes = self.bytes,
            incidents = self.incidents,
            elapsed_us = micros(self.elapsed),
            "monitor session ended"
        );
    }
}

/// Incidents could not be written. With `lost` 0 it is tried again.
#[derive(Clone, Copy)]
pub struct IncidentsUnwritten<'a> {
    /// How many are lost for good.
    pub lost: u64,
    /// Why.
    pub cause: &'a dyn Display,
}

impl IncidentsUnwritten<'_> {
    /// Counts what is lost; logs at error, at most one line a second.
    pub fn emit(self, metrics: &Metrics) {
        metrics.incidents_lost().increment(self.lost);
        if let Some(held_back) = metrics.lines.store.pass() {
            error!(lost = self.lost, cause = %self.cause, held_back, "incidents not written");
        }
    }
}

/// A submission stands otherwise than before.
#[derive(Clone, Copy, Debug)]
pub struct SubmissionMoved {
    /// How it stands now.
    pub status: SubmissionStatus,
}

impl SubmissionMoved {
    /// Counts it; logs at debug. Which one it is stands in the audit events.
    pub fn emit(self, metrics: &Metrics) {
        metrics.submissions_moved(self.status).increment(1);
        debug!(status = self.status.as_str(), "submission moved");
    }
}

/// One stage of the review of a bundle has ended, whatever came of it.
#[derive(Clone, Copy, Debug)]
pub struct ReviewStageRan {
    /// Which one.
    pub stage: ReviewStage,
    /// How long it took.
    pub elapsed: Duration,
}

impl ReviewStageRan {
    /// Records the time; logs at debug.
    pub fn emit(self, metrics: &Metrics) {
        metrics.review_duration(self.stage).record(self.elapsed);
        debug!(stage = self.stage.as_str(), elapsed_us = micros(self.elapsed), "stage of a review ended");
    }
}

fn count_unjudged(unjudged: &[Unjudged], metrics: &Metrics) {
    for unjudged in unjudged {
        metrics.with_plugin(&unjudged.plugin, |series| series.unjudged(unjudged.reason).increment(1));
        if unjudged.failed_open() {
            CheckFailedOpen { plugin: &unjudged.plugin, reason: unjudged.reason }.emit(metrics);
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
