//! The self-check: every rule against its own examples.

use super::problem::CommandRuleProblem;
use super::rule::CommandRule;
use super::{CommandRules, GuardContext};
use crate::paths::{Os, Place};
use crate::shell::analyse;
use crate::shell::limits::Limits;

/// Outcome of a self-check of command rules.
#[derive(Debug, Default)]
pub struct CommandSelfCheck {
    /// Rules checked.
    pub rules: usize,
    /// Commands checked.
    pub commands: usize,
    /// What is wrong.
    pub problems: Vec<CommandRuleProblem>,
}

impl CommandRules {
    /// Checks every rule that `is_wanted`: it must hold for its examples, and not for its negative examples and known
    /// misses.
    pub fn self_check(&self, is_wanted: impl Fn(&CommandRule) -> bool) -> CommandSelfCheck {
        let mut out = CommandSelfCheck::default();
        for rule in self.rules.iter().filter(|rule| is_wanted(rule)) {
            out.rules += 1;
            out.commands += rule.examples.len() + rule.negative_examples.len() + rule.known_misses.len();
            let mut wrong = |message: String| {
                let (file, line, rule_id) = (rule.file.to_string(), rule.line, rule.id.to_string());
                out.problems.push(CommandRuleProblem { file, line, rule_id, message });
            };
            for command in &rule.examples {
                if !self.holds_for(rule, command) {
                    wrong(format!("examples: {command:?} is not seen"));
                }
            }
            for command in &rule.negative_examples {
                if self.holds_for(rule, command) {
                    wrong(format!("negative_examples: {command:?} is seen"));
                }
            }
            for command in &rule.known_misses {
                if self.holds_for(rule, command) {
                    wrong(format!("known_misses: {command:?} is seen now; move it to examples"));
                }
            }
        }
        out
    }

    /// Whether a rule holds for a command, run by somebody in a workspace of their home. A command that names a Windows
    /// path is one of Windows.
    fn holds_for(&self, rule: &CommandRule, command: &str) -> bool {
        let windows = command.contains(":\\");
        let place = if windows {
            Place { cwd: "C:/work/app", home: "C:/Users/dev", os: Os::Windows }
        } else {
            Place { cwd: "/home/dev/app", home: "/home/dev", os: Os::Linux }
        };
        let roots = [place.cwd.to_owned()];
        let analysis = analyse(command, place, &Limits::default());
        let context = GuardContext { place, workspace_roots: &roots };
        self.judge(&analysis, &context).iter().any(|hit| std::ptr::eq(hit.rule, rule))
    }
}
