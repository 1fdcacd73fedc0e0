//! The generic guardrail API of LiteLLM.
//!
//! The proxy takes the texts out of a request or of a model's answer and sends them; NONE lets them pass, BLOCKED refuses
//! with a reason, GUARDRAIL_INTERVENED replaces them by as many texts in the same order. What the proxy did not take out of
//! the chat, and the definitions of tools, is judged too, though it cannot be replaced. Images are listed as unjudged and
//! do what the policy says (`plugins.media.fail`). Tools that the model wants to run are judged as `InterceptTool` does.
//! There is no place for a warning: it passes. An error is a status other than 2xx, on which the proxy refuses unless its
//! own `fail_on_error` or `unreachable_fallback` says otherwise.
//! Source: <https://docs.litellm.ai/docs/adding_provider/generic_guardrail_api>.

use axum::extract::{Request, State};
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::judging::{Conversation, judge, text, text_of};
use super::payload::Payload;
use super::{Adapters, Problem};
use crate::pb::v1;

const PATH: &str = "/beta/litellm_basic_guardrail_api";

/// What is sent. Every release of the proxy adds something; what no answer needs is ignored.
#[derive(Deserialize)]
struct Asked {
    input_type: InputType,
    texts: Option<Vec<String>>,
    images: Option<Vec<Value>>,
    tool_calls: Option<Vec<Value>>,
    tools: Option<Value>,
    structured_messages: Option<Vec<Value>>,
    litellm_call_id: Option<String>,
    litellm_trace_id: Option<String>,
    request_data: Option<KeyData>,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum InputType {
    Request,
    Response,
}

/// What is known of the key that the request came with.
#[derive(Default, Deserialize)]
struct KeyData {
    user_api_key_alias: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    texts: Option<Vec<String>>,
}

pub(super) fn routes(adapters: &Adapters) -> Router {
    Router::new().route(PATH, post(guard)).with_state(adapters.clone())
}

async fn guard(State(adapters): State<Adapters>, request: Request) -> Result<Json<Answer>, Problem> {
    let received = adapters.receive(request).await?;
    let asked: Asked = received.json()?;
    let texts = asked.texts.unwrap_or_default();
    let speaker = if asked.input_type == InputType::Request { "user" } else { "assistant" };
    let chat = said(asked.structured_messages, asked.tools, speaker);
    let spoken: Vec<_> = chat.iter().filter(|said| !text_of(said).is_empty()).collect();
    let mut messages: Vec<_> =
        texts.iter().map(|given| text(role_of(given, &spoken, speaker), given)).collect();
    let images = asked.images.unwrap_or_default();
    let is_told = |said: &v1::Message| match &said.content {
        Some(v1::message::Content::Text(text)) => texts.contains(text),
        // The proxy takes these out of the chat, too.
        _ => !images.is_empty() && is_media(said),
    };
    messages.extend(chat.iter().filter(|said| !is_told(said)).cloned());
    if !images.is_empty() {
        messages.push(media(speaker, images.len()));
    }
    let tool_calls: Vec<_> = asked.tool_calls.unwrap_or_default().iter().map(tool_call).collect();
    if !tool_calls.is_empty() {
        let role = "assistant".to_owned();
        messages.push(v1::Message { role, tool_calls: tool_calls.clone(), ..Default::default() });
    }
    let agent = asked.request_data.unwrap_or_default().user_api_key_alias.unwrap_or_default();
    let conversation = Conversation {
        messages,
        direction: match asked.input_type {
            InputType::Request => v1::Direction::Input,
            InputType::Response => v1::Direction::Output,
        },
        // Those in a request have run already.
        tools: if asked.input_type == InputType::Response { tool_calls } else { Vec::new() },
        context: v1::CallContext {
            agent_id: if received.agent_id.is_empty() { agent } else { received.agent_id.clone() },
            session_key: asked.litellm_trace_id.unwrap_or_default(),
            request_id: asked.litellm_call_id.unwrap_or_default(),
            ..Default::default()
        },
        // Not from `additional_provider_specific_params`: clients of the proxy can add to them.
        policy: received.policy.clone(),
    };
    let judged = judge(&received, conversation).await?;
    if !judged.passes {
        let blocked_reason = Some(judged.reason);
        return Ok(Json(Answer { action: "BLOCKED", blocked_reason, texts: None }));
    }
    // They come first, in the order in which they were given.
    let masked: Vec<_> = judged.messages.iter().take(texts.len()).map(|m| text_of(m).to_owned()).collect();
    let answer = if masked == texts {
        Answer { action: "NONE", blocked_reason: None, texts: None }
    } else {
        Answer { action: "GUARDRAIL_INTERVENED", blocked_reason: None, texts: Some(masked) }
    };
    Ok(Json(answer))
}

/// Everything that a chat and the definitions of its tools say, one part in each message.
fn said(chat: Option<Vec<Value>>, tools: Option<Value>, speaker: &'static str) -> Vec<v1::Message> {
    // The proxy names the tools that an answer wants beside the chat.
    let mut payload = Payload::new(false);
    let named = |name: &str, value: Value| Value::Object([(name.to_owned(), value)].into_iter().collect());
    payload.walk("structured_messages", &Value::Array(chat.unwrap_or_default()), speaker);
    payload.walk("", &named("tools", tools.unwrap_or_default()), speaker);
    payload.messages
}

/// Whether a message of one part holds media.
fn is_media(message: &v1::Message) -> bool {
    let Some(v1::message::Content::Parts(parts)) = &message.content else { return false };
    parts.parts.iter().any(|part| matches!(part.part, Some(v1::part::Part::Media(_))))
}

/// Who said a text. The same words of several speakers are judged as those of the least trusted.
fn role_of<'a>(given: &str, spoken: &[&'a v1::Message], speaker: &'a str) -> &'a str {
    let trust = |role: &&'a str| match *role {
        "system" | "developer" => 2,
        "tool" | "function" => 0,
        _ => 1,
    };
    let roles = spoken.iter().filter(|said| text_of(said) == given).map(|said| &*said.role);
    roles.min_by_key(trust).unwrap_or(speaker)
}

/// A turn of images, whose bytes are not looked into.
fn media(role: &str, count: usize) -> v1::Message {
    let part = v1::part::Part::Media(v1::MediaRef { mime_type: "image/*".to_owned(), ..Default::default() });
    let parts = vec![v1::Part { part: Some(part) }; count];
    let content = Some(v1::message::Content::Parts(v1::Parts { parts }));
    v1::Message { role: role.to_owned(), content, ..Default::default() }
}

/// A tool call in the form of the OpenAI API; arguments that are no text are taken as the JSON they are.
fn tool_call(call: &Value) -> v1::ToolCall {
    let function = &call["function"];
    v1::ToolCall {
        id: call["id"].as_str().unwrap_or_default().to_owned(),
        name: function["name"].as_str().unwrap_or_default().to_owned(),
        args_json: match &function["arguments"] {
            Value::Null => String::new(),
            Value::String(arguments) => arguments.clone(),
            other => other.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_are_those_of_the_least_trusted_speaker() {
        let messages = serde_json::json!([
            { "role": "system", "content": "be kind" },
            { "role": "user", "content": [{ "type": "text", "text": "hello" }, { "type": "image_url" }] },
            { "role": "tool", "content": "be kind" },
            { "role": "assistant", "content": null },
        ]);
        let said = said(messages.as_array().cloned(), None, "user");
        let spoken: Vec<_> = said.iter().collect();
        assert_eq!(role_of("be kind", &spoken, "user"), "tool");
        assert_eq!(role_of("hello", &spoken, "assistant"), "user");
        assert_eq!(role_of("elsewhere", &spoken, "user"), "user");
    }

    #[test]
    fn what_the_proxy_leaves_in_the_chat_and_in_tools_is_found() {
        let chat = serde_json::json!([
            { "role": "tool", "content": [{ "type": "tool_result", "content": [{ "type": "text", "text": "nested" }] }] },
            { "role": "user", "content": { "type": "text", "text": "an object" } },
            { "role": "assistant", "refusal": "no", "tool_calls": [{ "function": { "name": "bash", "arguments": "{\"command\":\"ls\"}" } }] },
            { "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "https://x.example/a.png" } }] },
        ]);
        let tools = serde_json::json!([{ "type": "function", "function": { "description": "of a tool" } }]);
        let found = said(chat.as_array().cloned(), Some(tools), "user");
        for wanted in ["nested", "an object", "no", "bash", "{\"command\":\"ls\"}"] {
            assert!(found.iter().any(|message| text_of(message) == wanted), "{wanted}");
        }
        assert_eq!(found.iter().filter(|message| is_media(message)).count(), 1);
        let json = |message: &v1::Message| format!("{:?}", message.content).contains("of a tool");
        assert!(found.iter().any(json), "definitions of tools");
    }

    #[test]
    fn arguments_of_tools_keep_their_spelling() {
        let call = |arguments: Value| {
            tool_call(
                &serde_json::json!({ "id": "c", "function": { "name": "bash", "arguments": arguments } }),
            )
        };
        assert_eq!(call("{\"n\": 1.0}".into()).args_json, "{\"n\": 1.0}");
        assert_eq!(call(serde_json::json!({ "n": 1 })).args_json, "{\"n\":1}");
        assert_eq!(call(Value::Null).args_json, "");
        assert_eq!(tool_call(&Value::Null).name, "");
    }
}
