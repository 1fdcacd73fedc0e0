//! Compound commands but for `case`.

use super::frame::{Close, Compound, CompoundFrame, Ends, ForStage, Frame, Token, Value, WordFrame};
use super::keyword::Keyword;
use super::machine::Machine;
use super::word::{Lexed, Nested};
use crate::shell::ast::{CommandKind, ListId, Part, WordId};

impl<'s> Machine<'_, 's> {
    /// Goes on with a compound command.
    pub(super) fn compound(&mut self, mut frame: Box<CompoundFrame<'s>>) {
        let start = frame.start;
        match (&mut frame.kind, std::mem::take(&mut self.value)) {
            (Compound::Subshell, Value::List(body, _)) => {
                self.end_compound(CommandKind::Subshell(body), start)
            }
            (Compound::Group, Value::List(body, _)) => self.end_compound(CommandKind::Group(body), start),
            (Compound::Arithmetic, Value::Word(expression)) => {
                self.depth -= 1;
                self.end_arithmetic(false);
                self.end_compound(CommandKind::Arithmetic(expression), start);
            }
            (Compound::If { .. }, Value::List(list, token)) => self.branch(frame, list, token),
            (Compound::Loop { until, condition }, Value::List(list, token)) => match (*condition, token) {
                (None, Some(_)) => {
                    *condition = Some(list);
                    self.frames.push(Frame::Compound(frame));
                    self.push_list(Close::Done, start, false);
                }
                (None, None) => {
                    let (until, body) = (*until, self.empty_list());
                    self.end_compound(CommandKind::Loop { until, condition: list, body }, start);
                }
                (Some(condition), _) => {
                    let kind = CommandKind::Loop { until: *until, condition, body: list };
                    self.end_compound(kind, start);
                }
            },
            (Compound::For { variable, words, stage: ForStage::Body }, Value::List(body, _)) => {
                let kind = CommandKind::For { variable, words: words.take(), body };
                self.end_compound(kind, start);
            }
            (Compound::For { words, stage, .. }, value) => {
                if let (Value::Word(word), Some(words)) = (value, words.as_mut()) {
                    words.push(word);
                }
                if *stage == ForStage::Words {
                    return self.for_words(frame);
                }
                self.loop_body(frame);
            }
            (Compound::ArithmeticFor { header: Some(header) }, Value::List(body, _)) => {
                let kind = CommandKind::ArithmeticFor { header: *header, body };
                self.end_compound(kind, start);
            }
            (Compound::ArithmeticFor { header }, Value::Word(word)) => {
                *header = Some(word);
                self.depth -= 1;
                self.end_arithmetic(false);
                self.loop_body(frame);
            }
            (Compound::ArithmeticFor { .. }, _) => {
                self.frames.push(Frame::Compound(frame));
                self.descend(Nested::Expression(Ends::Arithmetic));
            }
            (Compound::Case { .. }, value) => self.case(frame, value),
            (Compound::Test { words, .. }, value) => {
                if let Value::Word(word) = value {
                    words.push(word);
                }
                self.test(frame);
            }
            // What a frame did not wait for does not come.
            (_, _) => {}
        }
    }

    /// A condition or body of an `if`.
    fn branch(&mut self, mut frame: Box<CompoundFrame<'s>>, list: ListId, token: Option<Token>) {
        let start = frame.start;
        let Compound::If { branches, condition, in_else } = &mut frame.kind else { return };
        if *in_else {
            let branches = std::mem::take(branches);
            return self.end_compound(CommandKind::If { branches, otherwise: Some(list) }, start);
        }
        let close = match (condition.take(), token) {
            (None, Some(_)) => {
                *condition = Some(list);
                Close::Branch
            }
            (None, None) => {
                let body = self.empty_list();
                branches.push((list, body));
                let branches = std::mem::take(branches);
                return self.end_compound(CommandKind::If { branches, otherwise: None }, start);
            }
            (Some(condition), token) => {
                branches.push((condition, list));
                match token {
                    Some(Token::Elif) => Close::Then,
                    Some(Token::Else) => {
                        *in_else = true;
                        Close::Otherwise
                    }
                    _ => {
                        let branches = std::mem::take(branches);
                        return self.end_compound(CommandKind::If { branches, otherwise: None }, start);
                    }
                }
            }
        };
        self.frames.push(Frame::Compound(frame));
        self.push_list(close, start, false);
    }

    /// The words of a `for`.
    fn for_words(&mut self, mut frame: Box<CompoundFrame<'s>>) {
        let Compound::For { words: Some(words), stage, .. } = &mut frame.kind else { return };
        loop {
            self.skip_blanks();
            let at = self.pos;
            if at >= self.end || matches!(self.bytes[at], b';' | b'\n') {
                break;
            }
            match self.lex_new(Ends::Word) {
                Lexed::Done(word) if self.pos > at => words.push(word),
                Lexed::Done(_) => {
                    self.unexpected(at, at + 1);
                    break;
                }
                Lexed::Nested(word, nested) => {
                    self.frames.push(Frame::Compound(frame));
                    return self.suspend(word, nested);
                }
            }
        }
        *stage = ForStage::Body;
        self.loop_body(frame);
    }

    /// `do … done` or `{ … }` of a `for`.
    fn loop_body(&mut self, frame: Box<CompoundFrame<'s>>) {
        self.skip_blanks();
        if self.peek() == Some(b';') {
            self.pos += 1;
        }
        self.skip_lines();
        let start = frame.start;
        let close = match self.keyword() {
            Some((Keyword::Closing(Token::Do), end)) => {
                self.pos = end;
                Close::Done
            }
            Some((Keyword::Brace, end)) => {
                self.pos = end;
                Close::Brace
            }
            _ => {
                if self.pos < self.end {
                    self.unexpected(self.pos, self.pos + 1);
                } else {
                    self.unterminated(start);
                }
                let body = self.empty_list();
                let kind = match frame.kind {
                    Compound::For { variable, words, .. } => CommandKind::For { variable, words, body },
                    Compound::ArithmeticFor { header: Some(header) } => {
                        CommandKind::ArithmeticFor { header, body }
                    }
                    _ => CommandKind::Group(body),
                };
                return self.end_compound(kind, start);
            }
        };
        self.frames.push(Frame::Compound(frame));
        self.push_list(close, start, false);
    }

    /// The words of `[[ … ]]`, operators among them.
    fn test(&mut self, mut frame: Box<CompoundFrame<'s>>) {
        let start = frame.start;
        let Compound::Test { words, is_regex_next } = &mut frame.kind else { return };
        loop {
            self.skip_lines();
            let at = self.pos;
            let Some(byte) = self.peek() else {
                self.unterminated(start);
                break;
            };
            let ends = if *is_regex_next { Ends::Regex } else { Ends::Word };
            *is_regex_next = false;
            let second = self.joined(at + 1);
            let is_double = self.byte(second) == byte;
            match byte {
                b'&' | b'|' if is_double => {
                    words.push(self.operator_word(second + 1));
                    continue;
                }
                b'(' if ends == Ends::Word => {
                    words.push(self.operator_word(at + 1));
                    continue;
                }
                b'<' | b'>' if self.byte(second) != b'(' => {
                    words.push(self.operator_word(at + 1));
                    continue;
                }
                b')' => {
                    words.push(self.operator_word(at + 1));
                    continue;
                }
                b'&' | b'|' | b';' => {
                    self.unexpected(at, at + 1);
                    break;
                }
                _ => {}
            }
            match self.lex_new(ends) {
                Lexed::Done(word) => match self.literal(word) {
                    Some("]]") => break,
                    literal => {
                        *is_regex_next = literal == Some("=~");
                        words.push(word);
                    }
                },
                Lexed::Nested(word, nested) => {
                    self.frames.push(Frame::Compound(frame));
                    return self.suspend(word, nested);
                }
            }
        }
        let words = std::mem::take(words);
        self.end_compound(CommandKind::Test(words), start);
    }

    /// An operator of `[[ … ]]` from the cursor up to `end`, as a word.
    fn operator_word(&mut self, end: usize) -> WordId {
        let mut word = WordFrame::new(self.pos, Ends::Word);
        self.add_bare(&mut word.parts, self.pos, end);
        let span = self.span(self.pos, end);
        self.pos = end;
        self.check_size();
        self.out.word(word.parts, span)
    }

    /// The text of a word that has no quotes and expansions.
    fn literal(&mut self, word: WordId) -> Option<&'s str> {
        match self.out.word_mut(word).parts[..] {
            [Part::Bare(text)] => Some(text),
            _ => None,
        }
    }
}
