//! `submissions override`, `rescan`, `retry`, `delete`, `purge` and `reap`.

use clap::Args;

use super::source::Source;
use super::{WhereArguments, show};
use crate::cli::bundle_text::{line, status_name, visibility_name};
use crate::cli::context::Context;
use crate::cli::progress::{Progress, size};
use crate::cli::{Exit, Failure, Output};
use crate::pb::v1;

/// Which submission.
#[derive(Debug, Args)]
pub(in crate::cli) struct WhichArguments {
    /// Id of the submission.
    id: String,
    #[command(flatten)]
    place: WhereArguments,
}

/// Arguments of `submissions override`.
#[derive(Debug, Args)]
pub(in crate::cli) struct OverrideArguments {
    /// Why, at least 4 characters; kept for ever.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    which: WhichArguments,
}

/// Arguments of `submissions delete`.
#[derive(Debug, Args)]
pub(in crate::cli) struct DeleteArguments {
    /// Why, for the record.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    #[command(flatten)]
    which: WhichArguments,
}

/// Arguments of `submissions purge` and `submissions reap`.
#[derive(Debug, Args)]
pub(in crate::cli) struct JobArguments {
    /// Tell only what would be done.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: WhereArguments,
}

/// Runs `submissions override`.
pub(super) fn publish(
    arguments: &OverrideArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let WhichArguments { id, place } = &arguments.which;
    let (submission_id, reason) = (id.clone(), arguments.reason.clone());
    let request = v1::OverrideSubmissionRequest { submission_id, reason };
    let response = Source::open(place, context)?.publish(request)?;
    told(&response, response.submission.as_ref(), place, output)
}

/// Runs `submissions rescan`.
pub(super) fn rescan(
    arguments: &WhichArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let source = Source::open(&arguments.place, context)?;
    let request = v1::RescanSubmissionRequest { submission_id: arguments.id.clone() };
    let response = Progress::new().while_busy("checking", || source.rescan(request))?;
    if arguments.place.json {
        output.json(&response)?;
    } else {
        show::print(&response.submission.unwrap_or_default(), output);
    }
    Ok(Exit::Ok)
}

/// Runs `submissions retry`.
pub(super) fn retry(
    arguments: &WhichArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let request = v1::RetryReviewRequest { submission_id: arguments.id.clone() };
    let response = Source::open(&arguments.place, context)?.retry(request)?;
    told(&response, response.submission.as_ref(), &arguments.place, output)
}

/// Runs `submissions delete`.
pub(super) fn delete(
    arguments: &DeleteArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let WhichArguments { id, place } = &arguments.which;
    let (submission_id, reason) = (id.clone(), arguments.reason.clone());
    let request = v1::DeleteSubmissionRequest { submission_id, reason };
    let response = Source::open(place, context)?.delete(request)?;
    told(&response, response.submission.as_ref(), place, output)
}

/// Runs `submissions purge`.
pub(super) fn purge(
    arguments: &JobArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let request = v1::PurgeBlockedBundlesRequest { dry_run: arguments.dry_run };
    let response = Source::open(&arguments.place, context)?.purge(request)?;
    if arguments.place.json {
        output.json(&response)?;
        return Ok(Exit::Ok);
    }
    for id in &response.submission_ids {
        output.line(line(id, 60));
    }
    let done = if arguments.dry_run { "would be removed" } else { "removed" };
    let (many, bytes) = (response.submission_ids.len(), size(response.bytes_freed));
    output.line(format_args!("bytes of {many} blocked submissions {done}: {bytes}"));
    Ok(Exit::Ok)
}

/// Runs `submissions reap`.
pub(super) fn reap(
    arguments: &JobArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let request = v1::ReapStuckReviewsRequest { dry_run: arguments.dry_run };
    let response = Source::open(&arguments.place, context)?.reap(request)?;
    if arguments.place.json {
        output.json(&response)?;
        return Ok(Exit::Ok);
    }
    for id in &response.submission_ids {
        output.line(line(id, 60));
    }
    let done = if arguments.dry_run { "would become" } else { "became" };
    output.line(format_args!("{} stuck reviews {done} review errors", response.submission_ids.len()));
    Ok(Exit::Ok)
}

/// Prints how a submission stands after a change.
fn told(
    response: &impl serde::Serialize,
    submission: Option<&v1::Submission>,
    place: &WhereArguments,
    output: &mut Output,
) -> Result<Exit, Failure> {
    if place.json {
        output.json(response)?;
        return Ok(Exit::Ok);
    }
    let one = submission.cloned().unwrap_or_default();
    let (status, visibility) = (status_name(one.status()), visibility_name(one.visibility()));
    output.line(format_args!("{}: {status}, visibility {visibility}", line(&one.id, 60)));
    Ok(Exit::Ok)
}
