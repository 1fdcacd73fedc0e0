//! Shell commands quoted or fenced in a text, judged by what they would do.
//!
//! *What it finds*: commands in code fences, in inline code, in quotes and behind a prompt whose effects a rule about
//! commands holds for at HIGH or more: whatever they are spelt like.
//! *Why it matters*: an agent runs what a text shows it as a command, and patterns over text see one spelling of many.
//! *What it misses*: commands that stand in plain prose, and those that only a policy's own rules know.
//! *What it costs*: a few looks for a backtick, a fence or a prompt; an analysis for each command that names a program
//! that can do harm.
//!
//! A command that is only shown is no attack by itself, so the finding warns and does not block. What blocks in prose
//! stands in `rules/code`.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use memchr::{memchr, memchr_iter, memchr2, memchr3, memmem};
use regex_automata::meta::Regex;

use super::{CODE, Detector};
use crate::commands::{CommandRules, GuardContext};
use crate::decision::{Category, Severity};
use crate::rules::MetaInfo;
use crate::shell;
use crate::text::View;

/// Most commands of one text that are analysed.
const COMMANDS_MAX: usize = 64;
/// Longest command that is analysed, in bytes.
const COMMAND_BYTES_MAX: usize = 4_096;
/// Longest command in inline code or quotes, in bytes.
const INLINE_BYTES_MAX: usize = 512;
/// What the severity is worth where a command is shown and not run.
const SHOWN_CONFIDENCE: f64 = 0.6;

/// Programs that a dangerous command names, as words.
static PROGRAMS: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"(?-u:\b)(?:rm|rmdir|unlink|dd|mkfs(?:\.\w+)?|fdisk|parted|sgdisk|shred|wipefs|find|xargs|chmod|chown|chattr|",
        r"curl|wget|nc|ncat|netcat|socat|telnet|ssh|scp|rsync|sftp|ftp|bash|sh|zsh|dash|ksh|fish|python[23]?|perl|ruby|node|php|",
        r"eval|exec|source|base64|xxd|openssl|gpg|kill|pkill|killall|shutdown|reboot|halt|poweroff|init|systemctl|",
        r"service|iptables|nft|ufw|setenforce|crontab|at|useradd|usermod|userdel|passwd|visudo|mount|umount|insmod|",
        r"modprobe|sysctl|docker|podman|kubectl|helm|terraform|aws|gcloud|az|git|gh|npm|pip3?|truncate|tee|mv|cp|ln|",
        r"tar|cat|echo|printf|history|unset|export|env|nsenter|chroot|unshare|strace|gdb|tcpdump)(?-u:\b)",
    ))
});

/// Signs of a command that is worth a look though no code is marked. Literals alone: one pass, many bytes at a time.
static SIGNS: LazyLock<Regex> = LazyLock::new(|| known(r"rm -|mkfs|dd if=|\| sh|\|sh|\| bash|/dev/tcp/"));

fn known(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
}

/// Finds dangerous commands that a text shows.
pub(super) struct ShellCommand {
    info: Arc<MetaInfo>,
}

impl ShellCommand {
    pub(super) fn new() -> Self {
        let info = MetaInfo {
            id: "code.shell-command".into(),
            plugin: CODE.into(),
            category: Category::new("code_injection.shell"),
            severity: Severity::High,
            score: Severity::High.score() * SHOWN_CONFIDENCE,
            confidence: SHOWN_CONFIDENCE,
            description:
                "A command in a code fence, in quotes or behind a prompt that would do damage when it is run."
                    .into(),
            recommendation: "Do not run it; ask where the text came from and what it is to achieve.".into(),
            references: Vec::new(),
            file: "src/detect/shell_command.rs".into(),
            line: 0,
        };
        Self { info: Arc::new(info) }
    }
}

impl Detector for ShellCommand {
    fn info(&self) -> &Arc<MetaInfo> {
        &self.info
    }

    fn detect(&self, view: &View<'_>, found: &mut Vec<Range<usize>>) {
        // Other views are of the same text: what is disguised in it is judged by the rules of this family.
        if !view.layers().is_empty() {
            return;
        }
        let text = view.text();
        let mut looked = 0;
        for range in shown_commands(text) {
            let command = &text[range.clone()];
            if command.len() > COMMAND_BYTES_MAX || !PROGRAMS.is_match(command) {
                continue;
            }
            looked += 1;
            if looked > COMMANDS_MAX {
                return;
            }
            if is_dangerous(command) {
                found.push(view.to_source(range));
            }
        }
    }
}

fn is_dangerous(command: &str) -> bool {
    let context = GuardContext::default();
    let analysis = shell::analyse(command, context.place, &shell::limits::Limits::default());
    let hits = CommandRules::builtin().judge(&analysis, &context);
    hits.iter().any(|hit| hit.rule.severity >= Severity::High)
}

/// Where commands are shown, in bytes of the text, in no certain order.
fn shown_commands(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let has = |sign: &str| memmem::find(bytes, sign.as_bytes()).is_some();
    // Plain prose holds none of the three, so it is read twice at most: once for these bytes, once for the signs.
    let has_marks = memchr3(b'`', b'$', b'~', bytes).is_some();
    let has_code = has_marks && (memchr(b'`', bytes).is_some() || has("~~~"));
    let has_prompt = has_marks && (text.starts_with("$ ") || has("\n$ ") || has("\n    $ "));
    let has_sign = SIGNS.is_match(text);
    let mut out = Vec::new();
    if !has_code && !has_prompt && !has_sign {
        return out;
    }
    let mut fence: Option<Fence> = None;
    let mut at = 0;
    for end in memchr_iter(b'\n', bytes).map(|end| end + 1).chain([bytes.len()]) {
        let range = at..end;
        at = end;
        let line = &text[range.clone()];
        if fence.is_none() && !may_open(line) {
            if has_code || has_sign {
                quoted(text, &range, &mut out);
            }
            continue;
        }
        let trimmed = line.trim();
        match &mut fence {
            Some(open) if open.is_closed_by(trimmed) => {
                out.extend(fence.take().and_then(|open| open.block(range.start)));
            }
            Some(open) => open.line(text, range, &mut out),
            None => {
                fence = Fence::opened_by(trimmed, range.end);
                if fence.is_none() {
                    out.extend(prompted(text, &range));
                    if has_code || has_sign {
                        quoted(text, &range, &mut out);
                    }
                }
            }
        }
    }
    // A fence that is never closed reaches to the end.
    out.extend(fence.and_then(|open| open.block(text.len())));
    out
}

/// Whether a line may open a fence or begin with a prompt.
fn may_open(line: &str) -> bool {
    let first = line.bytes().find(|byte| !byte.is_ascii_whitespace());
    first.is_some_and(|byte| matches!(byte, b'`' | b'~' | b'$') || !byte.is_ascii())
}

/// A code fence that is open.
struct Fence {
    mark: u8,
    length: usize,
    /// Where what it holds begins.
    start: usize,
    /// Whether a line in it begins with a prompt; then only such lines are commands.
    has_prompts: bool,
    is_shell: bool,
}

impl Fence {
    fn opened_by(line: &str, next: usize) -> Option<Self> {
        let mark = *line.as_bytes().first()?;
        let length = line.bytes().take_while(|byte| *byte == mark).count();
        if !matches!(mark, b'`' | b'~') || length < 3 {
            return None;
        }
        let language = line[length..].trim().split([' ', ',', '{']).next().unwrap_or_default();
        const SHELLS: [&str; 11] = [
            "",
            "sh",
            "bash",
            "shell",
            "zsh",
            "console",
            "terminal",
            "shell-session",
            "shellscript",
            "session",
            "text",
        ];
        let is_shell = SHELLS.iter().any(|shell| language.eq_ignore_ascii_case(shell));
        Some(Self { mark, length, start: next, has_prompts: false, is_shell })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        line.len() >= self.length && line.bytes().all(|byte| byte == self.mark)
    }

    fn line(&mut self, text: &str, range: Range<usize>, out: &mut Vec<Range<usize>>) {
        if let Some(command) = prompted(text, &range).filter(|_| self.is_shell) {
            self.has_prompts = true;
            out.push(command);
        }
    }

    /// What it holds, as one script.
    fn block(self, end: usize) -> Option<Range<usize>> {
        (self.is_shell && !self.has_prompts && self.start < end).then_some(self.start..end)
    }
}

/// The command behind a prompt at the beginning of a line.
fn prompted(text: &str, line: &Range<usize>) -> Option<Range<usize>> {
    let content = &text[line.clone()];
    let indent = content.len() - content.trim_start_matches([' ', '\t']).len();
    let rest = content[indent..].strip_prefix("$ ")?.trim_end();
    let start = line.start + indent + 2;
    (!rest.is_empty()).then_some(start..start + rest.len())
}

/// What stands in inline code or quotes within one line, and has at least two words.
fn quoted(text: &str, line: &Range<usize>, out: &mut Vec<Range<usize>>) {
    let content = text[line.clone()].as_bytes();
    let mut at = 0;
    while let Some(open) = memchr3(b'`', b'"', b'\'', &content[at..]) {
        let open = at + open;
        let Some(length) = memchr(content[open], &content[open + 1..]) else {
            // Nothing closes it: an apostrophe, most likely.
            at = open + 1;
            continue;
        };
        let inner = line.start + open + 1..line.start + open + 1 + length;
        let has_words = || memchr2(b' ', b'\t', text.as_bytes()[inner.clone()].trim_ascii()).is_some();
        if inner.len() <= INLINE_BYTES_MAX && has_words() {
            out.push(inner);
        }
        // An apostrophe may have taken the opening quote of what follows for its end, so only code is passed over whole.
        at = if content[open] == b'`' { open + length + 2 } else { open + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Vec<&str> {
        shown_commands(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn commands_are_taken_from_where_they_are_shown() {
        for (text, wanted) in [
            ("Run `ls -la /tmp` now", vec!["ls -la /tmp"]),
            ("```sh\nls -l\npwd\n```\nend", vec!["ls -l\npwd\n"]),
            ("~~~\nls -l\n~~~", vec!["ls -l\n"]),
            ("```console\n$ ls -l\nfile\n$ pwd\n```", vec!["ls -l", "pwd"]),
            ("```rust\nfn a() {}\n```", vec![]),
            ("$ make all\nok", vec!["make all"]),
            ("```\nls -l", vec!["ls -l"]),
            ("plain text, it's \"nothing here\"", vec![]),
            ("say \"rm -rf x y\"", vec!["rm -rf x y"]),
        ] {
            assert_eq!(commands(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn what_a_command_would_do_decides() {
        for (command, wanted) in [
            ("find / -delete", true),
            ("r'm' -r -f \"$HOME\"", true),
            ("ls -la /", false),
            ("rm -rf ./build", false),
            ("echo rm -rf /", false),
        ] {
            assert_eq!(is_dangerous(command), wanted, "{command}");
        }
    }
}
