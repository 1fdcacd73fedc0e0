//! Rules about text, and what findings of the detector core mean in a bundle.

use std::ops::Range;
use std::sync::LazyLock;

use super::Scan;
use crate::bundles::rules::{BundleRule, BundleRules, Matcher, TextCondition};
use crate::decision::{CheckFinding, Severity};
use crate::detect::{Detected, SECRETS};
use crate::text::{Limits, views};

/// Most views of one text that rules look at.
const VIEWS_MAX: usize = 8;

/// Rules about text, by the surfaces they are for.
#[derive(Debug)]
pub(in crate::bundles) struct Patterns {
    rules: Vec<(&'static BundleRule, &'static TextCondition)>,
}

static BUILTIN: LazyLock<Patterns> = LazyLock::new(|| {
    let of = |rule: &'static BundleRule| match &rule.matcher {
        Matcher::Text(condition) => Some((rule, condition)),
        Matcher::Call(_) => None,
    };
    Patterns { rules: BundleRules::builtin().rules().iter().filter_map(of).collect() }
});

impl Patterns {
    /// Those of the built-in rules.
    pub(in crate::bundles) fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// Calls `found` with every rule of a surface that matches, and where.
    fn find(&self, surface: &str, text: &str, found: &mut dyn FnMut(&'static BundleRule, Range<usize>)) {
        for (rule, condition) in &self.rules {
            if !condition.surfaces.iter().any(|one| one == surface || one == "any") {
                continue;
            }
            for at in condition.pattern.find_iter(text) {
                let is_excused =
                    condition.unless.as_ref().is_some_and(|u| u.is_match(line_around(text, at.start())));
                if !is_excused {
                    found(rule, at.range());
                }
            }
        }
    }
}

fn line_around(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    text[start..].split('\n').next().unwrap_or_default()
}

impl Scan<'_, '_> {
    /// Looks for the rules of this file's surface in every view of a piece of its text.
    pub(super) fn patterns(&mut self, start: usize, text: &str, hits: &mut Vec<(usize, CheckFinding)>) {
        self.patterns_of(self.syntax.surface(), start, text, hits);
    }

    /// The same for a surface.
    pub(super) fn patterns_of(
        &mut self,
        surface: &str,
        start: usize,
        text: &str,
        hits: &mut Vec<(usize, CheckFinding)>,
    ) {
        let all = views(text, &Limits::default());
        for (index, view) in all.views.iter().take(VIEWS_MAX).enumerate() {
            self.engines.patterns.find(surface, view.text(), &mut |rule, range| {
                if index > 0 && !view.may_be_new(range.clone()) {
                    return;
                }
                let at = start + view.to_source(range).start;
                hits.push((at, finding(rule, self.path, rule.severity)));
            });
        }
    }

    /// Looks for the rules of a surface in a part of the file that begins at `line`, as it stands.
    pub(super) fn patterns_in_block(&mut self, surface: &str, text: &str, line: u32) {
        let mut hits = Vec::new();
        self.engines.patterns.find(surface, text, &mut |rule, range| {
            let below = text[..range.start].matches('\n').count() as u32;
            hits.push((line + below, rule));
        });
        for (line, rule) in hits {
            let mut finding = finding(rule, self.path, rule.severity);
            finding.line = line;
            finding.snippet = self.lines.show(line);
            self.found.findings.add(finding);
        }
    }
}

fn finding(rule: &BundleRule, path: &str, severity: Severity) -> CheckFinding {
    CheckFinding {
        rule_id: rule.id.clone(),
        file: path.to_owned(),
        line: 0,
        category: rule.category.clone(),
        severity,
        reason: rule.description.clone(),
        snippet: String::new(),
        fix_hint: rule.fix.clone(),
    }
}

/// How bad a finding of the detector core is in a bundle; `None` when it says nothing there.
pub(super) fn core_severity(_scan: &Scan<'_, '_>, detected: &Detected, _start: usize) -> Option<Severity> {
    let info = &detected.info;
    let severity = match info.score {
        score if score >= 0.9 => Severity::Critical,
        score if score >= 0.7 => Severity::High,
        score if score >= 0.3 => Severity::Medium,
        _ => Severity::Low,
    };
    if &*info.plugin == SECRETS {
        return Some(severity);
    }
    Some(severity)
}
