//! What the policy makes of the findings of an interceptor: modes, suppressions, and the decision they lead to.

use std::sync::Arc;

use jiff::Timestamp;

use super::arguments::Fault;
use super::call::Call;
use crate::decision::{
    Category, Decision, Direction, FailMode, Finding, Hook, Mode, Reason, Severity, SpanRef, Unjudged,
};
use crate::detect::{PII, fingerprint};
use crate::policy::SuppressionQuery;

/// Plugin id of what commands would do.
pub const COMMAND_SAFETY: &str = "command_safety";
/// Plugin id of which files tools would touch.
pub const PATH_AUDIT: &str = "path_audit";

/// What a rule of a guard says.
pub(super) struct Hit<'h> {
    /// [`COMMAND_SAFETY`] or [`PATH_AUDIT`].
    pub plugin: &'static str,
    /// Id of the rule.
    pub rule_id: &'h str,
    /// Its category.
    pub category: &'h Category,
    /// How bad it is.
    pub severity: Severity,
    /// How sure the rule is, from 0.0 to 1.0.
    pub confidence: f64,
    /// What was found, one sentence.
    pub description: &'h str,
    /// What to do about it; may be empty.
    pub recommendation: &'h str,
}

impl Hit<'_> {
    /// The finding at `raw`, bytes of the arguments as they stand.
    pub(super) fn finding(&self, call: &Call<'_>, raw: std::ops::Range<usize>) -> Finding {
        Finding {
            plugin: self.plugin.into(),
            plugin_version: env!("CARGO_PKG_VERSION").into(),
            rule_id: self.rule_id.into(),
            category: self.category.clone(),
            severity: self.severity,
            score: self.severity.score() * self.confidence.clamp(0.0, 1.0),
            description: self.description.into(),
            recommendation: self.recommendation.into(),
            span: span_as_sent(call, raw),
            evasions: Vec::new(),
            shadow: false,
            suppressed: false,
        }
    }
}

/// The span of a finding in the text as it was sent. After a change the same text is looked for there; when it does
/// not stand in exactly one place, the finding is about the whole request and its path is empty.
pub(super) fn span_as_sent(call: &Call<'_>, raw: std::ops::Range<usize>) -> SpanRef {
    let (path, sent) = call.judged_text();
    let (now, changed) = match path {
        "/args_json" => (call.args(), call.args.changed),
        "/result_json" => (call.result(), call.result.changed),
        _ => (call.message(), call.message.changed),
    };
    let range = if changed {
        let text = now.get(raw).filter(|text| !text.is_empty());
        let mut places = text.into_iter().flat_map(|text| sent.match_indices(text));
        match (places.next(), places.next()) {
            (Some((at, text)), None) => Some(at..at + text.len()),
            _ => None,
        }
    } else {
        Some(raw)
    };
    match range {
        Some(range) => SpanRef { message_index: 0, path: path.into(), start: range.start, end: range.end },
        None => SpanRef { message_index: 0, path: "".into(), start: 0, end: 0 },
    }
}

/// Gives each finding its mode and suppression; those that the policy switched off are dropped.
pub(super) fn settle(call: &Call<'_>, findings: &mut Vec<Finding>, interceptor_shadows: bool) {
    if findings.is_empty() {
        return;
    }
    // The clock is read only where something can expire.
    let now = (!call.policy.suppressions().is_empty()).then(Timestamp::now);
    let (_, sent) = call.judged_text();
    findings.retain_mut(|finding| {
        match call.policy.mode_of(&finding.plugin, &finding.rule_id, &finding.category, false) {
            Mode::Off => return false,
            Mode::Shadow => finding.shadow = true,
            Mode::Enforce => finding.shadow |= interceptor_shadows,
        }
        if let Some(now) = now {
            let matched = sent.get(finding.span.start..finding.span.end).unwrap_or_default();
            let query = SuppressionQuery {
                rule_id: &finding.rule_id,
                category: &finding.category,
                fingerprint: &|| fingerprint(&finding.rule_id, matched),
                path: &finding.span.path,
                tenant: call.context.tenant,
            };
            finding.suppressed = call.policy.suppression(&query, now).is_some();
        }
        if finding.category.is_within(PII) {
            let matched = sent.get(finding.span.start..finding.span.end).unwrap_or_default();
            finding.suppressed |= call.policy.allow_list().allows(matched);
        }
        true
    });
}

/// The strongest decision of effective findings, with the finding.
pub(super) fn strongest<'f>(call: &Call<'_>, findings: &'f [Finding]) -> Option<(Decision, &'f Finding)> {
    findings
        .iter()
        .filter(|finding| finding.is_effective())
        .map(|finding| (call.policy.decide_finding(finding), finding))
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
}

/// What a guard could not judge, failing as the policy says for its plugin. A limit that was hit fails closed where a
/// construct that cannot be resolved would ask: who sends so much does not do so by accident.
pub(super) fn unjudged(call: &Call<'_>, plugin: &'static str, reason: Reason, detail: String) -> Unjudged {
    let direction = match call.hook {
        Hook::ToolAfter | Hook::MessageBefore => Direction::Input,
        Hook::ToolBefore | Hook::ParamsBefore => Direction::Output,
    };
    let fail_mode = match (call.policy.fail_modes(plugin).of(direction), reason) {
        (FailMode::Ask, Reason::Limit) => FailMode::Closed,
        (mode, _) => mode,
    };
    let shadow = call.policy.plugin_mode(plugin) != Mode::Enforce;
    Unjudged { plugin: Arc::from(plugin), reason, detail, fail_mode, shadow }
}

/// Arguments that a guard cannot make sense of. One of a wrong type fails closed whatever the policy says: no tool has
/// such arguments, and what it would make of them nobody knows.
pub(super) fn faulty(call: &Call<'_>, plugin: &'static str, fault: &Fault) -> Unjudged {
    let (reason, detail) = fault.tell();
    let mut unjudged = unjudged(call, plugin, reason, detail);
    match (fault, unjudged.fail_mode) {
        (Fault::WrongType { .. }, _) => unjudged.fail_mode = FailMode::Closed,
        // A tool of some server that only has the name: a person can tell.
        (Fault::Missing, FailMode::Closed) if call.tool_sent.trim().starts_with("mcp__") => {
            unjudged.fail_mode = FailMode::Ask;
        }
        _ => {}
    }
    unjudged
}
