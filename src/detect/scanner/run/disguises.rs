//! Phrases in disguise: in leetspeak, set apart, backwards, rotated, in pig latin and the like.

use std::ops::Range;

use super::{Part, Run};
use crate::detect::scanner::reach::Shown;
use crate::rules::{Hints, ScanStop};
use crate::text::{self, Looks, View, stretches};

/// How many disguises lie over each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// One: what is read is a view as it came.
    First,
    /// Two: what is read is a disguise already.
    Second,
}

/// Longest word that is hardly several words, in bytes.
const WORD_MAX: usize = 12;
/// Longest word that is looked up backwards, in bytes.
const BACKWARDS_MAX: usize = 32;

/// Whether a word is known once it is read backwards.
fn is_known_backwards(word: &[u8], is_known: impl Fn(&[u8]) -> bool) -> bool {
    let mut letters = [0; BACKWARDS_MAX];
    let Some(backwards) = letters.get_mut(..word.len()) else { return false };
    backwards.copy_from_slice(word);
    backwards.reverse();
    is_known(backwards)
}

impl Run<'_, '_> {
    /// Scans the disguises of phrases that show through in `view`, for injection only: in leetspeak or backwards,
    /// a credential or a card number is no longer one. Of a derived view, only what is near something it changed. What most of
    /// them say may be in disguise once more.
    pub(super) fn phrases(
        &mut self,
        view: &View<'_>,
        is_derived: bool,
        hints: Hints,
        depth: Depth,
    ) -> Result<(), ScanStop> {
        let injection = self.request.plugins & self.scanner.injection;
        if injection == 0 {
            return Ok(());
        }
        let reach = self.scanner.reach;
        let mut signs = std::mem::take(&mut self.signs);
        signs.sort_unstable_by_key(|sign| sign.start);
        if !hints.rot13.is_empty() {
            let shown = Shown::around(view, hints.rot13, reach);
            self.disguise(&text::rot13(shown.view(view)), Some(&shown.near), injection)?;
        }
        if !hints.reversed.is_empty() {
            let shown = Shown::around(view, hints.reversed, reach);
            self.disguise(&text::reversed(shown.view(view)), Some(&shown.near), injection)?;
            self.disguise(&text::reversed_words(shown.view(view)), Some(&shown.near), injection)?;
        }
        let changed = match is_derived {
            true => {
                let changed = view.changes(0, None);
                if changed.is_empty() {
                    return Ok(());
                }
                Some(Shown::around(view, changed, reach))
            }
            false => None,
        };
        let (mut view, mut near) = (view, None);
        if let Some(shown) = &changed {
            if let Some(cut) = &shown.cut {
                signs = signs.iter().filter_map(|sign| cut.at(sign)).collect();
            }
            (view, near) = (shown.view(view), Some(&*shown.near));
        }
        let scanner = self.scanner;
        let rules = &scanner.rules;
        let is_known = |word: &[u8]| rules.is_phrase_word(word);
        let begins = |letters: &[u8]| rules.begins_phrase_word(letters);
        // Several words may be written without blanks.
        let in_leet = |word: &[u8]| if word.len() > WORD_MAX { begins(word) } else { is_known(word) };
        let reasons = text::leet_reasons(view, |word| in_leet(word) || is_known_backwards(word, in_leet));
        if !reasons.is_empty() {
            let shown = Shown::around(view, reasons, reach);
            if let Some(leet) = text::leet(shown.view(view)) {
                let both = near.map(|near| stretches::common(near, &shown.near));
                let near = Some(&**both.as_ref().unwrap_or(&shown.near));
                self.disguise_of(&leet, near, injection, depth)?;
            }
        }
        let looks = Looks::at(view.text());
        let may_be_spaced = looks.may_be_spaced() || !view.text().is_ascii();
        let spaced = may_be_spaced.then(|| text::spaced(view)).flatten();
        let morse = text::morse(view);
        let backwards = text::morse_backwards(view);
        let set_apart = [
            spaced,
            text::apart(view, &looks),
            text::signs_apart(view, &looks),
            morse,
            text::numbers(view, &looks),
        ];
        for set_apart in set_apart.iter().flatten() {
            self.disguise_of(set_apart, near, injection, depth)?;
            if depth == Depth::First {
                self.encoded(set_apart, near, injection)?;
            }
        }
        let reasons = text::broken_reasons(view, &looks, begins);
        if !reasons.is_empty() {
            let shown = Shown::around(view, reasons, reach);
            if let Some(whole) = text::unbroken(shown.view(view)) {
                let both = near.map(|near| stretches::common(near, &shown.near));
                let near = Some(&**both.as_ref().unwrap_or(&shown.near));
                self.disguise_of(&whole, near, injection, depth)?;
            }
        }
        if let Some(plain) = text::ciphers(view, &looks, begins) {
            self.disguise_of(&plain, near, injection, depth)?;
        }
        if depth == Depth::First {
            for turned in text::turned_escapes(view) {
                self.disguise(&turned, near, injection)?;
            }
        }
        // Alone, a letter of another script looks like any other of it.
        let look_alikes =
            (depth == Depth::Second && !view.text().is_ascii()).then(|| text::look_alikes(view));
        if let Some(undone) = text::layout(view, &signs, is_known) {
            let both = near.map(|near| stretches::common(near, &undone.stretches));
            let near = both.as_ref().unwrap_or(&undone.stretches);
            self.disguised += undone.view.text().len();
            self.view(&undone.view, Part::Gaps(near), injection)?;
        }
        let disguises = [
            look_alikes.flatten(),
            backwards,
            text::pig_latin(view, is_known),
            text::spelled(view),
            text::upside_down(view),
        ];
        disguises.iter().flatten().try_for_each(|disguise| self.disguise(disguise, near, injection).map(drop))
    }

    /// Scans a disguise, and at first those that show through in it.
    fn disguise_of(
        &mut self,
        disguise: &View<'_>,
        near: Option<&[Range<usize>]>,
        injection: u32,
        depth: Depth,
    ) -> Result<(), ScanStop> {
        let hints = self.disguise(disguise, near, injection)?;
        match depth {
            Depth::First => self.phrases(disguise, true, hints, Depth::Second),
            Depth::Second => Ok(()),
        }
    }

    /// Scans what is encoded in a disguise, and what invisible characters hide in it, near of what it changed.
    fn encoded(
        &mut self,
        disguise: &View<'_>,
        near: Option<&[Range<usize>]>,
        injection: u32,
    ) -> Result<(), ScanStop> {
        let changed = Shown::around(disguise, disguise.changes(0, None), self.scanner.reach);
        let shown = changed.view(disguise);
        let both = near.map(|near| stretches::common(near, &changed.near));
        let near = both.as_deref().unwrap_or(&changed.near);
        let below = [text::folded(shown), text::decoded(shown)];
        below.iter().flatten().try_for_each(|view| self.disguise(view, Some(near), injection).map(drop))
    }

    /// Scans a disguise for injection; of it, where ranges of the text as sent are given, only what came from those.
    pub(super) fn disguise(
        &mut self,
        disguise: &View<'_>,
        near: Option<&[Range<usize>]>,
        injection: u32,
    ) -> Result<Hints, ScanStop> {
        self.disguised += disguise.text().len();
        self.view(disguise, Part::Changed(near), injection)
    }
}
