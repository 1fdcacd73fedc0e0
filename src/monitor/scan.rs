//! One output stream: bytes in, hits out.
//!
//! Most output is plain lines without anything to look at twice: it is read in place, by one pass for the literals of
//! all rules, and only its last 2,000 characters are kept. Everything else goes through the terminal, line by line. A
//! line with a literal is looked at together with what came before it, and so are the next lines, since a phrase may go
//! on there.
//!
//! Invariant: hits depend on the bytes alone. Both ways hand the same lines to the same look, and a line is looked at
//! when it ends, is about to change, or grew too long; never because a chunk ended. The one exception is
//! [`StreamScan::pause`], which the passing of time brings about.

use std::ops::Range;
use std::sync::Arc;

use super::command::{goes_on, is_open_call, joints};
use super::lists;
use super::mapped::{Mapped, last_chars};
use super::plan::Plan;
use super::prefix;
use super::rules::{Found, Signs};
use super::seams;
use super::strings::strings;
use super::terminal::{End, LINE_BYTES_MAX, Lines, Terminal, plain_len};
use crate::decision::{Severity, VerdictKind};
use crate::detect::Request;
use crate::rules::{Budget, MetaInfo, Role, Surface};

/// Characters of an excerpt.
pub(super) const EXCERPT_CHARS: usize = 2000;
/// Bytes of earlier lines that a line is looked at with. A phrase that spans lines is not longer.
const CONTEXT_BYTES: usize = 400;
/// The same for a command that goes on over several lines.
pub(super) const COMMAND_CONTEXT_BYTES: usize = 1024;
/// Lines that are looked at after one with a literal of a text rule.
const LINES_AFTER: u8 = 6;
/// Lines inside of one string that are looked at for commands.
const STRING_COMMANDS_MAX: usize = 256;
/// Bytes at the end of a part of a line that are left to the look at the next part.
const CUT_MARGIN: usize = 64;
/// Bytes of the beginning of a line that was cut, with which its other parts are looked at.
const HEAD_BYTES: usize = 256;
/// What the confidence is multiplied with while the line has no end.
const UNFINISHED_CONFIDENCE: f64 = 0.6;
/// Text that is read at once.
const BLOCK_BYTES: usize = 32 * 1024;
/// Characters before an excerpt that are masked with it: a credential may begin there.
pub(super) const MASK_MARGIN_CHARS: usize = 1024;
/// Characters of text that are kept for an excerpt.
const KEPT_CHARS: usize = EXCERPT_CHARS + MASK_MARGIN_CHARS;
/// Bytes of recent text at which it is cut back: it must hold [`KEPT_CHARS`] characters.
const RECENT_BYTES: usize = 2 * KEPT_CHARS;
/// Hits that are remembered, so that a second look at the same bytes does not report them again.
const REMEMBERED_MAX: usize = 32;

/// A rule that holds for a part of a stream.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    /// The rule.
    pub info: Arc<MetaInfo>,
    /// Raw bytes of the stream before the match.
    pub offset: u64,
    /// How bad it is when certain.
    pub severity: Severity,
    /// How certain it is.
    pub confidence: f64,
    /// What was matched, not masked.
    pub matched: String,
    /// What the excerpt is made of: the last characters up to the end of the line of the match, not masked, more than an
    /// excerpt has, with `\r\n` where the program wrapped lines.
    pub text: String,
}

/// How long nothing came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// So long that whoever writes without line ends may be waiting. Only what no further byte of the last word can
    /// change is looked at, and no command.
    Short,
    /// So long that the line may never end. Everything is looked at, and nothing is certain.
    Long,
}

/// What is known of a stream besides the line that the terminal stands in.
#[derive(Debug, Default)]
struct Past {
    /// The last lines with their ends.
    recent: Mapped,
    /// Lines that are still to be looked at because of one before.
    lines_left: u8,
    /// Whether the last line was cut: the next belongs to it.
    after_cut: bool,
    /// How a line that was cut began.
    head: Mapped,
    /// Whether the last line held a sign of a command that may go on in this one.
    after_command: bool,
    /// Lines that may still belong to a list of arguments.
    list_left: u8,
    /// The latest hits.
    remembered: Vec<Remembered>,
    next_remembered: usize,
}

/// Why a line is looked at.
#[derive(Clone, Copy, Debug)]
struct Reason {
    /// It, or one before it, holds a literal.
    is_due: bool,
    /// Something may come over from the lines before it.
    joins: bool,
    /// A literal stands across its beginning.
    wrapped: bool,
}

/// A hit that was reported: its rule, and the first and last raw byte.
#[derive(Debug)]
struct Remembered {
    info: Arc<MetaInfo>,
    first: u64,
    last: u64,
    outcome: Outcome,
}

/// Whether a match kills at once, and what it leads to where nobody is asked.
type Outcome = (bool, VerdictKind);

/// How bad a match is when certain, and how certain it is.
type Certainty = (Severity, f64);

/// The most that a match counts for in a line that has no end: more bytes may turn it into something else, and no shell
/// runs a command before its line has ended.
fn unfinished((severity, confidence): Certainty) -> Certainty {
    (severity.min(Severity::High), confidence * UNFINISHED_CONFIDENCE)
}

/// The most that a command counts for in a line of a string, which may be anybody's, or in a part of a line.
fn quoted((severity, confidence): Certainty) -> Certainty {
    (severity.min(Severity::High), confidence * UNFINISHED_CONFIDENCE)
}

/// The state of one stream.
#[derive(Debug, Default)]
pub(super) struct StreamScan {
    terminal: Terminal,
    past: Past,
    /// Raw bytes read.
    raw: u64,
}

impl StreamScan {
    /// Reads bytes and appends what rules say about them.
    pub fn feed(&mut self, mut data: &[u8], plan: &Plan, hits: &mut Vec<Hit>) {
        while !data.is_empty() {
            if self.terminal.is_at_line_start() {
                let plain = plain_block(data);
                if plain > 0 {
                    self.past.block(&data[..plain], self.raw, plan, hits);
                    self.raw += plain as u64;
                    data = &data[plain..];
                    continue;
                }
            }
            // Up to the end of the line; then the quick way may be open again.
            let line = memchr::memchr(b'\n', data).map_or(data.len(), |at| at + 1);
            let mut look = Look { past: &mut self.past, plan, hits };
            self.terminal.feed(&data[..line], self.raw, &mut look);
            self.raw += line as u64;
            data = &data[line..];
        }
    }

    /// Whether something stands there that was not looked at because its line has no end.
    pub fn is_unfinished(&self) -> bool {
        self.terminal.is_unfinished()
    }

    /// Looks at what stands there without an end, since nothing more came.
    pub fn pause(&mut self, pause: Pause, plan: &Plan, hits: &mut Vec<Hit>) {
        let end = match pause {
            Pause::Short => End::Paused,
            Pause::Long => End::Quiet,
        };
        self.terminal.glance(end, &mut Look { past: &mut self.past, plan, hits });
    }

    /// Looks at what is left: no byte follows.
    pub fn finish(&mut self, plan: &Plan, hits: &mut Vec<Hit>) {
        self.terminal.finish(&mut Look { past: &mut self.past, plan, hits });
    }

    /// Heap held, in bytes.
    pub fn heap(&self) -> usize {
        self.terminal.heap()
            + self.past.recent.heap()
            + self.past.head.heap()
            + self.past.remembered.capacity() * size_of::<Remembered>()
    }
}

/// Length of the lines at the start of `data` that show as they stand: whole lines of printable text with tabs, each
/// ended by `\n` or `\r\n` and not too long. 0 when there is none.
fn plain_block(data: &[u8]) -> usize {
    let data = &data[..data.len().min(BLOCK_BYTES)];
    let Some(mut end) = memchr::memrchr(b'\n', data).map(|at| at + 1) else { return 0 };
    let mut at = 0;
    let mut line = 0;
    while at < end {
        at += plain_len(&data[at..end]);
        let rest = &data[at..end];
        let ended = match rest {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => 0,
        };
        if at - line > LINE_BYTES_MAX - 1 || ended == 0 {
            end = line;
            break;
        }
        at += ended;
        line = at;
    }
    end
}

/// The lines of a terminal, looked at.
struct Look<'a> {
    past: &'a mut Past,
    plan: &'a Plan,
    hits: &'a mut Vec<Hit>,
}

impl Lines for Look<'_> {
    fn line(&mut self, line: &Mapped, end: End) {
        let signs = self.plan.rules.signs(line.as_str().as_bytes());
        self.past.line(line, end, signs, self.plan, self.hits);
    }
}

impl Past {
    /// Reads whole plain lines.
    fn block(&mut self, block: &[u8], raw: u64, plan: &Plan, hits: &mut Vec<Hit>) {
        let Ok(text) = std::str::from_utf8(block) else { return };
        let rules = &*plan.rules;
        let every_line = plan.families() != 0;
        let mut marks = Vec::new();
        rules.literals(block, |at| marks.extend([at.start, at.end - 1]));
        seams::mark(block, &self.recent, rules, &mut marks);
        marks.sort_unstable();
        // `done` is where the recent text ends, `at` where the next line begins.
        let (mut done, mut at, mut next) = (0, 0, 0);
        loop {
            let is_free =
                self.lines_left == 0 && self.list_left == 0 && !self.after_cut && !self.after_command;
            if is_free && !every_line {
                // On to the next line with a mark.
                while next < marks.len() && marks[next] < at {
                    next += 1;
                }
                let Some(mark) = marks.get(next) else { break };
                at = memchr::memrchr(b'\n', &block[..*mark]).map_or(0, |nl| nl + 1).max(at);
            }
            let Some(newline) = memchr::memchr(b'\n', &block[at..]).map(|nl| at + nl) else { break };
            let has_return = block[..newline].ends_with(b"\r");
            let line_end = newline - usize::from(has_return);
            self.remember(&text[done..at], raw + done as u64);
            let mut line = Mapped::default();
            line.push(&text[at..line_end], raw + at as u64);
            let end = if has_return { End::CarriageReturn } else { End::Newline };
            self.line(&line, end, rules.signs(&block[at..line_end]), plan, hits);
            at = newline + 1;
            done = at;
        }
        self.remember(&text[done..], raw + done as u64);
    }

    /// Takes note of a line, and looks at it where there is reason to.
    fn line(&mut self, line: &Mapped, end: End, signs: Signs, plan: &Plan, hits: &mut Vec<Hit>) {
        let wrapped = !line.is_empty() && seams::is_seam(&self.recent, line.as_str().as_bytes(), &plan.rules);
        let goes_over = self.lines_left > 0 || self.after_cut || self.after_command;
        let signs = self.signs_without_strays(line, signs, plan);
        let is_due = signs.any() || wrapped || goes_over;
        if is_due || plan.families() != 0 {
            let joins = wrapped || goes_over || signs.text;
            self.look(line, end, Reason { is_due, joins, wrapped }, plan, hits);
        }
        if !end.is_final() {
            return;
        }
        self.list(line, end, plan, hits);
        self.lines_left = match () {
            () if signs.text || wrapped => LINES_AFTER,
            // Empty lines part nothing.
            () if line.is_empty() => self.lines_left,
            () => self.lines_left.saturating_sub(1),
        };
        if end != End::Cut {
            self.head.reset(0);
        } else if !self.after_cut {
            self.head.push_from(line, 0..line.as_str().floor_char_boundary(HEAD_BYTES));
        }
        self.after_cut = end == End::Cut;
        self.after_command = (signs.command || self.after_command || wrapped) && goes_on(line.as_str())
            || signs.command && (end == End::CarriageReturn || is_open_call(line.as_str()));
        self.recent.push_from(line, 0..line.len());
        let raw = line.raw_of(line.len().saturating_sub(1)) + 1;
        match end {
            End::CarriageReturn => self.recent.push("\r\n", raw),
            End::Cut => {}
            _ => self.recent.push("\n", raw),
        }
        self.cut_back();
    }

    /// What a line holds, also without the bytes in it that are no characters.
    fn signs_without_strays(&self, line: &Mapped, signs: Signs, plan: &Plan) -> Signs {
        let text = line.as_str();
        if text.is_ascii() || !text.contains(char::REPLACEMENT_CHARACTER) {
            return signs;
        }
        let clean = plan.rules.signs(text.replace(char::REPLACEMENT_CHARACTER, "").as_bytes());
        Signs { text: signs.text || clean.text, command: signs.command || clean.command }
    }

    /// Looks at the command whose list of arguments this line completes.
    fn list(&mut self, line: &Mapped, end: End, plan: &Plan, hits: &mut Vec<Hit>) {
        if end == End::Cut || self.after_cut {
            self.list_left = 0;
        } else if lists::opens(line.as_str()) {
            self.list_left = lists::LINES_MAX;
        } else if self.list_left > 0 {
            self.list_left = if lists::goes_on(line.as_str()) { self.list_left - 1 } else { 0 };
            if self.list_left > 0 {
                let mut window = Mapped::default();
                window.push_from(
                    &self.recent,
                    self.recent.tail_start(COMMAND_CONTEXT_BYTES)..self.recent.len(),
                );
                let start = window.len();
                window.push_from(line, 0..line.len());
                let command = lists::command(&window, start);
                if let Some(command) = command.filter(|one| plan.rules.signs(one.as_str().as_bytes()).command)
                {
                    let found = plan.rules.find(command.as_str(), 0, true).into_iter();
                    let found = found.filter(|found| plan.rules.is_command(found.rule)).collect();
                    self.look_at_found(&command, 0, found, end, line, plan, hits);
                }
            }
        }
    }

    /// Appends plain text of the stream to what is recent.
    fn remember(&mut self, text: &str, raw: u64) {
        if text.is_empty() {
            return;
        }
        let start = text.ceil_char_boundary(text.len().saturating_sub(RECENT_BYTES));
        if start > 0 {
            self.recent.clear();
        }
        self.recent.push(&text[start..], raw + start as u64);
        self.cut_back();
        self.lines_left = 0;
        self.after_cut = false;
        self.after_command = false;
        self.list_left = 0;
    }

    fn cut_back(&mut self) {
        // Only what a line is looked at with needs to know where it came from.
        self.recent.forget_origin(self.recent.tail_start(COMMAND_CONTEXT_BYTES));
        if self.recent.len() > RECENT_BYTES {
            let keep = self.recent.last_chars(KEPT_CHARS).len().max(CONTEXT_BYTES);
            let from = self.recent.tail_start(keep);
            self.recent.cut_front(from);
            self.recent.shrink(RECENT_BYTES);
        }
    }

    /// Looks at a line.
    fn look(&mut self, line: &Mapped, end: End, reason: Reason, plan: &Plan, hits: &mut Vec<Hit>) {
        let Reason { is_due, joins, wrapped } = reason;
        let mut window = Mapped::default();
        let context = match () {
            () if self.after_command || wrapped => COMMAND_CONTEXT_BYTES,
            // What a command stands beside in a table of data is told by the lines before.
            () if joins || is_due || plan.families() != 0 => CONTEXT_BYTES,
            () => 0,
        };
        let start = self.recent.tail_start(context);
        window.push_from(&self.recent, start..self.recent.len());
        let line_start = window.len();
        window.push_from(line, 0..line.len());
        // Around a cut, the end of one part is looked at with the next.
        let before = |at: usize| window.as_str().floor_char_boundary(at.saturating_sub(CUT_MARGIN));
        let from = if self.after_cut { before(line_start) } else { line_start };
        let to = if end == End::Cut { before(window.len()) } else { window.len() };
        if plan.families() != 0 {
            self.look_with_families(&window, from..to, end, line, plan, hits);
        }
        if !is_due {
            return;
        }
        let with_commands = !matches!(end, End::Edited | End::Paused);
        let info = |rule: u32| &plan.rules.rules()[rule as usize].info;
        for found in plan.rules.find(window.as_str(), from, with_commands) {
            if found.range.end > from
                && found.range.end <= to
                && let Some(certainty) = counts(end, (found.severity, found.confidence), &found.range, to)
            {
                self.hit((&window, found.range), info(found.rule), certainty, line, plan, hits);
            }
        }
        if self.after_cut && with_commands {
            self.look_with_head(&window, from, end, line, plan, hits);
        }
        if line.as_str().contains('\\') {
            self.look_into_strings(&window, from, with_commands, end, line, plan, hits);
        }
        if joins {
            // Where every line ends like this, what was wrapped is one word or a few, and what stands before it is not
            // a part of it. So the last line end is taken out alone as well, and the last two.
            let seams = window.as_str().matches("\r\n").count();
            let mut counts = [1, 2, seams].to_vec();
            counts.retain(|count| (1..=seams).contains(count));
            counts.dedup();
            let with_commands = with_commands && (self.after_command || wrapped);
            for count in counts {
                let unwrapped = window.unwrapped(count);
                self.look_joined(unwrapped, end, with_commands, line, plan, hits);
            }
        }
        if joins {
            let joints = prefix::joints(window.as_str(), line_start);
            if !joints.is_empty() {
                self.look_joined(window.without(&joints), end, false, line, plan, hits);
            }
        }
        let joints = joints(window.as_str(), line_start);
        if !joints.is_empty() {
            self.look_joined(window.without(&joints), end, with_commands, line, plan, hits);
        }
        let strays = strays(window.as_str(), from);
        if !strays.is_empty() {
            let (clean, _) = window.without(&strays);
            let found = plan.rules.find(clean.as_str(), from, with_commands);
            let found = found.into_iter().filter(|found| found.range.end > from).collect();
            self.look_at_found(&clean, 0, found, end, line, plan, hits);
        }
    }

    /// Looks at a part of a long line as if it stood right behind its beginning: a command with very many arguments is
    /// read in parts. What stands between may change what it means, so this is no more than a question.
    fn look_with_head(
        &mut self,
        window: &Mapped,
        from: usize,
        end: End,
        line: &Mapped,
        plan: &Plan,
        hits: &mut Vec<Hit>,
    ) {
        let mut text = self.head.clone();
        let head = text.len();
        text.push_from(window, from..window.len());
        if !plan.rules.signs(text.as_str().as_bytes()).command {
            return;
        }
        let found = plan.rules.find(text.as_str(), 0, true).into_iter();
        let found =
            found.filter(|found| plan.rules.is_command(found.rule) && found.range.end > head).map(|found| {
                let (severity, confidence) = quoted((found.severity, found.confidence));
                Found { severity, confidence, ..found }
            });
        self.look_at_found(&text, 0, found.collect(), end, line, plan, hits);
    }

    /// Looks at what the strings of the line say.
    #[expect(clippy::too_many_arguments, reason = "a part of one look, which knows all of this")]
    fn look_into_strings(
        &mut self,
        window: &Mapped,
        from: usize,
        with_commands: bool,
        end: End,
        line: &Mapped,
        plan: &Plan,
        hits: &mut Vec<Hit>,
    ) {
        for text in strings(window, from, self.after_cut) {
            let signs = plan.rules.signs(text.as_str().as_bytes());
            if !signs.any() {
                continue;
            }
            let all = plan.rules.find(text.as_str(), text.len(), false);
            self.look_at_found(&text, 0, all, end, line, plan, hits);
            if !signs.command || !with_commands {
                continue;
            }
            let mut start = 0;
            let mut looks = 0;
            while start < text.len() && looks < STRING_COMMANDS_MAX {
                let rest = &text.as_str()[start..];
                let mut length = rest.find('\n').map_or(rest.len(), |at| at + 1);
                while length < rest.len() && goes_on(&rest[..length]) {
                    length += rest[length..].find('\n').map_or(rest.len() - length, |at| at + 1);
                }
                let own = rest[..length].trim_end_matches(['\n', '\r']);
                if plan.rules.signs(own.as_bytes()).command {
                    looks += 1;
                    let found = plan
                        .rules
                        .find(own, 0, true)
                        .into_iter()
                        .filter(|found| plan.rules.is_command(found.rule));
                    let found = found.map(|found| {
                        let (severity, confidence) = quoted((found.severity, found.confidence));
                        Found { severity, confidence, ..found }
                    });
                    self.look_at_found(&text, start, found.collect(), end, line, plan, hits);
                }
                start += length;
            }
        }
    }

    /// Reports what was found in `text` from byte `at` unless it is known.
    #[expect(clippy::too_many_arguments, reason = "a part of one look, which knows all of this")]
    fn look_at_found(
        &mut self,
        text: &Mapped,
        at: usize,
        all: Vec<Found>,
        end: End,
        line: &Mapped,
        plan: &Plan,
        hits: &mut Vec<Hit>,
    ) {
        for found in all {
            let range = at + found.range.start..at + found.range.end;
            let info = &plan.rules.rules()[found.rule as usize].info;
            if !self.is_reported(text, &range, info, (found.severity, found.confidence), end, plan)
                && let Some(certainty) = counts(end, (found.severity, found.confidence), &range, text.len())
            {
                self.hit((text, range), info, certainty, line, plan, hits);
            }
        }
    }

    /// Whether what was found without joining lines or looking into strings says as much.
    fn is_reported(
        &self,
        text: &Mapped,
        range: &Range<usize>,
        info: &Arc<MetaInfo>,
        certainty: Certainty,
        end_of_line: End,
        plan: &Plan,
    ) -> bool {
        let (first, last) = (text.raw_of(range.start), text.raw_of(range.end.saturating_sub(1)));
        self.remembered.iter().any(|known| {
            Arc::ptr_eq(&known.info, info)
                && known.first <= last
                && first <= known.last
                && (matches!(end_of_line, End::Paused | End::Quiet)
                    || known.outcome >= outcome_of(certainty, plan))
        })
    }

    /// Looks at text without what stood at its seams.
    fn look_joined(
        &mut self,
        (joined, seams): (Mapped, Vec<usize>),
        end_of_line: End,
        with_commands: bool,
        line: &Mapped,
        plan: &Plan,
        hits: &mut Vec<Hit>,
    ) {
        let last = seams.last().copied().unwrap_or_default();
        // A command is wrapped once or twice, not over all of what came before.
        let first = seams.iter().rev().nth(2).copied();
        let before = joined.as_str()[..seams.first().copied().unwrap_or_default()].rfind('\n');
        let first = first.unwrap_or_else(|| before.map_or(0, |newline| newline + 1));
        for found in plan.rules.find(joined.as_str(), first, with_commands) {
            let range = found.range;
            let crosses = seams.iter().any(|seam| range.start < *seam && *seam < range.end);
            let info = &plan.rules.rules()[found.rule as usize].info;
            let certainty = (found.severity, found.confidence);
            if crosses
                && range.end > last
                && !self.is_reported(&joined, &range, info, certainty, end_of_line, plan)
                && let Some(certainty) = counts(end_of_line, certainty, &range, joined.len())
            {
                self.hit((&joined, range), info, certainty, line, plan, hits);
            }
        }
    }

    /// The rules for messages that the policy wants for streams too.
    fn look_with_families(
        &mut self,
        window: &Mapped,
        new: Range<usize>,
        end: End,
        line: &Mapped,
        plan: &Plan,
        hits: &mut Vec<Hit>,
    ) {
        let request = Request {
            text: window.as_str(),
            plugins: plan.families(),
            role: Some(Role::Tool),
            surface: Some(Surface::Stream),
        };
        let Ok(scanned) = plan.scanner.scan(request, &Budget::UNLIMITED) else { return };
        for found in scanned.findings {
            let certainty = (found.info.severity, found.info.confidence);
            if found.range.end > new.start
                && found.range.end <= new.end
                && let Some(certainty) = counts(end, certainty, &found.range, new.end)
            {
                self.hit((window, found.range), &found.info, certainty, line, plan, hits);
            }
        }
    }

    fn hit(
        &mut self,
        (window, range): (&Mapped, Range<usize>),
        info: &Arc<MetaInfo>,
        (severity, confidence): Certainty,
        line: &Mapped,
        plan: &Plan,
        hits: &mut Vec<Hit>,
    ) {
        let matched = &window.as_str()[range.clone()];
        let offset = window.raw_of(range.end - matched.trim_start().len());
        let matched = matched.trim().replace('\r', "");
        // What was told while the line had no end is told again when it turns out to be worse.
        let outcome = outcome_of((severity, confidence), plan);
        let is_known = |known: &Remembered| {
            known.first == offset && Arc::ptr_eq(&known.info, info) && known.outcome >= outcome
        };
        if self.remembered.iter().any(is_known) {
            return;
        }
        let key =
            Remembered { info: info.clone(), first: offset, last: window.raw_of(range.end - 1), outcome };
        match self.remembered.get_mut(self.next_remembered) {
            Some(slot) => *slot = key,
            None => self.remembered.push(key),
        }
        self.next_remembered = (self.next_remembered + 1) % REMEMBERED_MAX;
        let own = last_chars(line.as_str(), KEPT_CHARS);
        let before = self.recent.last_chars(KEPT_CHARS - own.chars().count());
        let text = format!("{before}{own}");
        hits.push(Hit { info: info.clone(), offset, severity, confidence, matched, text });
    }
}

fn outcome_of((severity, confidence): Certainty, plan: &Plan) -> Outcome {
    (plan.is_certain(severity, confidence), plan.verdict_of(severity))
}

/// What a match counts for in a line that ends like this, in a text that is looked at up to byte `to`; `None` where that
/// cannot be said yet.
fn counts(end: End, certainty: Certainty, range: &Range<usize>, to: usize) -> Option<Certainty> {
    match end {
        // What follows the match shows that its last word is over.
        End::Paused => (range.end < to).then_some(certainty),
        End::Quiet => Some(unfinished(certainty)),
        _ => Some(certainty),
    }
}

/// Where bytes that are no characters stand in a text from byte `from` on. Some programs leave them out.
fn strays(text: &str, from: usize) -> Vec<Range<usize>> {
    let found = text[from..].match_indices(char::REPLACEMENT_CHARACTER);
    found.map(|(at, stray)| from + at..from + at + stray.len()).collect()
}
