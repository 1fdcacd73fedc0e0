//! Which arguments of a tool mean what: commands, paths, patches, addresses.
//!
//! Every matching argument is gathered, not only the first: a tool reads the one, a guard must not read the other. One
//! of the wrong JSON type is a fault, as nobody knows what the tool makes of it.

use std::collections::HashMap;

use super::json::{Kind, Value};
use crate::decision::Reason;
use crate::paths::Access;
use crate::policy::{ArgumentKind, ToolSettings};

/// Names of arguments that are commands.
const COMMAND: &[&str] = &["command", "cmd", "action.command"];
/// Names of arguments that are fed to a running process.
const INPUT: &[&str] = &["input", "data"];
/// Names of arguments that are paths.
const PATH: &[&str] = &[
    "path",
    "file_path",
    "filePath",
    "filepath",
    "notebook_path",
    "absolute_path",
    "target_file",
    "file",
    "filename",
    "file_name",
    "dir_path",
    "relative_path",
    "paths",
    "file_paths",
];
/// Names of arguments that are patches.
const PATCH: &[&str] = &["input", "patch"];
/// Names of arguments that are addresses.
const URL: &[&str] = &["url", "urls", "uri", "href", "link", "target_url", "targetUrl"];
/// Names of arguments that say in which folder a command runs.
const FOLDER: &[&str] = &["workdir", "cwd", "working_directory", "working_dir", "directory", "dir_path"];

/// Spellings of `read` that look around, for which a path may be left out.
const SEARCHES: &[&str] = &[
    "glob",
    "grep",
    "grep_search",
    "list_dir",
    "list_directory",
    "ls",
    "read_many_files",
    "search_file_content",
    "search_files",
];
/// Spellings of `process` that feed nothing to it.
const WATCHES: &[&str] = &["bash_output", "bashoutput", "kill_shell", "killbash", "killshell"];
/// What `process` is asked to do when it is fed something.
const FEEDS: &[&str] = &["write", "send", "send-keys", "send_keys", "submit", "paste", "input", "stdin"];

/// The arguments of every guarded tool of a policy.
#[derive(Clone, Debug, Default)]
pub(super) struct ArgumentMap {
    tools: HashMap<String, Vec<(ArgumentKind, String)>>,
}

/// What is wrong with the arguments of a guarded tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It carries none of the arguments that a guard knows.
    Missing,
    /// An argument is of another JSON type than it must be.
    WrongType {
        /// Name of the argument, as the policy has it.
        name: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A patch names no path that can be read.
    UnreadablePatch,
    /// A patch names more paths than are looked at.
    TooManyPaths,
    /// More addresses are named than are looked at.
    TooManyUrls,
}

impl Fault {
    /// Why nothing can be judged, and what happened. Holds nothing of the caller's text.
    pub(super) fn tell(&self) -> (Reason, String) {
        match self {
            Self::Missing => (
                Reason::UnsupportedContent,
                "the tool carries none of the arguments that it is judged by".into(),
            ),
            Self::WrongType { name, expected } => {
                (Reason::UnsupportedContent, format!("the argument `{name}` must be {expected}"))
            }
            Self::UnreadablePatch => {
                (Reason::UnsupportedContent, "the patch is in no known notation, or names no file".into())
            }
            Self::TooManyUrls => (Reason::Limit, "more addresses are named than are looked at".into()),
            Self::TooManyPaths => (Reason::Limit, "the patch names more files than are looked at".into()),
        }
    }
}

/// Arguments of one call, by what they mean.
#[derive(Debug, Default)]
pub(super) struct Gathered<'d> {
    /// Commands as text, with whether the text is fed to a process instead.
    pub scripts: Vec<(Value<'d>, bool)>,
    /// Commands as vectors.
    pub vectors: Vec<Vec<Value<'d>>>,
    /// Paths.
    pub paths: Vec<(Value<'d>, &'static [Access])>,
    /// Patches.
    pub patches: Vec<Value<'d>>,
    /// Addresses.
    pub urls: Vec<Value<'d>>,
    /// Folder in which a command runs.
    pub folder: Option<Value<'d>>,
    /// What is wrong.
    pub faults: Vec<Fault>,
}

impl ArgumentMap {
    /// The built-in arguments and those that a policy adds.
    pub(super) fn new(settings: &ToolSettings) -> Self {
        let mut map = Self::default();
        for (tool, kind, names) in [
            ("exec", ArgumentKind::Command, COMMAND),
            ("process", ArgumentKind::Input, INPUT),
            ("process", ArgumentKind::Command, COMMAND),
            ("read", ArgumentKind::ReadPath, PATH),
            ("write", ArgumentKind::WritePath, PATH),
            ("edit", ArgumentKind::WritePath, PATH),
            ("apply_patch", ArgumentKind::Patch, PATCH),
            ("apply_patch", ArgumentKind::WritePath, PATH),
            ("web_fetch", ArgumentKind::Url, URL),
            ("browser", ArgumentKind::Url, URL),
        ] {
            names.iter().for_each(|name| map.add(tool, kind, name));
        }
        for (tool, arguments) in &settings.arguments {
            for (kind, names) in arguments {
                names.iter().for_each(|name| map.add(tool, *kind, name));
            }
        }
        map
    }

    fn add(&mut self, tool: &str, kind: ArgumentKind, name: &str) {
        let arguments = self.tools.entry(tool.to_owned()).or_default();
        if !arguments.iter().any(|(k, n)| *k == kind && n == name) {
            arguments.push((kind, name.to_owned()));
        }
    }

    /// Whether a guard knows arguments of `tool` that are commands, or texts fed to a process.
    pub(super) fn runs_commands(&self, tool: &str) -> bool {
        self.has(tool, |kind| matches!(kind, ArgumentKind::Command | ArgumentKind::Input))
    }

    /// Whether a guard knows arguments of `tool` that name paths.
    pub(super) fn names_paths(&self, tool: &str) -> bool {
        self.has(tool, |kind| {
            matches!(kind, ArgumentKind::ReadPath | ArgumentKind::WritePath | ArgumentKind::Patch)
        })
    }

    /// Whether a guard knows arguments of `tool` that are addresses.
    pub(super) fn fetches(&self, tool: &str) -> bool {
        self.has(tool, |kind| kind == ArgumentKind::Url)
    }

    /// Every tool that it knows.
    pub(super) fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    fn has(&self, tool: &str, wanted: impl Fn(ArgumentKind) -> bool) -> bool {
        self.tools.get(tool).is_some_and(|arguments| arguments.iter().any(|(kind, _)| wanted(*kind)))
    }

    /// Gathers the arguments of a call. `sent` is the name of the tool as it was sent.
    pub(super) fn gather<'d>(&self, tool: &str, sent: &str, args: Value<'d>) -> Gathered<'d> {
        let mut gathered = Gathered::default();
        let Some(arguments) = self.tools.get(tool) else { return gathered };
        let mut found = false;
        for (kind, name) in arguments {
            // A null is how many clients leave an argument out.
            let Some(value) = member(args, name).filter(|value| value.kind() != Kind::Null) else { continue };
            found |= gathered.take(tool, *kind, name, value);
        }
        gathered.folder =
            FOLDER.iter().filter_map(|name| args.get(name)).find(|value| value.kind() == Kind::String);
        if !found && gathered.faults.is_empty() && !may_be_empty(tool, sent, args) {
            gathered.faults.push(Fault::Missing);
        }
        gathered
    }
}

impl<'d> Gathered<'d> {
    /// Takes one argument; whether it was of use.
    fn take(&mut self, tool: &str, kind: ArgumentKind, name: &str, value: Value<'d>) -> bool {
        let is_text = value.kind() == Kind::String;
        let is_texts = value.kind() == Kind::Array && value.items().all(|item| item.kind() == Kind::String);
        let access: &'static [Access] = match (kind, tool) {
            (ArgumentKind::ReadPath, _) => &[Access::Read],
            // What is edited is shown as well.
            (_, "edit") => &[Access::Write, Access::Read],
            _ => &[Access::Write],
        };
        match kind {
            ArgumentKind::Command if is_text => self.scripts.push((value, false)),
            ArgumentKind::Command if is_texts => self.vectors.push(value.items().collect()),
            ArgumentKind::Input if is_text => self.scripts.push((value, true)),
            ArgumentKind::ReadPath | ArgumentKind::WritePath if is_text => self.paths.push((value, access)),
            ArgumentKind::ReadPath | ArgumentKind::WritePath if is_texts => {
                self.paths.extend(value.items().map(|item| (item, access)));
            }
            ArgumentKind::Patch if is_text => self.patches.push(value),
            ArgumentKind::Url if is_text => self.urls.push(value),
            ArgumentKind::Url if is_texts => self.urls.extend(value.items()),
            // `file` of one tool is a path and of another a whole description.
            ArgumentKind::ReadPath | ArgumentKind::WritePath
                if name == "file" && value.kind() == Kind::Object =>
            {
                return false;
            }
            _ => {
                let expected = match kind {
                    ArgumentKind::Command => "a string or an array of strings",
                    ArgumentKind::ReadPath | ArgumentKind::WritePath | ArgumentKind::Url => {
                        "a string or an array of strings"
                    }
                    ArgumentKind::Input | ArgumentKind::Patch => "a string",
                };
                self.faults.push(Fault::WrongType { name: name.to_owned(), expected });
            }
        }
        true
    }
}

/// The member of that name, dotted for nested ones. A member whose name holds the dots counts first.
fn member<'d>(args: Value<'d>, name: &str) -> Option<Value<'d>> {
    args.get(name).or_else(|| {
        let (first, rest) = name.split_once('.')?;
        member(args.get(first)?, rest)
    })
}

/// Whether the tool does something sensible without any of the arguments that guards know.
fn may_be_empty(tool: &str, sent: &str, args: Value<'_>) -> bool {
    let spelling = sent.trim().rsplit("__").next().unwrap_or_default().to_ascii_lowercase();
    match tool {
        "read" => SEARCHES.contains(&spelling.as_str()),
        "process" => {
            WATCHES.contains(&spelling.as_str())
                || args
                    .get("action")
                    .and_then(|action| action.as_str())
                    .is_some_and(|action| !FEEDS.iter().any(|feed| feed.eq_ignore_ascii_case(action.trim())))
        }
        _ => false,
    }
}
