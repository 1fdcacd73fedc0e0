//! `interceptors remove`.

use clap::Args;

use super::SERVER_DEFAULT;
use crate::cli::context::Context;
use crate::cli::snippet::printable;
use crate::cli::token::TokenArguments;
use crate::cli::{Exit, Failure, Output, remote};

/// Arguments of `interceptors remove`.
#[derive(Debug, Args)]
pub(in crate::cli) struct RemoveArguments {
    /// Id of the interceptor.
    id: String,
    #[command(flatten)]
    token: TokenArguments,
    /// The server to remove it from.
    #[arg(long, value_name = "URL", default_value = SERVER_DEFAULT)]
    server: String,
    /// Print the response as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(
    arguments: &RemoveArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let token = arguments.token.read(context)?;
    let response = remote::connect(&arguments.server, context)?.remove_interceptor(&arguments.id, &token)?;
    if arguments.json {
        output.json(&response)?;
        return Ok(Exit::Ok);
    }
    output.line(format_args!("{}: removed", printable(&arguments.id)));
    Ok(Exit::Ok)
}
