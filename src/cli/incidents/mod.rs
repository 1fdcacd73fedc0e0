//! `incidents`: what the stream monitor found, here or on a server.

mod list;
mod mark;
mod show;
mod source;
mod stats;

use clap::{Args, Subcommand};

use super::bundle_text::severity_name;
use super::context::Context;
use super::{Exit, Failure, Output};
use crate::pb::v1;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum IncidentsCommand {
    /// List incidents, the newest first.
    List(Box<list::ListArguments>),
    /// Show one incident.
    Show(show::ShowArguments),
    /// Mark an incident as a false positive.
    Mark(mark::MarkArguments),
    /// Take such a mark back.
    Unmark(mark::UnmarkArguments),
    /// Count incidents, false positives and the time to a verdict, rule by rule, over 7 and 30 days.
    Stats(stats::StatsArguments),
}

/// Where to look, and how to tell.
#[derive(Debug, Args)]
struct WhereArguments {
    /// The server to ask [default: the store that the settings name, in this process].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Print the response as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs one of them.
pub(super) fn run(
    command: &IncidentsCommand,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    match command {
        IncidentsCommand::List(arguments) => list::run(arguments, context, output),
        IncidentsCommand::Show(arguments) => show::run(arguments, context, output),
        IncidentsCommand::Mark(arguments) => mark::run(arguments, context, output),
        IncidentsCommand::Unmark(arguments) => mark::run_undo(arguments, context, output),
        IncidentsCommand::Stats(arguments) => stats::run(arguments, context, output),
    }
}

/// A verdict as people name it.
fn verdict_name(verdict: v1::VerdictKind) -> &'static str {
    match verdict {
        v1::VerdictKind::Safe => "SAFE",
        v1::VerdictKind::Warn => "WARN",
        v1::VerdictKind::Kill => "KILL",
        v1::VerdictKind::Unspecified => "none",
    }
}

fn source_name(source: v1::VerdictSource) -> &'static str {
    match source {
        v1::VerdictSource::Rule => "rule",
        v1::VerdictSource::Judge => "judge",
        v1::VerdictSource::Policy => "policy",
        v1::VerdictSource::FailMode => "fail_mode",
        v1::VerdictSource::Unspecified => "none",
    }
}

fn action_name(action: v1::IncidentAction) -> &'static str {
    match action {
        v1::IncidentAction::None => "none",
        v1::IncidentAction::Warned => "warned",
        v1::IncidentAction::KillAdvised => "kill_advised",
        v1::IncidentAction::Error => "error",
        v1::IncidentAction::Unspecified => "nothing yet",
    }
}

fn stream_name(stream: v1::OutputStream) -> &'static str {
    match stream {
        v1::OutputStream::Stdout => "stdout",
        v1::OutputStream::Stderr => "stderr",
        v1::OutputStream::Unspecified => "unknown",
    }
}

/// A duration in milliseconds.
fn milliseconds(duration: Option<&pbjson_types::Duration>) -> String {
    let ms = |of: &pbjson_types::Duration| of.seconds as f64 * 1e3 + f64::from(of.nanos) / 1e6;
    duration.map_or_else(|| "-".to_owned(), |of| format!("{:.1} ms", ms(of)))
}

/// The value of that name, or what a person can do about a wrong one.
fn named<T: Copy>(flag: &str, given: Option<&String>, all: &[(&str, T)]) -> Result<Option<T>, Failure> {
    let Some(given) = given else { return Ok(None) };
    match all.iter().find(|(name, _)| name.eq_ignore_ascii_case(given)) {
        Some((_, value)) => Ok(Some(*value)),
        None => {
            let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            Err(Failure::usage(format_args!("{flag}: `{given}` is none of: {}", names.join(", "))))
        }
    }
}
