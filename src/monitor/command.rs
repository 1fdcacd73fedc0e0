//! Which part of a line of output is a command.
//!
//! A command stands behind a prompt, behind the `+` of a traced script, behind a label such as `Running:`, in a string
//! of a logged tool call, or it is the whole line. Anywhere else it is only spoken of.

mod lines;
mod patterns;
mod structures;
mod words;

use std::borrow::Cow;
use std::ops::Range;

use regex_automata::meta::Regex;

pub(super) use self::lines::{first_line, goes_on, is_open_call, joints};
use self::patterns::{
    FAILED, FOLDER_PROMPT, FRAME_END, LABEL, LOG_HEAD, LOG_LABEL, LOGGED_LABEL, LOGGED_OPENER, OPENER, PLACE,
    PROMPT, REPORT, REPORT_END, RIGHT_PROMPT, WEAK_OPENER, WEAK_PROMPT,
};
use self::structures::{closing, in_code, in_element, in_list, in_tool_call, unescaped};
use self::words::{PROGRAMS, is_bare, is_prose, is_wrapper};
use super::expected;

/// Longest command that is looked at, in bytes.
const COMMAND_BYTES_MAX: usize = 16 * 1024;
/// Longest command that is only spoken of, in bytes.
const MENTION_BYTES_MAX: usize = 512;
/// Signs of a prompt.
const SIGNS_MAX: usize = 4;

/// How a command stands in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// It was or is to be run.
    Run,
    /// It is the whole line, which may be a line of a script that is shown.
    Bare,
    /// It stands where commands are run, but what follows reads like prose; or it is a list of words in code.
    Doubtful,
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
                let mut lines = before.split('\n').rev().skip(1);
                let is_one = !before.contains([';', '&']) && lines.all(|line| line.trim_end().ends_with('|'));
                let is_pipe = before.contains('|') && is_one || before.contains("\\\n");
                let start = if is_pipe { self.trigger } else { span.start };
                self.range.start + start..self.range.start + span.end
            }
            _ => self.range.clone(),
        }
    }
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
    let line_text = &text[whole.clone()];
    // The line that a build of an image failed at is shown with its number, and it was run.
    let is_frame = line_text.trim_start().starts_with(['│', '┃', '|']) || line_text.contains(" | >>> RUN ");
    let is_run = is_frame && [&OPENER, &PROMPT].into_iter().any(|regex| regex.is_match(line_text));
    let is_shown = !is_run && listing(line_text).is_some_and(|at| start + at <= trigger.start);
    let in_call = in_list(text, &whole, &trigger)
        .or_else(|| in_tool_call(text, &whole, &trigger))
        .or_else(|| in_element(text, &whole, &trigger));
    if let Some(found) = in_call {
        if is_case(text, &whole, &trigger) {
            return Some(mention(text, trigger.start..end));
        }
        let form = if is_shown { Form::Doubtful } else { found.form };
        return Some(Command { form, ..found });
    }
    if !is_shown {
        if let Some((found, is_label)) = behind_prompt(text, &whole, &trigger) {
            if is_label && is_case(text, &whole, &trigger) {
                return Some(mention(text, trigger.start..end));
            }
            return Some(found);
        }
        if let Some(found) = in_code(text, &whole, &trigger) {
            if is_case(text, &whole, &trigger) {
                return Some(mention(text, trigger.start..end));
            }
            return Some(found);
        }
        if let Some(ticks) = in_ticks(text, &whole, &trigger) {
            return Some(command(text, ticks, Form::Mention));
        }
        if is_bare(&text[start..trigger.start]) {
            let range = trimmed(text, whole);
            let form = if is_prose(&text[trigger.start..range.end.max(trigger.start)]) {
                Form::Doubtful
            } else {
                Form::Bare
            };
            return Some(command(text, range, form));
        }
    }
    if let Some(inner) = boxed(text, &whole).filter(|inner| inner.contains(&trigger.start))
        && is_bare(&text[inner.start..trigger.start])
        && !is_prose(&text[trigger.start..inner.end])
    {
        return Some(command(text, inner, Form::Doubtful));
    }
    Some(mention(text, trigger.start..end))
}

/// What stands in a line of a box with a side at either end, and none between as a table has.
fn boxed(text: &str, line: &Range<usize>) -> Option<Range<usize>> {
    let whole = trimmed(text, line.clone());
    let sides = ['│', '┃'];
    let inner = text[whole.clone()].strip_prefix(sides)?.strip_suffix(sides)?;
    let side = '│'.len_utf8();
    (!inner.contains(sides)).then(|| trimmed(text, whole.start + side..whole.end - side))
}

/// What is spoken of at the start of `range`: up to the end of what may belong to it.
pub(super) fn mention(text: &str, range: Range<usize>) -> Command<'_> {
    let rest = &text[range.clone()];
    let rest = &rest[..rest.floor_char_boundary(MENTION_BYTES_MAX)];
    let stop = rest.find(['"', '`', '\u{201d}']).unwrap_or(rest.len());
    let stop =
        if text[..range.start].ends_with('\'') { rest.find('\'').unwrap_or(stop).min(stop) } else { stop };
    let part = rest[..stop].trim_end_matches([' ', '.', ',', ';', ':', '!', '?', ')']);
    command(text, range.start..range.start + part.len(), Form::Mention)
}

fn command(text: &str, range: Range<usize>, form: Form) -> Command<'_> {
    Command { text: Cow::Borrowed(&text[range.clone()]), range, form, trigger: 0 }
}

/// Whether the command of a structure stands beside what is expected of it.
fn is_case(text: &str, whole: &Range<usize>, trigger: &Range<usize>) -> bool {
    if expected::is_expected(&text[whole.clone()], trigger.start - whole.start) {
        return true;
    }
    let own = text[..trigger.start].rfind('\n').map_or(0, |at| at + 1);
    let column = expected::member_start(&text[own..whole.end.max(own)]);
    column.is_some_and(|column| expected::is_expected_before(&text[..own], column))
}

/// The command behind a prompt or a label, and whether it was a label.
fn behind_prompt<'t>(
    text: &'t str,
    whole: &Range<usize>,
    trigger: &Range<usize>,
) -> Option<(Command<'t>, bool)> {
    let line = &text[whole.clone()];
    let ends_before = |at: &usize| whole.start + *at <= trigger.start;
    let of = |regex: &Regex| regex.find(line).map(|found| found.end()).filter(ends_before);
    // A folder is no program.
    let folder = of(&FOLDER_PROMPT).filter(|at| {
        let folder = line[..*at].split_ascii_whitespace().find(|word| word.is_ascii());
        folder.is_none_or(|word| !PROGRAMS.contains(&word) && !is_wrapper(word))
    });
    if let Some(at) = folder.or_else(|| of(&PROMPT)).or_else(|| of(&OPENER)) {
        let frame = FRAME_END.find(&line[at..]).filter(|_| line.trim_start().starts_with(['│', '┃']));
        let tail = || PLACE.find(&line[at..]).or(frame).or_else(|| RIGHT_PROMPT.find(&line[at..]));
        let end = match line.trim_start() {
            task if task.starts_with("TASK [") => line[at..].rfind(']'),
            build if build.starts_with("ERROR: process ") => line[at..].rfind("\" did not complete"),
            build if build.starts_with("> [") => line[at..].trim_end().strip_suffix(':').map(str::len),
            _ => tail().map(|tail| tail.start()),
        };
        let end = end.map_or(whole.end, |end| whole.start + at + end).max(trigger.start);
        return Some((quoted(text, whole.start + at..end, Form::Run, false), false));
    }
    let head = LOG_HEAD.find(line).map_or(0, |found| found.end());
    if let Some(found) = reported(text, whole, head, trigger) {
        return Some((found, false));
    }
    let opened = of(&WEAK_OPENER).or_else(|| of(&LOGGED_OPENER));
    let opened = opened.or_else(|| dollar(line).or_else(|| sign(line)).filter(ends_before));
    if let Some(at) = opened.filter(|at| is_bare(&text[whole.start + at..trigger.start])) {
        let found = quoted(text, whole.start + at..whole.end, Form::Doubtful, false);
        let end = found.range.end.max(trigger.start);
        return (!is_prose(&text[trigger.start..end])).then_some((found, false));
    }
    // What follows a `+` is seen, so that a line of a difference that is indented is told from a trace.
    let weak = WEAK_PROMPT.find(line).map(|found| {
        let prompt = line[..found.end()].trim_end_matches(|c| !matches!(c, ' ' | '\t'));
        if prompt.ends_with("+ ") { prompt.len() } else { found.end() }
    });
    let weak = weak.filter(ends_before);
    let (at, is_label) = match weak {
        Some(at) => (at, false),
        None => (
            of(&LABEL)
                .or_else(|| of(&LOGGED_LABEL))
                .or_else(|| LOG_LABEL.find_iter(line).map(|found| found.end()).filter(ends_before).last())?,
            true,
        ),
    };
    let found = quoted(text, whole.start + at..whole.end, Form::Run, is_label);
    let label = if head < at { &line[head..at] } else { &line[..at] };
    let is_call =
        label.ends_with(['=', '(']) && label.trim_start().starts_with(|c: char| c.is_ascii_lowercase());
    let is_assignment = label.trim_end().ends_with('=') && !label.contains('(');
    if is_label && (is_call || is_assignment) && line[at..].starts_with(['"', '\'']) {
        return Some((Command { form: Form::Doubtful, ..found }, true));
    }
    let is_prose = match &found.text {
        Cow::Borrowed(_) => {
            let end = found.range.end.max(trigger.start);
            is_prose(&text[trigger.start..end])
        }
        Cow::Owned(_) => false,
    };
    Some((Command { form: if is_prose { Form::Doubtful } else { Form::Run }, ..found }, is_label))
}

/// A command that the line says was run, as errors do, behind the head of a line of a log.
fn reported<'t>(
    text: &'t str,
    whole: &Range<usize>,
    head: usize,
    trigger: &Range<usize>,
) -> Option<Command<'t>> {
    let line = &text[whole.clone()];
    let body = &line[head..];
    // Most lines hold none of this.
    if !REPORTING.iter().any(|word| body.contains(word)) {
        return None;
    }
    if let Some(at) = FAILED.find(body).map(|found| whole.start + head + found.end())
        && at <= trigger.start
    {
        return Some(quoted(text, at..whole.end, Form::Run, false));
    }
    let at = head + REPORT.find(body)?.end();
    let quote = line[at..].chars().next().filter(|c| matches!(c, '\'' | '"' | '`'))?;
    let inner = &line[at + 1..];
    // The command may hold quotes itself, so the last one that what follows may stand behind ends it.
    let ends = inner.match_indices(quote).map(|(end, _)| end);
    let end = ends.rev().find(|end| REPORT_END.is_match(&inner[end + 1..]))?;
    // Words one by one.
    let is_list = [format!("{quote} {quote}"), format!("{quote}, {quote}")]
        .iter()
        .any(|gap| inner[..end].contains(gap.as_str()));
    if is_list {
        return None;
    }
    let range = whole.start + at + 1..whole.start + at + 1 + end;
    // A sentence about a command ends like a report that does not say what became of it.
    let is_outcome = !inner[end + 1..].trim_matches([' ', '\t', '.', ',', ':', ';', ')']).is_empty();
    // Such as `Running: "…"`, which is a label.
    if !is_outcome && line[..at].trim_end().ends_with(':') {
        return None;
    }
    let form = if is_outcome { Form::Run } else { Form::Doubtful };
    range.contains(&trigger.start).then(|| command(text, range, form))
}

/// Words of which a report has one.
const REPORTING: &[&str] = &[
    "ommand",
    "ailed",
    "rror",
    "unning",
    "xecuti",
    "xecuted",
    "pawning",
    "nvoking",
    "ran ",
    "Ran ",
    "uccessfully",
    "nable to",
];

/// Where the command begins behind a sign that themes draw, or an arrow, and a folder. Points begin the items of lists.
fn sign(line: &str) -> Option<usize> {
    let body = line.trim_start();
    let is_sign = |c: char| {
        !c.is_ascii()
            && !c.is_alphanumeric()
            && !matches!(c, '\u{2500}'..='\u{257f}' | '•' | '◦' | '‣' | '▪' | '·' | '–' | '—' | '…')
    };
    let rest = body.trim_start_matches(is_sign);
    if rest.len() == body.len() || body[..body.len() - rest.len()].chars().count() > SIGNS_MAX {
        return None;
    }
    let mut command = rest.trim_start_matches([' ', '\t']);
    if command.len() == rest.len() {
        return None;
    }
    if command.starts_with('~') {
        let folder = command.split([' ', '\t']).next().unwrap_or_default();
        command = command[folder.len()..].trim_start();
    }
    Some(line.len() - command.len())
}

/// Where the command begins behind a `$` without a blank: the prompt of somebody who has none.
fn dollar(line: &str) -> Option<usize> {
    let rest = line.trim_start().strip_prefix('$')?;
    let program = rest.split([' ', '\t']).next().filter(|word| word.len() < rest.len())?;
    (PROGRAMS.contains(&program) || is_wrapper(program)).then_some(line.len() - rest.len())
}

/// What stands in a range, without the quotes around all of it. Behind a label, more may follow on the quoted text.
fn quoted(text: &str, range: Range<usize>, form: Form, is_label: bool) -> Command<'_> {
    let part = &text[range.clone()];
    let Some(quote @ ('"' | '\'' | '`')) = part.chars().next() else {
        return command(text, trimmed(text, range), form);
    };
    let inner = &part[1..];
    let after = closing(inner, quote, false).and_then(|at| Some((at, inner.get(at + 1..)?)));
    match after {
        Some((at, after))
            if after.trim_matches([' ', '\t', ')', '.', ']', '}']).is_empty()
                || is_label && after.starts_with([',', ')', '}']) =>
        {
            let range = range.start + 1..range.start + 1 + at;
            let inner = &text[range.clone()];
            if quote == '"' && inner.contains('\\') {
                return Command { text: Cow::Owned(unescaped(inner, false)), range, form, trigger: 0 };
            }
            command(text, range, form)
        }
        _ => command(text, trimmed(text, range), form),
    }
}

/// Where the content begins in a line of a listing: behind a number and a separator, or behind a bar.
fn listing(line: &str) -> Option<usize> {
    let body = line.trim_start();
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &body[digits..];
    let gap = rest.len() - rest.trim_start_matches(' ').len();
    let at = line.len() - rest.len();
    let rest = &rest[gap..];
    match rest.chars().next()? {
        bar @ ('|' | '│' | '┃' | '→') => Some(at + gap + bar.len_utf8()),
        sign @ (':' | ')' | '-' | '\t') if (1..=7).contains(&digits) && gap == 0 => {
            // Not a time of day.
            (!rest[1..].starts_with(|c: char| c.is_ascii_digit())).then_some(at + sign.len_utf8())
        }
        _ => ((1..=7).contains(&digits) && gap > 1).then_some(at + gap),
    }
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

#[cfg(test)]
mod tests;
