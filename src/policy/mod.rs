//! Policies: what is checked, how strictly, for whom, and what is excused.
//!
//! A policy file is a thin layer over the policy it extends; the built-in default lies below all of them. Files are read
//! into layers (`tree`, `decode`), layers are merged and compiled (`resolve`) into an immutable [`Policy`], and a
//! request holds one snapshot (`live`) from its first byte to its last, so that a reload never splits a decision.
//!
//! Everything but `live`, `load` and `watch` is pure: no IO, no clock (the caller passes `now`).
//!
//! Invariants: a set holds a policy named `default`; a set is either wholly valid or not built at all, and then every
//! problem of every file is told at once; two sets with the same digest decide alike.
//!
//! Not here: running plugins, and who a caller is.

mod allow_list;
mod audit;
mod decide;
mod decode;
mod decode_audit;
mod decode_interceptors;
mod decode_streams;
mod glob;
mod interceptor;
mod live;
mod load;
mod prepare;
mod problem;
mod resolve;
mod schema;
mod set;
mod snapshot;
mod streams;
mod suppression;
#[cfg(test)]
mod tests;
mod tools;
mod tree;
mod values;
mod watch;
mod yaml;
mod yaml_interceptors;

pub use allow_list::AllowList;
pub use audit::{AuditFilter, AuditQuery};
pub use decide::Verdict;
pub use interceptor::{
    ActionSpec, BUILTIN_INTERCEPTORS, BUILTIN_PREFIX, BuiltinSwitch, HandlerSpec, INTERCEPTOR_ID_FIX,
    InjectionAction, InterceptorSpec, Params, Places, PolicyInterceptor, RemoteSpec, RuleSpec, SpecProblem,
    TIMEOUT_DEFAULT as INTERCEPTOR_TIMEOUT_DEFAULT, TIMEOUT_MAX as INTERCEPTOR_TIMEOUT_MAX,
    is_interceptor_id,
};
pub use live::{
    Live, LoadError, PastReload, Rejected, Reload, Snapshot, Sources, load, load_deferred, load_with,
};
pub use load::{FILE_BYTES_MAX, FILES_MAX, load_dir};
pub use prepare::{Prepare, PrepareRules, Prepared};
pub use problem::{Place, PolicyProblems, Problem};
pub use resolve::{Source, compile};
pub use schema::{BUILT_IN_PLUGINS, CallerRole, Vocabulary};
pub use set::PolicySet;
pub use snapshot::{Policy, TIMEOUT_DEFAULT};
pub use streams::{KnownSafe, StreamSettings};
pub use suppression::{Suppression, SuppressionQuery};
pub use tools::{ArgumentKind, ToolArguments, ToolSettings};
pub use watch::FolderWatch;

/// Name of the policy that a request without a policy name gets.
pub const DEFAULT_POLICY: &str = "default";
