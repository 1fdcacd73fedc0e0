//! The machine that reads a text: its state, and the loop over its frames.

use super::balance::Parentheses;
use super::document::{Deferred, Pending};
use super::frame::{Close, Frame, ListFrame, Open, Value, WordFrame};
use super::output::Output;
use crate::shell::ast::{Ast, ListId, SyntaxProblemKind};
use crate::shell::limits::Limits;

/// Reads one text: the source, or what backticks hold once their backslashes are gone.
#[derive(Debug)]
pub(super) struct Machine<'t, 's> {
    pub(super) text: &'t str,
    pub(super) bytes: &'t [u8],
    /// Where the pieces of the text stand in the source. Without pieces the text is the source.
    pub(super) pieces: &'t [Piece],
    pub(super) pos: usize,
    /// Where reading ends: the end of the text or of a part of it.
    pub(super) end: usize,
    pub(super) out: Output<'s>,
    pub(super) frames: Vec<Frame<'s>>,
    pub(super) value: Value<'s>,
    /// Levels open.
    pub(super) depth: usize,
    pub(super) depth_max: usize,
    /// How many texts around this place were read before.
    pub(super) reread: u8,
    /// Here-documents whose bodies follow the next newline.
    pub(super) pending: Vec<Pending>,
    /// Bodies to be read when all else is done.
    pub(super) deferred: Vec<Deferred>,
    /// Lists open in the substitution that is being read.
    pub(super) open: Open,
    /// Whether that substitution ends with a parenthesis.
    pub(super) in_parentheses: bool,
    pub(super) parentheses: Parentheses,
}

/// A piece of a text that stands in the source as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Where it begins in the text.
    pub(super) at: usize,
    /// Where it begins in the source.
    pub(super) source: usize,
}

/// Reads a script; also tells the steps it took, which only tests count.
pub(super) fn read<'s>(source: &'s str, limits: &Limits) -> (Ast<'s>, u64) {
    let bytes_max = limits.bytes_max.min(u32::MAX as usize / 2);
    let kept = &source[..source.floor_char_boundary(bytes_max)];
    let mut machine = Machine {
        text: kept,
        bytes: kept.as_bytes(),
        pieces: &[],
        pos: 0,
        end: kept.len(),
        out: Output::new(kept, limits.steps_max),
        frames: Vec::with_capacity(8),
        value: Value::None,
        depth: 0,
        depth_max: limits.nesting_max,
        reread: 0,
        pending: Vec::new(),
        deferred: Vec::new(),
        open: Open::default(),
        in_parentheses: false,
        parentheses: Parentheses::default(),
    };
    if kept.len() < source.len() {
        machine.problem(SyntaxProblemKind::TooLarge, kept.len(), kept.len());
    }
    let root = machine.run_text();
    #[cfg(test)]
    let ticks = machine.out.ticks;
    #[cfg(not(test))]
    let ticks = 0;
    (machine.out.finish(root), ticks)
}

impl<'s> Machine<'_, 's> {
    /// Reads the whole text as a script, here-documents included.
    pub(super) fn run_text(&mut self) -> ListId {
        self.push_list(Close::End, self.pos, false);
        self.run();
        let root = match std::mem::take(&mut self.value) {
            Value::List(id, _) => id,
            _ => self.empty_list(),
        };
        self.read_deferred();
        root
    }

    /// Runs until no frame is left.
    pub(super) fn run(&mut self) {
        while let Some(frame) = self.frames.pop() {
            self.out.tick(1);
            match frame {
                Frame::List(frame) => self.list(frame),
                Frame::Simple(frame) => self.simple(frame),
                Frame::Word(frame) => self.word(frame),
                Frame::Parameter(frame) => self.parameter(frame),
                Frame::Array(frame) => self.array(frame),
                Frame::Compound(frame) => self.compound(frame),
                Frame::Tail(frame) => self.tail(frame),
                Frame::Named(frame) => self.named(frame),
                Frame::Backticks(frame) => self.end_backticks(frame),
            }
        }
    }

    /// Begins a list, one level deeper. A substitution's list shuts out what is open around it.
    pub(super) fn push_list(&mut self, close: Close, opened: usize, is_substitution: bool) {
        self.depth += 1;
        let outside = is_substitution.then(|| Box::new(self.shut_out(close == Close::Parenthesis)));
        if let Some(group) = close.group() {
            self.open[group] += 1;
        }
        self.frames.push(Frame::List(ListFrame::new(close, opened, outside)));
    }

    /// Puts a word that needs something nested back, and a frame for what it needs on top.
    pub(super) fn suspend(&mut self, word: WordFrame<'s>, nested: super::word::Nested<'s>) {
        self.frames.push(Frame::Word(word));
        self.descend(nested);
    }

    /// Whether one more level may be opened; if not, that is noted.
    pub(super) fn may_nest(&mut self, at: usize) -> bool {
        // The script itself is the first level.
        let may = self.depth <= self.depth_max;
        if !may {
            self.problem(SyntaxProblemKind::TooDeep, at, at + 1);
        }
        may
    }

    /// Ends the reading when the limit on the size of the tree is reached.
    #[inline]
    pub(super) fn check_size(&mut self) {
        if self.out.nodes_left == 0 {
            self.stop(SyntaxProblemKind::TooLarge);
        }
    }

    /// Ends the reading here: the rest counts as if it were not there.
    #[cold]
    pub(super) fn stop(&mut self, kind: SyntaxProblemKind) {
        if !self.out.is_stopped {
            self.problem(kind, self.pos, self.end);
            self.out.is_stopped = true;
        }
        self.end = self.end.min(self.pos);
    }

    /// Notes a problem between two places of the text.
    pub(super) fn problem(&mut self, kind: SyntaxProblemKind, start: usize, end: usize) {
        if self.out.has_enough(kind) {
            return;
        }
        let span = self.span(self.text.floor_char_boundary(start), self.ceil_boundary(end));
        self.out.problem(kind, span);
    }

    /// Notes that what begins here does not end, unless the text was cut off.
    pub(super) fn unterminated(&mut self, at: usize) {
        if !self.out.is_stopped {
            self.problem(SyntaxProblemKind::Unterminated, at, at + 1);
        }
    }

    /// Notes that a token has no place.
    pub(super) fn unexpected(&mut self, start: usize, end: usize) {
        if !self.out.is_stopped {
            self.problem(SyntaxProblemKind::Unexpected, start, end);
        }
    }
}
