//! Measures the real engine on labelled records.
//!
//! Records are JSON lines; their fields tell their shape. Each text is judged under the default policy with the role its
//! surface stands for, each command and path as a tool call that has not run yet, and the answer is compared with the
//! label:
//!
//! - commands and paths: a dangerous one is found, and a benign one falsely flagged, when the decision is BLOCK; asking
//!   a person is neither. Of commands in disguise it is also told how many got the verdict of the plain one;
//! - streams: an inserted attack is found when an incident of WARN or KILL begins in it; the incidents of benign
//!   transcripts are false ones, told per megabyte;
//! - bundles: a malicious one is found, and a benign one falsely flagged, when the inline checks block it; archives: one
//!   that must be refused is found when the archive check refuses it;
//! - injection: an attack is found, and a benign text falsely flagged, when the decision is BLOCK;
//! - secrets and PII: a positive record is found when a finding of its family overlaps an expected span; a negative one
//!   is falsely flagged by any finding of its family from MEDIUM on.
//!
//! Findings in shadow or suppressed do not count, since they decide nothing. The cache is off: a figure of speed is that
//! of scanning. Records that a judge cannot judge are passed over and said so.
//!
//! Does not: print, or reach a server. The command line does, by giving another [`Judge`].

mod bundle_record;
mod compare;
mod confusion;
mod engine;
mod figures;
mod grade;
mod input;
mod json;
mod judge;
mod markdown;
mod points;
mod record;
mod redaction;
mod stream_record;
mod sweep;
mod table;
mod tally;
mod tool_record;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub use bundle_record::{Reviewed, Upload};
pub use compare::{Baseline, BaselineError, Change, Comparison, Scope};
pub use confusion::{Confused, Mistake};
pub use engine::EngineJudge;
pub use figures::{Figure, Standing, Unit, figures};
pub use json::{record_line, report as report_json};
pub use judge::{Found, Judge, JudgeError, Judged, NotJudged};
pub use markdown::{MarkdownError, written_into};
pub use points::Point;
pub use record::{Kind, Labelled, Record, RecordError, parse};
pub use stream_record::{Seen, Transcript};
pub use sweep::{LeftOut, Sweep, SweepRow, fpr_max, sweeps, sweeps_json};
pub use table::{render as report_text, render_sweeps as sweeps_text};
pub use tally::{Count, FileTally, Report, SpanCount};
pub use tool_record::{Disguise, ToolCall};

use crate::setting::system_problem;
use redaction::Redaction;

/// Why an evaluation ended early.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// A file or folder that cannot be read.
    #[error("{path}: {message}")]
    Unreadable {
        /// The path as given.
        path: String,
        /// Why.
        message: String,
    },
    /// A record that is not of its shape.
    #[error("{path}:{line}: {error}")]
    Malformed {
        /// The file.
        path: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong with which field.
        error: RecordError,
    },
    /// The judge gave no answer.
    #[error("{path}:{line}: {error}")]
    Judge {
        /// The file.
        path: String,
        /// Line of the record, from 1.
        line: usize,
        /// Why.
        error: JudgeError,
    },
}

/// One record with its answer, for whoever wants to compute the figures again.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The file.
    pub file: &'a str,
    /// The record.
    pub record: &'a Record,
    /// Where it comes from, as sources are counted.
    pub source: &'a str,
    /// What was answered.
    pub judged: &'a Judged,
    /// Whether that flags the record: right for a positive one, wrong for a negative one.
    pub is_flagged: bool,
    /// What redaction left of the labelled spans.
    pub redaction: Redaction,
}

/// What happens while an evaluation runs.
pub trait Observer {
    /// A record was judged.
    fn judged(&mut self, outcome: &Outcome<'_>);
    /// Records of a file were passed over; `needs` says what would judge them.
    fn skipped(&mut self, file: &str, records: usize, needs: &str);
    /// Something about a file that its figures do not show, such as an id that stands there twice.
    fn noted(&mut self, file: &str, note: &str);
}

/// Evaluates every file of `paths`, folders included.
///
/// # Errors
/// The first thing that cannot be read, is malformed or cannot be judged.
pub fn evaluate(
    paths: &[PathBuf],
    judge: &mut dyn Judge,
    observer: &mut dyn Observer,
) -> Result<Report, EvalError> {
    let mut report = Report::default();
    for file in input::files(paths)? {
        report.files.extend(evaluate_file(&file, judge, observer, &mut report.totals)?);
    }
    Ok(report)
}

/// Every file that an evaluation of `paths` reads: those of records, and the uploads that these name. What is wrong with a
/// record is said when it is judged.
///
/// # Errors
/// The first file of records that cannot be read.
pub fn inputs(paths: &[PathBuf]) -> Result<Vec<PathBuf>, EvalError> {
    let files = input::files(paths)?;
    let mut uploads = Vec::new();
    for file in &files {
        for (_, text) in input::lines(file)? {
            let record = text.ok().and_then(|text| record::parse(&text).ok());
            if let Some(upload) = record.and_then(|record| record.upload) {
                uploads.push(file.with_file_name(upload.name));
            }
        }
    }
    Ok([files, uploads].concat())
}

/// Whether an evaluation reads a file of that name where its folder is given.
pub fn is_record_file(name: &Path) -> bool {
    input::is_record_file(name)
}

/// Reads every record of `paths`, folders included, in order, for whoever wants more than figures. `take` is given the
/// file, the line and the record; what it refuses ends the reading and is answered as the inner error.
///
/// # Errors
/// The first thing that cannot be read or is malformed.
pub fn read_records(
    paths: &[PathBuf],
    take: &mut dyn FnMut(&str, usize, Record) -> Result<(), String>,
) -> Result<Result<(), String>, EvalError> {
    for file in input::files(paths)? {
        let name = file.display().to_string();
        for (line, text) in input::lines(&file)? {
            let malformed = |error| EvalError::Malformed { path: name.clone(), line, error };
            let record = record::parse(&text.map_err(malformed)?).map_err(malformed)?;
            if let Err(refused) = take(&name, line, *record) {
                return Ok(Err(refused));
            }
        }
    }
    Ok(Ok(()))
}

/// Reads the texts of a file once before their time is taken: patterns and automata are made when they are first needed,
/// which a service does in its first minute and a file of a thousand texts would mostly measure.
fn warm(file: &Path, judge: &mut dyn Judge) -> Result<(), EvalError> {
    let name = file.display().to_string();
    for (line, text) in input::lines(file)? {
        // What is wrong with a record is said when it is judged.
        let Some(record) = text.ok().and_then(|text| record::parse(&text).ok()) else { return Ok(()) };
        if record.call.is_some() || record.transcript.is_some() || record.upload.is_some() {
            return Ok(());
        }
        let failed = |error| EvalError::Judge { path: name.clone(), line, error };
        judge.warm(&record.text, record.role).map_err(failed)?;
    }
    Ok(())
}

/// The ids of a file, with the lines where they first stood.
#[derive(Default)]
struct Ids {
    lines: HashMap<String, usize>,
    /// Records whose id stood there before, and the first of them: its id, its line, and the one before.
    again: usize,
    first_again: Option<(String, usize, usize)>,
}

impl Ids {
    fn add(&mut self, id: &str, line: usize) {
        let Some(before) = self.lines.get(id).copied() else {
            self.lines.insert(id.to_owned(), line);
            return;
        };
        self.again += 1;
        self.first_again.get_or_insert_with(|| (id.to_owned(), line, before));
    }

    fn notes(&self) -> Vec<String> {
        if self.lines.is_empty() {
            return vec!["holds no record".to_owned()];
        }
        let Some((id, line, before)) = &self.first_again else { return Vec::new() };
        let plural = if self.again == 1 { "has an id" } else { "have ids" };
        let shown: String = id.chars().take(80).flat_map(char::escape_debug).collect();
        vec![format!(
            "{} of the records {plural} that stood there before, and all are counted; the first is `{shown}` in line {line}, as in \
             line {before}",
            self.again
        )]
    }
}

/// The tally of one file; `None` when every record was passed over.
fn evaluate_file(
    file: &Path,
    judge: &mut dyn Judge,
    observer: &mut dyn Observer,
    totals: &mut tally::Totals,
) -> Result<Option<FileTally>, EvalError> {
    let name = file.display().to_string();
    let mut tally = FileTally::new(name.clone());
    let mut skipped = std::collections::BTreeMap::<&str, usize>::new();
    warm(file, judge)?;
    let mut ids = Ids::default();
    for (line, text) in input::lines(file)? {
        let malformed = |error| EvalError::Malformed { path: name.clone(), line, error };
        let text = text.map_err(malformed)?;
        let record = record::parse(&text).map_err(malformed)?;
        ids.add(&record.id, line);
        let failed = |error| EvalError::Judge { path: name.clone(), line, error };
        let judged = match (&record.call, &record.transcript, &record.upload) {
            (Some(call), _, _) => judge.intercept(call),
            (None, Some(transcript), _) => judge.watch(&mut transcript.chunks(&record.text)),
            (None, None, Some(upload)) => {
                let path = file.with_file_name(&upload.name);
                if let Err(error) = std::fs::metadata(&path) {
                    let message = format!("`{}` cannot be read: {}", path.display(), system_problem(&error));
                    return Err(malformed(RecordError { field: "bundle".to_owned(), message }));
                }
                match judge.review(&path, upload.kind).map_err(failed)? {
                    Some(judged) => Ok(judged),
                    None => {
                        *skipped.entry("to run without a server").or_default() += 1;
                        continue;
                    }
                }
            }
            (None, None, None) => judge.judge(&record.text, record.role),
        };
        let judged = judged.map_err(failed)?;
        let redaction = redaction::measure(&record, &judged, judge).map_err(failed)?;
        let graded = grade::grade(&record, &judged);
        tally.add(&record, &judged, &graded, redaction);
        let source = points::source_name(&record, file);
        totals.add(&record, &source, &judged, &graded, redaction);
        observer.judged(&Outcome {
            file: &name,
            record: &record,
            source: &source,
            judged: &judged,
            is_flagged: graded.is_flagged,
            redaction,
        });
    }
    for note in ids.notes() {
        observer.noted(&name, &note);
    }
    for (needs, records) in skipped {
        observer.skipped(&name, records, needs);
    }
    Ok((tally.records > 0).then_some(tally))
}
