//! Trains the model that weighs concepts, from labelled texts.
//!
//! Pure but for the scan of each text: the same texts in the same order give the same model, byte for byte. Sources
//! count alike, however many texts each has. Texts of the operator (role system) are left out, since they are in shadow
//! by default; so are those of tier `semantic`, which are plain requests, and nothing could be learned from them but
//! their origin. Texts of tier `wording` teach what words weigh and nothing about concepts: texts that were written to be
//! told apart by words alone hold few concepts on either side, and would only push their bounds up. Those of tier `material`
//! (source code, manuals, settings) teach words too, and no bound is told from them: they are many and easy, so that a share of
//! them would let as many texts block that people write.
//!
//! Thresholds come from texts that the weights were not fitted to: each source is left out in turn, the others are
//! fitted, and the one left out is scored. A tier of harmless texts that one source alone brings is cut in three parts,
//! or leaving it out would leave out all that is known of its kind. What a user writes in short, what one writes at
//! length, and what tools return have bounds of their own: a few manuals that show attacks would otherwise decide what
//! is found in prompts.

mod card;
pub mod fit;
mod wording;

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

pub use card::{card, json};

use crate::detect::concepts::{CODED_FEATURES, IDEAS_MIN, feature_names, speaker};
use crate::detect::{INJECTION, Request, Scanner};
use crate::rules::wording::{Wording, WordingBounds, WordingDef};
use crate::rules::{
    Bounds, Budget, MODEL_FORMAT, Model, ModelDef, Role, Speaker, Surface, on_all_cores, probability,
};
use crate::text::is_foreign;
use fit::{Example, Features, Sign, Weights, fit};

/// Bytes of text that are weighed together.
pub const WINDOW: usize = 2000;
/// Pull of each weight towards zero.
const PENALTY: f64 = 0.02;
/// Share of harmless texts, each scored by weights of other origins, that may block and that may warn.
pub const RATES: Rates = Rates { block: 0.004, warn: 0.01 };
/// Kinds of text with bounds of their own. Together they let about as many harmless texts block as [`RATES`] does: more of
/// the long ones of users, where one more false alarm buys most, and fewer of the short ones.
pub const KINDS: [Kind; 3] = [
    Kind { speaker: Speaker::User, from_bytes: 0, rates: Rates { block: 0.0005, warn: 0.006 } },
    Kind { speaker: Speaker::User, from_bytes: 250, rates: Rates { block: 0.01, warn: 0.02 } },
    Kind { speaker: Speaker::Tool, from_bytes: 0, rates: Rates { block: 0.0105, warn: 0.025 } },
];
/// Shares of harmless texts that may block and warn by their words.
pub const WORDING_RATES: Rates = Rates { block: 0.002, warn: 0.005 };
/// Kinds of text for what words weigh. Few may block: words are weak evidence, and what comes near an attack uses the same ones.
/// Most harmless texts among the records were written to come near one, so that of usual text far fewer do. With shares of 0.006 and
/// 0.016 for what tools return, 257 instead of 265 of 369 attacks that nobody trains on were found, and 18 instead of 24 of 12,000
/// pieces of source code and manuals blocked that nobody trains on.
pub const WORDING_KINDS: [WordingKind; 4] = [
    WordingKind { speaker: Speaker::User, foreign: false, rates: Rates { block: 0.012, warn: 0.018 } },
    WordingKind { speaker: Speaker::User, foreign: true, rates: Rates { block: 0.013, warn: 0.019 } },
    WordingKind { speaker: Speaker::Tool, foreign: false, rates: Rates { block: 0.0085, warn: 0.015 } },
    WordingKind { speaker: Speaker::Tool, foreign: true, rates: Rates { block: 0.019, warn: 0.025 } },
];
/// Fewest harmless texts of a kind from which bounds of its own can be told.
const KIND_MIN: usize = 200;
/// Parts of a source that alone brings a tier of harmless texts.
const PARTS: u64 = 3;
/// Tier of attacks that are plain requests.
const SEMANTIC: &str = "semantic";
/// Tier of texts from which words are learned, and concepts are not.
const WORDING: &str = "wording";
/// Tier of harmless texts from which words are learned, and that no bound is told from. Concepts that learned from them as well
/// had weights that blocked 10 instead of 6 of 2,043 harmless requests with trigger words.
const MATERIAL: &str = "material";
/// Largest whole number of a weight.
const WEIGHT_MAX: f64 = 127.0;

/// Shares of harmless texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// That may block.
    pub block: f64,
    /// That may warn.
    pub warn: f64,
}

/// A kind of text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// Who speaks.
    pub speaker: Speaker,
    /// Shortest such text, in bytes; one that fits a longer kind is of that one.
    pub from_bytes: usize,
    /// Shares of its harmless texts.
    pub rates: Rates,
}

/// A kind of text as words are weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WordingKind {
    /// Who speaks.
    pub speaker: Speaker,
    /// Whether texts in other languages than English are meant.
    pub foreign: bool,
    /// Shares of its harmless texts.
    pub rates: Rates,
}

/// Least probability from which a text warns, however seldom harmless ones come so far.
pub const WARN_MIN: f64 = 0.25;

/// Least probability from which a text blocks: where harmless texts are few or hold nothing, what is likely harmless would
/// block otherwise.
pub const BLOCK_MIN: f64 = 0.5;

/// One labelled text.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// Id, unique within its source.
    pub id: String,
    /// Where it comes from.
    pub source: String,
    /// Kind of text, such as `explicit`.
    pub tier: String,
    /// Whether it is an attack.
    pub is_attack: bool,
    /// Who wrote it.
    pub role: Role,
    /// The text.
    pub text: String,
}

/// Why there is no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrainError {
    /// There is nothing to learn from.
    #[error("{0}")]
    TooLittle(String),
}

/// What came of a training.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The model.
    pub model: ModelDef,
    /// Found and all texts, by label, source and tier, each source scored by weights of the others.
    pub held_out: BTreeMap<(bool, String, String), (usize, usize)>,
    /// The same for what words weigh.
    pub words_held_out: BTreeMap<(bool, String, String), (usize, usize)>,
    /// SHA-256 of the texts with their labels, in their order; hex.
    pub digest: String,
    /// How many texts there were in all.
    pub texts: usize,
}

/// A text as the weights see it.
struct Sample<'t> {
    of: &'t Labelled,
    /// The source, or its part.
    group: String,
    windows: Vec<Features>,
    words: wording::Text,
    is_foreign: bool,
    is_learned: bool,
}

impl Sample<'_> {
    fn speaker(&self) -> Speaker {
        speaker(Some(self.of.role), Some(self.surface())).unwrap_or(Speaker::User)
    }

    fn surface(&self) -> Surface {
        surface(self.of.role)
    }

    /// Whether it is of this one of some kinds, and of no longer one.
    fn is_of(&self, kind: &Kind, kinds: &[Kind]) -> bool {
        let is_fitting =
            |kind: &&Kind| self.speaker() == kind.speaker && kind.from_bytes <= self.of.text.len();
        kinds.iter().filter(is_fitting).max_by_key(|kind| kind.from_bytes) == Some(kind)
    }
}

/// What weights make of a text.
#[derive(Clone, Copy)]
struct Score {
    log_odds: f64,
    /// How many families speak for an attack.
    ideas: usize,
}

/// Far below all others: no concept was hit.
const SILENT: Score = Score { log_odds: -40.0, ideas: 0 };

fn surface(role: Role) -> Surface {
    if role == Role::Tool { Surface::ToolResult } else { Surface::Text }
}

/// Trains a model for the concepts of `scanner`.
///
/// # Errors
/// [`TrainError`] where there are fewer than two sources, or no attack, or no harmless text. Parts of a source are no sources.
pub fn train(scanner: &Scanner, texts: &[Labelled]) -> Result<Trained, TrainError> {
    let names = feature_names(scanner.rules().families());
    let signs = signs(scanner);
    let samples = samples(scanner, texts);
    let worded: Vec<&Sample<'_>> = samples.iter().filter(|sample| sample.is_learned).collect();
    let teaches_words_alone = |sample: &Sample<'_>| [WORDING, MATERIAL].contains(&&*sample.of.tier);
    let learned: Vec<&Sample<'_>> =
        worded.iter().copied().filter(|sample| !teaches_words_alone(sample)).collect();
    let groups: BTreeSet<&str> = learned.iter().map(|sample| &*sample.group).collect();
    let too_little = |message: &str| Err(TrainError::TooLittle(message.to_owned()));
    if texts.is_empty() {
        return too_little("there is no record in any of the files");
    }
    for (is_attack, label, other) in [(true, "attack", "benign"), (false, "benign", "attack")] {
        if !texts.iter().any(|text| text.is_attack == is_attack) {
            let message = format!(
                "no {label} among the records: `label` is `{other}` in all, and a model learns from both"
            );
            return too_little(&message);
        }
    }
    for is_attack in [true, false] {
        if !learned.iter().any(|sample| sample.of.is_attack == is_attack) {
            return too_little(&unlearned(texts, is_attack));
        }
    }
    // A source that was cut in parts is still one: what all of its texts share would pass for what tells attacks.
    let sources: BTreeSet<&str> = learned.iter().map(|sample| &*sample.of.source).collect();
    if sources.len() < 2 {
        let without = learned.iter().filter(|sample| sample.of.source.is_empty()).count();
        let unnamed = match without {
            0 => String::new(),
            1 => "; 1 record has no `source`".to_owned(),
            many => format!("; {many} records have no `source`, and count as one source"),
        };
        return too_little(&format!(
            "records of at least two sources are needed: thresholds are fixed on the one left out{unnamed}"
        ));
    }
    for (is_attack, what) in [(true, "attack"), (false, "benign record")] {
        if !learned.iter().any(|sample| sample.of.is_attack == is_attack && !sample.windows.is_empty()) {
            return too_little(&format!("no {what} of a user or a tool holds any concept"));
        }
    }
    let families = names.len() - CODED_FEATURES.len();
    let scores = held_out_scores(&learned, &groups, &signs, families);
    let harmless: Vec<(&Sample<'_>, Score)> = learned
        .iter()
        .zip(&scores)
        .filter(|(sample, _)| !sample.of.is_attack)
        .map(|(sample, score)| (*sample, *score))
        .collect();
    let (warn, block) = thresholds(harmless.iter().map(|(_, score)| *score), RATES);
    let bounds = KINDS.iter().filter_map(|kind| bounds_of(kind, &harmless, block)).collect();
    let weights = fit_without(&learned, None, &signs);
    let mut model = quantised(&names, &weights, (warn, block), bounds);
    let by_words = weigh_words(&worded);
    model.wording = Some(by_words.def);
    let judge = Model::new(model.clone(), String::new());
    let mut held_out: BTreeMap<(bool, String, String), (usize, usize)> = BTreeMap::new();
    for (sample, score) in learned.iter().zip(&scores) {
        let key = (sample.of.is_attack, sample.of.source.clone(), sample.of.tier.clone());
        let (found, all) = held_out.entry(key).or_default();
        *all += 1;
        let speaker = speaker(Some(sample.of.role), Some(sample.surface()));
        let own = judge.bounds(speaker, sample.of.text.len()).1;
        let least = if score.ideas < IDEAS_MIN { own.max(block) } else { own };
        *found += usize::from(probability(score.log_odds) >= least);
    }
    Ok(Trained {
        model,
        held_out,
        words_held_out: by_words.held_out,
        digest: digest(texts),
        texts: texts.len(),
    })
}

/// Why none of the texts of a label, of which there are some, teaches what concepts weigh.
fn unlearned(texts: &[Labelled], is_attack: bool) -> String {
    let of_label: Vec<&Labelled> = texts.iter().filter(|text| text.is_attack == is_attack).collect();
    let of_system = |text: &&&Labelled| text.role == Role::System;
    let count = |is_it: &dyn Fn(&Labelled) -> bool| {
        of_label.iter().filter(|text| !of_system(text) && is_it(text)).count()
    };
    let reasons = [
        (of_label.iter().filter(of_system).count(), "of the system, which is trusted"),
        (count(&|text| text.tier == SEMANTIC), "of tier `semantic`, which are plain requests"),
        (count(&|text| text.tier == WORDING), "of tier `wording`, which teach only what words weigh"),
        (count(&|text| text.tier == MATERIAL), "of tier `material`, which teach only what words weigh"),
    ];
    let reasons: Vec<String> = reasons
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let label = if is_attack { "attacks" } else { "benign records" };
    format!(
        "no model can learn from the {label}: of {} there are {}; records of users and tools of other tiers are needed",
        of_label.len(),
        reasons.join(", ")
    )
}

/// The probabilities from which texts warn and block, so that no more than these shares of harmless ones do.
fn thresholds(harmless: impl Iterator<Item = Score>, rates: Rates) -> (f64, f64) {
    at_least_likely(shares(harmless.map(|score| score.log_odds), rates))
}

/// The same from log-odds.
fn shares(harmless: impl Iterator<Item = f64>, rates: Rates) -> (f64, f64) {
    let mut scores: Vec<f64> = harmless.collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    let from = |rate: f64| {
        let at = (rate * scores.len() as f64) as usize;
        scores.get(at).copied().unwrap_or(f64::NEG_INFINITY).max(-4.0)
    };
    let block = round(probability(from(rates.block)) + 1e-4, 1e4).min(0.999);
    // Rounded again: what is left of a difference is no round number.
    (round(probability(from(rates.warn)), 1e4).clamp(0.001, round(block - 0.001, 1e4)), block)
}

/// The bounds of a kind of text; none where too few harmless texts are of it. Where there is one idea alone, only what
/// `block` stands for blocks, and nothing warns.
fn bounds_of(kind: &Kind, harmless: &[(&Sample<'_>, Score)], block: f64) -> Option<Bounds> {
    let counts = |score: Score| score.ideas >= IDEAS_MIN || probability(score.log_odds) >= block;
    let own: Vec<Score> = harmless
        .iter()
        .filter(|(sample, _)| sample.is_of(kind, &KINDS))
        .map(|(_, score)| if counts(*score) { *score } else { SILENT })
        .collect();
    let (warn, block) = (own.len() >= KIND_MIN).then(|| thresholds(own.into_iter(), kind.rates))?;
    Some(Bounds { speaker: kind.speaker, from_bytes: kind.from_bytes, warn, block })
}

/// Which way each feature may count.
fn signs(scanner: &Scanner) -> Vec<Sign> {
    let of = |is_against: bool| if is_against { Sign::Against } else { Sign::For };
    let families = scanner.rules().families().iter().map(|concept| of(concept.is_against));
    let coded = CODED_FEATURES.iter().map(|name| match *name {
        "surface-user" | "surface-tool" | "quoted" => Sign::Any,
        _ => Sign::For,
    });
    families.chain(coded).collect()
}

fn samples<'t>(scanner: &Scanner, texts: &'t [Labelled]) -> Vec<Sample<'t>> {
    let plugins = scanner.rules().plugin_bits([INJECTION]);
    let mut sources_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for text in texts.iter().filter(|text| !text.is_attack) {
        sources_of.entry(&text.tier).or_default().insert(&text.source);
    }
    let mut counts: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    for text in texts {
        *counts.entry((&text.source, text.is_attack)).or_default() += 1;
    }
    let sample = |text: &'t Labelled| {
        let is_learned = text.role != Role::System && text.tier != SEMANTIC;
        let surface = Some(surface(text.role));
        let request = Request { text: &text.text, plugins, role: Some(text.role), surface };
        // An unlimited budget is never spent.
        let read = is_learned.then(|| scanner.samples(request, WINDOW, &Budget::UNLIMITED).ok()).flatten();
        let read = read.unwrap_or_default();
        let is_alone =
            !text.is_attack && sources_of.get(&*text.tier).is_some_and(|sources| sources.len() == 1);
        let group = match is_alone {
            true => format!("{}/{}", text.source, part(&text.id)),
            false => text.source.clone(),
        };
        let of_source = counts.get(&(&*text.source, text.is_attack)).copied().unwrap_or(1);
        let words = wording::Text::new(read.words, text.is_attack, of_source);
        let is_foreign = is_foreign(&text.text);
        Sample { of: text, group, windows: read.concepts, words, is_foreign, is_learned }
    };
    on_all(texts, sample)
}

/// The same for each item, on all cores, in their order.
fn on_all<'i, T: Sync, R: Send>(items: &'i [T], work: impl Fn(&'i T) -> R + Sync) -> Vec<R> {
    let done = on_all_cores(&Vec::from_iter(items), |item| work(item));
    // What panicked there says so here.
    done.into_iter().zip(items).map(|(one, item)| one.unwrap_or_else(|| work(item))).collect()
}

/// A part of a source for an id (FNV-1a).
fn part(id: &str) -> u64 {
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash % PARTS
}

/// Each text under the weights of the other sources. The first features are those of `families`.
fn held_out_scores(
    learned: &[&Sample<'_>],
    groups: &BTreeSet<&str>,
    signs: &[Sign],
    families: usize,
) -> Vec<Score> {
    let mut scores = vec![SILENT; learned.len()];
    let groups = Vec::from_iter(groups);
    let fitted = on_all(&groups, |group| fit_without(learned, Some(group), signs));
    for (group, weights) in groups.into_iter().zip(fitted) {
        for (sample, score) in learned.iter().zip(&mut scores) {
            if sample.group == *group
                && let Some((window, log_odds)) = weights.best(&sample.windows)
            {
                let gives = |(feature, value): &&(usize, f64)| {
                    *feature < families && weights.features[*feature] * value > 0.0
                };
                *score = Score { log_odds, ideas: window.iter().filter(gives).count() };
            }
        }
    }
    scores
}

/// What words weigh, and what they find of sources that were left out.
struct ByWords {
    def: WordingDef,
    held_out: BTreeMap<(bool, String, String), (usize, usize)>,
}

fn weigh_words(learned: &[&Sample<'_>]) -> ByWords {
    let groups: BTreeSet<&str> = learned.iter().map(|sample| &*sample.group).collect();
    let learn_without = |left_out: Option<&str>| {
        let kept = learned.iter().filter(move |sample| left_out.is_none_or(|group| sample.group != group));
        wording::learn(kept.map(|sample| &sample.words))
    };
    let mut scores = vec![f64::NEG_INFINITY; learned.len()];
    let groups = Vec::from_iter(groups);
    let tables = on_all(&groups, |group| learn_without(Some(group)));
    for (group, table) in groups.into_iter().zip(tables) {
        for (sample, score) in learned.iter().zip(&mut scores).filter(|(sample, _)| sample.group == *group) {
            *score = table.score(&sample.words).unwrap_or(f64::NEG_INFINITY);
        }
    }
    let tells = |sample: &Sample<'_>| sample.of.tier != MATERIAL;
    let known = learned.iter().zip(&scores).filter(|(sample, score)| tells(sample) && score.is_finite());
    let curve = wording::curve(known.map(|(sample, score)| (*score, sample.of.is_attack, 1.0)));
    let odds = |sample: &Sample<'_>, score: f64| curve.0 + curve.1 * score - sample.words.choice();
    let harmless: Vec<(&Sample<'_>, f64)> = learned
        .iter()
        .zip(&scores)
        .filter(|(sample, _)| !sample.of.is_attack && tells(sample))
        .map(|(sample, score)| (*sample, odds(sample, *score)))
        .collect();
    let mut def = wording::written(&learn_without(None), curve);
    (def.warn, def.block) = at_least_likely(shares(harmless.iter().map(|(_, odds)| *odds), WORDING_RATES));
    for kind in &WORDING_KINDS {
        let is_of_kind =
            |sample: &Sample<'_>| (sample.speaker(), sample.is_foreign) == (kind.speaker, kind.foreign);
        let of_kind = harmless.iter().filter(|(sample, _)| is_of_kind(sample));
        let own: Vec<f64> = of_kind.map(|(_, odds)| *odds).collect();
        if own.len() >= KIND_MIN {
            let (warn, block) = at_least_likely(shares(own.into_iter(), kind.rates));
            def.bounds.push(WordingBounds { speaker: kind.speaker, foreign: kind.foreign, warn, block });
        }
    }
    let judge = Wording::of(&def);
    let mut held_out: BTreeMap<(bool, String, String), (usize, usize)> = BTreeMap::new();
    for (sample, score) in learned.iter().zip(&scores) {
        let key = (sample.of.is_attack, sample.of.source.clone(), sample.of.tier.clone());
        let (found, all) = held_out.entry(key).or_default();
        *all += 1;
        let block = judge.bounds(sample.speaker(), sample.is_foreign).1;
        *found += usize::from(probability(odds(sample, *score)) >= block);
    }
    ByWords { def, held_out }
}

/// Bounds are never below even odds to block, however few harmless texts there are to tell them by.
fn at_least_likely((warn, block): (f64, f64)) -> (f64, f64) {
    (warn.max(WARN_MIN), block.max(BLOCK_MIN))
}

fn fit_without(learned: &[&Sample<'_>], left_out: Option<&str>, signs: &[Sign]) -> Weights {
    let kept = || {
        let is_kept = |sample: &&&Sample<'_>| {
            left_out.is_none_or(|group| sample.group != group) && !sample.windows.is_empty()
        };
        learned.iter().filter(is_kept)
    };
    let mut counts: BTreeMap<(&str, bool), f64> = BTreeMap::new();
    for sample in kept() {
        *counts.entry((&sample.group, sample.of.is_attack)).or_default() += 1.0;
    }
    let example =
        |sample: &&'_ Sample<'_>| (sample.of.is_attack, 1.0 / counts[&(&*sample.group, sample.of.is_attack)]);
    let examples: Vec<Example<'_>> = kept()
        .map(|sample| {
            let (is_attack, weight) = example(sample);
            Example { windows: &sample.windows, is_attack, weight }
        })
        .collect();
    fit(&examples, signs, PENALTY)
}

/// The weights as whole numbers.
fn quantised(
    names: &[String],
    weights: &Weights,
    (warn, block): (f64, f64),
    bounds: Vec<Bounds>,
) -> ModelDef {
    let largest = weights.features.iter().fold(0.1f64, |largest, weight| largest.max(weight.abs()));
    let scale = round(largest / WEIGHT_MAX + 5e-7, 1e6);
    let whole = |value: f64| (value / scale).round();
    let mut named = BTreeMap::new();
    for (name, weight) in names.iter().zip(&weights.features) {
        named.insert(name.clone(), whole(*weight).clamp(-WEIGHT_MAX, WEIGHT_MAX) as i8);
    }
    ModelDef {
        format: MODEL_FORMAT,
        description: "Trained by `portcullis train`; see its card.".to_owned(),
        window: WINDOW,
        scale,
        bias: whole(weights.bias) as i32,
        warn,
        block,
        bounds,
        wording: None,
        weights: named,
    }
}

fn round(value: f64, unit: f64) -> f64 {
    (value * unit).round() / unit
}

fn digest(texts: &[Labelled]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        for part in [&*text.source, &text.tier, if text.is_attack { "attack" } else { "benign" }, &text.text]
        {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The model as the text of a rule file.
pub fn model_file(model: &ModelDef) -> String {
    let mut out = String::from(
        "# The model that weighs concepts. Written by `portcullis train`; change it by training again.\n\n[model]\n",
    );
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    line(format!("format = {}", model.format));
    line(format!("description = {:?}", model.description));
    line(format!("window = {}", model.window));
    line(format!("scale = {:?}", model.scale));
    line(format!("bias = {}", model.bias));
    line(format!("warn = {:?}", model.warn));
    line(format!("block = {:?}", model.block));
    for bounds in &model.bounds {
        line("\n[[model.bounds]]".to_owned());
        line(format!("speaker = {:?}", bounds.speaker.as_str()));
        line(format!("from_bytes = {}", bounds.from_bytes));
        line(format!("warn = {:?}", bounds.warn));
        line(format!("block = {:?}", bounds.block));
    }
    if let Some(wording) = &model.wording {
        line("\n[model.wording]".to_owned());
        line(format!("scale = {:?}", wording.scale));
        line(format!("bias = {:?}", wording.bias));
        line(format!("warn = {:?}", wording.warn));
        line(format!("block = {:?}", wording.block));
        line(format!("table = \"\"\"\n{}\"\"\"", wording.table));
        for own in &wording.bounds {
            line(format!("\n[[model.wording.bounds]]\nspeaker = {:?}", own.speaker.as_str()));
            line(format!("foreign = {}\nwarn = {:?}\nblock = {:?}", own.foreign, own.warn, own.block));
        }
    }
    line("\n[model.weights]".to_owned());
    for (name, weight) in &model.weights {
        line(format!("{name} = {weight}"));
    }
    out
}

#[cfg(test)]
mod tests;
