//! The hook of Claude Code on the command line: one event on standard input, one answer on standard output.

use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::OnError;
use super::resolve::resolved_paths;
use crate::cli::context::Context;
use crate::cli::intercept::System;
use crate::cli::interception::Interception;
use crate::cli::{Failure, input};
use crate::grpc::client::{Client, ClientError};
use crate::hooks::{Answer, Event, HookError, Question, Setup};
use crate::pb::v1;

/// Longest event, in bytes. It carries a whole prompt or the whole result of a tool.
const EVENT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// How long a server may take before the call is judged in process.
const SERVER_TIMEOUT: Duration = Duration::from_millis(500);

/// Arguments of `hook claude-code`.
#[derive(Debug, Args)]
#[command(after_help = "\
Settings are read from --config, or from portcullis.yaml in ~/.config/portcullis; never from the project, which the \
agent can write. Every failure, wrong flags included, ends with exit code 2, which Claude Code takes for a refusal, or with an \
answer that withholds the result, where there is one.")]
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
    match judged(arguments, context, &event) {
        // No exit code withholds a result that is there already; an answer does.
        Err(failure) if event.has_results() && arguments.on_error == OnError::Block => {
            Ok(Answer::refusal(&event, &super::refused(&failure)).into_json(event.name()))
        }
        answered => answered,
    }
}

fn judged(arguments: &ClaudeCodeArguments, context: &Context, event: &Event) -> Result<String, Failure> {
    let setup = Setup {
        policy: arguments.policy.clone().unwrap_or_default(),
        agent_id: arguments.agent.clone(),
        defers: arguments.defer,
    };
    let hook = Hook { arguments, context, event };
    let answer = match setup.question(event)? {
        Question::ToolBefore(mut request) => {
            request.environment = Some(hook.environment(true));
            setup.before_tool(event, &hook.judged(|by| by.tool((*request).clone()))?)?
        }
        Question::ToolAfter(mut request) => {
            request.environment = Some(hook.environment(false));
            setup.after_tool(event, &hook.judged(|by| by.tool((*request).clone()))?)?
        }
        Question::Batch(mut requests) => {
            for request in &mut requests {
                request.environment = Some(hook.environment(false));
            }
            let judged = hook.judged(|by| {
                requests.iter().map(|request| by.tool(request.clone())).collect::<Result<Vec<_>, _>>()
            })?;
            setup.after_batch(event, &judged)?
        }
        Question::Prompt(requests) => {
            let (intercept, check) = &*requests;
            let (message, checked) =
                hook.judged(|by| Ok((by.message(intercept.clone())?, by.check(check.clone())?)))?;
            setup.after_prompt(event, &message, &checked)?
        }
        // Some events add what is printed to the conversation, so nothing is.
        Question::Nothing => return Ok(String::new()),
    };
    Ok(answer.into_json(event.name()))
}

impl From<HookError> for Failure {
    fn from(error: HookError) -> Self {
        match error {
            HookError::Event(message) => Self::data(message),
            HookError::Change(message) => Self::internal(message),
        }
    }
}

/// One event with everything needed to judge it.
struct Hook<'e> {
    arguments: &'e ClaudeCodeArguments,
    context: &'e Context,
    event: &'e Event,
}

impl Hook<'_> {
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

    /// Where the tool runs. Before it does, paths are followed to where they lead.
    fn environment(&self, follows_paths: bool) -> v1::ExecutionContext {
        let cwd = self.event.cwd.clone().or_else(|| self.context.working_directory()).unwrap_or_default();
        let home = self.context.home_directory().unwrap_or_default();
        let resolved_paths = match self.event.arguments() {
            Some(arguments) if follows_paths => resolved_paths(arguments, &cwd, &home),
            _ => Vec::new(),
        };
        v1::ExecutionContext {
            cwd,
            home,
            os: System::HERE.as_str().to_owned(),
            workspace_roots: self.arguments.workspace_root.clone(),
            resolved_paths: resolved_paths.into_iter().collect(),
        }
    }
}
