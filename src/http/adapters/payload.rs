//! What the body of a call to a model says, whatever the protocol of its provider.
//!
//! Every text below a value is taken out with its path and its speaker: a text that a table of protocols missed would pass
//! unread. Definitions of tools and arguments that are objects are taken as JSON, media as media.

use serde_json::{Map, Value};

use super::judging::{role, text};
use crate::pb::v1;

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

/// What a payload says.
pub(super) struct Payload {
    pub(super) is_response: bool,
    /// Every text and other part, in order, one in each message.
    pub(super) messages: Vec<v1::Message>,
    /// The path of each message, and whether offsets in it are those of a text of the payload.
    pub(super) places: Vec<(String, bool)>,
    /// The tools that an answer of the model wants to run.
    pub(super) tools: Vec<v1::ToolCall>,
}

impl Payload {
    /// Nothing yet of what the model answered, or of what it was asked.
    pub(super) fn new(is_response: bool) -> Self {
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
    pub(super) fn walk(&mut self, path: &str, value: &Value, speaker: &'static str) {
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
    use serde_json::json;

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
}
