//! `train`: the model that weighs concepts, made from labelled records.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::rules::{RuleFiles, sources_with};
use super::{Exit, Failure, Output, new_file};
use crate::detect::Scanner;
use crate::eval::{self, Kind};
use crate::rules::{RuleSet, RuleSetConfig};
use crate::train::{self, Labelled};

/// Arguments of `train`.
#[derive(Debug, Args)]
pub(super) struct TrainArguments {
    /// Files of records about prompt injection, one JSON object a line, and folders of them.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Where the model goes: a rule file, ending in `.toml`, to be named in `rules.paths`.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Where the card of the model goes, as Markdown.
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// Rule files and folders of them with concepts of your own, beside the built-in ones.
    #[arg(long, value_name = "PATH")]
    rules: Vec<PathBuf>,
    /// Write over files that exist.
    #[arg(long)]
    force: bool,
    /// Print the card as JSON; with `--card`, beside the Markdown.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(arguments: &TrainArguments, output: &mut Output) -> Result<Exit, Failure> {
    if arguments.out.extension().is_none_or(|extension| extension != "toml") {
        let message =
            format!("--out {}: a model is a rule file and ends in `.toml`", arguments.out.display());
        return Err(Failure { exit: Exit::Usage, message });
    }
    // Before minutes of work.
    for path in std::iter::once(&arguments.out).chain(&arguments.card) {
        new_file::may_be_written(path, arguments.force)?;
    }
    let RuleFiles { mut files, given, .. } = sources_with(&arguments.rules, true).map_err(Failure::data)?;
    keep_inputs(arguments, &given)?;
    // The features are those of the rules; a model among the user's files would quarrel with the one to be made.
    files.retain(|file| file.name != arguments.out.display().to_string());
    let set = RuleSet::compile(&files, &RuleSetConfig::default()).map_err(Failure::data)?;
    let texts = read(&arguments.paths)?;
    let trained = train::train(&Scanner::new(Arc::new(set)), &texts).map_err(Failure::data)?;
    new_file::write(&arguments.out, &train::model_file(&trained.model), arguments.force)?;
    let card = train::card(&trained);
    if let Some(path) = &arguments.card {
        new_file::write(path, &card, arguments.force)?;
    }
    if arguments.json {
        output.json(&train::json(&trained))?;
    } else if arguments.card.is_none() {
        output.text(card);
    }
    let unnamed = texts.iter().filter(|text| text.source.is_empty()).count();
    if unnamed > 0 {
        output.note(format_args!(
            "{unnamed} of {} records have no `source`, and count as one source",
            texts.len()
        ));
    }
    Ok(Exit::Ok)
}

/// Refuses to write one file over the other, or over what is read. A model among the user's rules may be made anew.
fn keep_inputs(arguments: &TrainArguments, rules: &[String]) -> Result<(), Failure> {
    let records = eval::inputs(&arguments.paths).map_err(Failure::data)?;
    new_file::is_no_input("--out", &arguments.out, &records)?;
    let Some(card) = &arguments.card else { return Ok(()) };
    if new_file::is_same(card, &arguments.out) {
        let message = format!("--card {}: is where the model goes; name another file", card.display());
        return Err(Failure::usage(message));
    }
    let rules: Vec<PathBuf> = rules.iter().map(PathBuf::from).collect();
    new_file::is_no_input("--card", card, records.iter().chain(&rules))
}

/// The records about injection; any other is refused, since it would be trained on in vain.
fn read(paths: &[PathBuf]) -> Result<Vec<Labelled>, Failure> {
    let mut texts = Vec::new();
    let refused = |error: eval::EvalError| Failure { exit: Exit::Data, message: error.to_string() };
    eval::read_records(paths, &mut |file, line, record| {
        if record.kind != Kind::Injection {
            let message =
                format!("{file}:{line}: is about {}; train on records about injection", record.kind.as_str());
            return Err(message);
        }
        texts.push(Labelled {
            id: record.id,
            source: record.source,
            tier: record.tier,
            is_attack: record.is_positive,
            role: record.role,
            text: record.text,
        });
        Ok(())
    })
    .map_err(refused)?
    .map_err(|message| Failure { exit: Exit::Data, message })?;
    Ok(texts)
}
