//! The wire: one file per service or RPC, the status mapping, and the layers around them.
//!
//! Convert, call the engine, answer. No decision is made here. Everything a caller can do wrong becomes a status with
//! `google.rpc` details in `status`; everything decided becomes one event, one set of counts and one audit record in
//! `decide`.

mod added_interceptors;
mod auth;
mod check_messages;
mod check_messages_stream;
pub mod client;
pub mod convert;
mod deadline;
mod decide;
mod decision_service;
mod incident_convert;
mod incident_service;
pub mod intercept;
mod interceptor_convert;
mod interceptor_registry_service;
mod layers;
pub mod list_rules;
pub mod monitor_client;
mod policy_service;
mod server;
mod status;
pub mod stream_monitor;

pub use added_interceptors::AddedInterceptors;
pub use auth::{Authenticator, Identity};
pub use incident_service::KeptIncidents;
pub use server::{Bound, Health, ServeError, Shared, bind};
pub use status::RequestError;
