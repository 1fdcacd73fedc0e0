//! `incidents show`.

use clap::Args;

use super::source::Source;
use super::{
    WhereArguments, action_name, milliseconds, severity_name, source_name, stream_name, verdict_name,
};
use crate::cli::context::Context;
use crate::cli::listing::time;
use crate::cli::output::Style;
use crate::cli::snippet::printable;
use crate::cli::{Exit, Failure, Output};
use crate::pb::v1;

/// Arguments of `incidents show`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ShowArguments {
    /// Id of the incident.
    id: String,
    #[command(flatten)]
    place: WhereArguments,
}

/// Runs the command.
pub(super) fn run(
    arguments: &ShowArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let incident = Source::open(&arguments.place, context)?.get(&arguments.id)?;
    if arguments.place.json {
        output.json(&incident)?;
    } else {
        show(&incident, output);
    }
    Ok(Exit::Ok)
}

/// Prints one incident for a person.
fn show(one: &v1::Incident, output: &mut Output) {
    let headline = format!("{} {}", verdict_name(one.verdict()), printable(&one.rule_id));
    let headline = output.styled(Style::Bold, headline);
    output.line(headline);
    let mark = match (one.false_positive, one.false_positive_reason.as_str()) {
        (false, _) => String::new(),
        (true, "") => "yes".to_owned(),
        (true, reason) => format!("yes: {reason}"),
    };
    let work = one.work.clone().unwrap_or_default();
    let caller = one.context.clone().unwrap_or_default();
    let lines = [
        ("incident", one.id.clone()),
        ("time", time(one.time.as_ref())),
        ("session", one.session_id.clone()),
        ("category", one.category.clone()),
        ("severity", severity_name(one.severity()).to_owned()),
        ("seen at", format!("{} byte {}", stream_name(one.stream()), one.offset)),
        ("repeats", if one.repeats == 0 { String::new() } else { one.repeats.to_string() }),
        ("verdict from", source_name(one.source()).to_owned()),
        ("after", milliseconds(one.latency.as_ref())),
        ("reason", one.reason.clone()),
        ("done", action_name(one.action()).to_owned()),
        ("shadow", if one.shadow { "yes".to_owned() } else { String::new() }),
        ("false positive", mark),
        ("agent", caller.agent_id),
        ("tenant", caller.tenant),
        ("request", caller.request_id),
        ("goal", work.goal),
        ("scope", work.scope),
        ("decision", one.decision_id.clone()),
        ("policy revision", one.policy_revision.clone()),
        ("matched", one.matched_text.clone()),
    ];
    for (name, value) in lines.into_iter().filter(|(_, value)| !value.is_empty()) {
        output.line(format_args!("  {name:15}  {}", printable(&value)));
    }
    if !one.excerpt.is_empty() {
        output.line("  around it");
        for line in one.excerpt.lines() {
            output.line(format_args!("    {}", printable(line)));
        }
    }
}
