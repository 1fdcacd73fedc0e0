//! `CheckMessages`.

use tonic::{Request, Response, Status};

use super::Identity;
use super::deadline;
use super::decide::{decide, refuse};
use super::server::Shared;
use super::work::Waited;
use crate::pb::v1;
use crate::telemetry::Rpc;

const RPC: Rpc = Rpc::CheckMessages;

/// Answers one request.
pub(super) async fn call(
    shared: &Shared,
    request: Request<v1::CheckMessagesRequest>,
) -> Result<Response<v1::CheckMessagesResponse>, Status> {
    let identity = Identity::of(&request).map_err(|error| {
        refuse(shared, RPC, &error);
        error.to_status()
    })?;
    let deadline = deadline::of(&request);
    let came = Waited::came(&request);
    match decide(shared, RPC, &identity, deadline, came, request.into_inner()).await {
        Ok(response) => Ok(Response::new(response)),
        Err(error) => Err(error.to_status()),
    }
}
