//! Substitutions in words: commands, backticks and arithmetic.

use super::REREAD_MAX;
use super::class::{self, NAME};
use super::frame::{BackticksFrame, Close, Ends, Frame, Open, Outside, Value, WordAwaits, WordFrame};
use super::machine::{Machine, Piece};
use super::word::Nested;
use crate::shell::ast::{List, ListId, Operation, Parameter, Part, SyntaxProblemKind};

impl<'s> Machine<'_, 's> {
    /// `$(…)`, `$((…))`, `${…}` or `$[…]`, whose bracket stands at `open`, the cursor being at the `$`.
    pub(super) fn bracketed(&mut self, word: &mut WordFrame<'s>, open: usize) -> Option<Nested<'s>> {
        let at = self.pos;
        let inner = self.joined(open + 1);
        let quoted = word.is_quoted();
        match self.byte(open) {
            b'(' if self.byte(inner) == b'(' && self.is_arithmetic(inner) => {
                self.pos = inner + 1;
                self.begin_arithmetic(word, at, Ends::Arithmetic)
            }
            b'[' => {
                self.pos = open + 1;
                self.begin_arithmetic(word, at, Ends::Index)
            }
            b'(' => {
                self.pos = open + 1;
                self.begin_command(word, open, Nested::Parenthesis(open))
            }
            // The output of commands that run in this very shell.
            _ if matches!(self.byte(inner), b' ' | b'\t' | b'\n' | b'|') => {
                self.pos = inner + 1;
                self.begin_command(word, open, Nested::Brace(open))
            }
            _ => {
                self.pos = open + 1;
                if let Some(part) = self.simple_parameter(quoted || word.ends.is_numeric()) {
                    self.out.nodes_left = self.out.nodes_left.saturating_sub(1);
                    word.add(part);
                    self.check_size();
                    return None;
                }
                if !self.may_nest(at) {
                    self.skip_braces();
                    word.add(unknown(quoted));
                    return None;
                }
                word.awaits = WordAwaits::Parameter;
                let frame = self.new_parameter(open, quoted || word.ends.is_numeric());
                Some(Nested::Parameter(Box::new(frame)))
            }
        }
    }

    /// Whether the two parentheses of which the inner one stands here are closed together.
    pub(super) fn is_arithmetic(&mut self, inner: usize) -> bool {
        let close = self.closing_parenthesis(inner);
        close.is_some_and(|close| self.byte(self.joined(close + 1)) == b')')
    }

    fn begin_arithmetic(&mut self, word: &mut WordFrame<'s>, at: usize, ends: Ends) -> Option<Nested<'s>> {
        if !self.may_nest(at) {
            self.stop(SyntaxProblemKind::TooDeep);
            return None;
        }
        word.awaits = WordAwaits::Arithmetic { is_old: ends == Ends::Index };
        Some(Nested::Expression(ends))
    }

    fn begin_command(
        &mut self,
        word: &mut WordFrame<'s>,
        open: usize,
        nested: Nested<'s>,
    ) -> Option<Nested<'s>> {
        if !self.may_nest(open) {
            match nested {
                Nested::Parenthesis(_) => self.skip_parentheses(open),
                _ => self.skip_braces(),
            }
            let body = self.empty_list();
            word.add(Part::Command { body, quoted: word.is_quoted() });
            return None;
        }
        word.awaits = WordAwaits::Command;
        Some(nested)
    }

    /// `$name`, `$1`, `$@` and the like, whose name begins at a place with this byte; and where it ends.
    pub(super) fn plain_parameter(&self, quoted: bool, at: usize, byte: u8) -> Option<(Part<'s>, usize)> {
        let end = match byte {
            b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' => at + 1,
            _ if class::is_name_start(byte) => self.joined_name_end(at),
            _ => return None,
        };
        let parameter = Parameter {
            name: self.joined_slice(at, end),
            indirect: false,
            length: false,
            empty_is_none: false,
            index: None,
            operation: Operation::None,
            quoted,
        };
        Some((Part::Parameter(Box::new(parameter)), end))
    }

    /// Past a name that line continuations may cut.
    pub(super) fn joined_name_end(&self, at: usize) -> usize {
        let mut end = self.name_end(at);
        loop {
            let next = self.joined(end);
            if next == end || !class::is(self.byte(next), NAME) {
                return end;
            }
            end = self.name_end(next);
        }
    }

    /// Begins what a word asked for.
    pub(super) fn descend(&mut self, nested: Nested<'s>) {
        match nested {
            Nested::Parenthesis(open) => self.push_list(Close::Parenthesis, open, true),
            Nested::Brace(open) => self.push_list(Close::Brace, open, true),
            Nested::Backticks { opened, close } => {
                let after = (close + 1).min(self.end);
                self.frames.push(Frame::Backticks(BackticksFrame { end: self.end, after }));
                self.end = close;
                self.reread += 1;
                self.push_list(Close::End, opened, true);
            }
            Nested::Expression(ends) => {
                self.depth += 1;
                self.frames.push(Frame::Word(WordFrame::new(self.pos, ends)));
            }
            Nested::Parameter(frame) => {
                self.depth += 1;
                self.frames.push(Frame::Parameter(frame));
            }
        }
    }

    /// Puts what was nested into its word.
    pub(super) fn take_nested(&mut self, word: &mut WordFrame<'s>) {
        let quoted = word.is_quoted();
        let awaits = std::mem::replace(&mut word.awaits, WordAwaits::Nothing);
        let part = match (awaits, std::mem::take(&mut self.value)) {
            (WordAwaits::Command, Value::List(body, _)) => Part::Command { body, quoted },
            (WordAwaits::Process { is_input }, Value::List(body, _)) => Part::Process { body, is_input },
            (WordAwaits::Arithmetic { is_old }, Value::Word(expression)) => {
                self.depth -= 1;
                self.end_arithmetic(is_old);
                Part::Arithmetic { expression, quoted }
            }
            (WordAwaits::Parameter, Value::Parameter(parameter)) => {
                self.depth -= 1;
                Part::Parameter(parameter)
            }
            _ => return,
        };
        self.out.nodes_left = self.out.nodes_left.saturating_sub(1);
        word.add(part);
    }

    /// Goes past what closes an arithmetic expression.
    pub(super) fn end_arithmetic(&mut self, is_old: bool) {
        let at = self.pos;
        let (close, times) = if is_old { (b']', 1) } else { (b')', 2) };
        for _ in 0..times {
            let next = self.joined(self.pos);
            if self.byte(next) == close {
                self.pos = next + 1;
            } else if self.pos >= self.end {
                return self.unterminated(at.saturating_sub(1));
            } else {
                return self.unexpected(self.pos, self.pos + 1);
            }
        }
    }

    /// An opening backtick at the cursor: reads up to its closing one.
    pub(super) fn backtick(&mut self, word: &mut WordFrame<'s>) -> Option<Nested<'s>> {
        let open = self.pos;
        let quoted = word.is_quoted();
        let (close, is_escaped) = self.closing_backtick(open, word.double);
        let is_nested_too_deep = self.reread >= REREAD_MAX && {
            self.problem(SyntaxProblemKind::TooDeep, open, open + 1);
            true
        };
        let after = (close + 1).min(self.end);
        if is_nested_too_deep || !self.may_nest(open) {
            self.pos = after;
            let body = self.empty_list();
            word.add(Part::Command { body, quoted });
            return None;
        }
        if !is_escaped {
            self.pos = open + 1;
            word.awaits = WordAwaits::Command;
            return Some(Nested::Backticks { opened: open, close });
        }
        let body = self.read_unescaped(open + 1, close, word.double);
        self.pos = after;
        word.add(Part::Command { body, quoted });
        self.check_size();
        None
    }

    /// Where the closing backtick stands, and whether backslashes before it have to be taken away.
    fn closing_backtick(&mut self, open: usize, in_double: bool) -> (usize, bool) {
        let mut at = open + 1;
        let mut is_escaped = false;
        while let Some(len) = memchr::memchr2(b'`', b'\\', &self.bytes[at.min(self.end)..self.end]) {
            at += len;
            if self.bytes[at] == b'`' {
                self.out.tick(at - open);
                return (at, is_escaped);
            }
            is_escaped |= is_backtick_escape(self.byte(at + 1), in_double);
            at += 2;
        }
        self.out.tick(self.end - open);
        self.unterminated(open);
        (self.end, is_escaped)
    }

    /// Reads what stands in backticks after taking its backslashes away, which makes it another text.
    ///
    /// This recurses, [`REREAD_MAX`] deep at most.
    fn read_unescaped(&mut self, start: usize, end: usize, in_double: bool) -> ListId {
        let mut text = String::with_capacity(end - start);
        let mut pieces = Vec::new();
        let mut run = start;
        let mut add = |from: usize, to: usize| {
            self.map_pieces(from, to, |at, source| pieces.push(Piece { at: text.len() + at, source }));
            text.push_str(&self.text[from..to]);
        };
        let mut at = start;
        while let Some(len) = memchr::memchr(b'\\', &self.bytes[at.min(end)..end]) {
            at += len;
            if at + 1 < end && is_backtick_escape(self.bytes[at + 1], in_double) {
                add(run, at);
                run = at + 1;
            }
            at += 2;
        }
        add(run, end);
        self.out.tick(end - start);
        let mut inner = Machine {
            text: &text,
            bytes: text.as_bytes(),
            pieces: &pieces,
            pos: 0,
            end: text.len(),
            out: std::mem::take(&mut self.out),
            frames: Vec::new(),
            value: Value::None,
            depth: self.depth,
            depth_max: self.depth_max,
            reread: self.reread + 1,
            pending: Vec::new(),
            deferred: Vec::new(),
            open: Open::default(),
            in_parentheses: false,
            parentheses: Default::default(),
        };
        let body = inner.run_text();
        self.out = inner.out;
        body
    }

    /// Ends a text in backticks that was read where it stands.
    pub(super) fn end_backticks(&mut self, frame: BackticksFrame) {
        self.reread -= 1;
        if !self.out.is_stopped {
            self.end = frame.end;
            self.pos = frame.after;
        }
    }

    /// Shuts out what is open around a substitution.
    pub(super) fn shut_out(&mut self, in_parentheses: bool) -> Outside {
        Outside {
            open: std::mem::take(&mut self.open),
            pending: std::mem::take(&mut self.pending),
            in_parentheses: std::mem::replace(&mut self.in_parentheses, in_parentheses),
        }
    }

    /// Lets it in again. Here-documents that the substitution left open come before those that were open already.
    pub(super) fn let_in(&mut self, outside: Outside, close: Close) {
        self.open = outside.open;
        if close == Close::End {
            // Their bodies would have to stand in the backticks.
            self.pending.clear();
        }
        self.pending.extend(outside.pending);
        self.in_parentheses = outside.in_parentheses;
    }

    /// Goes past what a parenthesis encloses without reading it.
    pub(super) fn skip_parentheses(&mut self, open: usize) {
        self.pos = match self.closing_parenthesis(open) {
            Some(close) => close + 1,
            None => self.end,
        };
    }

    /// Goes past a closing brace without reading what is before it.
    fn skip_braces(&mut self) {
        let mut depth = 1_usize;
        let start = self.pos;
        while depth > 0 && self.pos < self.end {
            match self.bytes[self.pos] {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b'\\' => self.pos += 1,
                _ => {}
            }
            self.pos += 1;
        }
        self.pos = self.ceil_boundary(self.pos).min(self.end);
        self.out.tick(self.pos - start);
    }

    pub(super) fn empty_list(&mut self) -> ListId {
        self.out.list(List::default())
    }
}

const fn is_backtick_escape(byte: u8, in_double: bool) -> bool {
    matches!(byte, b'`' | b'\\' | b'$') || in_double && byte == b'"'
}

/// Stands for a parameter that was not read.
fn unknown<'s>(quoted: bool) -> Part<'s> {
    let name = std::borrow::Cow::Borrowed("");
    let parameter = Parameter {
        name,
        indirect: false,
        length: false,
        index: None,
        operation: Operation::Other,
        empty_is_none: false,
        quoted,
    };
    Part::Parameter(Box::new(parameter))
}
