//! `eval`: detection measured on labelled records.

mod server;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::context::{Context, snapshot};
use super::rules::sources_with;
use super::{Exit, Failure, Output, Style, new_file};
use crate::app;
use crate::config::Settings;
use crate::detect::Scanner;
use crate::eval::{
    self, Baseline, Comparison, Confused, EngineJudge, EvalError, Judge, JudgeError, Mistake, Observer,
    Outcome, Scope,
};
use crate::policy::{PolicySet, Snapshot};
use crate::rules::{RuleSet, RuleSetConfig};
use crate::setting::system_problem;
use server::RemoteJudge;

/// Largest file of an earlier run or a document, in bytes.
const OWN_FILE_BYTES_MAX: u64 = 64 << 20;

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
    /// Also try thresholds: what each would find and flag, the lowest one with at most 1 % false alarms (credentials
    /// and personal data: 5 %), and each source under the threshold of the others.
    #[arg(long)]
    sweep: bool,
    /// Also list what was judged wrongly, a line a record: `fp` falsely flagged, `fn` missed.
    #[arg(long, value_name = "fp|fn", value_delimiter = ',')]
    show: Vec<Shown>,
    /// Most records that each list of `--show` has [default: all].
    #[arg(long, value_name = "N", requires = "show", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Compare with an earlier run, the output of `eval --json`; exit code 1 when anything but a time is worse, or is no
    /// longer measured. Kinds of which there is no record are left out, and said so.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// The run is about a part of what the earlier one measured: what is gone is told, and does not count as worse.
    #[arg(long, requires = "baseline")]
    partial: bool,
    /// Changes of a rate that count as none, in percentage points.
    #[arg(long, value_name = "POINTS", requires = "baseline", default_value = "0", value_parser = tolerance)]
    tolerance: f64,
    /// Write the tables into a Markdown document, between `<!-- eval:KIND -->` and `<!-- /eval:KIND -->`; what stands
    /// around them is kept, and a document that is not there is made.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Rule files and folders of them, beside the built-in rules and under the built-in policy; a file that bears the
    /// name of a built-in one stands in for it.
    #[arg(long, value_name = "PATH", conflicts_with = "server")]
    rules: Vec<PathBuf>,
    /// Ask a running server, such as http://127.0.0.1:50051. Times then are those of whole calls.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

/// Lists of wrong answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shown {
    /// Falsely flagged.
    Fp,
    /// Missed.
    Fn,
}

impl Shown {
    const fn mistake(self) -> Mistake {
        match self {
            Self::Fp => Mistake::FalsePositive,
            Self::Fn => Mistake::FalseNegative,
        }
    }
}

fn tolerance(text: &str) -> Result<f64, String> {
    let points = text.parse::<f64>().ok().filter(|points| (0.0..=100.0).contains(points));
    points.ok_or_else(|| "must be a number of percentage points from 0 to 100, such as 0.5".to_owned())
}

/// Runs the command.
pub(super) fn run(
    arguments: &EvalArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    if let Some(url) = &arguments.server {
        return run_with(&mut RemoteJudge::connect(url, context)?, arguments, output);
    }
    let mut settings = context.settings()?;
    // A figure of speed is that of scanning.
    settings.cache.enabled = false;
    let snapshot =
        if arguments.rules.is_empty() { snapshot(&settings)? } else { trial(&arguments.rules, &settings)? };
    let engine = app::message_engine(&settings).map_err(Failure::configuration)?;
    let mut judge =
        EngineJudge::new(&snapshot, engine, app::tool_engine(&settings)).map_err(Failure::internal)?;
    run_with(&mut judge, arguments, output)
}

/// The built-in policy over the built-in rules and those at `paths`.
fn trial(paths: &[PathBuf], settings: &Settings) -> Result<Snapshot, Failure> {
    let files = sources_with(paths, true).map_err(Failure::data)?.files;
    let set = RuleSet::compile(&files, &RuleSetConfig::default()).map_err(Failure::data)?;
    let snapshot = Snapshot::for_trial(PolicySet::built_in(), Scanner::new(Arc::new(set)));
    let mut prepares = app::sources(settings).prepare.into_iter();
    prepares.try_fold(snapshot, |snapshot, one| snapshot.prepared_by(one.as_ref())).map_err(Failure::internal)
}

fn run_with(judge: &mut dyn Judge, arguments: &EvalArguments, output: &mut Output) -> Result<Exit, Failure> {
    keep_inputs(arguments)?;
    // What cannot be read must not be found out after minutes of work.
    let baseline = arguments.baseline.as_deref().map(read_baseline).transpose()?;
    let document = arguments.markdown.as_deref().map(read_document).transpose()?;
    let mut recorder = Recorder::new(arguments, output)?;
    let report = eval::evaluate(&arguments.paths, judge, &mut recorder).map_err(failure_of)?;
    let mistakes = recorder.finish()?;
    let sweeps = if arguments.sweep { eval::sweeps(&report.totals.points) } else { Vec::new() };
    let comparison = match (&baseline, &arguments.baseline) {
        (Some(baseline), Some(path)) => {
            let scope = if arguments.partial { Scope::Part } else { Scope::Whole };
            let compared = baseline.compare(&report, arguments.tolerance / 100.0, scope);
            Some(compared.map_err(|error| Failure::data(format_args!("{}: {error}", path.display())))?)
        }
        _ => None,
    };
    if let (Some(document), Some(path)) = (&document, &arguments.markdown) {
        write_document(path, document, &report, &sweeps)?;
    }
    if arguments.json {
        let mut all = eval::report_json(&report, arguments.categories);
        if arguments.sweep {
            all["sweeps"] = eval::sweeps_json(&sweeps);
        }
        if !arguments.show.is_empty() {
            all["confusion"] = mistakes.kept.iter().map(Confused::json).collect();
        }
        if let Some(comparison) = &comparison {
            all["comparison"] = comparison_json(comparison);
        }
        output.json(&all)?;
    } else {
        output.text(eval::report_text(&report, arguments.categories));
        if arguments.sweep {
            output.text(eval::sweeps_text(&sweeps));
        }
        print_mistakes(&mistakes, output);
        if let Some(comparison) = &comparison {
            print_comparison(comparison, output);
        }
    }
    Ok(if comparison.is_some_and(|comparison| comparison.is_worse()) { Exit::Worse } else { Exit::Ok })
}

/// Refuses to write over what the run reads: nobody could label it again.
fn keep_inputs(arguments: &EvalArguments) -> Result<(), Failure> {
    let outputs = [("--records", &arguments.records), ("--markdown", &arguments.markdown)];
    let outputs: Vec<(&str, &PathBuf)> =
        outputs.into_iter().filter_map(|(option, path)| Some((option, path.as_ref()?))).collect();
    if outputs.is_empty() {
        return Ok(());
    }
    let mut inputs = eval::inputs(&arguments.paths).map_err(failure_of)?;
    inputs.extend(arguments.baseline.clone());
    let rules = sources_with(&arguments.rules, false).map_err(Failure::data)?.given;
    inputs.extend(rules.into_iter().map(PathBuf::from));
    for (option, path) in &outputs {
        new_file::is_no_input(option, path, &inputs)?;
        // Of a folder that is uploaded, every file is read; of one of records, those of their ending.
        let is_in_upload = inputs.iter().any(|input| input.is_dir() && new_file::is_within(path, input));
        let mut folders = arguments.paths.iter().filter(|folder| folder.is_dir());
        let is_among_records =
            eval::is_record_file(path) && folders.any(|folder| new_file::is_within(path, folder));
        if is_in_upload || is_among_records {
            let told = "lies in a folder that this command reads, and would be read, too";
            return Err(Failure::usage(format_args!(
                "{option} {}: {told}; put it elsewhere",
                path.display()
            )));
        }
    }
    if let [(_, records), (_, document)] = outputs.as_slice()
        && new_file::is_same(records, document)
    {
        return Err(Failure::usage(format_args!(
            "--markdown {}: is where the records go; name another file",
            document.display()
        )));
    }
    Ok(())
}

/// The whole of a file that the command was pointed to.
fn read_own(path: &Path) -> Result<String, Failure> {
    let wrong = |what: String| Failure::data(format_args!("{}: {what}", path.display()));
    let size = std::fs::metadata(path)
        .map_err(|error| wrong(format!("cannot be read: {}", system_problem(&error))))?
        .len();
    if size > OWN_FILE_BYTES_MAX {
        return Err(wrong(format!("has {size} bytes; at most {OWN_FILE_BYTES_MAX} are read")));
    }
    std::fs::read_to_string(path)
        .map_err(|error| wrong(format!("cannot be read: {}", system_problem(&error))))
}

fn read_baseline(path: &Path) -> Result<Baseline, Failure> {
    let parsed = Baseline::parse(&read_own(path)?);
    parsed.map_err(|error| Failure::data(format_args!("{}: {error}", path.display())))
}

/// The document as it stands; a short heading when there is none yet.
fn read_document(path: &Path) -> Result<String, Failure> {
    match path.try_exists() {
        Ok(false) => Ok("# Accuracy\n".to_owned()),
        _ => {
            let text = read_own(path)?;
            // Its markers are wrong before the run as well as after it.
            let checked = eval::written_into(&text, &eval::Report::default(), &[]);
            checked.map_err(|error| Failure::data(format_args!("{}: {error}", path.display())))?;
            Ok(text)
        }
    }
}

/// Writes the document anew, beside it first: a run that is cut off leaves the old one whole.
fn write_document(
    path: &Path,
    text: &str,
    report: &eval::Report,
    sweeps: &[eval::Sweep],
) -> Result<(), Failure> {
    let text = eval::written_into(text, report, sweeps);
    let text = text.map_err(|error| Failure::data(format_args!("{}: {error}", path.display())))?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| {
        // What is left of a failed attempt is of no use; that it cannot be removed either is no further news.
        let _ = std::fs::remove_file(&beside);
        new_file::cannot_write(path, &error)
    })
}

fn print_mistakes(mistakes: &Mistakes, output: &mut Output) {
    for (mistake, count) in &mistakes.counts {
        let lines: Vec<&Confused> = mistakes.kept.iter().filter(|one| one.mistake == *mistake).collect();
        let name = match mistake {
            Mistake::FalsePositive => "falsely flagged",
            Mistake::FalseNegative => "missed",
        };
        let cut = if lines.len() < *count { format!(", the first {}", lines.len()) } else { String::new() };
        let heading = output.styled(Style::Bold, format_args!("{name}: {count}{cut}"));
        output.line(heading);
        for one in lines {
            output.line(one.line());
        }
        output.line("");
    }
}

fn print_comparison(comparison: &Comparison, output: &mut Output) {
    let (mut better, mut worse) = (0, 0);
    for change in &comparison.changes {
        let (style, verdict) = match change.is_worse {
            Some(true) => (Style::Red, "worse"),
            Some(false) => (Style::Green, "better"),
            None => (Style::Dim, "time"),
        };
        better += usize::from(change.is_worse == Some(false));
        worse += usize::from(change.is_worse == Some(true));
        let moved = if change.has_risen { "rose" } else { "fell" };
        let verdict = output.styled(style, format_args!("{verdict:6}"));
        output.line(match &change.after {
            Some(after) => format!("{verdict} {}: {moved} from {} to {after}", change.name, change.before),
            None => format!("{verdict} {}: was {}, and is not measured now", change.name, change.before),
        });
    }
    for note in &comparison.notes {
        output.line(format_args!("note   {note}"));
    }
    let summary = format!("{better} better, {worse} worse, {} unchanged", comparison.unchanged);
    let summary = output.styled(if worse > 0 { Style::Red } else { Style::Green }, summary);
    output.line(format_args!("compared with the baseline: {summary}"));
}

fn comparison_json(comparison: &Comparison) -> serde_json::Value {
    let changes = comparison.changes.iter().map(|change| {
        json!({
            "name": change.name,
            "before": change.before,
            "after": change.after,
            "direction": match (&change.after, change.has_risen) {
                (None, _) => "gone",
                (Some(_), true) => "rose",
                (Some(_), false) => "fell",
            },
            "verdict": change.is_worse.map_or("time", |is_worse| if is_worse { "worse" } else { "better" }),
        })
    });
    json!({
        "changes": changes.collect::<Vec<_>>(),
        "unchanged": comparison.unchanged,
        "notes": comparison.notes,
        "is_worse": comparison.is_worse(),
    })
}

fn failure_of(error: EvalError) -> Failure {
    let exit = match &error {
        EvalError::Judge { error: JudgeError::Away(_), .. } => Exit::ServerAway,
        EvalError::Judge { error: JudgeError::Refused(_), .. } => Exit::Data,
        EvalError::Unreadable { .. } | EvalError::Malformed { .. } => Exit::Data,
    };
    Failure { exit, message: error.to_string() }
}

/// The wrong answers that were asked for.
struct Mistakes {
    /// How many there were of each kind that was asked for, in that order.
    counts: Vec<(Mistake, usize)>,
    /// The first of them.
    kept: Vec<Confused>,
}

/// Writes record lines, keeps wrong answers, and tells what was passed over.
struct Recorder<'o> {
    path: PathBuf,
    lines: Option<BufWriter<File>>,
    error: Option<std::io::Error>,
    /// Mistakes to keep, with how many there were.
    wanted: Vec<(Mistake, usize)>,
    /// Most of each that are kept.
    limit: usize,
    confused: Vec<Confused>,
    output: &'o mut Output,
}

impl<'o> Recorder<'o> {
    fn new(arguments: &EvalArguments, output: &'o mut Output) -> Result<Self, Failure> {
        let path = arguments.records.clone();
        let path_shown = path.clone().unwrap_or_default();
        let create =
            |path: &PathBuf| File::create(path).map_err(|error| new_file::cannot_write(path, &error));
        let lines = path.as_ref().map(create).transpose()?.map(BufWriter::new);
        let most = arguments.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let mut wanted: Vec<(Mistake, usize)> = Vec::new();
        for mistake in arguments.show.iter().map(|shown| shown.mistake()) {
            if wanted.iter().all(|(known, _)| *known != mistake) {
                wanted.push((mistake, 0));
            }
        }
        Ok(Self { path: path_shown, lines, error: None, wanted, limit: most, confused: Vec::new(), output })
    }

    fn finish(mut self) -> Result<Mistakes, Failure> {
        if let (None, Some(lines)) = (&self.error, &mut self.lines) {
            self.error = lines.flush().err();
        }
        match self.error {
            None => Ok(Mistakes { counts: self.wanted, kept: self.confused }),
            Some(error) => Err(new_file::cannot_write(&self.path, &error)),
        }
    }
}

impl Observer for Recorder<'_> {
    fn judged(&mut self, outcome: &Outcome<'_>) {
        if let (None, Some(lines)) = (&self.error, &mut self.lines) {
            self.error = writeln!(lines, "{}", eval::record_line(outcome)).err();
        }
        if !self.wanted.is_empty()
            && let Some(confused) = Confused::of(outcome)
            && let Some((_, seen)) = self.wanted.iter_mut().find(|(mistake, _)| *mistake == confused.mistake)
        {
            *seen += 1;
            if *seen <= self.limit {
                self.confused.push(confused);
            }
        }
    }

    fn skipped(&mut self, file: &str, records: usize, needs: &str) {
        let plural = if records == 1 { "" } else { "s" };
        self.output.note(format_args!("{file}: {records} record{plural} passed over: needs {needs}"));
    }

    fn noted(&mut self, file: &str, note: &str) {
        self.output.note(format_args!("{file}: {note}"));
    }
}
