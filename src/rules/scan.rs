//! One text through the set: gate, then regexes on the candidates only, then validators.
//!
//! Linear in the text for any input: the gate reads each byte once, windows of one rule are merged before its regex
//! reads them, and a match that a validator rejects is retried one byte later only a bounded number of times.

use std::ops::Range;

use regex_automata::meta::Cache;
use regex_automata::{Anchored, Input};

use super::caches::{Caches, Forgetful};
use super::compile::{self, CompiledRule, Shape};
use super::gate::{Hints, Sink};
use super::lazy::LazyRegex;
use super::phrases;
use super::placeholder;
use super::schema::{Role, Surface};
use super::set::RuleSet;
use super::shapes::{Memory, Place};
use super::triggered::Places;
use super::window::Begin;

/// Bytes the gate reads between two looks at the budget.
const SLICE_BYTES: usize = 16 * 1024;
/// Candidates of a prefix rule that are tried one by one in any case. Most are over after a few bytes, while a merged window
/// is read to its end, by an automaton that has to follow every word it could begin with at once.
const POINTS_MAX: usize = 64;
/// More than these are tried one by one as long as their windows together have at most so many times the bytes of the text;
/// beyond it windows are merged.
const POINTS_FACTOR_MAX: usize = 64;
/// Bytes either side of a match that `exclude_before`, `exclude_after` and validators see.
const CONTEXT_BYTES: usize = 64;
/// How far from what a view changes it is read in any case, in bytes, where rules are started by digits, tokens or separators;
/// farther where one that starts at digits or separators is longer. A token is read whole, however long it is.
pub(super) const TRIGGERED_REACH: usize = 512;
/// How far places where disguised phrases show through may lie apart to be noted as one, in bytes.
const HINTS_JOIN: usize = 512;
/// Bytes of a line either side of a match that `exclude_line` sees.
const LINE_BYTES: usize = 4 * 1024;
/// Bytes to which a match that fills its window is followed.
const FOLLOW_BYTES_MAX: usize = 16 * 1024;
/// Rejected matches that are retried one byte later, of one rule: so many in any text, and one more for so many bytes of it.
const RETRIES_MIN: usize = 64;
const RETRY_EVERY_BYTES: usize = 64;
/// Bytes of rejected matches that are looked at again, of one rule: so many in any text, and so many times the bytes of it.
/// What is rejected may be 16 KiB long, begin at every word, and be read by every check of the rule.
const RETRIED_BYTES_MIN: usize = 8 * 1024;
const RETRIED_FACTOR_MAX: usize = 2;
/// Bytes after a value that its pattern may read to see where it ends, and that the next match may begin with.
const DELIMITER_BYTES_MAX: usize = 4;
/// Searches of one rule between two looks at the clock.
const SEARCHES_UNTIMED: u32 = 32;
/// Bytes that are kept for texts in lower case from one text to the next.
const LOWER_BYTES_KEPT: usize = 256 * 1024;
/// What work costs, in nanoseconds of one processor, about; measured without link-time optimisation. Counted rather than
/// timed, so that a text always costs the same: for each byte of a window that a pattern is asked about, for each byte that
/// its exact form reads after the relaxed one said yes, more by a byte for so many bytes of the pattern; for each byte of the
/// pattern where it is tried at one place only, which reads so far, about; and for each search.
const WINDOW_COST: u64 = 5;
const EXACT_COST: u64 = 15;
const EXACT_SIZE: u64 = 32;
const POINT_COST: u64 = 10;
const POINT_BYTES: usize = 64;
const LOOK_COST: u64 = 300;
/// The same for each byte of a window in which only literals are looked for.
const NEED_COST: u64 = 1;
/// The same for a match and what is asked about it, and for each byte of it.
const MATCH_COST: u64 = 2_000;
const MATCH_BYTE_COST: u64 = 20;
/// The same for a literal of a rule, for the first word of a phrase, and for a place of digits, tokens or separators and each
/// byte of it.
const LITERAL_COST: u64 = 30;
const PHRASE_COST: u64 = 250;
const PLACE_COST: u64 = 100;
const PLACE_BYTE_COST: u64 = 30;

/// Which rules take part in a scan.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Plugins as bits of [`RuleSet::plugin_bits`].
    pub plugins: u32,
    /// Role of the message; `None` applies the rules of every role.
    pub role: Option<Role>,
    /// Kind of text; `None` applies the rules of every surface.
    pub surface: Option<Surface>,
}

impl Scope {
    pub(super) fn admits(&self, rule: &CompiledRule) -> bool {
        rule.plugin_bit & self.plugins != 0
            && self.role.is_none_or(|r| rule.applies_to_role(r))
            && self.surface.is_none_or(|s| rule.applies_to_surface(s))
    }
}

/// Asked now and then whether the scan may go on; keeps the clock out of the core.
pub struct Budget<'b> {
    /// True once the time is up.
    pub is_spent: &'b dyn Fn() -> bool,
}

impl Budget<'_> {
    /// A budget without end.
    pub const UNLIMITED: Budget<'static> = Budget { is_spent: &|| false };

    pub(super) fn check(&self) -> Result<(), ScanStop> {
        if (self.is_spent)() { Err(ScanStop) } else { Ok(()) }
    }
}

/// The budget was spent before the text was read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the time for this text was up before it was read to its end")]
pub struct ScanStop;

/// One confirmed match of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Index into [`RuleSet::rules`].
    pub rule: u32,
    /// The reported value, in bytes of the scanned text, on character boundaries.
    pub range: Range<usize>,
}

/// Whether a place of a view may hold what another view of the text does not.
pub type IsNew<'n> = &'n dyn Fn(Range<usize>) -> bool;

/// What is read of a view that was made from another one.
#[derive(Clone, Copy)]
pub struct New<'n> {
    /// Whether a place may hold what the other view does not.
    pub is_new: IsNew<'n>,
    /// Where such places are, in order, with [`RuleSet::reach`] bytes to each side, from white space to white space.
    pub stretches: &'n [Range<usize>],
}

/// A literal of a rule that was not asked about yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Later {
    /// Index of the rule.
    pub rule: u32,
    /// Where the literal stands, in bytes of the scanned text.
    pub at: Range<usize>,
}

/// Candidates of one rule in the text at hand.
#[derive(Default)]
struct Candidates {
    /// Windows to search, in no order while they are collected.
    windows: Vec<Range<usize>>,
    /// Whether each window begins at a literal and is tried there only.
    anchored: bool,
    /// Bytes of all windows that were added.
    bytes: usize,
}

impl Candidates {
    fn clear(&mut self) {
        self.windows.clear();
        self.bytes = 0;
    }
}

/// Caches of a rule: that of its relaxed pattern and that of the pattern.
const CACHES_OF_RULE: usize = 2;

/// Memory a scan needs: lazily built automaton states and candidate lists. Reused from text to text.
pub struct Scratch {
    caches: Caches,
    candidates: Vec<Candidates>,
    touched: Vec<u32>,
    /// The text in lower case, where rules ask for it.
    lower: Vec<u8>,
    /// Most bytes that the windows of a rule may have together to be tried one by one.
    points_bytes_max: usize,
    /// What regexes cost since it was last taken.
    cost: u64,
    /// Most that they may cost until then.
    cost_max: u64,
    /// How far matches of rules that were seen since reach from their literals, by the bit of their plugin.
    reach: [usize; u32::BITS as usize],
    /// What starts rules without a literal.
    pub(super) places: Places,
    /// What the automata of these rules keep, group by group.
    pub(super) shapes: Vec<Option<Box<Memory>>>,
}

impl Scratch {
    /// What patterns cost since this was last called, in nanoseconds, about: counted, and the same whenever it is asked about
    /// the same text.
    pub fn take_cost(&mut self) -> u64 {
        self.cost_max = u64::MAX;
        std::mem::take(&mut self.cost)
    }

    /// Begins with another text. Bounds what patterns may cost from now on until [`Self::take_cost`]; scans stop soon after.
    pub fn begin(&mut self, units_max: u64) {
        self.cost = 0;
        self.cost_max = units_max;
        self.reach = [0; u32::BITS as usize];
    }

    /// Whether patterns cost all that they may.
    pub fn is_spent(&self) -> bool {
        self.cost >= self.cost_max
    }

    pub(super) fn check(&self, budget: &Budget<'_>) -> Result<(), ScanStop> {
        if self.is_spent() { Err(ScanStop) } else { budget.check() }
    }

    /// Writes the text in lower case, if a rule is to be asked about it.
    fn read_lower(&mut self, text: &str) {
        self.lower.clear();
        self.lower.shrink_to(LOWER_BYTES_KEPT);
        if !self.touched.is_empty() {
            self.lower.extend_from_slice(text.as_bytes());
            self.lower.make_ascii_lowercase();
        }
    }

    fn forget_candidates(&mut self) {
        for rule in self.touched.drain(..) {
            self.candidates[rule as usize].clear();
        }
    }

    /// Adds a place to search for a rule.
    pub(super) fn add(&mut self, index: u32, is_anchored: bool, window: Range<usize>) {
        let candidates = &mut self.candidates[index as usize];
        // One window of which the beginning is not known makes all of them such.
        candidates.anchored &= is_anchored;
        candidates.bytes += window.len();
        match candidates.windows.last_mut() {
            None => {
                self.touched.push(index);
                candidates.anchored = is_anchored;
                candidates.windows.push(window);
            }
            // Merging as they come keeps a literal that repeats a million times from costing a million windows.
            Some(last) if !candidates.anchored && window.start <= last.end && window.start >= last.start => {
                last.end = last.end.max(window.end);
            }
            Some(_) => {
                candidates.windows.push(window);
                // At doublings only: sorting at every further window would be quadratic where windows lie apart.
                let count = candidates.windows.len();
                let is_dense = candidates.anchored && candidates.bytes > self.points_bytes_max;
                if count > POINTS_MAX && (is_dense || count.is_power_of_two()) {
                    settle(candidates, self.points_bytes_max);
                }
            }
        }
    }
}

impl Forgetful for Scratch {
    fn bytes(&self) -> usize {
        self.caches.bytes() + self.shapes.iter().flatten().map(|memory| memory.bytes()).sum::<usize>()
    }

    fn forget(&mut self) {
        self.caches.forget();
        self.shapes.clear();
    }
}

impl RuleSet {
    /// Runs `f` with a scratch of this set.
    pub fn with_scratch<T>(&self, f: impl FnOnce(&mut Scratch) -> T) -> T {
        let mut scratch = self.scratches.take().unwrap_or_else(|| Scratch {
            caches: Caches::new(CACHES_OF_RULE * self.rules.len()),
            candidates: (0..self.rules.len()).map(|_| Candidates::default()).collect(),
            touched: Vec::new(),
            lower: Vec::new(),
            points_bytes_max: 0,
            cost: 0,
            cost_max: u64::MAX,
            reach: [0; u32::BITS as usize],
            places: Places::default(),
            shapes: Vec::new(),
        });
        let out = f(&mut scratch);
        self.scratches.give(scratch);
        out
    }

    /// How far from what a view changes it is to be read for the rules of these plugins, in bytes: as far as phrases are
    /// long, and as rules reach whose literals were seen since [`Scratch::begin`]. A literal that was not seen since then
    /// stands in what changed.
    pub fn reach(&self, scratch: &Scratch, plugins: u32) -> usize {
        let of_plugin = |(bit, reach): (u32, &usize)| if plugins >> bit & 1 != 0 { *reach } else { 0 };
        let seen = (0..).zip(&scratch.reach).map(of_plugin).max().unwrap_or(0);
        phrases::BYTES_MAX.max(self.triggered_reach(plugins)).max(seen)
    }

    /// Calls `found` with the rule and the place of every literal that is seen from `slice`: one pass, without a look at
    /// any pattern. Slices that follow on each other see each literal once.
    pub fn literals_in(&self, text: &[u8], slice: Range<usize>, found: impl FnMut(u32, Range<usize>)) {
        self.gate(u32::MAX).literals(text, slice, &mut Seen(found));
    }

    /// Finds every match of the rules in `scope`, appends them to `matches`, phrases first and else in the order of rules,
    /// and says which
    /// disguised phrases showed through.
    ///
    /// Of a view that was made from another one, only what is `new` is read.
    ///
    /// # Errors
    /// [`ScanStop`] when the budget is spent; `matches` then holds what was found so far.
    pub fn scan(
        &self,
        text: &str,
        scope: Scope,
        new: Option<New<'_>>,
        scratch: &mut Scratch,
        budget: &Budget<'_>,
        matches: &mut Vec<Match>,
    ) -> Result<Hints, ScanStop> {
        self.scan_but(text, scope, (new, None), scratch, budget, matches)
    }

    /// [`Self::scan`], in which rules for any command have to wait: where their literals stand is noted in `later`, for
    /// [`Self::confirm_later`]. What they would tell is often known by then.
    pub(crate) fn scan_but_any(
        &self,
        text: &str,
        scope: Scope,
        scratch: &mut Scratch,
        matches: &mut Vec<Match>,
        later: &mut Vec<Later>,
    ) {
        let scanned = self.scan_but(text, scope, (None, Some(later)), scratch, &Budget::UNLIMITED, matches);
        debug_assert!(scanned.is_ok(), "an unlimited budget is never spent");
    }

    /// Finds every match of rules around literals that a scan of the same text has left for later.
    pub(crate) fn confirm_later(
        &self,
        text: &str,
        later: &[Later],
        scratch: &mut Scratch,
        matches: &mut Vec<Match>,
    ) {
        for Later { rule, at } in later {
            let shape = self.rules[*rule as usize].shape();
            if let Some(window) = window_at(shape, text.as_bytes(), at) {
                scratch.add(*rule, shape.is_prefix, window);
            }
        }
        let confirmed = self.confirm(text, scratch, &Budget::UNLIMITED, matches);
        debug_assert!(confirmed.is_ok(), "an unlimited budget is never spent");
        scratch.forget_candidates();
    }

    fn scan_but(
        &self,
        text: &str,
        scope: Scope,
        (new, later): (Option<New<'_>>, Option<&mut Vec<Later>>),
        scratch: &mut Scratch,
        budget: &Budget<'_>,
        matches: &mut Vec<Match>,
    ) -> Result<Hints, ScanStop> {
        scratch.points_bytes_max = text.len().saturating_mul(POINTS_FACTOR_MAX);
        let is_new = new.map(|new| new.is_new);
        let all = 0..text.len();
        let stretches = new.map_or(std::slice::from_ref(&all), |new| new.stretches);
        let mut collect = Collect {
            set: self,
            scope,
            scratch,
            hints: Hints::default(),
            text: text.as_bytes(),
            is_new,
            later,
            phrases: Vec::new(),
        };
        let gated = stretches.iter().try_for_each(|stretch| collect.gate(stretch.clone(), budget));
        let hints = std::mem::take(&mut collect.hints);
        let on_text = |found: Match| Match { range: on_boundaries(text, found.range), ..found };
        matches.extend(collect.phrases.into_iter().map(on_text));
        let result = gated
            .and_then(|()| self.places(text, scope, is_new, scratch, budget))
            .and_then(|()| self.confirm(text, scratch, budget, matches));
        scratch.places.clear();
        scratch.forget_candidates();
        result.map(|()| hints)
    }

    fn confirm(
        &self,
        text: &str,
        scratch: &mut Scratch,
        budget: &Budget<'_>,
        matches: &mut Vec<Match>,
    ) -> Result<(), ScanStop> {
        scratch.touched.sort_unstable();
        scratch.read_lower(text);
        for index in &scratch.touched {
            if scratch.cost >= scratch.cost_max {
                return Err(ScanStop);
            }
            budget.check()?;
            let index = *index as usize;
            let rule = &self.rules[index];
            let candidates = &mut scratch.candidates[index];
            settle(candidates, scratch.points_bytes_max);
            let (cost, result) = scratch.caches.with_two(CACHES_OF_RULE * index, |first_look, cache| {
                let mut search = Search {
                    rule,
                    index: index as u32,
                    text,
                    lower: &scratch.lower,
                    first_look,
                    cache,
                    budget,
                    retries: RETRIES_MIN + text.len() / RETRY_EVERY_BYTES,
                    retried_bytes: RETRIED_BYTES_MIN + text.len().saturating_mul(RETRIED_FACTOR_MAX),
                    cost: 0,
                    cost_max: scratch.cost_max - scratch.cost,
                    searches: 0,
                };
                let result = match candidates.anchored {
                    true => search.at_points(&candidates.windows, matches),
                    false => search.in_windows(&candidates.windows, matches),
                };
                (search.cost, result)
            });
            scratch.cost += cost;
            result?;
        }
        Ok(())
    }
}

/// Sorts windows; merges them unless each is tried at its beginning only.
fn settle(candidates: &mut Candidates, points_bytes_max: usize) {
    let windows = &mut candidates.windows;
    windows.sort_unstable_by_key(|w| (w.start, w.end));
    if candidates.anchored && (windows.len() <= POINTS_MAX || candidates.bytes <= points_bytes_max) {
        windows.dedup_by_key(|w| w.start);
        return;
    }
    candidates.anchored = false;
    windows.dedup_by(|next, kept| {
        let joins = next.start <= kept.end;
        if joins {
            kept.end = kept.end.max(next.end);
        }
        joins
    });
}

struct Collect<'s, 'r> {
    set: &'r RuleSet,
    scope: Scope,
    scratch: &'s mut Scratch,
    hints: Hints,
    text: &'r [u8],
    /// Whether a place may hold what another view of the text does not; none where every place may.
    is_new: Option<IsNew<'r>>,
    /// Where to note the literals of rules for any command; none where those are asked like all others.
    later: Option<&'s mut Vec<Later>>,
    /// Matches of phrases, which are made as their anchors are seen.
    phrases: Vec<Match>,
}

impl Collect<'_, '_> {
    fn gate(&mut self, stretch: Range<usize>, budget: &Budget<'_>) -> Result<(), ScanStop> {
        let gate = self.set.gate(self.scope.plugins);
        let mut start = stretch.start;
        while start < stretch.end {
            let end = (start + SLICE_BYTES).min(stretch.end);
            gate.literals(self.text, start..end, self);
            start = end;
            if start < stretch.end {
                self.scratch.check(budget)?;
            }
        }
        if self.set.has_triggers(self.scope.plugins) {
            gate.shapes(self.text, stretch, self);
        }
        Ok(())
    }
}

impl Sink for Collect<'_, '_> {
    fn candidate(&mut self, index: u32, at: Range<usize>) {
        let rule = &self.set.rules[index as usize];
        if !self.scope.admits(rule) {
            return;
        }
        self.scratch.cost += LITERAL_COST;
        if let Some(phrases) = &rule.def.phrases {
            let around = at.end.saturating_sub(phrases::BYTES_MAX)
                ..(at.start + phrases::BYTES_MAX).min(self.text.len());
            if self.is_new.is_some_and(|is_new| !is_new(around)) {
                return;
            }
            self.scratch.cost += PHRASE_COST;
            let found = phrases.find(self.text, &at);
            self.phrases.extend(found.map(|range| Match { rule: index, range }));
            return;
        }
        if let Some(later) = self.later.as_mut().filter(|_| rule.def.any_command) {
            later.push(Later { rule: index, at });
            return;
        }
        let shape = rule.shape();
        let reach = &mut self.scratch.reach[rule.plugin_bit.trailing_zeros() as usize % u32::BITS as usize];
        *reach = shape.before.max(shape.after).max(*reach);
        let Some(window) = window_at(shape, self.text, &at) else { return };
        if self.is_new.is_some_and(|is_new| !is_new(window.clone())) {
            return;
        }
        self.scratch.add(index, shape.is_prefix, window);
    }

    fn place(&mut self, place: Place) {
        self.scratch.cost += PLACE_COST + PLACE_BYTE_COST * place.at.len() as u64;
        self.scratch.places.note(place);
    }

    fn rot13(&mut self, at: Range<usize>) {
        note(&mut self.hints.rot13, at);
    }

    fn reversed(&mut self, at: Range<usize>) {
        note(&mut self.hints.reversed, at);
    }
}

/// Adds a place to others that came nearly in order, joined where they are near each other.
fn note(places: &mut Vec<Range<usize>>, at: Range<usize>) {
    match places.last_mut() {
        Some(last) if at.start <= last.end + HINTS_JOIN && at.end + HINTS_JOIN >= last.start => {
            *last = last.start.min(at.start)..last.end.max(at.end);
        }
        _ => places.push(at),
    }
}

/// Where a rule is asked because of a literal; nowhere where no match can begin.
fn window_at(shape: &Shape, text: &[u8], literal: &Range<usize>) -> Option<Range<usize>> {
    // A match that begins with a token cannot begin amid one.
    let is_amid = shape.is_prefix
        && shape.begin == Begin::AtToken
        && literal.start > 0
        && text[literal.start - 1].is_ascii_alphanumeric();
    // It begins at or before its literal, so it ends at most its longest length after the literal's first byte.
    let window = literal.start.saturating_sub(shape.before)..(literal.start + shape.after).min(text.len());
    (!is_amid).then_some(window)
}

/// A sink that only looks at literals.
struct Seen<F>(F);

impl<F: FnMut(u32, Range<usize>)> Sink for Seen<F> {
    fn candidate(&mut self, rule: u32, at: Range<usize>) {
        (self.0)(rule, at);
    }

    fn place(&mut self, _place: Place) {}

    fn rot13(&mut self, _at: Range<usize>) {}

    fn reversed(&mut self, _at: Range<usize>) {}
}

/// One rule's regex at work on one text.
struct Search<'s, 't> {
    rule: &'s CompiledRule,
    index: u32,
    text: &'t str,
    /// The text in lower case.
    lower: &'t [u8],
    /// Those of the relaxed pattern and of the pattern, made when they are first needed.
    first_look: &'s mut Option<Box<Cache>>,
    cache: &'s mut Option<Box<Cache>>,
    budget: &'s Budget<'s>,
    /// How many rejected matches may still be retried one byte later.
    retries: usize,
    /// How many bytes of rejected matches may still be retried.
    retried_bytes: usize,
    /// What it cost so far, and how much it may.
    cost: u64,
    cost_max: u64,
    /// Searches until now.
    searches: u32,
}

impl Search<'_, '_> {
    fn at_points(&mut self, points: &[Range<usize>], matches: &mut Vec<Match>) -> Result<(), ScanStop> {
        let mut done = 0;
        for point in points {
            if point.start < done {
                continue;
            }
            self.check_cost()?;
            let Some(found) = self.find(point.clone(), Anchored::Yes) else { continue };
            if self.accept(&found, matches) {
                done = behind(&found, matches);
            } else if !self.may_retry(&found) {
                done = found.end;
            }
        }
        Ok(())
    }

    fn in_windows(&mut self, windows: &[Range<usize>], matches: &mut Vec<Match>) -> Result<(), ScanStop> {
        for window in windows {
            let mut at = window.start;
            while at < window.end {
                self.check_cost()?;
                let Some(found) = self.find(at..window.end, Anchored::No) else { break };
                // What calls for a look at a command confirms nothing: another may begin inside of it.
                let is_over = self.accept(&found, matches) && self.rule.def.commands.is_empty();
                if is_over {
                    at = behind(&found, matches);
                } else if self.retries == 0 || !self.may_retry(&found) {
                    at = found.end;
                } else {
                    self.retries -= 1;
                    at = found.start + 1;
                }
            }
        }
        Ok(())
    }

    /// Whether another search may be made; asks the clock now and then.
    fn check_cost(&mut self) -> Result<(), ScanStop> {
        self.searches += 1;
        if self.searches.is_multiple_of(SEARCHES_UNTIMED) {
            self.budget.check()?;
        }
        if self.cost >= self.cost_max { Err(ScanStop) } else { Ok(()) }
    }

    /// Whether the bytes of a rejected match may be looked at again; they are counted.
    fn may_retry(&mut self, rejected: &Range<usize>) -> bool {
        let left = self.retried_bytes.checked_sub(rejected.len());
        self.retried_bytes = left.unwrap_or(0);
        left.is_some()
    }

    /// The next match in `window`, followed to its real end where the window cut it.
    fn find(&mut self, window: Range<usize>, anchored: Anchored) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let edge = window.end;
        let input = Input::new(bytes).range(window).anchored(anchored);
        let from = input.start();
        let is_anchored = anchored != Anchored::No;
        let read = |to: usize, cost: u64| cost * (to - from) as u64;
        let size = self.rule.def.pattern.len() as u64;
        self.cost += LOOK_COST;
        if !self.rule.needs.may_match(&self.lower[from..edge]) {
            self.cost += read(edge, NEED_COST);
            return None;
        }
        let parse = || compile::parse(&self.rule.def.pattern).ok();
        if !self.rule.first_look.may_match(parse, &input, self.first_look) {
            self.cost += read(edge, WINDOW_COST);
            return None;
        }
        let regex = &self.rule.regex;
        let cache = self.cache.get_or_insert_with(|| Box::new(regex.create_cache()));
        let found = regex.search_with(cache, &input).map(|found| found.range());
        // A search ends where the match does, and at the end of the window without one.
        let end = found.as_ref().map_or(edge, |found| found.end);
        self.cost += match is_anchored {
            true => read(end.min(from + POINT_BYTES), WINDOW_COST) + POINT_COST * size,
            false => read(end, WINDOW_COST + EXACT_COST + size / EXACT_SIZE),
        };
        let found = found?;
        if found.end < edge || edge == bytes.len() {
            return Some(found);
        }
        let far = (found.start + FOLLOW_BYTES_MAX).min(bytes.len());
        let input = Input::new(bytes).range(found.start..far.max(edge)).anchored(Anchored::Yes);
        Some(regex.search_with(cache, &input).map_or(found, |m| m.range()))
    }

    /// Pushes the match unless the rule's own conditions reject it.
    fn accept(&mut self, whole: &Range<usize>, matches: &mut Vec<Match>) -> bool {
        self.cost += MATCH_COST + MATCH_BYTE_COST * whole.len() as u64;
        let rule = self.rule;
        let is_in = |regexes: &[LazyRegex], text: &str| regexes.iter().any(|regex| regex.is_match(text));
        if is_in(&rule.exclude_match, &self.text[on_boundaries(self.text, whole.clone())])
            || (!rule.exclude_line.is_empty()
                && is_in(&rule.exclude_line, line_around(self.text, whole.start)))
        {
            return false;
        }
        let (before, after) = context(self.text, whole, CONTEXT_BYTES);
        if rule.exclude_before.as_ref().is_some_and(|r| r.is_match(before))
            || rule.exclude_after.as_ref().is_some_and(|r| r.is_match(after))
        {
            return false;
        }
        if let Some(near) = &rule.near {
            let (left, right) = context(self.text, whole, near.distance);
            let inner = on_boundaries(self.text, whole.clone());
            let within = &self.text[inner.clone()];
            let sides = [(inner.start - left.len(), left), (inner.end, right), (inner.start, within)];
            if !sides.into_iter().any(|(start, side)| self.is_near(&near.words, start, side)) {
                return false;
            }
        }
        // Finding the value takes longer than all that is asked about the whole.
        let Some((value, span)) = self.value_of(whole) else { return false };
        let value = on_boundaries(self.text, value);
        let text = &self.text[value.clone()];
        // What was taken out already is no value.
        if text.starts_with('[') && placeholder::around(self.text.as_bytes(), value.clone()).is_some() {
            return false;
        }
        if rule.exclude.iter().any(|r| r.is_match(text)) {
            return false;
        }
        if !rule.validators.is_empty() {
            let (before, after) = context(self.text, &value, CONTEXT_BYTES);
            if !rule.validators.iter().all(|v| v.accepts(text, before, after)) {
                return false;
            }
        }
        matches.push(Match { rule: self.index, range: on_boundaries(self.text, span) });
        true
    }

    /// Whether a context word stands in the part of the text that begins at `start`, but for the names of placeholders.
    fn is_near(&self, words: &LazyRegex, start: usize, side: &str) -> bool {
        let is_word = |found: regex_automata::Match| {
            let (from, to) = (start + found.start(), start + found.end());
            placeholder::around(self.text.as_bytes(), from..to).is_none()
        };
        words.find_iter(side).any(is_word)
    }

    /// Ranges of the groups `value` and `span`. Without `value` the whole match stands for it, without `span` the value.
    fn value_of(&mut self, whole: &Range<usize>) -> Option<(Range<usize>, Range<usize>)> {
        let shape = self.rule.shape();
        if shape.value_group.is_none() && shape.span_group.is_none() {
            return Some((whole.clone(), whole.clone()));
        }
        let regex = &self.rule.regex;
        let cache = self.cache.get_or_insert_with(|| Box::new(regex.create_cache()));
        let mut captures = regex.create_captures();
        let input = Input::new(self.text.as_bytes()).range(whole.clone()).anchored(Anchored::Yes);
        regex.search_captures_with(cache, &input, &mut captures);
        let value = match shape.value_group {
            Some(group) => captures.get_group(group)?.range(),
            None => whole.clone(),
        };
        let span = shape.span_group.and_then(|group| captures.get_group(group)).map(|span| span.range());
        (!value.is_empty()).then(|| (value.clone(), span.filter(|span| !span.is_empty()).unwrap_or(value)))
    }
}

/// Where the search goes on behind an accepted match: behind the value, when the pattern read no more than a delimiter
/// after it, which may be the one before the next value; else behind the whole match.
fn behind(whole: &Range<usize>, matches: &[Match]) -> usize {
    let end = matches.last().map_or(whole.end, |found| found.range.end);
    let is_near = end > whole.start && end < whole.end && whole.end - end <= DELIMITER_BYTES_MAX;
    if is_near { end } else { whole.end }
}

/// The line that `at` stands in, up to [`LINE_BYTES`] either side.
fn line_around(text: &str, at: usize) -> &str {
    let at = text.floor_char_boundary(at);
    let from = text.ceil_char_boundary(at.saturating_sub(LINE_BYTES));
    let to = text.floor_char_boundary((at + LINE_BYTES).min(text.len()));
    let start = text[from.min(at)..at].rfind('\n').map_or(from.min(at), |found| from + found + 1);
    let end = text[at..to].find('\n').map_or(to, |found| at + found);
    &text[start..end]
}

/// Up to `bytes` of text either side of `range`, cut inwards to character boundaries.
fn context<'t>(text: &'t str, range: &Range<usize>, bytes: usize) -> (&'t str, &'t str) {
    let inner = on_boundaries(text, range.clone());
    let left = text.ceil_char_boundary(inner.start.saturating_sub(bytes)).min(inner.start);
    let right = text.floor_char_boundary((inner.end + bytes).min(text.len())).max(inner.end);
    (&text[left..inner.start], &text[inner.end..right])
}

/// `range` widened to character boundaries: an ASCII regex may stop inside a character.
fn on_boundaries(text: &str, range: Range<usize>) -> Range<usize> {
    text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end)
}
