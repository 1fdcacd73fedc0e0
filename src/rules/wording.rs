//! What words and pairs of words weigh: a table of hashed features, which is a part of a model.
//!
//! A feature is a hash of one word, of two words with their distance, of the name of a concept, or of one or two classes of words
//! ([`super::meanings`]); it has a place in the table, which it may share with others (Weinberger et al., "Feature Hashing for Large
//! Scale Multitask Learning", 2009). Words have [`WORDS`] places, and concepts and classes [`SENSES`] of their own: of those there are
//! few, and what is learned of one must not be spoilt by words. Concepts and classes have two places each, one whoever
//! speaks and one for who does (Daumé, "Frustratingly Easy Domain Adaptation", 2007): what is an order from a user is often only a
//! report from a tool.
//!
//! A place holds a whole number from -31 to 31, written as one letter, and weighs that number times its size: most weights are small,
//! and few are large. No word can be read back from it.

use serde::{Deserialize, Serialize};

use super::Speaker;
use super::model::{ORDER, is_in_order, probability};

/// Places of words and pairs of words.
pub const WORDS: usize = 1 << 16;
/// Places of concepts, classes of words, and pairs of classes; they stand behind those of words.
pub const SENSES: usize = 1 << 15;
/// Places of the table.
pub const BUCKETS: usize = WORDS + SENSES;
/// Largest number of a place.
pub const NUMBER_MAX: i8 = 31;
/// The letter of each number, from the least to the largest.
const LETTERS: &[u8; 63] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+";
/// Fewest features that a window counts as: a word or two that stand alone prove little, however much they weigh.
pub const FEATURES_MIN: usize = 24;
/// What a concept counts at each of its places, beside the words of which each counts one by the root of their number: as much as
/// one of a hundred.
pub const CONCEPT: f64 = 0.1;
/// What classes of words count beside the words themselves, each by the root of their number.
pub const MEANING: f64 = 0.65;
/// What a class counts that begins a sentence, beside one that stands elsewhere: there, an order is one to the reader.
pub const BEGINNING: i64 = 2;
/// Fewest features of classes that a window counts as.
pub const MEANINGS_MIN: usize = 40;
/// Log-odds that are taken from the best window of a text each time the number of windows it was chosen from doubles: the
/// more there are, the more likely one of them sounds like an attack by chance.
const CHOICE: f64 = 0.2;
/// Most such doublings, or signs strewn over a long text would hide an attack in it.
const CHOICE_MAX: u32 = 4;
/// Letters of the table on one line of a file.
const LINE: usize = 120;

/// From which probability texts of one kind warn and block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `speaker`, `warn` and `block`")]
pub struct WordingBounds {
    /// Who speaks.
    pub speaker: Speaker,
    /// Whether texts in languages other than English are meant; see [`crate::text::is_foreign`]. Of those fewer are known to the
    /// model, so that what their words come to is less.
    #[serde(default)]
    pub foreign: bool,
    /// Probability from which such a text warns.
    pub warn: f64,
    /// Probability from which such a text blocks.
    pub block: f64,
}

impl WordingBounds {
    /// The kind of text for people, such as `user, not in English`.
    pub fn kind(&self) -> String {
        format!("{}{}", self.speaker.as_str(), if self.foreign { ", not in English" } else { "" })
    }
}

/// What words weigh, as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[model.wording]`")]
pub struct WordingDef {
    /// Log-odds of one unit of weight, times the root of the number of features; see [`Wording::odds`].
    pub scale: f64,
    /// Log-odds before anything is read.
    pub bias: f64,
    /// Probability from which a text warns.
    pub warn: f64,
    /// Probability from which a text blocks.
    pub block: f64,
    /// Probabilities of kinds of text of their own. Without those of foreign texts, those of the same speaker hold for them.
    #[serde(default)]
    pub bounds: Vec<WordingBounds>,
    /// The table: a letter for each place. Line breaks do not count.
    pub table: String,
}

impl WordingDef {
    /// The field that is wrong, and why.
    pub(super) fn problem(&self) -> Option<(&'static str, String)> {
        if !(self.scale > 0.0 && self.scale <= 1.0) {
            return Some(("wording.scale", "must be above 0.0 and at most 1.0".to_owned()));
        }
        if !(-100.0..=100.0).contains(&self.bias) {
            return Some(("wording.bias", "must be from -100.0 to 100.0".to_owned()));
        }
        if !is_in_order(self.warn, self.block) {
            return Some(("wording.block", ORDER.to_owned()));
        }
        if let Some(wrong) = self.bounds.iter().find(|own| !is_in_order(own.warn, own.block)) {
            return Some(("wording.bounds", format!("those of {}: {ORDER}", wrong.kind())));
        }
        let is_twice = |(nth, own): (usize, &WordingBounds)| {
            self.bounds[..nth]
                .iter()
                .any(|other| (other.speaker, other.foreign) == (own.speaker, own.foreign))
        };
        if let Some(twice) = self.bounds.iter().enumerate().find(|own| is_twice(*own)) {
            return Some(("wording.bounds", format!("two are of {}; keep one", twice.1.kind())));
        }
        match self.read() {
            Ok(numbers) if numbers.len() == BUCKETS => None,
            Ok(numbers) => {
                Some(("wording.table", format!("holds {} numbers instead of {BUCKETS}", numbers.len())))
            }
            Err(other) => Some(("wording.table", format!("`{}` stands for no number", other.escape_ascii()))),
        }
    }

    /// The numbers of the table, or a byte that stands for none.
    fn read(&self) -> Result<Vec<i8>, u8> {
        let number = |letter: u8| {
            let at = LETTERS.iter().position(|known| *known == letter).ok_or(letter)?;
            Ok(at as i8 - NUMBER_MAX)
        };
        self.table.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(number).collect()
    }

    /// The table of these numbers, as it is written.
    pub fn written(numbers: &[i8]) -> String {
        let mut out = String::with_capacity(numbers.len() + numbers.len() / LINE + 1);
        for (nth, number) in numbers.iter().enumerate() {
            if nth % LINE == 0 && nth > 0 {
                out.push('\n');
            }
            let number = number.clamp(&-NUMBER_MAX, &NUMBER_MAX) + NUMBER_MAX;
            out.push(char::from(LETTERS[usize::from(number.cast_unsigned())]));
        }
        out
    }
}

/// What the features of a window come to, in units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Of its words and pairs of words.
    pub words: i64,
    /// How many these are.
    pub features: usize,
    /// Of the concepts hit in it.
    pub concepts: i64,
    /// Of classes of words, pairs of them, and classes that begin a sentence, which count [`BEGINNING`].
    pub meanings: i64,
    /// How many these are.
    pub meant: usize,
}

/// What words weigh, ready to be looked up.
#[derive(Clone, Debug)]
pub struct Wording {
    scale: f64,
    bias: f64,
    bounds: (f64, f64),
    own_bounds: Vec<WordingBounds>,
    /// Numbers rather than weights: half the memory, which texts read all over.
    words: Box<[i8; WORDS]>,
    senses: Box<[i8; SENSES]>,
}

/// Numbers of so many places; one that is missing weighs nothing.
fn filled<const PLACES: usize>(numbers: &[i8]) -> Box<[i8; PLACES]> {
    let mut all = numbers[..numbers.len().min(PLACES)].to_vec();
    all.resize(PLACES, 0);
    all.into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("a vector of that length"))
}

impl Wording {
    /// Reads what was checked by [`WordingDef::problem`]; a place that is missing weighs nothing.
    pub(crate) fn of(def: &WordingDef) -> Self {
        let numbers = def.read().unwrap_or_default();
        let (words, senses) = numbers.split_at(WORDS.min(numbers.len()));
        Self {
            scale: def.scale,
            bias: def.bias,
            bounds: (def.warn, def.block),
            own_bounds: def.bounds.clone(),
            words: filled(words),
            senses: filled(senses),
        }
    }

    /// Weight of the words in a place, in units.
    #[inline]
    pub fn of_words(&self, place: u16) -> i64 {
        i64::from(unit(self.words[usize::from(place)]))
    }

    /// Weight of a concept or of classes of words, in units, by its places among those of senses.
    #[inline]
    pub fn of_sense(&self, places: [u16; 2]) -> i64 {
        places.iter().map(|place| i64::from(unit(self.senses[usize::from(*place) % SENSES]))).sum()
    }

    /// Log-odds that a window gives. A text ten times as long has ten times the features, and those of no meaning scatter by
    /// the root of their number; there are [`FEATURES_MIN`] at the least.
    pub fn odds(&self, sum: Sum) -> f64 {
        let words = sum.words as f64 / (sum.features.max(FEATURES_MIN) as f64).sqrt();
        let meanings = sum.meanings as f64 / (sum.meant.max(MEANINGS_MIN) as f64).sqrt();
        self.scale * (words + CONCEPT * sum.concepts as f64 + MEANING * meanings)
    }

    /// Log-odds of an attack before anything is read, for a window that is the best of so many.
    pub fn bias(&self, windows: usize) -> f64 {
        self.bias - choice(windows)
    }

    /// Probability of an attack for a text of so many windows, the best of which gives `sum`.
    pub fn probability(&self, sum: Sum, windows: usize) -> f64 {
        probability(self.bias(windows) + self.odds(sum))
    }

    /// The probabilities from which a text warns and blocks, by who speaks and whether it is in another language than
    /// English.
    pub fn bounds(&self, speaker: Speaker, is_foreign: bool) -> (f64, f64) {
        let of = |foreign: bool| {
            self.own_bounds.iter().find(|own| (own.speaker, own.foreign) == (speaker, foreign))
        };
        let own = if is_foreign { of(true).or_else(|| of(false)) } else { of(false) };
        own.map_or(self.bounds, |own| (own.warn, own.block))
    }

    /// Whether a text of some language may warn at this probability.
    pub fn may_warn(&self, speaker: Speaker, probability: f64) -> bool {
        [false, true].iter().any(|foreign| probability >= self.bounds(speaker, *foreign).0)
    }

    /// Probabilities of kinds of text of their own.
    pub fn own_bounds(&self) -> &[WordingBounds] {
        &self.own_bounds
    }

    /// Places that weigh anything.
    pub fn known(&self) -> usize {
        self.words.iter().chain(self.senses.iter()).filter(|number| **number != 0).count()
    }
}

/// Log-odds that the best of so many windows gives up for having been chosen.
pub fn choice(windows: usize) -> f64 {
    CHOICE * f64::from(windows.max(1).ilog2().min(CHOICE_MAX))
}

/// Units that a number of the table stands for.
#[inline]
pub fn unit(number: i8) -> i16 {
    i16::from(number) * i16::from(number).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn def() -> WordingDef {
        let mut numbers = vec![0i8; BUCKETS];
        (numbers[0], numbers[7], numbers[BUCKETS - 1]) = (-31, 3, 30);
        let table = WordingDef::written(&numbers);
        WordingDef { scale: 0.001, bias: -3.0, warn: 0.4, block: 0.8, bounds: Vec::new(), table }
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let def = def();
        assert!(def.table.lines().all(|line| line.len() <= LINE) && def.table.lines().count() > 700);
        assert_eq!(def.problem(), None);
        let wording = Wording::of(&def);
        assert_eq!((wording.of_words(0), wording.of_words(7)), (-961, 9));
        assert_eq!((wording.of_sense([0, SENSES as u16 - 1]), wording.known()), (900, 3));
        let sum = |words, features| Sum { words, features, ..Sum::default() };
        assert_eq!((wording.odds(sum(10_000, 400)), wording.bias(1)), (0.5, -3.0));
        assert_eq!(wording.odds(Sum { concepts: 10_000, ..sum(10_000, 400) }), 1.5);
        assert!(wording.bias(2) < wording.bias(1) && wording.bias(1 << 9) == wording.bias(16));
        assert_eq!(
            wording.odds(sum(10_000, 1)),
            wording.odds(sum(10_000, FEATURES_MIN)),
            "few words prove little"
        );
        assert!(
            wording.probability(sum(60_000, 100), 1) > 0.9 && wording.probability(sum(10_000, 100), 1) < 0.2
        );
    }

    #[test]
    fn kinds_of_text_have_bounds_of_their_own() {
        let own = |foreign, block| WordingBounds { speaker: Speaker::User, foreign, warn: 0.2, block };
        let of = |bounds| Wording::of(&WordingDef { bounds, ..def() });
        let both = of(vec![own(false, 0.6), own(true, 0.5)]);
        let blocks = |wording: &Wording| {
            [(Speaker::User, false), (Speaker::User, true), (Speaker::Tool, true)]
                .map(|(speaker, is_foreign)| wording.bounds(speaker, is_foreign).1)
        };
        assert_eq!(blocks(&both), [0.6, 0.5, 0.8]);
        assert!(both.may_warn(Speaker::User, 0.3) && !both.may_warn(Speaker::Tool, 0.3));
        assert_eq!(blocks(&of(vec![own(false, 0.6)])), [0.6, 0.6, 0.8]);
        assert_eq!(blocks(&of(Vec::new())), [0.8, 0.8, 0.8]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |change: &dyn Fn(&mut WordingDef)| {
            let mut def = def();
            change(&mut def);
            def.problem().map(|(field, _)| field)
        };
        assert_eq!(wrong(&|d| d.scale = 0.0), Some("wording.scale"));
        assert_eq!(wrong(&|d| d.bias = f64::NAN), Some("wording.bias"));
        assert_eq!(wrong(&|d| d.block = 0.3), Some("wording.block"));
        let own = |foreign, block| WordingBounds { speaker: Speaker::User, foreign, warn: 0.2, block };
        assert_eq!(wrong(&|d| d.bounds = vec![own(true, 0.3), own(false, 0.4)]), None);
        assert_eq!(wrong(&|d| d.bounds = vec![own(true, 0.3), own(true, 0.4)]), Some("wording.bounds"));
        assert_eq!(wrong(&|d| d.bounds = vec![own(true, 0.1)]), Some("wording.bounds"));
        assert_eq!(wrong(&|d| d.table.truncate(400)), Some("wording.table"));
        assert_eq!(wrong(&|d| d.table.replace_range(7..8, "?")), Some("wording.table"));
    }
}
