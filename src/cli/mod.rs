//! The command line: one file a subcommand.
//!
//! A command turns its arguments into calls of the engines and prints what came out; nothing is decided here. With
//! `--server` a command asks a running service, else it does the work in this process.
//!
//! Exit codes: `check`, `intercept` and `review` answer 0 ALLOW, 1 WARN, 2 BLOCK, 3 ASK; `hook` and `watch` have their own. Everywhere else 64 is wrong usage, 65 malformed data, 69 a
//! server that is away, 70 an error of our own and 78 a bad configuration. `--help` is no error.
//!
//! Does not: read the environment. `main` hands it over, so that tests can give another.

mod audit;
mod bundle_text;
mod check;
mod config;
mod context;
mod eval;
mod exit;
mod explain;
mod findings;
mod health;
mod hook;
mod incidents;
mod input;
mod intercept;
mod interception;
mod interceptors;
mod listing;
mod new_file;
mod output;
mod policy;
mod progress;
mod remote;
mod review;
mod rules;
mod serve;
mod snippet;
mod submissions;
mod token;
mod tokens;
mod train;
mod version;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use context::{Context, SettingsArguments};
use exit::{Exit, Failure};
use output::{Output, Style};

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
    #[command(flatten)]
    settings: SettingsArguments,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service.
    Serve(serve::ServeArguments),
    /// Check one text: exit code 0 ALLOW, 1 WARN, 2 BLOCK, 3 ASK.
    Check(check::CheckArguments),
    /// Ask about one tool call, message or model call: exit code 0 ALLOW, 1 WARN, 2 BLOCK, 3 ASK.
    Intercept(Box<intercept::InterceptArguments>),
    /// Guard an agent that runs a command at each step.
    #[command(subcommand)]
    Hook(hook::HookCommand),
    /// List, add and remove interceptors of a running server.
    #[command(subcommand)]
    Interceptors(interceptors::InterceptorsCommand),
    /// List, show, mark and count what the stream monitor found.
    #[command(subcommand)]
    Incidents(incidents::IncidentsCommand),
    /// Run a command under watch, and kill it when a verdict says so.
    Watch(Box<watch::WatchArguments>),
    /// What a watched command is started through.
    #[command(hide = true)]
    Become(watch::BecomeArguments),
    /// Check a skill, plugin or agent before it is published: exit code 0 ALLOW, 1 WARN, 2 BLOCK, 3 ASK or pending.
    Review(Box<review::ReviewArguments>),
    /// List, show, watch and decide about uploaded bundles.
    #[command(subcommand)]
    Submissions(submissions::SubmissionsCommand),
    /// List administrative events and verify their chain.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Make tokens of callers, for `auth.mode: tokens`.
    #[command(subcommand)]
    Token(tokens::TokenCommand),
    /// Measure detection on labelled records.
    Eval(eval::EvalArguments),
    /// Train the model that weighs concepts of injection, from labelled records.
    Train(train::TrainArguments),
    /// List, show, explain and test detection rules.
    #[command(subcommand)]
    Rules(rules::RulesCommand),
    /// Validate, show and test policies.
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Print the effective settings and where each comes from; secrets are masked.
    Config(config::ConfigArguments),
    /// Ask a server whether it serves: exit code 0 when it does, 69 when not.
    Health(health::HealthArguments),
    /// Print the version.
    Version(version::VersionArguments),
}

/// Runs one command and says how the process ends.
pub fn run(invocation: Invocation) -> ExitCode {
    let parsed = match Arguments::try_parse_from(&invocation.arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            // When the reader has gone there is nobody left to tell.
            let _ = error.print();
            if !error.use_stderr() {
                return Exit::Ok.into();
            }
            return hook::exit_of_wrong_usage(&invocation.arguments).unwrap_or(Exit::Usage).into();
        }
    };
    let mut output = Output::new(&invocation.variables);
    let context = Context::new(parsed.settings, invocation.variables, invocation.folder);
    let outcome = dispatch(&parsed.command, &context, &mut output);
    let exit = outcome.unwrap_or_else(|failure| {
        output.complain(&failure);
        failure.exit
    });
    output.finish(exit).into()
}

fn dispatch(command: &Command, context: &Context, output: &mut Output) -> Result<Exit, Failure> {
    match command {
        Command::Serve(arguments) => serve::run(arguments, context),
        Command::Check(arguments) => check::run(arguments, context, output),
        Command::Intercept(arguments) => intercept::run(arguments, context, output),
        Command::Hook(command) => Ok(hook::run(command, context)),
        Command::Interceptors(command) => interceptors::run(command, context, output),
        Command::Incidents(command) => incidents::run(command, context, output),
        Command::Watch(arguments) => watch::run(arguments, context),
        Command::Become(arguments) => watch::become_command(arguments),
        Command::Review(arguments) => review::run(arguments, context, output),
        Command::Submissions(command) => submissions::run(command, context, output),
        Command::Audit(command) => audit::run(command, context, output),
        Command::Token(command) => tokens::run(command, output),
        Command::Eval(arguments) => eval::run(arguments, context, output),
        Command::Train(arguments) => train::run(arguments, output),
        Command::Rules(command) => rules::run(command, context, output),
        Command::Policy(command) => policy::run(command, context, output),
        Command::Config(arguments) => config::run(arguments, context, output),
        Command::Health(arguments) => health::run(arguments, context, output),
        Command::Version(arguments) => version::run(arguments, output),
    }
}
