//! The answers that Claude Code reads.
//!
//! An answer that decides nothing is `{}`: the permission rules and prompts of the user then apply as if there were no
//! hook. `allow` is only said where the operator asked for it, since it skips those prompts.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::HookError;

/// What replaces every text of a result that is withheld.
const WITHHELD: &str = "[withheld by Portcullis]";
/// Members whose texts are chosen from a few words, in results of tools of the agent. Another word there would not fit the
/// shape of the tool.
const KINDS: [&str; 15] = [
    "type",
    "kind",
    "mode",
    "status",
    "method",
    "action",
    "cell_type",
    "edit_mode",
    "taskType",
    "service_tier",
    "speed",
    "verdict",
    "outcome",
    "level",
    "disabledReason",
];
/// Longest text of a member that names a kind and is kept, in bytes.
const KIND_BYTES_MAX: usize = 32;
/// Deepest nesting of a result that is rebuilt; JSON of the parser is never deeper.
const DEPTH_MAX: usize = 128;

/// An answer under construction.
#[derive(Debug, Default)]
pub struct Answer {
    top: Map<String, Value>,
    specific: Map<String, Value>,
}

impl Answer {
    /// The tool call must not run.
    pub(super) fn deny(&mut self, reason: &str) {
        self.permission("deny", reason);
    }

    /// A person must approve the tool call.
    pub(super) fn ask(&mut self, reason: &str) {
        self.permission("ask", reason);
    }

    /// The tool call may run without the prompts of the agent.
    pub(super) fn approve(&mut self) {
        self.permission("allow", "");
    }

    fn permission(&mut self, decision: &str, reason: &str) {
        self.specific.insert("permissionDecision".to_owned(), decision.into());
        if !reason.is_empty() {
            self.specific.insert("permissionDecisionReason".to_owned(), reason.into());
        }
    }

    /// The prompt, or the result of a tool, is refused; at the end of a batch, the model is not asked again.
    pub(super) fn block(&mut self, reason: &str) {
        self.top.insert("decision".to_owned(), "block".into());
        self.top.insert("reason".to_owned(), reason.into());
    }

    /// The turn ends.
    pub(super) fn stop(&mut self, reason: &str) {
        self.top.insert("continue".to_owned(), false.into());
        self.top.insert("stopReason".to_owned(), reason.into());
    }

    /// Arguments to run the tool with.
    pub(super) fn updated_input(&mut self, args_json: &str) -> Result<(), HookError> {
        self.specific.insert("updatedInput".to_owned(), parse("arguments", args_json)?);
        Ok(())
    }

    /// The result to show to the model in place of the one it had.
    pub(super) fn updated_output(&mut self, result: Value, is_mcp: bool) {
        if is_mcp {
            // What releases call it that could replace the results of MCP tools only.
            self.specific.insert("updatedMCPToolOutput".to_owned(), result.clone());
        }
        self.specific.insert("updatedToolOutput".to_owned(), result);
    }

    /// Text for the model beside what it sees anyway.
    pub(super) fn context(&mut self, text: &str) {
        self.specific.insert("additionalContext".to_owned(), text.into());
    }

    /// Text for the user.
    pub(super) fn tell_user(&mut self, text: &str) {
        self.top.insert("systemMessage".to_owned(), text.into());
    }

    /// The JSON of the answer to an event of that name.
    pub fn into_json(mut self, event: &str) -> String {
        if !self.specific.is_empty() {
            let mut specific = Map::new();
            specific.insert("hookEventName".to_owned(), event.into());
            specific.extend(self.specific);
            self.top.insert("hookSpecificOutput".to_owned(), specific.into());
        }
        Value::Object(self.top).to_string()
    }
}

/// JSON that an interceptor made.
pub(super) fn parse(what: &str, text: &str) -> Result<Value, HookError> {
    // Numbers that fit no 64 bits must not be rounded on their way.
    let raw = serde_json::from_str::<&RawValue>(text);
    raw.and_then(|raw| serde_json::from_str(raw.get()))
        .map_err(|error| HookError::Change(format!("the changed {what} cannot be passed on: {error}")))
}

/// A result of the same shape with none of its texts: the agent shows the original where the shape of a replacement is
/// not that of the tool.
pub(super) fn withheld(result_json: &str) -> Value {
    let result: Value = serde_json::from_str(result_json).unwrap_or(Value::Null);
    if result.pointer("/file/base64").is_some_and(Value::is_string) {
        // A picture or a document: one made of words would be refused by the provider of the model, and with it each request
        // that comes later in the conversation. The agent takes a text from the same tool.
        let lines = json!({ "filePath": WITHHELD, "content": WITHHELD, "numLines": 1, "startLine": 1, "totalLines": 1 });
        return json!({ "type": "text", "file": lines });
    }
    without_texts(result, "", 0)
}

/// Whether the agent hands a document to the model beside the result, where no replacement reaches.
pub(super) fn is_document(result_json: &str) -> bool {
    let result: Value = serde_json::from_str(result_json).unwrap_or(Value::Null);
    matches!(result.get("type").and_then(Value::as_str), Some("pdf" | "parts"))
}

/// Whether a result, as the model is about to see it, is one that was withheld: these words and no others.
pub(super) fn is_withheld(seen_json: &str) -> bool {
    // The agent puts numbers before the lines of a file.
    serde_json::from_str::<String>(seen_json)
        .is_ok_and(|text| text.strip_prefix("1\t").unwrap_or(&text) == WITHHELD)
}

fn without_texts(value: Value, member: &str, depth: usize) -> Value {
    match value {
        Value::String(text) if names_kind(member, &text) => Value::String(text),
        Value::String(text) if text.is_empty() => Value::String(text),
        Value::String(_) => WITHHELD.into(),
        Value::Array(items) if depth < DEPTH_MAX => {
            items.into_iter().map(|item| without_texts(item, member, depth + 1)).collect()
        }
        Value::Object(members) if depth < DEPTH_MAX => {
            let members = members.into_iter().map(|(name, value)| {
                let value = without_texts(value, &name, depth + 1);
                (name, value)
            });
            Value::Object(members.collect())
        }
        Value::Array(_) | Value::Object(_) => json!(WITHHELD),
        other => other,
    }
}

/// Whether a text is one of the few words by which shapes are told apart, and holds nothing of the result.
fn names_kind(member: &str, text: &str) -> bool {
    let is_word = text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_' || b == b'-');
    KINDS.contains(&member) && text.len() <= KIND_BYTES_MAX && is_word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_decides_nothing_is_empty() {
        assert_eq!(Answer::default().into_json("PreToolUse"), "{}");
    }

    #[test]
    fn answers_have_the_form_that_the_agent_reads() {
        let mut answer = Answer::default();
        answer.deny("no");
        assert_eq!(
            answer.into_json("PreToolUse"),
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#
        );
        let mut answer = Answer::default();
        answer.block("no");
        answer.updated_output(json!("x"), true);
        assert_eq!(
            answer.into_json("PostToolUse"),
            r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"PostToolUse","updatedMCPToolOutput":"x","updatedToolOutput":"x"}}"#
        );
    }

    #[test]
    fn a_withheld_result_keeps_its_shape_and_nothing_else() {
        let result = r#"{"type":"text","file":{"filePath":"/a/b","content":"key","numLines":3,"more":null},
                         "items":[{"type":"sk live","text":"x"},"y",true,""]}"#;
        assert_eq!(
            withheld(result),
            json!({
                "type": "text",
                "file": { "filePath": WITHHELD, "content": WITHHELD, "numLines": 3, "more": null },
                "items": [{ "type": WITHHELD, "text": WITHHELD }, WITHHELD, true, ""],
            })
        );
        // What the agent hands over when one of its own agents is done.
        assert_eq!(
            withheld(
                r#"{"status":"completed","content":[{"type":"text","text":"key"}],"usage":{"service_tier":"standard","speed":"fast"}}"#
            ),
            json!({
                "status": "completed",
                "content": [{ "type": "text", "text": WITHHELD }],
                "usage": { "service_tier": "standard", "speed": "fast" },
            })
        );
        assert_eq!(
            withheld(r#"{"type":"image","file":{"base64":"aGk","type":"image/png"}}"#),
            json!({ "type": "text", "file": {
                "filePath": WITHHELD, "content": WITHHELD, "numLines": 1, "startLine": 1, "totalLines": 1,
            } })
        );
        assert_eq!(withheld("not json"), Value::Null);
    }

    #[test]
    fn a_result_is_withheld_when_it_says_so_and_nothing_else() {
        for (seen, is) in [
            (r#""[withheld by Portcullis]""#, true),
            (r#""1\t[withheld by Portcullis]""#, true),
            (r#""1\t[withheld by Portcullis]\n2\tkey""#, false),
            (r#""key [withheld by Portcullis]""#, false),
            (r#"{"stdout":"[withheld by Portcullis]"}"#, false),
            ("", false),
        ] {
            assert_eq!(is_withheld(seen), is, "{seen}");
        }
    }
}
