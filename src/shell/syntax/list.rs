//! Lists: pipelines, and what joins them.

use super::command::Start;
use super::frame::{Close, Expect, Frame, ListFrame, Outside, SimpleFrame, Token, Value};
use super::keyword::Keyword;
use super::machine::Machine;
use super::simple::Wanted;
use crate::shell::ast::{CommandId, Joint, List, Part, Pipeline, Redirect, RedirectOperator};

impl ListFrame {
    pub(super) fn new(close: Close, opened: usize, outside: Option<Box<Outside>>) -> Self {
        let (items, pipeline) = (Vec::new(), Pipeline::default());
        Self { items, pipeline, expect: Expect::Start, close, opened, outside }
    }

    /// Adds a command to the pipeline that is being read.
    fn add(&mut self, id: CommandId) {
        if self.pipeline.commands.capacity() == 0 {
            self.pipeline.commands.reserve_exact(1);
        }
        self.pipeline.commands.push(id);
        self.expect = Expect::Operator;
    }

    /// Ends the pipeline that is being read.
    fn flush(&mut self, joint: Joint) {
        let pipeline = std::mem::take(&mut self.pipeline);
        if !pipeline.commands.is_empty() || pipeline.negated || pipeline.timed {
            self.items.push((pipeline, joint));
        }
        self.expect = match joint {
            Joint::And | Joint::Or => Expect::Operand,
            Joint::Sequence | Joint::Background => Expect::Start,
        };
    }

    fn is_prefixed(&self) -> bool {
        self.pipeline.negated || self.pipeline.timed
    }

    /// Whether a shell takes it without a command in it.
    fn may_be_empty(&self) -> bool {
        self.outside.is_some() || matches!(self.close, Close::End | Close::Arm)
    }
}

/// How a list goes on.
enum Flow {
    On,
    /// It ends, with its token or without.
    End(Option<Token>),
    /// A command begins, whose first token ends there.
    Begin(Start, usize),
}

impl Machine<'_, '_> {
    /// Goes on with a list.
    pub(super) fn list(&mut self, mut list: ListFrame) {
        if let Value::Command(id) = std::mem::take(&mut self.value) {
            list.add(id);
        }
        loop {
            self.check_size();
            self.out.tick(1);
            self.skip_blanks();
            let flow = match self.peek() {
                None => {
                    if list.close != Close::End {
                        self.unterminated(list.opened);
                    }
                    Flow::End(None)
                }
                Some(byte) if list.expect == Expect::Operator => self.after_command(&mut list, byte),
                Some(byte) => self.before_command(&mut list, byte),
            };
            match flow {
                Flow::On => {}
                Flow::End(token) => return self.end_list(list, token),
                Flow::Begin(Start::Simple, _) => {
                    // Most commands need nothing nested, and so no frame.
                    let mut simple = SimpleFrame::new(self.pos);
                    match self.read_simple(&mut simple) {
                        Wanted::Nothing => {
                            let id = self.end_simple(simple);
                            list.add(id);
                        }
                        wanted => {
                            self.frames.push(Frame::List(list));
                            return self.wait_simple(Box::new(simple), wanted);
                        }
                    }
                }
                Flow::Begin(start, end) => {
                    self.frames.push(Frame::List(list));
                    return self.begin(start, end);
                }
            }
        }
    }

    /// What follows a command.
    fn after_command(&mut self, list: &mut ListFrame, byte: u8) -> Flow {
        let at = self.pos;
        let second = self.joined(at + 1);
        let after = self.byte(second);
        match (byte, after) {
            (b'\n', _) => {
                self.newline();
                list.flush(Joint::Sequence);
            }
            (b';', b';' | b'&') => return self.arm_end(list),
            (b';', _) => {
                self.pos = at + 1;
                list.flush(Joint::Sequence);
            }
            (b'&', b'&') => {
                self.pos = second + 1;
                list.flush(Joint::And);
            }
            (b'&', _) => {
                self.pos = at + 1;
                list.flush(Joint::Background);
            }
            (b'|', b'|') => {
                self.pos = second + 1;
                list.flush(Joint::Or);
            }
            (b'|', b'&') => {
                self.pos = second + 1;
                self.join_outputs(list, at);
                list.expect = Expect::Operand;
            }
            (b'|', _) => {
                self.pos = at + 1;
                list.expect = Expect::Operand;
            }
            (b')', _) => return self.closing(list, Token::Parenthesis, at + 1),
            _ => {
                if let Some((Keyword::Closing(token), end)) = self.keyword() {
                    return self.closing(list, token, end);
                }
                // Text after a compound command, or a parenthesis after a word: read as another command.
                self.unexpected(at, at + 1);
                list.flush(Joint::Sequence);
            }
        }
        Flow::On
    }

    /// Writes `|&` out as a redirection of the command before it.
    fn join_outputs(&mut self, list: &ListFrame, at: usize) {
        let Some(id) = list.pipeline.commands.last() else { return };
        let span = self.span(at, self.pos);
        let target = self.out.word(vec![Part::Bare("1")], span);
        let command = self.out.command_mut(*id);
        let operator = RedirectOperator::DuplicateOutput;
        command.redirects.push(Redirect { descriptor: Some("2"), operator, target, span });
        command.span.end = command.span.end.max(span.end);
    }

    /// Where a command may begin.
    fn before_command(&mut self, list: &mut ListFrame, byte: u8) -> Flow {
        let at = self.pos;
        match byte {
            b'\n' => {
                self.newline();
                if list.is_prefixed() && list.expect == Expect::Start {
                    list.flush(Joint::Sequence);
                }
            }
            b';' => {
                let after = self.byte(self.joined(at + 1));
                if matches!(after, b';' | b'&') {
                    return self.arm_end(list);
                }
                self.pos = at + 1;
                if !(list.is_prefixed() && list.expect == Expect::Start) {
                    self.unexpected(at, at + 1);
                }
                list.flush(Joint::Sequence);
            }
            b'&' if self.byte(self.joined(at + 1)) != b'>' => {
                self.pos = at + 1;
                self.unexpected(at, at + 1);
            }
            b'|' => {
                self.pos = at + 1;
                self.unexpected(at, at + 1);
            }
            b')' => return self.closing(list, Token::Parenthesis, at + 1),
            _ => return self.command_in(list),
        }
        Flow::On
    }

    /// A reserved word or a command.
    fn command_in(&mut self, list: &mut ListFrame) -> Flow {
        let at = self.pos;
        let (start, end) = self.command_start();
        match start {
            Start::Keyword(Keyword::Closing(token)) => return self.closing(list, token, end),
            Start::Keyword(Keyword::Not) => {
                self.pos = end;
                list.pipeline.negated = !list.pipeline.negated;
                return Flow::On;
            }
            Start::Keyword(Keyword::Time) => {
                self.pos = end;
                list.pipeline.timed = true;
                self.skip_time_option();
                return Flow::On;
            }
            _ => {}
        }
        if start.nests() && !self.may_nest(at) {
            // Without what opens it, what is in it is read as if it stood here.
            self.pos = end;
            return Flow::On;
        }
        Flow::Begin(start, end)
    }

    /// `-p` after `time`
    fn skip_time_option(&mut self) {
        self.skip_blanks();
        let option = &self.bytes[self.pos..self.end];
        if (option.starts_with(b"-p") || option.starts_with(b"--")) && self.is_break(self.pos + 2) {
            self.pos += 2;
        }
    }

    /// `;;`, `;&` or `;;&` at the cursor.
    fn arm_end(&mut self, list: &mut ListFrame) -> Flow {
        let second = self.joined(self.pos + 1);
        let third = self.joined(second + 1);
        let has_third = self.byte(second) == b';' && self.byte(third) == b'&';
        let end = if has_third { third + 1 } else { second + 1 };
        self.closing(list, Token::ArmEnd, end)
    }

    /// A token that ends this list, one around it, or none.
    fn closing(&mut self, list: &mut ListFrame, token: Token, end: usize) -> Flow {
        let at = self.pos;
        if list.close.accepts(token) {
            self.pos = end;
            return Flow::End(Some(token));
        }
        self.unexpected(at, end);
        if self.open[token.group()] > 0 {
            // It may end a list around this one, so this one ends without a token of its own.
            return Flow::End(None);
        }
        self.pos = end;
        list.flush(Joint::Sequence);
        Flow::On
    }

    fn end_list(&mut self, mut list: ListFrame, token: Option<Token>) {
        if list.expect == Expect::Operand {
            // An operator without its right side.
            self.unexpected(self.pos.saturating_sub(1), self.pos);
        }
        list.flush(Joint::Sequence);
        if list.items.is_empty() && token.is_some() && !list.may_be_empty() {
            self.unexpected(self.pos - 1, self.pos);
        }
        if let Some(group) = list.close.group() {
            self.open[group] -= 1;
        }
        if let Some(outside) = list.outside {
            self.let_in(*outside, list.close);
        }
        self.depth -= 1;
        let id = self.out.list(List { items: list.items });
        self.value = Value::List(id, token);
    }
}
