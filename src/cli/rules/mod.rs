//! `rules`: the detection rules of this installation, built-in ones and those of `rules.paths`.

mod conditions;
mod explain;
mod guards;
mod hint;
mod import;
mod list;
mod lookup;
mod show;
mod sources;
mod test;

use clap::Subcommand;

use super::context::Context;
use super::{Exit, Failure, Output};

pub(super) use explain::Fact;
pub(super) use lookup::Rules;
pub(super) use sources::{RuleFiles, sources_with};

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum RulesCommand {
    /// List the rules with their severity and their mode under the default policy.
    List(list::ListArguments),
    /// Print one rule as it stands in its file.
    Show(show::ShowArguments),
    /// Tell in words what one rule finds, when it runs and what it decides.
    Explain(explain::ExplainArguments),
    /// Check rules against their own examples; without a path, all rules of this installation.
    Test(test::TestArguments),
    /// Turn a configuration of gitleaks into a rule file; what cannot be translated is said, with exit code 65.
    Import(import::ImportArguments),
}

/// Runs one of them.
pub(super) fn run(command: &RulesCommand, context: &Context, output: &mut Output) -> Result<Exit, Failure> {
    match command {
        RulesCommand::List(arguments) => list::run(arguments, context, output),
        RulesCommand::Show(arguments) => show::run(arguments, context, output),
        RulesCommand::Explain(arguments) => explain::run(arguments, context, output),
        RulesCommand::Test(arguments) => test::run(arguments, context, output),
        RulesCommand::Import(arguments) => import::run(arguments, output),
    }
}
