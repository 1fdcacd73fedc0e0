//! The two terminals of an interactive watch: ours, which is made raw and put right again, and the one of the command.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{self, Pid, WaitId, WaitIdOptions};
use rustix::pty::{self, OpenptFlags};
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};

/// How long a command may take until it has its terminal.
const FRONT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often it is looked at.
const FRONT_INTERVAL: Duration = Duration::from_micros(500);

/// A pseudo-terminal for the command.
#[derive(Debug)]
pub(super) struct Pseudo {
    near: OwnedFd,
    far: OwnedFd,
}

impl Pseudo {
    /// One like our own terminal: the same size and the same modes.
    pub(super) fn like_ours() -> io::Result<Self> {
        let near = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | close_on_exec())?;
        pty::grantpt(&near)?;
        pty::unlockpt(&near)?;
        let name = pty::ptsname(&near, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let far = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
        let own = rustix::stdio::stdin();
        if let Ok(modes) = termios::tcgetattr(own) {
            termios::tcsetattr(&far, OptionalActions::Now, &modes)?;
        }
        copy_size(near.as_fd());
        Ok(Self { near, far })
    }

    /// The side where the command's output comes out and keys go in.
    pub(super) fn near_side(&self) -> &OwnedFd {
        &self.near
    }

    /// The command's side, as one of its streams.
    pub(super) fn far_side(&self) -> io::Result<Stdio> {
        Ok(Stdio::from(self.far.try_clone()?))
    }

    /// Leaves the far side to the command alone, so that the near side ends when it does.
    pub(super) fn into_near_side(self) -> OwnedFd {
        self.near
    }
}

#[cfg(target_os = "linux")]
fn close_on_exec() -> OpenptFlags {
    OpenptFlags::CLOEXEC
}

#[cfg(not(target_os = "linux"))]
fn close_on_exec() -> OpenptFlags {
    OpenptFlags::empty()
}

/// Makes the size of the command's terminal that of ours. Its foreground group gets SIGWINCH from the kernel.
pub(super) fn copy_size(near: BorrowedFd<'_>) {
    if let Ok(size) = termios::tcgetwinsize(rustix::stdio::stdout()) {
        let _ = termios::tcsetwinsize(near, size);
    }
}

/// Whether a command can be on a pseudo-terminal: there is somebody who types and somebody who sees.
pub(super) fn is_interactive() -> bool {
    termios::isatty(rustix::stdio::stdin()) && termios::isatty(rustix::stdio::stdout())
}

/// Our terminal in raw mode: keys come as they are typed, and signals of keys go to the command. Dropping it puts the
/// terminal right.
#[derive(Debug)]
pub(super) struct Raw {
    before: Termios,
}

impl Raw {
    /// Makes our terminal raw.
    pub(super) fn enter() -> io::Result<Self> {
        let raw = Self { before: termios::tcgetattr(rustix::stdio::stdin())? };
        raw.again()?;
        Ok(raw)
    }

    /// Makes it raw once more, after [`Raw::pause`].
    pub(super) fn again(&self) -> io::Result<()> {
        let mut modes = self.before.clone();
        modes.make_raw();
        Ok(termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &modes)?)
    }

    /// Puts the terminal right for a while.
    pub(super) fn pause(&self) {
        // Drained, so that the last output of the command is drawn under the modes it was written for.
        let _ = termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &self.before);
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.pause();
    }
}

/// The key that suspends, if the command leaves keys to its terminal and itself is in front there; a shell that runs
/// something else in front looks after its own jobs.
pub(super) fn suspend_key(near: BorrowedFd<'_>, leader: Pid) -> Option<u8> {
    let modes = termios::tcgetattr(near).ok()?;
    let is_in_front = termios::tcgetpgrp(near).ok()? == leader;
    let key = modes.special_codes[SpecialCodeIndex::VSUSP];
    (is_in_front && key != 0 && modes.local_modes.contains(LocalModes::ISIG)).then_some(key)
}

/// Whether somebody is there to continue us when we stop: a shell with job control, which starts each job in a group of
/// its own within its own session.
pub(super) fn has_job_control() -> bool {
    let Some(parent) = process::getppid() else { return false };
    let same_session = process::getsid(Some(parent)).ok() == process::getsid(None).ok();
    let other_group = process::getpgid(Some(parent)).ok().is_some_and(|group| group != process::getpgrp());
    same_session && other_group
}

/// Waits until the command has its terminal, so that no key and no signal reaches it before it can; not for ever.
pub(super) fn wait_for_front(near: BorrowedFd<'_>, leader: Pid) {
    let until = Instant::now() + FRONT_TIMEOUT;
    let has_ended = || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(process::waitid(WaitId::Pid(leader), options), Ok(None))
    };
    while termios::tcgetpgrp(near).ok() != Some(leader) && !has_ended() && Instant::now() < until {
        std::thread::sleep(FRONT_INTERVAL);
    }
}

/// Brings the command's process group to the front of our terminal, when we are there ourselves: it is on pipes, and
/// wants to read the keyboard after all.
pub(super) fn hand_over(leader: Pid) -> bool {
    let own = rustix::stdio::stdin();
    termios::isatty(own)
        && termios::tcgetpgrp(own).ok() == Some(process::getpgrp())
        && termios::tcsetpgrp(own, leader).is_ok()
}
