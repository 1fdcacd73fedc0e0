//! One rule's regex at work on one text: windows are searched, and what is found must satisfy the rule's own conditions.
//!
//! A match that a condition rejects is retried one byte later, only so often and over so many bytes; one that an exclusion
//! drops is not where the rule says so.

use std::collections::HashSet;
use std::ops::Range;

use regex_automata::{Anchored, Input};

use super::branches::{Known, RuleCaches, Searched, of_whole};
use super::compile::{self, CompiledRule};
use super::lazy::LazyRegex;
use super::nearby;
use super::placeholder;
use super::scan::{Budget, Match, ScanStop};
use super::{PII, SECRETS};
use crate::text::Flow;

/// Bytes either side of a match that `exclude_before`, `exclude_after` and validators see.
const CONTEXT_BYTES: usize = 64;
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
/// Matches without a context word that are told, of one rule.
const LACKING_MAX: usize = 64;
/// Bytes after a value that its pattern may read to see where it ends, and that the next match may begin with.
const DELIMITER_BYTES_MAX: usize = 4;
/// Searches of one rule between two looks at the clock.
const SEARCHES_UNTIMED: u32 = 32;
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

/// A text, and the same in lower case.
#[derive(Clone, Copy)]
pub(super) struct Reading<'t> {
    pub text: &'t str,
    pub lower: &'t [u8],
}

/// What a rule is asked about.
#[derive(Clone, Copy)]
pub(super) struct Texts<'t> {
    /// The text as it was sent.
    pub sent: Reading<'t>,
    /// The same with lines that go on, where that is another one and the rule may read over line breaks.
    pub flow: Option<(&'t Flow, Reading<'t>)>,
}

/// Which of these texts is searched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// The text as it was sent.
    Sent,
    /// Both at once, for a pattern that matches the text in which lines go on wherever it matches the other: up to a match
    /// over a line break, from which on they may differ.
    Both,
    /// The text in which lines go on, for what is found over a line break.
    OverBreaks,
}

/// What one pass came to.
struct Passed {
    /// Where a candidate that is tried at its beginning only was done with.
    to: usize,
    /// Whether it stopped at a match over a line break.
    met_break: bool,
}

/// What the rule's own conditions say of a match.
enum Verdict {
    Accepted,
    /// An exclusion dropped it, and with it everything up to there.
    Excluded(usize),
    /// Something else did, which another match that begins inside of it may satisfy.
    Rejected,
}

/// One rule's regex at work on one text.
pub(super) struct Search<'s, 't> {
    rule: &'s CompiledRule,
    index: u32,
    texts: Texts<'t>,
    /// What is read of them now.
    reading: Reading<'t>,
    caches: &'s mut RuleCaches,
    /// What branches of the pattern matched in the window that is searched now.
    known: Known,
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
    /// The match that an exclusion dropped last, in the text that was sent and in the one in which lines go on.
    excluded: [Range<usize>; 2],
    /// Where matches were rejected for lack of a context word near them, of a rule that no such word starts.
    lacking: Vec<usize>,
}

impl<'s, 't> Search<'s, 't> {
    /// A search for a rule, by its index, in a text, with the caches of that rule, as long as the budget lasts and it costs no more than told.
    pub(super) fn new(
        (index, rule): (u32, &'s CompiledRule),
        texts: Texts<'t>,
        caches: &'s mut RuleCaches,
        (budget, cost_max): (&'s Budget<'s>, u64),
    ) -> Self {
        Self {
            rule,
            index,
            texts,
            reading: texts.sent,
            caches,
            known: Known::new(),
            budget,
            retries: RETRIES_MIN + texts.sent.text.len() / RETRY_EVERY_BYTES,
            retried_bytes: RETRIED_BYTES_MIN + texts.sent.text.len().saturating_mul(RETRIED_FACTOR_MAX),
            cost: 0,
            cost_max,
            searches: 0,
            excluded: [0..0, 0..0],
            lacking: Vec::new(),
        }
    }

    /// What it cost so far.
    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    /// Where matches were rejected for lack of a context word near them, of a rule that no such word starts; the first of them.
    pub(super) fn lacking(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.lacking)
    }

    /// Pushes every match around the candidates: in windows, in order, or at the beginning of each of them only. Where lines go
    /// on, what is found over a line break is found as well.
    ///
    /// # Errors
    /// [`ScanStop`] when the budget is spent, or it cost all that it may.
    pub(super) fn find_all(
        &mut self,
        windows: &[Range<usize>],
        is_anchored: bool,
        matches: &mut Vec<Match>,
    ) -> Result<(), ScanStop> {
        // Candidates that begin inside of what was found at another one are done with, in either text.
        let (mut sent_to, mut flow_to) = (0, 0);
        for window in windows {
            let is_over = |to: usize| is_anchored && window.start < to;
            if !self.goes_on(window) {
                if !is_over(sent_to) {
                    sent_to = sent_to.max(self.pass(Pass::Sent, window, is_anchored, matches)?.to);
                }
                continue;
            }
            let first = matches.len();
            if !self.rule.shape().minds_breaks && !is_over(sent_to.max(flow_to)) {
                let retries = (self.retries, self.retried_bytes);
                let done = self.pass(Pass::Both, window, is_anchored, matches)?;
                if !done.met_break {
                    (sent_to, flow_to) = (sent_to.max(done.to), flow_to.max(done.to));
                    continue;
                }
                // What was rejected on the way is rejected again.
                (self.retries, self.retried_bytes) = retries;
                matches.truncate(first);
            }
            if !is_over(sent_to) {
                sent_to = sent_to.max(self.pass(Pass::Sent, window, is_anchored, matches)?.to);
            }
            let second = matches.len();
            if !is_over(flow_to) {
                flow_to = flow_to.max(self.pass(Pass::OverBreaks, window, is_anchored, matches)?.to);
            }
            // Where a pattern takes white space of any kind, both find the same.
            let over_breaks = matches.split_off(second);
            let known: HashSet<Range<usize>> =
                matches[first..].iter().map(|found| found.range.clone()).collect();
            matches.extend(over_breaks.into_iter().filter(|found| !known.contains(&found.range)));
        }
        Ok(())
    }

    /// Whether a line goes on in a range.
    fn goes_on(&self, range: &Range<usize>) -> bool {
        self.texts.flow.is_some_and(|(flow, _)| flow.differs_in(range))
    }

    /// Pushes what one pass finds in a window, or at the beginning of it only.
    fn pass(
        &mut self,
        pass: Pass,
        window: &Range<usize>,
        is_anchored: bool,
        matches: &mut Vec<Match>,
    ) -> Result<Passed, ScanStop> {
        let sent = self.texts.sent;
        let flow = self.texts.flow.map_or(sent, |(_, flow)| flow);
        let (searched, judged) = match pass {
            Pass::Sent => (sent, sent),
            Pass::Both => (flow, sent),
            Pass::OverBreaks => (flow, flow),
        };
        let anchored = if is_anchored { Anchored::Yes } else { Anchored::No };
        let mut passed = Passed { to: 0, met_break: false };
        let mut at = window.start;
        self.known.clear();
        while at < window.end {
            self.check_cost()?;
            self.reading = searched;
            let Some(found) = self.find(at..window.end, anchored) else { break };
            let is_over_break = pass != Pass::Sent && self.goes_on(&found);
            if is_over_break && pass == Pass::Both {
                passed.met_break = true;
                break;
            }
            if !is_over_break && pass == Pass::OverBreaks {
                at = found.end;
            } else if let Some(end) = self.excluded_until(pass, &found) {
                at = end.max(found.start + 1);
            } else {
                self.reading = judged;
                // What calls for a look at a command confirms nothing: another may begin inside of it.
                let may_hold_others = !is_anchored && !self.rule.def.commands.is_empty();
                at = match self.accept(&found, matches) {
                    Verdict::Accepted if !may_hold_others => {
                        let span = matches.last().map_or(found.clone(), |last| last.range.clone());
                        behind(&found, &span)
                    }
                    Verdict::Excluded(to) => {
                        self.exclude(pass, found.start..to);
                        to
                    }
                    _ if (is_anchored || self.retries > 0) && self.may_retry(&found) => match is_anchored {
                        true => window.start,
                        false => {
                            self.retries -= 1;
                            found.start + 1
                        }
                    },
                    _ => found.end,
                };
            }
            if is_anchored {
                passed.to = at;
                break;
            }
        }
        Ok(passed)
    }

    /// Remembers that an exclusion dropped what stands there.
    fn exclude(&mut self, pass: Pass, range: Range<usize>) {
        let [sent, flow] = &mut self.excluded;
        if pass != Pass::OverBreaks {
            *sent = range.clone();
        }
        if pass != Pass::Sent {
            *flow = range;
        }
    }

    /// The end of what an exclusion dropped last, where a match overlaps it.
    fn excluded_until(&self, pass: Pass, found: &Range<usize>) -> Option<usize> {
        let excluded = &self.excluded[usize::from(pass == Pass::OverBreaks)];
        (found.start < excluded.end && excluded.start < found.end).then_some(excluded.end)
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
        let bytes = self.reading.text.as_bytes();
        let edge = window.end;
        let input = Input::new(bytes).range(window).anchored(anchored);
        let from = input.start();
        let is_anchored = anchored != Anchored::No;
        let read = |to: usize, cost: u64| cost * (to - from) as u64;
        let size = self.rule.def.pattern.len() as u64;
        self.cost += LOOK_COST;
        if !self.rule.needs.may_match(&self.reading.lower[from..edge]) {
            self.cost += read(edge, NEED_COST);
            return None;
        }
        let parse = || compile::parse(&self.rule.def.pattern).ok();
        let regex = &self.rule.regex;
        let found = match self.rule.branches.find(regex, parse, &input, self.caches, &mut self.known) {
            Searched::Refused => {
                self.cost += read(edge, WINDOW_COST);
                return None;
            }
            Searched::Found(found) => found,
        };
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
        let cache = of_whole(self.caches, regex);
        Some(regex.search_with(cache, &input).map_or(found, |m| m.range()))
    }

    /// Pushes the match unless the rule's own conditions reject it.
    fn accept(&mut self, whole: &Range<usize>, matches: &mut Vec<Match>) -> Verdict {
        self.cost += MATCH_COST + MATCH_BYTE_COST * whole.len() as u64;
        let rule = self.rule;
        let is_in = |regexes: &[LazyRegex], text: &str| regexes.iter().any(|regex| regex.is_match(text));
        if is_in(&rule.exclude_match, &self.reading.text[on_boundaries(self.reading.text, whole.clone())])
            || (!rule.exclude_line.is_empty()
                && is_in(&rule.exclude_line, line_around(self.reading.text, whole.start)))
        {
            let value = match rule.def.exclude_overlaps {
                true => self.value_of(whole).map(|(_, span)| span),
                false => None,
            };
            return self.excluded(whole, &value.unwrap_or_else(|| whole.clone()));
        }
        // A context word that a view laid bare makes a match new that stands beside it.
        let mut read = whole.clone();
        if self.is_excluded_by_surroundings(whole) {
            return Verdict::Rejected;
        }
        if let Some(near) = &rule.near {
            let text = self.reading.text;
            let inner = on_boundaries(text, whole.clone());
            let from = nearby::before(text.as_bytes(), inner.start, near.distance);
            let to = nearby::after(text.as_bytes(), inner.end, near.distance);
            let (left, within, right) =
                (&text[from..inner.start], &text[inner.clone()], &text[inner.end..to]);
            let word = if near.inside_words {
                self.near(&near.words, from, &text[from..to])
            } else {
                let sides = [(from, left), (inner.end, right), (inner.start, within)];
                sides.into_iter().find_map(|(start, side)| self.near(&near.words, start, side))
            };
            let Some(word) = word else {
                if rule.reads_columns && rule.shape().beside == 0 && self.lacking.len() < LACKING_MAX {
                    self.lacking.push(whole.start);
                }
                return Verdict::Rejected;
            };
            read = read.start.min(word.start)..read.end.max(word.end);
        }
        // Finding the value takes longer than all that is asked about the whole.
        let Some((value, span)) = self.value_of(whole) else { return Verdict::Rejected };
        let value = on_boundaries(self.reading.text, value);
        let text = &self.reading.text[value.clone()];
        // What was taken out already is no value.
        let may_be_taken_out = text.starts_with('[') || matches!(&*rule.info.plugin, PII | SECRETS);
        if may_be_taken_out && placeholder::around(self.reading.text.as_bytes(), value.clone()).is_some() {
            return Verdict::Rejected;
        }
        if is_in(&rule.exclude, text) || self.is_excluded_together(whole, text) {
            return self.excluded(whole, &span);
        }
        if !rule.validators.is_empty() {
            let (before, after) = context(self.reading.text, &value, CONTEXT_BYTES);
            if !rule.validators.iter().all(|v| v.accepts(text, before, after)) {
                return Verdict::Rejected;
            }
        }
        let text = self.reading.text;
        let (range, read) = (on_boundaries(text, span), on_boundaries(text, read));
        matches.push(Match { rule: self.index, range, read });
        Verdict::Accepted
    }

    /// Whether what stands before or after a match drops it, as it was sent or with lines that go on.
    fn is_excluded_by_surroundings(&self, whole: &Range<usize>) -> bool {
        let (before, after) = (self.rule.exclude_before.as_ref(), self.rule.exclude_after.as_ref());
        if before.is_none() && after.is_none() {
            return false;
        }
        let around = whole.start.saturating_sub(CONTEXT_BYTES)..whole.end + CONTEXT_BYTES;
        let flow = self.texts.flow.filter(|(flow, _)| flow.differs_in(&around));
        let texts = [Some(self.reading.text), flow.map(|(_, reading)| reading.text)];
        texts.into_iter().flatten().any(|text| {
            let (left, right) = context(text, whole, CONTEXT_BYTES);
            before.is_some_and(|regex| regex.is_match(left))
                || after.is_some_and(|regex| regex.is_match(right))
        })
    }

    /// Whether all conditions of one list hold for a match and its value.
    fn is_excluded_together(&self, whole: &Range<usize>, value: &str) -> bool {
        let holds = |regexes: &[LazyRegex], text: &str| {
            regexes.is_empty() || regexes.iter().any(|regex| regex.is_match(text))
        };
        let text = self.reading.text;
        let is_met = |one: &compile::Condition| {
            holds(&one.value, value)
                && (one.whole.is_empty() || holds(&one.whole, &text[on_boundaries(text, whole.clone())]))
                && (one.line.is_empty() || holds(&one.line, line_around(text, whole.start)))
        };
        self.rule.exclude_all.iter().any(|all| all.iter().all(is_met))
    }

    /// What becomes of a match that an exclusion dropped.
    fn excluded(&self, whole: &Range<usize>, value: &Range<usize>) -> Verdict {
        match self.rule.def.exclude_overlaps {
            true => Verdict::Excluded(behind(whole, value)),
            false => Verdict::Rejected,
        }
    }

    /// Where a context word stands in the part of the text that begins at `start`, but for the names of placeholders.
    fn near(&self, words: &LazyRegex, start: usize, side: &str) -> Option<Range<usize>> {
        let mut found = words.find_iter(side).map(|found| start + found.start()..start + found.end());
        found.find(|word| placeholder::around(self.reading.text.as_bytes(), word.clone()).is_none())
    }

    /// Ranges of the groups `value` and `span`. Without `value` the whole match stands for it, without `span` the value; of several
    /// groups for values the first that matched something counts.
    fn value_of(&mut self, whole: &Range<usize>) -> Option<(Range<usize>, Range<usize>)> {
        let shape = self.rule.shape();
        if shape.value_groups.is_empty() && shape.span_group.is_none() {
            return Some((whole.clone(), whole.clone()));
        }
        let regex = &self.rule.regex;
        let cache = of_whole(self.caches, regex);
        let mut captures = regex.create_captures();
        let input = Input::new(self.reading.text.as_bytes()).range(whole.clone()).anchored(Anchored::Yes);
        regex.search_captures_with(cache, &input, &mut captures);
        let something =
            |group: usize| captures.get_group(group).map(|at| at.range()).filter(|at| !at.is_empty());
        let value = match &shape.value_groups[..] {
            [] => whole.clone(),
            groups => groups.iter().find_map(|group| something(*group))?,
        };
        let span = shape.span_group.and_then(something).unwrap_or_else(|| value.clone());
        Some((value, span))
    }
}

/// Where the search goes on behind a match that was accepted or excluded: behind the value, when the pattern read no more
/// than a delimiter after it, which may be the one before the next value; else behind the whole match.
fn behind(whole: &Range<usize>, value: &Range<usize>) -> usize {
    let end = value.end;
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
pub(super) fn on_boundaries(text: &str, range: Range<usize>) -> Range<usize> {
    text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end)
}
