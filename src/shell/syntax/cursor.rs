//! Looking at the text, moving on in it, and taking pieces out of it.

use std::borrow::Cow;

use super::class::{self, BLANK, BREAK, NAME};
use super::machine::Machine;
use crate::shell::ast::{Part, Span};

impl<'s> Machine<'_, 's> {
    /// The byte at a place; 0 at the end, where NUL bytes of the text never matter.
    #[inline]
    pub(super) fn byte(&self, at: usize) -> u8 {
        if at < self.end { self.bytes[at] } else { 0 }
    }

    /// The byte at the cursor; `None` at the end.
    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        (self.pos < self.end).then(|| self.bytes[self.pos])
    }

    /// Past line continuations and NUL bytes, which count for nothing.
    #[inline]
    pub(super) fn joined(&self, mut at: usize) -> usize {
        loop {
            match self.byte(at) {
                b'\\' => match self.continuation(at) {
                    0 => return at,
                    len => at += len,
                },
                0 if at < self.end => at += 1,
                _ => return at,
            }
        }
    }

    /// Length of the line continuation that begins with the backslash at a place; 0 if it is none.
    #[inline]
    pub(super) fn continuation(&self, at: usize) -> usize {
        match self.byte(at + 1) {
            b'\n' => 2,
            b'\r' if self.byte(at + 2) == b'\n' => 3,
            _ => 0,
        }
    }

    /// Whether a carriage return ends a line here, in which case it is a blank.
    #[inline]
    pub(super) fn is_line_end(&self, at: usize) -> bool {
        let after = at + 1;
        after >= self.end || self.bytes[after] == b'\n'
    }

    /// Skips blanks and a comment, but no newline.
    #[inline]
    pub(super) fn skip_blanks(&mut self) {
        if self.byte(self.pos) == b' ' {
            self.pos += 1;
        }
        if self.pos < self.end && class::is(self.bytes[self.pos], BLANK) {
            self.skip_more_blanks();
        }
    }

    fn skip_more_blanks(&mut self) {
        let start = self.pos;
        loop {
            match self.byte(self.pos) {
                b' ' | b'\t' => self.pos += 1,
                b'\\' | 0 => {
                    let at = self.joined(self.pos);
                    if at == self.pos {
                        break;
                    }
                    self.pos = at;
                }
                b'\r' if self.is_line_end(self.pos) => self.pos += 1,
                b'#' => {
                    let rest = &self.bytes[self.pos..self.end];
                    self.pos += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                }
                _ => break,
            }
        }
        self.out.tick(self.pos - start);
    }

    /// Skips blanks, comments and newlines; here-documents after a newline as well.
    pub(super) fn skip_lines(&mut self) {
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'\n') {
                return;
            }
            self.newline();
        }
    }

    /// Goes past the newline at the cursor and the here-documents that follow it.
    pub(super) fn newline(&mut self) {
        self.pos += 1;
        if !self.pending.is_empty() {
            self.find_bodies();
        }
    }

    /// Whether no token goes on at a place.
    #[inline]
    pub(super) fn is_break(&self, at: usize) -> bool {
        let byte = self.byte(at);
        at >= self.end || class::is(byte, BREAK) || (byte == b'\r' && self.is_line_end(at))
    }

    /// Past the bytes of a name.
    pub(super) fn name_end(&self, mut at: usize) -> usize {
        while class::is(self.byte(at), NAME) {
            at += 1;
        }
        at
    }

    /// Where a place of the text stands in the source.
    fn source_at(&self, at: usize) -> usize {
        match self.pieces.partition_point(|piece| piece.at <= at).checked_sub(1) {
            Some(nth) => self.pieces[nth].source + (at - self.pieces[nth].at),
            None => at,
        }
    }

    /// A range of the source.
    #[inline]
    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        let end = end.min(self.bytes.len()).max(start.min(self.bytes.len()));
        let start = start.min(end);
        if self.pieces.is_empty() {
            return Span { start: start as u32, end: end as u32 };
        }
        // A backslash that was taken away after the range counts as part of it, so that ranges in ranges stay so.
        Span { start: self.source_at(start) as u32, end: self.source_at(end) as u32 }
    }

    /// The first place not before this one that does not cut a character.
    pub(super) fn ceil_boundary(&self, at: usize) -> usize {
        self.text.ceil_char_boundary(at)
    }

    /// The pieces of the source that a range of the text is made of.
    #[inline]
    fn each_piece(&self, start: usize, end: usize, mut found: impl FnMut(&'s str)) {
        let source = self.out.source;
        if self.pieces.is_empty() {
            return found(&source[start..end]);
        }
        let mut last = 0;
        let mut from = None;
        self.map_pieces(start, end, |at, source_at| {
            if let Some(from) = from.replace(source_at) {
                found(&source[from..from + (at - last)]);
            }
            last = at;
        });
        if let Some(from) = from {
            found(&source[from..from + (end - start - last)]);
        }
    }

    /// Where each piece of a range begins, counted from the start of the range and in the source.
    pub(super) fn map_pieces(&self, start: usize, end: usize, mut found: impl FnMut(usize, usize)) {
        if start >= end {
            return;
        }
        if self.pieces.is_empty() {
            return found(0, start);
        }
        let first = self.pieces.partition_point(|piece| piece.at <= start).saturating_sub(1);
        found(0, self.pieces[first].source + (start - self.pieces[first].at));
        for piece in self.pieces[first + 1..].iter().take_while(|piece| piece.at < end) {
            found(piece.at - start, piece.source);
        }
    }

    /// A name, which no backslash cuts.
    pub(super) fn name(&self, start: usize, end: usize) -> &'s str {
        let mut name = "";
        self.each_piece(start, end, |piece| name = if name.is_empty() { piece } else { name });
        name
    }

    /// A range as text without line continuations and NUL bytes.
    pub(super) fn joined_slice(&self, start: usize, end: usize) -> Cow<'s, str> {
        let mut text = Cow::Borrowed("");
        let (mut run, mut at) = (start, start);
        while at < end {
            let next = self.joined(at);
            if next > at {
                self.each_piece(run, at, |piece| append(&mut text, piece));
                run = next.min(end);
                at = next;
            } else {
                at += 1;
            }
        }
        self.each_piece(run, end, |piece| append(&mut text, piece));
        text
    }

    /// Adds text outside quotes to a word.
    #[inline]
    pub(super) fn add_bare(&self, parts: &mut Vec<Part<'s>>, start: usize, end: usize) {
        if start < end {
            self.each_piece(start, end, |piece| push(parts, Part::Bare(piece)));
        }
    }

    /// Adds text from quotes to a word, empty or not.
    pub(super) fn add_quoted(&self, parts: &mut Vec<Part<'s>>, start: usize, end: usize) {
        if start >= end {
            return add_quoted_text(parts, "");
        }
        self.each_piece(start, end, |piece| add_quoted_text(parts, piece));
    }

    /// Adds text from quotes, leaving NUL bytes out.
    pub(super) fn add_quoted_raw(&self, parts: &mut Vec<Part<'s>>, start: usize, end: usize) {
        let mut from = start;
        for nul in memchr::memchr_iter(0, &self.bytes[start..end]) {
            self.add_quoted(parts, from, start + nul);
            from = start + nul + 1;
        }
        self.add_quoted(parts, from, end);
    }
}

/// Adds text from quotes to a word.
pub(super) fn add_quoted_text<'s>(parts: &mut Vec<Part<'s>>, text: &'s str) {
    match parts.last_mut() {
        Some(Part::Quoted(before)) => append(before, text),
        _ => push(parts, Part::Quoted(Cow::Borrowed(text))),
    }
}

fn append<'s>(text: &mut Cow<'s, str>, more: &'s str) {
    if text.is_empty() {
        *text = Cow::Borrowed(more);
    } else if !more.is_empty() {
        text.to_mut().push_str(more);
    }
}

/// Most words have one part, so the first one makes room for one only.
pub(super) fn push<'s>(parts: &mut Vec<Part<'s>>, part: Part<'s>) {
    if parts.capacity() == 0 {
        parts.reserve_exact(1);
    }
    parts.push(part);
}
