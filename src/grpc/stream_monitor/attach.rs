//! The first message of a session: who attaches, under which policy, to watch what.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use uuid::Uuid;

use super::Monitor;
use crate::audit::masked_name;
use crate::decision::Caller;
use crate::detect::Scanner;
use crate::grpc::incident_convert::{caller, work};
use crate::grpc::{Identity, RequestError};
use crate::monitor::{Attachment, Effect, Ids, Keeper, Plan, Session};
use crate::pb::v1;

/// Longest id of a session that a client may choose, in bytes.
const SESSION_ID_BYTES_MAX: usize = 256;

/// Largest Attach, in bytes: it is kept for as long as the session lasts, and its work context with every incident.
const ATTACH_BYTES_MAX: usize = 64 * 1024;

/// Ids of a running service.
struct NewIds;

impl Ids for NewIds {
    fn next(&mut self) -> Arc<str> {
        Uuid::now_v7().to_string().into()
    }

    fn passed(&self, since: Duration) -> Duration {
        crate::monitor::now().monotonic.saturating_sub(since)
    }
}

/// A session that has begun.
pub(super) struct Begun {
    pub(super) session: Session,
    pub(super) effects: Vec<Effect>,
    pub(super) keeper: Keeper,
}

/// Begins a session.
///
/// # Errors
/// A field is wrong, the policy is not for this caller, or nothing is loaded.
pub(super) fn begin(
    monitor: &Monitor,
    identity: &Identity,
    mut attach: v1::Attach,
) -> Result<Begun, RequestError> {
    let size = attach.encoded_len();
    if size > ATTACH_BYTES_MAX {
        let message = format!("has {size} bytes, more than {ATTACH_BYTES_MAX}; shorten the work context");
        return Err(RequestError::field("attach", message));
    }
    if attach.session_id.len() > SESSION_ID_BYTES_MAX {
        let message = format!("has {} bytes, more than {SESSION_ID_BYTES_MAX}", attach.session_id.len());
        return Err(RequestError::field("attach.session_id", message));
    }
    let snapshot = monitor.live.snapshot().ok_or(RequestError::NotServing)?;
    let policies = snapshot.policies();
    identity.settle(policies, "attach.context.tenant", &mut attach.context, &mut attach.policy)?;
    let policy = identity.named_policy(policies, "attach.policy", &attach.policy)?;
    let session_id = match attach.session_id {
        id if id.is_empty() => Uuid::now_v7().to_string(),
        id => masked_name(snapshot.scanner(), &id).into_owned(),
    };
    let attachment = Attachment {
        session_id: session_id.into(),
        work: attach.work.map(work),
        context: attach.context.map(|context| masked_caller(snapshot.scanner(), context)),
        acks: attach.acks,
        policy_revision: snapshot.revision().clone(),
        has_judge: monitor.judge.is_some(),
    };
    let keeper = Keeper::new(
        monitor.incidents.clone(),
        monitor.audit.clone(),
        monitor.metrics.clone(),
        identity.tenant().into(),
        identity.credential().map_or("", |known| &known.name).into(),
        identity.role_names(),
        policy.name().clone(),
    );
    let plan = Plan::of(&snapshot, policy.name()).ok_or(RequestError::NotServing)?;
    let mut effects = Vec::new();
    let session = Session::attach(attachment, plan, monitor.config.limits(), Box::new(NewIds), &mut effects);
    Ok(Begun { session, effects, keeper })
}

/// Who asks, as incidents keep it: without the credentials and personal data that it holds.
fn masked_caller(scanner: &Scanner, mut context: v1::CallContext) -> Arc<Caller> {
    let mask = |text: &mut String| {
        if let Cow::Owned(masked) = masked_name(scanner, text) {
            *text = masked;
        }
    };
    let v1::CallContext { agent_id, session_key, tenant, request_id, labels } = &mut context;
    [agent_id, session_key, tenant, request_id].into_iter().for_each(mask);
    // Names too: people put keys into any field.
    *labels = std::mem::take(labels)
        .into_iter()
        .map(|(mut name, mut value)| {
            mask(&mut name);
            mask(&mut value);
            (name, value)
        })
        .collect();
    caller(context)
}
