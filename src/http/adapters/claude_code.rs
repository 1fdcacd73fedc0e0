//! Hooks of Claude Code over HTTP: the event that the command hook reads on standard input, the answer that it prints.
//!
//! Claude Code goes on when the answer of such a hook is not 2xx, is not JSON, or does not come. So every answer here is a
//! 200, and what cannot be judged is one that refuses the step. Source: <https://code.claude.com/docs/en/hooks>, "HTTP
//! response handling".

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::any;

use super::{Adapters, Problem, Received, one};
use crate::hooks::{Answer, Event, HookError, Question, Setup};
use crate::pb::v1;

/// Where the hook is served.
pub(super) const PATH: &str = "/hooks/claude-code";
/// `true`: say nothing of tool calls that pass.
const DEFER: &str = "portcullis-defer";
/// Id of the agent unless the caller names one.
const AGENT: &str = "claude-code";

pub(super) fn routes(adapters: &Adapters) -> Router {
    // Any method: a hook that is set up with a wrong one must not let its steps pass.
    Router::new().route(PATH, any(hook)).with_state(adapters.clone())
}

async fn hook(State(adapters): State<Adapters>, request: Request) -> Response {
    if request.method() != axum::http::Method::POST {
        return refused("a hook must be sent with POST");
    }
    let received = match adapters.receive(request).await {
        Ok(received) => received,
        Err(problem) => return refused(&problem.message),
    };
    let event = std::str::from_utf8(&received.body).map_err(|_| "the event is not UTF-8".to_owned());
    let event = match event.and_then(|text| Event::parse(text).map_err(|error| error.to_string())) {
        Ok(event) => event,
        Err(message) => return refused(&message),
    };
    let answer = judged(&received, &event)
        .await
        .unwrap_or_else(|problem| Answer::refusal(&event, &why(&problem.message)));
    json(answer.into_json(event.name()))
}

async fn judged(received: &Received, event: &Event) -> Result<Answer, Problem> {
    let setup = Setup {
        policy: received.policy.clone(),
        agent_id: if received.agent_id.is_empty() { AGENT } else { &received.agent_id }.to_owned(),
        defers: match one(&received.headers, DEFER)? {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Problem::wrong(format!("`{DEFER}` must be true or false"))),
        },
    };
    let answer = match setup.question(event)? {
        Question::ToolBefore(mut request) => {
            request.environment = Some(environment(event));
            setup.before_tool(event, &received.decide("InterceptTool", &*request).await?)
        }
        Question::ToolAfter(mut request) => {
            request.environment = Some(environment(event));
            setup.after_tool(event, &received.decide("InterceptTool", &*request).await?)
        }
        Question::Batch(requests) => {
            let mut responses = Vec::with_capacity(requests.len());
            for mut request in requests {
                request.environment = Some(environment(event));
                responses.push(received.decide("InterceptTool", &request).await?);
            }
            setup.after_batch(event, &responses)
        }
        Question::Prompt(requests) => {
            let (intercept, check) = &*requests;
            let message = received.decide("InterceptMessage", intercept).await?;
            let checked = received.decide("CheckMessages", check).await?;
            setup.after_prompt(event, &message, &checked)
        }
        Question::Nothing => Ok(Answer::default()),
    };
    Ok(answer?)
}

impl From<HookError> for Problem {
    fn from(error: HookError) -> Self {
        Self::wrong(error.to_string())
    }
}

/// Where the tool runs, as far as the event tells: it names the working directory, whose notation tells the system.
fn environment(event: &Event) -> v1::ExecutionContext {
    let cwd = event.cwd.clone().unwrap_or_default();
    let os = match cwd.as_bytes() {
        [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic() => "windows",
        [b'\\', b'\\', ..] => "windows",
        _ if cwd.starts_with("/Users/") => "macos",
        _ => "linux",
    };
    v1::ExecutionContext { cwd, os: os.to_owned(), ..Default::default() }
}

fn why(message: &str) -> String {
    format!("Portcullis could not judge, so this step is refused: {message}")
}

/// The refusal of an event that could not be read. Without its name no form of its own can be chosen, so this is the one
/// that stops every kind of event.
pub(super) fn refused(message: &str) -> Response {
    let reason = why(message);
    let answer = serde_json::json!({
        "continue": false,
        "stopReason": reason,
        "decision": "block",
        "reason": reason,
    });
    json(answer.to_string())
}

fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_working_directory_tells_the_system() {
        for (cwd, os) in [
            ("/home/dev/app", "linux"),
            ("/Users/dev/app", "macos"),
            ("C:\\Users\\dev", "windows"),
            ("d:/work", "windows"),
            ("\\\\server\\share", "windows"),
            ("", "linux"),
        ] {
            let event = serde_json::json!({ "hook_event_name": "PreToolUse", "cwd": cwd }).to_string();
            let event = Event::parse(&event).expect("an event");
            assert_eq!(environment(&event).os, os, "{cwd}");
        }
    }
}
