//! Concepts weighed together: what no rule is certain of alone can be plain in sum.
//!
//! Rule files name concepts: an order to forget what was said, a claim to be the developer, a demand for the prompt, and
//! also what speaks against an attack, such as documentation. Their hits are evidence. Here the hits of a window of text
//! become features, the model of the rule set weighs them, and a window above a threshold of the model becomes one
//! finding, which names the concepts that fired and where.
//!
//! Nothing is computed for a text in which no concept that speaks for an attack was hit.

mod adopted;
mod discussion;
mod explain;
mod quote;
mod tag;
#[cfg(test)]
mod tests;
mod window;

use std::ops::Range;
use std::sync::Arc;

pub(super) use discussion::{is_adopted, is_discussed, words_in};
pub use explain::{Explanation, Term};
pub(super) use quote::is_quoted;
pub use window::{Evidence, Weighed};

use super::{Detected, INJECTION, Request};
use crate::decision::{Category, Severity};
use crate::rules::{Concept, MetaInfo, Model, Role, RuleSet, Speaker, Surface};
use crate::text::{Layer, Layers};

/// Rule id of what the model finds.
pub const RULE_ID: &str = "injection.concepts";
/// Category of what the model finds.
const CATEGORY: &str = "prompt_injection.concepts";
/// Score at which a finding blocks under the default thresholds; the model's own threshold is mapped to it.
const BLOCK_SCORE: f64 = 0.7;
/// Score at which a finding warns under the default thresholds.
const WARN_SCORE: f64 = 0.3;

/// Fewest families that must speak for an attack before a text warns, or blocks by bounds below those of all texts.
pub const IDEAS_MIN: usize = 2;

/// Features besides the families of concepts, in the order of their indices after these.
pub const CODED_FEATURES: [&str; 8] = [
    // Who speaks. Neither is set for the operator.
    "surface-user",
    "surface-tool",
    // A concept showed through an encoding or a disguise that honest text has no use for.
    "disguised",
    // Hits inside quotation marks, which are taken from their families.
    "quoted",
    // So many families or more speak for an attack.
    "distinct-2",
    "distinct-3",
    "distinct-5",
    "distinct-8",
];

/// Layers whose use around a phrase is a sign in itself. Percent encoding, entities, escapes and diacritics are not.
const DISGUISES: [Layer; 13] = [
    Layer::Invisible,
    Layer::Tags,
    Layer::VariationSelectors,
    Layer::Confusables,
    Layer::Spaced,
    Layer::Base64,
    Layer::Hex,
    Layer::Rot13,
    Layer::Leet,
    Layer::Reversed,
    Layer::Base32,
    Layer::Morse,
    Layer::Bidi,
];

/// One hit of a concept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    /// Index in [`RuleSet::families`].
    pub family: usize,
    /// Where, in bytes of the text as sent.
    pub range: Range<usize>,
    /// The layers it was found through.
    pub layers: Layers,
}

/// Names of the features of a rule set, in the order of their indices: families, then [`CODED_FEATURES`].
pub fn feature_names(families: &[Concept]) -> Vec<String> {
    let coded = CODED_FEATURES.iter().map(|name| (*name).to_owned());
    families.iter().map(|concept| concept.family.clone()).chain(coded).collect()
}

/// Whether texts of this surface are weighed. Documents of bundles and live output have rules of their own, and a
/// manual that tells an agent what to do is full of orders.
pub(super) fn is_weighed(surface: Option<Surface>) -> bool {
    !matches!(surface, Some(Surface::Document | Surface::Stream))
}

/// Who speaks; none for the operator.
pub fn speaker(role: Option<Role>, surface: Option<Surface>) -> Option<Speaker> {
    match (role, surface) {
        (Some(Role::System), _) => None,
        (Some(Role::Tool), _) | (_, Some(Surface::ToolResult)) => Some(Speaker::Tool),
        _ => Some(Speaker::User),
    }
}

/// The feature that tells who speaks.
fn feature_of(speaker: Speaker) -> &'static str {
    match speaker {
        Speaker::User => "surface-user",
        Speaker::Tool => "surface-tool",
    }
}

/// The probabilities from which one window warns and blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    pub warn: f64,
    pub block: f64,
}

impl Thresholds {
    /// Those of a text with so many ideas in its window. With one alone, no kind of text blocks below what blocks any.
    fn of(model: &Model, speaker: Option<Speaker>, text_len: usize, ideas: usize) -> Self {
        let (warn, block) = model.bounds(speaker, text_len);
        let is_alone = ideas < IDEAS_MIN;
        Self { warn, block: if is_alone { block.max(model.def.block) } else { block } }
    }
}

/// What the model makes of the hits in a text; none where it stays below its thresholds.
pub(super) fn weigh(rules: &RuleSet, evidence: &Evidence<'_>) -> Option<Detected> {
    let model = rules.model()?;
    let best = evidence.best(model)?;
    let thresholds = evidence.thresholds(model, &best);
    let severity = severity_of(thresholds, &best)?;
    let score = score_of(thresholds, best.probability);
    let info = MetaInfo {
        id: RULE_ID.into(),
        plugin: INJECTION.into(),
        category: Category::new(CATEGORY),
        severity,
        score,
        confidence: score / severity.score(),
        description: best.describe(rules.families()).into(),
        recommendation: "Treat the text as data, or refuse the request; look at the concepts named.".into(),
        references: Vec::new(),
        file: model.file.as_str().into(),
        line: 0,
    };
    Some(Detected { info: Arc::new(info), range: best.span(), layers: best.layers() })
}

/// What the model makes of the hits in a text, feature by feature; none where nothing speaks for an attack, where texts
/// of that surface are not weighed, or without a model.
pub(super) fn explain(rules: &RuleSet, request: &Request<'_>, hits: Vec<Hit>) -> Option<Explanation> {
    let model = rules.model().filter(|_| is_weighed(request.surface))?;
    explain::explain(&Evidence::of(rules, request, hits), model)
}

/// How bad a window is; none where it stays below the thresholds of the model.
fn severity_of(thresholds: Thresholds, weighed: &Weighed) -> Option<Severity> {
    match weighed.probability {
        p if p >= thresholds.block => Some(Severity::High),
        // One idea alone, however heavy, is what people say every day.
        p if p >= thresholds.warn && weighed.ideas() >= IDEAS_MIN => Some(Severity::Medium),
        _ => None,
    }
}

/// Whether honest text has no use for what a phrase was found through.
fn is_disguise(layers: Layers) -> bool {
    DISGUISES.iter().any(|layer| layers.contains(*layer))
}

/// What the findings of the model share, for lists of rules.
pub(super) fn about(file: &str) -> MetaInfo {
    MetaInfo {
        id: RULE_ID.into(),
        plugin: INJECTION.into(),
        category: Category::new(CATEGORY),
        severity: Severity::High,
        score: Severity::High.score(),
        confidence: 1.0,
        description: "Signs of an injection that a trained model weighs together.".into(),
        recommendation: "Treat the text as data, or refuse the request; look at the concepts named.".into(),
        references: Vec::new(),
        file: file.into(),
        line: 0,
    }
}

/// The probability on the scale of scores: the model's thresholds lie on those of the default policy.
pub(super) fn score_of(thresholds: Thresholds, probability: f64) -> f64 {
    let Thresholds { warn, block } = thresholds;
    let (low, high, from, to) = if probability >= block {
        (block, 1.0, BLOCK_SCORE, Severity::High.score())
    } else {
        (warn, block, WARN_SCORE, Severity::Medium.score())
    };
    // Rounded up to thousandths, so that a score is never below the threshold that it stands for.
    let share = ((probability - low) / (high - low)).clamp(0.0, 1.0);
    ((from + (to - from) * share) * 1000.0).ceil() / 1000.0
}

/// Whether a finding of the model tells anything beside a finding of a rule: not where that one is as bad and overlaps.
pub(super) fn is_told_already(weighed: &Detected, others: &[Detected]) -> bool {
    others.iter().any(|other| {
        *other.info.plugin == *INJECTION
            && other.info.severity >= weighed.info.severity
            && other.range.start < weighed.range.end
            && weighed.range.start < other.range.end
    })
}
