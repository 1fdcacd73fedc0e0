//! `agentgateway.dev.ext_mcp.ExtMcp`: calls of the Model Context Protocol, as the gateway agentgateway asks about them.
//!
//! `tools/call` is judged as `InterceptTool` does before a tool runs; changed arguments go back in `params`. Everything else
//! that is said, in `params` of other methods and in every result, is judged as `CheckMessages` does; a result comes back
//! with personal data and credentials replaced. The contract has no question, so ASK refuses, and no place for a warning.
//! The gateway's own context may name the policy (`portcullis_policy`) and the agent (`portcullis_agent_id`).
//! What the services refuse is a gRPC status, on which the gateway does what its failure mode says.
//!
//! Source: `crates/protos/proto/ext_mcp.proto` of <https://github.com/agentgateway/agentgateway>.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;
use tonic::{Request, Response, Status};

use super::deadline;
use super::local::{LocalCaller, LocalCalls, Refusal};
use crate::hooks;
use crate::pb::ext_mcp::authorization_error::Code;
use crate::pb::ext_mcp::ext_mcp_server::ExtMcp;
use crate::pb::ext_mcp::{
    AuthorizationError, McpRequest, McpRequestResult, McpResponse, McpResponseResult, Pass,
    mcp_request_result, mcp_response_result,
};
use crate::pb::v1::{self, Decision};

/// The method that runs a tool.
const TOOLS_CALL: &str = "tools/call";
/// How long an answer may take when the gateway does not say.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The service.
pub(super) struct Guarding(pub(super) LocalCalls);

/// What becomes of JSON that was asked about.
enum Judged {
    Passes,
    Changed(String),
    Refused(AuthorizationError),
}

/// `params` of `tools/call`, as far as they are read. A member given twice is an error.
#[derive(Deserialize)]
struct ToolParams {
    name: String,
    arguments: Option<Box<RawValue>>,
}

/// Who asks, and under which policy.
struct Asked {
    caller: LocalCaller,
    policy: String,
    agent_id: String,
}

impl Asked {
    /// Reads the gateway's own context. A word that is something else is refused: it would change who decides.
    fn of(caller: LocalCaller, context: Option<&pbjson_types::Struct>) -> Result<Self, AuthorizationError> {
        let word = |name: &str| match context.and_then(|context| context.fields.get(name)?.kind.as_ref()) {
            Some(pbjson_types::value::Kind::StringValue(text)) => Ok(text.clone()),
            None | Some(pbjson_types::value::Kind::NullValue(_)) => Ok(String::new()),
            Some(_) => Err(error(Code::Invalid, format!("metadata_context.{name} must be a string"))),
        };
        Ok(Self { caller, policy: word("portcullis_policy")?, agent_id: word("portcullis_agent_id")? })
    }

    fn context(&self) -> v1::CallContext {
        v1::CallContext { agent_id: self.agent_id.clone(), ..Default::default() }
    }
}

#[tonic::async_trait]
impl ExtMcp for Guarding {
    async fn check_request(
        &self,
        request: Request<McpRequest>,
    ) -> Result<Response<McpRequestResult>, Status> {
        let caller = caller(&request);
        let request = request.into_inner();
        let asked = Asked::of(caller, request.metadata_context.as_ref());
        let params = text(request.mcp_request.as_deref().unwrap_or_default());
        let judged = match params.and_then(|params| Ok((asked?, params))) {
            Err(error) => Judged::Refused(error),
            Ok((asked, params)) => {
                if request.method == TOOLS_CALL {
                    self.tool(&asked, params).await?
                } else {
                    self.said(&asked, params, "assistant", v1::Direction::Output).await?
                }
            }
        };
        let result = match judged {
            Judged::Passes => mcp_request_result::Result::Pass(Pass {}),
            Judged::Changed(json) => mcp_request_result::Result::Mutated(json.into()),
            Judged::Refused(error) => mcp_request_result::Result::Error(error),
        };
        Ok(Response::new(McpRequestResult { result: Some(result) }))
    }

    async fn check_response(
        &self,
        request: Request<McpResponse>,
    ) -> Result<Response<McpResponseResult>, Status> {
        let caller = caller(&request);
        let request = request.into_inner();
        let asked = Asked::of(caller, request.metadata_context.as_ref());
        let judged = match text(&request.mcp_response).and_then(|result| Ok((asked?, result))) {
            Err(error) => Judged::Refused(error),
            Ok((asked, result)) => self.said(&asked, result, "tool", v1::Direction::Input).await?,
        };
        let result = match judged {
            Judged::Passes => mcp_response_result::Result::Pass(Pass {}),
            Judged::Changed(json) => mcp_response_result::Result::Mutated(json.into()),
            Judged::Refused(error) => mcp_response_result::Result::Error(error),
        };
        Ok(Response::new(McpResponseResult { result: Some(result) }))
    }
}

impl Guarding {
    /// Whether a tool may run.
    async fn tool(&self, asked: &Asked, params: &str) -> Result<Judged, Status> {
        let (named, mut members) = match (
            serde_json::from_str::<ToolParams>(params),
            serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(params),
        ) {
            (Ok(named), Ok(members)) => (named, members),
            (Err(error), _) | (_, Err(error)) => return Ok(invalid(&format!("params: {error}"))),
        };
        let args = named.arguments.as_deref().map_or("{}", RawValue::get);
        let request = v1::InterceptToolRequest {
            phase: v1::ToolPhase::Before.into(),
            tool_name: named.name,
            context: Some(asked.context()),
            policy: asked.policy.clone(),
            args_json: args.to_owned(),
            ..Default::default()
        };
        let path = "/portcullis.v1.PolicyDecisionService/InterceptTool";
        let answer: v1::InterceptToolResponse = match self.0.call(path, &asked.caller, &request).await {
            Ok(answer) => answer,
            Err(refusal) => return refused(refusal),
        };
        if !may_go_on(answer.decision()) {
            return Ok(denied(hooks::reason(&answer.block_reason, &answer.findings, &answer.unjudged)));
        }
        if answer.args_json == args {
            return Ok(Judged::Passes);
        }
        let internal = |_| Status::internal("the changed arguments cannot be passed on");
        let changed = RawValue::from_string(answer.args_json).map_err(internal)?;
        members.insert("arguments".to_owned(), changed);
        Ok(Judged::Changed(serde_json::to_string(&members).map_err(internal)?))
    }

    /// Whether JSON may go on.
    async fn said(
        &self,
        asked: &Asked,
        json: &str,
        role: &str,
        direction: v1::Direction,
    ) -> Result<Judged, Status> {
        if json.is_empty() {
            return Ok(Judged::Passes);
        }
        if let Err(error) = serde_json::from_str::<&RawValue>(json) {
            return Ok(invalid(&format!("not JSON: {error}")));
        }
        let mut parts = vec![v1::Part { part: Some(v1::part::Part::Json(json.to_owned())) }];
        parts.extend(media(json));
        let request = v1::CheckMessagesRequest {
            messages: vec![v1::Message {
                role: role.to_owned(),
                content: Some(v1::message::Content::Parts(v1::Parts { parts })),
                ..Default::default()
            }],
            context: Some(asked.context()),
            policy: asked.policy.clone(),
            redact: true,
            direction: direction.into(),
            ..Default::default()
        };
        let path = "/portcullis.v1.PolicyDecisionService/CheckMessages";
        let answer: v1::CheckMessagesResponse = match self.0.call(path, &asked.caller, &request).await {
            Ok(answer) => answer,
            Err(refusal) => return refused(refusal),
        };
        if !may_go_on(answer.decision()) {
            return Ok(denied(hooks::reason("", &answer.findings, &answer.unjudged)));
        }
        let masked = match answer.redacted_messages.first().and_then(|message| message.content.as_ref()) {
            Some(v1::message::Content::Parts(parts)) => match parts.parts.first() {
                Some(v1::Part { part: Some(v1::part::Part::Json(masked)) }) => masked,
                _ => return Err(Status::internal("the answer has another shape")),
            },
            _ => return Err(Status::internal("the answer has another shape")),
        };
        Ok(if masked == json { Judged::Passes } else { Judged::Changed(masked.clone()) })
    }
}

/// Images, sounds and files in a result, whose bytes are not looked into: they are listed as unjudged, and do what the
/// policy says.
fn media(json: &str) -> Vec<v1::Part> {
    let Ok(result) = serde_json::from_str::<serde_json::Value>(json) else { return Vec::new() };
    let mut found = Vec::new();
    let mut open = vec![&result];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Array(items) => open.extend(items),
            serde_json::Value::Object(members) => {
                let is_kind =
                    matches!(members.get("type").and_then(|kind| kind.as_str()), Some("image" | "audio"));
                if (is_kind && members.contains_key("data"))
                    || members.get("blob").is_some_and(|blob| blob.is_string())
                {
                    let mime_type = members.get("mimeType").and_then(|kind| kind.as_str()).unwrap_or("*/*");
                    let media = v1::MediaRef { mime_type: mime_type.to_owned(), ..Default::default() };
                    found.push(v1::Part { part: Some(v1::part::Part::Media(media)) });
                }
                open.extend(members.values());
            }
            _ => {}
        }
    }
    found
}

/// Who calls, and how long it waits.
fn caller<T>(request: &Request<T>) -> LocalCaller {
    let left = deadline::of(request).map(|at| at.saturating_duration_since(Instant::now()));
    let headers = request.metadata().clone().into_headers();
    LocalCaller::new(&headers, left.unwrap_or(TIMEOUT)).with_peer(request.extensions().get().cloned())
}

fn may_go_on(decision: Decision) -> bool {
    matches!(decision, Decision::Allow | Decision::Warn)
}

fn text(json: &[u8]) -> Result<&str, AuthorizationError> {
    std::str::from_utf8(json).map_err(|_| error(Code::Invalid, "not UTF-8".to_owned()))
}

fn error(code: Code, reason: String) -> AuthorizationError {
    AuthorizationError { code: code.into(), reason }
}

fn denied(reason: String) -> Judged {
    Judged::Refused(error(Code::PermissionDenied, reason))
}

fn invalid(reason: &str) -> Judged {
    Judged::Refused(error(Code::Invalid, format!("Portcullis: {reason}")))
}

/// What the services refuse: a call that cannot be read is refused in the words of the contract, the rest is a status.
fn refused(refusal: Refusal) -> Result<Judged, Status> {
    if refusal.code == crate::telemetry::Code::InvalidArgument {
        return Ok(invalid(&refusal.message));
    }
    Err(refusal.to_status())
}
