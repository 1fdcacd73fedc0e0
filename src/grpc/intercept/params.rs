//! `InterceptParams`.

use tonic::{Request, Response, Status};

use super::event::{self, About};
use super::tool::reason;
use super::{Judge, Judged, answer, convert, decision_id, receive};
use crate::decision::{Decision, Hook};
use crate::grpc::RequestError;
use crate::grpc::convert::{decision, offset_encoding};
use crate::grpc::server::Shared;
use crate::pb::v1;
use crate::telemetry::Rpc;
use crate::tools::Common;

const RPC: Rpc = Rpc::InterceptParams;

/// Answers one request.
pub(in crate::grpc) async fn call(
    shared: &Shared,
    request: Request<v1::InterceptParamsRequest>,
) -> Result<Response<v1::InterceptParamsResponse>, Status> {
    let mut received = receive(shared, RPC, request)?;
    // By itself, since the futures around it would each hold and move all of it.
    let judging = Box::pin(async {
        let asked = &mut received.request;
        let snapshot = shared.live.snapshot().ok_or(RequestError::NotServing)?;
        let policies = snapshot.policies();
        received.identity.settle(policies, "context.tenant", &mut asked.context, &mut asked.policy)?;
        let texts = event::texts(shared, [("/message", &asked.message)]);
        let judge = Judge {
            engine: &shared.tools,
            snapshot: &snapshot,
            roles: received.identity.roles,
            deadline: received.deadline,
        };
        let (context, dry_run) = (received.request.context.clone(), received.request.dry_run);
        let Judged { response, outcome } = judge_params(judge, received.request).await?;
        let about = About {
            rpc: RPC,
            hook: Hook::ParamsBefore,
            tool_sent: "",
            tool_call_id: "",
            dry_run,
            identity: &received.identity,
            context: context.as_ref(),
            decision_id: &response.decision_id,
            revision: snapshot.revision(),
            started: received.started,
            texts,
            snapshot: &snapshot,
        };
        event::emit(shared, &about, &outcome, response.mutated);
        Ok(response)
    });
    answer(shared, RPC, judging).await
}

/// Judges one request, without counting or recording it.
///
/// # Errors
/// Why there is no decision.
pub async fn judge_params(
    judge: Judge<'_>,
    mut request: v1::InterceptParamsRequest,
) -> Result<Judged<v1::InterceptParamsResponse>, RequestError> {
    let id = decision_id();
    let params = convert::params(request.params.take());
    let mut outcome = {
        let common = Common {
            policy: &request.policy,
            caller_roles: judge.roles,
            context: convert::context(request.context.as_ref()),
            metadata_json: &request.metadata_json,
            encoding: offset_encoding(request.offset_encoding)?,
            dry_run: request.dry_run,
            decision_id: &id,
            deadline: judge.deadline,
        };
        judge.engine.intercept_params(judge.snapshot, common, &request.message, &params).await?
    };
    let mutated = outcome.mutated();
    let told = convert::told(&outcome, request.verbose);
    let changed_fields = outcome.changed_fields.iter().map(|field| (*field).to_owned()).collect();
    let params = match (outcome.verdict.decision, outcome.params.take()) {
        (Decision::Block, _) => None,
        (_, Some(changed)) => Some(convert::wire_params(changed)),
        (_, None) => Some(convert::wire_params(params)),
    };
    let response = v1::InterceptParamsResponse {
        decision: decision(outcome.verdict.decision).into(),
        mutated,
        block_reason: reason(&outcome),
        metadata_json: convert::metadata(request.metadata_json, &mut outcome),
        events: told.events,
        findings: told.findings,
        unjudged: told.unjudged,
        decision_id: id,
        policy_revision: judge.snapshot.revision().to_string(),
        params,
        changed_fields,
    };
    Ok(Judged { response, outcome })
}
