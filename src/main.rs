//! The program: hands its arguments, its environment and its working directory to the command line.

use std::process::ExitCode;

use portcullis::cli::{self, Invocation};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // A variable that is not Unicode cannot be one of ours.
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    cli::run(Invocation {
        arguments: std::env::args_os().collect(),
        variables: variables.collect(),
        folder: std::env::current_dir().unwrap_or_else(|_| ".".into()),
    })
}
