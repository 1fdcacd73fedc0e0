//! `hook`: a guard inside an agent that runs a command of ours at each step.
//!
//! One rule stands above all: what goes wrong here must stop the agent, never wave it through. So every failure, wrong
//! usage and panics included, ends with exit code 2 and its reason on standard error, which is the one code that the
//! agent takes for a refusal; where no code refuses, since a result is there already, an answer does. `--on-error allow` is
//! the way to choose otherwise.

mod claude_code;
mod resolve;

use std::ffi::OsString;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::{Subcommand, ValueEnum};

use super::context::Context;
use super::{Exit, Failure};

/// The agents whose hooks are known.
#[derive(Debug, Subcommand)]
pub(super) enum HookCommand {
    /// Answer one hook event of Claude Code: its JSON on standard input, ours on standard output.
    ClaudeCode(claude_code::ClaudeCodeArguments),
}

/// What a failure of the hook itself does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnError {
    /// The step is refused, with the reason.
    Block,
    /// The step goes on as if there were no hook.
    Allow,
}

/// Runs one of them.
pub(super) fn run(command: &HookCommand, context: &Context) -> Exit {
    match command {
        HookCommand::ClaudeCode(arguments) => {
            guarded(arguments.on_error, || claude_code::answer(arguments, context))
        }
    }
}

/// The exit code of a command line that cannot be read; `None` when it is not one of a hook.
///
/// Whoever misspells a flag of a guard must not be left without one.
pub(super) fn exit_of_wrong_usage(arguments: &[OsString]) -> Option<Exit> {
    is_hook(arguments).then_some(Exit::Refused)
}

/// Whether the subcommand is `hook`, as far as can be told from a command line that may be broken.
fn is_hook(arguments: &[OsString]) -> bool {
    let mut rest = arguments.iter().skip(1);
    while let Some(argument) = rest.next() {
        match argument.to_str() {
            Some("--config" | "--set") => {
                rest.next();
            }
            Some(flag) if flag.starts_with('-') => {}
            subcommand => return subcommand == Some("hook"),
        }
    }
    false
}

/// Prints what `work` answers; whatever goes wrong on the way becomes a refusal, unless the operator wants otherwise.
fn guarded(on_error: OnError, work: impl FnOnce() -> Result<String, Failure>) -> Exit {
    // The standard message names a place in our sources and may quote what was being looked at.
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = catch_unwind(AssertUnwindSafe(work));
    let outcome = outcome.unwrap_or_else(|_| Err(Failure::internal("an error of its own; please report it")));
    match outcome.and_then(|text| print(&text)) {
        Ok(()) => Exit::Ok,
        Err(failure) => {
            let (exit, told) = match on_error {
                OnError::Block => (Exit::Refused, refused(&failure)),
                OnError::Allow => (Exit::Ok, unjudged("and this step goes on unjudged", &failure)),
            };
            // Nobody to tell changes nothing about the code.
            let _ = writeln!(std::io::stderr(), "{told}");
            exit
        }
    }
}

/// What is told about a step that is refused since it could not be judged.
fn refused(failure: &Failure) -> String {
    unjudged("so this step is refused", failure)
}

fn unjudged(effect: &str, failure: &Failure) -> String {
    format!("Portcullis could not judge, {effect}: {}", super::snippet::printable(&failure.message))
}

/// An answer that did not get out is no answer.
fn print(text: &str) -> Result<(), Failure> {
    if text.is_empty() {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    let written =
        out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    written.map_err(|error| Failure::internal(format_args!("the answer could not be written: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_goes_wrong_is_a_refusal() {
        assert_eq!(guarded(OnError::Block, || Ok(String::new())), Exit::Ok);
        assert_eq!(guarded(OnError::Block, || Err(Failure::usage("x"))), Exit::Refused);
        assert_eq!(guarded(OnError::Block, || Err(Failure::configuration("x"))), Exit::Refused);
        assert_eq!(guarded(OnError::Block, || panic!("a test panics here")), Exit::Refused);
        assert_eq!(guarded(OnError::Allow, || panic!("a test panics here")), Exit::Ok);
        assert_eq!(guarded(OnError::Allow, || Err(Failure::data("x"))), Exit::Ok);
        // Others that panic in this process want their message.
        let _ = std::panic::take_hook();
    }

    #[test]
    fn a_hook_is_known_by_its_subcommand() {
        let is_hook = |line: &str| is_hook(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in
            ["p hook", "p hook claude-code --nonsense", "p --config x hook claude", "p --set=a=b hook x"]
        {
            assert!(is_hook(line), "{line}");
        }
        for line in ["p", "p check hook", "p --config hook check", "p --set hook"] {
            assert!(!is_hook(line), "{line}");
        }
    }
}
