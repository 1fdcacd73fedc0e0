//! `StreamMonitor`: the protocol around a session of the monitor.
//!
//! [`serve`] needs no server: `portcullis watch` speaks the same messages to a monitor in its own process.
//!
//! Each session is a task of its own, so that a client that does not read never stops the scanning, and one that goes
//! leaves a session that ends in good order.

mod attach;
mod convert;

use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use tokio::sync::{Semaphore, watch};
use tonic::{Code, Request, Response, Status, Streaming};

use super::decide::tell_refused;
use super::server::Shared;
use super::{Identity, RequestError, deadline, status};
use crate::audit::AuditLog;
use crate::judge::Judge;
use crate::monitor::{
    self, Broken, Ending, Incoming, Outbox, SessionError, StreamsConfig, Surroundings, decision_of_session,
};
use crate::pb::v1;
use crate::policy::Live;
use crate::store::IncidentWriter;
use crate::telemetry::{MONITOR, Metrics, OverloadShed, Rpc, SessionEnded, ShedReason};
use attach::{Begun, begin};
use convert::{Said, said};

const RPC: Rpc = Rpc::StreamMonitor;

/// How the transport begins to tell that a message is framed wrongly.
const BAD_FRAME: &str = "protocol error: received message";

/// What all sessions of a process share.
pub struct Monitor {
    /// Limits.
    pub config: StreamsConfig,
    /// Rules and policies in force.
    pub live: Arc<Live>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Records of decisions.
    pub audit: Arc<AuditLog>,
    /// Keeps incidents; `None` where nothing outlives the process.
    pub incidents: Option<Arc<IncidentWriter>>,
    /// Judges incidents, where a model is configured.
    pub judge: Option<Arc<dyn Judge>>,
    /// Largest message of a client, in bytes.
    pub request_bytes_max: usize,
    /// Places for sessions.
    places: Arc<Semaphore>,
    draining: watch::Sender<bool>,
}

impl Monitor {
    /// A monitor without sessions.
    pub fn new(
        config: StreamsConfig,
        live: Arc<Live>,
        metrics: Arc<Metrics>,
        audit: Arc<AuditLog>,
        incidents: Option<Arc<IncidentWriter>>,
        judge: Option<Arc<dyn Judge>>,
        request_bytes_max: usize,
    ) -> Self {
        let places = Arc::new(Semaphore::new(config.sessions_max));
        let draining = watch::Sender::new(false);
        // What could not be judged is counted under these names.
        metrics.declare_plugin("judge", []);
        metrics.declare_plugin(MONITOR, []);
        Self { config, live, metrics, audit, incidents, judge, request_bytes_max, places, draining }
    }

    /// Tells every session that the server shuts down; new ones are told as soon as they begin.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Waits until every session has ended, at most `limit`. Answers whether all have.
    pub async fn ended(&self, limit: Duration) -> bool {
        let all = u32::try_from(self.config.sessions_max).unwrap_or(u32::MAX);
        tokio::time::timeout(limit, self.places.acquire_many(all)).await.is_ok()
    }
}

/// The answers of one session.
pub type Answers = Pin<Box<dyn Stream<Item = Result<v1::StreamMonitorResponse, Status>> + Send>>;

/// Opens a stream over gRPC.
pub(super) fn call(
    shared: &Shared,
    request: Request<Streaming<v1::StreamMonitorRequest>>,
) -> Result<Response<Answers>, Status> {
    let identity = Identity::of(&request).map_err(|error| {
        tell_refused(&shared.metrics, RPC, &error);
        error.to_status()
    })?;
    let deadline = deadline::of(&request);
    Ok(Response::new(serve(&shared.monitor, identity, deadline, request.into_inner())))
}

/// Serves one session: what a client says comes in, what it is told goes out. The first request is to be an Attach.
/// Needs the runtime of tokio.
pub fn serve(
    monitor: &Arc<Monitor>,
    identity: Identity,
    deadline: Option<Instant>,
    requests: impl Stream<Item = Result<v1::StreamMonitorRequest, Status>> + Send + 'static,
) -> Answers {
    let Ok(place) = monitor.places.clone().try_acquire_owned() else {
        OverloadShed { rpc: RPC, reason: ShedReason::Places }.emit(&monitor.metrics);
        return Box::pin(stream::iter([Err(RequestError::Overloaded.to_status())]));
    };
    let (outbox, answers) = monitor::outbox();
    let monitor = monitor.clone();
    tokio::spawn(async move {
        let session = run(&monitor, &identity, deadline, requests, &outbox);
        let result = AssertUnwindSafe(session).catch_unwind().await;
        // The panic itself is in the log already; the caller must not take silence for safety.
        let result = result.unwrap_or(Err(RequestError::Internal));
        if let Err(error) = &result {
            tell_refused(&monitor.metrics, RPC, error);
        }
        outbox.finish(result);
        drop(place);
    });
    let to_wire = |answer: Result<monitor::Message, RequestError>| {
        answer.map(convert::answer).map_err(|error| error.to_status())
    };
    Box::pin(answers.map(to_wire))
}

async fn run(
    monitor: &Arc<Monitor>,
    identity: &Identity,
    deadline: Option<Instant>,
    requests: impl Stream<Item = Result<v1::StreamMonitorRequest, Status>> + Send,
    outbox: &Outbox<RequestError>,
) -> Result<(), RequestError> {
    let _open = monitor.metrics.monitor_stream();
    let started = Instant::now();
    let bytes_max = monitor.request_bytes_max;
    let mut requests = pin!(requests.map(move |request| read(request, bytes_max)));
    let Some(attach) = first(monitor, deadline, &mut requests, outbox).await? else { return Ok(()) };
    let Begun { session, effects, keeper } = begin(monitor, identity, *attach)?;
    let surroundings = Surroundings {
        judge: monitor.judge.clone(),
        metrics: monitor.metrics.clone(),
        draining: monitor.draining.subscribe(),
        idle_timeout: monitor.config.idle_timeout,
        deadline,
    };
    let requests = requests.map(|said| {
        said.map(|said| match said {
            Said::Attach(_) => Incoming::Attach,
            Said::Within(incoming) => incoming,
        })
    });
    let (ending, summary) = monitor::drive(session, effects, keeper, requests, outbox, surroundings).await;
    match ending {
        Ending::Well => {
            SessionEnded {
                decision: decision_of_session(&summary),
                chunks: summary.chunks,
                bytes: summary.bytes,
                incidents: summary.incidents_total,
                unjudged: &summary.unjudged,
                unjudged_times: &summary.unjudged_times,
                elapsed: started.elapsed(),
            }
            .emit(&monitor.metrics);
            Ok(())
        }
        Ending::Session(error) => Err(refusal(error)),
        Ending::Refused(error) => Err(error),
        Ending::DeadlineExceeded => Err(RequestError::DeadlineExceeded),
    }
}

/// The Attach that must come first; `None` when the client went before it.
async fn first<R>(
    monitor: &Monitor,
    deadline: Option<Instant>,
    requests: &mut Pin<&mut R>,
    outbox: &Outbox<RequestError>,
) -> Result<Option<Box<v1::Attach>>, RequestError>
where
    R: Stream<Item = Result<Said, Broken<RequestError>>>,
{
    let mut draining = monitor.draining.subscribe();
    let idle = monitor.config.idle_timeout.map(|timeout| Instant::now() + timeout);
    let until = idle.into_iter().chain(deadline).min();
    let late = async {
        match until {
            Some(until) => tokio::time::sleep_until(until.into()).await,
            None => std::future::pending().await,
        }
    };
    let request = tokio::select! {
        biased;
        () = outbox.gone() => return Ok(None),
        () = draining.wait_for(|is_draining| *is_draining).map(drop) => return Err(RequestError::Draining),
        request = requests.next() => request,
        () = late => {
            let is_deadline = deadline.is_some_and(|deadline| deadline <= Instant::now());
            return Err(if is_deadline { RequestError::DeadlineExceeded } else { RequestError::Idle });
        }
    };
    match request {
        Some(Ok(Said::Attach(attach))) => Ok(Some(attach)),
        Some(Ok(Said::Within(_))) | None => Err(RequestError::Session {
            kind: "NOT_ATTACHED",
            message: "the session is not attached; send an Attach first".to_owned(),
        }),
        Some(Err(Broken::Refused(error))) => Err(error),
        Some(Err(Broken::Gone)) => Ok(None),
    }
}

/// One message of the client, or why there are no more.
fn read(
    request: Result<v1::StreamMonitorRequest, Status>,
    bytes_max: usize,
) -> Result<Said, Broken<RequestError>> {
    match request {
        Ok(request) => said(request, bytes_max).map_err(Broken::Refused),
        Err(status) => match status::restate(status.code(), status.message(), bytes_max) {
            Some(error) => Err(Broken::Refused(error)),
            // Of all its own faults the transport tells these of the framing alone while the client is still there.
            None if status.code() == Code::Internal && status.message().starts_with(BAD_FRAME) => {
                Err(Broken::Refused(RequestError::field("kind", "is framed in a way that cannot be read")))
            }
            None => Err(Broken::Gone),
        },
    }
}

fn refusal(error: SessionError) -> RequestError {
    let message = error.to_string();
    match error {
        SessionError::AlreadyAttached => RequestError::Session { kind: "ALREADY_ATTACHED", message },
        SessionError::Detached => RequestError::Session { kind: "DETACHED", message },
        SessionError::BadSeq { .. } => RequestError::field("chunk.seq", message),
        SessionError::Idle => RequestError::Idle,
        SessionError::Draining => RequestError::Draining,
    }
}
