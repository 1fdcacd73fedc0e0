//! Counts over graded records, and the figures they give.

use std::collections::BTreeMap;

use super::grade::Graded;
use super::judge::Judged;
use super::points::{self, Point};
use super::record::{Kind, Record};
use super::redaction::Redaction;

/// How many there are, and how many of them were found or flagged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// All.
    pub n: usize,
    /// Those found.
    pub found: usize,
}

impl Count {
    pub(super) fn add(&mut self, is_found: bool) {
        self.n += 1;
        self.found += usize::from(is_found);
    }

    /// Share of those found, from 0.0 to 1.0; `None` when there are none at all.
    pub fn rate(self) -> Option<f64> {
        (self.n > 0).then(|| self.found as f64 / self.n as f64)
    }
}

/// Expected spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCount {
    /// Spans that some finding of the family overlaps.
    pub overlapped: Count,
    /// Of those found in records whose spans are exact: the ones a finding covers to the byte.
    pub exact: Count,
}

/// One row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// A tier, `all`, `precision`, `right type`, `type …` or `category …`.
    pub name: String,
    /// Label of the records counted; `flagged` for precision.
    pub label: String,
    /// The counts.
    pub count: Count,
}

impl Group {
    /// What tells it from others of its table.
    pub(super) fn key(&self) -> (&str, &str) {
        (&self.name, &self.label)
    }
}

/// The counts over one file, or over all records of one kind.
#[derive(Clone, Debug, Default)]
pub struct FileTally {
    /// The file.
    pub path: String,
    /// Records judged.
    pub records: usize,
    /// Expected spans of types that can be expected to be found.
    pub spans: SpanCount,
    /// Bytes of labelled spans that were found, and of these the ones that redaction left.
    pub redaction_found_bytes: usize,
    /// See `redaction_found_bytes`.
    pub redaction_left_bytes: usize,
    /// Records whose redacted text changes when it is redacted again.
    pub redaction_unstable: usize,
    /// Records of which something could not be judged.
    pub unjudged: usize,
    /// By whether the records are negative, label and tier.
    tiers: BTreeMap<(bool, String, String), Count>,
    /// By label and category.
    categories: BTreeMap<(bool, String, String), Count>,
    /// By kind of disguise or spelling.
    groups: BTreeMap<(bool, String, String), Count>,
    /// Records that grade nothing, by tier.
    ungraded: BTreeMap<String, Count>,
    /// Commands in disguise.
    disguises: Disguises,
    /// Expected spans of core records by type: found is found with the right type.
    types: BTreeMap<String, Count>,
    /// Incidents of benign transcripts, and their bytes.
    pub false_incidents: usize,
    /// See `false_incidents`.
    pub benign_stream_bytes: usize,
    bytes: usize,
    /// Microseconds of each record.
    us: Vec<f64>,
}

impl FileTally {
    pub(super) fn new(path: String) -> Self {
        Self { path, ..Self::default() }
    }

    pub(super) fn add(&mut self, record: &Record, judged: &Judged, graded: &Graded, redaction: Redaction) {
        self.records += 1;
        self.bytes += record.text.len();
        self.us.push(judged.elapsed.as_secs_f64() * 1e6);
        self.unjudged += usize::from(!judged.unjudged.is_empty());
        if record.transcript.as_ref().is_some_and(|transcript| transcript.attack.is_none()) {
            self.false_incidents += judged.incidents.len();
            self.benign_stream_bytes += record.text.len();
        }
        self.redaction_found_bytes += redaction.found_bytes;
        self.redaction_left_bytes += redaction.left_bytes;
        self.redaction_unstable += usize::from(!redaction.is_stable);
        if !record.is_graded {
            self.ungraded.entry(record.tier.clone()).or_default().add(graded.is_flagged);
            return;
        }
        self.disguises.add(record, graded.is_flagged);
        let key = |name: &str| (!record.is_positive, record.label.clone(), name.to_owned());
        self.tiers.entry(key(&record.tier)).or_default().add(graded.is_flagged);
        if !record.category.is_empty() {
            self.categories.entry(key(&record.category)).or_default().add(graded.is_flagged);
        }
        if !record.group.is_empty() {
            self.groups.entry(key(&record.group)).or_default().add(graded.is_flagged);
        }
        for (span, grade) in record.spans.iter().zip(&graded.spans) {
            if record.kind == Kind::Pii && !record.is_core {
                continue;
            }
            self.spans.overlapped.add(grade.is_overlapped);
            if grade.is_overlapped && record.has_exact_spans {
                self.spans.exact.add(grade.is_exact);
            }
            if record.kind == Kind::Pii {
                self.types.entry(span.kind.to_ascii_lowercase()).or_default().add(grade.is_right_type);
            }
        }
    }

    /// The rows of its table: tiers, all of each label, precision, right types, verdicts that a disguise left unchanged,
    /// what grades nothing and, when wanted, categories and kinds of disguise or spelling.
    pub fn groups(&self, with_categories: bool) -> Vec<Group> {
        let row = |name: String, label: &str, count| Group { name, label: label.to_owned(), count };
        let mut rows: Vec<Group> =
            self.tiers.iter().map(|((_, label, tier), count)| row(tier.clone(), label, *count)).collect();
        let all = self.by_label();
        rows.extend(all.iter().map(|((_, label), count)| row("all".to_owned(), label, *count)));
        let flagged: usize = all.values().map(|count| count.found).sum();
        let right: usize =
            all.iter().filter(|((is_negative, _), _)| !is_negative).map(|(_, count)| count.found).sum();
        let is_mixed = all.keys().any(|(is_negative, _)| *is_negative) && all.len() > 1;
        if is_mixed {
            rows.push(row("precision".to_owned(), "flagged", Count { n: flagged, found: right }));
        }
        if !self.types.is_empty() {
            rows.push(row("right type".to_owned(), "positive", self.right_type()));
            rows.extend(
                self.types.iter().map(|(kind, count)| row(format!("type {kind}"), "positive", *count)),
            );
        }
        rows.extend(
            self.disguises
                .unchanged(with_categories)
                .into_iter()
                .map(|(name, count)| row(name, "verdict", count)),
        );
        rows.extend(self.ungraded.iter().map(|(tier, count)| row(tier.clone(), "ungraded", *count)));
        if with_categories {
            for (what, counts) in [("category", &self.categories), ("group", &self.groups)] {
                rows.extend(
                    counts
                        .iter()
                        .map(|((_, label, name), count)| row(format!("{what} {name}"), label, *count)),
                );
            }
        }
        rows
    }

    /// Counts over all tiers, positives first.
    pub fn by_label(&self) -> BTreeMap<(bool, &str), Count> {
        let mut all: BTreeMap<(bool, &str), Count> = BTreeMap::new();
        for ((is_negative, label, _), count) in &self.tiers {
            let sum = all.entry((*is_negative, label.as_str())).or_default();
            sum.n += count.n;
            sum.found += count.found;
        }
        all
    }

    /// Expected spans of core records, and those that were found under the right type.
    pub fn right_type(&self) -> Count {
        sum(self.types.values())
    }

    /// Commands in disguise, and those that got the verdict of the plain one.
    pub fn unchanged(&self) -> Count {
        self.disguises.unchanged(false).first().map(|(_, count)| *count).unwrap_or_default()
    }

    /// Kilobytes (1024 bytes) of text judged.
    pub fn kilobytes(&self) -> f64 {
        self.bytes as f64 / 1024.0
    }

    /// False incidents per megabyte (10^6 bytes) of benign output; `None` when there is no such output.
    pub fn false_incidents_per_mb(&self) -> Option<f64> {
        let megabytes = self.benign_stream_bytes as f64 / 1e6;
        (megabytes > 0.0).then(|| self.false_incidents as f64 / megabytes)
    }

    /// Microseconds per kilobyte over the whole file; `None` when its texts are all empty.
    pub fn us_per_kb(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.us.iter().sum::<f64>() / self.kilobytes())
    }

    /// Microseconds below which `share` of the records stayed.
    pub fn us_quantile(&self, share: f64) -> Option<f64> {
        let mut sorted = self.us.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        // Nearest rank; a share of a length is far below 2^53.
        sorted.get(((share * sorted.len() as f64).ceil() as usize).saturating_sub(1).min(last)).copied()
    }
}

/// Verdicts on commands in disguise, beside that on the plain one.
#[derive(Clone, Debug, Default)]
struct Disguises {
    /// By seed: whether the plain command was blocked.
    plain: BTreeMap<String, bool>,
    /// Seed, kind of disguise, and whether it was blocked.
    disguised: Vec<(String, String, bool)>,
}

impl Disguises {
    fn add(&mut self, record: &Record, is_blocked: bool) {
        match &record.disguise {
            Some(disguise) if disguise.is_plain => {
                self.plain.insert(disguise.seed.clone(), is_blocked);
            }
            Some(disguise) => {
                self.disguised.push((disguise.seed.clone(), record.group.clone(), is_blocked));
            }
            None => {}
        }
    }

    /// How many disguised commands got the verdict of the plain one, over all and, when wanted, by kind of disguise.
    /// A command whose plain form was not judged says nothing.
    fn unchanged(&self, by_group: bool) -> Vec<(String, Count)> {
        let mut all = Count::default();
        let mut groups = BTreeMap::<&str, Count>::new();
        for (seed, group, is_blocked) in &self.disguised {
            let Some(plain) = self.plain.get(seed) else { continue };
            all.add(plain == is_blocked);
            groups.entry(group).or_default().add(plain == is_blocked);
        }
        if all.n == 0 {
            return Vec::new();
        }
        let mut rows = vec![("unchanged".to_owned(), all)];
        if by_group {
            rows.extend(groups.into_iter().map(|(group, count)| (format!("unchanged {group}"), count)));
        }
        rows
    }
}

fn sum<'c>(counts: impl IntoIterator<Item = &'c Count>) -> Count {
    counts.into_iter().fold(Count::default(), |a, b| Count { n: a.n + b.n, found: a.found + b.found })
}

/// Counts over every file.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// All records of each kind.
    pub kinds: BTreeMap<Kind, FileTally>,
    /// Every graded record, in the order in which they were read.
    pub points: Vec<Point>,
}

impl Totals {
    pub(super) fn add(
        &mut self,
        record: &Record,
        source: &str,
        judged: &Judged,
        graded: &Graded,
        redaction: Redaction,
    ) {
        let kind =
            self.kinds.entry(record.kind).or_insert_with(|| FileTally::new(record.kind.as_str().to_owned()));
        kind.add(record, judged, graded, redaction);
        if record.is_graded {
            self.points.push(Point::of(record, source, judged, graded));
        }
    }

    /// The graded records of one kind.
    fn of(&self, kind: Kind) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |point| point.kind == kind)
    }

    /// Mean of the recall of each source, and how many sources there are; the semantic tier is left out.
    pub fn macro_recall(&self, kind: Kind) -> Option<(f64, usize)> {
        points::macro_recall(self.of(kind), |point| point.is_flagged)
    }

    /// The rows of the table of sources: each with its records of each label, positives first.
    pub fn sources(&self, kind: Kind) -> Vec<Group> {
        let counts = points::count_by(self.of(kind), |point| &point.source);
        let row = |((_, label, source), count): ((bool, &str, &str), Count)| Group {
            name: source.to_owned(),
            label: label.to_owned(),
            count,
        };
        counts.into_iter().map(row).collect()
    }
}

/// Everything an evaluation found out.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By file, in the order in which they were read. Files without a record that could be judged are left out.
    pub files: Vec<FileTally>,
    /// Over all files.
    pub totals: Totals,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let tally = FileTally { us: (1..=100).rev().map(f64::from).collect(), ..FileTally::default() };
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|q| tally.us_quantile(q)), [1.0, 50.0, 99.0, 100.0].map(Some));
        assert_eq!(FileTally::default().us_quantile(0.5), None);
    }

    #[test]
    fn a_rate_of_nothing_is_none() {
        assert_eq!(Count::default().rate(), None);
        assert_eq!(Count { n: 4, found: 1 }.rate(), Some(0.25));
    }
}
