//! Here-documents: their delimiters, where their bodies end, and what stands in them.

use super::REREAD_MAX;
use super::class::{self, BREAK};
use super::frame::{Ends, Frame, Value, WordFrame};
use super::machine::Machine;
use crate::shell::ast::{SyntaxProblemKind, WordId};

/// A here-document whose body was not met yet.
#[derive(Debug)]
pub(super) struct Pending {
    /// The word that the body becomes.
    pub(super) body: WordId,
    pub(super) delimiter: Vec<u8>,
    pub(super) is_quoted: bool,
    pub(super) strip_tabs: bool,
    /// Levels open where it was announced.
    pub(super) depth: usize,
    /// How many texts around its body are read before it.
    pub(super) reread: u8,
}

/// A body with expansions, to be read later.
#[derive(Debug)]
pub(super) struct Deferred {
    pending: Pending,
    start: usize,
    end: usize,
}

impl<'s> Machine<'_, 's> {
    /// Reads a delimiter: a word in which nothing is expanded. Also tells whether any of it is quoted.
    pub(super) fn delimiter(&mut self) -> (Vec<u8>, bool) {
        let mut text = Vec::new();
        let mut is_quoted = false;
        let start = self.pos;
        while let Some(byte) = self.peek() {
            let at = self.pos;
            self.pos += 1;
            match byte {
                b'\\' if self.continuation(at) > 0 => self.pos = at + self.continuation(at),
                b'\\' => {
                    is_quoted = true;
                    text.extend(self.peek());
                    self.pos = (at + 2).min(self.end);
                }
                b'$' if matches!(self.byte(at + 1), b'\'' | b'"') => {}
                b'\'' | b'"' => {
                    is_quoted = true;
                    let rest = &self.bytes[at + 1..self.end];
                    let len = memchr::memchr(byte, rest).unwrap_or_else(|| {
                        self.unterminated(at);
                        rest.len()
                    });
                    text.extend_from_slice(&self.bytes[at + 1..at + 1 + len]);
                    self.pos = (at + 2 + len).min(self.end);
                }
                0 => {}
                _ if class::is(byte, BREAK) || (byte == b'\r' && self.is_line_end(at)) => {
                    self.pos = at;
                    break;
                }
                _ => text.push(byte),
            }
        }
        self.pos = self.ceil_boundary(self.pos).min(self.end);
        self.out.tick(self.pos - start);
        (text, is_quoted)
    }

    /// Goes past the bodies of all pending here-documents, the cursor being at the beginning of a line.
    pub(super) fn find_bodies(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            let start = self.pos;
            let (end, after) = self.find_end(&pending);
            self.pos = after;
            self.out.tick(after - start);
            let span = self.span(start, end);
            self.out.word_mut(pending.body).span = span;
            if pending.is_quoted {
                self.take_raw(&pending, start, end);
            } else {
                self.deferred.push(Deferred { pending, start, end });
            }
        }
    }

    /// Where the body ends, and where the text goes on after it.
    fn find_end(&self, pending: &Pending) -> (usize, usize) {
        let delimiter = &pending.delimiter[..];
        let mut at = self.pos;
        // Whether the line goes on from the one before it, so that it cannot be the delimiter.
        let mut is_continued = false;
        while at < self.end {
            let rest = &self.bytes[at..self.end];
            let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let mut line = &rest[..len];
            let next = (at + len + 1).min(self.end);
            let indent =
                if pending.strip_tabs { line.iter().take_while(|byte| **byte == b'\t').count() } else { 0 };
            line = &line[indent..];
            if !is_continued && line.starts_with(delimiter) {
                let after = &line[delimiter.len()..];
                if matches!(after, b"" | b"\r") {
                    return (at, next);
                }
                if self.in_parentheses && !after.is_empty() && memchr::memchr(b')', after).is_some() {
                    return (at, at + indent + delimiter.len());
                }
            }
            let slashes = line.iter().rev().take_while(|byte| **byte == b'\\').count();
            is_continued = !pending.is_quoted && slashes % 2 == 1;
            at = next;
        }
        (self.end, self.end)
    }

    /// Takes a body in which nothing is expanded.
    fn take_raw(&mut self, pending: &Pending, start: usize, end: usize) {
        let mut parts = std::mem::take(&mut self.out.word_mut(pending.body).parts);
        if !pending.strip_tabs {
            if start < end {
                self.add_quoted_raw(&mut parts, start, end);
            }
        } else {
            let mut at = start;
            while at < end {
                let len = memchr::memchr(b'\n', &self.bytes[at..end]).map_or(end - at, |len| len + 1);
                let tabs = self.bytes[at..at + len].iter().take_while(|byte| **byte == b'\t').count();
                self.add_quoted_raw(&mut parts, at + tabs, at + len);
                at += len;
            }
        }
        self.out.word_mut(pending.body).parts = parts;
    }

    /// Reads the bodies with expansions, and those in them.
    pub(super) fn read_deferred(&mut self) {
        while let Some(Deferred { pending, start, end }) = self.deferred.pop() {
            if pending.reread > REREAD_MAX {
                self.problem(SyntaxProblemKind::TooDeep, start, end);
            }
            if pending.reread > REREAD_MAX || self.out.is_stopped {
                self.take_raw(&pending, start, end);
                continue;
            }
            self.pending.clear();
            (self.pos, self.end) = (start, end);
            (self.depth, self.reread) = (pending.depth, pending.reread);
            let mut word = WordFrame::new(start, Ends::Body);
            word.strip_tabs = pending.strip_tabs;
            while word.strip_tabs && self.byte(self.pos) == b'\t' {
                self.pos += 1;
            }
            self.frames.push(Frame::Word(word));
            self.run();
            if let Value::Word(id) = std::mem::take(&mut self.value) {
                let parts = self.out.take_word(id).parts;
                self.out.word_mut(pending.body).parts = parts;
            }
        }
    }
}
