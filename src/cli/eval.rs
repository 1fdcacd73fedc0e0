//! `eval`: detection measured on labelled records.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;

use super::{Exit, Failure, Output};
use crate::eval::{self, EngineJudge, EvalError, JudgeError, Observer, Outcome};
use crate::policy;

/// Arguments of `eval`.
#[derive(Debug, Args)]
pub(super) struct EvalArguments {
    /// Files of records, one JSON object a line, and folders of them.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Also write one line a record, from which the figures can be computed again.
    #[arg(long, value_name = "FILE")]
    records: Option<PathBuf>,
    /// Also count by category.
    #[arg(long)]
    categories: bool,
}

/// Runs the command.
pub(super) fn run(arguments: &EvalArguments, output: &mut Output) -> Result<Exit, Failure> {
    let snapshot = policy::load(&policy::Sources::default(), None).map_err(Failure::configuration)?;
    let mut judge = EngineJudge::new(&snapshot, Vec::new()).map_err(Failure::internal)?;
    let mut recorder = Recorder::new(arguments.records.clone(), output)?;
    let report = eval::evaluate(&arguments.paths, &mut judge, &mut recorder).map_err(failure_of)?;
    recorder.finish()?;
    if arguments.json {
        output.json(&eval::report_json(&report, arguments.categories))?;
    } else {
        output.text(eval::report_text(&report, arguments.categories));
    }
    Ok(Exit::Ok)
}

fn failure_of(error: EvalError) -> Failure {
    let exit = match &error {
        EvalError::Judge { error: JudgeError::Away(_), .. } => Exit::ServerAway,
        EvalError::Judge { error: JudgeError::Refused(_), .. } => Exit::Data,
        EvalError::Unreadable { .. } | EvalError::Malformed { .. } => Exit::Data,
    };
    Failure { exit, message: error.to_string() }
}

/// Writes record lines and tells what was passed over.
struct Recorder<'o> {
    path: PathBuf,
    lines: Option<BufWriter<File>>,
    error: Option<std::io::Error>,
    output: &'o mut Output,
}

impl<'o> Recorder<'o> {
    fn new(path: Option<PathBuf>, output: &'o mut Output) -> Result<Self, Failure> {
        let path_shown = path.clone().unwrap_or_default();
        let create = |path: &PathBuf| File::create(path).map_err(|error| cannot_write(path, &error));
        let lines = path.as_ref().map(create).transpose()?.map(BufWriter::new);
        Ok(Self { path: path_shown, lines, error: None, output })
    }

    fn finish(mut self) -> Result<(), Failure> {
        if let (None, Some(lines)) = (&self.error, &mut self.lines) {
            self.error = lines.flush().err();
        }
        self.error.map_or(Ok(()), |error| Err(cannot_write(&self.path, &error)))
    }
}

fn cannot_write(path: &std::path::Path, error: &std::io::Error) -> Failure {
    Failure::internal(format_args!("{}: cannot be written: {error}", path.display()))
}

impl Observer for Recorder<'_> {
    fn judged(&mut self, outcome: &Outcome<'_>) {
        if let (None, Some(lines)) = (&self.error, &mut self.lines) {
            self.error = writeln!(lines, "{}", eval::record_line(outcome)).err();
        }
    }

    fn skipped(&mut self, file: &str, records: usize, needs: &str) {
        let plural = if records == 1 { "" } else { "s" };
        self.output.note(format_args!(
            "{file}: {records} record{plural} passed over: needs {needs}, which this release does not have"
        ));
    }
}
