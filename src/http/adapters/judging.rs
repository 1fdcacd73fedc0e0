//! What the gateways ask: whether a conversation may go on, and whether the tools that the model wants may run.

use super::{Problem, Received};
use crate::hooks;
use crate::pb::v1::{self, Decision};
use crate::telemetry::Code;

/// What became of a conversation.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// Whether it may go on. ASK is no: none of these contracts can ask a person.
    pub(super) passes: bool,
    /// Why it does not simply go on; empty when it does.
    pub(super) reason: String,
    /// The messages with personal data and credentials replaced, in order.
    pub(super) messages: Vec<v1::Message>,
    /// What was found; spans count code points.
    pub(super) findings: Vec<v1::Finding>,
    /// What could not be judged.
    pub(super) unjudged: Vec<v1::Unjudged>,
    /// Id of the decision about the messages; empty when there were none.
    pub(super) decision_id: String,
}

/// One conversation.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// The turns.
    pub(super) messages: Vec<v1::Message>,
    /// Which way they go.
    pub(super) direction: v1::Direction,
    /// Tools that are about to run.
    pub(super) tools: Vec<v1::ToolCall>,
    /// Who asks.
    pub(super) context: v1::CallContext,
    /// Name of the policy; empty for the default.
    pub(super) policy: String,
}

/// A turn of plain text.
pub(super) fn text(role: &str, text: impl Into<String>) -> v1::Message {
    let content = Some(v1::message::Content::Text(text.into()));
    v1::Message { role: role.to_owned(), content, ..Default::default() }
}

/// The text of a turn that was made by [`text`].
pub(super) fn text_of(message: &v1::Message) -> &str {
    match &message.content {
        Some(v1::message::Content::Text(text)) => text,
        _ => "",
    }
}

/// A role of the contract for one of a gateway. An unknown one is read as a tool's, the least trusted.
pub(super) fn role(given: &str) -> &'static str {
    const KNOWN: [&str; 9] =
        ["system", "developer", "user", "human", "assistant", "ai", "model", "tool", "function"];
    KNOWN.into_iter().find(|known| known.eq_ignore_ascii_case(given)).unwrap_or("tool")
}

/// Asks about a conversation. Where nothing is said there is nothing to judge, and it passes.
pub(super) async fn judge(received: &Received, conversation: Conversation) -> Result<Judged, Problem> {
    let Conversation { messages, direction, tools, context, policy } = conversation;
    let mut judged = Judged { passes: true, ..Judged::default() };
    let mut reasons = Vec::new();
    if !messages.is_empty() {
        let request = v1::CheckMessagesRequest {
            messages,
            policy: policy.clone(),
            context: Some(context.clone()),
            redact: true,
            direction: direction.into(),
            offset_encoding: v1::OffsetEncoding::Utf32.into(),
            ..Default::default()
        };
        let answer: v1::CheckMessagesResponse = received.decide("CheckMessages", &request).await?;
        if answer.redacted_messages.len() != request.messages.len() {
            return Err(Problem::internal("the answer has another number of messages"));
        }
        judged.passes = may_go_on(answer.decision());
        if answer.decision() != Decision::Allow {
            reasons.push(hooks::reason("", &answer.findings, &answer.unjudged));
        }
        judged.messages = answer.redacted_messages;
        judged.findings = answer.findings;
        judged.unjudged = answer.unjudged;
        judged.decision_id = answer.decision_id;
    }
    for tool in tools {
        let args = if tool.args_json.trim().is_empty() { "{}".to_owned() } else { tool.args_json };
        let request = v1::InterceptToolRequest {
            phase: v1::ToolPhase::Before.into(),
            tool_name: tool.name.clone(),
            tool_call_id: tool.id,
            context: Some(context.clone()),
            policy: policy.clone(),
            args_json: args.clone(),
            ..Default::default()
        };
        match received.decide::<v1::InterceptToolResponse>("InterceptTool", &request).await {
            Ok(answer) => {
                let may_go_on = may_go_on(answer.decision());
                judged.passes &= may_go_on;
                if answer.decision() != Decision::Allow {
                    reasons.push(hooks::reason(&answer.block_reason, &answer.findings, &answer.unjudged));
                }
                if may_go_on && answer.args_json != args {
                    judged.passes = false;
                    reasons.push(
                        "Portcullis: the policy changes the arguments of a tool, which this gateway cannot do"
                            .to_owned(),
                    );
                }
                judged.findings.extend(answer.findings);
                judged.unjudged.extend(answer.unjudged);
            }
            // What a model made up is no mistake of the gateway: it is refused, not sent back.
            Err(problem) if problem.code == Code::InvalidArgument => {
                judged.passes = false;
                reasons.push(format!("Portcullis: a tool call cannot be judged: {}", problem.message));
            }
            Err(problem) => return Err(problem),
        }
    }
    let mut told: Vec<String> = Vec::new();
    for reason in reasons {
        if !told.contains(&reason) {
            told.push(reason);
        }
    }
    judged.reason = told.join("\n");
    Ok(judged)
}

fn may_go_on(decision: Decision) -> bool {
    matches!(decision, Decision::Allow | Decision::Warn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_that_is_not_known_is_trusted_least() {
        for (given, wanted) in
            [("User", "user"), ("developer", "developer"), ("", "tool"), ("function_call", "tool")]
        {
            assert_eq!(role(given), wanted, "{given}");
        }
    }

    #[test]
    fn only_two_decisions_go_on() {
        for decision in [Decision::Unspecified, Decision::Ask, Decision::Block] {
            assert!(!may_go_on(decision), "{decision:?}");
        }
    }
}
