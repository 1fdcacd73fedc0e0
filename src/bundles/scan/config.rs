//! Configuration as an execution surface: hooks, servers, permissions, scripts, environment. Read by structure, so that a
//! setting counts wherever it stands: in a file of its own, in a manifest, in front matter, in a block of a document.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex_automata::meta::Regex;
use serde_json::{Map, Value};

use super::{Rule, Scan, package, server, shell};
use crate::bundles::coverage::Unscanned;
use crate::bundles::manifest;
use crate::decision::Severity;

/// Deepest nesting that is followed.
const DEPTH_MAX: usize = 40;
/// Largest file that is read as JSON, in bytes. A tree of it takes twenty times as much.
const JSON_BYTES_MAX: usize = 1 << 20;
/// Largest file that is read as YAML, in bytes.
const YAML_BYTES_MAX: usize = 256 << 10;

/// Most bytes of settings of which trees are made in one bundle. Real bundles have a hundredth of it.
const PARSED_BYTES_MAX: usize = 8 << 20;

/// Settings whose value is a command that a client runs by itself.
const HELPERS: &[&str] = &["apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "otelHeadersHelper"];
/// Members whose text is run by a shell.
const COMMANDS: &[&str] = &[
    "command",
    "cmd",
    "run",
    "exec",
    "shell",
    "postCreateCommand",
    "postStartCommand",
    "onCreateCommand",
    "initializeCommand",
    "updateContentCommand",
    "postAttachCommand",
    "before_script",
    "script",
    "cmds",
    "entry",
    "entrypoint",
];
/// Members whose own members are commands by their names.
const TABLES: &[&str] = &["scripts", "tasks"];
/// Members that give the agent rights.
const MODES: &[&str] = &["permissionMode", "defaultMode", "permission_mode"];
/// Members that take its guards away where they are true.
const SWITCHES: &[&str] = &[
    "dangerouslySkipPermissions",
    "skipDangerousModePermissionPrompt",
    "enableAllProjectMcpServers",
    "bypassPermissions",
    "autoApproveAll",
    "disableSandbox",
    "dangerouslyDisableSandbox",
];
/// Further members that are looked at.
const OTHERS: &[&str] = &["env", "url", "runOn", "permissions", "mcpServers", "mcp_servers", "servers"];
/// Variables that change what programs load, or where they send what they know. A whole name, or the end of one.
const ENVIRONMENT: &[&str] = &[
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "BASH_ENV",
    "PROMPT_COMMAND",
    "PERL5OPT",
    "RUBYOPT",
    "GIT_SSH_COMMAND",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "PIP_INDEX_URL",
    "NPM_CONFIG_REGISTRY",
];
/// Providers of models and clouds, and the names in their hosts: a key of theirs belongs nowhere else.
const PROVIDERS: &[(&str, &[&str])] = &[
    ("ANTHROPIC", &["anthropic", "claude"]),
    ("OPENAI", &["openai"]),
    ("AWS", &["amazonaws", "aws"]),
    ("AZURE", &["azure", "microsoft", "windows.net"]),
    ("GOOGLE", &["google", "gstatic"]),
    ("GEMINI", &["google"]),
    ("GITHUB", &["github"]),
    ("GH_", &["github"]),
    ("GITLAB", &["gitlab"]),
    ("NPM", &["npmjs"]),
    ("STRIPE", &["stripe"]),
    ("SLACK", &["slack"]),
    ("HF_", &["huggingface"]),
    ("SSH_", &[]),
];

/// Where settings stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A file that a client may load.
    File,
    /// A block in a document: an example, or what the reader is told to write.
    Block,
}

/// A walk over settings.
struct Walk<'w, 'e, 't> {
    scan: &'w mut Scan<'e, 't>,
    origin: Origin,
    /// The text to find lines in, and the line that it begins in.
    text: &'w str,
    line: u32,
    /// Where the last text was found: the next one mostly stands behind it.
    cursor: usize,
    /// Bytes that were looked through for lines.
    searched: usize,
}

/// Bytes of settings that are looked through for the lines of what is found in them.
const SEARCHED_BYTES_MAX: usize = 16 << 20;

/// A file of JSON.
pub(super) fn json_file(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    if text.len() <= JSON_BYTES_MAX && is_data(text, "\\u") && !is_package(scan.path) {
        scan.engine("config");
    } else if text.len() > JSON_BYTES_MAX || !scan.may_parse(text.len()) {
        commands_of_broken(scan, text, 1, Origin::File);
    } else if let Some(value) = parse_json(text) {
        scan.engine("config");
        walk(scan, &value, Origin::File, text, 1);
        package::package_json(scan, &value);
    } else {
        commands_of_broken(scan, text, 1, Origin::File);
    }
}

/// A block of JSON in a document.
pub(super) fn json_block(scan: &mut Scan<'_, '_>, text: &str, line: u32) {
    match parse_json(text) {
        Some(value) => walk(scan, &value, Origin::Block, text, line),
        None => commands_of_broken(scan, text, line, Origin::Block),
    }
}

/// A file of YAML, of several documents.
pub(super) fn yaml_file(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    if text.len() <= YAML_BYTES_MAX && is_data(text, "\\") {
        scan.engine("config");
    } else if text.len() > YAML_BYTES_MAX || !scan.may_parse(text.len()) {
        commands_of_broken(scan, text, 1, Origin::File);
    } else {
        scan.engine("config");
        yaml(scan, text, 1, Origin::File);
    }
}

/// A block of YAML in a document.
pub(super) fn yaml_block(scan: &mut Scan<'_, '_>, text: &str, line: u32) {
    yaml(scan, text, line, Origin::Block);
}

fn yaml(scan: &mut Scan<'_, '_>, text: &str, line: u32, origin: Origin) {
    let mut start = line;
    for part in text.split("\n---") {
        match manifest::read_yaml(part) {
            Ok(value) => walk(scan, &value, origin, part, start),
            Err(_) => commands_of_broken(scan, part, start, origin),
        }
        start += part.matches('\n').count() as u32 + 1;
    }
}

/// A file of TOML.
pub(super) fn toml_file(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    if text.len() <= YAML_BYTES_MAX && is_data(text, "\\") && !is_package(scan.path) {
        scan.engine("config");
    } else if text.len() <= YAML_BYTES_MAX
        && scan.may_parse(text.len())
        && let Ok(value) = toml::from_str::<Value>(text)
    {
        scan.engine("config");
        walk(scan, &value, Origin::File, text, 1);
        package::pyproject(scan, &value);
    }
}

/// The front matter of a document.
pub(super) fn front_matter(scan: &mut Scan<'_, '_>, value: &Value) {
    let text = scan.text;
    if let Some(tools) = value.get("allowed-tools").or_else(|| value.get("tools")) {
        let line = scan.lines.line_with("tools");
        let list = match tools {
            Value::String(text) => text.clone(),
            Value::Array(tools) => tools.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
            _ => String::new(),
        };
        scan.can("allowed_tools", line, &list);
    }
    walk(scan, value, Origin::File, text, 1);
}

fn walk(scan: &mut Scan<'_, '_>, value: &Value, origin: Origin, text: &str, line: u32) {
    Walk { scan, origin, text, line, cursor: 0, searched: 0 }.value(value, "", 0);
}

/// Every name that [`Walk::object`] asks for.
fn looked_at() -> impl Iterator<Item = &'static str> {
    [HELPERS, COMMANDS, TABLES, MODES, SWITCHES, OTHERS].into_iter().flatten().copied()
}

fn is_looked_at(name: &str) -> bool {
    looked_at().any(|known| known == name)
}

static LOOKED_AT: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::DFA))
        .build(looked_at())
        .unwrap_or_else(|error| panic!("names that tests build: {error}"))
});

/// Whether none of the members that are looked at can be in a text: their names are not, and nothing spells one by `escape`.
fn is_data(text: &str, escape: &str) -> bool {
    let bytes = text.as_bytes();
    let goes_on =
        |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    let is_name = |hit: aho_corasick::Match| {
        let before = hit.start().checked_sub(1).and_then(|at| bytes.get(at));
        !goes_on(before) && !goes_on(bytes.get(hit.end()))
    };
    memchr::memmem::find(bytes, escape.as_bytes()).is_none() && !LOOKED_AT.find_iter(bytes).any(is_name)
}

/// Whether dependencies stand in a file as well.
fn is_package(path: &str) -> bool {
    path.ends_with("package.json") || path.ends_with("pyproject.toml")
}

/// JSON as clients read it: with comments and trailing commas, if need be.
fn parse_json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&without_comments(text)).ok())
}

fn without_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at, mut in_string) = (Vec::with_capacity(bytes.len()), 0, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        if in_string {
            let take = if rest[0] == b'\\' { 2.min(rest.len()) } else { 1 };
            in_string = rest[0] != b'"';
            out.extend_from_slice(&rest[..take]);
            at += take;
        } else if rest.starts_with(b"//") {
            at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            at += memchr::memmem::find(rest, b"*/").map_or(rest.len(), |end| end + 2);
        } else {
            let close = rest[0] == b',' && {
                let after = rest[1..].iter().find(|byte| !byte.is_ascii_whitespace());
                matches!(after, Some(b'}' | b']'))
            };
            if !close {
                out.push(rest[0]);
            }
            in_string = rest[0] == b'"';
            at += 1;
        }
    }
    String::from_utf8(out).unwrap_or_default()
}

static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"["']?\b(?:command|cmd|run|apiKeyHelper|exec)\b["']?[ \t]*:[ \t]*(?:["'])?(?<value>[^\n]{1,2000})"#,
    )
    .unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
});

/// Commands in settings that no parser takes: clients differ in what they forgive.
fn commands_of_broken(scan: &mut Scan<'_, '_>, text: &str, line: u32, origin: Origin) {
    let mut commands = Vec::new();
    let mut captures = MEMBER.create_captures();
    let (mut at, mut below) = (0, 0);
    while at < text.len() && commands.len() < 200 {
        MEMBER.captures(regex_automata::Input::new(text).range(at..), &mut captures);
        let (Some(all), Some(value)) = (captures.get_match(), captures.get_group_by_name("value")) else {
            break;
        };
        let command = text[value.start..value.end].trim_end_matches([',', '"', '\'', ' ', '}']);
        below += memchr::memchr_iter(b'\n', &text.as_bytes()[at..all.start()]).count() as u32;
        commands.push((command.replace("\\\"", "\""), line + below));
        below += memchr::memchr_iter(b'\n', &text.as_bytes()[all.start()..all.end()]).count() as u32;
        at = all.end();
    }
    for (command, line) in commands {
        match origin {
            Origin::File => shell::command(scan, &command, line),
            Origin::Block => shell::script(scan, &command, line, shell::Place::Fence),
        }
    }
}

impl Scan<'_, '_> {
    /// Whether a tree may be made of so many bytes of settings more; counts them if so, and notes it if not.
    fn may_parse(&mut self, bytes: usize) -> bool {
        let fits = self.found.parsed + bytes <= PARSED_BYTES_MAX;
        self.found.parsed += if fits { bytes } else { 0 };
        if !fits {
            self.done.cut = Some(Unscanned::TooComplex);
        }
        fits
    }
}

impl Walk<'_, '_, '_> {
    fn value(&mut self, value: &Value, key: &str, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.value(item, key, depth + 1)),
            Value::Object(fields) => {
                self.object(fields, key);
                for (key, value) in fields {
                    self.value(value, key, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// The line of a text in the settings; that of their beginning when it is not found as it stands.
    fn line_of(&mut self, text: &str) -> u32 {
        let first = text.lines().next().unwrap_or_default();
        if first.is_empty() {
            return self.line;
        }
        let found = self.find(first).or_else(|| {
            let quoted = serde_json::to_string(first).ok()?;
            let escaped = quoted.trim_matches('"');
            if escaped == first { None } else { self.find(escaped) }
        });
        let Some(at) = found else { return self.line };
        self.cursor = at;
        match self.origin {
            Origin::File if self.text.len() == self.scan.text.len() => self.scan.lines.line_of(at),
            _ => {
                self.searched += at;
                self.line + memchr::memchr_iter(b'\n', &self.text.as_bytes()[..at]).count() as u32
            }
        }
    }

    /// Where a text stands: behind the last one, else anywhere.
    fn find(&mut self, text: &str) -> Option<usize> {
        if self.searched > SEARCHED_BYTES_MAX {
            return None;
        }
        let behind = self.text[self.cursor..].find(text).map(|at| self.cursor + at);
        self.searched += behind.map_or(self.text.len(), |at| at - self.cursor);
        behind.or_else(|| self.text.find(text))
    }

    fn finding(&mut self, rule: &Rule<'_>, at: &str) {
        let line = self.line_of(at);
        let severity = match (self.origin, rule.severity) {
            // What a document shows is not in force.
            (Origin::Block, Severity::High) => Severity::Medium,
            (_, severity) => severity,
        };
        self.scan.add(&Rule { severity, ..*rule }, line);
    }

    fn can(&mut self, kind: &str, at: &str, detail: &str) {
        if self.origin == Origin::File {
            let line = self.line_of(at);
            self.scan.can(kind, line, detail);
        }
    }

    fn run(&mut self, command: &str) {
        let line = self.line_of(command);
        match self.origin {
            Origin::File => shell::command(self.scan, command, line),
            Origin::Block => shell::script(self.scan, command, line, shell::Place::Fence),
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, key: &str) {
        // Nearly all objects are data. Looking at each name once is quicker than asking for every member.
        if !fields.keys().any(|name| is_looked_at(name)) {
            return;
        }
        self.commands(fields, key);
        self.permissions(fields);
        if let Some(env) = fields.get("env").and_then(Value::as_object) {
            self.environment(env);
        }
        if let Some(url) = fields.get("url").and_then(Value::as_str) {
            self.remote(url, fields);
        }
        self.servers(fields);
        let is_at_open = fields.get("runOn").and_then(Value::as_str) == Some("folderOpen");
        if is_at_open {
            self.finding(
                &Rule {
                    id: "bundle.run-at-open",
                    category: "persistence",
                    severity: Severity::High,
                    reason: "A task of the editor runs as soon as the folder is opened.",
                    fix: "Let the user start the task.",
                },
                "folderOpen",
            );
        }
    }

    /// The servers of tools that are declared here.
    fn servers(&mut self, fields: &Map<String, Value>) {
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
        }
    }

    fn commands(&mut self, fields: &Map<String, Value>, key: &str) {
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
            let commands: Vec<&str> =
                table.into_iter().flat_map(Map::values).filter_map(Value::as_str).collect();
            for command in commands.into_iter().filter(|command| command.contains(' ')) {
                self.run(command);
            }
        }
        for name in COMMANDS {
            match fields.get(*name) {
                Some(Value::String(command)) => self.command(name, command, fields, key),
                Some(Value::Array(parts)) => {
                    let argv: Vec<String> =
                        parts.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                    if matches!(*name, "script" | "before_script" | "cmds") {
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

    fn permissions(&mut self, fields: &Map<String, Value>) {
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

    fn environment(&mut self, env: &Map<String, Value>) {
        for (name, value) in env {
            let text = value.as_str().unwrap_or_default();
            let upper = name.to_ascii_uppercase();
            let is_url =
                upper.ends_with("_BASE_URL") || upper.ends_with("_API_BASE") || upper.ends_with("_ENDPOINT");
            let redirects = is_url
                && PROVIDERS.iter().any(|(prefix, hosts)| {
                    upper.starts_with(prefix)
                        && !is_local(text)
                        && !hosts.iter().any(|host| host_of(text).contains(host))
                })
                && text.contains("://");
            let loads = ENVIRONMENT.contains(&upper.as_str())
                && !is_local(text)
                && !text.is_empty()
                && !text.contains("PLUGIN_ROOT")
                && (upper != "PYTHONPATH" || text.starts_with('/'))
                && (upper != "NODE_OPTIONS"
                    || ["-r", "import", "inspect"].iter().any(|loads| text.contains(loads)))
                && (upper != "NODE_TLS_REJECT_UNAUTHORIZED" || text == "0")
                && !text.starts_with("${");
            if redirects || loads {
                self.finding(
                    &Rule {
                        id: "bundle.environment",
                        category: "exfiltration",
                        severity: Severity::High,
                        reason: "A setting changes what programs load, or sends the traffic of a provider to another host.",
                        fix: "Leave the variable to the user.",
                    },
                    name,
                );
            }
        }
    }

    /// A remote server: the keys that it is given must be its own.
    fn remote(&mut self, url: &str, fields: &Map<String, Value>) {
        let host = host_of(url);
        if host.is_empty() {
            return;
        }
        self.can("remote_server", url, &host);
        let given =
            ["headers", "env", "query", "params"].iter().filter_map(|key| fields.get(*key)?.as_object());
        let values = given.flat_map(|given| given.values()).filter_map(Value::as_str).chain([url]);
        let texts: Vec<String> = values.map(str::to_owned).collect();
        for text in texts {
            for name in variables(&text) {
                let upper = name.to_ascii_uppercase();
                let is_foreign = PROVIDERS.iter().any(|(prefix, hosts)| {
                    upper.starts_with(prefix) && !hosts.iter().any(|own| host.contains(own))
                });
                let is_secret = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"]
                    .iter()
                    .any(|word| upper.contains(word));
                if is_foreign && is_secret && !is_local(url) {
                    self.finding(
                        &Rule {
                            id: "bundle.foreign-credential",
                            category: "exfiltration",
                            severity: Severity::High,
                            reason: "A server is given the credential of another provider.",
                            fix: "Give it a credential of its own.",
                        },
                        name,
                    );
                }
            }
        }
    }
}

/// Names of variables in a text: `${NAME}`, `$NAME`, `${env:NAME}`.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('$').map(|(at, _)| {
        let rest =
            text[at + 1..].trim_start_matches('{').trim_start_matches("env:").trim_start_matches("env.");
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase()
}

fn is_local(text: &str) -> bool {
    let host = host_of(text);
    let name = host.trim_start_matches('[').split([':', ']']).next().unwrap_or_default();
    matches!(name, "localhost" | "127.0.0.1" | "0.0.0.0" | "host.docker.internal")
        || host.starts_with("[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_told_from_settings() {
        for (text, is_data_of_json) in [
            (r#"{"id": 1, "name": "a", "tags": ["b"]}"#, true),
            (r#"{"running": 1, "pre_run": 2, "run-on": 3}"#, true),
            (r#"{"a": {"run": "b"}}"#, false),
            (r#"{"hooks": [{"type": "command", "command": "b"}]}"#, false),
            (r#"{"permissions": {"allow": ["*"]}}"#, false),
            (r#"{"comm\u0061nd": "b"}"#, false),
            (r#"{"env": {"A": "b"}}"#, false),
            (r#"{"url": "https://a.example"}"#, false),
        ] {
            assert_eq!(is_data(text, "\\u"), is_data_of_json, "{text}");
        }
        assert!(is_data("name: a\nlist:\n  - b", "\\"));
        assert!(!is_data("[tool.scripts]\na = 'b'", "\\"));
        assert!(!is_data("\"r\\x75n\": b", "\\"));
    }
}
