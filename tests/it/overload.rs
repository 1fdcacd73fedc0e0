//! More calls than can be decided: what waits too long is refused at once and counted, the rest is served.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use portcullis::pb::v1;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt as _;

use super::server::{Client, PATIENCE, Server, Setup, eventually, user};

/// Callers who call again as soon as they were answered.
const CALLERS: usize = 64;
/// Of each of the two outcomes so many are waited for.
const ENOUGH: usize = 20;

/// Settings under which each of many callers waits longer than it may, on any machine.
const IMPATIENT: &str = "server: {queue_wait_max: 1ms}\ncache: {enabled: false}\n";

/// A text that takes a while.
fn long() -> v1::CheckMessagesRequest {
    user(&"The invoice of the third delivery is with the accountant until Monday. ".repeat(500))
}

/// What a flood of calls came to.
#[derive(Default)]
struct Flood {
    decided: AtomicUsize,
    refused: AtomicUsize,
}

impl Flood {
    /// One caller, until enough calls were decided and enough refused.
    async fn caller(&self, mut client: Client) -> Option<Status> {
        let (request, until) = (long(), Instant::now() + PATIENCE);
        let mut refusal = None;
        while self.decided.load(Ordering::Relaxed) < ENOUGH || self.refused.load(Ordering::Relaxed) < ENOUGH {
            assert!(Instant::now() < until, "the flood has no end");
            match client.check_messages(request.clone()).await {
                Ok(answer) => {
                    assert_eq!(answer.into_inner().decision(), v1::Decision::Allow);
                    self.decided.fetch_add(1, Ordering::Relaxed);
                }
                Err(status) => {
                    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    refusal = Some(status);
                }
            }
        }
        refusal
    }
}

/// The value of a series; 0 when there is none.
async fn count(server: &Server, series: &str) -> usize {
    let (_, text) = server.get("/metrics").await;
    let value = text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
    value.unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_wait_too_long_is_refused_and_everything_else_goes_on() {
    let server = Setup::new().settings(IMPATIENT).start();
    let client = server.client().await;
    let flood = Flood::default();
    let flooding = futures_util::future::join_all((0..CALLERS).map(|_| flood.caller(client.clone())));
    // A stream is slowed, never refused: it has at most one request under way.
    let streaming = async {
        let answers = server.client().await.check_messages_stream(tokio_stream::iter(vec![long(); 10])).await;
        let answers = answers.expect("the stream opens").into_inner();
        answers.map(|answer| answer.expect("the stream goes on")).collect::<Vec<_>>().await
    };
    let probing = async {
        let question = HealthCheckRequest { service: String::new() };
        let health =
            HealthClient::new(server.channel().await).check(question).await.expect("probes are answered");
        assert_eq!(health.into_inner().status(), ServingStatus::Serving);
        assert_eq!(server.get("/readyz").await.0, 200);
    };
    let (refusals, streamed, ()) = tokio::join!(flooding, streaming, probing);

    assert_eq!(streamed.len(), 10);
    assert!(streamed.iter().all(|answer| answer.error.is_none() && !answer.decision_id.is_empty()));
    let refusal = refusals.into_iter().flatten().next().expect("some were refused");
    assert_eq!(refusal.get_details_error_info().expect("the reason is told").reason, "OVERLOADED");
    let pause =
        refusal.get_details_retry_info().and_then(|info| info.retry_delay).expect("when to try again");
    assert!(pause > Duration::ZERO && pause < Duration::from_secs(5), "{pause:?}");
    // Every refusal is counted, and nothing but refusals.
    let refused = flood.refused.load(Ordering::Relaxed);
    assert_eq!(count(&server, r#"portcullis_shed_total{reason="wait"}"#).await, refused);
    assert_eq!(count(&server, r#"portcullis_shed_total{reason="places"}"#).await, 0);
    let unavailable = r#"portcullis_requests_total{rpc="CheckMessages",decision="NONE",code="UNAVAILABLE"}"#;
    assert_eq!(count(&server, unavailable).await, refused);
    // And it is over as soon as the flood is.
    eventually(PATIENCE, "a call is decided again", || {
        let mut client = client.clone();
        async move { client.check_messages(user("Hello")).await.ok() }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_bound_all_wait() {
    let server = Setup::new().settings("server: {queue_wait_max: off}\ncache: {enabled: false}\n").start();
    let client = server.client().await;
    let calls = (0..CALLERS * 2).map(|_| {
        let mut client = client.clone();
        async move { client.check_messages(long()).await.map(|answer| answer.into_inner().decision()) }
    });
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.expect("decided"), v1::Decision::Allow);
    }
    // All of them on threads that read, which is told.
    assert!(count(&server, "portcullis_long_decisions_total").await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wait_counts_in_the_duration() {
    let server = Setup::new().settings("server: {queue_wait_max: 10s}\ncache: {enabled: false}\n").start();
    let client = server.client().await;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let callers = (16 * processors).min(200);
    let started = Instant::now();
    let calls = (0..callers).map(|_| {
        let mut client = client.clone();
        async move { client.check_messages(long()).await.expect("decided") }
    });
    futures_util::future::join_all(calls).await;
    let all = started.elapsed().as_secs_f64();
    let (_, text) = server.get("/metrics").await;
    let series = "portcullis_request_duration_seconds_sum{rpc=\"CheckMessages\"} ";
    let sum: f64 =
        text.lines().find_map(|line| line.strip_prefix(series)?.parse().ok()).expect("it is counted");
    // Work alone cannot take longer than as many at a time as there are threads, twice the processors. The last of all
    // callers has waited for all others, so that on average each has waited for half of them.
    let work_at_most = all * 2.0 * processors as f64;
    assert!(sum > work_at_most, "{sum} s of {all} s, {processors} processors");
}
