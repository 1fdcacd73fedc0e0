//! Thresholds tried one after the other: what each would find, and what it would flag falsely.
//!
//! Texts are swept by score: an attack would be found when its risk reaches the threshold, a credential when a finding of
//! that score overlaps it. Tool calls, transcripts and uploads have a decision and no score to move; they are swept by
//! what counts as an alarm.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::points::{Point, is_of_recall, macro_recall};
use super::record::Kind;
use super::tally::Count;
use crate::decision::Decision;

/// Share of the negative records that the chosen threshold may flag: one in a hundred, or of what is shaped like a
/// credential or a personal datum and labelled as none, one in twenty.
pub const fn fpr_max(kind: Kind) -> f64 {
    match kind {
        Kind::Secrets | Kind::Pii => 0.05,
        _ => 0.01,
    }
}

/// Thresholds of the table, in steps of a twentieth.
const STEPS: usize = 20;

/// One threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRow {
    /// `0.70`, or `WARN or more`.
    pub name: String,
    /// Positive records.
    pub positive: Count,
    /// Negative records: found is falsely flagged.
    pub negative: Count,
    /// Mean recall over sources; the semantic tier is left out.
    pub macro_recall: Option<f64>,
    /// By whether negative, and tier.
    pub tiers: BTreeMap<(bool, String), Count>,
}

/// One source, with the threshold that the other sources would have chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// The source.
    pub source: String,
    /// The lowest threshold at which at most [`fpr_max`] of the negatives of the others are flagged.
    pub threshold: f64,
    /// Its positive records, the semantic tier left out.
    pub positive: Count,
    /// Its negative records.
    pub negative: Count,
}

/// The sweep of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// What was swept.
    pub kind: Kind,
    /// By rising threshold.
    pub rows: Vec<SweepRow>,
    /// The lowest threshold with at most [`fpr_max`] false alarms; none for what has no score.
    pub best: Option<SweepRow>,
    /// Each source left out in turn; empty for what has no score.
    pub left_out: Vec<LeftOut>,
}

impl Sweep {
    /// Mean recall over the sources that were left out in turn.
    pub fn left_out_recall(&self) -> Option<f64> {
        let rates: Vec<f64> = self.left_out.iter().filter_map(|one| one.positive.rate()).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// Share of negatives that were flagged under the threshold of the other sources.
    pub fn left_out_fpr(&self) -> Option<f64> {
        let sum = self.left_out.iter().fold(Count::default(), |sum, one| Count {
            n: sum.n + one.negative.n,
            found: sum.found + one.negative.found,
        });
        sum.rate()
    }
}

/// The sweep of every kind that was measured.
pub fn sweeps(points: &[Point]) -> Vec<Sweep> {
    let kinds: BTreeSet<Kind> = points.iter().map(|point| point.kind).collect();
    kinds.into_iter().map(|kind| sweep(kind, points)).collect()
}

fn sweep(kind: Kind, points: &[Point]) -> Sweep {
    let points: Vec<&Point> = points.iter().filter(|point| point.kind == kind).collect();
    let has_score = matches!(kind, Kind::Injection | Kind::Secrets | Kind::Pii);
    if !has_score {
        let levels = [Decision::Warn, Decision::Ask, Decision::Block];
        let name = |level: Decision| match level {
            Decision::Block => "BLOCK".to_owned(),
            level => format!("{} or more", level.as_str()),
        };
        let rows = levels.map(|level| row(name(level), &points, |point| point.decision >= level));
        return Sweep { kind, rows: rows.into(), best: None, left_out: Vec::new() };
    }
    let steps = (1..=STEPS).map(|step| step as f64 / STEPS as f64);
    let rows = steps.map(|at| row(format!("{at:.2}"), &points, |point| reaches(point, at))).collect();
    let most = fpr_max(kind);
    let best = threshold(points.iter().copied(), most);
    let best = row(format!("{best:.3}"), &points, |point| reaches(point, best));
    let sources: BTreeSet<&str> = points.iter().map(|point| point.source.as_str()).collect();
    let left_out =
        sources.iter().filter(|_| sources.len() > 1).map(|source| leave_out(source, &points, most));
    Sweep { kind, rows, best: Some(best), left_out: left_out.collect() }
}

/// Whether a record is flagged when scores from `threshold` on are.
fn reaches(point: &Point, threshold: f64) -> bool {
    // A record without a finding has the score 0, and is not flagged by any threshold.
    point.score > 0.0 && point.score >= threshold - 1e-9
}

/// The lowest threshold at which at most `most` of the negatives are flagged.
fn threshold<'p>(points: impl Iterator<Item = &'p Point>, most: f64) -> f64 {
    let mut scores: Vec<f64> = points.filter(|point| !point.is_positive).map(|point| point.score).collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    let allowed = (scores.len() as f64 * most).floor() as usize;
    // The first score that may not be flagged any more; the threshold stands just above it.
    scores.get(allowed).map_or(0.0, |score| score + 0.001).max(0.001)
}

fn leave_out(source: &str, points: &[&Point], most: f64) -> LeftOut {
    let others = points.iter().copied().filter(|point| point.source != source);
    let threshold = threshold(others, most);
    let (mut positive, mut negative) = (Count::default(), Count::default());
    for point in points.iter().filter(|point| point.source == source) {
        if is_of_recall(point) {
            positive.add(reaches(point, threshold));
        } else if !point.is_positive {
            negative.add(reaches(point, threshold));
        }
    }
    LeftOut { source: source.to_owned(), threshold, positive, negative }
}

fn row(name: String, points: &[&Point], is_flagged: impl Fn(&Point) -> bool) -> SweepRow {
    let (mut positive, mut negative) = (Count::default(), Count::default());
    let mut tiers: BTreeMap<(bool, String), Count> = BTreeMap::new();
    for point in points {
        let flagged = is_flagged(point);
        if point.is_positive { &mut positive } else { &mut negative }.add(flagged);
        tiers.entry((!point.is_positive, point.tier.clone())).or_default().add(flagged);
    }
    let recall = macro_recall(points.iter().copied(), &is_flagged).map(|(recall, _)| recall);
    SweepRow { name, positive, negative, macro_recall: recall, tiers }
}

/// The sweeps as JSON.
pub fn sweeps_json(sweeps: &[Sweep]) -> Value {
    let count = |count: &Count| json!({ "n": count.n, "found": count.found, "rate": count.rate() });
    let row = |row: &SweepRow| {
        let tiers = row.tiers.iter().map(|((is_negative, tier), counted)| {
            let mut tier = json!({ "tier": tier, "is_negative": is_negative });
            tier["count"] = count(counted);
            tier
        });
        json!({
            "threshold": row.name,
            "positive": count(&row.positive),
            "negative": count(&row.negative),
            "macro_recall": row.macro_recall,
            "tiers": tiers.collect::<Vec<_>>(),
        })
    };
    let one = |sweep: &Sweep| {
        let left_out = sweep.left_out.iter().map(|one| {
            json!({
                "source": one.source,
                "threshold": one.threshold,
                "positive": count(&one.positive),
                "negative": count(&one.negative),
            })
        });
        json!({
            "kind": sweep.kind.as_str(),
            "rows": sweep.rows.iter().map(row).collect::<Vec<_>>(),
            "best": sweep.best.as_ref().map(row),
            "left_out": left_out.collect::<Vec<_>>(),
            "left_out_recall": sweep.left_out_recall(),
            "left_out_fpr": sweep.left_out_fpr(),
        })
    };
    sweeps.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(is_positive: bool, source: &str, score: f64) -> Point {
        Point {
            kind: Kind::Injection,
            is_positive,
            label: String::new(),
            tier: "explicit".to_owned(),
            category: String::new(),
            source: source.to_owned(),
            is_flagged: score >= 0.7,
            score,
            decision: if score >= 0.7 { Decision::Block } else { Decision::Allow },
            covered: Count::default(),
            has_header: false,
            bytes: 10,
            us: 1.0,
        }
    }

    #[test]
    fn the_threshold_stands_just_above_what_may_not_be_flagged() {
        let mut points: Vec<Point> = (0..200).map(|_| point(false, "calm", 0.0)).collect();
        points.extend([0.9, 0.6, 0.5].map(|score| point(false, "loud", score)));
        // 203 negatives allow two false alarms.
        assert!((threshold(points.iter(), 0.01) - 0.501).abs() < 1e-9);
        points.extend([0.8, 0.55, 0.3].map(|score| point(true, "attacks", score)));
        let swept = sweeps(&points).remove(0);
        let best = swept.best.clone().expect("a threshold");
        assert_eq!((best.positive, best.negative), (Count { n: 3, found: 2 }, Count { n: 203, found: 2 }));
        // Without the loud source every score above nothing would do, and flags all of it.
        let loud = swept.left_out.iter().find(|one| one.source == "loud").expect("the source");
        assert_eq!((loud.threshold, loud.negative), (0.001, Count { n: 3, found: 3 }));
        assert_eq!(swept.left_out_recall(), Some(2.0 / 3.0));
        let at = |name: &str| swept.rows.iter().find(|row| row.name == name).expect("a row").positive.found;
        assert_eq!([at("0.30"), at("0.55"), at("0.80"), at("0.85")], [3, 2, 1, 0]);
    }

    #[test]
    fn a_record_without_a_finding_is_flagged_by_no_threshold() {
        let swept = sweeps(&[point(true, "a", 0.0), point(false, "a", 0.0)]).remove(0);
        assert!(swept.rows.iter().all(|row| row.positive.found == 0 && row.negative.found == 0));
        assert!(swept.left_out.is_empty(), "one source alone cannot be left out");
    }

    #[test]
    fn decisions_are_swept_by_what_counts_as_an_alarm() {
        let mut asked = point(true, "a", 0.0);
        asked.kind = Kind::Commands;
        asked.decision = Decision::Ask;
        let swept = sweeps(&[asked]).remove(0);
        let found: Vec<usize> = swept.rows.iter().map(|row| row.positive.found).collect();
        assert_eq!((found, swept.best), (vec![1, 1, 0], None));
    }
}
