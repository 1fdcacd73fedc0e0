//! The wire: one file per service or RPC, the status mapping, and the layers around them.
//!
//! Convert, call the engine, answer. No decision is made here. Everything a caller can do wrong becomes a status with
//! `google.rpc` details in `status`; everything decided becomes one event, one set of counts and one audit record in
//! `decide`.

mod added_interceptors;
mod audit_export;
pub mod audit_service;
mod audited;
mod auth;
mod bundle_convert;
mod check_messages;
mod check_messages_stream;
pub mod client;
mod console;
pub mod convert;
mod deadline;
mod decide;
mod decision_service;
mod download;
pub mod entity_service;
pub mod explain;
mod ext_mcp;
mod gathered;
mod incident_convert;
mod incident_service;
pub mod intercept;
mod interceptor_convert;
mod interceptor_registry_service;
mod layers;
pub mod list_rules;
mod local;
pub mod monitor_client;
mod page;
mod playground;
mod policy_service;
mod remember;
mod review_bundle;
mod server;
mod status;
pub mod stream_monitor;
pub mod submission_convert;
pub mod submission_service;
mod tls;
mod work;

pub use crate::identity::{ANONYMOUS, Identity};
pub use crate::store::RuleCount;
pub use added_interceptors::AddedInterceptors;
pub use audit_export::OtlpSink;
pub use audit_service::{AuditTrail, Changed};
pub use auth::{AuthError, Authenticator, REQUEST_ID, SUBMITTER};
pub use console::{Changed as WhatChanged, Decides, KnownRule, WhatIf};
pub use download::download_header;
pub use incident_service::KeptIncidents;
pub use local::{LocalCaller, LocalCalls, Refusal};
pub use playground::{Mode as TrialMode, Trial, TrialText, Tried, TriedFinding};
pub use remember::verdict as remember_verdict;
pub use server::{Bound, Health, ServeError, Shared, Uploads, bind};
pub use status::RequestError;
pub use tls::{Tls, TlsError};
pub use work::Work;
