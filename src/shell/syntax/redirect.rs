//! Redirections.

use super::document::Pending;
use super::frame::{Ends, REDIRECTIONS, WordFrame};
use super::machine::Machine;
use super::word::{Lexed, Nested};
use crate::shell::ast::{Redirect, RedirectOperator, WordId};

/// A redirection up to its operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Redirection<'s> {
    start: usize,
    descriptor: Option<&'s str>,
    operator: RedirectOperator,
}

/// What came of reading its target.
#[derive(Debug)]
pub(super) enum Target<'s> {
    /// The redirection, and where it ends.
    Done(Redirect<'s>, usize),
    /// Its target needs something nested first.
    Nested(Redirection<'s>, WordFrame<'s>, Nested<'s>),
}

impl<'s> Machine<'_, 's> {
    /// Reads descriptor and operator, if a redirection begins at the cursor.
    pub(super) fn redirection(&mut self) -> Option<Redirection<'s>> {
        let start = self.pos;
        let first = self.byte(start);
        let (descriptor, at) = match first {
            b'<' | b'>' | b'&' => (None, start),
            b'0'..=b'9' => {
                let mut end = start;
                while self.byte(end).is_ascii_digit() {
                    end += 1;
                }
                (Some((start, end)), self.joined(end))
            }
            b'{' => {
                let end = self.name_end(start + 1);
                if end == start + 1 || self.byte(end) != b'}' {
                    return None;
                }
                (Some((start + 1, end)), self.joined(end + 1))
            }
            _ => return None,
        };
        let byte = self.byte(at);
        if !(matches!(byte, b'<' | b'>') || byte == b'&' && descriptor.is_none()) {
            return None;
        }
        let second = self.joined(at + 1);
        // `<(` is a word; so is `&`, but for `&>`.
        if byte == b'&' && self.byte(second) != b'>' || byte != b'&' && self.byte(second) == b'(' {
            return None;
        }
        let third = self.joined(second + 1);
        let text = [byte, self.byte(second), self.byte(third)];
        let (operator, len) = REDIRECTIONS
            .iter()
            .find(|(spelling, _)| text.starts_with(spelling))
            .map(|(spelling, operator)| (*operator, spelling.len()))?;
        self.pos = [at, second, third][len - 1] + 1;
        let descriptor = descriptor.map(|(start, end)| self.name(start, end));
        Some(Redirection { start, descriptor, operator })
    }

    /// Reads the target of a redirection.
    pub(super) fn target(&mut self, redirection: Redirection<'s>) -> Target<'s> {
        if redirection.operator == RedirectOperator::HereDocument {
            return self.here_document(redirection);
        }
        self.skip_blanks();
        let at = self.pos;
        match self.lex_new(Ends::Word) {
            Lexed::Done(target) => {
                if self.pos == at {
                    self.unexpected(at.saturating_sub(1), at);
                }
                Target::Done(self.redirect(redirection, target), self.pos)
            }
            Lexed::Nested(word, nested) => Target::Nested(redirection, word, nested),
        }
    }

    /// A redirection whose target was read.
    pub(super) fn redirect(&self, redirection: Redirection<'s>, target: WordId) -> Redirect<'s> {
        let Redirection { start, descriptor, operator } = redirection;
        Redirect { descriptor, operator, target, span: self.span(start, self.pos) }
    }

    /// Reads the delimiter of a here-document, whose body comes after the next newline.
    fn here_document(&mut self, redirection: Redirection<'s>) -> Target<'s> {
        let dash = self.joined(self.pos);
        let strip_tabs = self.byte(dash) == b'-';
        if strip_tabs {
            self.pos = dash + 1;
        }
        self.skip_blanks();
        let at = self.pos;
        let (delimiter, is_quoted) = self.delimiter();
        if self.pos == at {
            self.unexpected(at.saturating_sub(1), at);
        }
        let body = self.out.word(Vec::new(), self.span(self.pos, self.pos));
        let (depth, reread) = (self.depth, self.reread + 1);
        if self.pos > at {
            self.pending.push(Pending { body, delimiter, is_quoted, strip_tabs, depth, reread });
        }
        Target::Done(self.redirect(redirection, body), self.pos)
    }
}
