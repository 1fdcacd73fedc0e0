use std::net::SocketAddr;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tower::ServiceExt as _;

use super::*;
use crate::telemetry;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);

fn state() -> AppState {
    let (_, metrics) = telemetry::install();
    AppState { metrics, readiness: Readiness::new() }
}

async fn answer(router: Router, request: Request) -> (StatusCode, HeaderValue, String) {
    let response = router.oneshot(request).await.expect("a router answers always");
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, 1 << 20).await.expect("the body is in memory");
    let kind = parts.headers.get(header::CONTENT_TYPE).expect("every answer has a type").clone();
    (parts.status, kind, String::from_utf8(body.to_vec()).expect("answers are text"))
}

async fn get_page(state: &AppState, path: &str) -> (StatusCode, HeaderValue, String) {
    let request = Request::get(path).header("host", "localhost").body(Body::empty()).expect("well formed");
    answer(router(state.clone(), AllowedHosts::new(&[], LOOPBACK)), request).await
}

#[tokio::test]
async fn readiness_is_told_with_its_reason() {
    let state = state();
    let (status, _, text) = get_page(&state, "/readyz").await;
    assert_eq!((status, text.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "not serving: starting\n"));
    state.readiness.set_serving();
    assert_eq!(get_page(&state, "/readyz").await.0, StatusCode::OK);
    state.readiness.set_not_serving("no usable policy");
    let (status, _, text) = get_page(&state, "/readyz").await;
    assert_eq!((status, text.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "not serving: no usable policy\n"));
    assert_eq!(get_page(&state, "/livez").await.0, StatusCode::OK);
}

#[tokio::test]
async fn metrics_are_in_the_text_format() {
    let (status, kind, text) = get_page(&state(), "/metrics").await;
    assert_eq!((status, kind), (StatusCode::OK, METRICS_TYPE));
    assert!(text.contains("# TYPE portcullis_build_info gauge\n"), "{text}");
}

#[tokio::test]
async fn what_is_not_there_is_told_as_json() {
    let (status, kind, text) = get_page(&state(), "/admin").await;
    assert_eq!((status, kind), (StatusCode::NOT_FOUND, HeaderValue::from_static("application/json")));
    let body: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(body["error"]["code"], "not_found");
    let request =
        Request::post("/metrics").header("host", "localhost").body(Body::empty()).expect("well formed");
    let (status, _, text) = answer(router(state(), AllowedHosts::new(&[], LOOPBACK)), request).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(text.contains("method_not_allowed"), "{text}");
}

#[tokio::test]
async fn only_known_hosts_pass() {
    let configured = ["guard.internal".to_owned(), "Metrics.Internal:9000".to_owned()];
    let hosts = AllowedHosts::new(&configured, "10.0.0.7:8080".parse().expect("an address"));
    let (good, strange, bad) = (StatusCode::OK, StatusCode::MISDIRECTED_REQUEST, StatusCode::BAD_REQUEST);
    for (host, want) in [
        ("localhost", good),
        ("LocalHost:8080", good),
        ("localhost.", good),
        ("127.0.0.1:1", good),
        ("127.9.9.9", good),
        ("[::1]:8080", good),
        ("[::ffff:127.0.0.1]", good),
        ("guard.internal", good),
        ("GUARD.internal.:8080", good),
        ("metrics.internal:9000", good),
        ("10.0.0.7:8080", good),
        ("metrics.internal", strange),
        ("metrics.internal:9001", strange),
        ("evil.example", strange),
        ("localhost.evil.example", strange),
        ("127.0.0.1.evil.example", strange),
        ("evil.guard.internal", strange),
        ("10.0.0.8", strange),
        ("0.0.0.0:8080", strange),
        ("", bad),
        ("localhost@evil.example", bad),
        ("localhost/evil", bad),
        ("localhost:port", bad),
        ("localhost:", bad),
        ("localhost:99999", bad),
        ("*", bad),
    ] {
        let request = Request::get("/livez").header("host", host).body(Body::empty()).expect("well formed");
        let (status, _, text) = answer(router(state(), hosts.clone()), request).await;
        assert_eq!(status, want, "{host}: {text}");
    }
}

#[tokio::test]
async fn no_host_two_hosts_and_a_strange_target_are_refused() {
    let hosts = || AllowedHosts::new(&[], LOOPBACK);
    let none = Request::get("/livez").body(Body::empty()).expect("well formed");
    assert_eq!(answer(router(state(), hosts()), none).await.0, StatusCode::BAD_REQUEST);
    let two = Request::get("/livez").header("host", "localhost").header("host", "localhost");
    let two = two.body(Body::empty()).expect("well formed");
    assert_eq!(answer(router(state(), hosts()), two).await.0, StatusCode::BAD_REQUEST);
    let target = Request::get("http://evil.example/livez").header("host", "localhost");
    let target = target.body(Body::empty()).expect("well formed");
    assert_eq!(answer(router(state(), hosts()), target).await.0, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn a_star_lets_every_host_pass() {
    let hosts = AllowedHosts::new(&["*".to_owned()], LOOPBACK);
    let request =
        Request::get("/livez").header("host", "anything.example").body(Body::empty()).expect("well formed");
    assert_eq!(answer(router(state(), hosts), request).await.0, StatusCode::OK);
}

#[test]
fn configured_hosts_are_checked() {
    for (host, good) in [
        ("*", true),
        ("a.internal", true),
        ("a:1", true),
        ("[::1]", true),
        ("http://a", false),
        ("*.a", false),
        ("", false),
    ] {
        assert_eq!(AllowedHosts::is_well_formed(host), good, "{host}");
    }
}

/// Starts a server on a free port; ends when the sender is used or dropped.
async fn start() -> (SocketAddr, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (stop, stopped) = oneshot::channel();
    let router = router(state(), AllowedHosts::new(&[], address));
    let served = tokio::spawn(serve(listener, router, async {
        let _ = stopped.await;
    }));
    (address, stop, served)
}

#[tokio::test]
async fn a_stop_ends_idle_connections() {
    let (address, stop, served) = start().await;
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("it reads");
    let mut head = [0; 15];
    stream.read_exact(&mut head).await.expect("it answers");
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    stop.send(()).expect("it waits for this");
    served.await.expect("it ends");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.expect("the connection is closed in order");
    assert!(rest.ends_with(b"ok\n"));
}

/// Sends `sent` and returns what comes back until the connection is closed for taking too long. The limit is short
/// here; the test ends when the connection does.
async fn answer_to_slow_peer(sent: &[u8]) -> String {
    let (mut peer, ours) = tokio::io::duplex(1024);
    let router = router(state(), AllowedHosts::new(&[], LOOPBACK));
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let served = tokio::spawn(server::serve_stream(ours, router, Duration::from_millis(20), stopped));
    peer.write_all(sent).await.expect("it reads");
    let mut answer = Vec::new();
    peer.read_to_end(&mut answer).await.expect("the connection is closed in order");
    let _either_way = served.await.expect("it does not panic");
    String::from_utf8(answer).expect("answers are text")
}

#[tokio::test]
async fn peers_that_send_nothing_more_are_shown_out() {
    assert!(!answer_to_slow_peer(b"").await.starts_with("HTTP/1.1 200"));
    assert!(!answer_to_slow_peer(b"GET /livez HTTP/1.1\r\nHost: local").await.starts_with("HTTP/1.1 200"));
    // Idle after an answer.
    let answer = answer_to_slow_peer(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn too_long_heads_and_other_protocols_are_refused() {
    let head = format!("GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n", "x".repeat(64 * 1024));
    let (mut peer, ours) = tokio::io::duplex(128 * 1024);
    let router = router(state(), AllowedHosts::new(&[], LOOPBACK));
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let served = tokio::spawn(server::serve_stream(ours, router, Duration::from_secs(20), stopped));
    peer.write_all(head.as_bytes()).await.expect("it is taken or cut off");
    let mut answer = Vec::new();
    peer.read_to_end(&mut answer).await.expect("the connection is closed in order");
    assert!(answer.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer));
    served.await.expect("it does not panic").expect_err("the head was too long");
    // The preface of HTTP/2.
    assert!(!answer_to_slow_peer(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.starts_with("HTTP/1.1 200"));
}
