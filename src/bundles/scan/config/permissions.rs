//! Rights that settings give the agent.

use serde_json::{Map, Value};

use super::names::{MODES, SWITCHES};
use super::{Rule, Severity, Walk};

impl Walk<'_, '_, '_> {
    /// Guards that are switched off, and commands that are allowed without asking.
    pub(super) fn permissions(&mut self, fields: &Map<String, Value>) {
        let bypass = MODES.iter().any(|mode| {
            fields.get(*mode).and_then(Value::as_str).is_some_and(|mode| {
                matches!(
                    mode.to_ascii_lowercase().as_str(),
                    "bypasspermissions" | "dontask" | "yolo" | "never"
                )
            })
        });
        let switched = SWITCHES.iter().find(|name| fields.get(**name) == Some(&Value::Bool(true)));
        if bypass || switched.is_some() {
            let at = switched.copied().unwrap_or("ypass");
            self.finding(
                &Rule {
                    id: "bundle.permission-bypass",
                    category: "permission_bypass",
                    severity: Severity::High,
                    reason: "A setting lets the agent act without asking the user.",
                    fix: "Leave the mode of permissions to the user.",
                },
                at,
            );
        }
        let Some(allow) = fields.get("permissions").and_then(|permissions| permissions.get("allow")) else {
            return;
        };
        let all: Vec<&str> = allow.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for one in &all {
            self.can("permission", one, one);
        }
        let is_any = |one: &&&str| {
            let one = one.replace(' ', "");
            matches!(one.as_str(), "*" | "Bash" | "Bash(*)" | "Bash(:*)" | "Bash(*:*)" | "Bash(**)")
                || [
                    "Bash(sudo",
                    "Bash(curl:",
                    "Bash(bash:",
                    "Bash(sh:",
                    "Bash(python:",
                    "Bash(eval",
                    "Read(~/.ssh",
                    "Read(~/.aws",
                ]
                .iter()
                .any(|bad| one.starts_with(bad))
        };
        if let Some(one) = all.iter().find(is_any) {
            self.finding(
                &Rule {
                    id: "bundle.permission-any",
                    category: "permission_bypass",
                    severity: Severity::High,
                    reason: "A setting allows the agent to run any command without asking.",
                    fix: "Allow the commands that are needed, one by one.",
                },
                one,
            );
        }
    }
}
