//! Builds the fields that a word becomes: joins pieces, splits unquoted values.

use std::ops::Range;

use super::super::argument::{Argument, HOLE};

/// See the module.
pub(super) struct Fields<'o> {
    out: &'o mut Vec<Argument>,
    current: Argument,
    /// Whether the current field exists even if it is empty.
    is_present: bool,
    has_star: bool,
    has_bracket: bool,
    separators: Option<String>,
}

impl<'o> Fields<'o> {
    /// Fields of a word at this span. `separators` stands for `$IFS` where it is not the usual one.
    pub fn new(out: &'o mut Vec<Argument>, span: Range<usize>, separators: Option<String>) -> Self {
        Self {
            out,
            current: Argument { span, ..Argument::default() },
            is_present: false,
            has_star: false,
            has_bracket: false,
            separators,
        }
    }

    /// Text of the script itself.
    pub fn literal(&mut self, text: &str, quoted: bool) {
        self.is_present |= quoted || !text.is_empty();
        if !quoted {
            self.mark_globs(text);
        }
        self.current.text.push_str(text);
    }

    /// Text that stood in quotes, in a pattern.
    pub fn escaped(&mut self, text: &str) {
        self.is_present = true;
        for c in text.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '\\' | '-' | '!' | '^') {
                self.current.text.push('\\');
            }
            self.current.text.push(c);
        }
    }

    /// A variable that nothing is known of comes next.
    pub fn unset(&mut self) {
        self.current.begins_unset |= self.current.text.is_empty();
    }

    /// A value that is not split. Globs in it expanded when it was made, as in `set -- *`.
    pub fn value(&mut self, value: &Argument) {
        self.is_present = true;
        self.has_star |= value.has_glob;
        self.current.text.push_str(&value.text);
        self.current.absorb(value);
    }

    /// A value that is split at `$IFS`.
    pub fn split(&mut self, value: &Argument) {
        let separators = self.separators.take();
        let is_separator = |c: char| match &separators {
            None => matches!(c, ' ' | '\t' | '\n'),
            Some(list) => list.contains(c),
        };
        let mut rest = value.text.as_str();
        // Whether blanks ended a field just now: another separator behind them belongs to them.
        let mut after_blank = false;
        while !rest.is_empty() {
            let end = rest.find(is_separator).unwrap_or(rest.len());
            let piece = &rest[..end];
            if !piece.is_empty() {
                after_blank = false;
                self.mark_globs(piece);
                self.is_present = true;
                self.current.text.push_str(piece);
                if piece.contains(HOLE) {
                    self.current.absorb(value);
                }
            }
            if end < rest.len() {
                let separator = rest[end..].chars().next().unwrap_or(' ');
                let is_blank = matches!(separator, ' ' | '\t' | '\n');
                if is_blank {
                    after_blank |= self.is_present;
                    self.end_field();
                } else if after_blank {
                    after_blank = false;
                } else {
                    // Any other separator ends a field even if there is nothing in it.
                    self.is_present = true;
                    self.end_field();
                }
                rest = &rest[end + separator.len_utf8()..];
            } else {
                rest = "";
            }
        }
        self.separators = separators;
    }

    /// Ends the current field, if there is one.
    pub fn end_field(&mut self) {
        if self.is_present {
            let next = Argument { span: self.current.span.clone(), ..Argument::default() };
            let mut field = std::mem::replace(&mut self.current, next);
            field.has_glob = self.has_star || (self.has_bracket && field.text.contains(']'));
            self.out.push(field);
        }
        self.is_present = false;
        self.has_star = false;
        self.has_bracket = false;
    }

    /// Whether the current field holds text already, and its last character.
    pub fn last_char(&self) -> Option<char> {
        self.current.text.chars().next_back()
    }

    /// Ends the last field. `always`: even if there is nothing in it.
    pub fn finish(mut self, always: bool) {
        self.is_present |= always;
        self.end_field();
    }

    fn mark_globs(&mut self, text: &str) {
        let mut before = b' ';
        for byte in text.bytes() {
            match byte {
                b'*' | b'?' => self.has_star = true,
                b'[' => self.has_bracket = true,
                // `!(x)`, `@(x)`, `+(x)`
                b'(' if matches!(before, b'!' | b'@' | b'+') => self.has_star = true,
                _ => {}
            }
            before = byte;
        }
    }
}
