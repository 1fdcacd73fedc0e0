//! `interceptors add`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{SERVER_DEFAULT, spec};
use crate::cli::context::Context;
use crate::cli::snippet::printable;
use crate::cli::token::TokenArguments;
use crate::cli::{Exit, Failure, Output, input, remote};
use crate::pb::v1;

/// Arguments of `interceptors add`.
#[derive(Debug, Args)]
pub(in crate::cli) struct AddArguments {
    /// YAML or JSON of one interceptor, as it stands in the list `interceptors` of a policy file, or of the message
    /// Interceptor of the contract; `-` reads standard input.
    file: PathBuf,
    /// Its tool matcher may match no known tool.
    #[arg(long)]
    allow_unknown_tools: bool,
    /// Only check it.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    token: TokenArguments,
    /// The server to add it to.
    #[arg(long, value_name = "URL", default_value = SERVER_DEFAULT)]
    server: String,
    /// Print the response as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(arguments: &AddArguments, context: &Context, output: &mut Output) -> Result<Exit, Failure> {
    let shown = arguments.file.display().to_string();
    let text = input::text(None, Some(&arguments.file))?;
    let spec = spec::read(&text).map_err(|told| Failure::data(format_args!("{shown}: {told}")))?;
    let request = v1::AddInterceptorRequest {
        interceptor: Some(spec.interceptor),
        allow_unknown_tools: arguments.allow_unknown_tools || spec.allow_unknown_tools,
        dry_run: arguments.dry_run,
    };
    let token = arguments.token.read(context)?;
    let response = remote::connect(&arguments.server, context)?.add_interceptor(request, &token)?;
    if arguments.json {
        output.json(&json!(response))?;
        return Ok(Exit::Ok);
    }
    let id = response.interceptor.as_ref().map(|one| printable(&one.id)).unwrap_or_default();
    let done = if arguments.dry_run { "could be added" } else { "added" };
    let tools = match response.matched_tools.as_slice() {
        [] => String::new(),
        tools => format!("; matches {}", printable(&tools.join(", "))),
    };
    output.line(format_args!("{id}: {done}{tools}"));
    Ok(Exit::Ok)
}
