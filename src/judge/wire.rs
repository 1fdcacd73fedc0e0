//! One HTTP call of a provider: sent with its key, bounded, never redirected.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, Proxy, Response, StatusCode, Url, redirect};
use serde_json::Value;

use super::Trouble;
use super::config::{Config, is_loopback};
use super::fault::Fault;
use super::secret::{self, Secret};
use crate::outbound::kind_of_address;

/// What we call ourselves.
const USER_AGENT: &str = concat!("portcullis/", env!("CARGO_PKG_VERSION"));

/// How a key is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyHeader {
    /// In a header of its own.
    Own(&'static str),
    /// `authorization: Bearer …`
    Bearer,
}

/// A call, ready but for the key.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Path below the base URL, without a leading slash.
    pub(super) path: String,
    /// Headers besides the key and the content type.
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) body: Value,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// A client of one address.
pub(super) struct Wire {
    client: Client,
    base: Url,
    key_header: KeyHeader,
    key_file: Option<PathBuf>,
    key: Option<Secret>,
    request_bytes_max: usize,
    response_bytes_max: usize,
}

impl Wire {
    /// A client under these settings. Nothing is connected yet.
    ///
    /// # Errors
    /// The key of the settings that is wrong, and why.
    pub(super) fn new(
        config: &Config,
        base: Url,
        key_header: KeyHeader,
    ) -> Result<Self, (&'static str, String)> {
        let mut builder = Client::builder()
            .user_agent(USER_AGENT)
            // A redirect would carry key and content wherever the other side wants.
            .redirect(redirect::Policy::none())
            // Repeating is decided in one place, which knows the deadline.
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .connect_timeout(config.connect_timeout)
            .pool_idle_timeout(Duration::from_secs(60))
            .tcp_nodelay(true);
        if let Some(proxy) = &config.proxy {
            builder = builder.proxy(Proxy::all(proxy).map_err(|_| ("proxy", "cannot be used".to_owned()))?);
        } else if base.scheme() == "http"
            && !is_loopback(super::config::bare(base.host_str().unwrap_or_default()))
        {
            builder = builder.dns_resolver(Arc::new(PrivateOnly));
        }
        if let Some(path) = &config.ca_file {
            let pem = std::fs::read(path).map_err(|error| ("ca_file", error.kind().to_string()))?;
            let certificates = Certificate::from_pem_bundle(&pem)
                .ok()
                .filter(|all| !all.is_empty())
                .ok_or_else(|| ("ca_file", "holds no certificate in PEM".to_owned()))?;
            builder = builder.tls_certs_only(certificates);
        }
        if let Some(path) = &config.api_key_file {
            secret::read(path).map_err(|error| ("api_key_file", error))?;
        }
        let client = builder.build().map_err(|_| ("base_url", "no client can be made".to_owned()))?;
        Ok(Self {
            client,
            base,
            key_header,
            key_file: config.api_key_file.clone(),
            key: config.key_of_environment().map(|(_, key)| key.clone()),
            request_bytes_max: config.request_bytes_max,
            response_bytes_max: config.response_bytes_max,
        })
    }

    /// One attempt, without a deadline of its own.
    pub(super) async fn send(&self, call: &Call) -> Result<Answered, Fault> {
        let body = serde_json::to_vec(&call.body)
            .map_err(|_| Fault::last(Trouble::Internal, "the question has no JSON form"))?;
        if body.len() > self.request_bytes_max {
            let limit = self.request_bytes_max;
            return Err(Fault::last(Trouble::TooLarge, format!("the question has more than {limit} bytes")));
        }
        let mut request = self
            .client
            .post(self.url(&call.path))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body);
        for (name, value) in &call.headers {
            request = request.header(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(key) = self.key().await? {
            let (name, text) = match self.key_header {
                KeyHeader::Own(name) => (name, key.reveal().to_owned()),
                KeyHeader::Bearer => ("authorization", format!("Bearer {}", key.reveal())),
            };
            let value = secret::header(&text)
                .ok_or_else(|| Fault::last(Trouble::Internal, "the key cannot be sent in a header"))?;
            request = request.header(HeaderName::from_static(name), value);
        }
        let response = request.send().await.map_err(|error| fault_of(&error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = self.body(response).await?;
        Ok(Answered { status, headers, body })
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let base = self.base.path().trim_end_matches('/');
        // `https://host/v1` and `https://host` are both how people write the base of `v1/…`.
        let version = path.split('/').next().unwrap_or_default();
        let base = base.strip_suffix(version).filter(|rest| rest.ends_with('/')).unwrap_or(base);
        url.set_path(&format!("{}/{path}", base.trim_end_matches('/')));
        url
    }

    /// The key, from its file as it is now.
    async fn key(&self) -> Result<Option<Secret>, Fault> {
        let Some(path) = self.key_file.clone() else { return Ok(self.key.clone()) };
        match tokio::task::spawn_blocking(move || secret::read(&path)).await {
            Ok(Ok(key)) => Ok(Some(key)),
            Ok(Err(what)) => Err(Fault::last(Trouble::Unauthorized, format!("the key file: {what}"))),
            Err(_) => Err(Fault::last(Trouble::Internal, "the key file could not be read")),
        }
    }

    /// The body, as far as the limit allows.
    async fn body(&self, mut response: Response) -> Result<Vec<u8>, Fault> {
        let limit = self.response_bytes_max;
        let too_large = || Fault::last(Trouble::TooLarge, format!("the answer has more than {limit} bytes"));
        if response.content_length().is_some_and(|length| length > limit as u64) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if chunk.len() > limit - body.len() => return Err(too_large()),
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(body),
                Err(_) => {
                    return Err(Fault::passing(Trouble::Broken, "the connection broke within the answer"));
                }
            }
        }
    }
}

/// Why there was no response at all.
fn fault_of(error: &reqwest::Error) -> Fault {
    if !error.is_connect() {
        return Fault::passing(Trouble::Broken, "the connection broke before the answer");
    }
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        if cause.is::<NotPrivate>() {
            return Fault::last(Trouble::Unreachable, NotPrivate.to_string());
        }
        if cause.downcast_ref::<io::Error>().is_some_and(is_of_tls) {
            return Fault {
                is_outage: true,
                ..Fault::last(Trouble::Tls, "no secure connection: TLS failed")
            };
        }
        next = cause.source();
    }
    Fault::passing(Trouble::Unreachable, "the provider cannot be reached")
}

/// Whether the TLS library failed: it reports whatever is wrong with a certificate or a handshake as invalid data, which
/// may stand inside another error that does not tell it as its source.
fn is_of_tls(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
        || error.get_ref().and_then(|inner| inner.downcast_ref::<io::Error>()).is_some_and(is_of_tls)
}

/// A host that may be called over plain HTTP is not in a private network after all.
#[derive(Debug, thiserror::Error)]
#[error("the host of llm.plain_http_hosts has no private address")]
struct NotPrivate;

/// Looks up names of hosts that may be called in clear: their addresses must be private ones.
struct PrivateOnly;

impl Resolve for PrivateOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let private: Vec<SocketAddr> =
                found.into_iter().filter(|address| kind_of_address(address.ip()).is_some()).collect();
            if private.is_empty() {
                return Err(NotPrivate.into());
            }
            Ok(Box::new(private.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_below_the_base() {
        for (base, path, wanted) in [
            ("https://api.example", "v1/messages", "https://api.example/v1/messages"),
            ("https://api.example/v1/", "v1/messages", "https://api.example/v1/messages"),
            ("https://api.example/x/v1", "v1/messages", "https://api.example/x/v1/messages"),
            ("https://api.example/xv1", "v1/messages", "https://api.example/xv1/v1/messages"),
            ("https://api.example/proxy/", "v1/messages", "https://api.example/proxy/v1/messages"),
            ("https://api.example", "v1beta/models/a b/c:x", "https://api.example/v1beta/models/a%20b/c:x"),
            ("https://api.example", "models/x?key=1", "https://api.example/models/x%3Fkey=1"),
        ] {
            let base = base.parse().expect("a URL");
            let wire = Wire::new(&Config::default(), base, KeyHeader::Bearer).expect("good settings");
            assert_eq!(wire.url(path).as_str(), wanted);
        }
    }
}
