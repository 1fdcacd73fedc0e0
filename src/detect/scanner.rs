//! The scanner: views of a text, the rule set over each, detectors in code, then one winner each.

use std::ops::Range;
use std::sync::Arc;

use super::concepts::{self, Evidence, Explanation, Hit};
use super::{Detected, Detector, INJECTION, SECRETS, coded, resolve, shown, wording};
use crate::rules::caches::AtRest;
use crate::rules::{
    Budget, CountrySet, Hints, Match, MetaInfo, New, Role, RuleSet, ScanStop, Scope, Scratch, Speaker,
    Surface, phone_look_ups,
};
use crate::text::stretches::{self, Cut};
use crate::text::{self, Layers, Limits, Looks, View, Views};

/// Views that are looked at for phrases in disguise. A text has one unless it hides something.
const PHRASE_VIEWS_MAX: usize = 6;

/// How much of views is read, in bytes. More finds the same at a greater cost, but for what only shows by chance: signs of
/// disguises far from a place where a phrase shows through.
#[derive(Clone, Copy, Debug)]
struct Reach {
    /// Around what a view changed, in any case.
    changes: usize,
    /// Around places where a phrase shows through, or that a view changed: disguises are read so far from them.
    shown: usize,
    /// Around what is read of disguises: what speaks for or against a phrase is looked for so far from it.
    context: usize,
}

const REACH: Reach = Reach { changes: 0, shown: 1024, context: 2048 };

/// The rules of all countries, at any cost.
const EVERYWHERE: (&CountrySet, u64) = (&CountrySet::EMPTY, u64::MAX);

/// What is asked of one scan.
#[derive(Clone, Copy, Debug)]
pub struct Request<'t> {
    /// The text as sent.
    pub text: &'t str,
    /// Plugins as bits of [`RuleSet::plugin_bits`].
    pub plugins: u32,
    /// Who wrote it; `None` applies the rules of every role.
    pub role: Option<Role>,
    /// What kind of text it is; `None` applies the rules of every surface.
    pub surface: Option<Surface>,
}

/// What one scan found.
#[derive(Debug, Default)]
pub struct Scanned {
    /// Winners in the order of the text.
    pub findings: Vec<Detected>,
    /// Whether the limits on decoding were hit, so that some disguise may have gone unread.
    pub limit_hit: bool,
    /// Bytes of disguises of phrases that were read besides the views.
    pub disguised: usize,
    /// What patterns cost, in nanoseconds, about; counted, so that the same text always costs the same.
    pub cost: u64,
    /// Whether they stopped because they may cost no more; the findings are those until then.
    pub is_cut: bool,
}

/// What a model is trained on: one text as its features.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// The features of each window in which a concept speaks for an attack; see [`Evidence::samples`].
    pub concepts: Vec<Vec<(usize, f64)>>,
    /// Every window of words.
    pub words: Vec<wording::Window>,
}

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

    /// Calls `out` with each match: of a concept with the index of its family, else with none.
    fn every_match(
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

/// What reading all views of a text came to.
struct Read {
    limit_hit: bool,
    disguised: usize,
    cost: u64,
    is_cut: bool,
}

/// What is read of a view.
#[derive(Clone, Copy)]
enum Part<'n> {
    All,
    /// What it changed of the view that it was made from; of that, where ranges are given, what came from those of the text
    /// as sent.
    Changed(Option<&'n [Range<usize>]>),
    /// All of it, where what was found lies in a cell: what stands beside it was put there.
    Cells(&'n text::Columns<'n>),
}

/// Places of a view around which disguises are undone.
struct Shown<'t> {
    /// The parts of the view around them; none if that is all of it.
    cut: Option<Cut<'t>>,
    /// What they came from, with text to each side, in order.
    near: Vec<Range<usize>>,
}

impl<'t> Shown<'t> {
    /// `places` are in order, but for some that are near each other.
    fn around(view: &View<'t>, mut places: Vec<Range<usize>>, reach: Reach) -> Self {
        places.sort_unstable_by_key(|place| place.start);
        let near = stretches::around(view.text(), places.iter().cloned(), reach.shown);
        let keep = stretches::around(view.text(), places.into_iter(), reach.shown + reach.context);
        let mut near: Vec<_> = near.into_iter().map(|one| view.to_source(one)).collect();
        near.sort_unstable_by_key(|one| one.start);
        let mut joined = Vec::with_capacity(near.len());
        near.into_iter().for_each(|one| stretches::join(&mut joined, one));
        Self { cut: Cut::of(view, &keep), near: joined }
    }

    fn view<'s>(&'s self, whole: &'s View<'t>) -> &'s View<'t> {
        self.cut.as_ref().map_or(whole, |cut| &cut.view)
    }
}

/// How many disguises lie over each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    First,
    Second,
}

/// Longest word that is looked up backwards, in bytes.
const BACKWARDS_MAX: usize = 32;

/// Whether a word is known once it is read backwards.
fn is_known_backwards(word: &[u8], is_known: impl Fn(&[u8]) -> bool) -> bool {
    let mut letters = [0; BACKWARDS_MAX];
    let Some(backwards) = letters.get_mut(..word.len()) else { return false };
    backwards.copy_from_slice(word);
    backwards.reverse();
    is_known(backwards)
}

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
        };
        let is_derived = stretches.is_some();
        let new = stretches.as_ref().map(|stretches| New { is_new: &may_be_new, stretches });
        self.signs.clear();
        let hints = rules.scan(view.text(), scope, new, self.scratch, self.budget, &mut self.matches);
        for found in self.matches.drain(..) {
            let is_told = match part {
                Part::All => true,
                Part::Changed(_) => view.may_be_new(found.read.clone()),
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

    /// Scans strings in pieces, put together: for credentials and, `with_phrases`, for phrases. In what else code puts together,
    /// pieces are found as they are.
    fn pieces(&mut self, view: &View<'_>, with_phrases: bool) -> Result<(), ScanStop> {
        let secrets = self.request.plugins & self.scanner.secrets;
        let injection = if with_phrases { self.request.plugins & self.scanner.injection } else { 0 };
        if secrets | injection == 0 {
            return Ok(());
        }
        // What may be a credential may be words too.
        let Some(words) = text::joined_words(view) else { return Ok(()) };
        if secrets != 0
            && let Some(joined) = text::joined(view)
        {
            self.view(&joined, Part::Changed(None), secrets)?;
        }
        match injection {
            0 => Ok(()),
            _ => self.disguise(&words, None, injection).map(drop),
        }
    }

    /// Scans the cells of tables with the heads of their columns beside them, where rules may find something by these.
    fn columns(&mut self, view: &View<'_>, is_derived: bool) -> Result<(), ScanStop> {
        let rules = &self.scanner.rules;
        let context = self.scratch.context();
        // Of a derived view, only what it changed was read: the heads may stand elsewhere in it.
        let places = match is_derived && context.was_seen {
            true => text::Heads::Anywhere,
            false => text::Heads::At { words: &context.words, cells: &context.lacking },
        };
        let plugins = if places.are_none() { 0 } else { self.request.plugins & rules.plugins_of_columns() };
        let columns = match plugins {
            0 => None,
            _ => text::columns(view, places, &|head| rules.is_context(head)),
        };
        let Some(columns) = columns else { return Ok(()) };
        // What speaks for an attack in the view is asked for afterwards.
        let signs = std::mem::take(&mut self.signs);
        let read = self.view(&columns.view, Part::Cells(&columns), plugins);
        self.signs = signs;
        read.map(drop)
    }

    /// Scans the disguises of phrases that show through in `view`, for injection only: in leetspeak or backwards,
    /// a credential or a card number is no longer one. Of a derived view, only what is near something it changed. What letters set
    /// apart, Morse and leet say may be in disguise once more.
    fn phrases(
        &mut self,
        view: &View<'_>,
        is_derived: bool,
        hints: Hints,
        depth: Depth,
    ) -> Result<(), ScanStop> {
        let injection = self.request.plugins & self.scanner.injection;
        if injection == 0 {
            return Ok(());
        }
        let reach = self.scanner.reach;
        let mut signs = std::mem::take(&mut self.signs);
        signs.sort_unstable_by_key(|sign| sign.start);
        if !hints.rot13.is_empty() {
            let shown = Shown::around(view, hints.rot13, reach);
            self.disguise(&text::rot13(shown.view(view)), Some(&shown.near), injection)?;
        }
        if !hints.reversed.is_empty() {
            let shown = Shown::around(view, hints.reversed, reach);
            self.disguise(&text::reversed(shown.view(view)), Some(&shown.near), injection)?;
            self.disguise(&text::reversed_words(shown.view(view)), Some(&shown.near), injection)?;
        }
        let changed = match is_derived {
            true => {
                let changed = view.changes(0, None);
                if changed.is_empty() {
                    return Ok(());
                }
                Some(Shown::around(view, changed, reach))
            }
            false => None,
        };
        let (mut view, mut near) = (view, None);
        if let Some(shown) = &changed {
            if let Some(cut) = &shown.cut {
                signs = signs.iter().filter_map(|sign| cut.at(sign)).collect();
            }
            (view, near) = (shown.view(view), Some(&*shown.near));
        }
        let is_known = |word: &[u8]| self.scanner.rules.is_phrase_word(word);
        let reasons = text::leet_reasons(view, |word| is_known(word) || is_known_backwards(word, is_known));
        if !reasons.is_empty() {
            let shown = Shown::around(view, reasons, reach);
            if let Some(leet) = text::leet(shown.view(view)) {
                let both = near.map(|near| stretches::common(near, &shown.near));
                let near = Some(&**both.as_ref().unwrap_or(&shown.near));
                self.disguise_of(&leet, near, injection, depth)?;
            }
        }
        let looks = Looks::at(view.text());
        let may_be_spaced = looks.may_be_spaced() || !view.text().is_ascii();
        let spaced = may_be_spaced.then(|| text::spaced(view)).flatten();
        let set_apart = [spaced, text::apart(view, &looks), text::morse(view), text::numbers(view, &looks)];
        for set_apart in set_apart.iter().flatten() {
            self.disguise_of(set_apart, near, injection, depth)?;
        }
        let reasons = text::broken_reasons(view, &looks, is_known);
        if !reasons.is_empty() {
            let shown = Shown::around(view, reasons, reach);
            if let Some(whole) = text::unbroken(shown.view(view)) {
                let both = near.map(|near| stretches::common(near, &shown.near));
                let near = Some(&**both.as_ref().unwrap_or(&shown.near));
                self.disguise_of(&whole, near, injection, depth)?;
            }
        }
        // Alone, a letter of another script looks like any other of it.
        let look_alikes =
            (depth == Depth::Second && !view.text().is_ascii()).then(|| text::look_alikes(view));
        let disguises = [
            look_alikes.flatten(),
            text::layout(view, &signs, is_known),
            text::pig_latin(view, is_known),
            text::ciphers(view, &looks, is_known),
            text::spelled(view),
            text::upside_down(view),
        ];
        disguises.iter().flatten().try_for_each(|disguise| self.disguise(disguise, near, injection).map(drop))
    }

    /// Scans a disguise, and at first those that show through in it.
    fn disguise_of(
        &mut self,
        disguise: &View<'_>,
        near: Option<&[Range<usize>]>,
        injection: u32,
        depth: Depth,
    ) -> Result<(), ScanStop> {
        let hints = self.disguise(disguise, near, injection)?;
        match depth {
            Depth::First => self.phrases(disguise, true, hints, Depth::Second),
            Depth::Second => Ok(()),
        }
    }

    fn disguise(
        &mut self,
        disguise: &View<'_>,
        near: Option<&[Range<usize>]>,
        injection: u32,
    ) -> Result<Hints, ScanStop> {
        self.disguised += disguise.text().len();
        self.view(disguise, Part::Changed(near), injection)
    }

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
