//! Windows of a text and their features.
//!
//! A text no longer than the model's window is weighed whole; in a longer one a window begins a quarter of its length
//! before a hit, and the next window a quarter of its length further on at the least, so that each hit is counted in
//! few windows and the work is linear in the hits.

use std::fmt::Write as _;
use std::ops::Range;

use super::quote::is_quoted;
use super::tag::ends_own_element;
use super::{CODED_FEATURES, Hit, Thresholds, feature_of, is_disguise, speaker};
use crate::detect::Request;
use crate::rules::{Concept, Model, RuleSet, Speaker};
use crate::text::Layers;

/// Most hits of one text that are weighed, of those that speak for an attack and of those that do not. A text with more is weighed
/// by its first ones; so many are an attack or a word list. As many mentions of the subject are looked at for quotation marks.
const HITS_MAX: usize = 20_000;
/// Bytes of a text in which its subject counts once, and of its mentions that are looked at there.
const TOPIC_BYTES: usize = 128;
const TOPICS_MAX: usize = 2;
/// How near a sign of weight and that of another family must stand, in bytes, to be one thought.
const THOUGHT_BYTES: usize = 250;
/// Least log-odds of a family for a sign of weight.
const HEAVY: f64 = 0.9;
/// Probability from which signs that are scattered over a window of data block: formal prose has weak ones anywhere, while
/// a prompt of a user is written to be obeyed.
const SCATTERED_BLOCK: f64 = 0.97;
/// Most concepts that a description names.
const NAMED_MAX: usize = 12;

/// The hits of one text, ready to be weighed.
pub struct Evidence<'r> {
    families: &'r [Concept],
    text_len: usize,
    speaker: Option<Speaker>,
    hits: Vec<Counted>,
    /// Where the subject is named outside quotation marks, in order.
    topics: Vec<Range<usize>>,
}

/// A hit and what it counts for.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub hit: Hit,
    /// Whether it stands in quotation marks, and so does not count for its family.
    pub is_quoted: bool,
}

/// A window and what speaks for and against an attack in it.
#[derive(Clone, Debug)]
pub struct Weighed {
    /// Values of the features that are not zero, by index.
    pub values: Vec<(usize, f64)>,
    /// Probability of an attack.
    pub probability: f64,
    pub(super) hits: Vec<Counted>,
    /// Log-odds that each family gave, with where it was first hit.
    parts: Vec<(usize, f64, Range<usize>)>,
}

/// The first mention of each stretch of a text that is not `quoted`, of its first [`TOPICS_MAX`]; after [`HITS_MAX`] looks any: a
/// flood of mentions costs no more, and hides none that stand behind it. They are in order.
fn thinned(
    mentions: impl Iterator<Item = Range<usize>>,
    quoted: impl Fn(&Range<usize>) -> bool,
) -> Vec<Range<usize>> {
    let mut kept: Vec<Range<usize>> = Vec::new();
    let (mut stretch, mut left, mut looks) = (0, TOPICS_MAX, HITS_MAX);
    for mention in mentions {
        if mention.start / TOPIC_BYTES != stretch {
            (stretch, left) = (mention.start / TOPIC_BYTES, TOPICS_MAX);
        }
        if left > 0 {
            left -= 1;
            let is_looked_at = looks > 0;
            looks -= usize::from(is_looked_at);
            if !(is_looked_at && quoted(&mention)) {
                left = 0;
                kept.push(mention);
            }
        }
    }
    kept
}

/// The first hits, those that speak for an attack and those that do not.
fn first(hits: &mut Vec<Hit>, families: &[Concept]) {
    let mut left = [HITS_MAX; 2];
    hits.retain(|hit| {
        let left = &mut left[usize::from(families[hit.family].speaks())];
        let is_kept = *left > 0;
        *left -= usize::from(is_kept);
        is_kept
    });
}

impl<'r> Evidence<'r> {
    /// The evidence of the hits in a text.
    pub(in crate::detect) fn of(rules: &'r RuleSet, request: &Request<'_>, hits: Vec<Hit>) -> Self {
        Self::new(rules.families(), request.text, speaker(request.role, request.surface), hits)
    }

    fn new(families: &'r [Concept], text: &str, speaker: Option<Speaker>, mut hits: Vec<Hit>) -> Self {
        hits.sort_by_key(|hit| (hit.range.start, hit.family, hit.range.end));
        // The same words seen through several views, or by several concepts of one family, are one hit.
        let mut ends = vec![0; families.len()];
        hits.retain(|hit| {
            let is_new = hit.range.start >= ends[hit.family];
            ends[hit.family] = ends[hit.family].max(hit.range.end);
            is_new && !ends_own_element(text, &hit.range)
        });
        let (topics, mut hits): (Vec<Hit>, Vec<Hit>) =
            hits.into_iter().partition(|hit| families[hit.family].is_topic);
        first(&mut hits, families);
        let topics = thinned(topics.into_iter().map(|hit| hit.range), |range| is_quoted(text, range));
        let count = |hit: Hit| {
            let is_quoted = !families[hit.family].is_against && is_quoted(text, &hit.range);
            Counted { hit, is_quoted }
        };
        let hits = hits.into_iter().map(count).collect();
        Self { families, text_len: text.len(), speaker, hits, topics }
    }

    /// Where something speaks for an attack, or names the subject, outside quotation marks; in order.
    pub(in crate::detect) fn signs(&self) -> Vec<Range<usize>> {
        let speaking = self.hits.iter().filter(|counted| self.speaks(counted) && !counted.is_quoted);
        let mut signs = self.topics.clone();
        signs.extend(speaking.map(|counted| counted.hit.range.clone()));
        signs.sort_by_key(|sign| sign.start);
        signs
    }

    /// What was hit, by name and place, in order; what stands in quotation marks has their name alone.
    pub(in crate::detect) fn concepts(&self) -> impl Iterator<Item = (&str, &Range<usize>)> {
        self.hits.iter().map(|counted| {
            let family = &self.families[counted.hit.family].family;
            (if counted.is_quoted { "quoted" } else { family.as_str() }, &counted.hit.range)
        })
    }

    /// Whether anything speaks for an attack.
    pub(super) fn speaks(&self, counted: &Counted) -> bool {
        self.families[counted.hit.family].speaks()
    }

    /// The windows in which something speaks for an attack, in order.
    fn windows(&self, size: usize) -> Vec<Range<usize>> {
        let mut windows: Vec<Range<usize>> = Vec::new();
        let mut next = 0;
        for counted in self.hits.iter().filter(|counted| self.speaks(counted)) {
            if self.text_len <= size {
                return std::iter::once(0..self.text_len).collect();
            }
            let at = counted.hit.range.start;
            if windows.is_empty() || at >= next {
                let start = at.saturating_sub(size / 4);
                windows.push(start..start + size);
                next = at + size / 4;
            }
        }
        windows
    }

    /// The window that the model finds most like an attack; none where nothing speaks for one.
    pub fn best(&self, model: &Model) -> Option<Weighed> {
        Some(self.best_with_window(model)?.1)
    }

    /// The same, with where the window lies.
    pub(super) fn best_with_window(&self, model: &Model) -> Option<(Range<usize>, Weighed)> {
        let weigh = |window: Range<usize>| {
            let weighed = self.weigh_hits(model, self.inside(&window));
            (window, weighed)
        };
        let all = self.windows(model.def.window).into_iter().map(weigh);
        all.reduce(|best, next| if next.1.probability > best.1.probability { next } else { best })
    }

    /// The probabilities from which a window warns and blocks.
    pub(super) fn thresholds(&self, model: &Model, weighed: &Weighed) -> Thresholds {
        let all = Thresholds::of(model, self.speaker, self.text_len, weighed.ideas());
        match matches!(self.speaker, Some(Speaker::Tool)) && weighed.is_scattered() {
            true => Thresholds { block: all.block.max(SCATTERED_BLOCK), ..all },
            false => all,
        }
    }

    /// The name of a feature.
    pub(super) fn name(&self, feature: usize) -> &str {
        match self.families.get(feature) {
            Some(concept) => &concept.family,
            None => CODED_FEATURES[feature - self.families.len()],
        }
    }

    /// Whether a feature is a family that speaks against an attack.
    pub(super) fn is_against(&self, feature: usize) -> bool {
        self.families.get(feature).is_some_and(|concept| concept.is_against)
    }

    /// The weight of a feature, in units of the model.
    pub(super) fn weight(&self, model: &Model, feature: usize) -> f64 {
        model.weight(self.name(feature))
    }

    /// The features of every window of `size` bytes, as values by index; for training.
    pub fn samples(&self, size: usize) -> Vec<Vec<(usize, f64)>> {
        self.windows(size).into_iter().map(|window| self.values(&self.inside(&window))).collect()
    }

    fn inside(&self, window: &Range<usize>) -> Vec<Counted> {
        let first = self.hits.partition_point(|counted| counted.hit.range.start < window.start);
        let rest = self.hits[first..].iter();
        rest.take_while(|counted| counted.hit.range.start < window.end).cloned().collect()
    }

    /// What the model makes of these hits together.
    pub(super) fn weigh_hits(&self, model: &Model, hits: Vec<Counted>) -> Weighed {
        let values = self.values(&hits);
        let weight = |feature: usize| self.weight(model, feature);
        let sum = values.iter().map(|(feature, value)| weight(*feature) * value).sum();
        let mut parts = Vec::new();
        for (feature, value) in values.iter().filter(|(feature, _)| *feature < self.families.len()) {
            let first = hits.iter().find(|counted| counted.hit.family == *feature && !counted.is_quoted);
            parts
                .extend(first.map(|one| {
                    (*feature, weight(*feature) * value * model.def.scale, one.hit.range.clone())
                }));
        }
        parts.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.2.start.cmp(&b.2.start)));
        Weighed { values, probability: model.probability(sum), hits, parts }
    }

    /// How many families speak for an attack, each by words of its own: a tag that two of them know is one sign.
    fn distinct(&self, hits: &[Counted]) -> usize {
        let mut has_spoken = vec![false; self.families.len()];
        let mut end = 0;
        for counted in hits.iter().filter(|counted| self.speaks(counted) && !counted.is_quoted) {
            let Range { start, end: to } = counted.hit.range;
            if start >= end {
                has_spoken[counted.hit.family] = true;
                end = to;
            }
        }
        has_spoken.into_iter().filter(|has| *has).count()
    }

    fn values(&self, hits: &[Counted]) -> Vec<(usize, f64)> {
        let mut counts = vec![0usize; self.families.len()];
        let (mut quoted, mut is_disguised) = (0, false);
        for counted in hits {
            if counted.is_quoted {
                quoted += 1;
            } else {
                counts[counted.hit.family] += 1;
                is_disguised |= self.speaks(counted) && is_disguise(counted.hit.layers);
            }
        }
        let mut values: Vec<(usize, f64)> =
            counts.iter().enumerate().map(|(family, count)| (family, value_of(*count))).collect();
        let distinct = self.distinct(hits);
        for (nth, name) in CODED_FEATURES.iter().enumerate() {
            let value = match *name {
                "surface-user" | "surface-tool" => {
                    f64::from(u8::from(self.speaker.map(feature_of) == Some(*name)))
                }
                "disguised" => f64::from(u8::from(is_disguised)),
                "quoted" => value_of(quoted),
                other => {
                    let least = other.strip_prefix("distinct-").and_then(|n| n.parse().ok());
                    f64::from(u8::from(least.is_some_and(|least: usize| distinct >= least)))
                }
            };
            values.push((self.families.len() + nth, value));
        }
        values.retain(|(_, value)| *value != 0.0);
        values
    }
}

/// What so many hits count: each further one less, so that repeating a phrase proves little.
fn value_of(count: usize) -> f64 {
    match count {
        0 => 0.0,
        1 => 1.0,
        2 => 1.5,
        _ => 1.75,
    }
}

impl Weighed {
    /// The hits that count for an attack. Without one, those in quotation marks.
    fn speaking(&self) -> impl Iterator<Item = &Hit> {
        let for_it: Vec<usize> = self.parts.iter().filter(|part| part.1 > 0.0).map(|part| part.0).collect();
        let is_speaking = move |counted: &&Counted| {
            for_it.is_empty() || (!counted.is_quoted && for_it.contains(&counted.hit.family))
        };
        self.hits.iter().filter(is_speaking).map(|counted| &counted.hit)
    }

    /// How many families speak for an attack.
    pub(super) fn ideas(&self) -> usize {
        self.parts.iter().filter(|part| part.1 > 0.0).count()
    }

    /// Whether several families speak for an attack and none of weight does so near another.
    fn is_scattered(&self) -> bool {
        let odds = |family: usize| self.parts.iter().find(|part| part.0 == family).map_or(0.0, |part| part.1);
        let hits: Vec<(&Range<usize>, usize, f64)> = self
            .hits
            .iter()
            .filter(|counted| !counted.is_quoted)
            .map(|counted| (&counted.hit.range, counted.hit.family, odds(counted.hit.family)))
            .filter(|hit| hit.2 > 0.0)
            .collect();
        let is_thought = |nth: usize| {
            let (range, family, odds) = hits[nth];
            let near =
                hits[..nth].iter().rev().take_while(|other| other.0.start + THOUGHT_BYTES >= range.start);
            near.filter(|other| other.0.end <= range.start)
                .any(|other| other.1 != family && odds.max(other.2) >= HEAVY)
        };
        self.ideas() > 1 && !(0..hits.len()).any(is_thought)
    }

    /// The family that gave most for an attack.
    pub(super) fn heaviest(&self) -> Option<usize> {
        self.parts.first().filter(|part| part.1 > 0.0).map(|part| part.0)
    }

    /// From the first hit that counts for an attack to the end of the last.
    pub(super) fn span(&self) -> Range<usize> {
        let start = self.speaking().map(|hit| hit.range.start).min().unwrap_or_default();
        start..self.speaking().map(|hit| hit.range.end).max().unwrap_or_default()
    }

    pub(super) fn layers(&self) -> Layers {
        self.speaking().fold(Layers::default(), |layers, hit| layers.union(hit.layers))
    }

    /// The concepts that fired with their log-odds and places, and the probability. Places count in UTF-8 bytes.
    pub(super) fn describe(&self, families: &[Concept]) -> String {
        let mut out = format!("Signs of an injection, together {:.2} probable:", self.probability);
        for (nth, (family, odds, at)) in
            self.parts.iter().filter(|part| part.1 != 0.0).take(NAMED_MAX).enumerate()
        {
            let comma = if nth == 0 { "" } else { "," };
            let name = families[*family].family.replace('_', " ");
            // Writing to a String cannot fail.
            let _ = write!(out, "{comma} {name} ({odds:+.1} at {}..{})", at.start, at.end);
        }
        out.push('.');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_counts_once_in_each_stretch() {
        let at = |places: &[usize]| places.iter().map(|at| *at..at + 2).collect::<Vec<_>>().into_iter();
        let starts = |kept: Vec<Range<usize>>| kept.into_iter().map(|place| place.start).collect::<Vec<_>>();
        let quoted = |quoted: &'static [usize]| move |place: &Range<usize>| quoted.contains(&place.start);
        let places = [0, 5, 9, TOPIC_BYTES, TOPIC_BYTES + 4, 5 * TOPIC_BYTES - 1];
        let firsts = [0, TOPIC_BYTES, 5 * TOPIC_BYTES - 1];
        assert_eq!(starts(thinned(at(&places), quoted(&[]))), firsts);
        assert_eq!(
            starts(thinned(at(&places), quoted(&[0, TOPIC_BYTES]))),
            [5, TOPIC_BYTES + 4, 5 * TOPIC_BYTES - 1]
        );
        assert_eq!(starts(thinned(at(&places), quoted(&[0, 5]))), firsts[1..], "the third is not looked at");
        let flood: Vec<usize> = (0..2 * HITS_MAX).map(|nth| nth * TOPIC_BYTES).collect();
        let kept = thinned(at(&flood), |_| true);
        assert_eq!(kept.len(), HITS_MAX, "what is not looked at counts");
    }
}
