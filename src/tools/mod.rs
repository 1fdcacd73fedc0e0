//! Intercept*: what may an agent do, before it does it and after?
//!
//! The way of a call: request -> [`Call`] -> the interceptors that match, one after the other, by descending priority
//! -> each answers with a [`Step`], which the chain applies -> decision, findings, events.
//!
//! Interceptors are built in (one file each in `builtin`), come from policy files, or are added by API; all are
//! compiled when they are loaded. A rule is compiled from its spec by `actions::CompiledRule::compile`, its expressions
//! by `condition`; what lives elsewhere is a [`RemoteHandler`] made by a [`RemoteFactory`].
//!
//! Invariants: a block ends the chain and nothing later lifts it; an interceptor that fails, panics or is late is
//! unjudged and does what its fail mode says; shadow and dry runs change nothing.
//!
//! Not here: the wire (`grpc`), where specs are kept (`store`), who the caller is, and the record of the decision.

pub mod actions;
mod call;
pub mod condition;
pub mod json;
pub mod redact;
pub mod names;
mod remote;
mod step;
pub mod strip_ansi;

pub use crate::decision::{Hook, InterceptorOutcome};
pub use crate::policy::{
    ActionSpec, HandlerSpec, InjectionAction, InterceptorSpec, Params, RemoteSpec, RuleSpec, SpecProblem,
};
pub use call::{Call, Context, Environment};
pub use remote::{RemoteAnswer, RemoteFactory, RemoteFuture, RemoteHandler, RemoteKind, RemoteRequest};
pub use step::{Changes, InterceptError, Step};
