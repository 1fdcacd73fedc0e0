//! Rules that a trigger starts: they have no literal, and look at digits, long tokens or separators.
//!
//! The gate notes where such places stand. Rules that can be tried together are a group; the automaton of a group
//! (`shapes`) turns the text around its places into candidates.

use std::collections::BTreeMap;
use std::ops::Range;

use super::compile::CompiledRule;
use super::scan::{Budget, IsNew, ScanStop, Scope, Scratch};
use super::schema::Trigger;
use super::set::RuleSet;
use super::shapes::{Kind, Memory, Place, ShapeSet, Spot};
use super::window::Begin;

/// The separator of mail addresses. What stands before it is long and made of anything, so that rules which it starts
/// would make all others read on at every word.
const AT: &str = "@";

/// Bytes that are read between two looks at the budget.
const PIECE_BYTES: usize = 64 * 1024;

/// Places that the gate noted in one text. Each list is of one kind, in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Places {
    digits: Vec<Place>,
    tokens: Vec<Place>,
    separators: Vec<(u8, Vec<Place>)>,
}

impl Places {
    /// Notes a place; those of one kind, and of one separator, come in the order of the text.
    pub(super) fn note(&mut self, place: Place) {
        match place.kind {
            Kind::Digits(_) => self.digits.push(place),
            Kind::Token(_) => self.tokens.push(place),
            Kind::Separator(byte) => match self.separators.iter_mut().find(|(of, _)| *of == byte) {
                Some((_, places)) => places.push(place),
                None => self.separators.push((byte, vec![place])),
            },
        }
    }

    pub(super) fn clear(&mut self) {
        self.digits.clear();
        self.tokens.clear();
        self.separators.iter_mut().for_each(|(_, places)| places.clear());
    }

    /// Each list that is not empty.
    fn lists(&self) -> impl Iterator<Item = &[Place]> {
        let separators = self.separators.iter().map(|(_, places)| &**places);
        [&*self.digits, &*self.tokens].into_iter().chain(separators).filter(|list| !list.is_empty())
    }

    /// The lists in which places that start the rule may stand.
    fn of(&self, rule: &CompiledRule) -> impl Iterator<Item = &[Place]> {
        self.lists().filter(|list| match list[0].kind {
            Kind::Separator(_) => rule.starts_at(list[0].kind),
            kind => rule.def.trigger == Some(kind.trigger()),
        })
    }
}

/// How a group looks at the places of one kind.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// Fewest digits, or shortest token, that a rule asks for.
    least: usize,
    /// Bytes before a place at which a match may begin.
    before: usize,
    /// Bytes after a place at which a match may end.
    after: usize,
}

impl Look {
    fn widen(of: &mut Option<Self>, rule: &CompiledRule) {
        let (least, before, after) = (rule.trigger_min(), rule.shape().before, rule.shape().after);
        *of = Some(of.map_or(Self { least, before, after }, |other| Self {
            least: other.least.min(least),
            before: other.before.max(before),
            after: other.after.max(after),
        }));
    }

    /// Whether a place of its kind has as many digits, or is as long, as a rule asks for.
    #[inline]
    fn is_enough(&self, kind: Kind) -> bool {
        match kind {
            Kind::Digits(count) => count >= self.least,
            Kind::Token(bytes) => bytes >= self.least,
            Kind::Separator(_) => true,
        }
    }
}

/// Rules that are tried together.
#[derive(Debug)]
pub(super) struct Group {
    rules: Vec<u32>,
    /// Their patterns as one automaton, unless they are too large together.
    set: Option<ShapeSet>,
    digits: Option<Look>,
    tokens: Option<Look>,
    separators: Vec<(u8, Look)>,
    /// Longest match of a rule, in bytes.
    bytes_max: usize,
    /// Whether rules are tried where matches may begin, so that what follows a place needs no look of its own.
    is_anchored: bool,
}

impl Group {
    /// Groups all rules without a literal.
    pub(super) fn all(rules: &[CompiledRule]) -> Vec<Self> {
        let mut groups: BTreeMap<_, Vec<(u32, &CompiledRule)>> = BTreeMap::new();
        for (index, rule) in (0..).zip(rules).filter(|(_, rule)| rule.def.trigger.is_some()) {
            let key = (rule.def.separators == AT, rule.shape().begin == Begin::Anywhere);
            groups.entry(key).or_default().push((index, rule));
        }
        groups.into_values().map(|rules| Self::of(&rules)).collect()
    }

    fn of(rules: &[(u32, &CompiledRule)]) -> Self {
        let (mut digits, mut tokens, mut separators) = (None, None, [None; 128]);
        for (_, rule) in rules {
            match rule.def.trigger {
                Some(Trigger::Digits) => Look::widen(&mut digits, rule),
                Some(Trigger::Token) => Look::widen(&mut tokens, rule),
                Some(Trigger::Separator) | None => {
                    for byte in rule.def.separators.bytes() {
                        separators
                            .get_mut(usize::from(byte))
                            .into_iter()
                            .for_each(|of| Look::widen(of, rule));
                    }
                }
            }
        }
        let patterns = rules.iter().map(|(index, rule)| (*index, rule.shape().begin, &*rule.def.pattern));
        Self {
            set: ShapeSet::build(patterns),
            rules: rules.iter().map(|(index, _)| *index).collect(),
            bytes_max: rules.iter().map(|(_, rule)| rule.shape().after).max().unwrap_or_default(),
            is_anchored: rules.iter().all(|(_, rule)| rule.shape().begin != Begin::Anywhere),
            digits,
            tokens,
            separators: (0..).zip(separators).filter_map(|(byte, look)| Some((byte, look?))).collect(),
        }
    }

    /// How it looks at places of a kind, whatever their number of digits or their length.
    fn look_at(&self, kind: Kind) -> Option<Look> {
        match kind {
            Kind::Digits(_) => self.digits,
            Kind::Token(_) => self.tokens,
            Kind::Separator(byte) => {
                self.separators.iter().find(|(of, _)| *of == byte).map(|(_, look)| *look)
            }
        }
    }

    /// The text around the places that start a rule, joined where it overlaps; without those where no match can be new.
    fn windows(&self, places: &Places, is_new: Option<IsNew<'_>>, text_len: usize) -> Vec<Range<usize>> {
        let mut windows = Vec::new();
        for list in places.lists() {
            // All places of a list are of one kind.
            let Some(look @ Look { before, after, .. }) = self.look_at(list[0].kind) else { continue };
            let after_window = if self.is_anchored { 0 } else { after };
            for place in list.iter().filter(|place| look.is_enough(place.kind)) {
                let start = place.at.start.saturating_sub(before);
                let reach = start..(place.at.end + after.max(self.bytes_max)).min(text_len);
                if is_new.is_some_and(|is_new| !is_new(reach)) {
                    continue;
                }
                join(&mut windows, start..(place.at.end + after_window).min(text_len));
            }
        }
        // Each list is in order; what they cover together is few windows.
        windows.sort_unstable_by_key(|window| window.start);
        let mut joined = Vec::with_capacity(windows.len());
        windows.into_iter().for_each(|window| join(&mut joined, window));
        joined
    }
}

/// Adds a window that begins after all others, or in the last.
fn join(windows: &mut Vec<Range<usize>>, window: Range<usize>) {
    match windows.last_mut() {
        Some(last) if window.start <= last.end && window.start >= last.start => {
            last.end = last.end.max(window.end);
        }
        _ => windows.push(window),
    }
}

impl RuleSet {
    /// Turns places into candidates of rules without a literal: those of which a match begins or ends near a place, and may
    /// be new where `is_new` says what is.
    pub(super) fn places(
        &self,
        text: &str,
        scope: Scope,
        is_new: Option<IsNew<'_>>,
        scratch: &mut Scratch,
        budget: &Budget<'_>,
    ) -> Result<(), ScanStop> {
        if scratch.places.lists().next().is_none() {
            return Ok(());
        }
        let places = std::mem::take(&mut scratch.places);
        let groups = self.groups();
        scratch.shapes.resize_with(groups.len(), || None);
        let mut result = Ok(());
        for (at, group) in groups.iter().enumerate() {
            if result.is_ok() && group.rules.iter().any(|index| scope.admits(&self.rules[*index as usize])) {
                let windows = group.windows(&places, is_new, text.len());
                if !windows.is_empty() {
                    let mut memory = scratch.shapes[at].take();
                    let mut look =
                        Looking { set: self, group, places: &places, text, scope, is_new, scratch };
                    result = look.at_windows(&mut memory, windows, budget);
                    scratch.shapes[at] = memory;
                }
            }
        }
        scratch.places = places;
        result
    }
}

/// One group at work on one text.
struct Looking<'s, 't> {
    set: &'s RuleSet,
    group: &'s Group,
    places: &'t Places,
    text: &'t str,
    scope: Scope,
    is_new: Option<IsNew<'t>>,
    scratch: &'t mut Scratch,
}

impl Looking<'_, '_> {
    fn at_windows(
        &mut self,
        memory: &mut Option<Box<Memory>>,
        windows: Vec<Range<usize>>,
        budget: &Budget<'_>,
    ) -> Result<(), ScanStop> {
        let group = self.group;
        let Some(set) = &group.set else {
            self.every_place();
            return Ok(());
        };
        let memory = memory.get_or_insert_with(|| Box::new(set.create_memory()));
        for window in windows {
            // Where matches begin does not depend on how a window is cut.
            let piece_bytes = if group.is_anchored { PIECE_BYTES } else { window.len().max(1) };
            for start in window.clone().step_by(piece_bytes) {
                self.scratch.check(budget)?;
                let piece = start..window.end.min(start + piece_bytes);
                let text = self.text.as_bytes();
                let told =
                    set.spots(memory, text, piece, group.bytes_max, |rule, spot| self.spot(rule, spot));
                if told.is_err() {
                    self.every_place();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn spot(&mut self, index: u32, spot: Spot) {
        let rule = &self.set.rules[index as usize];
        if !self.scope.admits(rule) {
            return;
        }
        let shape = rule.shape();
        let len = self.text.len();
        let around = match spot {
            Spot::Begin(at) => at..(at + shape.after).min(len),
            Spot::End(at) => at.saturating_sub(shape.after)..(at + shape.after).min(len),
        };
        let may_be_new = self.is_new.is_none_or(|is_new| is_new(around.clone()));
        if may_be_new && self.places.of(rule).any(|places| is_started(rule, places, &around)) {
            self.scratch.add(index, matches!(spot, Spot::Begin(_)), around);
        }
    }

    /// Tries every rule of the group around every place that starts it.
    fn every_place(&mut self) {
        for index in &self.group.rules {
            let rule = &self.set.rules[*index as usize];
            if !self.scope.admits(rule) {
                continue;
            }
            let shape = rule.shape();
            for place in self.places.of(rule).flatten().filter(|place| rule.starts_at(place.kind)) {
                let before = place.at.start.saturating_sub(shape.before);
                self.scratch.add(*index, false, before..(place.at.end + shape.after).min(self.text.len()));
            }
        }
    }
}

/// Whether a place that starts `rule` touches `around`. `places` are in the order of the text.
fn is_started(rule: &CompiledRule, places: &[Place], around: &Range<usize>) -> bool {
    // Places of one kind never overlap, so only the last that begins before can reach in.
    let first = places.partition_point(|place| place.at.start < around.start);
    places[first.saturating_sub(1)..]
        .iter()
        .take_while(|place| place.at.start < around.end)
        .any(|place| place.at.end > around.start && rule.starts_at(place.kind))
}
