//! The hook of Claude Code: what is asked about an event, and the answer that follows.
//!
//! - `PreToolUse`: the tool hook before; ALLOW allows (or, deferring, says nothing), BLOCK denies, ASK asks, WARN allows
//!   and tells the user, changed arguments replace the tool's own.
//! - `PostToolUse`: the tool hook after; BLOCK, and ASK since this event cannot ask, withholds the result, a changed
//!   result replaces the tool's own.
//! - `PostToolBatch`: the tool hook after, once more for each call of a batch as the model is about to see it. This is the
//!   one place where the result of a call that failed is judged, or one whose replacement the agent did not accept; it
//!   cannot be replaced any more, so BLOCK and ASK end the turn, and so does a credential that would have been masked.
//! - `UserPromptSubmit`: the message hook and the check of messages, whichever is stricter.
//! - Every other event passes: there is nothing to judge in it.

use super::answer::{self, Answer};
use super::{Event, HookError};
use crate::pb::v1::{self, Decision};

/// Most rules that are named in one answer.
const FINDINGS_MAX: usize = 5;

/// Longest name of a tool that is told, in characters.
const TOOL_CHARS_MAX: usize = 60;

/// How the hook is set up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// Name of the policy; empty for the default.
    pub policy: String,
    /// Id of the agent, for matchers and records.
    pub agent_id: String,
    /// Whether to say nothing of tool calls that pass, so that the agent's own permissions and prompts apply to them.
    pub defers: bool,
}

/// What has to be asked about an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Whether the tool may run. The environment is for the asker to tell.
    ToolBefore(Box<v1::InterceptToolRequest>),
    /// Whether the result of the tool may be shown. The environment is for the asker to tell.
    ToolAfter(Box<v1::InterceptToolRequest>),
    /// Whether the model may see the results of a batch: one request a call. The environment is for the asker to tell.
    Batch(Vec<v1::InterceptToolRequest>),
    /// Whether the prompt may go on: both requests.
    Prompt(Box<(v1::InterceptMessageRequest, v1::CheckMessagesRequest)>),
    /// Nothing: the event passes.
    Nothing,
}

/// How strong a decision is; one that this program does not know must stop the caller.
fn strength(decision: Decision) -> Decision {
    if decision == Decision::Unspecified { Decision::Block } else { decision }
}

/// Whether a policy takes out of a result what was found in it. Other changes, such as those of colors, keep nothing secret.
fn masks(response: &v1::InterceptToolResponse) -> bool {
    response.mutated && response.findings.iter().any(|finding| !finding.shadow && !finding.suppressed)
}

fn is_credential(finding: &v1::Finding) -> bool {
    let family = finding.category.split('.').next();
    family == Some("secrets") && !finding.shadow && !finding.suppressed
}

impl Setup {
    /// What has to be asked.
    ///
    /// # Errors
    /// The event lacks what one of its name must have.
    pub fn question(&self, event: &Event) -> Result<Question, HookError> {
        Ok(match event.name() {
            "PreToolUse" => Question::ToolBefore(Box::new(self.tool(event, v1::ToolPhase::Before)?)),
            "PostToolUse" => {
                let mut request = self.tool(event, v1::ToolPhase::After)?;
                event.result().clone_into(&mut request.result_json);
                Question::ToolAfter(Box::new(request))
            }
            "PostToolBatch" => Question::Batch(self.batch(event)?),
            "UserPromptSubmit" => Question::Prompt(Box::new(self.prompt(event)?)),
            _ => Question::Nothing,
        })
    }

    fn tool(&self, event: &Event, phase: v1::ToolPhase) -> Result<v1::InterceptToolRequest, HookError> {
        let (name, args) = event.tool()?;
        Ok(v1::InterceptToolRequest {
            phase: phase.into(),
            tool_name: name.to_owned(),
            tool_call_id: event.tool_use_id.clone().unwrap_or_default(),
            context: Some(self.context(event)),
            policy: self.policy.clone(),
            args_json: args.to_owned(),
            ..Default::default()
        })
    }

    fn batch(&self, event: &Event) -> Result<Vec<v1::InterceptToolRequest>, HookError> {
        let calls = event.batch()?.into_iter().map(|call| {
            let id = call.tool_use_id.clone().unwrap_or_default();
            v1::InterceptToolRequest {
                phase: v1::ToolPhase::After.into(),
                tool_name: call.tool_name.clone(),
                tool_call_id: id.clone(),
                context: Some(v1::CallContext { request_id: id, ..self.context(event) }),
                policy: self.policy.clone(),
                args_json: call.tool_input.get().to_owned(),
                result_json: call.result().to_owned(),
                ..Default::default()
            }
        });
        Ok(calls.collect())
    }

    fn prompt(
        &self,
        event: &Event,
    ) -> Result<(v1::InterceptMessageRequest, v1::CheckMessagesRequest), HookError> {
        let prompt = event.prompt()?;
        let intercept = v1::InterceptMessageRequest {
            context: Some(self.context(event)),
            policy: self.policy.clone(),
            message: prompt.to_owned(),
            ..Default::default()
        };
        let check = v1::CheckMessagesRequest {
            messages: vec![v1::Message {
                role: "user".to_owned(),
                content: Some(v1::message::Content::Text(prompt.to_owned())),
                ..Default::default()
            }],
            policy: self.policy.clone(),
            context: Some(self.context(event)),
            direction: v1::Direction::Input.into(),
            ..Default::default()
        };
        Ok((intercept, check))
    }

    fn context(&self, event: &Event) -> v1::CallContext {
        v1::CallContext {
            agent_id: self.agent_id.clone(),
            session_key: event.session_id.clone().unwrap_or_default(),
            request_id: event.tool_use_id.clone().unwrap_or_default(),
            ..Default::default()
        }
    }

    /// The answer to [`Question::ToolBefore`].
    ///
    /// # Errors
    /// The changed arguments cannot be passed on.
    pub fn before_tool(
        &self,
        event: &Event,
        response: &v1::InterceptToolResponse,
    ) -> Result<Answer, HookError> {
        let (_, args) = event.tool()?;
        let mut answer = Answer::default();
        let reason = reason(&response.block_reason, &response.findings, &response.unjudged);
        let decision = strength(response.decision());
        match decision {
            Decision::Block | Decision::Unspecified => {
                answer.deny(&reason);
                return Ok(answer);
            }
            Decision::Ask => answer.ask(&reason),
            Decision::Warn => answer.tell_user(&reason),
            Decision::Allow => {}
        }
        if !self.defers && decision != Decision::Ask {
            answer.approve();
        }
        if !response.args_json.is_empty() && response.args_json != args {
            answer.updated_input(&response.args_json)?;
        }
        Ok(answer)
    }

    /// The answer to [`Question::ToolAfter`].
    ///
    /// # Errors
    /// The changed result cannot be passed on.
    pub fn after_tool(
        &self,
        event: &Event,
        response: &v1::InterceptToolResponse,
    ) -> Result<Answer, HookError> {
        let result = event.result();
        let mut answer = Answer::default();
        let reason = reason(&response.block_reason, &response.findings, &response.unjudged);
        match strength(response.decision()) {
            // A person cannot be asked here.
            Decision::Block | Decision::Ask | Decision::Unspecified => {
                answer.withhold(event, &reason);
                return Ok(answer);
            }
            Decision::Warn => answer.tell_user(&reason),
            Decision::Allow => {}
        }
        if !response.result_json.is_empty() && response.result_json != result {
            answer.updated_output(answer::parse("result", &response.result_json)?, event.is_mcp());
        }
        Ok(answer)
    }

    /// The answer to [`Question::Batch`].
    ///
    /// # Errors
    /// A call was not answered.
    pub fn after_batch(
        &self,
        event: &Event,
        responses: &[v1::InterceptToolResponse],
    ) -> Result<Answer, HookError> {
        let calls = event.batch()?;
        if calls.len() != responses.len() {
            return Err(HookError::Event("not every call of the batch was judged".to_owned()));
        }
        let mut answer = Answer::default();
        let mut stops = Vec::new();
        let mut told = Vec::new();
        for (call, response) in calls.into_iter().zip(responses) {
            let tool: String = call.tool_name.chars().take(TOOL_CHARS_MAX).collect();
            match strength(response.decision()) {
                Decision::Block | Decision::Ask | Decision::Unspecified => {
                    let reason = reason(&response.block_reason, &response.findings, &response.unjudged);
                    stops.push(format!(
                        "{reason}; this result of {tool} cannot be withheld, so the turn ends"
                    ));
                }
                // What was found in the result of a call that succeeded was told, and masked, after that call.
                Decision::Warn | Decision::Allow if !masks(response) => {}
                Decision::Warn | Decision::Allow => {
                    let reason = reason("", &response.findings, &[]);
                    if response.findings.iter().any(is_credential) {
                        stops.push(format!(
                            "{reason}; this result of {tool} cannot be masked, so the turn ends"
                        ));
                    } else {
                        told.push(format!("{reason}; this result of {tool} could not be masked"));
                    }
                }
            }
        }
        if !stops.is_empty() {
            answer.block(&stops.join("\n"));
        } else if !told.is_empty() {
            answer.tell_user(&told.join("\n"));
        }
        Ok(answer)
    }

    /// The answer to [`Question::Prompt`].
    ///
    /// # Errors
    /// The event has no prompt.
    pub fn after_prompt(
        &self,
        event: &Event,
        message: &v1::InterceptMessageResponse,
        checked: &v1::CheckMessagesResponse,
    ) -> Result<Answer, HookError> {
        let prompt = event.prompt()?;
        let findings = [message.findings.as_slice(), checked.findings.as_slice()].concat();
        let unjudged = [message.unjudged.as_slice(), checked.unjudged.as_slice()].concat();
        let reason = reason(&message.block_reason, &findings, &unjudged);
        let mut answer = Answer::default();
        match strength(message.decision()).max(strength(checked.decision())) {
            // A person cannot be asked here.
            Decision::Block | Decision::Ask | Decision::Unspecified => {
                answer.block(&reason);
                return Ok(answer);
            }
            Decision::Warn => answer.tell_user(&reason),
            Decision::Allow => {}
        }
        match message.message.strip_prefix(prompt) {
            Some("") => {}
            Some(appended) => answer.context(appended.trim()),
            // A prompt cannot be replaced, and what had to be taken out of it must not go on.
            None => answer.block(&format!(
                "Portcullis: the policy changes this prompt, which this agent cannot do; send it as\n{}",
                message.message
            )),
        }
        Ok(answer)
    }
}

impl Answer {
    /// The answer to an event that could not be judged: the step is refused. An event with nothing to judge passes.
    pub fn refusal(event: &Event, reason: &str) -> Self {
        let mut answer = Self::default();
        match event.name() {
            "PreToolUse" => answer.deny(reason),
            "PostToolUse" => answer.withhold(event, reason),
            "UserPromptSubmit" | "PostToolBatch" => answer.block(reason),
            _ => {}
        }
        answer
    }

    fn withhold(&mut self, event: &Event, reason: &str) {
        self.block(reason);
        let result = event.result();
        if !result.is_empty() {
            self.updated_output(answer::withheld(result), event.is_mcp());
        }
        if answer::is_document(result) {
            self.stop(reason);
        }
    }
}

/// Why a step does not simply go on, for the person and the model that read it.
pub fn reason(block_reason: &str, findings: &[v1::Finding], unjudged: &[v1::Unjudged]) -> String {
    let mut lines: Vec<String> = Vec::new();
    if !block_reason.is_empty() {
        lines.push(block_reason.to_owned());
    }
    // The id of a rule is what a policy switches it by, and the same rule may have found several places.
    let mut named: Vec<&str> = Vec::new();
    for finding in findings.iter().filter(|finding| !finding.shadow && !finding.suppressed) {
        if named.contains(&&*finding.rule_id) {
            continue;
        }
        named.push(&finding.rule_id);
        if named.len() > FINDINGS_MAX {
            continue;
        }
        match lines.iter_mut().find(|line| **line == finding.description) {
            Some(line) => line.push_str(&format!(" ({})", finding.rule_id)),
            None => lines.push(format!("{} ({})", finding.description, finding.rule_id)),
        }
    }
    if named.len() > FINDINGS_MAX {
        lines.push(format!("and {} more", named.len() - FINDINGS_MAX));
    }
    for one in unjudged.iter().filter(|one| !one.failed_open) {
        let told = format!("could not be judged: {} ({}, {})", one.detail, one.plugin, one.reason);
        if !lines.iter().any(|line| line.contains(&one.detail) && !one.detail.is_empty()) {
            lines.push(told);
        }
    }
    if lines.is_empty() {
        lines.push("stopped by policy".to_owned());
    }
    format!("Portcullis: {}", lines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(json: &str) -> Event {
        Event::parse(json).expect("an event")
    }

    #[test]
    fn a_decision_that_is_not_known_stops_the_step() {
        let before = event(r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}"#);
        let unknown = v1::InterceptToolResponse::default();
        let answer = Setup::default().before_tool(&before, &unknown).expect("an answer");
        assert!(answer.into_json("PreToolUse").contains(r#""permissionDecision":"deny""#));
    }

    #[test]
    fn a_refusal_has_the_form_of_its_event() {
        for (json, wanted) in [
            (
                r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}"#,
                r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#,
            ),
            (
                r#"{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{},"tool_response":{"stdout":"key"}}"#,
                r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"stdout":"[withheld by Portcullis]"}}}"#,
            ),
            (
                r#"{"hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{},"tool_response":{"type":"pdf","file":{"filePath":"a.pdf","base64":"aGk","originalSize":2}}}"#,
                r#"{"decision":"block","reason":"no","continue":false,"stopReason":"no","hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"type":"text","file":{"filePath":"[withheld by Portcullis]","content":"[withheld by Portcullis]","numLines":1,"startLine":1,"totalLines":1}}}}"#,
            ),
            (r#"{"hook_event_name":"UserPromptSubmit"}"#, r#"{"decision":"block","reason":"no"}"#),
            (r#"{"hook_event_name":"PostToolBatch"}"#, r#"{"decision":"block","reason":"no"}"#),
            (r#"{"hook_event_name":"SessionStart"}"#, "{}"),
        ] {
            let event = event(json);
            assert_eq!(Answer::refusal(&event, "no").into_json(event.name()), wanted);
        }
    }
}
