//! The model that weighs concepts: one weight a feature, and from which probability a text warns or blocks.
//!
//! A model is data: the table `[model]` of a rule file, written by `portcullis train`. Weights are whole numbers from
//! -127 to 127, so that a model is small, readable, and the same on every machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::wording::{Wording, WordingDef};

/// The format that this version reads and writes.
pub const MODEL_FORMAT: u32 = 3;
/// Fewest bytes of a window.
const WINDOW_MIN: usize = 200;
/// Most bytes of a window.
const WINDOW_MAX: usize = 16 * 1024;
/// Most bounds of kinds of text.
const BOUNDS_MAX: usize = 16;
/// Most weights. The families of the built-in concepts are a few dozen.
const WEIGHTS_MAX: usize = 4096;

/// Who speaks, as bounds of a model tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The user.
    User,
    /// A tool, or what it returned.
    Tool,
}

impl Speaker {
    /// The word for it in a model.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Tool => "tool",
        }
    }
}

/// From which probability texts of one kind warn and block, where that differs from what holds for all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `speaker`, `warn` and `block`")]
pub struct Bounds {
    /// Who speaks.
    pub speaker: Speaker,
    /// Shortest text that is meant, in bytes. Of several bounds the one with the most bytes holds.
    #[serde(default)]
    pub from_bytes: usize,
    /// Probability from which such a text warns.
    pub warn: f64,
    /// Probability from which such a text blocks.
    pub block: f64,
}

/// A model as written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[model]`")]
pub struct ModelDef {
    /// [`MODEL_FORMAT`].
    pub format: u32,
    /// What it was made of, for people.
    pub description: String,
    /// Bytes of text that are weighed together.
    pub window: usize,
    /// Log-odds of one unit of weight.
    pub scale: f64,
    /// What speaks for an attack before anything is seen, in units of weight.
    pub bias: i32,
    /// Probability from which a text warns.
    pub warn: f64,
    /// Probability from which a text blocks.
    pub block: f64,
    /// Probabilities of kinds of text of their own. What gives an attack away in what a user writes at length stands in
    /// every manual that a tool returns.
    #[serde(default)]
    pub bounds: Vec<Bounds>,
    /// What words weigh by themselves, beside all concepts.
    #[serde(default)]
    pub wording: Option<WordingDef>,
    /// Weight of each feature: the families of concepts, and the features named in [`crate::detect::concepts`].
    pub weights: BTreeMap<String, i8>,
}

impl ModelDef {
    /// What is wrong with it: the field and the reason.
    pub(super) fn problem(&self) -> Option<(&'static str, String)> {
        if self.format != MODEL_FORMAT {
            return Some(("format", format!("must be {MODEL_FORMAT}; train the model with this version")));
        }
        if !(WINDOW_MIN..=WINDOW_MAX).contains(&self.window) {
            return Some(("window", format!("must be from {WINDOW_MIN} to {WINDOW_MAX} bytes")));
        }
        if !(self.scale > 0.0 && self.scale <= 1.0) {
            return Some(("scale", "must be above 0.0 and at most 1.0".to_owned()));
        }
        if self.bias.unsigned_abs() > 1_000_000 {
            return Some(("bias", "must be from -1000000 to 1000000".to_owned()));
        }
        if !is_probability(self.warn) {
            return Some(("warn", "must lie between 0.0 and 1.0".to_owned()));
        }
        if !is_probability(self.block) || self.block <= self.warn {
            return Some(("block", "must lie between `warn` and 1.0".to_owned()));
        }
        if let Some(message) = bounds_problem((self.warn, self.block), &self.bounds) {
            return Some(("bounds", message));
        }
        if let Some(problem) = self.wording.as_ref().and_then(WordingDef::problem) {
            return Some(problem);
        }
        if self.weights.len() > WEIGHTS_MAX {
            return Some(("weights", format!("at most {WEIGHTS_MAX}")));
        }
        None
    }
}

fn is_probability(p: f64) -> bool {
    p > 0.0 && p < 1.0
}

/// What is asked of the probabilities from which a text warns and blocks.
pub(super) const ORDER: &str = "must have 0.0 < warn < block < 1.0";

/// Whether it holds.
pub(super) fn is_in_order(warn: f64, block: f64) -> bool {
    is_probability(warn) && is_probability(block) && warn < block
}

/// What is wrong with the probabilities from which all texts, and texts of some kinds, warn and block.
fn bounds_problem((warn, block): (f64, f64), own: &[Bounds]) -> Option<String> {
    if !is_in_order(warn, block) {
        return Some(ORDER.to_owned());
    }
    if own.len() > BOUNDS_MAX {
        return Some(format!("at most {BOUNDS_MAX}"));
    }
    if let Some(wrong) = own.iter().find(|bounds| !is_in_order(bounds.warn, bounds.block)) {
        let (who, from) = (wrong.speaker.as_str(), wrong.from_bytes);
        return Some(format!("those of {who} from {from} bytes: {ORDER}"));
    }
    let mut kinds: Vec<_> = own.iter().map(|bounds| (bounds.speaker, bounds.from_bytes)).collect();
    kinds.sort_unstable();
    let twice = kinds.array_windows::<2>().find(|[one, next]| one == next);
    twice
        .map(|&[(speaker, bytes), _]| format!("two are of {} from {bytes} bytes; keep one", speaker.as_str()))
}

/// The probabilities from which a text warns and blocks: those of its kind, or those of all.
fn bounds_at(all: (f64, f64), own: &[Bounds], speaker: Option<Speaker>, text_len: usize) -> (f64, f64) {
    let fits = |bounds: &&Bounds| Some(bounds.speaker) == speaker && bounds.from_bytes <= text_len;
    let own = own.iter().filter(fits).max_by_key(|bounds| bounds.from_bytes);
    own.map_or(all, |bounds| (bounds.warn, bounds.block))
}

/// A model ready to weigh.
#[derive(Clone, Debug)]
pub struct Model {
    /// The model as written.
    pub def: ModelDef,
    /// The file it was read from.
    pub file: String,
    /// What words weigh, if it says.
    pub wording: Option<Wording>,
}

impl Model {
    /// A model that was read from a file, and has no [`ModelDef::problem`].
    pub fn new(def: ModelDef, file: String) -> Self {
        let wording = def.wording.as_ref().map(Wording::of);
        Self { def, file, wording }
    }

    /// Weight of a feature in units; zero for one that the model does not know.
    pub fn weight(&self, feature: &str) -> f64 {
        self.def.weights.get(feature).map_or(0.0, |weight| f64::from(*weight))
    }

    /// The probabilities from which a text warns and blocks, by who speaks and its length in bytes.
    pub fn bounds(&self, speaker: Option<Speaker>, text_len: usize) -> (f64, f64) {
        bounds_at((self.def.warn, self.def.block), &self.def.bounds, speaker, text_len)
    }

    /// Probability of an attack, from the sum of weights (without the bias).
    pub fn probability(&self, sum: f64) -> f64 {
        probability(self.def.scale * (f64::from(self.def.bias) + sum))
    }
}

/// The probability of log-odds: `1 / (1 + e^-x)`.
///
/// Made of additions, multiplications and one division, which give the same bits on every machine; the `exp` of the
/// system does not promise that.
pub fn probability(log_odds: f64) -> f64 {
    let x = log_odds.clamp(-40.0, 40.0);
    // e^-x = (e^(-x/64))^64, and |x/64| < 0.63, where ten terms leave an error below 1e-9.
    let step = -x / 64.0;
    let mut sum = 1.0;
    for n in (1..=12u32).rev() {
        sum = 1.0 + sum * step / f64::from(n);
    }
    for _ in 0..6 {
        sum *= sum;
    }
    1.0 / (1.0 + sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_is_that_of_the_logistic_function() {
        for tenth in -400..=400 {
            let x = f64::from(tenth) / 10.0;
            let wanted = 1.0 / (1.0 + (-x).exp());
            assert!((probability(x) - wanted).abs() < 1e-9, "{x}");
        }
        assert!(probability(f64::INFINITY) > 0.999_999 && probability(f64::NEG_INFINITY) < 1e-6);
    }

    #[test]
    fn what_is_out_of_range_is_said() {
        let good = ModelDef {
            format: MODEL_FORMAT,
            description: "d".to_owned(),
            window: 1000,
            scale: 0.05,
            bias: -60,
            warn: 0.4,
            block: 0.8,
            bounds: vec![
                Bounds { speaker: Speaker::User, from_bytes: 0, warn: 0.3, block: 0.7 },
                Bounds { speaker: Speaker::User, from_bytes: 100, warn: 0.2, block: 0.6 },
            ],
            wording: None,
            weights: BTreeMap::from([("override".to_owned(), 100)]),
        };
        assert_eq!(good.problem(), None);
        let wrong = |change: &dyn Fn(&mut ModelDef)| {
            let mut model = good.clone();
            change(&mut model);
            model.problem().map(|(field, _)| field)
        };
        assert_eq!(wrong(&|m| m.format = MODEL_FORMAT + 1), Some("format"));
        assert_eq!(wrong(&|m| m.window = 10), Some("window"));
        assert_eq!(wrong(&|m| m.scale = f64::NAN), Some("scale"));
        assert_eq!(wrong(&|m| m.warn = 0.0), Some("warn"));
        assert_eq!(wrong(&|m| m.block = 0.4), Some("block"));
        assert_eq!(wrong(&|m| m.bias = i32::MIN), Some("bias"));
        assert_eq!(wrong(&|m| m.bounds[1].warn = 0.6), Some("bounds"));
        assert_eq!(wrong(&|m| m.bounds[1].block = f64::NAN), Some("bounds"));
        assert_eq!(wrong(&|m| m.bounds[1].from_bytes = 0), Some("bounds"));
        assert_eq!(wrong(&|m| m.bounds = vec![m.bounds[0]; BOUNDS_MAX + 1]), Some("bounds"));
        assert_eq!(wrong(&|m| m.bounds[1].speaker = Speaker::Tool), None);

        let model = Model::new(good, "m.toml".to_owned());
        for (speaker, len, wanted) in [
            (Some(Speaker::User), 99, (0.3, 0.7)),
            (Some(Speaker::User), 100, (0.2, 0.6)),
            (Some(Speaker::Tool), 100, (0.4, 0.8)),
            (None, 100, (0.4, 0.8)),
        ] {
            assert_eq!(model.bounds(speaker, len), wanted, "{speaker:?} {len}");
        }
    }
}
