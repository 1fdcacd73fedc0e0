//! Interceptors as data: what a policy file or an operator says about one, before it is compiled.
//!
//! Nothing here knows what an expression or a pattern means: that is for the tool engine, which compiles a spec and
//! answers with [`SpecProblem`]s. The paths in those are the keys of a policy file.

use std::collections::BTreeMap;
use std::time::Duration;

use super::problem::Place;
use crate::decision::{FailMode, Hook, Mode};

/// Deadline of an interceptor that names none.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(2);
/// Longest deadline of an interceptor.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// One interceptor that somebody wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct InterceptorSpec {
    /// Unique id: 1 to 128 of letters, digits and `.`, `_`, `-`, `:`; never begins with `builtin:`.
    pub id: String,
    /// Where it stands: `message.before`, `params.before`, `tool.before` or `tool.after`.
    pub hook: Hook,
    /// Higher runs first; 0 where it is not said.
    pub priority: i32,
    /// Regular expression found anywhere in the normalised tool name, or a group such as `group:fs`; empty matches
    /// every tool. Empty on hooks without a tool.
    pub tools: String,
    /// Regular expression found anywhere in the agent id; empty matches every agent, an unknown one included.
    pub agents: String,
    /// What it is for, for a person; may be empty.
    pub description: String,
    /// What it may do: `enforce` (where it is not said), `shadow` or `off`.
    pub mode: Mode,
    /// What a failure of it does: `closed` (where it is not said), `ask` or `open`.
    pub fail: FailMode,
    /// Its deadline, `1ms` to `60s`; `2s` where it is not said.
    pub timeout: Duration,
    /// Who does the work.
    pub handler: HandlerSpec,
    /// Whether `tools` may match no known tool.
    pub allow_unknown_tools: bool,
}

/// Who does the work of an interceptor.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerSpec {
    /// A condition and actions.
    Rule(RuleSpec),
    /// An `ExtensionService` over gRPC.
    Extension(RemoteSpec),
    /// An HTTP endpoint.
    Webhook(RemoteSpec),
}

/// A condition and what to do when it holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleSpec {
    /// A CEL expression of type bool; empty means always.
    pub when: String,
    /// What to do, in order; at least one.
    pub actions: Vec<ActionSpec>,
}

/// One thing an interceptor does.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionSpec {
    /// `block`: the reason shown to the agent.
    Block(String),
    /// `ask`: the reason shown to the person.
    Ask(String),
    /// `merge_args`: a JSON merge patch of the arguments, a mapping in a policy file, here as JSON text.
    MergeArgs(String),
    /// `set_args`: member, dotted for nested ones, and the CEL expression of its value; in order of the members.
    SetArgs(BTreeMap<String, String>),
    /// `redact`: categories; empty, or `true` in a policy file, means `secrets` and `pii`.
    Redact(Vec<String>),
    /// `strip_ansi`: `true`; terminal control sequences are removed.
    StripAnsi,
    /// `set_metadata`: member, dotted for nested ones, and the CEL expression of its value; in order of the members.
    SetMetadata(BTreeMap<String, String>),
    /// `set_params`: parameters of the model; only stated ones change.
    SetParams(Params),
    /// `append`: the text.
    Append(String),
    /// `audit`: the note.
    Audit(String),
}

impl ActionSpec {
    /// The key in a policy file.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Block(_) => "block",
            Self::Ask(_) => "ask",
            Self::MergeArgs(_) => "merge_args",
            Self::SetArgs(_) => "set_args",
            Self::Redact(_) => "redact",
            Self::StripAnsi => "strip_ansi",
            Self::SetMetadata(_) => "set_metadata",
            Self::SetParams(_) => "set_params",
            Self::Append(_) => "append",
            Self::Audit(_) => "audit",
        }
    }
}

/// An interceptor that lives elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RemoteSpec {
    /// Its address or URL.
    pub endpoint: String,
    /// Name of a credential from the settings; empty means none.
    pub credential: String,
    /// How often a call that failed before it could have any effect is tried, 1 to 5.
    pub attempts_max: u32,
}

/// A model and its parameters. Empty and absent values are not stated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    /// Provider of the model.
    pub provider: String,
    /// Name of the model.
    pub model: String,
    /// `off`, `low`, `medium` or `high`.
    pub think_level: String,
    /// `off` or `on`.
    pub reasoning_level: String,
    /// 0.0 to 2.0.
    pub temperature: Option<f64>,
}

impl Params {
    /// Values of `think_level`.
    pub const THINK_LEVELS: [&str; 4] = ["off", "low", "medium", "high"];
    /// Values of `reasoning_level`.
    pub const REASONING_LEVELS: [&str; 2] = ["off", "on"];
    /// Highest `temperature`.
    pub const TEMPERATURE_MAX: f64 = 2.0;

    /// Checks every stated value.
    ///
    /// # Errors
    /// The first field that is wrong, and what it must be. Holds nothing of the value.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let one_of = |field: &'static str, value: &str, valid: &[&str]| {
            if value.is_empty() || valid.contains(&value) {
                return Ok(());
            }
            Err((field, format!("must be one of: {}", valid.join(", "))))
        };
        one_of("think_level", &self.think_level, &Self::THINK_LEVELS)?;
        one_of("reasoning_level", &self.reasoning_level, &Self::REASONING_LEVELS)?;
        match self.temperature {
            Some(t) if !(0.0..=Self::TEMPERATURE_MAX).contains(&t) => {
                Err(("temperature", format!("must be a number from 0.0 to {:.1}", Self::TEMPERATURE_MAX)))
            }
            _ => Ok(()),
        }
    }

    /// Writes the stated values of `patch` over these.
    pub fn apply(&mut self, patch: &Self) {
        for (mine, theirs) in [
            (&mut self.provider, &patch.provider),
            (&mut self.model, &patch.model),
            (&mut self.think_level, &patch.think_level),
            (&mut self.reasoning_level, &patch.reasoning_level),
        ] {
            if !theirs.is_empty() {
                mine.clone_from(theirs);
            }
        }
        self.temperature = patch.temperature.or(self.temperature);
    }

    /// Whether nothing is stated.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Names of the fields in which `self` differs from `other`, in the order of the contract.
    pub fn changed_fields(&self, other: &Self) -> Vec<&'static str> {
        [
            ("provider", self.provider != other.provider),
            ("model", self.model != other.model),
            ("think_level", self.think_level != other.think_level),
            ("reasoning_level", self.reasoning_level != other.reasoning_level),
            ("temperature", self.temperature != other.temperature),
        ]
        .into_iter()
        .filter_map(|(name, changed)| changed.then_some(name))
        .collect()
    }
}

/// What a policy changes about a built-in interceptor. What it leaves out stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BuiltinSwitch {
    /// What it may do.
    pub mode: Option<Mode>,
    /// What a failure of it does.
    pub fail: Option<FailMode>,
    /// Its deadline.
    pub timeout: Option<Duration>,
    /// Categories that `builtin:redact-secrets` redacts; `None` means `secrets` and `pii`.
    pub categories: Option<Vec<String>>,
    /// What a prompt injection in a result leads to with `builtin:injection-guard`: `block`, `fence`, `report` or `off`.
    pub injection: Option<InjectionAction>,
}

/// What a prompt injection in the result of a tool leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InjectionAction {
    /// It counts by the thresholds of the policy.
    #[default]
    Block,
    /// The texts of the result are wrapped in a fence that says that they are data; findings do not count.
    Fence,
    /// It is reported and does not count.
    Report,
    /// Nobody looks for it.
    Off,
}

/// An interceptor of a policy and where its keys stand.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyInterceptor {
    /// What it says.
    pub spec: InterceptorSpec,
    /// Where it says so.
    pub places: Places,
}

/// Where the keys of an interceptor stand, by their path in it: `tools`, `when`, `do[0].set_args.command`. Two are
/// always equal: where something is written does not change what it means.
#[derive(Clone, Debug, Default)]
pub struct Places(pub BTreeMap<String, Place>);

impl PartialEq for Places {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Places {
    /// The place of `field`, else that of the nearest key around it.
    pub fn of(&self, field: &str) -> Option<&Place> {
        let mut path = field;
        loop {
            if let Some(place) = self.0.get(path) {
                return Some(place);
            }
            match path.rfind(['.', '[']) {
                Some(at) => path = &path[..at],
                None => return self.0.get(""),
            }
        }
    }
}

/// What is wrong with a spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct SpecProblem {
    /// Path of the key as in a policy file: `tools`, `when`, `do[0].set_args.command`, `extension.endpoint`.
    pub field: String,
    /// What is wrong and what to do, with line and column inside an expression where that helps.
    pub message: String,
}

impl SpecProblem {
    /// A problem with `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// Ids of the built-in interceptors.
pub const BUILTIN_INTERCEPTORS: &[&str] = &[
    "builtin:command-safety-guard",
    "builtin:security-audit",
    "builtin:strip-ansi",
    "builtin:redact-secrets",
    "builtin:injection-guard",
    "builtin:message-guard",
];

/// Prefix of the ids of built-in interceptors.
pub const BUILTIN_PREFIX: &str = "builtin:";

/// Whether `id` can be that of an interceptor that somebody wrote.
pub fn is_interceptor_id(id: &str) -> bool {
    (1..=128).contains(&id.len())
        && !id.starts_with(BUILTIN_PREFIX)
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':'))
}

/// What to do about an id that cannot be that of an interceptor.
pub const INTERCEPTOR_ID_FIX: &str =
    "use 1 to 128 letters, digits, `.`, `_`, `-` and `:`; the prefix `builtin:` is taken";
