//! Names of tools: which are known, which group each is in, and which other spellings mean the same tool.
//!
//! Agents name the same tool differently, and a guard that knows one spelling guards nothing. What is unknown keeps its
//! own name, trimmed.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// A tool that matchers are checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownTool {
    /// Normalised name.
    pub name: &'static str,
    /// Its group, such as `group:fs`; empty when it is in none.
    pub group: &'static str,
    /// Other spellings, lower case, sorted.
    pub aliases: &'static [&'static str],
}

const fn tool(name: &'static str, group: &'static str, aliases: &'static [&'static str]) -> KnownTool {
    KnownTool { name, group, aliases }
}

const FS: &str = "group:fs";
const RUNTIME: &str = "group:runtime";
const MEMORY: &str = "group:memory";
const WEB: &str = "group:web";
const SESSIONS: &str = "group:sessions";
const UI: &str = "group:ui";
const AUTOMATION: &str = "group:automation";
const MESSAGING: &str = "group:messaging";
const NODES: &str = "group:nodes";

/// Every group.
pub const GROUPS: [&str; 9] = [FS, RUNTIME, MEMORY, WEB, SESSIONS, UI, AUTOMATION, MESSAGING, NODES];

/// Every known tool, sorted by name. Aliases are the spellings of common agents, written without regard to case.
pub const KNOWN_TOOLS: [KnownTool; 24] = [
    tool("agents_list", "", &[]),
    tool("apply_patch", FS, &["apply-patch", "applypatch", "patch"]),
    tool("browser", UI, &[]),
    tool("canvas", UI, &[]),
    tool("cron", AUTOMATION, &[]),
    tool(
        "edit",
        FS,
        &[
            "edit_file",
            "edit_notebook",
            "editfile",
            "multi_edit",
            "multiedit",
            "notebookedit",
            "replace",
            "replace_in_file",
            "search_replace",
            "str_replace",
            "str_replace_based_edit_tool",
            "str_replace_editor",
            "text_editor",
        ],
    ),
    tool(
        "exec",
        RUNTIME,
        &[
            "bash",
            "bash_command",
            "cmd",
            "container.exec",
            "exec_command",
            "execute_bash",
            "execute_command",
            "local_shell",
            "local_shell_call",
            "powershell",
            "run_bash",
            "run_command",
            "run_in_terminal",
            "run_shell_command",
            "run_terminal_cmd",
            "shell",
            "shell_command",
            "terminal",
            "unified_exec",
        ],
    ),
    tool("gateway", AUTOMATION, &[]),
    tool("image", "", &[]),
    tool("memory_get", MEMORY, &[]),
    tool("memory_search", MEMORY, &[]),
    tool("message", MESSAGING, &[]),
    tool("nodes", NODES, &[]),
    tool(
        "process",
        RUNTIME,
        &["bash_output", "bashoutput", "kill_shell", "killbash", "killshell", "write_stdin"],
    ),
    tool(
        "read",
        FS,
        &[
            "cat_file",
            "get_file_contents",
            "glob",
            "grep",
            "grep_search",
            "list_dir",
            "list_directory",
            "ls",
            "notebookread",
            "open_file",
            "read_file",
            "read_many_files",
            "read_media_file",
            "read_multiple_files",
            "read_text_file",
            "readfile",
            "search_file_content",
            "search_files",
            "view",
            "view_file",
            "view_image",
        ],
    ),
    tool("session_status", SESSIONS, &[]),
    tool("sessions_history", SESSIONS, &[]),
    tool("sessions_list", SESSIONS, &[]),
    tool("sessions_send", SESSIONS, &[]),
    tool("sessions_spawn", SESSIONS, &["agent", "task"]),
    tool("tts", "", &[]),
    tool("web_fetch", WEB, &["fetch", "fetch_url", "webfetch"]),
    tool("web_search", WEB, &["google_web_search", "websearch"]),
    tool("write", FS, &["create_file", "new_file", "save_file", "write_file", "write_to_file", "writefile"]),
];

/// Tools whose arguments the built-in guards know.
pub const GUARDED: [&str; 8] =
    ["apply_patch", "browser", "edit", "exec", "process", "read", "web_fetch", "write"];

/// Names that a policy adds: each a tool of its own, with other spellings.
pub type AddedTools = BTreeMap<String, Vec<String>>;

/// The tool names of a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolNames {
    /// Added name, lower case where it is another spelling, to the name it stands for.
    added: BTreeMap<String, String>,
    /// Added tools by name.
    tools: AddedTools,
}

impl ToolNames {
    /// The known tools and those that a policy adds.
    pub fn new(tools: AddedTools) -> Self {
        let mut added = BTreeMap::new();
        for (name, aliases) in &tools {
            for spelling in aliases.iter().chain([name]) {
                added.insert(spelling.to_ascii_lowercase(), name.clone());
            }
        }
        Self { added, tools }
    }

    /// The normalised name of `name`, as an agent knows the tool.
    ///
    /// An MCP tool `mcp__server__tool` has the name of its last part when that is a known one, since such a server
    /// offers what the agent's own tool does.
    pub fn normalise<'n>(&'n self, name: &'n str) -> Cow<'n, str> {
        let name = name.trim();
        // The commonest case: nothing to do.
        if KNOWN_TOOLS.binary_search_by(|tool| tool.name.cmp(name)).is_ok() && self.added.is_empty() {
            return Cow::Borrowed(name);
        }
        let lower = name.to_ascii_lowercase();
        if let Some(found) = self.by_spelling(&lower) {
            return Cow::Borrowed(found);
        }
        let last = lower.strip_prefix("mcp__").and_then(|rest| rest.rsplit_once("__")).map(|(_, last)| last);
        match last.and_then(|last| self.by_spelling(last)) {
            Some(found) => Cow::Borrowed(found),
            None => Cow::Borrowed(name),
        }
    }

    fn by_spelling(&self, lower: &str) -> Option<&str> {
        if let Some(name) = self.added.get(lower) {
            return Some(name);
        }
        builtin_by_spelling(lower)
    }

    /// Every known name with its group and its other spellings, sorted by name.
    pub fn list(&self) -> Vec<ListedTool> {
        let mut all: BTreeMap<&str, ListedTool> = KNOWN_TOOLS
            .iter()
            .map(|tool| {
                let aliases = tool.aliases.iter().map(|alias| (*alias).to_owned()).collect();
                (tool.name, ListedTool { name: tool.name.to_owned(), group: tool.group, aliases })
            })
            .collect();
        for (name, aliases) in &self.tools {
            let listed = all.entry(name).or_insert_with(|| ListedTool {
                name: name.clone(),
                group: "",
                aliases: Vec::new(),
            });
            listed.aliases.extend(aliases.iter().cloned());
            listed.aliases.sort();
            listed.aliases.dedup();
        }
        all.into_values().collect()
    }

    /// Every known name, sorted.
    pub fn names(&self) -> Vec<&str> {
        let added = self.tools.keys().map(String::as_str);
        let mut names: Vec<&str> = KNOWN_TOOLS.iter().map(|tool| tool.name).chain(added).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// A known tool, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTool {
    /// Normalised name.
    pub name: String,
    /// Its group; empty when it is in none.
    pub group: &'static str,
    /// Other spellings, sorted.
    pub aliases: Vec<String>,
}

impl ListedTool {
    /// Whether the built-in guards know its arguments.
    pub fn is_guarded(&self) -> bool {
        GUARDED.contains(&self.name.as_str())
    }
}

fn builtin_by_spelling(lower: &str) -> Option<&'static str> {
    KNOWN_TOOLS
        .iter()
        .find(|tool| tool.name == lower || tool.aliases.binary_search(&lower).is_ok())
        .map(|tool| tool.name)
}

/// The tools of a group; `None` when there is no such group.
pub fn group(name: &str) -> Option<Vec<&'static str>> {
    GROUPS
        .contains(&name)
        .then(|| KNOWN_TOOLS.iter().filter(|tool| tool.group == name).map(|tool| tool.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_no_spelling_stands_for_two_tools() {
        assert!(KNOWN_TOOLS.windows(2).all(|pair| pair[0].name < pair[1].name));
        let mut spellings = Vec::new();
        for tool in &KNOWN_TOOLS {
            assert!(tool.aliases.windows(2).all(|pair| pair[0] < pair[1]), "{}", tool.name);
            assert!(tool.aliases.iter().all(|alias| *alias == alias.to_ascii_lowercase()), "{}", tool.name);
            spellings.extend(tool.aliases.iter().copied().chain([tool.name]));
        }
        let all = spellings.len();
        spellings.sort_unstable();
        spellings.dedup();
        assert_eq!(spellings.len(), all);
        assert!(GUARDED.iter().all(|name| KNOWN_TOOLS.iter().any(|tool| tool.name == *name)));
    }

    #[test]
    fn spellings_of_agents_are_normalised() {
        let names = ToolNames::default();
        for (sent, wanted) in [
            ("exec", "exec"),
            ("Bash", "exec"),
            ("bash", "exec"),
            ("BASH", "exec"),
            (" shell ", "exec"),
            ("run_shell_command", "exec"),
            ("exec_command", "exec"),
            ("apply-patch", "apply_patch"),
            ("MultiEdit", "edit"),
            ("NotebookEdit", "edit"),
            ("replace", "edit"),
            ("Write", "write"),
            ("write_file", "write"),
            ("Read", "read"),
            ("WebFetch", "web_fetch"),
            ("google_web_search", "web_search"),
            ("Task", "sessions_spawn"),
            ("BashOutput", "process"),
            ("view_image", "read"),
            ("write_stdin", "process"),
            ("mcp__files__read_file", "read"),
            ("mcp__my__own__bash", "exec"),
            ("MCP__box__Shell", "exec"),
            ("mcp__tracker__create_issue", "mcp__tracker__create_issue"),
            ("TodoWrite", "TodoWrite"),
            ("mcp__bash", "mcp__bash"),
        ] {
            assert_eq!(names.normalise(sent), wanted, "{sent}");
        }
    }

    #[test]
    fn a_policy_adds_tools_and_spellings() {
        let added =
            [("deploy".to_owned(), vec!["Ship".to_owned()]), ("exec".to_owned(), vec!["run".to_owned()])];
        let names = ToolNames::new(added.into());
        for (sent, wanted) in [("ship", "deploy"), ("DEPLOY", "deploy"), ("Run", "exec"), ("bash", "exec")] {
            assert_eq!(names.normalise(sent), wanted, "{sent}");
        }
        assert!(names.names().contains(&"deploy"));
        let exec = names.list().into_iter().find(|tool| tool.name == "exec").expect("is listed");
        assert!(exec.is_guarded() && exec.aliases.contains(&"run".to_owned()));
    }

    #[test]
    fn groups_hold_their_tools() {
        assert_eq!(group("group:fs"), Some(vec!["apply_patch", "edit", "read", "write"]));
        assert_eq!(group("group:none"), None);
        assert!(GROUPS.iter().all(|name| group(name).is_some_and(|tools| !tools.is_empty())));
    }
}
