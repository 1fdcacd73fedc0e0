//! `rules list`.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::json;

use super::lookup::Rules;
use crate::cli::context::Context;
use crate::cli::output::Style;
use crate::cli::{Exit, Failure, Output, remote};
use crate::grpc::list_rules::with_coded;
use crate::pb::v1;

/// Arguments of `rules list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// Only the rules of this plugin.
    #[arg(long, value_name = "ID")]
    plugin: Option<String>,
    /// List the rules of a running server.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(
    arguments: &ListArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let plugin = arguments.plugin.as_deref().unwrap_or_default();
    let rules = match &arguments.server {
        Some(url) => remote::connect(url, context)?.rules(plugin)?,
        None => rules_here(plugin, context)?,
    };
    if arguments.json {
        output.json(&json!({ "rules": rules }))?;
        return Ok(Exit::Ok);
    }
    let width =
        |of: fn(&v1::Rule) -> &str| rules.iter().map(|rule| of(rule).chars().count()).max().unwrap_or(0);
    let (ids, categories) = (width(|rule| &rule.id), width(|rule| &rule.category));
    for rule in &rules {
        let severity = rule.severity().as_str_name().trim_start_matches("SEVERITY_").to_ascii_lowercase();
        let mode = rule.mode().as_str_name().trim_start_matches("MODE_").to_ascii_lowercase();
        let (id, category, what) = (&rule.id, &rule.category, &rule.description);
        output.line(format_args!("{id:ids$}  {severity:8}  {mode:7}  {category:categories$}  {what}"));
    }
    let plural = if rules.len() == 1 { "" } else { "s" };
    let count = output.styled(Style::Dim, format_args!("{} rule{plural}", rules.len()));
    output.line(count);
    Ok(Exit::Ok)
}

fn rules_here(plugin: &str, context: &Context) -> Result<Vec<v1::Rule>, Failure> {
    let rules = Rules::load(context)?;
    let mut wanted = with_coded(&rules.snapshot);
    if !plugin.is_empty() && !wanted.iter().any(|rule| rule.plugin == plugin) {
        let known: BTreeSet<&str> = wanted.iter().map(|rule| rule.plugin).collect();
        let known: Vec<&str> = known.into_iter().collect();
        return Err(Failure::data(format_args!(
            "no plugin `{plugin}` has rules; known: {}",
            known.join(", ")
        )));
    }
    wanted.retain(|rule| plugin.is_empty() || rule.plugin == plugin);
    wanted.sort_by_key(|rule| rule.id);
    Ok(wanted.iter().map(|rule| rule.told(&rules.snapshot)).collect())
}
