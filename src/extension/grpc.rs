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

type Token = Option<AsciiMetadataValue>;

/// What an extension says of itself; `None` when it does not say.
pub(super) type Who = Option<Arc<v1::DescribeResponse>>;

/// What the extension said of itself.
#[derive(Default)]
struct Described {
    /// After how many connections it was asked; 0 for never.
    at: u64,
    /// What it said.
    who: Who,
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

    /// One attempt to have a call judged. The other side is told when nobody waits any longer.
    pub(super) async fn intercept(
        &self,
        message: &v1::InterceptRequest,
        until: Instant,
    ) -> Result<v1::InterceptResponse, Failure> {
        let mut caller = self.caller(until).await?;
        caller.check_hook(message.hook).await?;
        let answer = caller.client.intercept(request(message.clone(), &caller.token, until)).await;
        let answer = answer.map_err(|status| failure_of(&status))?.into_inner();
        // The call may have been the first over a new connection; now it had its effect.
        caller
            .check_hook(message.hook)
            .await
            .map_err(|failure| Failure { is_retryable: false, ..failure })?;
        Ok(answer)
    }

    /// One attempt to learn who it is, if they say.
    pub(super) async fn describe(&self, until: Instant) -> Result<Who, Failure> {
        self.caller(until).await?.who().await
    }

    /// One attempt to have messages checked; answers also who it was, if they say.
    pub(super) async fn check(
        &self,
        message: &v1::CheckRequest,
        until: Instant,
    ) -> Result<(v1::CheckResponse, Who), Failure> {
        let mut caller = self.caller(until).await?;
        caller.who().await?;
        let answer = caller.client.check(request(message.clone(), &caller.token, until)).await;
        let answer = answer.map_err(|status| failure_of(&status))?.into_inner();
        Ok((answer, caller.who().await?))
    }

    async fn caller(&self, until: Instant) -> Result<Caller, Failure> {
        let link = self.link().await?;
        let client = ExtensionServiceClient::new(link.channel.clone())
            .max_decoding_message_size(self.config.response_bytes_max)
            .max_encoding_message_size(usize::MAX);
        Ok(Caller { client, link, token: self.token().await?, until })
    }

    async fn token(&self) -> Result<Token, Failure> {
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

/// What one attempt works with.
struct Caller {
    client: ExtensionServiceClient<Channel>,
    link: Link,
    token: Token,
    until: Instant,
}

impl Caller {
    /// Who is at the other end: they are asked once for each connection. Whoever does not say can be used for everything.
    async fn who(&mut self) -> Result<Who, Failure> {
        let mut described = self.link.described.lock().await;
        if described.at == 0 || described.at != self.link.opened.load(Ordering::Relaxed) {
            let answer = self.client.describe(request(v1::DescribeRequest {}, &self.token, self.until)).await;
            described.who = match answer {
                Ok(answer) => Some(Arc::new(answer.into_inner())),
                Err(status) if status.code() == Code::Unimplemented => None,
                Err(status) => return Err(Failure { is_retryable: true, ..failure_of(&status) }),
            };
            described.at = self.link.opened.load(Ordering::Relaxed);
        }
        Ok(described.who.clone())
    }

    async fn check_hook(&mut self, hook: i32) -> Result<(), Failure> {
        if self.who().await?.is_some_and(|who| !who.hooks.contains(&hook)) {
            return Err(Failure::refused(Reason::Error, "says that it cannot be used on this hook"));
        }
        Ok(())
    }
}

fn request<T>(message: T, token: &Token, until: Instant) -> Request<T> {
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
            Failure::refused(Reason::BadAnswer, "its answer cannot be decoded")
        }
        Code::ResourceExhausted | Code::Internal | Code::Unknown | Code::DataLoss => {
            Failure::broken(Reason::Error, answered)
        }
        _ => Failure::refused(Reason::Error, answered),
    }
}
