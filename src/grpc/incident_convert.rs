//! Incidents between the contract and the engine's types.

use std::sync::Arc;

use super::convert::{severity, timestamp};
use crate::decision::{
    Caller, Incident, IncidentAction, OutputStream, VerdictKind, VerdictSource, WorkContext,
};
use crate::pb::v1;

/// An incident on the wire.
pub(super) fn incident(incident: &Incident) -> v1::Incident {
    v1::Incident {
        id: incident.id.to_string(),
        session_id: incident.session_id.to_string(),
        time: Some(timestamp(incident.time)),
        rule_id: incident.rule_id.to_string(),
        category: incident.category.as_str().to_owned(),
        severity: severity(incident.severity).into(),
        stream: stream(incident.stream).into(),
        offset: incident.offset,
        matched_text: incident.matched_text.clone(),
        excerpt: incident.excerpt.to_string(),
        verdict: incident.verdict.map(verdict_kind).unwrap_or_default().into(),
        reason: incident.reason.clone(),
        source: incident.source.map(source).unwrap_or_default().into(),
        action: incident.action.map(action).unwrap_or_default().into(),
        latency: incident.latency.map(Into::into),
        false_positive: incident.false_positive,
        work: incident.work.as_deref().map(work_message),
        decision_id: incident.decision_id.to_string(),
        policy_revision: incident.policy_revision.to_string(),
        repeats: incident.repeats,
        context: incident.context.as_deref().map(context_message),
        shadow: incident.shadow,
        false_positive_reason: incident.false_positive_reason.clone(),
    }
}

pub(super) fn stream(stream: OutputStream) -> v1::OutputStream {
    match stream {
        OutputStream::Stdout => v1::OutputStream::Stdout,
        OutputStream::Stderr => v1::OutputStream::Stderr,
    }
}

pub(super) fn verdict_kind(kind: VerdictKind) -> v1::VerdictKind {
    match kind {
        VerdictKind::Safe => v1::VerdictKind::Safe,
        VerdictKind::Warn => v1::VerdictKind::Warn,
        VerdictKind::Kill => v1::VerdictKind::Kill,
    }
}

pub(super) fn source(source: VerdictSource) -> v1::VerdictSource {
    match source {
        VerdictSource::Rule => v1::VerdictSource::Rule,
        VerdictSource::Judge => v1::VerdictSource::Judge,
        VerdictSource::Policy => v1::VerdictSource::Policy,
        VerdictSource::FailMode => v1::VerdictSource::FailMode,
    }
}

fn action(action: IncidentAction) -> v1::IncidentAction {
    match action {
        IncidentAction::None => v1::IncidentAction::None,
        IncidentAction::Warned => v1::IncidentAction::Warned,
        IncidentAction::KillAdvised => v1::IncidentAction::KillAdvised,
        IncidentAction::Error => v1::IncidentAction::Error,
    }
}

fn work_message(work: &WorkContext) -> v1::WorkContext {
    v1::WorkContext {
        goal: work.goal.clone(),
        acceptance_criteria: work.acceptance_criteria.clone(),
        non_goals: work.non_goals.clone(),
        scope: work.scope.clone(),
        labels: work.labels.clone(),
    }
}

/// What the process was asked to do, as a session keeps it.
pub(super) fn work(message: v1::WorkContext) -> Arc<WorkContext> {
    let v1::WorkContext { goal, acceptance_criteria, non_goals, scope, labels } = message;
    Arc::new(WorkContext { goal, acceptance_criteria, non_goals, scope, labels })
}

fn context_message(caller: &Caller) -> v1::CallContext {
    v1::CallContext {
        agent_id: caller.agent_id.clone(),
        session_key: caller.session_key.clone(),
        tenant: caller.tenant.clone(),
        request_id: caller.request_id.clone(),
        labels: caller.labels.clone(),
    }
}

/// Who asks, as a session keeps it.
pub(super) fn caller(message: v1::CallContext) -> Arc<Caller> {
    let v1::CallContext { agent_id, session_key, tenant, request_id, labels } = message;
    Arc::new(Caller { agent_id, session_key, tenant, request_id, labels })
}
