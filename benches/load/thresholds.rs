//! What must hold, from `thresholds.toml`, and whether it does.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Everything about one form of the test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// How long it takes.
    pub play: Play,
    /// Names of figures and the most that each may be.
    pub at_most: BTreeMap<String, f64>,
    /// Names of figures and the least that each may be.
    pub at_least: BTreeMap<String, f64>,
}

/// How the server is set, how long the phases take, in seconds, and how much is sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Play {
    /// The setting `server.queue_wait_max` of the server.
    pub queue_wait_max: String,
    /// Before anything is measured.
    pub warm_up_seconds: f64,
    /// Each step of the search for saturation.
    pub search_seconds: f64,
    /// Callers in each step.
    pub search_callers: Vec<usize>,
    /// Share of saturation in the steady phase and after overload.
    pub steady_share: f64,
    /// The steady phase.
    pub steady_seconds: f64,
    /// Multiple of saturation in overload.
    pub overload_factor: f64,
    /// Overload.
    pub overload_seconds: f64,
    /// How long after the beginning of overload the latency of decided calls is measured from: before overload is seen for
    /// what it is, calls wait as in a burst, and in a short phase those are more than one in a hundred.
    pub overload_onset_seconds: f64,
    /// The steady load after it.
    pub recovery_seconds: f64,
}

impl Form {
    /// The form of this name.
    pub fn named(name: &str) -> Self {
        let text = include_str!("thresholds.toml");
        let mut forms: BTreeMap<String, Self> = toml::from_str(text).expect("thresholds.toml can be read");
        forms.remove(name).expect("thresholds.toml has this form")
    }

    /// One line for each threshold; answers whether all hold. A threshold without a figure does not.
    pub fn judge(&self, figures: &BTreeMap<&str, f64>) -> bool {
        let mut all_hold = true;
        let mut line = |name: &str, limit: f64, sign: &str, holds: fn(f64, f64) -> bool| {
            let figure = figures.get(name).copied();
            let is_ok = figure.is_some_and(|figure| holds(figure, limit));
            let figure =
                figure.map_or_else(|| "nothing measured".to_owned(), |figure| format!("{figure:.4}"));
            println!("{:<6} {name} {figure}, {sign} {limit}", if is_ok { "ok" } else { "FAILED" });
            all_hold &= is_ok;
        };
        for (name, limit) in &self.at_most {
            line(name, *limit, "at most", |figure, limit| figure <= limit);
        }
        for (name, limit) in &self.at_least {
            line(name, *limit, "at least", |figure, limit| figure >= limit);
        }
        all_hold
    }
}
