//! Which parenthesis closes which: what tells `$((1))` from `$((a) | b)` before either is read.

use super::machine::Machine;

/// Stands where there is no parenthesis.
const NONE: u32 = u32::MAX;

/// Parentheses already matched, so that no stretch of text is searched again and again.
#[derive(Debug, Default)]
pub(super) struct Parentheses {
    /// Each opening one and where its closing one stands, in the order of the opening ones.
    pairs: Vec<(u32, u32)>,
    /// The pair that was asked for last: the next question is mostly about one soon after it.
    last: usize,
}

impl Parentheses {
    fn get(&mut self, open: u32) -> Option<u32> {
        for nth in self.last..self.pairs.len().min(self.last + 4) {
            if self.pairs[nth].0 == open {
                self.last = nth;
                return Some(self.pairs[nth].1);
            }
        }
        self.last = self.pairs.binary_search_by_key(&open, |pair| pair.0).ok()?;
        Some(self.pairs[self.last].1)
    }
}

impl Machine<'_, '_> {
    /// Where the parenthesis that opens at a place is closed, as far as quotes and backslashes tell.
    ///
    /// Every parenthesis on the way is remembered. What quotes hid on the way is searched anew, out of a budget that is
    /// linear in the source; without budget there is no answer.
    pub(super) fn closing_parenthesis(&mut self, open: usize) -> Option<usize> {
        let close = match self.parentheses.get(open as u32) {
            Some(close) => close as usize,
            None => self.match_parentheses(open) as usize,
        };
        (close < self.end).then_some(close)
    }

    fn match_parentheses(&mut self, open: usize) -> u32 {
        // What quotes hid from an earlier search is not kept: an insertion between others would cost too much.
        let is_kept = self.parentheses.pairs.last().is_none_or(|last| (last.0 as usize) < open);
        let mut pairs = if is_kept { std::mem::take(&mut self.parentheses.pairs) } else { Vec::new() };
        let first = pairs.len();
        // An open one holds the number of the open one around it, until its closing one is met.
        let mut innermost = NONE;
        let mut unclosed = [false; 3];
        let mut at = open;
        let limit = self.end.min(open.saturating_add(self.out.ahead_left));
        while at < limit {
            match self.bytes[at] {
                b'(' => {
                    let nth = pairs.len() as u32;
                    pairs.push((at as u32, innermost));
                    innermost = nth;
                }
                b')' => {
                    let pair = &mut pairs[innermost as usize];
                    innermost = std::mem::replace(&mut pair.1, at as u32);
                    if innermost == NONE {
                        break;
                    }
                }
                b'\\' => at += 1,
                quote @ (b'\'' | b'"' | b'`') => {
                    let is_unclosed =
                        &mut unclosed[usize::from(quote == b'"') + 2 * usize::from(quote == b'`')];
                    if !*is_unclosed {
                        match self.closing_quote(quote, at, limit) {
                            Some(close) => at = close,
                            None => *is_unclosed = true,
                        }
                    }
                }
                _ => {}
            }
            at += 1;
        }
        while innermost != NONE {
            innermost = std::mem::replace(&mut pairs[innermost as usize].1, NONE);
        }
        let read = at.min(limit) - open + 1;
        self.out.tick(read);
        self.out.ahead_left = self.out.ahead_left.saturating_sub(read);
        let close = pairs.get(first).map_or(NONE, |pair| pair.1);
        if is_kept {
            self.parentheses.pairs = pairs;
        }
        close
    }

    /// The closing quote. One that is missing makes the opening one, and all others of its kind, text.
    fn closing_quote(&self, quote: u8, open: usize, limit: usize) -> Option<usize> {
        let mut at = open + 1;
        while at < limit {
            match self.bytes[at] {
                b'\\' if quote != b'\'' => at += 1,
                byte if byte == quote => return Some(at),
                _ => {}
            }
            at += 1;
        }
        None
    }
}
