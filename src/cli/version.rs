//! `version`.

use clap::Args;
use serde_json::json;

use super::{Exit, Failure, Output};
use crate::rules::{RuleSet, builtin_sources};

/// Arguments of `version`.
#[derive(Debug, Args)]
pub(super) struct VersionArguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(arguments: &VersionArguments, output: &mut Output) -> Result<Exit, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    // Two builds of one version differ when their rules do.
    let rules = RuleSet::revision_of(&builtin_sources());
    if arguments.json {
        // A build for debugging is several times as slow: who measures must know.
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        output.json(&json!({ "version": version, "rules_revision": rules, "profile": profile }))?;
    } else {
        output.line(format_args!("portcullis {version} (rules {rules})"));
    }
    Ok(Exit::Ok)
}
