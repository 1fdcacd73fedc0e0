//! `InterceptTool`.

use std::mem;

use tonic::{Request, Response, Status};

use super::event::{self, About};
use super::{Judge, Judged, answer, convert, decision_id, receive};
use crate::decision::{Decision, Hook};
use crate::grpc::RequestError;
use crate::grpc::convert::{decision, offset_encoding};
use crate::grpc::server::Shared;
use crate::pb::v1;
use crate::telemetry::Rpc;
use crate::tools::{Common, Outcome, ToolRequest};

const RPC: Rpc = Rpc::InterceptTool;

/// Answers one request.
pub(in crate::grpc) async fn call(
    shared: &Shared,
    request: Request<v1::InterceptToolRequest>,
) -> Result<Response<v1::InterceptToolResponse>, Status> {
    let mut received = receive(shared, RPC, request)?;
    // By itself, since the futures around it would each hold and move all of it.
    let judging = Box::pin(async {
        let asked = &mut received.request;
        let snapshot = shared.live.snapshot().ok_or(RequestError::NotServing)?;
        let policies = snapshot.policies();
        received.identity.settle(policies, "context.tenant", &mut asked.context, &mut asked.policy)?;
        let texts =
            event::texts(shared, [("/args_json", &asked.args_json), ("/result_json", &asked.result_json)]);
        let judge = Judge {
            engine: &shared.tools,
            snapshot: &snapshot,
            roles: received.identity.roles,
            deadline: received.deadline,
        };
        let mut request = received.request;
        let context = mem::take(&mut request.context);
        request.context.clone_from(&context);
        let (tool_call_id, dry_run) = (request.tool_call_id.clone(), request.dry_run);
        let tool_sent = request.tool_name.clone();
        let hook = convert::hook_of_phase(request.phase)?;
        let Judged { response, outcome } = judge_tool(judge, request).await?;
        let about = About {
            rpc: RPC,
            hook,
            tool_sent: &tool_sent,
            tool_call_id: &tool_call_id,
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
pub async fn judge_tool(
    judge: Judge<'_>,
    mut request: v1::InterceptToolRequest,
) -> Result<Judged<v1::InterceptToolResponse>, RequestError> {
    let hook = convert::hook_of_phase(request.phase)?;
    let id = decision_id();
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
        let tool = ToolRequest {
            hook,
            tool_name: &request.tool_name,
            tool_call_id: &request.tool_call_id,
            args_json: &request.args_json,
            result_json: &request.result_json,
            is_error: request.is_error,
            environment: request.environment.as_ref().map(convert::environment),
        };
        judge.engine.intercept_tool(judge.snapshot, common, tool).await?
    };
    let mutated = outcome.mutated();
    let told = convert::told(&outcome, request.verbose);
    let blocked = outcome.verdict.decision == Decision::Block;
    let text = |changed: &mut Option<String>, sent: &mut String, has_it: bool| {
        if blocked || !has_it { String::new() } else { changed.take().unwrap_or_else(|| mem::take(sent)) }
    };
    let mut args_json = text(&mut outcome.args_json, &mut request.args_json, hook == Hook::ToolBefore);
    if args_json.is_empty() && !blocked && hook == Hook::ToolBefore {
        args_json.push_str("{}");
    }
    let response = v1::InterceptToolResponse {
        decision: decision(outcome.verdict.decision).into(),
        tool_name: outcome.tool.clone(),
        args_json,
        result_json: text(&mut outcome.result_json, &mut request.result_json, hook == Hook::ToolAfter),
        mutated,
        block_reason: reason(&outcome),
        blocked_result_json: if blocked { blocked_result(&outcome) } else { String::new() },
        events: told.events,
        findings: told.findings,
        unjudged: told.unjudged,
        decision_id: id,
        policy_revision: judge.snapshot.revision().to_string(),
        metadata_json: convert::metadata(request.metadata_json, &mut outcome),
    };
    Ok(Judged { response, outcome })
}

/// Why it is blocked, or why a person must approve.
pub(super) fn reason(outcome: &Outcome) -> String {
    match outcome.verdict.decision {
        Decision::Ask | Decision::Block => outcome.reason.clone(),
        Decision::Allow | Decision::Warn => String::new(),
    }
}

/// What the agent gets in place of a result.
fn blocked_result(outcome: &Outcome) -> String {
    serde_json::json!({ "status": "blocked", "tool": outcome.tool, "reason": outcome.reason }).to_string()
}
