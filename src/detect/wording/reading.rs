//! A text in windows, and the features of each: words, concepts, and classes of words.
//!
//! A text is read in windows of about 768 bytes, each of which overlaps the one before by half, so that each half is read once
//! for both windows that it is in.

use std::ops::Range;

use super::tokens::{self, Places, Token};
use crate::rules::Speaker;
use crate::rules::meanings::{Meanings, Meant};
use crate::rules::wording::{SENSES, WORDS};

/// Size of half a window: bytes, of which blanks side by side count as one, and those of a long word not at all, so that neither
/// thins what stands around them. With 1,280 or 1,600 bytes a window about as many attacks are found, and fewer of those that
/// harmless prose follows; with 384 fewer of all.
pub(super) const HALF: usize = 384;
/// Bytes of a word that count. Only letters of ASCII are counted so: many others set no blanks between words.
const WORD_MAX: usize = 24;
/// How much longer a half may be for it to end at a blank.
const REST_MAX: usize = 32;
/// How many words of a class before one make pairs with it, and within how many bytes.
const PAIRED: usize = 4;
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
    tokens: Vec<Token>,
    meant: Vec<Meant>,
}

impl Part {
    pub(super) fn of(text: &str, part: Range<usize>, meanings: &Meanings) -> Self {
        let mut read = Self::default();
        read.read(text, part, meanings);
        read
    }

    fn read(&mut self, text: &str, part: Range<usize>, meanings: &Meanings) {
        self.tokens.clear();
        self.meant.clear();
        tokens::each_in(text, part.clone(), |token| self.tokens.push(token));
        meanings.each_in(text, part, |meant| self.meant.push(meant));
    }
}

/// A text that is read in windows, in order.
pub(super) struct Windows<'t> {
    text: &'t str,
    meanings: &'t Meanings,
    edges: Vec<usize>,
    /// The halves that were read last: one of an even number, and one of an odd number.
    read: [(Option<usize>, Part); 2],
}

impl<'t> Windows<'t> {
    pub(super) fn of(text: &'t str, meanings: &'t Meanings) -> Self {
        Self { text, meanings, edges: edges(text), read: Default::default() }
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
            let (read, part) = &mut self.read[half % 2];
            if *read != Some(half) {
                *read = Some(half);
                let range = if half < halves { self.edges[half]..self.edges[half + 1] } else { 0..0 };
                part.read(self.text, range, self.meanings);
            }
        }
        let [even, odd] = &self.read;
        if nth.is_multiple_of(2) { [&even.1, &odd.1] } else { [&odd.1, &even.1] }
    }
}

/// Which places of the table were seen in a window. What is said twice counts once, or a row of the same sign would drown
/// all else.
struct Seen<const WORDS_OF_64: usize>([u64; WORDS_OF_64]);

impl<const WORDS_OF_64: usize> Seen<WORDS_OF_64> {
    const NOTHING: Self = Self([0; WORDS_OF_64]);

    /// Notes a place, and says whether it is new.
    #[inline]
    fn is_new(&mut self, place: u16) -> bool {
        let (word, bit) = (&mut self.0[usize::from(place) / 64], 1 << (place % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// Calls `feature` with each feature of a window, once, and what makes it first.
pub(super) fn each_feature<'e>(
    parts: [&Part; 2],
    concepts: &[Named<'e>],
    (meanings, who): (&Meanings, Speaker),
    mut feature: impl FnMut(Feature<'_, 'e>),
) {
    let mut words = Seen::<{ WORDS / 64 }>::NOTHING;
    for token in parts.iter().flat_map(|part| &part.tokens) {
        for (nth, place) in token.buckets.into_iter().enumerate() {
            if words.is_new(place) {
                feature(Feature::Words(token, nth, place));
            }
        }
    }
    let mut senses = Seen::<{ SENSES / 64 }>::NOTHING;
    for one in concepts.iter().filter(|one| senses.is_new(one.places[0])) {
        feature(Feature::Concept(one));
    }
    // The classes before, the nearest last.
    let mut before: [Option<(u16, usize)>; PAIRED] = [None; PAIRED];
    for Meant { class, place, begins } in parts.iter().flat_map(|part| &part.meant) {
        let (id, class) = (meanings.id(*class), *class);
        let places = tokens::class(id, who);
        if senses.is_new(places[0]) {
            feature(Feature::Meaning([Some(class), None], place.clone(), places));
        }
        if *begins {
            let places = tokens::beginning(id, who);
            if senses.is_new(places[0]) {
                feature(Feature::Beginning(class, place.clone(), places));
            }
        }
        for (other, at) in before.iter().flatten() {
            if *other != class && place.start - at <= PAIR_BYTES {
                let places = tokens::pair(id, meanings.id(*other), who);
                if senses.is_new(places[0]) {
                    feature(Feature::Meaning([Some(*other), Some(class)], *at..place.end, places));
                }
            }
        }
        before.rotate_left(1);
        before[PAIRED - 1] = Some((class, place.start));
    }
}

/// Where the halves of windows end, in order: the beginning of a text, and then the end of each.
fn edges(text: &str) -> Vec<usize> {
    let mut edges = Vec::from([0]);
    let (mut size, mut word, mut was_blank) = (0, 0, false);
    for (at, byte) in text.bytes().enumerate() {
        let is_blank = byte.is_ascii_whitespace();
        let may_end = is_blank && !was_blank;
        let must_end = size >= HALF + REST_MAX && text.is_char_boundary(at);
        if size >= HALF && (may_end || must_end) {
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
