//! Which part of a line of output is a command.
//!
//! A command stands behind a prompt, behind the `+` of a traced script, behind a label such as `Running:`, in a string
//! of a logged tool call, or it is the whole line. Anywhere else it is only spoken of.

mod patterns;

use std::borrow::Cow;
use std::ops::Range;

use regex_automata::meta::Regex;

use self::patterns::{
    CALL, CONTINUATION_PROMPT, FAILED, FOLDER_PROMPT, FRAME_END, IN_CODE, LABEL, LIST_AFTER_PROGRAM,
    LIST_LABEL, LOG_HEAD, LOG_LABEL, LOGGED_LABEL, LOGGED_OPENER, MEMBER, OPENER, PLACE, PROGRAM_AFTER_LIST,
    PROGRAM_BEFORE_LIST, PROMPT, REPORT, REPORT_END, RIGHT_PROMPT, TAG, TRACE, WEAK_OPENER, WEAK_PROMPT,
};
use super::expected;

/// Longest command that is looked at, in bytes.
const COMMAND_BYTES_MAX: usize = 16 * 1024;
/// Longest command that is only spoken of, in bytes.
const MENTION_BYTES_MAX: usize = 512;
/// Signs of a prompt.
const SIGNS_MAX: usize = 4;
/// Lists of a line that are read.
const LISTS_MAX: usize = 8;
/// Lines before one that goes on that are looked at with it.
const LINES_GOING_ON_MAX: usize = 3;
/// Blanks that the second line of a tool call begins with at least.
const CALL_INDENT: usize = 4;

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

/// Whether a command reads like the beginning of a sentence: `rm -rf / is dangerous`. Words that are neither options nor
/// their values, paths nor assignments come after one that is.
fn is_prose(command: &str) -> bool {
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

/// The start of the line, or of the lines that go on with it. While the last line goes on itself, that is few lines:
/// all are looked at together once the command is complete.
pub(super) fn first_line(text: &str, line: usize) -> usize {
    let mut start = text[..line].rfind('\n').map_or(0, |at| at + 1);
    if line > 0 && text.as_bytes()[line - 1] == b'\n' {
        start = line;
    }
    let most = if goes_on(text) { LINES_GOING_ON_MAX } else { usize::MAX };
    for _ in 0..most {
        if start == 0 || begins_anew(&text[start..]) || !goes_on(&text[..start - 1]) {
            break;
        }
        start = text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
    }
    start
}

/// Whether the last line of a text is to be continued. The row of a table is not.
pub(super) fn goes_on(text: &str) -> bool {
    let text = text.trim_end();
    let is_row = || text[text.rfind('\n').map_or(0, |at| at + 1)..].trim_start().starts_with('|');
    text.ends_with('\\') || text.ends_with("&&") || text.ends_with('|') && !is_row()
}

/// Whether a line begins with a prompt, so that it goes on with none before.
fn begins_anew(line: &str) -> bool {
    let line = line.split('\n').next().unwrap_or(line);
    [&PROMPT, &FOLDER_PROMPT, &OPENER, &TRACE].into_iter().any(|regex| regex.is_match(line))
}

/// Whether a line begins a logged tool call that ends in a line to come.
pub(super) fn is_open_call(line: &str) -> bool {
    !line.trim_end().ends_with([')', '…']) && CALL.is_match(line)
}

/// What stands between the lines of a logged tool call, of which the last begins at byte `line`, but for a blank.
fn joints_of_call(text: &str, line: usize) -> Vec<Range<usize>> {
    let (mut joints, mut start) = (Vec::new(), line);
    for _ in 0..LINES_GOING_ON_MAX {
        let indent = text[start..].len() - text[start..].trim_start_matches(' ').len();
        let Some(before) = text[..start].strip_suffix('\n').filter(|_| indent >= CALL_INDENT) else { break };
        let before = before.strip_suffix('\r').unwrap_or(before);
        joints.push(before.len()..start + indent - 1);
        start = before.rfind('\n').map_or(0, |at| at + 1);
        if is_open_call(&before[start..]) {
            joints.reverse();
            return joints;
        }
        if before.trim_end().ends_with([')', '…']) {
            break;
        }
    }
    Vec::new()
}

/// The lines at the end of `text` that go on with each other, the last one from byte `line`: what stands between them
/// and is no part of the command that they make. That is backslashes with their line ends, and the prompts that a shell
/// prints while a command goes on.
pub(super) fn joints(text: &str, line: usize) -> Vec<Range<usize>> {
    let mut joints = joints_of_call(text, line);
    if !joints.is_empty() {
        return joints;
    }
    let mut start = line;
    while start > 0 && !begins_anew(&text[start..]) {
        let Some(before) = text[..start].strip_suffix('\n') else { break };
        let before = before.strip_suffix('\r').unwrap_or(before);
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        let prompt = CONTINUATION_PROMPT.find(&text[start..]).map_or(0, |found| found.end());
        if backslashes % 2 == 1 {
            joints.push(before.len() - 1..start + prompt);
        } else if prompt > 0 && goes_on(before) {
            joints.push(start..start + prompt);
        } else {
            break;
        }
        start = before.rfind('\n').map_or(0, |at| at + 1);
    }
    // A quotation mark or a redirection is a prompt only while somebody types.
    if !begins_anew(&text[start..]) {
        for joint in &mut joints {
            let end = text[..joint.end].rfind('\n').map_or(joint.end, |at| at + 1);
            joint.end = end.max(joint.start);
        }
        joints.retain(|joint| !joint.is_empty());
    }
    joints.reverse();
    joints
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
fn is_wrapper(word: &str) -> bool {
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

/// In a list of strings that are the words of a command: `["rm", "-rf", "/"]`.
fn in_list<'t>(text: &'t str, line: &Range<usize>, trigger: &Range<usize>) -> Option<Command<'t>> {
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
fn in_tool_call<'t>(text: &'t str, line: &Range<usize>, trigger: &Range<usize>) -> Option<Command<'t>> {
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
    let start = name.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    bare.ends_with(',') || !expected::holds_arguments(&name[start..])
}

/// In the element of a tool call that holds the command.
fn in_element<'t>(text: &'t str, line: &Range<usize>, trigger: &Range<usize>) -> Option<Command<'t>> {
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
fn in_code<'t>(text: &'t str, line: &Range<usize>, trigger: &Range<usize>) -> Option<Command<'t>> {
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
mod tests;
