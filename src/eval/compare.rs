//! Two runs beside each other: what rose, what fell, and whether that is for the better.
//!
//! The earlier run is its JSON output. Rates are compared by file, group and label, and by
//! source over all files of a kind; figures by kind and name. Files are
//! the same when their paths are, or their names where these are unique. Times are told and never judged: they differ
//! from run to run.
//!
//! What is no longer measured is worse than any value: a run from which all attacks are gone would pass otherwise. Only
//! what belongs to kinds of which the run read no record at all was left out on purpose, and is named in a note.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::figures::{Figure, Unit, figures};
use super::tally::{FileTally, Report};

/// Change of a time or a speed that is worth telling, as a share of what it was.
const TIME_SHARE: f64 = 0.25;

/// Why there is nothing to compare with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaselineError {
    /// It is no report.
    #[error(
        "is not the output of `portcullis eval --json`: {0}; write it with `portcullis eval --json PATH… > FILE`"
    )]
    Malformed(String),
    /// It is a report about something else.
    #[error("has no file and no figure in common with this run; give the output of a run over the same data")]
    Unrelated,
}

/// An earlier run.
#[derive(Clone, Debug, Deserialize)]
pub struct Baseline {
    files: Vec<OldFile>,
    #[serde(default)]
    kinds: Vec<OldKind>,
    #[serde(default)]
    figures: Vec<OldFigure>,
}

/// All records of one kind; older runs have none.
#[derive(Clone, Debug, Deserialize)]
struct OldKind {
    kind: String,
    #[serde(default)]
    groups: Vec<OldGroup>,
    #[serde(default)]
    sources: Vec<OldGroup>,
}

#[derive(Clone, Debug, Deserialize)]
struct OldFile {
    path: String,
    groups: Vec<OldGroup>,
    exact_span_rate: Option<f64>,
    overlap_span_rate: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct OldGroup {
    name: String,
    label: String,
    n: usize,
    rate: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct OldFigure {
    kind: String,
    name: String,
    value: f64,
    /// Missing where somebody keeps no more than names and values.
    #[serde(default)]
    unit: String,
    n: usize,
}

impl OldFigure {
    fn unit(&self) -> Option<Unit> {
        Unit::of_name(&self.unit)
    }

    /// The value as a person reads it.
    fn show(&self) -> String {
        self.unit().map_or_else(|| self.value.to_string(), |unit| unit.show(self.value))
    }
}

/// One value that is not what it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What it is a value of.
    pub name: String,
    /// What it was, as a person reads it.
    pub before: String,
    /// What it is; `None` when it is no longer measured.
    pub after: Option<String>,
    /// Whether it is more than it was.
    pub has_risen: bool,
    /// Whether that is for the worse; `None` for a time.
    pub is_worse: Option<bool>,
}

/// The difference of two runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// What changed: files first, then figures.
    pub changes: Vec<Change>,
    /// How many values stayed as they were.
    pub unchanged: usize,
    /// Groups whose numbers of records differ, so that their rates tell less; and what one run alone has.
    pub notes: Vec<String>,
}

impl Comparison {
    /// Whether anything but a time is worse.
    pub fn is_worse(&self) -> bool {
        self.changes.iter().any(|change| change.is_worse == Some(true))
    }

    fn put(&mut self, name: String, before: f64, after: f64, is_less_better: bool, tolerance: f64) {
        if (after - before).abs() <= tolerance + 1e-9 {
            self.unchanged += 1;
            return;
        }
        let has_risen = after > before;
        self.changes.push(Change {
            name,
            before: percent(before),
            after: Some(percent(after)),
            has_risen,
            is_worse: Some(has_risen == is_less_better),
        });
    }

    /// A value of that run which this one does not have.
    fn lose(&mut self, name: String, before: String, scope: Scope) {
        match scope {
            Scope::Whole => {
                let change = Change { name, before, after: None, has_risen: false, is_worse: Some(true) };
                self.changes.push(change);
            }
            Scope::Part => self.notes.push(format!("{name}: was {before}, and is not measured now")),
        }
    }

    fn lose_rate(&mut self, name: String, before: f64, scope: Scope) {
        self.lose(name, percent(before), scope);
    }
}

fn percent(rate: f64) -> String {
    format!("{:.2} %", 100.0 * rate)
}

/// How much of what an earlier run measured the run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of it, but for kinds of which there is no record: what is gone is worse.
    Whole,
    /// A part: what is gone is told, and judged to be nothing.
    Part,
}

impl Baseline {
    /// Reads the JSON of an earlier run.
    ///
    /// # Errors
    /// When it is not what `eval --json` prints.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let read: Self =
            serde_json::from_str(text).map_err(|error| BaselineError::Malformed(error.to_string()))?;
        let is_rate = |rate: &Option<f64>| rate.is_none_or(|rate| (0.0..=1.0).contains(&rate));
        let rates = read.files.iter().flat_map(|file| {
            let groups = file.groups.iter().map(|group| &group.rate);
            groups.chain([&file.exact_span_rate, &file.overlap_span_rate])
        });
        let sources = read.kinds.iter().flat_map(|kind| kind.sources.iter().map(|source| &source.rate));
        let rates = rates.chain(sources);
        if let Some(rate) = rates.into_iter().find(|rate| !is_rate(rate)).copied().flatten() {
            return Err(BaselineError::Malformed(format!("a rate of {rate} is not from 0 to 1")));
        }
        Ok(read)
    }

    /// The file of the same path, or of the same name where only one has it on either side.
    fn file(&self, path: &str, all: &[&str]) -> Option<&OldFile> {
        let same = self.files.iter().find(|file| file.path == path);
        let name = |path: &str| Path::new(path).file_name().map(|name| name.to_owned());
        let named: Vec<&OldFile> = self.files.iter().filter(|file| name(&file.path) == name(path)).collect();
        let is_only = all.iter().filter(|other| name(other) == name(path)).count() == 1;
        same.or_else(|| named.first().copied().filter(|_| named.len() == 1 && is_only))
    }

    /// What `report` has that is not as it was. Changes of a rate of at most `tolerance` (a share) count as none.
    ///
    /// # Errors
    /// When the two runs have nothing in common.
    pub fn compare(
        &self,
        report: &Report,
        tolerance: f64,
        scope: Scope,
    ) -> Result<Comparison, BaselineError> {
        let mut comparison = Comparison::default();
        let paths: Vec<&str> = report.files.iter().map(|file| file.path.as_str()).collect();
        let mut matched = Vec::new();
        for file in &report.files {
            let Some(old) = self.file(&file.path, &paths) else {
                comparison.notes.push(format!("{}: was not measured before", file.path));
                continue;
            };
            matched.push(old.path.as_str());
            compare_file(old, file, tolerance, scope, &mut comparison);
        }
        self.lose_files(report, &matched, scope, &mut comparison);
        self.compare_sources(report, tolerance, scope, &mut comparison);
        if !self.compare_figures(report, tolerance, scope, &mut comparison) && matched.is_empty() {
            return Err(BaselineError::Unrelated);
        }
        self.note_kinds(report, &mut comparison);
        Ok(comparison)
    }

    /// Tells of files that are gone. One that may have held nothing but kinds of which no record was read is noted.
    fn lose_files(&self, report: &Report, matched: &[&str], scope: Scope, comparison: &mut Comparison) {
        let unread: BTreeSet<(&str, &str)> = self
            .kinds
            .iter()
            .filter(|kind| !is_read(report, &kind.kind))
            .flat_map(|kind| kind.groups.iter().map(OldGroup::key))
            .collect();
        for file in self.files.iter().filter(|file| !matched.contains(&file.path.as_str())) {
            let is_of_unread = file.groups.iter().all(|group| unread.contains(&group.key()));
            let scope = if is_of_unread { Scope::Part } else { scope };
            let records: usize =
                file.groups.iter().filter(|group| group.name == "all").map(|group| group.n).sum();
            let before = match records {
                0 => "measured".to_owned(),
                1 => "of 1 record".to_owned(),
                many => format!("of {many} records"),
            };
            comparison.lose(file.path.clone(), before, scope);
        }
    }

    /// Compares the sources that both runs have, each over all files of its kind, and tells of those that one alone has.
    fn compare_sources(&self, report: &Report, tolerance: f64, scope: Scope, comparison: &mut Comparison) {
        for old in &self.kinds {
            let Some(kind) = report.totals.kinds.keys().find(|kind| kind.as_str() == old.kind) else {
                continue;
            };
            let before: BTreeMap<(&str, &str), &OldGroup> =
                old.sources.iter().map(|group| (group.key(), group)).collect();
            let now = report.totals.sources(*kind);
            for group in &now {
                let name = format!("source {}: {} {}", old.kind, group.name, group.label);
                let Some(was) = before.get(&group.key()) else {
                    comparison.notes.push(format!("{name}: was not measured before"));
                    continue;
                };
                if was.n != group.count.n {
                    comparison.notes.push(format!("{name}: {} records, were {}", group.count.n, was.n));
                }
                if let (Some(was), Some(is)) = (was.rate, group.count.rate())
                    && group.label != "ungraded"
                {
                    comparison.put(name, was, is, is_harmless(&group.label), tolerance);
                }
            }
            let is_gone = |old: &&OldGroup| !now.iter().any(|g| old.key() == g.key());
            for gone in old.sources.iter().filter(is_gone) {
                let name = format!("source {}: {} {}", old.kind, gone.name, gone.label);
                if let Some(rate) = gone.rate {
                    comparison.lose_rate(name, rate, scope);
                }
            }
        }
    }

    /// Compares the figures of the kinds that both runs have; whether both have one.
    fn compare_figures(
        &self,
        report: &Report,
        tolerance: f64,
        scope: Scope,
        comparison: &mut Comparison,
    ) -> bool {
        let now = figures(&report.totals);
        let mut has_any = false;
        for before in self.figures.iter().filter(|before| is_read(report, &before.kind)) {
            let name = format!("figure {}: {}", before.kind, before.name);
            let same = |now: &&Figure| now.kind.as_str() == before.kind && now.name == before.name;
            let Some(figure) = now.iter().find(same) else {
                // A time tells nothing about detection, and so does its end.
                let is_of_time = before.unit().is_some_and(Unit::is_of_time);
                comparison.lose(name, before.show(), if is_of_time { Scope::Part } else { scope });
                continue;
            };
            has_any = true;
            if before.n != figure.n {
                comparison.notes.push(format!("{name}: of {}, was of {}", figure.n, before.n));
            }
            let change = figure.value - before.value;
            let is_of_time = figure.unit.is_of_time();
            let least = if is_of_time { before.value.abs() * TIME_SHARE } else { tolerance };
            if change.abs() <= least + 1e-9 {
                comparison.unchanged += 1;
                continue;
            }
            let has_risen = change > 0.0;
            comparison.changes.push(Change {
                name,
                before: figure.unit.show(before.value),
                after: Some(figure.unit.show(figure.value)),
                has_risen,
                is_worse: (!is_of_time).then_some(has_risen == figure.is_less_better),
            });
        }
        has_any
    }

    /// Names the figures of kinds of which no record was read, kind by kind.
    fn note_kinds(&self, report: &Report, comparison: &mut Comparison) {
        let mut unread: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for figure in self.figures.iter().filter(|figure| !is_read(report, &figure.kind)) {
            unread.entry(&figure.kind).or_default().push(&figure.name);
        }
        let note = |(kind, names): (&str, Vec<&str>)| {
            format!("no record about {kind} was read, so that nothing is said of: {}", names.join("; "))
        };
        comparison.notes.extend(unread.into_iter().map(note));
    }
}

impl OldGroup {
    fn key(&self) -> (&str, &str) {
        (&self.name, &self.label)
    }
}

/// Whether the run judged any record of that kind.
fn is_read(report: &Report, kind: &str) -> bool {
    report.totals.kinds.keys().any(|read| read.as_str() == kind)
}

/// Compares what both runs say of one file.
fn compare_file(old: &OldFile, file: &FileTally, tolerance: f64, scope: Scope, comparison: &mut Comparison) {
    // Whether categories were asked for shows in the earlier run alone, so that it says what is compared.
    let now = file.groups(true);
    for before in &old.groups {
        let Some(was) = before.rate else { continue };
        let name = format!("{}: {} {}", file.path, before.name, before.label);
        let is_graded = before.label != "ungraded";
        let group = now.iter().find(|group| before.key() == group.key());
        let Some((n, is)) = group.and_then(|group| Some((group.count.n, group.count.rate()?))) else {
            lose_share(name, was, &before.label, if is_graded { scope } else { Scope::Part }, comparison);
            continue;
        };
        if before.n != n {
            comparison.notes.push(format!("{name}: {n} records, were {}", before.n));
        }
        if is_graded {
            comparison.put(name, was, is, is_harmless(&before.label), tolerance);
        }
    }
    let spans = [
        ("exact spans", old.exact_span_rate, file.spans.exact.rate()),
        ("overlapped spans", old.overlap_span_rate, file.spans.overlapped.rate()),
    ];
    for (what, before, after) in spans {
        let name = format!("{}: {what}", file.path);
        match (before, after) {
            (Some(before), Some(after)) => comparison.put(name, before, after, false, tolerance),
            (Some(before), None) => comparison.lose_rate(name, before, scope),
            (None, _) => {}
        }
    }
}

/// A rate of a file that is gone. What is right among what was flagged ends with the last false alarm, too, and that is
/// for the better.
fn lose_share(name: String, was: f64, label: &str, scope: Scope, comparison: &mut Comparison) {
    let is_only_of_false_alarms = label == "flagged" && was <= 0.0;
    comparison.lose_rate(name, was, if is_only_of_false_alarms { Scope::Part } else { scope });
}

/// Whether records of a label should not be found.
fn is_harmless(label: &str) -> bool {
    matches!(label, "benign" | "negative" | "accept")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::FileTally;

    fn baseline(groups: &str, figures: &str) -> Baseline {
        let file = format!(
            r#"{{"path":"old/a.jsonl","groups":[{groups}],"exact_span_rate":null,"overlap_span_rate":null,"us_per_kb":1}}"#
        );
        Baseline::parse(&format!(r#"{{"files":[{file}],"figures":[{figures}]}}"#)).expect("a baseline")
    }

    #[test]
    fn what_is_no_report_says_what_to_give() {
        for text in ["", "{}", "[1]", r#"{"files":[{"path":"a"}]}"#, r#"{"files":3}"#] {
            let error = Baseline::parse(text).expect_err("no report").to_string();
            assert!(error.contains("portcullis eval --json PATH"), "{error}");
        }
        let wild = r#"{"files":[{"path":"a","groups":[{"name":"x","label":"y","n":1,"rate":7}]}]}"#;
        assert!(Baseline::parse(wild).is_err());
    }

    #[test]
    fn runs_with_nothing_in_common_are_not_compared() {
        let mut report = Report::default();
        report.files.push(FileTally::new("b.jsonl".to_owned()));
        assert_eq!(baseline("", "").compare(&report, 0.0, Scope::Whole), Err(BaselineError::Unrelated));
    }

    #[test]
    fn files_are_matched_by_their_name_where_it_is_unique() {
        let file = |path: &str| FileTally::new(path.to_owned());
        let mut report = Report::default();
        report.files.push(file("new/a.jsonl"));
        let old = baseline("", "");
        assert_eq!(old.compare(&report, 0.0, Scope::Whole).expect("a match").notes, Vec::<String>::new());
        report.files.push(file("other/a.jsonl"));
        assert_eq!(old.compare(&report, 0.0, Scope::Whole), Err(BaselineError::Unrelated));
    }

    #[test]
    fn worse_is_told_by_what_the_label_asks_for() {
        let mut comparison = Comparison::default();
        comparison.put("found".to_owned(), 0.5, 0.4, false, 0.0);
        assert!(comparison.is_worse());
        let mut comparison = Comparison::default();
        comparison.put("flagged".to_owned(), 0.5, 0.4, is_harmless("benign"), 0.0);
        comparison.put("found".to_owned(), 0.5, 0.45, false, 0.05);
        assert_eq!((comparison.is_worse(), comparison.unchanged, comparison.changes.len()), (false, 1, 1));
        assert!(!comparison.changes[0].has_risen);
    }

    #[test]
    fn a_rate_that_is_gone_is_worse_unless_a_part_is_compared() {
        for (was, label, scope, is_worse) in [
            (0.5, "attack", Scope::Whole, true),
            (0.0, "attack", Scope::Whole, true),
            (0.0, "benign", Scope::Whole, true),
            (0.5, "flagged", Scope::Whole, true),
            // The last false alarm is gone.
            (0.0, "flagged", Scope::Whole, false),
            (0.5, "attack", Scope::Part, false),
        ] {
            let mut comparison = Comparison::default();
            lose_share("x".to_owned(), was, label, scope, &mut comparison);
            assert_eq!(comparison.is_worse(), is_worse, "{was} {label} {scope:?}");
            assert_eq!(comparison.changes.len() + comparison.notes.len(), 1, "it is named");
        }
    }

    #[test]
    fn figures_are_shown_in_their_unit_where_it_is_known() {
        let figures = r#"{"kind":"pii","name":"a","value":0.5,"n":2},
            {"kind":"pii","name":"b","value":0.5,"unit":"share","n":2},{"kind":"pii","name":"c","value":7,"unit":"us","n":2}"#;
        let old = baseline("", figures);
        let shown: Vec<String> = old.figures.iter().map(OldFigure::show).collect();
        assert_eq!(shown, ["0.5", "50.00 %", "7.0 us"]);
        assert!(old.figures[2].unit().is_some_and(Unit::is_of_time));
    }
}
