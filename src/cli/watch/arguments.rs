//! The command line of `watch`, and the session it stands for.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::pb::v1;

/// Arguments of `watch`.
#[derive(Debug, Args)]
#[command(after_help = "\
The exit code is that of the command, 128+N when signal N ended it, 86 when a verdict stopped it, 87 when it could not
be watched any longer. Verdicts are told on standard error; the output of the command stays as it is.")]
pub(in crate::cli) struct WatchArguments {
    /// What the command is to achieve; a model judges its output against this.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        help_heading = "The work"
    )]
    goal: String,
    /// When the work is done; may be given more than once.
    #[arg(long, value_name = "TEXT", help_heading = "The work")]
    accept: Vec<String>,
    /// What is not to be done; may be given more than once.
    #[arg(long, value_name = "TEXT", help_heading = "The work")]
    non_goal: Vec<String>,
    /// What may be touched.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        help_heading = "The work"
    )]
    scope: String,
    /// A label of the work; may be given more than once.
    #[arg(long, value_name = "NAME=VALUE", value_parser = label, help_heading = "The work")]
    label: Vec<(String, String)>,
    /// Id of the session, kept with every incident [default: a new one].
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    session: String,
    /// Id of the agent.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    agent: String,
    /// Name of the policy [default: default].
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    policy: String,
    /// Folder of policy files, in place of that of the settings.
    #[arg(long, value_name = "FOLDER")]
    pub(super) policy_path: Option<PathBuf>,
    /// Have a running server watch, such as http://127.0.0.1:50051.
    #[arg(long, value_name = "URL")]
    pub(super) server: Option<String>,
    /// What to do when the server goes away.
    #[arg(long, value_enum, default_value = "local")]
    pub(super) on_disconnect: OnDisconnect,
    /// Tell of incidents and verdicts as lines of JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(super) words: Vec<OsString>,
}

/// What becomes of a command whose server has gone away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnDisconnect {
    /// Kill the command.
    Kill,
    /// Go on without anybody watching.
    Continue,
    /// Watch in this process, by the rules and policies of this machine.
    Local,
}

impl WatchArguments {
    /// The first message to a monitor. The session keeps its id when another monitor takes over.
    pub(super) fn attach(&self, session_id: &str) -> v1::Attach {
        let work = v1::WorkContext {
            goal: self.goal.clone(),
            acceptance_criteria: self.accept.clone(),
            non_goals: self.non_goal.clone(),
            scope: self.scope.clone(),
            labels: self.label.iter().cloned().collect(),
        };
        let context = v1::CallContext { agent_id: self.agent.clone(), ..Default::default() };
        v1::Attach {
            session_id: session_id.to_owned(),
            work: (work != v1::WorkContext::default()).then_some(work),
            context: (context != v1::CallContext::default()).then_some(context),
            policy: self.policy.clone(),
            acks: true,
        }
    }

    /// The id of the session, if one was given.
    pub(super) fn session(&self) -> Option<&str> {
        (!self.session.is_empty()).then_some(self.session.as_str())
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("is not of the form NAME=VALUE".to_owned()),
    }
}
