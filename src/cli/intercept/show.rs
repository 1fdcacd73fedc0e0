//! The answer of an interception hook as a person reads it.

use std::ops::Range;

use super::literal::literal_at;
use crate::cli::findings::{decision_style, print_finding, print_unjudged};
use crate::cli::snippet::printable;
use crate::cli::{Output, Style, remote};
use crate::pb::v1;

/// What every answer of a hook has.
struct Answer<'r> {
    decision: v1::Decision,
    /// What was asked about, such as the name of the tool.
    subject: &'r str,
    reason: &'r str,
    findings: &'r [v1::Finding],
    unjudged: &'r [v1::Unjudged],
    events: &'r [v1::InterceptorEvent],
}

/// A text that findings point into, with the path that names it.
struct Source<'r> {
    path: &'static str,
    text: &'r str,
    is_json: bool,
}

/// Prints the answer about a tool call.
pub(super) fn tool(
    request: &v1::InterceptToolRequest,
    response: &v1::InterceptToolResponse,
    output: &mut Output,
) {
    let answer = Answer {
        decision: response.decision(),
        subject: &response.tool_name,
        reason: &response.block_reason,
        findings: &response.findings,
        unjudged: &response.unjudged,
        events: &response.events,
    };
    let sources = [
        Source { path: "/args_json", text: &request.args_json, is_json: true },
        Source { path: "/result_json", text: &request.result_json, is_json: true },
    ];
    print(&answer, &sources, output);
    changed("arguments", &request.args_json, &response.args_json, output);
    changed("result", &request.result_json, &response.result_json, output);
    changed("metadata", &request.metadata_json, &response.metadata_json, output);
}

/// Prints the answer about a message.
pub(super) fn message(
    request: &v1::InterceptMessageRequest,
    response: &v1::InterceptMessageResponse,
    output: &mut Output,
) {
    let answer = Answer {
        decision: response.decision(),
        subject: "message",
        reason: &response.block_reason,
        findings: &response.findings,
        unjudged: &response.unjudged,
        events: &response.events,
    };
    print(&answer, &[Source { path: "/message", text: &request.message, is_json: false }], output);
    changed("message", &request.message, &response.message, output);
    changed("metadata", &request.metadata_json, &response.metadata_json, output);
}

/// Prints the answer about parameters.
pub(super) fn params(
    request: &v1::InterceptParamsRequest,
    response: &v1::InterceptParamsResponse,
    output: &mut Output,
) {
    let answer = Answer {
        decision: response.decision(),
        subject: "params",
        reason: &response.block_reason,
        findings: &response.findings,
        unjudged: &response.unjudged,
        events: &response.events,
    };
    print(&answer, &[Source { path: "/message", text: &request.message, is_json: false }], output);
    let params = response.params.clone().unwrap_or_default();
    for field in &response.changed_fields {
        let value = match field.as_str() {
            "provider" => params.provider.clone(),
            "model" => params.model.clone(),
            "think_level" => params.think_level.clone(),
            "reasoning_level" => params.reasoning_level.clone(),
            "temperature" => params.temperature.map(|value| value.to_string()).unwrap_or_default(),
            _ => continue,
        };
        heading(&format!("{field} now"), &value, output);
    }
    changed("metadata", &request.metadata_json, &response.metadata_json, output);
}

fn print(answer: &Answer<'_>, sources: &[Source<'_>], output: &mut Output) {
    let decision = remote::decision_of(answer.decision);
    let headline = output.styled(decision_style(decision), decision.as_str());
    output.line(format_args!("{headline}  {}", printable(answer.subject)));
    if !answer.reason.is_empty() {
        output.line(format_args!("  {}", printable(answer.reason)));
    }
    for finding in answer.findings {
        let (text, span) = place(finding, sources);
        print_finding(finding, &text, span, output);
    }
    for unjudged in answer.unjudged {
        print_unjudged(unjudged, output);
    }
    if !answer.events.is_empty() {
        let title = output.styled(Style::Bold, "events:");
        output.line(format_args!("\n{title}"));
        answer.events.iter().for_each(|event| print_event(event, output));
    }
}

/// The text around a finding: the string that the JSON holds where there is one, else the JSON itself.
fn place(finding: &v1::Finding, sources: &[Source<'_>]) -> (String, Range<usize>) {
    let place = finding.span.clone().unwrap_or_default();
    let offset = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    let span = offset(place.start)..offset(place.end);
    let Some(source) = sources.iter().find(|source| source.path == place.path) else {
        return (String::new(), 0..0);
    };
    let within = if source.is_json { literal_at(source.text, span.clone()) } else { None };
    within.unwrap_or_else(|| (source.text.to_owned(), span))
}

fn print_event(event: &v1::InterceptorEvent, output: &mut Output) {
    let hook = event.hook().as_str_name().trim_start_matches("HOOK_").to_ascii_lowercase().replace('_', ".");
    let shadow = if event.shadow { ", in shadow" } else { "" };
    let elapsed = event.elapsed.as_ref().map_or(0.0, |elapsed| {
        // Microseconds of a call are far below 2^53.
        elapsed.seconds as f64 * 1e6 + f64::from(elapsed.nanos) / 1e3
    });
    let id = output.styled(Style::Bold, printable(&event.interceptor_id));
    output.line(format_args!("  {id} {hook}{shadow}: {} ({elapsed:.0} us)", printable(&event.summary)));
}

/// Prints a text that is not as it was sent.
fn changed(what: &str, sent: &str, now: &str, output: &mut Output) {
    let is_same = now == sent || now.is_empty() || (sent.is_empty() && now == "{}");
    if !is_same {
        heading(&format!("{what} now"), now, output);
    }
}

fn heading(title: &str, text: &str, output: &mut Output) {
    let title = output.styled(Style::Bold, format_args!("{title}:"));
    output.line(format_args!("\n{title} {}", printable(text)));
}
