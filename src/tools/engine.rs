//! The tool engine: one Intercept request to one outcome.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::call::{Call, Context, Environment, Part};
use super::chain::{self, Chained};
use super::event::Ran;
use super::json::{Document, Duplicates, JsonError};
use super::prepare::{PolicyTools, PreparedTools};
use super::registry::Registry;
use crate::decision::{Decision, Finding, Hook, Unjudged};
use crate::detect::{Reported, report_text};
use crate::paths::{Os, normalise, within};
use crate::policy::{CallerRole, Params, Policy, Snapshot, Verdict};
use crate::text::OffsetEncoding;

/// Text of a call from which it is judged off the asynchronous workers, in bytes.
const OFFLOAD_BYTES: usize = 64 * 1024;

/// Parameters of hooks that have none.
static NO_PARAMS: Params = Params {
    provider: String::new(),
    model: String::new(),
    think_level: String::new(),
    reasoning_level: String::new(),
    temperature: None,
};

/// What every Intercept request has.
#[derive(Clone, Copy, Debug)]
pub struct Common<'r> {
    /// Name of the policy; empty means `default`.
    pub policy: &'r str,
    /// Roles of the caller.
    pub caller_roles: &'r [CallerRole],
    /// Who asks.
    pub context: Context<'r>,
    /// Metadata of the run, a JSON object as text; empty means `{}`.
    pub metadata_json: &'r str,
    /// Unit of the offsets in the answer.
    pub encoding: OffsetEncoding,
    /// Whether nothing is to come of it but the report.
    pub dry_run: bool,
    /// Id of the decision.
    pub decision_id: &'r str,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
}

/// A tool call, before it runs or after.
#[derive(Clone, Copy, Debug)]
pub struct ToolRequest<'r> {
    /// [`Hook::ToolBefore`] or [`Hook::ToolAfter`].
    pub hook: Hook,
    /// Name of the tool as the agent knows it.
    pub tool_name: &'r str,
    /// Id of the call; may be empty.
    pub tool_call_id: &'r str,
    /// The arguments, a JSON object as text; empty means `{}`.
    pub args_json: &'r str,
    /// The result, JSON text; empty when there is none.
    pub result_json: &'r str,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Where the tool would run.
    pub environment: Option<EnvironmentRequest<'r>>,
}

/// Where a tool would run, as the caller states it.
#[derive(Clone, Copy, Debug)]
pub struct EnvironmentRequest<'r> {
    /// Working directory.
    pub cwd: &'r str,
    /// Home directory.
    pub home: &'r str,
    /// `linux`, `macos` or `windows`; empty means `linux`.
    pub os: &'r str,
    /// Folders the agent may change.
    pub workspace_roots: &'r [String],
    /// Path as written to the real path.
    pub resolved_paths: &'r BTreeMap<String, String>,
}

/// What became of a call. A text that is `None` stays as it was sent.
#[derive(Debug)]
pub struct Outcome {
    /// Decision and risk.
    pub verdict: Verdict,
    /// Why it is blocked, or why a person must approve; empty otherwise.
    pub reason: String,
    /// Normalised name of the tool; empty on hooks without one.
    pub tool: String,
    /// New arguments.
    pub args_json: Option<String>,
    /// New result.
    pub result_json: Option<String>,
    /// New message.
    pub message: Option<String>,
    /// New parameters.
    pub params: Option<Params>,
    /// Fields of the parameters that differ, in the order of the contract.
    pub changed_fields: Vec<&'static str>,
    /// New metadata.
    pub metadata_json: Option<String>,
    /// Every interceptor that matched, in running order.
    pub ran: Vec<Ran>,
    /// Findings in the order of the text, ready for the wire.
    pub reported: Vec<Reported>,
    /// What could not be judged.
    pub unjudged: Vec<Unjudged>,
    /// Notes for the audit record, with the interceptor that wrote them.
    pub notes: Vec<(Arc<str>, String)>,
    /// Interceptors and plugins that would have blocked, had they not been in shadow; each once.
    pub would_block: Vec<Arc<str>>,
    /// The policy that decided.
    pub policy: Arc<Policy>,
    /// Bytes of text that were judged.
    pub bytes: usize,
}

impl Outcome {
    /// Whether anything differs from the request.
    pub fn mutated(&self) -> bool {
        self.args_json.is_some()
            || self.result_json.is_some()
            || self.message.is_some()
            || self.params.is_some()
            || self.metadata_json.is_some()
    }
}

/// Why a request has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterceptRequestError {
    /// A field is wrong.
    #[error("{message}")]
    Field {
        /// Its path in the contract.
        field: &'static str,
        /// What is wrong and what to do.
        message: String,
    },
    /// The policy is not for callers of this role.
    #[error("policy `{name}` is not for your role")]
    PolicyNotAllowed {
        /// Its name.
        name: String,
    },
    /// The caller's deadline passed.
    #[error("the deadline passed before the call was judged")]
    DeadlineExceeded,
    /// The snapshot holds nothing for this engine: a fault of the program.
    #[error("nothing is prepared for interception")]
    NotPrepared,
}

impl InterceptRequestError {
    fn field(field: &'static str, message: impl Into<String>) -> Self {
        Self::Field { field, message: message.into() }
    }
}

/// Judges tool calls, messages and parameters. One per process, shared by all requests.
#[derive(Debug)]
pub struct ToolEngine {
    registry: Registry,
}

/// The policy of a request and what is compiled for it.
struct Plan<'s> {
    policy: &'s Arc<Policy>,
    tools: &'s PolicyTools,
}

impl ToolEngine {
    /// An engine over the interceptors of policies and of `registry`.
    pub fn new(registry: Registry) -> Self {
        Self { registry }
    }

    /// The interceptors that came by API.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Judges a tool call.
    ///
    /// # Errors
    /// See [`InterceptRequestError`]; a decision is never an error.
    pub async fn intercept_tool(
        &self,
        snapshot: &Snapshot,
        common: Common<'_>,
        request: ToolRequest<'_>,
    ) -> Result<Outcome, InterceptRequestError> {
        let plan = plan(snapshot, &common)?;
        if request.tool_name.trim().is_empty() {
            return Err(InterceptRequestError::field("tool_name", "is empty; name the tool"));
        }
        let args = object("args_json", request.args_json)?;
        let result = match (request.hook, request.result_json) {
            (_, "") => None,
            (Hook::ToolAfter, text) => {
                Some(Document::parse(text, Duplicates::Keep).map_err(|e| json_error("result_json", &e))?)
            }
            _ => {
                let message = "has no place in phase BEFORE; leave it empty";
                return Err(InterceptRequestError::field("result_json", message));
            }
        };
        let environment = request.environment.map(|e| environment(e, plan.policy)).transpose()?;
        let tool = plan.tools.names().normalise(request.tool_name);
        let bytes = request.args_json.len() + request.result_json.len();
        let call = Call {
            tool: &tool,
            tool_sent: request.tool_name,
            tool_call_id: request.tool_call_id,
            is_error: request.hook == Hook::ToolAfter && request.is_error,
            environment,
            args: Part { sent: request.args_json, now: args, changed: false },
            result: Part { sent: request.result_json, now: result, changed: false },
            ..blank(request.hook, snapshot, &plan, &common)?
        };
        self.judge(call, &plan, &common, bytes).await
    }

    /// Judges a message. `params` hold provider and model of who will read it.
    ///
    /// # Errors
    /// See [`InterceptRequestError`].
    pub async fn intercept_message(
        &self,
        snapshot: &Snapshot,
        common: Common<'_>,
        message: &str,
        params: &Params,
    ) -> Result<Outcome, InterceptRequestError> {
        let plan = plan(snapshot, &common)?;
        let call = Call {
            message: Part { sent: message, now: Cow::Borrowed(message), changed: false },
            params: Cow::Borrowed(params),
            params_sent: params,
            ..blank(Hook::MessageBefore, snapshot, &plan, &common)?
        };
        self.judge(call, &plan, &common, message.len()).await
    }

    /// Judges the parameters of a model call. `message` is read by conditions.
    ///
    /// # Errors
    /// See [`InterceptRequestError`].
    pub async fn intercept_params(
        &self,
        snapshot: &Snapshot,
        common: Common<'_>,
        message: &str,
        params: &Params,
    ) -> Result<Outcome, InterceptRequestError> {
        let plan = plan(snapshot, &common)?;
        params.check().map_err(|(field, message)| {
            let field = match field {
                "think_level" => "params.think_level",
                "reasoning_level" => "params.reasoning_level",
                _ => "params.temperature",
            };
            InterceptRequestError::field(field, message)
        })?;
        let call = Call {
            message: Part { sent: message, now: Cow::Borrowed(message), changed: false },
            params: Cow::Borrowed(params),
            params_sent: params,
            ..blank(Hook::ParamsBefore, snapshot, &plan, &common)?
        };
        self.judge(call, &plan, &common, message.len()).await
    }

    async fn judge(
        &self,
        mut call: Call<'_>,
        plan: &Plan<'_>,
        common: &Common<'_>,
        bytes: usize,
    ) -> Result<Outcome, InterceptRequestError> {
        let context = &common.context;
        let matching =
            self.registry.matching(plan.tools, call.hook, call.tool, context.agent_id, context.tenant);
        let offload = bytes >= OFFLOAD_BYTES
            && tokio::runtime::Handle::try_current()
                .is_ok_and(|h| h.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread);
        let chained = chain::run(&mut call, &matching, offload)
            .await
            .map_err(|_| InterceptRequestError::DeadlineExceeded)?;
        Ok(outcome(call, chained, plan.policy, common, bytes))
    }
}

fn plan<'s>(snapshot: &'s Snapshot, common: &Common<'_>) -> Result<Plan<'s>, InterceptRequestError> {
    let policies = snapshot.policies();
    let policy = policies.get(common.policy).ok_or_else(|| {
        let allowed = policies.iter().filter(|policy| policy.allows_caller(common.caller_roles));
        let known: Vec<_> = allowed.map(|policy| &**policy.name()).collect();
        let name: String = common.policy.chars().take(60).flat_map(char::escape_debug).collect();
        let message = format!("unknown policy `{name}`; known: {}", known.join(", "));
        InterceptRequestError::field("policy", message)
    })?;
    if !policy.allows_caller(common.caller_roles) {
        return Err(InterceptRequestError::PolicyNotAllowed { name: policy.name().to_string() });
    }
    let prepared = snapshot.prepared::<PreparedTools>().ok_or(InterceptRequestError::NotPrepared)?;
    let tools = prepared.policy(policy.name()).ok_or(InterceptRequestError::NotPrepared)?;
    Ok(Plan { policy, tools })
}

/// A call about nothing yet.
fn blank<'r>(
    hook: Hook,
    snapshot: &'r Snapshot,
    plan: &Plan<'r>,
    common: &Common<'r>,
) -> Result<Call<'r>, InterceptRequestError> {
    let empty = || Document::parse_object("{}").map_err(|_| InterceptRequestError::NotPrepared);
    Ok(Call {
        hook,
        tool: "",
        tool_sent: "",
        tool_call_id: "",
        is_error: false,
        context: common.context,
        environment: None,
        snapshot,
        policy: plan.policy,
        dry_run: common.dry_run,
        decision_id: common.decision_id,
        deadline: common.deadline,
        tools: plan.tools,
        args: Part { sent: "", now: empty()?, changed: false },
        result: Part { sent: "", now: None, changed: false },
        message: Part { sent: "", now: Cow::Borrowed(""), changed: false },
        params: Cow::Borrowed(&NO_PARAMS),
        params_sent: &NO_PARAMS,
        params_changed: false,
        metadata: Part {
            sent: common.metadata_json,
            now: object("metadata_json", common.metadata_json)?,
            changed: false,
        },
        inspection: OnceLock::new(),
        version: 0,
        found: Vec::new(),
    })
}

fn object<'r>(field: &'static str, text: &'r str) -> Result<Document<'r>, InterceptRequestError> {
    let text = if text.is_empty() { "{}" } else { text };
    Document::parse_object(text).map_err(|error| json_error(field, &error))
}

fn json_error(field: &'static str, error: &JsonError) -> InterceptRequestError {
    InterceptRequestError::field(field, error.to_string())
}

fn environment<'r>(
    request: EnvironmentRequest<'r>,
    policy: &'r Policy,
) -> Result<Environment<'r>, InterceptRequestError> {
    let os = match request.os {
        "" | "linux" => Os::Linux,
        "macos" => Os::MacOs,
        "windows" => Os::Windows,
        _ => {
            let message = "unknown; use `linux`, `macos` or `windows`";
            return Err(InterceptRequestError::field("environment.os", message));
        }
    };
    let mut environment = Environment {
        cwd: request.cwd,
        home: request.home,
        os,
        workspace_roots: Cow::Borrowed(policy.workspace_roots()),
        resolved_paths: request.resolved_paths,
    };
    if !request.workspace_roots.is_empty() {
        let narrowed = narrowed(policy.workspace_roots(), request.workspace_roots, &environment);
        environment.workspace_roots = Cow::Owned(narrowed);
    }
    Ok(environment)
}

/// The folders of the caller that lie in one of the policy's. Where none does, nothing is left: the caller asked for
/// less than the policy gives, and less than nothing there is not.
fn narrowed(policy: &[String], caller: &[String], environment: &Environment<'_>) -> Vec<String> {
    let place = environment.place();
    let inside = |root: &str| policy.iter().any(|outer| within(root, &normalise(outer, &place), place.os));
    caller.iter().map(|root| normalise(root, &place).into_owned()).filter(|root| inside(root)).collect()
}

fn outcome(
    call: Call<'_>,
    chained: Chained,
    policy: &Arc<Policy>,
    common: &Common<'_>,
    bytes: usize,
) -> Outcome {
    let (_, sent) = call.judged_text();
    let mut verdict = policy.decide(&chained.findings, &chained.unjudged);
    // The chain has the last word: it knows of actions, and of what a fail mode did.
    verdict.decision = verdict.decision.max(chained.decision);
    verdict.would_block |= !chained.would_block.is_empty();
    let blocked = verdict.decision == Decision::Block;
    let keeps = common.dry_run || blocked;
    let changed_fields =
        if keeps || !call.params_changed { Vec::new() } else { call.params.changed_fields(call.params_sent) };
    let mut findings: Vec<Finding> = chained.findings;
    findings.extend(chained.dealt_with);
    findings.sort_by(|a, b| {
        let key = |f: &Finding| (f.span.start, f.span.end);
        (&a.span.path, key(a), &a.rule_id).cmp(&(&b.span.path, key(b), &b.rule_id))
    });
    let text = |changed: bool, now: Document<'_>| (changed && !keeps).then(|| now.into_text().into_owned());
    let mut would_block = chained.would_block;
    would_block.sort();
    would_block.dedup();
    Outcome {
        verdict,
        reason: chained.reason,
        tool: call.tool.to_owned(),
        args_json: text(call.args.changed, call.args.now),
        result_json: call.result.now.and_then(|now| text(call.result.changed, now)),
        message: (call.message.changed && !keeps).then(|| call.message.now.into_owned()),
        params: (call.params_changed && !keeps).then(|| call.params.into_owned()),
        changed_fields,
        // Metadata is of the run, not of the call: it is handed on even where the call is blocked.
        metadata_json: (call.metadata.changed && !common.dry_run)
            .then(|| call.metadata.now.into_text().into_owned()),
        ran: chained.ran,
        reported: report_text(sent, findings, common.encoding, false),
        unjudged: chained.unjudged,
        notes: chained.notes,
        would_block,
        policy: policy.clone(),
        bytes,
    }
}
