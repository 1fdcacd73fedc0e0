//! `submissions entities`: what was published, and taking it down.

use clap::{Args, Subcommand};

use super::download::{self, DownloadArguments, What};
use super::source::Source;
use super::{WhereArguments, named};
use crate::cli::bundle_text::{kind_name, line, status_name, visibility_name};
use crate::cli::context::Context;
use crate::cli::listing::{check_limit, count, table, time};
use crate::cli::output::Style;
use crate::cli::progress::size;
use crate::cli::{Exit, Failure, Output};
use crate::pb::v1;

/// Every kind.
pub(super) const KINDS: [v1::BundleKind; 3] =
    [v1::BundleKind::Skill, v1::BundleKind::Plugin, v1::BundleKind::Agent];

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum EntitiesCommand {
    /// List entities by name.
    List(Box<ListArguments>),
    /// Show one entity.
    Show(WhichArguments),
    /// Download the live, approved bytes.
    Download(DownloadArguments),
    /// Take an entity down softly: existing installs keep it, nobody new finds it.
    Archive(ChangeArguments),
    /// Bring an archived entity back.
    Restore(ChangeArguments),
    /// Delete an entity for good; its submissions stay as tombstones.
    Delete(ChangeArguments),
}

/// Arguments of `submissions entities list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// Only those of one of these kinds: skill, plugin, agent.
    #[arg(long, value_name = "KIND,…", value_delimiter = ',')]
    kind: Vec<String>,
    /// Only those with one of these: pending, approved, hidden, archived [default: all but archived].
    #[arg(long, value_name = "VISIBILITY,…", value_delimiter = ',')]
    visibility: Vec<String>,
    /// Only those of this owner.
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Only those whose name or description holds this text.
    #[arg(long, short, value_name = "TEXT")]
    query: Option<String>,
    /// `create_time`, `update_time`, `name`, `owner`, `kind`, `visibility` or `file_size`, alone or followed by ` desc`.
    #[arg(long, value_name = "ORDER", default_value = "name")]
    order_by: String,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    place: WhereArguments,
}

/// Which entity.
#[derive(Debug, Args)]
pub(in crate::cli) struct WhichArguments {
    /// Id of the entity.
    id: String,
    #[command(flatten)]
    place: WhereArguments,
}

/// Which entity, and why.
#[derive(Debug, Args)]
pub(in crate::cli) struct ChangeArguments {
    /// Why, for the record.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    #[command(flatten)]
    which: WhichArguments,
}

/// Runs one of them.
pub(super) fn run(
    command: &EntitiesCommand,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    match command {
        EntitiesCommand::List(arguments) => list(arguments, context, output),
        EntitiesCommand::Show(arguments) => {
            let request = v1::GetEntityRequest { entity_id: arguments.id.clone() };
            let response = Source::open(&arguments.place, context)?.entity(request)?;
            told(&response, response.entity.as_ref(), &arguments.place, output)
        }
        EntitiesCommand::Download(arguments) => download::fetch(arguments, What::Entity, context, output),
        EntitiesCommand::Archive(arguments) => {
            let ChangeArguments { reason, which } = arguments;
            let (entity_id, reason) = (which.id.clone(), reason.clone());
            let request = v1::ArchiveEntityRequest { entity_id, reason };
            let response = Source::open(&which.place, context)?.archive(request)?;
            told(&response, response.entity.as_ref(), &which.place, output)
        }
        EntitiesCommand::Restore(arguments) => {
            let ChangeArguments { reason, which } = arguments;
            let (entity_id, reason) = (which.id.clone(), reason.clone());
            let request = v1::RestoreEntityRequest { entity_id, reason };
            let response = Source::open(&which.place, context)?.restore(request)?;
            told(&response, response.entity.as_ref(), &which.place, output)
        }
        EntitiesCommand::Delete(arguments) => delete(arguments, context, output),
    }
}

fn list(arguments: &ListArguments, context: &Context, output: &mut Output) -> Result<Exit, Failure> {
    use v1::Visibility as V;
    const VISIBILITIES: [V; 4] = [V::Pending, V::Approved, V::Hidden, V::Archived];
    check_limit(arguments.limit)?;
    let request = v1::ListEntitiesRequest {
        kinds: named("--kind", &arguments.kind, &KINDS, kind_name)?,
        visibilities: named("--visibility", &arguments.visibility, &VISIBILITIES, visibility_name)?,
        owner: arguments.owner.clone().unwrap_or_default(),
        query: arguments.query.clone().unwrap_or_default(),
        order_by: arguments.order_by.clone(),
        ..Default::default()
    };
    let response = Source::open(&arguments.place, context)?.entities(request, arguments.limit)?;
    if arguments.place.json {
        output.json(&response)?;
        return Ok(Exit::Ok);
    }
    let rows: Vec<Vec<String>> = response.entities.iter().map(row).collect();
    for text in table(&rows) {
        output.line(text);
    }
    let told = count(response.entities.len(), response.total, ("entity", "entities"));
    let told = output.styled(Style::Dim, told);
    output.line(told);
    Ok(Exit::Ok)
}

fn row(one: &v1::Entity) -> Vec<String> {
    let version = if one.version.is_empty() { String::new() } else { format!(" {}", line(&one.version, 20)) };
    vec![
        line(&one.id, 40),
        visibility_name(one.visibility()),
        kind_name(one.kind()),
        size(one.file_size),
        line(&one.owner, 32),
        format!("{}{version}", line(&one.name, 40)),
        line(&one.description, 60),
    ]
}

fn delete(arguments: &ChangeArguments, context: &Context, output: &mut Output) -> Result<Exit, Failure> {
    let ChangeArguments { reason, which } = arguments;
    let request = v1::DeleteEntityRequest { entity_id: which.id.clone(), reason: reason.clone() };
    let response = Source::open(&which.place, context)?.delete_entity(request)?;
    if which.place.json {
        output.json(&response)?;
        return Ok(Exit::Ok);
    }
    output.line(format_args!(
        "{}: deleted, with {} submissions that stay as tombstones",
        line(&which.id, 60),
        response.submission_ids.len()
    ));
    Ok(Exit::Ok)
}

/// Prints one entity.
fn told(
    response: &impl serde::Serialize,
    entity: Option<&v1::Entity>,
    place: &WhereArguments,
    output: &mut Output,
) -> Result<Exit, Failure> {
    if place.json {
        output.json(response)?;
        return Ok(Exit::Ok);
    }
    let one = entity.cloned().unwrap_or_default();
    let headline = format!("{} {}", visibility_name(one.visibility()), line(&one.name, 100));
    let headline = output.styled(Style::Bold, headline);
    output.line(headline);
    let latest = match one.latest_submission_id.as_str() {
        "" => String::new(),
        id => format!("{} ({})", line(id, 60), status_name(one.latest_status())),
    };
    let archived = match &one.archive_time {
        None => String::new(),
        when => format!("{} by {}", time(when.as_ref()), line(&one.archived_by, 60)),
    };
    for (name, value) in [
        ("entity", line(&one.id, 60)),
        ("kind", kind_name(one.kind())),
        ("version", line(&one.version, 60)),
        ("about", line(&one.description, 400)),
        ("owner", line(&one.owner, 100)),
        ("live", line(&one.live_submission_id, 60)),
        ("latest", latest),
        ("size", size(one.file_size)),
        ("sha256", line(&one.bundle_sha256, 80)),
        ("created", time(one.create_time.as_ref())),
        ("changed", time(one.update_time.as_ref())),
        ("archived", archived),
    ] {
        if !value.is_empty() {
            output.line(format_args!("  {name:10} {value}"));
        }
    }
    Ok(Exit::Ok)
}
