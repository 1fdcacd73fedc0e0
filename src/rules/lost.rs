//! Texts that a pattern matches and for which its gate never opens.
//!
//! A rule is asked only where one of its literals stands. Whoever writes the pattern `drop(?:ped)?\s+table` and the literal
//! `drop table` has lost `dropped table` without a word, and examples show that by luck only. So the automaton of the pattern
//! and that of the literals read the same bytes side by side, shortest texts first: where the pattern ends its match
//! before a literal was seen, the text is lost; where no pair of states is left and none ended so, no text is.
//!
//! Limits. Repeats of more than a few are read as if they had no end, as automata count by states; what is told was tried
//! with the pattern as it stands. Texts are those that begin and end with their match. Exclusions and validators are not
//! asked. Where the automata grow too large that is told instead.

use std::collections::{HashSet, VecDeque};

use memchr::memmem;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};
use regex_syntax::hir::{Hir, HirKind, Repetition};

use super::compile::{self, CompiledRule};
use super::set::literals_of;

/// Most texts that are told of one rule.
const TOLD_MAX: usize = 3;
/// Most pairs of states that are looked at for one rule.
const PAIRS_MAX: usize = 1 << 18;
/// Most bytes of states of one automaton.
const STATES_BYTES_MAX: usize = 16 << 20;
/// Repeats that may be longer are read without an end.
const COUNTED_MAX: u32 = 8;
/// What stands before a literal that begins a word: no letter or digit, but for those of an escape, as the gate has it.
const BEGIN: &str = r"(?:^|[^A-Za-z0-9]|\\[\x00-\xff]{1,15})";
/// What stands behind a literal that ends one.
const END: &str = "(?:$|[^A-Za-z0-9])";

/// What the gate of a rule loses.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// Some of the shortest texts that the pattern matches and that hold no literal; empty where there is none.
    Texts(Vec<String>),
    /// The automata grew too large before such a text was seen, or what ended so was no text to tell.
    Unknown,
}

/// What the gate of a rule loses.
///
/// Nothing is lost of a rule whose literals are its context words, one of which it needs, or whose pattern only shows where
/// a command may begin, which `commands` then judge.
pub(super) fn lost(rule: &CompiledRule) -> Lost {
    let def = &rule.def;
    if def.phrases.is_some() || def.trigger.is_some() || !def.commands.is_empty() || def.is_gated_by_context()
    {
        return Lost::Texts(Vec::new());
    }
    let (mut texts, mut is_certain) = (Vec::new(), true);
    let walked = walk(rule, |text| {
        let text = std::str::from_utf8(text).ok();
        // Letters beyond ASCII are read in lower case before a pattern is asked.
        let is_lower = |text: &&str| text.chars().all(|c| c.is_ascii() || c.to_lowercase().eq([c]));
        match text.filter(is_lower).filter(|text| rule.regex.is_match(text)) {
            // One that holds another is lost for the same reason.
            Some(text) if texts.iter().all(|told: &String| !text.contains(told.as_str())) => {
                texts.push(text.to_owned());
            }
            Some(_) => {}
            // A longer text that ends in the same states may be one; it is not come by again.
            None => is_certain = false,
        }
        texts.len() < TOLD_MAX
    });
    is_certain &= walked.is_some();
    if texts.is_empty() && !is_certain { Lost::Unknown } else { Lost::Texts(texts) }
}

/// Tells texts that the pattern of a rule, its repeats endless, matches without a literal, as long as it is wanted. None when
/// it had to stop before all were seen.
fn walk(rule: &CompiledRule, is_wanted: impl FnMut(&[u8]) -> bool) -> Option<()> {
    let pattern = compile::parse(&rule.def.pattern).ok()?;
    let anywhere = if rule.def.literals_begin_words { &[][..] } else { &rule.def.literals };
    // What an automaton that counts would be too large for is often seen at once.
    if always_holds(&pattern, anywhere) {
        return Some(());
    }
    Walk::of(&pattern, &gate(rule)?)?.run(is_wanted)
}

/// Whether every match of a pattern holds one of some words, in any ASCII case; none where the automata grow too large to tell.
/// What the pattern asks of the text around a match is not asked.
pub(super) fn every_match_holds(pattern: &Hir, words: &[String]) -> Option<bool> {
    let pattern = unbounded_by_text(pattern);
    if always_holds(&pattern, words) {
        return Some(true);
    }
    let words: Vec<String> = words.iter().map(|word| regex_syntax::escape(word)).collect();
    let words = compile::parse(&format!("(?i)(?:{})", words.join("|"))).ok()?;
    let mut holds = true;
    Walk::of(&pattern, &words)?.run(|_| {
        holds = false;
        false
    })?;
    Some(holds)
}

/// A pattern without its looks at what stands before and behind.
fn unbounded_by_text(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(_) => Hir::empty(),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
        HirKind::Repetition(repetition) => {
            let Repetition { min, max, greedy, .. } = *repetition;
            Hir::repetition(Repetition {
                min,
                max,
                greedy,
                sub: Box::new(unbounded_by_text(&repetition.sub)),
            })
        }
        HirKind::Capture(capture) => unbounded_by_text(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(unbounded_by_text).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(unbounded_by_text).collect()),
    }
}

/// Whether a part that no match leaves out is spelled so that it holds a literal. False tells nothing.
fn always_holds(hir: &Hir, literals: &[String]) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(_) => false,
        HirKind::Literal(part) => {
            let part = part.0.to_ascii_lowercase();
            literals
                .iter()
                .any(|literal| memmem::find(&part, literal.to_ascii_lowercase().as_bytes()).is_some())
        }
        HirKind::Repetition(repetition) => repetition.min > 0 && always_holds(&repetition.sub, literals),
        HirKind::Capture(capture) => always_holds(&capture.sub, literals),
        HirKind::Concat(parts) => parts.iter().any(|part| always_holds(part, literals)),
        HirKind::Alternation(branches) => branches.iter().all(|branch| always_holds(branch, literals)),
    }
}

/// Two automata on their way through the same texts.
struct Walk {
    pattern: (DFA, Cache),
    literals: (DFA, Cache),
    /// A byte of each kind that either tells apart.
    bytes: Vec<u8>,
    /// Pairs of states, and from which pair and by which byte each was reached first.
    reached: Vec<(Pair, Option<(usize, u8)>)>,
    known: HashSet<Pair>,
}

/// States of the two.
type Pair = (LazyStateID, LazyStateID);

impl Walk {
    fn of(pattern: &Hir, literals: &Hir) -> Option<Self> {
        let pattern = automaton(&endless(pattern))?;
        let literals = automaton(literals)?;
        let mut kinds = HashSet::new();
        // What reads well comes first: it stands for all of its kind in what is told.
        let letters_first = (b'a'..=b'z').chain(b' '..=b'~').chain(0..=u8::MAX);
        let kind = |byte: &u8| (pattern.byte_classes().get(*byte), literals.byte_classes().get(*byte));
        let bytes = letters_first.filter(|byte| kinds.insert(kind(byte))).collect();
        let (own, gate) = (pattern.create_cache(), literals.create_cache());
        Some(Self {
            pattern: (pattern, own),
            literals: (literals, gate),
            bytes,
            reached: Vec::new(),
            known: HashSet::new(),
        })
    }

    /// Tells texts that the pattern matches without a literal, as long as it is wanted, of those that end in the same two states
    /// the shortest. None when it had to stop before all were seen.
    fn run(&mut self, mut is_wanted: impl FnMut(&[u8]) -> bool) -> Option<()> {
        let begin = |(dfa, cache): &mut (DFA, Cache), anchored| {
            dfa.start_state(cache, &start::Config::new().anchored(anchored)).ok()
        };
        let first = (begin(&mut self.pattern, Anchored::Yes)?, begin(&mut self.literals, Anchored::No)?);
        let mut waiting = VecDeque::new();
        self.reach(first, None, &mut waiting);
        while let Some(at) = waiting.pop_front() {
            let (own, gate) = self.reached[at].0;
            let (pattern, own_cache) = &mut self.pattern;
            let (literals, gate_cache) = &mut self.literals;
            let is_match = pattern.next_eoi_state(own_cache, own).ok()?.is_match();
            let is_lost = is_match && !literals.next_eoi_state(gate_cache, gate).ok()?.is_match();
            if is_lost && !is_wanted(&self.text(at)) {
                return Some(());
            }
            for index in 0..self.bytes.len() {
                let byte = self.bytes[index];
                let own = self.pattern.0.next_state(&mut self.pattern.1, own, byte).ok()?;
                if own.is_dead() {
                    continue;
                }
                let gate = self.literals.0.next_state(&mut self.literals.1, gate, byte).ok()?;
                if !gate.is_match() {
                    self.reach((own, gate), Some((at, byte)), &mut waiting);
                }
            }
            if self.reached.len() > PAIRS_MAX {
                return None;
            }
        }
        Some(())
    }

    fn reach(&mut self, pair: Pair, from: Option<(usize, u8)>, waiting: &mut VecDeque<usize>) {
        if self.known.insert(pair) {
            waiting.push_back(self.reached.len());
            self.reached.push((pair, from));
        }
    }

    /// The text by which a pair was reached.
    fn text(&self, mut at: usize) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some((before, byte)) = self.reached[at].1 {
            text.push(byte);
            at = before;
        }
        text.reverse();
        text
    }
}

/// The automaton of everything that a pattern matches, not of the first match alone. It never forgets a state, and fails where it
/// would have to.
fn automaton(hir: &Hir) -> Option<DFA> {
    let config = thompson::Config::new().utf8(false).which_captures(thompson::WhichCaptures::None);
    let nfa = thompson::Compiler::new().configure(config).build_from_hir(hir).ok()?;
    let config = DFA::config()
        .match_kind(MatchKind::All)
        .cache_capacity(STATES_BYTES_MAX)
        .minimum_cache_clear_count(Some(0));
    DFA::builder().configure(config).build_from_nfa(nfa).ok()
}

/// A pattern of the literals that open the gate of a rule.
fn gate(rule: &CompiledRule) -> Option<Hir> {
    let def = &rule.def;
    let joins = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bounded = |literal: &String, starts_word: bool, ends_word: bool| {
        let begin = if starts_word && joins(literal.as_bytes().first()) { BEGIN } else { "" };
        let end = if ends_word && joins(literal.as_bytes().last()) { END } else { "" };
        format!("{begin}{}{end}", regex_syntax::escape(literal))
    };
    let anywhere = literals_of(rule);
    let literals = anywhere.iter().map(|literal| bounded(literal, def.literals_begin_words, false));
    let words = def.literal_words.iter().map(|word| bounded(word, true, true));
    let all: Vec<String> = literals.chain(words).collect();
    compile::parse(&format!("(?i)(?:{})", all.join("|"))).ok()
}

/// A pattern with long bounded repeats made unbounded above.
fn endless(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
        HirKind::Repetition(repetition) => {
            let Repetition { min, max, greedy, .. } = *repetition;
            let max = max.filter(|max| *max < COUNTED_MAX);
            Hir::repetition(Repetition { min, max, greedy, sub: Box::new(endless(&repetition.sub)) })
        }
        HirKind::Capture(capture) => endless(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(endless).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(endless).collect()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex_automata::Input;

    use super::super::{RuleSet, RuleSetConfig, RuleSource};
    use super::*;

    /// What is lost of a rule with these fields.
    fn lost_of(fields: &str) -> Lost {
        let text = format!(
            "plugin = \"code\"\n[[rule]]\nid = \"code.it\"\ncategory = \"code.it\"\nseverity = \"low\"\n\
             description = \"x\"\nrecommendation = \"x\"\nexamples = [\"x\"]\nnegative_examples = [\"y\"]\n{fields}"
        );
        let source = RuleSource::custom("it.toml", "code", text);
        let set = RuleSet::compile(&[source], &RuleSetConfig::default()).expect("test rules are valid");
        lost(&set.rules()[0])
    }

    #[test]
    fn the_shortest_lost_texts_are_told() {
        for (fields, wanted) in [
            ("pattern = 'drop(?:ped)?\\s{1,4}table'\nliterals = ['drop table']", &["drop\ttable"][..]),
            ("pattern = 'drop(?:ped)?\\s{1,4}table'\nliterals = ['table']", &[]),
            ("pattern = 'eyJ|eyI'\nliterals = ['eyJ']", &["eyI"]),
            ("pattern = '(?i)Dro(?:p|wn)'\nliterals = ['DROP']", &["drown"]),
            // Amid the gap, or over its edges, a literal may stand.
            ("pattern = 'a[a-z]{9}b'\nliterals = ['aaa', 'aab']", &["aacaacaacab"]),
            ("pattern = 'key.{0,40}(?:one|two)'\nliterals = ['keyone', 'two']", &["keyaone"]),
            // A repeat that is long must not be told as a short one.
            ("pattern = 'k_[a-f]{24}'\nliterals = ['k_aaaa']", &["k_aaabaaaaaaaaaaaaaaaaaaaa"]),
            ("pattern = '\\bnif\\b'\nliteral_words = ['nif']", &[]),
            ("pattern = 'k?nif'\nliteral_words = ['nif']", &["knif"]),
            ("pattern = '(?:k|\\\\n)?nif'\nliterals = ['nif']\nliterals_begin_words = true", &["knif"]),
            ("pattern = '\\d{4}'\nliterals = ['pin']\nnear = ['pin', 'pins']\nmatch_length_max = 50", &[]),
            (
                "pattern = '\\d{4}'\nliterals = ['pin']\nnear = ['pin', 'code']\nmatch_length_max = 50",
                &["0000"],
            ),
            ("pattern = '\\d{4}[ab]'\ntrigger = 'digits'", &[]),
        ] {
            let wanted = wanted.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(lost_of(fields), Lost::Texts(wanted), "{fields}");
        }
    }

    const PIECES: &[&str] = &[
        "ab",
        "b[ac]",
        "[ab]c",
        "(?:cab|bb|a)",
        "[abc]{0,2}",
        "c?",
        "[^a]{0,9}?",
        "[bc]{8,9}",
        "(?i:A|bc)",
        "\\bc",
    ];

    #[test]
    fn what_cannot_be_told_is_said() {
        // The text that ends first breaks a bound, and hides a longer one.
        let hidden = "pattern = 'k(?:a{1,8}|[ab]{10})z'\nliterals = ['kaz', 'kaaz', 'kaaaz', 'kaaaaz', 'kaaaaaz', 'kaaaaaaz', \
                      'kaaaaaaaz', 'kaaaaaaaaz']";
        assert_eq!(lost_of(hidden), Lost::Unknown);
        // Which of the last forty are an `a` is a state of its own for each answer.
        let counted = "[ab]{9,90}a[ab]{40}";
        let by_classes = format!("pattern = '{counted}[Kk]ey'\nliterals = ['key']");
        assert_eq!(lost_of(&by_classes), Lost::Unknown);
        let spelled = format!("pattern = '{counted}(?P<value>key_[a-z]{{2}}){{1,3}}'\nliterals = ['ey_']");
        assert_eq!(lost_of(&spelled), Lost::Texts(Vec::new()));
    }

    #[test]
    fn words_that_every_match_holds_are_known() {
        for (pattern, words, wanted) in [
            ("SK[0-9a-f]{32}", &["sk"][..], Some(true)),
            ("(?i)passw(?:or)?d[=:]{1,3}[0-9a-z]{20}", &["passwd", "password"], Some(true)),
            ("(?i)(?:mer(?:aki|cury))=", &["meraki", "mercury"], Some(true)),
            (r"(?:^|[^a-z])[a-z]{3}\dQ~[a-z]{31,34}(?:$|\s)", &["q~"], Some(true)),
            ("(?:opx_)?[0-9a-f]{32}", &["opx"], Some(false)),
            (r"\Bxyz-[0-9]{4}", &["acme"], Some(false)),
            ("(?i)tok[:= ]+[0-9a-f]{32}", &["tok:", "tok="], Some(false)),
            ("[ab]{9,90}a[ab]{40}[Kk]ey", &["key"], None),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let pattern = compile::parse(pattern).expect("test patterns are valid");
            assert_eq!(every_match_holds(&pattern, &words), wanted, "{words:?}");
        }
    }

    proptest! {
        #[test]
        fn where_nothing_is_told_nothing_is_lost(
            pieces in prop::collection::vec(prop::sample::select(PIECES), 2..6),
            literals in prop::collection::vec("[abc]{3}", 1..6),
            text in "[abc]{3,9}",
        ) {
            let pattern = format!("{}b", pieces.concat());
            let Lost::Texts(lost) = lost_of(&format!("pattern = '{pattern}'\nliterals = {literals:?}")) else {
                return Err(TestCaseError::fail("it is small"));
            };
            let regex = regex_automata::meta::Regex::new(&pattern).expect("it is made of valid pieces");
            let holds = |text: &str| literals.iter().any(|literal| text.contains(literal.as_str()));
            for told in &lost {
                prop_assert!(regex.is_match(told) && !holds(told), "{pattern} {literals:?} {told}");
            }
            let whole = |text: &str| {
                let input = Input::new(text).anchored(Anchored::Yes);
                regex.search_half(&input).is_some_and(|end| end.offset() == text.len())
            };
            if lost.is_empty() && whole(&text) {
                prop_assert!(holds(&text), "{pattern} {literals:?} {text}");
            }
        }
    }
}
