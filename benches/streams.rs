//! What it costs to be watched over gRPC: the way from a chunk to a verdict, many sessions at once, memory of each.
//!
//! - **Latency**: from a chunk received to the KILL of a rule sent, as the server itself counts it
//!   (`portcullis_verdict_duration_seconds`), and from the chunk sent to the KILL received, as its client sees it; both
//!   beside an echo of the same bytes in a bidirectional stream of the same generated service in the same run. Once as the first incident of a session, which is how a
//!   dangerous command shows in life; and once as one incident after another in one session, each with a full excerpt of
//!   2,000 characters to mask, log, record and write to the disk while the next chunk comes.
//! - **Sessions**: 2,000 idle sessions and 200 busy ones on one server. Resident memory per idle session; bytes scanned per
//!   busy session, the least and the most; how long an idle session waits for its acknowledgement meanwhile.
//!
//! Run: `cargo bench --bench streams`. Both servers are processes of their own on loopback; the floor is this program
//! started again with `--floor`. While latency is measured the client has a processor of its own, and echo and server share
//! the others, one idle while the other is asked.

mod common;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::process::Process;
use common::processors::Processors;
use common::{PROSE, text_of};
use portcullis::pb::v1;
use portcullis::pb::v1::policy_decision_service_client::PolicyDecisionServiceClient;
use portcullis::pb::v1::policy_decision_service_server::{
    PolicyDecisionService, PolicyDecisionServiceServer,
};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};
use v1::stream_monitor_request::Kind as Asked;
use v1::stream_monitor_response::Kind as Answered;

/// Verdicts that are waited for in one round; a session reports ten thousand incidents.
const VERDICTS: usize = 2_000;
/// Sessions of a round in which only the first incident of each is waited for.
const FIRSTS: usize = VERDICTS;
/// Sessions in which they are waited for, in turns with the floor.
const ROUNDS: usize = 5;
/// Sessions that are open and say nothing.
const IDLE: usize = 2_000;
/// Sessions that send as fast as they may.
const BUSY: usize = 200;
/// Sessions on one connection; servers allow two hundred by default.
const PER_CONNECTION: usize = 100;
/// Size of a chunk of a busy session.
const CHUNK_BYTES: usize = 16 * 1024;
/// How long the busy sessions send.
const BUSY_FOR: Duration = Duration::from_secs(10);

/// A line that a rule is certain about.
const CERTAIN: &str = "+ sudo rm -rf --no-preserve-root /\n";

fn main() {
    let floor = std::env::args().any(|a| a == "--floor");
    if floor {
        return tokio::runtime::Runtime::new().expect("a runtime").block_on(serve_floor());
    }
    measure_latency();
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = start(folder.path());
    tokio::runtime::Runtime::new().expect("a runtime").block_on(sessions(&server));
    server.stop();
}

/// With a processor for the client and the others for echo and server, of which one is asked at a time.
fn measure_latency() {
    let this = std::env::current_exe().expect("this program has a path");
    let folder = tempfile::tempdir().expect("a folder");
    // The same line again and again is to be an incident each time.
    let policies = folder.path().join("policies");
    std::fs::create_dir(&policies).expect("a folder");
    std::fs::write(policies.join("default.yaml"), "name: default\nstreams: {cooldown: 0s}\n")
        .expect("a file");
    let start = || (Process::start(Command::new(this).arg("--floor")), start(folder.path()));
    let processors = Processors::parted();
    let (mut floor, mut server) = match &processors {
        Some(processors) => processors.start(start),
        None => start(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(latency(&floor, &server));
    floor.stop();
    server.stop();
    if let Some(processors) = processors {
        processors.unite();
    }
}

fn start(folder: &Path) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.current_dir(folder).args(["serve", "--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0"]);
    if folder.join("policies").exists() {
        command.arg("--set=policy.path=policies");
    }
    Process::start(&mut command)
}

/// One session from the side of its client.
struct Session {
    requests: mpsc::Sender<v1::StreamMonitorRequest>,
    answers: Streaming<v1::StreamMonitorResponse>,
}

impl Session {
    async fn attach(channel: &Channel, acks: bool) -> Self {
        let (requests, receiver) = mpsc::channel(4);
        let attach = Asked::Attach(v1::Attach { acks, ..Default::default() });
        requests.send(v1::StreamMonitorRequest { kind: Some(attach) }).await.expect("open");
        let mut client = PolicyDecisionServiceClient::new(channel.clone());
        let answers = client.stream_monitor(ReceiverStream::new(receiver)).await;
        let mut session = Self { requests, answers: answers.expect("the stream opens").into_inner() };
        session.wait_for(|kind| matches!(kind, Answered::Attached(_))).await;
        session
    }

    async fn chunk(&self, data: prost::bytes::Bytes) {
        let chunk = v1::Chunk { stream: v1::OutputStream::Stdout.into(), data, seq: 0 };
        let request = v1::StreamMonitorRequest { kind: Some(Asked::Chunk(chunk)) };
        self.requests.send(request).await.expect("the session is open");
    }

    /// Ends the session and waits until the server is done with it, so that its last writes do not run beside the next.
    async fn end(self) {
        let Self { requests, mut answers } = self;
        drop(requests);
        while answers.message().await.expect("no error").is_some() {}
    }

    async fn wait_for(&mut self, is_wanted: impl Fn(&Answered) -> bool) {
        loop {
            let answer = self.answers.message().await.expect("no error").expect("the session is open");
            if answer.kind.as_ref().is_some_and(&is_wanted) {
                return;
            }
        }
    }
}

async fn connect(address: &str) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address").tcp_nodelay(true);
    endpoint.connect().await.expect("the server listens")
}

async fn latency(floor: &Process, server: &Process) {
    println!(
        "{:<24} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>7} {:>7}",
        "chunk, in us",
        "echo p50",
        "in server",
        "verdict",
        "echo p99",
        "in server",
        "verdict",
        "in p50",
        "in p99",
        "all p50",
        "all p99"
    );
    for (way, sessions) in [("first of a session", FIRSTS), ("one after another", 1)] {
        for (name, bytes) in [("line", CERTAIN.len()), ("1 KiB", 1024), ("16 KiB", CHUNK_BYTES)] {
            let mut text = text_of(PROSE, bytes - CERTAIN.len()).replace(". ", ".\n");
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(CERTAIN);
            let chunk = prost::bytes::Bytes::from(text);
            let (mut echoes, mut verdicts) = (Vec::new(), Vec::new());
            let mut before = Buckets::default();
            for round in 0..=ROUNDS {
                let echo = times(&floor.address, &chunk, sessions).await;
                let verdict = times(&server.address, &chunk, sessions).await;
                // The first round warms connections, caches and the processor.
                if round > 0 {
                    echoes.extend(echo);
                    verdicts.extend(verdict);
                } else {
                    before = Buckets::of(&server.metrics());
                }
            }
            let us = |values: &mut Vec<f64>, share: f64| percentile(values, share) * 1e6;
            let (e50, v50) = (us(&mut echoes, 0.5), us(&mut verdicts, 0.5));
            let (e99, v99) = (us(&mut echoes, 0.99), us(&mut verdicts, 0.99));
            let inside = Buckets::of(&server.metrics()).since(&before);
            let (i50, i99) = (inside.percentile(0.5) * 1e6, inside.percentile(0.99) * 1e6);
            println!(
                "{:<24} {e50:>9.0} {i50:>9.0} {v50:>9.0} {e99:>9.0} {i99:>9.0} {v99:>9.0} {:>7.2} {:>7.2} {:>7.2} {:>7.2}",
                format!("{name}, {way}"),
                i50 / e50,
                i99 / e99,
                v50 / e50,
                v99 / e99
            );
        }
    }
}

/// How many verdicts of rules took at most how long, as the server counts them.
#[derive(Default)]
struct Buckets(Vec<(f64, f64)>);

impl Buckets {
    fn of(metrics: &str) -> Self {
        let series = "portcullis_verdict_duration_seconds_bucket{source=\"rule\",le=\"";
        let buckets = metrics.lines().filter_map(|line| {
            let (limit, count) = line.strip_prefix(series)?.split_once("\"} ")?;
            Some((limit.parse().unwrap_or(f64::INFINITY), count.parse().ok()?))
        });
        Self(buckets.collect())
    }

    fn since(mut self, before: &Self) -> Self {
        for ((_, count), (_, earlier)) in self.0.iter_mut().zip(&before.0) {
            *count -= earlier;
        }
        self
    }

    /// In seconds, as if the verdicts of one bucket were spread evenly over it.
    fn percentile(&self, share: f64) -> f64 {
        let wanted = self.0.last().map_or(0.0, |(_, all)| all * share);
        let (mut low, mut below) = (0.0, 0.0);
        for (limit, count) in &self.0 {
            if *count >= wanted && *count > below {
                return if limit.is_finite() {
                    low + (limit - low) * (wanted - below) / (count - below)
                } else {
                    low
                };
            }
            (low, below) = (*limit, *count);
        }
        low
    }
}

/// Seconds from each chunk sent to its KILL received, over as many sessions one after another.
async fn times(address: &str, chunk: &prost::bytes::Bytes, sessions: usize) -> Vec<f64> {
    let channel = connect(address).await;
    let mut times = Vec::with_capacity(VERDICTS);
    for _ in 0..sessions {
        let mut session = Session::attach(&channel, false).await;
        for _ in 0..VERDICTS / sessions {
            let started = Instant::now();
            session.chunk(chunk.clone()).await;
            session.wait_for(|kind| matches!(kind, Answered::Verdict(_))).await;
            times.push(started.elapsed().as_secs_f64());
        }
        session.end().await;
    }
    times
}

async fn sessions(server: &Process) {
    let mut channels = Vec::new();
    for _ in 0..(IDLE + BUSY).div_ceil(PER_CONNECTION) {
        channels.push(connect(&server.address).await);
    }
    let line: prost::bytes::Bytes = "Compiling portcullis v0.1.0\n".into();
    let chunk: prost::bytes::Bytes = text_of(PROSE, CHUNK_BYTES).replace(". ", ".\n").into();
    // What is made once must not count as memory of the sessions.
    let mut warm = Session::attach(&channels[0], true).await;
    for data in [&line, &chunk] {
        warm.chunk(data.clone()).await;
        warm.wait_for(|kind| matches!(kind, Answered::Ack(_))).await;
    }
    drop(warm);
    let before = server.resident_mib();
    let mut idle = Vec::with_capacity(IDLE);
    for n in 0..IDLE {
        let mut session = Session::attach(&channels[n / PER_CONNECTION], true).await;
        session.chunk(line.clone()).await;
        session.wait_for(|kind| matches!(kind, Answered::Ack(_))).await;
        idle.push(session);
    }
    let after = server.resident_mib();
    println!("{IDLE} idle sessions: {:.1} KiB resident each", (after - before) * 1024.0 / IDLE as f64);
    let alone = probe(&mut idle, Duration::from_secs(2)).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut scanned = Vec::new();
    let mut tasks = Vec::new();
    // All are attached before the first one begins.
    let mut busy = Vec::with_capacity(BUSY);
    for n in 0..BUSY {
        busy.push(Session::attach(&channels[(IDLE + n) / PER_CONNECTION], true).await);
    }
    for mut session in busy {
        let (chunk, is_over) = (chunk.clone(), is_over.clone());
        let bytes = Arc::new(AtomicU64::new(0));
        scanned.push(bytes.clone());
        tasks.push(tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                session.chunk(chunk.clone()).await;
                session.wait_for(|kind| matches!(kind, Answered::Ack(_))).await;
                bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            }
        }));
    }
    let beside = probe(&mut idle, BUSY_FOR).await;
    let loads: Vec<u64> = scanned.iter().map(|bytes| bytes.load(Ordering::Relaxed)).collect();
    is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("no panic");
    }
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let (least, most) = (loads.iter().min().copied().unwrap_or(0), loads.iter().max().copied().unwrap_or(0));
    println!(
        "{BUSY} busy sessions: {:.0} MB/s in all, client included; {:.1} to {:.1} MB each",
        mb(loads.iter().sum()) / BUSY_FOR.as_secs_f64(),
        mb(least),
        mb(most),
    );
    for (name, mut times) in [("alone", alone), ("beside them", beside)] {
        let ms = |times: &mut Vec<f64>, share: f64| percentile(times, share) * 1e3;
        println!(
            "ack of an idle session, {name}: p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
            ms(&mut times, 0.5),
            ms(&mut times, 0.99),
            ms(&mut times, 1.0),
        );
    }
    println!("resident with all sessions: {:.1} MiB", server.resident_mib());
    assert!(least > 0, "a busy session was starved");
}

/// Seconds that idle sessions wait for the acknowledgement of one line, one session after the other.
async fn probe(idle: &mut [Session], within: Duration) -> Vec<f64> {
    let line: prost::bytes::Bytes = "Finished in 0.3 s\n".into();
    let until = Instant::now() + within;
    let mut times = Vec::new();
    let mut at = 0;
    while Instant::now() < until {
        let count = idle.len();
        let session = &mut idle[at % count];
        at += 7;
        let started = Instant::now();
        session.chunk(line.clone()).await;
        session.wait_for(|kind| matches!(kind, Answered::Ack(_))).await;
        times.push(started.elapsed().as_secs_f64());
    }
    times
}

fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values[((last as f64) * share).round() as usize]
}

/// A service that echoes chunks in verdicts.
struct Floor;

async fn serve_floor() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    eprintln!("{{\"grpc\":\"{}\"}}", listener.local_addr().expect("an address"));
    let incoming = tonic::transport::server::TcpIncoming::from(listener).with_nodelay(Some(true));
    Server::builder()
        .add_service(PolicyDecisionServiceServer::new(Floor))
        .serve_with_incoming(incoming)
        .await
        .expect("it serves");
}

fn echo(request: v1::StreamMonitorRequest) -> v1::StreamMonitorResponse {
    let kind = match request.kind {
        Some(Asked::Chunk(chunk)) => Answered::Verdict(v1::Verdict {
            reason: String::from_utf8_lossy(&chunk.data).into_owned(),
            ..Default::default()
        }),
        _ => Answered::Attached(v1::Attached::default()),
    };
    v1::StreamMonitorResponse { kind: Some(kind) }
}

fn not_here<T>() -> Result<T, Status> {
    Err(Status::unimplemented("the floor answers StreamMonitor only"))
}

#[tonic::async_trait]
impl PolicyDecisionService for Floor {
    type CheckMessagesStreamStream = tokio_stream::Empty<Result<v1::CheckMessagesResponse, Status>>;
    type StreamMonitorStream =
        std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<v1::StreamMonitorResponse, Status>> + Send>>;

    async fn check_messages(
        &self,
        _: Request<v1::CheckMessagesRequest>,
    ) -> Result<Response<v1::CheckMessagesResponse>, Status> {
        not_here()
    }

    async fn check_messages_stream(
        &self,
        _: Request<Streaming<v1::CheckMessagesRequest>>,
    ) -> Result<Response<Self::CheckMessagesStreamStream>, Status> {
        not_here()
    }

    async fn intercept_message(
        &self,
        _: Request<v1::InterceptMessageRequest>,
    ) -> Result<Response<v1::InterceptMessageResponse>, Status> {
        not_here()
    }

    async fn intercept_params(
        &self,
        _: Request<v1::InterceptParamsRequest>,
    ) -> Result<Response<v1::InterceptParamsResponse>, Status> {
        not_here()
    }

    async fn intercept_tool(
        &self,
        _: Request<v1::InterceptToolRequest>,
    ) -> Result<Response<v1::InterceptToolResponse>, Status> {
        not_here()
    }

    async fn stream_monitor(
        &self,
        request: Request<Streaming<v1::StreamMonitorRequest>>,
    ) -> Result<Response<Self::StreamMonitorStream>, Status> {
        Ok(Response::new(Box::pin(request.into_inner().map(|request| request.map(echo)))))
    }

    async fn review_bundle(
        &self,
        _: Request<Streaming<v1::ReviewBundleRequest>>,
    ) -> Result<Response<v1::ReviewBundleResponse>, Status> {
        not_here()
    }
}
