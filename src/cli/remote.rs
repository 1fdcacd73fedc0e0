//! Commands over gRPC: a running service asked in place of the engines of this process.
//!
//! The generated clients are used as they are. What a server refuses becomes the exit code that the same mistake has in
//! process: a bad argument is malformed data, a server that does not answer is away.

use std::time::Duration;

use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use super::{Exit, Failure};
use crate::pb::v1;
use crate::pb::v1::policy_decision_service_client::PolicyDecisionServiceClient;
use crate::pb::v1::policy_service_client::PolicyServiceClient;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one answer may take; the server's own limits are shorter.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Most pages of one list: a server that never ends its list must not hold the command for ever.
const PAGES_MAX: usize = 1_000;

/// A server and a runtime to talk to it.
pub(super) struct Remote {
    url: String,
    channel: Channel,
    runtime: tokio::runtime::Runtime,
}

impl Remote {
    /// Connects to `url`; without a scheme it is `http`.
    pub(super) fn connect(url: &str, call_timeout: Duration) -> Result<Self, Failure> {
        let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        if !url.starts_with("http://") {
            return Err(Failure::usage(format_args!(
                "`{url}`: only http:// is spoken; let a proxy on this machine speak TLS"
            )));
        }
        let endpoint = Endpoint::from_shared(url.clone())
            .map_err(|error| Failure::usage(format_args!("`{url}` is no URL of a server: {error}")))?
            .connect_timeout(CONNECT_TIMEOUT.min(call_timeout))
            .timeout(call_timeout);
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::internal)?;
        let channel = runtime
            .block_on(endpoint.connect())
            .map_err(|error| Failure::server_away(format_args!("{url}: {}", deepest(&error))))?;
        Ok(Self { url, channel, runtime })
    }

    /// Checks messages.
    pub(super) fn check(
        &self,
        request: v1::CheckMessagesRequest,
    ) -> Result<v1::CheckMessagesResponse, Failure> {
        let mut client = PolicyDecisionServiceClient::new(self.channel.clone())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX);
        self.answer(self.runtime.block_on(client.check_messages(request)))
    }

    /// Every rule in force, of one plugin or of all.
    pub(super) fn rules(&self, plugin: &str) -> Result<Vec<v1::Rule>, Failure> {
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
        Err(Failure::server_away(format_args!("{}: its list of rules does not end", self.url)))
    }

    /// A policy in force.
    pub(super) fn policy(&self, name: &str) -> Result<v1::GetPolicyResponse, Failure> {
        let mut client = PolicyServiceClient::new(self.channel.clone());
        let request = v1::GetPolicyRequest { name: name.to_owned() };
        self.answer(self.runtime.block_on(client.get_policy(request)))
    }

    /// Health of a service, as the name of its status; the empty name is the server as a whole.
    pub(super) fn health(&self, service: &str) -> Result<Serving, Failure> {
        let mut client = HealthClient::new(self.channel.clone());
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = match self.runtime.block_on(client.check(request)) {
            Err(status) if status.code() == Code::NotFound => return Ok(Serving::unknown()),
            answer => self.answer(answer)?,
        };
        let status = answer.status();
        Ok(Serving { is_serving: status == ServingStatus::Serving, status: status.as_str_name() })
    }

    fn answer<T>(&self, answer: Result<tonic::Response<T>, Status>) -> Result<T, Failure> {
        answer.map(tonic::Response::into_inner).map_err(|status| self.failure_of(&status))
    }

    fn failure_of(&self, status: &Status) -> Failure {
        let exit = match status.code() {
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::ResourceExhausted => Exit::Data,
            Code::PermissionDenied | Code::Unauthenticated => Exit::Configuration,
            Code::Unavailable
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::Aborted
            | Code::Unimplemented => Exit::ServerAway,
            Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => Exit::Internal,
        };
        let mut message = format!("{}: {}", self.url, status.message());
        for violation in status.get_details_bad_request().into_iter().flat_map(|bad| bad.field_violations) {
            let told = format!("{}: {}", violation.field, violation.description);
            if !message.contains(&told) {
                message.push_str("; ");
                message.push_str(&told);
            }
        }
        Failure { exit, message }
    }
}

/// Health of one service.
pub(super) struct Serving {
    /// Whether it serves.
    pub(super) is_serving: bool,
    /// Its status as the health protocol names it.
    pub(super) status: &'static str,
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
