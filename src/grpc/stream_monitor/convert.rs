//! Between the messages of StreamMonitor and the engine's types.

use prost::Message as _;
use prost::bytes::Bytes;

use crate::decision::OutputStream;
use crate::grpc::RequestError;
use crate::grpc::convert::unjudged;
use crate::grpc::incident_convert::{incident, source, stream, verdict_kind};
use crate::monitor::{Incoming, KillAdvice, Message, Summary, Verdict};
use crate::pb::v1;
use crate::pb::v1::stream_monitor_request::Kind as Asked;
use crate::pb::v1::stream_monitor_response::Kind as Answered;

/// What a client says, once it is clear what it is.
pub(super) enum Said {
    /// Begins the session.
    Attach(Box<v1::Attach>),
    /// Belongs to a session.
    Within(Incoming<Bytes>),
}

/// Reads one message.
///
/// # Errors
/// It is too large, holds nothing, or holds a number that the contract does not have.
pub(super) fn said(request: v1::StreamMonitorRequest, bytes_max: usize) -> Result<Said, RequestError> {
    let found = request.encoded_len();
    if found > bytes_max {
        return Err(RequestError::TooLarge {
            what: "the message",
            found: found as u64,
            limit: bytes_max as u64,
            setting: "server.request_bytes_max",
        });
    }
    match request.kind {
        Some(Asked::Attach(attach)) => Ok(Said::Attach(Box::new(attach))),
        Some(Asked::Chunk(chunk)) => {
            let stream = match v1::OutputStream::try_from(chunk.stream) {
                Ok(v1::OutputStream::Stdout) => OutputStream::Stdout,
                Ok(v1::OutputStream::Stderr) => OutputStream::Stderr,
                Ok(v1::OutputStream::Unspecified) => {
                    return Err(RequestError::field("chunk.stream", "is not set; send STDOUT or STDERR"));
                }
                Err(_) => {
                    let message = format!("{} is no OutputStream", chunk.stream);
                    return Err(RequestError::field("chunk.stream", message));
                }
            };
            Ok(Said::Within(Incoming::Chunk { stream, data: chunk.data, seq: chunk.seq }))
        }
        Some(Asked::Detach(detach)) => {
            Ok(Said::Within(Incoming::Detach { exit_code: detach.exit_code.map(|code| code.value) }))
        }
        None => Err(RequestError::field("kind", "is not set; send attach, chunk or detach")),
    }
}

/// One answer on the wire.
pub(super) fn answer(message: Message) -> v1::StreamMonitorResponse {
    let kind = match message {
        Message::Attached { session_id, policy_revision } => Answered::Attached(v1::Attached {
            session_id: session_id.to_string(),
            policy_revision: policy_revision.to_string(),
        }),
        Message::Ack { stream: of, seq } => Answered::Ack(v1::Ack { stream: stream(of).into(), seq }),
        Message::Incident(one) => Answered::Incident(incident(&one)),
        Message::Verdict(one) => Answered::Verdict(verdict(one)),
        Message::Summary(of) => Answered::Summary(summary(of)),
    };
    v1::StreamMonitorResponse { kind: Some(kind) }
}

fn verdict(verdict: Verdict) -> v1::Verdict {
    let kill = |KillAdvice { kill_group, continue_first }| v1::KillAdvice { kill_group, continue_first };
    v1::Verdict {
        incident_id: verdict.incident_id.to_string(),
        verdict: verdict_kind(verdict.verdict).into(),
        reason: verdict.reason,
        source: source(verdict.source).into(),
        r#final: verdict.is_final,
        kill: verdict.kill.map(kill),
        decision_id: verdict.decision_id.to_string(),
    }
}

fn summary(summary: Summary) -> v1::Summary {
    v1::Summary {
        bytes: summary.bytes,
        chunks: summary.chunks,
        incidents: summary.incidents.iter().map(|one| incident(one)).collect(),
        incidents_total: summary.incidents_total,
        worst: summary.worst.map_or(v1::VerdictKind::Safe, verdict_kind).into(),
        unjudged: summary.unjudged.into_iter().map(unjudged).collect(),
        policy_revision: summary.policy_revision.to_string(),
    }
}
