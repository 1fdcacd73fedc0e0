//! `POST /v1/evaluate` of the OpenGuardrails runtime API: one half of a step in, one verdict out.
//!
//! The payload is the body that the provider of a model takes or gives, untouched. Every text in it is judged, wherever
//! its protocol puts it: a text that a table of protocols missed would pass unread. Definitions of tools and arguments
//! that are objects are judged as JSON. Media is unjudged and does what the policy says (`plugins.media.fail`). Tools
//! that an answer of the model wants to run are judged as `InterceptTool` does.
//!
//! A verdict allows or blocks; ASK blocks. Offsets count Unicode code points. Sources: `specification/runtime-api.md` and
//! `specification/guard-event.md` of <https://github.com/openguardrails/openguardrails>.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::judging::{Conversation, Judged, judge, text_of};
use super::payload::Payload;
use super::{Adapters, Problem, Received};
use crate::pb::v1;
use crate::telemetry::Code;

const PATH: &str = "/v1/evaluate";
/// Fields of identity, which must be there and may be empty, with their longest values in code points.
const IDENTITY: [(&str, usize); 4] =
    [("agent_id", 255), ("agent_type", 64), ("agent_workspace", 255), ("agent_user", 255)];
const STEP_ID_CHARS_MAX: usize = 128;
const PROTOCOLS: [&str; 4] = ["openai.chat", "openai.responses", "anthropic.messages", "canonical"];
pub(super) fn routes(adapters: &Adapters) -> Router {
    Router::new().route(PATH, post(evaluate)).with_state(adapters.clone())
}

async fn evaluate(State(adapters): State<Adapters>, request: Request) -> Response {
    match verdict(&adapters, request).await {
        Ok(verdict) => Json(verdict).into_response(),
        Err(Failed::Event(issues)) => {
            let details: Vec<_> =
                issues.iter().map(|(field, message)| json!({ "field": field, "message": message })).collect();
            let body = json!({ "error": "invalid_event", "details": details });
            (StatusCode::BAD_REQUEST, Json(body)).into_response()
        }
        Err(Failed::Problem(problem)) => failed(&problem),
    }
}

/// Why there is no verdict.
enum Failed {
    /// Fields of the event that are wrong, and how.
    Event(Vec<(String, String)>),
    Problem(Problem),
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// The errors that the contract fixes; the others tell what happened in the same form.
fn failed(problem: &Problem) -> Response {
    let (status, body) = match problem.code {
        Code::Unauthenticated => (problem.status, json!({ "error": "unauthorized" })),
        Code::ResourceExhausted if problem.retry.is_some() => {
            (problem.status, json!({ "error": "rate_limited", "limit": problem.rate.unwrap_or_default() }))
        }
        Code::ResourceExhausted => {
            (StatusCode::PAYLOAD_TOO_LARGE, json!({ "error": "too_large", "message": problem.message }))
        }
        Code::InvalidArgument if problem.status == StatusCode::BAD_REQUEST => {
            let details = [json!({ "field": "", "message": problem.message })];
            (problem.status, json!({ "error": "invalid_event", "details": details }))
        }
        _ => (problem.status, json!({ "error": problem.word, "message": problem.message })),
    };
    problem.with_headers((status, Json(body)).into_response())
}

async fn verdict(adapters: &Adapters, request: Request) -> Result<Value, Failed> {
    let received = adapters.receive(request).await?;
    let event = Event::read(received.json()?).map_err(Failed::Event)?;
    let mut payload = Payload::new(event.is_response);
    payload.walk("payload", &event.payload, event.speaker());
    let judged = judge(&received, payload.conversation(&event, &received)).await?;
    Ok(payload.verdict(&judged))
}

/// One half of a step.
struct Event {
    is_response: bool,
    step_id: String,
    agent_id: String,
    session: String,
    payload: Value,
}

impl Event {
    /// Reads an event. What a later version adds is ignored.
    fn read(mut members: Map<String, Value>) -> Result<Self, Vec<(String, String)>> {
        let mut issues = Vec::new();
        let mut wrong = |field: &str, message: &str| issues.push((field.to_owned(), message.to_owned()));
        let mut word = |field: &str| match members.get(field) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                wrong(field, "must be a string");
                None
            }
            None => {
                wrong(field, "is required");
                None
            }
        };
        let (kind, step_id, protocol) = (word("kind"), word("step_id"), word("llm_protocol"));
        let identity = IDENTITY.map(|(field, _)| word(field));
        if kind.as_deref().is_some_and(|kind| !matches!(kind, "step/request" | "step/response")) {
            wrong("kind", "must be step/request or step/response");
        }
        if step_id.as_deref().is_some_and(|id| id.is_empty() || id.chars().count() > STEP_ID_CHARS_MAX) {
            wrong("step_id", "must have 1 to 128 characters");
        }
        if protocol.as_deref().is_some_and(|protocol| !PROTOCOLS.contains(&protocol)) {
            wrong("llm_protocol", "must be openai.chat, openai.responses, anthropic.messages or canonical");
        }
        for ((field, limit), value) in IDENTITY.iter().zip(&identity) {
            if value.as_deref().is_some_and(|value| value.chars().count() > *limit) {
                wrong(field, &format!("must have at most {limit} characters"));
            }
        }
        let payload = members.remove("payload").unwrap_or_default();
        if !payload.is_object() {
            wrong("payload", "must be an object");
        }
        let session = members.get("session_hint").and_then(Value::as_str).unwrap_or_default().to_owned();
        let [agent_id, ..] = identity;
        match (kind, step_id, agent_id) {
            (Some(kind), Some(step_id), Some(agent_id)) if issues.is_empty() => {
                Ok(Self { is_response: kind == "step/response", step_id, agent_id, session, payload })
            }
            _ => Err(issues),
        }
    }

    /// Who speaks where the payload does not say.
    fn speaker(&self) -> &'static str {
        if self.is_response { "assistant" } else { "user" }
    }
}

impl Payload {
    fn conversation(&mut self, event: &Event, received: &Received) -> Conversation {
        let direction = if self.is_response { v1::Direction::Output } else { v1::Direction::Input };
        let agent_id = if received.agent_id.is_empty() { &event.agent_id } else { &received.agent_id };
        Conversation {
            messages: self.messages.clone(),
            direction,
            tools: std::mem::take(&mut self.tools),
            context: v1::CallContext {
                agent_id: agent_id.clone(),
                session_key: event.session.clone(),
                request_id: event.step_id.clone(),
                ..Default::default()
            },
            policy: received.policy.clone(),
        }
    }

    fn verdict(&self, judged: &Judged) -> Value {
        let findings: Vec<_> = judged.findings.iter().map(|finding| self.finding(finding)).collect();
        let event_id = match &*judged.decision_id {
            "" => uuid::Uuid::now_v7().to_string(),
            id => id.to_owned(),
        };
        let mut verdict = json!({
            "event_id": event_id,
            "provider": "portcullis",
            "decision": if judged.passes { "allow" } else { "block" },
            "findings": findings,
        });
        if !judged.reason.is_empty() {
            verdict["reasons"] = json!([judged.reason]);
        }
        let spans: Vec<_> = if judged.passes { self.spans(judged) } else { Vec::new() };
        if !spans.is_empty() {
            verdict["modifications"] = json!({ "kind": "redact", "spans": spans });
        }
        if !judged.unjudged.is_empty() {
            // Which part it is about is not known.
            verdict["unjudged"] = json!(["payload"]);
        }
        verdict
    }

    fn finding(&self, finding: &v1::Finding) -> Value {
        let mut told = json!({
            "category": format!("x.portcullis.{}", finding.category),
            "severity": match finding.severity() {
                v1::Severity::Low => "low",
                v1::Severity::Medium => "medium",
                v1::Severity::High => "high",
                v1::Severity::Critical | v1::Severity::Unspecified => "critical",
            },
            "score": finding.score,
            "detector": finding.plugin,
        });
        if !finding.fingerprint.is_empty() {
            told["fp"] = finding.fingerprint.clone().into();
        }
        let span = finding.span.as_ref().filter(|span| span.path == "/text");
        let place =
            span.and_then(|span| Some((span, self.places.get(usize::try_from(span.message_index).ok()?)?)));
        if let Some((span, (path, true))) = place {
            told["path"] = path.clone().into();
            told["start"] = span.start.into();
            told["end"] = span.end.into();
        }
        told
    }

    /// What has to be replaced for every text to be the masked one.
    fn spans(&self, judged: &Judged) -> Vec<Value> {
        let texts = self.places.iter().zip(self.messages.iter().zip(&judged.messages));
        let changed =
            texts.filter(|((_, is_text), (sent, masked))| *is_text && text_of(sent) != text_of(masked));
        let span = |((path, _), (sent, masked)): (&(String, bool), (&v1::Message, &v1::Message))| {
            let (start, end, replacement) = difference(text_of(sent), text_of(masked));
            json!({ "path": path, "start": start, "end": end, "operator": "replace", "replacement": replacement })
        };
        changed.map(span).collect()
    }
}

/// Where two texts differ: begin and end in the first, in code points, and what stands there in the second.
fn difference(sent: &str, masked: &str) -> (usize, usize, String) {
    let (sent, masked): (Vec<char>, Vec<char>) = (sent.chars().collect(), masked.chars().collect());
    let start = sent.iter().zip(&masked).take_while(|(a, b)| a == b).count();
    let (sent_rest, masked_rest) = (&sent[start..], &masked[start..]);
    let kept = sent_rest.iter().rev().zip(masked_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    (start, sent.len() - kept, masked_rest[..masked_rest.len() - kept].iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_counts_code_points() {
        assert_eq!(difference("é ada x", "é [E] x"), (2, 5, "[E]".to_owned()));
        assert_eq!(difference("aa", "a"), (1, 2, String::new()));
        assert_eq!(difference("same", "same"), (4, 4, String::new()));
    }

    #[test]
    fn an_event_tells_all_that_is_wrong_with_it() {
        let wrong = json!({ "kind": "turn/end", "step_id": "", "agent_id": 7, "agent_type": "", "agent_workspace": "", "llm_protocol": "x" });
        let Value::Object(members) = wrong else { panic!("an object") };
        let issues = Event::read(members).err().expect("it is wrong");
        let fields: Vec<_> = issues.iter().map(|(field, _)| &**field).collect();
        assert_eq!(fields, ["agent_id", "agent_user", "kind", "step_id", "llm_protocol", "payload"]);
    }
}
