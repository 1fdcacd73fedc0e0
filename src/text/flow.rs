//! Lines that go on: a text with a blank for each line break that stands between two words, byte for byte as long.
//!
//! Mail, terminals and editors wrap lines, and a rule that asks for `all previous` means the words, not the blank. In a text
//! of the same length places are the same, so that whoever reads it needs no map back, and need not read the text twice.
//! What else layout puts between words is undone by [`layout`](super::layout).

use std::ops::Range;

use super::words::{BREAK, MARK, kind};

/// A text in which lines go on.
#[derive(Debug, PartialEq, Eq)]
pub struct Flow {
    text: String,
    /// Where a line break was, in order.
    breaks: Vec<usize>,
}

impl Flow {
    /// The text with a blank for each single line break that has the end of a word or a mark of sentences right before it,
    /// and the beginning of a word or such a mark right behind it; none where there is no such line break. One beside other
    /// white space, or before what leads a line of a list or a comment, stays.
    pub fn of(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let breaks: Vec<usize> =
            memchr::memchr_iter(b'\n', bytes).filter(|at| goes_on(bytes, *at..at + 1)).collect();
        if breaks.is_empty() {
            return None;
        }
        let mut flow = String::with_capacity(text.len());
        let mut done = 0;
        for at in &breaks {
            flow.push_str(&text[done..*at]);
            flow.push(' ');
            done = at + 1;
        }
        flow.push_str(&text[done..]);
        Some(Self { text: flow, breaks })
    }

    /// The text, as long as the one it was made of.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it differs in a range from the text it was made of.
    pub fn differs_in(&self, range: &Range<usize>) -> bool {
        let next = self.breaks.partition_point(|at| *at < range.start);
        self.breaks.get(next).is_some_and(|at| *at < range.end)
    }
}

/// Whether what stands on both sides of a line break goes on over it.
pub(super) fn goes_on(bytes: &[u8], line_break: Range<usize>) -> bool {
    let belongs = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii() || kind(*byte) == MARK)
    };
    let before = line_break.start.checked_sub(1).and_then(|at| bytes.get(at));
    belongs(before) && belongs(bytes.get(line_break.end))
}

/// The line break of a gap, if it has just one.
pub(super) fn only_break(gap: &[u8]) -> Option<usize> {
    let mut breaks = (0..gap.len()).filter(|at| kind(gap[*at]) == BREAK);
    breaks.next().filter(|_| breaks.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_break_between_words_is_a_blank() {
        for (text, wanted) in [
            ("ignore all\nprevious", Some("ignore all previous")),
            ("so.\nAnd (\nas it is)\n\"so\"", Some("so. And ( as it is) \"so\"")),
            ("сло́во\nсло́во", Some("сло́во сло́во")),
            ("a\nb\n\nc\nd", Some("a b\n\nc d")),
            ("no break", None),
            ("blank \nbefore", None),
            ("blank\n behind", None),
            ("a\r\nb", None),
            ("list\n- one\n* two\n# three\n> four\n| five\n<six>", None),
            ("\nat the beginning", None),
            ("at the end\n", None),
            ("", None),
        ] {
            let flow = Flow::of(text);
            assert_eq!(flow.as_ref().map(Flow::text), wanted, "{text:?}");
        }
    }

    #[test]
    fn it_is_known_where_a_line_break_was() {
        let flow = Flow::of("ab\ncd\n\nef\ngh").expect("two lines go on");
        for (range, wanted) in [
            (0..2, false),
            (0..3, true),
            (2..3, true),
            (3..7, false),
            (3..10, true),
            (10..12, false),
            (4..4, false),
        ] {
            assert_eq!(flow.differs_in(&range), wanted, "{range:?}");
        }
    }
}
