//! Beginning commands, and what may follow a compound one.

use std::borrow::Cow;

use super::frame::{Close, Compound, CompoundFrame, Ends, ForStage, Frame, NamedFrame, TailFrame, Value};
use super::keyword::Keyword;
use super::machine::Machine;
use super::redirect::Target;
use crate::shell::ast::{Command, CommandId, CommandKind, Redirect};

/// How a command begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Keyword(Keyword),
    Subshell,
    /// `((`
    Arithmetic,
    Simple,
}

impl Start {
    /// Whether there is a list in it.
    pub(super) const fn nests(self) -> bool {
        !matches!(self, Self::Simple | Self::Keyword(Keyword::Test))
    }
}

impl<'s> Machine<'_, 's> {
    /// What begins at the cursor, and where its first token ends.
    pub(super) fn command_start(&mut self) -> (Start, usize) {
        if let Some((keyword, end)) = self.keyword() {
            return (Start::Keyword(keyword), end);
        }
        if self.byte(self.pos) != b'(' {
            return (Start::Simple, self.pos);
        }
        let second = self.joined(self.pos + 1);
        // Too deep, neither would be read.
        let may_nest = self.depth <= self.depth_max;
        if may_nest && self.byte(second) == b'(' && self.is_arithmetic(second) {
            return (Start::Arithmetic, second + 1);
        }
        (Start::Subshell, self.pos + 1)
    }

    /// Begins a command whose first token ends at `end`. The frame that waits for it is on the stack.
    pub(super) fn begin(&mut self, start: Start, end: usize) {
        let at = self.pos;
        let push = |machine: &mut Self, kind| {
            machine.frames.push(Frame::Compound(Box::new(CompoundFrame { start: at, kind })));
        };
        if start == Start::Simple {
            let simple = super::frame::SimpleFrame::new(at);
            return self.frames.push(Frame::Simple(Box::new(simple)));
        }
        self.pos = end;
        match start {
            Start::Subshell => {
                push(self, Compound::Subshell);
                self.push_list(Close::Parenthesis, at, false);
            }
            Start::Arithmetic => {
                push(self, Compound::Arithmetic);
                self.descend(super::word::Nested::Expression(Ends::Arithmetic));
            }
            Start::Keyword(keyword) => match keyword {
                Keyword::Brace => {
                    push(self, Compound::Group);
                    self.push_list(Close::Brace, at, false);
                }
                Keyword::If => {
                    push(self, Compound::If { branches: Vec::new(), condition: None, in_else: false });
                    self.push_list(Close::Then, at, false);
                }
                Keyword::While | Keyword::Until => {
                    push(self, Compound::Loop { until: keyword == Keyword::Until, condition: None });
                    self.push_list(Close::Do, at, false);
                }
                Keyword::For | Keyword::Select => {
                    let kind = self.for_head();
                    push(self, kind);
                }
                Keyword::Case => {
                    push(self, Compound::Case { subject: None, arms: Vec::new(), patterns: Vec::new() });
                }
                Keyword::Test => push(self, Compound::Test { words: Vec::new(), is_regex_next: false }),
                Keyword::Function => self.function(at),
                Keyword::Coproc => {
                    self.skip_coproc_name();
                    self.push_named(at, None);
                }
                // Not in front of a command: lists take care of these.
                Keyword::Closing(_) | Keyword::Time | Keyword::Not => {}
            },
            Start::Simple => {}
        }
    }

    /// Variable of a `for`, and whether words follow.
    fn for_head(&mut self) -> Compound<'s> {
        self.skip_blanks();
        let second = self.joined(self.pos + 1);
        if self.byte(self.pos) == b'(' && self.byte(second) == b'(' {
            self.pos = second + 1;
            return Compound::ArithmeticFor { header: None };
        }
        let start = self.pos;
        while !self.is_break(self.pos) {
            self.pos += 1;
        }
        if self.pos == start {
            self.unexpected(start, start + 1);
        }
        let variable = self.name(start, self.pos);
        self.skip_lines();
        let words = self.accept_in().then(Vec::new);
        let stage = if words.is_some() { ForStage::Words } else { ForStage::Body };
        Compound::For { variable, words, stage }
    }

    /// `function name`, with or without parentheses.
    fn function(&mut self, at: usize) {
        self.skip_blanks();
        let start = self.pos;
        while !self.is_break(self.pos) {
            self.pos += 1;
        }
        if self.pos == start {
            self.unexpected(start, start + 1);
        }
        let name = self.joined_slice(start, self.pos);
        self.skip_blanks();
        if self.byte(self.pos) == b'(' {
            let close = self.after_blanks(self.pos + 1);
            if self.byte(close) == b')' {
                self.pos = close + 1;
            }
        }
        self.push_named(at, Some(name));
    }

    /// Past blanks and line continuations.
    pub(super) fn after_blanks(&self, mut at: usize) -> usize {
        loop {
            at = self.joined(at);
            if !matches!(self.byte(at), b' ' | b'\t') {
                return at;
            }
            at += 1;
        }
    }

    /// The name of a coprocess, which only one that is a compound command has.
    fn skip_coproc_name(&mut self) {
        self.skip_blanks();
        let start = self.pos;
        let end = self.name_end(start);
        if end == start || self.keyword().is_some() {
            return;
        }
        self.pos = self.after_blanks(end);
        let is_compound = match self.command_start().0 {
            Start::Keyword(keyword) => {
                !matches!(keyword, Keyword::Closing(_) | Keyword::Time | Keyword::Not | Keyword::Function)
            }
            start => start != Start::Simple,
        };
        if self.pos == end || !is_compound {
            self.pos = start;
        }
    }

    pub(super) fn push_named(&mut self, start: usize, function: Option<Cow<'s, str>>) {
        self.depth += 1;
        self.frames.push(Frame::Named(NamedFrame { start, function, begun: false }));
    }

    /// Goes on with a function or coprocess.
    pub(super) fn named(&mut self, mut named: NamedFrame<'s>) {
        if let Value::Command(body) = std::mem::take(&mut self.value) {
            let kind = match named.function {
                Some(name) => CommandKind::Function { name, body },
                None => CommandKind::Coproc(body),
            };
            self.depth -= 1;
            let end = self.out.command_mut(body).span.end;
            let mut span = self.span(named.start, named.start);
            span.end = end.max(span.start);
            self.value = Value::Command(self.out.command(Command { kind, redirects: Vec::new(), span }));
            return;
        }
        if named.function.is_some() {
            self.skip_lines();
        } else {
            self.skip_blanks();
        }
        let at = self.pos;
        let (start, end) = self.command_start();
        let byte = self.byte(at);
        let has_none = named.begun
            || matches!(byte, b';' | b'|' | b')' | b'\n')
            || (byte == b'&' && self.byte(self.joined(at + 1)) != b'>')
            || at >= self.end
            || matches!(start, Start::Keyword(Keyword::Closing(_) | Keyword::Not | Keyword::Time));
        if has_none || (start.nests() && !self.may_nest(at)) {
            if has_none {
                self.unexpected(at, at + 1);
            }
            self.depth -= 1;
            let kind = CommandKind::Simple { assignments: Vec::new(), words: Vec::new() };
            return self.end_command(kind, Vec::new(), named.start, at);
        }
        if start == Start::Simple && named.function.is_some() {
            self.unexpected(at, at + 1);
        }
        named.begun = true;
        self.frames.push(Frame::Named(named));
        self.begin(start, end);
    }

    /// Ends a compound command but for its redirections.
    pub(super) fn end_compound(&mut self, kind: CommandKind<'s>, start: usize) {
        let tail = TailFrame { start, end: self.pos, kind, redirects: Vec::new(), awaits: None };
        self.tail(Box::new(tail));
    }

    /// Reads the redirections after a compound command.
    pub(super) fn tail(&mut self, mut tail: Box<TailFrame<'s>>) {
        if let Value::Word(target) = std::mem::take(&mut self.value)
            && let Some(redirection) = tail.awaits.take()
        {
            tail.end = self.pos;
            tail.redirects.push(self.redirect(redirection, target));
        }
        loop {
            self.skip_blanks();
            let Some(redirection) = self.redirection() else { break };
            match self.target(redirection) {
                Target::Done(redirect, end) => {
                    tail.redirects.push(redirect);
                    tail.end = end;
                }
                Target::Nested(redirection, word, nested) => {
                    tail.awaits = Some(redirection);
                    self.frames.push(Frame::Tail(tail));
                    return self.suspend(word, nested);
                }
            }
        }
        self.end_command(tail.kind, tail.redirects, tail.start, tail.end);
    }

    /// Hands a command to whoever waits for it.
    pub(super) fn end_command(
        &mut self,
        kind: CommandKind<'s>,
        redirects: Vec<Redirect<'s>>,
        start: usize,
        end: usize,
    ) {
        self.value = Value::Command(self.add_command(kind, redirects, start, end));
    }

    /// Puts a command into the tree.
    pub(super) fn add_command(
        &mut self,
        kind: CommandKind<'s>,
        redirects: Vec<Redirect<'s>>,
        start: usize,
        end: usize,
    ) -> CommandId {
        let span = self.span(start, end);
        self.out.command(Command { kind, redirects, span })
    }
}
