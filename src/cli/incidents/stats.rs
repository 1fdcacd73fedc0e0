//! `incidents stats`.

use clap::Args;

use super::source::Source;
use super::{WhereArguments, milliseconds};
use crate::cli::context::Context;
use crate::cli::output::Style;
use crate::cli::snippet::printable;
use crate::cli::{Exit, Failure, Output};
use crate::pb::v1;

/// Arguments of `incidents stats`.
#[derive(Debug, Args)]
pub(in crate::cli) struct StatsArguments {
    /// Only this rule.
    #[arg(long, value_name = "ID")]
    rule: Option<String>,
    /// Only this category, or those below it.
    #[arg(long, value_name = "NAME")]
    category: Option<String>,
    #[command(flatten)]
    place: WhereArguments,
}

/// Runs the command.
pub(super) fn run(
    arguments: &StatsArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let request = v1::GetIncidentStatsRequest {
        rule_id: arguments.rule.clone().unwrap_or_default(),
        category: arguments.category.clone().unwrap_or_default(),
    };
    let response = Source::open(&arguments.place, context)?.stats(request)?;
    if arguments.place.json {
        output.json(&response)?;
        return Ok(Exit::Ok);
    }
    let width = response.rules.iter().map(|rule| rule.rule_id.chars().count()).max().unwrap_or(0).max(9);
    let head = format!(
        "{:width$}  {:>4}  {:>9}  {:>7}  {:>5}  {:>5}  {:>5}  mean time to a verdict",
        "rule", "days", "incidents", "false", "SAFE", "WARN", "KILL"
    );
    let head = output.styled(Style::Dim, head);
    output.line(head);
    let mut row = |name: &str, days: u32, stats: Option<&v1::IncidentStats>| {
        let stats = stats.copied().unwrap_or_default();
        output.line(format_args!(
            "{name:width$}  {days:>4}  {:>9}  {:>6.1}%  {:>5}  {:>5}  {:>5}  {}",
            stats.incidents,
            stats.false_positive_rate * 100.0,
            stats.safe,
            stats.warn,
            stats.kill,
            milliseconds(stats.mean_latency.as_ref()),
        ));
    };
    for rule in &response.rules {
        let name = printable(&rule.rule_id);
        row(&name, 7, rule.last_7_days.as_ref());
        row(&name, 30, rule.last_30_days.as_ref());
    }
    row("all rules", 7, response.last_7_days.as_ref());
    row("all rules", 30, response.last_30_days.as_ref());
    Ok(Exit::Ok)
}
