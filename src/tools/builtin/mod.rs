//! The built-in interceptors, one file each. A further one is a file, a line here, and its id in the policy's list.

mod command_safety_guard;
mod injection_guard;
mod message_guard;
mod redact_secrets;
mod security_audit;
mod strip_ansi;

use std::sync::Arc;

use super::arguments::ArgumentMap;
use super::interceptor::{Interceptor, Local, Source, Work};
use super::matcher::{AgentMatcher, ToolMatcher};
use super::names;
use crate::commands::CommandRules;
use crate::decision::{FailMode, Hook};
use crate::paths::SensitivePaths;
use crate::policy::{BuiltinSwitch, INTERCEPTOR_TIMEOUT_DEFAULT, InjectionAction, Policy};

/// What distinguishes one built-in interceptor from another.
struct Builtin {
    id: &'static str,
    hook: Hook,
    priority: i32,
    description: &'static str,
    work: Box<dyn Local>,
    is_guard: bool,
}

/// Every built-in interceptor as the policy has it, in order of registration.
pub(super) fn all(
    policy: &Policy,
    arguments: &ArgumentMap,
    commands: &Arc<CommandRules>,
    paths: &Arc<SensitivePaths>,
) -> Vec<Interceptor> {
    let none = BuiltinSwitch::default();
    let switch = |id: &str| policy.builtin_switch(id).unwrap_or(&none).clone();
    let injection = switch("builtin:injection-guard").injection.unwrap_or_default();
    let redact = switch("builtin:redact-secrets").categories;
    let mut builtins = vec![
        Builtin {
            id: "builtin:command-safety-guard",
            hook: Hook::ToolBefore,
            priority: 100,
            description: "Judges what shell commands would do, and which addresses tools would fetch.",
            work: Box::new(command_safety_guard::CommandSafetyGuard::new(commands.clone())),
            is_guard: true,
        },
        Builtin {
            id: "builtin:security-audit",
            hook: Hook::ToolBefore,
            priority: 99,
            description: "Judges which files tools and commands would touch.",
            work: Box::new(security_audit::SecurityAudit::new(paths.clone())),
            is_guard: true,
        },
        Builtin {
            id: "builtin:strip-ansi",
            hook: Hook::ToolAfter,
            priority: 100,
            description: "Removes terminal control sequences from results.",
            work: Box::new(strip_ansi::StripAnsi),
            is_guard: false,
        },
        Builtin {
            id: "builtin:redact-secrets",
            hook: Hook::ToolAfter,
            priority: 90,
            description: "Replaces credentials and personal data in results by placeholders.",
            work: Box::new(redact_secrets::RedactSecrets::new(redact)),
            is_guard: false,
        },
        Builtin {
            id: "builtin:message-guard",
            hook: Hook::MessageBefore,
            // After everybody who takes something out of the message.
            priority: -100,
            description: "Judges messages as CheckMessages does.",
            work: Box::new(message_guard::MessageGuard),
            is_guard: false,
        },
    ];
    if injection != InjectionAction::Off {
        builtins.push(Builtin {
            id: "builtin:injection-guard",
            hook: Hook::ToolAfter,
            priority: 80,
            description: "Judges results for prompt injection.",
            work: Box::new(injection_guard::InjectionGuard::new(injection)),
            is_guard: false,
        });
    }
    builtins.into_iter().map(|one| compiled(one, arguments, &switch)).collect()
}

fn compiled(one: Builtin, arguments: &ArgumentMap, switch: &impl Fn(&str) -> BuiltinSwitch) -> Interceptor {
    let switch = switch(one.id);
    let tools = match one.id {
        "builtin:command-safety-guard" => {
            guarded(|tool| arguments.runs_commands(tool) || arguments.fetches(tool), arguments)
        }
        "builtin:security-audit" => guarded(
            |tool| arguments.runs_commands(tool) || arguments.names_paths(tool) || arguments.fetches(tool),
            arguments,
        ),
        _ => Vec::new(),
    };
    let tool_matcher: String =
        if tools.is_empty() { String::new() } else { format!("^({})$", tools.join("|")) };
    Interceptor {
        id: one.id.into(),
        hook: one.hook,
        priority: one.priority,
        mode: switch.mode.unwrap_or_default(),
        fail: switch.fail.unwrap_or(FailMode::Closed),
        timeout: switch.timeout.unwrap_or(INTERCEPTOR_TIMEOUT_DEFAULT),
        description: one.description.into(),
        tools: if tools.is_empty() { ToolMatcher::All } else { ToolMatcher::Names(tools) },
        tool_matcher: tool_matcher.into(),
        agent_matcher: "".into(),
        agents: AgentMatcher::default(),
        source: Source::Builtin,
        tenant: "".into(),
        is_for_all: true,
        spec: None,
        work: Work::Local(one.work),
        is_guard: one.is_guard,
    }
}

/// Names of the tools of which a guard knows arguments, sorted.
fn guarded(wanted: impl Fn(&str) -> bool, arguments: &ArgumentMap) -> Vec<String> {
    let known = names::GUARDED.iter().map(|name| (*name).to_owned());
    let mut tools: Vec<String> =
        known.chain(arguments.tools().map(str::to_owned)).filter(|tool| wanted(tool)).collect();
    tools.sort();
    tools.dedup();
    tools
}
