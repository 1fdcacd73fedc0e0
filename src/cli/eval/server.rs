//! The judge behind `--server`: a running service.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use crate::cli::context::Context;
use crate::cli::{Failure, remote};
use crate::decision::BundleKind;
use crate::eval::{Judge, JudgeError, Judged, NotJudged, Seen, ToolCall};
use crate::grpc::client::{Caller, Client, ClientError};
use crate::grpc::submission_convert::wire_kind;
use crate::pb::v1;
use crate::rules::Role;

/// Judges with a running server.
pub(super) struct RemoteJudge {
    calls: Client,
    /// With the patience that whole bundles need.
    uploads: Client,
}

impl RemoteJudge {
    pub(super) fn connect(url: &str, context: &Context) -> Result<Self, Failure> {
        let uploads = remote::connect_for_uploads(url, context)?;
        Ok(Self { calls: remote::connect(url, context)?, uploads })
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
