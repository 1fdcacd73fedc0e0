//! A call on its way through the chain: what was sent, and what the interceptors so far made of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Instant;

use crate::decision::Hook;
use crate::paths::Os;
use crate::policy::{Params, Policy, Snapshot};

use super::step::Changes;

/// Who asks, as stated by the caller. Empty values are not known.
#[derive(Clone, Copy, Debug)]
pub struct Context<'r> {
    /// Id of the agent.
    pub agent_id: &'r str,
    /// Key of its session.
    pub session_key: &'r str,
    /// Tenant.
    pub tenant: &'r str,
    /// The caller's own id of the request.
    pub request_id: &'r str,
    /// Free labels.
    pub labels: &'r BTreeMap<String, String>,
}

/// Where a tool would run. Empty values are not known.
#[derive(Clone, Debug)]
pub struct Environment<'r> {
    /// Working directory, absolute.
    pub cwd: &'r str,
    /// Home directory, absolute.
    pub home: &'r str,
    /// Notation of paths.
    pub os: Os,
    /// Folders the agent may change: those of the policy, narrowed by those of the request.
    pub workspace_roots: Vec<&'r str>,
    /// Path as written to the real path.
    pub resolved_paths: &'r BTreeMap<String, String>,
}

/// A call on its way through the chain.
pub struct Call<'r> {
    /// The hook.
    pub hook: Hook,
    /// Normalised name of the tool; empty on hooks without a tool.
    pub tool: &'r str,
    /// Id of the tool call; may be empty.
    pub tool_call_id: &'r str,
    /// Whether the tool failed. False except on [`Hook::ToolAfter`].
    pub is_error: bool,
    /// Who asks.
    pub context: Context<'r>,
    /// Where the tool would run; `None` when nothing is known, and on hooks without a tool.
    pub environment: Option<Environment<'r>>,
    /// Rules and policies of this request.
    pub snapshot: &'r Snapshot,
    /// The policy of this request.
    pub policy: &'r Policy,
    /// Whether nothing will come of it but a report.
    pub dry_run: bool,
    /// Id of the decision.
    pub decision_id: &'r str,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
    pub(super) args: Cow<'r, str>,
    pub(super) result: Cow<'r, str>,
    pub(super) message: Cow<'r, str>,
    pub(super) params: Cow<'r, Params>,
    pub(super) metadata: Cow<'r, str>,
}

impl<'r> Call<'r> {
    /// The arguments as they stand, a JSON object as text; empty on hooks without a tool.
    pub fn args(&self) -> &str {
        &self.args
    }

    /// The result as it stands, JSON text; empty when there is none and on other hooks than [`Hook::ToolAfter`].
    pub fn result(&self) -> &str {
        &self.result
    }

    /// The message as it stands; empty on tool hooks.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The parameters as they stand. On [`Hook::MessageBefore`] provider and model alone, and not to be changed.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The metadata as it stands, a JSON object as text.
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// Takes over what an interceptor changed.
    pub fn apply(&mut self, changes: Changes) {
        if let Some(args) = changes.args {
            self.args = Cow::Owned(args);
        }
        if let Some(result) = changes.result {
            self.result = Cow::Owned(result);
        }
        if let Some(message) = changes.message {
            self.message = Cow::Owned(message);
        }
        if let Some(params) = changes.params {
            self.params = Cow::Owned(params);
        }
        if let Some(metadata) = changes.metadata {
            self.metadata = Cow::Owned(metadata);
        }
    }
}
