//! A client that costs little: finished bytes over a few HTTP/2 connections, and a note of what came back.
//!
//! It speaks HTTP/2 by itself, because stubs would spend as much processor on a call as the server does, and the two
//! share a machine.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use h2::client::SendRequest;
use prost::bytes::Bytes;
use tokio::net::TcpStream;
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::traffic::Kind;

/// Connections of the client.
const CONNECTIONS: usize = 8;
/// Calls on the way on one connection; the server allows 200.
const STREAMS: usize = 180;
/// Window for what comes back.
const WINDOW: u32 = 8 << 20;
/// gRPC codes.
const OK: u8 = 0;
const RESOURCE_EXHAUSTED: u8 = 8;
const UNAVAILABLE: u8 = 14;
/// Stands for a call that broke off without a status.
const BROKEN: u8 = 255;

/// One call that came back.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// When it was sent, after the beginning of the phase.
    pub sent: Duration,
    /// From sent to answered, in milliseconds.
    pub ms: f32,
    /// gRPC code.
    pub code: u8,
    /// Which kind of call, by its place in the mix.
    pub kind: usize,
}

impl Answer {
    /// A decision.
    pub fn is_accepted(&self) -> bool {
        self.code == OK
    }

    /// Refused in the way that overload is to be told.
    pub fn is_refused(&self) -> bool {
        matches!(self.code, UNAVAILABLE | RESOURCE_EXHAUSTED)
    }
}

/// What came of a phase.
#[derive(Debug, Default)]
pub struct Answers {
    /// Every call that came back.
    pub all: Vec<Answer>,
    /// Calls that were not sent: all streams were taken by calls without an answer.
    pub unsent: usize,
    /// How late calls were sent, in milliseconds.
    pub late: Vec<f32>,
    /// How long the phase sent.
    pub seconds: f64,
}

impl Answers {
    /// Milliseconds of those calls.
    pub fn times(&self, of: impl Fn(&Answer) -> bool) -> Vec<f32> {
        self.all.iter().filter(|answer| of(answer)).map(|answer| answer.ms).collect()
    }

    /// How many they are.
    pub fn count(&self, of: impl Fn(&Answer) -> bool) -> usize {
        self.all.iter().filter(|answer| of(answer)).count()
    }
}

/// The client. Lives in one thread.
pub struct Client {
    connections: Vec<Connection>,
    kinds: Rc<Vec<Kind>>,
    random: Cell<u64>,
}

struct Connection {
    send: SendRequest<Bytes>,
    /// Calls on the way.
    taken: Rc<Cell<usize>>,
}

impl Client {
    /// Connects.
    pub async fn connect(address: &str, kinds: Vec<Kind>) -> Self {
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            let socket = TcpStream::connect(address).await.expect("the server listens");
            socket.set_nodelay(true).expect("a socket");
            let mut builder = h2::client::Builder::new();
            builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
            let (send, connection) = builder.handshake(socket).await.expect("HTTP/2");
            spawn_local(async move { connection.await.expect("the connection stays") });
            connections.push(Connection { send, taken: Rc::default() });
        }
        Self { connections, kinds: Rc::new(kinds), random: Cell::new(0x9E37_79B9_7F4A_7C15) }
    }

    /// The mix.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The same sequence in every run.
    fn random(&self) -> u64 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x >> 11
    }

    /// From 0 to 1, neither of them.
    fn share(&self) -> f64 {
        (self.random() as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn choose(&self) -> usize {
        let all: u32 = self.kinds.iter().map(|kind| kind.weight).sum();
        let mut at = (self.share() * f64::from(all)) as u32;
        let is_it = |kind: &Kind| {
            let found = at < kind.weight;
            at = at.saturating_sub(kind.weight);
            found
        };
        self.kinds.iter().position(is_it).unwrap_or(0)
    }

    /// One call over the connection with the fewest on the way; `None` when there is no room anywhere.
    fn call(&self) -> Option<(usize, impl Future<Output = u8> + use<>)> {
        let connection = self.connections.iter().min_by_key(|connection| connection.taken.get())?;
        if connection.taken.get() >= STREAMS {
            return None;
        }
        let chosen = self.choose();
        let kind = &self.kinds[chosen];
        let sent = connection.send.clone().send_request(kind.head.clone(), false);
        let sent =
            sent.and_then(|(response, mut body)| body.send_data(kind.body.clone(), true).map(|()| response));
        let taken = connection.taken.clone();
        taken.set(taken.get() + 1);
        let calling = async move {
            let code = match sent {
                Ok(response) => answered(response).await.unwrap_or(BROKEN),
                Err(_) => BROKEN,
            };
            taken.set(taken.get() - 1);
            code
        };
        Some((chosen, calling))
    }

    /// `concurrency` callers, each of which calls again as soon as it was answered.
    pub async fn closed_loop(&self, concurrency: usize, span: Duration) -> Answers {
        let started = Instant::now();
        let answers = RefCell::new(Answers::default());
        let caller = async || {
            while started.elapsed() < span {
                let sent = Instant::now();
                let Some((kind, call)) = self.call() else { break };
                let code = call.await;
                let ms = sent.elapsed().as_secs_f32() * 1e3;
                answers.borrow_mut().all.push(Answer { sent: sent - started, ms, code, kind });
            }
        };
        futures_util::future::join_all((0..concurrency).map(|_| caller())).await;
        let mut answers = answers.into_inner();
        answers.seconds = started.elapsed().as_secs_f64();
        answers
    }

    /// `rate` calls a second at random moments, whether or not earlier ones were answered; waits for the last answers.
    pub async fn open_loop(&self, rate: f64, span: Duration) -> Answers {
        let started = Instant::now();
        let answers = Rc::new(RefCell::new(Answers::default()));
        let mut due = Duration::ZERO;
        loop {
            let now = started.elapsed();
            while due <= now.min(span) {
                answers.borrow_mut().late.push((now - due).as_secs_f32() * 1e3);
                self.send(started, &answers);
                // Arrivals that know nothing of each other.
                due += Duration::from_secs_f64(-self.share().ln() / rate);
            }
            if now >= span {
                break;
            }
            sleep(Duration::from_millis(1)).await;
        }
        let seconds = started.elapsed().as_secs_f64();
        // Nobody waits longer than the deadline of a call.
        let patience = Instant::now() + Duration::from_secs(10);
        while self.connections.iter().any(|connection| connection.taken.get() > 0)
            && Instant::now() < patience
        {
            sleep(Duration::from_millis(5)).await;
        }
        let mut answers = answers.take();
        answers.seconds = seconds;
        answers
    }

    fn send(&self, started: Instant, answers: &Rc<RefCell<Answers>>) {
        let Some((kind, call)) = self.call() else {
            answers.borrow_mut().unsent += 1;
            return;
        };
        let sent = Instant::now();
        let answers = answers.clone();
        spawn_local(async move {
            let code = call.await;
            let ms = sent.elapsed().as_secs_f32() * 1e3;
            answers.borrow_mut().all.push(Answer { sent: sent - started, ms, code, kind });
        });
    }
}

/// The status of an answer, which stands in its trailers, or in its headers when there is no message.
async fn answered(response: h2::client::ResponseFuture) -> Result<u8, h2::Error> {
    let (head, mut body) = response.await?.into_parts();
    if let Some(code) = status(&head.headers) {
        return Ok(code);
    }
    while let Some(data) = body.data().await {
        let length = data?.len();
        body.flow_control().release_capacity(length)?;
    }
    Ok(body.trailers().await?.and_then(|trailers| status(&trailers)).unwrap_or(BROKEN))
}

fn status(headers: &http::HeaderMap) -> Option<u8> {
    headers.get("grpc-status")?.to_str().ok()?.parse().ok()
}
