//! The guard over shell effects as data: which effects of a command are refused, by kind, place and manner.
//!
//! Places (system folders, devices, homes) and rules are TOML, in `rules/commands`. Judging is pure, and no rule looks at
//! the text of a command: only at effects and what is known of them.

mod builtin;
mod class;
mod glob;
mod judge;
mod listed;
mod load;
mod problem;
mod rule;
mod selfcheck;

#[cfg(test)]
mod tests;

pub use builtin::builtin_command_sources;
pub use judge::{GuardContext, RuleHit, is_sensitive};
pub use load::CommandRuleSource;
pub use problem::{CommandRuleProblem, CommandRuleProblems};
pub use rule::CommandRule;
pub use selfcheck::CommandSelfCheck;

use class::Classes;

/// A set of rules over effects, ready to judge.
#[derive(Debug)]
pub struct CommandRules {
    rules: Vec<CommandRule>,
    classes: Classes,
    /// Rules by kind of effect, in the order of `EffectKind::ALL`.
    by_kind: Vec<Vec<usize>>,
}

impl CommandRules {
    /// Compiles rule files. Several files are one set: ids and classes are unique over all of them, and a rule may name a
    /// class of another file.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with any of them, with file and line.
    pub fn load(sources: &[CommandRuleSource<'_>]) -> Result<Self, CommandRuleProblems> {
        load::load(sources)
    }

    /// Every rule, in the order of files and lines.
    pub fn rules(&self) -> &[CommandRule] {
        &self.rules
    }
}
