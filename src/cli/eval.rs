//! `eval`: detection measured on labelled records.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;

use super::context::{Context, snapshot};
use super::rules::sources_with;
use super::{Exit, Failure, Output, remote};
use crate::app;
use crate::config::Settings;
use crate::decision::BundleKind;
use crate::detect::Scanner;
use crate::eval::{
    self, EngineJudge, EvalError, Judge, JudgeError, Judged, NotJudged, Observer, Outcome, Seen, ToolCall,
};
use crate::grpc::client::{Caller, Client, ClientError};
use crate::grpc::submission_convert::wire_kind;
use crate::pb::v1;
use crate::policy::{PolicySet, Snapshot};
use crate::rules::{Role, RuleSet, RuleSetConfig};

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
    /// Rule files and folders of them, beside the built-in rules and under the built-in policy; a file that bears the
    /// name of a built-in one stands in for it.
    #[arg(long, value_name = "PATH", conflicts_with = "server")]
    rules: Vec<PathBuf>,
    /// Ask a running server, such as http://127.0.0.1:50051. Times then are those of whole calls.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

/// Runs the command.
pub(super) fn run(
    arguments: &EvalArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    if let Some(url) = &arguments.server {
        return run_with(&mut RemoteJudge::connect(url)?, arguments, output);
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
    let mut recorder = Recorder::new(arguments.records.clone(), output)?;
    let report = eval::evaluate(&arguments.paths, judge, &mut recorder).map_err(failure_of)?;
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
        self.output.note(format_args!("{file}: {records} record{plural} passed over: needs {needs}"));
    }
}

/// Judges with a running server.
struct RemoteJudge {
    calls: Client,
    /// With the patience that whole bundles need.
    uploads: Client,
}

impl RemoteJudge {
    fn connect(url: &str) -> Result<Self, Failure> {
        Ok(Self { calls: remote::connect(url)?, uploads: remote::connect_for_uploads(url)? })
    }

    fn check(&self, text: &str, role: Role, redact: bool) -> Result<v1::CheckMessagesResponse, JudgeError> {
        let message = v1::Message {
            role: role.as_str().to_owned(),
            content: Some(v1::message::Content::Text(text.to_owned())),
            ..Default::default()
        };
        let request = v1::CheckMessagesRequest { messages: vec![message], redact, ..Default::default() };
        self.calls.check(request).map_err(judge_error)
    }
}

fn judge_error(error: ClientError) -> JudgeError {
    match error {
        ClientError::Away { .. } => JudgeError::Away(error.to_string()),
        _ => JudgeError::Refused(error.to_string()),
    }
}

impl Judge for RemoteJudge {
    fn judge(&mut self, text: &str, role: Role) -> Result<Judged, JudgeError> {
        let started = Instant::now();
        let response = self.check(text, role, false)?;
        let elapsed = started.elapsed();
        let risk_score = response.risk_score;
        let judged = Judged::of_wire(response.decision(), &response.findings, &response.unjudged, elapsed);
        Ok(Judged { risk_score, ..judged })
    }

    fn intercept(&mut self, call: &ToolCall) -> Result<Judged, JudgeError> {
        let request = v1::InterceptToolRequest {
            phase: v1::ToolPhase::Before.into(),
            tool_name: call.tool.clone(),
            args_json: call.args_json.clone(),
            ..Default::default()
        };
        let started = Instant::now();
        let response = self.calls.intercept_tool(request).map_err(judge_error)?;
        let elapsed = started.elapsed();
        Ok(Judged::of_wire(response.decision(), &response.findings, &response.unjudged, elapsed))
    }

    fn watch(&mut self, chunks: &mut dyn Iterator<Item = &str>) -> Result<Judged, JudgeError> {
        use v1::stream_monitor_request::Kind as Request;
        use v1::stream_monitor_response::Kind as Response;
        let request = |kind| v1::StreamMonitorRequest { kind: Some(kind) };
        let mut requests = vec![request(Request::Attach(v1::Attach::default()))];
        requests.extend(chunks.map(|chunk| {
            request(Request::Chunk(v1::Chunk {
                stream: v1::OutputStream::Stdout.into(),
                data: chunk.as_bytes().to_vec().into(),
                seq: 0,
            }))
        }));
        requests.push(request(Request::Detach(v1::Detach::default())));
        let started = Instant::now();
        let responses = self.calls.monitor(requests).map_err(judge_error)?;
        let elapsed = started.elapsed();
        let (mut incidents, mut unjudged) = (Vec::<Seen>::new(), Vec::new());
        let mut ids = Vec::new();
        let short = |name: &str, prefix: &str| name.strip_prefix(prefix).unwrap_or(name).to_owned();
        let verdict_name = |kind: v1::VerdictKind| match kind {
            v1::VerdictKind::Unspecified => String::new(),
            kind => short(kind.as_str_name(), "VERDICT_KIND_"),
        };
        for response in responses {
            match response.kind {
                Some(Response::Incident(incident)) => {
                    ids.push(incident.id.clone());
                    incidents.push(Seen {
                        stream: short(incident.stream().as_str_name(), "OUTPUT_STREAM_").to_ascii_lowercase(),
                        verdict: verdict_name(incident.verdict()),
                        offset: incident.offset,
                        rule_id: incident.rule_id,
                    });
                }
                Some(Response::Verdict(verdict)) => {
                    // A verdict may come later than its incident; the strongest counts.
                    let at = ids.iter().position(|id| *id == verdict.incident_id);
                    if let Some(seen) = at.map(|at| &mut incidents[at]) {
                        let rank =
                            |name: &str| ["", "SAFE", "WARN", "KILL"].iter().position(|known| *known == name);
                        let name = verdict_name(verdict.verdict());
                        if rank(&name) > rank(&seen.verdict) {
                            seen.verdict = name;
                        }
                    }
                }
                Some(Response::Summary(summary)) => {
                    unjudged.extend(summary.unjudged.into_iter().map(|one| NotJudged {
                        plugin: one.plugin,
                        reason: one.reason,
                        failed_open: one.failed_open,
                    }));
                }
                _ => {}
            }
        }
        Ok(Judged::of_stream(incidents, unjudged, elapsed))
    }

    fn review(&mut self, path: &Path, kind: BundleKind) -> Result<Option<Judged>, JudgeError> {
        let unreadable = |error| JudgeError::Refused(format!("{} cannot be read: {error}", path.display()));
        let file = File::open(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        let header =
            v1::BundleHeader { kind: wire_kind(kind).into(), size, dry_run: true, ..Default::default() };
        let started = Instant::now();
        let review =
            self.uploads.review_bundle(header, file, &Caller::default(), |_| {}).map_err(judge_error)?;
        Ok(Some(Judged::of_review(&review, started.elapsed())))
    }

    fn redact(&mut self, text: &str, role: Role) -> Result<String, JudgeError> {
        let response = self.check(text, role, true)?;
        let content = response.redacted_messages.into_iter().next().and_then(|message| message.content);
        match content {
            Some(v1::message::Content::Text(text)) => Ok(text),
            _ => Err(JudgeError::Refused("the server gave no redacted text back".to_owned())),
        }
    }
}
