//! The shape of a policy file: its keys, its words, and the [`Layer`] that one file becomes.
//!
//! A layer holds only what the file says; what it leaves out is inherited. Values keep their place, because some of them
//! prove wrong only after merging.

use std::collections::BTreeMap;
use std::time::Duration;

use super::audit::AuditFilter;
use super::interceptor::{BuiltinSwitch, InjectionAction, PolicyInterceptor};
use super::problem::Place;
use super::streams::StreamsLayer;
use super::suppression::Suppression;
use super::tools::ToolSettings;
use crate::decision::{FailMode, Hook, Mode, VerdictKind};
use crate::rules::CountrySet;

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
pub(super) const PII_KEYS: &[&str] = &["allow_list", "countries", "caller_allow_list", "caller_countries"];
pub(super) const AUDIT_KEYS: &[&str] = &["sample_allow", "filters"];
pub(super) const AUDIT_FILTER_KEYS: &[&str] = &["rpcs", "tools", "agents", "sample_allow"];
pub(super) const TOOLS_KEYS: &[&str] = &["known", "arguments"];
pub(super) const ARGUMENT_KIND_KEYS: &[&str] =
    &["command", "input", "read_path", "write_path", "patch", "url"];
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
/// Calls that end in a decision which a filter of `audit` may name.
pub(super) const DECISION_RPCS: &[&str] =
    &["CheckMessages", "CheckMessagesStream", "InterceptTool", "InterceptMessage", "InterceptParams"];

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
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

/// What one file says. The comments are the text of docs/POLICY_REFERENCE.md.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    /// By which requests ask for it; absent: the file name without its ending. 1 to 64 ASCII letters, digits, `-`, `_`,
    /// `.`, beginning with a letter or digit.
    pub(super) name: Option<Located<String>>,
    /// The policy that this one lies over; absent: `default`, whose own lies over the built-in one.
    pub(super) extends: Option<Located<String>>,
    /// What it is for, for people; not inherited.
    pub(super) description: Option<String>,
    /// Roles that may ask for it: a list of `agent`, `submitter`, `auditor`, `admin`, or `everybody`.
    // `Some(None)` is `everybody`.
    pub(super) allowed_callers: Option<Option<Vec<CallerRole>>>,
    /// Plugins that run whether a request names them or not: a list of ids, or `enforced` for all that are not off.
    // `Some(None)` is `enforced`.
    pub(super) required_plugins: Option<Option<Vec<Located<String>>>>,
    /// From which scores a finding warns and blocks.
    pub(super) thresholds: ThresholdsLayer,
    /// Settings by category, each for all below it.
    pub(super) categories: BTreeMap<String, CategoryLayer>,
    /// Modes of single rules, by id.
    pub(super) rules: BTreeMap<String, Mode>,
    /// Settings by plugin.
    pub(super) plugins: BTreeMap<String, PluginLayer>,
    /// Mode of the plugin `injection` in messages of role `system` or `developer`.
    pub(super) system_role: Option<Mode>,
    /// Personal data that is excused: whole values, or `@corp.example` for every address of a domain. Adds to that of the
    /// policy below.
    pub(super) allow_list: Vec<String>,
    /// Countries whose numbers and papers are looked for, by their ISO 3166-1 codes of two letters; empty: all. Rules of no
    /// country always run. The regions in which telephone numbers without a calling code are tried.
    pub(super) countries: Option<CountrySet>,
    /// Whether the `allow_list` of a request excuses personal data as that of the policy does.
    pub(super) caller_allow_list: Option<bool>,
    /// Whether the `countries` of a request narrow those of the policy.
    pub(super) caller_countries: Option<bool>,
    /// Whether a request with `reveal_matches` gets matched text in clear.
    pub(super) reveal: Option<bool>,
    /// Share of ALLOW decisions that are recorded, 0.0 to 1.0; all others always are.
    pub(super) sample_allow: Option<f64>,
    /// Other shares for some of the ALLOW decisions; the first that fits decides, those of the policy below come last.
    pub(super) filters: Vec<AuditFilter>,
    /// Findings that are excused. They add up.
    pub(super) suppressions: Vec<Suppression>,
    /// Further tools, and which of their arguments are judged. They add up.
    pub(super) tools: ToolSettings,
    /// Absolute folders in which agents may do as they like.
    pub(super) workspace_roots: Option<Vec<String>>,
    /// Interceptors of its own, and switches of built-in ones; one with the id of an inherited one takes its place.
    pub(super) interceptors: Vec<InterceptorLayer>,
    /// What holds for watched output.
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
    /// Score from which a finding warns, 0.0 to 1.0.
    pub(super) warn: Option<Located<f64>>,
    /// Score from which a finding blocks, 0.0 to 1.0, not below `warn`.
    pub(super) block: Option<Located<f64>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct CategoryLayer {
    /// What findings of it may do: `enforce`, `shadow` or `off`; absent: `enforce`.
    pub(super) mode: Option<Mode>,
    pub(super) thresholds: ThresholdsLayer,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PluginLayer {
    /// What its findings may do: `enforce`, `shadow` or `off`. One that is off does not run.
    pub(super) mode: Option<Located<Mode>>,
    /// What a check of it does that could not judge what goes into the model: `closed`, `ask` or `open`.
    pub(super) fail_input: Option<FailMode>,
    /// The same for what comes out of it.
    pub(super) fail_output: Option<FailMode>,
    /// How long it may take: `1ms` to `10m`, a whole number with `ms`, `s` or `m`.
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
