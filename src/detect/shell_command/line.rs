//! What a line begins with: marks of quotations and lists, a prompt, a keyword or a key that says that a command follows.

use std::ops::Range;

/// Columns from which a line is code in Markdown.
pub(super) const CODE_INDENT: usize = 4;
/// Lines that one command may go on over.
const CONTINUED_MAX: usize = 40;
/// Longest name and path before the sign of a prompt, in bytes.
const PROMPT_BYTES_MAX: usize = 80;
/// Longest key before a command, in bytes.
const KEY_BYTES_MAX: usize = 20;

/// Keys of build files and of instructions whose values are commands.
const KEYS: [&str; 14] = [
    "run",
    "script",
    "before_script",
    "after_script",
    "command",
    "commands",
    "cmd",
    "cmds",
    "shell",
    "sh",
    "bash",
    "exec",
    "execute",
    "entrypoint",
];

/// What stands before the first word of a line.
pub(super) struct Lead {
    /// Marks of quotations.
    pub quotes: usize,
    /// Columns of white space behind them.
    pub indent: usize,
    /// Whether the mark of a list item follows.
    pub is_item: bool,
    /// Where the first word begins, in bytes of the line.
    pub start: usize,
}

impl Lead {
    /// Of a line, at most so many marks of quotations.
    pub fn of(line: &str, quotes_max: usize) -> Self {
        let bytes = line.as_bytes();
        let (mut quotes, mut indent, mut at) = (0, 0, 0);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b' ' => indent += 1,
                b'\t' => indent += CODE_INDENT,
                b'>' if quotes < quotes_max => {
                    quotes += 1;
                    // One blank belongs to the mark.
                    at += usize::from(bytes.get(at + 1) == Some(&b' '));
                    indent = 0;
                }
                _ => break,
            }
            at += 1;
        }
        let marker = match bytes.get(at..).unwrap_or_default() {
            [b'-' | b'*' | b'+', b' ', ..] => 2,
            rest => {
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let is_marked = matches!(rest.get(digits..), Some([b'.' | b')', b' ', ..]));
                if is_marked && (1..4).contains(&digits) { digits + 2 } else { 0 }
            }
        };
        at += marker;
        if marker > 0 {
            at += bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        }
        Self { quotes, indent, is_item: marker > 0, start: at }
    }
}

/// Where the command behind a prompt begins, in bytes of a line without its lead. Prompts that name a machine are looked for
/// only `with_hosts`.
pub(super) fn behind_prompt(line: &str, with_hosts: bool) -> Option<usize> {
    let first = *line.as_bytes().first()?;
    if first == b'$' && line.starts_with("$ ") {
        return Some(2);
    }
    if !with_hosts && !matches!(line.as_bytes(), [_, b':', ..] | [b'P', b'S', b' ', ..]) {
        return None;
    }
    let head = &line[..line.floor_char_boundary(PROMPT_BYTES_MAX.min(line.len()))];
    // `PS C:\>`, `C:\Users\x>`.
    let is_drive = |text: &str| matches!(text.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    let path = head.strip_prefix("PS ");
    if is_drive(head) || path.is_some_and(|path| is_drive(path) || path.starts_with(['/', '~'])) {
        let sign = head.find('>')?;
        let start = sign + 1 + usize::from(head[sign + 1..].starts_with(' '));
        return (start < line.len()).then_some(start);
    }
    // `user@host:/tmp$`, `[user@host tmp]$`, `root@host:~#`.
    let at = head.find('@')?;
    let is_name = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    if !is_name(head[..at].trim_start_matches(['[', '('])) {
        return None;
    }
    let host = head[at + 1..]
        .bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(byte))
        .count();
    let rest = &head[at + 1 + host..];
    if host == 0 || !rest.starts_with([':', ' ', '$', '#', ']']) {
        return None;
    }
    let sign = rest.find(['$', '#', '%'])?;
    let is_path = rest[..sign].bytes().filter(|byte| *byte == b' ').count() <= 1;
    let start = at + 1 + host + sign + 1;
    (is_path && head[start..].starts_with(' ')).then_some(start + 1)
}

/// What a line says about commands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// One begins here, in bytes of the line without its lead.
    Command(usize),
    /// The lines below it, which are indented further, are.
    Below,
}

/// What a keyword of a Dockerfile, or a key of a build file, says at the beginning of a line.
pub(super) fn keyword(line: &str) -> Option<Says> {
    if !line.as_bytes().first()?.is_ascii_alphabetic() {
        return None;
    }
    if matches!(line.as_bytes()[0], b'R' | b'C' | b'E') {
        for word in ["RUN ", "CMD ", "ENTRYPOINT "] {
            if let Some(rest) = line.strip_prefix(word) {
                return Some(Says::Command(line.len() - behind_flags(rest).len()));
            }
        }
    }
    // What the keys begin with.
    if !matches!(line.as_bytes()[0].to_ascii_lowercase(), b'r' | b's' | b'b' | b'a' | b'c' | b'e') {
        return None;
    }
    let head = &line.as_bytes()[..line.len().min(KEY_BYTES_MAX)];
    let colon = head.iter().position(|byte| !byte.is_ascii_alphabetic() && *byte != b'_')?;
    if head[colon] != b':' || !KEYS.iter().any(|key| line[..colon].eq_ignore_ascii_case(key)) {
        return None;
    }
    let rest = &line[colon + 1..];
    match rest.trim() {
        "" | "|" | ">" | "|-" | ">-" | "|+" | ">+" => Some(Says::Below),
        _ if rest.starts_with([' ', '\t']) => Some(Says::Command(line.len() - rest.trim_start().len())),
        _ => None,
    }
}

/// What follows the flags of an instruction, as in `--mount=type=cache,target=/x apt-get`.
fn behind_flags(rest: &str) -> &str {
    let mut rest = rest.trim_start();
    while rest.starts_with("--") {
        let Some((_, behind)) = rest.split_once(' ') else { break };
        rest = behind.trim_start();
    }
    rest
}

/// A command that begins at `start`, with the lines that a backslash joins to it.
pub(super) fn continued(text: &str, start: usize) -> Range<usize> {
    let mut end = start;
    for line in text[start..].split_inclusive('\n').take(CONTINUED_MAX) {
        end += line.len();
        if !line.trim_end().ends_with('\\') {
            break;
        }
    }
    start..start + text[start..end].trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_told_from_other_text() {
        for (line, wanted) in [
            ("$ ls -l", Some("ls -l")),
            ("anna@box:/tmp$ ls -l", Some("ls -l")),
            ("root@box:~# ls -l", Some("ls -l")),
            ("[root@box tmp]# ls -l", Some("ls -l")),
            ("PS C:\\Users\\anna> ls -l", Some("ls -l")),
            ("PS C:\\>ls -l", Some("ls -l")),
            ("C:\\work>dir", Some("dir")),
            ("anna@example.com owes us $ 5", None),
            ("write to anna@example.com about # 5", None),
            ("PS I will be late > 5", None),
            ("$5 each", None),
        ] {
            assert_eq!(behind_prompt(line, true).map(|at| &line[at..]), wanted, "{line}");
        }
    }

    #[test]
    fn keywords_say_where_commands_are() {
        for (line, wanted) in [
            ("RUN ls -l", Some(Says::Command(4))),
            ("RUN --mount=type=cache,target=/x ls", Some(Says::Command(33))),
            ("run: ls -l", Some(Says::Command(5))),
            ("script:", Some(Says::Below)),
            ("run: |", Some(Says::Below)),
            ("running: ls", None),
            ("run:ls", None),
            ("name: ls", None),
        ] {
            assert_eq!(keyword(line), wanted, "{line}");
        }
    }

    #[test]
    fn leads_are_read_to_the_first_word() {
        for (line, wanted) in [
            ("> > x", (2, 0, false, "x")),
            (">     x", (1, 4, false, "x")),
            ("\tx", (0, 4, false, "x")),
            ("  - x", (0, 2, true, "x")),
            ("12. x", (0, 0, true, "x")),
            ("2024. x", (0, 0, false, "2024. x")),
            ("", (0, 0, false, "")),
        ] {
            let lead = Lead::of(line, usize::MAX);
            assert_eq!((lead.quotes, lead.indent, lead.is_item, &line[lead.start..]), wanted, "{line:?}");
        }
    }
}
