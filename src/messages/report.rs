//! Findings of a conversation, field by field, as a caller sees them.

use super::Conversation;
use crate::decision::{Finding, SpanRef};
use crate::detect::{Reported, report_text};
use crate::text::OffsetEncoding;

/// Turns findings, sorted by message and field, into reports.
pub(super) fn report(
    messages: &Conversation<'_>,
    findings: Vec<Finding>,
    encoding: OffsetEncoding,
    reveal: bool,
) -> Vec<Reported> {
    let mut out = Vec::with_capacity(findings.len());
    let mut rest = findings.into_iter().peekable();
    while let Some(first) = rest.next() {
        let mut group = vec![first];
        while let Some(finding) = rest.next_if(|f| {
            f.span.message_index == group[0].span.message_index && f.span.path == group[0].span.path
        }) {
            group.push(finding);
        }
        let text = field_text(messages, &group[0].span);
        out.extend(report_text(text, group, encoding, reveal));
    }
    out
}

/// The text a span points into; empty for a field that the message does not have.
pub(super) fn field_text<'a>(messages: &Conversation<'a>, span: &SpanRef) -> &'a str {
    messages
        .get(span.message_index as usize)
        .and_then(|m| m.fields.iter().find(|f| f.path.to_pointer() == *span.path))
        .map_or("", |f| f.text)
}
