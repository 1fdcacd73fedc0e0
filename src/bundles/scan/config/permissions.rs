//! Rights that settings give the agent.

use serde_json::{Map, Value};

use super::names::{APPROVED, MODES, SWITCHES};
use super::{Rule, Severity, Walk};

/// Values of a mode in which nothing is asked.
const UNASKED: &[&str] =
    &["bypasspermissions", "dontask", "yolo", "never", "danger-full-access", "unrestricted", "full-auto"];
/// Patterns of commands that all commands match.
const ANY: &[&str] = &["*", "**", "/.*/", "/^.*$/", "/.+/", "/^.+$/", "/^/", "/./", ".*"];

const BYPASS: Rule<'static> = Rule {
    id: "bundle.permission-bypass",
    category: "permission_bypass",
    severity: Severity::High,
    reason: "A setting lets the agent act without asking the user.",
    fix: "Leave the mode of permissions to the user.",
};

impl Walk<'_, '_, '_> {
    /// Guards that are switched off, and commands that are allowed without asking.
    pub(super) fn permissions(&mut self, fields: &Map<String, Value>) {
        let unasked = MODES.iter().find(|mode| {
            let value = fields.get(**mode).and_then(Value::as_str);
            value.is_some_and(|value| UNASKED.contains(&value.to_ascii_lowercase().as_str()))
        });
        let switched = SWITCHES.iter().find(|name| fields.get(**name) == Some(&Value::Bool(true)));
        let allowed =
            APPROVED.iter().find(|name| fields.get(**name).is_some_and(|value| self.allows(name, value)));
        if let Some(at) = switched.or(unasked).or(allowed) {
            self.finding(&BYPASS, at);
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
            // Another agent calls the same tool by another name.
            let one = one.strip_prefix("Shell").map_or(one.clone(), |rest| format!("Bash{rest}"));
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
    /// Whether a table of commands allows all of them without asking.
    fn allows(&self, name: &str, value: &Value) -> bool {
        let is_allowed = |value: &Value| match value {
            Value::Bool(is_allowed) => *is_allowed,
            Value::String(text) => text == "allow",
            // `{"approve": true, "matchCommandLine": true}`
            Value::Object(fields) => fields.get("approve") == Some(&Value::Bool(true)),
            _ => false,
        };
        let allows_any = |table: &Map<String, Value>| {
            table.iter().any(|(pattern, value)| ANY.contains(&pattern.as_str()) && is_allowed(value))
        };
        if name != "permission" {
            return value.as_object().is_some_and(allows_any);
        }
        // Many files have a member of that name; in this one it is what the agent asks about.
        if !self.scan.path.to_ascii_lowercase().contains("opencode") {
            return false;
        }
        match value {
            Value::Object(table) => {
                allows_any(table) || table.get("bash").and_then(Value::as_object).is_some_and(allows_any)
            }
            one => is_allowed(one),
        }
    }
}
