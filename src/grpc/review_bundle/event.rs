//! What is told about one upload: counts, a log line, exactly one audit record.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::RPC;
use super::header::Header;
use crate::audit::{AuditRecord, BundleLine, masked_name};
use crate::bundles::service::Reviewed;
use crate::decision::{
    BundleChecks, Category, CheckFinding, CheckStatus, Finding, RiskLevel, SpanRef, risk_score,
};
use crate::detect::Scanner;
use crate::grpc::audited::audited;
use crate::grpc::server::Shared;
use crate::grpc::{Identity, remember};
use crate::telemetry::RequestDecided;

/// Everything that a review does not know of itself.
pub(super) struct About<'a> {
    pub(super) identity: &'a Identity,
    pub(super) header: &'a Header,
    pub(super) decision_id: &'a str,
    pub(super) started: Instant,
    pub(super) scanner: &'a Scanner,
}

/// Counts, logs and records one upload.
pub(super) fn emit(shared: &Shared, about: &About<'_>, reviewed: &Reviewed) {
    let elapsed = about.started.elapsed();
    let found = findings(&reviewed.checks);
    let findings: Vec<&Finding> = found.iter().collect();
    let risk_score = risk_score(&found);
    let risk_level = RiskLevel::of(risk_score);
    let risk_score = risk_score.unwrap_or_default();
    let would_block: Vec<&str> = reviewed.would_block.iter().map(String::as_str).collect();
    RequestDecided {
        rpc: RPC,
        decision: reviewed.decision,
        elapsed,
        decision_id: about.decision_id,
        policy: &about.header.policy,
        policy_revision: &reviewed.policy_revision,
        risk_level,
        findings: &findings,
        unjudged: &reviewed.unjudged,
        would_block: &would_block,
        scanned_bytes: reviewed.coverage.iter().map(|file| file.bytes_scanned).sum(),
    }
    .emit(&shared.metrics);
    remember::bundle(shared, about.identity, &reviewed.checks);
    // What is kept of an upload is worth a record, whatever share of others is.
    let scanner = about.scanner;
    let record = || AuditRecord {
        time: Timestamp::now(),
        decision_id: about.decision_id,
        policy: &about.header.policy,
        policy_revision: &reviewed.policy_revision,
        rpc: RPC.as_str(),
        decision: reviewed.decision,
        risk_level,
        risk_score,
        caller: audited(about.identity, Some(&about.header.context), scanner),
        findings: &findings,
        findings_total: findings.len(),
        unjudged: &reviewed.unjudged,
        interception: None,
        incident: None,
        bundle: Some(BundleLine {
            submission_id: &reviewed.submission_id,
            entity_id: &reviewed.entity_id,
            submitter: masked_name(scanner, &about.header.submitter),
            kind: about.header.kind,
            status: reviewed.status,
            hold_reason: reviewed.hold_reason,
            bundle_sha256: &reviewed.bundle_sha256,
            file_size: reviewed.file_size,
            dry_run: about.header.is_dry_run,
        }),
        elapsed_us: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
    };
    shared.audit.record_sampled(about.decision_id, 1.0, record);
    if shared.recent.is_on() {
        let id = if about.header.is_dry_run { "" } else { &reviewed.submission_id };
        let bundle = (id, &*reviewed.name);
        remember::review(shared, about.identity, &record(), &reviewed.checks, bundle);
    }
}

/// What the checks found, in the words of all RPCs. Paths are text of the uploader and stay out of records. What does
/// not block has no part in the risk.
fn findings(checks: &BundleChecks) -> Vec<Finding> {
    let version: Arc<str> = env!("CARGO_PKG_VERSION").into();
    let (nowhere, nothing): (Arc<str>, Arc<str>) = ("".into(), "".into());
    let mut findings = Vec::new();
    for (plugin, check) in [
        ("archive", &checks.archive),
        ("manifest", &checks.manifest),
        ("static_security", &checks.static_security),
        ("quality", &checks.quality),
    ] {
        let plugin: Arc<str> = format!("bundles.{plugin}").into();
        let one = |finding: &CheckFinding| Finding {
            plugin: plugin.clone(),
            plugin_version: version.clone(),
            rule_id: finding.rule_id.as_str().into(),
            category: Category::new(&finding.category),
            severity: finding.severity,
            score: finding.severity.score(),
            description: nothing.clone(),
            recommendation: nothing.clone(),
            span: SpanRef { message_index: 0, path: nowhere.clone(), start: 0, end: 0 },
            evasions: Vec::new(),
            shadow: finding.shadow || check.status != CheckStatus::Fail,
            suppressed: finding.suppressed,
        };
        findings.extend(check.findings.iter().map(one));
    }
    findings
}
