//! `incidents list`.

use clap::Args;

use super::source::Source;
use super::{WhereArguments, action_name, milliseconds, named, severity_name, source_name, verdict_name};
use crate::cli::context::Context;
use crate::cli::listing::{Between, check_limit, count, time};
use crate::cli::output::Style;
use crate::cli::snippet::printable;
use crate::cli::{Exit, Failure, Output};
use crate::pb::v1;

/// Arguments of `incidents list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// Only those of this session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only those of this rule.
    #[arg(long, value_name = "ID")]
    rule: Option<String>,
    /// Only those of this category, or of one below it.
    #[arg(long, value_name = "NAME")]
    category: Option<String>,
    /// Only those at least this bad: low, medium, high or critical.
    #[arg(long, value_name = "SEVERITY")]
    severity: Option<String>,
    /// Only those with this verdict: SAFE, WARN or KILL.
    #[arg(long, value_name = "VERDICT")]
    verdict: Option<String>,
    /// Only those whose verdict came from there: rule, judge, policy or fail_mode.
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Only those where this was done: none, warned, kill_advised or error.
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only those marked as false positives (true), or only the others (false).
    #[arg(long, value_name = "BOOL")]
    false_positive: Option<bool>,
    /// Only those of this agent.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    #[command(flatten)]
    between: Between,
    /// `time`, `severity`, `rule_id`, `category` or `latency`, alone or followed by ` desc`.
    #[arg(long, value_name = "ORDER", default_value = "time desc")]
    order_by: String,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    place: WhereArguments,
}

/// Runs the command.
pub(super) fn run(
    arguments: &ListArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    check_limit(arguments.limit)?;
    let request = request(arguments)?;
    let response = Source::open(&arguments.place, context)?.list(request, arguments.limit)?;
    if arguments.place.json {
        output.json(&response)?;
        return Ok(Exit::Ok);
    }
    let width = |of: fn(&v1::Incident) -> usize| response.incidents.iter().map(of).max().unwrap_or(0);
    let rules = width(|one| one.rule_id.chars().count());
    let categories = width(|one| one.category.chars().count());
    for one in &response.incidents {
        let verdict = format!("{:4}", verdict_name(one.verdict()));
        let verdict = match one.verdict() {
            v1::VerdictKind::Kill => output.styled(Style::Red, verdict),
            v1::VerdictKind::Warn => output.styled(Style::Yellow, verdict),
            v1::VerdictKind::Safe => output.styled(Style::Green, verdict),
            v1::VerdictKind::Unspecified => verdict,
        };
        let mut notes = Vec::new();
        if one.false_positive {
            notes.push("false positive".to_owned());
        }
        if one.shadow {
            notes.push("shadow".to_owned());
        }
        if one.repeats > 0 {
            notes.push(format!("{} repeats", one.repeats));
        }
        let line = format!(
            "{}  {}  {verdict}  {:9}  {:12}  {:8}  {:rules$}  {:categories$}  {:>9}  {}",
            one.id,
            time(one.time.as_ref()),
            source_name(one.source()),
            action_name(one.action()),
            severity_name(one.severity()),
            printable(&one.rule_id),
            printable(&one.category),
            milliseconds(one.latency.as_ref()),
            notes.join(", "),
        );
        output.line(line.trim_end());
    }
    let count = count(response.incidents.len(), response.total, ("incident", "incidents"));
    let count = output.styled(Style::Dim, count);
    output.line(count);
    Ok(Exit::Ok)
}

fn request(arguments: &ListArguments) -> Result<v1::ListIncidentsRequest, Failure> {
    use v1::{IncidentAction, Severity, VerdictKind, VerdictSource};
    let severity = named(
        "--severity",
        arguments.severity.as_ref(),
        &[
            ("low", Severity::Low),
            ("medium", Severity::Medium),
            ("high", Severity::High),
            ("critical", Severity::Critical),
        ],
    )?;
    let verdict = named(
        "--verdict",
        arguments.verdict.as_ref(),
        &[("SAFE", VerdictKind::Safe), ("WARN", VerdictKind::Warn), ("KILL", VerdictKind::Kill)],
    )?;
    let source = named(
        "--source",
        arguments.source.as_ref(),
        &[
            ("rule", VerdictSource::Rule),
            ("judge", VerdictSource::Judge),
            ("policy", VerdictSource::Policy),
            ("fail_mode", VerdictSource::FailMode),
        ],
    )?;
    let action = named(
        "--action",
        arguments.action.as_ref(),
        &[
            ("none", IncidentAction::None),
            ("warned", IncidentAction::Warned),
            ("kill_advised", IncidentAction::KillAdvised),
            ("error", IncidentAction::Error),
        ],
    )?;
    let [start_time, end_time] = arguments.between.moments()?;
    Ok(v1::ListIncidentsRequest {
        session_id: arguments.session.clone().unwrap_or_default(),
        rule_id: arguments.rule.clone().unwrap_or_default(),
        category: arguments.category.clone().unwrap_or_default(),
        severity_min: severity.unwrap_or_default().into(),
        verdict: verdict.unwrap_or_default().into(),
        source: source.unwrap_or_default().into(),
        action: action.unwrap_or_default().into(),
        false_positive: arguments.false_positive,
        agent_id: arguments.agent.clone().unwrap_or_default(),
        start_time,
        end_time,
        order_by: arguments.order_by.clone(),
        ..Default::default()
    })
}
