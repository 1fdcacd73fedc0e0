//! Who runs on which processor.
//!
//! A client that shares processors with the server it measures takes from it what it is to be measured with, cannot send
//! faster than both together, and drives its code and data out of the caches, which no client on another machine does: it
//! gets a processor of its own.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors of the machine, parted.
pub struct Processors {
    all: CpuSet,
    server: CpuSet,
    client: CpuSet,
}

impl Processors {
    /// The last one for the client, all others for the server; `None` where there is only one.
    pub fn parted() -> Option<Self> {
        let all = sched_getaffinity(None).expect("Linux tells");
        let last = (0..CpuSet::MAX_CPU).rev().find(|at| all.is_set(*at))?;
        let (mut server, mut client) = (all, CpuSet::new());
        server.unset(last);
        client.set(last);
        (server.count() > 0).then_some(Self { all, server, client })
    }

    /// How many the server has.
    pub fn of_server(&self) -> u32 {
        self.server.count()
    }

    /// Lets this thread run on all of them again.
    pub fn unite(&self) {
        sched_setaffinity(None, &self.all).expect("one's own processors");
    }

    /// Runs `start` on those of the server, which what it starts keeps; this thread goes on on that of the client.
    pub fn start<T>(&self, start: impl FnOnce() -> T) -> T {
        sched_setaffinity(None, &self.server).expect("one's own processors");
        let started = start();
        sched_setaffinity(None, &self.client).expect("one's own processor");
        started
    }
}
