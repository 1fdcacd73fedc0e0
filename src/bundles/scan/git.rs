//! Settings of git: what they start at later commands of the user, and where they lead what the user fetches and pushes
//! (git-config reference).
//!
//! A file counts by its name, or because it holds settings that only git has: `include.path` names files of any name.

use super::{Rule, Scan, Severity, config, shell};

/// Largest file that is read, in bytes, and most settings of it.
const FILE_BYTES_MAX: usize = 128 << 10;
const SETTINGS_MAX: usize = 2_000;

/// Settings whose value is a command, as section and name; `*` stands for any subsection or none.
const PROGRAMS: &[(&str, &str)] = &[
    ("alias", "*"),
    ("browser", "cmd"),
    ("browser", "path"),
    ("core", "alternaterefscommand"),
    ("core", "askpass"),
    ("core", "editor"),
    ("core", "fsmonitor"),
    ("core", "gitproxy"),
    ("core", "pager"),
    ("core", "sshcommand"),
    ("credential", "helper"),
    ("diff", "command"),
    ("diff", "external"),
    ("diff", "textconv"),
    ("difftool", "cmd"),
    ("difftool", "path"),
    ("filter", "clean"),
    ("filter", "process"),
    ("filter", "smudge"),
    ("gpg", "program"),
    ("gpg", "defaultkeycommand"),
    ("guitool", "cmd"),
    ("imap", "tunnel"),
    ("interactive", "difffilter"),
    ("man", "cmd"),
    ("man", "path"),
    ("merge", "driver"),
    ("mergetool", "cmd"),
    ("mergetool", "path"),
    ("pager", "*"),
    ("receive", "procreceiverefs"),
    ("remote", "receivepack"),
    ("remote", "uploadpack"),
    ("sendemail", "headercmd"),
    ("sendemail", "sendmailcmd"),
    ("sendemail", "smtpserver"),
    ("sendemail", "tocmd"),
    ("sendemail", "cccmd"),
    ("sequence", "editor"),
    ("submodule", "update"),
    ("tar", "command"),
    ("trailer", "cmd"),
    ("trailer", "command"),
    ("uploadpack", "packobjectshook"),
    ("web", "browser"),
];

/// Sections that no other tool has, or settings that tell git's from those of other tools.
const OF_GIT: &[(&str, &str)] = &[
    ("alias", "*"),
    ("core", "askpass"),
    ("core", "fsmonitor"),
    ("core", "gitproxy"),
    ("core", "hookspath"),
    ("core", "pager"),
    ("core", "repositoryformatversion"),
    ("core", "sshcommand"),
    ("credential", "helper"),
    ("diff", "textconv"),
    ("filter", "*"),
    ("merge", "driver"),
    ("remote", "*"),
    ("submodule", "*"),
    ("url", "insteadof"),
    ("url", "pushinsteadof"),
];

/// Programs that people set for these, without a path: pagers, editors, helpers for credentials, filters.
const USUAL: &[&str] = &[
    "bat",
    "cache",
    "cat",
    "code",
    "cursor",
    "delta",
    "diff-highlight",
    "diff-so-fancy",
    "difft",
    "emacs",
    "emacsclient",
    "false",
    "firefox",
    "gh",
    "git",
    "git-crypt",
    "git-lfs",
    "glab",
    "gnome-keyring",
    "gpg",
    "gpg2",
    "gvim",
    "hx",
    "kdiff3",
    "less",
    "libsecret",
    "manager",
    "manager-core",
    "meld",
    "micro",
    "more",
    "most",
    "msmtp",
    "nano",
    "nbdiff",
    "nbmergetool",
    "nbstripout",
    "nvim",
    "open",
    "opendiff",
    "osxkeychain",
    "oauth",
    "pass",
    "pdftotext",
    "pandoc",
    "ssh",
    "ssh-keygen",
    "store",
    "subl",
    "sops",
    "true",
    "vi",
    "vim",
    "vimdiff",
    "wincred",
    "xdg-open",
    "zed",
];

const RUNS: Rule<'static> = Rule {
    id: "bundle.git-runs",
    category: "persistence",
    severity: Severity::High,
    reason: "The settings of a repository of git in the bundle name a program: it runs at a later command in its folder.",
    fix: "Leave the folder `.git` out of the bundle.",
};
const SENDS: Rule<'static> = Rule {
    id: "bundle.git-sends",
    category: "credential_access",
    severity: Severity::High,
    reason: "A program in the settings of git sends what git hands it, such as a password, to another machine.",
    fix: "Leave the setting to the user.",
};
const REDIRECTS: Rule<'static> = Rule {
    id: "bundle.git-redirect",
    category: "supply_chain",
    severity: Severity::High,
    reason: "Settings of git fetch from, or push to, another host than the one that the user names.",
    fix: "Leave the addresses of repositories as they are.",
};
const HOOKS: Rule<'static> = Rule {
    id: "bundle.git-hooks-elsewhere",
    category: "persistence",
    severity: Severity::High,
    reason: "Settings of git take hooks from a folder outside the repository: what lies there runs at later commands.",
    fix: "Leave the setting to the user.",
};
const ACTIVE_HOOK: Rule<'static> = Rule {
    id: "bundle.git-hook",
    category: "persistence",
    severity: Severity::Medium,
    reason: "A hook in the folder `.git` of the bundle runs at later commands of git in its folder.",
    fix: "Leave the folder `.git` out of the bundle.",
};

/// One setting.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    /// Name of the section, in lower case.
    section: String,
    /// The subsection, as written.
    subsection: String,
    /// Name, in lower case.
    name: String,
    /// Value, without quotes and escapes; empty for a name alone, which means true.
    value: String,
    /// 1-based line.
    line: u32,
}

impl Setting {
    fn is_of(&self, list: &[(&str, &str)]) -> bool {
        list.iter().any(|(section, name)| self.section == *section && (*name == "*" || self.name == *name))
    }

    /// The command that it starts; `None` where it names no program.
    fn command(&self) -> Option<&str> {
        let value = self.value.trim();
        let is_plain = matches!(
            value.to_ascii_lowercase().as_str(),
            "" | "true" | "false" | "yes" | "no" | "on" | "off" | "0" | "1" | "auto"
        );
        if is_plain || !self.is_of(PROGRAMS) {
            return None;
        }
        match (self.section.as_str(), self.name.as_str()) {
            // Only behind an exclamation mark is it a command; else one of git, or how a submodule is brought up to date.
            ("alias", _) | ("submodule", "update") => value.strip_prefix('!'),
            ("sendemail", "smtpserver") => Some(value).filter(|value| value.starts_with('/')),
            _ => Some(value.strip_prefix('!').unwrap_or(value)),
        }
    }
}

/// Whether a path is that of settings of a repository, which count as soon as its folder is used.
fn is_of_repository(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let (folders, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    matches!(name, "config" | "config.worktree") && folders.split('/').any(|folder| folder.ends_with(".git"))
}

/// Whether a name says that a file holds settings of git.
fn is_named(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    is_of_repository(path)
        || matches!(name, ".gitconfig" | "gitconfig" | ".gitmodules")
        || name.ends_with(".gitconfig")
        || lower.ends_with("git/config")
}

/// Looks at every setting of a file of them.
pub(super) fn settings(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    if text.len() > FILE_BYTES_MAX || !text.contains('[') {
        return;
    }
    let all = read(text);
    if !is_named(scan.path) && !all.iter().any(|one| one.is_of(OF_GIT)) {
        return;
    }
    let of_repository = is_of_repository(scan.path);
    for one in &all {
        if let Some(command) = one.command() {
            scan.engine("shell");
            scan.can("git_program", one.line, command);
            if config::sends_input(command).is_some() {
                scan.add(&SENDS, one.line);
            }
            shell::command(scan, command, one.line);
            if of_repository && !is_usual(command) {
                scan.add(&RUNS, one.line);
            }
        }
        if one.section == "core" && one.name == "hookspath" && leaves_repository(&one.value) {
            let severity = if of_repository { Severity::High } else { Severity::Medium };
            scan.add(&Rule { severity, ..HOOKS }, one.line);
        }
        if one.section == "url" && matches!(one.name.as_str(), "insteadof" | "pushinsteadof") {
            let (to, from) = (host(&one.subsection), host(&one.value));
            let is_redirect = !to.is_empty() && to != from && !config::is_near(&to);
            if is_redirect && is_public(&from) {
                scan.add(&REDIRECTS, one.line);
            }
        }
    }
}

/// A hook that git starts by itself: not one of the samples that every new repository holds.
pub(super) fn active_hook(scan: &mut Scan<'_, '_>) {
    let lower = scan.path.to_ascii_lowercase();
    let Some((folder, name)) = lower.rsplit_once('/') else { return };
    if folder.ends_with(".git/hooks") && !name.ends_with(".sample") {
        scan.add(&ACTIVE_HOOK, 1);
    }
}

/// Whether a command is a program that people set, with plain arguments.
fn is_usual(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    USUAL.contains(&program) && !command.contains([';', '|', '&', '`', '$', '<', '>', '\n'])
}

/// Whether a folder of hooks lies outside the repository.
fn leaves_repository(folder: &str) -> bool {
    let folder = folder.trim();
    folder.starts_with(['/', '~', '$', '%'])
        || folder.split(['/', '\\']).any(|part| part == "..")
        || folder.get(1..3).is_some_and(|rest| rest == ":\\" || rest == ":/")
}

/// The host of an address of a repository, `https://user@host/…`, `git@host:…` or the beginning of one; in lower case.
fn host(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let host = rest.split(['/', ':']).next().unwrap_or_default().to_ascii_lowercase();
    // `gh:` is a short form that the user writes; the port of SSH of a host is that host.
    let host = if host.contains('.') { host } else { String::new() };
    host.strip_prefix("ssh.").or_else(|| host.strip_prefix("altssh.")).map(str::to_owned).unwrap_or(host)
}

/// Whether a host is one where anybody publishes: an address on it names what somebody means to fetch.
fn is_public(host: &str) -> bool {
    [
        "github.com",
        "gitlab.com",
        "bitbucket.org",
        "codeberg.org",
        "huggingface.co",
        "dev.azure.com",
        "googlesource.com",
    ]
    .iter()
    .any(|known| host == *known || host.ends_with(&format!(".{known}")))
}

/// The settings of a text, in order.
fn read(text: &str) -> Vec<Setting> {
    let mut all = Vec::new();
    let (mut section, mut subsection) = (String::new(), String::new());
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        let mut rest = line.trim_start();
        if let Some(header) = rest.strip_prefix('[') {
            let Some(end) = end_of_header(header) else { continue };
            (section, subsection) = names(&header[..end]);
            rest = header[end + 1..].trim_start();
        }
        if rest.is_empty() || rest.starts_with(['#', ';']) || section.is_empty() {
            continue;
        }
        let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
        let mut value = value.to_owned();
        while value.ends_with('\\') && !value.ends_with("\\\\") {
            value.pop();
            let Some((_, more)) = lines.next() else { break };
            value.push_str(more);
        }
        all.push(Setting {
            section: section.clone(),
            subsection: subsection.clone(),
            name: name.trim().to_ascii_lowercase(),
            value: unquoted(&value),
            line: number,
        });
        if all.len() == SETTINGS_MAX {
            break;
        }
    }
    all
}

/// Where the bracket stands that closes a header, quoted ones looked past.
fn end_of_header(header: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    header.bytes().position(|byte| {
        let is_end = byte == b']' && !is_quoted;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ => {}
        }
        is_end
    })
}

/// Section and subsection of a header: `section "subsection"`, or the old `section.subsection`.
fn names(header: &str) -> (String, String) {
    match header.split_once('"') {
        Some((section, rest)) => {
            let subsection = rest.trim_end().trim_end_matches('"');
            (section.trim().to_ascii_lowercase(), subsection.replace("\\\"", "\"").replace("\\\\", "\\"))
        }
        None => {
            let (section, subsection) = header.split_once('.').unwrap_or((header, ""));
            (section.trim().to_ascii_lowercase(), subsection.trim().to_owned())
        }
    }
}

/// A value without its quotes, escapes and comment.
fn unquoted(value: &str) -> String {
    let (mut out, mut is_quoted) = (String::with_capacity(value.len()), false);
    let mut chars = value.trim().chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('b') => drop(out.pop()),
                Some(c) => out.push(c),
                None => {}
            },
            '#' | ';' if !is_quoted => break,
            c => out.push(c),
        }
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let text = "# c\n[Core]\n\tFSMonitor = \"a \\\"b\\\" ; c\" # d\n[alias] st = !x \\\n  y\n[remote \"o]r\"]\nurl = u\n\
                    [branch.main]\nmerge\n; end\n";
        let read: Vec<_> = read(text)
            .into_iter()
            .map(|one| (one.section, one.subsection, one.name, one.value, one.line))
            .collect();
        let of = |section: &str, sub: &str, name: &str, value: &str, line| {
            (section.to_owned(), sub.to_owned(), name.to_owned(), value.to_owned(), line)
        };
        assert_eq!(
            read,
            [
                of("core", "", "fsmonitor", "a \"b\" ; c", 3),
                of("alias", "", "st", "!x   y", 4),
                of("remote", "o]r", "url", "u", 7),
                of("branch", "main", "merge", "", 9),
            ]
        );
    }

    #[test]
    fn commands_are_told_from_plain_values() {
        for (text, wanted) in [
            ("[core]\nfsmonitor = true", None),
            ("[core]\nfsmonitor = run me", Some("run me")),
            ("[alias]\nst = status", None),
            ("[alias]\nst = !sh -c x", Some("sh -c x")),
            (
                "[credential \"https://h.somewhere.example\"]\nhelper = \"!f() { x; }; f\"",
                Some("f() { x; }; f"),
            ),
            ("[submodule \"a\"]\nupdate = rebase", None),
            ("[submodule \"a\"]\nupdate = !x", Some("x")),
            ("[filter \"a\"]\nclean = x %f", Some("x %f")),
            ("[pager]\ndiff = less", Some("less")),
            ("[user]\nname = x", None),
            ("[sendemail]\nsmtpserver = mail.somewhere.example", None),
        ] {
            let all = read(text);
            assert_eq!(all[0].command(), wanted, "{text}");
        }
    }

    #[test]
    fn files_are_told_by_their_paths() {
        for (path, wanted) in [
            (".git/config", true),
            ("sub/.git/modules/a/config", true),
            ("vendor/lib.git/config", true),
            ("x/.GIT/config.worktree", true),
            ("config", false),
            (".github/config", false),
        ] {
            assert_eq!(is_of_repository(path), wanted, "{path}");
        }
        assert!(is_named("dot/.gitconfig") && is_named(".config/git/config") && !is_named("a.cfg"));
    }

    #[test]
    fn hosts_and_folders_are_told() {
        for (address, wanted) in [
            ("https://u:t@GitHub.com/a", "github.com"),
            ("git@github.com:", "github.com"),
            ("ssh://git@ssh.github.com:443/", "github.com"),
            ("gh:", ""),
            ("https://mirror.somewhere.example/", "mirror.somewhere.example"),
        ] {
            assert_eq!(host(address), wanted, "{address}");
        }
        for (folder, wanted) in [
            (".githooks", false),
            ("a/hooks", false),
            ("../h", true),
            ("~/h", true),
            ("/opt/h", true),
            ("C:\\h", true),
        ] {
            assert_eq!(leaves_repository(folder), wanted, "{folder}");
        }
    }
}
