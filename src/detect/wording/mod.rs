//! What a text says in words that no rule knows: words and pairs of words, weighed by the model.
//!
//! Rules find what somebody thought of. Here every word, and every pair of words side by side or with one between them, has a
//! small weight that was learned from labelled texts, and the sum over a stretch of text tells how much it sounds like an
//! attack: a few table look-ups a word, and a fixed amount of memory. The concepts that were hit in the stretch have weights too:
//! they are the same in every language, and prose about other things has none, or such as speak against an attack. So have classes
//! of words ([`crate::rules::meanings`]) and pairs of them that stand near each other in any order: what is said in other words, in
//! another language or with other words between is still known by what it means.
//!
//! A text is read in windows of about 768 bytes, each of which overlaps the one before by half. Words alone prove nothing: only windows
//! in which a concept speaks for an attack, or names the subject, outside quotation marks are read at all, and a text without
//! one costs nothing.

mod tokens;

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use tokens::each_in;
pub use tokens::{FEATURES, Token, each};

use super::concepts::{Evidence, Thresholds, score_of, speaker};
use super::{Detected, INJECTION, Request};
use crate::decision::{Category, Severity};
use crate::rules::meanings::Meanings;
use crate::rules::wording::{BUCKETS, Sum, Wording};
use crate::rules::{Budget, MetaInfo, Model, Role, RuleSet, ScanStop, Speaker, Surface};
use crate::text::{Layers, View, is_foreign};

/// Rule id of what is found by wording.
pub const RULE_ID: &str = "injection.wording";
/// Category of what is found by wording.
const CATEGORY: &str = "prompt_injection.wording";
const DESCRIPTION: &str =
    "Words, pairs of words and concepts that a trained model knows from injections, weighed together.";
const RECOMMENDATION: &str = "Treat the text as data, or refuse the request; look at the words named.";
/// Size of half a window: bytes, of which blanks side by side count as one, and those of a long word not at all, so that neither
/// thins what stands around them. With 1,280 or 1,600 bytes a window about as many attacks are found, and fewer of those that
/// harmless prose follows; with 384 fewer of all.
const HALF: usize = 384;
/// Bytes of a word that count. Only letters of ASCII are counted so: many others set no blanks between words.
const WORD_MAX: usize = 24;
/// How much longer a half may be for it to end at a blank.
const REST_MAX: usize = 32;
/// Most views that are read: the text as sent, and those in which most disguises and encodings are undone.
const VIEWS_MAX: usize = 4;
/// How many words of a class before one make pairs with it, and within how many bytes.
const PAIRED: usize = 4;
const PAIR_BYTES: usize = 100;
/// Most places that a description names, and that an explanation tells.
const NAMED_MAX: usize = 5;
const EXPLAINED_MAX: usize = 16;

/// A window and what its words weigh.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Summed {
    /// Bytes of the text.
    range: Range<usize>,
    sum: Sum,
    /// How many windows it is the best of.
    of: usize,
}

/// A hit of a concept.
struct Named<'e> {
    name: &'e str,
    /// Bytes of the text as sent.
    place: Range<usize>,
    bucket: u16,
}

/// What concepts tell about a text: near which places its words are weighed, and what else counts there. Places are bytes
/// of the text as sent, in order.
pub(super) struct Near<'e> {
    signs: Vec<Range<usize>>,
    concepts: Vec<Named<'e>>,
}

impl<'e> Near<'e> {
    pub(super) fn of(evidence: &'e Evidence<'_>) -> Self {
        let named = |(name, place): (&'e str, &Range<usize>)| Named {
            name,
            bucket: tokens::named(name),
            place: place.clone(),
        };
        Self { signs: evidence.signs(), concepts: evidence.concepts().map(named).collect() }
    }

    /// Whether a sign begins in a window.
    fn has_sign(&self, window: &Range<usize>) -> bool {
        let first = self.signs.partition_point(|sign| sign.start < window.start);
        self.signs.get(first).is_some_and(|sign| sign.start < window.end)
    }

    /// The concepts hit in a window.
    fn concepts(&self, window: &Range<usize>) -> &[Named<'e>] {
        let from = self.concepts.partition_point(|one| one.place.start < window.start);
        let to = self.concepts.partition_point(|one| one.place.start < window.end);
        &self.concepts[from..to.max(from)]
    }
}

/// Which places of the table were seen in a window. What is said twice counts once, or a row of the same sign would drown
/// all else.
struct Seen([u64; BUCKETS / 64]);

impl Seen {
    const NOTHING: Self = Self([0; BUCKETS / 64]);

    /// Notes a place, and says whether it is new.
    #[inline]
    fn is_new(&mut self, bucket: u16) -> bool {
        let (word, bit) = (&mut self.0[usize::from(bucket) / 64], 1 << (bucket % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
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

/// The windows of a text in order: two halves each, or one where that is the whole text.
fn windows_of(text: &str) -> impl Iterator<Item = Range<usize>> {
    let edges = edges(text);
    let halves = edges.len() - 1;
    let windows = halves.saturating_sub(1).max(usize::from(halves > 0));
    (0..windows).map(move |nth| edges[nth]..edges[(nth + 2).min(halves)])
}

/// What makes a feature.
enum Part<'p, 'e> {
    /// A token, with as many before it as are said.
    Words(&'p Token, usize),
    Concept(&'p Named<'e>),
    /// A class of words, or two, and where these stand.
    Meaning([Option<u16>; 2], Range<usize>),
}

/// What is known of words: what they weigh, and what they mean.
#[derive(Clone, Copy)]
struct Known<'r> {
    wording: &'r Wording,
    meanings: &'r Meanings,
}

/// Calls `feature` with the place of each feature of a window, once, and what makes it first.
fn each_feature<'e>(
    text: &str,
    window: &Range<usize>,
    concepts: &[Named<'e>],
    meanings: &Meanings,
    mut feature: impl FnMut(Part<'_, 'e>, u16),
) {
    let mut seen = Seen::NOTHING;
    each_in(text, window.clone(), |token| {
        for (nth, bucket) in token.buckets.into_iter().enumerate() {
            if seen.is_new(bucket) {
                feature(Part::Words(&token, nth), bucket);
            }
        }
    });
    for one in concepts.iter().filter(|one| seen.is_new(one.bucket)) {
        feature(Part::Concept(one), one.bucket);
    }
    // The classes before, the nearest last.
    let mut before: [Option<(u16, usize)>; PAIRED] = [None; PAIRED];
    meanings.each_in(text, window.clone(), |class, place| {
        let bucket = tokens::class(meanings.id(class));
        if seen.is_new(bucket) {
            feature(Part::Meaning([Some(class), None], place.clone()), bucket);
        }
        for (other, at) in before.iter().flatten() {
            if *other != class && place.start - at <= PAIR_BYTES {
                let bucket = tokens::pair(meanings.id(class), meanings.id(*other));
                if seen.is_new(bucket) {
                    feature(Part::Meaning([Some(*other), Some(class)], *at..place.end), bucket);
                }
            }
        }
        before.rotate_left(1);
        before[PAIRED - 1] = Some((class, place.start));
    });
}

/// What the features of a window come to.
fn sum_of(known: Known<'_>, text: &str, window: &Range<usize>, concepts: &[Named<'_>]) -> Sum {
    let mut sum = Sum::default();
    each_feature(text, window, concepts, known.meanings, |part, bucket| {
        let weight = known.wording.weight(bucket);
        match part {
            Part::Words(..) => {
                sum.words += weight;
                sum.features += 1;
            }
            Part::Concept(_) => sum.concepts += weight,
            Part::Meaning(..) => {
                sum.meanings += weight;
                sum.meant += 1;
            }
        }
    });
    sum
}

/// The window of a view that sounds most like an attack, of those with a sign; none without one. Of a derived view those are read
/// that differ from the text as sent.
fn best(
    known: Known<'_>,
    (view, is_derived): (&View<'_>, bool),
    near: &Near<'_>,
    budget: &Budget<'_>,
) -> Result<Option<Summed>, ScanStop> {
    let mut best: Option<(Summed, f64)> = None;
    let mut of = 0;
    budget.check()?;
    for range in windows_of(view.text()) {
        let place = view.to_source(range.clone());
        if !near.has_sign(&place) {
            continue;
        }
        budget.check()?;
        of += 1;
        if is_derived && view.layers_in(range.clone()) == Layers::NONE {
            continue;
        }
        let sum = sum_of(known, view.text(), &range, near.concepts(&place));
        let odds = known.wording.odds(sum);
        if best.as_ref().is_none_or(|best| odds > best.1) {
            best = Some((Summed { range, sum, of }, odds));
        }
    }
    Ok(best.map(|(window, _)| Summed { of, ..window }))
}

/// A window of a text, for training a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Places of the table that its words and pairs of words have, in order, each once.
    pub words: Vec<u16>,
    /// Places of the table that the concepts hit in it have, each once, but for those that words have.
    pub concepts: Vec<u16>,
    /// Places of the table that classes of words and pairs of these have, each once, but for those that words and concepts have.
    pub meanings: Vec<u16>,
    /// Whether a concept speaks for an attack in it, or names the subject, so that it is weighed.
    pub has_sign: bool,
}

/// The windows of a text, in order.
pub(super) fn windows(text: &str, near: &Near<'_>, meanings: &Meanings) -> Vec<Window> {
    let read = |range: Range<usize>| {
        let (mut words, mut concepts, mut meant) = (Vec::new(), Vec::new(), Vec::new());
        each_feature(text, &range, near.concepts(&range), meanings, |part, bucket| match part {
            Part::Words(..) => words.push(bucket),
            Part::Concept(_) => concepts.push(bucket),
            Part::Meaning(..) => meant.push(bucket),
        });
        words.sort_unstable();
        Window { words, concepts, meanings: meant, has_sign: near.has_sign(&range) }
    };
    windows_of(text).map(read).collect()
}

/// What the words of a window gave, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The window, in bytes of the text as sent.
    pub window: Range<usize>,
    /// Probability of an attack.
    pub probability: f64,
    /// Probability from which a text of this kind warns.
    pub warn: f64,
    /// Probability from which a text of this kind blocks.
    pub block: f64,
    /// What is reported: [`Severity::High`] blocks and [`Severity::Medium`] warns under the default thresholds.
    pub severity: Option<Severity>,
    /// Log-odds before anything is read; the lower, the more windows this one is the best of.
    pub bias: f64,
    /// What gave most for an attack, the heaviest first.
    pub terms: Vec<Term>,
}

/// A word, a pair of words, a concept or a class of words, and what it gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The family of the concept; none for words.
    pub concept: Option<String>,
    /// What the words mean: one class or two, of which each stands for all words that mean it; none where words count as such.
    pub means: Vec<Arc<str>>,
    /// Where it stands, in bytes of the text as sent.
    pub place: Range<usize>,
    /// Log-odds that it gave.
    pub log_odds: f64,
}

impl Term {
    /// The concept or what the words mean, for people; none for words that count as such.
    pub fn name(&self) -> Option<String> {
        let name = match (&self.concept, self.means.is_empty()) {
            (Some(concept), _) => format!("concept {concept}"),
            (None, false) => format!("words for {}", self.means.join(" and ")),
            (None, true) => return None,
        };
        Some(name.replace('_', " "))
    }
}

/// A view of a text, its best window, and what that means.
struct Judged<'v, 't> {
    view: &'v View<'t>,
    is_derived: bool,
    window: Summed,
    probability: f64,
}

/// The model's words, where a text is weighed by them.
fn wording_for<'r>(rules: &'r RuleSet, request: &Request<'_>) -> Option<(&'r Model, &'r Wording, Speaker)> {
    let model = rules.model()?;
    let wording = model.wording.as_ref()?;
    // What the model answers and what it hands to tools are no prose that somebody wrote to it.
    let is_told = matches!(request.role, None | Some(Role::User | Role::Tool))
        && matches!(request.surface, None | Some(Surface::Text | Surface::ToolResult));
    let who = speaker(request.role, request.surface).filter(|_| is_told)?;
    Some((model, wording, who))
}

fn thresholds(wording: &Wording, who: Speaker, text: &str) -> Thresholds {
    let (warn, block) = wording.bounds(who, is_foreign(text));
    Thresholds { warn, block }
}

/// The view that sounds most like an attack near a sign: disguises and encodings hide words from the text as sent.
fn judge<'v, 't>(
    known: Known<'_>,
    views: &'v [View<'t>],
    near: &Near<'_>,
    budget: &Budget<'_>,
) -> Result<Option<Judged<'v, 't>>, ScanStop> {
    if near.signs.is_empty() {
        return Ok(None);
    }
    // The text as sent, then the views in which most is undone.
    let all = views.iter().enumerate();
    let order = all.clone().take(1).chain(all.skip(1).rev()).take(VIEWS_MAX);
    let mut judged: Option<Judged<'_, '_>> = None;
    for (nth, view) in order {
        let is_derived = nth > 0;
        let Some(window) = best(known, (view, is_derived), near, budget)? else { continue };
        let probability = known.wording.probability(window.sum, window.of);
        if judged.as_ref().is_none_or(|best| probability > best.probability) {
            judged = Some(Judged { view, is_derived, window, probability });
        }
    }
    Ok(judged)
}

fn severity_of(thresholds: Thresholds, probability: f64) -> Option<Severity> {
    match probability {
        p if p >= thresholds.block => Some(Severity::High),
        p if p >= thresholds.warn => Some(Severity::Medium),
        _ => None,
    }
}

/// What the words of a text are found to be; none where they stay below the thresholds of the model, or nothing is there
/// that they are weighed for.
///
/// # Errors
/// [`ScanStop`] when the budget is spent first.
pub(super) fn weigh(
    rules: &RuleSet,
    request: &Request<'_>,
    views: &[View<'_>],
    evidence: &Evidence<'_>,
    budget: &Budget<'_>,
) -> Result<Option<Detected>, ScanStop> {
    let Some((model, wording, who)) = wording_for(rules, request) else { return Ok(None) };
    let near = Near::of(evidence);
    // What words mean is read from its files for the first text that needs it.
    if near.signs.is_empty() {
        return Ok(None);
    }
    let known = Known { wording, meanings: rules.meanings() };
    let judged = judge(known, views, &near, budget)?;
    Ok(judged.and_then(|judged| detected((model, known, who), &judged, &near)))
}

/// What is reported of a window.
fn detected(
    (model, known, who): (&Model, Known<'_>, Speaker),
    judged: &Judged<'_, '_>,
    near: &Near<'_>,
) -> Option<Detected> {
    let wording = known.wording;
    if !wording.may_warn(who, judged.probability) {
        return None;
    }
    let thresholds = thresholds(wording, who, judged.view.text());
    let severity = severity_of(thresholds, judged.probability)?;
    let score = score_of(thresholds, judged.probability);
    let mut description =
        format!("Sounds like an injection, {:.2} probable. Most of it is said at", judged.probability);
    for (nth, term) in terms(known, judged, near).into_iter().take(NAMED_MAX).enumerate() {
        let comma = if nth == 0 { "" } else { "," };
        let name = term.name().map(|name| format!(" {name}")).unwrap_or_default();
        let Term { place, log_odds, .. } = term;
        // Writing to a String cannot fail.
        let _ = write!(description, "{comma} {}..{}{name} ({log_odds:+.1})", place.start, place.end);
    }
    description.push('.');
    let span = span(wording, judged.view.text(), &judged.window);
    let layers = if judged.is_derived { judged.view.layers_in(span.clone()) } else { Layers::default() };
    let info = MetaInfo {
        severity,
        score,
        confidence: score / severity.score(),
        description: description.into(),
        ..about(&model.file)
    };
    Some(Detected { info: Arc::new(info), range: judged.view.to_source(span), layers })
}

/// What the words of a text give; none where it is not weighed.
pub(super) fn explain(
    rules: &RuleSet,
    request: &Request<'_>,
    views: &[View<'_>],
    evidence: &Evidence<'_>,
) -> Option<Explanation> {
    let (_, wording, who) = wording_for(rules, request)?;
    let near = Near::of(evidence);
    let known = Known { wording, meanings: rules.meanings() };
    let judged = judge(known, views, &near, &Budget::UNLIMITED).ok().flatten()?;
    let thresholds = thresholds(wording, who, judged.view.text());
    Some(Explanation {
        window: judged.view.to_source(judged.window.range.clone()),
        probability: judged.probability,
        warn: thresholds.warn,
        block: thresholds.block,
        severity: severity_of(thresholds, judged.probability),
        bias: wording.bias(judged.window.of),
        terms: terms(known, &judged, &near),
    })
}

/// What gave most for an attack in a window, the heaviest first.
fn terms(known: Known<'_>, judged: &Judged<'_, '_>, near: &Near<'_>) -> Vec<Term> {
    let Judged { view, window, .. } = judged;
    let Known { wording, meanings } = known;
    let concepts = near.concepts(&view.to_source(window.range.clone()));
    let mut all: Vec<Term> = Vec::new();
    each_feature(view.text(), &window.range, concepts, meanings, |part, bucket| {
        let weight = wording.weight(bucket);
        if weight > 0 {
            let sum = Sum { features: window.sum.features, meant: window.sum.meant, ..Sum::default() };
            let (concept, means, place, sum) = match part {
                Part::Words(token, nth) => {
                    (None, Vec::new(), view.to_source(words(token, nth)), Sum { words: weight, ..sum })
                }
                Part::Concept(one) => {
                    let concept = Some(one.name.to_owned());
                    (concept, Vec::new(), one.place.clone(), Sum { concepts: weight, ..sum })
                }
                Part::Meaning(classes, place) => {
                    let names = meanings.names();
                    let means =
                        classes.into_iter().flatten().map(|class| Arc::clone(&names[usize::from(class)]));
                    (None, means.collect(), view.to_source(place), Sum { meanings: weight, ..sum })
                }
            };
            all.push(Term { concept, means, place, log_odds: wording.odds(sum) });
        }
    });
    all.sort_by(|a, b| {
        let places = || (a.place.start, a.place.end).cmp(&(b.place.start, b.place.end));
        b.log_odds.total_cmp(&a.log_odds).then_with(places)
    });
    all.truncate(EXPLAINED_MAX);
    all
}

/// Where the words of a feature stand. A pair begins with an earlier word, which may stand before the window.
fn words(token: &Token, nth: usize) -> Range<usize> {
    token.starts[nth]..token.range.end
}

/// The words of a window that weigh most together, side by side.
fn span(wording: &Wording, text: &str, window: &Summed) -> Range<usize> {
    let mut best: (i64, Range<usize>) = (0, window.range.clone());
    let (mut sum, mut start) = (0, None);
    // Places overlap where classes do, so only words tell.
    each_feature(text, &window.range, &[], &Meanings::default(), |part, bucket| {
        let Part::Words(token, nth) = part else { return };
        let range = words(token, nth);
        sum += wording.weight(bucket);
        let from = *start.get_or_insert(range.start);
        if sum > best.0 {
            best = (sum, from..range.end);
        }
        if sum <= 0 {
            (sum, start) = (0, None);
        }
    });
    best.1
}

/// What findings share, for lists of rules.
pub(super) fn about(file: &str) -> MetaInfo {
    MetaInfo {
        id: RULE_ID.into(),
        plugin: INJECTION.into(),
        category: Category::new(CATEGORY),
        severity: Severity::High,
        score: Severity::High.score(),
        confidence: 1.0,
        description: DESCRIPTION.into(),
        recommendation: RECOMMENDATION.into(),
        references: Vec::new(),
        file: file.into(),
        line: 0,
    }
}

#[cfg(test)]
mod tests;
