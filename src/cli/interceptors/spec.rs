//! An interceptor in a file: as in a policy file, or as the contract writes it.
//!
//! Both forms are read into one JSON value; the keys of a policy file are then turned into those of the contract, whose
//! reader refuses what it does not know. What the values mean is for the server to say.

use serde_json::{Map, Value, json};

use super::hook_of;
use crate::pb::v1;
use crate::setting::duration;

/// What a file holds.
#[derive(Debug, PartialEq)]
pub(super) struct Spec {
    /// The interceptor.
    pub(super) interceptor: v1::Interceptor,
    /// Whether its matcher may match no known tool.
    pub(super) allow_unknown_tools: bool,
}

/// Keys of a policy file whose values go over as they are, and their names in the contract.
const SAME: [(&str, &str); 5] = [
    ("id", "id"),
    ("priority", "priority"),
    ("tools", "toolMatcher"),
    ("agents", "agentMatcher"),
    ("description", "description"),
];

/// Reads one interceptor.
///
/// # Errors
/// What is wrong, ready to print.
pub(super) fn read(text: &str) -> Result<Spec, String> {
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let value: Value =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
    let Value::Object(keys) = value else {
        return Err("is not one interceptor: a mapping with `id`, `hook` and what to do".to_owned());
    };
    let is_policy_form = keys.get("hook").and_then(Value::as_str).is_some_and(|hook| hook.contains('.'));
    let (message, allow_unknown_tools) = if is_policy_form { of_policy(keys)? } else { (keys, false) };
    let interceptor = serde_json::from_value(Value::Object(message)).map_err(|error| error.to_string())?;
    Ok(Spec { interceptor, allow_unknown_tools })
}

/// The message of the contract for the keys of a policy file.
fn of_policy(keys: Map<String, Value>) -> Result<(Map<String, Value>, bool), String> {
    let mut message = Map::new();
    let mut rule = Map::new();
    let mut allow_unknown_tools = false;
    for (key, value) in keys {
        if let Some((_, name)) = SAME.iter().find(|(known, _)| *known == key) {
            message.insert((*name).to_owned(), value);
            continue;
        }
        match key.as_str() {
            "hook" => {
                let hook = value
                    .as_str()
                    .and_then(hook_of)
                    .ok_or("hook: must be one of: message.before, params.before, tool.before, tool.after")?;
                message.insert("hook".to_owned(), hook.as_str_name().into());
            }
            "mode" => {
                let mode = prefixed("mode", "MODE_", &value, &["enforce", "shadow", "off"])?;
                message.insert("mode".to_owned(), mode);
            }
            "fail" => {
                let fail = prefixed("fail", "FAIL_MODE_", &value, &["closed", "ask", "open"])?;
                message.insert("failMode".to_owned(), fail);
            }
            "timeout" => {
                let timeout = value.as_str().and_then(duration::parse);
                let timeout =
                    timeout.ok_or("timeout: must be a duration with its unit, such as 500ms or 2s")?;
                let ms = timeout.as_millis();
                message.insert("timeout".to_owned(), format!("{}.{:03}s", ms / 1000, ms % 1000).into());
            }
            "allow_unknown_tools" => {
                allow_unknown_tools = value.as_bool().ok_or("allow_unknown_tools: must be true or false")?;
            }
            "when" => {
                rule.insert("when".to_owned(), value);
            }
            "do" => {
                let Value::Array(actions) = value else {
                    return Err("do: must be a list of actions".to_owned());
                };
                let actions = actions.into_iter().enumerate().map(|(index, one)| action(index, one));
                rule.insert("actions".to_owned(), actions.collect::<Result<Value, String>>()?);
            }
            "extension" | "webhook" => {
                message.insert(key, value);
            }
            unknown => {
                return Err(format!(
                    "{unknown}: is no key of an interceptor; known: id, hook, priority, tools, agents, description, \
                     mode, fail, timeout, allow_unknown_tools, when, do, extension, webhook"
                ));
            }
        }
    }
    if !rule.is_empty() {
        message.insert("rule".to_owned(), Value::Object(rule));
    }
    Ok((message, allow_unknown_tools))
}

fn prefixed(key: &str, prefix: &str, value: &Value, valid: &[&str]) -> Result<Value, String> {
    match value.as_str().filter(|value| valid.contains(value)) {
        Some(value) => Ok(format!("{prefix}{}", value.to_ascii_uppercase()).into()),
        None => Err(format!("{key}: must be one of: {}", valid.join(", "))),
    }
}

/// One action: a mapping of its name to its value.
fn action(index: usize, value: Value) -> Result<Value, String> {
    let wrong = |what: &str| format!("do[{index}]: {what}");
    let (name, value) = match value {
        Value::Object(keys) if keys.len() == 1 => keys.into_iter().next().unwrap_or_default(),
        _ => return Err(wrong("must be one action, such as `block: reason`")),
    };
    let made = match name.as_str() {
        "block" | "ask" | "append" | "audit" => json!({ name: value }),
        "merge_args" => json!({ "mergeArgsJson": value.to_string() }),
        "set_args" => json!({ "setArgs": { "values": value } }),
        "set_metadata" => json!({ "setMetadata": { "values": value } }),
        "set_params" => json!({ "setParams": value }),
        "redact" if value == json!(true) => json!({ "redact": {} }),
        "redact" => json!({ "redact": { "categories": value } }),
        "strip_ansi" if value == json!(true) => json!({ "stripAnsi": {} }),
        "strip_ansi" => return Err(wrong("strip_ansi: must be true")),
        unknown => {
            return Err(wrong(&format!(
                "`{unknown}` is no action; known: block, ask, merge_args, set_args, redact, strip_ansi, \
                 set_metadata, set_params, append, audit"
            )));
        }
    };
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY_FORM: &str = "
id: acme:no-color
hook: tool.before
priority: 5
tools: ^exec$
fail: ask
mode: shadow
timeout: 1500ms
when: '!args.command.contains(\"--color\")'
do:
  - set_args: { command: 'args.command + \" --color=never\"' }
  - redact: true
  - redact: [secrets]
  - strip_ansi: true
  - merge_args: { timeout: 5 }
  - block: no
";

    #[test]
    fn both_forms_mean_the_same() {
        let policy = read(POLICY_FORM).expect("the form of a policy file");
        let contract = json!({
            "id": "acme:no-color", "hook": "HOOK_TOOL_BEFORE", "priority": 5, "toolMatcher": "^exec$",
            "failMode": "FAIL_MODE_ASK", "mode": "MODE_SHADOW", "timeout": "1.500s",
            "rule": {
                "when": "!args.command.contains(\"--color\")",
                "actions": [
                    { "setArgs": { "values": { "command": "args.command + \" --color=never\"" } } },
                    { "redact": {} },
                    { "redact": { "categories": ["secrets"] } },
                    { "stripAnsi": {} },
                    { "mergeArgsJson": "{\"timeout\":5}" },
                    { "block": "no" },
                ],
            },
        });
        let contract = read(&contract.to_string()).expect("the form of the contract");
        assert_eq!(policy, contract);
        let Some(v1::interceptor::Handler::Rule(rule)) = policy.interceptor.handler else {
            panic!("a rule: {policy:?}");
        };
        assert_eq!(rule.actions.len(), 6);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, told) in [
            ("[]", "is not one interceptor"),
            ("a: [", ""),
            ("hook: tool.later", "hook: must be one of"),
            ("hook: tool.before\nmode: on", "mode: must be one of: enforce"),
            ("hook: tool.before\ntimeout: 5", "timeout: must be a duration"),
            ("hook: tool.before\ntimeout: 5 s\nallow_unknown_tools: 1", "allow_unknown_tools: must be"),
            ("hook: tool.before\npriorty: 5", "priorty: is no key"),
            ("hook: tool.before\ndo: block", "do: must be a list"),
            ("hook: tool.before\ndo: [{stop: x}]", "do[0]: `stop` is no action"),
            ("hook: tool.before\ndo: [strip_ansi]", "do[0]: must be one action"),
            ("hook: tool.before\ndo: [{strip_ansi: false}]", "do[0]: strip_ansi: must be true"),
            ("hook: tool.before\ndo: [{block: x, ask: y}]", "do[0]: must be one action"),
            ("{\"hook\":\"HOOK_TOOL_BEFORE\",\"tools\":\"x\"}", "tools"),
            ("{\"hook\":\"NOWHERE\"}", "NOWHERE"),
        ] {
            let error = read(text).expect_err("a broken file");
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
