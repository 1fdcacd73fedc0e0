//! What one interceptor did in a call, as it is told to a person: one line each, without secrets.

use std::sync::Arc;
use std::time::Duration;

use super::call::Call;
use super::interceptor::Interceptor;
use super::step::Step;
use crate::decision::{Decision, FailMode, Hook, InterceptorOutcome};
use crate::detect;
use crate::policy::Params;
use crate::rules::Budget;

/// Longest text of somebody else that is shown, in characters.
const FOREIGN_CHARS_MAX: usize = 300;

/// What one interceptor did.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Which.
    pub interceptor: Arc<Interceptor>,
    /// What it did; in shadow what it would have done.
    pub outcome: InterceptorOutcome,
    /// One line for a person.
    pub summary: String,
    /// How long it ran.
    pub elapsed: Duration,
    /// Whether it ran in shadow.
    pub shadow: bool,
    /// What it alone would decide.
    pub decision: Decision,
    pub(super) would_change: bool,
}

impl Ran {
    pub(super) fn new(interceptor: &Arc<Interceptor>, shadow: bool) -> Self {
        Self {
            interceptor: interceptor.clone(),
            outcome: InterceptorOutcome::Passed,
            summary: String::new(),
            elapsed: Duration::ZERO,
            shadow,
            decision: Decision::Allow,
            would_change: false,
        }
    }

    pub(super) fn skipped(interceptor: &Arc<Interceptor>) -> Self {
        let outcome = InterceptorOutcome::Skipped;
        Self { outcome, ..Self::new(interceptor, false) }
    }

    /// Whether it is worth an event: a block, a question, a change, a failure. Having let a call pass or not having run
    /// is none.
    pub fn is_told(&self) -> bool {
        !matches!(self.outcome, InterceptorOutcome::Passed | InterceptorOutcome::Skipped)
            || self.decision != Decision::Allow
    }
}

/// What can change, before an interceptor changed it.
pub(super) struct Before {
    version: u32,
    result_len: usize,
    message_len: usize,
    params: Option<Params>,
    metadata_len: usize,
}

impl Before {
    pub(super) fn of(call: &Call<'_>) -> Self {
        Self {
            version: call.version,
            result_len: call.result().len(),
            message_len: call.message().len(),
            params: (call.hook == Hook::ParamsBefore).then(|| call.params().clone()),
            metadata_len: call.metadata().len(),
        }
    }
}

/// What an interceptor did, in one line.
pub(super) fn summary(
    call: &Call<'_>,
    ran: &Ran,
    decision: Decision,
    reason: &str,
    step: &Step,
    before: Option<&Before>,
) -> String {
    let mut parts: Vec<String> = Vec::new();
    match decision {
        Decision::Block => parts.push(format!("blocked: {reason}")),
        Decision::Ask => parts.push(format!("a person must approve: {reason}")),
        Decision::Warn if !reason.is_empty() => parts.push(format!("warned: {reason}")),
        Decision::Warn => parts.push("warned".to_owned()),
        Decision::Allow => {}
    }
    parts.extend(step.did.iter().cloned());
    if step.did.is_empty() {
        if let Some(before) = before {
            parts.extend(changes(call, before));
        } else if ran.would_change {
            parts.push(format!("would change {}", thing(call.hook)));
        }
    }
    one_line(&parts.join("; "))
}

fn thing(hook: Hook) -> &'static str {
    match hook {
        Hook::MessageBefore => "the message or its metadata",
        Hook::ParamsBefore => "the parameters or the metadata",
        Hook::ToolBefore => "the arguments or the metadata",
        Hook::ToolAfter => "the result or the metadata",
    }
}

/// What differs, for interceptors that do not say so themselves.
fn changes(call: &Call<'_>, before: &Before) -> Vec<String> {
    let mut parts = Vec::new();
    let sizes = |what: &str, from: usize, to: usize| format!("changed {what} ({from} to {to} bytes)");
    if before.version != call.version {
        parts.push("changed the arguments".to_owned());
    }
    if call.result().len() != before.result_len {
        parts.push(sizes("the result", before.result_len, call.result().len()));
    }
    if call.message().len() != before.message_len {
        parts.push(sizes("the message", before.message_len, call.message().len()));
    }
    if let Some(params) = &before.params {
        let fields = call.params().changed_fields(params);
        if !fields.is_empty() {
            parts.push(format!("changed {}", fields.join(", ")));
        }
    }
    if call.metadata().len() != before.metadata_len {
        parts.push("changed the metadata".to_owned());
    }
    if parts.is_empty() {
        parts.push(format!("changed {}", thing(call.hook)));
    }
    parts
}

/// What a failure came to, in one line.
pub(super) fn failure(detail: &str, fail: FailMode) -> String {
    let effect = match fail {
        FailMode::Closed => "the call is blocked",
        FailMode::Ask => "a person must approve",
        FailMode::Open => "the call went on without it",
    };
    one_line(&format!("could not judge ({detail}), so {effect}"))
}

/// A text of somebody else, short, on one line, its secrets and personal data taken out.
pub(super) fn foreign(call: &Call<'_>, text: &str) -> String {
    let short: String = text.chars().take(FOREIGN_CHARS_MAX).collect();
    let scanner = call.snapshot.scanner();
    let plugins = scanner.rules().plugin_bits([detect::SECRETS, detect::PII]);
    let request = detect::Request { text: &short, plugins, role: None, surface: None };
    let Ok(scanned) = scanner.scan(request, &Budget::UNLIMITED) else { return String::new() };
    let mut masked = String::with_capacity(short.len());
    let mut at = 0;
    for found in &scanned.findings {
        if found.range.start >= at {
            masked.push_str(&short[at..found.range.start]);
            masked.push('…');
            at = found.range.end;
        }
    }
    masked.push_str(&short[at..]);
    one_line(&masked)
}

/// Without line breaks and other control characters.
fn one_line(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
