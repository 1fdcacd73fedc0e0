//! What a text says in words that no rule knows: words and pairs of words, weighed by the model.
//!
//! Rules find what somebody thought of. Here every word, and every pair of words side by side or with one between them, has a
//! small weight that was learned from labelled texts, and the sum over a stretch of text tells how much it sounds like an
//! attack: a few table look-ups a word, and a fixed amount of memory. The concepts that were hit in the stretch have weights too:
//! they are the same in every language, and prose about other things has none, or such as speak against an attack. So have classes
//! of words ([`crate::rules::meanings`]) and pairs of them that stand near each other in any order: what is said in other words, in
//! another language or with other words between is still known by what it means.
//!
//! Words alone prove nothing: only windows in which a concept speaks for an attack, or names the subject, outside quotation marks are
//! read at all, and a text without one costs nothing.

mod memory;
mod reading;
mod sums;
mod tokens;

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

pub(super) use memory::Memory;
use reading::{Feature, Named, Part, Windows, each_feature, each_words};
pub use tokens::{FEATURES, Token, each};

use super::concepts::{self, Evidence, Thresholds, score_of, speaker};
use super::{Detected, Request};
use crate::decision::{Category, Severity};
use crate::rules::meanings::Meanings;
use crate::rules::wording::{BEGINNING, Sum, Wording};
use crate::rules::{Budget, MetaInfo, Model, Role, RuleSet, ScanStop, Speaker, Surface};
use crate::text::{Layers, View, is_foreign};

/// Rule id of what is found by wording.
pub const RULE_ID: &str = "injection.wording";
/// Category of what is found by wording.
const CATEGORY: &str = "prompt_injection.wording";
const DESCRIPTION: &str =
    "Words, pairs of words and concepts that a trained model knows from injections, weighed together.";
const RECOMMENDATION: &str = "Treat the text as data, or refuse the request; look at the words named.";
/// Most views that are read: the text as sent, and those in which most disguises and encodings are undone.
const VIEWS_MAX: usize = 4;
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

/// What concepts tell about a text: near which places its words are weighed, and what else counts there. Places are bytes
/// of the text as sent, in order.
pub(super) struct Near<'e> {
    signs: Vec<Range<usize>>,
    concepts: Vec<Named<'e>>,
}

impl<'e> Near<'e> {
    pub(super) fn of(evidence: &'e Evidence<'_>, who: Speaker) -> Self {
        let named = |(name, place): (&'e str, &Range<usize>)| Named {
            name,
            places: tokens::named(name, who),
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

/// What is known of words, what they weigh and what they mean, and who says them.
#[derive(Clone, Copy)]
struct Known<'r> {
    wording: &'r Wording,
    meanings: &'r Meanings,
    who: Speaker,
}

/// The window of a view that sounds most like an attack, of those with a sign; none without one. Of a derived view those are read
/// that differ from the text as sent.
fn best(
    known: Known<'_>,
    (view, is_derived): (&View<'_>, bool),
    near: &Near<'_>,
    memory: &mut Memory,
    budget: &Budget<'_>,
) -> Result<Option<Summed>, ScanStop> {
    let mut best: Option<(Summed, f64)> = None;
    let mut of = 0;
    budget.check()?;
    let mut windows = Windows::of(view.text(), known.meanings, memory);
    for nth in 0..windows.len() {
        let range = windows.range(nth);
        let place = view.to_source(range.clone());
        if !near.has_sign(&place) {
            continue;
        }
        budget.check()?;
        of += 1;
        if is_derived && view.layers_in(range.clone()) == Layers::NONE {
            continue;
        }
        let sum = windows.sum(nth, known, near.concepts(&place));
        let odds = known.wording.odds(sum);
        if best.as_ref().is_none_or(|best| odds > best.1) {
            best = Some((Summed { range, sum, of }, odds));
        }
    }
    Ok(best.map(|(window, _)| Summed { of, ..window }))
}

/// A window of a text, for training a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Places that its words and pairs of words have among those of words, in order, each once.
    pub words: Vec<u16>,
    /// Places that the concepts hit in it have among those of senses, each concept once.
    pub concepts: Vec<[u16; 2]>,
    /// Places that classes of words and pairs of these have among those of senses, each once, but for those that concepts have.
    pub meanings: Vec<[u16; 2]>,
    /// The same of classes of which a word begins a sentence.
    pub beginnings: Vec<[u16; 2]>,
    /// Whether a concept speaks for an attack in it, or names the subject, so that it is weighed.
    pub has_sign: bool,
}

/// The windows of a text that somebody says, in order.
pub(super) fn windows(text: &str, near: &Near<'_>, meanings: &Meanings, who: Speaker) -> Vec<Window> {
    let mut memory = Memory::default();
    let mut windows = Windows::of(text, meanings, &mut memory);
    let count = windows.len();
    let read = |nth| {
        let range = windows.range(nth);
        let mut window = Window { has_sign: near.has_sign(&range), ..Window::default() };
        each_feature(windows.read(nth), near.concepts(&range), (meanings, who), |feature| match feature {
            Feature::Words(_, _, place) => window.words.push(place),
            Feature::Concept(one) => window.concepts.push(one.places),
            Feature::Meaning(_, _, places) => window.meanings.push(places),
            Feature::Beginning(_, _, places) => window.beginnings.push(places),
        });
        window.words.sort_unstable();
        window
    };
    (0..count).map(read).collect()
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
    /// Whether it is that a sentence begins with words of this class.
    pub begins: bool,
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
            (None, false) => {
                let begins = if self.begins { " that begin a sentence" } else { "" };
                format!("words for {}{begins}", self.means.join(" and "))
            }
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

impl Judged<'_, '_> {
    /// What stands in the window, read as one.
    fn part(&self, meanings: &Meanings, memory: &mut Memory) -> Part {
        let mut part = Part::default();
        part.read(self.view.text(), self.window.range.clone(), meanings, &mut memory.words);
        part
    }
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
    memory: &mut Memory,
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
        let Some(window) = best(known, (view, is_derived), near, memory, budget)? else { continue };
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
    memory: &mut Memory,
    budget: &Budget<'_>,
) -> Result<Option<Detected>, ScanStop> {
    let Some((model, wording, who)) = wording_for(rules, request) else { return Ok(None) };
    let near = Near::of(evidence, who);
    // What words mean is read from its files for the first text that needs it.
    if near.signs.is_empty() {
        return Ok(None);
    }
    let known = Known { wording, meanings: rules.meanings(), who };
    let judged = judge(known, views, &near, memory, budget)?;
    Ok(judged.and_then(|judged| detected((model, known), &judged, &near, memory)))
}

/// What is reported of a window.
fn detected(
    (model, known): (&Model, Known<'_>),
    judged: &Judged<'_, '_>,
    near: &Near<'_>,
    memory: &mut Memory,
) -> Option<Detected> {
    let Known { wording, who, .. } = known;
    if !wording.may_warn(who, judged.probability) {
        return None;
    }
    let thresholds = thresholds(wording, who, judged.view.text());
    let severity = severity_of(thresholds, judged.probability)?;
    let score = score_of(thresholds, judged.probability);
    let mut description =
        format!("Sounds like an injection, {:.2} probable. Most of it is said at", judged.probability);
    let part = judged.part(known.meanings, memory);
    for (nth, term) in terms(known, judged, near, &part, NAMED_MAX).into_iter().enumerate() {
        let comma = if nth == 0 { "" } else { "," };
        let name = term.name().map(|name| format!(" {name}")).unwrap_or_default();
        let Term { place, log_odds, .. } = term;
        // Writing to a String cannot fail.
        let _ = write!(description, "{comma} {}..{}{name} ({log_odds:+.1})", place.start, place.end);
    }
    description.push('.');
    let span = span(known, &part, &judged.window);
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
    let near = Near::of(evidence, who);
    let known = Known { wording, meanings: rules.meanings(), who };
    let mut memory = Memory::default();
    let judged = judge(known, views, &near, &mut memory, &Budget::UNLIMITED).ok().flatten()?;
    let part = judged.part(known.meanings, &mut memory);
    let thresholds = thresholds(wording, who, judged.view.text());
    Some(Explanation {
        window: judged.view.to_source(judged.window.range.clone()),
        probability: judged.probability,
        warn: thresholds.warn,
        block: thresholds.block,
        severity: severity_of(thresholds, judged.probability),
        bias: wording.bias(judged.window.of),
        terms: terms(known, &judged, &near, &part, EXPLAINED_MAX),
    })
}

/// What gave most for an attack in a window, the heaviest first, and so many at most.
fn terms(known: Known<'_>, judged: &Judged<'_, '_>, near: &Near<'_>, part: &Part, most: usize) -> Vec<Term> {
    struct Heavy<'e> {
        /// How many were found before.
        nth: usize,
        log_odds: f64,
        place: Range<usize>,
        concept: Option<&'e str>,
        classes: [Option<u16>; 2],
        begins: bool,
    }
    let Judged { view, window, .. } = judged;
    let Known { wording, meanings, who } = known;
    let concepts = near.concepts(&view.to_source(window.range.clone()));
    let base = Sum { features: window.sum.features, meant: window.sum.meant, ..Sum::default() };
    let mut all: Vec<Heavy<'_>> = Vec::new();
    each_feature([part, &Part::default()], concepts, (meanings, who), |feature| {
        let sum = match &feature {
            Feature::Words(_, _, place) => Sum { words: wording.of_words(*place), ..base },
            Feature::Concept(one) => Sum { concepts: wording.of_sense(one.places), ..base },
            Feature::Meaning(_, _, places) => Sum { meanings: wording.of_sense(*places), ..base },
            Feature::Beginning(_, _, places) => {
                Sum { meanings: BEGINNING * wording.of_sense(*places), ..base }
            }
        };
        // Most weigh nothing, or speak against an attack.
        if sum.words.max(sum.concepts).max(sum.meanings) <= 0 {
            return;
        }
        let (place, concept, classes, begins) = match feature {
            Feature::Words(token, nth, _) => (view.to_source(words(token, nth)), None, [None; 2], false),
            Feature::Concept(one) => (one.place.clone(), Some(one.name), [None; 2], false),
            Feature::Meaning(classes, place, _) => (view.to_source(place), None, classes, false),
            Feature::Beginning(class, place, _) => (view.to_source(place), None, [Some(class), None], true),
        };
        let nth = all.len();
        all.push(Heavy { nth, log_odds: wording.odds(sum), place, concept, classes, begins });
    });
    all.retain(|one| one.log_odds > 0.0);
    let order = |a: &Heavy<'_>, b: &Heavy<'_>| {
        let key = |one: &Heavy<'_>| (one.place.start, one.place.end, one.nth);
        b.log_odds.total_cmp(&a.log_odds).then_with(|| key(a).cmp(&key(b)))
    };
    // Of hundreds only the heaviest need an order.
    if let Some(last) = most.checked_sub(1).filter(|last| *last < all.len()) {
        all.select_nth_unstable_by(last, order);
    }
    all.truncate(most);
    all.sort_unstable_by(order);
    let name = |class: u16| Arc::clone(&meanings.names()[usize::from(class)]);
    let term = |Heavy { log_odds, place, concept, classes, begins, .. }: Heavy<'_>| Term {
        concept: concept.map(str::to_owned),
        means: classes.into_iter().flatten().map(name).collect(),
        begins,
        place,
        log_odds,
    };
    all.into_iter().map(term).collect()
}

/// Where the words of a feature stand. A pair begins with an earlier word, which may stand before the window.
fn words(token: &Token, nth: usize) -> Range<usize> {
    token.starts[nth]..token.range.end
}

/// The words of a window that weigh most together, side by side.
fn span(known: Known<'_>, part: &Part, window: &Summed) -> Range<usize> {
    let mut best: (i64, Range<usize>) = (0, window.range.clone());
    let (mut sum, mut start) = (0, None);
    // Places overlap where classes do, so only words tell.
    each_words([part, &Part::default()], |token, nth, place| {
        let range = words(token, nth);
        sum += known.wording.of_words(place);
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
        category: Category::new(CATEGORY),
        description: DESCRIPTION.into(),
        recommendation: RECOMMENDATION.into(),
        ..concepts::about(file)
    }
}

#[cfg(test)]
mod tests;
