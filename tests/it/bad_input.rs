//! What no honest client sends: each is a typed error or a correct answer, never a panic, a hang or a silent cut.
//!
//! Refusals that fit a line of data are in `tests/cases/check_messages/refused.toml`.

use std::time::{Duration, Instant};

use portcullis::pb::v1;
use prost::Message as _;
use prost::bytes::{Buf, BufMut, Bytes};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use super::metrics::scrape;
use super::server::{Server, Setup, message, user};

const LIMIT_BYTES: usize = 4 << 20;

/// A call with these bytes as its message, which a generated client could not send.
async fn call_raw(server: &Server, request: Vec<u8>) -> Result<v1::CheckMessagesResponse, Status> {
    let mut client = tonic::client::Grpc::new(server.channel().await);
    client.ready().await.expect("the channel is connected");
    let path = http::uri::PathAndQuery::from_static("/portcullis.v1.PolicyDecisionService/CheckMessages");
    let answer: tonic::Response<Bytes> = client.unary(Request::new(request.into()), path, Raw).await?;
    Ok(v1::CheckMessagesResponse::decode(answer.into_inner()).expect("the answer is of the contract"))
}

/// Messages as bytes.
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// The server still answers as it should.
async fn assert_is_well(server: &Server) {
    let answer = server.client().await.check_messages(user("My SSN is 123-45-6789")).await;
    assert_eq!(answer.expect("the server answers").get_ref().decision(), v1::Decision::Block);
    assert!(!server.log_text().contains("panicked"), "{}", server.log_text());
}

async fn check(server: &Server, request: v1::CheckMessagesRequest) -> v1::CheckMessagesResponse {
    server.client().await.check_messages(request).await.expect("the request is judged").into_inner()
}

/// A server with the built-in policy and more patience: a build without optimisation may take longer for a request of the
/// largest size than the five seconds of that policy.
fn patient() -> Server {
    let setup = Setup::new();
    std::fs::create_dir(setup.folder().join("policies")).expect("the folder can be made");
    let patient = ["code", "injection", "pii", "secrets"].map(|plugin| format!("{plugin}: {{timeout: 2m}}"));
    let policy = format!("name: default\nplugins: {{{}}}\n", patient.join(", "));
    std::fs::write(setup.folder().join("policies/default.yaml"), policy).expect("the file can be written");
    setup.settings("policy: {path: policies}\n").start()
}

fn with_arguments(args_json: String) -> v1::CheckMessagesRequest {
    let call = v1::ToolCall { id: "1".into(), name: "tool".into(), args_json };
    let turn = v1::Message { role: "assistant".into(), tool_calls: vec![call], ..Default::default() };
    v1::CheckMessagesRequest { messages: vec![turn], redact: true, ..Default::default() }
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_with_both_sizes() {
    let server = Server::shared();
    let request = user(&"a".repeat(5 << 20));
    let found_bytes = request.encoded_len();
    let refused = server.client().await.check_messages(request).await.expect_err("5 MiB are too much");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    let info = refused.get_details_error_info().expect("the sizes are told");
    assert_eq!(info.metadata["limit_bytes"], LIMIT_BYTES.to_string());
    assert_eq!(info.metadata["found_bytes"], found_bytes.to_string());
    assert_is_well(&server).await;
}

#[tokio::test]
async fn a_message_of_exactly_the_limit_is_judged_to_its_last_byte() {
    let server = patient();
    let tail = " My SSN is 123-45-6789";
    let overhead = user(&"a".repeat(LIMIT_BYTES)).encoded_len() - LIMIT_BYTES;
    let text =
        format!("{}{tail}", "word ".repeat(LIMIT_BYTES).split_at(LIMIT_BYTES - overhead - tail.len()).0);
    let request = user(&text);
    assert_eq!(request.encoded_len(), LIMIT_BYTES);
    let answer = check(&server, request).await;
    assert_eq!(answer.decision(), v1::Decision::Block);
    let span = answer.findings[0].span.clone().expect("a place");
    assert_eq!((span.start, span.end), ((text.len() - 11) as u64, text.len() as u64));
}

#[tokio::test]
async fn invalid_utf8_in_a_string_is_refused() {
    let server = Server::shared();
    let mut request = user("x").encode_to_vec();
    let at = request.iter().position(|byte| *byte == b'x').expect("the text is in the bytes");
    request[at] = 0xFF;
    let refused = call_raw(&server, request).await.expect_err("the string is no text");
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    assert_is_well(&server).await;
}

#[tokio::test]
async fn bytes_that_are_no_message_are_refused() {
    let server = Server::shared();
    for bytes in [vec![0xFF; 64], vec![0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], vec![0x0A, 0x05, 0x01]] {
        let refused = call_raw(&server, bytes.clone()).await.expect_err("no message");
        assert_eq!(refused.code(), Code::InvalidArgument, "{bytes:?}: {refused:?}");
    }
    assert_is_well(&server).await;
}

#[tokio::test]
async fn unknown_fields_of_a_newer_client_are_skipped() {
    let server = Server::shared();
    let mut request = user("Hello, how are you?").encode_to_vec();
    // Field 1000, a string.
    request.extend([0xC2, 0x3E, 0x03, b'n', b'e', b'w']);
    assert_eq!(call_raw(&server, request).await.expect("judged").decision(), v1::Decision::Allow);
}

#[tokio::test]
async fn numbers_that_are_no_value_of_an_enum_are_refused() {
    let server = Server::shared();
    let wrong_unit = v1::CheckMessagesRequest { offset_encoding: 99, ..user("hi") };
    let wrong_direction = v1::CheckMessagesRequest { direction: -1, ..user("hi") };
    for (request, field) in [(wrong_unit, "offset_encoding"), (wrong_direction, "direction")] {
        let refused = server.client().await.check_messages(request).await.expect_err("no such value");
        assert_eq!(refused.code(), Code::InvalidArgument);
        let details = refused.get_details_bad_request().expect("the field is named");
        assert_eq!(details.field_violations[0].field, field);
    }
}

#[tokio::test]
async fn json_of_ten_thousand_levels_is_judged_and_redacted() {
    let server = Server::shared();
    let depth = 10_000;
    let deep = |inner: &str| format!("{}\"{inner}\"{}", "[".repeat(depth), "]".repeat(depth));
    let answer = check(&server, with_arguments(deep("My SSN is 123-45-6789"))).await;
    assert_eq!(answer.decision(), v1::Decision::Block);
    assert_eq!(answer.redacted_messages[0].tool_calls[0].args_json, deep("My SSN is [US_SSN_1]"));
    let open = "[".repeat(depth);
    assert_eq!(check(&server, with_arguments(open.clone())).await.decision(), v1::Decision::Allow);
    let objects = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    assert_eq!(check(&server, with_arguments(objects)).await.decision(), v1::Decision::Allow);
    assert_is_well(&server).await;
}

#[tokio::test]
async fn a_hundred_thousand_messages_are_all_judged() {
    let server = patient();
    let mut messages = vec![message("user", "Hello, how are you?"); 100_000];
    *messages.last_mut().expect("not empty") = message("user", "My SSN is 123-45-6789");
    let answer = check(&server, v1::CheckMessagesRequest { messages, ..Default::default() }).await;
    assert_eq!(answer.decision(), v1::Decision::Block);
    assert_eq!(answer.findings.len(), 1);
    assert_eq!(answer.findings[0].span.as_ref().expect("a place").message_index, 99_999);
}

#[tokio::test]
async fn nul_bytes_hide_nothing_and_break_nothing() {
    let server = Server::shared();
    let text = "\0\0My SSN is 123-45-6789\0";
    let mut request = user(text);
    request.redact = true;
    let answer = check(&server, request).await;
    let span = answer.findings[0].span.clone().expect("a place");
    assert_eq!(&text[span.start as usize..span.end as usize], "123-45-6789");
    assert_eq!(answer.redacted_messages, [message("user", "\0\0My SSN is [US_SSN_1]\0")]);
}

#[tokio::test]
async fn lone_surrogates_escaped_in_json_hide_nothing() {
    let server = Server::shared();
    for surrogate in [r"\ud800", r"\udfff", r"\ud800\ud800", r"\ude00\ud83d"] {
        let json = format!(r#"{{"a":"{surrogate}","b":"My SSN is 123-45-6789{surrogate}"}}"#);
        let answer = check(&server, with_arguments(json.clone())).await;
        assert_eq!(answer.decision(), v1::Decision::Block, "{json}");
        let redacted = &answer.redacted_messages[0].tool_calls[0].args_json;
        assert_eq!(*redacted, json.replace("123-45-6789", "[US_SSN_1]"));
    }
    assert_is_well(&server).await;
}

#[tokio::test]
async fn thousands_of_findings_are_limited_aloud_and_redacted_in_full() {
    let server = Server::shared();
    let text = (0..3_000).map(|n| format!("u{n}@corp-mail.net ")).collect::<String>();
    let mut request = user(&text);
    request.redact = true;
    let answer = check(&server, request).await;
    assert_eq!(answer.findings.len(), 1_000);
    assert_eq!(answer.decision(), v1::Decision::Block, "what is not reported fails closed");
    let unjudged = &answer.unjudged[..];
    assert!(matches!(unjudged, [u] if u.reason == "limit" && !u.failed_open), "{unjudged:?}");
    let Some(v1::message::Content::Text(redacted)) = &answer.redacted_messages[0].content else {
        panic!("text stays text")
    };
    assert!(!redacted.contains('@'), "redaction covers what the answer leaves out");
}

#[tokio::test]
async fn long_unbroken_and_repeated_text_is_judged_in_time() {
    let server = Server::shared();
    for piece in ["a", "1", "ignore ", "curl ", "a@", "%25", "\u{200B}", "&#38;", "[", "aGVs", "é"] {
        let text = piece.repeat((256 << 10) / piece.len());
        let started = Instant::now();
        check(&server, user(&text)).await;
        let elapsed = started.elapsed();
        // Linear time takes a fraction of a second; this is for busy machines, and far below what a square would take.
        assert!(elapsed < Duration::from_secs(10), "{piece:?} took {elapsed:?}");
    }
}

#[tokio::test]
async fn a_deadline_is_kept() {
    let server = Server::start();
    let counted =
        r#"portcullis_requests_total{rpc="CheckMessages",decision="NONE",code="DEADLINE_EXCEEDED"}"#;
    // Every text is another, as the cache answers in no time.
    let text = |n: u32| format!("{n} {}", "ignore all curl x@ ".repeat(160_000));
    let started = Instant::now();
    server.client().await.check_messages(user(&text(0))).await.expect("judged without a deadline");
    let whole = started.elapsed();
    // Which deadline falls between the arrival of the request and the end of its scan depends on the machine.
    for percent in [90, 80, 70, 60, 50, 40, 30, 20, 10, 95, 85, 75, 65, 55, 45, 35, 25, 15, 5] {
        let mut request = Request::new(user(&text(percent)));
        let deadline = whole * percent / 100;
        request.set_timeout(deadline);
        let started = Instant::now();
        let answer = server.client().await.check_messages(request).await;
        let late = started.elapsed().saturating_sub(deadline);
        assert!(late < Duration::from_secs(2), "{deadline:?} took {late:?} longer");
        if let Err(refused) = answer {
            assert!(matches!(refused.code(), Code::DeadlineExceeded | Code::Cancelled), "{refused:?}");
        }
        // The client gives up by itself; that the server gave up too is in its own count.
        if scrape(&server).await[counted] > 0.0 {
            return assert_is_well(&server).await;
        }
    }
    panic!("the server scanned on past every deadline");
}

#[tokio::test]
async fn an_unreadable_deadline_does_not_hang_the_call() {
    let server = Server::shared();
    let mut request = Request::new(user("Hello, how are you?"));
    request.metadata_mut().insert("grpc-timeout", "soon".parse().expect("ASCII"));
    let answer = server.client().await.check_messages(request).await;
    match answer {
        Ok(answer) => assert_eq!(answer.get_ref().decision(), v1::Decision::Allow),
        Err(refused) => assert_eq!(refused.code(), Code::InvalidArgument),
    }
}
