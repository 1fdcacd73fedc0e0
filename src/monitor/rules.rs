//! Rules about streams: text rules, and rules that call for a look at a command.
//!
//! Both are TOML of the same shape as other detection rules. A rule with `commands` fires where its pattern shows that
//! a command may stand, and only if one of the named rules about commands then holds for what the shell would do.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::command;
use super::triggers::{Looks, Trigger};
use crate::commands::CommandRules;
use crate::decision::Severity;
use crate::paths::SensitivePaths;
use crate::rules::{
    CompiledRule, Match, RuleProblem, RuleProblems, RuleSet, RuleSetConfig, RuleSource, Scope, Surface,
};

pub use crate::rules::STREAMS;

/// Every rule about streams, compiled.
pub struct StreamRules {
    set: RuleSet,
    pub(super) commands: Arc<CommandRules>,
    /// By index of a rule about commands: the rules about streams that stand for it.
    pub(super) by_command: Vec<Vec<u32>>,
    /// The same by index of a rule about paths.
    pub(super) by_path: Vec<Vec<u32>>,
    wraps: Wraps,
}

impl std::fmt::Debug for StreamRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamRules").field("set", &self.set).finish_non_exhaustive()
    }
}

/// Which bytes may stand on both sides of a blank in a literal: a filter of one bit for each hash.
struct Wraps {
    bits: Box<[u64; 64]>,
    /// Bytes that stand before a blank.
    ends: Box<[bool; 256]>,
}

impl Wraps {
    fn of<'l>(literals: impl Iterator<Item = &'l str>) -> Self {
        let (mut bits, mut ends) = (Box::new([0u64; 64]), Box::new([false; 256]));
        for literal in literals.map(str::as_bytes) {
            for blank in literal.iter().enumerate().filter(|(_, b)| **b == b' ').map(|(at, _)| at) {
                if let Some(end) = literal[..blank].last() {
                    ends[usize::from(end.to_ascii_lowercase())] = true;
                    ends[usize::from(end.to_ascii_uppercase())] = true;
                }
                match Self::hash(&literal[..blank], &literal[blank + 1..]) {
                    Some(hash) => bits[hash / 64] |= 1 << (hash % 64),
                    // Too short to tell anything, unless it ends there.
                    None if blank + 1 < literal.len() => bits.fill(u64::MAX),
                    None => {}
                }
            }
        }
        Self { bits, ends }
    }

    /// Two bytes before the blank and one behind it; nothing where the literal has fewer.
    fn hash(before: &[u8], after: &[u8]) -> Option<usize> {
        let [.., one, two] = before else { return None };
        let five_bits = |b: u8| usize::from(b.to_ascii_lowercase() & 31);
        let first = five_bits(*after.first()?);
        Some((five_bits(*one) * 37 + five_bits(*two) * 1021 + first * 7) & 4095)
    }

    fn may_hold(&self, before: &[u8], after: &[u8]) -> bool {
        Self::hash(before, after).is_some_and(|hash| self.bits[hash / 64] >> (hash % 64) & 1 == 1)
    }
}

/// What a line holds that rules may be about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Signs {
    /// A literal of a text rule.
    pub text: bool,
    /// A literal of a rule about commands.
    pub command: bool,
}

impl Signs {
    pub const fn any(self) -> bool {
        self.text || self.command
    }
}

/// A rule that holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// Index of the rule.
    pub rule: u32,
    /// Where, in bytes of the text.
    pub range: Range<usize>,
    /// How bad it is when certain.
    pub severity: Severity,
    /// How certain it is, above 0.0 up to 1.0.
    pub confidence: f64,
}

impl StreamRules {
    /// Compiles rule files.
    ///
    /// # Errors
    /// Every problem of every rule.
    pub fn compile(sources: &[RuleSource], commands: Arc<CommandRules>) -> Result<Self, RuleProblems> {
        let set = RuleSet::compile(sources, &RuleSetConfig::default())?;
        let mut by_command = vec![Vec::new(); commands.rules().len()];
        let mut by_path = vec![Vec::new(); SensitivePaths::builtin().rules().len()];
        let mut problems = Vec::new();
        for (index, rule) in set.rules().iter().enumerate() {
            for name in &rule.def.commands {
                let mut is_known = false;
                for (nth, command) in commands.rules().iter().enumerate() {
                    if *command.id == **name || command.category.is_within(name) {
                        is_known = true;
                        by_command[nth].push(index as u32);
                    }
                }
                for (nth, path) in SensitivePaths::builtin().rules().iter().enumerate() {
                    if *path.id == **name || path.category.is_within(name) {
                        is_known = true;
                        by_path[nth].push(index as u32);
                    }
                }
                if !is_known {
                    problems.push(RuleProblem {
                        file: rule.info.file.to_string(),
                        line: rule.info.line,
                        rule_id: rule.info.id.to_string(),
                        field: "commands".to_owned(),
                        message: format!("there is no rule or category `{name}` about commands or paths"),
                    });
                }
            }
        }
        if !problems.is_empty() {
            return Err(RuleProblems(problems));
        }
        let text_rules = set.rules().iter().filter(|rule| rule.def.commands.is_empty());
        let wraps = Wraps::of(text_rules.flat_map(|rule| rule.def.literals.iter().map(String::as_str)));
        Ok(Self { set, commands, by_command, by_path, wraps })
    }

    /// The rules, in the order of their files.
    pub fn rules(&self) -> &[CompiledRule] {
        self.set.rules()
    }

    /// What a line without line ends holds: one pass over it, for the literals of all rules.
    pub(super) fn signs(&self, line: &[u8]) -> Signs {
        let mut signs = Signs::default();
        self.set.literals_in(line, 0..line.len(), |rule, _| self.note(rule, &mut signs));
        signs
    }

    fn note(&self, rule: u32, signs: &mut Signs) {
        if self.set.rules()[rule as usize].def.commands.is_empty() {
            signs.text = true;
        } else {
            signs.command = true;
        }
    }

    /// Calls `found` with the place of every literal in a text, roughly in their order.
    pub(super) fn literals(&self, text: &[u8], mut found: impl FnMut(Range<usize>)) {
        self.set.literals_in(text, 0..text.len(), |_, at| found(at));
    }

    /// Whether a literal of a text rule may begin at the end of one line and end in the next, with a blank for what
    /// stands between. Quick, and never wrongly
    /// negative, so that most lines need no closer look.
    pub(super) fn may_wrap(&self, before: &[u8], after: &[u8]) -> bool {
        if !before.last().is_some_and(|last| self.wraps.ends[usize::from(*last)]) {
            return false;
        }
        self.wraps.may_hold(before, after)
    }

    /// Whether a rule is about commands.
    pub(super) fn is_command(&self, rule: u32) -> bool {
        !self.set.rules()[rule as usize].def.commands.is_empty()
    }

    /// Whether a literal stands across byte `seam` of a text; with `is_phrase` one of a text rule.
    pub(super) fn crosses(&self, text: &[u8], seam: usize, is_phrase: bool) -> bool {
        let mut crosses = false;
        self.set.literals_in(text, 0..text.len(), |rule, at| {
            crosses |= at.start < seam && seam < at.end && !(is_phrase && self.is_command(rule));
        });
        crosses
    }

    /// Every text rule that holds in `text`, and every command of the last line (from byte `line`) that a rule is about,
    /// in the order of the text. `with_commands` is false where a line is not complete.
    pub(super) fn find(&self, text: &str, line: usize, with_commands: bool) -> Vec<Found> {
        let found = self.find_all(text, line, with_commands);
        settle(found, |rule| self.set.rules()[rule as usize].info.category.family())
    }

    /// [`Self::find`] before findings compete.
    fn find_all(&self, text: &str, line: usize, with_commands: bool) -> Vec<Found> {
        let mut matches = Vec::new();
        let scope = Scope { plugins: u32::MAX, role: None, surface: Some(Surface::Stream) };
        let mut found = Vec::new();
        let mut later = Vec::new();
        self.set.with_scratch(|scratch| {
            self.set.scan_but_any(text, scope, scratch, &mut matches, &mut later);
        });
        let first = command::first_line(text, line);
        let trigger_of = |found: Match| {
            let info = &self.set.rules()[found.rule as usize].info;
            let is_new = with_commands && found.range.end > first;
            is_new.then_some(Trigger { rule: found.rule, range: found.range, severity: info.severity })
        };
        let mut triggers: Vec<Trigger> = Vec::new();
        for one in matches.drain(..) {
            let compiled = &self.set.rules()[one.rule as usize];
            if compiled.def.commands.is_empty() {
                let (severity, confidence) = (compiled.info.severity, compiled.info.confidence);
                found.push(Found { rule: one.rule, range: one.range, severity, confidence });
            } else {
                triggers.extend(trigger_of(one));
            }
        }
        if triggers.is_empty() && (later.is_empty() || !with_commands) {
            return found;
        }
        let mut looks = Looks::new(self, text, line, &mut found);
        looks.at_triggers(triggers, false);
        // What may be any command has what the others leave.
        later.retain(|literal| !looks.have_read(&literal.at));
        if with_commands && !later.is_empty() {
            self.set.with_scratch(|scratch| self.set.confirm_later(text, &later, scratch, &mut matches));
            looks.at_triggers(matches.into_iter().filter_map(trigger_of).collect(), true);
        }
        found
    }

    /// Every range that one rule finds in a text of one or more lines, for the self-check of rules.
    pub fn find_with_rule(&self, rule: u32, text: &str) -> Vec<Range<usize>> {
        let line = text.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
        let found = self.find_all(text.trim_end_matches('\n'), line, true);
        found.into_iter().filter(|found| found.rule == rule).map(|found| found.range).collect()
    }
}

/// Of findings of one category that overlap, leaves the one that says most.
fn settle<'c>(mut found: Vec<Found>, category: impl Fn(u32) -> &'c str) -> Vec<Found> {
    found.sort_by(|a, b| {
        (b.severity.cmp(&a.severity))
            .then(b.confidence.total_cmp(&a.confidence))
            .then(a.range.start.cmp(&b.range.start))
            .then(b.range.end.cmp(&a.range.end))
            .then(a.rule.cmp(&b.rule))
    });
    let mut kept: BTreeMap<&str, Vec<Range<usize>>> = BTreeMap::new();
    found.retain(|one| {
        let taken = kept.entry(category(one.rule)).or_default();
        let is_free = taken.iter().all(|range| range.end <= one.range.start || one.range.end <= range.start);
        if is_free {
            taken.push(one.range.clone());
        }
        is_free
    });
    found.sort_by_key(|one| (one.range.start, one.rule));
    found
}
