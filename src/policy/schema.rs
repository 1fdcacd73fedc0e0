//! The shape of a policy file: its keys, its words, and the [`Layer`] that one file becomes.
//!
//! A layer holds only what the file says; what it leaves out is inherited. Values keep their place, because some of them
//! prove wrong only after merging.

use std::collections::BTreeMap;
use std::time::Duration;

use super::interceptor::{BuiltinSwitch, InjectionAction, PolicyInterceptor};
use super::problem::Place;
use super::streams::StreamsLayer;
use super::suppression::Suppression;
use super::tools::ToolSettings;
use crate::decision::{FailMode, Hook, Mode, VerdictKind};

/// Plugins that are always there.
pub const BUILT_IN_PLUGINS: &[&str] =
    &["injection", "pii", "secrets", "code", "structure", "media", "command_safety", "path_audit"];

/// Longest name of a policy, in bytes. Names travel in every request.
const NAME_BYTES_MAX: usize = 64;
/// Longest time-out of a plugin. Callers give up long before.
pub(super) const TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// `allowed_callers` when there is no restriction.
pub(super) const EVERYBODY: &str = "everybody";
/// `required_plugins` when there is no list.
pub(super) const ENFORCED: &str = "enforced";

pub(super) const ROOT_KEYS: &[&str] = &[
    "name",
    "extends",
    "description",
    "allowed_callers",
    "required_plugins",
    "thresholds",
    "categories",
    "rules",
    "plugins",
    "injection",
    "pii",
    "reveal",
    "suppressions",
    "audit",
    "tools",
    "workspace_roots",
    "interceptors",
    "streams",
];
pub(super) const THRESHOLD_KEYS: &[&str] = &["warn", "block"];
pub(super) const CATEGORY_KEYS: &[&str] = &["mode", "warn", "block"];
pub(super) const RULE_KEYS: &[&str] = &["mode"];
pub(super) const PLUGIN_KEYS: &[&str] = &["mode", "fail", "timeout"];
pub(super) const FAIL_KEYS: &[&str] = &["input", "output"];
pub(super) const INJECTION_KEYS: &[&str] = &["system_role"];
pub(super) const PII_KEYS: &[&str] = &["allow_list"];
pub(super) const AUDIT_KEYS: &[&str] = &["sample_allow"];
pub(super) const TOOLS_KEYS: &[&str] = &["known", "arguments"];
pub(super) const ARGUMENT_KIND_KEYS: &[&str] = &["command", "input", "read_path", "write_path", "patch"];
pub(super) const BUILTIN_KEYS: &[&str] = &["id", "mode", "fail", "timeout", "categories", "injection"];
pub(super) const INTERCEPTOR_KEYS: &[&str] = &[
    "id",
    "hook",
    "priority",
    "tools",
    "agents",
    "description",
    "mode",
    "fail",
    "timeout",
    "when",
    "do",
    "extension",
    "webhook",
    "allow_unknown_tools",
];
pub(super) const ACTION_KEYS: &[&str] = &[
    "block",
    "ask",
    "merge_args",
    "set_args",
    "redact",
    "strip_ansi",
    "set_metadata",
    "set_params",
    "append",
    "audit",
];
pub(super) const PARAMS_KEYS: &[&str] =
    &["provider", "model", "think_level", "reasoning_level", "temperature"];
pub(super) const EXTENSION_KEYS: &[&str] = &["endpoint", "credential", "attempts_max"];
pub(super) const WEBHOOK_KEYS: &[&str] = &["url", "credential", "attempts_max"];
pub(super) const SUPPRESSION_KEYS: &[&str] =
    &["rule", "category", "fingerprint", "path", "tenant", "reason", "expires"];

pub(super) const STREAMS_KEYS: &[&str] =
    &["rules", "families", "known_safe", "cooldown", "kill_from", "verdicts", "fail"];
pub(super) const KNOWN_SAFE_KEYS: &[&str] = &["pattern", "rule", "category", "labels", "reason"];
pub(super) const SEVERITIES: &[&str] = &["low", "medium", "high", "critical"];
/// Families of rules for messages that may run over streams.
pub(super) const STREAM_FAMILIES: &[&str] = &["injection", "pii", "secrets", "code"];
/// First parts of the categories of rules about streams.
pub(super) const STREAM_CATEGORIES: &[&str] =
    &["prompt_injection", "dangerous_command", "credential_access", "sandbox_escape", "network_violation"];

/// Words of a verdict.
pub(super) const VERDICTS: &[(&str, VerdictKind)] =
    &[("safe", VerdictKind::Safe), ("warn", VerdictKind::Warn), ("kill", VerdictKind::Kill)];
/// Words of a mode.
pub(super) const MODES: &[(&str, Mode)] =
    &[("enforce", Mode::Enforce), ("shadow", Mode::Shadow), ("off", Mode::Off)];
/// Words of a fail mode.
pub(super) const FAIL_MODES: &[(&str, FailMode)] =
    &[("closed", FailMode::Closed), ("ask", FailMode::Ask), ("open", FailMode::Open)];
/// Words of a hook.
pub(super) const HOOKS: &[(&str, Hook)] = &[
    ("message.before", Hook::MessageBefore),
    ("params.before", Hook::ParamsBefore),
    ("tool.before", Hook::ToolBefore),
    ("tool.after", Hook::ToolAfter),
];
/// Words of what an injection in a result leads to.
pub(super) const INJECTION_ACTIONS: &[(&str, InjectionAction)] = &[
    ("block", InjectionAction::Block),
    ("fence", InjectionAction::Fence),
    ("report", InjectionAction::Report),
    ("off", InjectionAction::Off),
];
pub(super) const CALLER_ROLES: &[(&str, CallerRole)] = &[
    ("agent", CallerRole::Agent),
    ("submitter", CallerRole::Submitter),
    ("auditor", CallerRole::Auditor),
    ("admin", CallerRole::Admin),
];

/// What a caller is allowed to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallerRole {
    /// Asks for decisions.
    Agent,
    /// Hands in bundles.
    Submitter,
    /// Reads records.
    Auditor,
    /// Changes things.
    Admin,
}

impl CallerRole {
    /// The lower-case name used in policies and tokens.
    pub fn as_str(self) -> &'static str {
        word_of(CALLER_ROLES, self)
    }

    /// The role of that name.
    pub fn parse(name: &str) -> Option<Self> {
        CALLER_ROLES.iter().find(|(word, _)| *word == name).map(|(_, role)| *role)
    }
}

/// The word that stands for `value`.
pub(super) fn word_of<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, candidate)| *candidate == value).map_or("", |(word, _)| word)
}

/// The names that policy files may use beside those of the schema.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vocabulary<'a> {
    /// Ids of configured plugins; the built-in ones are always known.
    pub plugins: &'a [&'a str],
    /// Ids of every rule. `None` accepts any id, for when plugins bring rules that nobody can list.
    pub rules: Option<&'a [&'a str]>,
}

impl<'a> Vocabulary<'a> {
    /// Every plugin, the built-in ones first.
    pub(super) fn all_plugins(&self) -> impl Iterator<Item = &'a str> {
        let added = self.plugins.iter().filter(|plugin| !BUILT_IN_PLUGINS.contains(plugin));
        BUILT_IN_PLUGINS.iter().chain(added).copied()
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

/// What one file says.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    pub(super) name: Option<Located<String>>,
    pub(super) extends: Option<Located<String>>,
    pub(super) description: Option<String>,
    /// `Some(None)` is `everybody`.
    pub(super) allowed_callers: Option<Option<Vec<CallerRole>>>,
    /// `Some(None)` is `enforced`.
    pub(super) required_plugins: Option<Option<Vec<Located<String>>>>,
    pub(super) thresholds: ThresholdsLayer,
    pub(super) categories: BTreeMap<String, CategoryLayer>,
    pub(super) rules: BTreeMap<String, Mode>,
    pub(super) plugins: BTreeMap<String, PluginLayer>,
    pub(super) system_role: Option<Mode>,
    pub(super) allow_list: Vec<String>,
    pub(super) reveal: Option<bool>,
    pub(super) sample_allow: Option<f64>,
    pub(super) suppressions: Vec<Suppression>,
    pub(super) tools: ToolSettings,
    pub(super) workspace_roots: Option<Vec<String>>,
    pub(super) interceptors: Vec<InterceptorLayer>,
    pub(super) streams: StreamsLayer,
}

/// What a file says about one interceptor.
#[derive(Clone, Debug)]
pub(super) enum InterceptorLayer {
    /// One of its own.
    Own(Box<PolicyInterceptor>),
    /// A built-in one.
    Builtin { id: String, switch: BuiltinSwitch },
}

impl InterceptorLayer {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Own(own) => &own.spec.id,
            Self::Builtin { id, .. } => id,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct ThresholdsLayer {
    pub(super) warn: Option<Located<f64>>,
    pub(super) block: Option<Located<f64>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct CategoryLayer {
    pub(super) mode: Option<Mode>,
    pub(super) thresholds: ThresholdsLayer,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PluginLayer {
    pub(super) mode: Option<Located<Mode>>,
    pub(super) fail_input: Option<FailMode>,
    pub(super) fail_output: Option<FailMode>,
    pub(super) timeout: Option<Duration>,
}

/// Whether a name can be that of a policy.
pub(super) fn is_policy_name(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// What to do about a name that cannot be that of a policy.
pub(super) const POLICY_NAME_FIX: &str =
    "use at most 64 letters, digits, `-`, `_` and `.`, beginning with a letter or digit";
