//! One run over a text: the rule set over each view, and over what is made of each, then the detectors in code.

mod disguises;
mod rejoined;

use std::ops::Range;
use std::sync::Arc;

use super::{Request, Scanner};
use crate::detect::{Detected, concepts, shown};
use crate::rules::{
    Budget, CountrySet, Hints, Match, MetaInfo, New, ScanStop, Scope, Scratch, Surface, phone_look_ups,
};
use crate::text::{self, Layers, View, Views};
use disguises::Depth;

/// Views that are looked at for phrases in disguise. A text has one unless it hides something.
const PHRASE_VIEWS_MAX: usize = 6;

/// How far from a gap that layout made a phrase over it is read, in bytes. Few are that long, and where gaps are many each word
/// is near one.
const GAP_REACH: usize = 128;

/// What reading all views of a text came to.
pub(super) struct Read {
    /// As in [`super::Scanned`].
    pub limit_hit: bool,
    /// As in [`super::Scanned`].
    pub disguised: usize,
    /// As in [`super::Scanned`].
    pub cost: u64,
    /// As in [`super::Scanned`].
    pub is_cut: bool,
}

/// What is read of a view.
#[derive(Clone, Copy)]
enum Part<'n> {
    /// All of it.
    All,
    /// What it changed of the view that it was made from; of that, where ranges are given, what came from those of the text
    /// as sent.
    Changed(Option<&'n [Range<usize>]>),
    /// The same of gaps between words, which phrases are read near of.
    Gaps(&'n [Range<usize>]),
    /// All of it, where what was found lies in a cell: what stands beside it was put there.
    Cells(&'n text::Columns<'n>),
}

/// One text being scanned.
struct Run<'r, 'o> {
    scanner: &'r Scanner,
    request: Request<'r>,
    countries: &'r CountrySet,
    budget: &'r Budget<'r>,
    scratch: &'r mut Scratch,
    matches: Vec<Match>,
    /// Where the view that was scanned last has what speaks for an attack.
    signs: Vec<Range<usize>>,
    out: &'o mut dyn FnMut(Option<usize>, Detected),
    /// Bytes of disguises that were read.
    disguised: usize,
    /// Telephone numbers that may still be looked up.
    look_ups: usize,
}

impl Scanner {
    /// Calls `out` with each match: of a concept with the index of its family, else with none.
    pub(super) fn every_match(
        &self,
        request: Request<'_>,
        views: &Views<'_>,
        with_phrases: bool,
        (countries, cost_max): (&CountrySet, u64),
        budget: &Budget<'_>,
        out: &mut dyn FnMut(Option<usize>, Detected),
    ) -> Result<Read, ScanStop> {
        self.rules.with_scratch(|scratch| {
            let mut run = Run {
                scanner: self,
                request,
                countries,
                budget,
                scratch,
                matches: Vec::new(),
                signs: Vec::new(),
                out,
                disguised: 0,
                look_ups: phone_look_ups(request.text.len()),
            };
            run.scratch.begin(cost_max);
            let read = run.views(views, with_phrases);
            let is_cut = run.scratch.is_spent();
            let cost = run.scratch.take_cost();
            if !is_cut {
                read?;
            }
            run.coded(&views.views);
            Ok(Read { limit_hit: views.limit_hit, disguised: run.disguised, cost, is_cut })
        })
    }
}

impl Run<'_, '_> {
    /// Scans all views of a text.
    fn views(&mut self, views: &Views<'_>, with_phrases: bool) -> Result<(), ScanStop> {
        for (index, view) in views.views.iter().enumerate() {
            let part = if index > 0 { Part::Changed(None) } else { Part::All };
            let hints = self.view(view, part, self.request.plugins)?;
            if index < PHRASE_VIEWS_MAX {
                self.columns(view, index > 0)?;
            }
            if with_phrases && index < PHRASE_VIEWS_MAX {
                self.phrases(view, index > 0, hints, Depth::First)?;
            }
            if index < PHRASE_VIEWS_MAX {
                self.pieces(view, with_phrases)?;
            }
        }
        Ok(())
    }

    /// Scans one view. In a derived view, only what touches something the view changed can be new.
    fn view(&mut self, view: &View<'_>, part: Part<'_>, plugins: u32) -> Result<Hints, ScanStop> {
        let scope = Scope { plugins, role: self.request.role, surface: self.request.surface };
        let rules = &self.scanner.rules;
        let may_be_new = |range| view.may_be_new(range);
        let stretches = match part {
            Part::All => None,
            Part::Cells(_) => Some(std::iter::once(0..view.text().len()).collect()),
            Part::Changed(near) => {
                Some(view.changes(rules.reach(self.scratch, plugins).max(self.scanner.reach.changes), near))
            }
            Part::Gaps(near) => Some(view.changes(GAP_REACH.max(self.scanner.reach.changes), Some(near))),
        };
        let is_derived = stretches.is_some();
        let new = stretches.as_ref().map(|stretches| New { is_new: &may_be_new, stretches });
        self.signs.clear();
        let hints = rules.scan(view.text(), scope, new, self.scratch, self.budget, &mut self.matches);
        for found in self.matches.drain(..) {
            let is_told = match part {
                Part::All => true,
                Part::Changed(_) | Part::Gaps(_) => view.may_be_new(found.read.clone()),
                Part::Cells(columns) => columns.holds(&found.range),
            };
            if !is_told {
                continue;
            }
            let rule = &rules.rules()[found.rule as usize];
            if !self.countries.admits(&rule.countries)
                || !rule.admits_region(view.text(), &found.range, self.countries, &mut self.look_ups)
            {
                continue;
            }
            if rule.is_of_phrases()
                && (concepts::is_quoted(view.text(), &found.range)
                    || !rule.admits_phrase(view.text(), &found.range))
            {
                continue;
            }
            if rule.family.is_some_and(|family| rules.families()[family].speaks()) {
                self.signs.push(found.range.clone());
            }
            let is_shown = |_: &&Arc<MetaInfo>| {
                self.request.surface != Some(Surface::ToolArgs) && shown::is_shown(view.text(), &found.range)
            };
            let detected = Detected {
                info: rule.info_if_shown.as_ref().filter(is_shown).unwrap_or(&rule.info).clone(),
                range: view.to_source(found.range.clone()),
                layers: if is_derived { view.layers_in(found.range) } else { Layers::default() },
            };
            (self.out)(rule.family, detected);
        }
        hints
    }

    /// Asks the detectors in code, of each view.
    fn coded(&mut self, views: &[View<'_>]) {
        let mut found = Vec::new();
        for detector in &self.scanner.coded {
            let plugin = self.scanner.rules.plugin_bits([&*detector.info().plugin]);
            if plugin & self.request.plugins == 0 {
                continue;
            }
            for view in views {
                detector.detect(view, &mut found);
            }
            for (range, layers) in found.drain(..) {
                (self.out)(None, Detected { info: detector.info().clone(), range, layers });
            }
        }
    }
}
