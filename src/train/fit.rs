//! Logistic regression, the same to the byte wherever it runs.
//!
//! Newton's method on the penalised likelihood, in plain additions, multiplications and divisions in a fixed order; the
//! one function beyond those, the logistic one, is made of them too. No thread, no random number.
//!
//! A text has several windows and one label. What is fitted is the window that looks most like an attack under the
//! weights so far, for attacks and harmless texts alike, since that is the window that will decide.

use crate::rules::probability;

/// Steps of Newton's method. The last ones change nothing that survives rounding.
const STEPS: usize = 20;
/// How often the window that stands for a text is chosen anew.
const ROUNDS: usize = 4;

/// Values of the features that are not zero, by index.
pub type Features = Vec<(usize, f64)>;

/// One text to learn from.
#[derive(Clone, Debug)]
pub struct Example<'e> {
    /// The features of its windows; at least one.
    pub windows: &'e [Features],
    /// Whether it is an attack.
    pub is_attack: bool,
    /// How much it counts.
    pub weight: f64,
}

/// What was learned: log-odds before anything is seen, and of each feature.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// Log-odds before anything is seen.
    pub bias: f64,
    /// Log-odds of one unit of each feature.
    pub features: Vec<f64>,
}

impl Weights {
    /// Log-odds of a window.
    pub fn log_odds(&self, features: &[(usize, f64)]) -> f64 {
        features.iter().fold(self.bias, |sum, (feature, value)| sum + self.features[*feature] * value)
    }

    /// The window that looks most like an attack, and its log-odds; none if there is no window.
    pub fn best<'w>(&self, windows: &'w [Features]) -> Option<(&'w Features, f64)> {
        let scored = windows.iter().map(|window| (window, self.log_odds(window)));
        scored.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}

/// Which way a feature may count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// For an attack, or not at all.
    For,
    /// Against one, or not at all.
    Against,
    /// Either way.
    Any,
}

impl Sign {
    fn admits(self, value: f64) -> bool {
        match self {
            Self::For => value >= 0.0,
            Self::Against => value <= 0.0,
            Self::Any => true,
        }
    }
}

/// Fits a weight for each of `signs`; `penalty` pulls them towards zero. A feature that speaks for an attack never
/// counts against one: where data say so, it is a quirk of their origin.
pub fn fit(examples: &[Example<'_>], signs: &[Sign], penalty: f64) -> Weights {
    let count = signs.len();
    // At first every feature counts the same, so that the window with most evidence stands for its text.
    let mut weights = Weights { bias: 0.0, features: vec![1.0; count] };
    for _ in 0..ROUNDS {
        let chosen: Vec<(&Features, bool, f64)> = examples
            .iter()
            .filter_map(|one| Some((weights.best(one.windows)?.0, one.is_attack, one.weight)))
            .collect();
        weights = newton(&chosen, signs, penalty);
    }
    weights
}

fn newton(examples: &[(&Features, bool, f64)], signs: &[Sign], penalty: f64) -> Weights {
    let count = signs.len();
    // The bias is the last coefficient, and is not pulled.
    let size = count + 1;
    let mut at = vec![0.0; size];
    for _ in 0..STEPS {
        let mut gradient = vec![0.0; size];
        let mut curvature = vec![0.0; size * size];
        for (features, is_attack, weight) in examples {
            let all = || features.iter().copied().chain([(count, 1.0)]);
            let p = probability(all().fold(0.0, |sum, (feature, value)| sum + at[feature] * value));
            let error = weight * (f64::from(u8::from(*is_attack)) - p);
            let spread = weight * (p * (1.0 - p)).max(1e-6);
            for (row, value) in all() {
                gradient[row] += error * value;
                for (column, other) in all() {
                    curvature[row * size + column] += spread * value * other;
                }
            }
        }
        for feature in 0..count {
            gradient[feature] -= penalty * at[feature];
            curvature[feature * size + feature] += penalty;
        }
        curvature[count * size + count] += 1e-9;
        // A weight at its bound that would cross it stays out of this step.
        for feature in 0..count {
            if at[feature] == 0.0 && !signs[feature].admits(gradient[feature]) {
                gradient[feature] = 0.0;
                for other in 0..size {
                    curvature[feature * size + other] = 0.0;
                    curvature[other * size + feature] = 0.0;
                }
                curvature[feature * size + feature] = 1.0;
            }
        }
        for (nth, (coefficient, step)) in at.iter_mut().zip(solve(curvature, gradient)).enumerate() {
            // A full step may overshoot where classes lie apart.
            *coefficient += step.clamp(-2.0, 2.0);
            if nth < count && !signs[nth].admits(*coefficient) {
                *coefficient = 0.0;
            }
        }
    }
    let bias = at.pop().unwrap_or_default();
    Weights { bias, features: at }
}

/// Solves a symmetric positive definite system by Gaussian elimination in order; its pivots are positive.
fn solve(mut matrix: Vec<f64>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for pivot in 0..size {
        let head = matrix[pivot * size + pivot].max(1e-12);
        for row in pivot + 1..size {
            let factor = matrix[row * size + pivot] / head;
            if factor == 0.0 {
                continue;
            }
            for column in pivot..size {
                matrix[row * size + column] -= factor * matrix[pivot * size + column];
            }
            right[row] -= factor * right[pivot];
        }
    }
    for row in (0..size).rev() {
        let known =
            (row + 1..size).fold(0.0, |sum, column| sum + matrix[row * size + column] * right[column]);
        right[row] = (right[row] - known) / matrix[row * size + row].max(1e-12);
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learns_which_feature_tells() {
        let attack: Vec<Features> = vec![vec![(0, 1.0), (1, 1.0)]];
        let benign: Vec<Features> = vec![vec![(1, 1.0)]];
        let both: Vec<Features> = vec![vec![(1, 1.0)], vec![(0, 1.0), (1, 1.0)]];
        let example = |windows, is_attack| Example { windows, is_attack, weight: 1.0 };
        let examples = [
            example(&*attack, true),
            example(&*benign, false),
            example(&*both, true),
            example(&*benign, false),
        ];
        let weights = fit(&examples, &[Sign::Any; 3], 0.1);
        assert!(weights.features[0] > 1.0 && weights.features[0] > 3.0 * weights.features[1], "{weights:?}");
        assert_eq!(weights.features[2], 0.0, "what never occurs has no weight");
        assert!(weights.log_odds(&attack[0]) > 0.0 && weights.log_odds(&benign[0]) < 0.0);
        assert_eq!(weights, fit(&examples, &[Sign::Any; 3], 0.1), "the same every time");
        let bounded = fit(&examples, &[Sign::Against, Sign::Any, Sign::For], 0.1);
        assert_eq!(bounded.features[0], 0.0, "never against its sign");
    }

    #[test]
    fn solves_what_it_is_given() {
        let solved = solve(vec![4.0, 1.0, 1.0, 3.0], vec![1.0, 2.0]);
        assert!((solved[0] - 1.0 / 11.0).abs() < 1e-12 && (solved[1] - 7.0 / 11.0).abs() < 1e-12);
        assert_eq!(fit(&[], &[Sign::Any; 2], 1.0).features, [0.0, 0.0]);
    }
}
