//! What a policy makes of a finding about a bundle: its mode, whether it is excused, and what it decides.
//!
//! The same words as for messages: the weakest mode of plugin, rule and category; the first suppression that fits; the
//! thresholds of the category. A rule about commands belongs to the plugin `command_safety`, one of the detector core to
//! its own, every other one to `bundles`. What an archive is refused for is no matter of any policy.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use jiff::Timestamp;

use super::rules::BUNDLES;
use crate::commands::CommandRules;
use crate::decision::{Category, CheckFinding, Decision, Mode, Severity};
use crate::detect::Scanner;
use crate::policy::{Policy, PolicySet, SuppressionQuery};

/// The plugin of rules about commands.
const COMMAND_SAFETY: &str = "command_safety";

/// The policy that excuses nothing.
static STRICT: LazyLock<PolicySet> = LazyLock::new(PolicySet::built_in);

/// Under whose policy a bundle is checked, and when.
#[derive(Clone, Copy)]
pub struct Terms<'t> {
    /// The policy.
    pub policy: &'t Policy,
    /// Tenant of the uploader, for suppressions; may be empty.
    pub tenant: &'t str,
    /// The time, for suppressions that expire.
    pub now: Timestamp,
}

impl Terms<'static> {
    /// The built-in policy, which excuses nothing and has nothing on trial.
    pub fn strict() -> Self {
        Self { policy: STRICT.default_policy(), tenant: "", now: Timestamp::UNIX_EPOCH }
    }
}

impl fmt::Debug for Terms<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms").field("policy", self.policy.name()).field("now", &self.now).finish()
    }
}

/// Weighs the findings of one bundle.
pub(super) struct Scales<'s> {
    terms: Terms<'s>,
    /// The detector core, which knows the plugins of its rules.
    scanner: &'s Scanner,
    /// Rules about commands.
    commands: &'s CommandRules,
    /// Plugins of rules by their ids, once one was asked for.
    plugins: OnceCell<HashMap<&'s str, &'s str>>,
}

impl<'s> Scales<'s> {
    pub(super) fn new(terms: Terms<'s>, scanner: &'s Scanner, commands: &'s CommandRules) -> Self {
        Self { terms, scanner, commands, plugins: OnceCell::new() }
    }

    /// The detector core.
    pub(super) fn scanner(&self) -> &'s Scanner {
        self.scanner
    }

    /// Marks a finding as on trial or excused, and answers what it would decide if it counted; `None`: its rule is off.
    /// Where a file has more of the kind than are listed (`is_crowded`), no single one of them is excused by fingerprint:
    /// those that nobody sees are not it.
    pub(super) fn weigh(&self, finding: &mut CheckFinding, is_crowded: bool) -> Option<Decision> {
        let Terms { policy, tenant, now } = self.terms;
        let category = Category::new(&finding.category);
        match policy.mode_of(self.plugin_of(&finding.rule_id), &finding.rule_id, &category, false) {
            Mode::Off => return None,
            Mode::Shadow => finding.shadow = true,
            Mode::Enforce => {}
        }
        let print = || if is_crowded { String::new() } else { finding.fingerprint.clone() };
        let query = SuppressionQuery {
            rule_id: &finding.rule_id,
            category: &category,
            fingerprint: &print,
            path: &finding.file,
            tenant,
        };
        let is_suppressed = policy.suppression(&query, now).is_some();
        finding.suppressed = is_suppressed;
        Some(policy.thresholds_for(&category).decide(finding.severity.score()))
    }

    fn plugin_of(&self, rule_id: &str) -> &'s str {
        let plugins = self.plugins.get_or_init(|| {
            let commands = self.commands.rules().iter().map(|rule| (&*rule.id, COMMAND_SAFETY));
            let core = self.scanner.rules().rules().iter();
            commands.chain(core.map(|rule| (&*rule.info.id, &*rule.info.plugin))).collect()
        });
        plugins.get(rule_id).copied().unwrap_or(BUNDLES)
    }
}

/// What a certain finding of this severity decides where no policy is asked.
pub(super) const fn severity_decision(severity: Severity) -> Decision {
    match severity {
        Severity::Low => Decision::Allow,
        Severity::Medium => Decision::Warn,
        Severity::High | Severity::Critical => Decision::Block,
    }
}
