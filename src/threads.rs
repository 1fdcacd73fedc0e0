//! Which threads go first where there is less of the processor than all want, and what one of them has used.
//!
//! Linux alone knows threads of different priority in one process; elsewhere all are alike. Making a thread nicer needs no
//! right, and where it fails nothing is lost but time.

use std::time::{Duration, Instant};

/// How much nicer threads that work out decisions are than those that read: a third of their share where both want all
/// there is. Whoever is refused is to know at once, and that costs next to nothing.
pub const DECIDING: i32 = 5;
/// The same for threads that keep what was decided: a tenth. They wait for disks most of the time, and would otherwise
/// interrupt the decision that comes next.
pub const KEEPING: i32 = 10;

/// What this thread uses of a processor from a moment on.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    since: Instant,
    used: Duration,
}

impl Stopwatch {
    /// From now on.
    pub fn start() -> Self {
        Self { since: Instant::now(), used: used() }
    }

    /// What was used, if it is more than this. Where it is not known, the time that passed.
    pub fn if_longer_than(&self, least: Duration) -> Option<Duration> {
        // Nobody uses more than passes, and that costs less to ask.
        let passed = Some(self.since.elapsed()).filter(|passed| *passed > least)?;
        let used = used().checked_sub(self.used).filter(|used| !used.is_zero()).unwrap_or(passed);
        (used > least).then_some(used)
    }
}

/// What this thread has used of a processor.
#[cfg(target_os = "linux")]
fn used() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

/// See above.
#[cfg(not(target_os = "linux"))]
fn used() -> Duration {
    Duration::ZERO
}

/// Makes this thread nicer by so much.
pub fn give_way(nice: i32) {
    // Linux takes "this process" for the thread that asks (setpriority(2), "C library/kernel differences").
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, nice);
    #[cfg(not(target_os = "linux"))]
    let _ = nice;
}

/// Makes the threads of this process that have this name nicer by so much: for those that a library starts. A name has at
/// most fifteen bytes (prctl(2), `PR_SET_NAME`).
#[cfg(target_os = "linux")]
pub fn have_give_way(name: &str, nice: i32) {
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let is_named =
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|own| own.trim_end() == name);
        let id =
            task.file_name().to_str().and_then(|id| id.parse().ok()).and_then(rustix::process::Pid::from_raw);
        if is_named && id.is_some() {
            let _ = rustix::process::setpriority_process(id, nice);
        }
    }
}

/// See above.
#[cfg(not(target_os = "linux"))]
pub fn have_give_way(_name: &str, _nice: i32) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn waiting_uses_no_processor() {
        let (since, watch) = (Instant::now(), Stopwatch::start());
        let least = Duration::from_millis(1);
        let (_keep, never) = mpsc::channel::<()>();
        assert!(never.recv_timeout(5 * least).is_err());
        assert!(since.elapsed() > 5 * least && watch.if_longer_than(4 * least).is_none());
        while watch.if_longer_than(least).is_none() {}
        assert!(watch.if_longer_than(least).is_some_and(|used| used <= since.elapsed()));
    }

    #[test]
    fn a_thread_gives_way_by_itself_or_by_its_name() {
        const NAME: &str = "gives-way";
        let (tell, told) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let other = std::thread::Builder::new().name(NAME.to_owned()).spawn(move || {
            give_way(DECIDING);
            let nice = || rustix::process::getpriority_process(None).expect("one's own priority");
            let first = nice();
            tell.send(first).expect("somebody listens");
            wait.recv().expect("somebody speaks");
            (first, nice())
        });
        let own = rustix::process::getpriority_process(None).expect("one's own priority");
        told.recv().expect("it lives");
        have_give_way(NAME, KEEPING);
        go.send(()).expect("it lives");
        let (first, second) = other.expect("a thread").join().expect("no panic");
        assert_eq!((first, second), (DECIDING.max(own), KEEPING.max(own)));
        assert_eq!(rustix::process::getpriority_process(None).expect("one's own priority"), own);
    }
}
