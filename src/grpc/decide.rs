//! One CheckMessages request to its answer: engine, then exactly one event and one audit record.
//!
//! Shared by the unary call and the stream, so that the two cannot differ.

use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use jiff::Timestamp;
use prost::Message as _;
use uuid::Uuid;

use super::audited::audited;
use super::server::Shared;
use super::{Identity, RequestError, convert, remember};
use crate::audit::AuditRecord;
use crate::decision::{Decision, Finding};
use crate::messages::{CheckOutcome, CheckRequest};
use crate::pb::v1;
use crate::policy::{AuditQuery, Snapshot};
use crate::telemetry::{
    Cache, CacheLookedUp, Code, Metrics, PersonalDataExcused, PluginRan, RequestDecided, RequestRefused, Rpc,
};

/// Judges one request, which came at `came`. Counts, logs and records what came of it, a refusal included.
///
/// # Errors
/// Why there is no decision.
pub(super) async fn decide(
    shared: &Shared,
    rpc: Rpc,
    identity: &Identity,
    deadline: Option<Instant>,
    came: Instant,
    request: v1::CheckMessagesRequest,
) -> Result<v1::CheckMessagesResponse, RequestError> {
    let judging = judge(shared, rpc, identity, deadline, came, request);
    let judged = std::panic::AssertUnwindSafe(judging).catch_unwind().await;
    let result = judged.unwrap_or_else(|_| {
        // The panic itself is in the log already; the caller must not take silence for safety.
        Err(RequestError::Internal)
    });
    if let Err(error) = &result {
        refuse(shared, rpc, error);
    }
    result
}

/// Counts and logs a refusal.
pub(super) fn refuse(shared: &Shared, rpc: Rpc, error: &RequestError) {
    tell_refused(&shared.metrics, rpc, error);
}

/// Counts and logs a refusal where there is no server.
pub(super) fn tell_refused(metrics: &Metrics, rpc: Rpc, error: &RequestError) {
    let code = Code::of_number(error.code() as i32);
    RequestRefused { rpc, code, field: error.field_path() }.emit(metrics);
}

async fn judge(
    shared: &Shared,
    rpc: Rpc,
    identity: &Identity,
    deadline: Option<Instant>,
    came: Instant,
    mut request: v1::CheckMessagesRequest,
) -> Result<v1::CheckMessagesResponse, RequestError> {
    let found = request.encoded_len();
    if found > shared.request_bytes_max {
        return Err(RequestError::TooLarge {
            what: "the request",
            found: found as u64,
            limit: shared.request_bytes_max as u64,
            setting: "server.request_bytes_max",
        });
    }
    let snapshot = shared.live.snapshot().ok_or(RequestError::NotServing)?;
    identity.settle(snapshot.policies(), "context.tenant", &mut request.context, &mut request.policy)?;
    let context = request.context.as_ref();
    let decision_id = Uuid::now_v7().to_string();
    let (outcome, seen) = {
        let messages = convert::conversation(&request)?;
        let check = CheckRequest {
            messages: &messages,
            policy: &request.policy,
            caller_roles: identity.roles,
            tenant: context.map_or("", |c| &c.tenant),
            plugins: &request.plugins,
            allow_list: convert::allow_list(&request.allow_list)?,
            countries: convert::countries(&request.countries)?,
            direction: convert::direction(request.direction)?,
            encoding: convert::offset_encoding(request.offset_encoding)?,
            redact: request.redact,
            reveal: request.reveal_matches,
            deadline,
            decision_id: &decision_id,
            sent: Some(&request),
        };
        let outcome = shared.engine.check(&snapshot, check).await?;
        let seen = shared.recent.is_on().then(|| remember::seen(&snapshot, &messages, &outcome));
        (outcome, seen)
    };
    let (id, revision) = (&*decision_id, snapshot.revision());
    let event = Event { rpc, identity, context, decision_id: id, revision, snapshot: &snapshot, came };
    event.emit(shared, &outcome);
    let record = event.record(&outcome, &[], came.elapsed());
    remember::check(shared, identity, &snapshot, &record, &outcome, seen);
    let messages = request.redact.then_some(request.messages);
    Ok(convert::response(outcome, messages, decision_id, snapshot.revision()))
}

/// Everything that is told about one decision.
struct Event<'a> {
    rpc: Rpc,
    identity: &'a Identity,
    context: Option<&'a v1::CallContext>,
    decision_id: &'a str,
    revision: &'a Arc<str>,
    snapshot: &'a Snapshot,
    came: Instant,
}

impl Event<'_> {
    fn emit(&self, shared: &Shared, outcome: &CheckOutcome) {
        let elapsed = self.came.elapsed();
        let findings: Vec<&Finding> = outcome.reported.iter().map(|r| &r.finding).collect();
        let would_block = would_block(outcome);
        for (plugin, elapsed) in &outcome.ran {
            PluginRan { plugin, elapsed: *elapsed }.emit(&shared.metrics);
        }
        CacheLookedUp { cache: Cache::Messages, hits: outcome.cache_hits, misses: outcome.cache_misses }
            .emit(&shared.metrics);
        PersonalDataExcused { by_policy: outcome.excused.by_policy, by_request: outcome.excused.by_request }
            .emit(&shared.metrics);
        RequestDecided {
            rpc: self.rpc,
            decision: outcome.verdict.decision,
            elapsed,
            decision_id: self.decision_id,
            policy: outcome.policy.name(),
            policy_revision: self.revision,
            risk_level: outcome.verdict.risk_level,
            findings: &findings,
            unjudged: &outcome.unjudged,
            would_block: &would_block,
            scanned_bytes: outcome.bytes as u64,
        }
        .emit(&shared.metrics);
        let keep = match outcome.verdict.decision {
            Decision::Allow => {
                let agent = self.context.map_or("", |context| context.agent_id.as_str());
                outcome.policy.sample_allow(&AuditQuery { rpc: self.rpc.as_str(), tool: "", agent })
            }
            _ => 1.0,
        };
        shared.audit.record_sampled(self.decision_id, keep, || self.record(outcome, &findings, elapsed));
    }

    fn record<'r>(
        &'r self,
        outcome: &'r CheckOutcome,
        findings: &'r [&'r Finding],
        elapsed: std::time::Duration,
    ) -> AuditRecord<'r> {
        AuditRecord {
            time: Timestamp::now(),
            decision_id: self.decision_id,
            policy: outcome.policy.name(),
            policy_revision: self.revision,
            rpc: self.rpc.as_str(),
            decision: outcome.verdict.decision,
            risk_level: outcome.verdict.risk_level,
            risk_score: outcome.verdict.risk_score,
            caller: audited(self.identity, self.context, self.snapshot.scanner()),
            findings,
            findings_total: outcome.findings_total,
            unjudged: &outcome.unjudged,
            interception: None,
            incident: None,
            bundle: None,
            elapsed_us: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

/// Plugins that would have blocked, had they not been in shadow; each once.
fn would_block(outcome: &CheckOutcome) -> Vec<&str> {
    if !outcome.verdict.would_block {
        return Vec::new();
    }
    let found = outcome
        .reported
        .iter()
        .map(|r| &r.finding)
        .filter(|f| f.shadow && !f.suppressed && outcome.policy.decide_finding(f) == Decision::Block)
        .map(|f| &*f.plugin);
    let failed = outcome
        .unjudged
        .iter()
        .filter(|u| u.shadow && u.fail_mode.decision() == Decision::Block)
        .map(|u| &*u.plugin);
    let mut plugins: Vec<&str> = found.chain(failed).collect();
    plugins.sort_unstable();
    plugins.dedup();
    plugins
}
