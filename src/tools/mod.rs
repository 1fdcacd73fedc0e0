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
mod arguments;
mod builtin;
mod call;
mod chain;
pub mod condition;
mod detectors;
mod engine;
mod event;
mod inspect;
mod interceptor;
pub mod json;
mod matcher;
pub mod names;
mod prepare;
pub mod redact;
mod registry;
mod remote;
mod step;
pub mod strip_ansi;
#[cfg(test)]
mod tests;
mod verdict;
mod view;

pub use crate::decision::{Hook, InterceptorOutcome};
pub use crate::policy::{
    ActionSpec, HandlerSpec, InjectionAction, InterceptorSpec, Params, RemoteSpec, RuleSpec, SpecProblem,
};
pub use arguments::Fault;
pub use call::{Call, Context, Environment};
pub use engine::{Common, EnvironmentRequest, InterceptRequestError, Outcome, ToolEngine, ToolRequest};
pub use event::Ran;
pub use inspect::{InspectedCommand, InspectedPath, Inspection};
pub use interceptor::{Interceptor, Local, Source};
pub use names::{KNOWN_TOOLS, ListedTool, ToolNames};
pub use prepare::{PolicyTools, PreparedTools, ToolPreparer};
pub use registry::{AddError, ApiEntry, Registry};
pub use remote::{RemoteAnswer, RemoteFactory, RemoteFuture, RemoteHandler, RemoteKind, RemoteRequest};
pub use step::{Changes, InterceptError, Step};
pub use verdict::{COMMAND_SAFETY, PATH_AUDIT};
