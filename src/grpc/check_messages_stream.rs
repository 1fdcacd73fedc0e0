//! `CheckMessagesStream`: the same questions in order, one answer each.
//!
//! A request that is refused is answered with its error inside the stream, and the stream goes on. The next request is
//! read when the answer to the last one is on its way, so a client that does not read is slowed by flow control.
//!
//! When the server stops, what has come is answered; then the stream ends with an error that says so.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use futures_util::{FutureExt as _, Stream, stream};
use prost::Message as _;
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};

use super::decide::{decide, refuse};
use super::server::Shared;
use super::{Identity, RequestError, deadline, status};
use crate::pb::{google, v1};
use crate::telemetry::{OverloadShed, Rpc, ShedReason};

const RPC: Rpc = Rpc::CheckMessagesStream;

/// The answers.
pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<v1::CheckMessagesResponse, Status>> + Send>>;

struct State {
    shared: Arc<Shared>,
    identity: Identity,
    deadline: Option<Instant>,
    inbound: Streaming<v1::CheckMessagesRequest>,
    draining: watch::Receiver<bool>,
    is_over: bool,
}

/// Opens a stream.
pub(super) fn call(
    shared: Arc<Shared>,
    request: Request<Streaming<v1::CheckMessagesRequest>>,
) -> Result<Response<Answers>, Status> {
    let identity = Identity::of(&request).map_err(|error| {
        refuse(&shared, RPC, &error);
        error.to_status()
    })?;
    let deadline = deadline::of(&request);
    let draining = shared.draining.subscribe();
    let state = State { shared, identity, deadline, inbound: request.into_inner(), draining, is_over: false };
    Ok(Response::new(Box::pin(stream::unfold(state, next))))
}

async fn next(mut state: State) -> Option<(Result<v1::CheckMessagesResponse, Status>, State)> {
    if state.is_over {
        return None;
    }
    let message = tokio::select! {
        biased;
        message = state.inbound.message() => Some(message),
        // An error means that the sender is gone, which only a stop does.
        () = state.draining.wait_for(|is_draining| *is_draining).map(drop) => None,
    };
    let Some(message) = message else {
        state.is_over = true;
        let error = RequestError::Draining;
        refuse(&state.shared, RPC, &error);
        return Some((Err(error.to_status()), state));
    };
    match message {
        Ok(Some(request)) => {
            let answer = judge(&state, request).await;
            Some((Ok(answer), state))
        }
        Ok(None) => None,
        Err(broken) => {
            // What cannot be decoded leaves the transport unable to find the next message: this ends the stream.
            state.is_over = true;
            let status =
                match status::restate(broken.code(), broken.message(), state.shared.request_bytes_max) {
                    Some(error) => {
                        refuse(&state.shared, RPC, &error);
                        error.to_status()
                    }
                    None => broken,
                };
            Some((Err(status), state))
        }
    }
}

async fn judge(state: &State, request: v1::CheckMessagesRequest) -> v1::CheckMessagesResponse {
    let came = Instant::now();
    let shared = &state.shared;
    if let Err(error) = shared.auth.take(&state.identity, &shared.metrics) {
        refuse(shared, RPC, &error);
        return refusal(&error);
    }
    let result = match shared.in_flight.clone().try_acquire_owned() {
        Ok(permit) => {
            let (shared, identity, deadline) = (shared.clone(), state.identity.clone(), state.deadline);
            let bytes = request.encoded_len();
            let deciding = async move {
                let answer = decide(&shared, RPC, &identity, deadline, came, request).await;
                drop(permit);
                answer
            };
            state.shared.work.run_in_turn(bytes, deciding).await.unwrap_or(Err(RequestError::Draining))
        }
        Err(_) => {
            OverloadShed { rpc: RPC, reason: ShedReason::Places }.emit(&shared.metrics);
            Err(RequestError::Overloaded)
        }
    };
    result.unwrap_or_else(|error| refusal(&error))
}

/// The answer to a request that is refused.
fn refusal(error: &RequestError) -> v1::CheckMessagesResponse {
    let error = Some(as_message(&error.to_status()));
    v1::CheckMessagesResponse { error, ..v1::CheckMessagesResponse::default() }
}

/// A status as it travels inside a message.
fn as_message(status: &Status) -> google::rpc::Status {
    google::rpc::Status::decode(status.details()).unwrap_or_else(|_| google::rpc::Status {
        code: status.code() as i32,
        message: status.message().to_owned(),
        details: Vec::new(),
    })
}
