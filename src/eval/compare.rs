//! Two runs beside each other: what rose, what fell, and whether that is for the better.
//!
//! The earlier run is its JSON output. Rates are compared by file, group and label, and by
//! source over all files of a kind; figures by kind and name. Files are
//! the same when their paths are, or their names where these are unique. Times are told and never judged: they differ
//! from run to run.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::figures::figures;
use super::record::Kind;
use super::tally::Report;

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
    n: usize,
}

/// One value that is not what it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What it is a value of.
    pub name: String,
    /// What it was, as a person reads it.
    pub before: String,
    /// What it is.
    pub after: String,
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
        let percent = |rate: f64| format!("{:.2} %", 100.0 * rate);
        self.changes.push(Change {
            name,
            before: percent(before),
            after: percent(after),
            has_risen,
            is_worse: Some(has_risen == is_less_better),
        });
    }
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
    pub fn compare(&self, report: &Report, tolerance: f64) -> Result<Comparison, BaselineError> {
        let mut comparison = Comparison::default();
        let paths: Vec<&str> = report.files.iter().map(|file| file.path.as_str()).collect();
        let mut matched = Vec::new();
        for file in &report.files {
            let Some(old) = self.file(&file.path, &paths) else {
                comparison.notes.push(format!("{}: was not measured before", file.path));
                continue;
            };
            matched.push(old.path.as_str());
            let groups: BTreeMap<(&str, &str), &OldGroup> =
                old.groups.iter().map(|group| ((group.name.as_str(), group.label.as_str()), group)).collect();
            for group in file.groups(true) {
                let Some(before) = groups.get(&(group.name.as_str(), group.label.as_str())) else { continue };
                let (Some(was), Some(is)) = (before.rate, group.count.rate()) else { continue };
                let name = format!("{}: {} {}", file.path, group.name, group.label);
                if before.n != group.count.n {
                    comparison.notes.push(format!("{name}: {} records, were {}", group.count.n, before.n));
                }
                if group.label == "ungraded" {
                    continue;
                }
                comparison.put(name, was, is, is_harmless(&group.label), tolerance);
            }
            let spans = [
                ("exact spans", old.exact_span_rate, file.spans.exact.rate()),
                ("overlapped spans", old.overlap_span_rate, file.spans.overlapped.rate()),
            ];
            for (name, before, after) in spans {
                if let (Some(before), Some(after)) = (before, after) {
                    comparison.put(format!("{}: {name}", file.path), before, after, false, tolerance);
                }
            }
        }
        let gone = self.files.iter().filter(|file| !matched.contains(&file.path.as_str()));
        let gone = gone.map(|file| format!("{}: was measured before, and not now", file.path));
        comparison.notes.extend(gone);
        self.compare_sources(report, tolerance, &mut comparison);
        if !self.compare_figures(report, tolerance, &mut comparison) && matched.is_empty() {
            return Err(BaselineError::Unrelated);
        }
        Ok(comparison)
    }

    /// Compares the sources that both runs have, each over all files of its kind, and tells of those that one alone has.
    fn compare_sources(&self, report: &Report, tolerance: f64, comparison: &mut Comparison) {
        for old in &self.kinds {
            let Some(kind) = report.totals.kinds.keys().find(|kind| kind.as_str() == old.kind) else {
                continue;
            };
            let before: BTreeMap<(&str, &str), &OldGroup> = old
                .sources
                .iter()
                .map(|group| ((group.name.as_str(), group.label.as_str()), group))
                .collect();
            let now = report.totals.sources(*kind);
            for group in &now {
                let name = format!("source {}: {} {}", old.kind, group.name, group.label);
                let Some(was) = before.get(&(group.name.as_str(), group.label.as_str())) else {
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
            let is_gone = |old: &&OldGroup| !now.iter().any(|g| g.name == old.name && g.label == old.label);
            for gone in old.sources.iter().filter(is_gone) {
                let name = format!("source {}: {} {}", old.kind, gone.name, gone.label);
                comparison.notes.push(format!("{name}: was measured before, and not now"));
            }
        }
    }

    /// Compares the figures that both runs have; whether there is one.
    fn compare_figures(&self, report: &Report, tolerance: f64, comparison: &mut Comparison) -> bool {
        let key = |kind: Kind, name: &str| (kind.as_str().to_owned(), name.to_owned());
        let old: BTreeMap<(String, String), &OldFigure> =
            self.figures.iter().map(|old| ((old.kind.clone(), old.name.clone()), old)).collect();
        let mut has_any = false;
        for figure in figures(&report.totals) {
            let Some(before) = old.get(&key(figure.kind, &figure.name)) else { continue };
            has_any = true;
            let name = format!("figure {}: {}", figure.kind.as_str(), figure.name);
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
                after: figure.unit.show(figure.value),
                has_risen,
                is_worse: (!is_of_time).then_some(has_risen == figure.is_less_better),
            });
        }
        has_any
    }
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
        assert_eq!(baseline("", "").compare(&report, 0.0), Err(BaselineError::Unrelated));
    }

    #[test]
    fn files_are_matched_by_their_name_where_it_is_unique() {
        let file = |path: &str| FileTally::new(path.to_owned());
        let mut report = Report::default();
        report.files.push(file("new/a.jsonl"));
        let old = baseline("", "");
        assert_eq!(old.compare(&report, 0.0).expect("a match").notes, Vec::<String>::new());
        report.files.push(file("other/a.jsonl"));
        assert_eq!(old.compare(&report, 0.0), Err(BaselineError::Unrelated));
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
}
