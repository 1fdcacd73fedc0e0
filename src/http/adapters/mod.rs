//! Contracts of others over the services of this process: each one file, each off unless the settings turn it on.
//!
//! An adapter reads a request of its contract, asks the services ([`LocalCalls`]) and answers in the form of the contract.
//! It decides nothing. What it cannot read or ask is an error, which its contract makes a refusal or leaves to the
//! gateway's own setting for a guard that failed; nothing that went wrong is ever answered as if it had passed.

mod agentgateway;
mod claude_code;
mod json;
mod judging;
mod litellm;
mod openguardrails;
mod payload;

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body::Body as _;
use serde::de::DeserializeOwned;

use super::config::AdaptersConfig;
use super::refusal;
use crate::grpc::{LocalCaller, LocalCalls, Refusal};
use crate::telemetry::Code;

/// Name of the policy, for contracts that have no place for it.
const POLICY: &str = "portcullis-policy";
/// Id of the agent, for contracts that have no place for it.
const AGENT_ID: &str = "portcullis-agent-id";
/// How long the caller waits, in milliseconds.
const TIMEOUT_MS: &str = "portcullis-timeout-ms";
/// How long an answer may take when the caller does not say.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest that a caller may wait.
const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How much of a body that is too large is read all the same: some clients hear no answer before they have sent
/// everything, and an agent that hears none goes on.
const DISCARD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What the adapters need.
#[derive(Clone)]
pub struct Adapters {
    /// The services of this process.
    pub calls: LocalCalls,
    /// Which of the adapters are on.
    pub enabled: AdaptersConfig,
    /// Largest body, in bytes.
    pub request_bytes_max: usize,
}

impl Adapters {
    /// The routes of those that are on.
    pub(super) fn routes(&self) -> Router {
        let on = &self.enabled;
        let parts = [
            on.json.then(|| json::routes(self)),
            on.claude_code.then(|| claude_code::routes(self)),
            on.litellm.then(|| litellm::routes(self)),
            on.agentgateway.then(|| agentgateway::routes(self)),
            on.openguardrails.then(|| openguardrails::routes(self)),
        ];
        parts.into_iter().flatten().fold(Router::new(), Router::merge)
    }

    /// The answer to a request that is turned away before any adapter sees it, where the contract of its path wants
    /// another form than [`refusal`].
    pub(super) fn turned_away(&self, path: &str, message: &str) -> Option<Response> {
        (self.enabled.claude_code && path == claude_code::PATH).then(|| claude_code::refused(message))
    }

    /// Reads a request.
    async fn receive(&self, request: Request) -> Result<Received, Problem> {
        let (head, body) = request.into_parts();
        // Whatever is wrong with the head, a client that still sends must be able to hear of it.
        let body = tokio::time::timeout(BODY_TIMEOUT, read(body, self.request_bytes_max)).await;
        check_type(&head.headers)?;
        let body = body.map_err(|_| Problem::slow())??;
        let timeout = match one(&head.headers, TIMEOUT_MS)? {
            None => TIMEOUT,
            Some(text) => milliseconds(text).ok_or_else(|| {
                Problem::wrong(format!("`{TIMEOUT_MS}` must be a number of milliseconds from 1 to 600000"))
            })?,
        };
        Ok(Received {
            calls: self.calls.clone(),
            caller: LocalCaller::new(&head.headers, timeout),
            policy: one(&head.headers, POLICY)?.unwrap_or_default().to_owned(),
            agent_id: one(&head.headers, AGENT_ID)?.unwrap_or_default().to_owned(),
            headers: head.headers,
            body,
        })
    }
}

/// A request with the means to answer it.
struct Received {
    calls: LocalCalls,
    caller: LocalCaller,
    policy: String,
    agent_id: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Received {
    /// Calls an RPC of `PolicyDecisionService`.
    async fn decide<A: prost::Message + Default>(
        &self,
        rpc: &str,
        request: &impl prost::Message,
    ) -> Result<A, Problem> {
        let path = format!("/portcullis.v1.PolicyDecisionService/{rpc}");
        Ok(self.calls.call(&path, &self.caller, request).await?)
    }

    /// The body as JSON of the contract.
    fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Problem::wrong(format!("the body is not what this path takes: {error}")))
    }
}

/// Why there is no answer.
#[derive(Debug)]
struct Problem {
    status: StatusCode,
    code: Code,
    /// What happened, as a word.
    word: Cow<'static, str>,
    message: String,
    details: Vec<pbjson_types::Any>,
    retry: Option<Duration>,
    /// Calls a second that one caller may make, where it made more.
    rate: Option<u32>,
}

impl Problem {
    fn new(status: StatusCode, code: Code, word: &'static str, message: impl Into<String>) -> Self {
        let (word, message) = (word.into(), message.into());
        Self { status, code, word, message, details: Vec::new(), retry: None, rate: None }
    }

    /// The request is malformed.
    fn wrong(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::InvalidArgument, "invalid_argument", message)
    }

    /// The request has a type that is not read here.
    fn unsupported(message: impl Into<String>) -> Self {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Self::new(status, Code::InvalidArgument, "unsupported_media_type", message)
    }

    /// The body did not arrive in time.
    fn slow() -> Self {
        let message = format!("the body took longer than {} seconds", BODY_TIMEOUT.as_secs());
        Self::new(StatusCode::REQUEST_TIMEOUT, Code::DeadlineExceeded, "timeout", message)
    }

    /// A fault of ours.
    fn internal(message: &'static str) -> Self {
        tracing::error!(problem = message, "an adapter could not answer");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Code::Internal, "internal", "internal error")
    }

    fn too_large(limit: usize) -> Self {
        let message = format!(
            "the body has more than {limit} bytes; send less at once or raise `server.request_bytes_max`"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, Code::ResourceExhausted, "too_large", message)
    }

    /// `Retry-After`, in whole seconds.
    fn retry_after(&self) -> Option<HeaderValue> {
        let wait = self.retry?;
        Some(HeaderValue::from(wait.as_secs() + u64::from(wait.subsec_nanos() > 0)))
    }

    /// This answer with what belongs to every answer of this status.
    fn with_headers(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        if let Some(wait) = self.retry_after() {
            headers.insert(header::RETRY_AFTER, wait);
        }
        if self.status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            headers.insert("accept-post", HeaderValue::from_static("application/json"));
        }
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self {
            status: status_of(refusal.code),
            code: refusal.code,
            word: refusal.code.as_str().to_ascii_lowercase().into(),
            message: refusal.message,
            details: refusal.details,
            retry: refusal.retry,
            rate: refusal.rate,
        }
    }
}

/// `{"error":{"code","message"}}`.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let response = refusal(self.status, &self.word, &self.message);
        self.with_headers(response)
    }
}

/// The HTTP status of a gRPC code, as the Connect protocol maps them (<https://connectrpc.com/docs/protocol#error-codes>).
fn status_of(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        // "Client closed request", which no registry of statuses names.
        Code::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The one value of a header; `None` when there is none.
fn one<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::wrong(format!("`{name}` is given more than once")));
    }
    let value = value.to_str().map_err(|_| Problem::wrong(format!("`{name}` must be visible ASCII")))?;
    Ok(Some(value))
}

fn milliseconds(text: &str) -> Option<Duration> {
    // `parse` would take a sign as well.
    let is_number = !text.is_empty() && text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    let wait = Duration::from_millis(text.parse().ok().filter(|_| is_number)?);
    (!wait.is_zero() && wait <= TIMEOUT_MAX).then_some(wait)
}

/// Refuses what is not JSON in UTF-8, and what is compressed.
fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = one(headers, header::CONTENT_TYPE.as_str())?.unwrap_or_default();
    let mut parts = kind.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
    let is_utf8 = parts.all(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        !name.eq_ignore_ascii_case("charset") || value.trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    if !is_json || !is_utf8 {
        return Err(Problem::unsupported("send `content-type: application/json`"));
    }
    match one(headers, header::CONTENT_ENCODING.as_str())? {
        None | Some("identity") => Ok(()),
        Some(_) => Err(Problem::unsupported("compressed bodies are not read; send none or `identity`")),
    }
}

/// Reads a body of at most `limit` bytes. A larger one is read to its end, within limits, and refused.
async fn read(mut body: Body, limit: usize) -> Result<Bytes, Problem> {
    let (mut data, mut total) = (Vec::new(), 0_usize);
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|_| Problem::wrong("the body broke off"))?;
        let Ok(bytes) = frame.into_data() else { continue };
        total = total.saturating_add(bytes.len());
        if total <= limit {
            data.extend_from_slice(&bytes);
        } else if total > limit.saturating_add(DISCARD_BYTES_MAX) {
            break;
        } else {
            data = Vec::new();
        }
    }
    if total > limit { Err(Problem::too_large(limit)) } else { Ok(data.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn only_json_in_utf8_is_read() {
        for (kind, good) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/json;charset=\"UTF-8\"", true),
            ("application/json; charset=utf-16", false),
            ("application/jsonx", false),
            ("text/plain", false),
            ("", false),
        ] {
            assert_eq!(check_type(&headers(&[("content-type", kind)])).is_ok(), good, "{kind}");
        }
        assert!(check_type(&headers(&[])).is_err());
        let json = ("content-type", "application/json");
        assert!(check_type(&headers(&[json, json])).is_err());
        assert!(check_type(&headers(&[json, ("content-encoding", "gzip")])).is_err());
        assert!(check_type(&headers(&[json, ("content-encoding", "identity")])).is_ok());
    }

    #[test]
    fn a_caller_waits_for_a_plain_number_of_milliseconds() {
        for (text, wanted) in [
            ("1", Some(1)),
            ("600000", Some(600_000)),
            ("0000000001", Some(1)),
            ("0", None),
            ("600001", None),
            ("+5", None),
            ("5.0", None),
            ("", None),
            ("00000000001", None),
        ] {
            assert_eq!(milliseconds(text), wanted.map(Duration::from_millis), "{text}");
        }
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_the_limit_and_not_cut() {
        assert_eq!(read(Body::from("12345"), 5).await.expect("it fits"), "12345");
        let problem = read(Body::from("123456"), 5).await.expect_err("it is too large");
        assert_eq!(problem.status, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn a_wait_is_told_in_whole_seconds() {
        let mut problem = Problem::slow();
        for (wait, told) in [(100, "1"), (1_000, "1"), (1_001, "2")] {
            problem.retry = Some(Duration::from_millis(wait));
            assert_eq!(problem.retry_after().expect("a wait"), told);
        }
    }
}
