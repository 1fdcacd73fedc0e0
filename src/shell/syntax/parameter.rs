//! `${ … }`

use std::borrow::Cow;

use super::class::{self};
use super::frame::{Ends, Frame, Operator, ParameterAwaits, ParameterFrame, Value};
use super::machine::Machine;
use super::word::Lexed;
use crate::shell::ast::{Operation, Parameter, Part, ReplaceScope, WordId};

impl<'s> Machine<'_, 's> {
    /// `${name}`, the cursor being after the brace.
    pub(super) fn simple_parameter(&mut self, quoted: bool) -> Option<Part<'s>> {
        let start = self.pos;
        let end = self.name_end(start);
        if end == start || self.byte(end) != b'}' {
            return None;
        }
        self.pos = end + 1;
        let name = Cow::Borrowed(self.name(start, end));
        let operation = Operation::None;
        let parameter = Parameter {
            name,
            indirect: false,
            length: false,
            index: None,
            operation,
            empty_is_none: false,
            quoted,
        };
        Some(Part::Parameter(Box::new(parameter)))
    }

    /// Reads prefix and name, the cursor being after the brace at `opened`.
    pub(super) fn new_parameter(&mut self, opened: usize, quoted: bool) -> ParameterFrame<'s> {
        let mut frame = ParameterFrame {
            opened,
            name: Cow::Borrowed(""),
            indirect: false,
            length: false,
            empty_is_none: false,
            index: None,
            quoted,
            awaits: ParameterAwaits::Operator,
        };
        self.pos = self.joined(self.pos);
        let next = self.joined(self.pos + 1);
        match self.byte(self.pos) {
            b'!' if self.is_parameter_start(next) => {
                frame.indirect = true;
                self.pos = next;
            }
            b'#' if self.is_parameter_start(next) && self.is_length(next) => {
                frame.length = true;
                self.pos = next;
            }
            _ => {}
        }
        let start = self.pos;
        self.pos = match self.byte(start) {
            byte if class::is(byte, class::NAME) => self.joined_name_end(start),
            b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' => start + 1,
            _ => start,
        };
        frame.name = self.joined_slice(start, self.pos);
        frame
    }

    fn is_parameter_start(&self, at: usize) -> bool {
        let byte = self.byte(at);
        class::is(byte, class::NAME) || matches!(byte, b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')
    }

    /// Whether `#` before this place asks for a length: not in `${#-x}` and `${##x}`.
    fn is_length(&self, at: usize) -> bool {
        class::is(self.byte(at), class::NAME) || self.byte(self.joined(at + 1)) == b'}'
    }

    /// Goes on with a parameter.
    pub(super) fn parameter(&mut self, mut frame: Box<ParameterFrame<'s>>) {
        loop {
            let word = match std::mem::take(&mut self.value) {
                Value::Word(id) => Some(id),
                _ => None,
            };
            let ends = match (frame.awaits, word) {
                (ParameterAwaits::Index, Some(index)) => {
                    frame.index = Some(index);
                    if self.peek() == Some(b']') {
                        self.pos += 1;
                    }
                    frame.awaits = ParameterAwaits::Operator;
                    continue;
                }
                (ParameterAwaits::Operand(operator), Some(first)) => match (operator, self.peek()) {
                    (Operator::Replace(_), Some(b'/')) => {
                        self.pos += 1;
                        frame.awaits = ParameterAwaits::Second(operator, first);
                        Ends::Braced
                    }
                    (Operator::Substring, Some(b':')) => {
                        self.pos += 1;
                        frame.awaits = ParameterAwaits::Second(operator, first);
                        Ends::Slice
                    }
                    _ => {
                        let operation = operation(operator, first, None, self.is_empty_word(first));
                        return self.end_parameter(*frame, operation);
                    }
                },
                (ParameterAwaits::Second(operator, first), Some(second)) => {
                    if self.peek() == Some(b':') {
                        // A third number: nothing that a shell could compute.
                        self.pos += 1;
                        frame.awaits = ParameterAwaits::Operand(Operator::Other);
                        Ends::Braced
                    } else {
                        let operation = operation(operator, first, Some(second), false);
                        return self.end_parameter(*frame, operation);
                    }
                }
                _ => match self.operator(&mut frame) {
                    Some(ends) => ends,
                    None => return self.end_parameter(*frame, Operation::None),
                },
            };
            let mut word = super::frame::WordFrame::new(self.pos, ends);
            // Double quotes around all of it do not quote a pattern.
            let is_pattern = match frame.awaits {
                ParameterAwaits::Operand(operator) => operator.is_pattern(),
                _ => false,
            };
            word.quoted = frame.quoted && ends == Ends::Braced && !is_pattern;
            match self.lex(word) {
                Lexed::Done(id) => self.value = Value::Word(id),
                Lexed::Nested(word, nested) => {
                    self.frames.push(Frame::Parameter(frame));
                    return self.suspend(word, nested);
                }
            }
        }
    }

    /// Reads an operator, and tells what ends the word after it; `None` when the parameter ends.
    fn operator(&mut self, frame: &mut ParameterFrame<'s>) -> Option<Ends> {
        self.pos = self.joined(self.pos);
        let second = self.joined(self.pos + 1);
        let (byte, after) = (self.byte(self.pos), self.byte(second));
        let both = byte == after;
        let (operator, end) = match (byte, after) {
            (b'}', _) => return None,
            _ if self.pos >= self.end => return None,
            (b'[', _) if frame.index.is_none() && !frame.name.is_empty() => {
                self.pos += 1;
                frame.awaits = ParameterAwaits::Index;
                return Some(Ends::Index);
            }
            (b':', b'-' | b'=' | b'?' | b'+') => {
                frame.empty_is_none = true;
                (conditional(after), second + 1)
            }
            (b'-' | b'=' | b'?' | b'+', _) => (conditional(byte), self.pos + 1),
            (b':', _) => (Operator::Substring, self.pos + 1),
            (b'#', _) => {
                (Operator::RemovePrefix { longest: both }, if both { second + 1 } else { self.pos + 1 })
            }
            (b'%', _) => {
                (Operator::RemoveSuffix { longest: both }, if both { second + 1 } else { self.pos + 1 })
            }
            (b'/', b'/') => (Operator::Replace(ReplaceScope::All), second + 1),
            (b'/', b'#') => (Operator::Replace(ReplaceScope::Prefix), second + 1),
            (b'/', b'%') => (Operator::Replace(ReplaceScope::Suffix), second + 1),
            (b'/', _) => (Operator::Replace(ReplaceScope::First), self.pos + 1),
            (b'^' | b',', _) => {
                let operator = Operator::Case { upper: byte == b'^', all: both };
                (operator, if both { second + 1 } else { self.pos + 1 })
            }
            (b'@', b'U' | b'L' | b'u') => {
                (Operator::Case { upper: after != b'L', all: after != b'u' }, second + 1)
            }
            _ => (Operator::Other, self.pos),
        };
        self.pos = end;
        frame.awaits = ParameterAwaits::Operand(operator);
        Some(match operator {
            Operator::Replace(_) => Ends::Pattern,
            Operator::Substring => Ends::Slice,
            _ => Ends::Braced,
        })
    }

    fn is_empty_word(&mut self, id: WordId) -> bool {
        self.out.word_mut(id).parts.is_empty()
    }

    fn end_parameter(&mut self, frame: ParameterFrame<'s>, operation: Operation) {
        match self.peek() {
            Some(b'}') => self.pos += 1,
            Some(_) => self.unexpected(self.pos, self.pos + 1),
            None => self.unterminated(frame.opened),
        }
        self.value = Value::Parameter(Box::new(Parameter {
            name: frame.name,
            indirect: frame.indirect,
            length: frame.length,
            index: frame.index,
            operation,
            empty_is_none: frame.empty_is_none,
            quoted: frame.quoted,
        }));
    }
}

impl Operator {
    /// Whether its word is a pattern.
    const fn is_pattern(self) -> bool {
        matches!(
            self,
            Self::RemovePrefix { .. } | Self::RemoveSuffix { .. } | Self::Replace(_) | Self::Case { .. }
        )
    }
}

const fn conditional(byte: u8) -> Operator {
    match byte {
        b'-' => Operator::Default,
        b'=' => Operator::Assign,
        b'?' => Operator::Error,
        _ => Operator::Alternative,
    }
}

/// The operation that an operator and its words make.
const fn operation(operator: Operator, first: WordId, second: Option<WordId>, is_empty: bool) -> Operation {
    match operator {
        Operator::Default => Operation::Default(first),
        Operator::Assign => Operation::Assign(first),
        Operator::Error => Operation::Error(first),
        Operator::Alternative => Operation::Alternative(first),
        Operator::RemovePrefix { longest } => Operation::RemovePrefix { pattern: first, longest },
        Operator::RemoveSuffix { longest } => Operation::RemoveSuffix { pattern: first, longest },
        Operator::Replace(scope) => Operation::Replace { pattern: first, with: second, scope },
        Operator::Substring => Operation::Substring { offset: first, length: second },
        // A pattern that chooses characters is too rare to be told apart.
        Operator::Case { upper, all } if is_empty => Operation::Case { upper, all },
        Operator::Case { .. } | Operator::Other => Operation::Other,
    }
}
