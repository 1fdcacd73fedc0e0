//! A monitor that does as the watched command says: a word in double brackets in its output is an order.
//!
//! `[[warn]]` and `[[kill]]` give an incident and its verdict, `[[vanish]]` ends the process as far as its clients can
//! tell, `[[drain]]` ends the session the way a server does that shuts down. Everything else is acknowledged, unless the
//! test holds acknowledgements back.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};

use futures_util::{Stream, StreamExt as _};
use portcullis::pb::v1;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::watch;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};
use v1::policy_decision_service_server::{PolicyDecisionService, PolicyDecisionServiceServer};
use v1::stream_monitor_request::Kind as Asked;
use v1::stream_monitor_response::Kind as Said;

use crate::server::PATIENCE;

/// What one session was told.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// How it began.
    pub attach: v1::Attach,
    /// Bytes of standard output and of standard error.
    pub bytes: [Vec<u8>; 2],
    /// The exit code, once told.
    pub exit_code: Option<i32>,
}

#[derive(Default)]
struct State {
    seen: Mutex<Seen>,
    changed: Condvar,
}

/// A running stand-in.
pub struct StandIn {
    runtime: Option<Runtime>,
    address: SocketAddr,
    state: Arc<State>,
    may_acknowledge: watch::Sender<bool>,
}

impl StandIn {
    /// Starts one on a free port.
    pub fn start() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::<State>::default();
        let (may_acknowledge, acknowledging) = watch::channel(true);
        let (vanish, mut vanished) = channel(1);
        let service = Service { state: state.clone(), acknowledging, vanish };
        let server = tonic::transport::Server::builder()
            .add_service(PolicyDecisionServiceServer::new(service))
            .serve_with_incoming(TcpListenerStream::new(listener));
        runtime.spawn(async move {
            tokio::select! {
                served = server => served.expect("it serves"),
                _ = vanished.recv() => {}
            }
        });
        Self { runtime: Some(runtime), address, state, may_acknowledge }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Says from now on that chunks were scanned, or does not.
    pub fn acknowledge(&self, may: bool) {
        self.may_acknowledge.send_replace(may);
    }

    /// What it was told, as soon as that satisfies `is_wanted`.
    pub fn wait_for(&self, is_wanted: impl Fn(&Seen) -> bool) -> Seen {
        let seen = self.state.seen.lock().expect("no panic before");
        let waited = self.state.changed.wait_timeout_while(seen, PATIENCE, |seen| !is_wanted(seen));
        let (seen, timeout) = waited.expect("no panic before");
        let lengths = seen.bytes.each_ref().map(Vec::len);
        assert!(!timeout.timed_out(), "not in time: {lengths:?} bytes, {:?}", seen.exit_code);
        seen.clone()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.runtime.take().expect("it is there until now").shutdown_background();
    }
}

struct Service {
    state: Arc<State>,
    acknowledging: watch::Receiver<bool>,
    vanish: Sender<()>,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// One session.
struct Session {
    state: Arc<State>,
    acknowledging: watch::Receiver<bool>,
    vanish: Sender<()>,
    answers: Sender<Result<v1::StreamMonitorResponse, Status>>,
    chunks: u64,
}

impl Session {
    async fn run(mut self, mut requests: Streaming<v1::StreamMonitorRequest>) {
        let mut orders: [Vec<u8>; 2] = Default::default();
        while let Some(Ok(request)) = requests.next().await {
            match request.kind {
                Some(Asked::Attach(attach)) if attach.policy == "unknown" => {
                    let _ = self.answers.send(Err(Status::not_found("no such policy"))).await;
                    return;
                }
                Some(Asked::Attach(attach)) => {
                    let session_id = attach.session_id.clone();
                    self.note(|seen| seen.attach = attach);
                    let policy_revision = "stand-in".to_owned();
                    self.say(Said::Attached(v1::Attached { session_id, policy_revision })).await;
                }
                Some(Asked::Chunk(chunk)) => {
                    self.chunks += 1;
                    assert_eq!(chunk.seq, self.chunks, "chunks are counted without a gap");
                    let index = usize::from(chunk.stream() == v1::OutputStream::Stderr);
                    self.note(|seen| seen.bytes[index].extend_from_slice(&chunk.data));
                    orders[index].extend_from_slice(&chunk.data);
                    if !self.obey(&mut orders[index], chunk.stream()).await {
                        return;
                    }
                    let _ = self.acknowledging.wait_for(|may| *may).await;
                    self.say(Said::Ack(v1::Ack { stream: chunk.stream, seq: chunk.seq })).await;
                }
                Some(Asked::Detach(detach)) => {
                    self.note(|seen| seen.exit_code = detach.exit_code.map(|code| code.value));
                }
                None => panic!("a request of no kind"),
            }
        }
        self.say(Said::Summary(v1::Summary { chunks: self.chunks, ..Default::default() })).await;
    }

    /// Does what the text orders; answers whether the session goes on.
    async fn obey(&mut self, text: &mut Vec<u8>, stream: v1::OutputStream) -> bool {
        while let Some((order, end)) = order(text) {
            text.drain(..end);
            match order.as_str() {
                "warn" => self.verdict(v1::VerdictKind::Warn, stream).await,
                "kill" => self.verdict(v1::VerdictKind::Kill, stream).await,
                "drain" => {
                    self.say(Said::Summary(v1::Summary::default())).await;
                    let _ = self.answers.send(Err(Status::unavailable("shutting down"))).await;
                    return false;
                }
                "vanish" => {
                    let _ = self.vanish.send(()).await;
                    return false;
                }
                other => panic!("no such order: {other}"),
            }
        }
        // An order may be cut, nothing longer is kept.
        text.drain(..text.len().saturating_sub(16));
        true
    }

    async fn verdict(&self, verdict: v1::VerdictKind, stream: v1::OutputStream) {
        let id = format!("incident-{}", self.chunks);
        let incident = v1::Incident {
            id: id.clone(),
            rule_id: "stand_in.order".into(),
            category: "orders".into(),
            severity: v1::Severity::Critical.into(),
            stream: stream.into(),
            matched_text: "an \u{1b}[31morder".into(),
            ..Default::default()
        };
        self.say(Said::Incident(incident)).await;
        let source = v1::VerdictSource::Rule.into();
        let reason = "it was ordered".into();
        let verdict = verdict.into();
        let verdict = v1::Verdict { incident_id: id, verdict, reason, source, ..Default::default() };
        self.say(Said::Verdict(verdict)).await;
    }

    async fn say(&self, kind: Said) {
        // A client that has gone hears nothing.
        let _ = self.answers.send(Ok(v1::StreamMonitorResponse { kind: Some(kind) })).await;
    }

    fn note(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.state.seen.lock().expect("no panic before"));
        self.state.changed.notify_all();
    }
}

/// The first order in a text, and where it ends.
fn order(text: &[u8]) -> Option<(String, usize)> {
    let find = |text: &[u8], mark: &[u8]| text.windows(2).position(|two| two == mark);
    let start = find(text, b"[[")? + 2;
    let length = find(&text[start..], b"]]")?;
    Some((String::from_utf8_lossy(&text[start..start + length]).into_owned(), start + length + 2))
}

#[tonic::async_trait]
impl PolicyDecisionService for Service {
    type CheckMessagesStreamStream = Answers<v1::CheckMessagesResponse>;
    type StreamMonitorStream = Answers<v1::StreamMonitorResponse>;

    async fn stream_monitor(
        &self,
        request: Request<Streaming<v1::StreamMonitorRequest>>,
    ) -> Result<Response<Self::StreamMonitorStream>, Status> {
        let (answers, receiver) = channel(16);
        let (state, vanish) = (self.state.clone(), self.vanish.clone());
        let session =
            Session { state, acknowledging: self.acknowledging.clone(), vanish, answers, chunks: 0 };
        tokio::spawn(session.run(request.into_inner()));
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn check_messages(
        &self,
        _: Request<v1::CheckMessagesRequest>,
    ) -> Result<Response<v1::CheckMessagesResponse>, Status> {
        Err(not_here())
    }

    async fn check_messages_stream(
        &self,
        _: Request<Streaming<v1::CheckMessagesRequest>>,
    ) -> Result<Response<Self::CheckMessagesStreamStream>, Status> {
        Err(not_here())
    }

    async fn intercept_message(
        &self,
        _: Request<v1::InterceptMessageRequest>,
    ) -> Result<Response<v1::InterceptMessageResponse>, Status> {
        Err(not_here())
    }

    async fn intercept_params(
        &self,
        _: Request<v1::InterceptParamsRequest>,
    ) -> Result<Response<v1::InterceptParamsResponse>, Status> {
        Err(not_here())
    }

    async fn intercept_tool(
        &self,
        _: Request<v1::InterceptToolRequest>,
    ) -> Result<Response<v1::InterceptToolResponse>, Status> {
        Err(not_here())
    }

    async fn review_bundle(
        &self,
        _: Request<Streaming<v1::ReviewBundleRequest>>,
    ) -> Result<Response<v1::ReviewBundleResponse>, Status> {
        Err(not_here())
    }
}

fn not_here() -> Status {
    Status::unimplemented("this stand-in only watches")
}
