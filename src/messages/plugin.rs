//! Asynchronous plugins: checks that ask somebody else.
//!
//! Built-in plugins are rules and share one pass; these are everything that waits for a network. Each runs under its own
//! time-out and the caller's deadline, and cannot take the others down: an error, a panic or silence makes it unjudged.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::Conversation;
use crate::decision::{Finding, Reason};

/// What a plugin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Id, as policies and requests name it.
    pub name: Arc<str>,
    /// One sentence for a person.
    pub description: Arc<str>,
    /// Version of the plugin, reported in its findings.
    pub version: Arc<str>,
}

/// Why a plugin gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct PluginError {
    /// The kind of failure.
    pub reason: Reason,
    /// What happened, without any text of the caller.
    pub detail: String,
}

/// What a plugin found. Spans count in UTF-8 bytes of the fields as sent.
pub type PluginAnswer = Result<Vec<Finding>, PluginError>;

/// A plugin at work.
pub type PluginFuture<'a> = Pin<Box<dyn Future<Output = PluginAnswer> + Send + 'a>>;

/// A check that waits for somebody else.
pub trait Plugin: Send + Sync {
    /// What it is.
    fn descriptor(&self) -> &Descriptor;

    /// Checks all messages of a request. May be dropped at any await when the time is up.
    fn check<'a>(&'a self, messages: &'a Conversation<'a>) -> PluginFuture<'a>;
}
