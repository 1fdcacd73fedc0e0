//! A stand-in for the providers of language models: real sockets, the real wire format of each, and their faults.
//!
//! What it does is said by the path before the provider's own, so that whoever can set a base URL can use it, from any
//! language and without touching this process:
//!
//! - `/say/TEXT`: the model answers TEXT, percent-encoded; JSON for questions, `unsafe%0AS1` for Llama Guard.
//! - `/fault/NAME`: every call meets the fault, see [`FAULTS`].
//! - `/once/NAME/say/TEXT`: the first call meets the fault, later ones are answered.
//! - `/slow/MILLIS/say/TEXT`: the answer takes its time.
//!
//! A base URL `http://127.0.0.1:PORT/say/%7B%7D` serves Gemini, Anthropic, Ollama and the completions of OpenAI alike: the
//! provider is told by the rest of the path.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Every fault by name.
pub const FAULTS: [&str; 28] = [
    "400",
    "401",
    "403",
    "404",
    "413",
    "429",
    "429-hint",
    "429-long",
    "429-quota",
    "500",
    "503",
    "529",
    "slow-headers",
    "slow-body",
    "cut-body",
    "not-json",
    "not-json-answer",
    "wrong-shape",
    "other-envelope",
    "truncated",
    "refusal",
    "blocked",
    "empty",
    "unknown-end",
    "oversized",
    "endless",
    "reset",
    "redirect",
];

/// Text that no detail, log line or metric may repeat.
pub const FOREIGN: &str = "text-of-the-provider";

/// A provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    Gemini,
    Anthropic,
    /// `/api/chat`
    OllamaChat,
    /// `/api/generate`
    OllamaGenerate,
    /// `/v1/chat/completions`
    OpenaiChat,
    /// `/v1/completions`
    OpenaiText,
}

/// One call as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The provider's own part of the path.
    pub path: String,
    /// Names in lower case.
    pub headers: HashMap<String, String>,
    pub body: Value,
    /// The request as it was sent, for what must not be in it.
    pub raw: String,
}

/// A running stand-in; its listener ends with the runtime of the test.
#[derive(Clone)]
pub struct StandIn {
    address: SocketAddr,
    /// Calls by scenario.
    seen: Arc<Mutex<HashMap<String, Vec<Seen>>>>,
}

impl StandIn {
    /// Starts on a free port of the loopback.
    pub async fn start() -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").await.expect("a free port"))
    }

    /// Serves on a listener.
    pub fn listen(listener: TcpListener) -> Self {
        let address = listener.local_addr().expect("it has an address");
        let stand_in = Self { address, seen: Arc::default() };
        let accepting = stand_in.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let one = accepting.clone();
                // A client that goes away is what several faults are about.
                tokio::spawn(async move { one.serve(stream).await.ok() });
            }
        });
        stand_in
    }

    /// The base URL of a scenario such as `fault/500`.
    pub fn url(&self, scenario: &str) -> String {
        format!("http://{}/{scenario}", self.address)
    }

    /// The base URL under which the model answers `text`.
    pub fn says(&self, text: &str) -> String {
        self.url(&says(text))
    }

    /// The calls of a scenario so far.
    pub fn calls(&self, scenario: &str) -> Vec<Seen> {
        self.lock().get(scenario).cloned().unwrap_or_default()
    }

    /// How many calls came in all.
    pub fn count(&self) -> usize {
        self.lock().values().map(Vec::len).sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Seen>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let Some((scenario, seen)) = read(&mut stream).await? else { return Ok(()) };
        let Some(spoken) = spoken(&seen.path) else {
            return send(&mut stream, 404, &[], "no such endpoint").await;
        };
        let nth = {
            let mut all = self.lock();
            let of_scenario = all.entry(scenario.clone()).or_default();
            of_scenario.push(seen.clone());
            of_scenario.len()
        };
        let parts: Vec<&str> = scenario.split('/').collect();
        match parts.as_slice() {
            ["say", text] => send(&mut stream, 200, &[], &answer(spoken, &decoded(text)).to_string()).await,
            ["slow", millis, "say", text] => {
                tokio::time::sleep(Duration::from_millis(millis.parse().unwrap_or(0))).await;
                send(&mut stream, 200, &[], &answer(spoken, &decoded(text)).to_string()).await
            }
            ["once", fault, "say", _] if nth == 1 => fail(&mut stream, spoken, fault, &seen).await,
            ["once", _, "say", text] => {
                send(&mut stream, 200, &[], &answer(spoken, &decoded(text)).to_string()).await
            }
            ["fault", fault] => fail(&mut stream, spoken, fault, &seen).await,
            _ => send(&mut stream, 404, &[], "no such scenario").await,
        }
    }
}

/// The scenario in which the model answers `text`.
pub fn says(text: &str) -> String {
    let mut out = "say/".to_owned();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Which provider a path is one of.
fn spoken(path: &str) -> Option<Spoken> {
    match path {
        "v1/messages" => Some(Spoken::Anthropic),
        "api/chat" => Some(Spoken::OllamaChat),
        "api/generate" => Some(Spoken::OllamaGenerate),
        "v1/chat/completions" => Some(Spoken::OpenaiChat),
        "v1/completions" => Some(Spoken::OpenaiText),
        path => (path.starts_with("v1beta/models/") && path.ends_with(":generateContent"))
            .then_some(Spoken::Gemini),
    }
}

/// Reads one request: its scenario, and the rest.
async fn read(stream: &mut TcpStream) -> io::Result<Option<(String, Seen)>> {
    let mut raw = Vec::new();
    let mut buffer = [0; 16 * 1024];
    let head_end = loop {
        if let Some(at) = raw.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        match stream.read(&mut buffer).await? {
            0 => return Ok(None),
            count => raw.extend_from_slice(&buffer[..count]),
        }
        if raw.len() > 1 << 20 || raw.first() == Some(&0x16) {
            // A TLS handshake, or no HTTP at all: answered in clear, as web servers do.
            send(stream, 400, &[], "this is plain HTTP").await?;
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&raw[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let target = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    while raw.len() < head_end + 4 + length {
        match stream.read(&mut buffer).await? {
            0 => return Ok(None),
            count => raw.extend_from_slice(&buffer[..count]),
        }
    }
    let body = serde_json::from_slice(&raw[head_end + 4..]).unwrap_or_default();
    let target = target.trim_start_matches('/');
    let own = [
        "v1beta/models/",
        "v1/messages",
        "v1/chat/completions",
        "v1/completions",
        "api/chat",
        "api/generate",
    ]
    .iter()
    .filter_map(|own| target.find(own))
    .min();
    let (scenario, path) = target.split_at(own.unwrap_or(target.len()));
    let raw = String::from_utf8_lossy(&raw).into_owned();
    let seen = Seen { path: path.to_owned(), headers, body, raw };
    Ok(Some((scenario.trim_end_matches('/').to_owned(), seen)))
}

/// Sends a whole answer and closes.
async fn send(stream: &mut TcpStream, status: u16, headers: &[(&str, &str)], body: &str) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// A complete answer in the provider's form.
pub fn answer(spoken: Spoken, text: &str) -> Value {
    ended(spoken, text, End::Good)
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Good,
    Truncated,
    Refused,
    Blocked,
    Unknown,
}

/// An answer of the model, 1000 tokens read and 100 written, in the provider's form.
fn ended(spoken: Spoken, text: &str, end: End) -> Value {
    let word = |good: &'static str, truncated, refused, blocked| match end {
        End::Good => good,
        End::Truncated => truncated,
        End::Refused => refused,
        End::Blocked => blocked,
        End::Unknown => "a_new_reason",
    };
    match spoken {
        Spoken::Gemini => json!({
            "candidates": [{
                "content": {"role": "model", "parts": [{"text": text}]},
                "finishReason": word("STOP", "MAX_TOKENS", "SAFETY", "PROHIBITED_CONTENT"),
                "index": 0,
            }],
            "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100},
            "modelVersion": "gemini-2.5-flash-lite", "responseId": "r",
        }),
        Spoken::Anthropic => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5-20251001",
            "content": [{"type": "text", "text": text}],
            "stop_reason": word("end_turn", "max_tokens", "refusal", "refusal"), "stop_sequence": null,
            "usage": {"input_tokens": 1000, "output_tokens": 100},
        }),
        Spoken::OllamaChat | Spoken::OllamaGenerate => {
            let mut body = json!({
                "model": "m", "created_at": "2026-01-01T00:00:00Z", "done": true,
                "done_reason": word("stop", "length", "load", "unload"),
                "total_duration": 5_000_000, "prompt_eval_count": 1000, "eval_count": 100,
            });
            match spoken {
                Spoken::OllamaChat => body["message"] = json!({"role": "assistant", "content": text}),
                _ => body["response"] = text.into(),
            }
            body
        }
        Spoken::OpenaiChat => {
            let refusal = if end == End::Refused { json!(FOREIGN) } else { Value::Null };
            let content = if end == End::Refused { Value::Null } else { json!(text) };
            json!({
                "id": "c", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{
                    "index": 0, "finish_reason": word("stop", "length", "stop", "content_filter"),
                    "message": {"role": "assistant", "content": content, "refusal": refusal},
                }],
                "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
            })
        }
        Spoken::OpenaiText => json!({
            "id": "c", "object": "text_completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": word("stop", "length", "content_filter", "content_filter"), "text": text}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
        }),
    }
}

/// An error in the provider's form.
fn error(spoken: Spoken, status: u16, is_spent: bool) -> Value {
    match spoken {
        Spoken::Gemini => {
            let word = match status {
                400 | 413 => "INVALID_ARGUMENT",
                401 => "UNAUTHENTICATED",
                403 => "PERMISSION_DENIED",
                404 => "NOT_FOUND",
                429 => "RESOURCE_EXHAUSTED",
                503 => "UNAVAILABLE",
                _ => "INTERNAL",
            };
            json!({"error": {"code": status, "message": FOREIGN, "status": word}})
        }
        Spoken::Anthropic => {
            let word = match status {
                400 => "invalid_request_error",
                401 => "authentication_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                _ => "api_error",
            };
            let mut error = json!({"type": word, "message": FOREIGN});
            if is_spent {
                error["error_code"] = "enforced_spend_limit_reached".into();
            }
            json!({"type": "error", "error": error, "request_id": "req_1"})
        }
        Spoken::OllamaChat | Spoken::OllamaGenerate => json!({"error": FOREIGN}),
        Spoken::OpenaiChat | Spoken::OpenaiText => {
            let code = if is_spent { json!("insufficient_quota") } else { Value::Null };
            json!({"error": {"message": FOREIGN, "type": if is_spent { "insufficient_quota" } else { "error" },
                             "param": null, "code": code}})
        }
    }
}

/// Meets a call with a fault.
async fn fail(stream: &mut TcpStream, spoken: Spoken, fault: &str, seen: &Seen) -> io::Result<()> {
    let good = || answer(spoken, "{}").to_string();
    match fault {
        "429-hint" | "429-long" => {
            let is_long = fault == "429-long";
            let mut body = error(spoken, 429, false);
            let hint: (&str, &str) = match spoken {
                Spoken::Gemini => {
                    let delay = if is_long { "3600s" } else { "0.030s" };
                    body["error"]["details"] = json!([
                        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []},
                        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
                    ]);
                    // This one comes as a list of one.
                    body = json!([body]);
                    ("x-none", "")
                }
                Spoken::Anthropic | Spoken::OpenaiChat if !is_long => ("retry-after-ms", "30"),
                _ if is_long => ("retry-after", "3600"),
                _ => ("retry-after", "0"),
            };
            send(stream, 429, &[hint], &body.to_string()).await
        }
        "429-quota" => send(stream, 429, &[], &error(spoken, 429, true).to_string()).await,
        "slow-headers" => forever(stream).await,
        "slow-body" => {
            stream
                .write_all(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
                )
                .await?;
            forever(stream).await
        }
        "cut-body" => {
            let body = good();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&body.as_bytes()[..body.len() / 2]).await?;
            stream.shutdown().await
        }
        "not-json" => send(stream, 200, &[], &format!("<html>{FOREIGN}</html>")).await,
        "not-json-answer" => send(stream, 200, &[], &answer(spoken, FOREIGN).to_string()).await,
        "wrong-shape" => {
            send(stream, 200, &[], &answer(spoken, &json!({FOREIGN: 1}).to_string()).to_string()).await
        }
        "other-envelope" => send(stream, 200, &[], &json!([FOREIGN]).to_string()).await,
        "truncated" => {
            send(stream, 200, &[], &ended(spoken, "{\"verdict\":\"SA", End::Truncated).to_string()).await
        }
        "refusal" => send(stream, 200, &[], &ended(spoken, FOREIGN, End::Refused).to_string()).await,
        "blocked" if spoken == Spoken::Gemini => {
            let body = json!({
                "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
                "usageMetadata": {"promptTokenCount": 1000}, "modelVersion": "gemini-2.5-flash-lite",
            });
            send(stream, 200, &[], &body.to_string()).await
        }
        "blocked" => send(stream, 200, &[], &ended(spoken, FOREIGN, End::Blocked).to_string()).await,
        "empty" => send(stream, 200, &[], &answer(spoken, " ").to_string()).await,
        "unknown-end" => {
            send(stream, 200, &[], &ended(spoken, "{\"verdict\":\"SAFE\"}", End::Unknown).to_string()).await
        }
        "oversized" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{").await?;
            forever(stream).await
        }
        "endless" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
            loop {
                stream.write_all(chunk.as_bytes()).await?;
            }
        }
        "reset" => {
            // Closing with unread input and no linger sends a reset instead of an end.
            stream.set_zero_linger()?;
            Ok(())
        }
        "redirect" => {
            let place = format!(
                "http://{}/{}/{}",
                seen.headers.get("host").map_or("", String::as_str),
                says("{}"),
                seen.path
            );
            send(stream, 307, &[("location", &place)], "").await
        }
        status => match status.parse() {
            Ok(status) => send(stream, status, &[], &error(spoken, status, false).to_string()).await,
            Err(_) => send(stream, 404, &[], "no such fault").await,
        },
    }
}

/// Keeps the connection open until the client goes.
async fn forever(stream: &mut TcpStream) -> io::Result<()> {
    let mut buffer = [0; 1024];
    while stream.read(&mut buffer).await? > 0 {}
    Ok(())
}
