//! Names of settings that do something: what is not among them is data, and no tree is made of a file without one.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

/// Settings whose value is a command that a client runs by itself.
pub(super) const HELPERS: &[&str] =
    &["apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "otelHeadersHelper"];
/// Members whose text is run by a shell.
pub(super) const COMMANDS: &[&str] = &[
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
    "before_install",
    "after_script",
    "runcmd",
    "bootcmd",
    "prebuild",
    "init_hook",
    "buildCommand",
    "installCommand",
    "startCommand",
];
/// Members whose own members are commands by their names.
pub(super) const TABLES: &[&str] = &["scripts", "tasks"];
/// Members that give the agent rights.
pub(super) const MODES: &[&str] = &[
    "permissionMode",
    "defaultMode",
    "permission_mode",
    "approval_policy",
    "approvalPolicy",
    "defaultApprovalMode",
    "approvalMode",
    "approval_mode",
    "sandbox_mode",
    "sandboxMode",
];
/// Members that take its guards away where they are true.
pub(super) const SWITCHES: &[&str] = &[
    "dangerouslySkipPermissions",
    "skipDangerousModePermissionPrompt",
    "enableAllProjectMcpServers",
    "bypassPermissions",
    "autoApproveAll",
    "disableSandbox",
    "dangerouslyDisableSandbox",
    "chat.tools.autoApprove",
    "chat.tools.global.autoApprove",
];
/// Members whose own members are commands, or patterns over them, that are allowed.
pub(super) const APPROVED: &[&str] = &["chat.tools.terminal.autoApprove", "permission"];
/// Members whose own members are variables of the environment.
pub(super) const ENVIRONMENTS: &[&str] = &[
    "env",
    "terminal.integrated.env.linux",
    "terminal.integrated.env.osx",
    "terminal.integrated.env.windows",
];
/// Further members that are looked at.
const OTHERS: &[&str] = &[
    "url",
    "runOn",
    "runOptions",
    "permissions",
    "mcpServers",
    "mcp_servers",
    "servers",
    "hooks",
    "statusLine",
];

/// Every name that [`super::Walk::object`] asks for.
fn looked_at() -> impl Iterator<Item = &'static str> {
    [HELPERS, COMMANDS, TABLES, MODES, SWITCHES, APPROVED, ENVIRONMENTS, OTHERS]
        .into_iter()
        .flatten()
        .copied()
}

pub(super) fn is_looked_at(name: &str) -> bool {
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
pub(super) fn is_data(text: &str, escape: &str) -> bool {
    let bytes = text.as_bytes();
    let goes_on =
        |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    let is_name = |hit: aho_corasick::Match| {
        let before = hit.start().checked_sub(1).and_then(|at| bytes.get(at));
        !goes_on(before) && !goes_on(bytes.get(hit.end()))
    };
    memchr::memmem::find(bytes, escape.as_bytes()).is_none() && !LOOKED_AT.find_iter(bytes).any(is_name)
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
