//! Where a text shows commands.
//!
//! In code fences of shells, also within quotations, in indented code, inline code, quotation marks, elements of HTML for
//! code, behind prompts, after keywords of Dockerfiles and keys of build files, and in strings that code hands to a shell.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::{memchr, memchr_iter, memchr3};
use regex_automata::meta::Regex;

use super::call::{calls, unescaped};
use super::fence::{Fence, Step};
use super::gate::{begins_with_program, known, may_harm};
use super::line::{CODE_INDENT, Lead, Says, behind_prompt, continued, keyword};
use super::quoted::{elements, quoted};

/// Most commands of one text that are analysed.
const COMMANDS_MAX: usize = 64;
/// Longest command that is analysed in one piece, in bytes.
pub(super) const COMMAND_BYTES_MAX: usize = 4_096;

/// Signs of a command that is worth a look though no code is marked. Literals alone: one pass, many bytes at a time.
static SIGNS: LazyLock<Regex> = LazyLock::new(|| {
    known(r"rm -|mkfs|dd if=|\| sh|\|sh|\| bash|\|bash|\| sudo|/dev/tcp/| -delete|base64 -d")
});

/// Words of the calls of [`calls`], and of its keys.
static CALL_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    known(
        r"system\(|open\(|getoutput\(|passthru\(|_exec\(|check_|exec\(|Sync\(|spawn\(|subprocess\.|execa\(|capture2|_shell\(",
    )
});
static KEY_WORDS: LazyLock<Regex> = LazyLock::new(|| known(r#"(?:command|cmd|script|bash|shell|run)["']"#));

/// What lines begin with of which a command follows, where nothing else gives cause to look at them.
static LINE_WORDS: LazyLock<Regex> =
    LazyLock::new(|| known(r"RUN |un: |un:\n|script:|ommand:|md:|PS C:|PS /|:\\"));

/// A command that a text shows.
#[derive(Debug)]
pub(super) struct Shown<'t> {
    /// Where, in bytes of the text.
    pub range: Range<usize>,
    /// It, without the marks and escapes of what it stands in.
    pub command: Cow<'t, str>,
}

/// What a text has that a command may stand in.
struct Looks {
    /// Back-ticks, or a fence.
    has_code: bool,
    /// Something that a dangerous command is made of.
    has_sign: bool,
    /// Calls that run commands, or keys of such.
    has_calls: bool,
    /// Elements of HTML for code.
    has_elements: bool,
    /// Quotation marks that are no ASCII.
    has_curly: bool,
    /// Prompts that name a machine.
    has_hosts: bool,
    /// Indented lines, prompts or words that lines with commands begin with.
    has_lines: bool,
}

impl Looks {
    /// Most texts are prose, in which this finds nothing: it is a handful of searches for a few bytes.
    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        // Few texts hold the first byte of each, and where it stands what follows is told at once.
        let has = |first: u8, rests: &[&str]| {
            memchr_iter(first, bytes)
                .any(|at| rests.iter().any(|rest| bytes[at + 1..].starts_with(rest.as_bytes())))
        };
        let has_call = || has(b'(', &["\"", "'", "[", "`", "f", "\n"]) && CALL_WORDS.is_match(text);
        let has_key = || (has(b'"', &[":", " :"]) || has(b'\'', &[":", " =>"])) && KEY_WORDS.is_match(text);
        let has_dollar = has(b'$', &[" "]);
        let has_hosts =
            memchr(b'@', bytes).is_some() && (has_dollar || has(b'#', &[" "]) || has(b'%', &[" "]));
        let is_curly = |letter: char| matches!(letter, '“' | '„' | '‘' | '«');
        Self {
            has_code: memchr(b'`', bytes).is_some() || has(b'~', &["~~"]),
            has_sign: SIGNS.is_match(text),
            has_calls: has_call() || has_key(),
            has_elements: has(b'<', &["code", "pre", "kbd"]),
            has_curly: !text.is_ascii() && text.contains(is_curly),
            has_hosts,
            has_lines: has_dollar
                || has_hosts
                || has(b'\n', &["    ", "\t"])
                || text.starts_with(['\t', ' '])
                || LINE_WORDS.is_match(text),
        }
    }
}

/// The commands that a text shows and that name a program that can do harm, in no certain order, of a certain number at most.
pub(super) fn shown_commands<'t>(text: &'t str) -> Vec<Shown<'t>> {
    let looks = Looks::of(text);
    let mut out = Vec::new();
    let mut add = |shown: Shown<'t>| {
        if out.len() >= COMMANDS_MAX {
            return;
        }
        if shown.command.len() > COMMAND_BYTES_MAX {
            let pieces = pieces(&shown).into_iter().filter(|piece| may_harm(&piece.command));
            out.extend(pieces.take(COMMANDS_MAX - out.len()));
        } else if may_harm(&shown.command) {
            out.push(shown);
        }
    };
    if looks.has_code || looks.has_sign || looks.has_curly || looks.has_lines {
        walk(text, &looks, &mut add);
    }
    if looks.has_calls {
        calls(text, &mut add);
    }
    if looks.has_elements {
        elements(text, &mut add);
    }
    out
}

/// A command in pieces of whole lines, none of which is too long to be analysed.
fn pieces<'t>(shown: &Shown<'t>) -> Vec<Shown<'t>> {
    let (mut out, mut from) = (Vec::new(), 0);
    let is_verbatim = matches!(shown.command, Cow::Borrowed(_));
    let mut piece = |range: Range<usize>| {
        // A piece of what was rewritten has no place of its own.
        let place = if is_verbatim {
            shown.range.start + range.start..shown.range.start + range.end
        } else {
            shown.range.clone()
        };
        let command = match &shown.command {
            Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
            Cow::Owned(text) => Cow::Owned(text[range].to_owned()),
        };
        if command.len() <= COMMAND_BYTES_MAX {
            out.push(Shown { range: place, command });
        }
    };
    let mut at = 0;
    for end in memchr_iter(b'\n', shown.command.as_bytes()).map(|end| end + 1).chain([shown.command.len()]) {
        if end - from > COMMAND_BYTES_MAX && at > from {
            piece(from..at);
            from = at;
        }
        at = end;
    }
    piece(from..at);
    out
}

/// Hands on what the lines of a text show.
fn walk<'t>(text: &'t str, looks: &Looks, add: &mut dyn FnMut(Shown<'t>)) {
    let mut fence: Option<Fence> = None;
    // The indent of a key whose commands stand below it.
    let mut below: Option<usize> = None;
    let has_quoted = looks.has_code || looks.has_sign;
    let is_ascii = text.is_ascii();
    // Where the next marks of code and quotations, and signs of machines, stand.
    let mut marks = Next::new(|rest| memchr3(b'`', b'"', b'\'', rest));
    let mut hosts = Next::new(|rest| memchr(b'@', rest));
    let mut at = 0;
    for end in memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1).chain([text.len()]) {
        let range = at..end;
        at = end;
        let line = &text[range.clone()];
        if let Some(open) = &fence {
            let step = open.step(line);
            if matches!(step, Step::Inside) {
                if !open.is_shell {
                    let lead = Lead::of(line, usize::MAX);
                    behind_lead(text, &range, &lead, &mut below, None, add);
                }
                continue;
            }
            if let Some(open) = fence.take() {
                open.close(text, range.start, add);
            }
            below = None;
            if matches!(step, Step::Closed) {
                continue;
            }
        }
        let lead = Lead::of(line, usize::MAX);
        if matches!(line.as_bytes().get(lead.start), Some(b'`' | b'~')) {
            fence = Fence::opened_by(&line[lead.start..], lead.quotes, range.end);
            if fence.is_some() {
                continue;
            }
        }
        let has_host = looks.has_hosts && hosts.from(text, range.start) < range.end;
        behind_lead(text, &range, &lead, &mut below, Some(has_host), add);
        let has_marks = has_quoted && marks.from(text, range.start) < range.end;
        if has_marks || (!is_ascii && (has_quoted || looks.has_curly) && !line.is_ascii()) {
            quoted(text, &range, add);
        }
    }
    // A fence that is never closed reaches to the end.
    if let Some(open) = fence {
        open.close(text, text.len(), add);
    }
}

/// Where the next of something stands, looked for once for all lines before it.
struct Next<F> {
    find: F,
    at: usize,
}

impl<F: Fn(&[u8]) -> Option<usize>> Next<F> {
    fn new(find: F) -> Self {
        Self { find, at: 0 }
    }

    /// Where it stands from a place on, which no later call is to go behind; the end of the text where there is none.
    fn from(&mut self, text: &str, from: usize) -> usize {
        if self.at < from || from == 0 {
            let rest = &text.as_bytes()[from..];
            self.at = (self.find)(rest).map_or(text.len(), |at| from + at);
        }
        self.at
    }
}

/// Hands on the command that begins behind what leads a line. `prompts` says whether prompts count, and whether those count
/// that name a machine.
fn behind_lead<'t>(
    text: &'t str,
    range: &Range<usize>,
    lead: &Lead,
    below: &mut Option<usize>,
    prompts: Option<bool>,
    add: &mut dyn FnMut(Shown<'t>),
) {
    let start = range.start + lead.start;
    let content = &text[start..range.end];
    if matches!(content.as_bytes().first(), None | Some(b'\n' | b'\r')) {
        return;
    }
    let is_below =
        below.is_some_and(|indent| lead.indent > indent || (lead.is_item && lead.indent >= indent));
    if !is_below {
        *below = None;
    }
    let begins = match prompts.and_then(|with_hosts| behind_prompt(content, with_hosts)) {
        Some(begins) => Some(begins),
        None => match keyword(content) {
            Some(Says::Command(begins)) => Some(begins),
            Some(Says::Below) => {
                *below = Some(lead.indent);
                None
            }
            None => {
                let is_code = is_below || (lead.indent >= CODE_INDENT && !lead.is_item);
                (is_code && begins_with_program(content)).then(|| made_by(content))
            }
        },
    };
    if let Some(begins) = begins {
        let range = continued(text, start + begins);
        add(unquoted(text, range));
    }
}

/// A command without the quotation marks around all of it, which a value of a key may have.
fn unquoted(text: &str, range: Range<usize>) -> Shown<'_> {
    let command = &text[range.clone()];
    for mark in ['"', '\''] {
        let inner = command.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
        if let Some(inner) = inner.filter(|inner| !inner.contains(mark) || inner.contains("\\\"")) {
            return Shown { range: range.start + 1..range.end - 1, command: unescaped(inner) };
        }
    }
    Shown { command: command.into(), range }
}

/// Where a command of a Makefile begins, behind the marks that tell how it is to be run.
fn made_by(line: &str) -> usize {
    line.len() - line.trim_start_matches(['@', '-', '+']).len()
}
