//! What the process tells its operators: metrics, events, log lines, spans.
//!
//! Whatever happens is told through one struct of `events`, whose `emit` does counter, histogram and log line together,
//! so that they cannot disagree. Metrics are handles that were registered before the first request.
//!
//! Invariant: no text of a caller reaches a label or a log line; labels are bounded sets.
//! Not here: the audit log (one durable record per decision), and serving `/metrics` over HTTP.

mod config;
pub mod events;
mod labels;
mod limiter;
pub mod logging;
mod metrics;
pub mod trace_context;

pub use config::{LogConfig, LogFormat, TracingConfig};
pub use labels::{Cache, CacheOutcome, Code, ReloadOutcome, Rpc};
pub use metrics::{Metrics, MetricsHandle, UPKEEP_INTERVAL, install};
