//! Decisions for people: what is remembered of one, and what its rules found, beside its audit record and out of it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::Identity;
use super::explain::{is_of_role, sentence};
use super::server::Shared;
use crate::audit::{
    AuditRecord, MaskedText, REMEMBERED_FINDINGS_MAX, Recent, Remembered, Run, Weighed, masked_name,
};
use crate::bundles;
use crate::bundles::service::{Verdict, decision_of};
use crate::decision::{
    BundleChecks, Category, CheckFinding, CheckResult, CheckStatus, Decision, Finding, HoldReason, RiskLevel,
    Severity, SpanRef, SubmissionStatus, Unjudged, Weight, risk_score, worst_first,
};
use crate::detect::concepts::{Explanation, RULE_ID};
use crate::detect::{INJECTION, Request};
use crate::messages::{CheckOutcome, Message};
use crate::policy::{Live, Policy, Snapshot};
use crate::rules::Budget;
use crate::telemetry::Rpc;
use crate::tools::Outcome;

/// Texts that are kept of one decision.
const TEXTS_MAX: usize = 50;
/// Concepts that are told of one text.
const CONCEPTS_MAX: usize = 12;

/// What is remembered of the texts of a conversation.
#[derive(Default)]
pub(super) struct Seen {
    findings: Vec<Weighed>,
    texts: Vec<MaskedText>,
    concepts: Vec<(String, f64)>,
    /// Texts beyond those that are kept.
    left_out: usize,
}

/// Findings as they are remembered: first what decided. Indices of masked texts count in this order.
fn ordered<'f>(policy: &Policy, findings: impl Iterator<Item = &'f Finding>) -> Vec<&'f Finding> {
    let mut findings: Vec<&Finding> = findings.collect();
    worst_first(&mut findings, |finding| Weight::of(finding, alone(policy, finding)));
    findings
}

/// What a finding decides by itself under the thresholds of its category.
fn alone(policy: &Policy, finding: &Finding) -> Decision {
    if finding.is_effective() { policy.decide_finding(finding) } else { Decision::Allow }
}

/// The first of those findings, with what the policy makes of each.
fn weighed_findings(
    policy: &Policy,
    ordered: &[&Finding],
    is_of_role: impl Fn(&Finding) -> bool,
) -> Vec<Weighed> {
    let one = |finding: &&Finding| Weighed {
        finding: (*finding).clone(),
        decides: alone(policy, finding),
        thresholds: Some(policy.thresholds_for(&finding.category)),
        is_of_role: finding.shadow && is_of_role(finding),
    };
    ordered.iter().take(REMEMBERED_FINDINGS_MAX).map(one).collect()
}

/// Masks the texts in which something was found, and names the concepts that were weighed.
pub(super) fn seen(snapshot: &Snapshot, messages: &[Message<'_>], outcome: &CheckOutcome) -> Seen {
    let policy = &outcome.policy;
    let findings = ordered(policy, outcome.reported.iter().map(|reported| &reported.finding));
    let role = |finding: &Finding| messages.get(finding.span.message_index as usize).map(|one| one.role);
    let of_role = |finding: &Finding| {
        let of = |role| is_of_role(policy, role, &finding.plugin, &finding.rule_id, &finding.category);
        role(finding).is_some_and(of)
    };
    let mut seen = Seen { findings: weighed_findings(policy, &findings, of_role), ..Seen::default() };
    let mut found = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        for field in &message.fields {
            let path = field.path.to_pointer();
            let is_here =
                |finding: &&Finding| finding.span.message_index == index && *finding.span.path == *path;
            if let Some(rank) = findings.iter().position(is_here) {
                let has_concepts =
                    findings.iter().any(|finding| is_here(finding) && *finding.rule_id == *RULE_ID);
                found.push((rank, index, path, message, field, has_concepts));
            }
        }
    }
    seen.left_out = found.len().saturating_sub(TEXTS_MAX);
    if seen.left_out > 0 {
        // Those with the worst stay, in the order of the conversation.
        let mut ranks: Vec<usize> = found.iter().map(|(rank, ..)| *rank).collect();
        ranks.sort_unstable();
        let last = ranks.get(TEXTS_MAX - 1).copied().unwrap_or(usize::MAX);
        found.retain(|(rank, ..)| *rank <= last);
    }
    for (_, index, path, message, field, has_concepts) in found {
        if has_concepts {
            let scanner = snapshot.scanner();
            let request = Request {
                text: field.text,
                plugins: scanner.rules().plugin_bits([INJECTION]),
                role: Some(message.role),
                surface: Some(message.surface_of(field)),
            };
            // A budget without a limit is never spent.
            let explained = scanner.explain_concepts(request, &Budget::UNLIMITED).ok().flatten();
            seen.concepts.extend(explained.iter().flat_map(weighed));
        }
        let place = (index, path.to_string(), message.role.as_str());
        seen.texts.push(MaskedText::of(snapshot.scanner(), place, field.text, &findings));
    }
    seen
}

/// The concepts that the model weighed, and what each gave; the heaviest first.
pub(super) fn weighed(explained: &Explanation) -> Vec<(String, f64)> {
    let terms = explained.terms.iter().take(CONCEPTS_MAX);
    terms.map(|term| (term.feature.replace('_', " "), term.log_odds)).collect()
}

/// Remembers and counts a check of messages.
pub(super) fn check(
    shared: &Shared,
    identity: &Identity,
    snapshot: &Snapshot,
    record: &AuditRecord<'_>,
    outcome: &CheckOutcome,
    seen: Option<Seen>,
) {
    let findings = outcome.reported.iter().map(|reported| &reported.finding);
    shared.counts.count(identity.tenant(), found(&outcome.policy, findings.clone()));
    let Some(seen) = seen else { return };
    let found_alone = findings.clone().map(|finding| (&*finding.rule_id, alone(&outcome.policy, finding)));
    let why = why(record, &outcome.unjudged, found_alone);
    let ran = outcome.ran.iter().enumerate().map(|(at, (plugin, elapsed))| Run {
        id: plugin.clone(),
        outcome: "",
        summary: String::new(),
        decision: findings
            .clone()
            .filter(|finding| finding.plugin == *plugin && finding.is_effective())
            .map(|finding| outcome.policy.decide_finding(finding))
            .max()
            .unwrap_or_default(),
        shadow: outcome.policy.plugin_mode(plugin) == crate::decision::Mode::Shadow,
        elapsed: *elapsed,
        is_joint: at < outcome.joint,
    });
    let remembered = Remembered {
        why,
        findings: seen.findings,
        findings_total: outcome.findings_total,
        ran: ran.collect(),
        concepts: seen.concepts,
        texts: seen.texts,
        texts_left_out: seen.left_out,
        ..of_record(record, outcome.policy.name().clone(), snapshot.revision().clone())
    };
    shared.recent.remember(identity.tenant(), remembered);
}

/// Why the policy decided so. Where nothing was found and every check could judge, no words are kept: most decisions are such,
/// and pages say it.
fn why<'f>(
    record: &AuditRecord<'_>,
    unjudged: &[Unjudged],
    mut found: impl Iterator<Item = (&'f str, Decision)>,
) -> String {
    match (found.next(), counted(unjudged)) {
        (None, 0) => String::new(),
        (first, counted) => sentence(record.policy, record.decision, counted, first.into_iter().chain(found)),
    }
}

/// How many checks could not judge, and count as if they had found something.
fn counted(unjudged: &[Unjudged]) -> usize {
    unjudged.iter().filter(|one| !one.failed_open()).count()
}

/// What an interception was about, as it was sent.
pub(super) struct Sent<'s> {
    /// The tool as the caller calls it; empty on hooks without one.
    pub(super) tool: &'s str,
    /// What was judged, by path.
    pub(super) texts: &'s [(&'static str, String)],
}

/// Remembers and counts an interception.
pub(super) fn interception(
    shared: &Shared,
    identity: &Identity,
    snapshot: &Snapshot,
    record: &AuditRecord<'_>,
    outcome: &Outcome,
    sent: &Sent<'_>,
) {
    let policy = &outcome.policy;
    let findings = ordered(policy, outcome.reported.iter().map(|reported| &reported.finding));
    shared.counts.count(identity.tenant(), found(&outcome.policy, findings.iter().copied()));
    let ran = outcome.ran.iter().map(|ran| Run {
        id: ran.interceptor.id.clone(),
        outcome: ran.outcome.as_str(),
        summary: ran.summary.clone(),
        decision: if ran.shadow { Decision::Allow } else { ran.decision },
        shadow: ran.shadow,
        elapsed: ran.elapsed,
        is_joint: false,
    });
    let has = |path: &str| findings.iter().any(|finding| *finding.span.path == *path);
    let texts = sent.texts.iter().filter(|(path, _)| has(path));
    let texts_left_out = texts.clone().count().saturating_sub(TEXTS_MAX);
    let texts = texts
        .take(TEXTS_MAX)
        .map(|(path, text)| MaskedText::of(snapshot.scanner(), (0, (*path).to_owned(), ""), text, &findings));
    let why = match &*outcome.reason {
        "" => {
            let found_alone = findings.iter().map(|finding| (&*finding.rule_id, alone(policy, finding)));
            why(record, &outcome.unjudged, found_alone)
        }
        reason => format!("{} under policy `{}`: {}", record.decision, record.policy, masked(shared, reason)),
    };
    let remembered = Remembered {
        why,
        findings: weighed_findings(policy, &findings, |_| false),
        tool: masked_name(snapshot.scanner(), &outcome.tool).into_owned(),
        tool_sent: masked_name(snapshot.scanner(), sent.tool).into_owned(),
        ran: ran.collect(),
        texts: texts.collect(),
        texts_left_out,
        ..of_record(record, policy.name().clone(), snapshot.revision().clone())
    };
    shared.recent.remember(identity.tenant(), remembered);
}

/// Remembers a review of a bundle: how each check ended, and of each finding what it is and where. Records hold no text of
/// the uploader; here names of files are shown, masked.
pub(super) fn review(
    shared: &Shared,
    identity: &Identity,
    record: &AuditRecord<'_>,
    checks: &BundleChecks,
    (submission_id, name): (&str, &str),
) {
    let named = named_checks(checks);
    let ran = named.iter().map(|(name, check)| step(name, check.status.as_str(), String::new()));
    let failed = named.iter().filter(|(_, check)| check.status == CheckStatus::Fail).map(|(name, _)| *name);
    let standing = record.bundle.as_ref().map(|bundle| (bundle.status, bundle.hold_reason));
    let why = bundle_why(record.decision, record.policy, &failed.collect::<Vec<_>>(), standing);
    let told = named.iter().flat_map(|(_, check)| &check.findings);
    // Those of the record are the same, in the same order.
    let findings = record.findings.iter().zip(told).map(|(finding, told)| {
        let mut finding = (*finding).clone();
        finding.description = masked(shared, &told.reason).into();
        finding.span.path = masked(shared, &place_of(told)).into();
        finding
    });
    let remembered = Remembered {
        why,
        findings: by_severity(findings.collect()),
        ran: ran.collect(),
        submission_id: submission_id.to_owned(),
        bundle: masked(shared, name),
        ..of_record(record, record.policy.into(), record.policy_revision.into())
    };
    shared.recent.remember(identity.tenant(), remembered);
}

/// Findings about a bundle, of which severities decide: high and critical ones of a check that failed block.
fn by_severity(findings: Vec<Finding>) -> Vec<Weighed> {
    let decides = |finding: &Finding| match finding.severity {
        _ if !finding.is_effective() => Decision::Allow,
        Severity::High | Severity::Critical => Decision::Block,
        Severity::Low | Severity::Medium => Decision::Warn,
    };
    let mut findings: Vec<Weighed> = findings
        .into_iter()
        .map(|finding| Weighed { decides: decides(&finding), finding, thresholds: None, is_of_role: false })
        .collect();
    worst_first(&mut findings, |one| Weight::of(&one.finding, one.decides));
    findings.truncate(REMEMBERED_FINDINGS_MAX);
    findings
}

/// Why a bundle stands as it does, in one sentence.
pub(super) fn bundle_why(
    decision: Decision,
    policy: &str,
    failed: &[&str],
    standing: Option<(SubmissionStatus, HoldReason)>,
) -> String {
    let why: Cow<'_, str> = match (failed.is_empty(), standing) {
        (false, _) => format!("failed: {}", failed.join(", ")).into(),
        (true, Some((_, HoldReason::Coverage))) => "held, as not everything was scanned".into(),
        (true, Some((_, HoldReason::NoKey))) => "held, as no model has a key".into(),
        (true, Some((SubmissionStatus::PendingLlm, _))) => "no check failed; a model is to review it".into(),
        (true, Some((SubmissionStatus::ReviewError, _))) => "the review ended without a verdict".into(),
        (true, _) => "no check failed".into(),
    };
    format!("{decision} under policy `{policy}`: {why}")
}

/// A check of a bundle that ended.
fn step(id: &str, outcome: &'static str, summary: String) -> Run {
    Run {
        id: id.into(),
        outcome,
        summary,
        decision: Decision::Allow,
        shadow: false,
        elapsed: Duration::ZERO,
        is_joint: false,
    }
}

/// File and line of a finding about a bundle.
fn place_of(finding: &CheckFinding) -> String {
    match finding.line {
        0 => finding.file.clone(),
        line => format!("{}:{line}", finding.file),
    }
}

/// Remembers the verdict that a worker reached about a submission: a decision of its own, after that of the upload.
pub fn verdict(recent: &Recent, live: &Live, verdict: &Verdict<'_>) {
    let snapshot = live.snapshot();
    let masked = |text: &str| masked_under(snapshot.as_deref(), text);
    let version: Arc<str> = env!("CARGO_PKG_VERSION").into();
    let told = |plugin: &str, status: CheckStatus, found: &[CheckFinding]| -> Vec<Finding> {
        let one = |finding: &CheckFinding| Finding {
            plugin: plugin.into(),
            plugin_version: version.clone(),
            rule_id: masked(&finding.rule_id).into(),
            category: Category::new(&masked(&finding.category)),
            severity: finding.severity,
            score: finding.severity.score(),
            description: masked(&finding.reason).into(),
            recommendation: "".into(),
            span: SpanRef { message_index: 0, path: masked(&place_of(finding)).into(), start: 0, end: 0 },
            evasions: Vec::new(),
            shadow: finding.shadow || status != CheckStatus::Fail,
            suppressed: finding.suppressed,
        };
        found.iter().map(one).collect()
    };
    let (mut findings, mut ran, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (name, check) in verdict.checks.iter().flat_map(|checks| named_checks(checks)) {
        findings.extend(told(name, check.status, &check.findings));
        ran.push(step(name, check.status.as_str(), String::new()));
        failed.extend((check.status == CheckStatus::Fail).then_some(name));
    }
    if let Some(review) = verdict.review {
        findings.extend(told("review by a model", review.status, &review.findings));
        let said = if review.summary.is_empty() { &review.reason } else { &review.summary };
        ran.push(step("review by a model", review.status.as_str(), masked(said)));
        failed.extend((review.status == CheckStatus::Fail).then_some("review by a model"));
    }
    let submission = verdict.submission;
    let score = risk_score(&findings);
    let policy = match (&*submission.policy, &snapshot) {
        ("", Some(snapshot)) => snapshot.policies().default_policy().name().clone(),
        (name, _) => name.into(),
    };
    let decision = decision_of(submission.status);
    let standing = Some((submission.status, submission.hold_reason));
    let remembered = Remembered {
        time: submission.updated,
        decision_id: submission.decision_id.clone(),
        rpc: Rpc::ReviewBundle.as_str(),
        why: bundle_why(decision, &policy, &failed, standing),
        policy,
        policy_revision: submission.policy_revision.as_str().into(),
        decision,
        risk_level: RiskLevel::of(score),
        risk_score: score.unwrap_or_default(),
        agent_id: String::new(),
        session_key: String::new(),
        request_id: String::new(),
        tool: String::new(),
        tool_sent: String::new(),
        submission_id: submission.id.clone(),
        bundle: masked(&submission.name),
        findings_total: findings.len(),
        findings: by_severity(findings),
        unjudged: Vec::new(),
        ran,
        concepts: Vec::new(),
        texts: Vec::new(),
        texts_left_out: 0,
        elapsed: verdict.elapsed.try_into().unwrap_or_default(),
    };
    recent.remember(&submission.tenant, remembered);
}

/// The checks of a bundle by name.
fn named_checks(checks: &BundleChecks) -> [(&'static str, &CheckResult); 4] {
    [
        ("archive", &checks.archive),
        ("manifest", &checks.manifest),
        ("static security", &checks.static_security),
        ("quality", &checks.quality),
    ]
}

/// A text that a caller chose, with credentials and personal data replaced by what they are.
fn masked(shared: &Shared, text: &str) -> String {
    masked_under(shared.live.snapshot().as_deref(), text)
}

fn masked_under(snapshot: Option<&Snapshot>, text: &str) -> String {
    match snapshot {
        _ if text.is_empty() => String::new(),
        Some(snapshot) => bundles::mask(snapshot.scanner(), text),
        None => "[REDACTED]".to_owned(),
    }
}

/// Counts what the checks of a bundle found.
pub(super) fn bundle(shared: &Shared, identity: &Identity, checks: &BundleChecks) {
    let findings = named_checks(checks)
        .into_iter()
        .flat_map(|(_, check)| &check.findings)
        .filter(|finding| !finding.suppressed);
    let found = findings
        .map(|finding| (finding.rule_id.as_str(), finding.shadow && finding.severity >= Severity::High));
    shared.counts.count(identity.tenant(), found);
}

/// The rule of each finding, and whether it would have blocked, had it been enforced.
fn found<'f>(
    policy: &'f Arc<Policy>,
    findings: impl Iterator<Item = &'f Finding>,
) -> impl Iterator<Item = (&'f str, bool)> {
    findings.filter(|finding| !finding.suppressed).map(|finding| {
        (&*finding.rule_id, finding.shadow && policy.decide_finding(finding) == Decision::Block)
    })
}

/// What a record tells. Names of a policy and of its revision are those that everybody shares: hundreds of decisions are
/// remembered, and what each holds of its own is taken from memory that has long gone cold.
fn of_record(record: &AuditRecord<'_>, policy: Arc<str>, policy_revision: Arc<str>) -> Remembered {
    Remembered {
        time: record.time,
        decision_id: record.decision_id.to_owned(),
        rpc: record.rpc,
        policy,
        policy_revision,
        decision: record.decision,
        risk_level: record.risk_level,
        risk_score: record.risk_score,
        agent_id: record.caller.agent_id.to_string(),
        session_key: record.caller.session_key.to_string(),
        request_id: record.caller.request_id.to_string(),
        tool: String::new(),
        tool_sent: String::new(),
        submission_id: String::new(),
        bundle: String::new(),
        why: String::new(),
        findings: Vec::new(),
        findings_total: record.findings_total,
        unjudged: record.unjudged.to_vec(),
        ran: Vec::new(),
        concepts: Vec::new(),
        texts: Vec::new(),
        texts_left_out: 0,
        elapsed: Duration::from_micros(record.elapsed_us),
    }
}
