//! `rules`: the detection rules of this installation.

mod test;

use clap::Subcommand;

use super::{Exit, Failure, Output};

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum RulesCommand {
    /// Check rules against their own examples; without a path, the built-in ones.
    Test(test::TestArguments),
}

/// Runs one of them.
pub(super) fn run(command: &RulesCommand, output: &mut Output) -> Result<Exit, Failure> {
    match command {
        RulesCommand::Test(arguments) => test::run(arguments, output),
    }
}
