//! Which part of a line of output is a command.
//!
//! A command stands behind a prompt, behind the `+` of a traced script, behind a label such as `Running:`, in a string
//! of a logged tool call, or it is the whole line. Anywhere else it is only spoken of.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::Regex;

/// Longest command that is looked at, in bytes.
const COMMAND_BYTES_MAX: usize = 4096;

/// How a command stands in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// It was or is to be run.
    Run,
    /// It is spoken of.
    Mention,
}

/// A command in a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Command<'t> {
    /// The command, escapes of the string that it stood in resolved.
    pub text: Cow<'t, str>,
    /// Where it stands, in bytes of the text.
    pub range: Range<usize>,
    pub form: Form,
    /// Where in the command the word stands for which it was looked at, in bytes of `range`.
    pub trigger: usize,
}

impl Command<'_> {
    /// Where a part of the command stands in the text that it was found in.
    pub fn place_of(&self, span: &Range<usize>) -> Range<usize> {
        let fits = span.start < span.end && span.end <= self.text.len();
        match &self.text {
            Cow::Borrowed(text) if fits => {
                // What is piped into a shell begins with what is fetched.
                let before = text.get(self.trigger..span.start).unwrap_or_default();
                let is_pipe =
                    before.contains('|') && !before.contains([';', '&', '\n']) || before.contains("\\\n");
                let start = if is_pipe { self.trigger } else { span.start };
                self.range.start + start..self.range.start + span.end
            }
            _ => self.range.clone(),
        }
    }
}

/// A prompt: `$ `, `# `, `> `, `% `, `❯ `, with who, where and an environment before it; or the `+ ` of a trace.
static PROMPT: LazyLock<Regex> = LazyLock::new(|| {
    known(concat!(
        r"^[ \t]*(?:[-*•●⏺▶] ?)?",
        r"(?:(?:\([^()]{1,40}\) ?)?(?:\[[^\[\]]{1,80}\] ?|[A-Za-z0-9_.@~:/\\-]{1,80} ?)?(?:[$#%❯➜»](?:[ \t]+|$)|> )",
        r"|\++ ",
        r"|(?i:(?:now |i'?ll |i will )?(?:running|run|executing|execute|exec|command|cmd|shell|bash|sh|input|action)",
        r"(?: (?:command|cmd|shell|bash|now|input))?[ \t]*[:=>][ \t]*)",
        r"|(?:Bash|Shell|Execute|Run|exec|bash|shell|terminal|run_command|execute_command|run_shell_command)\()",
        "[ \t]*[\"'`]?",
    ))
});

/// The member of a logged tool call that holds a command.
static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r#"\\?["'](?i:command|cmd|commands|bash|shell|script|input|code|run|arguments|args)\\?["'][ \t]*:[ \t]*\[?[ \t]*\\?["']"#,
    )
});

fn known(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
}

/// The command that `trigger` stands in. `line` is where the last line of the text begins; a line that ends in `\`,
/// `|` or `&&` goes on with the next.
pub(super) fn around<'t>(text: &'t str, line: usize, trigger: Range<usize>) -> Option<Command<'t>> {
    let start = first_line(text, line.min(trigger.start));
    let end = text[trigger.start..].find('\n').map_or(text.len(), |at| trigger.start + at);
    let end = if end < line || goes_on(&text[..end]) { text.len() } else { end };
    let end = text.floor_char_boundary(end.min(start + COMMAND_BYTES_MAX)).max(start);
    let whole = start..end;
    if trigger.start < whole.start || trigger.start >= whole.end {
        return None;
    }
    if let Some(found) = in_tool_call(text, &whole, &trigger) {
        return Some(found);
    }
    let line_text = &text[whole.clone()];
    if let Some(found) = PROMPT.find(line_text).filter(|found| start + found.end() <= trigger.start) {
        return Some(run(text, trimmed(text, start + found.end()..end)));
    }
    if let Some(ticks) = in_ticks(text, &whole, &trigger) {
        let form = if ticks.start == start && ticks.end >= end.saturating_sub(1) {
            Form::Run
        } else {
            Form::Mention
        };
        return Some(Command { text: Cow::Borrowed(&text[ticks.clone()]), range: ticks, form, trigger: 0 });
    }
    if is_bare(&text[start..trigger.start]) {
        return Some(run(text, trimmed(text, whole)));
    }
    // From the command to the end of what may belong to it.
    let rest = &text[trigger.start..end];
    let stop = rest.find(['"', '`', '\u{201d}']).unwrap_or(rest.len());
    let stop =
        if text[..trigger.start].ends_with('\'') { rest.find('\'').unwrap_or(stop).min(stop) } else { stop };
    let range = trigger.start..trigger.start + stop;
    let text = text[range.clone()].trim_end_matches([' ', '.', ',', ';', ':', '!', '?', ')']);
    Some(Command {
        text: Cow::Borrowed(text),
        range: range.start..range.start + text.len(),
        form: Form::Mention,
        trigger: 0,
    })
}

fn run(text: &str, range: Range<usize>) -> Command<'_> {
    Command { text: Cow::Borrowed(&text[range.clone()]), range, form: Form::Run, trigger: 0 }
}

/// Without space around it, and without the quote or bracket that the label opened.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let opener = text[..range.start].chars().next_back();
    let mut end = part.trim_end().len();
    let close = match opener {
        Some('(') => Some(')'),
        Some(quote @ ('"' | '\'' | '`')) => Some(quote),
        _ => None,
    };
    if opener.is_some_and(|c| matches!(c, '"' | '\'' | '`')) && part[..end].ends_with(')') {
        end -= 1;
    }
    if let Some(close) = close
        && part[..end].ends_with(close)
    {
        end -= close.len_utf8();
    }
    let start = part[..end].len() - part[..end].trim_start().len();
    range.start + start..range.start + end
}

/// The start of the line, or of the lines that go on with it.
pub(super) fn first_line(text: &str, line: usize) -> usize {
    let mut start = text[..line].rfind('\n').map_or(0, |at| at + 1);
    if line > 0 && text.as_bytes()[line - 1] == b'\n' {
        start = line;
    }
    while start > 0 && goes_on(&text[..start - 1]) {
        start = text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
    }
    start
}

/// Whether the last line of a text is to be continued.
fn goes_on(text: &str) -> bool {
    let text = text.trim_end_matches(['\r', ' ']);
    text.ends_with('\\') || text.ends_with("&&") || text.ends_with('|')
}

/// Programs that take what a rule looks for as an argument.
const PROGRAMS: &[&str] = &[
    "awk", "base64", "bash", "bat", "bzip2", "cat", "chmod", "chown", "cp", "curl", "cut", "dd", "diff",
    "docker", "echo", "git", "gpg", "grep", "gzip", "head", "hexdump", "install", "kubectl", "less", "ln",
    "ls", "more", "mv", "nano", "nl", "od", "openssl", "perl", "printf", "python", "python3", "rg", "rsync",
    "ruby", "scp", "sed", "sh", "sort", "source", "ssh", "strings", "tac", "tail", "tar", "tee", "vi", "vim",
    "wget", "xxd", "zip", "zsh",
];

/// Whether what stands before a command leaves the whole line a command: nothing, other commands, wrappers, variables.
fn is_bare(before: &str) -> bool {
    let before = before.trim_start();
    if before.is_empty() {
        return true;
    }
    let last = before.rsplit(['|', ';', '&', '(', '\n']).next().unwrap_or(before);
    let has_operator = last.len() < before.len();
    let wraps = |word: &str| {
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
        ) || word.starts_with('-')
            || word.bytes().all(|b| b.is_ascii_digit())
            || word.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            })
            || word.starts_with('/')
    };
    let mut words = last.split_ascii_whitespace().skip_while(|word| wraps(word));
    let is_prefix = words.next().is_none_or(|program| PROGRAMS.contains(&program));
    let first = before.split_ascii_whitespace().next().unwrap_or_default();
    // Prose has operators too, such as a semicolon; a command begins with a word in lower case that is no article.
    let begins = first.bytes().all(|b| {
        b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'/' | b'.' | b'_' | b'-' | b'=' | b'$')
    }) || first.contains('=');
    is_prefix && (!has_operator || begins)
}

/// Between a pair of backticks.
fn in_ticks(text: &str, line: &Range<usize>, trigger: &Range<usize>) -> Option<Range<usize>> {
    let before = &text[line.start..trigger.start];
    if before.matches('`').count().is_multiple_of(2) {
        return None;
    }
    let start = line.start + before.rfind('`')? + 1;
    let end = trigger.start + text[trigger.start..line.end].find('`')?;
    Some(start..end)
}

/// In the string of a tool call that holds the command.
fn in_tool_call<'t>(text: &'t str, line: &Range<usize>, trigger: &Range<usize>) -> Option<Command<'t>> {
    if !text[line.start..trigger.start].contains(['"', '\'']) {
        return None;
    }
    let mut start = None;
    let before = &text[line.start..trigger.start];
    for found in MEMBER.find_iter(before) {
        start = Some((line.start + found.end(), before[..found.end()].ends_with("\\\"")));
    }
    let (start, is_escaped) = start?;
    let quote = text[..start].chars().next_back()?;
    let end = closing(&text[start..line.end], quote, is_escaped)?;
    let inner = &text[start..start + end];
    if start + end < trigger.end {
        return None;
    }
    let text =
        if inner.contains('\\') { Cow::Owned(unescaped(inner, is_escaped)) } else { Cow::Borrowed(inner) };
    // A list of arguments is the words of a command.
    let text = if inner.contains(['"', '\'']) && inner.contains("\",") {
        Cow::Owned(text.replace("\",", "\" "))
    } else {
        text
    };
    Some(Command { text, range: start..start + end, form: Form::Run, trigger: 0 })
}

/// Where a string ends: at its quote, or at the end of the line.
fn closing(text: &str, quote: char, is_escaped: bool) -> Option<usize> {
    if is_escaped {
        return Some(text.find("\\\"").unwrap_or(text.len()));
    }
    let mut skip = false;
    for (at, c) in text.char_indices() {
        if skip {
            skip = false;
        } else if c == '\\' {
            skip = true;
        } else if c == quote {
            return Some(at);
        }
    }
    Some(text.len())
}

/// JSON escapes resolved, twice where the string stood in a string.
fn unescaped(text: &str, twice: bool) -> String {
    let mut out = text.to_owned();
    for _ in 0..=usize::from(twice) {
        let mut next = String::with_capacity(out.len());
        let mut chars = out.chars();
        while let Some(c) = chars.next() {
            if c != '\\' {
                next.push(c);
                continue;
            }
            match chars.next() {
                Some('n') => next.push('\n'),
                Some('t') => next.push('\t'),
                Some('r') => next.push('\r'),
                Some('u') => {
                    let code: String = chars.as_str().chars().take(4).collect();
                    match u32::from_str_radix(&code, 16).ok().and_then(char::from_u32) {
                        Some(c) if code.len() == 4 => {
                            next.push(c);
                            chars = chars.as_str()[4..].chars();
                        }
                        _ => next.push('u'),
                    }
                }
                Some(other) => next.push(other),
                None => next.push('\\'),
            }
        }
        out = next;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line, the word that triggers, and the command with its form.
    const CASES: &[(&str, &str, &str, Form)] = &[
        ("$ shred a", "shred", "shred a", Form::Run),
        ("user@host:~/x$ shred a", "shred", "shred a", Form::Run),
        ("(venv) [me@box x]$ shred a", "shred", "shred a", Form::Run),
        ("root@box:/# shred a", "shred", "shred a", Form::Run),
        ("+ shred a", "shred", "shred a", Form::Run),
        ("❯ shred a", "shred", "shred a", Form::Run),
        ("Running: shred a", "shred", "shred a", Form::Run),
        ("Executing command: shred a", "shred", "shred a", Form::Run),
        ("● Bash(shred a)", "shred", "shred a", Form::Run),
        ("shred a", "shred", "shred a", Form::Run),
        ("cd x && sudo shred a", "shred", "cd x && sudo shred a", Form::Run),
        (
            r#"{"tool":"Bash","input":{"command":"cd x; shred \"a\""}}"#,
            "shred",
            "cd x; shred \"a\"",
            Form::Run,
        ),
        (r#"{"arguments":"{\"command\":\"shred a\"}"}"#, "shred", "shred a", Form::Run),
        ("never do `shred a` here", "shred", "shred a", Form::Mention),
        ("I would now shred a, he said", "shred", "shred a, he said", Form::Mention),
        ("He said \"shred a\" and went", "shred", "shred a", Form::Mention),
        ("a | \\\nshred a", "shred", "a | \\\nshred a", Form::Run),
    ];

    #[test]
    fn commands_are_told_from_prose() {
        let mut wrong = String::new();
        for (line, trigger, command, form) in CASES {
            let at = line.find(trigger).expect("the trigger stands in the line");
            let last = line.rfind('\n').map_or(0, |at| at + 1);
            let found = around(line, last, at..at + trigger.len());
            let found = found.map(|found| (found.text.into_owned(), found.form));
            if found.as_ref() != Some(&((*command).to_owned(), *form)) {
                wrong.push_str(&format!("{line:?}: {found:?}\n"));
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
    }
}
