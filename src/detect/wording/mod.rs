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
mod tokens;

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

pub(super) use memory::Memory;
use reading::{Feature, Named, Part, Windows, each_feature};
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

/// What the features of a window come to.
fn sum_of(known: Known<'_>, parts: [&Part; 2], concepts: &[Named<'_>]) -> Sum {
    let mut sum = Sum::default();
    each_feature(parts, concepts, (known.meanings, known.who), |feature| match feature {
        Feature::Words(_, _, place) => {
            sum.words += known.wording.of_words(place);
            sum.features += 1;
        }
        Feature::Concept(one) => sum.concepts += known.wording.of_sense(one.places),
        Feature::Meaning(_, _, places) => {
            sum.meanings += known.wording.of_sense(places);
            sum.meant += 1;
        }
        Feature::Beginning(_, _, places) => {
            sum.meanings += BEGINNING * known.wording.of_sense(places);
            sum.meant += 1;
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
        let sum = sum_of(known, windows.read(nth), near.concepts(&place));
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
    Ok(judged.and_then(|judged| detected((model, known), &judged, &near)))
}

/// What is reported of a window.
fn detected(
    (model, known): (&Model, Known<'_>),
    judged: &Judged<'_, '_>,
    near: &Near<'_>,
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
    for (nth, term) in terms(known, judged, near).into_iter().take(NAMED_MAX).enumerate() {
        let comma = if nth == 0 { "" } else { "," };
        let name = term.name().map(|name| format!(" {name}")).unwrap_or_default();
        let Term { place, log_odds, .. } = term;
        // Writing to a String cannot fail.
        let _ = write!(description, "{comma} {}..{}{name} ({log_odds:+.1})", place.start, place.end);
    }
    description.push('.');
    let span = span(known, judged.view.text(), &judged.window);
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
    let judged = judge(known, views, &near, &mut Memory::default(), &Budget::UNLIMITED).ok().flatten()?;
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
    let Known { wording, meanings, who } = known;
    let concepts = near.concepts(&view.to_source(window.range.clone()));
    let part = Part::of(view.text(), window.range.clone(), meanings);
    let mut all: Vec<Term> = Vec::new();
    let name = |class: u16| Arc::clone(&meanings.names()[usize::from(class)]);
    let base = Sum { features: window.sum.features, meant: window.sum.meant, ..Sum::default() };
    each_feature([&part, &Part::default()], concepts, (meanings, who), |feature| {
        let begins = matches!(feature, Feature::Beginning(..));
        let (concept, means, place, sum) = match feature {
            Feature::Words(token, nth, place) => {
                let sum = Sum { words: wording.of_words(place), ..base };
                (None, Vec::new(), view.to_source(words(token, nth)), sum)
            }
            Feature::Concept(one) => {
                let sum = Sum { concepts: wording.of_sense(one.places), ..base };
                (Some(one.name.to_owned()), Vec::new(), one.place.clone(), sum)
            }
            Feature::Meaning(classes, place, places) => {
                let means = classes.into_iter().flatten().map(name).collect();
                (None, means, view.to_source(place), Sum { meanings: wording.of_sense(places), ..base })
            }
            Feature::Beginning(class, place, places) => {
                let sum = Sum { meanings: BEGINNING * wording.of_sense(places), ..base };
                (None, Vec::from([name(class)]), view.to_source(place), sum)
            }
        };
        let log_odds = wording.odds(sum);
        if log_odds > 0.0 {
            all.push(Term { concept, means, begins, place, log_odds });
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
fn span(known: Known<'_>, text: &str, window: &Summed) -> Range<usize> {
    let mut best: (i64, Range<usize>) = (0, window.range.clone());
    let (mut sum, mut start) = (0, None);
    // Places overlap where classes do, so only words tell.
    let nothing = Meanings::default();
    let part = Part::of(text, window.range.clone(), &nothing);
    each_feature([&part, &Part::default()], &[], (&nothing, known.who), |feature| {
        let Feature::Words(token, nth, place) = feature else { return };
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
