//! `config`: the effective settings and where each comes from.

use clap::Args;

use super::context::Context;
use super::{Exit, Failure, Output};
use crate::config;

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(super) struct ConfigArguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command. Settings that the service would refuse are refused here as well.
pub(super) fn run(
    arguments: &ConfigArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let (settings, sources) = context.service_settings(|_| {})?;
    if arguments.json {
        output.json(&config::render_json(&settings, &sources))?;
    } else {
        output.text(config::render_text(&settings, &sources));
    }
    Ok(Exit::Ok)
}
