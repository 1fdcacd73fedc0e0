//! Between the contract's `Interceptor` and the spec that the tool engine compiles.
//!
//! Every problem of a message is told at once, each with the path of its field in `AddInterceptorRequest`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::decision::{FailMode, Hook, Mode};
use crate::pb::v1;
use crate::pb::v1::interceptor::Handler;
use crate::pb::v1::interceptor_action::Action;
use crate::policy::{
    ActionSpec, HandlerSpec, INTERCEPTOR_TIMEOUT_DEFAULT, INTERCEPTOR_TIMEOUT_MAX, InterceptorSpec, Params,
    RemoteSpec, RuleSpec, SpecProblem,
};

/// Most attempts of one call to an interceptor that lives elsewhere.
const ATTEMPTS_MAX: u32 = crate::extension::ATTEMPTS_MAX;
/// Longest id, in bytes.
const ID_BYTES_MAX: usize = 128;
/// Longest description, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 1024;
/// Beginning of ids that are ours.
const BUILTIN_PREFIX: &str = "builtin:";

/// Path of a field and what is wrong with it.
pub(super) type Violation = (String, String);

/// The spec that a message describes.
///
/// # Errors
/// Everything that can be told without compiling it.
pub(super) fn spec(
    message: &v1::Interceptor,
    allow_unknown_tools: bool,
) -> Result<InterceptorSpec, Vec<Violation>> {
    let mut problems = Vec::new();
    let mut problem = |field: &str, message: String| problems.push((format!("interceptor.{field}"), message));
    if let Err(message) = check_id(&message.id) {
        problem("id", message);
    }
    let hook = hook(message.hook).map_err(|message| problem("hook", message)).ok().flatten();
    if hook.is_none() && message.hook == 0 {
        problem("hook", "is not set; interceptors stand on exactly one hook".to_owned());
    }
    if message.description.len() > DESCRIPTION_BYTES_MAX {
        problem("description", format!("has more than {DESCRIPTION_BYTES_MAX} bytes"));
    }
    let mode = mode(message.mode).map_err(|message| problem("mode", message));
    let fail = fail_mode(message.fail_mode).map_err(|message| problem("fail_mode", message));
    let timeout = timeout(message.timeout.as_ref()).map_err(|message| problem("timeout", message));
    let handler = handler(message.handler.as_ref(), &mut problem);
    match (hook, mode, fail, timeout, handler) {
        (Some(hook), Ok(mode), Ok(fail), Ok(timeout), Some(handler)) if problems.is_empty() => {
            Ok(InterceptorSpec {
                id: message.id.clone(),
                hook,
                priority: message.priority,
                tools: message.tool_matcher.clone(),
                agents: message.agent_matcher.clone(),
                description: message.description.clone(),
                mode,
                fail,
                timeout,
                handler,
                allow_unknown_tools,
            })
        }
        _ => Err(problems),
    }
}

/// Where in the message a problem of its spec stands: specs speak the language of policy files.
pub(super) fn violation(problem: SpecProblem) -> Violation {
    let (head, rest) = match problem.field.find(['.', '[']) {
        Some(at) => problem.field.split_at(at),
        None => (problem.field.as_str(), ""),
    };
    let field = match head {
        "tools" => "tool_matcher".to_owned(),
        "agents" => "agent_matcher".to_owned(),
        "fail" => "fail_mode".to_owned(),
        "when" => "rule.when".to_owned(),
        "do" => format!("rule.actions{}", rest.replace(".merge_args", ".merge_args_json")),
        "webhook" => format!("webhook{}", rest.replace(".endpoint", ".url")),
        other => format!("{other}{rest}"),
    };
    (format!("interceptor.{field}"), problem.message)
}

/// The message of a spec, without the server's fields.
pub(super) fn message(spec: &InterceptorSpec) -> v1::Interceptor {
    let handler = match &spec.handler {
        HandlerSpec::Rule(rule) => Handler::Rule(v1::InterceptorRule {
            when: rule.when.clone(),
            actions: rule
                .actions
                .iter()
                .map(|one| v1::InterceptorAction { action: Some(action(one)) })
                .collect(),
        }),
        HandlerSpec::Extension(remote) => Handler::Extension(v1::InterceptorExtension {
            endpoint: remote.endpoint.clone(),
            credential: remote.credential.clone(),
            attempts_max: remote.attempts_max,
        }),
        HandlerSpec::Webhook(remote) => Handler::Webhook(v1::InterceptorWebhook {
            url: remote.endpoint.clone(),
            credential: remote.credential.clone(),
            attempts_max: remote.attempts_max,
        }),
    };
    v1::Interceptor {
        id: spec.id.clone(),
        hook: hook_message(spec.hook).into(),
        priority: spec.priority,
        tool_matcher: spec.tools.clone(),
        agent_matcher: spec.agents.clone(),
        description: spec.description.clone(),
        mode: mode_message(spec.mode).into(),
        fail_mode: fail_mode_message(spec.fail).into(),
        timeout: Some(spec.timeout.into()),
        handler: Some(handler),
        ..Default::default()
    }
}

fn check_id(id: &str) -> Result<(), String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b':');
    if id.is_empty() || id.len() > ID_BYTES_MAX || !id.bytes().all(is_allowed) {
        return Err(format!("must be 1 to {ID_BYTES_MAX} of letters, digits and `.`, `_`, `-`, `:`"));
    }
    if id.to_ascii_lowercase().starts_with(BUILTIN_PREFIX) {
        return Err(format!("must not begin with `{BUILTIN_PREFIX}`, which is taken"));
    }
    Ok(())
}

/// The hook of a number; `None` for the one that means not set.
///
/// # Errors
/// A number that the contract does not have.
pub(super) fn hook(number: i32) -> Result<Option<Hook>, String> {
    match v1::Hook::try_from(number) {
        Ok(v1::Hook::Unspecified) => Ok(None),
        Ok(v1::Hook::MessageBefore) => Ok(Some(Hook::MessageBefore)),
        Ok(v1::Hook::ParamsBefore) => Ok(Some(Hook::ParamsBefore)),
        Ok(v1::Hook::ToolBefore) => Ok(Some(Hook::ToolBefore)),
        Ok(v1::Hook::ToolAfter) => Ok(Some(Hook::ToolAfter)),
        Err(_) => Err(format!("{number} is no Hook")),
    }
}

pub(super) fn hook_message(hook: Hook) -> v1::Hook {
    match hook {
        Hook::MessageBefore => v1::Hook::MessageBefore,
        Hook::ParamsBefore => v1::Hook::ParamsBefore,
        Hook::ToolBefore => v1::Hook::ToolBefore,
        Hook::ToolAfter => v1::Hook::ToolAfter,
    }
}

fn mode(number: i32) -> Result<Mode, String> {
    match v1::Mode::try_from(number) {
        Ok(v1::Mode::Unspecified | v1::Mode::Enforce) => Ok(Mode::Enforce),
        Ok(v1::Mode::Shadow) => Ok(Mode::Shadow),
        Ok(v1::Mode::Off) => Ok(Mode::Off),
        Err(_) => Err(format!("{number} is no Mode")),
    }
}

pub(super) fn mode_message(mode: Mode) -> v1::Mode {
    match mode {
        Mode::Enforce => v1::Mode::Enforce,
        Mode::Shadow => v1::Mode::Shadow,
        Mode::Off => v1::Mode::Off,
    }
}

fn fail_mode(number: i32) -> Result<FailMode, String> {
    match v1::FailMode::try_from(number) {
        Ok(v1::FailMode::Unspecified | v1::FailMode::Closed) => Ok(FailMode::Closed),
        Ok(v1::FailMode::Ask) => Ok(FailMode::Ask),
        Ok(v1::FailMode::Open) => Ok(FailMode::Open),
        Err(_) => Err(format!("{number} is no FailMode")),
    }
}

pub(super) fn fail_mode_message(mode: FailMode) -> v1::FailMode {
    match mode {
        FailMode::Closed => v1::FailMode::Closed,
        FailMode::Ask => v1::FailMode::Ask,
        FailMode::Open => v1::FailMode::Open,
    }
}

fn timeout(duration: Option<&pbjson_types::Duration>) -> Result<Duration, String> {
    let Some(duration) = duration else { return Ok(INTERCEPTOR_TIMEOUT_DEFAULT) };
    let seconds = u64::try_from(duration.seconds).ok();
    let nanos = u32::try_from(duration.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    seconds
        .zip(nanos)
        .map(|(seconds, nanos)| Duration::new(seconds, nanos))
        .filter(|timeout| !timeout.is_zero() && *timeout <= INTERCEPTOR_TIMEOUT_MAX)
        .ok_or_else(|| format!("must be positive and at most {} s", INTERCEPTOR_TIMEOUT_MAX.as_secs()))
}

fn handler(handler: Option<&Handler>, problem: &mut impl FnMut(&str, String)) -> Option<HandlerSpec> {
    let mut remote = |field: &str, endpoint: &str, credential: &str, attempts_max: u32| {
        if attempts_max > ATTEMPTS_MAX {
            problem(&format!("{field}.attempts_max"), format!("must be at most {ATTEMPTS_MAX}"));
        }
        RemoteSpec {
            endpoint: endpoint.to_owned(),
            credential: credential.to_owned(),
            attempts_max: attempts_max.max(1),
        }
    };
    match handler {
        None => {
            problem("handler", "is not set; set exactly one of `rule`, `extension`, `webhook`".to_owned());
            None
        }
        Some(Handler::Extension(v1::InterceptorExtension { endpoint, credential, attempts_max })) => {
            Some(HandlerSpec::Extension(remote("extension", endpoint, credential, *attempts_max)))
        }
        Some(Handler::Webhook(v1::InterceptorWebhook { url, credential, attempts_max })) => {
            Some(HandlerSpec::Webhook(remote("webhook", url, credential, *attempts_max)))
        }
        Some(Handler::Rule(rule)) => {
            if rule.actions.is_empty() {
                problem("rule.actions", "is empty; say what to do".to_owned());
            }
            let actions = rule.actions.iter().enumerate().filter_map(|(index, action)| {
                let spec = action.action.as_ref().map(action_spec);
                if spec.is_none() {
                    problem(&format!("rule.actions[{index}].action"), "is not set".to_owned());
                }
                spec
            });
            let actions = actions.collect();
            Some(HandlerSpec::Rule(RuleSpec { when: rule.when.clone(), actions }))
        }
    }
}

fn action_spec(action: &Action) -> ActionSpec {
    let values =
        |assignments: &v1::CelAssignments| -> BTreeMap<String, String> { assignments.values.clone() };
    match action {
        Action::Block(reason) => ActionSpec::Block(reason.clone()),
        Action::Ask(reason) => ActionSpec::Ask(reason.clone()),
        Action::MergeArgsJson(patch) => ActionSpec::MergeArgs(patch.clone()),
        Action::SetArgs(assignments) => ActionSpec::SetArgs(values(assignments)),
        Action::Redact(redact) => ActionSpec::Redact(redact.categories.clone()),
        Action::StripAnsi(_) => ActionSpec::StripAnsi,
        Action::SetMetadata(assignments) => ActionSpec::SetMetadata(values(assignments)),
        Action::SetParams(params) => {
            let v1::Params { provider, model, think_level, reasoning_level, temperature } = params.clone();
            ActionSpec::SetParams(Params { provider, model, think_level, reasoning_level, temperature })
        }
        Action::Append(text) => ActionSpec::Append(text.clone()),
        Action::Audit(note) => ActionSpec::Audit(note.clone()),
    }
}

fn action(spec: &ActionSpec) -> Action {
    let values = |values: &BTreeMap<String, String>| v1::CelAssignments { values: values.clone() };
    match spec {
        ActionSpec::Block(reason) => Action::Block(reason.clone()),
        ActionSpec::Ask(reason) => Action::Ask(reason.clone()),
        ActionSpec::MergeArgs(patch) => Action::MergeArgsJson(patch.clone()),
        ActionSpec::SetArgs(assignments) => Action::SetArgs(values(assignments)),
        ActionSpec::Redact(categories) => Action::Redact(v1::RedactAction { categories: categories.clone() }),
        ActionSpec::StripAnsi => Action::StripAnsi(pbjson_types::Empty {}),
        ActionSpec::SetMetadata(assignments) => Action::SetMetadata(values(assignments)),
        ActionSpec::SetParams(params) => {
            let Params { provider, model, think_level, reasoning_level, temperature } = params.clone();
            Action::SetParams(v1::Params { provider, model, think_level, reasoning_level, temperature })
        }
        ActionSpec::Append(text) => Action::Append(text.clone()),
        ActionSpec::Audit(note) => Action::Audit(note.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> v1::Interceptor {
        serde_json::from_str(json).expect("the JSON form of an interceptor")
    }

    #[test]
    fn a_message_and_its_spec_say_the_same() {
        for handler in [
            r#""rule":{"when":"tool == 'exec'","actions":[{"ask":"sure?"},{"mergeArgsJson":"{\"a\":1}"},
               {"setArgs":{"values":{"command":"args.command + ' --color=never'"}}},{"redact":{"categories":["pii"]}},
               {"stripAnsi":{}},{"setMetadata":{"values":{"a.b":"1"}}},{"setParams":{"model":"m","temperature":0.5}},
               {"append":"x"},{"audit":"note"},{"block":"no"}]}"#,
            r#""extension":{"endpoint":"https://guard.example","credential":"c","attemptsMax":3}"#,
            r#""webhook":{"url":"https://guard.example/x","attemptsMax":1}"#,
        ] {
            let json = format!(
                r#"{{"id":"acme:x","hook":"HOOK_TOOL_BEFORE","priority":-3,"toolMatcher":"exec","agentMatcher":"a",
                    "description":"d","mode":"MODE_SHADOW","failMode":"FAIL_MODE_ASK","timeout":"1.500s",{handler}}}"#
            );
            let sent = read(&json);
            let spec = spec(&sent, true).expect("nothing is wrong");
            assert_eq!(message(&spec), sent);
        }
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let sent = read(r#"{"id":"x","hook":"HOOK_TOOL_AFTER","webhook":{"url":"https://guard.example/"}}"#);
        let spec = spec(&sent, false).expect("nothing is wrong");
        assert_eq!((spec.mode, spec.fail), (Mode::Enforce, FailMode::Closed));
        assert_eq!(spec.timeout, Duration::from_secs(2));
        let HandlerSpec::Webhook(remote) = spec.handler else { panic!("it is a webhook") };
        assert_eq!(remote.attempts_max, 1);
    }

    #[test]
    fn every_problem_is_told_with_its_field() {
        let fields = |json: &str| -> Vec<String> {
            spec(&read(json), false).expect_err(json).into_iter().map(|(field, _)| field).collect()
        };
        let all = r#"{"id":"a b","timeout":"61s","webhook":{"attemptsMax":6}}"#;
        let all = v1::Interceptor { mode: 9, fail_mode: 9, ..read(all) };
        let all: Vec<String> =
            spec(&all, false).expect_err("much is wrong").into_iter().map(|(f, _)| f).collect();
        assert_eq!(
            all,
            ["id", "hook", "mode", "fail_mode", "timeout", "webhook.attempts_max"]
                .map(|field| format!("interceptor.{field}"))
        );
        let unknown_hook =
            v1::Interceptor { hook: 77, ..read(r#"{"id":"x","rule":{"actions":[{"block":"x"}]}}"#) };
        assert_eq!(spec(&unknown_hook, false).expect_err("no Hook")[0].0, "interceptor.hook");
        for (json, field) in [
            (r#"{"id":"","hook":1,"rule":{"actions":[{"block":"x"}]}}"#, "id"),
            (r#"{"id":"Builtin:x","hook":1,"rule":{"actions":[{"block":"x"}]}}"#, "id"),
            (r#"{"id":"x","hook":1}"#, "handler"),
            (r#"{"id":"x","hook":1,"rule":{}}"#, "rule.actions"),
            (r#"{"id":"x","hook":1,"rule":{"actions":[{"block":"x"},{}]}}"#, "rule.actions[1].action"),
            (r#"{"id":"x","hook":1,"timeout":"0s","rule":{"actions":[{"block":"x"}]}}"#, "timeout"),
            (r#"{"id":"x","hook":1,"timeout":"-1s","rule":{"actions":[{"block":"x"}]}}"#, "timeout"),
        ] {
            assert_eq!(fields(json), [format!("interceptor.{field}")], "{json}");
        }
    }

    #[test]
    fn problems_of_a_spec_are_told_in_words_of_the_contract() {
        for (field, wanted) in [
            ("tools", "tool_matcher"),
            ("when", "rule.when"),
            ("do[2].set_args.a.b", "rule.actions[2].set_args.a.b"),
            ("do[0].merge_args", "rule.actions[0].merge_args_json"),
            ("webhook.endpoint", "webhook.url"),
            ("extension.credential", "extension.credential"),
            ("fail", "fail_mode"),
        ] {
            let (found, _) = violation(SpecProblem::new(field, "x"));
            assert_eq!(found, format!("interceptor.{wanted}"));
        }
    }
}
