//! Rules about streams: text rules, and rules that call for a look at a command.
//!
//! Both are TOML of the same shape as other detection rules. A rule with `commands` fires where its pattern shows that
//! a command may stand, and only if one of the named rules about commands then holds for what the shell would do.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::command::{self, Command, Form};
use super::doubts;
use crate::commands::{CommandRules, GuardContext};
use crate::decision::Severity;
use crate::paths::{Access, Os, PathRequest, Place, SensitivePaths};
use crate::rules::{
    Budget, CompiledRule, Match, RuleProblem, RuleProblems, RuleSet, RuleSetConfig, RuleSource, Scope,
    Surface,
};
use crate::shell;
use crate::shell::analysis::UnresolvedCause;
use crate::shell::effect::{Effect, EffectKind, TargetKind};

pub use crate::rules::STREAMS;

/// Bytes of commands that are read to look at the end of one line, for each [`LINE_BYTES`] of it. What is beyond is
/// reported, unread.
const COMMAND_BYTES_MAX: usize = 32 * 1024;
/// See [`COMMAND_BYTES_MAX`].
const LINE_BYTES: usize = 2048;
/// Parts of a path from which on deleting it is no more than a question.
const DEEP: usize = 3;
/// What a look at a command costs besides its bytes, in bytes; and a byte of the line that it is taken from.
const COMMAND_COST: usize = 64;
const LINE_COST_DIVISOR: usize = 8;
/// What the confidence is multiplied with where a command is only spoken of, or was not read.
const MENTION_CONFIDENCE: f64 = 0.6;

/// Every rule about streams, compiled.
pub struct StreamRules {
    set: RuleSet,
    commands: Arc<CommandRules>,
    /// By index of a rule about commands: the rules about streams that stand for it.
    by_command: Vec<Vec<u32>>,
    /// The same by index of a rule about paths.
    by_path: Vec<Vec<u32>>,
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

/// A place where a command may stand, and the most that it can mean.
struct Trigger {
    rule: u32,
    range: Range<usize>,
    severity: Severity,
    /// Whether its rule says no more than that a command begins there.
    is_any: bool,
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
        let scanned = self.set.with_scratch(|scratch| {
            self.set.scan(text, scope, None, scratch, &Budget::UNLIMITED, &mut matches)
        });
        debug_assert!(scanned.is_ok(), "an unlimited budget is never spent");
        let mut found = Vec::new();
        let first = command::first_line(text, line);
        let mut triggers: Vec<Trigger> = Vec::new();
        for Match { rule, range } in matches {
            let compiled = &self.set.rules()[rule as usize];
            if compiled.def.commands.is_empty() {
                let (severity, confidence) = (compiled.info.severity, compiled.info.confidence);
                found.push(Found { rule, range, severity, confidence });
            } else if with_commands && range.end > first {
                let (severity, is_any) = (compiled.info.severity, compiled.def.any_command);
                triggers.push(Trigger { rule, range, severity, is_any });
            }
        }
        if !triggers.is_empty() {
            self.look_at_commands(text, line, triggers, &mut found);
        }
        found
    }

    fn look_at_commands(&self, text: &str, line: usize, mut triggers: Vec<Trigger>, found: &mut Vec<Found>) {
        // Of those at one place the one that may count most; what may be any command has what the others leave.
        triggers.sort_by_key(|one| (one.is_any, one.range.start, std::cmp::Reverse(one.severity)));
        let mut seen: Vec<Range<usize>> = Vec::new();
        // What no shell would take all of: the critical things in it are looked at one by one.
        let mut broken: Vec<Range<usize>> = Vec::new();
        let mut unread: Vec<u32> = Vec::new();
        let mut spent = 0;
        let most = COMMAND_BYTES_MAX * (text.len() - line.min(text.len())).div_ceil(LINE_BYTES).max(1);
        for Trigger { rule, range: trigger, severity, is_any } in triggers {
            let holds = |range: &&Range<usize>| range.contains(&trigger.start);
            if seen.iter().any(|range| holds(&range)) {
                let whole = broken.iter().find(holds).filter(|_| severity == Severity::Critical);
                match whole {
                    Some(whole) if spent < most => {
                        let part = command::mention(text, trigger.start..whole.end);
                        spent += self.look_at(&part, found).0;
                    }
                    Some(_) => self.unread(rule, trigger, &mut unread, found),
                    None => {}
                }
                continue;
            }
            if is_any && spent >= most {
                continue;
            }
            if spent >= most {
                self.unread(rule, trigger, &mut unread, found);
                continue;
            }
            spent += text.len() / LINE_COST_DIVISOR;
            let Some(one) = command::around(text, line, trigger.clone()) else { continue };
            if one.form == Form::Mention {
                // What is only spoken of counts when it is critical: nothing to look at otherwise. Others may be spoken
                // of behind it.
                if severity == Severity::Critical {
                    spent += self.look_at(&one, found).0;
                }
                continue;
            }
            let one = Command { trigger: trigger.start.saturating_sub(one.range.start), ..one };
            seen.push(one.range.clone());
            let (cost, problem) = self.look_at(&one, found);
            spent += cost;
            match problem {
                Some(cause) if cause.is_limit() && !is_any => {
                    self.unread(rule, trigger, &mut unread, found);
                }
                Some(UnresolvedCause::Syntax) => {
                    if severity == Severity::Critical {
                        let part = command::mention(text, trigger.start..one.range.end.max(trigger.start));
                        spent += self.look_at(&part, found).0;
                    }
                    broken.push(one.range);
                }
                _ => {}
            }
        }
    }

    /// Reports a command that was not read, once for a rule.
    fn unread(&self, rule: u32, range: Range<usize>, unread: &mut Vec<u32>, found: &mut Vec<Found>) {
        if unread.contains(&rule) {
            return;
        }
        unread.push(rule);
        let info = &self.set.rules()[rule as usize].info;
        let (severity, confidence) =
            (info.severity.min(Severity::High), info.confidence * MENTION_CONFIDENCE);
        found.push(Found { rule, range, severity, confidence });
    }

    /// What rules say about one command; what it cost, and the worst that kept it from being read.
    fn look_at(&self, one: &Command<'_>, found: &mut Vec<Found>) -> (usize, Option<UnresolvedCause>) {
        let place = Place { cwd: "", home: "", os: Os::Linux };
        let analysis = shell::analyse(&one.text, place, &shell::limits::Limits::default());
        let context = GuardContext { place, workspace_roots: &[] };
        for hit in self.commands.judge(&analysis, &context) {
            let index = self.commands.rules().iter().position(|known| std::ptr::eq(known, hit.rule));
            let streams = index.and_then(|index| self.by_command.get(index)).map_or(&[][..], |of| &**of);
            let effect = &analysis.effects[hit.effect];
            // Deep below a folder of the system lie what services keep and what is installed: routine as often as not.
            let is_deep = hit.rule.severity < Severity::Critical && is_deep(effect);
            let is_doubtful = is_deep || doubts::is_doubtful(&hit.rule.category, effect, &one.text);
            let doubt = if is_doubtful { MENTION_CONFIDENCE } else { 1.0 };
            // Nor does it kill where nobody is asked.
            let severity =
                if is_doubtful { hit.rule.severity.min(Severity::High) } else { hit.rule.severity };
            let certainty = (severity, hit.rule.confidence * doubt);
            self.command_found(streams, certainty, one, &effect.span, found);
        }
        for effect in &analysis.effects {
            self.look_at_path(effect, &place, one, found);
        }
        let causes = || analysis.unresolved.iter().map(|one| one.cause);
        let problem = causes().find(|cause| cause.is_limit());
        let problem = problem.or_else(|| causes().find(|cause| *cause == UnresolvedCause::Syntax));
        (one.text.len() + COMMAND_COST, problem)
    }

    fn look_at_path(&self, effect: &Effect, place: &Place<'_>, one: &Command<'_>, found: &mut Vec<Found>) {
        let Some(target) = effect.target.as_ref().filter(|target| target.kind == TargetKind::Path) else {
            return;
        };
        let access = match effect.kind {
            EffectKind::ReadPath | EffectKind::SendData => Access::Read,
            EffectKind::WritePath | EffectKind::ChangeMode | EffectKind::ChangeOwner => Access::Write,
            EffectKind::DeletePath => Access::Delete,
            _ => return,
        };
        let request = PathRequest {
            has_glob: target.has_glob,
            is_recursive: effect.recursive,
            ..PathRequest::of_shell(&target.text, access, &effect.program, place)
        };
        let paths = SensitivePaths::builtin();
        let Some(hit) = paths.judge(&request).hit else { return };
        let index = paths.rules().iter().position(|known| std::ptr::eq(known, hit.rule));
        let streams = index.and_then(|index| self.by_path.get(index)).map_or(&[][..], |of| &**of);
        self.command_found(streams, (hit.severity, 1.0), one, &effect.span, found);
    }

    fn command_found(
        &self,
        streams: &[u32],
        (severity, confidence): (Severity, f64),
        one: &Command<'_>,
        span: &Range<usize>,
        found: &mut Vec<Found>,
    ) {
        // What only warns where a tool is asked for is ordinary in a log.
        if severity < Severity::High {
            return;
        }
        for stream in streams {
            let rule = &self.set.rules()[*stream as usize];
            if rule.excludes(&one.text) {
                continue;
            }
            let info = &rule.info;
            let mut severity = severity.min(info.severity);
            let mut confidence = info.confidence * confidence;
            match one.form {
                Form::Run => {}
                // A line of a script that is shown; only what nobody writes into one is certain.
                Form::Bare if confidence >= 1.0 && severity >= Severity::Critical => {}
                Form::Bare if confidence >= 1.0 => confidence *= MENTION_CONFIDENCE,
                Form::Bare => severity = severity.min(Severity::High),
                // Who speaks of a command names it first; what follows may be prose.
                Form::Mention if severity < Severity::Critical || span.start > 0 => continue,
                // No more than a question for the judge.
                Form::Doubtful | Form::Mention => {
                    severity = severity.min(Severity::High);
                    confidence *= MENTION_CONFIDENCE;
                }
            }
            found.push(Found { rule: *stream, range: one.place_of(span), severity, confidence });
        }
    }

    /// Every range that one rule finds in a text of one or more lines, for the self-check of rules.
    pub fn find_with_rule(&self, rule: u32, text: &str) -> Vec<Range<usize>> {
        let line = text.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
        let found = self.find_all(text.trim_end_matches('\n'), line, true);
        found.into_iter().filter(|found| found.rule == rule).map(|found| found.range).collect()
    }
}

/// Whether something is deleted that lies [`DEEP`] folders below the root.
fn is_deep(effect: &Effect) -> bool {
    let target = effect.target.as_ref().filter(|target| target.kind == TargetKind::Path);
    effect.kind == EffectKind::DeletePath
        && target.is_some_and(|target| target.text.split('/').filter(|part| !part.is_empty()).count() >= DEEP)
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
