//! Writes what a policy says about tools and interceptors.

use super::Policy;
use super::interceptor::{ActionSpec, BuiltinSwitch, HandlerSpec, Params, PolicyInterceptor, RemoteSpec};
use super::schema::{HOOKS, INJECTION_ACTIONS, word_of};
use super::yaml::{duration, fail, flow_list, line, mode, quote, section};

/// Writes `tools`, `workspace_roots` and `interceptors`; nothing for tools and
/// interceptors where there are none: those of a parent add up as suppressions do.
pub(super) fn write(out: &mut String, policy: &Policy) {
    let tools = &policy.tools;
    if !tools.known.is_empty() || !tools.arguments.is_empty() {
        line(out, 0, "tools", "");
        if !tools.known.is_empty() {
            line(out, 1, "known", "");
            for (name, spellings) in &tools.known {
                line(out, 2, &quote(name), &quoted(spellings));
            }
        }
        if !tools.arguments.is_empty() {
            line(out, 1, "arguments", "");
            for (tool, arguments) in &tools.arguments {
                let empty = if arguments.is_empty() { "{}" } else { "" };
                line(out, 2, &quote(tool), empty);
                for (kind, names) in arguments {
                    line(out, 3, kind.as_str(), &quoted(names));
                }
            }
        }
    }
    line(out, 0, "workspace_roots", &quoted(&policy.workspace_roots));
    if !policy.builtins.is_empty() || !policy.interceptors.is_empty() {
        line(out, 0, "interceptors", "");
        for (id, switch) in &policy.builtins {
            builtin(out, id, switch);
        }
        for interceptor in &policy.interceptors {
            own(out, interceptor);
        }
    }
}

fn quoted(texts: &[String]) -> String {
    flow_list(texts.iter().map(|text| quote(text)))
}

fn builtin(out: &mut String, id: &str, switch: &BuiltinSwitch) {
    line(out, 1, "- id", &quote(id));
    if let Some(value) = switch.mode {
        line(out, 2, "mode", mode(value));
    }
    if let Some(value) = switch.fail {
        line(out, 2, "fail", fail(value));
    }
    if let Some(value) = switch.timeout {
        line(out, 2, "timeout", &duration(value));
    }
    if let Some(categories) = &switch.categories {
        line(out, 2, "categories", &quoted(categories));
    }
    if let Some(value) = switch.injection {
        line(out, 2, "injection", word_of(INJECTION_ACTIONS, value));
    }
}

fn own(out: &mut String, interceptor: &PolicyInterceptor) {
    let spec = &interceptor.spec;
    line(out, 1, "- id", &quote(&spec.id));
    line(out, 2, "hook", word_of(HOOKS, spec.hook));
    line(out, 2, "priority", &spec.priority.to_string());
    for (key, text) in [("tools", &spec.tools), ("agents", &spec.agents), ("description", &spec.description)]
    {
        if !text.is_empty() {
            line(out, 2, key, &quote(text));
        }
    }
    line(out, 2, "mode", mode(spec.mode));
    line(out, 2, "fail", fail(spec.fail));
    line(out, 2, "timeout", &duration(spec.timeout));
    if spec.allow_unknown_tools {
        line(out, 2, "allow_unknown_tools", "true");
    }
    match &spec.handler {
        HandlerSpec::Rule(rule) => {
            if !rule.when.is_empty() {
                line(out, 2, "when", &quote(&rule.when));
            }
            line(out, 2, "do", "");
            rule.actions.iter().for_each(|one| action(out, one));
        }
        HandlerSpec::Extension(spec) => remote(out, "extension", "endpoint", spec),
        HandlerSpec::Webhook(spec) => remote(out, "webhook", "url", spec),
    }
}

fn action(out: &mut String, action: &ActionSpec) {
    let key = format!("- {}", action.key());
    match action {
        ActionSpec::Block(text)
        | ActionSpec::Ask(text)
        | ActionSpec::Append(text)
        | ActionSpec::Audit(text) => {
            line(out, 3, &key, &quote(text));
        }
        // JSON is YAML.
        ActionSpec::MergeArgs(json) => line(out, 3, &key, json),
        ActionSpec::SetArgs(values) | ActionSpec::SetMetadata(values) => {
            line(out, 3, &key, "");
            for (name, expression) in values {
                line(out, 5, &quote(name), &quote(expression));
            }
        }
        ActionSpec::Redact(categories) => line(out, 3, &key, &quoted(categories)),
        ActionSpec::StripAnsi => line(out, 3, &key, "true"),
        ActionSpec::SetParams(values) => {
            line(out, 3, &key, "");
            params(out, values);
        }
    }
}

fn params(out: &mut String, params: &Params) {
    for (key, text) in [
        ("provider", &params.provider),
        ("model", &params.model),
        ("think_level", &params.think_level),
        ("reasoning_level", &params.reasoning_level),
    ] {
        if !text.is_empty() {
            line(out, 5, key, &quote(text));
        }
    }
    if let Some(temperature) = params.temperature {
        line(out, 5, "temperature", &temperature.to_string());
    }
}

fn remote(out: &mut String, key: &str, address: &str, spec: &RemoteSpec) {
    section(out, &format!("    {key}"), Some(spec), |out, spec| {
        line(out, 3, address, &quote(&spec.endpoint));
        if !spec.credential.is_empty() {
            line(out, 3, "credential", &quote(&spec.credential));
        }
        line(out, 3, "attempts_max", &spec.attempts_max.to_string());
    });
}
