//! `case`

use super::frame::{Close, Compound, CompoundFrame, Ends, Frame, Token, Value};
use super::keyword::Keyword;
use super::machine::Machine;
use super::word::Lexed;
use crate::shell::ast::CommandKind;

impl<'s> Machine<'_, 's> {
    /// Goes on with a `case`: its subject, then patterns and body of each arm.
    pub(super) fn case(&mut self, mut frame: Box<CompoundFrame<'s>>, value: Value<'s>) {
        let Compound::Case { subject, arms, patterns } = &mut frame.kind else { return };
        let mut is_arm_next = false;
        match value {
            Value::Word(word) if subject.is_none() => {
                *subject = Some(word);
                is_arm_next = true;
            }
            Value::Word(word) => patterns.push(word),
            Value::List(body, token) => {
                arms.push((std::mem::take(patterns), body));
                if token != Some(Token::ArmEnd) {
                    return self.end_case(*frame);
                }
                is_arm_next = true;
            }
            _ => {
                self.skip_blanks();
                match self.lex_new(Ends::Word) {
                    Lexed::Done(word) => {
                        *subject = Some(word);
                        is_arm_next = true;
                    }
                    Lexed::Nested(word, nested) => {
                        self.frames.push(Frame::Compound(frame));
                        return self.suspend(word, nested);
                    }
                }
            }
        }
        let is_first = is_arm_next && arms.is_empty();
        if is_first {
            self.skip_lines();
            if !self.accept_in() {
                self.no_place_in_case(frame.start);
                return self.end_case(*frame);
            }
        }
        if is_arm_next && !self.begin_arm() {
            return self.end_case(*frame);
        }
        self.patterns(frame, !is_arm_next);
    }

    /// Goes to the first pattern of the next arm; false if there is no other arm.
    fn begin_arm(&mut self) -> bool {
        self.skip_lines();
        if let Some((Keyword::Closing(Token::Esac), end)) = self.keyword() {
            self.pos = end;
            return false;
        }
        if self.peek() == Some(b'(') {
            self.pos += 1;
        }
        true
    }

    /// Reads patterns up to the parenthesis; the last of them may have been read already.
    fn patterns(&mut self, mut frame: Box<CompoundFrame<'s>>, mut has_read: bool) {
        let start = frame.start;
        let Compound::Case { patterns, .. } = &mut frame.kind else { return };
        loop {
            self.skip_blanks();
            if has_read {
                match self.peek() {
                    Some(b'|') => self.pos += 1,
                    Some(b')') => {
                        self.pos += 1;
                        self.frames.push(Frame::Compound(frame));
                        return self.push_list(Close::Arm, start, false);
                    }
                    _ => {
                        self.no_place_in_case(start);
                        return self.end_case(*frame);
                    }
                }
                self.skip_blanks();
            }
            let at = self.pos;
            match self.lex_new(Ends::Word) {
                Lexed::Done(word) => {
                    if self.pos == at {
                        self.no_place_in_case(start);
                    } else {
                        patterns.push(word);
                    }
                    has_read = true;
                }
                Lexed::Nested(word, nested) => {
                    self.frames.push(Frame::Compound(frame));
                    return self.suspend(word, nested);
                }
            }
        }
    }

    fn no_place_in_case(&mut self, start: usize) {
        if self.pos < self.end {
            self.unexpected(self.pos, self.pos + 1);
        } else {
            self.unterminated(start);
        }
    }

    fn end_case(&mut self, frame: CompoundFrame<'s>) {
        let start = frame.start;
        let Compound::Case { subject, mut arms, patterns } = frame.kind else { return };
        if !patterns.is_empty() {
            let body = self.empty_list();
            arms.push((patterns, body));
        }
        let subject = subject.unwrap_or_else(|| {
            let span = self.span(start, start);
            self.out.word(Vec::new(), span)
        });
        self.end_compound(CommandKind::Case { subject, arms }, start);
    }
}
