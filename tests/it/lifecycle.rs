//! Start, probes, health, reflection, graceful stop, and what a kill leaves behind.

use std::time::Duration;

use portcullis::pb::{FILE_DESCRIPTOR_SET, v1};
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_stream::StreamExt as _;
use tonic::{Code, Request};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_types::StatusExt as _;

use super::server::{PATIENCE, Server, Setup, eventually, user};

async fn health(server: &Server, service: &str) -> Result<ServingStatus, Code> {
    let request = HealthCheckRequest { service: service.to_owned() };
    let answer = HealthClient::new(server.channel().await).check(request).await;
    answer.map(|answer| answer.get_ref().status()).map_err(|status| status.code())
}

#[tokio::test]
async fn health_is_told_per_service() {
    let server = Server::shared();
    for service in [
        "",
        "portcullis.v1.PolicyDecisionService",
        "portcullis.v1.InterceptorRegistryService",
        "portcullis.v1.PolicyService",
        "portcullis.v1.IncidentService",
        "portcullis.v1.SubmissionService",
        "portcullis.v1.EntityService",
        "portcullis.v1.AuditService",
    ] {
        assert_eq!(health(&server, service).await, Ok(ServingStatus::Serving), "{service}");
    }
    assert_eq!(health(&server, "portcullis.v1.NoSuchService").await, Err(Code::NotFound));
}

#[tokio::test]
async fn reflection_serves_the_contract_as_it_was_compiled() {
    let server = Server::shared();
    let symbol = "portcullis.v1.CheckMessagesRequest".to_owned();
    let ask = [MessageRequest::ListServices(String::new()), MessageRequest::FileContainingSymbol(symbol)];
    let requests = ask.map(|ask| ServerReflectionRequest { host: String::new(), message_request: Some(ask) });
    let mut client = ServerReflectionClient::new(server.channel().await);
    let answers = client.server_reflection_info(tokio_stream::iter(requests)).await.expect("it answers");
    let answers: Vec<_> = answers.into_inner().map(|answer| answer.expect("both are known")).collect().await;
    let Some(MessageResponse::ListServicesResponse(services)) = &answers[0].message_response else {
        panic!("{answers:?}")
    };
    let names: Vec<&str> = services.service.iter().map(|service| service.name.as_str()).collect();
    for wanted in [
        "portcullis.v1.PolicyDecisionService",
        "portcullis.v1.InterceptorRegistryService",
        "portcullis.v1.PolicyService",
        "grpc.health.v1.Health",
    ] {
        assert!(names.contains(&wanted), "{wanted} is not in {names:?}");
    }
    let Some(MessageResponse::FileDescriptorResponse(files)) = &answers[1].message_response else {
        panic!("{answers:?}")
    };
    let file =
        prost_types::FileDescriptorProto::decode(&*files.file_descriptor_proto[0]).expect("a descriptor");
    let compiled = prost_types::FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("a descriptor set");
    let same = compiled.file.iter().find(|compiled| compiled.name == file.name).expect("one of ours");
    assert_eq!(file.message_type, same.message_type);
}

#[tokio::test]
async fn probes_and_metrics_answer_and_nothing_else_does() {
    let server = Server::shared();
    assert_eq!(server.get("/livez").await.0, 200);
    assert_eq!(server.get("/readyz").await.0, 200);
    assert_eq!(server.get("/metrics").await.0, 200);
    for path in ["/", "/nothing", "/metrics/../data/admin-token", "/%2e%2e/data/admin-token"] {
        assert_eq!(server.get(path).await.0, 404, "{path}");
    }
}

/// Status of a GET that names `host`, written by hand: clients would correct it.
async fn status_for_host(server: &Server, host: &str) -> u16 {
    let mut stream = tokio::net::TcpStream::connect(server.http).await.expect("HTTP accepts");
    let request = format!("GET /metrics HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("the answer is text");
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("the answer has a status")
}

#[tokio::test]
async fn a_host_that_is_not_ours_is_refused() {
    let server = Server::shared();
    let port = server.http.port();
    for ours in
        [format!("127.0.0.1:{port}"), "localhost".to_owned(), format!("localhost:{port}"), "[::1]".to_owned()]
    {
        assert_eq!(status_for_host(&server, &format!("Host: {ours}\r\n")).await, 200, "{ours}");
    }
    for foreign in ["evil.example.org", "localhost.evil.example.org", "127.0.0.1.evil.example.org", "8.8.8.8"]
    {
        assert_eq!(status_for_host(&server, &format!("Host: {foreign}\r\n")).await, 421, "{foreign}");
    }
    assert_eq!(status_for_host(&server, "").await, 400);
    assert_eq!(status_for_host(&server, "Host: localhost\r\nHost: evil.example.org\r\n").await, 400);
    let named = Setup::new().settings("http:\n  allowed_hosts: [portcullis.corp]\n").start();
    assert_eq!(status_for_host(&named, "Host: portcullis.corp\r\n").await, 200);
}

#[tokio::test]
async fn a_stop_lets_streams_finish_and_ends_in_good_order() {
    let mut server = Server::start();
    let mut client = server.client().await;
    let (send, receive) = tokio::sync::mpsc::channel(4);
    let requests = tokio_stream::wrappers::ReceiverStream::new(receive);
    let mut answers = client.check_messages_stream(requests).await.expect("the stream opens").into_inner();
    send.send(user("Hello")).await.expect("the stream is open");
    assert!(answers.message().await.expect("the stream goes on").is_some());
    server.signal("TERM");
    eventually(PATIENCE, "readiness goes off, or the process ends", || async {
        match reqwest::get(format!("http://{}/readyz", server.http)).await {
            Ok(answer) => (answer.status() == 503).then_some(()),
            Err(_) => Some(()),
        }
    })
    .await;
    // What was asked before the end is answered; nothing new is let in.
    let _ = send.send(user("My SSN is 123-45-6789")).await;
    drop(send);
    while let Ok(Some(answer)) = answers.message().await {
        assert_eq!(answer.decision(), v1::Decision::Block);
    }
    let status = server.wait();
    assert_eq!(status.code(), Some(0), "{}", server.log_text());
    assert!(!server.log_text().contains("panicked"));
}

// The client must go on answering while the test waits for the process, or the connection is not closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_tells_streams_that_wait() {
    let mut server = Server::start();
    let mut client = server.client().await;
    let (send, receive) = tokio::sync::mpsc::channel(4);
    let requests = tokio_stream::wrappers::ReceiverStream::new(receive);
    let mut answers = client.check_messages_stream(requests).await.expect("the stream opens").into_inner();
    send.send(user("Hello")).await.expect("the stream is open");
    assert!(answers.message().await.expect("the stream goes on").is_some());
    server.signal("TERM");
    let status = answers.message().await.expect_err("the client does not end it");
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    let details = status.get_error_details();
    assert_eq!(details.error_info().map(|info| info.reason.as_str()), Some("DRAINING"), "{status:?}");
    assert!(details.retry_info().is_some(), "{status:?}");
    // The client keeps its side open, and holds up nothing.
    assert_eq!(server.wait().code(), Some(0), "{}", server.log_text());
    drop(send);
    assert!(!server.log_text().contains("cut off"), "{}", server.log_text());
}

#[tokio::test]
async fn a_stop_answers_what_is_in_flight() {
    let mut server = Server::start();
    let mut client = server.client().await;
    let long = "some ordinary words, and a few more of them. ".repeat(60_000) + "My SSN is 123-45-6789";
    let in_flight = tokio::spawn(async move { client.check_messages(Request::new(user(&long))).await });
    // In flight is what the server has begun to read; the count of scanned bytes comes at the end only.
    tokio::time::sleep(Duration::from_millis(20)).await;
    server.signal("TERM");
    let answer = in_flight.await.expect("the task ends");
    match answer {
        Ok(answer) => assert_eq!(answer.get_ref().decision(), v1::Decision::Block),
        // The signal came before the request did.
        Err(status) => assert_eq!(status.code(), Code::Unavailable, "{status:?}"),
    }
    assert_eq!(server.wait().code(), Some(0), "{}", server.log_text());
}

#[tokio::test]
async fn an_idle_connection_does_not_keep_a_stop_waiting() {
    let mut server = Server::start();
    let _idle = server.channel().await;
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(0), "{}", server.log_text());
    assert!(server.has_ended());
}

#[tokio::test]
async fn after_a_kill_the_next_start_serves_from_the_same_folder() {
    let mut server = Server::start();
    let mut client = server.client().await;
    let mut acknowledged = Vec::new();
    for n in 0..20 {
        let answer = client.check_messages(user(&format!("Hello {n}"))).await.expect("judged");
        acknowledged.push(answer.into_inner());
    }
    server.signal("KILL");
    server.wait();
    let again = server.into_setup().start();
    let answer = again.client().await.check_messages(user("Hello 3")).await.expect("judged").into_inner();
    assert_eq!(answer.policy_revision, acknowledged[3].policy_revision);
    assert_eq!(answer.decision(), v1::Decision::Allow);
    // Whole lines only, whatever the kill cut off.
    eventually(PATIENCE, "the new record is in the log", || async {
        let log = std::fs::read_to_string(again.audit_file()).unwrap_or_default();
        log.contains(&answer.decision_id).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_listener_that_others_can_reach_needs_an_explicit_word() {
    let (status, log) = Setup::new().listen("0.0.0.0:0").start_refused();
    assert_ne!(status.code(), Some(0), "{log}");
    assert!(log.contains("insecure"), "{log}");
}

#[tokio::test]
async fn settings_with_a_slip_are_refused_with_the_nearest_name() {
    let (status, log) = Setup::new().settings("serverr:\n  listen: 127.0.0.1:0\n").start_refused();
    assert_eq!(status.code(), Some(78), "{log}");
    assert!(log.contains("server"), "{log}");
}

#[tokio::test]
async fn health_can_be_watched() {
    let mut server = Server::start();
    let request = HealthCheckRequest { service: "portcullis.v1.PolicyDecisionService".into() };
    let watch = HealthClient::new(server.channel().await).watch(request).await.expect("it can be watched");
    let mut statuses = watch.into_inner();
    let first: Option<HealthCheckResponse> = statuses.message().await.expect("a status");
    assert_eq!(first.map(|answer| answer.status()), Some(ServingStatus::Serving));
    server.signal("TERM");
    // The end of the stream says it as well.
    if let Ok(Some(next)) = statuses.message().await {
        assert_eq!(next.status(), ServingStatus::NotServing);
    }
    drop(statuses);
    assert_eq!(server.wait().code(), Some(0), "{}", server.log_text());
}
