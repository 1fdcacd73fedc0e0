//! What rules say about the commands of a line.
//!
//! A rule about commands shows by its pattern that one may stand at a place. Each command there is read once, however many
//! rules ask for it, and what a shell would do with it is judged by the rules about commands and paths.

use std::cmp::Reverse;
use std::ops::Range;

use super::command::{self, Command, Form};
use super::doubts;
use super::rules::{Found, StreamRules};
use crate::commands::GuardContext;
use crate::decision::Severity;
use crate::paths::{Access, Os, PathRequest, Place, SensitivePaths};
use crate::shell;
use crate::shell::analysis::UnresolvedCause;
use crate::shell::effect::{Effect, EffectKind, TargetKind};

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

/// A place where a command may stand, and the most that it can mean.
pub(super) struct Trigger {
    pub rule: u32,
    pub range: Range<usize>,
    pub severity: Severity,
}

/// Looks at the commands of one text.
pub(super) struct Looks<'a> {
    rules: &'a StreamRules,
    text: &'a str,
    /// Where its last line begins.
    line: usize,
    found: &'a mut Vec<Found>,
    /// Commands that were read.
    read: Vec<Range<usize>>,
    /// What no shell would take all of: the critical things in it are looked at one by one.
    broken: Vec<Range<usize>>,
    /// Rules that were told of as not read.
    unread: Vec<u32>,
    /// What looks have cost, and how much they may, in bytes.
    spent: usize,
    most: usize,
}

impl<'a> Looks<'a> {
    pub fn new(rules: &'a StreamRules, text: &'a str, line: usize, found: &'a mut Vec<Found>) -> Self {
        let most = COMMAND_BYTES_MAX * (text.len() - line.min(text.len())).div_ceil(LINE_BYTES).max(1);
        Self {
            rules,
            text,
            line,
            found,
            read: Vec::new(),
            broken: Vec::new(),
            unread: Vec::new(),
            spent: 0,
            most,
        }
    }

    /// Whether the command that a literal stands in, or ends at, was read.
    pub fn have_read(&self, literal: &Range<usize>) -> bool {
        self.read.iter().any(|range| range.start < literal.end && literal.end < range.end)
    }

    /// Looks at what stands at these places. `is_any` where their rules say no more than that a command begins there: those
    /// are not missed where no more is read.
    pub fn at_triggers(&mut self, mut triggers: Vec<Trigger>, is_any: bool) {
        // Of those at one place the one that may count most.
        triggers.sort_by_key(|one| (one.range.start, Reverse(one.severity)));
        for trigger in triggers {
            self.at_trigger(trigger, is_any);
        }
    }

    fn at_trigger(&mut self, Trigger { rule, range: trigger, severity }: Trigger, is_any: bool) {
        let holds = |range: &&Range<usize>| range.contains(&trigger.start);
        if self.read.iter().any(|range| holds(&range)) {
            let whole = self.broken.iter().find(holds).filter(|_| severity == Severity::Critical);
            match whole.map(|whole| whole.end) {
                Some(end) if self.spent < self.most => self.at_mention(trigger.start..end),
                Some(_) => self.note_unread(rule, trigger),
                None => {}
            }
            return;
        }
        if self.spent >= self.most {
            if !is_any {
                self.note_unread(rule, trigger);
            }
            return;
        }
        self.spent += self.text.len() / LINE_COST_DIVISOR;
        let Some(one) = command::around(self.text, self.line, trigger.clone()) else { return };
        if one.form == Form::Mention {
            // What is only spoken of counts when it is critical: nothing to look at otherwise. Others may be spoken of
            // behind it.
            if severity == Severity::Critical {
                self.at_command(&one);
            }
            return;
        }
        let one = Command { trigger: trigger.start.saturating_sub(one.range.start), ..one };
        self.read.push(one.range.clone());
        match self.at_command(&one) {
            Some(cause) if cause.is_limit() && !is_any => self.note_unread(rule, trigger),
            Some(UnresolvedCause::Syntax) => {
                if severity == Severity::Critical {
                    self.at_mention(trigger.start..one.range.end.max(trigger.start));
                }
                self.broken.push(one.range);
            }
            _ => {}
        }
    }

    fn at_mention(&mut self, range: Range<usize>) {
        let part = command::mention(self.text, range);
        self.at_command(&part);
    }

    /// Reports a command that was not read, once for a rule.
    fn note_unread(&mut self, rule: u32, range: Range<usize>) {
        if self.unread.contains(&rule) {
            return;
        }
        self.unread.push(rule);
        let info = &self.rules.rules()[rule as usize].info;
        let (severity, confidence) =
            (info.severity.min(Severity::High), info.confidence * MENTION_CONFIDENCE);
        self.found.push(Found { rule, range, severity, confidence });
    }

    /// What rules say about one command. Answers the worst that kept it from being read.
    fn at_command(&mut self, one: &Command<'_>) -> Option<UnresolvedCause> {
        self.spent += one.text.len() + COMMAND_COST;
        let rules = self.rules;
        let place = Place { cwd: "", home: "", os: Os::Linux };
        let analysis = shell::analyse(&one.text, place, &shell::limits::Limits::default());
        let context = GuardContext { place, workspace_roots: &[] };
        for hit in rules.commands.judge(&analysis, &context) {
            let index = rules.commands.rules().iter().position(|known| std::ptr::eq(known, hit.rule));
            let streams = index.and_then(|index| rules.by_command.get(index)).map_or(&[][..], |of| &**of);
            let effect = &analysis.effects[hit.effect];
            // Deep below a folder of the system lie what services keep and what is installed: routine as often as not.
            let is_deep = hit.rule.severity < Severity::Critical && is_deep(effect);
            let is_doubtful = is_deep || doubts::is_doubtful(&hit.rule.category, effect, &one.text);
            let doubt = if is_doubtful { MENTION_CONFIDENCE } else { 1.0 };
            // Nor does it kill where nobody is asked.
            let severity =
                if is_doubtful { hit.rule.severity.min(Severity::High) } else { hit.rule.severity };
            let certainty = (severity, hit.rule.confidence * doubt);
            self.command_found(streams, certainty, one, &effect.span);
        }
        for effect in &analysis.effects {
            self.at_path(effect, &place, one);
        }
        let causes = || analysis.unresolved.iter().map(|one| one.cause);
        let limit = causes().find(|cause| cause.is_limit());
        limit.or_else(|| causes().find(|cause| *cause == UnresolvedCause::Syntax))
    }

    fn at_path(&mut self, effect: &Effect, place: &Place<'_>, one: &Command<'_>) {
        let rules = self.rules;
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
        let streams = index.and_then(|index| rules.by_path.get(index)).map_or(&[][..], |of| &**of);
        self.command_found(streams, (hit.severity, 1.0), one, &effect.span);
    }

    fn command_found(
        &mut self,
        streams: &[u32],
        (severity, confidence): (Severity, f64),
        one: &Command<'_>,
        span: &Range<usize>,
    ) {
        // What only warns where a tool is asked for is ordinary in a log.
        if severity < Severity::High {
            return;
        }
        for stream in streams {
            let rule = &self.rules.rules()[*stream as usize];
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
            self.found.push(Found { rule: *stream, range: one.place_of(span), severity, confidence });
        }
    }
}

/// Whether something is deleted that lies [`DEEP`] folders below the root.
fn is_deep(effect: &Effect) -> bool {
    let target = effect.target.as_ref().filter(|target| target.kind == TargetKind::Path);
    effect.kind == EffectKind::DeletePath
        && target.is_some_and(|target| target.text.split('/').filter(|part| !part.is_empty()).count() >= DEEP)
}
