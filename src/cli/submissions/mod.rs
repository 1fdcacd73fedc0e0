//! `submissions`: triage of uploaded bundles, here or on a server.

mod change;
mod download;
mod entities;
mod events;
mod list;
mod show;
mod source;

pub(super) use events::{EventsArguments, run as list_events};
pub(super) use source::Source;

use clap::{Args, Subcommand};

use super::context::Context;
use super::token::TokenArguments;
use super::{Exit, Failure, Output};

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum SubmissionsCommand {
    /// List submissions, the newest first.
    List(Box<list::ListArguments>),
    /// Show one submission with its checks, attempts and timeline.
    Show(show::ShowArguments),
    /// Follow one submission until nothing more happens by itself: exit code 0 ALLOW, 2 BLOCK, 3 ASK.
    Watch(show::ShowArguments),
    /// Publish a submission against its verdict; the reason is kept for ever.
    Override(change::OverrideArguments),
    /// Run all checks again over the submitted bytes.
    Rescan(change::WhichArguments),
    /// Run the review by a model again.
    Retry(change::WhichArguments),
    /// Download the submitted bytes as a fresh ZIP archive.
    Download(download::DownloadArguments),
    /// Delete a submission for good: its bytes and, where it is the live version, the entity.
    Delete(change::DeleteArguments),
    /// Remove the bytes of blocked submissions that are past the retention time.
    Purge(change::JobArguments),
    /// Turn reviews that nobody works on any more into review errors.
    Reap(change::JobArguments),
    /// List administrative events, the newest first.
    Events(Box<events::EventsArguments>),
    /// List, show, download, archive, restore and delete what was published.
    #[command(subcommand)]
    Entities(entities::EntitiesCommand),
}

/// Where to look, as whom, and how to tell.
#[derive(Debug, Args)]
pub(super) struct WhereArguments {
    /// The server to ask [default: the store that the settings name, in this process].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// On a server: ask as this submitter, who sees its own only [default: as the administrator].
    #[arg(long, value_name = "NAME", requires = "server")]
    submitter: Option<String>,
    #[command(flatten)]
    token: TokenArguments,
    /// Print the response as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Runs one of them.
pub(super) fn run(
    command: &SubmissionsCommand,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    match command {
        SubmissionsCommand::List(arguments) => list::run(arguments, context, output),
        SubmissionsCommand::Show(arguments) => show::run(arguments, context, output),
        SubmissionsCommand::Watch(arguments) => show::watch(arguments, context, output),
        SubmissionsCommand::Override(arguments) => change::publish(arguments, context, output),
        SubmissionsCommand::Rescan(arguments) => change::rescan(arguments, context, output),
        SubmissionsCommand::Retry(arguments) => change::retry(arguments, context, output),
        SubmissionsCommand::Download(arguments) => download::run(arguments, context, output),
        SubmissionsCommand::Delete(arguments) => change::delete(arguments, context, output),
        SubmissionsCommand::Purge(arguments) => change::purge(arguments, context, output),
        SubmissionsCommand::Reap(arguments) => change::reap(arguments, context, output),
        SubmissionsCommand::Events(arguments) => events::run(arguments, context, output),
        SubmissionsCommand::Entities(command) => entities::run(command, context, output),
    }
}

/// The numbers of these names, or what a person can do about a wrong one.
fn named<T: Copy + Into<i32>>(
    flag: &str,
    given: &[String],
    all: &[T],
    name: impl Fn(T) -> String,
) -> Result<Vec<i32>, Failure> {
    let one = |wanted: &String| {
        let found = all.iter().find(|one| name(**one).eq_ignore_ascii_case(wanted));
        found.map(|one| (*one).into()).ok_or_else(|| {
            let names: Vec<String> = all.iter().map(|one| name(*one)).collect();
            Failure::usage(format_args!("{flag}: `{wanted}` is none of: {}", names.join(", ")))
        })
    };
    given.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::bundle_text::kind_name;
    use crate::pb::v1::BundleKind;

    #[test]
    fn names_are_found_in_any_letter_case_and_wrong_ones_explained() {
        let all = [BundleKind::Skill, BundleKind::Plugin];
        let read = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|one| (*one).to_owned()).collect();
            named("--kind", &given, &all, kind_name)
        };
        assert_eq!(read(&["PLUGIN", "skill"]).ok(), Some(vec![2, 1]));
        assert_eq!(
            read(&["agent"]).expect_err("unknown").message,
            "--kind: `agent` is none of: skill, plugin"
        );
    }
}
