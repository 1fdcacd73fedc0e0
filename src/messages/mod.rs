//! CheckMessages: are these chat messages safe?
//!
//! The way of a message: fields -> cache or scan -> findings on the text as sent -> mode and suppressions of the policy ->
//! asynchronous plugins under one deadline -> decision -> redaction where it was asked for.
//!
//! Built-in plugins share one pass over each field. Every message and every role is scanned; what could not be looked
//! into or did not end in time is listed as unjudged and fails the way the policy says.
//!
//! Not here: the wire (`grpc`), who the caller is, and the record of the decision (`audit`).

mod cache;
mod config;
mod engine;
mod input;
mod llama_guard;
mod plugin;
mod redact;
mod report;
mod structure;

pub use cache::FindingCache;
pub use config::{CacheConfig, MessagesConfig};
pub use engine::{CheckError, CheckOutcome, CheckRequest, Excused, MessageEngine};
pub use input::{Conversation, Field, FieldPath, Message, parse_role};
pub use llama_guard::{Generation, GenerationSetting, Hazard, LlamaGuard, LlamaGuardConfig};
pub use plugin::{
    Descriptor, Found, Greeting, Introduction, Plugin, PluginAnswer, PluginCall, PluginError, PluginFuture,
};
pub use redact::RedactedField;
/// Plugins of the engine itself, which have no rules, with the severities they can report.
pub const OWN_PLUGINS: [(&str, &[crate::decision::Severity]); 2] = [
    (structure::STRUCTURE, &[crate::decision::Severity::Medium, crate::decision::Severity::High]),
    (engine::MEDIA, &[]),
];

pub use crate::detect::{Reported, fingerprint};

#[cfg(test)]
mod tests;
