//! `policy validate`.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use crate::app;
use crate::cli::context::Context;
use crate::cli::output::Style;
use crate::cli::{Exit, Failure, Output, input};
use crate::config::Settings;
use crate::grpc::list_rules::with_coded;
use crate::messages::{LlamaGuard, OWN_PLUGINS};
use crate::policy::{self, LoadError, PolicyProblems, PolicySet, Snapshot, Source};

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
        Ok(snapshot) => {
            let warnings = warnings(&snapshot, &settings);
            accept(arguments, snapshot.policies(), &warnings, output)
        }
        Err(LoadError::Policies(problems)) => refuse(arguments, &problems, output),
        Err(error) => Err(Failure::configuration(error)),
    }
}

/// What is no mistake for certain, and worth a look.
fn warnings(snapshot: &Snapshot, settings: &Settings) -> Vec<String> {
    let set = snapshot.policies();
    let expired = set.expired_suppressions(Timestamp::now()).map(|(policy, one)| {
        format!("policy `{}`: the suppression `{}` expired at {}", policy.name(), one.reason, one.expires)
    });
    let mut all: Vec<String> = expired.collect();
    // Nobody can list what plugins of others report, so that the policy may be right.
    if settings.extensions.plugins.is_empty() {
        let rules = with_coded(snapshot);
        let own = OWN_PLUGINS.iter().map(|(id, _)| *id);
        let known: Vec<&str> = rules.iter().map(|rule| rule.category.as_str()).chain(own).collect();
        let unknown = set.unknown_categories(&known, &[LlamaGuard::FAMILY]);
        all.extend(unknown.iter().map(ToString::to_string));
    }
    all
}

fn accept(
    arguments: &ValidateArguments,
    set: &PolicySet,
    warnings: &[String],
    output: &mut Output,
) -> Result<Exit, Failure> {
    let names: Vec<&str> = set.iter().map(|policy| &**policy.name()).collect();
    if arguments.json {
        output.json(&json!({
            "valid": true,
            "revision": set.revision(),
            "policies": names,
            "warnings": warnings,
            "problems": [],
        }))?;
        return Ok(Exit::Ok);
    }
    for warning in warnings {
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
