//! What the process tells its operators: metrics, events, log lines, spans.
//!
//! Whatever happens is told through one struct of `events`, whose `emit` does counter, histogram and log line together,
//! so that they cannot disagree. Metrics are handles that were registered before the first request.
//!
//! Invariant: no text of a caller reaches a label or a log line; labels are bounded sets.
//! Not here: the audit log (one durable record per decision), and serving `/metrics` over HTTP.

mod config;
mod events;
mod labels;
mod limiter;
mod logging;
mod metrics;
mod process;
mod trace_context;

pub use config::{LogConfig, LogFormat, TracingConfig};
pub use events::{
    AuditDropped, AuthRejected, AuthReloaded, CacheLookedUp, CallerRefused, CertificatesLoaded,
    CheckFailedOpen, IncidentDecided, IncidentsUnwritten, InterceptorRan, LlmAsked, MONITOR, OverloadShed,
    PersonalDataExcused, PluginRan, PolicyLoaded, PolicyRejected, PolicyReloaded, RateLimited,
    RequestDecided, RequestRefused, ReviewStageRan, SessionEnded, SubmissionMoved,
};
pub use labels::{
    AuthReason, Cache, CacheOutcome, Certificate, Code, ReloadOutcome, ReviewStage, Rpc, ShedReason,
};
pub use logging::{Logging, LoggingError, init};
pub use metrics::{Metrics, MetricsHandle, OpenStream, UPKEEP_INTERVAL, install};
pub use trace_context::{adopt, extract};
