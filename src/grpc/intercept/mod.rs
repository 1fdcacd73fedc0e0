//! Intercept*: one file an RPC, and what the three have in common: judging, telling, answering.
//!
//! [`judge_tool`] and its like need no server: the command line judges in process with the same code.

mod convert;
mod event;
mod message;
mod params;
mod tool;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures_util::FutureExt;
use prost::Message;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::decide::refuse;
use super::server::Shared;
use super::work::Waited;
use super::{Identity, RequestError, deadline};
use crate::policy::{CallerRole, Snapshot};
use crate::telemetry::Rpc;
use crate::tools::{InterceptRequestError, Outcome, ToolEngine};

pub use message::judge_message;
pub use params::judge_params;
pub use tool::judge_tool;

pub(super) use message::call as intercept_message;
pub(super) use params::call as intercept_params;
pub(super) use tool::call as intercept_tool;

/// Under what a request is judged.
#[derive(Clone, Copy, Debug)]
pub struct Judge<'j> {
    /// The engine.
    pub engine: &'j ToolEngine,
    /// Rules and policies.
    pub snapshot: &'j Snapshot,
    /// Roles of the caller.
    pub roles: &'j [CallerRole],
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
}

/// An answer, and the outcome that it tells.
#[derive(Debug)]
pub struct Judged<R> {
    /// The answer.
    pub response: R,
    /// What became of the call; its texts are in the answer.
    pub outcome: Outcome,
}

fn decision_id() -> String {
    Uuid::now_v7().to_string()
}

impl From<InterceptRequestError> for RequestError {
    fn from(error: InterceptRequestError) -> Self {
        match error {
            InterceptRequestError::Field { field, message } => Self::field(field, message),
            InterceptRequestError::PolicyNotAllowed { name } => Self::PolicyNotAllowed { name },
            InterceptRequestError::DeadlineExceeded => Self::DeadlineExceeded,
            InterceptRequestError::NotPrepared => Self::Internal,
        }
    }
}

/// A request as it came, with who sent it.
struct Received<Q> {
    identity: Identity,
    deadline: Option<Instant>,
    started: Instant,
    request: Q,
}

/// Who calls and until when; refuses what is too large.
fn receive<Q: Message>(shared: &Shared, rpc: Rpc, request: Request<Q>) -> Result<Received<Q>, Status> {
    let started = Waited::came(&request);
    let refused = |error: RequestError| {
        refuse(shared, rpc, &error);
        error.to_status()
    };
    let identity = Identity::of(&request).map_err(refused)?;
    let deadline = deadline::of(&request);
    let request = request.into_inner();
    let found = request.encoded_len();
    if found > shared.request_bytes_max {
        return Err(refused(RequestError::TooLarge {
            what: "the request",
            found: found as u64,
            limit: shared.request_bytes_max as u64,
            setting: "server.request_bytes_max",
        }));
    }
    Ok(Received { identity, deadline, started, request })
}

/// The answer of `judging`; a panic and a refusal become a status, counted and logged.
async fn answer<R>(
    shared: &Shared,
    rpc: Rpc,
    judging: impl Future<Output = Result<R, RequestError>>,
) -> Result<Response<R>, Status> {
    let judged = AssertUnwindSafe(judging).catch_unwind().await;
    // The panic itself is in the log already; the caller must not take silence for safety.
    judged.unwrap_or(Err(RequestError::Internal)).map(Response::new).map_err(|error| {
        refuse(shared, rpc, &error);
        error.to_status()
    })
}
