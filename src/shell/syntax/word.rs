//! Words: text, quotes and expansions up to what ends them.

use super::class::{self, ARITHMETIC, BODY, BRACED, DOUBLE, PATTERN, SLICE, WORD};
use super::cursor::push;
use super::frame::{Ends, ParameterFrame, Value, WordAwaits, WordFrame};
use super::machine::Machine;
use crate::shell::ast::{Part, WordId};

/// What came of reading on in a word.
#[derive(Debug)]
pub(super) enum Lexed<'s> {
    /// It is done.
    Done(WordId),
    /// It needs something nested first.
    Nested(WordFrame<'s>, Nested<'s>),
}

/// What a word may need.
#[derive(Debug)]
pub(super) enum Nested<'s> {
    /// A list up to a parenthesis, whose opener stands there.
    Parenthesis(usize),
    /// A list up to a brace, whose opener stands there.
    Brace(usize),
    /// A list up to the end of what stands in backticks, which goes on after the backtick there.
    Backticks { opened: usize, close: usize },
    /// An arithmetic expression or an index.
    Expression(Ends),
    /// `${ … }`
    Parameter(Box<ParameterFrame<'s>>),
}

impl Ends {
    const fn class(self) -> u16 {
        match self {
            Self::Word | Self::Regex => WORD,
            Self::Braced => BRACED,
            Self::Pattern => PATTERN,
            Self::Slice => SLICE,
            Self::Arithmetic | Self::Index => ARITHMETIC,
            Self::Body => BODY,
        }
    }

    /// Whether it is computed as a number, so that its text is bare and its expansions are not split.
    pub(super) const fn is_numeric(self) -> bool {
        matches!(self, Self::Arithmetic | Self::Index | Self::Slice)
    }
}

impl<'s> WordFrame<'s> {
    pub(super) fn new(start: usize, ends: Ends) -> Self {
        Self {
            start,
            parts: Vec::new(),
            ends,
            quoted: matches!(ends, Ends::Body),
            double: false,
            double_is_empty: false,
            double_at: start,
            depth: 0,
            questions: 0,
            is_argument: false,
            strip_tabs: false,
            awaits: WordAwaits::Nothing,
        }
    }

    /// Whether text and expansions at this place are quoted.
    pub(super) const fn is_quoted(&self) -> bool {
        self.double || self.quoted
    }

    /// Adds an expansion.
    pub(super) fn add(&mut self, part: Part<'s>) {
        self.double_is_empty = false;
        push(&mut self.parts, part);
    }
}

/// What to do with a special byte.
pub(super) enum Step<'s> {
    /// It is text.
    Text,
    /// It was read; the text goes on at the cursor.
    Read,
    /// It ends the word.
    End,
    Nested(Nested<'s>),
}

impl<'s> Machine<'_, 's> {
    /// Goes on with a word whose nested part is done.
    pub(super) fn word(&mut self, mut word: WordFrame<'s>) {
        self.take_nested(&mut word);
        match self.lex(word) {
            Lexed::Done(id) => self.value = Value::Word(id),
            Lexed::Nested(word, nested) => self.suspend(word, nested),
        }
    }

    /// Reads a word at the cursor.
    pub(super) fn lex_new(&mut self, ends: Ends) -> Lexed<'s> {
        if ends == Ends::Word
            && let Some(id) = self.plain_word()
        {
            return Lexed::Done(id);
        }
        self.lex(WordFrame::new(self.pos, ends))
    }

    /// Reads the word at the cursor if there is nothing but text in it, as in most of them.
    pub(super) fn plain_word(&mut self) -> Option<WordId> {
        self.check_size();
        let start = self.pos;
        let rest = &self.bytes[start..self.end];
        let len = rest.iter().position(|byte| class::is(*byte, WORD)).unwrap_or(rest.len());
        let is_plain = matches!(rest.get(len), None | Some(b' ' | b'\n' | b'\t' | b';' | b'&' | b'|' | b')'));
        if len == 0 || !is_plain || !self.pieces.is_empty() {
            return None;
        }
        self.out.tick(len + 1);
        self.pos = start + len;
        let span = self.span(start, self.pos);
        let parts = vec![Part::Bare(&self.out.source[start..self.pos])];
        Some(self.out.word(parts, span))
    }

    /// Reads on in a word, up to its end or up to something nested.
    pub(super) fn lex(&mut self, mut word: WordFrame<'s>) -> Lexed<'s> {
        self.check_size();
        loop {
            let run = self.pos;
            let step = loop {
                let class = if word.double { DOUBLE } else { word.ends.class() };
                let rest = &self.bytes[self.pos..self.end];
                let plain = rest.iter().position(|byte| class::is(*byte, class)).unwrap_or(rest.len());
                self.out.tick(plain + 1);
                self.pos += plain;
                let Some(byte) = self.peek() else { break Step::End };
                let at = self.pos;
                match self.special(&mut word, run, byte) {
                    Step::Text => self.pos = at + 1,
                    step => break step,
                }
            };
            match step {
                Step::Text | Step::Read => {}
                Step::End => {
                    self.add_text(&mut word, run, self.pos);
                    return Lexed::Done(self.end_word(word));
                }
                Step::Nested(nested) => return Lexed::Nested(word, nested),
            }
        }
    }

    /// Adds plain text as the place asks for it.
    pub(super) fn add_text(&self, word: &mut WordFrame<'s>, start: usize, end: usize) {
        if start >= end {
            return;
        }
        word.double_is_empty = false;
        if word.double || word.quoted && !word.ends.is_numeric() {
            self.add_quoted(&mut word.parts, start, end);
        } else {
            self.add_bare(&mut word.parts, start, end);
        }
    }

    fn end_word(&mut self, mut word: WordFrame<'s>) -> WordId {
        if word.double {
            self.unterminated(word.double_at);
            if word.double_is_empty {
                self.add_quoted(&mut word.parts, 0, 0);
            }
        } else if word.depth > 0 && self.pos >= self.end && matches!(word.ends, Ends::Word | Ends::Regex) {
            self.unterminated(word.start);
        }
        let span = self.span(word.start, self.pos);
        self.out.word(word.parts, span)
    }

    /// Looks at a byte that is not plain text here. Unless it is text or ends the word, the text before it, which
    /// begins at `run`, was added.
    fn special(&mut self, word: &mut WordFrame<'s>, run: usize, byte: u8) -> Step<'s> {
        let at = self.pos;
        match byte {
            b'\\' => {
                self.add_text(word, run, at);
                self.backslash(word);
                Step::Read
            }
            0 => {
                self.add_text(word, run, at);
                self.pos += 1;
                Step::Read
            }
            b'$' => self.dollar(word, run),
            b'`' => {
                self.add_text(word, run, at);
                self.backtick(word).map_or(Step::Read, Step::Nested)
            }
            b'"' => {
                self.add_text(word, run, at);
                self.double_quote(word);
                Step::Read
            }
            b'\'' => self.single_quote(word, run),
            _ => self.structural(word, run, byte),
        }
    }

    /// Bytes that are neither quotes nor `$`.
    fn structural(&mut self, word: &mut WordFrame<'s>, run: usize, byte: u8) -> Step<'s> {
        let at = self.pos;
        match (word.ends, byte) {
            (Ends::Word | Ends::Regex | Ends::Braced | Ends::Pattern, b'<' | b'>')
                if !word.quoted && self.byte(self.joined(at + 1)) == b'(' =>
            {
                self.add_text(word, run, at);
                self.process(word, byte)
            }
            (Ends::Braced | Ends::Pattern, b'<' | b'>') => Step::Text,
            (Ends::Braced, _) => Step::End,
            (Ends::Pattern, b'/') if at == word.start => Step::Text,
            (Ends::Pattern, _) => Step::End,
            (Ends::Slice, b'}') => Step::End,
            (Ends::Slice, b':') if word.questions == 0 && word.depth == 0 => Step::End,
            (Ends::Slice, _) => {
                match byte {
                    b'?' => word.questions += 1,
                    b':' => word.questions = word.questions.saturating_sub(1),
                    b'(' => word.depth += 1,
                    _ => word.depth = word.depth.saturating_sub(1),
                }
                Step::Text
            }
            (Ends::Arithmetic, b')') | (Ends::Index, b']') if word.depth == 0 => Step::End,
            (Ends::Arithmetic, _) => nest(word, byte, b'(', b')'),
            (Ends::Index, _) => nest(word, byte, b'[', b']'),
            (Ends::Body, _) => {
                // A newline: tabs after it may have to go.
                self.pos += 1;
                self.add_text(word, run, self.pos);
                while word.strip_tabs && self.byte(self.pos) == b'\t' {
                    self.pos += 1;
                }
                Step::Read
            }
            (Ends::Word | Ends::Regex, b'(') if self.is_text_parenthesis(word, run) => {
                word.depth += 1;
                Step::Text
            }
            (Ends::Word | Ends::Regex, b')') if word.depth > 0 => {
                word.depth -= 1;
                Step::Text
            }
            (Ends::Regex, b'|') => Step::Text,
            (Ends::Word | Ends::Regex, b'\r') if word.depth == 0 && !self.is_line_end(at) => Step::Text,
            (Ends::Word | Ends::Regex, _) if word.depth > 0 => Step::Text,
            (Ends::Word | Ends::Regex, _) => Step::End,
        }
    }

    /// Whether the parenthesis at the cursor is text: of a pattern such as `@(a|b)`, of a regular expression, or of an
    /// array after `declare`.
    fn is_text_parenthesis(&mut self, word: &WordFrame<'s>, run: usize) -> bool {
        if word.depth > 0 || word.ends == Ends::Regex {
            return true;
        }
        let is_opened = match self.pos.checked_sub(1).filter(|before| *before >= run).map(|at| self.bytes[at])
        {
            Some(b'@' | b'!' | b'?' | b'*' | b'+') => true,
            Some(b'=') => word.is_argument,
            _ => false,
        };
        is_opened && self.closing_parenthesis(self.pos).is_some()
    }

    /// `$` and what follows it.
    fn dollar(&mut self, word: &mut WordFrame<'s>, run: usize) -> Step<'s> {
        let at = self.pos;
        let next = self.joined(at + 1);
        match self.byte(next) {
            b'\'' if !word.is_quoted() => {
                self.add_text(word, run, at);
                self.ansi_quote(word, next);
                Step::Read
            }
            b'"' if !word.is_quoted() => {
                self.add_text(word, run, at);
                self.pos = next;
                self.double_quote(word);
                Step::Read
            }
            b'(' | b'{' | b'[' => {
                self.add_text(word, run, at);
                self.bracketed(word, next).map_or(Step::Read, Step::Nested)
            }
            byte => match self.plain_parameter(word.is_quoted() || word.ends.is_numeric(), next, byte) {
                Some((part, end)) => {
                    self.add_text(word, run, at);
                    self.out.nodes_left = self.out.nodes_left.saturating_sub(1);
                    word.add(part);
                    self.pos = end;
                    self.check_size();
                    Step::Read
                }
                None => Step::Text,
            },
        }
    }
}

/// Counts brackets that nest in a word.
fn nest<'s>(word: &mut WordFrame<'s>, byte: u8, open: u8, close: u8) -> Step<'s> {
    if byte == open {
        word.depth += 1;
    } else if byte == close {
        word.depth = word.depth.saturating_sub(1);
    }
    Step::Text
}

impl<'s> Machine<'_, 's> {
    /// `<( … )` and `>( … )`
    fn process(&mut self, word: &mut WordFrame<'s>, byte: u8) -> Step<'s> {
        let open = self.joined(self.pos + 1);
        self.pos = open + 1;
        if !self.may_nest(open) {
            self.skip_parentheses(open);
            let body = self.empty_list();
            word.add(Part::Process { body, is_input: byte == b'<' });
            return Step::Read;
        }
        word.awaits = WordAwaits::Process { is_input: byte == b'<' };
        Step::Nested(Nested::Parenthesis(open))
    }
}
