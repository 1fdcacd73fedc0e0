//! The detector core over a text of a call: what CheckMessages would find in it.

use super::call::Call;
use super::redact::{self, Payload, PayloadScope};
use super::step::InterceptError;
use super::view;
use crate::decision::{Finding, Unjudged};
use crate::detect::{CODE, INJECTION, PII, SECRETS};
use crate::rules::Budget;

/// Everything that `plugins` find in `text`, in its order, and what could not be looked into. Spans count in `text`.
/// Modes and suppressions are not applied.
///
/// # Errors
/// The caller's deadline passed first.
pub(super) fn scan(
    call: &Call<'_>,
    payload: Payload,
    text: &str,
    plugins: &[&'static str],
) -> Result<(Vec<Finding>, Vec<Unjudged>), InterceptError> {
    let scanner = call.snapshot.scanner();
    let rules = scanner.rules();
    let bits = if plugins == ALL {
        rules.plugin_bits(rules.plugins().iter().map(|plugin| &**plugin))
    } else {
        rules.plugin_bits(plugins.iter().copied())
    };
    let is_spent = || view::is_spent(call);
    let scope = PayloadScope { plugins: bits, countries: call.policy.countries() };
    let scanned = redact::scan(scanner, payload, text, scope, &Budget { is_spent: &is_spent })
        .map_err(|stopped| view::redact_error(stopped.into()))?;
    let findings = scanned.findings.iter().map(|found| redact::finding(scanner, payload, found)).collect();
    let unjudged = if scanned.limit_hit { view::limit(call, plugins) } else { Vec::new() };
    Ok((findings, unjudged))
}

/// Every built-in plugin; the rules of an installation are asked as well.
pub(super) const ALL: &[&str] = &[INJECTION, PII, SECRETS, CODE];
