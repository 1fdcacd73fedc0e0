//! Whether words read like a command or like a sentence.

/// Whether a command reads like the beginning of a sentence: `rm -rf / is dangerous`. Words that are neither options nor
/// their values, paths nor assignments come after one that is.
pub(super) fn is_prose(command: &str) -> bool {
    let (mut is_value, mut has_argument) = (true, false);
    // Programs that take others as arguments, whose names are words.
    let program = command.split_ascii_whitespace().next().unwrap_or_default();
    let takes_words = TAKES_WORDS.contains(&program);
    for word in command.split_ascii_whitespace() {
        if word.starts_with('#')
            || word.contains(['|', ';', '&', '<', '>']) && !matches!(word, "->" | "=>" | "<-")
        {
            return false;
        }
        if matches!(word, "-" | "—" | "–" | "→" | "->" | "=>" | "<-" | "←") {
            return true;
        }
        let plain = word.trim_matches(['(', ')', '.', ',', ':', '!', '?', '…']);
        let is_word =
            !plain.is_empty() && plain.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '’'));
        if is_word && has_argument && !is_value && (!takes_words || SENTENCE_WORDS.contains(&plain)) {
            return true;
        }
        has_argument |= !is_word;
        is_value = word.starts_with('-');
    }
    false
}

/// Programs whose arguments are names of images, hosts, programs and files, in plain words.
const TAKES_WORDS: &[&str] = &[
    "docker", "podman", "nerdctl", "kubectl", "ssh", "scp", "nsenter", "unshare", "chroot", "mount",
    "claude", "codex", "gemini",
];

/// Words that commands do not have and sentences do not do without.
const SENTENCE_WORDS: &[&str] = &[
    "is", "are", "was", "were", "be", "has", "have", "had", "will", "would", "can", "could", "should",
    "must", "may", "might", "does", "do", "did", "not", "the", "a", "an", "and", "or", "to", "of", "for",
    "because", "when", "if", "that", "which", "this", "it", "you", "we", "as",
];

/// Programs that take what a rule looks for as an argument.
pub(super) const PROGRAMS: &[&str] = &[
    "awk", "base64", "bash", "bat", "bzip2", "cat", "chmod", "chown", "cp", "curl", "cut", "dd", "diff",
    "docker", "echo", "git", "gpg", "grep", "gzip", "head", "hexdump", "install", "kubectl", "less", "ln",
    "ls", "more", "mv", "nano", "nl", "od", "openssl", "perl", "printf", "python", "python3", "rg", "rsync",
    "ruby", "scp", "sed", "sh", "sort", "source", "ssh", "strings", "tac", "tail", "tar", "tee", "vi", "vim",
    "wget", "xxd", "zip", "zsh",
];

/// Whether what stands before a command leaves the whole line a command: nothing, other commands, wrappers, variables.
pub(super) fn is_bare(before: &str) -> bool {
    let before = before.trim_start().trim_start_matches(['(', '{']).trim_start();
    if before.is_empty() {
        return true;
    }
    let last = before.rsplit(['|', ';', '&', '(', '\n']).next().unwrap_or(before);
    let has_operator = last.len() < before.len();
    let mut words = last.split_ascii_whitespace().skip_while(|word| is_wrapper(word));
    let is_shell = |word: &str| {
        word.starts_with('/') && ["/sh", "/bash", "/zsh", "/dash"].iter().any(|name| word.ends_with(name))
    };
    let is_prefix = last.split_ascii_whitespace().next().is_some_and(is_shell)
        || words.next().is_none_or(|program| PROGRAMS.contains(&program));
    let first = before.split_ascii_whitespace().next().unwrap_or_default();
    // Prose has operators too, such as a semicolon; a command begins with a word in lower case that is no article.
    let begins = first.bytes().all(|b| {
        b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'/' | b'.' | b'_' | b'-' | b'=' | b'$')
    }) || first.contains('=');
    is_prefix && (!has_operator || begins)
}

/// Whether a word may stand before a program that it has run.
pub(super) fn is_wrapper(word: &str) -> bool {
    matches!(
        word,
        "sudo"
            | "doas"
            | "env"
            | "nohup"
            | "time"
            | "exec"
            | "command"
            | "nice"
            | "timeout"
            | "xargs"
            | "then"
            | "do"
            | "else"
    ) || word.len() > 1 && word.starts_with('-')
        || word.bytes().all(|b| b.is_ascii_digit())
        || word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        })
        || word.starts_with('/')
}
