//! Configuration as an execution surface: hooks, servers, permissions, scripts, environment. Read by structure, so that a
//! setting counts wherever it stands: in a file of its own, in a manifest, in front matter, in a block of a document.

mod commands;
mod environment;
mod hook_program;
mod hooks;
mod names;
mod permissions;
mod read;
mod tasks;
mod workflow;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Rule, Scan, package, server, shell};
use crate::bundles::coverage::Unscanned;
use crate::bundles::manifest;
use crate::bundles::work::Task;
use crate::decision::Severity;
pub(super) use environment::{host_of, is_of};
pub(super) use hooks::{is_near, script as hook_script, sends_input};
use names::{ENVIRONMENTS, is_data, is_looked_at};
pub(super) use read::parse_json;
use read::{NotJson, commands_of_broken};

/// Deepest nesting that is followed.
const DEPTH_MAX: usize = 40;
/// Largest file that is read as JSON, in bytes. A tree of it takes twenty times as much.
const JSON_BYTES_MAX: usize = 1 << 20;
/// Largest file that is read as YAML, in bytes.
const YAML_BYTES_MAX: usize = 256 << 10;

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
    /// Variables of a workflow that hold secrets, and the names of these.
    secrets: BTreeMap<String, String>,
}

/// Bytes of settings that are looked through for the lines of what is found in them.
const SEARCHED_BYTES_MAX: usize = 16 << 20;

/// A file of JSON.
pub(super) fn json_file(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    if is_data(text, "\\u") && !is_package(scan.path) {
        scan.engine("config");
    } else if text.len() > JSON_BYTES_MAX {
        unread(scan, Unscanned::TooLarge);
    } else if !scan.may(Task::Tree, text.len()) {
        commands_of_broken(scan, text, 1, Origin::File);
    } else {
        match parse_json(text) {
            Ok(value) => {
                scan.engine("config");
                walk(scan, &value, Origin::File, text, 1);
                package::package_json(scan, &value);
            }
            // Most clients do not take what is broken either; but some forgive more than others.
            Err(NotJson::Broken) if !is_loaded(scan.path) => commands_of_broken(scan, text, 1, Origin::File),
            Err(why) => unread(scan, why.as_unscanned()),
        }
    }
}

/// A block of JSON in a document.
pub(super) fn json_block(scan: &mut Scan<'_, '_>, text: &str, line: u32) {
    if !scan.may(Task::Tree, text.len()) {
        return;
    }
    match parse_json(text) {
        Ok(value) => walk(scan, &value, Origin::Block, text, line),
        Err(_) => commands_of_broken(scan, text, line, Origin::Block),
    }
}

/// A file of YAML, of several documents.
pub(super) fn yaml_file(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    if is_data(text, "\\") {
        scan.engine("config");
    } else if text.len() > YAML_BYTES_MAX {
        unread(scan, Unscanned::TooLarge);
    } else if !scan.may(Task::Tree, text.len()) {
        commands_of_broken(scan, text, 1, Origin::File);
    } else {
        scan.engine("config");
        yaml(scan, text, 1, Origin::File);
    }
}

/// A block of YAML in a document.
pub(super) fn yaml_block(scan: &mut Scan<'_, '_>, text: &str, line: u32) {
    if scan.may(Task::Tree, text.len()) {
        yaml(scan, text, line, Origin::Block);
    }
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
    if is_data(text, "\\") && !is_package(scan.path) {
        scan.engine("config");
    } else if text.len() > YAML_BYTES_MAX {
        unread(scan, Unscanned::TooLarge);
    } else if scan.may(Task::Tree, text.len()) {
        match toml::from_str::<Value>(text) {
            Ok(value) => {
                scan.engine("config");
                walk(scan, &value, Origin::File, text, 1);
                package::pyproject(scan, &value);
            }
            Err(_) if is_loaded(scan.path) => unread(scan, Unscanned::Undecodable),
            Err(_) => commands_of_broken(scan, text, 1, Origin::File),
        }
    }
}

/// Notes that the structure of a file was not read, so that a person looks at it; of its commands, those that stand out.
fn unread(scan: &mut Scan<'_, '_>, why: Unscanned) {
    scan.done.cut = Some(why);
    commands_of_broken(scan, scan.text, 1, Origin::File);
}

/// Whether clients load a file of that name by themselves, so that it matters what exactly they make of it.
fn is_loaded(path: &str) -> bool {
    // File systems that do not tell capitals apart find it under any of its spellings.
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    is_package(path)
        || matches!(
            name.as_str(),
            "settings.json"
                | "settings.local.json"
                | "hooks.json"
                | ".mcp.json"
                | "mcp.json"
                | "plugin.json"
                | "marketplace.json"
                | "tasks.json"
                | "launch.json"
                | "devcontainer.json"
                | "config.toml"
                | "cargo.toml"
        )
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
    let secrets = workflow::secrets_of(value, text);
    Walk { scan, origin, text, line, cursor: 0, searched: 0, secrets }.value(value, "", 0);
}

/// Whether dependencies stand in a file as well.
fn is_package(path: &str) -> bool {
    path.ends_with("package.json") || path.ends_with("pyproject.toml")
}

impl Walk<'_, '_, '_> {
    fn value(&mut self, value: &Value, key: &str, depth: usize) {
        if depth > DEPTH_MAX {
            self.scan.done.cut = Some(Unscanned::TooComplex);
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
        for env in ENVIRONMENTS.iter().filter_map(|name| fields.get(*name)?.as_object()) {
            self.environment(env);
        }
        if let Some(url) = fields.get("url").and_then(Value::as_str) {
            self.remote(url, fields);
        }
        self.servers(fields);
        if let Some(hooks) = fields.get("hooks").and_then(Value::as_object) {
            self.hooks(hooks);
        }
        if let Some(status) = fields.get("statusLine").and_then(Value::as_object) {
            self.status_line(status);
        }
        self.at_open(fields);
    }
}
