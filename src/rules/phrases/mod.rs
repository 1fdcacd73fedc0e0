//! Phrases as data: word lists and gaps, and the matcher that reads them.
//!
//! A phrase is words with spaces between them: `ignor* _3 previous|prior {order}`. `a|b` are alternatives, `{name}` puts
//! in the word list of that name, a `*` ends a word in any letters, a `?` makes a word optional, `~` is a gap inside an
//! alternative, `+` exactly one space there, and `_3` stands for up to three words of any kind. Gaps take line breaks and
//! marks as well as spaces. In phrases of scripts that write no spaces a gap may be empty and `_3` is up to three
//! letters.
//!
//! The gate looks for the first word of a phrase; `^` before another word makes that one the anchor. From there the
//! matcher walks the text by hand: a regex of such alternatives and fillers is a hundred times slower to be sure of.
//!
//! Work at one candidate is bounded: by the words of the phrase, the size of its fillers and [`BYTES_MAX`].

mod anchors;
mod read;
#[cfg(test)]
mod tests;
mod words;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::literals::Bounds;
use anchors::{Anchored, FIRSTS_MAX, Nexts, Starts};
use words::{Words, skip_gap, skip_word};

pub(super) use read::{COMMONEST, compile};

/// Longest text that one phrase may take, in bytes.
pub(super) const BYTES_MAX: usize = 200;

/// Most words before an anchor at which a phrase may begin.
const BEFORE_MAX: usize = 7;

/// The phrases of one concept.
#[derive(Debug)]
pub(super) struct Phrases {
    phrases: Vec<Phrase>,
    /// Which phrases each literal anchors, made when a text first holds one.
    anchored: OnceLock<Anchored>,
    is_spaced: bool,
    /// What the gate looks for, and whether it is a whole word.
    anchors: Vec<(String, Bounds)>,
}

#[derive(Debug)]
struct Phrase {
    elements: Vec<Element>,
    /// Index of the element whose words the gate looks for.
    anchor: usize,
}

#[derive(Debug)]
struct Element {
    /// Shared by all elements that are written alike.
    words: Arc<Words>,
    /// Most words of any kind before it.
    filler: usize,
    is_optional: bool,
}

/// What was read of a text before an anchor: phrases of many rules have the same.
#[derive(Default)]
pub(super) struct Before<'t>(Option<Starts<'t>>);

impl<'t> Before<'t> {
    /// The beginnings of the words before an anchor. All anchors must stand in the same text.
    fn starts(&mut self, text: &'t [u8], anchor: usize, is_spaced: bool) -> &mut Starts<'t> {
        let known = self.0.take().filter(|starts| starts.are_of(anchor, is_spaced));
        self.0.insert(known.unwrap_or_else(|| Starts::new(text, anchor, is_spaced)))
    }
}

impl Phrases {
    /// Every word, as it is written in the phrases, some more than once.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let elements = self.phrases.iter().flat_map(|phrase| &phrase.elements);
        elements.flat_map(|element| element.words.alternatives())
    }

    /// The literals of which each match holds one, and what may stand around them.
    pub(super) fn anchors(&self) -> impl Iterator<Item = (&String, Bounds)> {
        self.anchors.iter().map(|(literal, bounds)| (literal, *bounds))
    }

    /// The match around the literal at `literal`, if there is one. The first phrase that fits is it.
    pub(super) fn find<'t>(
        &self,
        text: &'t [u8],
        literal: &Range<usize>,
        before: &mut Before<'t>,
    ) -> Option<Range<usize>> {
        let anchored = self.anchored.get_or_init(|| Anchored::new(&self.phrases));
        let near = &text[..text.len().min(literal.start + BYTES_MAX)];
        // Nearly all lists end their words at the same place.
        let mut nexts = Nexts::new(near, literal.end);
        anchored.lists_of(&text[literal.clone()]).find_map(|(list, ending)| {
            let end = list.end_of(text, literal, ending, self.is_spaced)?;
            if nexts.from != end {
                nexts = Nexts::new(near, end);
            }
            let at_anchor =
                |index: &u32| self.follow_anchor(&self.phrases[*index as usize].elements[1..], &mut nexts);
            if let Some(end) = list.begun.iter().find_map(at_anchor) {
                return Some(literal.start..end);
            }
            // Bit `n`: whether what the phrases begin with stands at the start `n`.
            let mut seen = [None; FIRSTS_MAX];
            list.amid.iter().find_map(|(index, first)| {
                let phrase = &self.phrases[*index as usize];
                let may_begin = match list.firsts.get(usize::from(*first)) {
                    Some(words) => *seen[usize::from(*first)].get_or_insert_with(|| {
                        before.starts(text, literal.start, self.is_spaced).holding(words)
                    }),
                    None => u8::MAX,
                };
                if may_begin == 0 {
                    return None;
                }
                (0..BEFORE_MAX).filter(|nth| may_begin >> nth & 1 != 0).find_map(|nth| {
                    let start = before.starts(text, literal.start, self.is_spaced).nth(nth)?;
                    let end = self.end_of(phrase, text, start).filter(|end| *end >= literal.end)?;
                    Some(start..end)
                })
            })
        })
    }

    fn end_of(&self, phrase: &Phrase, text: &[u8], start: usize) -> Option<usize> {
        let text = &text[..text.len().min(start + BYTES_MAX)];
        let (first, rest) = phrase.elements.split_first()?;
        match first.words.end_of(text, start, self.is_spaced) {
            Some(end) => self.follow(rest, text, end, false),
            // The words after an optional first one stand where it would.
            None if first.is_optional => self.follow(rest, text, start, true),
            None => None,
        }
    }

    /// Where the elements end when the first of them follows an anchor.
    fn follow_anchor(&self, elements: &[Element], nexts: &mut Nexts<'_>) -> Option<usize> {
        let Some((element, rest)) = elements.split_first() else { return Some(nexts.from) };
        if !self.is_spaced {
            return self.follow(elements, nexts.text, nexts.from, false);
        }
        for nth in 0..=element.filler {
            let Some((here, opening)) = nexts.nth(nth) else { break };
            if element.words.may_begin(opening)
                && let Some(end) = element.words.known_end_of(nexts.text, here, true)
                && let Some(end) = self.follow(rest, nexts.text, end, false)
            {
                return Some(end);
            }
        }
        if element.is_optional { self.follow_anchor(rest, nexts) } else { None }
    }

    /// Where the elements end when the first of them follows at `at`.
    fn follow(&self, elements: &[Element], text: &[u8], at: usize, is_start: bool) -> Option<usize> {
        let Some((element, rest)) = elements.split_first() else { return Some(at) };
        let mut position = if is_start { Some(at) } else { skip_gap(text, at, self.is_spaced) };
        let words = if self.is_spaced { element.filler } else { element.filler * 3 };
        for _ in 0..=words {
            let Some(here) = position else { break };
            if let Some(end) = element.words.end_of(text, here, self.is_spaced)
                && let Some(end) = self.follow(rest, text, end, false)
            {
                return Some(end);
            }
            position = if self.is_spaced {
                skip_word(text, here).and_then(|end| skip_gap(text, end, true))
            } else {
                text.get(here).filter(|byte| !matches!(byte, b'\n' | b'.' | b'!' | b'?')).map(|_| here + 1)
            };
        }
        if element.is_optional { self.follow(rest, text, at, is_start) } else { None }
    }
}
