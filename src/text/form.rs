//! Blanks that forms and queries of URLs write as `+`.
//!
//! A plus is more often a plus, or part of base64: it is a blank only in the value of a named field of a query, amid
//! pieces as short as words, or where the same field has percent escapes too.

use super::hex;
use std::ops::Range;

/// Longest stretch without white space that is read as a query, in bytes.
const QUERY_MAX: usize = 4096;
/// Longest piece between two signs that is a word, in bytes, where nothing else tells.
const WORD_MAX: usize = 20;

/// The places of `+` that stand for a blank, in order.
pub(super) struct Blanks<'t> {
    text: &'t [u8],
    /// The values of fields are known up to here.
    at: usize,
    /// The value that is being read.
    value: Range<usize>,
}

impl<'t> Blanks<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self { text, at: 0, value: 0..0 }
    }

    /// The value that holds the sign at `plus`, if it is one of which each such sign is a blank.
    fn value_at(&self, plus: usize) -> Range<usize> {
        let text = self.text;
        let ends = |byte: &u8| {
            byte.is_ascii_whitespace()
                || matches!(byte, b'&' | b'=' | b'?' | b'"' | b'\'' | b'<' | b'>' | b'#')
        };
        let len = text[plus..].iter().take(QUERY_MAX).position(ends);
        let end = plus + len.unwrap_or_else(|| text[plus..].len().min(QUERY_MAX));
        let before = &text[self.at.max(plus.saturating_sub(QUERY_MAX))..plus];
        let lead = before.iter().rev().position(ends).unwrap_or(before.len());
        let start = plus - lead;
        if start == 0 || text[start - 1] != b'=' {
            return end..end;
        }
        let is_name =
            |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'[' | b']');
        let name = text[..start - 1].iter().rev().take(64).take_while(is_name).count();
        let sign = (start - 1 - name).checked_sub(1).map(|at| text[at]);
        let is_query = name > 0 && matches!(sign, Some(b'?' | b'&'));
        let value = &text[start..end];
        let is_escape =
            |at: usize| matches!(value[at..], [b'%', high, low, ..] if hex::byte(high, low).is_some());
        let is_escaped = memchr::memchr_iter(b'%', value).any(is_escape);
        let has_words = || value.split(|byte| *byte == b'+').all(|piece| piece.len() <= WORD_MAX);
        match name > 0 && (is_escaped || (is_query && has_words())) {
            true => start..end,
            false => end..end,
        }
    }
}

impl Iterator for Blanks<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            let plus = self.at + memchr::memchr(b'+', self.text.get(self.at..)?)?;
            if plus >= self.value.end {
                self.value = self.value_at(plus);
            }
            // A value that is none is not looked at again.
            self.at = (plus + 1).max(if self.value.is_empty() { self.value.end } else { 0 });
            if self.value.contains(&plus) {
                return Some(plus);
            }
        }
    }
}
