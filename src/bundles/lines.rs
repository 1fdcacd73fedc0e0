//! Lines of one text file: which one an offset is in, and what of it may be shown.

use std::ops::Range;

/// Longest piece of a line that is shown, in characters.
const SHOWN_CHARS_MAX: usize = 160;
/// What stands for a credential.
const MASK: &str = "***";

/// The text of a file with its lines and with the credentials in it.
#[derive(Debug)]
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
    /// Ranges of credentials in order; none overlaps another, however many there are.
    secrets: Vec<Range<usize>>,
}

impl<'t> Lines<'t> {
    /// The lines of `text`.
    pub(super) fn new(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(ends).collect(), secrets: Vec::new() }
    }

    /// Hides a range of the text in everything that is shown.
    pub(super) fn hide(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let from = self.secrets.partition_point(|known| known.end <= range.start);
        let overlapping = self.secrets[from..].iter().take_while(|known| known.start < range.end).count();
        let overlapped = &self.secrets[from..from + overlapping];
        let start = overlapped.first().map_or(range.start, |first| first.start.min(range.start));
        let end = overlapped.last().map_or(range.end, |last| last.end.max(range.end));
        self.secrets.splice(from..from + overlapping, std::iter::once(start..end));
    }

    /// The credential that an offset lies in.
    fn secret_at(&self, offset: usize) -> Option<&Range<usize>> {
        let at = self.secrets.partition_point(|secret| secret.end <= offset);
        self.secrets.get(at).filter(|secret| secret.contains(&offset))
    }

    /// The line of an offset, from 1.
    pub(super) fn line_of(&self, offset: usize) -> u32 {
        self.starts.partition_point(|start| *start <= offset) as u32
    }

    /// Where a line begins, in bytes; the end of the text for a line beyond it.
    pub(super) fn start_of(&self, line: u32) -> usize {
        let index = (line as usize).saturating_sub(1);
        self.starts.get(index).copied().unwrap_or(self.text.len())
    }

    /// The line that `text` first stands in, from 1; 0 when it does not.
    pub(super) fn line_with(&self, text: &str) -> u32 {
        if text.is_empty() { 0 } else { self.text.find(text).map_or(0, |at| self.line_of(at)) }
    }

    /// A line by its number, for a person: shortened, control characters escaped, credentials masked.
    pub(super) fn show(&self, line: u32) -> String {
        let Some(start) = (line as usize).checked_sub(1).and_then(|index| self.starts.get(index)) else {
            return String::new();
        };
        self.show_around(*start)
    }

    /// The line of an offset, cut so that the offset is in it.
    pub(super) fn show_around(&self, offset: usize) -> String {
        let line = self.line_of(offset).max(1) as usize - 1;
        let start = self.starts[line];
        let end = self.starts.get(line + 1).map_or(self.text.len(), |next| next - 1);
        let from = if offset > start + SHOWN_CHARS_MAX / 2 { offset - SHOWN_CHARS_MAX / 4 } else { start };
        let (mut at, mut shown) = (self.text.floor_char_boundary(from), String::new());
        while at < end && shown.chars().count() < SHOWN_CHARS_MAX {
            if let Some(secret) = self.secret_at(at) {
                shown.push_str(MASK);
                at = self.text.ceil_char_boundary(secret.end.min(end));
                continue;
            }
            let Some(c) = self.text[at..].chars().next() else { break };
            match c {
                '\t' | '\r' => shown.push(' '),
                c if c.is_control() || is_invisible(c) => shown.extend(c.escape_unicode()),
                c => shown.push(c),
            }
            at += c.len_utf8();
        }
        shown.trim().to_owned()
    }
}

/// Characters that a person cannot see.
pub(super) const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_hidden_in_whatever_order_they_were_found() {
        let text = "a SECRET1 b SECRET2 c SECRET3 d";
        let ranges = [2..9, 12..19, 22..29];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let mut lines = Lines::new(text);
            for at in order {
                lines.hide(ranges[at].clone());
                lines.hide(ranges[at].start..ranges[at].start);
            }
            assert_eq!(lines.show(1), "a *** b *** c *** d", "{order:?}");
        }
    }

    #[test]
    fn overlapping_credentials_are_hidden_as_one_and_touching_ones_apart() {
        let text = "abcdefghijklmnop";
        for (ranges, shown) in [
            (vec![2..5, 4..8], "ab***ijklmnop"),
            (vec![4..8, 2..5], "ab***ijklmnop"),
            (vec![2..12, 4..6], "ab***mnop"),
            (vec![4..6, 8..10, 2..12], "ab***mnop"),
            (vec![2..4, 4..6], "ab******ghijklmnop"),
            (vec![4..6, 2..4, 3..5], "ab***ghijklmnop"),
        ] {
            let mut lines = Lines::new(text);
            for range in ranges.clone() {
                lines.hide(range);
            }
            assert_eq!(lines.show(1), shown, "{ranges:?}");
        }
    }
}
