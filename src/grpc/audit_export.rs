//! Audit records to a collector, as log records of OTLP over gRPC.
//!
//! The messages are those parts of `opentelemetry/proto/logs/v1` and `collector/logs/v1` (OTLP 1.x) that a record needs.
//! The body of a log record is the line that the sink `file` would write, so that no sink says more than another.
//!
//! The writer thread of the audit log waits here, never a request: while the collector is slow or away, records gather in
//! the buffer, and what does not fit there is dropped and counted.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::uri::PathAndQuery;
use jiff::Timestamp;
use serde::Deserialize;
use tokio::runtime::Handle;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::audit::{Sink, WriteError};
use crate::outbound::{jitter, pause_before};

/// How long one attempt may take, the connection included.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(1_500);
/// How often records are sent before they are given up. All attempts end within the 5 s that a stop waits for them.
const ATTEMPTS_MAX: u32 = 3;
/// The pause before the second attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Lines sent at once, in bytes: collectors take 4 MiB unless told otherwise.
const REQUEST_BYTES_MAX: usize = 1024 * 1024;
/// The method of the contract.
const EXPORT: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// Sends lines of the audit log to a collector.
#[derive(Debug)]
pub struct OtlpSink {
    channel: Channel,
    runtime: Handle,
    resource: Resource,
}

impl OtlpSink {
    /// A sink for the collector at `endpoint`, such as `http://localhost:4317`. Nothing is connected yet. Must be called
    /// inside a tokio runtime, which does the sending.
    ///
    /// # Errors
    /// The endpoint cannot be read.
    pub fn new(endpoint: &str) -> io::Result<Self> {
        let channel = Endpoint::from_shared(endpoint.to_owned())
            // The endpoint is not repeated: it may hold a password.
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the endpoint cannot be read"))?
            .connect_timeout(ATTEMPT_TIMEOUT)
            .connect_lazy();
        let attributes = vec![
            text("service.name", env!("CARGO_PKG_NAME")),
            text("service.version", env!("CARGO_PKG_VERSION")),
        ];
        Ok(Self { channel, runtime: Handle::current(), resource: Resource { attributes } })
    }

    /// Sends some lines, again where that may help. Answers how many of them the collector refused.
    async fn send(&self, lines: &[u8]) -> Result<u64, Status> {
        let request = self.request(lines);
        let mut attempt = 1;
        loop {
            let sent = tokio::time::timeout(ATTEMPT_TIMEOUT, self.attempt(request.clone())).await;
            let status = match sent.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time"))) {
                Ok(rejected) => return Ok(rejected),
                Err(status) => status,
            };
            attempt += 1;
            if attempt > ATTEMPTS_MAX || !may_be_sent_again(status.code()) {
                return Err(status);
            }
            tokio::time::sleep(pause_before(attempt, FIRST_PAUSE, LONGEST_PAUSE, jitter())).await;
        }
    }

    async fn attempt(&self, request: ExportRequest) -> Result<u64, Status> {
        let mut client = Grpc::new(self.channel.clone());
        client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let codec: ProstCodec<ExportRequest, ExportResponse> = ProstCodec::default();
        let answer = client.unary(Request::new(request), PathAndQuery::from_static(EXPORT), codec).await?;
        let partial = answer.into_inner().partial_success;
        Ok(partial.map_or(0, |partial| u64::try_from(partial.rejected_log_records).unwrap_or(0)))
    }

    fn request(&self, lines: &[u8]) -> ExportRequest {
        let observed =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let records = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let scope =
            Scope { name: "portcullis.audit".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let log_records = records.map(|line| log_record(line, observed)).collect();
        let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records }];
        ExportRequest {
            resource_logs: vec![ResourceLogs { resource: Some(self.resource.clone()), scope_logs }],
        }
    }
}

impl Sink for OtlpSink {
    fn write(&mut self, batch: &[u8]) -> Result<(), WriteError> {
        let (mut rest, mut rejected) = (batch, 0);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(whole_lines(rest));
            match self.runtime.block_on(self.send(piece)) {
                Ok(count) => rejected += count,
                Err(status) => {
                    let cause = io::Error::other(format!("{:?}: {}", status.code(), status.message()));
                    return Err(WriteError { lost: rejected + count_lines(rest), cause });
                }
            }
            rest = after;
        }
        if rejected == 0 {
            return Ok(());
        }
        Err(WriteError { lost: rejected, cause: io::Error::other("the collector rejected records") })
    }
}

/// Length of the longest run of whole lines that is sent at once; of the first line when not even that one fits.
fn whole_lines(batch: &[u8]) -> usize {
    let room = REQUEST_BYTES_MAX.min(batch.len());
    memchr::memrchr(b'\n', &batch[..room])
        .or_else(|| memchr::memchr(b'\n', batch))
        .map_or(batch.len(), |line_feed| line_feed + 1)
}

fn count_lines(batch: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', batch).count() as u64
}

/// The codes after which OTLP lets a client send the same again. RESOURCE_EXHAUSTED is among them only with a time to
/// wait, which is longer than a batch is kept.
fn may_be_sent_again(code: Code) -> bool {
    matches!(
        code,
        Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss
    )
}

/// What is read of a line, to stand beside its text.
#[derive(Deserialize)]
struct Line {
    time: Timestamp,
    decision_id: String,
    policy: String,
    policy_revision: String,
    rpc: String,
    decision: String,
}

fn log_record(line: &[u8], observed: u64) -> LogRecord {
    let body = Some(AnyValue { value: Some(Value::Text(String::from_utf8_lossy(line).into_owned())) });
    let plain =
        LogRecord { observed, body, event_name: "portcullis.decision".to_owned(), ..Default::default() };
    let Ok(read) = serde_json::from_slice::<Line>(line) else { return plain };
    LogRecord {
        time: u64::try_from(read.time.as_nanosecond()).unwrap_or(observed),
        severity: severity(&read.decision),
        severity_text: read.decision.clone(),
        attributes: vec![
            text("portcullis.decision_id", &read.decision_id),
            text("portcullis.decision", &read.decision),
            text("portcullis.policy", &read.policy),
            text("portcullis.policy_revision", &read.policy_revision),
            text("portcullis.rpc", &read.rpc),
        ],
        ..plain
    }
}

/// SEVERITY_NUMBER of a decision: INFO for ALLOW, ERROR for BLOCK, WARN for what lies between.
fn severity(decision: &str) -> i32 {
    match decision {
        "ALLOW" => 9,
        "BLOCK" => 17,
        _ => 13,
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(Value::Text(value.to_owned())) }) }
}

/// `ExportLogsServiceRequest`.
#[derive(Clone, PartialEq, prost::Message)]
struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    resource_logs: Vec<ResourceLogs>,
}

/// `ExportLogsServiceResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

/// `ExportLogsPartialSuccess`.
#[derive(Clone, PartialEq, prost::Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_log_records: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResourceLogs {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_logs: Vec<ScopeLogs>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ScopeLogs {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    log_records: Vec<LogRecord>,
}

/// `InstrumentationScope`.
#[derive(Clone, PartialEq, prost::Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LogRecord {
    /// `time_unix_nano`.
    #[prost(fixed64, tag = "1")]
    time: u64,
    /// `severity_number`.
    #[prost(int32, tag = "2")]
    severity: i32,
    #[prost(string, tag = "3")]
    severity_text: String,
    #[prost(message, optional, tag = "5")]
    body: Option<AnyValue>,
    #[prost(message, repeated, tag = "6")]
    attributes: Vec<KeyValue>,
    /// `observed_time_unix_nano`.
    #[prost(fixed64, tag = "11")]
    observed: u64,
    #[prost(string, tag = "12")]
    event_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1")]
    value: Option<Value>,
}

/// The one kind of value that is sent.
#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_cut_between_lines() {
        let line = [b"x".repeat(300 * 1024), b"\n".to_vec()].concat();
        let batch = line.repeat(5);
        assert_eq!(whole_lines(&batch), 3 * line.len());
        assert_eq!(count_lines(&batch[whole_lines(&batch)..]), 2);
        let long = [b"x".repeat(2 * REQUEST_BYTES_MAX), b"\nnext\n".to_vec()].concat();
        assert_eq!(whole_lines(&long), 2 * REQUEST_BYTES_MAX + 1, "a line is never torn");
    }

    #[test]
    fn a_record_is_its_line_and_what_is_looked_for() {
        let line = br#"{"time":"2026-03-01T09:30:00.125Z","decision_id":"d","policy":"p","policy_revision":"r","rpc":"CheckMessages","decision":"BLOCK","more":1}"#;
        let record = log_record(line, 7);
        assert_eq!((record.time, record.observed), (1_772_357_400_125_000_000, 7));
        assert_eq!((record.severity, &*record.severity_text), (17, "BLOCK"));
        assert_eq!(
            record.body,
            Some(AnyValue { value: Some(Value::Text(String::from_utf8_lossy(line).into())) })
        );
        assert!(record.attributes.contains(&text("portcullis.decision_id", "d")));
        assert_eq!((severity("ALLOW"), severity("ASK"), severity("WARN")), (9, 13, 13));
    }
}
