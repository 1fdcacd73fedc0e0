//! What one request runs: its policy, its plugins and what they look for.

use std::sync::Arc;

use jiff::Timestamp;

use super::{CheckError, CheckRequest, MessageEngine};
use crate::decision::Mode;
use crate::messages::plugin::Plugin;
use crate::messages::structure;
use crate::policy::{AllowList, Policy, Snapshot};
use crate::rules::CountrySet;

/// What one request runs, decided before the first byte is read.
pub(super) struct Plan<'a> {
    pub policy: &'a Arc<Policy>,
    pub snapshot: &'a Snapshot,
    /// Rule plugins, as bits of the rule set.
    pub bits: u32,
    /// The same by name.
    pub rule_plugins: Vec<Arc<str>>,
    pub asynchronous: Vec<Arc<dyn Plugin>>,
    pub runs_structure: bool,
    pub now: Option<Timestamp>,
    /// What the caller excuses; empty where the policy does not heed it.
    pub caller_allow_list: AllowList,
    /// Countries whose personal data is looked for; empty means all.
    pub countries: CountrySet,
}

impl MessageEngine {
    /// Decides what a request runs.
    pub(super) fn plan<'a>(
        &self,
        snapshot: &'a Snapshot,
        request: &CheckRequest<'a>,
    ) -> Result<Plan<'a>, CheckError> {
        let policies = snapshot.policies();
        let policy = policies.get(request.policy).ok_or_else(|| CheckError::UnknownPolicy {
            name: shorten(request.policy),
            known: names_of(
                policies.iter().filter(|p| p.allows_caller(request.caller_roles)).map(|p| &**p.name()),
            ),
        })?;
        if !policy.allows_caller(request.caller_roles) {
            return Err(CheckError::PolicyNotAllowed { name: policy.name().to_string() });
        }
        let rules = snapshot.scanner().rules();
        let known: Vec<&str> = rules
            .plugins()
            .iter()
            .map(|p| &**p)
            .chain(self.plugins.iter().map(|p| &*p.descriptor().name))
            .chain([structure::STRUCTURE])
            .collect();
        let required = policy.required_plugins(&known);
        let is_off =
            |name: &str| policy.plugin_mode(name) == Mode::Off || self.disabled.iter().any(|d| d == name);
        for (index, name) in request.plugins.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                return Err(CheckError::UnknownPlugin {
                    index,
                    name: shorten(name),
                    known: known.join(", "),
                });
            }
            if is_off(name) {
                return Err(CheckError::PluginOff { index, name: name.clone() });
            }
        }
        let runs = |name: &str| {
            !is_off(name) && (required.contains(&name) || request.plugins.iter().any(|p| p == name))
        };
        let rule_plugins: Vec<Arc<str>> = rules.plugins().iter().filter(|p| runs(p)).cloned().collect();
        Ok(Plan {
            policy,
            snapshot,
            bits: rules.plugin_bits(rule_plugins.iter().map(|p| &**p)),
            rule_plugins,
            asynchronous: self.plugins.iter().filter(|p| runs(&p.descriptor().name)).cloned().collect(),
            runs_structure: runs(structure::STRUCTURE),
            // The clock is read only where something can expire.
            now: (!policy.suppressions().is_empty()).then(Timestamp::now),
            caller_allow_list: if policy.heeds_caller_allow_list() {
                AllowList::new(request.allow_list.to_vec())
            } else {
                AllowList::default()
            },
            countries: policy.countries_for(&request.countries),
        })
    }
}

fn names_of<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

fn shorten(name: &str) -> String {
    name.chars().take(60).flat_map(char::escape_debug).collect()
}
