//! Code fences, and other blocks of code: what they hold as scripts.

use std::borrow::Cow;
use std::ops::Range;

use super::line::{Lead, behind_prompt};
use super::shown::Shown;

/// Languages of blocks that a shell reads, and none at all.
const SHELLS: [&str; 29] = [
    "",
    "sh",
    "bash",
    "shell",
    "zsh",
    "ksh",
    "fish",
    "dash",
    "ash",
    "csh",
    "tcsh",
    "console",
    "terminal",
    "shell-session",
    "shellsession",
    "sh-session",
    "bash-session",
    "shellscript",
    "session",
    "text",
    "txt",
    "plaintext",
    "powershell",
    "pwsh",
    "ps1",
    "bat",
    "batch",
    "cmd",
    "dos",
];

/// Whether code in this language is for a shell.
pub(super) fn is_shell(language: &str) -> bool {
    SHELLS.iter().any(|shell| language.eq_ignore_ascii_case(shell))
}

/// A code fence that is open.
pub(super) struct Fence {
    mark: u8,
    length: usize,
    /// Marks of quotations before each of its lines.
    quotes: usize,
    /// Where what it holds begins.
    start: usize,
    /// Whether a shell reads what it holds.
    pub is_shell: bool,
}

/// What a line is to an open fence.
pub(super) enum Step {
    /// One of its lines.
    Inside,
    /// The line that closes it.
    Closed,
    /// A line behind the quotation that it stood in, which closed it.
    Behind,
}

impl Fence {
    /// The fence that a line without its lead opens. `next` is where the next line begins.
    pub fn opened_by(line: &str, quotes: usize, next: usize) -> Option<Self> {
        let mark = *line.as_bytes().first()?;
        let length = line.bytes().take_while(|byte| *byte == mark).count();
        // Behind back-ticks that are closed in the same line, it is inline code.
        if !matches!(mark, b'`' | b'~') || length < 3 || (mark == b'`' && line[length..].contains('`')) {
            return None;
        }
        let named = line[length..].trim().trim_start_matches(['{', '.']);
        let language = named.split([' ', ',', '{', '}', ':', '\t']).next().unwrap_or_default();
        Some(Self { mark, length, quotes, start: next, is_shell: is_shell(language) })
    }

    /// What the next line is to it.
    pub fn step(&self, line: &str) -> Step {
        let lead = Lead::of(line, self.quotes);
        let trimmed = line[lead.start..].trim();
        if lead.quotes < self.quotes {
            return Step::Behind;
        }
        let is_end = trimmed.len() >= self.length && trimmed.bytes().all(|byte| byte == self.mark);
        if is_end { Step::Closed } else { Step::Inside }
    }

    /// Hands on what it holds as scripts, if a shell reads them.
    pub fn close<'t>(self, text: &'t str, end: usize, add: &mut dyn FnMut(Shown<'t>)) {
        if self.is_shell && self.start < end {
            block(text, self.start..end, self.quotes, add);
        }
    }
}

/// Hands on what a block of code holds: the commands behind its prompts, or all of it as one script.
pub(super) fn block<'t>(text: &'t str, range: Range<usize>, quotes: usize, add: &mut dyn FnMut(Shown<'t>)) {
    let lines = || {
        let mut at = range.start;
        text[range.clone()].split_inclusive('\n').map(move |line| {
            let start = at + if quotes > 0 { behind_quotes(line, quotes) } else { 0 };
            at += line.len();
            start..at
        })
    };
    let mut has_prompts = false;
    for line in lines() {
        let content = &text[line.clone()];
        let indent = content.len() - content.trim_start_matches([' ', '\t']).len();
        if let Some(prompt) = behind_prompt(&content[indent..], true) {
            has_prompts = true;
            let start = line.start + indent + prompt;
            let command = text[start..line.end].trim_end();
            add(Shown { range: start..start + command.len(), command: command.into() });
        }
    }
    if has_prompts {
        return;
    }
    if quotes == 0 {
        return add(Shown { command: text[range.clone()].into(), range });
    }
    let script: String = lines().map(|line| &text[line]).collect();
    add(Shown { range, command: Cow::Owned(script) });
}

/// Where a line goes on behind so many marks of quotations and the blanks that belong to them.
fn behind_quotes(line: &str, quotes: usize) -> usize {
    let mut at = 0;
    for _ in 0..quotes {
        let rest = &line[at..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        if !rest[blanks..].starts_with('>') {
            break;
        }
        at += blanks + 1;
        at += usize::from(line[at..].starts_with(' '));
    }
    at
}
