//! `policy`: the policies of this installation.

mod cases;
mod show;
mod test;
mod validate;

use clap::Subcommand;

use super::context::Context;
use super::{Exit, Failure, Output};

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Check policy files and tell every problem; without a path, those of the settings.
    Validate(validate::ValidateArguments),
    /// Print a policy with everything it inherits, as a policy file.
    Show(show::ShowArguments),
    /// Run case files: messages and the decisions a policy must give for them.
    Test(test::TestArguments),
}

/// Runs one of them.
pub(super) fn run(command: &PolicyCommand, context: &Context, output: &mut Output) -> Result<Exit, Failure> {
    match command {
        PolicyCommand::Validate(arguments) => validate::run(arguments, context, output),
        PolicyCommand::Show(arguments) => show::run(arguments, context, output),
        PolicyCommand::Test(arguments) => test::run(arguments, context, output),
    }
}
