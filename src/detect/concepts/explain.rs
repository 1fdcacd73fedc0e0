//! Why the model judged a text as it did: each feature with its weight and its places, and what would have changed it.

use std::ops::Range;

use super::window::{Evidence, Weighed};
use super::{CODED_FEATURES, IDEAS_MIN, is_disguise, severity_of};
use crate::decision::Severity;
use crate::rules::Model;

/// What the model made of the window of a text that looks most like an attack.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The window that was weighed, in bytes of the text as sent.
    pub window: Range<usize>,
    /// Probability of an attack.
    pub probability: f64,
    /// Probability from which a text of this kind warns.
    pub warn: f64,
    /// Probability from which a text of this kind, with as many ideas, blocks.
    pub block: f64,
    /// What the model reports: [`Severity::High`] blocks and [`Severity::Medium`] warns under the default thresholds.
    pub severity: Option<Severity>,
    /// Log-odds before anything is seen.
    pub bias: f64,
    /// Log-odds of all together: the bias and the terms.
    pub log_odds: f64,
    /// The features that fired, those that gave most for an attack first, those that spoke against one last.
    pub terms: Vec<Term>,
    /// Families without which the text would have stayed below the threshold that it reached; empty where it reached
    /// none. As few as taking the heaviest first makes them.
    pub decisive: Vec<String>,
    /// Log-odds that were missing to the next threshold; none where the text blocks. One idea alone never warns, so that its
    /// next threshold is the one that blocks.
    pub missing: Option<f64>,
    /// How many families speak for an attack.
    pub ideas: usize,
}

impl Explanation {
    /// Whether one idea speaks alone, which never warns.
    pub const fn is_alone(&self) -> bool {
        self.ideas < IDEAS_MIN
    }
}

/// One feature that fired.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// A family of concepts, or one of [`CODED_FEATURES`].
    pub feature: String,
    /// Whether it is a family that speaks against an attack.
    pub is_against: bool,
    /// How much of it there was: 1.0 for one hit, less for each further one.
    pub value: f64,
    /// Log-odds of one hit; 0.0 where the model learned nothing from it.
    pub weight: f64,
    /// Log-odds that it gave: value times weight.
    pub log_odds: f64,
    /// Where it was hit, in bytes of the text as sent; empty for what is no matter of a place.
    pub places: Vec<Range<usize>>,
}

/// Explains what `model` makes of `evidence`; none where nothing speaks for an attack.
pub(super) fn explain(evidence: &Evidence<'_>, model: &Model) -> Option<Explanation> {
    let (window, weighed) = evidence.best_with_window(model)?;
    let scale = model.def.scale;
    let thresholds = evidence.thresholds(model, &weighed);
    let severity = severity_of(thresholds, &weighed);
    let mut terms: Vec<Term> = weighed
        .values
        .iter()
        .map(|(feature, value)| {
            let weight = evidence.weight(model, *feature) * scale;
            Term {
                feature: evidence.name(*feature).to_owned(),
                is_against: evidence.is_against(*feature),
                value: *value,
                weight,
                log_odds: weight * value,
                places: places(evidence, &weighed, *feature),
            }
        })
        .collect();
    terms.sort_by(|a, b| b.log_odds.total_cmp(&a.log_odds).then_with(|| a.feature.cmp(&b.feature)));
    let bias = f64::from(model.def.bias) * scale;
    let log_odds = terms.iter().fold(bias, |sum, term| sum + term.log_odds);
    let missing = match severity {
        Some(Severity::High) => None,
        Some(_) => Some((odds(thresholds.block) - log_odds).max(0.0)),
        None if weighed.ideas() < IDEAS_MIN => Some((odds(thresholds.block) - log_odds).max(0.0)),
        None => Some((odds(thresholds.warn) - log_odds).max(0.0)),
    };
    let decisive = severity.map(|reached| decisive(evidence, model, &weighed, reached)).unwrap_or_default();
    Some(Explanation {
        window,
        probability: weighed.probability,
        warn: thresholds.warn,
        block: thresholds.block,
        severity,
        bias,
        log_odds,
        terms,
        decisive,
        missing,
        ideas: weighed.ideas(),
    })
}

/// Where a feature was hit in a window.
fn places(evidence: &Evidence<'_>, weighed: &Weighed, feature: usize) -> Vec<Range<usize>> {
    let name = evidence.name(feature);
    let is_coded = CODED_FEATURES.contains(&name);
    let hits = weighed.hits.iter().filter(|counted| match name {
        "quoted" => counted.is_quoted,
        "disguised" => !counted.is_quoted && evidence.speaks(counted) && is_disguise(counted.hit.layers),
        _ => !is_coded && !counted.is_quoted && counted.hit.family == feature,
    });
    hits.map(|counted| counted.hit.range.clone()).collect()
}

/// Families without whose hits the window would not have reached `reached`, the heaviest first.
fn decisive(evidence: &Evidence<'_>, model: &Model, weighed: &Weighed, reached: Severity) -> Vec<String> {
    let mut left = weighed.clone();
    let mut names = Vec::new();
    let judge = |left: &Weighed| severity_of(evidence.thresholds(model, left), left);
    while judge(&left).is_some_and(|severity| severity >= reached) {
        let Some(heaviest) = left.heaviest() else { break };
        names.push(evidence.name(heaviest).to_owned());
        let hits = left.hits.iter().filter(|counted| counted.hit.family != heaviest).cloned().collect();
        left = evidence.weigh_hits(model, hits);
    }
    names
}

/// The log-odds of a probability between 0.0 and 1.0.
fn odds(probability: f64) -> f64 {
    (probability / (1.0 - probability)).ln()
}
