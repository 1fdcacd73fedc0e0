//! Text with the way back: which raw byte of its stream each character came from.

use std::ops::Range;

/// From here on, text bytes and raw bytes advance together. Sixteen bits of place in the text, which is short, and below
/// them 48 bits of raw offset, which is 256 TiB: text in many colours has a run for every few characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run(u64);

const RAW_BITS: u32 = 48;

impl Run {
    fn new(at: usize, raw: u64) -> Self {
        Self(((at as u64) << RAW_BITS) | (raw & ((1 << RAW_BITS) - 1)))
    }

    /// First byte of the run in the text.
    const fn at(self) -> usize {
        (self.0 >> RAW_BITS) as usize
    }

    /// The raw byte it came from.
    const fn raw(self) -> u64 {
        self.0 & ((1 << RAW_BITS) - 1)
    }
}

/// Text whose bytes know where they came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    text: String,
    runs: Vec<Run>,
}

impl Mapped {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn clear(&mut self) {
        self.text.clear();
        self.runs.clear();
    }

    /// Forgets the text and gives back memory beyond `bytes`.
    pub fn reset(&mut self, bytes: usize) {
        self.clear();
        self.text.shrink_to(bytes);
        self.runs.shrink_to(8);
    }

    /// Appends text that stands in the stream as it is, beginning at the raw byte `raw`.
    pub fn push(&mut self, text: &str, raw: u64) {
        if text.is_empty() {
            return;
        }
        let at = self.text.len();
        let follows = self.runs.last().is_some_and(|run| run.raw() + (at - run.at()) as u64 == raw);
        if !follows {
            self.runs.push(Run::new(at, raw));
        }
        self.text.push_str(text);
    }

    /// Appends a character that `raw` stands for, however many bytes it took there.
    pub fn push_char(&mut self, c: char, raw: u64) {
        self.push(c.encode_utf8(&mut [0; 4]), raw);
    }

    /// Appends a part of another text.
    pub fn push_from(&mut self, other: &Self, range: Range<usize>) {
        let mut at = range.start;
        let first = other.runs.partition_point(|run| run.at() <= at).saturating_sub(1);
        for (nth, run) in other.runs.iter().enumerate().skip(first) {
            let end = other.runs.get(nth + 1).map_or(range.end, |next| next.at().min(range.end));
            if at >= end {
                break;
            }
            self.push(&other.text[at..end], run.raw() + (at - run.at()) as u64);
            at = end;
        }
    }

    /// The raw byte that the text byte `at` came from.
    pub fn raw_of(&self, at: usize) -> u64 {
        let after = self.runs.partition_point(|run| run.at() <= at);
        match after.checked_sub(1).map(|nth| self.runs[nth]) {
            Some(run) => run.raw() + (at.saturating_sub(run.at())) as u64,
            None => 0,
        }
    }

    /// Where the last `bytes` bytes begin, moved forward to a character boundary.
    pub fn tail_start(&self, bytes: usize) -> usize {
        self.text.ceil_char_boundary(self.text.len().saturating_sub(bytes))
    }

    /// The last `chars` characters.
    pub fn last_chars(&self, chars: usize) -> &str {
        last_chars(&self.text, chars)
    }

    /// How many pieces of the stream it is made of.
    pub fn pieces(&self) -> usize {
        self.runs.len()
    }

    /// Gives back memory of the text beyond `bytes`, where that is much.
    pub fn shrink(&mut self, bytes: usize) {
        if self.text.capacity() > 2 * bytes {
            self.text.shrink_to(bytes);
        }
    }

    /// Drops everything before byte `from`.
    pub fn cut_front(&mut self, from: usize) {
        if from == 0 {
            return;
        }
        self.text.drain(..from);
        let first = self.runs.partition_point(|run| run.at() <= from).saturating_sub(1);
        self.runs.drain(..first);
        for run in &mut self.runs {
            *run = match run.at().checked_sub(from) {
                Some(at) => Run::new(at, run.raw()),
                None => Run::new(0, run.raw() + (from - run.at()) as u64),
            };
        }
    }

    /// Forgets where the text before byte `from` came from.
    pub fn forget_origin(&mut self, from: usize) {
        let first = self.runs.partition_point(|run| run.at() <= from).saturating_sub(1);
        self.runs.drain(..first);
        if self.runs.capacity() > 256.max(2 * self.runs.len()) {
            self.runs.shrink_to(self.runs.len() + self.runs.len() / 4);
        }
    }

    /// The text without its last `count` line ends `\r\n`, and where in it they stood.
    pub fn unwrapped(&self, count: usize) -> (Self, Vec<usize>) {
        let skip = self.text.matches("\r\n").count().saturating_sub(count);
        let ends = self.text.match_indices("\r\n").skip(skip);
        self.without(&ends.map(|(at, end)| at..at + end.len()).collect::<Vec<_>>())
    }

    /// The text without some of its parts, which are in order and apart, and where in it they stood.
    pub fn without(&self, parts: &[Range<usize>]) -> (Self, Vec<usize>) {
        let (mut out, mut seams, mut at) = (Self::default(), Vec::new(), 0);
        for part in parts {
            out.push_from(self, at..part.start);
            seams.push(out.len());
            at = part.end;
        }
        out.push_from(self, at..self.text.len());
        (out, seams)
    }

    /// Heap held, in bytes.
    pub fn heap(&self) -> usize {
        self.text.capacity() + self.runs.capacity() * size_of::<Run>()
    }
}

/// The last `chars` characters of a text.
pub(super) fn last_chars(text: &str, chars: usize) -> &str {
    // Most text is ASCII, where bytes are characters.
    if text.len() <= chars {
        return text;
    }
    if text.is_ascii() {
        return &text[text.len() - chars..];
    }
    let start = text.char_indices().rev().nth(chars.saturating_sub(1)).map_or(0, |(at, _)| at);
    if chars == 0 { "" } else { &text[start..] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_knows_where_it_came_from() {
        let mut text = Mapped::default();
        text.push("abc", 10);
        text.push("def", 13);
        text.push_char('\u{fffd}', 16);
        text.push("x", 17);
        text.push("\r\n", 18);
        text.push("yz", 40);
        assert_eq!(text.runs.len(), 3);
        assert_eq!([0, 5, 6, 9, 12].map(|at| text.raw_of(at)), [10, 15, 16, 17, 40]);
        let (joined, seams) = text.unwrapped(9);
        assert_eq!((joined.as_str(), &*seams), ("abcdef\u{fffd}xyz", &[10][..]));
        assert_eq!([9, 10, 11].map(|at| joined.raw_of(at)), [17, 40, 41]);
        assert_eq!(text.unwrapped(0), (text.clone(), vec![]));
        text.cut_front(4);
        assert_eq!([0, 2, 5, 8].map(|at| text.raw_of(at)), [14, 16, 17, 40]);
        let mut copy = Mapped::default();
        copy.push_from(&text, 1..9);
        assert_eq!((copy.as_str(), copy.raw_of(0), copy.raw_of(7)), ("f\u{fffd}x\r\ny", 15, 40));
    }

    #[test]
    fn the_last_characters_are_characters() {
        assert_eq!(["aäöü", "ab", ""].map(|text| last_chars(text, 2)), ["öü", "ab", ""]);
        assert_eq!(last_chars("abc", 0), "");
    }
}
