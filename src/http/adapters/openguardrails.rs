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

use super::judging::{Conversation, Judged, judge, role, text, text_of};
use super::{Adapters, Problem, Received};
use crate::pb::v1;
use crate::telemetry::Code;

const PATH: &str = "/v1/evaluate";
/// Fields of identity, which must be there and may be empty, with their longest values in code points.
const IDENTITY: [(&str, usize); 4] =
    [("agent_id", 255), ("agent_type", 64), ("agent_workspace", 255), ("agent_user", 255)];
const STEP_ID_CHARS_MAX: usize = 128;
const PROTOCOLS: [&str; 4] = ["openai.chat", "openai.responses", "anthropic.messages", "canonical"];
/// Members that hold JSON of a tool where they are no text.
const JSON_MEMBERS: [&str; 7] =
    ["tools", "functions", "arguments", "input_schema", "parameters", "response_format", "json_schema"];
/// Members that hold a word of the protocol or an id.
const WORD_MEMBERS: [&str; 12] = [
    "type",
    "role",
    "id",
    "model",
    "object",
    "finish_reason",
    "stop_reason",
    "tool_call_id",
    "tool_use_id",
    "call_id",
    "media_type",
    "system_fingerprint",
];
const WORD_BYTES_MAX: usize = 128;

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

/// What a payload says.
struct Payload {
    is_response: bool,
    messages: Vec<v1::Message>,
    /// The path of each message, and whether offsets in it are those of a text of the payload.
    places: Vec<(String, bool)>,
    tools: Vec<v1::ToolCall>,
}

impl Payload {
    fn new(is_response: bool) -> Self {
        Self { is_response, messages: Vec::new(), places: Vec::new(), tools: Vec::new() }
    }

    fn add(&mut self, path: &str, message: v1::Message, is_text: bool) {
        self.messages.push(message);
        self.places.push((path.to_owned(), is_text));
    }

    fn add_part(&mut self, path: &str, speaker: &str, part: v1::part::Part) {
        let parts = vec![v1::Part { part: Some(part) }];
        let content = Some(v1::message::Content::Parts(v1::Parts { parts }));
        self.add(path, v1::Message { role: speaker.to_owned(), content, ..Default::default() }, false);
    }

    /// Everything below `value`. The parser allows no deeper nesting than the stack has room for.
    fn walk(&mut self, path: &str, value: &Value, speaker: &'static str) {
        match value {
            Value::String(said) if is_inline_media(said) => {
                let media = v1::MediaRef { mime_type: "*/*".to_owned(), ..Default::default() };
                self.add_part(path, speaker, v1::part::Part::Media(media));
            }
            Value::String(said) if !said.is_empty() => self.add(path, text(speaker, said), true),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.walk(&format!("{path}.{at}"), item, speaker);
                }
            }
            Value::Object(members) => self.walk_object(path, members, speaker),
            _ => {}
        }
    }

    fn walk_object(&mut self, path: &str, members: &Map<String, Value>, speaker: &'static str) {
        let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
        let speaker = match members.get("role").and_then(Value::as_str) {
            Some(given) => role(given),
            // Results of tools come in turns of the user.
            None if kind == "tool_result" || kind == "function_call_output" => "tool",
            None => speaker,
        };
        if self.is_response {
            self.tools.extend(tool_of(members));
        }
        if is_media(kind, members) {
            let media = v1::MediaRef { mime_type: "*/*".to_owned(), ..Default::default() };
            self.add_part(path, speaker, v1::part::Part::Media(media));
        }
        for (name, value) in members {
            let path = format!("{path}.{name}");
            let is_word = |word: &str| word.len() <= WORD_BYTES_MAX && !word.contains(char::is_whitespace);
            let is_json = JSON_MEMBERS.contains(&&**name) || (name == "input" && kind == "tool_use");
            match value {
                Value::String(word) if WORD_MEMBERS.contains(&&**name) && is_word(word) => {}
                // Base64 of media, which is told above.
                Value::String(_) if matches!(&**name, "data" | "file_data") => {}
                Value::Object(_) | Value::Array(_) if is_json => {
                    self.add_part(&path, "tool", v1::part::Part::Json(value.to_string()));
                }
                _ if matches!(&**name, "system" | "instructions") => self.walk(&path, value, "system"),
                _ => self.walk(&path, value, speaker),
            }
        }
    }

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

/// The call of a tool that an object is, in any of the protocols.
fn tool_of(members: &Map<String, Value>) -> Option<v1::ToolCall> {
    let word = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let arguments = match members.get("arguments") {
        Some(arguments) => arguments,
        None if word("type") == "tool_use" => members.get("input")?,
        None => return None,
    };
    let args_json = match arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(v1::ToolCall { id: word("id"), name: word("name"), args_json })
}

fn is_inline_media(said: &str) -> bool {
    said.get(..5).is_some_and(|begin| begin.eq_ignore_ascii_case("data:")) || said == "ogr-media:elided"
}

/// Whether an object holds media that no text of it tells.
fn is_media(kind: &str, members: &Map<String, Value>) -> bool {
    let has_data = ["data", "file_data", "file_id"].iter().any(|name| members.contains_key(*name));
    has_data
        || matches!(
            kind,
            "image" | "image_url" | "input_image" | "input_audio" | "document" | "file" | "input_file"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(is_response: bool, payload: Value) -> Vec<(String, String, String)> {
        let mut walked = Payload::new(is_response);
        walked.walk("payload", &payload, if is_response { "assistant" } else { "user" });
        let of = |((path, _), message): (&(String, bool), &v1::Message)| {
            let said = match &message.content {
                Some(v1::message::Content::Text(text)) => text.clone(),
                Some(v1::message::Content::Parts(parts)) => match &parts.parts[0].part {
                    Some(v1::part::Part::Json(json)) => json.clone(),
                    _ => "media".to_owned(),
                },
                None => String::new(),
            };
            (path.clone(), message.role.clone(), said)
        };
        walked.places.iter().zip(&walked.messages).map(of).collect()
    }

    #[test]
    fn every_text_is_found_with_its_path_and_speaker() {
        let chat = json!({ "model": "m", "messages": [
            { "role": "system", "content": "be kind" },
            { "role": "user", "content": [{ "type": "text", "text": "look" }, { "type": "image_url", "image_url": { "url": "data:image/png;base64,aa" } }] },
            { "role": "tool", "tool_call_id": "c1", "content": "result" },
        ], "tools": [{ "type": "function" }] });
        let found = said(false, chat);
        let wanted = [
            ("payload.messages.0.content", "system", "be kind"),
            ("payload.messages.1.content.0.text", "user", "look"),
            ("payload.messages.1.content.1", "user", "media"),
            ("payload.messages.1.content.1.image_url.url", "user", "media"),
            ("payload.messages.2.content", "tool", "result"),
            ("payload.tools", "tool", r#"[{"type":"function"}]"#),
        ];
        let wanted: Vec<_> = wanted.iter().map(|(a, b, c)| ((*a).into(), (*b).into(), (*c).into())).collect();
        assert_eq!(found, wanted);
        let claude = json!({ "system": [{ "type": "text", "text": "be kind" }], "messages": [
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t", "content": [{ "type": "text", "text": "result" }] }] },
        ]});
        let found = said(false, claude);
        assert_eq!(found[0], ("payload.system.0.text".into(), "system".into(), "be kind".into()));
        assert_eq!(found[1].1, "tool");
    }

    #[test]
    fn tools_that_an_answer_wants_are_found_in_every_protocol() {
        for payload in [
            json!({ "choices": [{ "message": { "role": "assistant", "content": null, "tool_calls": [{ "id": "c", "function": { "name": "bash", "arguments": "{\"a\":1}" } }] } }] }),
            json!({ "content": [{ "type": "tool_use", "id": "c", "name": "bash", "input": { "a": 1 } }] }),
            json!({ "output": [{ "type": "function_call", "call_id": "c", "name": "bash", "arguments": "{\"a\":1}" }] }),
            json!({ "text": "", "tool_calls": [{ "id": "c", "name": "bash", "arguments": { "a": 1 } }] }),
        ] {
            let mut walked = Payload::new(true);
            walked.walk("payload", &payload, "assistant");
            let tools: Vec<_> = walked.tools.iter().map(|tool| (&*tool.name, &*tool.args_json)).collect();
            assert_eq!(tools, [("bash", "{\"a\":1}")], "{payload}");
            assert!(!walked.messages.is_empty(), "the arguments are read as well: {payload}");
        }
    }

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
