//! The messages with credentials and personal data taken out.

use super::plan::Plan;
use super::scan::Clock;
use super::{CheckError, CheckRequest, MessageEngine};
use crate::decision::{Category, Finding, SpanRef};
use crate::detect::redact::{self, Placeholders, Secret};
use crate::detect::{self, PII, SECRETS};
use crate::messages::redact::RedactedField;
use crate::rules::Budget;

impl MessageEngine {
    /// Takes credentials and personal data out of every field that has some.
    pub(super) fn redact(
        &self,
        plan: &Plan<'_>,
        request: &CheckRequest<'_>,
        findings: &[Finding],
    ) -> Result<Vec<RedactedField>, CheckError> {
        let mut placeholders = Placeholders::default();
        let mut out = Vec::new();
        let clock = Clock::new(plan, request);
        let is_spent = || clock.is_spent();
        let redactable = plan.snapshot.scanner().rules().plugin_bits([PII, SECRETS]) & plan.bits;
        // Findings are sorted by message, so each message looks at its own only.
        for of_message in findings.chunk_by(|a, b| a.span.message_index == b.span.message_index) {
            let index = of_message[0].span.message_index as usize;
            let message = &request.messages[index];
            for field in &message.fields {
                let pointer = field.path.to_pointer();
                let secrets: Vec<Secret> = of_message
                    .iter()
                    .filter(|f| *f.span.path == *pointer)
                    .filter(|f| f.is_effective() && is_redactable(&f.category))
                    .map(|f| Secret {
                        range: f.span.start..f.span.end,
                        category: f.category.clone(),
                        severity: f.severity,
                    })
                    .filter(|s| !s.range.is_empty())
                    .collect();
                if secrets.is_empty() {
                    continue;
                }
                let find = |text: &str| {
                    let again = detect::Request {
                        text,
                        plugins: redactable,
                        role: Some(message.role),
                        surface: Some(message.surface_of(field)),
                    };
                    let scanned = plan
                        .snapshot
                        .scanner()
                        .scan_for(again, &plan.countries, &Budget { is_spent: &is_spent })
                        .map_err(|_| CheckError::DeadlineExceeded)?;
                    let remaining = scanned.findings.iter().filter_map(|detected| {
                        let span = SpanRef {
                            message_index: index as u32,
                            path: pointer.as_ref().into(),
                            start: detected.range.start,
                            end: detected.range.end,
                        };
                        let version = plan.snapshot.scanner().rules().version();
                        let finding = detected.finding(version, span);
                        self.apply_policy(plan, request, message.role, text, finding)
                    });
                    Ok(remaining
                        .filter(|f| f.is_effective() && is_redactable(&f.category))
                        .map(|f| Secret {
                            range: f.span.start..f.span.end,
                            category: f.category,
                            severity: f.severity,
                        })
                        .collect())
                };
                let text =
                    redact::redact(field.text, field.path.is_json(), secrets, &mut placeholders, find)?;
                out.push(RedactedField { message_index: index as u32, path: field.path, text });
            }
        }
        Ok(out)
    }
}

/// Families that redaction takes out.
fn is_redactable(category: &Category) -> bool {
    category.is_within(PII) || category.is_within(SECRETS)
}
