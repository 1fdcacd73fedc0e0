//! The message-structure check: one system message, leading, and nothing empty.
//!
//! *What it finds*: a conversation whose shape no honest client sends. *Why it matters*: a system message that appears in
//! the middle of a conversation is how a hijacked history takes over. *What it misses*: everything about content.
//! Off by default, because some frameworks do send several system messages. Unknown roles never come this far: they are
//! refused as invalid.

use super::Conversation;
use crate::decision::Severity;
use crate::rules::Role;

/// Plugin id.
pub(super) const STRUCTURE: &str = "structure";

/// One fault of a conversation's shape.
pub(super) struct Fault {
    pub message_index: usize,
    pub rule_id: &'static str,
    pub severity: Severity,
    pub description: &'static str,
    pub recommendation: &'static str,
}

/// Every fault, in the order of messages.
pub(super) fn check(messages: &Conversation<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut has_system = false;
    for (message_index, message) in messages.iter().enumerate() {
        let mut fault = |rule_id, severity, description, recommendation| {
            faults.push(Fault { message_index, rule_id, severity, description, recommendation });
        };
        if message.role == Role::System {
            if has_system {
                fault(
                    "structure.second-system-message",
                    Severity::High,
                    "A second system message.",
                    "Send one system message; put later instructions of the operator into it.",
                );
            } else if message_index > 0 {
                fault(
                    "structure.late-system-message",
                    Severity::High,
                    "The system message does not come first.",
                    "Send the system message as the first message.",
                );
            }
            has_system = true;
        }
        // A model's turn that only calls tools has arguments, which count as content; one that says nothing has none.
        if message.is_empty() {
            fault(
                "structure.empty-message",
                Severity::Medium,
                "A message without content.",
                "Leave empty messages out.",
            );
        }
    }
    faults
}
