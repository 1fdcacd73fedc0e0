//! The layers around every service, outermost first: who calls and whether that caller may, restating what the transport
//! refused, then shedding load.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{HeaderMap, Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};
use tracing::Instrument;

use super::decide::refuse;
use super::gathered::gather;
use super::server::Shared;
use super::status::restate;
use super::work::{Failed, Waited};
use super::{Identity, RequestError, deadline};
use crate::audit::masked_name;
use crate::telemetry::{CallerRefused, OverloadShed, Rpc, ShedReason, adopt};

/// Path of the service whose calls decide; the name of the RPC follows.
const DECISIONS: &str = "/portcullis.v1.PolicyDecisionService/";

/// The unary calls that decide: limited and counted here.
const UNARY: [Rpc; 4] = [Rpc::CheckMessages, Rpc::InterceptMessage, Rpc::InterceptParams, Rpc::InterceptTool];

/// The RPC that a request is for; `None` for services that decide nothing.
fn rpc_of(path: &str) -> Option<Rpc> {
    let name = path.strip_prefix(DECISIONS)?;
    Rpc::ALL.into_iter().find(|rpc| rpc.as_str() == name)
}

/// Where an answer without a message carries its status.
const GRPC_STATUS: &str = "grpc-status";

/// Builds [`Guarded`].
#[derive(Clone)]
pub(super) struct Guard(pub(super) Arc<Shared>);

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Guarded { inner, shared: self.0.clone() }
    }
}

/// Establishes who calls, once for every service; answers "busy" at once when too many calls are in flight or wait for a
/// processor, since a long queue turns overload into late answers; opens the span of a call; and gives refusals of the
/// transport the details that the contract promises.
///
/// Streams are not held here: each request in a stream asks for its own place.
#[derive(Clone)]
pub(super) struct Guarded<S> {
    inner: S,
    shared: Arc<Shared>,
}

type Answer<E> = Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>;

impl<S> Service<Request<Body>> for Guarded<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Answer<S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let admitted = self.shared.auth.admit(&request, &self.shared.metrics);
        if admitted.as_ref().is_err_and(|error| self.shared.auth.may_be_known_later(error)) {
            // The service that was found ready is the one to call.
            let later = self.clone();
            let mut ready = mem::replace(self, later);
            return Box::pin(async move {
                ready.shared.auth.look_for_keys(&ready.shared.metrics).await;
                let admitted = ready.shared.auth.admit(&request, &ready.shared.metrics);
                ready.go_on(request, admitted).await
            });
        }
        self.go_on(request, admitted)
    }
}

impl<S> Guarded<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    /// Serves a caller that was admitted, or turns it away.
    fn go_on(
        &mut self,
        mut request: Request<Body>,
        admitted: Result<Option<Identity>, RequestError>,
    ) -> Answer<S::Error> {
        let shared = self.shared.clone();
        let called = rpc_of(request.uri().path());
        match admitted {
            Ok(Some(identity)) => {
                let request_id = shared.request_id(request.headers());
                request.extensions_mut().insert(identity.asking(request_id));
            }
            Ok(None) => {}
            Err(error) => {
                let response = turned_away(&shared, called, &error);
                return Box::pin(std::future::ready(Ok(response)));
            }
        }
        let Some(rpc) = called.filter(|rpc| UNARY.contains(rpc)) else {
            let is_stream = called.is_some();
            let answer = self.inner.call(request);
            return Box::pin(async move {
                let response = answer.await?;
                // A stream restates for itself, inside its answers.
                Ok(if is_stream { response } else { restated(&shared, response, None) })
            });
        };
        let Ok(permit) = shared.in_flight.clone().try_acquire_owned() else {
            let response = shed(&shared, rpc, ShedReason::Places);
            return Box::pin(std::future::ready(Ok(response)));
        };
        // Before its body is read: what is refused anyway shall cost nothing.
        if shared.work.is_crowded() {
            let response = shed(&shared, rpc, ShedReason::Wait);
            return Box::pin(std::future::ready(Ok(response)));
        }
        let called = Instant::now();
        let span = if shared.traces {
            let span = tracing::info_span!("decide", rpc = rpc.as_str(), otel.name = rpc.as_str());
            let snapshot = shared.live.snapshot();
            adopt(&span, request.headers(), |text| match &snapshot {
                Some(snapshot) => masked_name(snapshot.scanner(), text) != text,
                // Nothing can be looked for in it.
                None => true,
            });
            span
        } else {
            tracing::Span::none()
        };
        // The service that was found ready is the one to call.
        let later = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, later);
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let (body, reading) = gather(body, shared.request_bytes_max).await;
            let mut request = Request::from_parts(head, body);
            // A body that the caller was slow to send is no wait for us.
            let came = if reading.has_waited { Instant::now() } else { called };
            let Ok(ticket) = shared.work.admit(came) else {
                return Ok(shed(&shared, rpc, ShedReason::Wait));
            };
            let timeout = deadline::timeout(request.headers());
            let deciding = move |waited: Waited| async move {
                // Nobody waits for this answer any more.
                if timeout.is_some_and(|timeout| timeout <= waited.0) {
                    return Err(RequestError::DeadlineExceeded);
                }
                request.extensions_mut().insert(waited);
                Ok(ready.call(request).instrument(span).await)
            };
            let response = match shared.work.run(ticket, reading.bytes, deciding).await {
                Ok(Ok(answer)) => restated(&shared, answer?, Some(rpc)),
                Ok(Err(error)) => turned_away(&shared, Some(rpc), &error),
                Err(Failed::Crowded) => shed(&shared, rpc, ShedReason::Wait),
                Err(Failed::Stopped) => turned_away(&shared, Some(rpc), &RequestError::Draining),
            };
            drop(permit);
            Ok(response)
        })
    }
}

/// The answer to a call for which there is no room.
fn shed(shared: &Shared, rpc: Rpc, reason: ShedReason) -> Response<Body> {
    OverloadShed { rpc, reason }.emit(&shared.metrics);
    RequestError::Overloaded.to_status().into_http()
}

/// The answer to a caller that may not call.
fn turned_away(shared: &Shared, called: Option<Rpc>, error: &RequestError) -> Response<Body> {
    if let Some(reason) = error.auth_reason() {
        CallerRefused { reason }.emit(&shared.metrics);
    }
    if let Some(rpc) = called {
        refuse(shared, rpc, error);
    }
    error.to_status().into_http()
}

/// The response, or our own words for what the transport refused.
fn restated(shared: &Shared, response: Response<Body>, counted_as: Option<Rpc>) -> Response<Body> {
    // Only answers without a message carry their status in the headers.
    if !response.headers().contains_key(GRPC_STATUS) || has_details(response.headers()) {
        return response;
    }
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    match restate(status.code(), status.message(), shared.request_bytes_max) {
        Some(error) => {
            if let Some(rpc) = counted_as {
                refuse(shared, rpc, &error);
            }
            error.to_status().into_http()
        }
        None => response,
    }
}

fn has_details(headers: &HeaderMap) -> bool {
    headers.contains_key("grpc-status-details-bin")
}
