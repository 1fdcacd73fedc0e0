//! The client of an HTTP endpoint: one POST of JSON, in the forms of the contract or in those of a plugin's settings.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Client, Identity, Response, StatusCode, redirect};
use tokio::sync::Mutex;

use super::Config;
use super::address::AddressRules;
use super::connect::{PrivateAddress, Resolver};
use super::credential::{Credential, Stamp};
use super::failure::{Failure, cause_of, find};
use super::target::Target;
use crate::decision::Reason;
use crate::pb::v1;

/// What we call ourselves.
const USER_AGENT: &str = concat!("portcullis/", env!("CARGO_PKG_VERSION"));

/// A client of one URL. Its connections are reused.
pub(super) struct WebhookClient {
    target: Arc<Target>,
    credential: Option<Credential>,
    config: Arc<Config>,
    rules: Arc<AddressRules>,
    /// The client and the states of the TLS files that it was made of.
    client: Mutex<Option<(Vec<Stamp>, Client)>>,
}

impl WebhookClient {
    pub(super) fn new(
        target: Arc<Target>,
        credential: Option<Credential>,
        config: Arc<Config>,
        rules: Arc<AddressRules>,
    ) -> Self {
        Self { target, credential, config, rules, client: Mutex::new(None) }
    }

    /// One attempt to have a call judged, without a deadline of its own.
    pub(super) async fn intercept(
        &self,
        message: &v1::InterceptRequest,
    ) -> Result<v1::InterceptResponse, Failure> {
        let body = serde_json::to_vec(message)
            .map_err(|_| Failure::refused(Reason::Error, "the call has no JSON form"))?;
        let body = self.post(body).await?;
        serde_json::from_slice(&body).map_err(|error| {
            // The text of the error could quote the answer.
            let place = format!("line {}, column {}", error.line(), error.column());
            Failure::refused(
                Reason::BadAnswer,
                format!("its answer is no InterceptResponse as JSON ({place})"),
            )
        })
    }

    /// One post of JSON, without a deadline of its own; answers the body of the response.
    pub(super) async fn post(&self, body: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let client = self.client().await?;
        let mut request = client
            .post(self.target.url().clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body);
        if let Some(credential) = &self.credential
            && let Some(token) = credential.token().await?
        {
            let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| credential.failure("bearer_file", "cannot be sent in a header"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let response = request.send().await.map_err(|error| failure_of(&error))?;
        check_status(&response)?;
        self.body(response).await
    }

    /// The client, made anew when a TLS file has changed.
    async fn client(&self) -> Result<Client, Failure> {
        let stamps = match &self.credential {
            Some(credential) => credential.tls_stamps().await?,
            None => Vec::new(),
        };
        let mut known = self.client.lock().await;
        if let Some((of, client)) = &*known
            && *of == stamps
        {
            return Ok(client.clone());
        }
        let client = self.build().await?;
        *known = Some((stamps, client.clone()));
        Ok(client)
    }

    async fn build(&self) -> Result<Client, Failure> {
        let mut builder = Client::builder()
            .user_agent(USER_AGENT)
            // A redirect leads wherever the other side wants.
            .redirect(redirect::Policy::none())
            // Repeating is decided in one place, which knows what is harmless.
            .retry(reqwest::retry::never())
            // A proxy of the environment would connect in our stead, past the filter of addresses.
            .no_proxy()
            .referer(false)
            .dns_resolver(Arc::new(Resolver(self.rules.clone())))
            .connect_timeout(self.config.connect_timeout)
            .pool_idle_timeout(Duration::from_secs(60))
            .tcp_nodelay(true);
        if let Some(credential) = &self.credential {
            let tls = credential.tls().await?;
            if let Some(ca) = tls.ca {
                let certificates = Certificate::from_pem_bundle(&ca)
                    .ok()
                    .filter(|all| !all.is_empty())
                    .ok_or_else(|| credential.failure("ca_file", "holds no certificate in PEM"))?;
                builder = builder.tls_certs_only(certificates);
            }
            if let Some((mut pem, key)) = tls.identity {
                pem.push(b'\n');
                pem.extend(key);
                let identity = Identity::from_pem(&pem).map_err(|_| {
                    credential.failure("cert_file", "and `key_file` are no certificate and key in PEM")
                })?;
                builder = builder.identity(identity);
            }
        }
        builder.build().map_err(|error| {
            Failure::refused(Reason::Error, format!("no client can be made: {}", cause_of(&error)))
        })
    }

    /// The body, as far as the limit allows.
    async fn body(&self, mut response: Response) -> Result<Vec<u8>, Failure> {
        let limit = self.config.response_bytes_max;
        let too_large = || {
            let detail =
                format!("its answer has more than {limit} bytes, see `extensions.response_bytes_max`");
            Failure::refused(Reason::Limit, detail)
        };
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
                    return Err(Failure::broken(
                        Reason::Unavailable,
                        "the connection broke within the answer",
                    ));
                }
            }
        }
    }
}

/// Only 200 has an answer in it.
fn check_status(response: &Response) -> Result<(), Failure> {
    let status = response.status();
    let code = status.as_u16();
    match status {
        StatusCode::OK => Ok(()),
        _ if status.is_redirection() => Err(Failure::refused(
            Reason::BadAnswer,
            format!("it answered with a redirect (HTTP {code}), and redirects are not followed"),
        )),
        StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT
        | StatusCode::TOO_MANY_REQUESTS => Err(Failure {
            retry_after: retry_after(response.headers()),
            ..Failure::away(format!("it answered HTTP {code}"))
        }),
        _ if status.is_server_error() => {
            Err(Failure::broken(Reason::Error, format!("it answered HTTP {code}")))
        }
        _ => Err(Failure::refused(Reason::Error, format!("it answered HTTP {code}"))),
    }
}

/// Seconds of `Retry-After`. The form with a date would need a clock that both sides agree on.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Why there was no response at all. Only what happened before a connection stood is harmless to repeat.
fn failure_of(error: &reqwest::Error) -> Failure {
    if let Some(private) = find::<PrivateAddress>(error) {
        return Failure::refused(Reason::Error, private.to_string());
    }
    if error.is_connect() {
        return Failure::away(format!("cannot be reached: {}", cause_of(error)));
    }
    Failure::broken(Reason::Unavailable, "the connection broke before the answer")
}
