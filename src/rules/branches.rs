//! A pattern at work: as a whole, or, where that would have to remember too much, as its branches.
//!
//! One automaton for `you\b[^.]*?\bwithout rules|even if\b[^.]*?\bharmful` remembers which branches have begun, and in which
//! order: the product of what each would have to remember, which no two texts share, so that states are made again and again.
//! Automata of single branches stay small. So where several branches begin with what stands everywhere, each is searched by
//! itself: its rarest part is looked for first (`pieces`), then its relaxed form (`relax`), and only what neither refuses is
//! matched. All other patterns are searched as a whole, after their relaxed form.
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
/// A branch begins with what stands everywhere if that says less, in bits.
const HEAD_BITS_MAX: f64 = 20.0;
/// Most bytes of lazily built states of what is asked before a pattern or a branch.
const STATES_BYTES_MAX: usize = 512 * 1024;
/// Caches of the whole: its own, and that of what is asked first.
const OF_WHOLE: usize = 2;
/// Caches of one branch: of its piece, of its relaxed form, and its own.
const OF_BRANCH: usize = 3;

/// What the automata of one rule remember, made as they are needed: [`OF_WHOLE`], then [`OF_BRANCH`] for each branch.
pub(super) type RuleCaches = Vec<Option<Box<Cache>>>;

/// What branches matched in a window that is searched from one match to the next, so that none reads it more than once: for each
/// branch what was found last, if it was asked.
pub(super) type Known = Vec<Option<Option<Range<usize>>>>;

/// How one rule's pattern is searched, read from it when it is first asked.
#[derive(Debug, Default)]
pub(super) struct Branches(OnceLock<Way>);

/// Whether a pattern was searched, and what it found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Searched {
    /// It cannot match there.
    Refused,
    Found(Option<Range<usize>>),
}

#[derive(Debug)]
enum Way {
    /// As a whole, after its relaxed form, if it has one.
    Whole(Option<Regex>),
    /// By its branches, after the part of each that says most, all of these together, if each has one.
    Apart(Option<Regex>, Box<[Branch]>),
}

/// A branch that is searched by itself.
#[derive(Debug)]
struct Branch {
    piece: Option<Regex>,
    relaxed: Option<Regex>,
    hir: Hir,
    regex: OnceLock<Option<Regex>>,
}

impl Branches {
    /// Reads a pattern that was read for something else, as reading one takes longer than this.
    pub(super) fn make(&self, hir: &Hir) {
        self.0.get_or_init(|| Way::of(hir));
    }

    /// The match that `whole`, read by `parse`, finds in a place of a text. What is `known` was found in the same window, from
    /// an earlier place.
    pub(super) fn find(
        &self,
        whole: &LazyRegex,
        parse: impl FnOnce() -> Option<Hir>,
        input: &Input<'_>,
        caches: &mut RuleCaches,
        known: &mut Known,
    ) -> Searched {
        match self.0.get_or_init(|| parse().map_or(Way::Whole(None), |hir| Way::of(&hir))) {
            Way::Whole(relaxed) => {
                caches.resize_with(OF_WHOLE, || None);
                match may_match(relaxed, input, &mut caches[1]) {
                    true => Searched::Found(find(whole, input, &mut caches[0])),
                    false => Searched::Refused,
                }
            }
            Way::Apart(piece, branches) => {
                caches.resize_with(OF_WHOLE + OF_BRANCH * branches.len(), || None);
                match may_match(piece, &anywhere(input), &mut caches[1]) {
                    true => find_apart(branches, whole, input, caches, known),
                    false => Searched::Refused,
                }
            }
        }
    }
}

/// The same by way of its branches.
fn find_apart(
    branches: &[Branch],
    whole: &LazyRegex,
    input: &Input<'_>,
    caches: &mut RuleCaches,
    known: &mut Known,
) -> Searched {
    let (of_whole, of_branches) = caches.split_at_mut(OF_WHOLE);
    known.resize(branches.len(), None);
    let (mut best, mut was_searched) = (None::<Range<usize>>, false);
    for ((branch, caches), known) in branches.iter().zip(of_branches.chunks_mut(OF_BRANCH)).zip(known) {
        let [of_piece, of_relaxed, own] = caches else { unreachable!("chunks of three") };
        let found = match known {
            // What begins first from an earlier place does so from any place up to there.
            Some(None) => continue,
            Some(Some(found)) if found.start >= input.start() => Some(found.clone()),
            _ => {
                let may_match = may_match(&branch.piece, &anywhere(input), of_piece)
                    && may_match(&branch.relaxed, input, of_relaxed);
                if !may_match {
                    *known = Some(None);
                    continue;
                }
                let Some(regex) = branch.regex() else {
                    return Searched::Found(find(whole, input, &mut of_whole[0]));
                };
                let found = find(regex, input, own);
                *known = Some(found.clone());
                found
            }
        };
        was_searched = true;
        // Of two that begin at the same place, the one that is written first is it.
        best = match (best, found) {
            (Some(best), Some(found)) => Some(if found.start < best.start { found } else { best }),
            (best, found) => best.or(found),
        };
    }
    if was_searched { Searched::Found(best) } else { Searched::Refused }
}

/// The cache of the whole pattern.
pub(super) fn of_whole<'c>(caches: &'c mut RuleCaches, whole: &Regex) -> &'c mut Cache {
    caches.resize_with(caches.len().max(1), || None);
    caches[0].get_or_insert_with(|| Box::new(whole.create_cache()))
}

/// Whether what is asked first may match in a place of a text; false is certain.
fn may_match(look: &Option<Regex>, input: &Input<'_>, cache: &mut Option<Box<Cache>>) -> bool {
    let Some(look) = look else { return true };
    let cache = cache.get_or_insert_with(|| Box::new(look.create_cache()));
    look.search_half_with(cache, &input.clone().earliest(true)).is_some()
}

/// Where a piece of a match may stand.
fn anywhere<'t>(input: &Input<'t>) -> Input<'t> {
    input.clone().anchored(Anchored::No)
}

/// The part of a pattern that says most, if it has one.
fn piece(hir: &Hir) -> Option<Regex> {
    relax::compile(&pieces::piece(hir)?, STATES_BYTES_MAX).ok()
}

/// The relaxed form of a pattern, if it has one.
fn relaxed(hir: &Hir) -> Option<Regex> {
    relax::compile(&relax::relaxed(hir)?, STATES_BYTES_MAX).ok()
}

fn find(regex: &Regex, input: &Input<'_>, cache: &mut Option<Box<Cache>>) -> Option<Range<usize>> {
    let cache = cache.get_or_insert_with(|| Box::new(regex.create_cache()));
    regex.search_with(cache, input).map(|found| found.range())
}

impl Branch {
    fn new(hir: Hir) -> Self {
        Self { piece: piece(&hir), relaxed: relaxed(&hir), hir, regex: OnceLock::new() }
    }

    fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| compile::build_hir(&self.hir).ok()).as_ref()
    }
}

impl Way {
    fn of(hir: &Hir) -> Self {
        let begins_everywhere =
            |branch: &&Hir| pieces::has_gap(branch) && pieces::head_bits(branch) < HEAD_BITS_MAX;
        match of(hir) {
            Some(branches)
                if branches.len() <= BRANCHES_MAX
                    && branches.iter().filter(begins_everywhere).count() > 1 =>
            {
                Self::Apart(piece(hir), branches.into_iter().map(Branch::new).collect())
            }
            _ => Self::Whole(relaxed(hir)),
        }
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
                let all = of(&hir).unwrap_or_else(|| Vec::from([hir.clone()]));
                let apart = Way::Apart(piece(&hir), all.into_iter().map(Branch::new).collect());
                let apart = Branches(apart.into());
                let (mut caches, mut of_apart) = (RuleCaches::new(), RuleCaches::new());
                for text in &texts {
                    for anchored in [Anchored::No, Anchored::Yes] {
                        let input = Input::new(text).range(from.min(text.len())..).anchored(anchored);
                        let wanted = whole.search(&input).map(|found| found.range());
                        for (branches, caches) in [(&branches, &mut caches), (&apart, &mut of_apart)] {
                            let mut known = Known::new();
                            let mut found = |input: &Input<'_>| {
                                match branches.find(&whole, || Some(hir.clone()), input, caches, &mut known) {
                                    Searched::Refused => None,
                                    Searched::Found(found) => found,
                                }
                            };
                            prop_assert_eq!(&found(&input), &wanted, "{} {:?}", pattern, text);
                            // From one place to the next, as long as the window is the same.
                            for from in input.start()..input.end() {
                                if anchored == Anchored::No {
                                    let input = input.clone().range(from..);
                                    let wanted = whole.search(&input).map(|found| found.range());
                                    prop_assert_eq!(found(&input), wanted, "{} {:?} {}", pattern, text, from);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
