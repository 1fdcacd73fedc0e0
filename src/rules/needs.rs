//! What every match of a pattern holds besides the literal that opened its gate.
//!
//! `send` stands in many texts, `send[^.]{0,140}(?:secret|token)` in hardly any. To read the window around each `send` with
//! an automaton means to build states that no other text needs; to look for `secret` and `token` there takes a few
//! vector instructions. So the sets of literals of which each match must hold one are read from the pattern, and the
//! rarest of them are looked for first.
//!
//! Invariant: a window that holds a match of the pattern is never refused. Texts and literals are compared in lower case,
//! which can only let more through.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, packed};
use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, HirKind, Repetition};

use super::phrases::COMMONEST;

/// Most sets that are looked for, one after the other: a third hardly ever refuses what two let through.
const SETS_MAX: usize = 2;
/// Most literals of one set. More of them stand in too many texts to be worth a look.
const LITERALS_MAX: usize = 128;
/// Most literals that vector instructions look for together.
const PACKED_MAX: usize = 64;
/// Longest literal, in bytes: what is longer is no rarer.
const LITERAL_BYTES_MAX: usize = 12;
/// Parts of a concatenation that are read together for the literals that begin there.
const PARTS: usize = 4;
/// How often a set may be found in ordinary text, in thousandths of the windows, about; see [`commonness`].
const COMMONNESS_MAX: f64 = 1_300.0;
/// How much commoner a set is that a literal of the rule holds already, and which therefore refuses nothing there.
const HELD_COMMONNESS: f64 = 2_000.0;

/// A set of literals, in lower case, of which every match holds one.
type Set = Vec<Box<[u8]>>;

/// What every match of one pattern holds, read from it when it is first asked.
#[derive(Debug, Default)]
pub(super) struct Needs(OnceLock<Held>);

#[derive(Debug)]
struct Held {
    /// Whether it holds a digit: most prose holds none far and wide.
    has_digit: bool,
    /// Sets of which it holds a literal each.
    sets: Box<[Finder]>,
}

impl Needs {
    /// Reads it from a pattern whose gate opens at one of `literals` (lower case).
    pub(super) fn make(&self, hir: &Hir, literals: &[String]) {
        self.0.get_or_init(|| Held {
            has_digit: holds_digit(hir),
            sets: sets(hir, literals).iter().filter_map(Finder::new).collect(),
        });
    }

    /// Whether the pattern may match in a window; false is certain. `window` is in lower case.
    pub(super) fn may_match(&self, window: &[u8]) -> bool {
        self.0.get().is_none_or(|held| {
            (!held.has_digit || has_digit(window)) && held.sets.iter().all(|finder| finder.is_in(window))
        })
    }
}

/// Whether every match of a pattern holds an ASCII digit.
fn holds_digit(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => literal.0.iter().any(u8::is_ascii_digit),
        HirKind::Class(Class::Bytes(class)) => {
            class.ranges().iter().all(|range| range.start().is_ascii_digit() && range.end().is_ascii_digit())
        }
        HirKind::Class(Class::Unicode(class)) => {
            class.ranges().iter().all(|range| range.start().is_ascii_digit() && range.end().is_ascii_digit())
        }
        HirKind::Repetition(repetition) => repetition.min > 0 && holds_digit(&repetition.sub),
        HirKind::Capture(capture) => holds_digit(&capture.sub),
        HirKind::Concat(parts) => parts.iter().any(holds_digit),
        HirKind::Alternation(branches) => branches.iter().all(holds_digit),
    }
}

/// Whether a text holds an ASCII digit. Blocks are tested without branches, which the compiler turns into vector code.
fn has_digit(text: &[u8]) -> bool {
    text.chunks(32).any(|block| block.iter().fold(false, |any, byte| any | (byte.wrapping_sub(b'0') < 10)))
}

/// Looks for the literals of one set.
#[derive(Debug)]
enum Finder {
    /// With vector instructions.
    Packed(packed::Searcher),
    /// Where there are too many for those, or the processor has none.
    Automaton(AhoCorasick),
}

impl Finder {
    fn new(set: &Set) -> Option<Self> {
        if set.len() <= PACKED_MAX
            && let Some(searcher) = packed::Searcher::new(set)
        {
            return Some(Self::Packed(searcher));
        }
        let automaton = AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).prefilter(false).build(set);
        automaton.ok().map(Self::Automaton)
    }

    fn is_in(&self, window: &[u8]) -> bool {
        match self {
            Self::Packed(searcher) => searcher.find(window).is_some(),
            Self::Automaton(automaton) => automaton.is_match(window),
        }
    }
}

/// The rarest sets of which every match of a pattern holds one literal each.
fn sets(hir: &Hir, literals: &[String]) -> Vec<Set> {
    let reader = Reader { gate: literals };
    let ranked = |set: Set| (reader.commonness(&set), set);
    let mut found: Vec<(f64, Set)> = reader.sets_of(&lower(hir)).into_iter().map(ranked).collect();
    found.retain(|(rank, _)| *rank <= COMMONNESS_MAX);
    found.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut chosen: Vec<Set> = Vec::new();
    for (_, set) in found {
        // One that holds all of another, or a part of each, refuses nothing that the other lets through.
        let is_new = chosen.iter().all(|other| !covers(&set, other) && !covers(other, &set));
        if is_new && chosen.len() < SETS_MAX {
            chosen.push(set);
        }
    }
    chosen
}

/// Whether each literal of `other` holds one of `set`.
fn covers(set: &Set, other: &Set) -> bool {
    other.iter().all(|literal| set.iter().any(|part| holds(literal, part)))
}

struct Reader<'g> {
    /// Literals that open the gate of the rule.
    gate: &'g [String],
}

impl Reader<'_> {
    /// Every set that a pattern in lower case shows.
    fn sets_of(&self, hir: &Hir) -> Vec<Set> {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Vec::new(),
            HirKind::Literal(_) | HirKind::Class(_) => prefixes(hir).into_iter().collect(),
            HirKind::Repetition(repetition) if repetition.min > 0 => self.sets_of(&repetition.sub),
            HirKind::Repetition(_) => Vec::new(),
            HirKind::Capture(capture) => self.sets_of(&capture.sub),
            HirKind::Concat(parts) => {
                let mut all = Vec::new();
                for (at, part) in parts.iter().enumerate() {
                    let next = Hir::concat(parts[at..parts.len().min(at + PARTS)].to_vec());
                    all.extend(prefixes(&next));
                    if !matches!(part.kind(), HirKind::Literal(_) | HirKind::Class(_)) {
                        all.extend(self.sets_of(part));
                    }
                }
                all
            }
            HirKind::Alternation(branches) => self.of_branches(branches).into_iter().collect(),
        }
    }

    /// The rarest set of each branch, joined; none where a branch shows none.
    fn of_branches(&self, branches: &[Hir]) -> Option<Set> {
        let mut joined = Set::new();
        for branch in branches {
            let sets = self.sets_of(branch).into_iter().map(|set| (self.commonness(&set), set));
            let (_, rarest) = sets.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
            joined.extend(rarest);
            if joined.len() > LITERALS_MAX {
                return None;
            }
        }
        Some(shortest(joined))
    }

    /// About how common it is that ordinary text holds one of a set, in thousandths of the windows around a literal of the
    /// gate.
    fn commonness(&self, set: &Set) -> f64 {
        let own: f64 = set.iter().map(|literal| commonness(literal)).sum();
        let is_held = |gate: &&String| set.iter().any(|literal| holds(gate.as_bytes(), literal));
        let held = self.gate.iter().filter(is_held).count() as f64 / self.gate.len().max(1) as f64;
        own + HELD_COMMONNESS * held
    }
}

/// About how common a literal is in windows of ordinary text, in thousandths of them.
fn commonness(literal: &[u8]) -> f64 {
    let is_plain = literal.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b' ');
    let word = literal.trim_ascii();
    let by_length = match (literal.len(), is_plain) {
        (0, _) => return f64::INFINITY,
        (1, true) => return 2_000.0,
        (1, false)
            if matches!(literal[0], b'.' | b',' | b'-' | b'_' | b'\'' | b'"' | b'0'..=b'9' | ..=b'\r') =>
        {
            return 800.0;
        }
        (1, false) => 250.0,
        (2, true) => 300.0,
        (2, false) | (3, true) => 60.0,
        (3, false) => 15.0,
        (4, true) => 20.0,
        (5, true) => 8.0,
        (6, true) => 5.0,
        (4, false) => 5.0,
        _ => 2.0,
    };
    let is_common = word.len() < literal.len().min(3)
        || std::str::from_utf8(word).is_ok_and(|word| COMMONEST.contains(&word));
    if is_common { 200.0_f64.max(by_length) } else { by_length }
}

/// The literals with which matches of a pattern in lower case begin, if it begins with few.
fn prefixes(hir: &Hir) -> Option<Set> {
    let mut extractor = Extractor::new();
    extractor
        .kind(ExtractKind::Prefix)
        .limit_class(8)
        .limit_repeat(4)
        .limit_literal_len(LITERAL_BYTES_MAX)
        .limit_total(LITERALS_MAX);
    let found = extractor.extract(hir);
    let literals = found.literals()?;
    if literals.is_empty() || literals.iter().any(|literal| literal.is_empty()) {
        return None;
    }
    Some(shortest(literals.iter().map(|literal| literal.as_bytes().to_ascii_lowercase().into()).collect()))
}

/// Whether a part stands in a literal. Both are short, and a searcher would take longer to make than this does.
fn holds(literal: &[u8], part: &[u8]) -> bool {
    let Some(first) = part.first() else { return false };
    // Most looks end at one byte.
    let places = (literal.len() + 1).saturating_sub(part.len());
    (0..places).any(|at| literal[at] == *first && literal[at..].starts_with(part))
}

/// Without the literals that hold another one: where they stand, the other one does.
fn shortest(mut set: Set) -> Set {
    set.sort_unstable_by(|one, other| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
    set.dedup();
    let mut kept = Set::new();
    for literal in set {
        if !kept.iter().any(|part| holds(&literal, part)) {
            kept.push(literal);
        }
    }
    kept
}

/// A pattern that matches, in lower case, whatever the pattern matches.
pub(super) fn lower(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => hir.clone(),
        HirKind::Literal(literal) => Hir::literal(literal.0.to_ascii_lowercase()),
        HirKind::Class(Class::Bytes(class)) => {
            let mut lowered = ClassBytes::empty();
            for range in class.ranges() {
                for byte in range.start()..=range.end() {
                    let byte = byte.to_ascii_lowercase();
                    lowered.push(ClassBytesRange::new(byte, byte));
                }
            }
            Hir::class(Class::Bytes(lowered))
        }
        // Literals that are read from it are put in lower case afterwards.
        HirKind::Class(Class::Unicode(_)) => hir.clone(),
        HirKind::Repetition(repetition) => {
            let Repetition { min, max, greedy, .. } = *repetition;
            Hir::repetition(Repetition { min, max, greedy, sub: Box::new(lower(&repetition.sub)) })
        }
        // Groups are of no use here, and stand between literals that belong together.
        HirKind::Capture(capture) => lower(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(lower).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(lower).collect()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex_automata::meta;

    use super::*;

    fn parse(pattern: &str) -> Hir {
        super::super::compile::parse(pattern).expect("test patterns are valid")
    }

    fn shown(pattern: &str, gate: &[&str]) -> Vec<Vec<String>> {
        let gate: Vec<String> = gate.iter().map(|literal| (*literal).to_owned()).collect();
        let text = |literal: &[u8]| String::from_utf8_lossy(literal).into_owned();
        sets(&parse(pattern), &gate)
            .iter()
            .map(|set| set.iter().map(|literal| text(literal)).collect())
            .collect()
    }

    #[test]
    fn the_rarest_sets_are_read_from_a_pattern() {
        for (pattern, gate, wanted) in [
            ("(?i)send[^.]{0,140}(?:secret|tokens?)", &["send"][..], vec![vec!["token", "secret"]]),
            (
                "(?i)\\b(?:forget|ignor(?:e|ing))\\s+the rules",
                &["rules"],
                vec![vec!["the rules"], vec!["forget", "ignore", "ignoring"]],
            ),
            ("(?:abc[^.]*key1|[^.]*opened)", &["abc"], vec![vec!["key1", "opened"]]),
            ("abc.*x", &["abc"], vec![]),
            ("abc(?:key1)?", &["abc"], vec![]),
            ("abc(?:key1)+", &["abc"], vec![vec!["abckey1"]]),
            ("(?:abc.*key1|abc.*)", &["abc"], vec![]),
        ] {
            let wanted: Vec<Vec<String>> =
                wanted.into_iter().map(|set| set.into_iter().map(str::to_owned).collect()).collect();
            assert_eq!(shown(pattern, gate), wanted, "{pattern}");
        }
    }

    #[test]
    fn digits_that_every_match_holds_are_told() {
        for (pattern, wanted) in [
            ("[a-z ]+[0-9]{2,6}", true),
            ("(?:a[0-9]|(?P<value>7b))c*", true),
            ("a(?:[0-9]|b)", false),
            ("a[0-9]*", false),
            ("a[0-9a]", false),
            ("abc", false),
            (r"id \d+", true),
        ] {
            assert_eq!(holds_digit(&parse(pattern)), wanted, "{pattern}");
        }
        for len in 0..70 {
            let mut text = vec![b'a'; len];
            assert!(!has_digit(&text));
            for at in 0..len {
                text[at] = b'0' + (at % 10) as u8;
                assert!(has_digit(&text), "{at}");
                text[at] = [b'/', b':', 0xB2][at % 3];
            }
        }
    }

    proptest! {
        #[test]
        fn what_matches_is_never_refused(
            pattern in "(?:(?:abc|[Dd]ef|gh[ij]k)(?:[^.]{0,9}|\\.?|[0-9]{0,2}|[0-9]+)(?:(?:KEY1|opened|x[yz]w)\\+?|abc)){1,2}|abc[a-d]{2,12}key1",
            flag in prop::bool::ANY,
            text in "(?:abc|DEF|def|ghik|KEY1|key1|opened|xyw|[ a-d.+0-9]){0,12}",
        ) {
            let pattern = if flag { format!("(?i){pattern}") } else { pattern };
            // Some of what is made up is no pattern, and patterns of rules are of bytes.
            let is_pattern = pattern.is_ascii();
            let Some(regex) = meta::Regex::new(&pattern).ok().filter(|_| is_pattern) else { return Ok(()) };
            let needs = Needs::default();
            needs.make(&parse(&pattern), &["abc".to_owned()]);
            if regex.is_match(&text) {
                prop_assert!(needs.may_match(text.to_ascii_lowercase().as_bytes()), "{pattern} {text}");
            }
        }
    }
}
