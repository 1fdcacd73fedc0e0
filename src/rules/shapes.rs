//! Patterns without a literal, told apart by automata.
//!
//! Digits, long tokens and separators stand everywhere in logs and tables. Running a hundred regexes around each of them
//! made such texts forty times as costly as prose, so the patterns of such rules are joined into automata that say which
//! of them match where. Only those are confirmed by their own regex.
//!
//! Nearly all of these patterns begin where a token does. They are tried from the bytes between tokens alone, where the
//! automaton dies after a byte or two; the few others are looked for at every byte.
//!
//! Invariant: a match of a rule is never lost here. The automaton is built as texts need it, in bounded memory; on a text
//! that makes it start over too often it gives up, and every rule is tried at every place as if there were none.

use std::ops::Range;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA, OverlappingState};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};

use crate::text::lanes::{self, BLOCK, Lanes};

use super::schema::Trigger;
use super::window::{Begin, from_edge};

/// Most bytes of the automaton's program.
const PROGRAM_BYTES_MAX: usize = 32 << 20;
/// Bytes of states that one worker keeps for one automaton.
const CACHE_BYTES: usize = 4 << 20;
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
    /// The trigger that it stands for.
    pub(super) fn trigger(self) -> Trigger {
        match self {
            Self::Digits(_) => Trigger::Digits,
            Self::Token(_) => Trigger::Token,
            Self::Separator(_) => Trigger::Separator,
        }
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

/// Where a pattern may match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spot {
    /// It begins exactly here, if it matches at all.
    Begin(usize),
    /// It ends here.
    End(usize),
}

/// Patterns as one automaton.
#[derive(Debug)]
pub(super) struct ShapeSet {
    dfa: DFA,
    /// The rule of each pattern, and where it begins.
    rules: Vec<(u32, Begin)>,
    /// Whether patterns are tried from the bytes between tokens only.
    is_anchored: bool,
}

/// What one worker keeps for one automaton.
#[derive(Debug)]
pub(super) struct Memory {
    cache: Cache,
    openings: Openings,
}

/// Where the automaton stands after the first bytes from which texts had it start lately: the one between tokens and those
/// behind it. Most starts end there.
struct Openings {
    short: Known<SHORT>,
    long: Known<LONG>,
    /// How often the states had been thrown away when the first of these was noted.
    cleared: usize,
}

/// Bytes of a short opening, after which nearly all starts end in prose.
const SHORT: usize = 3;
/// Bytes of a long one, after which most others end; lines of logs begin alike, and words come again.
const LONG: usize = 8;
/// Bits of the number of openings that are noted of each length.
const OPENING_BITS: u32 = 12;

/// Openings of one length, each in the one place that its bytes tell.
struct Known<const BYTES: usize>(Box<[Opening]>);

#[derive(Clone, Copy)]
struct Opening {
    /// Its bytes. Where nothing is noted, such as no text has.
    bytes: u64,
    /// None where nothing that begins with them matches.
    state: Option<LazyStateID>,
}

impl<const BYTES: usize> Known<BYTES> {
    const NOTHING: Opening = Opening { bytes: u64::MAX, state: None };

    fn new() -> Self {
        Self(vec![Self::NOTHING; 1 << OPENING_BITS].into())
    }

    /// Its bytes as a number, and where it is noted, by multiplicative hashing (Knuth, TAOCP 3, 6.4).
    #[inline]
    fn place(opening: &[u8; BYTES]) -> (u64, usize) {
        let mut bytes = [0; LONG];
        bytes[..BYTES].copy_from_slice(opening);
        let bytes = u64::from_le_bytes(bytes);
        (bytes, (bytes.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - OPENING_BITS)) as usize)
    }

    /// What is noted of an opening.
    #[inline]
    fn get(&self, opening: &[u8; BYTES]) -> Option<Beginning> {
        let (bytes, place) = Self::place(opening);
        let slot = &self.0[place];
        let beginning = || slot.state.map_or(Beginning::Nowhere, |state| Beginning::In(state, BYTES));
        (slot.bytes == bytes).then(beginning)
    }

    fn note(&mut self, opening: &[u8; BYTES], state: Option<LazyStateID>) {
        let (bytes, place) = Self::place(opening);
        self.0[place] = Opening { bytes, state };
    }
}

impl std::fmt::Debug for Openings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let noted = |slots: &[Opening]| slots.iter().filter(|slot| slot.bytes != u64::MAX).count();
        f.debug_tuple("Openings").field(&noted(&self.short.0)).field(&noted(&self.long.0)).finish()
    }
}

impl Openings {
    fn new() -> Self {
        Self { short: Known::new(), long: Known::new(), cleared: 0 }
    }

    /// Whether it is known that nothing matches that begins with these bytes.
    #[inline]
    fn is_closed(&self, opening: &[u8; SHORT], cleared: usize) -> bool {
        self.cleared == cleared && matches!(self.short.get(opening), Some(Beginning::Nowhere))
    }

    /// Forgets all where states were thrown away, which are worth nothing then.
    fn fit(&mut self, cleared: usize) {
        if self.cleared != cleared {
            self.short.0.fill(Known::<SHORT>::NOTHING);
            self.long.0.fill(Known::<LONG>::NOTHING);
            self.cleared = cleared;
        }
    }
}

/// How a search from one byte begins.
#[derive(Clone, Copy)]
enum Beginning {
    /// Nothing matches from there.
    Nowhere,
    /// In this state, after so many bytes.
    In(LazyStateID, usize),
}

impl Memory {
    /// Bytes that it holds.
    pub(super) fn bytes(&self) -> usize {
        self.cache.memory_usage() + size_of_val(&*self.openings.short.0) + size_of_val(&*self.openings.long.0)
    }
}

impl ShapeSet {
    /// Builds the automaton; `None` when the patterns are too large together. Those that begin
    /// [`Anywhere`](Begin::Anywhere) must not be joined with others.
    pub(super) fn build<'p>(patterns: impl Iterator<Item = (u32, Begin, &'p str)>) -> Option<Self> {
        let (mut rules, mut parsed) = (Vec::new(), Vec::new());
        let config = syntax::Config::new().unicode(false).utf8(false);
        for (rule, begin, pattern) in patterns {
            rules.push((rule, begin));
            parsed.push(match begin {
                // The automaton begins at the byte before a token, the pattern after it.
                Begin::AtToken => {
                    syntax::parse_with(&format!("(?:^|[^0-9A-Za-z_])(?:{pattern})"), &config).ok()?
                }
                Begin::BeforeToken | Begin::Anywhere => syntax::parse_with(pattern, &config).ok()?,
                Begin::NearToken => from_edge(&syntax::parse_with(pattern, &config).ok()?)?,
            });
        }
        let is_anchored = rules.first()?.1 != Begin::Anywhere;
        let nfa = thompson::Compiler::new()
            .configure(
                thompson::Config::new()
                    .utf8(false)
                    .which_captures(thompson::WhichCaptures::None)
                    .nfa_size_limit(Some(PROGRAM_BYTES_MAX)),
            )
            .build_many_from_hir(&parsed)
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
        Some(Self { dfa, rules, is_anchored })
    }

    /// Memory for one worker.
    pub(super) fn create_memory(&self) -> Memory {
        Memory { cache: self.dfa.create_cache(), openings: Openings::new() }
    }

    /// How a search from `range.start` begins. What stands before it makes no difference but at the beginning of the text:
    /// patterns begin with the byte there and ask no further.
    fn begin(&self, memory: &mut Memory, text: &[u8], range: &Range<usize>) -> Result<Beginning, GaveUp> {
        let Memory { cache, openings } = memory;
        let start = |cache: &mut Cache| {
            let input = Input::new(text).range(range.clone()).anchored(Anchored::Yes);
            self.dfa.start_state_forward(cache, &input).map_err(|_| GaveUp)
        };
        let bytes = &text[range.clone()];
        let short = bytes.first_chunk::<SHORT>().filter(|_| range.start > 0);
        let Some(short) = short else { return Ok(Beginning::In(start(cache)?, 0)) };
        let cleared = cache.clear_count();
        openings.fit(cleared);
        let long = bytes.first_chunk::<LONG>();
        if let Some(known) = long.and_then(|long| openings.long.get(long)) {
            return Ok(known);
        }
        let mut beginning = match openings.short.get(short) {
            Some(known) => known,
            None => {
                let from = start(cache)?;
                let beginning = self.after(cache, from, short)?;
                if cache.clear_count() != cleared {
                    // The start may be among what was thrown away.
                    return Ok(Beginning::In(start(cache)?, 0));
                }
                match beginning {
                    None => return Ok(Beginning::In(from, 0)),
                    Some(state) => openings.short.note(short, state),
                }
                beginning.flatten().map_or(Beginning::Nowhere, |state| Beginning::In(state, SHORT))
            }
        };
        if let (Beginning::In(state, _), Some(long)) = (beginning, long) {
            let after = self.after(cache, state, &long[SHORT..])?;
            if cache.clear_count() != cleared {
                return Ok(Beginning::In(start(cache)?, 0));
            }
            if let Some(state) = after {
                openings.long.note(long, state);
                beginning = state.map_or(Beginning::Nowhere, |state| Beginning::In(state, LONG));
            }
        }
        Ok(beginning)
    }

    /// The state behind some bytes, or that nothing matches that goes on with them. None where something matches on the way,
    /// which must be told.
    fn after(
        &self,
        cache: &mut Cache,
        mut state: LazyStateID,
        bytes: &[u8],
    ) -> Result<Option<Option<LazyStateID>>, GaveUp> {
        for byte in bytes {
            state = self.dfa.next_state(cache, state, *byte).map_err(|_| GaveUp)?;
            if state.is_tagged() {
                return Ok(state.is_dead().then_some(None));
            }
        }
        Ok(Some(Some(state)))
    }

    /// Calls `found(rule, spot)` for every match of at most `bytes_max` bytes that stands in `window`, and of patterns
    /// that are tried where they begin, for every one that begins there.
    ///
    /// # Errors
    /// [`GaveUp`] when some may be missing.
    pub(super) fn spots(
        &self,
        memory: &mut Memory,
        text: &[u8],
        window: Range<usize>,
        bytes_max: usize,
        mut found: impl FnMut(u32, Spot),
    ) -> Result<(), GaveUp> {
        if !self.is_anchored {
            return self.ends(memory, text, window, found);
        }
        // A token begins behind a byte that is neither letter nor digit. One that begins with the window has that outside.
        let mut at = window.start.saturating_sub(1);
        if at == 0 && !window.is_empty() {
            self.from(memory, text, 0..text.len().min(bytes_max + 1), &mut found)?;
            at = 1;
        }
        while at < window.end {
            let edges = !Lanes::at(text, at).bits(lanes::is_alphanumeric) & lanes::below(window.end - at);
            for start in lanes::places(edges).map(|place| at + place) {
                let is_closed = text[start..]
                    .first_chunk::<SHORT>()
                    .is_some_and(|opening| memory.openings.is_closed(opening, memory.cache.clear_count()));
                if !is_closed {
                    self.from(memory, text, start..text.len().min(start + bytes_max + 1), &mut found)?;
                }
            }
            at += BLOCK;
        }
        Ok(())
    }

    /// Tells the patterns that match from the first byte of `range`.
    fn from(
        &self,
        memory: &mut Memory,
        text: &[u8],
        range: Range<usize>,
        found: &mut impl FnMut(u32, Spot),
    ) -> Result<(), GaveUp> {
        let start = range.start;
        let Beginning::In(mut state, skipped) = self.begin(memory, text, &range)? else { return Ok(()) };
        let cache = &mut memory.cache;
        cache.search_start(start);
        let from = start + skipped;
        for (at, byte) in (from..).zip(&text[from..range.end]) {
            let mut next = match state.is_tagged() {
                false => self.dfa.next_state_untagged(cache, state, *byte),
                true => self.dfa.next_state(cache, state, *byte).map_err(|_| GaveUp)?,
            };
            if next.is_unknown() {
                next = self.dfa.next_state(cache, state, *byte).map_err(|_| GaveUp)?;
            }
            state = next;
            if state.is_tagged() {
                if state.is_match() {
                    self.tell(cache, state, text, start, found);
                } else if state.is_dead() {
                    cache.search_finish(at);
                    return Ok(());
                } else if state.is_quit() {
                    return Err(GaveUp);
                }
            }
        }
        // What a match asks of the byte after it is known one byte later.
        let last = match text.get(range.end) {
            Some(byte) => self.dfa.next_state(cache, state, *byte),
            None => self.dfa.next_eoi_state(cache, state),
        };
        let last = last.map_err(|_| GaveUp)?;
        if last.is_match() {
            self.tell(cache, last, text, start, found);
        }
        cache.search_finish(range.end);
        Ok(())
    }

    fn tell(
        &self,
        cache: &Cache,
        state: LazyStateID,
        text: &[u8],
        start: usize,
        found: &mut impl FnMut(u32, Spot),
    ) {
        for at in 0..self.dfa.match_len(cache, state) {
            let pattern = self.dfa.match_pattern(cache, state, at).as_usize();
            let Some((rule, begin)) = self.rules.get(pattern) else { continue };
            if *begin == Begin::AtToken {
                found(*rule, Spot::Begin(start + 1));
            }
            if *begin == Begin::NearToken
                && let Some(before) = start.checked_sub(1).filter(|at| text[*at].is_ascii_alphanumeric())
            {
                found(*rule, Spot::Begin(before));
            }
            if matches!(begin, Begin::BeforeToken | Begin::NearToken) || start == 0 {
                found(*rule, Spot::Begin(start));
            }
        }
    }

    /// Tells where matches end.
    fn ends(
        &self,
        memory: &mut Memory,
        text: &[u8],
        window: Range<usize>,
        mut found: impl FnMut(u32, Spot),
    ) -> Result<(), GaveUp> {
        let input = Input::new(text).range(window);
        let mut state = OverlappingState::start();
        loop {
            self.dfa.try_search_overlapping_fwd(&mut memory.cache, &input, &mut state).map_err(|_| GaveUp)?;
            let Some(end) = state.get_match() else { return Ok(()) };
            if let Some((rule, _)) = self.rules.get(end.pattern().as_usize()) {
                found(*rule, Spot::End(end.offset()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spots(patterns: &[(u32, Begin, &str)], text: &str, window: Range<usize>) -> Vec<(u32, Spot)> {
        let set = ShapeSet::build(patterns.iter().copied()).expect("small patterns fit");
        let mut memory = set.create_memory();
        let mut spots = Vec::new();
        set.spots(&mut memory, text.as_bytes(), window, 64, |rule, spot| spots.push((rule, spot)))
            .expect("a short text fits");
        spots.sort();
        spots.dedup();
        spots
    }

    #[test]
    fn tells_which_patterns_end_where() {
        let patterns = [(7, r"\b\d{3}-\d{2}\b"), (9, "[a-f]{4}"), (11, "zzz")]
            .map(|(rule, pattern)| (rule, Begin::Anywhere, pattern));
        assert_eq!(
            spots(&patterns, "x 123-45 abcde 1234-56", 0..22),
            [(7, Spot::End(8)), (9, Spot::End(13)), (9, Spot::End(14))]
        );
        // The automaton sees the text around its window.
        assert_eq!(spots(&patterns, "9123-45", 1..7), []);
    }

    #[test]
    fn tells_which_patterns_begin_where() {
        let patterns = [
            (1, Begin::AtToken, r"\b\d{3}-\d{2}\b"),
            (2, Begin::BeforeToken, r"(?:^|[^0-9A-Za-z])\+?\d{3}(?:[^0-9]|$)"),
        ];
        let begin = |rule, at| (rule, Spot::Begin(at));
        assert_eq!(
            spots(&patterns, "a 123-45 +678", 0..13),
            [begin(1, 2), begin(2, 1), begin(2, 8), begin(2, 9)]
        );
        // At the very beginning a pattern may stand before or after the first byte.
        assert_eq!(spots(&patterns, "123-45", 0..6), [begin(1, 0), begin(1, 1), begin(2, 0)]);
        assert_eq!(spots(&patterns, "x123-45", 1..7), []);
        assert_eq!(spots(&patterns, "-123", 1..4), [begin(2, 0)]);
    }

    #[test]
    fn a_pattern_may_begin_with_the_letter_before() {
        let pattern = r"(?:^|[^A-Za-z0-9+]|[A-Z]\+)\+\d{3}";
        let patterns = [(3, Begin::NearToken, pattern), (4, Begin::BeforeToken, r"%[Bb]\d")];
        let begin = |rule, at| (rule, Spot::Begin(at));
        let found = spots(&patterns, "COM++493 (+493 +12 ++493 x%b1", 0..29);
        // Its own regex tells which of two beginnings is one.
        assert_eq!(found, [begin(3, 2), begin(3, 3), begin(3, 9), begin(3, 19), begin(4, 26)]);
    }

    #[test]
    fn what_begins_alike_is_told_alike() {
        let patterns = [(1, Begin::BeforeToken, r"(?:^|[^0-9A-Za-z])\d{4}-\d{2}(?:[^0-9]|$)")];
        let line = "at 2024-11 or 2024-1x, 2024-119; 2024-12.";
        let text = [line; 40].join("\n");
        let found = spots(&patterns, &text, 0..text.len());
        let wanted: Vec<_> = (0..40).flat_map(|nth| [2, 32].map(|at| at + nth * (line.len() + 1))).collect();
        assert_eq!(found, wanted.into_iter().map(|at| (1, Spot::Begin(at))).collect::<Vec<_>>());
    }

    #[test]
    fn no_patterns_no_automaton() {
        assert!(ShapeSet::build(std::iter::empty()).is_none());
    }
}
