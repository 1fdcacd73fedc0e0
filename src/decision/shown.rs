//! Scores and thresholds as a person reads them: in as few digits as say nothing untrue.
//!
//! Two digits are enough for most. Rounded to the nearest, they would at times name a threshold on the wrong side of the
//! score that it is said to be held against.

/// Fewest and most digits behind the point.
const DIGITS_MIN: usize = 2;
const DIGITS_MAX: usize = 4;
/// What is left of a product of two short numbers beside the number that it is meant to be.
const NOISE: f64 = 1e-9;

/// A score or a threshold, never more than it is: held against a number of this form, it reaches what it reaches.
pub fn at_most(score: f64) -> String {
    short(score, |scaled| (scaled + NOISE).floor(), |shown| shown <= score)
}

/// A number that everything above lies above the score, too, and below the highest threshold.
pub fn above(score: f64) -> String {
    short(score, |scaled| (scaled - NOISE).ceil(), |shown| shown < 1.0 && shown >= score - NOISE)
}

/// The first number of few digits that is as good as the score, else the nearest of them on the side that is true.
fn short(score: f64, rounded: impl Fn(f64) -> f64, is_true: impl Fn(f64) -> bool) -> String {
    for digits in DIGITS_MIN..=DIGITS_MAX {
        let scale = [1e2, 1e3, 1e4][digits - DIGITS_MIN];
        // Nothing below nothing is told from nothing.
        let shown = rounded(score * scale) / scale + 0.0;
        let is_good = digits == DIGITS_MAX || (shown - score).abs() < NOISE;
        if is_good && is_true(shown) {
            return format!("{shown:.digits$}");
        }
    }
    score.to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decision::{Decision, Thresholds};

    #[test]
    fn figures_are_as_short_as_is_true() {
        for (score, below, over) in [
            (0.8, "0.80", "0.80"),
            (0.8 * 0.9, "0.72", "0.72"),
            (0.57, "0.57", "0.57"),
            (0.478, "0.478", "0.478"),
            (0.781, "0.781", "0.781"),
            (0.781_234, "0.7812", "0.7813"),
            (0.699_99, "0.6999", "0.7000"),
            (0.0, "0.00", "0.00"),
            (0.004, "0.004", "0.004"),
            (0.999_97, "0.9999", "0.99997"),
            (1.0, "1.00", "1"),
        ] {
            assert_eq!((at_most(score).as_str(), above(score).as_str()), (below, over), "{score}");
        }
    }

    proptest! {
        /// Whoever writes what is shown into a policy gets what was said.
        #[test]
        fn a_threshold_as_shown_does_what_is_said(score in 0.0..1.0f64) {
            let block = |text: String| text.parse::<f64>().expect("a number");
            let decided = |block: f64| Thresholds { warn: 0.0, block }.decide(score);
            prop_assert_eq!(decided(block(at_most(score))), Decision::Block);
            let over = block(above(score));
            prop_assert!(over < 1.0);
            prop_assert_eq!(decided((over + 1e-6).min(1.0)), Decision::Warn);
        }
    }
}
