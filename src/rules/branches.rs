//! A pattern as its branches, each searched by itself and only where it may match.
//!
//! One automaton for `you\b[^.]*?\bwithout rules|even if\b[^.]*?\bharmful` remembers which branches have begun, and in which
//! order: the product of what each would have to remember, which no two texts share, so that states are made again and again.
//! Automata of single branches stay small. Of each branch its rarest part is looked for first (`pieces`), then its relaxed form
//! (`relax`), and only those that neither refuses are matched.
//!
//! Invariant: what is found is what the whole pattern finds: the match that begins first, of the branch that is written first.

use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::meta::{Cache, Regex};
use regex_automata::{Anchored, Input};
use regex_syntax::hir::{Hir, HirKind};

use super::compile;
use super::lazy::LazyRegex;
use super::pieces;
use super::relax;

/// Most branches that are searched by themselves.
const BRANCHES_MAX: usize = 12;
/// Most bytes of lazily built states of what is asked before a branch.
const STATES_BYTES_MAX: usize = 512 * 1024;
/// Caches of one branch: of its piece, of its relaxed form, and its own.
const CACHES: usize = 3;

/// What the automata of one rule remember, made as they are needed. The first is that of the whole pattern.
pub(super) type RuleCaches = Vec<Option<Box<Cache>>>;

/// The branches of one rule's pattern, made when they are first asked.
#[derive(Debug, Default)]
pub(super) struct Branches(OnceLock<Box<[Branch]>>);

/// Whether a pattern was searched, and what it found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Searched {
    /// It cannot match there.
    Refused,
    Found(Option<Range<usize>>),
}

#[derive(Debug)]
struct Branch {
    piece: Option<Regex>,
    relaxed: Option<Regex>,
    /// None where it is the whole pattern.
    own: Option<Own>,
}

/// A branch that is one of several.
#[derive(Debug)]
struct Own {
    hir: Hir,
    regex: OnceLock<Option<Regex>>,
}

impl Branches {
    /// Makes them of a pattern that was read for something else, as reading one takes longer than this.
    pub(super) fn make(&self, hir: &Hir) {
        self.0.get_or_init(|| read(hir));
    }

    /// The match that `whole`, read by `parse`, finds in a place of a text.
    pub(super) fn find(
        &self,
        whole: &LazyRegex,
        parse: impl FnOnce() -> Option<Hir>,
        input: &Input<'_>,
        caches: &mut RuleCaches,
    ) -> Searched {
        let branches = self.0.get_or_init(|| parse().map(|hir| read(&hir)).unwrap_or_default());
        caches.resize_with(1 + CACHES * branches.len(), || None);
        let (of_whole, of_branches) = caches.split_first_mut().expect("the whole pattern has one");
        let mut searched = if branches.is_empty() { None } else { Some(Searched::Refused) };
        for (branch, caches) in branches.iter().zip(of_branches.chunks_mut(CACHES)) {
            let [of_piece, of_relaxed, of_own] = caches else { unreachable!("chunks of three") };
            if !branch.may_match(input, of_piece, of_relaxed) {
                continue;
            }
            let Some(own) = &branch.own else {
                searched = None;
                break;
            };
            let Some(regex) = own.regex() else {
                searched = None;
                break;
            };
            let found = find(regex, input, of_own);
            let best = match searched.take() {
                Some(Searched::Found(best)) => best,
                _ => None,
            };
            searched = Some(Searched::Found(match (best, found) {
                // Of two that begin at the same place, the one that is written first is it.
                (Some(best), Some(found)) => Some(if found.start < best.start { found } else { best }),
                (best, found) => best.or(found),
            }));
        }
        searched.unwrap_or_else(|| Searched::Found(find(whole, input, of_whole)))
    }
}

/// The cache of the whole pattern.
pub(super) fn of_whole<'c>(caches: &'c mut RuleCaches, whole: &Regex) -> &'c mut Cache {
    caches.resize_with(caches.len().max(1), || None);
    caches[0].get_or_insert_with(|| Box::new(whole.create_cache()))
}

fn find(regex: &Regex, input: &Input<'_>, cache: &mut Option<Box<Cache>>) -> Option<Range<usize>> {
    let cache = cache.get_or_insert_with(|| Box::new(regex.create_cache()));
    regex.search_with(cache, input).map(|found| found.range())
}

impl Own {
    fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| compile::build_hir(&self.hir).ok()).as_ref()
    }
}

impl Branch {
    fn new(hir: &Hir, is_one_of_several: bool) -> Self {
        let compiled = |hir: Hir| relax::compile(&hir, STATES_BYTES_MAX).ok();
        Self {
            piece: pieces::piece(hir).and_then(compiled),
            relaxed: relax::relaxed(hir).and_then(compiled),
            own: is_one_of_several.then(|| Own { hir: hir.clone(), regex: OnceLock::new() }),
        }
    }

    /// Whether it may match in a place of a text. False is certain.
    fn may_match(
        &self,
        input: &Input<'_>,
        of_piece: &mut Option<Box<Cache>>,
        of_relaxed: &mut Option<Box<Cache>>,
    ) -> bool {
        let matches = |look: &Option<Regex>, cache: &mut Option<Box<Cache>>, anchored: Anchored| {
            let Some(look) = look else { return true };
            let cache = cache.get_or_insert_with(|| Box::new(look.create_cache()));
            look.search_half_with(cache, &input.clone().anchored(anchored).earliest(true)).is_some()
        };
        // A piece stands anywhere in a match.
        matches(&self.piece, of_piece, Anchored::No)
            && matches(&self.relaxed, of_relaxed, input.get_anchored())
    }
}

/// The branches of a pattern. One alone is the whole pattern.
fn read(hir: &Hir) -> Box<[Branch]> {
    let several = of(hir).filter(|all| all.len() <= BRANCHES_MAX);
    match several {
        Some(all) => all.iter().map(|branch| Branch::new(branch, true)).collect(),
        None => Box::new([Branch::new(hir, false)]),
    }
}

/// The branches of a pattern in the order in which they are written, those without a gap that stand side by side as one; none
/// where it has but one, or none with a gap.
fn of(hir: &Hir) -> Option<Vec<Hir>> {
    if !pieces::has_gap(hir) {
        return None;
    }
    let mut all: Vec<(Vec<Hir>, bool)> = Vec::new();
    for branch in distributed(hir) {
        let has_gap = pieces::has_gap(&branch);
        match all.last_mut() {
            Some((together, false)) if !has_gap => together.push(branch),
            _ => all.push((Vec::from([branch]), has_gap)),
        }
    }
    (all.len() > 1).then(|| all.into_iter().map(|(together, _)| Hir::alternation(together)).collect())
}

/// What stands between the bars of a pattern, with what stands before and after all of them, as far as that can be read in one
/// way only.
fn distributed(hir: &Hir) -> Vec<Hir> {
    match hir.kind() {
        HirKind::Alternation(branches) => branches.iter().flat_map(distributed).collect(),
        HirKind::Concat(parts) => {
            let is_plain = |part: &Hir| {
                matches!(part.kind(), HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_))
            };
            let mut others = parts.iter().enumerate().filter(|(_, part)| !is_plain(part));
            let (Some((at, only)), None) = (others.next(), others.next()) else {
                return Vec::from([hir.clone()]);
            };
            let around = |branch: Hir| {
                let parts =
                    parts[..at].iter().cloned().chain([branch]).chain(parts[at + 1..].iter().cloned());
                Hir::concat(parts.collect())
            };
            distributed(only).into_iter().map(around).collect()
        }
        _ => Vec::from([hir.clone()]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn branches(pattern: &str) -> usize {
        of(&compile::parse(pattern).expect("test patterns are valid")).map_or(1, |all| all.len())
    }

    #[test]
    fn branches_are_told_apart_where_gaps_stand_in_them() {
        for (pattern, count) in [
            ("abc|abd", 1),
            ("you.*rules", 1),
            ("you.*rules|even if.*harm", 2),
            ("you.*rules|a|b|even if.*harm|c", 4),
            (r"\b(?:you.*rules|even if.*harm)\b", 2),
            (r"(?i)\b(?:you.*rules|even if.*harm)\b", 2),
            // What stands around them can be read in several ways.
            ("a?(?:you.*rules|even if.*harm)", 1),
        ] {
            assert_eq!(branches(pattern), count, "{pattern}");
        }
    }

    const PATTERNS: [&str; 6] = [
        r"you\b[^.]*?\bno (?:rules|limits)|even if\b[^.]*?\bharm",
        r"(?i)\b(?:ab[^.]{0,9}cd|ab|b[^.]*a)\b",
        r"(?:a[^.]*b|b[^.]*?a|ab|c)\.",
        r"a.{2,9}?b|ab.{0,12}c|c",
        r"(?P<value>ab)[^.]*c|b[^.]*?(?P<other>ca?)",
        r"(?s)no rules.{0,40}?you|you.{0,40}?no rules",
    ];

    proptest! {
        #[test]
        fn branches_find_what_the_whole_pattern_does(
            texts in prop::collection::vec("(a|b|c|ab|cd| |\\.|you |no rules |even if |harm|limits){0,14}", 40),
            from in 0usize..4,
        ) {
            for pattern in PATTERNS {
                let hir = compile::parse(pattern).expect("test patterns are valid");
                let whole = LazyRegex::known(pattern, compile::build_regex);
                let branches = Branches::default();
                let mut caches = RuleCaches::new();
                for text in &texts {
                    for anchored in [Anchored::No, Anchored::Yes] {
                        let input = Input::new(text).range(from.min(text.len())..).anchored(anchored);
                        let wanted = whole.search(&input).map(|found| found.range());
                        let found = match branches.find(&whole, || Some(hir.clone()), &input, &mut caches) {
                            Searched::Refused => None,
                            Searched::Found(found) => found,
                        };
                        prop_assert_eq!(found, wanted, "{} {:?}", pattern, text);
                    }
                }
            }
        }
    }
}
