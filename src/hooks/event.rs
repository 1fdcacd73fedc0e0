//! A hook event of Claude Code.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::HookError;
use super::answer::is_withheld;

/// One event. Fields that no answer needs are ignored: every release of the agent adds some.
#[derive(Debug, Deserialize)]
pub struct Event {
    /// Which step of the agent it is.
    hook_event_name: String,
    /// The session.
    pub session_id: Option<String>,
    /// Working directory of the agent.
    pub cwd: Option<String>,
    /// Name of the tool, on the events of tools.
    tool_name: Option<String>,
    /// Id of this call of the tool.
    pub tool_use_id: Option<String>,
    /// Arguments of the tool, kept as they were written.
    tool_input: Option<Box<RawValue>>,
    /// Result of the tool, kept as it was written.
    tool_response: Option<Box<RawValue>>,
    /// What the user wrote.
    prompt: Option<String>,
    /// Calls of one batch with their results, on the event that ends it.
    tool_calls: Option<Vec<BatchCall>>,
}

/// One tool call of a batch, in the form in which the model is about to see its result.
#[derive(Debug, Deserialize)]
pub(super) struct BatchCall {
    /// Name of the tool.
    pub(super) tool_name: String,
    /// Arguments of the tool, kept as they were written.
    pub(super) tool_input: Box<RawValue>,
    /// Id of this call of the tool.
    pub(super) tool_use_id: Option<String>,
    /// What the model is about to see, kept as it was written.
    tool_response: Option<Box<RawValue>>,
}

impl BatchCall {
    /// Result of the tool as it was written; empty when there is none.
    pub(super) fn result(&self) -> &str {
        self.tool_response.as_deref().map_or("", RawValue::get)
    }
}

impl Event {
    /// Reads one event. A member given twice is refused: which of the two would the agent mean?
    ///
    /// # Errors
    /// The text is no event.
    pub fn parse(text: &str) -> Result<Self, HookError> {
        serde_json::from_str(text)
            .map_err(|error| HookError::Event(format!("this is no hook event: {error}; standard input must be the JSON that Claude Code gives to a hook")))
    }

    /// Which step of the agent it is.
    pub fn name(&self) -> &str {
        &self.hook_event_name
    }

    /// Name and arguments of the tool.
    pub(super) fn tool(&self) -> Result<(&str, &str), HookError> {
        let name = self.tool_name.as_deref().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| self.lacks("tool_name"))?;
        Ok((name, self.arguments().ok_or_else(|| self.lacks("tool_input"))?))
    }

    /// Arguments of the tool as they were written.
    pub fn arguments(&self) -> Option<&str> {
        self.tool_input.as_deref().map(RawValue::get)
    }

    /// Result of the tool as it was written; empty when there is none.
    pub(super) fn result(&self) -> &str {
        self.tool_response.as_deref().map_or("", RawValue::get)
    }

    /// Whether it comes after tools have run, with what they gave.
    pub fn has_results(&self) -> bool {
        matches!(self.name(), "PostToolUse" | "PostToolBatch")
    }

    /// Whether the tool is one of an MCP server.
    pub(super) fn is_mcp(&self) -> bool {
        self.tool_name.as_deref().is_some_and(|name| name.starts_with("mcp__"))
    }

    /// What the user wrote.
    pub(super) fn prompt(&self) -> Result<&str, HookError> {
        self.prompt.as_deref().ok_or_else(|| self.lacks("prompt"))
    }

    /// Calls of the batch that has ended, but for those whose result was withheld and holds nothing else.
    pub(super) fn batch(&self) -> Result<Vec<&BatchCall>, HookError> {
        let calls = self.tool_calls.as_deref().ok_or_else(|| self.lacks("tool_calls"))?;
        Ok(calls.iter().filter(|call| !is_withheld(call.result())).collect())
    }

    /// An event of this name must have that field.
    fn lacks(&self, field: &str) -> HookError {
        let name: String = self.hook_event_name.chars().take(40).collect();
        HookError::Event(format!("the event `{name}` has no `{field}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_as_they_were_written() {
        let text = r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","new":[1],
                       "tool_input":{"b": 12345678901234567890, "a":1.0}}"#;
        let event = Event::parse(text).expect("an event");
        assert_eq!(event.tool().expect("a tool"), ("Bash", r#"{"b": 12345678901234567890, "a":1.0}"#));
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for (text, told) in [
            ("", "no hook event"),
            ("[]", "no hook event"),
            ("{}", "hook_event_name"),
            (r#"{"hook_event_name":1}"#, "no hook event"),
            (r#"{"hook_event_name":"A","hook_event_name":"B"}"#, "duplicate"),
            (r#"{"hook_event_name":"A","tool_name":"x","tool_name":"y"}"#, "duplicate"),
            (r#"{"hook_event_name":"A"} x"#, "trailing"),
        ] {
            let failure = Event::parse(text).expect_err("no event");
            assert!(failure.to_string().contains(told), "{text}: {failure}");
        }
        for (text, told) in [
            (r#"{"hook_event_name":"PreToolUse","tool_input":{}}"#, "`PreToolUse` has no `tool_name`"),
            (r#"{"hook_event_name":"PreToolUse","tool_name":"","tool_input":{}}"#, "no `tool_name`"),
            (r#"{"hook_event_name":"PreToolUse","tool_name":"Bash"}"#, "no `tool_input`"),
        ] {
            let event = Event::parse(text).expect("an event");
            let failure = event.tool().expect_err("no tool");
            assert!(failure.to_string().contains(told), "{text}: {failure}");
        }
    }
}
