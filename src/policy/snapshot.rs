//! A compiled policy: immutable, complete, and cheap to ask.
//!
//! Everything inherited is already written in, so a question is one look-up and never a walk over parents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::allow_list::AllowList;
use super::audit::{AuditQuery, AuditSettings};
use super::interceptor::{BuiltinSwitch, PolicyInterceptor};
use super::schema::CallerRole;
use super::streams::StreamSettings;
use super::suppression::{self, Suppression, SuppressionQuery};
use super::tools::ToolSettings;
use super::yaml;
use crate::decision::{Category, FailModes, Mode, Thresholds};
use crate::rules::CountrySet;

/// Time-out of a plugin whose policy names none.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// A policy with everything it inherits.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    pub(super) name: Arc<str>,
    pub(super) description: String,
    /// Sorted; `None` lets everybody ask for this policy.
    pub(super) allowed_callers: Option<Vec<CallerRole>>,
    /// `None` requires every plugin that is not off.
    pub(super) required_plugins: Option<Vec<String>>,
    pub(super) thresholds: Thresholds,
    /// Only categories that a file names, each with what it inherits from those above.
    pub(super) categories: BTreeMap<String, CategorySettings>,
    pub(super) rules: BTreeMap<String, Mode>,
    pub(super) plugins: BTreeMap<String, PluginSettings>,
    pub(super) system_role: Mode,
    pub(super) allow_list: AllowList,
    pub(super) countries: CountrySet,
    pub(super) caller_allow_list: bool,
    pub(super) caller_countries: bool,
    pub(super) reveal: bool,
    pub(super) audit: AuditSettings,
    pub(super) suppressions: Vec<Suppression>,
    pub(super) tools: ToolSettings,
    pub(super) workspace_roots: Vec<String>,
    pub(super) interceptors: Vec<PolicyInterceptor>,
    pub(super) builtins: BTreeMap<String, BuiltinSwitch>,
    pub(super) streams: StreamSettings,
}

/// What holds for a category and everything below it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CategorySettings {
    pub(super) mode: Mode,
    pub(super) thresholds: Thresholds,
}

/// What holds for a plugin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PluginSettings {
    pub(super) mode: Mode,
    pub(super) fail: FailModes,
    pub(super) timeout: Duration,
}

impl Default for PluginSettings {
    fn default() -> Self {
        Self { mode: Mode::Enforce, fail: FailModes::default(), timeout: TIMEOUT_DEFAULT }
    }
}

impl Policy {
    /// The name by which requests ask for it.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What it is for, in the words of its author; may be empty.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// From which scores a finding of `category` warns and blocks: the nearest category above that names one wins.
    pub fn thresholds_for(&self, category: &Category) -> Thresholds {
        self.category(category).map_or(self.thresholds, |settings| settings.thresholds)
    }

    /// What a rule's findings may do: the weakest mode of plugin, rule and category.
    ///
    /// `role_is_system` says that the text is the operator's own, for which the injection family has a mode of its own.
    pub fn mode_of(&self, plugin: &str, rule_id: &str, category: &Category, role_is_system: bool) -> Mode {
        let rule = self.rules.get(rule_id).copied().unwrap_or_default();
        let category = self.category(category).map_or(Mode::Enforce, |settings| settings.mode);
        let role = if role_is_system && plugin == "injection" { self.system_role } else { Mode::Enforce };
        weaker(weaker(self.plugin_mode(plugin), rule), weaker(category, role))
    }

    /// The mode of a plugin; enforce for one that the policy does not know.
    pub fn plugin_mode(&self, plugin: &str) -> Mode {
        self.plugin(plugin).mode
    }

    /// What happens when a plugin cannot judge; closed for one that the policy does not know.
    pub fn fail_modes(&self, plugin: &str) -> FailModes {
        self.plugin(plugin).fail
    }

    /// How long a plugin may take.
    pub fn timeout(&self, plugin: &str) -> Duration {
        self.plugin(plugin).timeout
    }

    /// Those of `known` that run whether a caller asks for them or not, in the order of `known`.
    ///
    /// Without a list in the policy these are all that are not off: plugins in shadow run too, or nobody would learn
    /// what they would do.
    pub fn required_plugins<'k>(&self, known: &[&'k str]) -> Vec<&'k str> {
        let is_required = |plugin: &&&str| match &self.required_plugins {
            Some(list) => list.iter().any(|required| required == **plugin),
            None => self.plugin_mode(plugin) != Mode::Off,
        };
        known.iter().filter(is_required).copied().collect()
    }

    /// Whether a caller with these roles may ask for this policy.
    pub fn allows_caller(&self, roles: &[CallerRole]) -> bool {
        self.allowed_callers.as_ref().is_none_or(|allowed| roles.iter().any(|role| allowed.contains(role)))
    }

    /// Personal data that is excused.
    pub fn allow_list(&self) -> &AllowList {
        &self.allow_list
    }

    /// Countries whose personal data is looked for; empty means all.
    pub fn countries(&self) -> &CountrySet {
        &self.countries
    }

    /// Whether a request may excuse personal data by a list of its own.
    pub fn heeds_caller_allow_list(&self) -> bool {
        self.caller_allow_list
    }

    /// The countries whose personal data is looked for when a request names these (none: all). They narrow those of the
    /// policy where it lets callers do so, and never widen them. Where nothing would be left, those of the policy stay.
    pub fn countries_for(&self, asked: &CountrySet) -> CountrySet {
        if !self.caller_countries || asked.is_empty() {
            return self.countries;
        }
        if self.countries.is_empty() {
            return *asked;
        }
        let both = self.countries.and(asked);
        if both.is_empty() { self.countries } else { both }
    }

    /// Whether a caller may see the text that a finding matched.
    pub fn reveal(&self) -> bool {
        self.reveal
    }

    /// Share of decisions of this kind that is recorded when they allow, from 0.0 to 1.0. Other decisions always are.
    pub fn sample_allow(&self, query: &AuditQuery<'_>) -> f64 {
        self.audit.share_of(query)
    }

    /// The suppression that excuses a finding at `now`, if any.
    pub fn suppression(&self, query: &SuppressionQuery<'_>, now: Timestamp) -> Option<&Suppression> {
        suppression::first_fitting(&self.suppressions, query, now)
    }

    /// Every suppression, the expired ones included, parents' first.
    pub fn suppressions(&self) -> &[Suppression] {
        &self.suppressions
    }

    /// Further tools and arguments, beside those that are built in.
    pub fn tools(&self) -> &ToolSettings {
        &self.tools
    }

    /// Absolute folders in which agents may do as they like; empty when there is none.
    pub fn workspace_roots(&self) -> &[String] {
        &self.workspace_roots
    }

    /// Interceptors of this policy, parents' first.
    pub fn interceptors(&self) -> &[PolicyInterceptor] {
        &self.interceptors
    }

    /// What this policy changes about a built-in interceptor.
    pub fn builtin_switch(&self, id: &str) -> Option<&BuiltinSwitch> {
        self.builtins.get(id)
    }

    /// What holds for watched output streams.
    pub fn streams(&self) -> &StreamSettings {
        &self.streams
    }

    /// The policy as a file, every value written out. Reading it gives this policy again.
    pub fn to_yaml(&self) -> String {
        yaml::write(self)
    }

    /// Settings of the nearest category at or above `category` that a file names.
    fn category(&self, category: &Category) -> Option<&CategorySettings> {
        if self.categories.is_empty() {
            return None;
        }
        ancestors(category.as_str()).find_map(|ancestor| self.categories.get(ancestor))
    }

    fn plugin(&self, plugin: &str) -> PluginSettings {
        self.plugins.get(plugin).copied().unwrap_or_default()
    }
}

/// `a.b.c`, `a.b`, `a`.
pub(super) fn ancestors(category: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(category), |name| name.rsplit_once('.').map(|(parent, _)| parent))
}

/// The weaker of two modes: off, then shadow, then enforce.
fn weaker(a: Mode, b: Mode) -> Mode {
    match (a, b) {
        (Mode::Off, _) | (_, Mode::Off) => Mode::Off,
        (Mode::Shadow, _) | (_, Mode::Shadow) => Mode::Shadow,
        (Mode::Enforce, Mode::Enforce) => Mode::Enforce,
    }
}
