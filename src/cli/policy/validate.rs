//! `policy validate`.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use crate::app;
use crate::cli::context::Context;
use crate::cli::output::Style;
use crate::cli::{Exit, Failure, Output, input};
use crate::policy::{self, LoadError, PolicyProblems, PolicySet, Source};

/// Arguments of `policy validate`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ValidateArguments {
    /// A policy file or a folder of them.
    path: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(
    arguments: &ValidateArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let settings = context.settings()?;
    let path = arguments.path.as_ref().or(settings.policy.path.as_ref());
    // The names that policies may use are those of the rules in force.
    let sources = app::sources(&settings);
    let loaded = match path {
        Some(file) if !file.is_dir() => {
            let text = input::small_file(file)?;
            let name = file.display().to_string();
            policy::load_with(&sources, None, |vocabulary| {
                policy::compile(&[Source { file: &name, text: &text }], vocabulary)
            })
        }
        folder => policy::load_with(&sources, None, |vocabulary| {
            policy::load_dir(folder.map(PathBuf::as_path), vocabulary)
        }),
    };
    match loaded {
        Ok(snapshot) => accept(arguments, snapshot.policies(), output),
        Err(LoadError::Policies(problems)) => refuse(arguments, &problems, output),
        Err(error) => Err(Failure::configuration(error)),
    }
}

fn accept(arguments: &ValidateArguments, set: &PolicySet, output: &mut Output) -> Result<Exit, Failure> {
    let names: Vec<&str> = set.iter().map(|policy| &**policy.name()).collect();
    let now = Timestamp::now();
    let expired: Vec<String> = set
        .expired_suppressions(now)
        .map(|(policy, one)| {
            format!("policy `{}`: the suppression `{}` expired at {}", policy.name(), one.reason, one.expires)
        })
        .collect();
    if arguments.json {
        output.json(&json!({
            "valid": true,
            "revision": set.revision(),
            "policies": names,
            "warnings": expired,
            "problems": [],
        }))?;
        return Ok(Exit::Ok);
    }
    for warning in &expired {
        let warning = output.styled(Style::Yellow, warning);
        output.line(warning);
    }
    let verdict = output.styled(Style::Green, "ok");
    output.line(format_args!("{verdict}: {} (revision {})", names.join(", "), set.revision()));
    Ok(Exit::Ok)
}

fn refuse(
    arguments: &ValidateArguments,
    problems: &PolicyProblems,
    output: &mut Output,
) -> Result<Exit, Failure> {
    if arguments.json {
        let problems: Vec<_> = problems
            .iter()
            .map(|problem| {
                json!({
                    "file": *problem.place.file,
                    "line": problem.place.line,
                    "column": problem.place.column,
                    "key": problem.place.key,
                    "what": problem.what,
                    "fix": problem.fix,
                })
            })
            .collect();
        output.json(&json!({ "valid": false, "problems": problems }))?;
    } else {
        output.line(problems);
    }
    Ok(Exit::Data)
}
