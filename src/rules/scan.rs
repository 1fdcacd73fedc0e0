//! One text through the set: gate, then regexes on the candidates only, then validators.
//!
//! Linear in the text for any input: the gate reads each byte once, windows of one rule are merged before its regex
//! reads them, and a match that a validator rejects is retried one byte later only a bounded number of times.

use std::ops::Range;

use super::caches::{Caches, Forgetful};
use super::compile::{CompiledRule, Shape};
use super::gate::{Hints, Sink};
use super::nearby;
use super::phrases::{self, Before};
use super::schema::{Role, Surface};
use super::search::{Reading, Search, Texts, on_boundaries};
use super::set::RuleSet;
use super::shapes::{Memory, Place};
use super::triggered::Places;
use super::window::Begin;
use crate::text::Flow;

/// Bytes the gate reads between two looks at the budget.
const SLICE_BYTES: usize = 16 * 1024;
/// Candidates of a prefix rule that are tried one by one in any case. Most are over after a few bytes, while a merged window
/// is read to its end, by an automaton that has to follow every word it could begin with at once.
const POINTS_MAX: usize = 64;
/// More than these are tried one by one as long as their windows together have at most so many times the bytes of the text;
/// beyond it windows are merged.
const POINTS_FACTOR_MAX: usize = 64;
/// How far from what a view changes it is read in any case, in bytes, where rules are started by digits, tokens or separators;
/// farther where one that starts at digits or separators is longer. A token is read whole, however long it is.
pub(super) const TRIGGERED_REACH: usize = 512;
/// How far places where disguised phrases show through may lie apart to be noted as one, in bytes.
const HINTS_JOIN: usize = 512;
/// Bytes that are kept for texts in lower case from one text to the next.
const LOWER_BYTES_KEPT: usize = 256 * 1024;
/// What work costs, in nanoseconds of one processor, about (see `search`): a literal of a rule, the first word of a phrase, and
/// a place of digits, tokens or separators and each byte of it.
const LITERAL_COST: u64 = 30;
const PHRASE_COST: u64 = 250;
const PLACE_COST: u64 = 100;
const PLACE_BYTE_COST: u64 = 30;
/// What rules may cost together until the clock is asked again.
const CLOCK_COST: u64 = 20_000;

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

    /// # Errors
    /// [`ScanStop`] once the time is up.
    pub(crate) fn check(&self) -> Result<(), ScanStop> {
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
    /// What was read to tell: the whole of what the pattern matched and a context word near it.
    pub read: Range<usize>,
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

/// Where context shows in a text: what rules find by what stands beside it may stand below, in a table.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Where literals of rules stand that name what they find, nearly in order.
    pub words: Vec<usize>,
    /// Where matches stand that no context word is near.
    pub lacking: Vec<usize>,
    /// Whether there was any such literal since [`Scratch::begin`].
    pub was_seen: bool,
}

impl Context {
    fn clear(&mut self) {
        self.words.clear();
        self.lacking.clear();
    }

    fn note(&mut self, at: usize) {
        self.was_seen = true;
        // Many rules share a literal.
        if self.words.last() != Some(&at) {
            self.words.push(at);
        }
    }
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

/// Memory a scan needs: lazily built automaton states and candidate lists. Reused from text to text.
pub struct Scratch {
    caches: Caches,
    candidates: Vec<Candidates>,
    touched: Vec<u32>,
    /// The text in lower case, where rules ask for it, and the same with lines that go on.
    lower: Vec<u8>,
    lower_flow: Vec<u8>,
    /// Most bytes that the windows of a rule may have together to be tried one by one.
    points_bytes_max: usize,
    /// What regexes cost since it was last taken.
    cost: u64,
    /// Most that they may cost until then.
    cost_max: u64,
    /// How far matches of rules that were seen since reach from their literals, by the bit of their plugin.
    reach: [usize; u32::BITS as usize],
    /// Where context shows in the text that was scanned last.
    context: Context,
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
        self.context.clear();
        self.context.was_seen = false;
    }

    /// Where context shows in the text that was scanned last.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Whether patterns cost all that they may.
    pub fn is_spent(&self) -> bool {
        self.cost >= self.cost_max
    }

    pub(super) fn check(&self, budget: &Budget<'_>) -> Result<(), ScanStop> {
        if self.is_spent() { Err(ScanStop) } else { budget.check() }
    }

    /// Writes the text in lower case, if a rule is to be asked about it.
    fn read_lower(&mut self, text: &str, flow: Option<&Flow>) {
        let is_asked = !self.touched.is_empty();
        for (lower, text) in [(&mut self.lower, Some(text)), (&mut self.lower_flow, flow.map(Flow::text))] {
            lower.clear();
            lower.shrink_to(LOWER_BYTES_KEPT);
            if let Some(text) = text.filter(|_| is_asked) {
                lower.extend_from_slice(text.as_bytes());
                lower.make_ascii_lowercase();
            }
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
            caches: Caches::new(self.rules.len()),
            candidates: (0..self.rules.len()).map(|_| Candidates::default()).collect(),
            touched: Vec::new(),
            lower: Vec::new(),
            lower_flow: Vec::new(),
            points_bytes_max: 0,
            cost: 0,
            cost_max: u64::MAX,
            reach: [0; u32::BITS as usize],
            context: Context::default(),
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
        self.gate(u32::MAX).literals((text, text), slice, &mut Seen(found));
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
        let confirmed = self.confirm((text, None), scratch, &Budget::UNLIMITED, matches);
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
        scratch.context.clear();
        let is_new = new.map(|new| new.is_new);
        let all = 0..text.len();
        let flow = if self.is_about_injection(scope.plugins) { Flow::of(text) } else { None };
        let flow = flow.as_ref();
        let stretches = new.map_or(std::slice::from_ref(&all), |new| new.stretches);
        let mut collect = Collect {
            set: self,
            scope,
            scratch,
            hints: Hints::default(),
            text: text.as_bytes(),
            flow: flow.map_or(text, Flow::text).as_bytes(),
            is_new,
            later,
            phrases: Vec::new(),
            before: Before::default(),
        };
        let gated = stretches.iter().try_for_each(|stretch| collect.gate(stretch.clone(), budget));
        let hints = std::mem::take(&mut collect.hints);
        let on_text = |found: Match| {
            let range = on_boundaries(text, found.range);
            Match { read: range.clone(), range, ..found }
        };
        // What speaks against a phrase may stand before the end of a line, or go on over it.
        let is_admitted = |found: &Match| {
            flow.is_none_or(|flow| self.rules[found.rule as usize].admits_phrase(flow.text(), &found.range))
        };
        matches.extend(collect.phrases.into_iter().map(on_text).filter(is_admitted));
        let result = gated
            .and_then(|()| self.places(text, scope, is_new, scratch, budget))
            .and_then(|()| self.confirm((text, flow), scratch, budget, matches));
        scratch.places.clear();
        scratch.forget_candidates();
        result.map(|()| hints)
    }

    /// Asks the patterns of rules around their literals, of injection also in the text in which lines go on.
    fn confirm(
        &self,
        (text, flow): (&str, Option<&Flow>),
        scratch: &mut Scratch,
        budget: &Budget<'_>,
        matches: &mut Vec<Match>,
    ) -> Result<(), ScanStop> {
        scratch.touched.sort_unstable();
        scratch.read_lower(text, flow);
        // Asking the clock takes longer than most rules do.
        let mut next_look = scratch.cost;
        for index in &scratch.touched {
            if scratch.cost >= scratch.cost_max {
                return Err(ScanStop);
            }
            if scratch.cost >= next_look {
                budget.check()?;
                next_look = scratch.cost + CLOCK_COST;
            }
            let index = *index as usize;
            let rule = &self.rules[index];
            let candidates = &mut scratch.candidates[index];
            settle(candidates, scratch.points_bytes_max);
            let flow = flow.filter(|_| &*rule.info.plugin == super::INJECTION);
            let (cost, lacking, result) = scratch.caches.with_several(index, |caches| {
                let cost_max = scratch.cost_max - scratch.cost;
                let texts = Texts {
                    sent: Reading { text, lower: &scratch.lower },
                    flow: flow.map(|flow| (flow, Reading { text: flow.text(), lower: &scratch.lower_flow })),
                };
                let mut search = Search::new((index as u32, rule), texts, caches, (budget, cost_max));
                let result = search.find_all(&candidates.windows, candidates.anchored, matches);
                (search.cost(), search.lacking(), result)
            });
            scratch.cost += cost;
            scratch.context.lacking.extend(lacking);
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
    /// The same with lines that go on, in which literals are looked for and phrases are read.
    flow: &'r [u8],
    /// Whether a place may hold what another view of the text does not; none where every place may.
    is_new: Option<IsNew<'r>>,
    /// Where to note the literals of rules for any command; none where those are asked like all others.
    later: Option<&'s mut Vec<Later>>,
    /// Matches of phrases, which are made as their anchors are seen.
    phrases: Vec<Match>,
    /// What was read before the last of these anchors.
    before: Before<'r>,
}

impl Collect<'_, '_> {
    fn gate(&mut self, stretch: Range<usize>, budget: &Budget<'_>) -> Result<(), ScanStop> {
        let gate = self.set.gate(self.scope.plugins);
        let mut start = stretch.start;
        while start < stretch.end {
            let end = (start + SLICE_BYTES).min(stretch.end);
            gate.literals((self.text, self.flow), start..end, self);
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
            let found = phrases.find(self.flow, &at, &mut self.before);
            self.phrases.extend(found.map(|range| Match { rule: index, read: range.clone(), range }));
            return;
        }
        if let Some(later) = self.later.as_mut().filter(|_| rule.def.any_command) {
            later.push(Later { rule: index, at });
            return;
        }
        if rule.reads_columns {
            self.scratch.context.note(at.start);
        }
        let shape = rule.shape();
        let window = window_at(shape, self.text, &at);
        let reach = &mut self.scratch.reach[rule.plugin_bit.trailing_zeros() as usize % u32::BITS as usize];
        let wide = window.as_ref().map_or(0, |window| (at.start - window.start).max(window.end - at.start));
        *reach = shape.before.max(shape.after).max(wide).max(*reach);
        let Some(window) = window else { return };
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
    // What stands beside it may be as many characters away.
    let (left, right) = match shape.beside {
        0 => (literal.start, literal.start),
        chars => (nearby::before(text, literal.start, chars), nearby::after(text, literal.start, chars)),
    };
    let from = left.saturating_sub(shape.before - shape.beside);
    let window = from..(right + shape.after - shape.beside).min(text.len());
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
