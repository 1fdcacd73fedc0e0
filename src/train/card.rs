//! The card of a model: what it was trained on, its thresholds, and how it does on sources it has not seen.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json as object};

use super::{BLOCK_MIN, KINDS, Kind, RATES, Trained, WARN_MIN, WINDOW};

/// Recall averaged over sources, from found and all texts of each.
fn macro_recall<'c>(counts: impl Iterator<Item = (&'c str, (usize, usize))>) -> f64 {
    let mut sources: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (source, (found, all)) in counts {
        let sum = sources.entry(source).or_default();
        *sum = (sum.0 + found, sum.1 + all);
    }
    let sum: f64 = sources.values().map(|(found, all)| *found as f64 / (*all).max(1) as f64).sum();
    sum / sources.len().max(1) as f64
}

/// What holds for kinds of text with bounds of their own.
fn bounds(out: &mut String, trained: &Trained) {
    if trained.model.bounds.is_empty() {
        return;
    }
    out.push_str(
        "Kinds of text with bounds of their own; a text with one idea alone blocks by those above or by its own, whichever is\n\
         higher.\n\n| speaker | from bytes | warns from | blocks from | harmless texts that may block | that may warn |\n\
         |---|---|---|---|---|---|\n",
    );
    for own in &trained.model.bounds {
        let is_kind = |kind: &&Kind| kind.speaker == own.speaker && kind.from_bytes == own.from_bytes;
        let rates = KINDS.iter().find(is_kind).map_or(RATES, |kind| kind.rates);
        let (who, from) = (own.speaker.as_str(), own.from_bytes);
        let (block, warn) = (rates.block * 100.0, rates.warn * 100.0);
        // Writing to a String cannot fail.
        let _ =
            writeln!(out, "| {who} | {from} | {} | {} | {block:.2} % | {warn:.1} % |", own.warn, own.block);
    }
    out.push('\n');
}

/// What words weigh, and what they find alone.
fn words(out: &mut String, trained: &Trained) {
    let Some(wording) = &trained.model.wording else { return };
    out.push_str(
        "\n## Words\n\nWords and pairs of words have weights of their own in a table of hashes, learned by a linear classifier; see \
         [wording](RULES.md#concepts).\n\n| text of | warns from | blocks from |\n|---|---|---|\n",
    );
    for own in &wording.bounds {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "| {} | {} | {} |", own.kind(), own.warn, own.block);
    }
    out.push_str("\nWords alone, each source left out of what they were learned from:\n\n| label | source | tier | records | blocked |\n|---|---|---|---|---|\n");
    sources(out, &trained.words_held_out);
}

/// One line for each source.
fn sources(out: &mut String, counts: &BTreeMap<(bool, String, String), (usize, usize)>) {
    for ((is_attack, source, tier), (found, all)) in counts {
        let label = if *is_attack { "attack" } else { "benign" };
        let share = *found as f64 / (*all).max(1) as f64 * 100.0;
        // Writing to a String cannot fail.
        let _ = writeln!(out, "| {label} | {source} | {tier} | {all} | {share:.1} % |");
    }
}

/// Writes the card as Markdown.
pub fn card(trained: &Trained) -> String {
    let model = &trained.model;
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "# Card of the concept model\n\nA logistic regression over the concepts of the rule files, written by \
         `portcullis train`. It weighs the\nconcepts found in a window of {WINDOW} bytes; see [writing rules](RULES.md#concepts). \
         It has no text of its training data.\n\n\
         | | |\n|---|---|\n| records given | {} |\n| SHA-256 of records and labels | `{}` |\n\
         | blocks from probability | {} |\n| warns from probability | {} |\n\
         | harmless texts of sources left out that may block | {:.1} % |\n| that may warn | {:.1} % |\n\n\
         No kind of text blocks below {BLOCK_MIN} or warns below {WARN_MIN}, however seldom harmless texts come so far.\n\n",
        trained.texts,
        trained.digest,
        model.block,
        model.warn,
        RATES.block * 100.0,
        RATES.warn * 100.0
    );
    bounds(&mut out, trained);
    let of = |label: bool| trained.held_out.iter().filter(move |((is_attack, _, _), _)| *is_attack == label);
    let recall = macro_recall(of(true).map(|((_, source, _), count)| (&**source, *count)));
    let (found, all) = of(false).fold((0, 0), |sum, (_, count)| (sum.0 + count.0, sum.1 + count.1));
    let _ = write!(
        out,
        "## One source left out at a time\n\nEach source is scored by weights fitted to the others. The model alone, \
         without the rules that block by themselves:\nrecall averaged over sources {:.1} %, false alarms {:.2} % of {} \
         harmless texts.\n\nTexts of the operator and attacks of tier `semantic` take no part. A tier of harmless texts \
         that one source alone brings\nis cut in three, each part left out in turn.\n\n\
         | label | source | tier | records | blocked |\n|---|---|---|---|---|\n",
        recall * 100.0,
        found as f64 / all.max(1) as f64 * 100.0,
        all
    );
    sources(&mut out, &trained.held_out);
    words(&mut out, trained);
    out.push_str("\n## Weights\n\nLog-odds of one hit; those that are zero are left out.\n\n| feature | log-odds |\n|---|---|\n");
    let mut weights: Vec<(&String, &i8)> = model.weights.iter().filter(|(_, weight)| **weight != 0).collect();
    weights.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    for (name, weight) in weights {
        let _ = writeln!(out, "| {name} | {:+.2} |", f64::from(*weight) * model.scale);
    }
    let _ = writeln!(out, "| (before anything is seen) | {:+.2} |", f64::from(model.bias) * model.scale);
    out
}

/// The same as JSON: figures as numbers, shares from 0.0 to 1.0.
pub fn json(trained: &Trained) -> Value {
    let model = &trained.model;
    let held_out = |counts: &BTreeMap<(bool, String, String), (usize, usize)>| -> Vec<Value> {
        let line = |((is_attack, source, tier), (blocked, records)): (
            &(bool, String, String),
            &(usize, usize),
        )| {
            let label = if *is_attack { "attack" } else { "benign" };
            object!({ "label": label, "source": source, "tier": tier, "records": records, "blocked": blocked })
        };
        counts.iter().map(line).collect()
    };
    let bounds = model.bounds.iter().map(|own| {
        let (speaker, from) = (own.speaker.as_str(), own.from_bytes);
        object!({ "speaker": speaker, "from_bytes": from, "warn": own.warn, "block": own.block })
    });
    let wording = model.wording.as_ref().map(|wording| {
        let bounds = wording.bounds.iter().map(|own| {
            let speaker = own.speaker.as_str();
            object!({ "speaker": speaker, "foreign": own.foreign, "warn": own.warn, "block": own.block })
        });
        object!({
            "warn": wording.warn,
            "block": wording.block,
            "bounds": bounds.collect::<Vec<_>>(),
            "held_out": held_out(&trained.words_held_out),
        })
    });
    let weights: BTreeMap<&String, f64> = model
        .weights
        .iter()
        .filter(|(_, weight)| **weight != 0)
        .map(|(name, weight)| (name, f64::from(*weight) * model.scale))
        .collect();
    object!({
        "records": trained.texts,
        "sha256": trained.digest,
        "warn": model.warn,
        "block": model.block,
        "floors": { "warn": WARN_MIN, "block": BLOCK_MIN },
        "rates": { "warn": RATES.warn, "block": RATES.block },
        "bounds": bounds.collect::<Vec<_>>(),
        "held_out": held_out(&trained.held_out),
        "wording": wording,
        "bias": f64::from(model.bias) * model.scale,
        "weights": weights,
    })
}
