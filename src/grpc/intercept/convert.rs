//! Between the contract and the tool engine's types.

use std::collections::BTreeMap;

use pbjson_types::Duration;

use crate::decision::{Hook, InterceptorOutcome};
use crate::grpc::RequestError;
use crate::grpc::convert;
use crate::pb::v1;
use crate::policy::Params;
use crate::tools::{Context, EnvironmentRequest, Outcome, Ran};

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// Who asks.
pub(super) fn context(context: Option<&v1::CallContext>) -> Context<'_> {
    match context {
        Some(context) => Context {
            agent_id: &context.agent_id,
            session_key: &context.session_key,
            tenant: &context.tenant,
            request_id: &context.request_id,
            labels: &context.labels,
        },
        None => Context { agent_id: "", session_key: "", tenant: "", request_id: "", labels: &NO_LABELS },
    }
}

/// Where a tool would run.
pub(super) fn environment(environment: &v1::ExecutionContext) -> EnvironmentRequest<'_> {
    EnvironmentRequest {
        cwd: &environment.cwd,
        home: &environment.home,
        os: &environment.os,
        workspace_roots: &environment.workspace_roots,
        resolved_paths: &environment.resolved_paths,
    }
}

/// The hook of a phase.
pub(super) fn hook_of_phase(phase: i32) -> Result<Hook, RequestError> {
    match v1::ToolPhase::try_from(phase) {
        Ok(v1::ToolPhase::Before) => Ok(Hook::ToolBefore),
        Ok(v1::ToolPhase::After) => Ok(Hook::ToolAfter),
        Ok(v1::ToolPhase::Unspecified) => {
            Err(RequestError::field("phase", "is not set; send BEFORE or AFTER"))
        }
        Err(_) => Err(RequestError::field("phase", format!("{phase} is no ToolPhase"))),
    }
}

/// Parameters as the engine has them.
pub(super) fn params(params: Option<v1::Params>) -> Params {
    let params = params.unwrap_or_default();
    Params {
        provider: params.provider,
        model: params.model,
        think_level: params.think_level,
        reasoning_level: params.reasoning_level,
        temperature: params.temperature,
    }
}

/// Parameters on the wire.
pub(super) fn wire_params(params: Params) -> v1::Params {
    v1::Params {
        provider: params.provider,
        model: params.model,
        think_level: params.think_level,
        reasoning_level: params.reasoning_level,
        temperature: params.temperature,
    }
}

/// A hook on the wire.
pub(in crate::grpc) fn hook(hook: Hook) -> v1::Hook {
    match hook {
        Hook::MessageBefore => v1::Hook::MessageBefore,
        Hook::ParamsBefore => v1::Hook::ParamsBefore,
        Hook::ToolBefore => v1::Hook::ToolBefore,
        Hook::ToolAfter => v1::Hook::ToolAfter,
    }
}

/// What every Intercept answer tells besides its decision and texts.
pub(super) struct Told {
    pub events: Vec<v1::InterceptorEvent>,
    pub findings: Vec<v1::Finding>,
    pub unjudged: Vec<v1::Unjudged>,
}

/// What `outcome` tells; events where they were asked for.
pub(super) fn told(outcome: &Outcome, verbose: bool) -> Told {
    let events = outcome.ran.iter().filter(|ran| verbose && ran.is_told()).map(event);
    let findings = outcome.reported.iter().cloned().map(|reported| {
        let has_place = !reported.finding.span.path.is_empty();
        let mut finding = convert::finding(reported);
        finding.span = finding.span.filter(|_| has_place);
        finding
    });
    Told {
        events: events.collect(),
        findings: findings.collect(),
        unjudged: outcome.unjudged.iter().cloned().map(convert::unjudged).collect(),
    }
}

fn event(ran: &Ran) -> v1::InterceptorEvent {
    v1::InterceptorEvent {
        interceptor_id: ran.interceptor.id.to_string(),
        hook: hook(ran.interceptor.hook).into(),
        outcome: outcome(ran.outcome).into(),
        summary: ran.summary.clone(),
        elapsed: Some(Duration {
            seconds: i64::try_from(ran.elapsed.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(ran.elapsed.subsec_nanos()).unwrap_or(0),
        }),
        shadow: ran.shadow,
    }
}

fn outcome(outcome: InterceptorOutcome) -> v1::InterceptorOutcome {
    match outcome {
        InterceptorOutcome::Passed => v1::InterceptorOutcome::Passed,
        InterceptorOutcome::Modified => v1::InterceptorOutcome::Modified,
        InterceptorOutcome::Asked => v1::InterceptorOutcome::Asked,
        InterceptorOutcome::Blocked => v1::InterceptorOutcome::Blocked,
        InterceptorOutcome::Error => v1::InterceptorOutcome::Error,
        InterceptorOutcome::Timeout => v1::InterceptorOutcome::Timeout,
        InterceptorOutcome::Skipped => v1::InterceptorOutcome::Skipped,
    }
}

/// The metadata to hand on.
pub(super) fn metadata(sent: String, outcome: &mut Outcome) -> String {
    match outcome.metadata_json.take() {
        Some(changed) => changed,
        None if sent.trim().is_empty() => "{}".to_owned(),
        None => sent,
    }
}
