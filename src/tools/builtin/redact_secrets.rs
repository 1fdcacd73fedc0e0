//! `builtin:redact-secrets`: credentials and personal data in a result become placeholders.

use crate::decision::Category;
use crate::detect::redact::Placeholders;
use crate::detect::{PII, SECRETS};
use crate::rules::Budget;
use crate::tools::interceptor::Local;
use crate::tools::redact::{Payload, Redaction};
use crate::tools::{Call, Changes, InterceptError, Step, verdict, view};

/// The interceptor.
pub(super) struct RedactSecrets {
    categories: Vec<Category>,
}

impl RedactSecrets {
    /// Without categories it redacts `secrets` and `pii`.
    pub(super) fn new(categories: Option<Vec<String>>) -> Self {
        let categories = categories.unwrap_or_default();
        Self { categories: categories.iter().map(|category| Category::new(category)).collect() }
    }
}

impl Local for RedactSecrets {
    fn run(&self, call: &Call<'_>) -> Result<Step, InterceptError> {
        if call.result().is_empty() {
            return Ok(Step::default());
        }
        let is_spent = || view::is_spent(call);
        let redaction = Redaction {
            scanner: call.snapshot.scanner(),
            countries: call.policy.countries(),
            payload: Payload::Result,
            categories: &self.categories,
            budget: &Budget { is_spent: &is_spent },
        };
        let mut settle = |finding, matched: &str| view::enforced(call, finding, matched);
        let redacted = redaction
            .run(call.result(), &mut Placeholders::default(), &mut settle)
            .map_err(view::redact_error)?;
        let mut step = Step::default();
        if redacted.limit_hit {
            step.unjudged = view::limit(call, &[SECRETS, PII]);
        }
        step.dealt_with = redacted.findings;
        for finding in &mut step.dealt_with {
            finding.span = verdict::span_as_sent(call, finding.span.start..finding.span.end);
        }
        if redacted.text.is_some() {
            let kinds: Vec<String> =
                redacted.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            step.did.push(format!("redacted {} in the result", kinds.join(", ")));
            step.changes = Changes { result: redacted.text, ..Changes::default() };
        }
        Ok(step)
    }
}
