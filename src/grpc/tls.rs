//! TLS at the listener: certificates that are replaced while the server runs, and what a client certificate says.
//!
//! Each new connection is greeted with the certificates in force at that moment; connections that stand go on as they
//! began. Handshakes run beside each other, bounded in time and number, so that one slow client holds up nobody.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::auth::{CERTIFICATES, ReadAgain, tell_refreshed};
use crate::config::TlsConfig;
use crate::identity::{Kept, PeerCertificate, Refreshed, earliest_end, read_text};
use crate::telemetry::{Certificate, CertificatesLoaded, Metrics};

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Most handshakes at once.
const HANDSHAKES_MAX: usize = 256;
/// Pause after a failed accept: most often the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Largest file of certificates or keys, in bytes.
const PEM_BYTES_MAX: u64 = 1024 * 1024;

/// The certificates of the listener.
pub struct Tls(Kept<Loaded>);

/// What the files hold.
struct Loaded {
    config: Arc<rustls::ServerConfig>,
    server_end: i64,
    client_ca_end: Option<i64>,
}

/// Why TLS cannot be spoken.
#[derive(Debug, thiserror::Error)]
#[error("server.tls: {0}")]
pub struct TlsError(String);

impl Tls {
    /// The certificates that the settings name; `None` when they name none.
    ///
    /// # Errors
    /// A file cannot be read, or does not hold what it should.
    pub fn start(config: &TlsConfig, metrics: &Metrics) -> Result<Option<Arc<Self>>, TlsError> {
        if !config.is_on() {
            return Ok(None);
        }
        let files = config.clone();
        let kept = Kept::start(config.paths(), move || load(&files)).map_err(TlsError)?;
        let tls = Self(kept);
        tls.show(metrics);
        Ok(Some(Arc::new(tls)))
    }

    /// Reads again what has changed, and says so; tells what it came to where anything had changed.
    pub(super) fn refresh(&self, metrics: &Metrics) -> Option<ReadAgain> {
        let refreshed = self.0.refresh();
        tell_refreshed(CERTIFICATES.name, &refreshed, metrics);
        if refreshed == Refreshed::Applied {
            self.show(metrics);
        }
        let loaded = self.0.get();
        let until =
            |end: i64| jiff::Timestamp::from_second(end).map(|end| end.to_string()).unwrap_or_default();
        let mut detail = json!({ "not_after": until(loaded.server_end) });
        if let Some(end) = loaded.client_ca_end {
            detail["client_ca_not_after"] = json!(until(end));
        }
        (refreshed != Refreshed::Unchanged).then_some(ReadAgain { what: CERTIFICATES, refreshed, detail })
    }

    /// Says until when the certificates are valid.
    fn show(&self, metrics: &Metrics) {
        let loaded = self.0.get();
        CertificatesLoaded { certificate: Certificate::Server, not_after: loaded.server_end }.emit(metrics);
        if let Some(not_after) = loaded.client_ca_end {
            CertificatesLoaded { certificate: Certificate::ClientCa, not_after }.emit(metrics);
        }
    }
}

fn load(config: &TlsConfig) -> Result<Loaded, String> {
    let (Some(certificate), Some(key)) = (&config.certificate, &config.key) else {
        return Err("needs both certificate and key".to_owned());
    };
    let told = |path: &std::path::Path, what: String| format!("`{}` {what}", path.display());
    let read = |path: &std::path::Path| read_text(path, PEM_BYTES_MAX).map_err(|what| told(path, what));
    let certificates = |path: &std::path::Path| -> Result<Vec<CertificateDer<'static>>, String> {
        let text = read(path)?;
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
        let all = all.map_err(|error| told(path, format!("is not PEM: {error}")))?;
        if all.is_empty() { Err(told(path, "holds no certificate".to_owned())) } else { Ok(all) }
    };
    let end = |path: &std::path::Path, all: &[CertificateDer<'_>]| {
        earliest_end(all.iter().map(|one| one.as_ref())).map_err(|what| told(path, what))
    };
    let chain = certificates(certificate)?;
    let server_end = end(certificate, &chain)?;
    // What is wrong with a key is told without a piece of it.
    let key_text = read(key)?;
    let private = PrivateKeyDer::from_pem_slice(key_text.as_bytes())
        .map_err(|_| told(key, "holds no private key in PEM".to_owned()))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let (builder, client_ca_end) = match &config.client_ca {
        None => (builder.with_no_client_auth(), None),
        Some(path) => {
            let authorities = certificates(path)?;
            let client_ca_end = end(path, &authorities)?;
            let mut roots = RootCertStore::empty();
            for authority in authorities {
                roots.add(authority).map_err(|error| told(path, format!("holds no authority: {error}")))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| told(path, error.to_string()))?;
            (builder.with_client_cert_verifier(verifier), Some(client_ca_end))
        }
    };
    let mut tls = builder
        .with_single_cert(chain, private)
        .map_err(|error| format!("`{}` and `{}`: {error}", certificate.display(), key.display()))?;
    // gRPC is HTTP/2 alone.
    tls.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Loaded { config: Arc::new(tls), server_end, client_ca_end })
}

/// Accepts connections until nobody takes them any more.
pub(super) fn incoming(listener: TcpListener, tls: Option<Arc<Tls>>) -> Incoming {
    // Whoever serves takes them at once; a queue here would only hide that it does not.
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(accept(listener, tls, sender));
    Incoming(receiver)
}

async fn accept(listener: TcpListener, tls: Option<Arc<Tls>>, sender: mpsc::Sender<io::Result<Connection>>) {
    let places = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    loop {
        let accepted = tokio::select! {
            () = sender.closed() => return,
            accepted = listener.accept() => accepted,
        };
        let socket = match accepted {
            Ok((socket, _)) => socket,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // With Nagle's algorithm the tail of a 16 KB call waits 40 ms for an acknowledgement.
        let _ = socket.set_nodelay(true);
        let Some(tls) = &tls else {
            if sender.send(Ok(Connection::Plain(socket))).await.is_err() {
                return;
            }
            continue;
        };
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let (acceptor, sender) = (TlsAcceptor::from(tls.0.get().config.clone()), sender.clone());
        tokio::spawn(async move {
            let shaken = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(socket)).await;
            drop(place);
            match shaken {
                Ok(Ok(stream)) => {
                    let peer = Peer::of(&stream);
                    let _ = sender.send(Ok(Connection::Tls(Box::new(stream), peer))).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => tracing::debug!("a TLS handshake took too long"),
            }
        });
    }
}

/// Connections as they come.
pub(super) struct Incoming(mpsc::Receiver<io::Result<Connection>>);

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

/// One connection.
pub(super) enum Connection {
    /// In clear.
    Plain(TcpStream),
    /// Over TLS, and who the other side is.
    Tls(Box<TlsStream<TcpStream>>, Peer),
}

/// What is known of the other side of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    /// What its certificate says, which an authority of ours signed.
    pub(super) certificate: Option<Arc<PeerCertificate>>,
}

impl Peer {
    fn of(stream: &TlsStream<TcpStream>) -> Self {
        let chain = stream.get_ref().1.peer_certificates();
        let leaf = chain.and_then(|chain| chain.first());
        let certificate = leaf.and_then(|leaf| PeerCertificate::read(leaf.as_ref()).ok()).map(Arc::new);
        Self { certificate }
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        match self {
            Self::Plain(_) => Peer::default(),
            Self::Tls(_, peer) => peer.clone(),
        }
    }
}

/// Hands a call of a pinned connection on to what it is made of.
macro_rules! each {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Connection::Plain($stream) => $call,
            Connection::Tls($stream, _) => $call,
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(cx, into))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write_vectored(cx, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream, _) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
