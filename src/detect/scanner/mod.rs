//! The scanner: views of a text, the rule set over each, detectors in code, then one winner each.

mod reach;
mod request;
mod run;

use std::ops::Range;
use std::sync::Arc;

use super::concepts::{self, Evidence, Explanation, Hit};
use super::{Detected, Detector, INJECTION, SECRETS, coded, resolve, wording};
use crate::rules::caches::AtRest;
use crate::rules::{Budget, CountrySet, MetaInfo, Role, RuleSet, ScanStop, Speaker, Surface};
use crate::text::{self, Limits, Views};
use reach::{REACH, Reach};
use run::Read;

pub use request::{Request, Samples, Scanned};

/// The rules of all countries, at any cost.
const EVERYWHERE: (&CountrySet, u64) = (&CountrySet::EMPTY, u64::MAX);

/// Scans texts with one rule set. Immutable and shared.
pub struct Scanner {
    rules: Arc<RuleSet>,
    coded: Vec<Box<dyn Detector>>,
    /// What the model can report; nothing without a model.
    weighed: Vec<MetaInfo>,
    injection: u32,
    secrets: u32,
    limits: Limits,
    reach: Reach,
    /// Words that were met before.
    words: AtRest<wording::Memory>,
}

impl Scanner {
    /// A scanner over `rules`.
    pub fn new(rules: Arc<RuleSet>) -> Self {
        let injection = rules.plugin_bits([INJECTION]);
        let secrets = rules.plugin_bits([SECRETS]);
        let mut weighed = Vec::new();
        if let Some(model) = rules.model() {
            weighed.push(concepts::about(&model.file));
            weighed.extend(model.wording.as_ref().map(|_| wording::about(&model.file)));
        }
        Self {
            coded: coded(rules.version()),
            weighed,
            injection,
            secrets,
            limits: Limits::default(),
            reach: REACH,
            words: AtRest::default(),
            rules,
        }
    }

    /// One that reads all of each view.
    #[cfg(test)]
    pub(super) fn thorough(rules: Arc<RuleSet>) -> Self {
        const ALL: usize = 1 << 30;
        Self { reach: Reach { changes: ALL, shown: ALL, context: ALL }, ..Self::new(rules) }
    }

    /// The rules it scans with.
    pub fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// What the detectors in code and the model can report.
    pub fn coded(&self) -> impl Iterator<Item = &MetaInfo> {
        self.coded.iter().map(|d| &**d.info()).chain(&self.weighed)
    }

    /// Rule ids of the detectors in code and of the model.
    pub fn coded_rule_ids(&self) -> impl Iterator<Item = &str> {
        self.coded().map(|info| &*info.id)
    }

    /// Scans one text.
    ///
    /// # Errors
    /// [`ScanStop`] when the budget is spent first.
    pub fn scan(&self, request: Request<'_>, budget: &Budget<'_>) -> Result<Scanned, ScanStop> {
        self.scan_for(request, &CountrySet::EMPTY, budget)
    }

    /// Scans one text for what concerns these countries: rules of no country and rules of one of them. An empty set is
    /// every country.
    ///
    /// # Errors
    /// [`ScanStop`] when the budget is spent first.
    pub fn scan_for(
        &self,
        request: Request<'_>,
        countries: &CountrySet,
        budget: &Budget<'_>,
    ) -> Result<Scanned, ScanStop> {
        if request.text.is_empty() || request.plugins == 0 {
            return Ok(Scanned::default());
        }
        self.judge(request, &text::views(request.text, &self.limits), true, (countries, u64::MAX), budget)
    }

    /// Scans one text of which the views were made already, by whoever looks at them as well; `with_phrases` also looks for
    /// phrases in disguise (leet, set apart, backwards, rotated, in pig latin), which only matter in what a model is to read. It stops soon
    /// after patterns cost `cost_max`, in the units of [`Scanned::cost`], which is no error.
    ///
    /// # Errors
    /// [`ScanStop`] when the budget is spent first.
    pub fn scan_views(
        &self,
        request: Request<'_>,
        views: &Views<'_>,
        with_phrases: bool,
        cost_max: u64,
        budget: &Budget<'_>,
    ) -> Result<Scanned, ScanStop> {
        self.judge(request, views, with_phrases, (&CountrySet::EMPTY, cost_max), budget)
    }

    fn judge(
        &self,
        request: Request<'_>,
        views: &Views<'_>,
        with_phrases: bool,
        (countries, cost_max): (&CountrySet, u64),
        budget: &Budget<'_>,
    ) -> Result<Scanned, ScanStop> {
        let (mut all, mut hits) = (Vec::new(), Vec::new());
        let mut sort = |family, detected: Detected| match family {
            None => all.push(detected),
            Some(family) => hits.push(Hit { family, range: detected.range, layers: detected.layers }),
        };
        let Read { limit_hit, disguised, cost, is_cut } =
            self.every_match(request, views, with_phrases, (countries, cost_max), budget, &mut sort)?;
        let mut findings = resolve::resolve(all);
        if !hits.is_empty() && concepts::is_weighed(request.surface) {
            let evidence = Evidence::of(&self.rules, &request, hits);
            let by_concepts = concepts::weigh(&self.rules, &evidence);
            let mut memory = self.words.take().unwrap_or_default();
            let by_words =
                wording::weigh(&self.rules, &request, &views.views, &evidence, &mut memory, budget);
            self.words.give(memory);
            let by_words = by_words?;
            for weighed in by_concepts.into_iter().chain(by_words) {
                if !concepts::is_told_already(&weighed, &findings) {
                    let at = findings.partition_point(|one| one.range.start <= weighed.range.start);
                    findings.insert(at, weighed);
                }
            }
        }
        Ok(Scanned { findings, limit_hit, disguised, cost, is_cut })
    }

    /// What a model is trained on: a text's windows of concepts, each of so many bytes, and its windows of words.
    ///
    /// # Errors
    /// [`ScanStop`] when the budget is spent first.
    pub fn samples(
        &self,
        request: Request<'_>,
        window: usize,
        budget: &Budget<'_>,
    ) -> Result<Samples, ScanStop> {
        let hits = self.hits(request, budget)?;
        let evidence = Evidence::of(&self.rules, &request, hits);
        let who = concepts::speaker(request.role, request.surface).unwrap_or(Speaker::User);
        let near = wording::Near::of(&evidence, who);
        let words = wording::windows(request.text, &near, self.rules.meanings(), who);
        Ok(Samples { concepts: evidence.samples(window), words })
    }

    /// Why the model of the rules judges a text as it does: the concepts that fired, with their weights and places. None
    /// where no concept that speaks for an attack was hit, or texts of that surface are not weighed.
    ///
    /// # Errors
    /// [`ScanStop`] when the budget is spent first.
    pub fn explain_concepts(
        &self,
        request: Request<'_>,
        budget: &Budget<'_>,
    ) -> Result<Option<Explanation>, ScanStop> {
        let hits = self.hits(request, budget)?;
        Ok(concepts::explain(&self.rules, &request, hits))
    }

    /// What the words of a text give by the model of the rules. None where no concept speaks for an attack or names the
    /// subject outside quotation marks, or what is said there is not weighed.
    ///
    /// # Errors
    /// [`ScanStop`] when the budget is spent first.
    pub fn explain_wording(
        &self,
        request: Request<'_>,
        budget: &Budget<'_>,
    ) -> Result<Option<wording::Explanation>, ScanStop> {
        let views = text::views(request.text, &self.limits);
        let evidence = Evidence::of(&self.rules, &request, self.hits(request, budget)?);
        Ok(wording::explain(&self.rules, &request, &views.views, &evidence))
    }

    /// Every hit of a concept in a text.
    fn hits(&self, request: Request<'_>, budget: &Budget<'_>) -> Result<Vec<Hit>, ScanStop> {
        let mut hits = Vec::new();
        let views = text::views(request.text, &self.limits);
        self.every_match(request, &views, true, EVERYWHERE, budget, &mut |family, detected| {
            hits.extend(family.map(|family| Hit { family, range: detected.range, layers: detected.layers }));
        })?;
        Ok(hits)
    }
}

/// Every range that one rule finds in a text, before findings compete; for the self-check of rules.
pub fn find_with_rule(
    scanner: &Scanner,
    rule: u32,
    text: &str,
    role: Option<Role>,
    surface: Option<Surface>,
) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let id = &scanner.rules.rules()[rule as usize].info.id;
    let request = Request { text, plugins: u32::MAX, role, surface };
    let views = text::views(text, &scanner.limits);
    let mut keep = |_: Option<usize>, detected: Detected| {
        if detected.info.id == *id {
            found.push(detected.range);
        }
    };
    let budget = &Budget::UNLIMITED;
    let stopped = scanner.every_match(request, &views, true, EVERYWHERE, budget, &mut keep);
    debug_assert!(stopped.is_ok(), "an unlimited budget is never spent");
    found
}
