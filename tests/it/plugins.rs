//! Plugins of `CheckMessages` that live elsewhere: HTTP endpoints with JSON of their own, and gRPC extensions.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use portcullis::pb::v1;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Status};
use v1::Decision::{Allow, Block, Warn};
use v1::extension_service_server::{ExtensionService, ExtensionServiceServer};

use super::server::{PATIENCE, Server, Setup, eventually, message, user};

/// Headers and body of each request, by path.
type Seen = Arc<Mutex<HashMap<String, Vec<(HeaderMap, Value)>>>>;

/// Answers as the path says, which is also what the tests below are named by.
async fn misbehave(
    State(seen): State<Seen>,
    Path(path): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let body: Value = serde_json::from_str(&body).expect("a request is JSON");
    let text = body["text"].as_str().unwrap_or_default().to_owned();
    let nth = {
        let mut seen = seen.lock().expect("no panic before");
        let of_path = seen.entry(path.clone()).or_default();
        of_path.push((headers, body.clone()));
        of_path.len()
    };
    let safe = || json!({"is_unsafe": false}).to_string().into_response();
    match path.as_str() {
        "words" if text.contains("marzipan") => {
            json!({"is_unsafe": true, "category": "sweets", "severity": "high", "description": "It is sweet."})
                .to_string()
                .into_response()
        }
        "words" => safe(),
        "bare" => json!({"is_unsafe": true}).to_string().into_response(),
        "list" => {
            let hits = json!([{"label": "sweets", "level": 2, "from": 4, "to": 12}]);
            json!({"result": {"hits": hits}}).to_string().into_response()
        }
        "all" => json!({"verdict": "unsafe"}).to_string().into_response(),
        "slow" => {
            tokio::time::sleep(Duration::from_secs(5)).await;
            safe()
        }
        "huge" => json!({"is_unsafe": false, "x": "x".repeat(100_000)}).to_string().into_response(),
        "redirect" => (StatusCode::TEMPORARY_REDIRECT, [("location", "/words")], "{}").into_response(),
        "empty" => "{}".into_response(),
        "text" => "safe".into_response(),
        "twice" => r#"{"is_unsafe":true,"is_unsafe":false}"#.into_response(),
        "perhaps" => json!({"is_unsafe": "perhaps"}).to_string().into_response(),
        "purple" => json!({"is_unsafe": true, "severity": "purple"}).to_string().into_response(),
        "forbidden" => StatusCode::FORBIDDEN.into_response(),
        "broken" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        "busy" => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        "once-busy" if nth == 1 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        "once-busy" => safe(),
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

/// Settings with these plugins, each as JSON; this machine may be called.
fn settings(plugins: &[(&str, Value)]) -> String {
    let mut text = "extensions:\n  private_hosts: [127.0.0.0/8]\n  response_bytes_max: 64KiB\n".to_owned();
    text.push_str("  breaker_failures: 1000\n  plugins:\n");
    for (name, plugin) in plugins {
        writeln!(text, "    {name}: {plugin}").expect("a string");
    }
    text
}

fn server(plugins: &[(&str, Value)]) -> Server {
    Setup::new().settings(&settings(plugins)).start()
}

async fn check(server: &Server, request: v1::CheckMessagesRequest) -> v1::CheckMessagesResponse {
    server.client().await.check_messages(request).await.expect("an answer").into_inner()
}

fn reasons(answer: &v1::CheckMessagesResponse) -> Vec<&str> {
    answer.unjudged.iter().map(|unjudged| unjudged.reason.as_str()).collect()
}

#[tokio::test]
async fn an_endpoint_judges_each_text() {
    let (url, seen) = http().await;
    let setup = Setup::new();
    std::fs::write(setup.folder().join("token"), "s3cret-token\n").expect("a file");
    let plugin = json!({
        "endpoint": format!("{url}/words"), "credential": "acme", "version": "2.1",
        "request": {"text": "/text", "role": "/who", "direction": "/way", "fixed": {"model": "m1"}},
    });
    let credentials = "  credentials: {acme: {hosts: [127.0.0.1], bearer_file: token}}\n";
    let server = setup.settings(&(settings(&[("acme", plugin)]) + credentials)).start();

    let answer = check(&server, user("Hello there")).await;
    assert_eq!((answer.decision(), answer.findings.len()), (Allow, 0), "{answer:?}");
    let request = v1::CheckMessagesRequest {
        messages: vec![message("user", "Hello"), message("assistant", "I like marzipan a lot")],
        direction: v1::Direction::Output.into(),
        ..Default::default()
    };
    let answer = check(&server, request).await;
    assert_eq!(answer.decision(), Block, "{answer:?}");
    let finding = &answer.findings[0];
    assert_eq!((finding.plugin.as_str(), finding.plugin_version.as_str()), ("acme", "2.1"));
    assert_eq!((finding.rule_id.as_str(), finding.category.as_str()), ("acme.sweets", "sweets"));
    assert_eq!((finding.severity(), finding.score), (v1::Severity::High, 0.8));
    assert_eq!(finding.description, "It is sweet.");
    let span = finding.span.clone().expect("a place");
    assert_eq!((span.message_index, span.path.as_str(), span.start, span.end), (1, "/text", 0, 21));
    assert!(answer.unjudged.is_empty());

    let seen = seen.lock().expect("no panic before");
    let bodies: Vec<&Value> = seen["words"].iter().map(|(_, body)| body).collect();
    assert_eq!(bodies.len(), 3, "one for each text");
    assert_eq!(*bodies[0], json!({"model": "m1", "text": "Hello there", "who": "user", "way": "input"}));
    assert!(bodies.contains(&&json!({"model": "m1", "text": "Hello", "who": "user", "way": "output"})));
    assert!(seen["words"].iter().all(|(headers, _)| headers["authorization"] == "Bearer s3cret-token"));
    assert!(!server.log_text().contains("s3cret") && !server.log_text().contains("marzipan"));
}

#[tokio::test]
async fn whatever_is_no_answer_is_not_judged() {
    let (url, seen) = http().await;
    let faults = [
        ("slow", "timeout"),
        ("huge", "limit"),
        ("redirect", "bad_answer"),
        ("empty", "bad_answer"),
        ("text", "bad_answer"),
        ("twice", "bad_answer"),
        ("perhaps", "bad_answer"),
        ("forbidden", "error"),
        ("broken", "error"),
        ("nowhere", "error"),
        ("busy", "unavailable"),
    ];
    let plugins: Vec<_> =
        faults.iter().map(|(path, _)| (*path, json!({"endpoint": format!("{url}/{path}")}))).collect();
    let setup = Setup::new();
    let mut policy = "name: default\nrequired_plugins: [injection]\nplugins:\n".to_owned();
    policy.push_str("  slow: {timeout: 200ms}\n");
    std::fs::write(setup.folder().join("policy.yaml"), &policy).expect("a file");
    let mut open = policy.replace("name: default", "name: open");
    for (path, _) in faults.iter().filter(|(path, _)| *path != "slow") {
        writeln!(open, "  {path}: {{fail: {{input: open, output: open}}}}").expect("a string");
    }
    let open = open.replace("{timeout: 200ms}", "{timeout: 200ms, fail: {input: open, output: open}}");
    std::fs::create_dir(setup.folder().join("policies")).expect("a folder");
    std::fs::write(setup.folder().join("policies/default.yaml"), &policy).expect("a file");
    std::fs::write(setup.folder().join("policies/open.yaml"), &open).expect("a file");
    let server = setup.settings(&(settings(&plugins) + "policy: {path: policies}\n")).start();
    for (path, reason) in faults {
        let request = |policy: &str| v1::CheckMessagesRequest {
            plugins: vec![path.to_owned()],
            policy: policy.to_owned(),
            ..user("Hello")
        };
        let started = Instant::now();
        let answer = check(&server, request("")).await;
        assert_eq!(
            (answer.decision(), reasons(&answer)),
            (Block, vec![reason]),
            "{path}: {:?}",
            answer.unjudged
        );
        assert_eq!(answer.unjudged[0].plugin, path);
        let answer = check(&server, request("open")).await;
        assert_eq!((answer.decision(), reasons(&answer)), (Allow, vec![reason]), "{path}");
        assert!(answer.unjudged[0].failed_open);
        assert!(started.elapsed() < Duration::from_secs(4), "{path} was waited for");
    }
    assert!(!seen.lock().expect("no panic before").contains_key("words"), "the redirect was not followed");
}

#[tokio::test]
async fn what_is_unsafe_stays_so_when_the_rest_cannot_be_read() {
    let (url, _) = http().await;
    let server = server(&[
        ("purple", json!({"endpoint": format!("{url}/purple")})),
        ("bare", json!({"endpoint": format!("{url}/bare"), "answer": {"default_severity": "low"}})),
    ]);
    let answer = check(&server, user("Hello")).await;
    assert_eq!((answer.decision(), reasons(&answer)), (Block, vec!["bad_answer"]), "{answer:?}");
    let of = |plugin: &str| answer.findings.iter().find(|f| f.plugin == plugin).expect("a finding");
    assert_eq!(of("purple").severity(), v1::Severity::Critical);
    assert_eq!((of("bare").severity(), of("bare").category.as_str()), (v1::Severity::Low, "unknown"));
}

#[tokio::test]
async fn other_shapes_of_json() {
    let (url, seen) = http().await;
    let list = json!({
        "endpoint": format!("{url}/list"),
        "answer": {"findings": "/result/hits", "is_unsafe": "", "category": "/label", "severity": "/level",
                   "severities": {"2": "medium"}, "start": "/from", "end": "/to", "offsets": "utf16"}
    });
    let all = json!({
        "endpoint": format!("{url}/all"),
        "request": {"text": "", "messages": "/chat/turns"},
        "answer": {"is_unsafe": "/verdict", "unsafe_values": ["unsafe"], "safe_values": ["safe"],
                   "default_category": "tone", "default_severity": "medium"}
    });
    let server = server(&[("hits", list), ("whole", all)]);
    let answer = check(&server, user("😀é marzipan")).await;
    assert_eq!((answer.decision(), answer.findings.len()), (Warn, 2), "{answer:?}");
    let of = |plugin: &str| answer.findings.iter().find(|f| f.plugin == plugin).expect("a finding");
    let span = of("hits").span.clone().expect("a place");
    assert_eq!((span.path.as_str(), span.start, span.end), ("/text", 7, 15), "UTF-16 became bytes");
    let span = of("whole").span.clone().expect("a place");
    assert_eq!((span.path.as_str(), span.start, span.end), ("", 0, 0), "about the request as a whole");
    let body = seen.lock().expect("no panic before")["all"][0].1.clone();
    assert_eq!(body, json!({"chat": {"turns": [{"role": "user", "text": "😀é marzipan"}]}}));
}

#[tokio::test]
async fn attempts_limits_and_parallel_plugins() {
    let (url, seen) = http().await;
    let server = server(&[
        ("again", json!({"endpoint": format!("{url}/once-busy"), "attempts_max": 2})),
        ("few", json!({"endpoint": format!("{url}/words"), "calls_max": 2})),
    ]);
    let texts = ["one", "two", "three"].map(|text| message("user", text));
    let answer =
        check(&server, v1::CheckMessagesRequest { messages: texts.to_vec(), ..Default::default() }).await;
    assert_eq!((answer.decision(), reasons(&answer)), (Block, vec!["limit"]), "{answer:?}");
    assert!(answer.unjudged[0].plugin == "few" && answer.unjudged[0].detail.contains("calls_max"));
    let seen = seen.lock().expect("no panic before");
    let texts: Vec<&str> = seen["words"].iter().filter_map(|(_, body)| body["text"].as_str()).collect();
    assert!(texts.len() == 2 && !texts.contains(&"one"), "the newest are judged: {texts:?}");
    assert_eq!(seen["once-busy"].len(), 4, "one of three was repeated");
}

#[tokio::test]
async fn policies_name_external_plugins() {
    let (url, _) = http().await;
    let setup = Setup::new();
    let policy = "name: default\nplugins: {acme: {mode: shadow}}\n";
    std::fs::write(setup.folder().join("default.yaml"), policy).expect("a file");
    let plugin = ("acme", json!({"endpoint": format!("{url}/words")}));
    let server = setup.settings(&(settings(&[plugin]) + "policy: {path: default.yaml}\n")).start();
    let answer = check(&server, user("marzipan")).await;
    assert_eq!((answer.decision(), answer.findings[0].shadow), (Allow, true), "{answer:?}");
}

#[test]
fn settings_that_cannot_work_are_refused() {
    for (name, plugin, wanted) in [
        ("acme", json!({"endpoint": "http://10.0.0.1/"}), "private"),
        ("acme", json!({"endpoint": "https://guard.example/", "credential": "nobody"}), "credential"),
        ("acme", json!({"endpoint": "https://guard.example/check", "kind": "grpc"}), "alone"),
        ("acme", json!({"endpoint": "https://guard.example/", "request": {"text": "text"}}), "JSON Pointer"),
        ("acme", json!({"endpoint": "https://guard.example/", "answers": {}}), "answers"),
        ("pii", json!({"endpoint": "https://guard.example/"}), "built-in"),
    ] {
        let (status, log) = Setup::new().settings(&settings(&[(name, plugin.clone())])).start_refused();
        assert_eq!(status.code(), Some(78), "{plugin}: {log}");
        assert!(log.contains(wanted), "{plugin}: {log}");
    }
}

/// An extension over gRPC that answers what it is told to.
#[derive(Clone, Default)]
struct Checker {
    described: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<v1::CheckRequest>>>,
    answer: Arc<Mutex<v1::CheckResponse>>,
}

#[tonic::async_trait]
impl ExtensionService for Checker {
    async fn describe(
        &self,
        _: Request<v1::DescribeRequest>,
    ) -> Result<tonic::Response<v1::DescribeResponse>, Status> {
        let nth = self.described.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(tonic::Response::new(v1::DescribeResponse {
            name: "A checker".into(),
            version: format!("{nth}.0"),
            categories: vec!["tone".into()],
            ..Default::default()
        }))
    }

    async fn check(
        &self,
        request: Request<v1::CheckRequest>,
    ) -> Result<tonic::Response<v1::CheckResponse>, Status> {
        self.asked.lock().expect("no panic before").push(request.into_inner());
        let answer = self.answer.lock().expect("no panic before").clone();
        if answer.offset_encoding == 77 {
            return Err(Status::failed_precondition("secret words of the extension"));
        }
        Ok(tonic::Response::new(answer))
    }

    async fn intercept(
        &self,
        _: Request<v1::InterceptRequest>,
    ) -> Result<tonic::Response<v1::InterceptResponse>, Status> {
        Err(Status::unimplemented("it only checks"))
    }
}

impl Checker {
    /// Serves at an address, or a free one, until the task is dropped.
    async fn serve(&self, address: &str) -> (String, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind(address).await.expect("the port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let service = ExtensionServiceServer::new(self.clone());
        let serving = tonic::transport::Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpListenerStream::new(listener));
        (url, tokio::spawn(async move { serving.await.expect("it serves") }))
    }

    fn answer(&self, change: impl FnOnce(&mut v1::CheckResponse)) {
        let mut answer = v1::CheckResponse {
            findings: vec![v1::Finding {
                rule_id: "rude".into(),
                category: "tone.rude".into(),
                severity: v1::Severity::High.into(),
                description: "It is rude.".into(),
                span: Some(v1::Span { path: "/text".into(), start: 2, end: 6, ..Default::default() }),
                ..Default::default()
            }],
            offset_encoding: v1::OffsetEncoding::Utf16.into(),
            ..Default::default()
        };
        change(&mut answer);
        *self.answer.lock().expect("no panic before") = answer;
    }
}

fn grpc(url: &str) -> Server {
    server(&[("checker", json!({"kind": "grpc", "endpoint": url}))])
}

#[tokio::test]
async fn an_extension_checks_messages() {
    let checker = Checker::default();
    let (url, _serving) = checker.serve("127.0.0.1:0").await;
    let server = grpc(&url);
    assert_eq!(check(&server, user("😀 you")).await.decision(), Allow);

    checker.answer(|_| {});
    let request = v1::CheckMessagesRequest {
        context: Some(v1::CallContext { agent_id: "a1".into(), ..Default::default() }),
        direction: v1::Direction::Output.into(),
        ..user("😀 you")
    };
    let answer = check(&server, request.clone()).await;
    assert_eq!((answer.decision(), answer.unjudged.len()), (Block, 0), "{answer:?}");
    let finding = &answer.findings[0];
    assert_eq!((finding.plugin.as_str(), finding.plugin_version.as_str()), ("checker", "1.0"));
    assert_eq!((finding.rule_id.as_str(), finding.category.as_str()), ("checker.rude", "tone.rude"));
    let span = finding.span.clone().expect("a place");
    assert_eq!((span.start, span.end), (4, 8), "UTF-16 became bytes");
    assert_eq!(checker.described.load(Ordering::SeqCst), 1, "once for each connection");
    let asked = checker.asked.lock().expect("no panic before").last().expect("it was asked").clone();
    assert_eq!((asked.messages, asked.context), (request.messages, request.context));
    assert_eq!((asked.direction, asked.decision_id), (request.direction, answer.decision_id));
}

#[tokio::test]
async fn an_extension_is_asked_who_it_is_when_the_service_starts() {
    let checker = Checker::default();
    let (url, _serving) = checker.serve("127.0.0.1:0").await;
    let server = grpc(&url);
    eventually(PATIENCE, "it is asked before any request", || async {
        let log = server.log_text();
        (log.contains("plugin described itself") && log.contains("A checker")).then_some(())
    })
    .await;
    assert_eq!(checker.described.load(Ordering::SeqCst), 1);
    let away = grpc("http://127.0.0.1:1");
    eventually(PATIENCE, "one that is away is told of", || async {
        away.log_text().contains("plugin cannot be reached yet").then_some(())
    })
    .await;
}

#[tokio::test]
async fn answers_of_an_extension_are_read_strictly() {
    let checker = Checker::default();
    let (url, _serving) = checker.serve("127.0.0.1:0").await;
    let server = grpc(&url);
    type Change = fn(&mut v1::CheckResponse);
    let wrong: [(&str, Change, &str); 7] = [
        ("a category it does not have", |a| a.findings[0].category = "taste".into(), "bad_answer"),
        ("no rule", |a| a.findings[0].rule_id.clear(), "bad_answer"),
        ("no severity", |a| a.findings[0].severity = 0, "bad_answer"),
        ("a span outside", |a| a.findings[0].span.as_mut().expect("one").end = 99, "bad_answer"),
        (
            "a message that was not sent",
            |a| a.findings[0].span.as_mut().expect("one").message_index = 3,
            "bad_answer",
        ),
        (
            "what it could not judge",
            |a| {
                a.findings.clear();
                a.unjudged.push(v1::Unjudged {
                    reason: "limit".into(),
                    detail: "secret words".into(),
                    ..Default::default()
                });
            },
            "limit",
        ),
        ("an error", |a| a.offset_encoding = 77, "error"),
    ];
    for (what, change, reason) in wrong {
        checker.answer(change);
        let answer = check(&server, user("😀 you")).await;
        assert_eq!((answer.decision(), reasons(&answer)), (Block, vec![reason]), "{what}: {answer:?}");
        assert!(answer.findings.is_empty(), "{what}");
        assert!(!answer.unjudged[0].detail.contains("secret"), "{what}: {:?}", answer.unjudged);
    }
}

#[tokio::test]
async fn an_extension_is_asked_who_it_is_after_each_reconnect() {
    let checker = Checker::default();
    checker.answer(|_| {});
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (url, _serving) = runtime
        .spawn({
            let checker = checker.clone();
            async move { checker.serve("127.0.0.1:0").await }
        })
        .await
        .expect("it serves");
    let server = grpc(&url);
    let version = |answer: v1::CheckMessagesResponse| answer.findings[0].plugin_version.clone();
    assert_eq!(version(check(&server, user("😀 you")).await), "1.0");
    // With the runtime all its connections end.
    runtime.shutdown_background();
    let address = url.trim_start_matches("http://").to_owned();
    let away = check(&server, user("😀 you")).await;
    assert_eq!((away.decision(), reasons(&away)), (Block, vec!["unavailable"]), "{away:?}");
    let (_, _serving) = checker.serve(&address).await;
    let back = super::server::eventually(super::server::PATIENCE, "it answers again", || async {
        let answer = check(&server, user("😀 you")).await;
        answer.unjudged.is_empty().then_some(answer)
    })
    .await;
    assert_eq!(version(back), "2.0");
}
