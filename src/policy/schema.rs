//! The shape of a policy file: its keys, its words, and the [`Layer`] that one file becomes.
//!
//! A layer holds only what the file says; what it leaves out is inherited. Values keep their place, because some of them
//! prove wrong only after merging.

use std::collections::BTreeMap;
use std::time::Duration;

use super::problem::Place;
use super::suppression::Suppression;
use crate::decision::{FailMode, Mode};

/// Plugins that are always there.
pub const BUILT_IN_PLUGINS: &[&str] = &["injection", "pii", "secrets", "code", "structure", "media"];

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
    "reveal",
    "suppressions",
    "audit",
];
pub(super) const THRESHOLD_KEYS: &[&str] = &["warn", "block"];
pub(super) const CATEGORY_KEYS: &[&str] = &["mode", "warn", "block"];
pub(super) const RULE_KEYS: &[&str] = &["mode"];
pub(super) const PLUGIN_KEYS: &[&str] = &["mode", "fail", "timeout"];
pub(super) const FAIL_KEYS: &[&str] = &["input", "output"];
pub(super) const INJECTION_KEYS: &[&str] = &["system_role"];
pub(super) const AUDIT_KEYS: &[&str] = &["sample_allow"];
pub(super) const SUPPRESSION_KEYS: &[&str] =
    &["rule", "category", "fingerprint", "path", "tenant", "reason", "expires"];

/// Words of a mode.
pub(super) const MODES: &[(&str, Mode)] =
    &[("enforce", Mode::Enforce), ("shadow", Mode::Shadow), ("off", Mode::Off)];
/// Words of a fail mode.
pub(super) const FAIL_MODES: &[(&str, FailMode)] =
    &[("closed", FailMode::Closed), ("ask", FailMode::Ask), ("open", FailMode::Open)];
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
    pub(super) reveal: Option<bool>,
    pub(super) sample_allow: Option<f64>,
    pub(super) suppressions: Vec<Suppression>,
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
