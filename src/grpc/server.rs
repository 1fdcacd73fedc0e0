//! The gRPC server: services, health, reflection, listener, drain.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tonic::service::Routes;
use tonic::transport::Server;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::Authenticator;
use super::added_interceptors::AddedInterceptors;
use super::audit_service::{AuditTrail, Audits};
use super::decision_service::Decisions;
use super::entity_service::Shop;
use super::ext_mcp::Guarding;
use super::incident_service::{Incidents, KeptIncidents};
use super::interceptor_registry_service::Interceptors;
use super::layers::Guard;
use super::local::LocalCalls;
use super::policy_service::Policies;
use super::stream_monitor::Monitor;
use super::submission_service::Triage;
use super::tls::{Tls, incoming};
use super::work::Work;
use crate::audit::{AuditLog, Recent};
use crate::bundles::service::Submissions;
use crate::config::ServerConfig;
use crate::messages::MessageEngine;
use crate::pb;
use crate::pb::ext_mcp::ext_mcp_server::ExtMcpServer;
use crate::pb::v1::audit_service_server::AuditServiceServer;
use crate::pb::v1::entity_service_server::EntityServiceServer;
use crate::pb::v1::incident_service_server::IncidentServiceServer;
use crate::pb::v1::interceptor_registry_service_server::InterceptorRegistryServiceServer;
use crate::pb::v1::policy_decision_service_server::PolicyDecisionServiceServer;
use crate::pb::v1::policy_service_server::PolicyServiceServer;
use crate::pb::v1::submission_service_server::SubmissionServiceServer;
use crate::policy::Live;
use crate::setting::system_problem;
use crate::store::RuleCounter;
use crate::telemetry::Metrics;
use crate::tools::ToolEngine;

/// How much larger than the limit a request may be and still be read, so that a stream can go on after refusing it.
const READ_FACTOR: usize = 4;

/// Bytes of one call that a client may send ahead of what was read of them.
const STREAM_WINDOW: u32 = 256 << 10;
/// The same for all calls of one connection together. The HTTP/2 implementation closes a connection on which too many
/// small frames wait unread, and counts for each what it lacks to 256 bytes against half of this window; so it must be
/// many times the window of a stream, or a few sessions that send line by line, faster than they are scanned for a
/// moment, would bring down all others of their connection. Flow control slows them instead.
const CONNECTION_WINDOW: u32 = 32 << 20;

/// Services with at least one RPC, which are SERVING.
const BUILT: [&str; 7] = [
    "portcullis.v1.PolicyDecisionService",
    "portcullis.v1.InterceptorRegistryService",
    "portcullis.v1.PolicyService",
    "portcullis.v1.IncidentService",
    "portcullis.v1.SubmissionService",
    "portcullis.v1.EntityService",
    "portcullis.v1.AuditService",
];

/// What every call shares.
pub struct Shared {
    /// Checks messages.
    pub engine: MessageEngine,
    /// Judges tool calls, messages and parameters.
    pub tools: Arc<ToolEngine>,
    /// Interceptors added by API.
    pub interceptors: AddedInterceptors,
    /// What the monitor found.
    pub incidents: KeptIncidents,
    /// Uploads and what became of them.
    pub submissions: Submissions,
    /// Administrative events.
    pub events: AuditTrail,
    /// Limits of uploads under way.
    pub uploads: Uploads,
    /// Whether the service shuts down: whoever only waits is told.
    pub draining: watch::Sender<bool>,
    /// Watches streams.
    pub monitor: Arc<Monitor>,
    /// Rules and policies in force.
    pub live: Arc<Live>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Records of decisions.
    pub audit: Arc<AuditLog>,
    /// Recent decisions, for people.
    pub recent: Arc<Recent>,
    /// What each rule found, day by day, for people.
    pub counts: Arc<RuleCounter>,
    /// Tells callers apart.
    pub auth: Authenticator,
    /// Certificates of the listener; `None` in clear.
    pub tls: Option<Arc<Tls>>,
    /// Largest request, in bytes.
    pub request_bytes_max: usize,
    /// Places for requests in flight.
    pub in_flight: Arc<Semaphore>,
    /// Works out decisions, and tells what waits too long for that.
    pub work: Work,
    /// Whether spans are exported. Without an exporter none is opened: a span costs more than a scan.
    pub traces: bool,
}

/// Limits of uploads under way.
pub struct Uploads {
    /// Places for them.
    pub places: Arc<Semaphore>,
    /// How long one may send nothing.
    pub idle_timeout: Duration,
    /// How long one may take.
    pub timeout: Duration,
}

/// Why the server ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("server.listen: cannot listen on {address}: {}", system_problem(.cause))]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// The transport failed.
    #[error("the gRPC server failed: {0}")]
    Transport(#[from] tonic::transport::Error),
}

/// A listener that has its address and takes no calls yet.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

/// Binds the gRPC listener.
///
/// # Errors
/// The address cannot be listened on.
pub async fn bind(address: SocketAddr) -> Result<Bound, ServeError> {
    let failed = |cause| ServeError::Bind { address, cause };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Bound { listener, address })
}

/// Whether each service serves, as `grpc.health.v1` tells it.
#[derive(Clone)]
pub struct Health(HealthReporter);

impl Health {
    /// Says that the built services serve, or that they do not.
    pub async fn set_serving(&self, is_serving: bool) {
        let status = if is_serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        for service in BUILT.into_iter().chain([""]) {
            self.0.set_service_status(service, status).await;
        }
    }
}

impl Bound {
    /// The address in use, with the port that the system chose where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` ends, then lets calls in flight finish for at most `config.drain_timeout`.
    /// `on_start` gets the health switch before the first call is taken.
    ///
    /// # Errors
    /// The transport failed.
    pub async fn serve(
        self,
        config: &ServerConfig,
        shared: Arc<Shared>,
        on_start: impl FnOnce(Health),
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let (reporter, health) = tonic_health::server::health_reporter();
        on_start(Health(reporter));
        // ExtensionService is in the contract for others to implement; what is listed is what answers here.
        let reflection = || {
            let listed = BUILT.into_iter().chain(["grpc.health.v1.Health"]);
            listed
                .fold(tonic_reflection::server::Builder::configure(), |b, name| b.with_service_name(name))
                .register_encoded_file_descriptor_set(pb::FILE_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let mut services = services(&shared);
        if config.adapters.ext_mcp {
            let guarding = Guarding(LocalCalls::new(&shared));
            services = services
                .add_service(ExtMcpServer::new(guarding).max_decoding_message_size(config.request_bytes_max));
        }
        let tls = shared.tls.clone();
        let (draining, drained) = tokio::sync::oneshot::channel::<()>();
        let mut builder = Server::builder();
        if let Some(age) = config.max_connection_age {
            builder = builder.max_connection_age(age).max_connection_age_grace(config.drain_timeout);
        }
        let server = builder
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            // Half-open connections would stay for ever otherwise.
            .http2_keepalive_interval(Some(config.keepalive_interval))
            .http2_keepalive_timeout(Some(config.keepalive_timeout))
            .layer(Guard(shared))
            .add_routes(services)
            .add_service(health)
            .add_optional_service(reflection().build_v1().ok())
            // Older tools such as grpcurl 1.8 know only this one.
            .add_optional_service(reflection().build_v1alpha().ok())
            .serve_with_incoming_shutdown(incoming(self.listener, tls), async move {
                shutdown.await;
                let _ = draining.send(());
            });
        tokio::select! {
            ended = server => ended?,
            () = cut_off(drained, config.drain_timeout) => {
                tracing::warn!(timeout = ?config.drain_timeout, "calls cut off while stopping");
            }
        }
        Ok(())
    }
}

/// The services of the contract, without the layers around them.
pub(super) fn services(shared: &Arc<Shared>) -> Routes {
    let request_bytes_max = shared.request_bytes_max;
    let read_max = request_bytes_max.saturating_mul(READ_FACTOR);
    // The limit itself is held where a request is judged: there a stream can answer one item and go on.
    let decisions = PolicyDecisionServiceServer::new(Decisions(shared.clone()))
        .max_decoding_message_size(read_max)
        .max_encoding_message_size(usize::MAX);
    let policies =
        PolicyServiceServer::new(Policies(shared.clone())).max_decoding_message_size(request_bytes_max);
    let interceptors = InterceptorRegistryServiceServer::new(Interceptors(shared.clone()))
        .max_decoding_message_size(request_bytes_max);
    // A page of a thousand long excerpts is larger than any default.
    let incidents = IncidentServiceServer::new(Incidents(shared.clone()))
        .max_decoding_message_size(request_bytes_max)
        .max_encoding_message_size(usize::MAX);
    let submissions = SubmissionServiceServer::new(Triage(shared.clone()))
        .max_decoding_message_size(request_bytes_max)
        .max_encoding_message_size(usize::MAX);
    let entities = EntityServiceServer::new(Shop(shared.clone()))
        .max_decoding_message_size(request_bytes_max)
        .max_encoding_message_size(usize::MAX);
    let audits = AuditServiceServer::new(Audits(shared.clone()))
        .max_decoding_message_size(request_bytes_max)
        .max_encoding_message_size(usize::MAX);
    Routes::new(decisions)
        .add_service(interceptors)
        .add_service(policies)
        .add_service(incidents)
        .add_service(submissions)
        .add_service(entities)
        .add_service(audits)
}

/// Ends when the drain has lasted too long.
async fn cut_off(drained: tokio::sync::oneshot::Receiver<()>, timeout: Duration) {
    match drained.await {
        Ok(()) => tokio::time::sleep(timeout).await,
        Err(_) => std::future::pending().await,
    }
}
