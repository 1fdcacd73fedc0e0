//! Server CPU of one `CheckMessages` and one `InterceptTool`, as a ratio to a no-op RPC of the same payload in the same
//! run.
//!
//! What it is for: the promise that asking costs next to nothing. Both servers are processes of their own on loopback,
//! called in turns by the same client over warm connections; CPU is what the kernel booked on each process. The floor
//! is this program started again with `--floor`: the same generated service, whose calls answer at once.
//!
//! Run: `cargo bench --bench rpc`. Also prints the cold start and the resident memory after all calls.

mod common;

use std::process::Command;
use std::time::Instant;

use common::process::Process;
use common::{PROSE, median, text_of};
use portcullis::pb::v1;
use portcullis::pb::v1::policy_decision_service_client::PolicyDecisionServiceClient;
use portcullis::pb::v1::policy_decision_service_server::{
    PolicyDecisionService, PolicyDecisionServiceServer,
};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};

/// Connections of the client; one caps it.
const CONNECTIONS: usize = 4;
/// Calls in flight.
const CONCURRENCY: usize = 16;
/// Rounds per payload.
const ROUNDS: usize = 7;
/// Calls per round.
const CALLS: usize = 20_000;

fn main() {
    let floor = std::env::args().any(|a| a == "--floor");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if floor { runtime.block_on(serve_floor()) } else { runtime.block_on(measure()) }
}

async fn measure() {
    let folder = tempfile::tempdir().expect("a folder");
    let this = std::env::current_exe().expect("this program has a path");
    let mut floor = Process::start(Command::new(this).arg("--floor"));
    let started = Instant::now();
    let mut server =
        Process::start(Command::new(env!("CARGO_BIN_EXE_portcullis")).current_dir(folder.path()).args([
            "serve",
            "--listen=127.0.0.1:0",
            "--http-listen=127.0.0.1:0",
            "--set=cache.enabled=false",
        ]));
    println!("cold start to SERVING: {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
    let floor_channels = connect(&floor.address).await;
    let server_channels = connect(&server.address).await;
    println!(
        "{:<14} {:>14} {:>14} {:>8} {:>12} {:>12} {:>8}",
        "payload", "floor us CPU", "call us CPU", "ratio", "floor p50", "call p50", "ratio"
    );
    for (name, request) in
        [("check 1 KiB", check(1024)), ("check 16 KiB", check(16 * 1024)), ("tool exec", exec())]
    {
        let (mut floor_cpu, mut server_cpu, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let a = floor.cpu_of(load(&floor_channels, &request, None)).await;
            let b = server.cpu_of(load(&server_channels, &request, Some(v1::Decision::Allow))).await;
            // The first round warms connections, caches and the processor.
            if round > 0 {
                floor_cpu.push(a);
                server_cpu.push(b);
                ratios.push(b / a);
            }
        }
        let floor_p50 = median(one_by_one(&floor_channels[0], &request).await);
        let server_p50 = median(one_by_one(&server_channels[0], &request).await);
        println!(
            "{name:<14} {:>14.1} {:>14.1} {:>8.2} {:>9.0} us {:>9.0} us {:>8.2}",
            median(floor_cpu) / CALLS as f64 * 1e6,
            median(server_cpu) / CALLS as f64 * 1e6,
            median(ratios),
            floor_p50 * 1e6,
            server_p50 * 1e6,
            server_p50 / floor_p50,
        );
        println!(
            "{:<14} resident: {:.1} MiB after {} calls",
            "",
            server.resident_mib(),
            (ROUNDS + 1) * CALLS
        );
    }
    floor.stop();
    server.stop();
}

/// What is asked.
#[derive(Clone)]
enum Asked {
    /// Is this message safe?
    Check(v1::CheckMessagesRequest),
    /// May this tool run?
    Tool(v1::InterceptToolRequest),
}

impl Asked {
    /// Asks; answers the decision.
    async fn of(&self, client: &mut PolicyDecisionServiceClient<Channel>) -> v1::Decision {
        match self {
            Self::Check(request) => {
                client.check_messages(request.clone()).await.expect("an answer").into_inner().decision()
            }
            Self::Tool(request) => {
                client.intercept_tool(request.clone()).await.expect("an answer").into_inner().decision()
            }
        }
    }
}

/// A message of `bytes` bytes in which nothing is to be found.
fn check(bytes: usize) -> Asked {
    Asked::Check(v1::CheckMessagesRequest {
        messages: vec![v1::Message {
            role: "user".into(),
            content: Some(v1::message::Content::Text(text_of(PROSE, bytes))),
            ..Default::default()
        }],
        ..Default::default()
    })
}

/// A harmless command of ordinary length, as an agent sends it.
fn exec() -> Asked {
    Asked::Tool(v1::InterceptToolRequest {
        phase: v1::ToolPhase::Before.into(),
        tool_name: "Bash".into(),
        tool_call_id: "toolu_01".into(),
        args_json: r#"{"command":"cd crates/parser && cargo test --all-features 2>&1 | tail -n 40","description":"Run the tests"}"#
            .into(),
        environment: Some(v1::ExecutionContext {
            cwd: "/home/ada/app".into(),
            home: "/home/ada".into(),
            os: "linux".into(),
            ..Default::default()
        }),
        ..Default::default()
    })
}

async fn connect(address: &str) -> Vec<Channel> {
    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        let endpoint =
            Endpoint::from_shared(format!("http://{address}")).expect("an address").tcp_nodelay(true);
        channels.push(endpoint.connect().await.expect("the server listens"));
    }
    channels
}

/// `CALLS` calls, `CONCURRENCY` at a time; every answer is checked.
async fn load(channels: &[Channel], request: &Asked, want: Option<v1::Decision>) {
    let tasks: Vec<_> = (0..CONCURRENCY)
        .map(|n| {
            let mut client = PolicyDecisionServiceClient::new(channels[n % channels.len()].clone());
            let request = request.clone();
            tokio::spawn(async move {
                for _ in 0..CALLS / CONCURRENCY {
                    let decision = request.of(&mut client).await;
                    if let Some(want) = want {
                        assert_eq!(decision, want);
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

/// Seconds of single calls, one after another.
async fn one_by_one(channel: &Channel, request: &Asked) -> Vec<f64> {
    let mut client = PolicyDecisionServiceClient::new(channel.clone());
    let mut times = Vec::new();
    for _ in 0..3_000 {
        let started = Instant::now();
        request.of(&mut client).await;
        times.push(started.elapsed().as_secs_f64());
    }
    times
}

/// The no-op service.
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

#[tonic::async_trait]
impl PolicyDecisionService for Floor {
    type CheckMessagesStreamStream = tokio_stream::Empty<Result<v1::CheckMessagesResponse, Status>>;
    type StreamMonitorStream = tokio_stream::Empty<Result<v1::StreamMonitorResponse, Status>>;

    async fn check_messages(
        &self,
        request: Request<v1::CheckMessagesRequest>,
    ) -> Result<Response<v1::CheckMessagesResponse>, Status> {
        // The same answer that the real one gives to a text with nothing in it.
        let _ = request.into_inner();
        Ok(Response::new(v1::CheckMessagesResponse {
            decision: v1::Decision::Allow.into(),
            risk_level: v1::RiskLevel::Safe.into(),
            decision_id: "01900000-0000-7000-8000-000000000000".into(),
            policy_revision: "000000000000-000000000000".into(),
            ..Default::default()
        }))
    }

    async fn check_messages_stream(
        &self,
        _: Request<Streaming<v1::CheckMessagesRequest>>,
    ) -> Result<Response<Self::CheckMessagesStreamStream>, Status> {
        Err(Status::unimplemented("the floor answers CheckMessages and InterceptTool only"))
    }

    async fn intercept_message(
        &self,
        _: Request<v1::InterceptMessageRequest>,
    ) -> Result<Response<v1::InterceptMessageResponse>, Status> {
        Err(Status::unimplemented("the floor answers CheckMessages and InterceptTool only"))
    }

    async fn intercept_params(
        &self,
        _: Request<v1::InterceptParamsRequest>,
    ) -> Result<Response<v1::InterceptParamsResponse>, Status> {
        Err(Status::unimplemented("the floor answers CheckMessages and InterceptTool only"))
    }

    async fn intercept_tool(
        &self,
        request: Request<v1::InterceptToolRequest>,
    ) -> Result<Response<v1::InterceptToolResponse>, Status> {
        // The same answer that the real one gives to a command that does no harm.
        Ok(Response::new(v1::InterceptToolResponse {
            decision: v1::Decision::Allow.into(),
            tool_name: "exec".into(),
            args_json: request.into_inner().args_json,
            metadata_json: "{}".into(),
            decision_id: "01900000-0000-7000-8000-000000000000".into(),
            policy_revision: "000000000000-000000000000".into(),
            ..Default::default()
        }))
    }

    async fn stream_monitor(
        &self,
        _: Request<Streaming<v1::StreamMonitorRequest>>,
    ) -> Result<Response<Self::StreamMonitorStream>, Status> {
        Err(Status::unimplemented("the floor answers CheckMessages and InterceptTool only"))
    }

    async fn review_bundle(
        &self,
        _: Request<Streaming<v1::ReviewBundleRequest>>,
    ) -> Result<Response<v1::ReviewBundleResponse>, Status> {
        Err(Status::unimplemented("the floor answers CheckMessages and InterceptTool only"))
    }
}
