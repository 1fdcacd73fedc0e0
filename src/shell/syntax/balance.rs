//! Which parenthesis closes which: what tells `$((1))` from `$((a) | b)` before either is read.

use super::machine::Machine;

/// Parentheses already matched, so that no stretch of text is searched again and again.
#[derive(Debug, Default)]
pub(super) struct Parentheses {
    /// Each opening one and where its closing one stands, in the order of the opening ones. `None`: it has none.
    pairs: Vec<(usize, Option<usize>)>,
}

impl Machine<'_, '_> {
    /// Where the parenthesis that opens at a place is closed, as far as quotes and backslashes tell.
    ///
    /// Every parenthesis on the way is remembered. What quotes hid on the way is searched anew, out of a budget that is
    /// linear in the source; without budget there is no answer.
    pub(super) fn closing_parenthesis(&mut self, open: usize) -> Option<usize> {
        let known = self.parentheses.pairs.binary_search_by_key(&open, |pair| pair.0);
        match known {
            Ok(nth) => self.parentheses.pairs[nth].1.filter(|close| *close < self.end),
            Err(_) => self.match_parentheses(open),
        }
    }

    fn match_parentheses(&mut self, open: usize) -> Option<usize> {
        let mut stack: Vec<usize> = Vec::new();
        let mut pairs: Vec<(usize, Option<usize>)> = Vec::new();
        let mut unclosed = [false; 256];
        let mut at = open;
        let limit = self.end.min(open.saturating_add(self.out.ahead_left));
        while at < limit {
            match self.bytes[at] {
                b'(' => {
                    stack.push(pairs.len());
                    pairs.push((at, None));
                }
                b')' => {
                    if let Some(nth) = stack.pop() {
                        pairs[nth].1 = Some(at);
                    }
                    if stack.is_empty() {
                        break;
                    }
                }
                b'\\' => at += 1,
                quote @ (b'\'' | b'"' | b'`') if !unclosed[usize::from(quote)] => {
                    match self.closing_quote(quote, at, limit) {
                        Some(close) => at = close,
                        None => unclosed[usize::from(quote)] = true,
                    }
                }
                _ => {}
            }
            at += 1;
        }
        let read = at.min(limit) - open + 1;
        self.out.tick(read);
        self.out.ahead_left = self.out.ahead_left.saturating_sub(read);
        let close = pairs.first().and_then(|pair| pair.1);
        // What quotes hid from an earlier search is not kept: an insertion between others would cost too much.
        if self.parentheses.pairs.last().is_none_or(|last| last.0 < open) {
            self.parentheses.pairs.extend(pairs);
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
