//! Commands in structures: lists of words, members of tool calls, elements, strings of code.

use std::borrow::Cow;
use std::ops::Range;

use super::patterns::{
    IN_CODE, LIST_AFTER_PROGRAM, LIST_LABEL, MEMBER, PROGRAM_AFTER_LIST, PROGRAM_BEFORE_LIST, TAG,
};
use super::{Command, Form, command, trimmed};
use crate::monitor::expected;

/// Lists of a line that are read.
const LISTS_MAX: usize = 8;

/// In a list of strings that are the words of a command: `["rm", "-rf", "/"]`.
pub(super) fn in_list<'t>(text: &'t str, line: &Range<usize>, trigger: &Range<usize>) -> Option<Command<'t>> {
    let before = &text[line.start..trigger.start];
    let with_program =
        LIST_AFTER_PROGRAM.find(&text[trigger.start..line.end]).map(|found| before.len() + found.end() - 1);
    let lists = before.match_indices('[').take(LISTS_MAX).map(|(open, _)| open);
    for open in lists.chain(with_program) {
        let Some((mut words, length)) = words_of(&text[line.start + open + 1..line.end]) else { continue };
        let mut range = line.start + open..line.start + open + 1 + length;
        if let Some(program) = program_before(&text[line.start..line.start + open]) {
            range.start = line.start + program.start;
            words.insert(0, text[line.start..][program].to_owned());
        } else if let Some(program) = program_after(&text[range.end.min(line.end)..line.end]) {
            range.end = program.as_ptr() as usize - text.as_ptr() as usize + program.len();
            words.insert(0, program.to_owned());
        }
        if words.len() < 2 || range.end <= trigger.start {
            continue;
        }
        let before = &text[line.start..line.start + open];
        let is_run = LIST_LABEL.is_match(before);
        let form = if is_run { Form::Run } else { Form::Doubtful };
        let words: Vec<_> = words.iter().map(|word| shell_word(word)).collect();
        return Some(Command { text: Cow::Owned(words.join(" ")), range, form, trigger: 0 });
    }
    None
}

/// The program whose arguments come next in its structure: `"command": "rm", "args": `.
fn program_before(before: &str) -> Option<Range<usize>> {
    let found = PROGRAM_BEFORE_LIST.find(before)?;
    let member = &before[found.range()];
    let value = member.find(':')? + 1;
    let start = value + member[value..].find(['"', '\''])? + 1;
    let length = member[start..].find(['"', '\'', '\\'])?;
    Some(found.start() + start..found.start() + start + length)
}

/// The program whose arguments came before in its structure.
fn program_after(after: &str) -> Option<&str> {
    let mut captures = PROGRAM_AFTER_LIST.create_captures();
    PROGRAM_AFTER_LIST.captures(after, &mut captures);
    captures.get_group_by_name("program").map(|found| &after[found.range()])
}

/// The strings of a list, and how long it is with its bracket; `None` where it is no list of strings alone.
fn words_of(list: &str) -> Option<(Vec<String>, usize)> {
    let (mut words, mut at) = (Vec::new(), 0);
    loop {
        at += list[at..].len() - list[at..].trim_start().len();
        let is_escaped = list[at..].starts_with('\\');
        at += usize::from(is_escaped);
        let quote = list[at..].chars().next().filter(|c| matches!(c, '"' | '\''))?;
        at += 1;
        let length = closing(&list[at..], quote, is_escaped)?;
        let word = &list[at..at + length];
        words.push(if word.contains('\\') { unescaped(word, is_escaped) } else { word.to_owned() });
        at = list.len().min(at + length + 1 + usize::from(is_escaped));
        let rest = list[at..].trim_start();
        at = list.len() - rest.len();
        match rest.chars().next() {
            Some(',') => at += 1,
            // As Go prints them.
            Some('"' | '\'') if list[..at].ends_with([' ', '\t']) => {}
            Some(']') => return Some((words, at + 1)),
            // The line was cut.
            None => return Some((words, at)),
            Some(_) => return None,
        }
        let rest = list[at..].trim_start();
        if rest.is_empty() || rest.starts_with(']') {
            return Some((words, list.len() - rest.len() + usize::from(!rest.is_empty())));
        }
    }
}

/// A word as it is written for a shell. What a shell would expand stays, since whoever runs the list may use one.
fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "_./:=@%+,~*$-{}".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', "'\\''")))
}

/// In the string of a tool call that holds the command.
pub(super) fn in_tool_call<'t>(
    text: &'t str,
    line: &Range<usize>,
    trigger: &Range<usize>,
) -> Option<Command<'t>> {
    if !text[line.start..trigger.start].contains(['"', '\'']) {
        return None;
    }
    let mut start = None;
    // What is looked for may begin with the quote itself.
    let word = &text[trigger.start..line.end];
    let quotes = word.len() - word.trim_start_matches(['"', '\'', '\\']).len();
    let before = &text[line.start..trigger.start + quotes];
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
    let whole = &text[line.clone()];
    let text =
        if inner.contains('\\') { Cow::Owned(unescaped(inner, is_escaped)) } else { Cow::Borrowed(inner) };
    let form = if is_code(&whole[..start - line.start]) { Form::Doubtful } else { Form::Run };
    Some(Command { text, range: start..start + end, form, trigger: 0 })
}

/// Whether the structure whose beginning this is stands in code, or is an assignment: `check('{"command":"…`, `cmd = "…`.
fn is_code(before: &str) -> bool {
    if before.trim_end_matches(['"', '\'', '\\', ' ']).ends_with('=') {
        return true;
    }
    let Some(open) = before.find('{') else { return false };
    let outside = before[..open].trim_end_matches('#');
    let bare = outside.trim_end_matches(['"', '\'', '`']).trim_end_matches(['#', '[', '\\', ' ']);
    let is_quoted = outside.ends_with(['"', '\'', '`']);
    if !is_quoted && !bare.ends_with('(') {
        return false;
    }
    let name = bare.trim_end_matches([':', '=', '(', '"', '\'', ' ']);
    let is_apart = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    bare.ends_with(',') || name.rsplit(is_apart).next().is_none_or(|last| !expected::holds_arguments(last))
}

/// In the element of a tool call that holds the command.
pub(super) fn in_element<'t>(
    text: &'t str,
    line: &Range<usize>,
    trigger: &Range<usize>,
) -> Option<Command<'t>> {
    let before = &text[line.start..trigger.start];
    if !before.contains('<') {
        return None;
    }
    let start = line.start + TAG.find_iter(before).last()?.end();
    let inner = &text[start..line.end];
    let end = start + inner.find("</").unwrap_or(inner.len());
    (trigger.start < end).then(|| command(text, trimmed(text, start..end), Form::Run))
}

/// In what code or a file of settings gives to a shell.
pub(super) fn in_code<'t>(text: &'t str, line: &Range<usize>, trigger: &Range<usize>) -> Option<Command<'t>> {
    let before = &text[line.start..trigger.start];
    let start = line.start + IN_CODE.find_iter(before).last()?.end();
    let first = text[start..line.end].chars().next()?;
    if !matches!(first, '"' | '\'' | '`') {
        let is_setting = text[..start].trim_end_matches(['-', '+', '!', '@']).ends_with('=');
        return is_setting.then(|| command(text, trimmed(text, start..line.end), Form::Doubtful));
    }
    let range = start + 1..start + 1 + closing(&text[start + 1..line.end], first, false)?;
    let inner = &text[range.clone()];
    let text = if inner.contains('\\') { Cow::Owned(unescaped(inner, false)) } else { Cow::Borrowed(inner) };
    (trigger.start < range.end).then_some(Command { text, range, form: Form::Doubtful, trigger: 0 })
}

/// Where a string ends: at its quote, or at the end of the line.
pub(super) fn closing(text: &str, quote: char, is_escaped: bool) -> Option<usize> {
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
pub(super) fn unescaped(text: &str, twice: bool) -> String {
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
