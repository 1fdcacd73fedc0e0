//! The figures that detection is held against, each with the least that is asked and what is aimed at.
//!
//! A figure is computed where the records for it are there, and left out otherwise. Its gate is what a release must
//! reach; its goal lies beyond. Thresholds are those of the default policy.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::points::{Point, count, macro_recall};
use super::record::Kind;
use super::tally::{Count, FileTally, Totals};

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A share, from 0.0 to 1.0.
    Share,
    /// A difference of shares.
    Points,
    /// Occurrences.
    Number,
    /// Occurrences per 10^6 bytes.
    PerMegabyte,
    /// Microseconds per 1024 bytes.
    MicrosPerKilobyte,
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
    /// 10^6 bytes a second.
    MegabytesPerSecond,
}

impl Unit {
    /// The value as a person reads it.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Share => format!("{:.2} %", 100.0 * value),
            Self::Points => format!("{:+.1} points", 100.0 * value),
            Self::Number => format!("{value:.0}"),
            Self::PerMegabyte => format!("{value:.2} per MB"),
            Self::MicrosPerKilobyte => format!("{value:.1} us/KB"),
            Self::Micros => format!("{value:.1} us"),
            Self::Millis => format!("{value:.1} ms"),
            Self::MegabytesPerSecond => format!("{value:.0} MB/s"),
        }
    }

    /// Whether it is a time or a speed, which differ from run to run.
    pub fn is_of_time(self) -> bool {
        matches!(self, Self::MicrosPerKilobyte | Self::Micros | Self::Millis | Self::MegabytesPerSecond)
    }

    /// The unit of that name in JSON.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let all = [
            Self::Share,
            Self::Points,
            Self::Number,
            Self::PerMegabyte,
            Self::MicrosPerKilobyte,
            Self::Micros,
            Self::Millis,
            Self::MegabytesPerSecond,
        ];
        all.into_iter().find(|unit| unit.as_str() == name)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Points => "points",
            Self::Number => "number",
            Self::PerMegabyte => "per_mb",
            Self::MicrosPerKilobyte => "us_per_kb",
            Self::Micros => "us",
            Self::Millis => "ms",
            Self::MegabytesPerSecond => "mb_per_s",
        }
    }
}

/// How far a figure got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The goal is reached.
    Goal,
    /// The gate is reached.
    Gate,
    /// The gate is missed.
    Missed,
}

impl Standing {
    /// `goal`, `gate` or `missed`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Goal => "goal",
            Self::Gate => "gate",
            Self::Missed => "missed",
        }
    }
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is about.
    pub kind: Kind,
    /// What it tells.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// What the value counts.
    pub unit: Unit,
    /// Whether less is better.
    pub is_less_better: bool,
    /// What must be reached.
    pub gate: f64,
    /// What is aimed at.
    pub goal: f64,
    /// How many records, spans or bytes it was computed from.
    pub n: usize,
}

impl Figure {
    /// How far it got.
    pub fn standing(&self) -> Standing {
        let reaches = |bound: f64| {
            if self.is_less_better { self.value <= bound + 1e-9 } else { self.value >= bound - 1e-9 }
        };
        match (reaches(self.goal), reaches(self.gate)) {
            (true, _) => Standing::Goal,
            (_, true) => Standing::Gate,
            _ => Standing::Missed,
        }
    }
}

/// The figures as JSON.
pub fn figures_json(figures: &[Figure]) -> Value {
    let one = |figure: &Figure| {
        json!({
            "kind": figure.kind.as_str(),
            "name": figure.name,
            "value": figure.value,
            "unit": figure.unit.as_str(),
            "better": if figure.is_less_better { "less" } else { "more" },
            "gate": figure.gate,
            "goal": figure.goal,
            "n": figure.n,
            "reached": figure.standing().as_str(),
        })
    };
    figures.iter().map(one).collect()
}

/// Every figure that `totals` has records for.
pub fn figures(totals: &Totals) -> Vec<Figure> {
    let mut all = Vec::new();
    for (kind, tally) in &totals.kinds {
        let of_kind = totals.points.iter().filter(|point| point.kind == *kind);
        let mut list = List { kind: *kind, tally, points: of_kind.collect(), figures: &mut all };
        match kind {
            Kind::Injection => list.injection(),
            Kind::Secrets => list.secrets(),
            Kind::Pii => list.pii(),
            Kind::Commands => list.commands(),
            Kind::Paths => list.paths(),
            Kind::Streams => list.streams(),
            Kind::Bundles => list.bundles(),
            Kind::Archives => list.archives(),
        }
    }
    all
}

/// The figures of one kind as they come up.
struct List<'p, 'o> {
    kind: Kind,
    tally: &'p FileTally,
    points: Vec<&'p Point>,
    figures: &'o mut Vec<Figure>,
}

impl<'p> List<'p, '_> {
    fn put(&mut self, name: impl Into<String>, value: f64, unit: Unit, n: usize, [gate, goal]: [f64; 2]) {
        // The goal lies beyond the gate; where both are the same, they bound what must not happen.
        let is_less_better = goal <= gate;
        self.figures.push(Figure {
            kind: self.kind,
            name: name.into(),
            value,
            unit,
            is_less_better,
            gate,
            goal,
            n,
        });
    }

    fn rate(&mut self, name: impl Into<String>, counted: Count, bounds: [f64; 2]) {
        if let Some(rate) = counted.rate() {
            self.put(name, rate, Unit::Share, counted.n, bounds);
        }
    }

    fn count(&self, is_of_it: impl Fn(&Point) -> bool) -> Count {
        count(self.points.iter().copied().filter(|point| is_of_it(point)))
    }

    fn tier(&self, is_positive: bool, tier: &str) -> Count {
        self.count(|point| point.is_positive == is_positive && point.tier == tier)
    }

    /// Time that a share of the records stayed below.
    fn quantile(&mut self, name: &str, share: f64, unit: Unit, bounds: [f64; 2]) {
        if let Some(us) = self.tally.us_quantile(share) {
            let value = if unit == Unit::Millis { us / 1000.0 } else { us };
            self.put(name, value, unit, self.tally.records, bounds);
        }
    }

    fn injection(&mut self) {
        if let Some((recall, sources)) = macro_recall(self.points.iter().copied(), |point| point.is_flagged) {
            self.put(
                "macro recall over sources, without semantic",
                recall,
                Unit::Share,
                sources,
                [0.40, 0.55],
            );
        }
        self.rate("false alarms over all sources", self.count(|point| !point.is_positive), [0.01, 0.005]);
        self.rate("explicit attacks found", self.tier(true, "explicit"), [0.90, 0.97]);
        self.rate("obfuscated attacks found", self.tier(true, "obfuscated"), [0.70, 0.90]);
        self.rate("harmless encoded text flagged", self.tier(false, "obf_control"), [0.01, 0.01]);
        self.rate(
            "harmless requests with trigger words flagged",
            self.tier(false, "overdefense"),
            [0.02, 0.01],
        );
        self.rate("documents that discuss injection flagged", self.tier(false, "security_doc"), [0.10, 0.05]);
        let mut streams: BTreeMap<(&str, &str), Count> = BTreeMap::new();
        for point in self.points.iter().filter(|point| !point.is_positive) {
            if let Some(what) = point.category.strip_prefix("agent_").filter(|what| *what != "system") {
                streams.entry((&point.source, what)).or_default().add(point.is_flagged);
            }
        }
        for ((source, what), counted) in streams {
            let name = format!("agent traffic flagged: {source}, {}", what.replace('_', " "));
            self.rate(name, counted, [0.01, 0.005]);
        }
        self.time_per_kilobyte([100.0, 30.0]);
    }

    fn time_per_kilobyte(&mut self, bounds: [f64; 2]) {
        if let Some(us) = self.tally.us_per_kb() {
            self.put("time per KB", us, Unit::MicrosPerKilobyte, self.tally.records, bounds);
        }
    }

    fn secrets(&mut self) {
        self.rate("tier A found", self.tier(true, "A"), [0.90, 0.97]);
        self.rate("tier B found", self.tier(true, "B"), [0.65, 0.80]);
        self.rate("near misses flagged", self.tier(false, "near"), [0.05, 0.05]);
        self.rate("hard negatives flagged", self.tier(false, "hard"), [0.005, 0.002]);
        self.rate(
            "headers with Bearer and Basic found",
            self.count(|p| p.is_positive && p.has_header),
            [0.90, 0.95],
        );
        self.rate("exact span among found", self.tally.spans.exact, [0.95, 0.98]);
        self.redaction();
        self.speed();
    }

    fn pii(&mut self) {
        self.rate("structured types found under the right type", self.tally.right_type(), [0.90, 0.95]);
        self.rate("hard negatives flagged", self.tier(false, "hard"), [0.03, 0.01]);
        let is_disguised = |point: &Point| {
            [&point.tier, &point.category, &point.source].iter().any(|name| name.contains("disguis"))
        };
        let disguised = self.points.iter().filter(|point| point.is_positive && is_disguised(point));
        let covered = disguised.fold(Count::default(), |sum, point| Count {
            n: sum.n + point.covered.n,
            found: sum.found + point.covered.found,
        });
        self.rate("disguised values covered from end to end", covered, [0.85, 0.95]);
        self.redaction();
        self.speed();
    }

    /// What redaction leaves of the spans that were found, and what a second pass changes.
    fn redaction(&mut self) {
        let (found, left) = (self.tally.redaction_found_bytes, self.tally.redaction_left_bytes);
        if found > 0 {
            let share = left as f64 / found as f64;
            self.put("bytes of found spans left by redaction", share, Unit::Share, found, [0.005, 0.0]);
            let unstable = self.tally.redaction_unstable as f64;
            self.put(
                "texts changed by a second pass",
                unstable,
                Unit::Number,
                self.tally.records,
                [0.0, 0.0],
            );
        }
    }

    /// Speed on texts with nothing to be found in them, and the slow end of messages of about 2 KB.
    fn speed(&mut self) {
        let clean = self.points.iter().filter(|point| !point.is_positive);
        let (n, bytes, us) =
            clean.fold((0, 0usize, 0.0), |(n, bytes, us), point| (n + 1, bytes + point.bytes, us + point.us));
        if us > 0.0 {
            self.put("clean text", bytes as f64 / us, Unit::MegabytesPerSecond, n, [80.0, 200.0]);
        }
        let is_message = |point: &&&Point| (1024..=3072).contains(&point.bytes);
        let mut us: Vec<f64> = self.points.iter().filter(is_message).map(|point| point.us).collect();
        us.sort_by(f64::total_cmp);
        let at = (us.len() * 99).div_ceil(100).checked_sub(1);
        if let Some(p99) = at.and_then(|at| us.get(at)) {
            self.put("p99 of messages of 1 to 3 KB", *p99, Unit::Micros, us.len(), [250.0, 100.0]);
        }
    }

    fn commands(&mut self) {
        self.rate("core, undisguised, blocked", self.tier(true, "core"), [0.95, 0.97]);
        self.rate("extended, undisguised, blocked", self.tier(true, "extended"), [0.80, 0.90]);
        self.rate("natural benign blocked", self.tier(false, "natural"), [0.002, 0.001]);
        self.rate("harmless twins of disguises blocked", self.tier(false, "twin"), [0.005, 0.002]);
        self.rate("verdict unchanged by a disguise", self.tally.unchanged(), [0.97, 0.995]);
        self.quantile("p50", 0.5, Unit::Micros, [25.0, 10.0]);
        self.quantile("p99", 0.99, Unit::Micros, [150.0, 100.0]);
    }

    fn paths(&mut self) {
        self.rate("core blocked", self.tier(true, "core"), [0.995, 0.999]);
        self.rate("real paths blocked", self.count(|point| !point.is_positive), [0.001, 0.0005]);
    }

    fn streams(&mut self) {
        let whole = self.tier(true, "whole").rate();
        let mut modes: BTreeMap<&'p str, Count> = BTreeMap::new();
        for point in self.points.iter().filter(|point| point.is_positive && point.tier != "whole") {
            modes.entry(&point.tier).or_default().add(point.is_flagged);
        }
        for (mode, counted) in modes {
            if let (Some(whole), Some(rate)) = (whole, counted.rate()) {
                // More is better here, so the gate lies below the goal.
                let name = format!("{mode} against whole");
                self.put(name, rate - whole, Unit::Points, counted.n, [-0.01, 0.0]);
            }
        }
        if let Some(rate) = self.tally.false_incidents_per_mb() {
            let bytes = self.tally.benign_stream_bytes;
            self.put("false incidents", rate, Unit::PerMegabyte, bytes, [1.0, 0.2]);
        }
    }

    /// The tier of a bundle is its category.
    fn bundles(&mut self) {
        let code = ["evasion-python", "evasion-js", "evasion-shell", "evasion-code"];
        let prompt = ["evasion-prompt", "evasion-config"];
        let category = |point: &Point, names: &[&str]| names.contains(&point.tier.as_str());
        self.rate("code evasions blocked", self.count(|p| p.is_positive && category(p, &code)), [0.90, 0.95]);
        let is_package = |p: &Point| p.tier.starts_with("real-") && p.tier.contains("package");
        let campaigns = self.count(|p| p.is_positive && p.tier.starts_with("real-") && !is_package(p));
        self.rate("real campaigns blocked", campaigns, [0.80, 0.90]);
        self.rate(
            "real package malware blocked",
            self.count(|p| p.is_positive && is_package(p)),
            [0.75, 0.85],
        );
        let prompts = self.count(|p| p.is_positive && category(p, &prompt));
        self.rate("prompt and configuration evasions blocked", prompts, [0.70, 0.80]);
        let common = self.count(|p| !p.is_positive && category(p, &["vendor", "community"]));
        self.rate("vendor and community skills blocked", common, [0.01, 0.005]);
        let security = self.count(|p| !p.is_positive && p.tier.contains("security"));
        self.rate("security skills blocked", security, [0.03, 0.02]);
        self.quantile("median", 0.5, Unit::Millis, [5.0, 2.0]);
        self.quantile("p95", 0.95, Unit::Millis, [50.0, 20.0]);
    }

    fn archives(&mut self) {
        let must = self.count(|point| point.is_positive);
        if must.n > 0 {
            let accepted = (must.n - must.found) as f64;
            self.put("archives accepted that must be refused", accepted, Unit::Number, must.n, [0.0, 0.0]);
        }
        let good = self.count(|point| !point.is_positive);
        if good.n > 0 {
            self.put("good archives refused", good.found as f64, Unit::Number, good.n, [0.0, 0.0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_stands_by_its_bounds_in_either_direction() {
        let figure = |value: f64, is_less_better: bool, gate: f64, goal: f64| Figure {
            kind: Kind::Paths,
            name: String::new(),
            value,
            unit: Unit::Share,
            is_less_better,
            gate,
            goal,
            n: 1,
        };
        let more = |value| figure(value, false, 0.9, 0.97).standing();
        assert_eq!(
            [0.97, 0.95, 0.9, 0.89].map(more),
            [Standing::Goal, Standing::Gate, Standing::Gate, Standing::Missed]
        );
        let less = |value| figure(value, true, 0.02, 0.01).standing();
        assert_eq!(
            [0.0, 0.01, 0.015, 0.021].map(less),
            [Standing::Goal, Standing::Goal, Standing::Gate, Standing::Missed]
        );
    }

    #[test]
    fn nothing_measured_gives_no_figure() {
        assert_eq!(figures(&Totals::default()), []);
    }

    #[test]
    fn values_are_shown_in_their_unit() {
        assert_eq!(Unit::Share.show(0.734), "73.40 %");
        assert_eq!(Unit::Points.show(-0.011), "-1.1 points");
        assert_eq!(Unit::Number.show(3.0), "3");
    }
}
