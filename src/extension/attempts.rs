//! One call: the circuit breaker, attempts that are harmless to repeat, and the deadline over all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Config;
use super::address::AddressRules;
use super::convert;
use super::credential::Credential;
use super::failure::Failure;
use super::grpc::GrpcClient;
use super::target::Target;
use super::webhook::WebhookClient;
use crate::decision::Reason;
use crate::outbound::{Breaker, jitter, pause_before};
use crate::pb::v1;
use crate::tools::{InterceptError, RemoteAnswer, RemoteKind, RemoteRequest};

/// Pause before the second attempt; doubled before each further one.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// Longest pause that we choose ourselves.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How much earlier than the engine a call ends, so that it ends here: the breaker must learn of it.
const HEAD_START: Duration = Duration::from_millis(5);

/// A client of one address, with its breaker.
pub(super) struct Remote {
    transport: Transport,
    target: Arc<Target>,
    breaker: Breaker,
}

enum Transport {
    Grpc(GrpcClient),
    Http(WebhookClient),
}

impl Remote {
    pub(super) fn new(
        kind: RemoteKind,
        target: Target,
        credential: Option<Credential>,
        config: Arc<Config>,
        rules: Arc<AddressRules>,
    ) -> Self {
        let target = Arc::new(target);
        let breaker = Breaker::new(config.breaker_failures, config.breaker_pause);
        let transport = match kind {
            RemoteKind::Extension => {
                Transport::Grpc(GrpcClient::new(target.clone(), credential, config, rules))
            }
            RemoteKind::Webhook => {
                Transport::Http(WebhookClient::new(target.clone(), credential, config, rules))
            }
        };
        Self { transport, target, breaker }
    }

    /// Asks about one call, at most `attempts_max` times, and not past `until`.
    pub(super) async fn call(
        &self,
        request: &RemoteRequest<'_>,
        attempts_max: u32,
        until: Instant,
    ) -> Result<RemoteAnswer, InterceptError> {
        let until = until.checked_sub(HEAD_START).unwrap_or(until);
        let permit = self.breaker.enter(Instant::now()).map_err(|wait| {
            let detail =
                format!("failed too often in a row; tried again in {} ms at the earliest", wait.as_millis());
            InterceptError::new(Reason::Unavailable, detail)
        })?;
        let message = convert::request(request);
        match self.attempts(&message, attempts_max, until).await {
            Ok(response) => {
                permit.succeeded();
                convert::answer(request.hook, response).map_err(Failure::into_error)
            }
            Err(failure) if failure.is_outage => {
                if permit.failed(Instant::now()) {
                    tracing::warn!(
                        host = self.target.host(),
                        port = self.target.port(),
                        reason = failure.reason.as_str(),
                        "extension failed too often in a row, it is left alone for a while"
                    );
                }
                Err(failure.into_error())
            }
            Err(failure) => {
                permit.succeeded();
                Err(failure.into_error())
            }
        }
    }

    async fn attempts(
        &self,
        message: &v1::InterceptRequest,
        attempts_max: u32,
        until: Instant,
    ) -> Result<v1::InterceptResponse, Failure> {
        let mut attempt = 1;
        loop {
            let one = async {
                match &self.transport {
                    Transport::Grpc(client) => client.attempt(message, until).await,
                    Transport::Http(client) => client.attempt(message).await,
                }
            };
            let Ok(outcome) = tokio::time::timeout_at(until.into(), one).await else {
                return Err(Failure::broken(Reason::Timeout, "did not answer in time"));
            };
            let failure = match outcome {
                Ok(response) => return Ok(response),
                Err(failure) if !failure.is_retryable || attempt >= attempts_max => return Err(failure),
                Err(failure) => failure,
            };
            let pause = failure
                .retry_after
                .unwrap_or_else(|| pause_before(attempt + 1, PAUSE_FIRST, PAUSE_MAX, jitter()));
            // A pause that ends with the deadline leaves no time for an answer.
            if Instant::now() + pause >= until {
                return Err(failure);
            }
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }
}
