//! The client of an `ExtensionService` over gRPC.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, ConnectError, Request, Status, TimeoutExpired};
use tower::service_fn;

use super::Config;
use super::address::AddressRules;
use super::connect::{self, PrivateAddress};
use super::credential::{Credential, Stamp};
use super::failure::{Failure, cause_of, find};
use super::target::Target;
use crate::decision::Reason;
use crate::pb::v1;
use crate::pb::v1::extension_service_client::ExtensionServiceClient;

/// Beginning of what the transport says of an answer that is too large.
const TOO_LARGE: &str = "Error, decoded message length too large";
/// Beginning of what the transport says of an answer that is no such message.
const NOT_DECODED: &str = "failed to decode Protobuf message";

/// A client of one extension. Its connection is reused and made anew when it breaks.
pub(super) struct GrpcClient {
    target: Arc<Target>,
    credential: Option<Credential>,
    config: Arc<Config>,
    rules: Arc<AddressRules>,
    link: Mutex<Option<Link>>,
}

/// A channel, and what is known of who is at its other end.
#[derive(Clone)]
struct Link {
    /// States of the TLS files that it was made of.
    stamps: Vec<Stamp>,
    channel: Channel,
    /// Connections opened so far.
    opened: Arc<AtomicU64>,
    described: Arc<Mutex<Described>>,
}

/// What the extension said of itself.
#[derive(Default)]
struct Described {
    /// After how many connections it was asked; 0 for never.
    at: u64,
    /// Hooks it can be used on; `None` when it does not say.
    hooks: Option<Vec<i32>>,
}

impl GrpcClient {
    pub(super) fn new(
        target: Arc<Target>,
        credential: Option<Credential>,
        config: Arc<Config>,
        rules: Arc<AddressRules>,
    ) -> Self {
        Self { target, credential, config, rules, link: Mutex::new(None) }
    }

    /// One attempt. The other side is told when nobody waits any longer.
    pub(super) async fn attempt(
        &self,
        message: &v1::InterceptRequest,
        until: Instant,
    ) -> Result<v1::InterceptResponse, Failure> {
        let link = self.link().await?;
        let token = self.token().await?;
        let mut client = ExtensionServiceClient::new(link.channel.clone())
            .max_decoding_message_size(self.config.response_bytes_max)
            .max_encoding_message_size(usize::MAX);
        self.describe(&mut client, &link, message.hook, &token, until).await?;
        let answer = client.intercept(request(message.clone(), &token, until)).await;
        answer.map(tonic::Response::into_inner).map_err(|status| failure_of(&status))
    }

    /// Asks who is there, once for each connection, and whether the hook is one of theirs.
    async fn describe(
        &self,
        client: &mut ExtensionServiceClient<Channel>,
        link: &Link,
        hook: i32,
        token: &Option<AsciiMetadataValue>,
        until: Instant,
    ) -> Result<(), Failure> {
        let mut described = link.described.lock().await;
        if described.at == 0 || described.at != link.opened.load(Ordering::Relaxed) {
            let answer = client.describe(request(v1::DescribeRequest {}, token, until)).await;
            described.hooks = match answer {
                Ok(answer) => Some(answer.into_inner().hooks),
                // Whoever does not say can be used on any hook.
                Err(status) if status.code() == Code::Unimplemented => None,
                Err(status) => return Err(Failure { is_retryable: true, ..failure_of(&status) }),
            };
            described.at = link.opened.load(Ordering::Relaxed);
        }
        match &described.hooks {
            Some(hooks) if !hooks.contains(&hook) => {
                Err(Failure::refused(Reason::Error, "says that it cannot be used on this hook"))
            }
            _ => Ok(()),
        }
    }

    async fn token(&self) -> Result<Option<AsciiMetadataValue>, Failure> {
        let Some(credential) = &self.credential else { return Ok(None) };
        let Some(token) = credential.token().await? else { return Ok(None) };
        let mut value = AsciiMetadataValue::try_from(format!("Bearer {token}"))
            .map_err(|_| credential.failure("bearer_file", "cannot be sent in a header"))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// The channel, made anew when a TLS file has changed.
    async fn link(&self) -> Result<Link, Failure> {
        let stamps = match &self.credential {
            Some(credential) => credential.tls_stamps().await?,
            None => Vec::new(),
        };
        let mut known = self.link.lock().await;
        if let Some(link) = &*known
            && link.stamps == stamps
        {
            return Ok(link.clone());
        }
        let opened = Arc::new(AtomicU64::new(0));
        let channel = self.channel(opened.clone()).await?;
        let link = Link { stamps, channel, opened, described: Arc::default() };
        *known = Some(link.clone());
        Ok(link)
    }

    async fn channel(&self, opened: Arc<AtomicU64>) -> Result<Channel, Failure> {
        let wrong = |error: tonic::transport::Error| {
            Failure::refused(Reason::Error, format!("no client can be made: {}", cause_of(&error)))
        };
        let mut endpoint = Endpoint::from_shared(self.target.url().as_str().to_owned())
            .map_err(wrong)?
            .connect_timeout(self.config.connect_timeout)
            .http2_keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(10))
            .user_agent(concat!("portcullis/", env!("CARGO_PKG_VERSION")))
            .map_err(wrong)?;
        if self.target.is_https() {
            endpoint = endpoint.tls_config(self.tls().await?).map_err(wrong)?;
        }
        let (target, rules) = (self.target.clone(), self.rules.clone());
        let connector = service_fn(move |_| connect::open(target.clone(), rules.clone(), opened.clone()));
        Ok(endpoint.connect_with_connector_lazy(connector))
    }

    async fn tls(&self) -> Result<ClientTlsConfig, Failure> {
        let material = match &self.credential {
            Some(credential) => credential.tls().await?,
            None => Default::default(),
        };
        let mut tls = ClientTlsConfig::new();
        tls = match material.ca {
            Some(ca) => tls.ca_certificate(Certificate::from_pem(ca)),
            None => tls.with_webpki_roots(),
        };
        if let Some((certificate, key)) = material.identity {
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        Ok(tls)
    }
}

fn request<T>(message: T, token: &Option<AsciiMetadataValue>, until: Instant) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(until.saturating_duration_since(Instant::now()));
    if let Some(token) = token {
        request.metadata_mut().insert("authorization", token.clone());
    }
    request
}

/// Why there is no answer. The message of a status is the other side's text and is not passed on.
fn failure_of(status: &Status) -> Failure {
    if let Some(private) = find::<PrivateAddress>(status) {
        return Failure::refused(Reason::Error, private.to_string());
    }
    if let Some(connect) = find::<ConnectError>(status) {
        return Failure::away(format!("cannot be reached: {}", cause_of(connect)));
    }
    if find::<TimeoutExpired>(status).is_some() {
        return Failure::broken(Reason::Timeout, "did not answer in time");
    }
    let is_transport = std::error::Error::source(status).is_some();
    let answered = format!("it answered {:?}", status.code());
    match status.code() {
        _ if is_transport => Failure::broken(Reason::Unavailable, "the connection broke before the answer"),
        Code::Unavailable => Failure::away(answered),
        Code::DeadlineExceeded | Code::Cancelled => {
            Failure::broken(Reason::Timeout, "did not answer in time")
        }
        Code::OutOfRange if status.message().starts_with(TOO_LARGE) => {
            Failure::refused(Reason::Limit, "its answer is too large, see `extensions.response_bytes_max`")
        }
        Code::Internal if status.message().starts_with(NOT_DECODED) => {
            Failure::refused(Reason::BadAnswer, "its answer is no InterceptResponse")
        }
        Code::ResourceExhausted | Code::Internal | Code::Unknown | Code::DataLoss => {
            Failure::broken(Reason::Error, answered)
        }
        _ => Failure::refused(Reason::Error, answered),
    }
}
