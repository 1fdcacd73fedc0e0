//! Patterns without their long bounded repeats, which say quickly that a pattern cannot match.
//!
//! `send[^.]{0,140}secret` makes a lazy automaton count: what it has built for one text is of no use to the next, so that
//! states are made, thrown away and at last replaced by an engine thirty times slower. `send[^.]*secret` has a handful of
//! states and holds wherever the other does. It is asked first; nearly always it says no.
//!
//! Invariant: every text that a pattern matches in, its relaxed form matches in, from the same place.

use regex_automata::meta;
use regex_syntax::hir::{Hir, HirKind, Repetition};

/// Repeats of at least so many are counted no more.
const COUNTED_MAX: u32 = 8;
/// What is left of the least number of such a repeat.
const LEAST_MAX: u32 = 3;

/// A pattern with long bounded repeats made unbounded; none when there is none in it.
pub fn relaxed(hir: &Hir) -> Option<Hir> {
    counts(hir).then(|| relax(hir))
}

/// Whether a long bounded repeat stands in a pattern.
fn counts(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => false,
        HirKind::Repetition(repetition) => is_counted(repetition) || counts(&repetition.sub),
        HirKind::Capture(capture) => counts(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(counts),
    }
}

fn is_counted(repetition: &Repetition) -> bool {
    repetition.min.max(repetition.max.unwrap_or(0)) >= COUNTED_MAX
}

/// Compiles what [`relaxed`] made, for asking only whether it matches, in at most so many bytes of lazily built states.
///
/// # Errors
/// It is too large.
pub fn compile(hir: &Hir, states_bytes_max: usize) -> Result<meta::Regex, String> {
    let config = meta::Regex::config()
        .utf8_empty(false)
        // Without the implicit ones, engines that step in for the automaton find nothing.
        .which_captures(regex_automata::nfa::thompson::WhichCaptures::Implicit)
        .hybrid_cache_capacity(states_bytes_max)
        .auto_prefilter(false)
        .dfa(false);
    meta::Regex::builder().configure(config).build_from_hir(hir).map_err(|error| error.to_string())
}

fn relax(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
        HirKind::Repetition(repetition) => {
            let (min, max) = match is_counted(repetition) {
                true => (repetition.min.min(LEAST_MAX), None),
                false => (repetition.min, repetition.max),
            };
            let sub = Box::new(relax(&repetition.sub));
            Hir::repetition(Repetition { min, max, greedy: repetition.greedy, sub })
        }
        HirKind::Capture(capture) => relax(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(relax).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(relax).collect()),
    }
}

#[cfg(test)]
mod tests {
    use regex_automata::{Anchored, Input};

    use super::*;

    fn parse(pattern: &str) -> Hir {
        let mut parser = regex_syntax::ParserBuilder::new();
        parser.unicode(false).utf8(false).build().parse(pattern).expect("test patterns are valid")
    }

    #[test]
    fn what_has_no_long_repeat_stays() {
        for (pattern, wanted) in [
            ("ab?c{2,7}d*", false),
            ("[a-f]{32}", true),
            ("a.{0,8}b", true),
            ("(?:a(b{9})|c)", true),
            ("a{9,}", true),
        ] {
            assert_eq!(relaxed(&parse(pattern)).is_some(), wanted, "{pattern}");
        }
    }

    #[test]
    fn what_matches_still_matches_from_the_same_place() {
        for (pattern, text, is_match, is_relaxed_match) in [
            ("send[^.]{0,9}key", "send the key", true, true),
            ("send[^.]{0,9}key", "send it all, and then the key", false, true),
            ("send[^.]{0,9}key", "send it. The key", false, false),
            (r"\b[a-f]{32}\b", "abcdefabcdefabcdefabcdefabcdefab", true, true),
            (r"\b[a-f]{32}\b", "ab", false, false),
            ("a(?P<value>.{2,20}?)b$", "a..b", true, true),
        ] {
            let hir = parse(pattern);
            let loose = compile(&relaxed(&hir).expect("it is long"), 1 << 20).expect("it is small");
            let exact = compile(&hir, 1 << 20).expect("it is small");
            for anchored in [Anchored::No, Anchored::Yes] {
                let input = Input::new(text).anchored(anchored).earliest(true);
                assert_eq!(exact.search_half(&input).is_some(), is_match, "{pattern} {text}");
                assert_eq!(loose.search_half(&input).is_some(), is_relaxed_match, "{pattern} {text}");
            }
        }
    }
}
