//! One call: the circuit breaker, attempts that are harmless to repeat, and the deadline over all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Config;
use super::address::AddressRules;
use super::convert;
use super::credential::Credential;
use super::failure::Failure;
use super::grpc::{GrpcClient, Who};
use super::target::Target;
use super::webhook::WebhookClient;
use crate::decision::Reason;
use crate::outbound::{Breaker, Until, jitter, pause_before};
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
        until: Until,
    ) -> Result<RemoteAnswer, InterceptError> {
        let message = &convert::request(request);
        let attempt = |until| async move {
            match &self.transport {
                Transport::Grpc(client) => client.intercept(message, until).await,
                Transport::Http(client) => client.intercept(message).await,
            }
        };
        let response = self.run(attempt, attempts_max, until).await.map_err(Failure::into_error)?;
        convert::answer(request.hook, response).map_err(Failure::into_error)
    }

    /// Has messages checked over gRPC, likewise. Answers also who it was that answered, if that was told.
    pub(super) async fn check(
        &self,
        message: &v1::CheckRequest,
        attempts_max: u32,
        until: Until,
    ) -> Result<(v1::CheckResponse, Who), Failure> {
        let attempt = |until| async move {
            match &self.transport {
                Transport::Grpc(client) => client.check(message, until).await,
                Transport::Http(_) => Err(not_spoken()),
            }
        };
        self.run(attempt, attempts_max, until).await
    }

    /// Asks over gRPC who is there, likewise; over HTTP nobody says.
    pub(super) async fn describe(&self, until: Until) -> Result<Who, Failure> {
        let attempt = |until| async move {
            match &self.transport {
                Transport::Grpc(client) => client.describe(until).await,
                Transport::Http(_) => Ok(None),
            }
        };
        self.run(attempt, 1, until).await
    }

    /// Posts JSON, likewise, and answers the body of the response.
    pub(super) async fn post(
        &self,
        body: Vec<u8>,
        attempts_max: u32,
        until: Until,
    ) -> Result<Vec<u8>, Failure> {
        let body = &body;
        let attempt = |_| async move {
            match &self.transport {
                Transport::Http(client) => client.post(body.clone()).await,
                Transport::Grpc(_) => Err(not_spoken()),
            }
        };
        self.run(attempt, attempts_max, until).await
    }

    /// One call by `attempt`, which is told until when: breaker, attempts and deadline.
    async fn run<T, F>(
        &self,
        attempt: impl Fn(Instant) -> F + Send,
        attempts_max: u32,
        until: Until,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let ends = until.at.checked_sub(HEAD_START).unwrap_or(until.at);
        let permit = self.breaker.enter(Instant::now()).map_err(|wait| {
            let detail =
                format!("failed too often in a row; tried again in {} ms at the earliest", wait.as_millis());
            Failure::refused(Reason::Unavailable, detail)
        })?;
        match attempts(attempt, attempts_max, ends).await {
            Ok(response) => {
                permit.succeeded();
                Ok(response)
            }
            // Anybody can call with a deadline that nothing meets; that must not shut an extension off for others.
            Err(failure) if failure.reason == Reason::Timeout && until.is_callers => {
                drop(permit);
                Err(failure)
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
                Err(failure)
            }
            Err(failure) => {
                permit.succeeded();
                Err(failure)
            }
        }
    }
}

/// Tries until there is an answer, a failure that another attempt would not mend, or no time.
async fn attempts<T, F>(
    attempt: impl Fn(Instant) -> F,
    attempts_max: u32,
    until: Instant,
) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut tried = 1;
    loop {
        let Ok(outcome) = tokio::time::timeout_at(until.into(), attempt(until)).await else {
            return Err(Failure::broken(Reason::Timeout, "did not answer in time"));
        };
        let failure = match outcome {
            Ok(response) => return Ok(response),
            Err(failure) if !failure.is_retryable || tried >= attempts_max => return Err(failure),
            Err(failure) => failure,
        };
        let pause =
            failure.retry_after.unwrap_or_else(|| pause_before(tried + 1, PAUSE_FIRST, PAUSE_MAX, jitter()));
        // A pause that ends with the deadline leaves no time for an answer.
        if Instant::now() + pause >= until {
            return Err(failure);
        }
        tokio::time::sleep(pause).await;
        tried += 1;
    }
}

/// The settings pair each kind of plugin with its transport.
fn not_spoken() -> Failure {
    Failure::refused(Reason::Error, "does not speak this protocol")
}
