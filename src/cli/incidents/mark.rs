//! `incidents mark` and `incidents unmark`.

use clap::Args;

use super::WhereArguments;
use super::source::Source;
use crate::cli::context::Context;
use crate::cli::snippet::printable;
use crate::cli::token::TokenArguments;
use crate::cli::{Exit, Failure, Output};
use crate::pb::v1;

/// Arguments of `incidents mark`.
#[derive(Debug, Args)]
pub(in crate::cli) struct MarkArguments {
    /// Why it is one, for the record.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    #[command(flatten)]
    which: UnmarkArguments,
}

/// Arguments of `incidents unmark`.
#[derive(Debug, Args)]
pub(in crate::cli) struct UnmarkArguments {
    /// Id of the incident.
    id: String,
    #[command(flatten)]
    token: TokenArguments,
    #[command(flatten)]
    place: WhereArguments,
}

/// Runs `incidents mark`.
pub(super) fn run(
    arguments: &MarkArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    change(&arguments.which, Some(&arguments.reason), context, output)
}

/// Runs `incidents unmark`.
pub(super) fn run_undo(
    arguments: &UnmarkArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    change(arguments, None, context, output)
}

fn change(
    which: &UnmarkArguments,
    reason: Option<&str>,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let request = v1::MarkFalsePositiveRequest {
        incident_id: which.id.clone(),
        reason: reason.unwrap_or_default().to_owned(),
        undo: reason.is_none(),
    };
    let response = Source::open(&which.place, context)?.mark(request, &which.token, context)?;
    if which.place.json {
        output.json(&response)?;
        return Ok(Exit::Ok);
    }
    let done = if reason.is_some() { "marked as a false positive" } else { "no longer marked" };
    output.line(format_args!("{}: {done}", printable(&which.id)));
    Ok(Exit::Ok)
}
