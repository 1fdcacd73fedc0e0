//! `rules show`: one rule as it stands in its file.

use clap::Args;
use serde_json::json;

use super::lookup::Rules;
use crate::cli::context::Context;
use crate::cli::output::Style;
use crate::cli::{Exit, Failure, Output};

/// Arguments of `rules show`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ShowArguments {
    /// Id of the rule.
    id: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(
    arguments: &ShowArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let rules = Rules::load(context)?;
    let rule = rules.find(&arguments.id)?;
    let (file, line) = (rule.file, rule.line);
    let text =
        rules.text_of(&rule).ok_or_else(|| Failure::data(format_args!("{file}: cannot be read again")))?;
    if arguments.json {
        let message = rule.told(&rules.snapshot);
        output.json(&json!({ "rule": message, "file": file, "line": line, "toml": text }))?;
    } else {
        let place = output.styled(Style::Dim, format_args!("# {file}:{line}"));
        output.line(place);
        output.line(text);
    }
    Ok(Exit::Ok)
}
