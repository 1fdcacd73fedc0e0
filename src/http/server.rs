//! Accepting connections, within limits.
//!
//! Written on hyper itself, since what axum brings sets no limit on the time that headers take: a peer that sends one
//! byte a minute would hold its connection for ever.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Connections at one time. One more waits until another ends: probes and scrapers are few, and a gateway that keeps its
/// connections must not hold up a probe.
const CONNECTIONS_MAX: usize = 512;

/// Time for the headers of a request, and between two requests of one connection.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Memory for the head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Header lines of a request.
const HEADERS_MAX: usize = 64;

/// Age at which a connection is asked to close: a peer that never reads its answer must not hold it for ever.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(300);

/// How long a stop waits for answers under way.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after a failed accept: the process is out of file handles, and trying at once would only burn a core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` on `listener` until `shutdown` ends; then lets answers under way finish, for at most 5 s.
pub async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (stop, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            (stream, permit) = accept(&listener, &permits) => {
                connections.spawn(serve_connection(stream, permit, router.clone(), stopped.clone()));
            }
            // Ended connections are taken out here, or they would pile up.
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    stop.send_replace(true);
    let drained = timeout(DRAIN_TIMEOUT, async { while connections.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::warn!(connections = connections.len(), "HTTP connections cut off while stopping");
    }
}

/// The next connection, once there is room for it.
async fn accept(listener: &TcpListener, permits: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    let permit = Arc::clone(permits).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            Err(error) if is_of_one_peer(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "could not accept an HTTP connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Whether a failed accept concerns one peer that went away, and not this process.
fn is_of_one_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn serve_connection(
    stream: TcpStream,
    permit: OwnedSemaphorePermit,
    router: Router,
    stopped: watch::Receiver<bool>,
) {
    // Without this a small answer waits for an acknowledgement that the peer delays. A failure costs only that.
    let _ = stream.set_nodelay(true);
    if let Err(error) = serve_stream(stream, router, HEADER_READ_TIMEOUT, stopped).await {
        // Peers break connections off every day.
        tracing::debug!(%error, "HTTP connection ended early");
    }
    drop(permit);
}

/// Serves one connection until the peer closes it, until it is too old, or until `stopped` holds true; in the last two
/// cases the answer under way still goes out, within a limit.
pub(super) async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    header_read_timeout: Duration,
    mut stopped: watch::Receiver<bool>,
) -> hyper::Result<()> {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_read_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        _ = stopped.wait_for(|is_stopped| *is_stopped) => {}
        () = sleep(CONNECTION_AGE_MAX) => {}
    }
    connection.as_mut().graceful_shutdown();
    timeout(DRAIN_TIMEOUT, connection).await.unwrap_or(Ok(()))
}
