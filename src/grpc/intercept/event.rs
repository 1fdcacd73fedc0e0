//! What is told about one interception: counts, log lines, exactly one audit record.

use std::time::Instant;

use jiff::Timestamp;

use crate::audit::{AuditRecord, Interception, InterceptorRun, masked_name};
use crate::decision::{Decision, Finding, Hook, Mode};
use crate::grpc::audited::audited;
use crate::grpc::server::Shared;
use crate::grpc::{Identity, remember};
use crate::pb::v1;
use crate::policy::{AuditQuery, Snapshot};
use crate::telemetry::{InterceptorRan, RequestDecided, Rpc};
use crate::tools::Outcome;

/// Everything that an outcome does not know of itself.
pub(super) struct About<'a> {
    pub rpc: Rpc,
    pub hook: Hook,
    /// The tool as the caller calls it; empty on hooks without one.
    pub tool_sent: &'a str,
    pub tool_call_id: &'a str,
    pub dry_run: bool,
    pub identity: &'a Identity,
    pub context: Option<&'a v1::CallContext>,
    pub decision_id: &'a str,
    pub revision: &'a str,
    pub started: Instant,
    /// What was judged, by path; none where nobody will remember it.
    pub texts: Vec<(&'static str, String)>,
    pub snapshot: &'a Snapshot,
}

/// Counts, logs and records one decision.
pub(super) fn emit(shared: &Shared, about: &About<'_>, outcome: &Outcome, mutated: bool) {
    let elapsed = about.started.elapsed();
    for ran in &outcome.ran {
        InterceptorRan {
            interceptor: &ran.interceptor.id,
            hook: about.hook,
            outcome: ran.outcome,
            shadow: ran.shadow,
            elapsed: ran.elapsed,
            decision_id: about.decision_id,
            summary: &ran.summary,
        }
        .emit(&shared.metrics);
    }
    let findings: Vec<&Finding> = outcome.reported.iter().map(|reported| &reported.finding).collect();
    let would_block = would_block(outcome);
    RequestDecided {
        rpc: about.rpc,
        decision: outcome.verdict.decision,
        elapsed,
        decision_id: about.decision_id,
        policy: outcome.policy.name(),
        policy_revision: about.revision,
        risk_level: outcome.verdict.risk_level,
        findings: &findings,
        unjudged: &outcome.unjudged,
        would_block: &would_block,
        scanned_bytes: outcome.bytes as u64,
    }
    .emit(&shared.metrics);
    let keep = match outcome.verdict.decision {
        // What was changed is worth a record, whatever share of the others is.
        Decision::Allow if !mutated && outcome.notes.is_empty() => {
            let agent = about.context.map_or("", |context| context.agent_id.as_str());
            outcome.policy.sample_allow(&AuditQuery { rpc: about.rpc.as_str(), tool: &outcome.tool, agent })
        }
        _ => 1.0,
    };
    let runs: Vec<InterceptorRun<'_>> = outcome
        .ran
        .iter()
        .filter(|ran| ran.is_told())
        .map(|ran| InterceptorRun {
            id: &ran.interceptor.id,
            outcome: ran.outcome,
            shadow: ran.shadow,
            summary: &ran.summary,
        })
        .collect();
    let notes: Vec<&str> = outcome.notes.iter().map(|(_, note)| note.as_str()).collect();
    let scanner = about.snapshot.scanner();
    let record = || AuditRecord {
        time: Timestamp::now(),
        decision_id: about.decision_id,
        policy: outcome.policy.name(),
        policy_revision: about.revision,
        rpc: about.rpc.as_str(),
        decision: outcome.verdict.decision,
        risk_level: outcome.verdict.risk_level,
        risk_score: outcome.verdict.risk_score,
        caller: audited(about.identity, about.context, scanner),
        findings: &findings,
        findings_total: findings.len(),
        unjudged: &outcome.unjudged,
        interception: Some(Interception {
            hook: about.hook,
            tool: masked_name(scanner, &outcome.tool),
            tool_call_id: masked_name(scanner, about.tool_call_id),
            dry_run: about.dry_run,
            mutated,
            interceptors: &runs,
            notes: &notes,
        }),
        incident: None,
        bundle: None,
        elapsed_us: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
    };
    shared.audit.record_sampled(about.decision_id, keep, record);
    if shared.recent.is_on() {
        let sent = remember::Sent { tool: about.tool_sent, texts: &about.texts };
        remember::interception(shared, about.identity, about.snapshot, &record(), outcome, &sent);
    }
}

/// The texts of a request by their paths, where they will be remembered.
pub(super) fn texts<const N: usize>(
    shared: &Shared,
    texts: [(&'static str, &str); N],
) -> Vec<(&'static str, String)> {
    let texts = texts.into_iter().filter(|(_, text)| shared.recent.is_on() && !text.is_empty());
    texts.map(|(path, text)| (path, text.to_owned())).collect()
}

/// Interceptors, and plugins that the policy keeps in shadow, that would have blocked; each once.
fn would_block(outcome: &Outcome) -> Vec<&str> {
    let found = outcome
        .reported
        .iter()
        .map(|reported| &reported.finding)
        .filter(|finding| finding.shadow && !finding.suppressed)
        .filter(|finding| outcome.policy.plugin_mode(&finding.plugin) == Mode::Shadow)
        .filter(|finding| outcome.policy.decide_finding(finding) == Decision::Block)
        .map(|finding| &*finding.plugin);
    let mut all: Vec<&str> = outcome.would_block.iter().map(|id| &**id).chain(found).collect();
    all.sort_unstable();
    all.dedup();
    all
}
