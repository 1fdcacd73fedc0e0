//! Alternatives of an element of a phrase, and where one of them stands in a text.

use std::collections::VecDeque;
use std::sync::OnceLock;

use wide::u8x16;

use crate::text::lanes::{self, Lanes};

/// Longest gap between two words, in bytes.
const GAP_MAX: usize = 6;

/// The alternatives of an element.
#[derive(Debug)]
pub(super) struct Words {
    /// As they are written, with `|` between them.
    written: Box<str>,
    /// Pairs of bytes with which an alternative begins, one bit each: nearly every look ends here. Holds a few others too.
    pairs: [u64; 4],
    /// Bytes with which one begins whatever follows, one bit each.
    alone: [u64; 4],
    /// Made when a text first comes this far: most never do, and trees are most of what reading phrases takes.
    tree: OnceLock<Tree>,
}

/// Alternatives as a tree of bytes, level by level: the edge with index `e` leads to the node `e + 1`, so that the edges
/// of a node and the nodes they lead to lie side by side.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Box<[Node]>,
    /// Byte of each edge; those of one node are sorted. [`GAP`] stands for a gap.
    edges: Box<[u8]>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Index of its first edge.
    first: u32,
    /// Number of its edges.
    count: u16,
    /// A word may end here.
    ends: bool,
    /// A word may end here in any further letters.
    goes_on: bool,
}

/// The edge of a gap inside an alternative. No text holds this byte in a word.
const GAP: u8 = 0;

/// The edge that a byte of an alternative stands for.
fn edge_of(byte: u8) -> u8 {
    match byte {
        b'~' => GAP,
        b'+' => b' ',
        _ => byte.to_ascii_lowercase(),
    }
}

/// The bit of a pair of bytes.
fn pair_of(first: u8, second: u8) -> u8 {
    first.wrapping_mul(29) ^ second.wrapping_mul(101)
}

/// What a place of a text begins with, as bits of [`Words`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    pair: u8,
    first: u8,
}

impl Opening {
    /// What stands behind the end of a text.
    pub(super) const NONE: Self = Self { pair: 0, first: 0 };

    /// What stands at a place; zeros behind the end.
    #[inline]
    pub(super) fn at(text: &[u8], at: usize) -> Self {
        let lower = |at: usize| text.get(at).map_or(0, u8::to_ascii_lowercase);
        let first = lower(at);
        Self { pair: pair_of(first, lower(at + 1)), first }
    }
}

impl Words {
    pub(super) fn new(alternatives: &[&str]) -> Self {
        let (mut pairs, mut alone) = ([0; 4], [0; 4]);
        for alternative in alternatives {
            let mut bytes = alternative.bytes();
            let Some(first) = bytes.next().map(edge_of) else { continue };
            let (bits, bit) = match bytes.next() {
                // What follows a word of one byte is none of it.
                None | Some(b'*' | b'~') => (&mut alone, first),
                Some(second) => (&mut pairs, pair_of(first, edge_of(second))),
            };
            bits[usize::from(bit >> 6)] |= 1 << (bit & 63);
        }
        Self { written: alternatives.join("|").into(), pairs, alone, tree: OnceLock::new() }
    }

    /// The alternatives, as they are written.
    pub(super) fn alternatives(&self) -> impl Iterator<Item = &str> {
        self.written.split('|')
    }

    /// Whether an alternative may begin so.
    #[inline]
    pub(super) fn may_begin(&self, opening: Opening) -> bool {
        let bits = |bits: &[u64; 4], bit: u8| bits[usize::from(bit >> 6)] >> (bit & 63);
        (bits(&self.pairs, opening.pair) | bits(&self.alone, opening.first)) & 1 != 0
    }

    /// Where the longest alternative that begins at `at` ends.
    pub(super) fn end_of(&self, text: &[u8], at: usize, is_spaced: bool) -> Option<usize> {
        if !self.may_begin(Opening::at(text, at)) {
            return None;
        }
        self.known_end_of(text, at, is_spaced)
    }

    /// The same where one may begin.
    pub(super) fn known_end_of(&self, text: &[u8], at: usize, is_spaced: bool) -> Option<usize> {
        if at >= text.len() || is_amid(text, at) {
            return None;
        }
        self.tree.get_or_init(|| Tree::new(self.alternatives())).end_of(text, at, is_spaced)
    }
}

impl Tree {
    pub(super) fn new<'w>(alternatives: impl Iterator<Item = &'w str>) -> Self {
        // All words in one piece, and where each stands.
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        for alternative in alternatives {
            let (word, goes_on) = match alternative.strip_suffix('*') {
                Some(word) => (word, true),
                None => (alternative, false),
            };
            let start = bytes.len();
            bytes.extend(word.bytes().map(edge_of));
            places.push((start..bytes.len(), goes_on));
        }
        let mut written: Vec<(&[u8], bool)> =
            places.into_iter().map(|(at, goes_on)| (&bytes[at], goes_on)).collect();
        written.sort_unstable();
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        // For each node that is to be made: the words that go through it, and how far they are read.
        let mut open = VecDeque::from([(0..written.len(), 0)]);
        while let Some((words, depth)) = open.pop_front() {
            let whole = written[words.clone()].iter().take_while(|(word, _)| word.len() == depth).count();
            let (ended, mut rest) = (words.start..words.start + whole, words.start + whole..words.end);
            let from = edges.len();
            while let Some(byte) = written[rest.clone()].first().map(|(word, _)| word[depth]) {
                let alike = written[rest.clone()].iter().take_while(|(word, _)| word[depth] == byte).count();
                edges.push(byte);
                open.push_back((rest.start..rest.start + alike, depth + 1));
                rest.start += alike;
            }
            nodes.push(Node {
                first: from as u32,
                count: (edges.len() - from) as u16,
                ends: !ended.is_empty(),
                goes_on: written[ended].iter().any(|(_, goes_on)| *goes_on),
            });
        }
        Self { nodes: nodes.into(), edges: edges.into() }
    }

    /// The node that follows on a byte.
    fn next(&self, node: &Node, byte: u8) -> Option<&Node> {
        let (from, to) = (node.first as usize, node.first as usize + usize::from(node.count));
        let edges = &self.edges[from..to];
        let at = match edges.len() {
            // So few are through sooner than they are halved.
            ..=8 => edges.iter().position(|edge| *edge >= byte)?,
            _ => edges.partition_point(|edge| *edge < byte),
        };
        (*edges.get(at)? == byte).then(|| &self.nodes[from + at + 1])
    }

    /// Where the longest alternative that begins at `at` ends.
    pub(super) fn end_of(&self, text: &[u8], at: usize, is_spaced: bool) -> Option<usize> {
        let (mut node, mut position, mut found) = (&self.nodes[0], at, None);
        loop {
            if node.ends
                && let Some(end) = node.end(text, position)
            {
                found = Some(end);
            }
            let byte = text.get(position).map(u8::to_ascii_lowercase);
            if let Some(next) = byte.and_then(|byte| self.next(node, byte)) {
                node = next;
                position += 1;
            } else if let Some(next) = self.next(node, GAP) {
                let Some(after) = skip_gap(text, position, is_spaced) else { return found };
                node = next;
                position = after;
            } else {
                return found;
            }
        }
    }
}

impl Node {
    /// Where a word that ends at this node ends, if it may end at `at`.
    fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        if self.goes_on {
            return Some(letters_end(text, at));
        }
        (!is_amid(text, at)).then_some(at)
    }
}

/// Where the letters from `at` on end, as far as a word may go on.
pub(super) fn letters_end(text: &[u8], at: usize) -> usize {
    let is_letter = |byte: &&u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    at + text[at..].iter().take(24).take_while(is_letter).count()
}

/// Whether a word goes on at `at` that began before.
pub(super) fn is_amid(text: &[u8], at: usize) -> bool {
    let joins = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphanumeric);
    at > 0 && joins(at - 1) && joins(at)
}

pub(super) fn is_gap(byte: u8) -> bool {
    GAPS[usize::from(byte)]
}

/// What may stand between two words.
const GAP_BYTES: &[u8] = b" \t\n\r\x0c*_~`\"'>#|,:()[]/-";

const GAPS: [bool; 256] = {
    let mut table = [false; 256];
    let gaps = GAP_BYTES;
    let mut at = 0;
    while at < gaps.len() {
        table[gaps[at] as usize] = true;
        at += 1;
    }
    table
};

/// Which bytes of a vector [`is_gap`]. Two that differ in one bit are told together.
#[inline]
fn are_gaps(bytes: u8x16) -> u8x16 {
    let (no_second, no_third) = (bytes & u8x16::splat(!2), bytes & u8x16::splat(!4));
    lanes::is_in(bytes, b'\''..=b'*')
        | lanes::is(no_second, b' ')
        | lanes::is(no_second, b'-')
        | lanes::is(no_second, b']')
        | lanes::is(no_second, b'|')
        | lanes::is(no_third, b'\t')
        | lanes::is(no_third, b':')
        | lanes::is(bytes, b'\n')
        | lanes::is(bytes, 0x0C)
        | lanes::is(bytes, b'#')
        | lanes::is(bytes, b',')
        | lanes::is(bytes, b'[')
        | lanes::is(bytes, b'`')
}

/// What stands before a place of a text, read backwards: gaps and words in turns.
pub(super) struct Behind<'t> {
    text: &'t [u8],
    /// Where it is.
    pub(super) at: usize,
    /// Which of the bytes before are gaps: the highest bit is the nearest one.
    gaps: u64,
    /// How many of them are known.
    known: usize,
}

impl<'t> Behind<'t> {
    pub(super) fn new(text: &'t [u8], at: usize) -> Self {
        Self { text, at, gaps: 0, known: 0 }
    }

    /// Passes over a gap, or over a word, of at most `most` bytes; answers how many there were.
    #[inline]
    pub(super) fn pass(&mut self, is_gap: bool, most: usize) -> usize {
        let mut passed = 0;
        loop {
            if self.known == 0 {
                self.look();
            }
            let run = if is_gap { self.gaps.leading_ones() } else { self.gaps.leading_zeros() } as usize;
            let run = run.min(self.known).min(most - passed);
            passed += run;
            self.at -= run;
            self.known -= run;
            self.gaps = self.gaps.checked_shl(run as u32).unwrap_or(0);
            if self.known > 0 || self.at == 0 || passed == most {
                return passed;
            }
        }
    }

    /// Tells the bytes before apart.
    fn look(&mut self) {
        self.known = self.at.min(lanes::BLOCK);
        if self.known > 0 {
            let gaps = Lanes::at(self.text, self.at - self.known).bits(are_gaps);
            self.gaps = gaps << (lanes::BLOCK - self.known);
        }
    }
}

/// Where the gap at `at` ends; none if there must be one and is none, or it is too long.
pub(super) fn skip_gap(text: &[u8], at: usize, is_spaced: bool) -> Option<usize> {
    let len = text[at.min(text.len())..].iter().take(GAP_MAX + 1).take_while(|byte| is_gap(**byte)).count();
    (len <= GAP_MAX && (len > 0 || !is_spaced)).then_some(at + len)
}

/// Longest word of any kind, in bytes: an address of a page is one.
const ANY_WORD_MAX: usize = 100;

/// Where the word of any kind at `at` ends; none where a sentence ends. What ends one is amid a word where a letter or digit
/// follows, as in the names of files and machines.
pub(super) fn skip_word(text: &[u8], at: usize) -> Option<usize> {
    let word = &text[at..text.len().min(at + ANY_WORD_MAX)];
    let ends = |nth: usize, byte: u8| match byte {
        b'.' | b'!' | b'?' | b';' => !text.get(at + nth + 1).is_some_and(u8::is_ascii_alphanumeric),
        byte => byte.is_ascii_whitespace(),
    };
    let len = word.iter().enumerate().position(|(nth, byte)| ends(nth, *byte)).unwrap_or(word.len());
    (len > 0).then_some(at + len)
}
