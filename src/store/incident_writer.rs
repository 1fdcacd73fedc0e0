//! Writes incidents behind the back of those who report them, so that no disk holds up a scan.
//!
//! A bounded queue and one task. What fails is tried again with growing pauses; what fails for too long, or no longer
//! fits into the queue, is lost, and each loss is told. A later state of an incident that still waits takes the place of
//! the earlier one, so that the queue holds each incident once.
//!
//! A short pause before each transaction gathers what comes together, and leaves the processor to the verdicts that are
//! on their way to their clients meanwhile: writing an incident costs more than finding it. Who waits for the disk ends
//! the pause.

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::{IncidentStore, KeptIncident};

/// Incidents that wait at most. With the longest excerpts this is some 40 MiB.
const QUEUE_MAX: usize = 4_096;
/// Incidents in one transaction at most.
const BATCH_MAX: usize = 256;
/// How long the first incident of a transaction waits for others.
const GATHER: Duration = Duration::from_millis(25);
/// How often one batch is tried.
const ATTEMPTS_MAX: u32 = 10;
/// Pause after the first failure; it doubles with each further one.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Whom the writer tells about the fate of incidents.
pub struct WriterHooks {
    /// Called with the cause when an attempt failed and another one follows.
    pub on_failed: OnFailed,
    /// Called with the number of incidents just lost and the cause.
    pub on_lost: OnLost,
}

/// Called with the cause of a failed attempt.
pub type OnFailed = Box<dyn Fn(&dyn Display) + Send + Sync>;

/// Called with the number of incidents just lost and the cause.
pub type OnLost = Box<dyn Fn(u64, &dyn Display) + Send + Sync>;

impl WriterHooks {
    /// Hooks that tell nobody.
    pub fn silent() -> Self {
        Self { on_failed: Box::new(|_| {}), on_lost: Box::new(|_, _| {}) }
    }
}

/// See the module. Dropping it ends the task at once; [`close`](Self::close) lets it finish.
pub struct IncidentWriter {
    queue: Arc<Queue>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Queue {
    state: Mutex<State>,
    filled: Notify,
    /// Somebody waits for the disk.
    hurry: Notify,
    /// Entries that have left the queue for good, written or lost.
    done: watch::Sender<u64>,
    hooks: WriterHooks,
}

#[derive(Default)]
struct State {
    /// Ids in the order in which they came.
    order: VecDeque<Arc<str>>,
    waiting: HashMap<Arc<str>, KeptIncident>,
    /// Entries that were ever put in.
    entered: u64,
    /// Whether somebody waits for what is in the queue.
    is_urgent: bool,
    is_closed: bool,
}

impl IncidentWriter {
    /// Starts the task. Needs the runtime of tokio.
    pub fn start(store: Arc<dyn IncidentStore>, hooks: WriterHooks) -> Self {
        let queue = Arc::new(Queue {
            state: Mutex::default(),
            filled: Notify::new(),
            hurry: Notify::new(),
            done: watch::Sender::new(0),
            hooks,
        });
        let task = tokio::spawn(run(queue.clone(), store));
        Self { queue, task: Mutex::new(Some(task)) }
    }

    /// Takes an incident as it stands now. It is written once [`wake`](Self::wake) is called, by whomever: waking a task
    /// is work that somebody in a hurry may leave for later. Never waits.
    pub fn put(&self, incident: KeptIncident) {
        let (is_full, is_batch) = {
            let mut state = self.queue.lock();
            let id = incident.incident.id.clone();
            if let Some(earlier) = state.waiting.get_mut(&id) {
                *earlier = incident;
                return;
            }
            let is_full = state.is_closed || state.order.len() >= QUEUE_MAX;
            if !is_full {
                state.order.push_back(id.clone());
                state.waiting.insert(id, incident);
                state.entered += 1;
            }
            (is_full, state.order.len() == BATCH_MAX)
        };
        if is_full {
            (self.queue.hooks.on_lost)(1, &"too many wait to be written");
        } else if is_batch {
            // A flood does not fill the queue while others are waited for.
            self.queue.filled.notify_one();
            self.queue.hurry.notify_one();
        }
    }

    /// Sees to it that what was [`put`](Self::put) is written.
    pub fn wake(&self) {
        self.queue.filled.notify_one();
    }

    /// [`Self::wake`] for what waits for no others.
    pub fn hurry(&self) {
        {
            let mut state = self.queue.lock();
            state.is_urgent = !state.order.is_empty();
        }
        self.queue.filled.notify_one();
        self.queue.hurry.notify_one();
    }

    /// Waits until everything taken so far was written or lost, at most `limit`. Answers whether it was.
    pub async fn settle(&self, limit: Duration) -> bool {
        let entered = {
            let mut state = self.queue.lock();
            state.is_urgent = !state.order.is_empty();
            state.entered
        };
        self.queue.filled.notify_one();
        self.queue.hurry.notify_one();
        let mut done = self.queue.done.subscribe();
        let settled = done.wait_for(|done| *done >= entered);
        tokio::time::timeout(limit, settled).await.is_ok_and(|settled| settled.is_ok())
    }

    /// Takes nothing more, and waits for what was taken, at most `limit`. Answers whether all of it was written or lost.
    pub async fn close(&self, limit: Duration) -> bool {
        self.queue.lock().is_closed = true;
        self.queue.filled.notify_one();
        self.queue.hurry.notify_one();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut task) = task else { return true };
        let ended = tokio::time::timeout(limit, &mut task).await.is_ok();
        if !ended {
            task.abort();
            let left = self.queue.lock().entered - *self.queue.done.borrow();
            (self.queue.hooks.on_lost)(left, &"the process ends");
        }
        ended
    }
}

impl Drop for IncidentWriter {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

impl std::fmt::Debug for IncidentWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IncidentWriter")
            .field("waiting", &self.queue.lock().order.len())
            .finish_non_exhaustive()
    }
}

impl State {
    fn take_batch(&mut self) -> Vec<KeptIncident> {
        let size = self.order.len().min(BATCH_MAX);
        let ids: Vec<Arc<str>> = self.order.drain(..size).collect();
        self.is_urgent &= !self.order.is_empty();
        ids.iter().filter_map(|id| self.waiting.remove(id)).collect()
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next incidents to write; `None` when the queue is closed and empty.
    async fn next_batch(&self) -> Option<Vec<KeptIncident>> {
        let mut has_gathered = false;
        loop {
            let is_empty = {
                let mut state = self.lock();
                let is_due = state.is_closed || state.is_urgent || state.order.len() >= BATCH_MAX;
                if !state.order.is_empty() && (is_due || has_gathered) {
                    return Some(state.take_batch());
                }
                if state.is_closed {
                    return None;
                }
                state.order.is_empty()
            };
            if is_empty {
                self.filled.notified().await;
            } else {
                // An old notice of hurry costs one more turn at most.
                let hurried = tokio::time::timeout(GATHER, self.hurry.notified()).await.is_ok();
                has_gathered = !hurried;
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.lock().is_closed
    }
}

async fn run(queue: Arc<Queue>, store: Arc<dyn IncidentStore>) {
    while let Some(batch) = queue.next_batch().await {
        let size = batch.len() as u64;
        write(&queue, &*store, batch).await;
        queue.done.send_modify(|done| *done += size);
    }
}

async fn write(queue: &Queue, store: &dyn IncidentStore, batch: Vec<KeptIncident>) {
    let mut pause = PAUSE_FIRST;
    for attempt in 1..=ATTEMPTS_MAX {
        match store.save(batch.clone()).await {
            Ok(()) => return,
            Err(error) => (queue.hooks.on_failed)(&error),
        }
        // A process that ends has no time for pauses.
        if attempt == ATTEMPTS_MAX || queue.is_closed() {
            break;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
    // One that cannot be written must not take the others with it.
    for incident in batch {
        if let Err(error) = store.save(vec![incident]).await {
            (queue.hooks.on_lost)(1, &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;
    use jiff::Timestamp;

    use super::*;
    use crate::decision::{Category, Incident, OutputStream, Severity};
    use crate::store::{IncidentPage, IncidentQuery, RuleCounts, StatsQuery, StoreError};

    /// Fails as often as told, then remembers what it gets; never keeps what has the id `poison`.
    #[derive(Default)]
    struct Fake {
        failures: AtomicU64,
        transactions: AtomicU64,
        saved: Mutex<Vec<(String, String)>>,
    }

    impl IncidentStore for Fake {
        fn save(&self, incidents: Vec<KeptIncident>) -> BoxFuture<'_, Result<(), StoreError>> {
            async move {
                self.transactions.fetch_add(1, Ordering::SeqCst);
                let fails = |left: u64| left.checked_sub(1);
                let is_failing =
                    self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok();
                if is_failing || incidents.iter().any(|one| &*one.incident.id == "poison") {
                    return Err(StoreError::Busy { place: "x".into(), cause: "of the test".into() });
                }
                let mut saved = self.saved.lock().expect("no test panics with it");
                saved.extend(
                    incidents.iter().map(|one| (one.incident.id.to_string(), one.incident.reason.clone())),
                );
                Ok(())
            }
            .boxed()
        }

        fn incident(&self, _: String, _: String) -> BoxFuture<'_, Result<Option<Incident>, StoreError>> {
            unreachable!("the writer does not read")
        }

        fn incidents(&self, _: IncidentQuery) -> BoxFuture<'_, Result<IncidentPage, StoreError>> {
            unreachable!("the writer does not read")
        }

        fn mark(
            &self,
            _: String,
            _: String,
            _: Option<String>,
        ) -> BoxFuture<'_, Result<Option<Incident>, StoreError>> {
            unreachable!("the writer does not mark")
        }

        fn stats(&self, _: StatsQuery) -> BoxFuture<'_, Result<Vec<RuleCounts>, StoreError>> {
            unreachable!("the writer does not count")
        }

        fn purge(&self, _: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>> {
            unreachable!("the writer does not purge")
        }
    }

    fn incident(id: &str, reason: &str) -> KeptIncident {
        let incident = Incident {
            id: id.into(),
            session_id: "s".into(),
            time: Timestamp::UNIX_EPOCH,
            rule_id: "r".into(),
            category: Category::new("c"),
            severity: Severity::Low,
            stream: OutputStream::Stdout,
            offset: 0,
            matched_text: String::new(),
            excerpt: "".into(),
            verdict: None,
            reason: reason.to_owned(),
            source: None,
            action: None,
            latency: None,
            false_positive: false,
            false_positive_reason: String::new(),
            work: None,
            decision_id: "d".into(),
            policy_revision: "p".into(),
            repeats: 0,
            context: None,
            shadow: false,
        };
        KeptIncident { tenant: "".into(), incident: Arc::new(incident) }
    }

    /// A writer, its store, and counts of failures and losses.
    fn writer(failures: u64) -> (IncidentWriter, Arc<Fake>, Arc<[AtomicU64; 2]>) {
        let store = Arc::new(Fake { failures: failures.into(), ..Fake::default() });
        let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let (failed, lost) = (counts.clone(), counts.clone());
        let hooks = WriterHooks {
            on_failed: Box::new(move |_| {
                failed[0].fetch_add(1, Ordering::SeqCst);
            }),
            on_lost: Box::new(move |count, _| {
                lost[1].fetch_add(count, Ordering::SeqCst);
            }),
        };
        (IncidentWriter::start(store.clone(), hooks), store, counts)
    }

    fn save(writer: &IncidentWriter, incident: KeptIncident) {
        writer.put(incident);
        writer.wake();
    }

    fn counts(of: &[AtomicU64; 2]) -> [u64; 2] {
        [of[0].load(Ordering::SeqCst), of[1].load(Ordering::SeqCst)]
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_tried_again_and_nothing_is_lost() {
        let (writer, store, told) = writer(3);
        save(&writer, incident("a", "first"));
        save(&writer, incident("b", ""));
        save(&writer, incident("a", "second"));
        assert!(writer.settle(Duration::from_secs(60)).await);
        let saved = store.saved.lock().expect("whole").clone();
        assert_eq!(saved, [("a".to_owned(), "second".to_owned()), ("b".to_owned(), String::new())]);
        assert_eq!(counts(&told), [3, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_together_is_written_together_and_who_waits_is_not_kept_waiting() {
        let (writer, store, _) = writer(0);
        for id in ["a", "b", "c"] {
            save(&writer, incident(id, ""));
            tokio::time::sleep(GATHER / 5).await;
        }
        tokio::time::sleep(GATHER).await;
        assert_eq!(store.saved.lock().expect("whole").len(), 3);
        assert_eq!(store.transactions.load(Ordering::SeqCst), 1);
        let begun = tokio::time::Instant::now();
        save(&writer, incident("d", ""));
        assert!(writer.settle(Duration::from_secs(1)).await);
        assert_eq!(store.saved.lock().expect("whole").len(), 4);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_cannot_be_written_does_not_take_others_with_it() {
        let (writer, store, told) = writer(0);
        for id in ["a", "poison", "b"] {
            save(&writer, incident(id, ""));
        }
        assert!(writer.close(Duration::from_secs(600)).await);
        let ids: Vec<String> = store.saved.lock().expect("whole").iter().map(|(id, _)| id.clone()).collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(counts(&told)[1], 1);
        save(&writer, incident("late", ""));
        assert_eq!(counts(&told)[1], 2, "a closed writer takes nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_away_costs_what_does_not_fit_and_no_memory() {
        let (writer, _, told) = writer(u64::MAX);
        for n in 0..QUEUE_MAX + BATCH_MAX + 10 {
            save(&writer, incident(&n.to_string(), ""));
        }
        assert_eq!(counts(&told), [0, (BATCH_MAX + 10) as u64]);
        assert!(!writer.settle(Duration::from_secs(1)).await, "nothing was written");
        assert!(!writer.close(Duration::from_millis(1)).await);
    }
}
