//! The processes that come from a watched command: listing them, stopping them, and killing them to the last one.
//!
//! A daemon leaves its group and its session, yet not the tree: this process is the subreaper of all of them (see
//! `launch`), so whoever loses its parent becomes our child. The tree is read from `/proc`, again and again until nobody
//! is left in it, since a process may have forked between the look and the signal. A signal goes to a process and never
//! to a number: numbers are used again.
//!
//! Without `/proc` (anything but Linux) the process group is all there is.

use std::collections::HashMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{self, Pid, Signal, WaitId, WaitIdOptions};

/// How long a kill goes on looking for survivors. One is left only where the system does not let us: processes of other
/// users, and those that hang in the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two looks at those who are dying.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The processes that come from one command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    /// The command itself, which leads its process group. It is never reaped before the end, so that its number, which
    /// is also that of the group, cannot pass to somebody else.
    leader: Pid,
}

/// One process as `/proc` tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    pid: Pid,
    parent: i32,
    /// When it started, in clock ticks since boot: number and start together are one process.
    started: u64,
    /// It has ended and nobody has asked for its exit code.
    is_zombie: bool,
    /// It is stopped by a signal.
    is_stopped: bool,
}

impl Tree {
    /// The tree of the command with this number, a child of this process.
    pub(super) fn of(leader: Pid) -> Self {
        Self { leader }
    }

    /// Number of the command and of its process group.
    pub(super) fn leader(self) -> Pid {
        self.leader
    }

    /// Sends a signal to the process group. A group that is gone is no error.
    pub(super) fn signal_group(self, signal: Signal) {
        let _ = process::kill_process_group(self.leader, signal);
    }

    /// Continues and kills the group and every descendant; answers how many outlived it.
    pub(super) fn kill(self) -> usize {
        self.signal_group(Signal::CONT);
        // All at once: the kernel lets no member of the group fork past this.
        self.signal_group(Signal::KILL);
        let until = Instant::now() + KILL_PATIENCE;
        loop {
            self.reap_orphans();
            let alive = self.alive();
            if alive.is_empty() {
                return 0;
            }
            let is_last = Instant::now() >= until;
            for seen in &alive {
                seen.signal(Signal::KILL);
            }
            if is_last {
                return alive.len();
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Asks whoever is left to end, and kills those who do not within `grace`; answers how many there were.
    pub(super) fn end(self, grace: Duration) -> usize {
        self.reap_orphans();
        let left = self.alive();
        for seen in &left {
            seen.signal(Signal::TERM);
            seen.signal(Signal::CONT);
        }
        let until = Instant::now() + grace;
        while !self.alive().is_empty() && Instant::now() < until {
            thread::sleep(LOOK_AGAIN);
            self.reap_orphans();
        }
        if !self.alive().is_empty() {
            self.kill();
        }
        left.len()
    }

    /// Stops all of them, in the middle of whatever they do.
    pub(super) fn freeze(self) {
        self.signal_group(Signal::STOP);
        // Whoever is stopped does not fork: a few looks are enough for anything but a fork bomb.
        for _ in 0..16 {
            let running: Vec<Seen> = self.alive().into_iter().filter(|seen| !seen.is_stopped).collect();
            if running.is_empty() {
                return;
            }
            running.iter().for_each(|seen| seen.signal(Signal::STOP));
        }
    }

    /// Continues all of them.
    pub(super) fn thaw(self) {
        self.signal_group(Signal::CONT);
        self.alive().iter().for_each(|seen| seen.signal(Signal::CONT));
    }

    /// Takes note of the end of adopted processes, so that they do not pile up as zombies.
    pub(super) fn reap_orphans(self) {
        let own = process::getpid();
        for seen in descendants(own) {
            if seen.is_zombie && seen.parent == own.as_raw_pid() && seen.pid != self.leader {
                let _ = process::waitid(WaitId::Pid(seen.pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
            }
        }
    }

    fn alive(self) -> Vec<Seen> {
        let mut alive = descendants(process::getpid());
        alive.retain(|seen| !seen.is_zombie);
        alive
    }
}

impl Seen {
    #[cfg(target_os = "linux")]
    fn signal(&self, signal: Signal) {
        let Ok(handle) = process::pidfd_open(self.pid, process::PidfdFlags::empty()) else { return };
        // The handle is to whoever has the number now: is that still the one that was seen?
        if look(self.pid).is_some_and(|now| now.started == self.started)
            && process::pidfd_send_signal(&handle, signal) == Err(Errno::NOSYS)
        {
            let _ = process::kill_process(self.pid, signal);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn signal(&self, signal: Signal) {
        let _ = process::kill_process(self.pid, signal);
    }
}

/// Every process that comes from `root`, nearest first, without `root` itself.
fn descendants(root: Pid) -> Vec<Seen> {
    let mut children: HashMap<i32, Vec<Seen>> = HashMap::new();
    for seen in processes() {
        children.entry(seen.parent).or_default().push(seen);
    }
    let mut found = children.remove(&root.as_raw_pid()).unwrap_or_default();
    let mut next = 0;
    while next < found.len() {
        let more = children.remove(&found[next].pid.as_raw_pid());
        found.extend(more.unwrap_or_default());
        next += 1;
    }
    found
}

fn processes() -> impl Iterator<Item = Seen> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        look(Pid::from_raw(number)?)
    })
}

fn look(pid: Pid) -> Option<Seen> {
    parse(pid, &fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?)
}

/// Reads a line of `/proc/PID/stat` (proc(5)). The name of the program stands in brackets and may hold anything, also
/// brackets and spaces; what follows the last bracket is fields without spaces, from the third on.
fn parse(pid: Pid, stat: &[u8]) -> Option<Seen> {
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(&stat[close + 1..]).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(Seen {
        pid,
        parent,
        started,
        is_zombie: matches!(state, "Z" | "X" | "x"),
        is_stopped: matches!(state, "T" | "t"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).expect("not zero")
    }

    #[test]
    fn a_line_of_proc_is_read_behind_any_name() {
        let rest = "1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 4711 14 15";
        for name in ["sh", "a b", "a) S 7 (b", "))", "\u{e9}"] {
            for (state, is_zombie, is_stopped) in
                [("S", false, false), ("R", false, false), ("Z", true, false), ("T", false, true)]
            {
                let line = format!("99 ({name}) {state} {rest}\n");
                let wanted = Seen { pid: pid(99), parent: 1, started: 4711, is_zombie, is_stopped };
                assert_eq!(parse(pid(99), line.as_bytes()), Some(wanted), "{line}");
            }
        }
        for broken in ["", "99", "99 (sh)", "99 (sh) S", "99 (sh) S x 2 3", "99 (sh) S 1 2 3"] {
            assert_eq!(parse(pid(99), broken.as_bytes()), None, "{broken}");
        }
        assert!(parse(pid(99), b"99 (\xff\xfe) S 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 4711").is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_seen() {
        let own = process::getpid();
        let seen = look(own).expect("it is there");
        assert_eq!(Some(seen.parent), process::getppid().map(Pid::as_raw_pid));
        assert!(!seen.is_zombie && !seen.is_stopped && seen.started > 0);
        let parent = process::getppid().expect("a parent");
        assert!(descendants(parent).contains(&Seen { is_zombie: false, ..seen }));
    }
}
