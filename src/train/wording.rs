//! What words weigh, learned from labelled texts.
//!
//! A linear classifier with squared hinge loss, by dual coordinate descent (Hsieh et al., "A Dual Coordinate Descent Method for
//! Large-scale Linear SVM", ICML 2008), in plain additions, multiplications and divisions in a fixed order, so that the same
//! texts give the same table. A logistic curve over scores of sources that were left out makes probabilities of its sums.

use super::fit::{Example, Features, Sign, fit};
use crate::detect::wording::Window;
use crate::rules::wording::{
    BEGINNING, BUCKETS, CONCEPT, FEATURES_MIN, MEANING, MEANINGS_MIN, NUMBER_MAX, WORDS, WordingDef, choice,
    unit,
};

/// How much a text that is on the wrong side counts against the size of the weights.
const COST: f64 = 1.0;
/// Passes over all texts.
const PASSES: usize = 30;
/// Texts of a source and label from which each counts less, so that no source drowns the others.
const MANY: f64 = 300.0;

/// One text to learn from.
#[derive(Clone, Debug)]
pub(super) struct Text {
    windows: Vec<Window>,
    is_attack: bool,
    weight: f64,
}

impl Text {
    /// A text with these windows, one of so many of its source and label.
    pub(super) fn new(windows: Vec<Window>, is_attack: bool, of_source: usize) -> Self {
        Self { windows, is_attack, weight: (MANY / of_source.max(1) as f64).sqrt().min(1.0) }
    }

    fn signed(&self) -> impl Iterator<Item = &Window> {
        self.windows.iter().filter(|window| window.has_sign)
    }

    /// What the log-odds of its best window give up for being the best; see [`choice`].
    pub(super) fn choice(&self) -> f64 {
        choice(self.signed().count())
    }

    /// How much one of its windows counts: an attack stands in one of them, harmless is the whole text.
    fn weight_of_window(&self) -> f64 {
        let count = self.windows.len().max(1) as f64;
        self.weight / if self.is_attack { count } else { count.sqrt() }
    }
}

/// What each word of a window counts, so that long and short ones count alike, but for the shortest.
fn value(window: &Window) -> f64 {
    1.0 / (window.words.len().max(FEATURES_MIN) as f64).sqrt()
}

/// What each class of words counts in a window, and each pair of them.
fn value_of_meaning(window: &Window) -> f64 {
    MEANING / ((window.meanings.len() + window.beginnings.len()).max(MEANINGS_MIN) as f64).sqrt()
}

/// The features of a window in groups: which place of the table is the first of their kind, their places behind it, and what
/// each place counts.
fn groups(window: &Window) -> [(usize, &[u16], f64); 4] {
    let meaning = value_of_meaning(window);
    [
        (0, &window.words, value(window)),
        (WORDS, window.concepts.as_flattened(), CONCEPT),
        (WORDS, window.meanings.as_flattened(), meaning),
        (WORDS, window.beginnings.as_flattened(), BEGINNING as f64 * meaning),
    ]
}

/// What was learned: one weight for each place of the table, and what is added to every sum.
pub(super) struct Table {
    weights: Vec<f64>,
    bias: f64,
}

impl Table {
    fn sum(&self, window: &Window) -> f64 {
        let mut all = self.bias;
        // Loops, as everything is read thirty times for each group that is left out, by builds without optimisation too.
        for (first, places, value) in groups(window) {
            let mut sum = 0.0;
            for place in places {
                sum += self.weights[first + usize::from(*place)];
            }
            all += value * sum;
        }
        all
    }

    /// Moves the weights of the features of a window by what each counts, times `step`.
    fn move_by(&mut self, step: f64, window: &Window) {
        self.bias += step;
        for (first, places, value) in groups(window) {
            for place in places {
                self.weights[first + usize::from(*place)] += step * value;
            }
        }
    }

    /// The highest sum of the windows of a text that are weighed; none if it has none.
    pub(super) fn score(&self, text: &Text) -> Option<f64> {
        text.signed().map(|window| self.sum(window)).reduce(f64::max)
    }

    /// The numbers of the table, and what one unit stands for.
    pub(super) fn quantised(&self) -> (Vec<i8>, f64) {
        let largest = self.weights.iter().fold(1e-6f64, |largest, weight| largest.max(weight.abs()));
        // The number times its size is the weight, so the number is a root.
        let number = |weight: &f64| {
            ((weight.abs() / largest).sqrt() * f64::from(NUMBER_MAX)).round().copysign(*weight) as i8
        };
        (self.weights.iter().map(number).collect(), largest / f64::from(unit(NUMBER_MAX)))
    }
}

/// Learns from texts by dual coordinate descent. The bias is a feature of every window, and pulled like all others.
pub(super) fn learn<'t>(texts: impl Iterator<Item = &'t Text>) -> Table {
    let windows: Vec<(&Window, &Text)> =
        texts.flat_map(|text| text.windows.iter().map(move |window| (window, text))).collect();
    let mut table = Table { weights: vec![0.0; BUCKETS], bias: 0.0 };
    let mut alphas = vec![0.0f64; windows.len()];
    let mut order: Vec<usize> = (0..windows.len()).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..PASSES {
        // In another order each time, which converges faster; the same orders whenever it runs.
        for last in (1..order.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(last, ((state >> 33) % (last as u64 + 1)) as usize);
        }
        for at in &order {
            let (window, text) = windows[*at];
            let side = if text.is_attack { 1.0 } else { -1.0 };
            let slack = 1.0 / (2.0 * COST * text.weight_of_window());
            let gradient = side * table.sum(window) - 1.0 + slack * alphas[*at];
            // The square of the bias is one. The few places that two features share count as if they were apart.
            let mut squares = 1.0;
            for (_, places, value) in groups(window) {
                squares += value * value * places.len() as f64;
            }
            let alpha = (alphas[*at] - gradient / (squares + slack)).max(0.0);
            let step = (alpha - alphas[*at]) * side;
            if step != 0.0 {
                alphas[*at] = alpha;
                table.move_by(step, window);
            }
        }
    }
    table
}

/// The logistic curve over scores of texts of sources that were left out: what its log-odds are at zero, and its slope.
pub(super) fn curve(scores: impl Iterator<Item = (f64, bool, f64)>) -> (f64, f64) {
    let (labels, windows): (Vec<(bool, f64)>, Vec<[Features; 1]>) =
        scores.map(|(score, is_attack, weight)| ((is_attack, weight), [vec![(0, score)]])).unzip();
    let examples: Vec<Example<'_>> = windows
        .iter()
        .zip(labels)
        .map(|(windows, (is_attack, weight))| Example { windows, is_attack, weight })
        .collect();
    let weights = fit(&examples, &[Sign::For], 1e-6);
    (weights.bias, weights.features[0].max(1e-3))
}

/// The table as a part of a model; its probabilities are still to be bounded.
pub(super) fn written(table: &Table, (at_zero, slope): (f64, f64)) -> WordingDef {
    let (numbers, size) = table.quantised();
    WordingDef {
        scale: slope * size,
        bias: at_zero + slope * table.bias,
        warn: 0.5,
        block: 0.9,
        bounds: Vec::new(),
        table: WordingDef::written(&numbers),
    }
}
