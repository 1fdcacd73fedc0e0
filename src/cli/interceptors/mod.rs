//! `interceptors`: the registry of a running server.

mod add;
mod list;
mod remove;
mod spec;

use clap::Subcommand;

use super::context::Context;
use super::{Exit, Failure, Output};
use crate::pb::v1;

/// The server that is asked when none is named: this machine, on the default port.
const SERVER_DEFAULT: &str = "http://127.0.0.1:50051";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum InterceptorsCommand {
    /// List the interceptors in force, by hook and in running order.
    List(list::ListArguments),
    /// Add one; it is kept over a restart and reaches every replica.
    Add(add::AddArguments),
    /// Remove one that was added.
    Remove(remove::RemoveArguments),
}

/// Runs one of them.
pub(super) fn run(
    command: &InterceptorsCommand,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    match command {
        InterceptorsCommand::List(arguments) => list::run(arguments, context, output),
        InterceptorsCommand::Add(arguments) => add::run(arguments, context, output),
        InterceptorsCommand::Remove(arguments) => remove::run(arguments, context, output),
    }
}

/// A hook as policies and people name it.
fn hook_name(hook: v1::Hook) -> &'static str {
    match hook {
        v1::Hook::MessageBefore => "message.before",
        v1::Hook::ParamsBefore => "params.before",
        v1::Hook::ToolBefore => "tool.before",
        v1::Hook::ToolAfter => "tool.after",
        v1::Hook::Unspecified => "unknown",
    }
}

/// The hook of that name.
fn hook_of(name: &str) -> Option<v1::Hook> {
    [v1::Hook::MessageBefore, v1::Hook::ParamsBefore, v1::Hook::ToolBefore, v1::Hook::ToolAfter]
        .into_iter()
        .find(|hook| hook_name(*hook) == name)
}
