//! The command line: one file a subcommand.
//!
//! A command turns its arguments into calls of the engines and prints what came out; nothing is decided here. With
//! `--server` a command asks a running service, else it does the work in this process.
//!
//! Exit codes: `check` answers 0 ALLOW, 1 WARN, 2 BLOCK, 3 ASK. Everywhere 64 is wrong usage, 65 malformed data, 69 a
//! server that is away, 70 an error of our own and 78 a bad configuration. `--help` is no error.
//!
//! Does not: read the environment. `main` hands it over, so that tests can give another.

mod eval;
mod exit;
mod output;
mod rules;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::{Exit, Failure};
use output::Output;

/// What a process is started with.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// Arguments, the name of the program first.
    pub arguments: Vec<OsString>,
    /// Variables of the environment.
    pub variables: Vec<(String, String)>,
    /// Working directory.
    pub folder: PathBuf,
}

/// The policy decision point for AI agents: one service that every agent asks before it acts.
#[derive(Debug, Parser)]
#[command(name = "portcullis", version, disable_help_subcommand = true, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure detection on labelled records.
    Eval(eval::EvalArguments),
    /// List, show, explain and test detection rules.
    #[command(subcommand)]
    Rules(rules::RulesCommand),
}

/// Runs one command and says how the process ends.
pub fn run(invocation: Invocation) -> ExitCode {
    let parsed = match Arguments::try_parse_from(&invocation.arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            // When the reader has gone there is nobody left to tell.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Ok.into() };
        }
    };
    let mut output = Output::new(&invocation.variables);
    let outcome = dispatch(parsed.command, &mut output);
    let exit = outcome.unwrap_or_else(|failure| {
        output.complain(&failure);
        failure.exit
    });
    output.finish(exit).into()
}

fn dispatch(command: Command, output: &mut Output) -> Result<Exit, Failure> {
    match command {
        Command::Eval(arguments) => eval::run(&arguments, output),
        Command::Rules(command) => rules::run(&command, output),
    }
}
