//! What windows come to, half by half.
//!
//! Each half of a window is weighed once for both windows that it is in: what its words come to, what of that it shares with
//! the half before, and a list of what its classes of words weigh. What is said twice in a window counts once, so a window comes
//! to its halves less what they share. Classes count in the order in which they stand, behind concepts and with pairs that reach
//! from half to half, so their lists are added up for each window; but what a pair weighs is looked up once for all texts.

use super::Known;
use super::memory::Seen;
use super::reading::{Named, PAIRED, Part, Related, each_related};
use super::tokens;
use crate::rules::Speaker;
use crate::rules::meanings::Meant;
use crate::rules::wording::{BEGINNING, SENSES, Sum, WORDS};

/// Classes of which pairs are remembered, at most; those of more are worked out each time.
const CLASSES_MAX: usize = 256;
/// Places of words as bits, 64 at a time.
const WORDS_OF_64: usize = WORDS / 64;
/// Places of senses as bits, 64 at a time.
const SENSES_OF_64: usize = SENSES / 64;

/// A class, a pair of classes, or a class that begins a sentence: the place that tells it, and what it weighs.
#[derive(Clone, Copy)]
struct Sense {
    place: u16,
    weight: i32,
}

impl Sense {
    /// What was not worked out yet; no sense has that place.
    const UNKNOWN: Self = Self { place: u16::MAX, weight: 0 };

    fn of(known: Known<'_>, places: tokens::Places, times: i64) -> Self {
        let weight = times * known.wording.of_sense(places);
        // Two places of the largest number, several times, are far from the bounds of this type.
        Self { place: places[0], weight: weight.clamp(i32::MIN.into(), i32::MAX.into()) as i32 }
    }
}

/// What classes and pairs of them weigh for one speaker, as far as texts have asked.
#[derive(Default)]
struct Senses {
    /// Of each class those with the classes up to it. What it weighs itself stands where it would be with itself.
    pairs: Vec<Sense>,
    beginnings: Vec<Sense>,
}

impl Senses {
    /// Makes room for so many classes.
    fn fit(&mut self, classes: usize) {
        let classes = classes.min(CLASSES_MAX);
        if self.beginnings.len() < classes {
            self.beginnings.resize(classes, Sense::UNKNOWN);
            self.pairs.resize(classes * (classes + 1) / 2, Sense::UNKNOWN);
        }
    }

    #[inline]
    fn of(&mut self, known: Known<'_>, class: u16, related: Related) -> Sense {
        let with = |other: u16| {
            let (low, high) = (usize::from(class.min(other)), usize::from(class.max(other)));
            high * (high + 1) / 2 + low
        };
        let slot = match related {
            Related::Alone => self.pairs.get_mut(with(class)),
            Related::With(other, _) => self.pairs.get_mut(with(other)),
            Related::Begins => self.beginnings.get_mut(usize::from(class)),
        };
        match slot {
            Some(sense) if sense.place != Sense::UNKNOWN.place => *sense,
            Some(sense) => {
                *sense = worked_out(known, class, related);
                *sense
            }
            None => worked_out(known, class, related),
        }
    }
}

fn worked_out(known: Known<'_>, class: u16, related: Related) -> Sense {
    let Known { meanings, who, .. } = known;
    let id = meanings.id(class);
    match related {
        Related::Alone => Sense::of(known, tokens::class(id, who), 1),
        Related::With(other, _) => Sense::of(known, tokens::pair(id, meanings.id(other), who), 1),
        Related::Begins => Sense::of(known, tokens::beginning(id, who), BEGINNING),
    }
}

/// What a half comes to.
#[derive(Default)]
struct Half {
    /// Its number.
    nth: Option<usize>,
    words: i64,
    features: usize,
    /// The same of what stands in the half before as well.
    shared: (i64, usize),
    /// What its classes weigh, in order, without pairs with the half before.
    senses: Vec<Sense>,
    /// How many of these are of the first words, which the half before makes pairs with.
    first: usize,
}

/// The sums of the two halves that were read last: one of an even number, and one of an odd number.
pub(super) struct Sums {
    halves: [Half; 2],
    /// Places of words that stand in each.
    seen: Box<[Seen<WORDS_OF_64>; 2]>,
    of_users: Senses,
    of_tools: Senses,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            halves: Default::default(),
            seen: Box::new([Seen::NOTHING; 2]),
            of_users: Senses::default(),
            of_tools: Senses::default(),
        }
    }
}

impl Sums {
    /// Heap used, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let senses = self.halves.iter().map(|half| half.senses.capacity());
        let of = |known: &Senses| known.pairs.capacity() + known.beginnings.capacity();
        let senses = senses.sum::<usize>() + of(&self.of_users) + of(&self.of_tools);
        senses * size_of::<Sense>() + size_of_val(&*self.seen)
    }

    /// Begins a text.
    pub(super) fn begin(&mut self) {
        self.halves.iter_mut().for_each(|half| half.nth = None);
    }

    /// What a window comes to, by its number, of which these are the halves, and the concepts in it.
    pub(super) fn of(
        &mut self,
        nth: usize,
        parts: [&Part; 2],
        concepts: &[Named<'_>],
        known: Known<'_>,
    ) -> Sum {
        let mut is_old = true;
        for (half, part) in (nth..).zip(parts) {
            // What the second shares with the first is only known where that was weighed before.
            is_old &= self.halves[half % 2].nth == Some(half);
            if !is_old {
                self.weigh(half, part, known);
            }
        }
        self.together(nth, parts, concepts, known)
    }

    /// Weighs a half by its number, beside the one that was weighed before.
    fn weigh(&mut self, nth: usize, part: &Part, known: Known<'_>) {
        let is_odd = !nth.is_multiple_of(2);
        let [even, odd] = &mut *self.seen;
        let (own, other) = if is_odd { (odd, &*even) } else { (even, &*odd) };
        *own = Seen::NOTHING;
        let half = &mut self.halves[usize::from(is_odd)];
        half.nth = Some(nth);
        (half.words, half.features, half.shared) = (0, 0, (0, 0));
        for place in part.tokens.iter().flat_map(|token| token.buckets) {
            // Nobody can foretell which are new, so that nothing is asked.
            let is_new = u8::from(own.is_new(place));
            let is_shared = is_new & u8::from(other.has(place));
            let weight = known.wording.of_words(place);
            half.words += weight * i64::from(is_new);
            half.features += usize::from(is_new);
            half.shared.0 += weight * i64::from(is_shared);
            half.shared.1 += usize::from(is_shared);
        }
        let senses = match known.who {
            Speaker::User => &mut self.of_users,
            Speaker::Tool => &mut self.of_tools,
        };
        senses.fit(known.meanings.names().len());
        let (first, rest) = part.meant.split_at(part.meant.len().min(PAIRED));
        half.senses.clear();
        let mut add = |meant: &Meant, related| half.senses.push(senses.of(known, meant.class, related));
        each_related(&[], first, &mut add);
        half.first = half.senses.len();
        let mut add = |meant: &Meant, related| half.senses.push(senses.of(known, meant.class, related));
        each_related(first, rest, &mut add);
    }

    /// What a window comes to, of which the halves were weighed one after the other.
    fn together(&mut self, nth: usize, parts: [&Part; 2], concepts: &[Named<'_>], known: Known<'_>) -> Sum {
        let (before, after) = (&self.halves[nth % 2], &self.halves[(nth + 1) % 2]);
        let mut sum = Sum {
            words: before.words + after.words - after.shared.0,
            features: before.features + after.features - after.shared.1,
            ..Sum::default()
        };
        let mut seen = Seen::<SENSES_OF_64>::NOTHING;
        for one in concepts.iter().filter(|one| seen.is_new(one.places[0])) {
            sum.concepts += known.wording.of_sense(one.places);
        }
        let (mut meanings, mut meant) = (0, 0);
        let mut add = |sense: Sense| {
            let is_new = seen.is_new(sense.place);
            meanings += i64::from(sense.weight) * i64::from(is_new);
            meant += usize::from(is_new);
        };
        before.senses.iter().for_each(|sense| add(*sense));
        let senses = match known.who {
            Speaker::User => &mut self.of_users,
            Speaker::Tool => &mut self.of_tools,
        };
        let [of_before, of_after] = parts;
        let first = &of_after.meant[..of_after.meant.len().min(PAIRED)];
        each_related(&of_before.meant, first, &mut |one, related| {
            add(senses.of(known, one.class, related));
        });
        after.senses[after.first..].iter().for_each(|sense| add(*sense));
        Sum { meanings, meant, ..sum }
    }
}
