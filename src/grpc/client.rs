//! A client for programs without a runtime of their own: calls of a running service, one at a time.
//!
//! The generated clients are used as they are. What a server answers instead of a result is sorted by what the person
//! can do about it, since the codes of gRPC tell them apart more finely than an exit code can.

mod advice;
mod bundles;
mod reach;

use std::time::Duration;

use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::pb::v1;
use crate::pb::v1::incident_service_client::IncidentServiceClient;
use crate::pb::v1::interceptor_registry_service_client::InterceptorRegistryServiceClient;
use crate::pb::v1::policy_decision_service_client::PolicyDecisionServiceClient;
use crate::pb::v1::policy_service_client::PolicyServiceClient;

use advice::with_advice;
pub use bundles::{Caller, Receiving, sha256_of};
pub use reach::Reach;
use reach::Wire;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one answer may take unless somebody says otherwise; the server's own limits are shorter.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a call that stays open asks whether the server is still there, and how long it waits for the answer.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(5);
/// How the transport begins to tell that what came was no HTTP/2 at all.
const BROKEN_FRAMES: &str = "h2 protocol error: ";
/// Most pages of one list: a server that never ends its list must not hold the command for ever.
const PAGES_MAX: usize = 1_000;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL cannot be that of a server.
    #[error("`{url}` {message}")]
    Url {
        /// As given.
        url: String,
        /// What is wrong with it.
        message: String,
    },
    /// Nobody answered, or not in time.
    #[error("{url}: {message}")]
    Away {
        /// The server.
        url: String,
        /// What was told.
        message: String,
    },
    /// The request is wrong.
    #[error("{url}: {message}")]
    Refused {
        /// The server.
        url: String,
        /// What was told, fields included.
        message: String,
    },
    /// The caller may not ask this.
    #[error("{url}: {message}")]
    Denied {
        /// The server.
        url: String,
        /// What was told.
        message: String,
    },
    /// The server failed.
    #[error("{url}: {message}")]
    Failed {
        /// The server.
        url: String,
        /// What was told.
        message: String,
    },
    /// The system refused what a runtime needs.
    #[error("no runtime: {0}")]
    Runtime(#[from] std::io::Error),
}

/// A connection to one server.
pub struct Client {
    url: String,
    channel: Wire,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    /// Connects to `url`; without a scheme it is `http`.
    ///
    /// # Errors
    /// When the URL is none, or nobody answers there.
    pub fn connect(url: &str, call_timeout: Duration, reach: &Reach) -> Result<Self, ClientError> {
        let (url, endpoint) = reach.endpoint(url)?;
        let endpoint = endpoint.connect_timeout(CONNECT_TIMEOUT.min(call_timeout)).timeout(call_timeout);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let channel = runtime.block_on(endpoint.connect()).map_err(|error| away(&url, &error))?;
        let channel = reach.wire(&url, channel)?;
        Ok(Self { url, channel, runtime })
    }

    /// Checks messages.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn check(&self, request: v1::CheckMessagesRequest) -> Result<v1::CheckMessagesResponse, ClientError> {
        let mut client = self.decisions();
        self.answer(self.runtime.block_on(client.check_messages(request)))
    }

    /// Runs a monitor session with these requests, and gives every answer.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn monitor(
        &self,
        requests: Vec<v1::StreamMonitorRequest>,
    ) -> Result<Vec<v1::StreamMonitorResponse>, ClientError> {
        use futures_util::TryStreamExt as _;
        let mut client = self.decisions();
        let answers = async {
            let answers = client.stream_monitor(futures_util::stream::iter(requests)).await?.into_inner();
            let answers = answers.try_collect::<Vec<_>>().await?;
            Ok(tonic::Response::new(answers))
        };
        self.answer(self.runtime.block_on(answers))
    }

    /// Judges a tool call before it runs, or its result after it ran.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn intercept_tool(
        &self,
        request: v1::InterceptToolRequest,
    ) -> Result<v1::InterceptToolResponse, ClientError> {
        let mut client = self.decisions();
        self.answer(self.runtime.block_on(client.intercept_tool(request)))
    }

    /// Judges a message before the agent sees it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn intercept_message(
        &self,
        request: v1::InterceptMessageRequest,
    ) -> Result<v1::InterceptMessageResponse, ClientError> {
        let mut client = self.decisions();
        self.answer(self.runtime.block_on(client.intercept_message(request)))
    }

    /// Judges the parameters of a model call.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn intercept_params(
        &self,
        request: v1::InterceptParamsRequest,
    ) -> Result<v1::InterceptParamsResponse, ClientError> {
        let mut client = self.decisions();
        self.answer(self.runtime.block_on(client.intercept_params(request)))
    }

    /// Every interceptor in force that fits the filters of `request`, page after page.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn interceptors(
        &self,
        mut request: v1::ListInterceptorsRequest,
    ) -> Result<v1::ListInterceptorsResponse, ClientError> {
        let mut client = self.registry();
        let mut whole = v1::ListInterceptorsResponse::default();
        for _ in 0..PAGES_MAX {
            let page = self.answer(self.runtime.block_on(client.list_interceptors(request.clone())))?;
            whole.interceptors.extend(page.interceptors);
            whole.policy_revision = page.policy_revision;
            if page.next_page_token.is_empty() {
                return Ok(whole);
            }
            request.page_token = page.next_page_token;
        }
        let message = "its list of interceptors does not end".to_owned();
        Err(ClientError::Failed { url: self.url.clone(), message })
    }

    /// Adds an interceptor; `token` is the admin token of the server.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn add_interceptor(
        &self,
        request: v1::AddInterceptorRequest,
        token: &str,
    ) -> Result<v1::AddInterceptorResponse, ClientError> {
        let request = self.with_token(request, token)?;
        let mut client = self.registry();
        self.answer(self.runtime.block_on(client.add_interceptor(request)))
    }

    /// Removes an interceptor that was added by API; `token` is the admin token of the server.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn remove_interceptor(
        &self,
        id: &str,
        token: &str,
    ) -> Result<v1::RemoveInterceptorResponse, ClientError> {
        let request = v1::RemoveInterceptorRequest { interceptor_id: id.to_owned() };
        let request = self.with_token(request, token)?;
        let mut client = self.registry();
        self.answer(self.runtime.block_on(client.remove_interceptor(request)))
    }

    /// One incident of the stream monitor.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn incident(&self, request: v1::GetIncidentRequest) -> Result<v1::GetIncidentResponse, ClientError> {
        self.answer(self.runtime.block_on(self.incident_service().get_incident(request)))
    }

    /// One page of incidents.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn incidents(
        &self,
        request: v1::ListIncidentsRequest,
    ) -> Result<v1::ListIncidentsResponse, ClientError> {
        self.answer(self.runtime.block_on(self.incident_service().list_incidents(request)))
    }

    /// Marks an incident; `token` is the admin token of the server.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn mark_incident(
        &self,
        request: v1::MarkFalsePositiveRequest,
        token: &str,
    ) -> Result<v1::MarkFalsePositiveResponse, ClientError> {
        let request = self.with_token(request, token)?;
        self.answer(self.runtime.block_on(self.incident_service().mark_false_positive(request)))
    }

    /// Counts of incidents, rule by rule.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn incident_stats(
        &self,
        request: v1::GetIncidentStatsRequest,
    ) -> Result<v1::GetIncidentStatsResponse, ClientError> {
        self.answer(self.runtime.block_on(self.incident_service().get_incident_stats(request)))
    }

    /// Every rule in force, of one plugin or of all.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn rules(&self, plugin: &str) -> Result<Vec<v1::Rule>, ClientError> {
        let mut client = PolicyServiceClient::new(self.channel.clone());
        let mut rules = Vec::new();
        let mut request =
            v1::ListRulesRequest { plugin: plugin.to_owned(), page_size: 1_000, ..Default::default() };
        for _ in 0..PAGES_MAX {
            let page = self.answer(self.runtime.block_on(client.list_rules(request.clone())))?;
            rules.extend(page.rules);
            if page.next_page_token.is_empty() {
                return Ok(rules);
            }
            request.page_token = page.next_page_token;
        }
        let message = "its list of rules does not end".to_owned();
        Err(ClientError::Failed { url: self.url.clone(), message })
    }

    /// A policy in force.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn policy(&self, name: &str) -> Result<v1::GetPolicyResponse, ClientError> {
        let mut client = PolicyServiceClient::new(self.channel.clone());
        let request = v1::GetPolicyRequest { name: name.to_owned() };
        self.answer(self.runtime.block_on(client.get_policy(request)))
    }

    /// Health of a service, as the name of its status; the empty name is the server as a whole.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn health(&self, service: &str) -> Result<Serving, ClientError> {
        let mut client = HealthClient::new(self.channel.clone());
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = match self.runtime.block_on(client.check(request)) {
            Err(status) if status.code() == Code::NotFound => return Ok(Serving::unknown()),
            answer => self.answer(answer)?,
        };
        let status = answer.status();
        Ok(Serving { is_serving: status == ServingStatus::Serving, status: status.as_str_name() })
    }

    fn decisions(&self) -> PolicyDecisionServiceClient<Wire> {
        PolicyDecisionServiceClient::new(self.channel.clone())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX)
    }

    fn registry(&self) -> InterceptorRegistryServiceClient<Wire> {
        InterceptorRegistryServiceClient::new(self.channel.clone()).max_decoding_message_size(usize::MAX)
    }

    fn incident_service(&self) -> IncidentServiceClient<Wire> {
        IncidentServiceClient::new(self.channel.clone()).max_decoding_message_size(usize::MAX)
    }

    fn with_token<T>(&self, message: T, token: &str) -> Result<Request<T>, ClientError> {
        let denied = |_| ClientError::Denied {
            url: self.url.clone(),
            message: "the token holds characters that cannot be sent".to_owned(),
        };
        let mut value = MetadataValue::try_from(format!("Bearer {token}")).map_err(denied)?;
        value.set_sensitive(true);
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", value);
        Ok(request)
    }

    fn answer<T>(&self, answer: Result<tonic::Response<T>, Status>) -> Result<T, ClientError> {
        answer.map(tonic::Response::into_inner).map_err(|status| error_of(&self.url, &status))
    }
}

/// Nobody could be reached.
pub(super) fn away(url: &str, error: &dyn std::error::Error) -> ClientError {
    ClientError::Away { url: url.to_owned(), message: with_advice(url, deepest(error)) }
}

/// What a status means to the person who asked.
pub(super) fn error_of(url: &str, status: &Status) -> ClientError {
    let mut message = status.message().to_owned();
    for violation in status.get_details_bad_request().into_iter().flat_map(|bad| bad.field_violations) {
        let told = format!("{}: {}", violation.field, violation.description);
        if !message.contains(&told) {
            message.push_str("; ");
            message.push_str(&told);
        }
    }
    let url = url.to_owned();
    // What no server said, such as a handshake that it broke off after the connection stood.
    let broken = match (status.code(), std::error::Error::source(status)) {
        (Code::Unknown, Some(cause)) => Some(deepest(cause)),
        (Code::Internal, _) if message.starts_with(BROKEN_FRAMES) => Some(message.clone()),
        _ => None,
    };
    if let Some(message) = broken {
        let message = with_advice(&url, message);
        return ClientError::Away { url, message };
    }
    match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::ResourceExhausted => ClientError::Refused { url, message },
        Code::PermissionDenied | Code::Unauthenticated => ClientError::Denied { url, message },
        Code::Unavailable
        | Code::DeadlineExceeded
        | Code::Cancelled
        | Code::Aborted
        | Code::Unimplemented => ClientError::Away { url, message },
        Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => ClientError::Failed { url, message },
    }
}

/// Health of one service.
pub struct Serving {
    /// Whether it serves.
    pub is_serving: bool,
    /// Its status as the health protocol names it.
    pub status: &'static str,
}

impl Serving {
    fn unknown() -> Self {
        Self { is_serving: false, status: ServingStatus::ServiceUnknown.as_str_name() }
    }
}

/// The cause that says most: the transport's own error only says that there was one.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
