//! A call on its way through the chain: what was sent, and what the interceptors so far made of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::inspect::Inspection;
use super::json::{Document, Duplicates, JsonError};
use super::prepare::PolicyTools;
use super::step::Changes;
use crate::decision::{Finding, Hook};
use crate::paths::{Os, Place};
use crate::policy::{Params, Policy, Snapshot};

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
    pub workspace_roots: Cow<'r, [String]>,
    /// Path as written to the real path.
    pub resolved_paths: &'r BTreeMap<String, String>,
}

impl Environment<'_> {
    /// What paths are relative to.
    pub fn place(&self) -> Place<'_> {
        Place { cwd: self.cwd, home: self.home, os: self.os }
    }
}

/// A text that interceptors may change, and the text as it was sent.
pub(super) struct Part<'r, T> {
    pub(super) sent: &'r str,
    pub(super) now: T,
    pub(super) changed: bool,
}

/// A call on its way through the chain.
pub struct Call<'r> {
    /// The hook.
    pub hook: Hook,
    /// Normalised name of the tool; empty on hooks without a tool.
    pub tool: &'r str,
    /// Name of the tool as it was sent.
    pub tool_sent: &'r str,
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
    pub policy: &'r Arc<Policy>,
    /// Whether nothing will come of it but a report.
    pub dry_run: bool,
    /// Id of the decision.
    pub decision_id: &'r str,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
    pub(super) tools: &'r PolicyTools,
    pub(super) args: Part<'r, Document<'r>>,
    /// `None` when there is none.
    pub(super) result: Part<'r, Option<Document<'r>>>,
    pub(super) message: Part<'r, Cow<'r, str>>,
    pub(super) params: Cow<'r, Params>,
    pub(super) params_sent: &'r Params,
    pub(super) params_changed: bool,
    pub(super) metadata: Part<'r, Document<'r>>,
    /// What the arguments would do; made when somebody asks, and again after they changed.
    pub(super) inspection: OnceLock<Inspection>,
    /// How often the arguments changed.
    pub(super) version: u32,
    /// What interceptors found so far.
    pub(super) found: Vec<Finding>,
}

impl<'r> Call<'r> {
    /// The arguments as they stand, a JSON object as text; `{}` on hooks without a tool.
    pub fn args(&self) -> &str {
        self.args.now.text()
    }

    /// [`Self::args`], read.
    pub fn args_document(&self) -> &Document<'r> {
        &self.args.now
    }

    /// The result as it stands, JSON text; empty when there is none and on other hooks than [`Hook::ToolAfter`].
    pub fn result(&self) -> &str {
        self.result.now.as_ref().map_or("", Document::text)
    }

    /// [`Self::result`], read.
    pub fn result_document(&self) -> Option<&Document<'r>> {
        self.result.now.as_ref()
    }

    /// The message as it stands; empty on tool hooks.
    pub fn message(&self) -> &str {
        &self.message.now
    }

    /// The parameters as they stand. On [`Hook::MessageBefore`] provider and model alone, and not to be changed.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The metadata as it stands, a JSON object as text.
    pub fn metadata(&self) -> &str {
        self.metadata.now.text()
    }

    /// [`Self::metadata`], read.
    pub fn metadata_document(&self) -> &Document<'r> {
        &self.metadata.now
    }

    /// What the arguments of a guarded tool would do: analysed commands and named paths. Analysed once, whoever asks.
    pub fn inspection(&self) -> &Inspection {
        self.inspection.get_or_init(|| Inspection::of(self))
    }

    /// What paths are relative to.
    pub fn place(&self) -> Place<'_> {
        self.environment.as_ref().map(Environment::place).unwrap_or_default()
    }

    /// Folders the agent may change; empty when none is known.
    pub fn workspace_roots(&self) -> &[String] {
        match &self.environment {
            Some(environment) => &environment.workspace_roots,
            None => self.policy.workspace_roots(),
        }
    }

    /// Takes over what an interceptor changed. A text that says the same as before is no change.
    ///
    /// # Errors
    /// The first thing that cannot be what it should: arguments or metadata that are no JSON object, a result that is
    /// no JSON, parameters out of range, something that the hook does not have. Then nothing is taken over.
    pub fn apply(&mut self, changes: Changes) -> Result<bool, String> {
        let object = |what: &str, text: Option<String>| {
            text.map(Document::parse_object).transpose().map_err(|e| format!("{what}: {}", plain(&e)))
        };
        let args = object("arguments", changes.args)?;
        let metadata = object("metadata", changes.metadata)?;
        let result = changes
            .result
            .map(|text| Document::parse(text, Duplicates::Keep))
            .transpose()
            .map_err(|e| format!("result: {}", plain(&e)))?;
        if let Some(params) = &changes.params {
            params.check().map_err(|(field, message)| format!("params.{field} {message}"))?;
        }
        for (what, given, hook) in [
            ("arguments", args.is_some(), Hook::ToolBefore),
            ("a result", result.is_some(), Hook::ToolAfter),
            ("a message", changes.message.is_some(), Hook::MessageBefore),
            ("parameters", changes.params.is_some(), Hook::ParamsBefore),
        ] {
            if given && hook != self.hook {
                return Err(format!("{} cannot change {what}", self.hook));
            }
        }
        let mut any = false;
        if let Some(args) = args.filter(|args| args.text() != self.args.now.text()) {
            self.args.now = args;
            self.args.changed = true;
            self.inspection = OnceLock::new();
            self.version += 1;
            any = true;
        }
        if let Some(result) = result.filter(|result| result.text() != self.result()) {
            self.result.now = Some(result);
            self.result.changed = true;
            any = true;
        }
        if let Some(message) = changes.message.filter(|message| **message != *self.message.now) {
            self.message.now = Cow::Owned(message);
            self.message.changed = true;
            any = true;
        }
        if let Some(params) = changes.params.filter(|params| *params != *self.params) {
            self.params = Cow::Owned(params);
            self.params_changed = true;
            any = true;
        }
        if let Some(metadata) = metadata.filter(|metadata| metadata.text() != self.metadata.now.text()) {
            self.metadata.now = metadata;
            self.metadata.changed = true;
            any = true;
        }
        Ok(any)
    }

    /// The text that findings of this hook point into, as it was sent, and its path.
    pub(super) fn judged_text(&self) -> (&'static str, &'r str) {
        match self.hook {
            Hook::MessageBefore | Hook::ParamsBefore => ("/message", self.message.sent),
            Hook::ToolBefore => ("/args_json", self.args.sent),
            Hook::ToolAfter => ("/result_json", self.result.sent),
        }
    }
}

/// What is wrong with a JSON text, without any of its text: it is for records and people that may not see it.
pub(super) fn plain(error: &JsonError) -> String {
    match error {
        JsonError::Duplicate { line, column, .. } => {
            format!("a member appears twice: line {line}, column {column}")
        }
        other => other.to_string(),
    }
}
