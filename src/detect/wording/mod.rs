//! What a text says in words that no rule knows: words and pairs of words, weighed by the model.
//!
//! Rules find what somebody thought of. Here every word, and every pair of words side by side or with one between them, has a
//! small weight that was learned from labelled texts, and the sum over a stretch of text tells how much it sounds like an
//! attack. One pass over the text, a few table look-ups a word, and a fixed amount of memory.
//!
//! A text is read in windows of 256 tokens, each of which overlaps the one before by half. Words alone prove nothing: only windows
//! in which a concept speaks for an attack, or names the subject, outside quotation marks are weighed, and a text without one costs
//! nothing.

mod tokens;

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

pub use tokens::{FEATURES, Token, each};

use super::concepts::{Evidence, Thresholds, score_of, speaker};
use super::{Detected, INJECTION, Request};
use crate::decision::{Category, Severity};
use crate::rules::wording::{BUCKETS, Wording};
use crate::rules::{MetaInfo, Model, Role, RuleSet, Speaker, Surface};
use crate::text::{Layers, View, is_foreign};

/// Rule id of what is found by wording.
pub const RULE_ID: &str = "injection.wording";
/// Category of what is found by wording.
const CATEGORY: &str = "prompt_injection.wording";
const DESCRIPTION: &str =
    "Words and pairs of words that a trained model knows from injections, weighed together.";
const RECOMMENDATION: &str = "Treat the text as data, or refuse the request; look at the words named.";
/// Tokens of half a window.
const BLOCK_TOKENS: usize = 128;
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
    units: i64,
    features: usize,
    /// How many windows it is the best of.
    of: usize,
}

/// Half a window: the places of the features of tokens side by side, in their order.
#[derive(Clone, Debug, Default)]
struct Block {
    range: Range<usize>,
    buckets: Vec<u16>,
}

impl Block {
    fn add(&mut self, token: &Token) {
        if self.buckets.is_empty() {
            self.range.start = token.range.start;
        }
        self.range.end = token.range.end;
        self.buckets.extend(token.buckets);
    }

    fn is_full(&self) -> bool {
        self.buckets.len() >= FEATURES * BLOCK_TOKENS
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

/// Calls `window` with the halves of each window of a text in order: two, or one where that is the whole text.
fn each_window(text: &str, mut window: impl FnMut(&[&Block])) {
    let (mut before, mut block) = (Block::default(), Block::default());
    each(text, |token| {
        if block.is_full() {
            if !before.buckets.is_empty() {
                window(&[&before, &block]);
            }
            std::mem::swap(&mut before, &mut block);
            block.buckets.clear();
        }
        block.add(&token);
    });
    if !before.buckets.is_empty() {
        window(&[&before, &block]);
    } else if !block.buckets.is_empty() {
        window(&[&block]);
    }
}

/// The window of a text that sounds most like an attack, of those that are to be read; none in a text without a word.
fn best(wording: &Wording, text: &str, is_read: impl Fn(&Range<usize>) -> bool) -> Option<Summed> {
    let mut best: Option<(Summed, f64)> = None;
    let mut seen = Seen::NOTHING;
    let mut of = 0;
    each_window(text, |halves| {
        let range = range_of(halves);
        if !is_read(&range) {
            return;
        }
        of += 1;
        let (mut units, mut features) = (0, 0);
        for bucket in halves.iter().flat_map(|half| &half.buckets) {
            let is_new = seen.is_new(*bucket);
            units += wording.weight(*bucket) * i64::from(is_new);
            features += usize::from(is_new);
        }
        seen = Seen::NOTHING;
        let odds = wording.odds(units, features);
        if best.as_ref().is_none_or(|best| odds > best.1) {
            best = Some((Summed { range, units, features, of }, odds));
        }
    });
    best.map(|(window, _)| Summed { of, ..window })
}

fn range_of(halves: &[&Block]) -> Range<usize> {
    halves[0].range.start..halves[halves.len() - 1].range.end
}

/// A window of a text, for training a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Places of the table that its words and pairs of words have, in order, each once.
    pub features: Vec<u16>,
    /// Whether a concept speaks for an attack in it, or names the subject, so that it is weighed.
    pub has_sign: bool,
}

/// The windows of a text that has `signs`, in order; see [`Evidence::signs`].
pub(super) fn windows(text: &str, signs: &[Range<usize>]) -> Vec<Window> {
    let mut all = Vec::new();
    each_window(text, |halves| {
        let mut features: Vec<u16> = halves.iter().flat_map(|half| &half.buckets).copied().collect();
        features.sort_unstable();
        features.dedup();
        all.push(Window { features, has_sign: has_sign(signs, &range_of(halves)) });
    });
    all
}

/// Whether one of `signs`, which are in order, begins in a window.
fn has_sign(signs: &[Range<usize>], window: &Range<usize>) -> bool {
    let first = signs.partition_point(|sign| sign.start < window.start);
    signs.get(first).is_some_and(|sign| sign.start < window.end)
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
    /// The words and pairs of words that gave most for an attack, with their log-odds; the heaviest first. Places are bytes
    /// of the text as sent.
    pub terms: Vec<(Range<usize>, f64)>,
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

/// The view that sounds most like an attack near one of `signs`: disguises and encodings hide words from the text as sent.
fn judge<'v, 't>(wording: &Wording, views: &'v [View<'t>], signs: &[Range<usize>]) -> Option<Judged<'v, 't>> {
    // The text as sent, then the views in which most is undone.
    let all = views.iter().enumerate();
    let read = all.clone().take(1).chain(all.skip(1).rev()).take(VIEWS_MAX);
    let judged = read.filter_map(|(nth, view)| {
        let window = best(wording, view.text(), |window| has_sign(signs, &view.to_source(window.clone())))?;
        let probability = wording.probability(window.units, window.features, window.of);
        Some(Judged { view, is_derived: nth > 0, window, probability })
    });
    judged.reduce(|best, next| if next.probability > best.probability { next } else { best })
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
pub(super) fn weigh(
    rules: &RuleSet,
    request: &Request<'_>,
    views: &[View<'_>],
    evidence: &Evidence<'_>,
) -> Option<Detected> {
    let (model, wording, who) = wording_for(rules, request)?;
    let judged = judge(wording, views, &evidence.signs())?;
    if !wording.may_warn(who, judged.probability) {
        return None;
    }
    let thresholds = thresholds(wording, who, judged.view.text());
    let severity = severity_of(thresholds, judged.probability)?;
    let score = score_of(thresholds, judged.probability);
    let terms = terms(wording, judged.view.text(), &judged.window);
    let mut description =
        format!("Sounds like an injection, {:.2} probable. Most of it is said at", judged.probability);
    for (nth, (range, odds)) in terms.iter().take(NAMED_MAX).enumerate() {
        let comma = if nth == 0 { "" } else { "," };
        let at = judged.view.to_source(range.clone());
        // Writing to a String cannot fail.
        let _ = write!(description, "{comma} {}..{} ({odds:+.1})", at.start, at.end);
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
    let judged = judge(wording, views, &evidence.signs())?;
    let thresholds = thresholds(wording, who, judged.view.text());
    let source = |range: Range<usize>| judged.view.to_source(range);
    let terms = terms(wording, judged.view.text(), &judged.window).into_iter();
    Some(Explanation {
        window: source(judged.window.range.clone()),
        probability: judged.probability,
        warn: thresholds.warn,
        block: thresholds.block,
        severity: severity_of(thresholds, judged.probability),
        bias: wording.bias(judged.window.of),
        terms: terms.take(EXPLAINED_MAX).map(|(range, odds)| (source(range), odds)).collect(),
    })
}

/// Calls `feature` with each feature of a window, where it comes first: where its words stand, and its units.
fn each_feature(wording: &Wording, text: &str, window: &Summed, mut feature: impl FnMut(Range<usize>, i64)) {
    let mut starts = [0; FEATURES - 1];
    let mut tokens = 0;
    let mut seen = Seen::NOTHING;
    // From the beginning of the text, since words before the window make pairs with its first ones.
    each(text, |token| {
        let Range { start, end } = token.range;
        if window.range.start <= start && end <= window.range.end {
            let from = [
                start,
                if tokens > 0 { starts[0] } else { start },
                if tokens > 1 { starts[1] } else { start },
            ];
            for (from, bucket) in from.into_iter().zip(token.buckets) {
                if seen.is_new(bucket) {
                    feature(from..end, wording.weight(bucket));
                }
            }
        }
        starts = [start, starts[0]];
        tokens += 1;
    });
}

/// What gave most for an attack in a window, the heaviest first.
fn terms(wording: &Wording, text: &str, window: &Summed) -> Vec<(Range<usize>, f64)> {
    let mut all: Vec<(Range<usize>, i64)> = Vec::new();
    each_feature(wording, text, window, |range, units| {
        if units > 0 {
            all.push((range, units));
        }
    });
    all.sort_by(|a, b| {
        b.1.cmp(&a.1).then_with(|| a.0.start.cmp(&b.0.start)).then_with(|| a.0.end.cmp(&b.0.end))
    });
    all.truncate(EXPLAINED_MAX);
    all.into_iter().map(|(range, units)| (range, wording.odds(units, window.features))).collect()
}

/// The words of a window that weigh most together, side by side.
fn span(wording: &Wording, text: &str, window: &Summed) -> Range<usize> {
    let mut best: (i64, Range<usize>) = (0, window.range.clone());
    let (mut sum, mut start) = (0, None);
    each_feature(wording, text, window, |range, units| {
        sum += units;
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
