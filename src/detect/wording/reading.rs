//! A text in windows, and the features of each: words, concepts, and classes of words.
//!
//! A text is read in windows of about 768 bytes, each of which overlaps the one before by half, so that each half is read once
//! for both windows that it is in.

use std::ops::Range;

use super::Known;
use super::memory::{Memory, Seen, Words};
use super::tokens::{self, Places, Token};
use crate::rules::Speaker;
use crate::rules::meanings::{self, Meanings, Meant};
use crate::rules::wording::{SENSES, Sum, WORDS};
use crate::text::lanes::{self, BLOCK, Lanes};

/// Size of half a window: bytes, of which blanks side by side count as one, and those of a long word not at all, so that neither
/// thins what stands around them. With 1,280 or 1,600 bytes a window about as many attacks are found, and fewer of those that
/// harmless prose follows; with 384 fewer of all.
pub(super) const HALF: usize = 384;
/// Bytes of a word that count. Only letters of ASCII are counted so: many others set no blanks between words.
const WORD_MAX: usize = 24;
/// How much longer a half may be for it to end at a blank.
const REST_MAX: usize = 32;
/// How many words of a class before one make pairs with it, and within how many bytes.
pub(super) const PAIRED: usize = 4;
pub(super) const PAIR_BYTES: usize = 100;

/// A hit of a concept.
pub(super) struct Named<'e> {
    pub name: &'e str,
    /// Bytes of the text as sent.
    pub place: Range<usize>,
    pub places: Places,
}

/// What makes a feature, and its places in the table.
pub(super) enum Feature<'p, 'e> {
    /// A token, with as many before it as are said.
    Words(&'p Token, usize, u16),
    Concept(&'p Named<'e>),
    /// A class of words, or two, and where these stand.
    Meaning([Option<u16>; 2], Range<usize>, Places),
    /// A class of which a word begins a sentence.
    Beginning(u16, Range<usize>, Places),
}

/// The tokens of a part of a text, and its words that belong to classes.
#[derive(Default)]
pub(super) struct Part {
    pub(super) tokens: Vec<Token>,
    pub(super) meant: Vec<Meant>,
}

impl Part {
    #[cfg(test)]
    pub(super) fn of(text: &str, part: Range<usize>, meanings: &Meanings) -> Self {
        let mut read = Self::default();
        read.read(text, part, meanings, &mut Words::default());
        read
    }

    /// Heap used, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.tokens.capacity() * size_of::<Token>() + self.meant.capacity() * size_of::<Meant>()
    }

    /// Reads tokens and what words mean side by side: most words are known to both, and are looked at once.
    pub(super) fn read(&mut self, text: &str, part: Range<usize>, meanings: &Meanings, words: &mut Words) {
        self.tokens.clear();
        self.meant.clear();
        let mut tokens = tokens::Reader::new(text, part.clone());
        let mut meant = meanings::Reader::new(meanings, text, part.clone());
        let (mut token, mut meaning) = (|token| self.tokens.push(token), |meant| self.meant.push(meant));
        let text = tokens.text();
        let (mut has_tokens, mut has_words) = (true, true);
        while has_tokens || has_words {
            let at = tokens.at();
            if at == meant.at() && at < part.end {
                if text.as_bytes().get(at) == Some(&b' ') {
                    tokens.pass_blank();
                    meant.pass_blank();
                    continue;
                }
                if let Some((len, word)) = words.word(text, at, meanings) {
                    tokens.pass_word(at + len, word.hash, &mut token);
                    meant.pass_word(at + len, word.classes, &mut meaning);
                    continue;
                }
            }
            // The one that is behind goes on, so that both come to the same place again.
            if has_tokens && (at <= meant.at() || !has_words) {
                has_tokens = tokens.step(&mut token);
            } else {
                has_words = meant.step(&mut meaning);
            }
        }
    }
}

/// A text that is read in windows, in order.
pub(super) struct Windows<'t> {
    text: &'t str,
    meanings: &'t Meanings,
    memory: &'t mut Memory,
    edges: Vec<usize>,
}

impl<'t> Windows<'t> {
    pub(super) fn of(text: &'t str, meanings: &'t Meanings, memory: &'t mut Memory) -> Self {
        memory.halves.iter_mut().for_each(|(half, _)| *half = None);
        memory.sums.begin();
        Self { text, meanings, memory, edges: edges(text) }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        let halves = self.edges.len() - 1;
        halves.saturating_sub(1).max(usize::from(halves > 0))
    }

    /// Where one is, by its number, in bytes: two halves, or one where that is the whole text.
    pub(super) fn range(&self, nth: usize) -> Range<usize> {
        self.edges[nth]..self.edges[(nth + 2).min(self.edges.len() - 1)]
    }

    /// Reads one, half by half, by its number.
    pub(super) fn read(&mut self, nth: usize) -> [&Part; 2] {
        let halves = self.edges.len() - 1;
        for half in nth..nth + 2 {
            let Memory { words, halves: read, .. } = &mut *self.memory;
            let (read, part) = &mut read[half % 2];
            if *read != Some(half) {
                *read = Some(half);
                let range = if half < halves { self.edges[half]..self.edges[half + 1] } else { 0..0 };
                part.read(self.text, range, self.meanings, words);
            }
        }
        parts(&self.memory.halves, nth)
    }

    /// What one comes to, by its number, with the concepts in it.
    pub(super) fn sum(&mut self, nth: usize, known: Known<'_>, concepts: &[Named<'_>]) -> Sum {
        self.read(nth);
        let Memory { halves, sums, .. } = &mut *self.memory;
        sums.of(nth, parts(halves, nth), concepts, known)
    }
}

/// The halves of a window, in order.
fn parts(halves: &[(Option<usize>, Part); 2], nth: usize) -> [&Part; 2] {
    let [even, odd] = halves;
    if nth.is_multiple_of(2) { [&even.1, &odd.1] } else { [&odd.1, &even.1] }
}

/// Calls `found` with each word and pair of words of a window, once: the token that it ends with, how many before it it begins
/// with, and its place.
pub(super) fn each_words(parts: [&Part; 2], mut found: impl FnMut(&Token, usize, u16)) {
    let mut words = Seen::<{ WORDS / 64 }>::NOTHING;
    for token in parts.iter().flat_map(|part| &part.tokens) {
        for (nth, place) in token.buckets.into_iter().enumerate() {
            if words.is_new(place) {
                found(token, nth, place);
            }
        }
    }
}

/// Calls `feature` with each feature of a window, once, and what makes it first.
pub(super) fn each_feature<'e>(
    parts: [&Part; 2],
    concepts: &[Named<'e>],
    (meanings, who): (&Meanings, Speaker),
    mut feature: impl FnMut(Feature<'_, 'e>),
) {
    each_words(parts, |token, nth, place| feature(Feature::Words(token, nth, place)));
    let mut senses = Seen::<{ SENSES / 64 }>::NOTHING;
    for one in concepts.iter().filter(|one| senses.is_new(one.places[0])) {
        feature(Feature::Concept(one));
    }
    let [first, second] = parts;
    let mut related = |Meant { class, place, begins: _ }: &Meant, related| {
        let (id, class) = (meanings.id(*class), *class);
        let places = match related {
            Related::Alone => tokens::class(id, who),
            Related::Begins => tokens::beginning(id, who),
            Related::With(other, _) => tokens::pair(id, meanings.id(other), who),
        };
        if senses.is_new(places[0]) {
            feature(match related {
                Related::Alone => Feature::Meaning([Some(class), None], place.clone(), places),
                Related::Begins => Feature::Beginning(class, place.clone(), places),
                Related::With(other, at) => {
                    Feature::Meaning([Some(other), Some(class)], at..place.end, places)
                }
            });
        }
    };
    each_related(&[], &first.meant, &mut related);
    each_related(&first.meant, &second.meant, &mut related);
}

/// How a class counts where a word belongs to it.
#[derive(Clone, Copy)]
pub(super) enum Related {
    Alone,
    Begins,
    /// With a class before it, and where the word of that begins.
    With(u16, usize),
}

/// Calls `found` with each word that belongs to a class, and each way in which that counts. Other words stand before them.
#[inline]
pub(super) fn each_related(before: &[Meant], words: &[Meant], found: &mut impl FnMut(&Meant, Related)) {
    for (nth, word) in words.iter().enumerate() {
        found(word, Related::Alone);
        if word.begins {
            found(word, Related::Begins);
        }
        let own = &words[nth.saturating_sub(PAIRED)..nth];
        // The nearest last.
        for other in before[before.len().saturating_sub(PAIRED - own.len())..].iter().chain(own) {
            if other.class != word.class && word.place.start - other.place.start <= PAIR_BYTES {
                found(word, Related::With(other.class, other.place.start));
            }
        }
    }
}

/// Where the halves of windows end, in order: the beginning of a text, and then the end of each.
fn edges(text: &str) -> Vec<usize> {
    let mut edges = Vec::from([0]);
    // How much of the half, and of a word, was read, and whether a blank stands before.
    let (mut size, mut word, mut was_blank) = (0, 0, false);
    let bytes = text.as_bytes();
    for at in (0..bytes.len()).step_by(BLOCK) {
        let block = Lanes::at(bytes, at);
        let (blanks, letters) = (block.bits(lanes::is_blank), block.bits(lanes::is_alphanumeric));
        let inside = lanes::below(bytes.len() - at);
        let behind_blanks = blanks << 1 | u64::from(was_blank);
        let counted = inside & !(blanks & behind_blanks) & !beyond_word_max(letters, word);
        let before = size;
        size += counted.count_ones() as usize;
        // At most one half ends in a block, which is far shorter.
        if size >= HALF {
            let may_end = blanks & !behind_blanks & behind(counted, HALF - before.min(HALF));
            let must_end = inside & behind(counted, HALF + REST_MAX - before.min(HALF + REST_MAX));
            let must_end = lanes::places(must_end).find(|place| text.is_char_boundary(at + place));
            if let Some(end) = lanes::places(may_end).next().into_iter().chain(must_end).min() {
                edges.push(at + end);
                size = (counted & !lanes::below(end)).count_ones() as usize;
            }
        }
        word = if letters == u64::MAX { word + BLOCK } else { letters.leading_ones() as usize };
        was_blank = blanks >> (BLOCK - 1) != 0;
    }
    if edges.last() != Some(&text.len()) {
        edges.push(text.len());
    }
    edges
}

/// The bits behind the lowest so many that are set; all where it is none, and none where there are fewer.
fn behind(mut bits: u64, count: usize) -> u64 {
    let Some(others) = count.checked_sub(1) else { return u64::MAX };
    for _ in 0..others {
        bits &= bits.wrapping_sub(1);
    }
    if bits == 0 { 0 } else { !lanes::below(bits.trailing_zeros() as usize + 1) }
}

/// Which letters of a block have [`WORD_MAX`] or more of their word before them. So many stand before the block.
fn beyond_word_max(letters: u64, word: usize) -> u64 {
    const { assert!(WORD_MAX == 24, "the steps below make runs of one more") };
    let runs_of = |by: [u32; 4]| by.into_iter().fold(letters, |runs, by| runs & runs << by);
    // Most blocks have no word that is nearly so long.
    if word + letters.trailing_ones() as usize <= WORD_MAX && runs_of([1, 2, 4, 8]) == 0 {
        return 0;
    }
    let before = word.min(WORD_MAX);
    let all = u128::from(letters) << WORD_MAX | ((1 << before) - 1) << (WORD_MAX - before);
    let eight = [1, 2, 4].into_iter().fold(all, |runs, by| runs & runs << by);
    let sixteen = eight & eight << 8;
    let more = sixteen & eight << 16 & all << 24;
    (more >> WORD_MAX) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Where halves end, byte by byte.
    fn edges_by_hand(text: &str) -> Vec<usize> {
        let mut edges = Vec::from([0]);
        let (mut size, mut word, mut was_blank) = (0, 0, false);
        for (at, byte) in text.bytes().enumerate() {
            let is_blank = byte.is_ascii_whitespace();
            let must_end = size >= HALF + REST_MAX && text.is_char_boundary(at);
            if size >= HALF && (is_blank && !was_blank || must_end) {
                edges.push(at);
                size = 0;
            }
            word = if byte.is_ascii_alphanumeric() { word + 1 } else { 0 };
            size += usize::from(!(is_blank && was_blank) && word <= WORD_MAX);
            was_blank = is_blank;
        }
        if edges.last() != Some(&text.len()) {
            edges.push(text.len());
        }
        edges
    }

    proptest! {
        #[test]
        fn halves_end_where_they_do_byte_by_byte(
            parts in prop::collection::vec("[a-z]{1,9}[ .\\t\\n\\x0b\\x0c]|[a-z0-9]{20,90}|[ \\n]{1,9}|é|\\PC", 0..260),
        ) {
            let text = parts.concat();
            prop_assert_eq!(edges(&text), edges_by_hand(&text));
        }

        #[test]
        fn words_met_before_are_read_as_if_for_the_first_time(
            parts in prop::collection::vec("(rule|Ignoring|RULES|l'instruction|x2|12|don't|you’ve|abcdefghijklmn[a-z]{1,4})[ ,.\\n]{0,2}|[ ']|[a-c]{1,3}|\\n\\n|忽略指令|é\u{301}|\\x00|\\PC", 0..60),
            cuts in prop::collection::vec(0.0..1.0, 0..5),
        ) {
            let words = [("drop", "ignor* 忽略"), ("order", "rule rules instruction*"), ("letter", "a abc")];
            let classes: BTreeMap<String, String> = words.map(|(class, words)| (class.into(), words.into())).into();
            let meanings = Meanings::of([&classes].into_iter());
            let text = parts.concat();
            let cut = |at: &f64| text.floor_char_boundary((text.len() as f64 * at) as usize);
            let mut cuts: Vec<usize> = cuts.iter().map(cut).chain([0, text.len()]).collect();
            cuts.sort_unstable();
            let (mut read, mut words) = (Part::default(), Words::default());
            for cut in cuts.windows(2) {
                let part = cut[0]..cut[1];
                read.read(&text, part.clone(), &meanings, &mut words);
                let (mut tokens, mut meant) = (Vec::new(), Vec::new());
                let mut reader = tokens::Reader::new(&text, part.clone());
                while reader.step(&mut |token| tokens.push(token)) {}
                meanings.each_in(&text, part, |one| meant.push(one));
                prop_assert_eq!(&read.tokens, &tokens);
                prop_assert_eq!(&read.meant, &meant);
            }
        }
    }
}
