//! The hook of Claude Code: one event in, one answer out.
//!
//! - `PreToolUse`: the tool hook before; ALLOW allows (or, deferring, says nothing), BLOCK denies, ASK asks, WARN allows
//!   and tells the user, changed arguments replace the tool's own.
//! - `PostToolUse`: the tool hook after; BLOCK, and ASK since this event cannot ask, withholds the result, a changed
//!   result replaces the tool's own.
//! - `UserPromptSubmit`: the message hook and the check of messages, whichever is stricter.
//! - Every other event passes: there is nothing to judge in it.

use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::OnError;
use super::answer::{self, Answer};
use super::event::Event;
use super::resolve::resolved_paths;
use crate::cli::context::Context;
use crate::cli::intercept::System;
use crate::cli::interception::Interception;
use crate::cli::{Failure, input, remote};
use crate::decision::Decision;
use crate::grpc::client::{Client, ClientError};
use crate::pb::v1;

/// Longest event, in bytes. It carries a whole prompt or the whole result of a tool.
const EVENT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// How long a server may take before the call is judged in process.
const SERVER_TIMEOUT: Duration = Duration::from_millis(500);
/// Most rules that are named in one answer.
const FINDINGS_MAX: usize = 5;

/// Arguments of `hook claude-code`.
#[derive(Debug, Args)]
#[command(after_help = "\
Settings are read from --config, or from portcullis.yaml in ~/.config/portcullis; never from the project, which the \
agent can write. Every failure, wrong flags included, ends with exit code 2, which Claude Code takes for a refusal.")]
pub(in crate::cli) struct ClaudeCodeArguments {
    /// Name of the policy [default: default].
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Folder of policy files, in place of that of the settings.
    #[arg(long, visible_alias = "policy-dir", value_name = "FOLDER")]
    policy_path: Option<PathBuf>,
    /// A folder the agent may change; may be given more than once.
    #[arg(long, value_name = "FOLDER")]
    workspace_root: Vec<String>,
    /// Id of the agent, for matchers and records.
    #[arg(long, value_name = "ID", default_value = "claude-code")]
    agent: String,
    /// Ask a running server first, such as http://127.0.0.1:50051; when it is away, the call is judged here.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Say nothing of tool calls that pass, so that Claude Code's own permissions and prompts apply to them.
    #[arg(long)]
    defer: bool,
    /// What a failure of the hook itself does.
    #[arg(long, value_enum, default_value = "block")]
    pub(super) on_error: OnError,
}

/// Reads one event and answers it.
pub(super) fn answer(arguments: &ClaudeCodeArguments, context: &Context) -> Result<String, Failure> {
    let event = Event::parse(&input::standard_input(EVENT_BYTES_MAX)?)?;
    let hook = Hook { arguments, context, event: &event };
    let answer = match event.hook_event_name.as_str() {
        "PreToolUse" => hook.before_tool()?,
        "PostToolUse" => hook.after_tool()?,
        "UserPromptSubmit" => hook.prompt()?,
        // Some events add what is printed to the conversation, so nothing is.
        _ => return Ok(String::new()),
    };
    Ok(answer.into_json(&event.hook_event_name))
}

/// One event with everything needed to judge it.
struct Hook<'e> {
    arguments: &'e ClaudeCodeArguments,
    context: &'e Context,
    event: &'e Event,
}

impl Hook<'_> {
    fn before_tool(&self) -> Result<Answer, Failure> {
        let (name, args) = self.event.tool()?;
        let request = self.tool_request(v1::ToolPhase::Before, name, args);
        let response = self.judged(|by| by.tool(request.clone()))?;
        let mut answer = Answer::default();
        let reason = reason(&response.block_reason, &response.findings, &response.unjudged);
        match remote::decision_of(response.decision()) {
            Decision::Block => {
                answer.deny(&reason);
                return Ok(answer);
            }
            Decision::Ask => answer.ask(&reason),
            Decision::Warn => answer.tell_user(&reason),
            Decision::Allow => {}
        }
        if !self.arguments.defer && remote::decision_of(response.decision()) <= Decision::Warn {
            answer.approve();
        }
        if !response.args_json.is_empty() && response.args_json != args {
            answer.updated_input(&response.args_json)?;
        }
        Ok(answer)
    }

    fn after_tool(&self) -> Result<Answer, Failure> {
        let (name, args) = self.event.tool()?;
        let result = self.event.tool_response.as_deref().map_or("", |result| result.get());
        let mut request = self.tool_request(v1::ToolPhase::After, name, args);
        result.clone_into(&mut request.result_json);
        let response = self.judged(|by| by.tool(request.clone()))?;
        let mut answer = Answer::default();
        let is_mcp = name.starts_with("mcp__");
        let reason = reason(&response.block_reason, &response.findings, &response.unjudged);
        match remote::decision_of(response.decision()) {
            // A person cannot be asked here.
            Decision::Block | Decision::Ask => {
                answer.block(&reason);
                if !result.is_empty() {
                    answer.updated_output(answer::withheld(result), is_mcp);
                }
                return Ok(answer);
            }
            Decision::Warn => answer.tell_user(&reason),
            Decision::Allow => {}
        }
        if !response.result_json.is_empty() && response.result_json != result {
            answer.updated_output(answer::parse("result", &response.result_json)?, is_mcp);
        }
        Ok(answer)
    }

    fn prompt(&self) -> Result<Answer, Failure> {
        let prompt = self.event.prompt.as_deref().ok_or_else(|| self.event.lacks("prompt"))?;
        let intercept = v1::InterceptMessageRequest {
            context: Some(self.call_context()),
            policy: self.policy(),
            message: prompt.to_owned(),
            ..Default::default()
        };
        let check = v1::CheckMessagesRequest {
            messages: vec![v1::Message {
                role: "user".to_owned(),
                content: Some(v1::message::Content::Text(prompt.to_owned())),
                ..Default::default()
            }],
            policy: self.policy(),
            context: Some(self.call_context()),
            direction: v1::Direction::Input.into(),
            ..Default::default()
        };
        let (message, checked) =
            self.judged(|by| Ok((by.message(intercept.clone())?, by.check(check.clone())?)))?;
        let decisions = [message.decision(), checked.decision()].map(remote::decision_of);
        let findings = [message.findings.as_slice(), checked.findings.as_slice()].concat();
        let unjudged = [message.unjudged.as_slice(), checked.unjudged.as_slice()].concat();
        let reason = reason(&message.block_reason, &findings, &unjudged);
        let mut answer = Answer::default();
        match decisions.into_iter().max().unwrap_or(Decision::Block) {
            // A person cannot be asked here.
            Decision::Block | Decision::Ask => {
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

    /// The answer of the server; when it is away, that of this process.
    fn judged<T>(&self, ask: impl Fn(&Interception) -> Result<T, Failure>) -> Result<T, Failure> {
        if let Some(url) = &self.arguments.server {
            match Client::connect(url, SERVER_TIMEOUT, &self.own_context().reach()?) {
                Ok(client) => match ask(&Interception::over(client)) {
                    Err(failure) if failure.is_of_server() => {}
                    answered => return answered,
                },
                Err(ClientError::Away { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let here = Interception::here(&self.own_context(), self.arguments.policy_path.as_deref())?;
        // The process ends with the answer. To give its rules back piece by piece would only hold the agent up.
        ask(&ManuallyDrop::new(here))
    }

    /// Where settings are looked for: with the user, since whatever lies in the project is the agent's to write.
    fn own_context(&self) -> Context {
        let home = self.context.home_directory().map(PathBuf::from);
        let folder =
            home.map_or_else(|| PathBuf::from("/nonexistent"), |home| home.join(".config/portcullis"));
        self.context.within_settings_of(folder)
    }

    fn tool_request(&self, phase: v1::ToolPhase, name: &str, args: &str) -> v1::InterceptToolRequest {
        let cwd = self.event.cwd.clone().or_else(|| self.context.working_directory()).unwrap_or_default();
        let home = self.context.home_directory().unwrap_or_default();
        let resolved_paths = match phase {
            v1::ToolPhase::Before => resolved_paths(args, &cwd, &home),
            _ => Vec::new(),
        };
        v1::InterceptToolRequest {
            phase: phase.into(),
            tool_name: name.to_owned(),
            tool_call_id: self.event.tool_use_id.clone().unwrap_or_default(),
            context: Some(self.call_context()),
            policy: self.policy(),
            args_json: args.to_owned(),
            environment: Some(v1::ExecutionContext {
                cwd,
                home,
                os: System::HERE.as_str().to_owned(),
                workspace_roots: self.arguments.workspace_root.clone(),
                resolved_paths: resolved_paths.into_iter().collect(),
            }),
            ..Default::default()
        }
    }

    fn call_context(&self) -> v1::CallContext {
        v1::CallContext {
            agent_id: self.arguments.agent.clone(),
            session_key: self.event.session_id.clone().unwrap_or_default(),
            request_id: self.event.tool_use_id.clone().unwrap_or_default(),
            ..Default::default()
        }
    }

    fn policy(&self) -> String {
        self.arguments.policy.clone().unwrap_or_default()
    }
}

/// Why a step does not simply go on, for the person and the model that read it.
fn reason(block_reason: &str, findings: &[v1::Finding], unjudged: &[v1::Unjudged]) -> String {
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
