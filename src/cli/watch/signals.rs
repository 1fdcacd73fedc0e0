//! The signals that reach us while a command runs, as events: what is meant for the command is passed on.

use std::fs;
use std::io;

use rustix::process::Signal;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

/// What is listened to. Those for the command, the size of the terminal, stop and continue, and the end of a child.
const HEARD: [Signal; 10] = [
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TSTP,
    Signal::CONT,
    Signal::WINCH,
    Signal::CHILD,
];

/// Hands every signal that comes to `tell`, from tasks of `runtime`.
///
/// A signal that was ignored when we started stays so, for us and for the command: that is how `nohup` works.
pub(super) fn listen(runtime: &Handle, tell: impl Fn(Signal) + Clone + Send + 'static) -> io::Result<()> {
    let ignored = ignored_at_start();
    let _entered = runtime.enter();
    for heard in HEARD {
        if ignored & (1 << (heard.as_raw() - 1)) != 0 {
            continue;
        }
        let mut signals = signal(SignalKind::from_raw(heard.as_raw()))?;
        let tell = tell.clone();
        runtime.spawn(async move {
            while signals.recv().await.is_some() {
                tell(heard);
            }
        });
    }
    Ok(())
}

/// Signals that this process ignores, as bits from signal 1 on; none where the system does not tell.
fn ignored_at_start() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored_in(&status)
}

fn ignored_in(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        assert_eq!(ignored_in("Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"), 0x1001);
        assert_eq!(ignored_in("Name:\tx\n"), 0);
        assert_eq!(ignored_in("SigIgn:\tx\n"), 0);
    }
}
