//! Which of overlapping findings stands.
//!
//! One key must not raise four alarms. Within a plugin, findings that overlap compete and one wins: the surer, then the
//! longer, then the one in plain sight, then the first by id. Injection findings compete only within their category,
//! because one sentence can carry several attacks. Personal data wholly inside a credential is part of the credential,
//! and so are digits inside a longer number that is certain: a bank account may hold what passes for a card.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use super::{Detected, INJECTION, PII, SECRETS};
use crate::decision::Severity;

/// Leaves one winner among findings that compete, in the order of their place in the text.
pub(super) fn resolve(mut found: Vec<Detected>) -> Vec<Detected> {
    if found.len() > 1 {
        found = drop_inside_certain(found);
        found.sort_by(|a, b| competition(a).cmp(&competition(b)).then_with(|| strength(a, b)));
        let mut kept: Vec<Detected> = Vec::with_capacity(found.len());
        let mut taken = Taken::default();
        let mut current: Option<(String, String)> = None;
        for one in found {
            let (plugin, key) = competition(&one);
            if current.as_ref().is_none_or(|(p, k)| p != plugin || k != key) {
                current = Some((plugin.to_owned(), key.to_owned()));
                taken = Taken::default();
            }
            if taken.claim(one.range.start, one.range.end) {
                kept.push(one);
            }
        }
        found = drop_pii_inside_secrets(kept);
    }
    found.sort_by(|a, b| {
        (a.range.start, a.range.end, &a.info.id).cmp(&(b.range.start, b.range.end, &b.info.id))
    });
    found
}

/// Findings with the same key compete.
fn competition(one: &Detected) -> (&str, &str) {
    let plugin = &*one.info.plugin;
    let key = if plugin == INJECTION { one.info.category.as_str() } else { "" };
    (plugin, key)
}

/// Stronger first.
fn strength(a: &Detected, b: &Detected) -> Ordering {
    b.info
        .score
        .total_cmp(&a.info.score)
        .then_with(|| b.range.len().cmp(&a.range.len()))
        .then_with(|| a.layers.iter().count().cmp(&b.layers.iter().count()))
        .then_with(|| a.range.start.cmp(&b.range.start))
        .then_with(|| a.info.id.cmp(&b.info.id))
}

/// Ranges already won, which never overlap.
#[derive(Default)]
struct Taken(BTreeMap<usize, usize>);

impl Taken {
    /// Takes `start..end` unless part of it is taken.
    fn claim(&mut self, start: usize, end: usize) -> bool {
        let is_free = self.0.range(..end).next_back().is_none_or(|(_, taken_end)| *taken_end <= start);
        if is_free {
            self.0.insert(start, end);
        }
        is_free
    }
}

/// Drops personal data wholly inside longer personal data that is certain and at least MEDIUM.
fn drop_inside_certain(found: Vec<Detected>) -> Vec<Detected> {
    let is_certain = |f: &&Detected| {
        &*f.info.plugin == PII && f.info.confidence >= 1.0 && f.info.severity >= Severity::Medium
    };
    let mut wide: Vec<Range<usize>> = found.iter().filter(is_certain).map(|f| f.range.clone()).collect();
    if wide.len() < 2 {
        return found;
    }
    // By start, the longest first; those inside an earlier one add nothing.
    wide.sort_by_key(|r| (r.start, std::cmp::Reverse(r.end)));
    let mut outer: Vec<Range<usize>> = Vec::with_capacity(wide.len());
    for range in wide {
        if outer.last().is_none_or(|last| range.end > last.end) {
            outer.push(range);
        }
    }
    // Starts and ends both grow, so the last one that begins at or before a finding is the one that reaches furthest.
    let is_inside = |f: &Detected| {
        let at = outer.partition_point(|r| r.start <= f.range.start);
        at.checked_sub(1)
            .and_then(|at| outer.get(at))
            .is_some_and(|r| r.end >= f.range.end && r.len() > f.range.len())
    };
    found.into_iter().filter(|f| &*f.info.plugin != PII || !is_inside(f)).collect()
}

fn drop_pii_inside_secrets(found: Vec<Detected>) -> Vec<Detected> {
    let secrets: BTreeMap<usize, usize> =
        found.iter().filter(|f| &*f.info.plugin == SECRETS).map(|f| (f.range.start, f.range.end)).collect();
    if secrets.is_empty() {
        return found;
    }
    let is_inside = |f: &Detected| {
        secrets.range(..=f.range.start).next_back().is_some_and(|(_, end)| *end >= f.range.end)
    };
    found.into_iter().filter(|f| &*f.info.plugin != PII || !is_inside(f)).collect()
}
