//! Interceptors that live elsewhere: webhooks and gRPC extensions that behave, and those that do not.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use portcullis::pb::v1;
use tokio::net::TcpListener;
use tonic::{Code, Request, Status};
use v1::Decision::{Allow, Ask, Block, Warn};
use v1::extension_service_server::{ExtensionService, ExtensionServiceServer};
use v1::interceptor::Handler;

use super::registry::{Registry, before, extension, interceptor, verdict, webhook};
use super::server::{Server, Setup};

/// Settings under which this machine may be called.
const LOCAL: &str = "extensions:\n  private_hosts: [127.0.0.0/8]\n";

/// A tool of which nobody else has an opinion.
const TOOL: &str = "canvas";

/// What a local HTTP server was asked, and how often each path.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<HashMap<String, Requests>>>);

/// Headers and body of each request, in the order in which they came.
type Requests = Vec<(HeaderMap, String)>;

impl Seen {
    fn add(&self, path: &str, headers: HeaderMap, body: String) -> usize {
        let mut seen = self.0.lock().expect("no panic before");
        let of_path = seen.entry(path.to_owned()).or_default();
        of_path.push((headers, body));
        of_path.len()
    }

    fn count(&self, path: &str) -> usize {
        self.0.lock().expect("no panic before").get(path).map_or(0, Vec::len)
    }

    fn last(&self, path: &str) -> (HeaderMap, String) {
        let seen = self.0.lock().expect("no panic before");
        seen[path].last().expect("it was asked").clone()
    }
}

const PASS: &str = r#"{"decision":"DECISION_ALLOW"}"#;

/// Answers as the path says, which is also what the tests below are named by.
async fn misbehave(
    State(seen): State<Seen>,
    Path(path): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let nth = seen.add(&path, headers, body);
    let json = |body: &'static str| ([("content-type", "application/json")], body).into_response();
    match path.as_str() {
        "pass" => json(PASS),
        "warn" => json(r#"{"decision":"DECISION_WARN"}"#),
        "ask" => json(r#"{"decision":"DECISION_ASK","reason":"Is Ann around?"}"#),
        "block" => json(r#"{"decision":"DECISION_BLOCK","reason":"Not on a Friday."}"#),
        "change" => json(r#"{"decision":"DECISION_ALLOW","args_json":"{\"n\":9007199254740993}"}"#),
        "slow" => {
            tokio::time::sleep(Duration::from_secs(5)).await;
            json(PASS)
        }
        "huge" => {
            format!(r#"{{"decision":"DECISION_ALLOW","reason":"{}"}}"#, "x".repeat(100_000)).into_response()
        }
        "endless" => {
            let chunks = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>("y".repeat(4096)));
            Body::from_stream(chunks).into_response()
        }
        "redirect" => (StatusCode::TEMPORARY_REDIRECT, [("location", "/pass")], PASS).into_response(),
        "empty" => json("{}"),
        "text" => "ALLOW".into_response(),
        "cut" => json(r#"{"decision":"DECISION_ALLOW""#),
        "twice" => json(r#"{"decision":"DECISION_BLOCK","reason":"x","decision":"DECISION_ALLOW"}"#),
        "unknown-field" => json(r#"{"decision":"DECISION_ALLOW","verdict":"fine"}"#),
        "unknown-decision" => json(r#"{"decision":"DECISION_MAYBE"}"#),
        "no-reason" => json(r#"{"decision":"DECISION_BLOCK"}"#),
        "bad-args" => json(r#"{"decision":"DECISION_ALLOW","argsJson":"{\"a\":"}"#),
        "list-args" => json(r#"{"decision":"DECISION_ALLOW","argsJson":"[]"}"#),
        "wrong-hook" => json(r#"{"decision":"DECISION_ALLOW","message":"hello"}"#),
        "no-content" => StatusCode::NO_CONTENT.into_response(),
        "forbidden" => StatusCode::FORBIDDEN.into_response(),
        "broken" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        "busy" => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "30")]).into_response(),
        "once-busy" if nth == 1 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        "once-limited" if nth == 1 => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "0")]).into_response(),
        "once-busy" | "once-limited" => json(PASS),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn http() -> (String, Seen) {
    let seen = Seen::default();
    let router = Router::new().route("/{path}", post(misbehave)).with_state(seen.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}"), seen)
}

/// Puts one interceptor in force, asks, and takes it away again.
async fn ask(server: &Server, handler: Handler, timeout: Duration) -> v1::InterceptToolResponse {
    let registry = Registry::of(server).await;
    let id = "test:remote";
    let wanted = v1::Interceptor { timeout: Some(timeout.into()), ..interceptor(id, TOOL, handler) };
    registry.add(wanted).await.expect("it is added");
    let answer = before(server, TOOL, r#"{"n":1}"#).await;
    registry.remove(id).await.expect("it is removed");
    answer
}

const PATIENT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_webhook_decides_and_changes() {
    let server = Setup::new().settings(LOCAL).start();
    let (url, seen) = http().await;
    for (path, decision, args, reason) in [
        ("pass", Allow, r#"{"n":1}"#, ""),
        ("warn", Warn, r#"{"n":1}"#, ""),
        ("ask", Ask, r#"{"n":1}"#, "Is Ann around?"),
        ("block", Block, r#"{"n":1}"#, "Not on a Friday."),
        ("change", Allow, r#"{"n":9007199254740993}"#, ""),
    ] {
        let answer = ask(&server, Handler::Webhook(webhook(format!("{url}/{path}"))), PATIENT).await;
        assert_eq!(verdict(&answer), (decision, vec![]), "{path}: {answer:?}");
        assert_eq!(answer.args_json, if decision == Block { "" } else { args }, "{path}");
        assert_eq!(answer.mutated, path == "change");
        assert!(answer.block_reason.contains(reason), "{path}: {}", answer.block_reason);
        assert_eq!(seen.count(path), 1, "{path}");
    }
    let (headers, body) = seen.last("pass");
    assert_eq!(headers["content-type"], "application/json");
    assert!(!headers.contains_key("authorization"));
    let asked: v1::InterceptRequest = serde_json::from_str(&body).expect("the JSON form of a request");
    assert_eq!((asked.hook(), asked.tool_name.as_str()), (v1::Hook::ToolBefore, TOOL));
    assert_eq!(asked.args_json, r#"{"n":1}"#);
    assert!(!asked.decision_id.is_empty() && !asked.dry_run);
}

#[tokio::test]
async fn whatever_is_no_answer_is_not_judged_and_fails_closed() {
    let server = Setup::new()
        .settings(&format!("{LOCAL}  response_bytes_max: 64KiB\n  breaker_failures: 1000\n"))
        .start();
    let (url, seen) = http().await;
    for (path, reason) in [
        ("huge", "limit"),
        ("endless", "limit"),
        ("redirect", "bad_answer"),
        ("empty", "bad_answer"),
        ("text", "bad_answer"),
        ("cut", "bad_answer"),
        ("twice", "bad_answer"),
        ("unknown-field", "bad_answer"),
        ("unknown-decision", "bad_answer"),
        ("no-reason", "bad_answer"),
        ("bad-args", "bad_answer"),
        ("list-args", "bad_answer"),
        ("wrong-hook", "bad_answer"),
        ("no-content", "error"),
        ("forbidden", "error"),
        ("broken", "error"),
        ("nowhere", "error"),
        ("busy", "unavailable"),
    ] {
        let hook = v1::InterceptorWebhook { attempts_max: 5, ..webhook(format!("{url}/{path}")) };
        let answer = ask(&server, Handler::Webhook(hook), PATIENT).await;
        assert_eq!(verdict(&answer), (Block, vec![reason]), "{path}: {:?}", answer.unjudged);
        assert!(!answer.unjudged[0].failed_open);
        assert_eq!(seen.count(path), 1, "{path} is not asked again");
        assert_eq!((answer.args_json.as_str(), answer.mutated), ("", false), "{path} changes nothing");
    }
    assert_eq!(seen.count("pass"), 0, "the redirect was not followed");
}

#[tokio::test]
async fn a_slow_webhook_is_not_waited_for() {
    let server = Setup::new().settings(LOCAL).start();
    let (url, _) = http().await;
    let handler = Handler::Webhook(webhook(format!("{url}/slow")));
    let started = Instant::now();
    let answer = ask(&server, handler, Duration::from_millis(200)).await;
    assert_eq!(verdict(&answer), (Block, vec!["timeout"]), "{:?}", answer.unjudged);
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
}

#[tokio::test]
async fn fail_modes_of_a_webhook_that_is_away() {
    let server = Setup::new().settings(LOCAL).start();
    let registry = Registry::of(&server).await;
    for (mode, decision) in
        [(v1::FailMode::Closed, Block), (v1::FailMode::Ask, Ask), (v1::FailMode::Open, Allow)]
    {
        // Port 1 of this machine answers nobody.
        let wanted = v1::Interceptor {
            fail_mode: mode.into(),
            ..interceptor("test:away", TOOL, Handler::Webhook(webhook("http://127.0.0.1:1/")))
        };
        registry.add(wanted).await.expect("it is added");
        let answer = before(&server, TOOL, "{}").await;
        assert_eq!(verdict(&answer), (decision, vec!["unavailable"]), "{:?}", answer.unjudged);
        assert_eq!(answer.unjudged[0].failed_open, mode == v1::FailMode::Open);
        registry.remove("test:away").await.expect("it is removed");
    }
}

#[tokio::test]
async fn what_is_harmless_to_repeat_is_repeated_with_the_same_decision_id() {
    let server = Setup::new().settings(LOCAL).start();
    let (url, seen) = http().await;
    for path in ["once-busy", "once-limited"] {
        let patient = v1::InterceptorWebhook { attempts_max: 2, ..webhook(format!("{url}/{path}")) };
        let answer = ask(&server, Handler::Webhook(patient), PATIENT).await;
        assert_eq!(verdict(&answer), (Allow, vec![]), "{path}");
        assert_eq!(seen.count(path), 2);
        let asked = seen.0.lock().expect("no panic before")[path].clone();
        let id =
            |body: &str| serde_json::from_str::<v1::InterceptRequest>(body).expect("a request").decision_id;
        assert_eq!(id(&asked[0].1), id(&asked[1].1));
    }
}

#[tokio::test]
async fn the_circuit_opens_and_closes_again() {
    let settings = format!("{LOCAL}  breaker_failures: 2\n  breaker_pause: 300ms\n");
    let server = Setup::new().settings(&settings).start();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    let registry = Registry::of(&server).await;
    // The first two connections break; later ones are answered.
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        let router = Router::new().route("/", post(|| async { PASS }));
        for _ in 0..2 {
            let _ = listener.accept().await;
            counted.fetch_add(1, Ordering::SeqCst);
        }
        axum::serve(listener, router).await
    });
    let handler = Handler::Webhook(webhook(format!("http://{address}/")));
    registry.add(interceptor("test:breaker", TOOL, handler)).await.expect("it is added");
    for _ in 0..2 {
        let answer = before(&server, TOOL, "{}").await;
        assert_eq!(verdict(&answer), (Block, vec!["unavailable"]), "{:?}", answer.unjudged);
    }
    let open = before(&server, TOOL, "{}").await;
    assert_eq!(verdict(&open), (Block, vec!["unavailable"]));
    assert!(open.unjudged[0].detail.contains("too often"), "{:?}", open.unjudged);
    assert_eq!(connections.load(Ordering::SeqCst), 2, "an open circuit connects to nobody");
    tokio::time::sleep(Duration::from_millis(350)).await;
    assert_eq!(verdict(&before(&server, TOOL, "{}").await), (Allow, vec![]));
}

#[tokio::test]
async fn private_addresses_are_refused_unless_the_settings_name_them() {
    let server = Setup::new().settings("extensions:\n  private_hosts: [10.9.0.0/16]\n").start();
    let registry = Registry::of(&server).await;
    for url in [
        "http://127.0.0.1:9/",
        "http://localhost/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://0x7f000001/",
        "http://169.254.169.254/latest/meta-data",
        "http://192.168.0.1/",
        "http://0.0.0.0/",
        "ftp://guard.example/",
        "https://user:secret-pw@guard.example/",
    ] {
        let refused = registry.add(interceptor("test:private", TOOL, Handler::Webhook(webhook(url)))).await;
        let refused = refused.expect_err(url);
        assert_eq!(refused.code(), Code::InvalidArgument, "{url}");
        assert!(refused.message().contains("interceptor.webhook.url"), "{url}: {refused:?}");
        assert!(!refused.message().contains("secret-pw"), "{refused:?}");
    }
    let allowed = Handler::Webhook(webhook("http://10.9.1.1/"));
    registry.add(interceptor("test:listed", "^tts$", allowed)).await.expect("its network is listed");
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_refused_at_the_call() {
    let server = Server::start();
    // Every machine knows itself by a name that is not `localhost`, and that name leads to a private address or to
    // none; neither may be called.
    let name = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let name = if name.trim().is_empty() { "ip6-loopback" } else { name.trim() };
    for handler in [
        Handler::Webhook(webhook(format!("http://{name}:9/"))),
        Handler::Extension(extension(format!("http://{name}:9"))),
    ] {
        let answer = ask(&server, handler, PATIENT).await;
        assert_eq!(answer.decision(), Block);
        let reason = &answer.unjudged[0].reason;
        assert!(reason == "error" || reason == "unavailable", "{:?}", answer.unjudged);
        assert!(!answer.unjudged[0].detail.contains("refused ("), "nobody was called: {:?}", answer.unjudged);
    }
}

/// An extension over gRPC that does as the `do` argument says.
#[derive(Clone, Default)]
struct Guard {
    /// How often Describe and Intercept were called.
    described: Arc<AtomicUsize>,
    intercepted: Arc<AtomicUsize>,
    /// The token that callers must send; none when empty.
    token: String,
}

#[tonic::async_trait]
impl ExtensionService for Guard {
    async fn describe(
        &self,
        request: Request<v1::DescribeRequest>,
    ) -> Result<tonic::Response<v1::DescribeResponse>, Status> {
        self.authenticate(request.metadata())?;
        self.described.fetch_add(1, Ordering::SeqCst);
        let hooks = vec![v1::Hook::ToolBefore.into()];
        Ok(tonic::Response::new(v1::DescribeResponse { hooks, ..Default::default() }))
    }

    async fn check(
        &self,
        _: Request<v1::CheckRequest>,
    ) -> Result<tonic::Response<v1::CheckResponse>, Status> {
        Err(Status::unimplemented("no"))
    }

    async fn intercept(
        &self,
        request: Request<v1::InterceptRequest>,
    ) -> Result<tonic::Response<v1::InterceptResponse>, Status> {
        self.authenticate(request.metadata())?;
        let nth = self.intercepted.fetch_add(1, Ordering::SeqCst);
        let args: serde_json::Value = serde_json::from_str(&request.get_ref().args_json).expect("it is JSON");
        let answer = |decision: v1::Decision, reason: &str, args_json: &str| v1::InterceptResponse {
            decision: decision.into(),
            reason: reason.to_owned(),
            args_json: args_json.to_owned(),
            ..Default::default()
        };
        let response = match args["do"].as_str().unwrap_or_default() {
            "pass" => answer(Allow, "", ""),
            "block" => answer(Block, "Not on a Friday.", ""),
            "change" => answer(Allow, "", r#"{"do":"changed"}"#),
            "silent" => v1::InterceptResponse::default(),
            "unknown" => v1::InterceptResponse { decision: 99, ..Default::default() },
            "huge" => answer(Allow, &"x".repeat(100_000), ""),
            "away-once" if nth == 0 => return Err(Status::unavailable("a moment")),
            "away-once" => answer(Allow, "", ""),
            "fails" => return Err(Status::internal("secret-of-the-extension")),
            "slow" => {
                tokio::time::sleep(Duration::from_secs(5)).await;
                answer(Allow, "", "")
            }
            other => return Err(Status::invalid_argument(other)),
        };
        Ok(tonic::Response::new(response))
    }
}

impl Guard {
    fn authenticate(&self, metadata: &tonic::metadata::MetadataMap) -> Result<(), Status> {
        let given = metadata.get("authorization").and_then(|value| value.to_str().ok());
        if self.token.is_empty() || given == Some(&format!("Bearer {}", self.token)) {
            return Ok(());
        }
        Err(Status::unauthenticated("who are you?"))
    }

    /// Serves on `address` until [`Serving`] is stopped or dropped.
    async fn serve(self, address: SocketAddr) -> (SocketAddr, Serving) {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        let server = tonic::transport::Server::builder().add_service(ExtensionServiceServer::new(self));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            let _ = server.serve_with_incoming_shutdown(incoming, stopped).await;
        });
        (address, Serving { stop, task })
    }
}

/// An extension that is being served.
struct Serving {
    stop: tokio::sync::oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Serving {
    /// Closes every connection.
    async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

#[tokio::test]
async fn a_grpc_extension_decides_changes_and_fails() {
    let settings = format!("{LOCAL}  response_bytes_max: 64KiB\n");
    let server = Setup::new().settings(&settings).start();
    let guard = Guard::default();
    let (address, _task) = guard.clone().serve(ANY_PORT).await;
    let registry = Registry::of(&server).await;
    let handler = v1::InterceptorExtension { attempts_max: 2, ..extension(format!("http://{address}")) };
    let wanted = v1::Interceptor {
        timeout: Some(Duration::from_secs(2).into()),
        ..interceptor("test:grpc", TOOL, Handler::Extension(handler))
    };
    registry.add(wanted).await.expect("it is added");
    for (what, decision, reasons) in [
        ("away-once", Allow, vec![]),
        ("pass", Allow, vec![]),
        ("block", Block, vec![]),
        ("change", Allow, vec![]),
        ("silent", Block, vec!["bad_answer"]),
        ("unknown", Block, vec!["bad_answer"]),
        ("huge", Block, vec!["limit"]),
        ("fails", Block, vec!["error"]),
        ("other", Block, vec!["error"]),
        ("slow", Block, vec!["timeout"]),
    ] {
        let answer = before(&server, TOOL, &format!(r#"{{"do":"{what}"}}"#)).await;
        assert_eq!(verdict(&answer), (decision, reasons), "{what}: {:?}", answer.unjudged);
        assert_eq!(answer.mutated, what == "change", "{what}");
        assert!(!format!("{answer:?}").contains("secret-of"), "{answer:?}");
    }
    assert_eq!(guard.intercepted.load(Ordering::SeqCst), 11, "one of them was asked twice");
    assert_eq!(guard.described.load(Ordering::SeqCst), 1, "one connection served all calls");
}

#[tokio::test]
async fn an_extension_is_used_on_its_hooks_only() {
    let server = Setup::new().settings(LOCAL).start();
    let guard = Guard::default();
    let (address, _task) = guard.clone().serve(ANY_PORT).await;
    let registry = Registry::of(&server).await;
    let wanted = v1::Interceptor {
        hook: v1::Hook::MessageBefore.into(),
        ..interceptor("test:hook", "", Handler::Extension(extension(format!("http://{address}"))))
    };
    registry.add(wanted).await.expect("it is added");
    let request = v1::InterceptMessageRequest { message: "Hello".into(), ..Default::default() };
    let answer = server.client().await.intercept_message(request).await.expect("a decision").into_inner();
    assert_eq!((answer.decision(), answer.unjudged.len()), (Block, 1), "{answer:?}");
    assert_eq!(guard.intercepted.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_extension_that_was_away_is_found_again() {
    let server = Setup::new().settings(LOCAL).start();
    let (address, task) = Guard::default().serve(ANY_PORT).await;
    let registry = Registry::of(&server).await;
    let handler = Handler::Extension(extension(format!("http://{address}")));
    registry.add(interceptor("test:again", TOOL, handler)).await.expect("it is added");
    let pass = r#"{"do":"pass"}"#;
    assert_eq!(verdict(&before(&server, TOOL, pass).await), (Allow, vec![]));
    task.stop().await;
    assert_eq!(before(&server, TOOL, pass).await.decision(), Block);
    let guard = Guard::default();
    let (_, _task) = guard.clone().serve(address).await;
    super::server::eventually(Duration::from_secs(10), "it is asked again", || async {
        (before(&server, TOOL, pass).await.decision() == Allow).then_some(())
    })
    .await;
    // The call that finds it again opens the connection; the one after it is the first that can ask.
    assert_eq!(verdict(&before(&server, TOOL, pass).await), (Allow, vec![]));
    assert!(guard.described.load(Ordering::SeqCst) >= 1, "a new connection is asked who it is");
}

#[tokio::test]
async fn a_token_comes_from_its_file_and_is_read_again() {
    let (url, seen) = http().await;
    let guard = Guard { token: "second".into(), ..Guard::default() };
    let (address, _task) = guard.serve(ANY_PORT).await;
    let setup = Setup::new();
    let file = setup.folder().join("token");
    std::fs::write(&file, "first\n").expect("it is written");
    let server = setup
        .settings(&format!(
            "{LOCAL}  credentials:\n    guard:\n      hosts: [127.0.0.1]\n      bearer_file: token\n"
        ))
        .start();
    let hook = v1::InterceptorWebhook { credential: "guard".into(), ..webhook(format!("{url}/pass")) };
    let over_grpc =
        v1::InterceptorExtension { credential: "guard".into(), ..extension(format!("http://{address}")) };
    assert_eq!(verdict(&ask(&server, Handler::Webhook(hook.clone()), PATIENT).await), (Allow, vec![]));
    assert_eq!(seen.last("pass").0["authorization"], "Bearer first");
    let registry = Registry::of(&server).await;
    registry.add(interceptor("test:token", TOOL, Handler::Extension(over_grpc))).await.expect("it is added");
    let refused = before(&server, TOOL, r#"{"do":"pass"}"#).await;
    assert_eq!(verdict(&refused), (Block, vec!["error"]), "{:?}", refused.unjudged);
    std::fs::write(&file, "second\n").expect("it is written");
    assert_eq!(verdict(&before(&server, TOOL, r#"{"do":"pass"}"#).await), (Allow, vec![]));
    registry.remove("test:token").await.expect("it is removed");
    assert_eq!(verdict(&ask(&server, Handler::Webhook(hook), PATIENT).await), (Allow, vec![]));
    assert_eq!(seen.last("pass").0["authorization"], "Bearer second");
    for text in [format!("{:?}", registry.list(v1::InterceptorSource::Api).await), server.log_text()] {
        assert!(!text.contains("Bearer") && !text.contains("second"), "{text}");
    }
}

#[tokio::test]
async fn a_credential_is_shown_to_its_hosts_only() {
    let setup = Setup::new();
    std::fs::write(setup.folder().join("token"), "secret\n").expect("it is written");
    let settings = format!(
        "{LOCAL}  credentials:\n    guard: {{ hosts: [guard.example, 127.0.0.2], bearer_file: token }}\n"
    );
    let server = setup.settings(&settings).start();
    let registry = Registry::of(&server).await;
    for (url, credential, wanted) in [
        ("https://guard.example/", "guard", None),
        ("http://127.0.0.2/", "guard", None),
        ("https://evil.example/", "guard", Some("not for this host")),
        ("http://guard.example/", "guard", Some("https")),
        ("https://guard.example/", "gaurd", Some("known: guard")),
    ] {
        let hook = v1::InterceptorWebhook { credential: credential.into(), ..webhook(url) };
        let request = v1::AddInterceptorRequest {
            interceptor: Some(interceptor("test:credential", TOOL, Handler::Webhook(hook))),
            dry_run: true,
            ..Default::default()
        };
        match (wanted, registry.add_with(request).await) {
            (None, Ok(_)) => {}
            (Some(part), Err(status)) => {
                assert_eq!(status.code(), Code::InvalidArgument);
                assert!(status.message().contains(part), "{url}: {status:?}");
                assert!(status.message().contains("interceptor.webhook.credential"), "{status:?}");
            }
            (_, found) => panic!("{url}: {found:?}"),
        }
    }
}

const AUTHORITY: &str = include_str!("../tls/authority.pem");

/// TLS of a server that lets in only those with a certificate of the test's own authority.
fn mutual_tls() -> tonic::transport::ServerTlsConfig {
    let identity = tonic::transport::Identity::from_pem(
        include_str!("../tls/server.pem"),
        include_str!("../tls/server.key"),
    );
    tonic::transport::ServerTlsConfig::new()
        .identity(identity)
        .client_ca_root(tonic::transport::Certificate::from_pem(AUTHORITY))
}

/// A gRPC extension (as `grpc`) and a webhook (as `http`) behind mutual TLS; both addresses.
async fn behind_tls() -> (String, String) {
    let grpc = tonic::service::Routes::new(ExtensionServiceServer::new(Guard::default()));
    let http = Router::new().route("/pass", post(|| async { PASS }));
    let mut addresses = Vec::new();
    for routes in [grpc, http.into()] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        addresses.push(format!("https://{}", listener.local_addr().expect("it has an address")));
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        let server = tonic::transport::Server::builder().tls_config(mutual_tls()).expect("good files");
        tokio::spawn(async move { server.clone().add_routes(routes).serve_with_incoming(incoming).await });
    }
    let http = addresses.pop().expect("two") + "/pass";
    (addresses.pop().expect("two"), http)
}

#[tokio::test]
async fn mutual_tls_lets_in_who_has_a_certificate_and_trusts_the_named_authority_alone() {
    let (grpc, http) = behind_tls().await;
    let setup = Setup::new();
    for (name, text) in [
        ("ca.pem", AUTHORITY),
        ("client.pem", include_str!("../tls/client.pem")),
        ("client.key", include_str!("../tls/client.key")),
        ("token", "t"),
    ] {
        std::fs::write(setup.folder().join(name), text).expect("it is written");
    }
    let server = setup
        .settings(&format!(
            "{LOCAL}  credentials:\n    \
             mutual: {{ hosts: [127.0.0.1], ca_file: ca.pem, cert_file: client.pem, key_file: client.key }}\n    \
             nobody: {{ ca_file: ca.pem }}\n    \
             public: {{ hosts: [127.0.0.1], bearer_file: token }}\n    \
             broken: {{ ca_file: token }}\n    \
             missing: {{ ca_file: nowhere.pem }}\n"
        ))
        .start();
    let registry = Registry::of(&server).await;
    for (credential, decision, reasons) in [
        ("mutual", Allow, vec![]),
        ("nobody", Block, vec!["unavailable"]),
        ("public", Block, vec!["unavailable"]),
        ("broken", Block, vec!["error"]),
        ("missing", Block, vec!["error"]),
    ] {
        let webhook = v1::InterceptorWebhook { credential: credential.into(), ..webhook(http.clone()) };
        let extension = v1::InterceptorExtension { credential: credential.into(), ..extension(grpc.clone()) };
        for handler in [Handler::Webhook(webhook), Handler::Extension(extension)] {
            let wanted = interceptor("test:tls", TOOL, handler.clone());
            registry.add(wanted).await.expect("it is added");
            let answer = before(&server, TOOL, r#"{"do":"pass"}"#).await;
            assert_eq!(verdict(&answer), (decision, reasons.clone()), "{handler:?}: {:?}", answer.unjudged);
            for one in &answer.unjudged {
                assert!(!one.detail.contains(".pem"), "no path is told: {}", one.detail);
            }
            registry.remove("test:tls").await.expect("it is removed");
        }
    }
}

#[tokio::test]
async fn a_policy_names_extensions_and_one_that_may_not_be_called_rejects_the_policy() {
    let (url, seen) = http().await;
    let policies = format!(
        "interceptors:\n  - id: acme:hook\n    hook: tool.before\n    tools: ^{TOOL}$\n    \
         webhook: {{ url: \"{url}/block\", attempts_max: 2 }}\n"
    );
    let with = |settings: &str| {
        let setup = Setup::new();
        std::fs::create_dir(setup.folder().join("policies")).expect("the folder can be made");
        std::fs::write(setup.folder().join("policies/default.yaml"), &policies).expect("written");
        setup.settings(&format!("{settings}policy:\n  path: policies\n")).start()
    };
    let server = with(LOCAL);
    let answer = before(&server, TOOL, "{}").await;
    assert_eq!(verdict(&answer), (Block, vec![]), "{answer:?}");
    assert!(answer.block_reason.contains("Not on a Friday."), "{answer:?}");
    assert_eq!(seen.count("block"), 1);
    let refused = with("");
    assert_eq!(refused.get("/readyz").await.0, 503, "{}", refused.log_text());
    refused.wait_for_log(|line| line.contains("policy problem") && line.contains("loopback"));
}
