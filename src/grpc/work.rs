//! Where decisions are worked out, and which calls are refused because too many wait for that.
//!
//! A decision is a matter of the processor. If every one were made by the threads that read the connections, those would
//! read late as soon as there is more to decide than they can: calls would wait where nobody counts them, and refusals,
//! probes and scrapes would wait with them. So the threads that read decide by themselves only while nothing waits, and
//! all of them at once only what is short, so that nobody else waits for long. Other decisions go to threads of their own,
//! the reading goes on, and what cannot be done in time is refused when it comes. To change threads costs a small decision
//! a fifth of what it takes.
//!
//! How long a decision takes is known only afterwards: ordinary texts take microseconds for each KiB, those that are made to
//! cost milliseconds. So one that took long makes the server wary for a multiple of that time, in which one of the threads
//! that read goes on reading whatever comes. What such texts can take from reading is thereby a share of the time that is
//! small, however many come.
//!
//! The rule follows controlled delay (RFC 8289) in its idea: a queue that empties, or at least grows shorter, is a burst,
//! and a burst is served to its end; a queue in which even the shortest wait is long, for a whole interval in which it
//! did not grow shorter, is overload. Then only so many calls may wait as are done within half of the wait allowed, until
//! an interval passes in which none was refused.

use std::future::{Future, poll_fn};
use std::io;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use metrics::Counter;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::threads::{self, Stopwatch};

/// What the shortest wait is looked for in: many calls of the slowest kind, and short for a person.
const INTERVAL: Duration = Duration::from_millis(100);
/// So many intervals without anybody asking, and what was known is forgotten.
const FORGOTTEN: u32 = 3;
/// So many calls may wait for each thread, however long they take: below saturation more of them come by chance only once
/// in some hundred thousand times.
const STORE: usize = 8;
/// So many times the wait allowed may a call have waited that came before the overload was seen.
const LATE: u32 = 2;
/// A thread that reads decides by itself when it came to the call within this time.
const AT_ONCE: Duration = Duration::from_micros(500);
/// Largest request that all threads which read may decide at the same time, in bytes: ordinary texts of this size take
/// less than a millisecond.
const SHORT: usize = 32 << 10;
/// A decision that took as much of a processor at one go was a long one.
const LONG: Duration = Duration::from_millis(1);
/// So many times as long as it took is a long decision remembered.
const WARY_FACTOR: u32 = 50;

/// Works out decisions.
pub struct Work {
    queue: Arc<Queue>,
    /// So many of the threads that read may decide at a time what may take long.
    here_most: usize,
    /// Counts the times that a decision on a thread that reads took long.
    long: Counter,
    /// Present until it is dropped.
    runtime: Option<Runtime>,
}

/// Calls that were let in and have not begun.
#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
}

/// A call that was let in.
#[derive(Debug)]
pub(super) struct Ticket {
    queue: Arc<Queue>,
    came: Instant,
    has_begun: bool,
}

/// The call cannot be served in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crowded;

/// The threads that decide are gone: the process stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stopped;

/// How long a call waited for its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waited(pub(super) Duration);

impl Waited {
    /// When the request came: now, less the wait for its turn.
    pub(super) fn came<T>(request: &tonic::Request<T>) -> Instant {
        let now = Instant::now();
        let waited = request.extensions().get::<Self>().copied().unwrap_or_default();
        now.checked_sub(waited.0).unwrap_or(now)
    }
}

impl Work {
    /// Threads for decisions, as many as there are processors, and a queue in which calls may wait for `wait_max`; `None`
    /// lets them wait without bound. `long` counts decisions that kept a thread that reads for long.
    ///
    /// # Errors
    /// The threads cannot be started.
    pub fn start(wait_max: Option<Duration>, long: Counter) -> io::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).thread_name("decisions").enable_all();
        if wait_max.is_some() {
            builder.on_thread_start(|| threads::give_way(threads::DECIDING));
        }
        let runtime = builder.build()?;
        let state = State::new(wait_max, threads * STORE, Instant::now());
        let queue = Arc::new(Queue { state: Mutex::new(state) });
        Ok(Self { queue, here_most: (threads - 1).max(1), long, runtime: Some(runtime) })
    }

    /// Whether a call that comes now would be refused; it is one refusal if so.
    pub(super) fn is_crowded(&self) -> bool {
        self.queue.locked().is_crowded(Instant::now())
    }

    /// Lets a call in that came whole at `came`, or refuses it.
    pub(super) fn admit(&self, came: Instant) -> Result<Ticket, Crowded> {
        let mut state = self.queue.locked();
        if state.is_crowded(Instant::now()) {
            return Err(Crowded);
        }
        state.waiting += 1;
        drop(state);
        Ok(Ticket { queue: self.queue.clone(), came, has_begun: false })
    }

    /// The right to decide on a thread that reads about a request of `bytes` bytes, if nobody has to wait for that.
    fn here(&self, bytes: usize) -> Option<Here> {
        let mut state = self.queue.locked();
        // Who lets calls wait without bound has none of them change threads.
        if state.wait_max.is_some() {
            let is_full = state.here >= self.here_most;
            if state.handed_over > 0 || is_full && (bytes > SHORT || state.is_wary(Instant::now())) {
                return None;
            }
        }
        state.here += 1;
        Some(Here(self.queue.clone()))
    }

    /// Does `work` for a request of `bytes` bytes: here when nobody has to wait for that, else on the threads for decisions.
    /// `work` gets how long it waited, and is dropped when whoever asked for it no longer waits.
    ///
    /// # Errors
    /// See [`Failed`]: nothing was done.
    pub(super) async fn run<T, F>(
        &self,
        ticket: Ticket,
        bytes: usize,
        work: impl FnOnce(Waited) -> F + Send + 'static,
    ) -> Result<T, Failed>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let is_at_once = self.queue.locked().wait_max.is_none() || ticket.came.elapsed() < AT_ONCE;
        if let Some(_here) = is_at_once.then(|| self.here(bytes)).flatten() {
            let waited = ticket.begin().map_err(|Crowded| Failed::Crowded)?;
            return Ok(self.timed(work(waited)).await);
        }
        let handed_over = HandedOver::new(self.queue.clone());
        self.spawn(async move {
            let begun = ticket.begin();
            drop(handed_over);
            let waited = begun.map_err(|Crowded| Failed::Crowded)?;
            Ok(work(waited).await)
        })
        .await
        .unwrap_or(Err(Failed::Stopped))
    }

    /// Does `work` for a request of `bytes` bytes here or there, but never refuses it, and does not count it as waiting: a
    /// stream has at most one request under way.
    ///
    /// # Errors
    /// The process stops.
    pub(super) async fn run_in_turn<T, F>(&self, bytes: usize, work: F) -> Result<T, Stopped>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        match self.here(bytes) {
            Some(_here) => Ok(self.timed(work).await),
            None => self.spawn(work).await,
        }
    }

    /// Does `work` here, and remembers it if it takes long at one go.
    async fn timed<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let before = Stopwatch::start();
            let done = work.as_mut().poll(context);
            if let Some(took) = before.if_longer_than(LONG) {
                self.long.increment(1);
                self.queue.locked().be_wary(Instant::now(), took);
            }
            done
        })
        .await
    }

    async fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Stopped> {
        let runtime = self.runtime.as_ref().ok_or(Stopped)?;
        let mut task = Wanted(runtime.spawn(work));
        match (&mut task.0).await {
            Ok(done) => Ok(done),
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(_) => Err(Stopped),
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // Waiting for threads is not allowed where this is dropped.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Why nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// Too much waits.
    Crowded,
    /// The process stops.
    Stopped,
}

/// A task that ends when nobody waits for it any more.
struct Wanted<T>(JoinHandle<T>);

impl<T> Drop for Wanted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Counts a call as handed over until it begins or is given up.
struct HandedOver(Arc<Queue>);

impl HandedOver {
    fn new(queue: Arc<Queue>) -> Self {
        queue.locked().handed_over += 1;
        Self(queue)
    }
}

impl Drop for HandedOver {
    fn drop(&mut self) {
        self.0.locked().handed_over -= 1;
    }
}

/// Counts a decision on a thread that reads.
struct Here(Arc<Queue>);

impl Drop for Here {
    fn drop(&mut self) {
        self.0.locked().here -= 1;
    }
}

impl Queue {
    fn locked(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing that can panic happens under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    fn begin(mut self) -> Result<Waited, Crowded> {
        let now = Instant::now();
        let waited = now.saturating_duration_since(self.came);
        self.has_begun = true;
        self.queue.locked().begin(now, waited)?;
        Ok(Waited(waited))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.has_begun {
            self.queue.locked().waiting -= 1;
        }
    }
}

/// What is known about the waiting. Pure: it is told the time.
#[derive(Debug)]
struct State {
    /// Longest wait that may stand for an interval.
    wait_max: Option<Duration>,
    /// Least number that may wait.
    least: usize,
    /// Calls that were let in and have not begun.
    waiting: usize,
    /// Those of them that wait for the threads for decisions.
    handed_over: usize,
    /// Decisions on threads that read.
    here: usize,
    /// Until when it counts that a decision took long.
    wary_until: Option<Instant>,
    /// How many may wait; `None` as long as there is no overload.
    limit: Option<usize>,
    /// When the interval began.
    since: Instant,
    /// Calls that waited then.
    waited_then: usize,
    /// Shortest wait in it.
    shortest: Option<Duration>,
    /// Calls that began in it.
    begun: u32,
    /// Whether one was refused in it.
    has_refused: bool,
}

impl State {
    fn new(wait_max: Option<Duration>, least: usize, now: Instant) -> Self {
        Self {
            wait_max,
            least,
            waiting: 0,
            handed_over: 0,
            here: 0,
            wary_until: None,
            limit: None,
            since: now,
            waited_then: 0,
            shortest: None,
            begun: 0,
            has_refused: false,
        }
    }

    /// Whether decisions of any size may take long.
    fn is_wary(&self, now: Instant) -> bool {
        self.wary_until.is_some_and(|until| now < until)
    }

    /// A decision was made at one go that took long.
    fn be_wary(&mut self, now: Instant, took: Duration) {
        let until = now + took * WARY_FACTOR;
        self.wary_until = Some(self.wary_until.map_or(until, |known| known.max(until)));
    }

    /// Whether a call that comes now is refused.
    fn is_crowded(&mut self, now: Instant) -> bool {
        self.look_back(now);
        let is_crowded = self.limit.is_some_and(|limit| self.waiting >= limit);
        self.has_refused |= is_crowded;
        is_crowded
    }

    fn begin(&mut self, now: Instant, waited: Duration) -> Result<(), Crowded> {
        self.look_back(now);
        self.waiting -= 1;
        self.shortest = Some(self.shortest.map_or(waited, |shortest| shortest.min(waited)));
        let is_late = self.wait_max.is_some_and(|wait_max| waited > wait_max * LATE);
        // A queue that is short enough is served however slow the machine is.
        if is_late && self.limit.is_some_and(|limit| self.waiting >= limit) {
            self.has_refused = true;
            return Err(Crowded);
        }
        self.begun += 1;
        Ok(())
    }

    /// Draws the conclusion of an interval that is over.
    fn look_back(&mut self, now: Instant) {
        let Some(wait_max) = self.wait_max else { return };
        let span = now.saturating_duration_since(self.since);
        if span < INTERVAL {
            return;
        }
        let is_standing = match self.shortest {
            Some(shortest) => shortest > wait_max,
            // Nothing began although something waits.
            None => self.waiting > 0,
        };
        let is_growing = self.waiting >= self.waited_then;
        let is_overload = (is_standing && is_growing) || (self.limit.is_some() && self.has_refused);
        self.limit = (is_overload && span < INTERVAL * FORGOTTEN).then(|| {
            let done_in_time = f64::from(self.begun) * (wait_max / 2).as_secs_f64() / span.as_secs_f64();
            (done_in_time as usize).max(self.least)
        });
        self.since = now;
        self.waited_then = self.waiting;
        self.shortest = None;
        self.begun = 0;
        self.has_refused = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT_MAX: Duration = Duration::from_millis(5);
    const LEAST: usize = 4;
    const PLACES: usize = 256;

    /// Calls that come and are begun, moment by moment.
    struct Play {
        state: State,
        epoch: Instant,
        /// When each waiting call came.
        waiting: std::collections::VecDeque<f64>,
        refused: usize,
        waits: Vec<f64>,
    }

    impl Play {
        fn new(wait_max: Option<Duration>) -> Self {
            let epoch = Instant::now();
            let state = State::new(wait_max, LEAST, epoch);
            Self { state, epoch, waiting: Default::default(), refused: 0, waits: Vec::new() }
        }

        fn at(&self, ms: f64) -> Instant {
            self.epoch + Duration::from_secs_f64(ms / 1e3)
        }

        /// `per_ms` calls come each millisecond and `served` are begun, from one millisecond to another.
        fn run(&mut self, from: u32, to: u32, per_ms: usize, served: usize) {
            for ms in from..to {
                let ms = f64::from(ms);
                for _ in 0..per_ms {
                    // Not more than places for requests in flight.
                    if self.state.is_crowded(self.at(ms)) || self.waiting.len() >= PLACES {
                        self.refused += 1;
                    } else {
                        self.state.waiting += 1;
                        self.waiting.push_back(ms);
                    }
                }
                let mut left = served;
                while left > 0 {
                    let Some(came) = self.waiting.pop_front() else { break };
                    let waited = ms - came;
                    match self.state.begin(self.at(ms), Duration::from_secs_f64(waited / 1e3)) {
                        Ok(()) => {
                            self.waits.push(waited);
                            left -= 1;
                        }
                        // That takes no time.
                        Err(Crowded) => self.refused += 1,
                    }
                }
            }
        }
    }

    #[test]
    fn a_burst_is_served_to_its_end() {
        let mut play = Play::new(Some(WAIT_MAX));
        play.run(0, 1, 250, 4);
        // It takes 250 ms, and others come meanwhile, but fewer than are done.
        play.run(1, 1_000, 0, 1);
        play.run(1_000, 1_001, 250, 4);
        play.run(1_001, 2_000, 3, 4);
        assert_eq!((play.refused, play.waits.len()), (0, 250 + 250 + 999 * 3));
    }

    #[test]
    fn a_queue_that_stands_is_cut_and_what_is_let_in_waits_shortly() {
        let mut play = Play::new(Some(WAIT_MAX));
        // Twenty come while four are done: overload is seen after an interval in which even the shortest wait was long.
        play.run(0, 250, 20, 4);
        assert!(play.refused > 0);
        play.waits.clear();
        play.run(250, 1_250, 20, 4);
        let longest = play.waits.iter().copied().fold(0.0, f64::max);
        assert!(longest <= 2.0 * WAIT_MAX.as_secs_f64() * 1e3, "{longest} ms");
        // All that can be done is done.
        assert_eq!(play.waits.len(), 4_000);
    }

    #[test]
    fn after_overload_everything_is_let_in_again() {
        let mut play = Play::new(Some(WAIT_MAX));
        play.run(0, 1_000, 20, 4);
        assert!(play.state.limit.is_some());
        play.run(1_000, 1_300, 3, 4);
        assert_eq!(play.state.limit, None);
        play.refused = 0;
        play.run(1_300, 1_301, 250, 4);
        play.run(1_301, 1_380, 0, 4);
        assert_eq!(play.refused, 0);
    }

    #[test]
    fn what_was_known_is_forgotten_while_nobody_asks() {
        let mut play = Play::new(Some(WAIT_MAX));
        play.run(0, 1_000, 20, 4);
        play.waiting.clear();
        play.state.waiting = 0;
        play.refused = 0;
        play.run(60_000, 60_001, 250, 4);
        assert_eq!(play.refused, 0);
    }

    #[test]
    fn the_least_may_always_wait() {
        let mut play = Play::new(Some(WAIT_MAX));
        // One call takes 50 ms: within the wait allowed none is done.
        for ms in (0..2_000).step_by(50) {
            play.run(ms, ms + 1, 20, 1);
        }
        assert_eq!(play.state.limit, Some(LEAST));
    }

    #[test]
    fn without_a_wait_nothing_is_refused() {
        let mut play = Play::new(None);
        play.run(0, 1, 250, 4);
        play.run(1, 1_000, 4, 4);
        assert_eq!((play.refused, play.state.limit), (0, None));
    }

    #[tokio::test]
    async fn work_is_done_wherever_it_runs_and_given_up_with_whoever_asked() {
        let work = Work::start(Some(WAIT_MAX), Counter::noop()).expect("threads");
        let ticket = work.admit(Instant::now()).expect("room");
        assert_eq!(work.run(ticket, 1, |_| async { 1 }).await, Ok(1));
        // Something waits for the threads for decisions: the next one goes there too.
        let handed_over = HandedOver::new(work.queue.clone());
        let here = std::thread::current().id();
        let ticket = work.admit(Instant::now()).expect("room");
        let there = work.run(ticket, 1, |_| async { std::thread::current().id() }).await.expect("done");
        assert_ne!(there, here);
        let ticket = work.admit(Instant::now()).expect("room");
        let (gone, is_gone) = tokio::sync::oneshot::channel::<()>();
        let never = work.run(ticket, 1, |_| async move {
            std::future::pending::<()>().await;
            drop(gone);
        });
        let limit = Duration::from_millis(1);
        assert!(tokio::time::timeout(limit, never).await.is_err());
        assert!(is_gone.await.is_err(), "what nobody waits for is dropped");
        drop(handed_over);
        assert_eq!(work.queue.locked().waiting, 0);
        let all: Vec<Here> = (0..work.here_most).filter_map(|_| work.here(SHORT + 1)).collect();
        assert_eq!(all.len(), work.here_most);
        assert!(work.here(SHORT + 1).is_none(), "one thread goes on reading");
        assert!(work.here(SHORT).is_some(), "what is short is done before anybody is missed");
        // Until something is seen to take long.
        let long = work.timed(async {
            let since = Stopwatch::start();
            while since.if_longer_than(2 * LONG).is_none() {}
        });
        long.await;
        assert!(work.here(SHORT).is_none(), "one thread goes on reading whatever comes");
        drop(all);
        assert!(work.here(SHORT).is_some());
    }

    #[test]
    fn a_long_decision_is_remembered_for_a_multiple_of_its_time() {
        let now = Instant::now();
        let mut state = State::new(Some(WAIT_MAX), LEAST, now);
        assert!(!state.is_wary(now));
        state.be_wary(now, 2 * LONG);
        // A shorter one does not shorten it.
        state.be_wary(now, LONG);
        assert!(state.is_wary(now + 2 * LONG * WARY_FACTOR - LONG));
        assert!(!state.is_wary(now + 2 * LONG * WARY_FACTOR));
    }
}
