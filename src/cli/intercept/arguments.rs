//! The command line of `intercept`, and the request it stands for.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::{Failure, input};
use crate::pb::v1;

/// Arguments of `intercept`.
#[derive(Debug, Args)]
#[command(after_help = "\
A value of --args, --result, --metadata and --params is JSON; `@FILE` reads it from a file and `-` from standard input.
Of a command after `--`, one word is the text of a command, and more are its arguments.")]
pub(in crate::cli) struct InterceptArguments {
    /// Name of the tool, as the agent knows it [default: exec for a command].
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Arguments of the tool, a JSON object.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["command", "path", "words"])]
    args: Option<String>,
    /// A shell command: the same as --tool exec --args '{"command":…}'.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["path", "words"])]
    command: Option<String>,
    /// A path: the same as --args '{"path":…}'.
    #[arg(long, value_name = "PATH", requires = "tool", conflicts_with = "words")]
    path: Option<String>,
    /// A shell command, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    words: Vec<String>,
    /// On which side of the tool call.
    #[arg(long, value_enum, default_value = "before")]
    phase: Phase,
    /// The result of the tool, JSON of any type; implies --phase after.
    #[arg(long, value_name = "JSON")]
    result: Option<String>,
    /// The tool failed.
    #[arg(long, requires = "result")]
    is_error: bool,
    /// Ask about a message, before the agent sees it; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["tool", "args", "command", "path", "words", "result"])]
    message: Option<String>,
    /// Ask about the parameters of a model call, a JSON object such as {"model":"x","temperature":0.5}.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["tool", "args", "command", "path", "words", "result"])]
    params: Option<String>,
    /// Metadata of the run so far, a JSON object.
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Id of the agent.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    agent: String,
    /// Name of the policy [default: default].
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Folder of policy files, in place of that of the settings.
    #[arg(long, value_name = "FOLDER", conflicts_with = "server")]
    pub(super) policy_path: Option<PathBuf>,
    /// Working directory of the tool, absolute [default: this one].
    #[arg(long, value_name = "FOLDER", help_heading = "Where the tool would run")]
    cwd: Option<String>,
    /// Home directory, absolute [default: yours].
    #[arg(long, value_name = "FOLDER", help_heading = "Where the tool would run")]
    home: Option<String>,
    /// Operating system [default: this one].
    #[arg(long, value_enum, help_heading = "Where the tool would run")]
    os: Option<System>,
    /// A folder the agent may change; may be given more than once.
    #[arg(long, value_name = "FOLDER", help_heading = "Where the tool would run")]
    workspace_root: Vec<String>,
    /// Also tell what each interceptor did.
    #[arg(long)]
    verbose: bool,
    /// Only tell: change nothing, neither in the answer nor anywhere.
    #[arg(long)]
    dry_run: bool,
    /// Ask a running server, such as http://127.0.0.1:50051.
    #[arg(long, value_name = "URL")]
    pub(super) server: Option<String>,
    /// Print the response as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// The side of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Phase {
    /// It has not run.
    Before,
    /// It has run.
    After,
}

/// Operating systems whose paths are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum System {
    /// Linux and its like.
    Linux,
    /// macOS.
    Macos,
    /// Windows.
    Windows,
}

impl System {
    /// The one this program runs on.
    pub(in crate::cli) const HERE: Self = if cfg!(target_os = "macos") {
        Self::Macos
    } else if cfg!(windows) {
        Self::Windows
    } else {
        Self::Linux
    };

    /// The name in the contract.
    pub(in crate::cli) const fn as_str(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Macos => "macos",
            Self::Windows => "windows",
        }
    }
}

/// What is asked.
pub(super) enum Wanted {
    /// About a tool call.
    Tool(v1::InterceptToolRequest),
    /// About a message.
    Message(v1::InterceptMessageRequest),
    /// About parameters.
    Params(v1::InterceptParamsRequest),
}

impl InterceptArguments {
    /// The request.
    pub(super) fn wanted(&self, context: &Context) -> Result<Wanted, Failure> {
        let metadata_json = json_of("--metadata", self.metadata.as_deref())?;
        let call = v1::CallContext { agent_id: self.agent.clone(), ..Default::default() };
        let policy = self.policy.clone().unwrap_or_default();
        let message = match self.message.as_deref() {
            Some("-") => input::text(Some("-"), None)?,
            message => message.unwrap_or_default().to_owned(),
        };
        if let Some(params) = &self.params {
            let text = json_of("--params", Some(params))?;
            let params = serde_json::from_str::<v1::Params>(&text)
                .map_err(|error| Failure::data(format_args!("--params: {error}")))?;
            return Ok(Wanted::Params(v1::InterceptParamsRequest {
                context: Some(call),
                policy,
                message,
                metadata_json,
                params: Some(params),
                verbose: self.verbose,
                dry_run: self.dry_run,
                ..Default::default()
            }));
        }
        if self.message.is_some() {
            return Ok(Wanted::Message(v1::InterceptMessageRequest {
                context: Some(call),
                policy,
                message,
                metadata_json,
                verbose: self.verbose,
                dry_run: self.dry_run,
                ..Default::default()
            }));
        }
        let (tool_name, args_json) = self.tool_call()?;
        let is_after = self.phase == Phase::After || self.result.is_some();
        let phase = if is_after { v1::ToolPhase::After } else { v1::ToolPhase::Before };
        Ok(Wanted::Tool(v1::InterceptToolRequest {
            phase: phase.into(),
            tool_name,
            context: Some(call),
            policy,
            args_json,
            result_json: json_of("--result", self.result.as_deref())?,
            is_error: self.is_error,
            metadata_json,
            environment: Some(self.environment(context)),
            verbose: self.verbose,
            dry_run: self.dry_run,
            ..Default::default()
        }))
    }

    /// Name and arguments of the tool.
    fn tool_call(&self) -> Result<(String, String), Failure> {
        let command = match (self.words.as_slice(), &self.command) {
            ([], command) => command.clone(),
            ([one], _) => Some(one.clone()),
            (words, _) => Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
        };
        if let Some(command) = command {
            let tool = self.tool.clone().unwrap_or_else(|| "exec".to_owned());
            return Ok((tool, json!({ "command": command }).to_string()));
        }
        let Some(tool) = self.tool.clone() else {
            return Err(Failure::usage(
                "nothing to ask about; give a command after `--`, --command, --tool with --args or --path, \
                 --message or --params",
            ));
        };
        let args = match &self.path {
            Some(path) => json!({ "path": path }).to_string(),
            None => json_of("--args", self.args.as_deref())?,
        };
        Ok((tool, args))
    }

    /// Where the tool would run: here, unless the flags say that it is another machine.
    fn environment(&self, context: &Context) -> v1::ExecutionContext {
        let os = self.os.unwrap_or(System::HERE);
        let is_here = os == System::HERE;
        let here = |path: Option<String>| if is_here { path.unwrap_or_default() } else { String::new() };
        v1::ExecutionContext {
            cwd: self.cwd.clone().unwrap_or_else(|| here(context.working_directory())),
            home: self.home.clone().unwrap_or_else(|| here(context.home_directory())),
            os: os.as_str().to_owned(),
            workspace_roots: self.workspace_root.clone(),
            ..Default::default()
        }
    }
}

/// JSON text of a flag: as given, of a file (`@FILE`), or of standard input (`-`). What it holds is for the engine to say.
fn json_of(flag: &str, value: Option<&str>) -> Result<String, Failure> {
    match value {
        None => Ok(String::new()),
        Some("-") => input::text(Some("-"), None),
        Some(value) => match value.strip_prefix('@') {
            Some(path) => input::small_file(path.as_ref()),
            None if value.trim().is_empty() => {
                Err(Failure::usage(format_args!("{flag} is empty; leave it out, or give JSON")))
            }
            None => Ok(value.to_owned()),
        },
    }
}

/// A word as a shell would have to read it to get the same word.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_more_into_them() {
        for (word, text) in [
            ("rm", "rm"),
            ("--x=/y", "--x=/y"),
            ("", "''"),
            ("a b", "'a b'"),
            ("*", "'*'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(word), text);
        }
    }
}
