//! `interceptors list`.

use clap::Args;

use super::{SERVER_DEFAULT, hook_name, hook_of};
use crate::cli::context::Context;
use crate::cli::output::Style;
use crate::cli::snippet::printable;
use crate::cli::{Exit, Failure, Output, remote};
use crate::pb::v1;

/// Arguments of `interceptors list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// Only those on this hook: message.before, params.before, tool.before or tool.after.
    #[arg(long, value_name = "HOOK")]
    hook: Option<String>,
    /// Name of the policy [default: default].
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// The server to ask.
    #[arg(long, value_name = "URL", default_value = SERVER_DEFAULT)]
    server: String,
    /// Print the response as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(
    arguments: &ListArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let unknown = |name: &String| {
        Failure::usage(format_args!(
            "--hook: `{name}` is none of: message.before, params.before, tool.before, tool.after"
        ))
    };
    let hook = arguments.hook.as_ref().map(|name| hook_of(name).ok_or_else(|| unknown(name))).transpose()?;
    let request = v1::ListInterceptorsRequest {
        hook: hook.unwrap_or_default().into(),
        policy: arguments.policy.clone().unwrap_or_default(),
        page_size: 1_000,
        ..Default::default()
    };
    let response = remote::connect(&arguments.server, context)?.interceptors(request)?;
    if arguments.json {
        output.json(&response)?;
        return Ok(Exit::Ok);
    }
    let width = |of: fn(&v1::Interceptor) -> usize| response.interceptors.iter().map(of).max().unwrap_or(0);
    let ids = width(|one| one.id.chars().count());
    let matchers = width(|one| matcher(one).chars().count());
    for one in &response.interceptors {
        let line = format!(
            "{:14}  {:>6}  {:ids$}  {:7}  {:6}  {:matchers$}  {}",
            hook_name(one.hook()),
            one.priority,
            printable(&one.id),
            mode(one),
            source(one),
            printable(&matcher(one)),
            printable(&one.description),
        );
        output.line(line.trim_end());
    }
    let plural = if response.interceptors.len() == 1 { "" } else { "s" };
    let count = format!("{} interceptor{plural}", response.interceptors.len());
    let count = output.styled(Style::Dim, count);
    output.line(count);
    Ok(Exit::Ok)
}

fn mode(one: &v1::Interceptor) -> &'static str {
    match one.mode() {
        v1::Mode::Unspecified | v1::Mode::Enforce => "enforce",
        v1::Mode::Shadow => "shadow",
        v1::Mode::Off => "off",
    }
}

fn source(one: &v1::Interceptor) -> &'static str {
    match one.source() {
        v1::InterceptorSource::Builtin => "built-in",
        v1::InterceptorSource::Policy => "policy",
        v1::InterceptorSource::Api => "api",
        v1::InterceptorSource::Unspecified => "unknown",
    }
}

/// What it is for, as its matchers say.
fn matcher(one: &v1::Interceptor) -> String {
    let tools = if one.tool_matcher.is_empty() { "every tool" } else { &one.tool_matcher };
    let is_tool = matches!(one.hook(), v1::Hook::ToolBefore | v1::Hook::ToolAfter);
    match (is_tool, one.agent_matcher.is_empty()) {
        (true, true) => tools.to_owned(),
        (true, false) => format!("{tools}, agents {}", one.agent_matcher),
        (false, true) => "every agent".to_owned(),
        (false, false) => format!("agents {}", one.agent_matcher),
    }
}
