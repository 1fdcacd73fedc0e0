//! Starting a watched command: in a process group of its own, on pipes or on a pseudo-terminal.
//!
//! What must happen between fork and exec (becoming the leader of a session, taking the terminal, dying with the parent)
//! is done by this program itself: it is started under a hidden subcommand, does it, and then becomes the command by
//! exec. Nothing of it is left afterwards.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use clap::Args;
use rustix::io::Errno;
use rustix::process::{self, Pid};

use super::terminal::Pseudo;
use super::tree::Tree;
use crate::cli::{Exit, Failure};

/// Exit code when the command could not be found, as of a shell.
const NOT_FOUND: u8 = 127;
/// Exit code when it was found and could not be run.
const NOT_RUNNABLE: u8 = 126;

/// Name of the hidden subcommand.
pub(in crate::cli) const BECOME: &str = "become";

/// Arguments of the hidden subcommand.
#[derive(Debug, Args)]
pub(in crate::cli) struct BecomeArguments {
    /// The process to die with.
    #[arg(long, value_name = "PID", allow_negative_numbers = true)]
    parent: i32,
    /// Lead a new session, on the terminal that is the standard input.
    #[arg(long)]
    session: bool,
    /// Bring a process group to the foreground of the terminal that is the standard input, and be nothing else.
    #[arg(long, value_name = "GROUP", conflicts_with = "session")]
    foreground: Option<i32>,
    /// The command and its arguments.
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "foreground")]
    words: Vec<OsString>,
}

/// A command that runs, and the near ends of what it writes to.
pub(super) struct Launched {
    /// It and whatever comes from it.
    pub(super) tree: Tree,
    /// Its standard output, or the near side of its terminal.
    pub(super) output: OwnedFd,
    /// Its standard error; `None` when that goes where its standard output goes.
    pub(super) errors: Option<OwnedFd>,
    /// Keeps the handle of the child. It is not waited for through it.
    _child: Child,
}

/// Adopts orphans among the descendants of this process, where the system can do that.
pub(super) fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    process::set_child_subreaper(Some(process::getpid()))?;
    Ok(())
}

/// Starts `words` on the pseudo-terminal `pseudo`, else on pipes. Standard error is a terminal only if ours is. Where
/// our output and errors go to one file, the command has one pipe for both: two would lose the order of its writes.
///
/// Must be called by a thread that lives as long as the process: the command dies with the *thread* that started it.
pub(super) fn launch(words: &[OsString], pseudo: Option<&Pseudo>) -> io::Result<Launched> {
    let mut command = Command::new(own_program()?);
    command.arg(BECOME).arg("--parent").arg(process::getpid().as_raw_pid().to_string());
    let has_error_terminal = pseudo.is_some() && rustix::termios::isatty(rustix::stdio::stderr());
    match pseudo {
        Some(pseudo) => {
            command.arg("--session").stdin(pseudo.far_side()?).stdout(pseudo.far_side()?);
        }
        None => {
            command.process_group(0).stdin(Stdio::inherit()).stdout(Stdio::piped());
        }
    }
    let mut both = None;
    match pseudo {
        Some(pseudo) if has_error_terminal => command.stderr(pseudo.far_side()?),
        None if is_one_file() => {
            let (near, far) = io::pipe()?;
            both = Some(OwnedFd::from(near));
            command.stdout(far.try_clone()?).stderr(far)
        }
        _ => command.stderr(Stdio::piped()),
    };
    let mut child = command.arg("--").args(words).spawn()?;
    drop(command);
    let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let output = match (pseudo, both) {
        (Some(pseudo), _) => pseudo.near_side().as_fd().try_clone_to_owned()?,
        (None, Some(both)) => both,
        (None, None) => OwnedFd::from(child.stdout.take().ok_or(Errno::PIPE)?),
    };
    let errors = child.stderr.take().map(OwnedFd::from);
    Ok(Launched { tree: Tree::of(leader), output, errors, _child: child })
}

/// Whether our standard output and standard error are the same file or pipe.
fn is_one_file() -> bool {
    let of = |fd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).ok();
    let output = of(rustix::stdio::stdout());
    output.is_some() && output == of(rustix::stdio::stderr())
}

/// Brings the process group `ours` back to the foreground of our terminal, from out of the group `theirs`, which is
/// there: who is in the background may not.
pub(super) fn take_terminal_back(ours: Pid, theirs: Pid) -> io::Result<()> {
    let mut command = Command::new(own_program()?);
    command.arg(BECOME).arg("--parent").arg(process::getpid().as_raw_pid().to_string());
    command.arg("--foreground").arg(ours.as_raw_pid().to_string());
    command.process_group(theirs.as_raw_pid()).stdout(Stdio::null()).stderr(Stdio::null()).status().map(drop)
}

/// This program, even if its file was replaced meanwhile.
fn own_program() -> io::Result<OsString> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    Ok(std::env::current_exe()?.into_os_string())
}

/// Becomes the command; comes back only when it could not.
pub(in crate::cli) fn become_command(arguments: &BecomeArguments) -> Result<Exit, Failure> {
    if let Some(group) = arguments.foreground.and_then(Pid::from_raw) {
        rustix::termios::tcsetpgrp(rustix::stdio::stdin(), group).map_err(Failure::internal)?;
        return Ok(Exit::Ok);
    }
    die_with(arguments.parent)?;
    if arguments.session {
        process::setsid().map_err(Failure::internal)?;
        process::ioctl_tiocsctty(rustix::stdio::stdin()).map_err(Failure::internal)?;
    }
    let Some((program, rest)) = arguments.words.split_first() else {
        return Err(Failure::usage("no command"));
    };
    let error = Command::new(program).args(rest).exec();
    let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE };
    let message = format!(
        "cannot run `{}`: {error}; check its name and PATH, and that it may be run",
        program.to_string_lossy()
    );
    Err(Failure { exit: Exit::Command(code), message })
}

/// Has the kernel kill this process when the one that watches it dies.
fn die_with(parent: i32) -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    process::set_parent_process_death_signal(Some(process::Signal::KILL)).map_err(Failure::internal)?;
    // It may have died before the kernel knew of our wish.
    if process::getppid().map(Pid::as_raw_pid) != Some(parent) {
        return Err(Failure::internal("the process that was to watch the command is gone"));
    }
    Ok(())
}
