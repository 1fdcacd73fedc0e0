//! Between the engine and the contract: what is asked, and a strict reading of what is answered.

use super::failure::Failure;
use crate::decision::{Decision, Hook, Reason};
use crate::paths::Os;
use crate::pb::v1;
use crate::policy::Params;
use crate::tools::{RemoteAnswer, RemoteRequest};

/// Longest reason that is shown, in characters; a longer one is cut.
const REASON_CHARS_MAX: usize = 1_000;

/// The call as the contract tells it. Fields that the hook does not have stay empty.
pub(super) fn request(call: &RemoteRequest<'_>) -> v1::InterceptRequest {
    let is_tool = matches!(call.hook, Hook::ToolBefore | Hook::ToolAfter);
    v1::InterceptRequest {
        hook: hook(call.hook).into(),
        tool_name: call.tool.to_owned(),
        args_json: if is_tool { call.args().to_owned() } else { String::new() },
        result_json: if call.hook == Hook::ToolAfter { call.result().to_owned() } else { String::new() },
        message: if is_tool { String::new() } else { call.message().to_owned() },
        params: (call.hook == Hook::ParamsBefore).then(|| params(call.params())),
        metadata_json: call.metadata().to_owned(),
        context: context(call),
        tool_call_id: call.tool_call_id.to_owned(),
        is_error: call.is_error,
        environment: environment(call),
        dry_run: call.dry_run,
        decision_id: call.decision_id.to_owned(),
    }
}

pub(super) fn hook(hook: Hook) -> v1::Hook {
    match hook {
        Hook::MessageBefore => v1::Hook::MessageBefore,
        Hook::ParamsBefore => v1::Hook::ParamsBefore,
        Hook::ToolBefore => v1::Hook::ToolBefore,
        Hook::ToolAfter => v1::Hook::ToolAfter,
    }
}

fn params(params: &Params) -> v1::Params {
    let Params { provider, model, think_level, reasoning_level, temperature } = params.clone();
    v1::Params { provider, model, think_level, reasoning_level, temperature }
}

fn context(call: &RemoteRequest<'_>) -> Option<v1::CallContext> {
    let context = v1::CallContext {
        agent_id: call.context.agent_id.to_owned(),
        session_key: call.context.session_key.to_owned(),
        tenant: call.context.tenant.to_owned(),
        request_id: call.context.request_id.to_owned(),
        labels: call.context.labels.clone(),
    };
    (context != v1::CallContext::default()).then_some(context)
}

fn environment(call: &RemoteRequest<'_>) -> Option<v1::ExecutionContext> {
    let environment = call.environment.as_ref()?;
    Some(v1::ExecutionContext {
        cwd: environment.cwd.to_owned(),
        home: environment.home.to_owned(),
        os: match environment.os {
            Os::Linux => "linux",
            Os::MacOs => "macos",
            Os::Windows => "windows",
        }
        .to_owned(),
        workspace_roots: environment.workspace_roots.to_vec(),
        resolved_paths: environment.resolved_paths.clone(),
    })
}

/// Reads an answer. What the hook does not have, and what is not stated that must be, makes all of it useless: an
/// answer that was meant in another way than it is read is worse than none.
pub(super) fn answer(hook: Hook, response: v1::InterceptResponse) -> Result<RemoteAnswer, Failure> {
    let bad = |what: &str| Failure::refused(Reason::BadAnswer, format!("its answer {what}"));
    let decision = match v1::Decision::try_from(response.decision) {
        Ok(v1::Decision::Allow) => Decision::Allow,
        Ok(v1::Decision::Warn) => Decision::Warn,
        Ok(v1::Decision::Ask) => Decision::Ask,
        Ok(v1::Decision::Block) => Decision::Block,
        Ok(v1::Decision::Unspecified) => return Err(bad("has no `decision`")),
        Err(_) => return Err(bad("has a `decision` that is not known")),
    };
    for (field, is_set, on) in [
        ("args_json", !response.args_json.is_empty(), Hook::ToolBefore),
        ("result_json", !response.result_json.is_empty(), Hook::ToolAfter),
        ("message", response.message.is_some(), Hook::MessageBefore),
        ("params", response.params.is_some(), Hook::ParamsBefore),
    ] {
        if is_set && hook != on {
            return Err(bad(&format!("has `{field}`, which this hook does not have")));
        }
    }
    let reason = presentable(&response.reason);
    if reason.is_empty() && matches!(decision, Decision::Ask | Decision::Block) {
        return Err(bad("has no `reason`, which ASK and BLOCK need"));
    }
    for (field, json, must_be_object) in [
        ("args_json", &response.args_json, true),
        ("result_json", &response.result_json, false),
        ("metadata_json", &response.metadata_json, true),
    ] {
        if !json.is_empty() {
            check_json(json, must_be_object).map_err(|what| bad(&format!("has a `{field}` that {what}")))?;
        }
    }
    let filled = |text: String| (!text.is_empty()).then_some(text);
    let params = response.params.map(|params| {
        let v1::Params { provider, model, think_level, reasoning_level, temperature } = params;
        Params { provider, model, think_level, reasoning_level, temperature }
    });
    if let Some(Err((field, what))) = params.as_ref().map(Params::check) {
        return Err(bad(&format!("has a `params.{field}` that {what}")));
    }
    Ok(RemoteAnswer {
        decision,
        args: filled(response.args_json),
        result: filled(response.result_json),
        message: response.message,
        params,
        metadata: filled(response.metadata_json),
        reason,
    })
}

/// Whether a text is JSON at all. The engine looks closer: at duplicate members, depth and size.
fn check_json(text: &str, must_be_object: bool) -> Result<(), &'static str> {
    let raw: &serde_json::value::RawValue = serde_json::from_str(text).map_err(|_| "is not valid JSON")?;
    if must_be_object && !raw.get().starts_with('{') { Err("is not a JSON object") } else { Ok(()) }
}

/// One line without control characters, of bounded length.
pub(super) fn presentable(text: &str) -> String {
    let clean: String =
        text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(REASON_CHARS_MAX).collect();
    clean.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(hook: Hook, json: &str) -> Result<RemoteAnswer, Failure> {
        answer(hook, serde_json::from_str(json).expect("the JSON form of an answer"))
    }

    #[test]
    fn answers_are_read_strictly() {
        use Hook::{MessageBefore, ParamsBefore, ToolAfter, ToolBefore};
        for (hook, json, wanted) in [
            (ToolBefore, r#"{}"#, "has no `decision`"),
            (ToolBefore, r#"{"decision":"DECISION_BLOCK"}"#, "reason"),
            (ToolBefore, r#"{"decision":"DECISION_ASK","reason":" \n "}"#, "reason"),
            (ToolBefore, r#"{"decision":"DECISION_ALLOW","argsJson":"{"}"#, "not valid JSON"),
            (ToolBefore, r#"{"decision":"DECISION_ALLOW","argsJson":"[1]"}"#, "not a JSON object"),
            (ToolBefore, r#"{"decision":"DECISION_ALLOW","argsJson":"{} {}"}"#, "not valid JSON"),
            (ToolBefore, r#"{"decision":"DECISION_ALLOW","metadataJson":"1"}"#, "not a JSON object"),
            (ToolBefore, r#"{"decision":"DECISION_ALLOW","resultJson":"1"}"#, "`result_json`"),
            (ToolBefore, r#"{"decision":"DECISION_ALLOW","message":""}"#, "`message`"),
            (ToolBefore, r#"{"decision":"DECISION_ALLOW","params":{}}"#, "`params`"),
            (ToolAfter, r#"{"decision":"DECISION_ALLOW","argsJson":"{}"}"#, "`args_json`"),
            (ToolAfter, r#"{"decision":"DECISION_ALLOW","resultJson":"nul"}"#, "not valid JSON"),
            (MessageBefore, r#"{"decision":"DECISION_ALLOW","argsJson":"{}"}"#, "`args_json`"),
            (ParamsBefore, r#"{"decision":"DECISION_ALLOW","params":{"thinkLevel":"max"}}"#, "think_level"),
            (ParamsBefore, r#"{"decision":"DECISION_ALLOW","params":{"temperature":"NaN"}}"#, "temperature"),
        ] {
            let failure = read(hook, json).expect_err(json);
            assert_eq!(failure.reason, Reason::BadAnswer, "{json}");
            assert!(!failure.is_outage && !failure.is_retryable, "{json}");
            assert!(failure.detail.contains(wanted), "{json}: {}", failure.detail);
        }
        let unknown = v1::InterceptResponse { decision: 77, ..Default::default() };
        assert!(answer(ToolBefore, unknown).expect_err("no Decision").detail.contains("not known"));
    }

    #[test]
    fn answers_say_what_changes() {
        let passed = read(Hook::ToolBefore, r#"{"decision":"DECISION_ALLOW"}"#).expect("an answer");
        assert_eq!(passed, RemoteAnswer::default());
        let changed = read(Hook::ToolBefore, r#"{"decision":"DECISION_WARN","argsJson":"{\"a\":1}"}"#);
        let changed = changed.expect("an answer");
        assert_eq!((changed.decision, changed.args.as_deref()), (Decision::Warn, Some(r#"{"a":1}"#)));
        let emptied = read(Hook::MessageBefore, r#"{"decision":"DECISION_ALLOW","message":""}"#);
        assert_eq!(emptied.expect("an answer").message.as_deref(), Some(""));
        let blocked = read(Hook::ToolAfter, r#"{"decision":"DECISION_BLOCK","reason":"no\u001b[31m\nway"}"#);
        assert_eq!(blocked.expect("an answer").reason, "no [31m way");
    }
}
