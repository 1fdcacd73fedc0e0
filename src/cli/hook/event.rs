//! A hook event of Claude Code, as it comes on standard input.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cli::Failure;

/// One event. Fields that no answer needs are ignored: every release of the agent adds some.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    /// Which step of the agent it is.
    pub(super) hook_event_name: String,
    /// The session.
    pub(super) session_id: Option<String>,
    /// Working directory of the agent.
    pub(super) cwd: Option<String>,
    /// Name of the tool, on the events of tools.
    pub(super) tool_name: Option<String>,
    /// Id of this call of the tool.
    pub(super) tool_use_id: Option<String>,
    /// Arguments of the tool, kept as they were written.
    pub(super) tool_input: Option<Box<RawValue>>,
    /// Result of the tool, kept as it was written.
    pub(super) tool_response: Option<Box<RawValue>>,
    /// What the user wrote.
    pub(super) prompt: Option<String>,
}

impl Event {
    /// Reads one event. A member given twice is refused: which of the two would the agent mean?
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        serde_json::from_str(text)
            .map_err(|error| Failure::data(format_args!("standard input holds no hook event: {error}")))
    }

    /// Name and arguments of the tool.
    pub(super) fn tool(&self) -> Result<(&str, &str), Failure> {
        let name = self.tool_name.as_deref().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| self.lacks("tool_name"))?;
        let input = self.tool_input.as_deref().ok_or_else(|| self.lacks("tool_input"))?;
        Ok((name, input.get()))
    }

    /// What an event of this name must have.
    pub(super) fn lacks(&self, field: &str) -> Failure {
        let name: String = self.hook_event_name.chars().take(40).collect();
        Failure::data(format_args!("the event `{name}` has no `{field}`"))
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
            assert!(failure.message.contains(told), "{text}: {}", failure.message);
        }
        for (text, told) in [
            (r#"{"hook_event_name":"PreToolUse","tool_input":{}}"#, "`PreToolUse` has no `tool_name`"),
            (r#"{"hook_event_name":"PreToolUse","tool_name":"","tool_input":{}}"#, "no `tool_name`"),
            (r#"{"hook_event_name":"PreToolUse","tool_name":"Bash"}"#, "no `tool_input`"),
        ] {
            let event = Event::parse(text).expect("an event");
            let failure = event.tool().expect_err("no tool");
            assert!(failure.message.contains(told), "{text}: {}", failure.message);
        }
    }
}
