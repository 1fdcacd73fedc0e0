//! Calls of the services from within this process.
//!
//! The HTTP side speaks the contracts of others. It asks the same services through the same layers as a call from
//! outside, so that identity, roles, rates, limits, deadlines, counts and records are the same: there is no second way in.
//! A call is a gRPC request of one message, which never touches a socket.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, Stream};
use http::header::{AUTHORIZATION, CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version};
use http_body::Body as _;
use prost::Message;
use prost::bytes::{Buf, BufMut, Bytes, BytesMut};
use tonic::Status;
use tonic::body::Body;
use tonic::service::Routes;
use tonic_types::StatusExt;
use tower::{Layer, ServiceExt};

use super::layers::{Guard, Guarded};
use super::server::{Shared, services};
use super::status::PER_SECOND;
use super::tls::Peer;
use super::{Identity, REQUEST_ID, RequestError, SUBMITTER};
use crate::pb::google::rpc;
use crate::telemetry::{CallerRefused, Code};

/// Headers of the caller that concern the services. Nothing else of an HTTP request reaches them.
const PASSED_ON: [HeaderName; 4] = [
    AUTHORIZATION,
    HeaderName::from_static(SUBMITTER),
    HeaderName::from_static(REQUEST_ID),
    HeaderName::from_static("traceparent"),
];

/// The path of an RPC that there is not, of a service that is not ours: whoever is known may ask who it is.
const WHO: &str = "/portcullis.local/Who";

/// One byte for compression and four for the length, before each message (gRPC over HTTP/2, "Length-Prefixed-Message").
const PREFIX_BYTES: usize = 5;

/// The largest number that `grpc-timeout` has room for.
const TIMEOUT_MS_MAX: u128 = 99_999_999;

/// Calls the services of this process.
#[derive(Clone)]
pub struct LocalCalls {
    services: Guarded<Routes>,
    shared: Arc<Shared>,
}

/// Who calls, and how long it waits.
#[derive(Clone, Debug)]
pub struct LocalCaller {
    headers: HeaderMap,
    timeout: Duration,
    peer: Option<Peer>,
    count_max: Option<CountMax>,
}

/// How far a list is counted, for a caller of this process who only shows that there are more. It is no part of the
/// contract: who calls from outside is told how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountMax(pub(super) u64);

/// Why a call has no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The gRPC code.
    pub code: Code,
    /// What is wrong and what to do.
    pub message: String,
    /// Details of `google.rpc`, for programs.
    pub details: Vec<pbjson_types::Any>,
    /// When it makes sense to try again, if that is known.
    pub retry: Option<Duration>,
    /// Calls a second that one caller may make, where it made more.
    pub rate: Option<u32>,
}

impl LocalCaller {
    /// The caller of an HTTP request, who waits for at most `timeout`.
    pub fn new(headers: &HeaderMap, timeout: Duration) -> Self {
        let mut passed_on = HeaderMap::new();
        for name in PASSED_ON {
            for value in headers.get_all(&name) {
                passed_on.append(name.clone(), value.clone());
            }
        }
        Self { headers: passed_on, timeout, peer: None, count_max: None }
    }

    /// The caller, with what its connection tells of it.
    pub(super) fn with_peer(self, peer: Option<Peer>) -> Self {
        Self { peer, ..self }
    }

    /// The caller, who does not care how many more than `most` a list has in all: it is told one more then.
    #[must_use]
    pub fn counting_to(self, most: u64) -> Self {
        Self { count_max: Some(CountMax(most)), ..self }
    }
}

impl LocalCalls {
    /// Calls of the services over `shared`.
    pub fn new(shared: &Arc<Shared>) -> Self {
        Self { services: Guard(shared.clone()).layer(services(shared)), shared: shared.clone() }
    }

    /// Who a caller is, by the credentials that its calls bring.
    ///
    /// # Errors
    /// A credential is missing or wrong, or the caller asks too often.
    pub async fn identify(&self, caller: &LocalCaller) -> Result<Identity, Refusal> {
        let refused = |error: RequestError| Refusal::from(error.to_status());
        let request = request(WHO, caller, &[]).ok_or_else(|| refused(RequestError::Internal))?;
        let (auth, metrics) = (&self.shared.auth, &self.shared.metrics);
        let mut known = auth.admit(&request, metrics);
        if known.as_ref().is_err_and(|error| auth.may_be_known_later(error)) {
            auth.look_for_keys(metrics).await;
            known = auth.admit(&request, metrics);
        }
        if let Some(reason) = known.as_ref().err().and_then(RequestError::auth_reason) {
            CallerRefused { reason }.emit(metrics);
        }
        known.and_then(|identity| identity.ok_or(RequestError::Internal)).map_err(refused)
    }

    /// What the services share, for answers that no RPC gives.
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Calls the RPC of a path such as `/portcullis.v1.PolicyService/GetPolicy`.
    ///
    /// # Errors
    /// What the service refuses, and a deadline that passed.
    pub async fn call<A: Message + Default>(
        &self,
        path: &str,
        caller: &LocalCaller,
        request: &impl Message,
    ) -> Result<A, Refusal> {
        let answer = self.call_encoded(path, caller, &request.encode_to_vec()).await?;
        A::decode(answer).map_err(|_| RequestError::Internal.to_status().into())
    }

    /// The same, over encoded messages.
    ///
    /// # Errors
    /// What the service refuses, and a deadline that passed.
    pub async fn call_encoded(
        &self,
        path: &str,
        caller: &LocalCaller,
        message: &[u8],
    ) -> Result<Bytes, Refusal> {
        let refused = |error: RequestError| Refusal::from(error.to_status());
        let request = request(path, caller, message).ok_or_else(|| refused(RequestError::Internal))?;
        // Who calls over a socket gets an error for a panic; who calls from here must get one too.
        let answering = AssertUnwindSafe(answer(self.services.clone(), request)).catch_unwind();
        match tokio::time::timeout(caller.timeout, answering).await {
            Err(_) => Err(refused(RequestError::DeadlineExceeded)),
            Ok(Err(_)) => Err(refused(RequestError::Internal)),
            Ok(Ok(answer)) => answer.map_err(Refusal::from),
        }
    }
}

impl LocalCalls {
    /// Calls an RPC that answers with a stream, given its encoded request, and answers the messages as they come. The
    /// service holds the deadline of the caller.
    ///
    /// # Errors
    /// What the service refuses before its first message. What goes wrong later is the last item.
    pub async fn stream<A: Message + Default + 'static>(
        &self,
        path: &str,
        caller: &LocalCaller,
        asked: &[u8],
    ) -> Result<impl Stream<Item = Result<A, Refusal>> + Send + use<A>, Refusal> {
        let refused = |error: RequestError| Refusal::from(error.to_status());
        let request = request(path, caller, asked).ok_or_else(|| refused(RequestError::Internal))?;
        let response = self.services.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
        if let Some(status) = Status::from_header_map(response.headers()) {
            return Err(status.into());
        }
        let state = Some((response.into_body(), BytesMut::new()));
        Ok(futures_util::stream::unfold(state, |state| async move {
            let (mut body, mut data) = state?;
            match next_message(&mut body, &mut data).await {
                Ok(Some(message)) => {
                    let message = A::decode(message).map_err(|_| RequestError::Internal.to_status().into());
                    Some((message, Some((body, data))))
                }
                Ok(None) => None,
                Err(status) => Some((Err(status.into()), None)),
            }
        }))
    }
}

/// The next whole message of an answer; `None` after the last, if it ended well.
async fn next_message(body: &mut Body, data: &mut BytesMut) -> Result<Option<Bytes>, Status> {
    loop {
        if let Some(prefix) = data.first_chunk::<PREFIX_BYTES>() {
            let [compression, length @ ..] = *prefix;
            let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
            if compression != 0 {
                return Err(RequestError::Internal.to_status());
            }
            if data.len() - PREFIX_BYTES >= length {
                data.advance(PREFIX_BYTES);
                return Ok(Some(data.split_to(length).freeze()));
            }
        }
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        // An answer that ends without a status was cut off.
        let frame = frame.ok_or_else(|| RequestError::Internal.to_status())??;
        match frame.into_data() {
            Ok(bytes) => data.extend_from_slice(&bytes),
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                let status = Status::from_header_map(&trailers);
                return match status {
                    Some(status) if status.code() == tonic::Code::Ok && data.is_empty() => Ok(None),
                    Some(status) if status.code() != tonic::Code::Ok => Err(status),
                    _ => Err(RequestError::Internal.to_status()),
                };
            }
        }
    }
}

/// The gRPC request of one message; `None` when the path is none.
fn request(path: &str, caller: &LocalCaller, message: &[u8]) -> Option<Request<Body>> {
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).ok()?);
    framed.put_slice(message);
    let mut request = Request::new(Body::new(axum::body::Body::from(framed.freeze())));
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = path.parse().ok()?;
    if let Some(peer) = &caller.peer {
        request.extensions_mut().insert(peer.clone());
    }
    if let Some(most) = caller.count_max {
        request.extensions_mut().insert(most);
    }
    let headers = request.headers_mut();
    headers.clone_from(&caller.headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    let timeout = format!("{}m", caller.timeout.as_millis().min(TIMEOUT_MS_MAX));
    headers.insert("grpc-timeout", timeout.parse().ok()?);
    Some(request)
}

/// The message of the answer.
async fn answer(services: Guarded<Routes>, request: Request<Body>) -> Result<Bytes, Status> {
    let response = services.oneshot(request).await.unwrap_or_else(|never| match never {});
    // An answer without a message carries its status in the headers.
    if let Some(status) = Status::from_header_map(response.headers()) {
        return Err(status);
    }
    let mut body = response.into_body();
    let (mut data, mut trailers) = (BytesMut::new(), HeaderMap::new());
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        match frame?.into_data() {
            Ok(bytes) => data.extend_from_slice(&bytes),
            Err(frame) => trailers = frame.into_trailers().unwrap_or_default(),
        }
    }
    let internal = || RequestError::Internal.to_status();
    match Status::from_header_map(&trailers) {
        Some(status) if status.code() == tonic::Code::Ok => {}
        Some(status) => return Err(status),
        // An answer that ends without a status was cut off.
        None => return Err(internal()),
    }
    let prefix: [u8; PREFIX_BYTES] =
        data.get(..PREFIX_BYTES).and_then(|prefix| prefix.try_into().ok()).ok_or_else(internal)?;
    let message = data.split_off(PREFIX_BYTES).freeze();
    let [compression, length @ ..] = prefix;
    let is_whole = compression == 0 && usize::try_from(u32::from_be_bytes(length)) == Ok(message.len());
    if is_whole { Ok(message) } else { Err(internal()) }
}

impl Refusal {
    /// The refusal of a request that whoever calls from here found wrong.
    pub fn wrong(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::of(Code::InvalidArgument) }
    }

    /// The refusal of something that only a fault of ours explains.
    pub fn internal() -> Self {
        RequestError::Internal.to_status().into()
    }

    fn of(code: Code) -> Self {
        Self { code, message: String::new(), details: Vec::new(), retry: None, rate: None }
    }

    /// The status, without its details.
    pub(super) fn to_status(&self) -> Status {
        let number = Code::ALL.iter().position(|code| *code == self.code);
        let code = number.and_then(|number| i32::try_from(number).ok()).map(tonic::Code::from_i32);
        Status::new(code.unwrap_or(tonic::Code::Unknown), self.message.clone())
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        let code = Code::of_number(status.code() as i32);
        // Details that cannot be read tell nothing; the code and the message stand without them.
        let details = rpc::Status::decode(status.details()).map(|status| status.details).unwrap_or_default();
        let retry = status.get_details_retry_info().and_then(|info| info.retry_delay);
        let info = status.get_details_error_info();
        let rate = info.and_then(|info| info.metadata.get(PER_SECOND)?.parse().ok());
        Self { code, message: status.message().to_owned(), details, retry, rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_concerns_the_services_is_passed_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer a"),
            ("authorization", "Bearer b"),
            ("portcullis-submitter", "ada"),
            ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            ("cookie", "c"),
            ("grpc-timeout", "1H"),
            ("content-type", "application/json"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let caller = LocalCaller::new(&headers, Duration::from_secs(3_000_000));
        let request = request("/a.B/C", &caller, b"xyz").expect("a request");
        let sent = request.headers();
        assert_eq!(sent.get_all("authorization").iter().count(), 2, "the services judge both");
        assert_eq!(sent["grpc-timeout"], "99999999m");
        assert_eq!(sent["content-type"], "application/grpc");
        assert!(sent.contains_key("portcullis-submitter") && sent.contains_key("traceparent"));
        assert!(!sent.contains_key("cookie"));
    }

    #[test]
    fn a_status_keeps_its_details() {
        let refusal = Refusal::from(RequestError::field("messages[0].role", "is wrong").to_status());
        assert_eq!(refusal.code, Code::InvalidArgument);
        assert_eq!(refusal.details[0].type_url, "type.googleapis.com/google.rpc.BadRequest");
        assert!(refusal.message.contains("messages[0].role"));
    }
}
