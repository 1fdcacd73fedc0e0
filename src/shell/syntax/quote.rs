//! Backslashes and quotes in words.

use super::frame::{Ends, WordFrame};
use super::machine::Machine;
use super::word::Step;

impl<'s> Machine<'_, 's> {
    /// A backslash at the cursor.
    pub(super) fn backslash(&mut self, word: &mut WordFrame<'s>) {
        let at = self.pos;
        let continuation = self.continuation(at);
        if continuation > 0 {
            self.pos += continuation;
            return;
        }
        let next = self.byte(at + 1);
        let is_escape = if at + 1 >= self.end {
            false
        } else if word.double || word.quoted && !word.ends.is_numeric() {
            match next {
                b'$' | b'`' | b'\\' => true,
                b'"' => word.ends != Ends::Body,
                b'}' => !word.double && word.ends != Ends::Body,
                b'/' => word.ends == Ends::Pattern,
                _ => false,
            }
        } else {
            true
        };
        word.double_is_empty = false;
        if !is_escape {
            self.pos += 1;
            return self.add_quoted(&mut word.parts, at, self.pos);
        }
        let end = self.ceil_boundary(at + 2);
        self.pos = end;
        if next != 0 {
            self.add_quoted(&mut word.parts, at + 1, end);
        }
    }

    /// A double quote at the cursor, which opens or closes.
    pub(super) fn double_quote(&mut self, word: &mut WordFrame<'s>) {
        if word.double && word.double_is_empty {
            self.add_quoted(&mut word.parts, 0, 0);
        }
        word.double = !word.double;
        word.double_is_empty = word.double;
        word.double_at = self.pos;
        self.pos += 1;
    }

    /// A single quote at the cursor, up to the one that closes it.
    pub(super) fn single_quote(&mut self, word: &mut WordFrame<'s>, run: usize) -> Step<'s> {
        let at = self.pos;
        // In `"${x-it's}"` it means itself.
        if word.quoted && word.ends == Ends::Braced {
            return Step::Text;
        }
        let rest = &self.bytes[at + 1..self.end];
        let len = memchr::memchr(b'\'', rest);
        self.out.tick(len.unwrap_or(rest.len()));
        let close = match len {
            Some(len) => at + 1 + len,
            // Numbers such as `16#a'` are wrong in other ways.
            None if word.ends.is_numeric() => return Step::Text,
            None => {
                self.unterminated(at);
                self.end
            }
        };
        self.add_text(word, run, at);
        self.add_quoted_raw(&mut word.parts, at + 1, close);
        self.pos = (close + 1).min(self.end);
        Step::Read
    }
}
