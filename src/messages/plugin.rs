//! Asynchronous plugins: checks that ask somebody else.
//!
//! Built-in plugins are rules and share one pass; these are everything that waits for a network. Each runs under its own
//! time-out and the caller's deadline, and cannot take the others down: an error, a panic or silence makes it unjudged.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::Conversation;
use crate::decision::{Direction, Finding, Reason, Severity};
use crate::outbound::Until;

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

/// What a plugin found, and what it could not judge beside that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// What it found. Spans count in UTF-8 bytes of the fields as sent; one with an empty path is about the whole message.
    pub findings: Vec<Finding>,
    /// What it could not judge.
    pub unjudged: Vec<PluginError>,
    /// The version that answered, where that is another than the one in its description.
    pub version: Option<Arc<str>>,
}

impl From<Vec<Finding>> for Found {
    fn from(findings: Vec<Finding>) -> Self {
        Self { findings, ..Self::default() }
    }
}

/// The answer of a plugin.
pub type PluginAnswer = Result<Found, PluginError>;

/// A plugin at work.
pub type PluginFuture<'a> = Pin<Box<dyn Future<Output = PluginAnswer> + Send + 'a>>;

/// Who stands behind a plugin, in their own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// Its name.
    pub name: String,
    /// Its version; empty when it has none.
    pub version: String,
    /// Categories of findings that it can report.
    pub categories: Vec<String>,
}

/// A plugin being asked who is there.
pub type Greeting<'a> = Pin<Box<dyn Future<Output = Result<Option<Introduction>, PluginError>> + Send + 'a>>;

/// What a plugin is asked.
#[derive(Clone, Copy, Debug)]
pub struct PluginCall<'a> {
    /// All messages of the request.
    pub messages: &'a Conversation<'a>,
    /// Tenant of the caller; empty is the default tenant.
    pub tenant: &'a str,
    /// Which way they go.
    pub direction: Direction,
    /// Id of the decision this is for (UUIDv7).
    pub decision_id: &'a str,
    /// The request as its caller sent it, in whatever type it came, for plugins that hand it on; the engine does not
    /// look into it.
    pub sent: Option<&'a (dyn Any + Send + Sync)>,
    /// When nobody waits any more: the time-out of the plugin or the deadline of the caller.
    pub until: Until,
}

/// A check that waits for somebody else.
pub trait Plugin: Send + Sync {
    /// What it is.
    fn descriptor(&self) -> &Descriptor;

    /// Categories and severities that it can report, for the metrics; others are counted together.
    fn reports(&self) -> Vec<(String, Severity)> {
        Vec::new()
    }

    /// Asks whoever stands behind the plugin who they are, when the service starts: what is out of reach or of another
    /// version is known before the first request needs it. `None` where nobody stands behind it, or they do not say.
    fn greet(&self, _until: Until) -> Greeting<'_> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Checks all messages of a request. May be dropped at any await when the time is up.
    fn check<'a>(&'a self, call: &'a PluginCall<'a>) -> PluginFuture<'a>;
}

/// Runs a plugin so that its panic is its own error.
pub(super) async fn guarded(mut future: PluginFuture<'_>) -> PluginAnswer {
    std::future::poll_fn(move |cx| {
        let poll = std::panic::AssertUnwindSafe(|| future.as_mut().poll(cx));
        std::panic::catch_unwind(poll).unwrap_or_else(|_| {
            std::task::Poll::Ready(Err(PluginError {
                reason: Reason::Error,
                detail: "the plugin panicked".to_owned(),
            }))
        })
    })
    .await
}
