//! The asynchronous plugins: asked under the time that is left, and their findings held to what was sent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::plan::Plan;
use super::{CheckError, CheckRequest, MessageEngine, Pass};
use crate::decision::{Finding, Reason, Severity};
use crate::messages::plugin::{PluginCall, guarded};
use crate::messages::{Conversation, report};
use crate::outbound::Until;

impl MessageEngine {
    /// Runs the asynchronous plugins under the time that is left.
    pub(super) async fn ask_plugins(
        &self,
        plan: &Plan<'_>,
        request: &CheckRequest<'_>,
        pass: &mut Pass,
        ran: &mut Vec<(Arc<str>, Duration)>,
    ) -> Result<(), CheckError> {
        let asked = plan.asynchronous.iter().map(|plugin| async move {
            let started = Instant::now();
            let own = started + plan.policy.timeout(&plugin.descriptor().name);
            let until = Until::sooner(own, request.deadline);
            let call = PluginCall {
                messages: request.messages,
                tenant: request.tenant,
                direction: request.direction,
                decision_id: request.decision_id,
                sent: request.sent,
                until,
            };
            let answer = tokio::time::timeout_at(until.at.into(), guarded(plugin.check(&call))).await;
            (plugin, answer, started.elapsed())
        });
        let answers = if self.config.parallel {
            futures_util::future::join_all(asked).await
        } else {
            let mut answers = Vec::with_capacity(plan.asynchronous.len());
            for one in asked {
                answers.push(one.await);
            }
            answers
        };
        for (plugin, answer, elapsed) in answers {
            let name = &plugin.descriptor().name;
            ran.push((name.clone(), elapsed));
            match answer {
                Ok(Ok(found)) => {
                    for error in found.unjudged {
                        self.unjudge(plan, request, name, error.reason, error.detail, pass);
                    }
                    let version = found.version.as_ref().unwrap_or(&plugin.descriptor().version);
                    for finding in found.findings {
                        let Some(finding) = within_message(request.messages, finding, name, version) else {
                            let detail = "a finding pointed outside the messages".to_owned();
                            self.unjudge(plan, request, name, Reason::BadAnswer, detail, pass);
                            continue;
                        };
                        let message = &request.messages[finding.span.message_index as usize];
                        let text = report::field_text(request.messages, &finding.span);
                        pass.findings.extend(self.apply_policy(plan, request, message.role, text, finding));
                    }
                }
                Ok(Err(error)) => self.unjudge(plan, request, name, error.reason, error.detail, pass),
                Err(_) if request.deadline.is_some_and(|d| Instant::now() >= d) => {
                    return Err(CheckError::DeadlineExceeded);
                }
                Err(_) => {
                    let detail = format!("no answer within {elapsed:.0?}");
                    self.unjudge(plan, request, name, Reason::Timeout, detail, pass);
                }
            }
        }
        Ok(())
    }
}

/// A plugin's finding with its span on character boundaries, or `None` when it points at nothing that was sent.
fn within_message(
    messages: &Conversation<'_>,
    mut finding: Finding,
    plugin: &Arc<str>,
    version: &Arc<str>,
) -> Option<Finding> {
    let message = messages.get(finding.span.message_index as usize)?;
    let text = match &*finding.span.path {
        // About the message as a whole.
        "" => "",
        path => message.fields.iter().find(|field| field.path.to_pointer() == path)?.text,
    };
    finding.span.end = text.ceil_char_boundary(finding.span.end.min(text.len()));
    finding.span.start = text.floor_char_boundary(finding.span.start.min(finding.span.end));
    // A foreign answer must not push the risk out of its range, nor pose as another plugin.
    finding.score =
        if finding.score.is_finite() { finding.score.clamp(0.0, 1.0) } else { Severity::Critical.score() };
    finding.plugin = plugin.clone();
    finding.plugin_version = version.clone();
    Some(finding)
}
