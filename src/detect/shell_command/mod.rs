//! Shell commands quoted or fenced in a text, judged by what they would do.
//!
//! *What it finds*: commands in the places of [`shown`] whose effects a rule about commands holds for at HIGH or more:
//! whatever they are spelt like.
//! *Why it matters*: an agent runs what a text shows it as a command, and patterns over text see one spelling of many.
//! *What it misses*: commands that stand in plain prose, and those that only a policy's own rules know.
//! *What it costs*: a few looks for marks of code, and one for what each line begins with; an analysis for each command
//! that names a program that can do harm.
//!
//! A command that is only shown is no attack by itself, so the finding warns and does not block. What blocks in prose
//! stands in `rules/code`; what a tool is to run is settled by [`argument`].

mod argument;
mod call;
mod fence;
mod gate;
mod line;
mod quoted;
mod shown;

use std::ops::Range;
use std::sync::Arc;

use super::{CODE, Detector};
use crate::commands::{CommandRules, GuardContext};
use crate::decision::{Category, Severity};
use crate::rules::{MetaInfo, SHOWN_CONFIDENCE};
use crate::shell;
use crate::text::{Layers, View};
pub(super) use argument::settle;
use shown::shown_commands;

/// Rule id of what is found.
const RULE_ID: &str = "code.shell-command";
/// The file that it stands in.
const FILE: &str = "src/detect/shell_command/mod.rs";
/// Longest mark before or after a command, in bytes: what a view changed there makes the command a new one.
const MARK_BYTES_MAX: usize = 3;

/// Finds dangerous commands that a text shows.
pub(super) struct ShellCommand {
    info: Arc<MetaInfo>,
}

impl ShellCommand {
    pub(super) fn new() -> Self {
        let info = MetaInfo {
            id: RULE_ID.into(),
            plugin: CODE.into(),
            category: Category::new("code_injection.shell"),
            severity: Severity::High,
            score: Severity::High.score() * SHOWN_CONFIDENCE,
            confidence: SHOWN_CONFIDENCE,
            description:
                "A command in a code fence, in quotes or behind a prompt that would do damage when it is run."
                    .into(),
            recommendation: "Do not run it; ask where the text came from and what it is to achieve.".into(),
            references: Vec::new(),
            file: FILE.into(),
            line: 0,
        };
        Self { info: Arc::new(info) }
    }
}

impl Detector for ShellCommand {
    fn info(&self) -> &Arc<MetaInfo> {
        &self.info
    }

    fn detect(&self, view: &View<'_>, found: &mut Vec<(Range<usize>, Layers)>) {
        let is_derived = !view.layers().is_empty();
        for shown in shown_commands(view.text()) {
            let marked = shown.range.start.saturating_sub(MARK_BYTES_MAX)..shown.range.end + MARK_BYTES_MAX;
            // What a view left as it was has been judged already.
            if is_derived && !view.may_be_new(marked.clone()) {
                continue;
            }
            if is_dangerous(&shown.command) {
                let layers = if is_derived { view.layers_in(marked) } else { Layers::default() };
                found.push((view.to_source(shown.range), layers));
            }
        }
    }
}

fn is_dangerous(command: &str) -> bool {
    let context = GuardContext::default();
    let analysis = shell::analyse(command, context.place, &shell::limits::Limits::default());
    let hits = CommandRules::builtin().judge(&analysis, &context);
    hits.iter().any(|hit| hit.rule.severity >= Severity::High)
}

#[cfg(test)]
mod tests;
