//! `submissions events`: who changed what.

use clap::Args;

use super::WhereArguments;
use super::source::Source;
use crate::cli::bundle_text::line;
use crate::cli::context::Context;
use crate::cli::listing::{Between, check_limit, table, time};
use crate::cli::{Exit, Failure, Output};
use crate::pb::v1;

/// Arguments of `submissions events`.
#[derive(Debug, Args)]
pub(in crate::cli) struct EventsArguments {
    /// Only these actions; one that ends in `.` stands for all that begin so, such as `store.`.
    #[arg(long, value_name = "ACTION,…", value_delimiter = ',')]
    action: Vec<String>,
    /// Only what this person did.
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// Only those about this, such as `submission:<id>`.
    #[arg(long, value_name = "RESOURCE")]
    resource: Option<String>,
    #[command(flatten)]
    between: Between,
    /// `time` or `time desc`.
    #[arg(long, value_name = "ORDER", default_value = "time desc")]
    order_by: String,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    place: WhereArguments,
}

/// Runs the command.
pub(in crate::cli) fn run(
    arguments: &EventsArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    check_limit(arguments.limit)?;
    let [start_time, end_time] = arguments.between.moments()?;
    let request = v1::ListAuditEventsRequest {
        actions: arguments.action.clone(),
        actor: arguments.actor.clone().unwrap_or_default(),
        resource: arguments.resource.clone().unwrap_or_default(),
        start_time,
        end_time,
        order_by: arguments.order_by.clone(),
        ..Default::default()
    };
    let response = Source::open(&arguments.place, context)?.events(request, arguments.limit)?;
    if arguments.place.json {
        output.json(&response)?;
        return Ok(Exit::Ok);
    }
    let row = |one: &v1::AuditEvent| {
        vec![
            time(one.time.as_ref()),
            line(&one.action, 60),
            line(&one.actor, 40),
            line(&one.resource, 80),
            line(&one.reason, 200),
        ]
    };
    let rows: Vec<Vec<String>> = response.events.iter().map(row).collect();
    for text in table(&rows) {
        output.line(text);
    }
    Ok(Exit::Ok)
}
