//! `submissions show` and `submissions watch`.

use clap::Args;

use super::WhereArguments;
use super::source::Source;
use crate::cli::bundle_text::{
    hold_sentence, kind_name, line, print_capabilities, print_checks, print_coverage, print_gaps,
    status_name, status_style, visibility_name,
};
use crate::cli::context::Context;
use crate::cli::listing::time;
use crate::cli::output::Style;
use crate::cli::progress::size;
use crate::cli::{Exit, Failure, Output, remote};
use crate::pb::v1;

/// Arguments of `submissions show` and `submissions watch`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ShowArguments {
    /// Id of the submission.
    id: String,
    #[command(flatten)]
    place: WhereArguments,
}

/// Runs `submissions show`.
pub(super) fn run(
    arguments: &ShowArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let request = v1::GetSubmissionRequest { submission_id: arguments.id.clone(), ..Default::default() };
    let response = Source::open(&arguments.place, context)?.get(request)?;
    if arguments.place.json {
        output.json(&response)?;
    } else {
        print(&response.submission.unwrap_or_default(), output);
    }
    Ok(Exit::Ok)
}

/// Runs `submissions watch`.
pub(super) fn watch(
    arguments: &ShowArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let request = v1::WatchSubmissionRequest {
        submission_id: arguments.id.clone(),
        view: v1::SubmissionView::Basic.into(),
    };
    let source = Source::open(&arguments.place, context)?;
    let is_json = arguments.place.json;
    let mut failed = None;
    let last = source.watch(request, |answer| {
        if is_json {
            // One document a line, so that a reader need not wait for the end.
            match serde_json::to_string(answer) {
                Ok(text) => output.line(text),
                Err(error) => failed = Some(Failure::internal(error)),
            }
        } else {
            let one = answer.submission.clone().unwrap_or_default();
            let status = output.styled(status_style(one.status()), status_name(one.status()));
            let held = hold_sentence(one.hold_reason()).map(|why| format!("  {why}")).unwrap_or_default();
            let visibility = visibility_name(one.visibility());
            output.line(format_args!("{}  {status}  {visibility}{held}", time(one.update_time.as_ref())));
        }
        output.flush_now();
    })?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    Ok(Exit::Decided(remote::decision_of(last.decision())))
}

/// Prints one submission for a person.
pub(super) fn print(one: &v1::Submission, output: &mut Output) {
    let status = output.styled(status_style(one.status()), status_name(one.status()));
    let version = if one.version.is_empty() { String::new() } else { format!(" {}", line(&one.version, 40)) };
    output.line(format_args!("{status}  {} {}{version}", kind_name(one.kind()), line(&one.name, 100)));
    if let Some(sentence) = hold_sentence(one.hold_reason()) {
        let sentence = output.styled(Style::Yellow, sentence);
        output.line(format_args!("  {sentence}"));
    }
    let visibility = if one.live {
        format!("{} (this version is live)", visibility_name(one.visibility()))
    } else {
        visibility_name(one.visibility())
    };
    let bytes = match &one.bundle_purge_time {
        Some(_) => format!("{}, removed {}", size(one.file_size), time(one.bundle_purge_time.as_ref())),
        None => size(one.file_size),
    };
    let overridden = one.r#override.as_ref().map(|by| {
        format!(
            "{} by {}, was {}: {}",
            time(by.time.as_ref()),
            line(&by.actor, 60),
            status_name(by.prior_status()),
            line(&by.reason, 600)
        )
    });
    for (name, value) in [
        ("submission", line(&one.id, 60)),
        ("entity", line(&one.entity_id, 60)),
        ("visibility", visibility),
        ("submitter", line(&one.submitter, 100)),
        ("about", line(&one.description, 400)),
        ("received", time(one.create_time.as_ref())),
        ("changed", time(one.update_time.as_ref())),
        ("files", one.file_count.to_string()),
        ("size", bytes),
        ("sha256", line(&one.bundle_sha256, 80)),
        ("model", line(&one.review_model, 80)),
        ("decision", format!("{} under policy revision {}", one.decision_id, one.policy_revision)),
        ("override", overridden.unwrap_or_default()),
    ] {
        if !value.is_empty() {
            output.line(format_args!("  {name:10} {value}"));
        }
    }
    if let Some(checks) = &one.checks {
        print_checks(checks, false, output);
    }
    print_gaps(&one.unjudged, output);
    print_capabilities(&one.capabilities, output);
    print_coverage(&one.coverage, output);
    print_attempts(&one.attempts, output);
    print_timeline(&one.timeline, output);
}

fn print_attempts(attempts: &[v1::SubmissionAttempt], output: &mut Output) {
    if attempts.len() < 2 {
        return;
    }
    let heading = output.styled(Style::Bold, "attempts");
    output.line(format_args!("\n{heading}"));
    for one in attempts {
        let why = if one.error.is_empty() { String::new() } else { format!("  {}", line(&one.error, 100)) };
        output.line(format_args!(
            "  {:>3}  {}  {}{why}",
            one.number,
            time(one.start_time.as_ref()),
            status_name(one.status())
        ));
    }
}

fn print_timeline(events: &[v1::SubmissionEvent], output: &mut Output) {
    if events.is_empty() {
        return;
    }
    let heading = output.styled(Style::Bold, "timeline");
    output.line(format_args!("\n{heading}"));
    for one in events {
        let text = format!(
            "  {}  {}  {}  {}",
            time(one.time.as_ref()),
            line(&one.action, 60),
            line(&one.actor, 60),
            line(&one.detail, 300)
        );
        output.line(text.trim_end());
    }
}
