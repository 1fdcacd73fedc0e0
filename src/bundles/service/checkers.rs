//! The threads on which bundles are checked: always the same few.
//!
//! What patterns and the allocator keep, they keep for each thread; on whichever thread happens to be free that would be held
//! many times over. A thread is started when a bundle comes and all others are busy, and ends with the service.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Ways to the threads that have nothing to do.
type Idle = Mutex<Vec<Sender<Job>>>;

/// See the module.
#[derive(Default)]
pub(super) struct Checkers(Arc<Idle>);

struct Job {
    run: Box<dyn FnOnce() + Send>,
    /// Its place among those that run at once, free again when the thread is.
    place: OwnedSemaphorePermit,
    /// The way to the thread that does it.
    back: Sender<Job>,
}

impl Checkers {
    /// Does some work; `None` when it broke off, or no thread could be started. `place` bounds how many run at once.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        place: OwnedSemaphorePermit,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (told, answer) = oneshot::channel();
        let runtime = Handle::current();
        let run = Box::new(move || {
            let _entered = runtime.enter();
            // Nobody waits for it any more where this fails.
            let _ = told.send(work());
        });
        let idle = list(&self.0).pop();
        let back = match idle {
            Some(way) => way,
            None => start(Arc::downgrade(&self.0)).ok()?,
        };
        let job = Job { run, place, back: back.clone() };
        back.send(job).ok()?;
        drop(back);
        answer.await.ok()
    }
}

fn start(idle: Weak<Idle>) -> io::Result<Sender<Job>> {
    let (way, jobs) = channel::<Job>();
    thread::Builder::new().name("bundle-check".to_owned()).spawn(move || {
        while let Ok(Job { run, place, back }) = jobs.recv() {
            // A panic is in the log, and the answer that does not come says that there was one.
            let _ = catch_unwind(AssertUnwindSafe(run));
            if let Some(idle) = idle.upgrade() {
                list(&idle).push(back);
            }
            drop(place);
        }
    })?;
    Ok(way)
}

/// The list is whole whatever panicked.
fn list(idle: &Idle) -> MutexGuard<'_, Vec<Sender<Job>>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_same_threads_do_all_the_work_and_outlive_a_panic() {
        let (checkers, places) = (Checkers::default(), Arc::new(Semaphore::new(1)));
        let mut seen = Vec::new();
        for nth in 0..4 {
            let place = Arc::clone(&places).acquire_owned().await.expect("open");
            let id = checkers.run(place, move || {
                assert_ne!(nth, 1, "a panic that the test wants");
                thread::current().id()
            });
            seen.push(id.await);
        }
        assert_eq!(seen[1], None);
        assert!(seen[0].is_some() && seen[0] == seen[2] && seen[2] == seen[3], "{seen:?}");
    }
}
