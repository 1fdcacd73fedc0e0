//! `review`: one bundle through the inline checks, here or on a server; the exit code is the decision.

mod bundle;
mod here;
mod sarif;
mod server;

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::bundle_text::{
    hold_sentence, line, print_capabilities, print_checks, print_coverage, print_gaps, status_name,
    status_style, visibility_name,
};
use super::context::Context;
use super::progress::{Progress, size};
use super::token::TokenArguments;
use super::{Exit, Failure, Output, Style, new_file, remote};
use crate::decision::{BundleKind, Decision};
use crate::pb::v1;
use bundle::Bundle;

/// Arguments of `review`.
#[derive(Debug, Args)]
pub(super) struct ReviewArguments {
    /// The bundle: a ZIP archive, a folder, or one Markdown document.
    path: PathBuf,
    /// What it is [default: what its files look like].
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// How to tell what was found.
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    format: Format,
    /// The same as `--format json`: the ReviewBundleResponse.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write JSON or SARIF to a file, and text to standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// In text, also give fingerprints of findings, and advice that asks for nothing, such as about placeholders.
    #[arg(long, short)]
    verbose: bool,
    /// Exit with 0 where only warnings were found.
    #[arg(long)]
    allow_warnings: bool,
    /// Upload it to a running server, such as http://127.0.0.1:50051 [default: check it in this process, without a
    /// model].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// On a server: check only, and keep nothing. In this process nothing is ever kept.
    #[arg(long)]
    dry_run: bool,
    /// On a server: wait for the verdict of the model.
    #[arg(long, requires = "server", conflicts_with = "dry_run")]
    wait: bool,
    /// Name to list it under [default: the name its manifest gives].
    #[arg(long, value_name = "NAME", requires = "server")]
    name: Option<String>,
    /// The existing entity that this is a new version of.
    #[arg(long, value_name = "ID", requires = "server")]
    entity: Option<String>,
    /// Who uploads, where callers are not authenticated [default: anonymous].
    #[arg(long, value_name = "NAME", requires = "server")]
    submitter: Option<String>,
    /// Name of the policy [default: default].
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Upload as the administrator.
    #[arg(long, requires = "server", conflicts_with = "submitter")]
    as_admin: bool,
    #[command(flatten)]
    token: TokenArguments,
}

/// What a bundle is.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// `SKILL.md` and its files.
    Skill,
    /// `.claude-plugin/plugin.json` and its files.
    Plugin,
    /// Documents of agents, and their files.
    Agent,
}

/// How to tell what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For a person.
    Text,
    /// The response.
    Json,
    /// SARIF 2.1.0, for code hosts and editors.
    Sarif,
}

/// Runs the command.
pub(super) fn run(
    arguments: &ReviewArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let format = if arguments.json { Format::Json } else { arguments.format };
    if arguments.output.is_some() && format == Format::Text {
        return Err(Failure::usage("--output: say with --format what to write there: json or sarif"));
    }
    if let Some(path) = &arguments.output {
        new_file::is_no_input("--output", path, [&arguments.path])?;
    }
    let settings = context.settings()?;
    let limits = settings.bundles.limits();
    let mut progress = Progress::new();
    let (temporary, is_sent) = (context.temporary_folder(), arguments.server.is_some());
    let bundle = Bundle::open(&arguments.path, &temporary, &limits, is_sent, &mut progress)?;
    progress.clear();
    for name in &bundle.left_out {
        output.note(format_args!("left out: {}", line(name, 300)));
    }
    let kind = match arguments.kind {
        Some(Kind::Skill) => BundleKind::Skill,
        Some(Kind::Plugin) => BundleKind::Plugin,
        Some(Kind::Agent) => BundleKind::Agent,
        None => bundle.kind().ok_or_else(|| {
            Failure::usage(
                "--kind: nothing tells what this is; it holds neither SKILL.md, .claude-plugin/plugin.json nor any \
                 *.md; say skill, plugin or agent",
            )
        })?,
    };
    let prefix = bundle.prefix.clone();
    let review = match &arguments.server {
        Some(url) => server::review(arguments, url, bundle, kind, context, &mut progress, output)?,
        None => {
            let policy = arguments.policy.as_deref().unwrap_or_default();
            here::review(&settings, &bundle, kind, policy, &mut progress)?
        }
    };
    progress.clear();
    tell(arguments, format, &review, kind, &prefix, output)?;
    Ok(Exit::Decided(decision_of(&review, arguments.allow_warnings)))
}

fn tell(
    arguments: &ReviewArguments,
    format: Format,
    review: &v1::ReviewBundleResponse,
    kind: BundleKind,
    prefix: &str,
    output: &mut Output,
) -> Result<(), Failure> {
    let shown = arguments.path.to_string_lossy();
    let document = match format {
        Format::Text => None,
        Format::Json => Some(serde_json::to_value(review).map_err(Failure::internal)?),
        Format::Sarif => Some(sarif::log(review, shown.trim_end_matches('/'), prefix)),
    };
    match (document, &arguments.output) {
        (Some(document), None) => output.json(&document)?,
        (Some(document), Some(path)) => {
            let text = serde_json::to_string_pretty(&document).map_err(Failure::internal)?;
            let written = File::create(path).and_then(|mut file| writeln!(file, "{text}"));
            written.map_err(|error| new_file::cannot_write(path, &error))?;
            print(review, kind, &shown, arguments.verbose, output);
        }
        (None, _) => print(review, kind, &shown, arguments.verbose, output),
    }
    Ok(())
}

/// The decision, and WARN where something could be better.
fn decision_of(review: &v1::ReviewBundleResponse, allow_warnings: bool) -> Decision {
    let decision = remote::decision_of(review.decision());
    let checks = review.checks.clone().unwrap_or_default();
    let has_warning = [checks.archive, checks.manifest, checks.static_security, checks.quality]
        .iter()
        .flatten()
        .any(|check| matches!(check.status(), v1::CheckStatus::Warn | v1::CheckStatus::Fail));
    if decision == Decision::Allow && has_warning && !allow_warnings { Decision::Warn } else { decision }
}

/// Prints a review for a person.
fn print(
    review: &v1::ReviewBundleResponse,
    kind: BundleKind,
    path: &str,
    verbose: bool,
    output: &mut Output,
) {
    let status = review.status();
    let headline = output.styled(status_style(status), status_name(status));
    output.line(format_args!("{headline}  {kind} {}", line(path, 300)));
    if let Some(sentence) = hold_sentence(review.hold_reason()) {
        let sentence = output.styled(Style::Yellow, sentence);
        output.line(format_args!("  {sentence}"));
    }
    let files =
        if review.file_count == 1 { "1 file".to_owned() } else { format!("{} files", review.file_count) };
    output.line(format_args!("  {files}, {} packed", size(review.file_size)));
    let visibility = match review.submission_id.as_str() {
        "" => String::new(),
        _ => visibility_name(review.visibility()),
    };
    for (name, value) in [
        ("submission", review.submission_id.as_str()),
        ("entity", &review.entity_id),
        ("visibility", &visibility),
        ("sha256", &review.bundle_sha256),
    ] {
        if !value.is_empty() {
            output.line(format_args!("  {name:10} {}", line(value, 200)));
        }
    }
    print_checks(&review.checks.clone().unwrap_or_default(), verbose, output);
    print_gaps(&review.unjudged, output);
    print_capabilities(&review.capabilities, output);
    print_coverage(&review.coverage, output);
}

impl Kind {
    /// Every name, for messages.
    #[cfg(test)]
    const NAMES: [&'static str; 3] = ["skill", "plugin", "agent"];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::bundle_text::kind_name;

    #[test]
    fn kinds_are_those_of_the_contract() {
        for (kind, name) in [v1::BundleKind::Skill, v1::BundleKind::Plugin, v1::BundleKind::Agent]
            .into_iter()
            .zip(Kind::NAMES)
        {
            assert_eq!(kind_name(kind), name);
            assert!(Kind::from_str(name, false).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_warning_shows_in_the_exit_code_only_where_all_else_is_well() {
        let review = |decision: v1::Decision, quality: v1::CheckStatus| v1::ReviewBundleResponse {
            decision: decision.into(),
            checks: Some(v1::BundleChecks {
                quality: Some(v1::CheckResult { status: quality.into(), findings: Vec::new() }),
                ..Default::default()
            }),
            ..Default::default()
        };
        use v1::CheckStatus::{Pass, Warn};
        for (decision, quality, allow, wanted) in [
            (v1::Decision::Allow, Pass, false, Decision::Allow),
            (v1::Decision::Allow, Warn, false, Decision::Warn),
            (v1::Decision::Allow, Warn, true, Decision::Allow),
            (v1::Decision::Ask, Warn, false, Decision::Ask),
            (v1::Decision::Block, Warn, true, Decision::Block),
            (v1::Decision::Unspecified, Pass, true, Decision::Block),
        ] {
            assert_eq!(decision_of(&review(decision, quality), allow), wanted, "{decision:?} {quality:?}");
        }
    }
}
