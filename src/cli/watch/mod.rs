//! `watch`: runs a command, has its output watched, and kills it when a verdict says so.
//!
//! The command runs in a process group of its own, on a pseudo-terminal when we have a terminal (`launch`, `terminal`).
//! Its output is passed on untouched (`relay`, `shown`) and kept until a monitor has scanned it (`outbox`). The monitor is
//! a server or this process (`monitor`, `local`). One loop (`session`) hears of everything that happens and decides.
//!
//! Invariant: the command is never left running unwatched, unless `--on-disconnect continue` was given: it dies with us,
//! what it leaves behind is ended with it, and its last descendant is looked for when it must die (`tree`).

mod arguments;
mod launch;
mod local;
mod monitor;
mod outbox;
mod relay;
mod session;
mod show;
mod shown;
mod signals;
mod terminal;
mod tree;

pub(super) use arguments::WatchArguments;
pub(super) use launch::{BecomeArguments, become_command};

use std::sync::Arc;

use arguments::OnDisconnect;
use local::Local;
use monitor::Monitor;
use session::Session;

use super::context::Context;
use super::{Exit, Failure};

/// Threads that scan and speak to a server, beside the one that decides.
const WORKERS: usize = 2;

/// Runs the command.
pub(super) fn run(arguments: &WatchArguments, context: &Context) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(Failure::internal)?;
    let local = || {
        let loaded = runtime.block_on(Local::load(context, arguments.policy_path.as_deref()));
        loaded.map(Arc::new)
    };
    let (monitor, fallback) = match &arguments.server {
        None => {
            let local = local()?;
            runtime.block_on(local.warm());
            (Monitor::Local(local), None)
        }
        // What may be needed later is known to work before the command runs.
        Some(url) if arguments.on_disconnect == OnDisconnect::Local => {
            (Monitor::Server(url.clone(), Box::new(context.reach()?)), Some(local()?))
        }
        Some(url) => (Monitor::Server(url.clone(), Box::new(context.reach()?)), None),
    };
    // On this thread, which lives to the end: the command dies with the thread that started it.
    let session =
        Session::new(arguments, monitor, fallback, runtime.handle().clone()).map_err(Failure::internal)?;
    let exit = runtime.block_on(session.run());
    runtime.shutdown_background();
    exit
}
