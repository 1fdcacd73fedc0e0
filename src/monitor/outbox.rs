//! What waits to be read by the client of a session. Never more than a bound, however slowly the client reads.
//!
//! A client that reads slowly must neither stop the scanning nor cost memory. So acknowledgements melt into the newest,
//! and when the box is full further incidents and verdicts are left out: they are kept and counted all the same, and the
//! summary lists them. A KILL always finds a place.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::Stream;
use futures_util::future::poll_fn;

use super::{Summary, Verdict};
use crate::decision::{Incident, OutputStream, VerdictKind};

/// Messages that wait at most, besides those that always find a place.
const MESSAGES_MAX: usize = 256;
/// Places that an empty box keeps.
const PLACES_KEPT: usize = 8;

/// One message to the client.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The session has begun.
    Attached {
        /// Id of the session.
        session_id: Arc<str>,
        /// Revision of the policy that holds for it.
        policy_revision: Arc<str>,
    },
    /// Everything up to this chunk was scanned.
    Ack {
        /// Stream of the chunk.
        stream: OutputStream,
        /// Its number.
        seq: u64,
    },
    /// A rule fired.
    Incident(Arc<Incident>),
    /// What is to happen because of an incident.
    Verdict(Verdict),
    /// The session has ended.
    Summary(Summary),
}

impl Message {
    fn is_kill(&self) -> bool {
        matches!(self, Self::Verdict(verdict) if verdict.verdict == VerdictKind::Kill)
    }
}

struct State<E> {
    queue: VecDeque<Message>,
    /// Follows the last message.
    end: Option<Result<(), E>>,
    is_over: bool,
    is_gone: bool,
    /// Whether more is about to come: the reader is woken once, for all of it.
    is_gathering: bool,
    reader: Option<Waker>,
    /// Who waits for the reader to go.
    watcher: Option<Waker>,
}

type Shared<E> = Arc<Mutex<State<E>>>;

/// The end that fills the box.
pub struct Outbox<E>(Shared<E>);

/// The end that is read: the messages, then the error if there is one.
pub struct Answers<E>(Shared<E>);

/// A new box, empty.
pub fn outbox<E>() -> (Outbox<E>, Answers<E>) {
    let state = State {
        queue: VecDeque::new(),
        end: None,
        is_over: false,
        is_gone: false,
        is_gathering: false,
        reader: None,
        watcher: None,
    };
    let shared = Arc::new(Mutex::new(state));
    (Outbox(shared.clone()), Answers(shared))
}

fn lock<E>(shared: &Shared<E>) -> MutexGuard<'_, State<E>> {
    // Nothing panics while it holds the lock.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<E> Outbox<E> {
    /// Puts a message in. Answers whether the client will get it, if it reads on.
    pub fn push(&self, message: Message) -> bool {
        let waker = {
            let mut state = lock(&self.0);
            if state.is_gone || state.is_over {
                return false;
            }
            let is_full = state.queue.len() >= MESSAGES_MAX;
            match &message {
                Message::Ack { .. } => {
                    if let Some(last @ Message::Ack { .. }) = state.queue.back_mut() {
                        *last = message;
                        return true;
                    }
                    // A later one says the same and more.
                    if is_full {
                        return false;
                    }
                }
                // One KILL says all; a second one in the same box adds nothing.
                Message::Verdict(_) if message.is_kill() => {
                    if is_full && state.queue.iter().any(Message::is_kill) {
                        return false;
                    }
                }
                Message::Incident(_) | Message::Verdict(_) if is_full => return false,
                Message::Incident(_)
                | Message::Verdict(_)
                | Message::Attached { .. }
                | Message::Summary(_) => {}
            }
            state.queue.push_back(message);
            if state.is_gathering { None } else { state.reader.take() }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Wakes the reader once for everything that `fill` puts in, so that it leaves in one piece: each time that a
    /// connection is woken costs more than a message.
    pub fn gathered<T>(&self, fill: impl FnOnce() -> T) -> T {
        lock(&self.0).is_gathering = true;
        let filled = fill();
        let waker = {
            let mut state = lock(&self.0);
            state.is_gathering = false;
            if state.queue.is_empty() { None } else { state.reader.take() }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        filled
    }

    /// Says that nothing follows but this.
    pub fn finish(&self, end: Result<(), E>) {
        let waker = {
            let mut state = lock(&self.0);
            if state.is_over {
                return;
            }
            state.is_over = true;
            state.end = Some(end);
            state.reader.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends when nobody will read any more.
    pub async fn gone(&self) {
        poll_fn(|cx| {
            let mut state = lock(&self.0);
            if state.is_gone {
                return Poll::Ready(());
            }
            if !state.watcher.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                state.watcher = Some(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}

impl<E: Unpin> Stream for Answers<E> {
    type Item = Result<Message, E>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = lock(&self.0);
        if let Some(message) = state.queue.pop_front() {
            if state.queue.is_empty() && state.queue.capacity() > PLACES_KEPT {
                state.queue = VecDeque::new();
            }
            return Poll::Ready(Some(Ok(message)));
        }
        if state.is_over {
            return Poll::Ready(state.end.take().and_then(Result::err).map(Err));
        }
        if !state.reader.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.reader = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl<E> Drop for Answers<E> {
    fn drop(&mut self) {
        let waker = {
            let mut state = lock(&self.0);
            state.is_gone = true;
            state.queue = VecDeque::new();
            state.watcher.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;
    use crate::decision::VerdictSource;
    use crate::monitor::KillAdvice;

    fn verdict(n: usize, kind: VerdictKind) -> Message {
        Message::Verdict(Verdict {
            incident_id: n.to_string().into(),
            verdict: kind,
            reason: String::new(),
            source: VerdictSource::Rule,
            is_final: true,
            kill: (kind == VerdictKind::Kill).then_some(KillAdvice::STANDARD),
            decision_id: "d".into(),
        })
    }

    fn ack(seq: u64) -> Message {
        Message::Ack { stream: OutputStream::Stdout, seq }
    }

    #[tokio::test]
    async fn messages_come_in_order_and_acks_melt() {
        let (outbox, answers) = outbox::<&str>();
        for message in [ack(1), ack(2), verdict(1, VerdictKind::Warn), ack(3), ack(4)] {
            assert!(outbox.push(message));
        }
        outbox.finish(Err("over"));
        assert!(!outbox.push(ack(5)), "nothing follows the end");
        let read: Vec<_> = answers.collect().await;
        assert_eq!(read, [Ok(ack(2)), Ok(verdict(1, VerdictKind::Warn)), Ok(ack(4)), Err("over")]);
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_costs_no_memory_and_still_gets_its_kill() {
        let (outbox, answers) = outbox::<()>();
        let taken = (0..10_000).filter(|n| outbox.push(verdict(*n, VerdictKind::Warn))).count();
        assert_eq!(taken, MESSAGES_MAX);
        assert!(outbox.push(verdict(1, VerdictKind::Kill)));
        assert!(!outbox.push(verdict(2, VerdictKind::Kill)), "the first one says it all");
        assert!(outbox.push(Message::Summary(Summary::default())));
        outbox.finish(Ok(()));
        let read: Vec<_> = answers.collect().await;
        assert_eq!(read.len(), MESSAGES_MAX + 2);
        assert_eq!(read[MESSAGES_MAX], Ok(verdict(1, VerdictKind::Kill)));
    }

    #[tokio::test]
    async fn what_is_gathered_wakes_the_reader_once() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        #[derive(Default)]
        struct Count(AtomicUsize);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let (outbox, mut answers) = outbox::<()>();
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        assert!(answers.poll_next_unpin(&mut Context::from_waker(&waker)).is_pending());
        outbox.gathered(|| {
            assert!(outbox.push(ack(1)) && outbox.push(verdict(1, VerdictKind::Kill)));
            assert_eq!(count.0.load(Ordering::Relaxed), 0);
        });
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(answers.next().await, Some(Ok(ack(1))));
        assert_eq!(answers.next().await, Some(Ok(verdict(1, VerdictKind::Kill))));
        assert!(answers.poll_next_unpin(&mut Context::from_waker(&waker)).is_pending());
        assert!(outbox.push(ack(2)));
        assert_eq!(count.0.load(Ordering::Relaxed), 2, "afterwards each message wakes it again");
    }

    #[tokio::test]
    async fn a_reader_that_goes_is_noticed() {
        let (outbox, answers) = outbox::<()>();
        let gone = tokio::spawn(async move {
            outbox.gone().await;
            outbox
        });
        drop(answers);
        let outbox = gone.await.expect("it ends");
        assert!(!outbox.push(ack(1)));
    }
}
