//! `submissions list`.

use clap::Args;

use super::source::Source;
use super::{WhereArguments, named};
use crate::cli::bundle_text::{kind_name, line, status_name, status_style, visibility_name};
use crate::cli::context::Context;
use crate::cli::listing::{Between, check_limit, count, table, time};
use crate::cli::output::Style;
use crate::cli::progress::size;
use crate::cli::{Exit, Failure, Output};
use crate::pb::v1;

/// Arguments of `submissions list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// Only those with one of these, such as `blocked_inline,review_error` [default: every status but deleted].
    #[arg(long, value_name = "STATUS,…", value_delimiter = ',')]
    status: Vec<String>,
    /// Only those of one of these kinds: skill, plugin, agent.
    #[arg(long, value_name = "KIND,…", value_delimiter = ',')]
    kind: Vec<String>,
    /// Only those that this person uploaded.
    #[arg(long, value_name = "NAME")]
    uploaded_by: Option<String>,
    /// Those whose entity is archived: exclude, only or include.
    #[arg(long, value_name = "WHICH", default_value = "exclude")]
    archived: String,
    /// Only those of this entity.
    #[arg(long, value_name = "ID")]
    entity: Option<String>,
    /// Only those with this bundle hash.
    #[arg(long, value_name = "HEX")]
    sha256: Option<String>,
    /// Only those whose id, name, version, description or submitter holds this text.
    #[arg(long, short, value_name = "TEXT")]
    query: Option<String>,
    #[command(flatten)]
    between: Between,
    /// `create_time`, `update_time`, `name`, `submitter`, `kind`, `status` or `file_size`, alone or followed by ` desc`.
    #[arg(long, value_name = "ORDER", default_value = "create_time desc")]
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
    let rows: Vec<Vec<String>> = response.submissions.iter().map(row).collect();
    for (text, one) in table(&rows).into_iter().zip(&response.submissions) {
        // Set off after the columns are straight: colours have no width.
        let status = status_name(one.status());
        let styled = output.styled(status_style(one.status()), &status);
        output.line(text.replacen(&status, &styled, 1));
    }
    let told = count(response.submissions.len(), response.total, ("submission", "submissions"));
    let told = output.styled(Style::Dim, told);
    output.line(told);
    Ok(Exit::Ok)
}

fn row(one: &v1::Submission) -> Vec<String> {
    let version = if one.version.is_empty() { String::new() } else { format!(" {}", line(&one.version, 20)) };
    let mut notes = Vec::new();
    if one.live {
        notes.push("live".to_owned());
    }
    match one.hold_reason() {
        v1::HoldReason::NoKey => notes.push("held: no key".to_owned()),
        v1::HoldReason::Coverage => notes.push("held: coverage".to_owned()),
        v1::HoldReason::None | v1::HoldReason::Unspecified => {}
    }
    if one.bundle_purge_time.is_some() {
        notes.push("bytes gone".to_owned());
    }
    vec![
        line(&one.id, 40),
        time(one.create_time.as_ref()),
        status_name(one.status()),
        visibility_name(one.visibility()),
        kind_name(one.kind()),
        size(one.file_size),
        line(&one.submitter, 32),
        format!("{}{version}", line(&one.name, 40)),
        notes.join(", "),
    ]
}

fn request(arguments: &ListArguments) -> Result<v1::ListSubmissionsRequest, Failure> {
    use v1::SubmissionStatus as S;
    const STATUSES: [S; 8] = [
        S::PendingInline,
        S::BlockedInline,
        S::PendingLlm,
        S::Approved,
        S::BlockedLlm,
        S::ReviewError,
        S::Overridden,
        S::Deleted,
    ];
    let archived = match arguments.archived.as_str() {
        "exclude" => v1::ArchivedFilter::Exclude,
        "only" => v1::ArchivedFilter::Only,
        "include" => v1::ArchivedFilter::Include,
        other => {
            let message = format!("--archived: `{other}` is none of: exclude, only, include");
            return Err(Failure::usage(message));
        }
    };
    let [start_time, end_time] = arguments.between.moments()?;
    Ok(v1::ListSubmissionsRequest {
        statuses: named("--status", &arguments.status, &STATUSES, status_name)?,
        kinds: named("--kind", &arguments.kind, &super::entities::KINDS, kind_name)?,
        submitter: arguments.uploaded_by.clone().unwrap_or_default(),
        archived: archived.into(),
        entity_id: arguments.entity.clone().unwrap_or_default(),
        bundle_sha256: arguments.sha256.clone().unwrap_or_default(),
        query: arguments.query.clone().unwrap_or_default(),
        start_time,
        end_time,
        order_by: arguments.order_by.clone(),
        ..Default::default()
    })
}
