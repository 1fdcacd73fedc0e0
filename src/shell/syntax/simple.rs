//! Simple commands: assignments, words and redirections; and functions, which begin like them.

use std::borrow::Cow;

use super::class;
use super::frame::{ArrayFrame, Assigned, Ends, Frame, SimpleAwaits, SimpleFrame, Value, WordFrame};
use super::machine::Machine;
use super::redirect::Target;
use super::word::{Lexed, Nested};
use crate::shell::ast::{AssignedValue, Assignment, CommandId, CommandKind, Part, WordId};

/// How far ahead the end of an index is looked for, in bytes, before the word counts as a pattern.
const INDEX_MAX: usize = 128;

/// What a simple command needs before it can go on.
pub(super) enum Wanted<'s> {
    /// It is done.
    Nothing,
    /// The elements of an array, whose parenthesis stands there.
    Array(usize),
    /// A word that needs something nested.
    Nested(WordFrame<'s>, Nested<'s>),
    /// It is a function of this name.
    Function(Cow<'s, str>),
}

impl<'s> SimpleFrame<'s> {
    pub(super) fn new(start: usize) -> Self {
        Self {
            start,
            end: start,
            assignments: Vec::new(),
            words: Vec::new(),
            redirects: Vec::new(),
            awaits: SimpleAwaits::Word,
        }
    }
}

impl<'s> Machine<'_, 's> {
    /// Goes on with a simple command.
    pub(super) fn simple(&mut self, mut frame: Box<SimpleFrame<'s>>) {
        if !matches!(self.value, Value::None) {
            self.take_value(&mut frame);
        }
        match self.read_simple(&mut frame) {
            Wanted::Nothing => self.value = Value::Command(self.end_simple(*frame)),
            wanted => self.wait_simple(frame, wanted),
        }
    }

    /// Puts a simple command back that needs something.
    pub(super) fn wait_simple(&mut self, frame: Box<SimpleFrame<'s>>, wanted: Wanted<'s>) {
        let start = frame.start;
        if let Wanted::Function(name) = wanted {
            return self.push_named(start, Some(name));
        }
        self.frames.push(Frame::Simple(frame));
        match wanted {
            Wanted::Array(opened) => self.frames.push(Frame::Array(ArrayFrame { opened, words: Vec::new() })),
            Wanted::Nested(word, nested) => self.suspend(word, nested),
            Wanted::Function(_) | Wanted::Nothing => {}
        }
    }

    /// Reads on in a simple command, up to its end or up to something that it needs.
    pub(super) fn read_simple(&mut self, frame: &mut SimpleFrame<'s>) -> Wanted<'s> {
        loop {
            if !matches!(frame.awaits, SimpleAwaits::Word) {
                // An assignment whose index or value comes next.
                match self.assign(frame) {
                    Wanted::Nothing => continue,
                    wanted => return wanted,
                }
            }
            self.skip_blanks();
            let Some(byte) = self.peek() else { break };
            match byte {
                b'\n' | b';' | b'|' | b')' => break,
                b'(' => match self.function_name(frame) {
                    Some(name) => return Wanted::Function(name),
                    None => break,
                },
                b'<' | b'>' | b'&' | b'{' | b'0'..=b'9' => {
                    if let Some(redirection) = self.redirection() {
                        match self.target(redirection) {
                            Target::Done(redirect, end) => {
                                frame.redirects.push(redirect);
                                frame.end = end;
                            }
                            Target::Nested(redirection, word, nested) => {
                                frame.awaits = SimpleAwaits::Target(redirection);
                                return Wanted::Nested(word, nested);
                            }
                        }
                        continue;
                    }
                    if byte == b'&' {
                        break;
                    }
                }
                _ => {}
            }
            if frame.words.is_empty()
                && let Some(awaits) = self.assignment()
            {
                frame.awaits = awaits;
                continue;
            }
            if let Some(id) = self.plain_word() {
                frame.words.push(id);
                frame.end = self.pos;
                continue;
            }
            let at = self.pos;
            let mut word = WordFrame::new(at, Ends::Word);
            word.is_argument = !frame.words.is_empty();
            match self.lex(word) {
                Lexed::Done(id) => {
                    if self.pos == at {
                        break;
                    }
                    frame.words.push(id);
                    frame.end = self.pos;
                }
                Lexed::Nested(word, nested) => return Wanted::Nested(word, nested),
            }
        }
        Wanted::Nothing
    }

    /// Ends a simple command.
    pub(super) fn end_simple(&mut self, frame: SimpleFrame<'s>) -> CommandId {
        if frame.end == frame.start && self.pos < self.end && self.pos == frame.start {
            // Nothing that begins a command: left out, so that the reading goes on.
            self.unexpected(self.pos, self.pos + 1);
            self.pos = self.ceil_boundary(self.pos + 1);
        }
        let kind = CommandKind::Simple { assignments: frame.assignments, words: frame.words };
        self.add_command(kind, frame.redirects, frame.start, frame.end)
    }

    /// Takes what the command waited for.
    fn take_value(&mut self, frame: &mut SimpleFrame<'s>) {
        let awaits = std::mem::take(&mut frame.awaits);
        frame.end = self.pos;
        match (awaits, std::mem::take(&mut self.value)) {
            (SimpleAwaits::Word, Value::Word(word)) => frame.words.push(word),
            (SimpleAwaits::Target(redirection), Value::Word(target)) => {
                frame.redirects.push(self.redirect(redirection, target));
            }
            (SimpleAwaits::Index(assigned), Value::Word(index)) => {
                frame.awaits = self.after_index(assigned, index);
            }
            (SimpleAwaits::Value(assigned), Value::Word(word)) => {
                frame.assignments.push(self.assignment_of(assigned, AssignedValue::Word(word)));
            }
            (SimpleAwaits::Value(assigned), Value::Array(words)) => {
                frame.assignments.push(self.assignment_of(assigned, AssignedValue::Array(words)));
            }
            (_, _) => {}
        }
    }

    fn assignment_of(&self, assigned: Assigned<'s>, value: AssignedValue) -> Assignment<'s> {
        let Assigned { start, name, index, append } = assigned;
        Assignment { name, index, append, value, span: self.span(start, self.pos) }
    }

    /// The left side of an assignment at the cursor.
    fn assignment(&mut self) -> Option<SimpleAwaits<'s>> {
        let start = self.pos;
        if !class::is_name_start(self.byte(start)) {
            return None;
        }
        let end = self.name_end(start);
        let next = self.joined(end);
        let second = self.joined(next + 1);
        let assigned = Assigned { start, name: "", index: None, append: false };
        match (self.byte(next), self.byte(second)) {
            (b'=', _) => {
                let name = self.name(start, end);
                self.pos = next + 1;
                Some(SimpleAwaits::Value(Assigned { name, ..assigned }))
            }
            (b'+', b'=') => {
                let name = self.name(start, end);
                self.pos = second + 1;
                Some(SimpleAwaits::Value(Assigned { name, append: true, ..assigned }))
            }
            (b'[', _) if self.is_index(next) => {
                let name = self.name(start, end);
                self.pos = next + 1;
                Some(SimpleAwaits::Index(Assigned { name, ..assigned }))
            }
            _ => None,
        }
    }

    /// Whether the bracket at a place closes soon and `=` or `+=` follows.
    fn is_index(&mut self, open: usize) -> bool {
        let mut depth = 0_usize;
        let mut at = open;
        let limit = self.end.min(open + INDEX_MAX);
        if memchr::memchr(b']', &self.bytes[open..limit]).is_none() {
            return false;
        }
        while at < limit {
            match self.bytes[at] {
                b'[' => depth += 1,
                b']' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                b'\\' => at += 1,
                b'\n' | b';' => return false,
                _ => {}
            }
            at += 1;
        }
        self.out.tick(at.min(limit) - open);
        let next = self.joined(at + 1);
        at < limit
            && match self.byte(next) {
                b'=' => true,
                b'+' => self.byte(self.joined(next + 1)) == b'=',
                _ => false,
            }
    }

    /// What comes after an index.
    fn after_index(&mut self, mut assigned: Assigned<'s>, index: WordId) -> SimpleAwaits<'s> {
        assigned.index = Some(index);
        let close = self.joined(self.pos);
        if self.byte(close) == b']' {
            self.pos = close + 1;
        }
        let next = self.joined(self.pos);
        let second = self.joined(next + 1);
        match (self.byte(next), self.byte(second)) {
            (b'=', _) => self.pos = next + 1,
            (b'+', b'=') => {
                assigned.append = true;
                self.pos = second + 1;
            }
            // Quotes hid where the index ends; what follows is its value all the same.
            _ => {}
        }
        SimpleAwaits::Value(assigned)
    }

    /// Reads on in an assignment.
    fn assign(&mut self, frame: &mut SimpleFrame<'s>) -> Wanted<'s> {
        let ends = if matches!(frame.awaits, SimpleAwaits::Index(_)) { Ends::Index } else { Ends::Word };
        let open = self.joined(self.pos);
        if ends == Ends::Word && self.byte(open) == b'(' {
            self.pos = open + 1;
            return Wanted::Array(open);
        }
        match self.lex_new(ends) {
            Lexed::Done(word) => {
                self.value = Value::Word(word);
                self.take_value(frame);
                Wanted::Nothing
            }
            Lexed::Nested(word, nested) => Wanted::Nested(word, nested),
        }
    }

    /// Goes on with the elements of an array.
    pub(super) fn array(&mut self, mut frame: ArrayFrame) {
        if let Value::Word(word) = std::mem::take(&mut self.value) {
            frame.words.push(word);
        }
        loop {
            self.skip_lines();
            let at = self.pos;
            match self.peek() {
                None => {
                    self.unterminated(frame.opened);
                    break;
                }
                Some(b')') => {
                    self.pos += 1;
                    break;
                }
                Some(_) => {}
            }
            match self.lex_new(Ends::Word) {
                Lexed::Done(word) if self.pos > at => frame.words.push(word),
                Lexed::Done(_) => {
                    self.unexpected(at, at + 1);
                    self.pos = at + 1;
                }
                Lexed::Nested(word, nested) => {
                    self.frames.push(Frame::Array(frame));
                    return self.suspend(word, nested);
                }
            }
        }
        self.value = Value::Array(frame.words);
    }

    /// The name of the function that the parenthesis at the cursor makes of what was read; the cursor is then after
    /// both parentheses.
    fn function_name(&mut self, frame: &SimpleFrame<'s>) -> Option<Cow<'s, str>> {
        let close = self.after_blanks(self.pos + 1);
        let [word] = frame.words[..] else { return None };
        let is_function =
            frame.assignments.is_empty() && frame.redirects.is_empty() && self.byte(close) == b')';
        if !is_function || !self.may_nest(self.pos) {
            return None;
        }
        self.pos = close + 1;
        let mut name = Cow::Borrowed("");
        for part in self.out.take_word(word).parts {
            match part {
                Part::Bare(text) if name.is_empty() => name = Cow::Borrowed(text),
                Part::Bare(text) => name.to_mut().push_str(text),
                Part::Quoted(text) => name.to_mut().push_str(&text),
                _ => {}
            }
        }
        Some(name)
    }
}
