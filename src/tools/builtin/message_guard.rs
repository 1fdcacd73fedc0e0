//! `builtin:message-guard`: a message is judged as CheckMessages judges one of a user.
//!
//! It runs after those that take something out of the message. What it tells stands in the message as it was sent; what
//! is no longer there when it looks has been dealt with.

use crate::decision::Severity;
use crate::tools::interceptor::Local;
use crate::tools::redact::Payload;
use crate::tools::{Call, InterceptError, Step, detectors};

/// The interceptor.
pub(super) struct MessageGuard;

impl Local for MessageGuard {
    fn run(&self, call: &Call<'_>) -> Result<Step, InterceptError> {
        let (scan, unjudged) = detectors::scan(call, Payload::Message, call.message.sent, detectors::ALL)?;
        let mut step = Step { unjudged, ..Step::default() };
        if !call.message.changed {
            step.findings = scan;
            return Ok(step);
        }
        let (now, unjudged) = detectors::scan(call, Payload::Message, call.message(), detectors::ALL)?;
        for missed in unjudged {
            if !step.unjudged.contains(&missed) {
                step.unjudged.push(missed);
            }
        }
        // What is still found counts, whatever the place it stands at; of each kind as often as it is there.
        let mut left: Vec<(String, Severity)> = Vec::new();
        left.extend(now.iter().map(|finding| (finding.rule_id.to_string(), finding.severity)));
        for finding in scan {
            let key = (finding.rule_id.to_string(), finding.severity);
            match left.iter().position(|other| *other == key) {
                Some(at) => {
                    left.swap_remove(at);
                    step.findings.push(finding);
                }
                None => step.dealt_with.push(finding),
            }
        }
        // What only came to be by the changes: it has no place in the message as sent.
        for (rule, severity) in left {
            if let Some(finding) = now.iter().find(|f| *f.rule_id == *rule && f.severity == severity) {
                let mut finding = finding.clone();
                finding.span.path = "".into();
                (finding.span.start, finding.span.end) = (0, 0);
                step.findings.push(finding);
            }
        }
        Ok(step)
    }
}
