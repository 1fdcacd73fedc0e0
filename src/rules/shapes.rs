//! Rules without a literal, told apart in one pass.
//!
//! Digits, long tokens and separators stand everywhere in logs and tables. Running seventy regexes around each of them
//! made such texts forty times as costly as prose, so the patterns of all these rules are one automaton that reads each
//! place once and says which of them end a match there. Only those are confirmed by their own regex.
//!
//! Invariant: a match of a rule is never lost here. The automaton is built as texts need it, in bounded memory; on a text
//! that makes it start over too often it gives up, and every rule is tried at every place as if there were none.

use std::ops::Range;

use regex_automata::hybrid::dfa::{Cache, DFA, OverlappingState};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind};

use super::schema::Trigger;

/// Most bytes of the automaton's program.
const PROGRAM_BYTES_MAX: usize = 32 << 20;
/// Bytes of states that one worker keeps.
const CACHE_BYTES: usize = 8 << 20;
/// How often the states may be thrown away while one text is read.
const CLEARS_MAX: usize = 4;
/// Fewest bytes that must be read between two such moments.
const BYTES_PER_STATE_MIN: usize = 8;

/// Something in a text that starts rules without a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// So many digits in a cluster.
    Digits(usize),
    /// A token of so many bytes.
    Token(usize),
    /// A separator.
    Separator(u8),
}

impl Kind {
    /// The trigger that it stands for, as a number.
    pub(super) fn order(self) -> u8 {
        let trigger = match self {
            Self::Digits(_) => Trigger::Digits,
            Self::Token(_) => Trigger::Token,
            Self::Separator(_) => Trigger::Separator,
        };
        trigger as u8
    }
}

/// A kind and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub kind: Kind,
    pub at: Range<usize>,
}

/// The text made the automaton too large.
#[derive(Clone, Copy, Debug)]
pub(super) struct GaveUp;

/// The patterns of rules without a literal as one automaton.
#[derive(Debug)]
pub(super) struct ShapeSet {
    dfa: DFA,
    /// Index of the rule of each pattern.
    rules: Vec<u32>,
}

impl ShapeSet {
    /// Builds the automaton; `None` when the patterns are too large together.
    pub(super) fn build<'p>(patterns: impl Iterator<Item = (u32, &'p str)>) -> Option<Self> {
        let (rules, patterns): (Vec<u32>, Vec<&str>) = patterns.unzip();
        if rules.is_empty() {
            return None;
        }
        let nfa = thompson::Compiler::new()
            .syntax(syntax::Config::new().unicode(false).utf8(false))
            .configure(
                thompson::Config::new()
                    .utf8(false)
                    .which_captures(thompson::WhichCaptures::None)
                    .nfa_size_limit(Some(PROGRAM_BYTES_MAX)),
            )
            .build_many(&patterns)
            .ok()?;
        let dfa = DFA::builder()
            .configure(
                DFA::config()
                    .match_kind(MatchKind::All)
                    .cache_capacity(CACHE_BYTES)
                    .skip_cache_capacity_check(true)
                    .minimum_cache_clear_count(Some(CLEARS_MAX))
                    .minimum_bytes_per_state(Some(BYTES_PER_STATE_MIN)),
            )
            .build_from_nfa(nfa)
            .ok()?;
        Some(Self { dfa, rules })
    }

    /// Memory for one worker.
    pub(super) fn create_cache(&self) -> Cache {
        self.dfa.create_cache()
    }

    /// Calls `found(rule, end)` for every place in `window` at which a match of a rule ends.
    ///
    /// # Errors
    /// [`GaveUp`] when some may be missing.
    pub(super) fn ends(
        &self,
        cache: &mut Cache,
        text: &[u8],
        window: Range<usize>,
        mut found: impl FnMut(u32, usize),
    ) -> Result<(), GaveUp> {
        let input = Input::new(text).range(window);
        let mut state = OverlappingState::start();
        loop {
            self.dfa.try_search_overlapping_fwd(cache, &input, &mut state).map_err(|_| GaveUp)?;
            let Some(end) = state.get_match() else { return Ok(()) };
            if let Some(rule) = self.rules.get(end.pattern().as_usize()) {
                found(*rule, end.offset());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_which_patterns_end_where() {
        let patterns = [(7, r"\b\d{3}-\d{2}\b"), (9, "[a-f]{4}"), (11, "zzz")];
        let set = ShapeSet::build(patterns.into_iter()).expect("small patterns fit");
        let mut cache = set.create_cache();
        let mut ends = Vec::new();
        set.ends(&mut cache, b"x 123-45 abcde 1234-56", 0..22, |rule, end| ends.push((rule, end)))
            .expect("a short text fits");
        assert_eq!(ends, [(7, 8), (9, 13), (9, 14)]);
        ends.clear();
        // The automaton sees the text around its window.
        set.ends(&mut cache, b"9123-45", 1..7, |rule, end| ends.push((rule, end))).expect("fits");
        assert_eq!(ends, []);
    }

    #[test]
    fn no_patterns_no_automaton() {
        assert!(ShapeSet::build(std::iter::empty()).is_none());
    }
}
