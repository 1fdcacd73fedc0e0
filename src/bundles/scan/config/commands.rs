//! Commands, hooks and servers that settings start.

use serde_json::{Map, Value};

use super::environment::is_local;
use super::names::{COMMANDS, HELPERS, TABLES};
use super::{Origin, Rule, Severity, Walk, package, server, shell};
use crate::bundles::code::Language;
use crate::bundles::scan::code;

impl Walk<'_, '_, '_> {
    /// The servers of tools that are declared here.
    pub(super) fn servers(&mut self, fields: &Map<String, Value>) {
        let is_wanted = |name: &str| name != "servers" || self.scan.path.ends_with("mcp.json");
        let tables = ["mcpServers", "mcp_servers", "servers"].into_iter().filter(|name| is_wanted(name));
        let servers: Vec<&Map<String, Value>> = tables
            .filter_map(|name| fields.get(name)?.as_object())
            .flat_map(Map::values)
            .filter_map(Value::as_object)
            .collect();
        for one in servers {
            if let Some((rule, at)) = server::wrong(self.scan.engines.rules, one) {
                self.finding(rule, &at);
            }
            self.handed_on(one);
            let mut addresses =
                ["url", "serverUrl", "httpUrl"].into_iter().filter_map(|name| one.get(name)?.as_str());
            if let Some(url) = addresses.find(|url| package::is_bare(url)) {
                self.finding(&server::BARE, url);
            }
        }
    }

    pub(super) fn commands(&mut self, fields: &Map<String, Value>, key: &str) {
        for helper in HELPERS {
            if let Some(command) = fields.get(*helper).and_then(Value::as_str) {
                self.can("credential_helper", helper, command);
                self.finding(
                    &Rule {
                        id: "bundle.credential-helper",
                        category: "credential_access",
                        severity: Severity::High,
                        reason: "A setting makes the client run a command of the bundle for its credentials.",
                        fix: "Leave the setting out: credentials are the user's affair.",
                    },
                    helper,
                );
                self.run(command);
            }
        }
        for name in TABLES {
            let table = fields.get(*name).and_then(Value::as_object);
            // Composer has lists of them (Composer documentation, "Scripts").
            let commands = table.into_iter().flat_map(Map::values).flat_map(|value| match value {
                Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
                one => one.as_str().into_iter().collect::<Vec<_>>(),
            });
            let commands: Vec<&str> = commands.collect();
            let is_composer = self.scan.path.ends_with("composer.json") && self.origin == Origin::File;
            for command in commands.into_iter().filter(|command| command.contains(' ')) {
                self.run(command);
                if is_composer {
                    let line = self.line_of(command);
                    self.scan.patterns_in_block("script", command, line);
                }
            }
        }
        for name in COMMANDS {
            match fields.get(*name) {
                Some(Value::String(command)) => self.command(name, command, fields, key),
                Some(Value::Array(parts)) => {
                    let argv: Vec<String> =
                        parts.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                    if matches!(
                        *name,
                        "script"
                            | "before_script"
                            | "after_script"
                            | "before_install"
                            | "cmds"
                            | "runcmd"
                            | "bootcmd"
                    ) {
                        self.run(&argv.join("\n"));
                    } else if argv.len() == parts.len() && !argv.is_empty() {
                        self.arguments(&argv);
                    }
                }
                _ => {}
            }
        }
    }

    fn command(&mut self, name: &str, command: &str, fields: &Map<String, Value>, key: &str) {
        let is_run = matches!(name, "run" | "script" | "entry" | "entrypoint");
        if is_run && !command.contains([' ', '/', '\n']) {
            return;
        }
        let arguments = fields.get("args").and_then(Value::as_array);
        let kind = match key {
            _ if fields.contains_key("type")
                && fields.get("type").and_then(Value::as_str) == Some("command") =>
            {
                "hook"
            }
            "hooks" => "hook",
            _ if is_run => "workflow_step",
            _ if arguments.is_some() || fields.contains_key("env") => "server_command",
            _ => "command",
        };
        let shown = match arguments {
            Some(arguments) => {
                let words = arguments.iter().filter_map(Value::as_str);
                std::iter::once(command).chain(words).collect::<Vec<_>>().join(" ")
            }
            None => command.to_owned(),
        };
        self.can(kind, command, &shown);
        if is_run {
            self.step(command);
        }
        if let Some(language) = language_of_step(name, fields, key) {
            let line = self.line_of(command);
            code::code(self.scan, language, command, line, false);
            return;
        }
        match arguments {
            Some(arguments) => {
                let words = arguments.iter().filter_map(Value::as_str).map(str::to_owned);
                let argv: Vec<String> = command.split_whitespace().map(str::to_owned).chain(words).collect();
                self.arguments(&argv);
            }
            None => self.run(command),
        }
    }

    fn arguments(&mut self, argv: &[String]) {
        let program = argv.first().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
        let is_package = |word: &&String| {
            let is_web = word.starts_with("https://") || word.starts_with("http://");
            is_web
                && [".tgz", ".tar.gz", ".zip", ".whl"].iter().any(|end| word.ends_with(end))
                && !is_local(word)
        };
        if matches!(program, "npx" | "bunx" | "pnpx" | "uvx" | "pipx")
            && let Some(address) = argv.iter().find(is_package)
        {
            self.finding(
                &Rule {
                    id: "bundle.remote-package",
                    category: "supply_chain",
                    severity: Severity::High,
                    reason: "A program is fetched from an address and run; what lies there can change at any time.",
                    fix: "Name a released version of the registry.",
                },
                &address.clone(),
            );
        }
        let line = self.line_of(argv.iter().max_by_key(|word| word.len()).map_or("", String::as_str));
        match self.origin {
            Origin::File => shell::argv(self.scan, argv, line),
            Origin::Block => {}
        }
    }
}

/// The language of a step of a workflow that no shell reads: one that names its interpreter as its shell, or the text that
/// is handed to an action which runs it as JavaScript.
fn language_of_step(name: &str, fields: &Map<String, Value>, key: &str) -> Option<Language> {
    if name == "script" && key == "with" {
        return Some(Language::JavaScript);
    }
    let shell = fields.get("shell").and_then(Value::as_str).filter(|_| name == "run")?;
    let program = shell.split_whitespace().next()?;
    match program.rsplit('/').next()? {
        "python" | "python3" => Some(Language::Python),
        "node" | "bun" | "deno" => Some(Language::JavaScript),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_workflows_are_read_in_their_language() {
        for (name, key, step, wanted) in [
            ("run", "steps", r#"{"shell": "python"}"#, Some(Language::Python)),
            ("run", "steps", r#"{"shell": "/usr/bin/python3 {0}"}"#, Some(Language::Python)),
            ("run", "steps", r#"{"shell": "node {0}"}"#, Some(Language::JavaScript)),
            ("run", "steps", r#"{"shell": "bash -e {0}"}"#, None),
            ("run", "steps", "{}", None),
            ("script", "with", "{}", Some(Language::JavaScript)),
            ("script", "build", "{}", None),
        ] {
            let fields: Map<String, Value> = serde_json::from_str(step).expect("an object");
            assert_eq!(language_of_step(name, &fields, key), wanted, "{name} {key} {step}");
        }
    }
}
