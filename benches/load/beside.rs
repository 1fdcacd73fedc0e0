//! What runs beside the calls: watched processes, uploads, probes of health and scrapes.

use std::cell::{Cell, RefCell};
use std::io::{Cursor, Write as _};
use std::rc::Rc;
use std::time::{Duration, Instant};

use portcullis::pb::v1;
use portcullis::pb::v1::policy_decision_service_client::PolicyDecisionServiceClient;
use prost::bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use v1::review_bundle_request::Kind as Uploaded;
use v1::stream_monitor_request::Kind as Asked;
use v1::stream_monitor_response::Kind as Answered;
use zip::write::SimpleFileOptions;

use crate::common::{PROSE, text_of};
use crate::figures::Scrape;

/// Watched processes.
const SESSIONS: usize = 6;
/// Pause between two chunks of one of them.
const CHUNK_PAUSE: Duration = Duration::from_millis(100);
/// Bytes of a chunk.
const CHUNK_BYTES: usize = 2 << 10;
/// Pause between two uploads.
const UPLOAD_PAUSE: Duration = Duration::from_secs(1);
/// Pause between two probes.
const PROBE_PAUSE: Duration = Duration::from_millis(200);
/// How long a probe waits, as Kubernetes does by default.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// What came of it, from one `take` to the next; times in milliseconds.
#[derive(Debug, Default)]
pub struct Noted {
    /// From a chunk sent to its acknowledgement.
    pub acks: Vec<f32>,
    /// Time of one upload.
    pub uploads: Vec<f32>,
    /// Uploads refused because there are too many.
    pub uploads_refused: usize,
    /// Answers to probes of health, and scrapes.
    pub probes: Vec<f32>,
    /// What went wrong, one line each.
    pub faults: Vec<String>,
}

/// Runs until it is dropped.
pub struct Beside {
    noted: Rc<RefCell<Noted>>,
    is_over: Rc<Cell<bool>>,
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.is_over.set(true);
    }
}

impl Beside {
    /// Starts everything, on connections of its own.
    pub async fn start(grpc: &str, http: &str) -> Self {
        let beside = Self { noted: Rc::default(), is_over: Rc::default() };
        let channel = connect(grpc).await;
        for _ in 0..SESSIONS {
            beside.keep_on(watch(channel.clone(), beside.noted.clone(), beside.is_over.clone()), "session");
        }
        let (noted, is_over) = (beside.noted.clone(), beside.is_over.clone());
        spawn_local(upload(connect(grpc).await, noted, is_over));
        let (noted, is_over) = (beside.noted.clone(), beside.is_over.clone());
        spawn_local(probe(connect(grpc).await, http.to_owned(), noted, is_over));
        beside
    }

    /// What was noted since the last time.
    pub fn take(&self) -> Noted {
        self.noted.take()
    }

    fn keep_on(&self, work: impl Future<Output = Result<(), tonic::Status>> + 'static, name: &'static str) {
        let (noted, is_over) = (self.noted.clone(), self.is_over.clone());
        spawn_local(async move {
            if let Err(status) = work.await
                && !is_over.get()
            {
                noted.borrow_mut().faults.push(format!("{name}: {status}"));
            }
        });
    }
}

async fn connect(address: &str) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address").tcp_nodelay(true);
    endpoint.connect().await.expect("the server listens")
}

/// One watched process that writes ordinary lines.
async fn watch(
    channel: Channel,
    noted: Rc<RefCell<Noted>>,
    is_over: Rc<Cell<bool>>,
) -> Result<(), tonic::Status> {
    let (requests, receiver) = mpsc::channel(4);
    let send = async |kind| {
        let sent = requests.send(v1::StreamMonitorRequest { kind: Some(kind) }).await;
        sent.map_err(|_| tonic::Status::cancelled("the session is closed"))
    };
    send(Asked::Attach(v1::Attach { acks: true, ..Default::default() })).await?;
    let mut client = PolicyDecisionServiceClient::new(channel);
    let mut answers = client.stream_monitor(ReceiverStream::new(receiver)).await?.into_inner();
    let data: Bytes = text_of(PROSE, CHUNK_BYTES).replace(". ", ".\n").into();
    while !is_over.get() {
        let chunk = v1::Chunk { stream: v1::OutputStream::Stdout.into(), data: data.clone(), seq: 0 };
        let sent = Instant::now();
        send(Asked::Chunk(chunk)).await?;
        loop {
            let answer =
                answers.message().await?.ok_or_else(|| tonic::Status::cancelled("the session ended"))?;
            if matches!(answer.kind, Some(Answered::Ack(_))) {
                break;
            }
        }
        noted.borrow_mut().acks.push(sent.elapsed().as_secs_f32() * 1e3);
        sleep(CHUNK_PAUSE).await;
    }
    Ok(())
}

/// Uploads a skill now and then.
async fn upload(channel: Channel, noted: Rc<RefCell<Noted>>, is_over: Rc<Cell<bool>>) {
    let mut client = PolicyDecisionServiceClient::new(channel);
    let skill: Bytes = skill().into();
    let header = v1::BundleHeader { kind: v1::BundleKind::Skill.into(), ..Default::default() };
    while !is_over.get() {
        let messages = [Uploaded::Header(header.clone()), Uploaded::Chunk(skill.clone())];
        let messages = messages.map(|kind| v1::ReviewBundleRequest { kind: Some(kind) });
        let sent = Instant::now();
        let answer = client.review_bundle(tokio_stream::iter(messages)).await;
        note_upload(&mut noted.borrow_mut(), sent.elapsed(), answer.err());
        sleep(UPLOAD_PAUSE).await;
    }
}

/// Takes note of how an upload ended.
fn note_upload(noted: &mut Noted, elapsed: Duration, error: Option<tonic::Status>) {
    match error {
        None => noted.uploads.push(elapsed.as_secs_f32() * 1e3),
        Some(status) if matches!(status.code(), Code::Unavailable | Code::ResourceExhausted) => {
            noted.uploads_refused += 1;
        }
        Some(status) => noted.faults.push(format!("upload: {status}")),
    }
}

/// A typical skill: three files of some 20 KB in all.
fn skill() -> Vec<u8> {
    let script = "#!/bin/sh\nset -eu\nfor file in \"$@\"; do\n  wc -l \"$file\" >> report.txt\ndone\n";
    let head = "---\nname: typical\ndescription: Plans deliveries and writes the letters about them.\n---\n\n# Typical\n";
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, text) in [
        ("typical/SKILL.md", format!("{head}{}\n", text_of(PROSE, 9_000))),
        ("typical/references/plan.md", text_of(PROSE, 10_000)),
        ("typical/run.sh", script.to_owned()),
    ] {
        writer.start_file(path, SimpleFileOptions::default()).expect("a new file");
        writer.write_all(text.as_bytes()).expect("memory takes it");
    }
    writer.finish().expect("a whole archive").into_inner()
}

/// Asks for health over gRPC and for the metrics over HTTP, as Kubernetes and Prometheus do.
async fn probe(channel: Channel, http: String, noted: Rc<RefCell<Noted>>, is_over: Rc<Cell<bool>>) {
    let mut client = HealthClient::new(channel);
    while !is_over.get() {
        let sent = Instant::now();
        let question = HealthCheckRequest { service: String::new() };
        let fault = match timeout(PROBE_TIMEOUT, client.check(question)).await {
            Ok(Ok(answer)) if answer.get_ref().status() == ServingStatus::Serving => None,
            Ok(Ok(answer)) => Some(format!("health: {:?}", answer.get_ref().status())),
            Ok(Err(status)) => Some(format!("health: {status}")),
            Err(_) => Some("health: no answer".to_owned()),
        };
        note(&noted, sent, fault);
        let sent = Instant::now();
        let fault = match timeout(PROBE_TIMEOUT, scrape(&http)).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(format!("metrics: {error}")),
            Err(_) => Some("metrics: no answer".to_owned()),
        };
        note(&noted, sent, fault);
        sleep(PROBE_PAUSE).await;
    }
}

fn note(noted: &RefCell<Noted>, sent: Instant, fault: Option<String>) {
    let mut noted = noted.borrow_mut();
    noted.probes.push(sent.elapsed().as_secs_f32() * 1e3);
    noted.faults.extend(fault);
}

/// What the server counts.
pub async fn scrape(http: &str) -> std::io::Result<Scrape> {
    let mut connection = TcpStream::connect(http).await?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    let is_ok = answer.starts_with("HTTP/1.1 200 ");
    if is_ok { Ok(Scrape::of(&answer)) } else { Err(std::io::Error::other("no 200")) }
}
