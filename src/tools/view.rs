//! A call as conditions and actions of rules see it. What costs time is made when a rule asks for it.

use std::time::Instant;

use serde_json::{Value, json};

use super::actions::{CompiledRule, RuleCall};
use super::call::Call;
use super::inspect::Inspection;
use super::interceptor::Local;
use super::redact::{self, Payload, PayloadScope, RedactError, Redaction};
use super::step::{InterceptError, Step};
use super::verdict;
use crate::decision::{Finding, Hook, Mode, Reason};
use crate::detect::PII;
use crate::rules::Budget;
use crate::shell::argument::HOLE;

/// Stands for an unknown piece in the effects that conditions see.
const UNKNOWN: &str = "\u{FFFD}";

impl Local for CompiledRule {
    fn run(&self, call: &Call<'_>) -> Result<Step, InterceptError> {
        let redact = |payload: Payload,
                      text: &str,
                      categories: &[crate::decision::Category],
                      placeholders: &mut crate::detect::redact::Placeholders| {
            let is_spent = || is_spent(call);
            let budget = Budget { is_spent: &is_spent };
            let redaction = Redaction {
                scanner: call.snapshot.scanner(),
                countries: call.policy.countries(),
                payload,
                categories,
                budget: &budget,
            };
            let mut settle = |finding, matched: &str| enforced(call, finding, matched);
            redaction.run(text, placeholders, &mut settle).map_err(redact_error)
        };
        self.apply(&RuleCall {
            tool: call.tool,
            args: call.args(),
            result: call.result(),
            message: call.message(),
            params: call.params(),
            metadata: call.metadata(),
            context: &|| Ok(context(call).to_string()),
            findings: &|| Ok(Value::Array(found(call)?.iter().map(finding).collect()).to_string()),
            effects: &|| Ok(effects(call.inspection()).to_string()),
            redact: &redact,
        })
    }
}

/// Whether the caller has stopped waiting.
pub(super) fn is_spent(call: &Call<'_>) -> bool {
    call.deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// Why a text could not be redacted, as a failure of the interceptor.
pub(super) fn redact_error(error: RedactError) -> InterceptError {
    let reason = match error {
        RedactError::Stopped => Reason::Timeout,
        RedactError::Resists => Reason::Error,
    };
    InterceptError::new(reason, error.to_string())
}

/// A finding whose rule the policy does not switch off, with the mode that it has there. Personal data whose text
/// `matched` is on the list of the policy is suppressed.
pub(super) fn enforced(call: &Call<'_>, mut finding: Finding, matched: &str) -> Option<Finding> {
    finding.suppressed |= finding.category.is_within(PII) && call.policy.allow_list().allows(matched);
    match call.policy.mode_of(&finding.plugin, &finding.rule_id, &finding.category, false) {
        Mode::Off => None,
        Mode::Shadow => {
            finding.shadow = true;
            Some(finding)
        }
        Mode::Enforce => Some(finding),
    }
}

/// What was found so far, and what the detectors find in the text that the hook is about.
fn found(call: &Call<'_>) -> Result<Vec<Finding>, InterceptError> {
    let (payload, text) = match call.hook {
        Hook::MessageBefore | Hook::ParamsBefore => (Payload::Message, call.message()),
        Hook::ToolBefore => (Payload::Args, call.args()),
        Hook::ToolAfter => (Payload::Result, call.result()),
    };
    let scanner = call.snapshot.scanner();
    let is_spent = || is_spent(call);
    let scope = PayloadScope { plugins: u32::MAX, countries: call.policy.countries() };
    let scanned = redact::scan(scanner, payload, text, scope, &Budget { is_spent: &is_spent })
        .map_err(|stopped| redact_error(stopped.into()))?;
    if scanned.limit_hit {
        return Err(InterceptError::new(Reason::Limit, "the limits on decoding were hit"));
    }
    let detected = scanned.findings.iter().map(|detected| redact::finding(scanner, payload, detected));
    let mut all: Vec<Finding> = call.found.clone();
    let settled = |finding: Finding| {
        let matched = text.get(finding.span.start..finding.span.end).unwrap_or_default();
        enforced(call, finding, matched)
    };
    for finding in detected.filter_map(settled) {
        if !all.iter().any(|known| known.rule_id == finding.rule_id && known.span == finding.span) {
            all.push(finding);
        }
    }
    Ok(all)
}

fn finding(finding: &Finding) -> Value {
    json!({
        "plugin": &*finding.plugin,
        "rule_id": &*finding.rule_id,
        "category": finding.category.as_str(),
        "severity": finding.severity.as_str(),
        "score": finding.score,
        "path": &*finding.span.path,
        "start": finding.span.start,
        "end": finding.span.end,
        "shadow": finding.shadow,
        "suppressed": finding.suppressed,
    })
}

fn context(call: &Call<'_>) -> Value {
    let context = &call.context;
    let mut value = json!({
        "agent_id": context.agent_id,
        "session_key": context.session_key,
        "tenant": context.tenant,
        "request_id": context.request_id,
        "labels": context.labels,
        "tool_call_id": call.tool_call_id,
        "is_error": call.is_error,
        "dry_run": call.dry_run,
    });
    if let Some(environment) = &call.environment {
        value["cwd"] = environment.cwd.into();
        value["home"] = environment.home.into();
    }
    value
}

fn effects(inspection: &Inspection) -> Value {
    let known = |text: &str| text.replace(HOLE, UNKNOWN);
    let effects = inspection.effects().map(|effect| {
        let target = effect.target.as_ref();
        json!({
            "kind": effect.kind.as_str(),
            "target": target.map(|target| known(&target.text)).unwrap_or_default(),
            "recursive": effect.recursive,
            "forced": effect.forced,
            "detail": effect.detail,
            "program": effect.program,
            "argv": effect.argv.iter().map(|argument| known(&argument.text)).collect::<Vec<_>>(),
            "via": effect.via,
        })
    });
    let paths = inspection.paths.iter().flat_map(|path| {
        path.access.iter().map(|access| {
            json!({
                "kind": format!("{}_path", access.as_str()),
                "target": path.path,
                "recursive": false,
                "forced": false,
                "detail": "",
                "program": "",
                "argv": [],
                "via": [],
            })
        })
    });
    Value::Array(effects.chain(paths).collect())
}

/// What was found by detectors, to be settled by the chain; what they could not look into is a failure of the plugin.
pub(super) fn limit(call: &Call<'_>, plugins: &[&'static str]) -> Vec<crate::decision::Unjudged> {
    let detail = || "the limits on decoding were hit".to_owned();
    plugins.iter().map(|plugin| verdict::unjudged(call, plugin, Reason::Limit, detail())).collect()
}
