//! `AuditService`: who changed what, and keeping those events that no store of another module keeps.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::convert::timestamp;
use super::server::Shared;
use super::{Identity, RequestError, page};
use crate::pb::v1;
use crate::pb::v1::audit_service_server::AuditService;
use crate::store::{AuditFilter, AuditQuery, AuditStore, KnownEnd, NewAuditEvent, Place};

/// Events on one page unless asked otherwise.
const PAGE_SIZE: usize = 50;
/// Most events on one page.
const PAGE_SIZE_MAX: usize = 1_000;
/// Most actions in one filter.
const ACTIONS_MAX: usize = 100;

/// The one thing that events can be ordered by.
const KEYS: [(&str, ()); 1] = [("time", ())];

/// The service.
pub(super) struct Audits(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl AuditService for Audits {
    async fn list_audit_events(
        &self,
        request: Request<v1::ListAuditEventsRequest>,
    ) -> Result<Response<v1::ListAuditEventsResponse>, Status> {
        let identity = Identity::of(&request).map_err(|error| error.to_status())?;
        identity.require_auditor().map_err(|error| error.to_status())?;
        let answer = list(&*self.0.events.0, identity.tenant(), request.into_inner()).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn verify_audit_chain(
        &self,
        request: Request<v1::VerifyAuditChainRequest>,
    ) -> Result<Response<v1::VerifyAuditChainResponse>, Status> {
        let identity = Identity::of(&request).map_err(|error| error.to_status())?;
        identity.require_auditor().map_err(|error| error.to_status())?;
        let answer = verify(&*self.0.events.0, identity.tenant(), request.into_inner()).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }
}

/// Whether the chain of a tenant is as it was written.
///
/// # Errors
/// The known end is wrong, or the store failed.
pub async fn verify(
    store: &dyn AuditStore,
    tenant: &str,
    request: v1::VerifyAuditChainRequest,
) -> Result<v1::VerifyAuditChainResponse, RequestError> {
    let hash = request.known_hash.to_ascii_lowercase();
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if (request.known_length > 0) != is_hash || (request.known_length == 0 && !hash.is_empty()) {
        let message = "must be 64 hexadecimal digits where known_length is set, and empty where not";
        return Err(RequestError::field("known_hash", message));
    }
    let known = KnownEnd { length: request.known_length, last_hash: hash };
    let report = store.verify_audit(tenant.to_owned(), known).await?;
    if let Some(number) = report.broken_at {
        tracing::error!(tenant, number, length = report.length, "the chain of audit events is broken");
    }
    Ok(v1::VerifyAuditChainResponse {
        length: report.length,
        last_hash: report.last_hash,
        broken_at: report.broken_at.unwrap_or_default(),
    })
}

/// One page of the events of a tenant.
///
/// # Errors
/// A filter, the order or the token is wrong, or the store failed.
pub async fn list(
    store: &dyn AuditStore,
    tenant: &str,
    request: v1::ListAuditEventsRequest,
) -> Result<v1::ListAuditEventsResponse, RequestError> {
    let filter = filter(&request)?;
    let ((), is_descending) = page::order(&request.order_by, "time desc", &KEYS)?;
    let list = format!("audit {tenant:?} {filter:?} {is_descending}");
    let after = page::place(&request.page_token, &list)?.map(|(value, id)| Place { value, id });
    let limit = page::size(request.page_size, PAGE_SIZE, PAGE_SIZE_MAX);
    let query = AuditQuery { tenant: tenant.to_owned(), filter, is_descending, after, limit };
    let found = store.audit_events(query).await?;
    Ok(v1::ListAuditEventsResponse {
        next_page_token: found
            .next
            .map(|place| page::token(&place.value, &place.id, &list))
            .unwrap_or_default(),
        events: found.events.into_iter().map(event).collect(),
    })
}

fn filter(request: &v1::ListAuditEventsRequest) -> Result<AuditFilter, RequestError> {
    let mut actions = request.actions.clone();
    if actions.len() > ACTIONS_MAX {
        let message = format!("has {} entries, more than {ACTIONS_MAX}", actions.len());
        return Err(RequestError::field("actions", message));
    }
    if let Some(at) = actions.iter().position(String::is_empty) {
        return Err(RequestError::field(format!("actions[{at}]"), "is empty; leave it out"));
    }
    // A filter is a set, and the same set must give the same page token.
    actions.sort_unstable();
    actions.dedup();
    Ok(AuditFilter {
        actions,
        actor: request.actor.clone(),
        resource: request.resource.clone(),
        decision_id: request.decision_id.clone(),
        start: page::moment("start_time", request.start_time.as_ref())?,
        end: page::moment("end_time", request.end_time.as_ref())?,
    })
}

fn event(event: NewAuditEvent) -> v1::AuditEvent {
    v1::AuditEvent {
        id: event.id,
        time: Some(timestamp(event.time)),
        action: event.action,
        actor: event.actor,
        tenant: event.tenant,
        resource: event.resource,
        reason: event.reason,
        detail_json: event.detail_json,
        decision_id: event.decision_id,
        policy_revision: event.policy_revision,
        request_id: event.request_id,
    }
}

/// Keeps events about changes that other services make.
#[derive(Clone)]
pub struct AuditTrail(pub Arc<dyn AuditStore>);

/// One change that somebody made.
#[derive(Clone, Copy, Debug)]
pub struct Changed<'c> {
    /// What was done, such as `interceptor.added`.
    pub action: &'static str,
    /// What it was done to, as kind and id, such as `interceptor:…`.
    pub resource: &'c str,
    /// The reason that was given; may be empty.
    pub reason: &'c str,
    /// Revision of the policy in force; may be empty.
    pub policy_revision: &'c str,
    /// What else there is to know, a JSON object without secrets; `None` for nothing.
    pub detail: Option<&'c Value>,
}

/// Who acts where nobody asked.
const SYSTEM: &str = "system";

impl AuditTrail {
    /// Keeps one event. The change itself is made already, so a failure is told in the log only.
    pub async fn append(&self, identity: &Identity, changed: Changed<'_>) {
        self.append_of((identity.name(), identity.tenant(), identity.request_id()), changed).await;
    }

    /// Keeps one event of what the service did by itself, for the default tenant, which has what belongs to no other.
    pub async fn append_own(&self, changed: Changed<'_>) {
        self.append_of((SYSTEM, "", ""), changed).await;
    }

    async fn append_of(&self, (actor, tenant, request_id): (&str, &str, &str), changed: Changed<'_>) {
        let event = NewAuditEvent {
            id: Uuid::now_v7().to_string(),
            time: Timestamp::now(),
            action: changed.action.to_owned(),
            actor: actor.to_owned(),
            tenant: tenant.to_owned(),
            resource: changed.resource.to_owned(),
            reason: changed.reason.to_owned(),
            policy_revision: changed.policy_revision.to_owned(),
            request_id: request_id.to_owned(),
            detail_json: changed.detail.map(Value::to_string).unwrap_or_default(),
            ..NewAuditEvent::default()
        };
        if let Err(error) = self.0.append_audit(vec![event]).await {
            tracing::error!(%error, action = changed.action, "an audit event could not be kept");
        }
    }
}
