//! E-mail addresses, and the things with an at sign that are none.

/// Last labels that are file names, unit names or names of private networks, not top-level domains.
const NO_TOP_LEVEL: &[&str] = &[
    "png",
    "jpg",
    "jpeg",
    "gif",
    "svg",
    "webp",
    "ico",
    "bmp",
    "html",
    "htm",
    "xml",
    "json",
    "yaml",
    "yml",
    "toml",
    "lock",
    "txt",
    "css",
    "scss",
    "less",
    "js",
    "ts",
    "tsx",
    "jsx",
    "mjs",
    "cjs",
    "java",
    "class",
    "exe",
    "dll",
    "deb",
    "rpm",
    "tar",
    "tgz",
    "gz",
    "jar",
    "whl",
    "log",
    "conf",
    "cfg",
    "ini",
    "service",
    "timer",
    "socket",
    "mount",
    "target",
    "slice",
    "scope",
    "path",
    "local",
    "localdomain",
    "internal",
    "lan",
    "intranet",
    "corp",
    "localhost",
];

/// Commands whose operand `user@host` is a login, not a mailbox.
const LOGIN_COMMANDS: &[&str] =
    &["ssh", "scp", "rsync", "sftp", "mosh", "sshfs", "ssh-copy-id", "autossh", "clone"];

/// Options of theirs that stand right before it where the command itself is out of sight.
const LOGIN_OPTIONS: &[&str] = &["-p", "-i"];

/// Whether `value` is an e-mail address where it stands.
pub(super) fn is_email(value: &str, before: &str, after: &str) -> bool {
    let Some((local, domain)) = value.rsplit_once('@') else { return false };
    is_local_part(local) && is_domain(domain) && !is_remote(local, before, after)
}

fn is_local_part(local: &str) -> bool {
    if local.len() >= 2 && local.starts_with('"') && local.ends_with('"') {
        return true;
    }
    !local.is_empty()
        && local.chars().count() <= 64
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..")
}

fn is_domain(domain: &str) -> bool {
    let labels: Vec<&str> = domain.split('.').collect();
    let is_label = |label: &&str| {
        !label.is_empty() && label.len() <= 63 && !label.starts_with('-') && !label.ends_with('-')
    };
    let Some((top, rest)) = labels.split_last() else { return false };
    let top = top.to_ascii_lowercase();
    let is_top = top.chars().count() >= 2
        && (top.starts_with("xn--") || top.chars().all(char::is_alphabetic))
        && !NO_TOP_LEVEL.contains(&top.as_str());
    domain.len() <= 253 && !rest.is_empty() && is_top && labels.iter().all(is_label)
}

/// Whether the neighbourhood makes it a login of a shell command, a repository remote or part of a URL.
fn is_remote(local: &str, before: &str, after: &str) -> bool {
    let tail = before
        .rsplit(|c: char| c.is_whitespace() || c == '"' || c == '\'' || c == '<')
        .next()
        .unwrap_or_default();
    let is_in_url =
        tail.rsplit_once("://").is_some_and(|(_, authority)| !authority.contains(['/', '?', '#', '=']));
    let is_path = after.starts_with(":~")
        || after.starts_with(":/")
        || (after.starts_with(':') && matches!(local, "git" | "hg" | "gitlab" | "org-git"));
    let is_login = before.ends_with(' ') && is_operand_of_login(before.trim_end());
    let is_joined = before.ends_with(['@', '/']) || after.starts_with('@');
    local == "git" || is_in_url || is_path || is_login || is_joined
}

/// Whether the words before are such a command with nothing but options and their values behind it.
fn is_operand_of_login(before: &str) -> bool {
    let mut words = before.rsplit(|c: char| c.is_whitespace()).filter(|word| !word.is_empty());
    // What stands right before is an option, the value of one, or the command.
    let Some(last) = words.next() else { return false };
    if LOGIN_OPTIONS.contains(&last) {
        return true;
    }
    let mut is_explained = true;
    for word in std::iter::once(last).chain(words) {
        let name = word.rsplit('/').next().unwrap_or(word);
        if LOGIN_COMMANDS.contains(&name) {
            return is_explained;
        }
        let is_option = word.starts_with('-');
        if !is_option && !is_explained {
            return false;
        }
        // A value needs an option before it, files that are copied need none.
        is_explained = is_option || word.starts_with(['.', '/', '~']);
    }
    false
}
