//! Which phrases may match around a literal that the gate has seen, and where they can begin.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::read::{FILLER_MAX, literal_of};
use super::words::{Behind, Opening, Words, is_amid, letters_end, skip_gap, skip_word};
use super::{BEFORE_MAX, BYTES_MAX, Phrase};

/// Most beginnings of phrases around one anchor that are looked for once for all of them.
pub(super) const FIRSTS_MAX: usize = 32;

/// Longest word before an anchor that is passed over, in bytes; a longer one is cut.
const WORD_MAX: usize = 40;

/// Bytes of most characters of scripts that write no spaces.
const CHARACTER_BYTES: usize = 3;

/// Most words after an anchor that are looked at before what follows it stands there.
const NEXTS_MAX: usize = FILLER_MAX + 1;

/// Stands for a beginning that is looked for phrase by phrase.
const NO_FIRST: u8 = u8::MAX;

/// Which phrases may match around which literal.
#[derive(Debug)]
pub(super) struct Anchored {
    /// In lower case, sorted, each with the bounds of its lists in `of_literals`.
    literals: Box<[(Box<str>, u32, u32)]>,
    /// By their hash, and the next free slot: one more than the index in `literals`, 0 where there is none.
    slots: Box<[u32]>,
    of_literals: Box<[(u32, Ending)]>,
    lists: Box<[AnchorList]>,
}

/// Where the longest alternative of a list ends that begins with a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With the literal, if a word ends there.
    Word,
    /// With the letters that follow the literal.
    Letters,
    /// There are several such alternatives, or a gap in one: they are to be read.
    Read,
}

impl Ending {
    fn of(list: &Words, literal: &str) -> Self {
        let literal = literal.replace(' ', "+");
        let mut ending = Self::Word;
        for alternative in list.alternatives() {
            let (word, goes_on) = match alternative.strip_suffix('*') {
                Some(word) => (word, true),
                None => (alternative, false),
            };
            let (word, literal) = (word.as_bytes(), literal.as_bytes());
            let begins = word.len() >= literal.len() && word[..literal.len()].eq_ignore_ascii_case(literal);
            match begins {
                false => {}
                true if word.len() > literal.len() => return Self::Read,
                true if goes_on => ending = Self::Letters,
                true => {}
            }
        }
        ending
    }
}

/// The phrases that have the same words for an anchor.
#[derive(Debug)]
pub(super) struct AnchorList {
    pub(super) words: Arc<Words>,
    /// Indices of those that begin with the anchor.
    pub(super) begun: Vec<u32>,
    /// Indices of the others, each with the index in `firsts` of what it begins with.
    pub(super) amid: Vec<(u32, u8)>,
    /// What phrases begin with that do not begin with the anchor, as far as that must be there.
    pub(super) firsts: Vec<Arc<Words>>,
}

impl Anchored {
    pub(super) fn new(phrases: &[Phrase]) -> Self {
        let mut lists: Vec<AnchorList> = Vec::new();
        let mut known: HashMap<*const Words, usize> = HashMap::new();
        for (index, phrase) in (0..).zip(phrases) {
            let words = &phrase.elements[phrase.anchor].words;
            let nth = *known.entry(Arc::as_ptr(words)).or_insert_with(|| {
                lists.push(AnchorList::new(words.clone()));
                lists.len() - 1
            });
            lists[nth].add(index, phrase);
        }
        let mut pairs: Vec<(Box<str>, u32)> = Vec::new();
        for (nth, list) in (0..).zip(&lists) {
            let literals = list.words.alternatives().filter_map(|alternative| literal_of(alternative).ok());
            pairs.extend(literals.map(|literal| (literal.to_ascii_lowercase().into(), nth)));
        }
        pairs.sort_unstable();
        pairs.dedup();
        let (mut literals, mut of_literals) = (Vec::new(), Vec::with_capacity(pairs.len()));
        for alike in pairs.chunk_by(|(one, _), (other, _)| one == other) {
            let from = of_literals.len() as u32;
            let ending = |nth: u32| Ending::of(&lists[nth as usize].words, &alike[0].0);
            of_literals.extend(alike.iter().map(|(_, nth)| (*nth, ending(*nth))));
            literals.push((alike[0].0.clone(), from, of_literals.len() as u32));
        }
        let mut slots = vec![0; (2 * literals.len()).next_power_of_two().max(2)];
        for (nth, (literal, ..)) in (1..).zip(&literals) {
            let mut slot = Self::slot_of(literal.as_bytes(), slots.len());
            while slots[slot] != 0 {
                slot = (slot + 1) & (slots.len() - 1);
            }
            slots[slot] = nth;
        }
        Self {
            literals: literals.into(),
            slots: slots.into(),
            of_literals: of_literals.into(),
            lists: lists.into(),
        }
    }

    /// The first slot of a literal in any case, by multiplicative hashing (Knuth, TAOCP 3, 6.4) of eight bytes at a time.
    fn slot_of(literal: &[u8], slots: usize) -> usize {
        let mix = |hash: u64, bytes: &[u8]| {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            // The bit by which small letters differ from capitals is left out of account.
            let folded = u64::from_le_bytes(eight) | 0x2020_2020_2020_2020;
            (hash.rotate_left(29) ^ folded).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        };
        // The number of slots is a power of two.
        (literal.chunks(8).fold(0, mix) >> 32) as usize & (slots - 1)
    }

    /// The lists that hold a literal, as it stands in a text, and where what they hold of it ends.
    pub(super) fn lists_of(&self, literal: &[u8]) -> impl Iterator<Item = (&AnchorList, Ending)> {
        let mut slot = Self::slot_of(literal, self.slots.len());
        let (mut from, mut to) = (0, 0);
        // Half of the slots are free, so this ends.
        while let Some(nth) = self.slots[slot].checked_sub(1) {
            let (one, first, end) = &self.literals[nth as usize];
            if one.as_bytes().eq_ignore_ascii_case(literal) {
                (from, to) = (*first, *end);
                break;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        let lists = &self.of_literals[from as usize..to as usize];
        lists.iter().map(|(nth, ending)| (&self.lists[*nth as usize], *ending))
    }
}

impl AnchorList {
    /// Where the longest alternative ends that begins with the literal at `literal`.
    pub(super) fn end_of(
        &self,
        text: &[u8],
        literal: &Range<usize>,
        ending: Ending,
        is_spaced: bool,
    ) -> Option<usize> {
        if ending != Ending::Read && !is_amid(text, literal.start) {
            match ending {
                Ending::Letters => return Some(letters_end(text, literal.end)),
                _ if !is_amid(text, literal.end) => return Some(literal.end),
                // A shorter alternative may go on.
                _ => {}
            }
        }
        self.words.end_of(text, literal.start, is_spaced)
    }

    pub(super) fn new(words: Arc<Words>) -> Self {
        Self { words, begun: Vec::new(), amid: Vec::new(), firsts: Vec::new() }
    }

    fn add(&mut self, index: u32, phrase: &Phrase) {
        if phrase.anchor == 0 {
            self.begun.push(index);
            return;
        }
        let first = &phrase.elements[0];
        let known = self.firsts.iter().position(|words| Arc::ptr_eq(words, &first.words));
        let nth = match known {
            _ if first.is_optional => NO_FIRST,
            Some(nth) => nth as u8,
            None if self.firsts.len() < FIRSTS_MAX => {
                self.firsts.push(first.words.clone());
                (self.firsts.len() - 1) as u8
            }
            None => NO_FIRST,
        };
        self.amid.push((index, nth));
    }
}

/// The beginnings of the words before an anchor, from the nearest on, as far as a phrase may reach.
pub(super) struct Starts<'t> {
    text: &'t [u8],
    anchor: usize,
    is_spaced: bool,
    known: [usize; BEFORE_MAX],
    count: usize,
    /// What stands at each of them, once it was asked.
    openings: Option<[Opening; BEFORE_MAX]>,
}

impl<'t> Starts<'t> {
    pub(super) fn new(text: &'t [u8], anchor: usize, is_spaced: bool) -> Self {
        let mut starts =
            Self { text, anchor, is_spaced, known: [anchor; BEFORE_MAX], count: 0, openings: None };
        match is_spaced {
            true => starts.read_words(),
            false => {
                let all = (1..=BEFORE_MAX).map_while(|nth| anchor.checked_sub(nth * CHARACTER_BYTES));
                for start in all {
                    starts.add(start);
                }
            }
        }
        starts
    }

    fn add(&mut self, start: usize) {
        self.known[self.count] = start;
        self.count += 1;
    }

    fn read_words(&mut self) {
        let mut behind = Behind::new(self.text, self.anchor);
        // What begins farther off ends before the anchor does.
        let farthest = self.anchor.saturating_sub(BYTES_MAX);
        while self.count < BEFORE_MAX && behind.at > farthest {
            if behind.pass(true, BYTES_MAX) == 0 || behind.pass(false, WORD_MAX) == 0 {
                return;
            }
            self.add(behind.at);
        }
    }

    /// Whether they are those of this place.
    pub(super) fn are_of(&self, anchor: usize, is_spaced: bool) -> bool {
        self.anchor == anchor && self.is_spaced == is_spaced
    }

    /// Where the word `nth` before the anchor begins.
    pub(super) fn nth(&self, nth: usize) -> Option<usize> {
        self.known[..self.count].get(nth).copied()
    }

    /// Those at which one of some words stands, as bits.
    pub(super) fn holding(&mut self, words: &Words) -> u8 {
        let known = self.known;
        let openings = *self.openings.get_or_insert_with(|| known.map(|start| Opening::at(self.text, start)));
        let mut bits = 0;
        for (nth, opening) in openings[..self.count].iter().enumerate() {
            let is_held = words.may_begin(*opening)
                && words.known_end_of(self.text, self.known[nth], self.is_spaced).is_some();
            bits |= u8::from(is_held) << nth;
        }
        bits
    }
}

/// The beginnings of the words after an anchor, found as they are asked for.
pub(super) struct Nexts<'t> {
    pub(super) text: &'t [u8],
    /// Where the anchor ends.
    pub(super) from: usize,
    known: [(usize, Opening); NEXTS_MAX],
    count: usize,
    is_over: bool,
}

impl<'t> Nexts<'t> {
    /// Those of a text with spaces.
    pub(super) fn new(text: &'t [u8], from: usize) -> Self {
        Self { text, from, known: [(from, Opening::NONE); NEXTS_MAX], count: 0, is_over: false }
    }

    /// Where the word `nth` after the anchor begins, and what stands there.
    pub(super) fn nth(&mut self, nth: usize) -> Option<(usize, Opening)> {
        while self.count <= nth {
            let end = match self.count.checked_sub(1) {
                None => Some(self.from),
                Some(last) => skip_word(self.text, self.known[last].0),
            };
            let next = end.filter(|_| !self.is_over).and_then(|end| skip_gap(self.text, end, true));
            let Some(start) = next else {
                self.is_over = true;
                return None;
            };
            self.known[self.count] = (start, Opening::at(self.text, start));
            self.count += 1;
        }
        Some(self.known[nth])
    }
}
