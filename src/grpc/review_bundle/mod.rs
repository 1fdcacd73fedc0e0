//! `ReviewBundle`: the upload of a bundle, from its first message to the answer.

mod event;
mod header;
mod receive;

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures_util::FutureExt as _;
use tonic::{Request, Response, Status, Streaming};
use uuid::Uuid;

use super::decide::refuse;
use super::server::Shared;
use super::{Identity, RequestError, deadline, submission_convert};
use crate::audit::masked_name;
use crate::bundles::service::{Actor, Upload};
use crate::pb::v1;
use crate::policy::{CallerRole, Snapshot};
use crate::telemetry::{OverloadShed, Rpc, ShedReason};
use event::About;
use header::Header;
use receive::Reader;

const RPC: Rpc = Rpc::ReviewBundle;

/// Answers one upload.
pub(super) async fn call(
    shared: &Shared,
    request: Request<Streaming<v1::ReviewBundleRequest>>,
) -> Result<Response<v1::ReviewBundleResponse>, Status> {
    let reviewing = AssertUnwindSafe(review(shared, request)).catch_unwind().await;
    // The panic itself is in the log already; the caller must not take silence for safety.
    reviewing.unwrap_or(Err(Refused::Error(RequestError::Internal))).map(Response::new).map_err(|refused| {
        let error = match refused {
            Refused::Error(error) => {
                refuse(shared, RPC, &error);
                error
            }
            Refused::Shed => {
                OverloadShed { rpc: RPC, reason: ShedReason::Places }.emit(&shared.metrics);
                RequestError::Overloaded
            }
        };
        error.to_status()
    })
}

/// Why there is no answer.
enum Refused {
    /// The caller did something wrong, or we did.
    Error(RequestError),
    /// Too many uploads at once.
    Shed,
}

impl From<RequestError> for Refused {
    fn from(error: RequestError) -> Self {
        Self::Error(error)
    }
}

async fn review(
    shared: &Shared,
    request: Request<Streaming<v1::ReviewBundleRequest>>,
) -> Result<v1::ReviewBundleResponse, Refused> {
    let started = Instant::now();
    let identity = Identity::of(&request)?;
    let deadline = deadline::of(&request);
    let Ok(_place) = shared.uploads.places.clone().try_acquire_owned() else { return Err(Refused::Shed) };
    let judged = judge(shared, &identity, started, request.into_inner());
    let answer = match deadline {
        // What is under way is dropped, and with it its file.
        Some(until) => tokio::time::timeout_at(until.into(), judged)
            .await
            .unwrap_or(Err(RequestError::DeadlineExceeded))?,
        None => judged.await?,
    };
    Ok(answer)
}

async fn judge(
    shared: &Shared,
    identity: &Identity,
    started: Instant,
    messages: Streaming<v1::ReviewBundleRequest>,
) -> Result<v1::ReviewBundleResponse, RequestError> {
    let limits = &shared.uploads;
    let mut reader = Reader::new(messages, shared.request_bytes_max, limits.idle_timeout, limits.timeout);
    let header = reader.header().await?;
    let snapshot = shared.live.snapshot().ok_or(RequestError::NotServing)?;
    let header = Header::read(header, identity, &snapshot, shared.submissions.limits().packed_max)?;
    let mut actor = header.actor(identity);
    actor.request_id = masked_name(snapshot.scanner(), &actor.request_id).into_owned();
    let entity_id = header.entity_id.as_deref();
    let snapshot = shared.live.snapshot().ok_or(RequestError::NotServing)?;
    let submissions = &shared.submissions;
    submissions
        .admit(&actor, &header.submitter, &header.name, header.kind, entity_id, header.is_dry_run)
        .await?;
    let spooled = reader.receive(submissions.spool(), &header, submissions.limits().packed_max).await?;
    let decision_id = Uuid::now_v7().to_string();
    let upload = Upload {
        spooled,
        kind: header.kind,
        name: header.name.clone(),
        submitter: header.submitter.clone(),
        entity_id: header.entity_id.clone(),
        policy: header.policy.clone(),
        dry_run: header.is_dry_run,
        decision_id: decision_id.clone(),
    };
    let reviewed = submissions.submit(&actor, upload).await?;
    let scanner = snapshot.scanner();
    let about = About { identity, header: &header, decision_id: &decision_id, started, scanner };
    event::emit(shared, &about, &reviewed);
    Ok(submission_convert::reviewed(reviewed))
}

/// Checks an archive that is all there, and keeps nothing of it: no row, no bytes, no record.
///
/// # Errors
/// The caller may not upload such a thing, or too much is going on.
pub(super) async fn try_out(
    shared: &Shared,
    identity: &Identity,
    snapshot: &Snapshot,
    kind: v1::BundleKind,
    policy: &str,
    bytes: Vec<u8>,
) -> Result<v1::ReviewBundleResponse, RequestError> {
    let Ok(_place) = shared.uploads.places.clone().try_acquire_owned() else {
        return Err(RequestError::Overloaded);
    };
    let told = v1::BundleHeader {
        kind: kind.into(),
        size: bytes.len() as u64,
        dry_run: true,
        policy: policy.to_owned(),
        ..Default::default()
    };
    let submissions = &shared.submissions;
    let header = Header::read(told, identity, snapshot, submissions.limits().packed_max)?;
    let failed = |error: std::io::Error| {
        tracing::error!(%error, "an archive could not be written down to be checked");
        RequestError::StoreUnavailable
    };
    let spool = submissions.spool().clone();
    let writing = tokio::task::spawn_blocking(move || {
        let mut spooling = spool.begin()?;
        spooling.write(&bytes)?;
        Ok(spooling.finish())
    });
    let spooled = writing.await.map_err(|_| RequestError::Internal)?.map_err(failed)?;
    let upload = Upload {
        spooled,
        kind: header.kind,
        name: String::new(),
        submitter: header.submitter.clone(),
        entity_id: None,
        policy: header.policy.clone(),
        dry_run: true,
        decision_id: String::new(),
    };
    let reviewed = submissions.submit(&header.actor(identity), upload).await?;
    Ok(submission_convert::reviewed(reviewed))
}

impl Identity {
    /// The caller as the life of submissions knows it. `request_id` is what the request itself says; where that is empty
    /// the metadata of the call says it.
    pub fn actor(&self, request_id: &str) -> Actor {
        let request_id = if request_id.is_empty() { self.request_id() } else { request_id };
        Actor {
            name: self.name().to_owned(),
            tenant: self.tenant().to_owned(),
            is_admin: self.is_admin(),
            is_auditor: self.has(CallerRole::Auditor),
            blocked_quota_per_day: self.credential().and_then(|known| known.terms.blocked_quota_per_day),
            request_id: request_id.to_owned(),
        }
    }
}
