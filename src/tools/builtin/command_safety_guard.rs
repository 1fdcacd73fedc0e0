//! `builtin:command-safety-guard`: what would this command do, and may it?

use std::sync::Arc;

use crate::commands::{CommandRules, GuardContext};
use crate::decision::{Finding, Reason};
use crate::paths::Place;
use crate::shell::analysis::{Analysis, UnresolvedCause};
use crate::tools::arguments::Fault;
use crate::tools::inspect::{InspectedCommand, resolved_analysis};
use crate::tools::interceptor::Local;
use crate::tools::verdict::{self, COMMAND_SAFETY, Hit};
use crate::tools::{Call, InterceptError, Step};

/// The interceptor.
pub(super) struct CommandSafetyGuard {
    rules: Arc<CommandRules>,
}

impl CommandSafetyGuard {
    pub(super) fn new(rules: Arc<CommandRules>) -> Self {
        Self { rules }
    }
}

impl CommandSafetyGuard {
    fn judge(
        &self,
        call: &Call<'_>,
        command: &InspectedCommand,
        analysis: &Analysis,
        context: &GuardContext<'_>,
        step: &mut Step,
    ) {
        for found in self.rules.judge(analysis, context) {
            let hit = Hit {
                plugin: COMMAND_SAFETY,
                rule_id: &found.rule.id,
                category: &found.rule.category,
                severity: found.rule.severity,
                confidence: found.rule.confidence,
                description: &found.rule.description,
                recommendation: &found.rule.recommendation,
            };
            let span = &analysis.effects[found.effect].span;
            let finding = hit.finding(call, command.raw_span(call.args(), span));
            // A loop or a list of targets may have the same effect many times over.
            let is_known = |known: &Finding| known.rule_id == finding.rule_id && known.span == finding.span;
            if !step.findings.iter().any(is_known) {
                step.findings.push(finding);
            }
        }
    }
}

impl Local for CommandSafetyGuard {
    fn run(&self, call: &Call<'_>) -> Result<Step, InterceptError> {
        let inspection = call.inspection();
        let place = Place { cwd: &inspection.cwd, ..call.place() };
        let context = GuardContext { place, workspace_roots: call.workspace_roots() };
        let mut step = Step::default();
        for command in &inspection.commands {
            self.judge(call, command, &command.analysis, &context, &mut step);
            // Both spellings are judged: a link may lead where the command does not seem to go.
            if let Some(resolved) = resolved_analysis(call, &command.analysis, &place) {
                self.judge(call, command, &resolved, &context, &mut step);
            }
            for unresolved in &command.analysis.unresolved {
                let reason = match unresolved.cause {
                    cause if cause.is_limit() => Reason::Limit,
                    // What is fed to a process need not be a command.
                    UnresolvedCause::Syntax | UnresolvedCause::UnknownCommand if command.is_input => continue,
                    _ => Reason::UnsupportedContent,
                };
                let detail = format!("the command cannot be resolved: {}", unresolved.cause.as_str());
                let unjudged = verdict::unjudged(call, COMMAND_SAFETY, reason, detail);
                if !step.unjudged.contains(&unjudged) {
                    step.unjudged.push(unjudged);
                }
            }
        }
        let arguments = call.tools.arguments();
        let runs_commands = arguments.runs_commands(call.tool);
        if runs_commands || arguments.fetches(call.tool) {
            // Where an address may stand differs from tool to tool, and a browser does much without one.
            let counts = |fault: &&Fault| runs_commands || **fault != Fault::Missing;
            for fault in inspection.faults.iter().filter(counts) {
                step.unjudged.push(verdict::faulty(call, COMMAND_SAFETY, fault));
            }
        }
        Ok(step)
    }
}
