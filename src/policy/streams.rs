//! What a policy says about watched output streams.

use std::collections::BTreeMap;
use std::time::Duration;

use super::problem::Place;
use crate::decision::{Category, FailMode, Mode, Severity, VerdictKind};

/// Longest cool-down.
pub(super) const COOLDOWN_MAX: Duration = Duration::from_secs(24 * 3600);
/// Confidence from which a rule is certain, where no file says otherwise.
const KILL_FROM_DEFAULT: f64 = 0.95;

/// `streams` of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSettings {
    /// Modes of rules about streams, by id, or by category with all below it.
    pub rules: BTreeMap<String, Mode>,
    /// Families of rules for messages that run over streams too: `injection`, `pii`, `secrets`, `code`.
    pub families: Vec<String>,
    /// What is known to be safe.
    pub known_safe: Vec<KnownSafe>,
    /// How long the same match of the same rule only counts as a repeat, at most 24 hours.
    pub cooldown: Duration,
    /// Confidence from which a match kills at once, from 0.0 to 1.0.
    pub kill_from: f64,
    /// The verdict where no judge is configured: `safe`, `warn` or `kill`, one word or a word by severity.
    // LOW first.
    pub verdicts: [VerdictKind; 4],
    /// What becomes of an incident that the judge could not judge: `closed` kills, `ask` warns, `open` lets it be; one
    /// word or a word by severity.
    pub fail: [FailMode; 4],
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            rules: BTreeMap::new(),
            families: Vec::new(),
            known_safe: Vec::new(),
            cooldown: Duration::from_secs(60),
            kill_from: KILL_FROM_DEFAULT,
            verdicts: [VerdictKind::Safe, VerdictKind::Warn, VerdictKind::Warn, VerdictKind::Kill],
            fail: [FailMode::Ask, FailMode::Ask, FailMode::Ask, FailMode::Closed],
        }
    }
}

impl StreamSettings {
    /// The mode of a rule: its own, or that of the nearest category that is named.
    pub fn mode_of(&self, rule: &str, category: &Category) -> Mode {
        let of_category =
            || super::snapshot::ancestors(category.as_str()).find_map(|name| self.rules.get(name));
        self.rules.get(rule).or_else(of_category).copied().unwrap_or_default()
    }
}

/// One entry of the list of what is known to be safe. A match must fit every scope that is given.
#[derive(Clone, Debug)]
pub struct KnownSafe {
    /// A regex that must fit the whole of the matched text.
    pub pattern: String,
    /// Id of the rule; `None` fits every rule.
    pub rule: Option<String>,
    /// This category and everything below it; `None` fits every category.
    pub category: Option<String>,
    /// Labels that the work must bear; empty fits any work.
    pub labels: BTreeMap<String, String>,
    /// Why this is safe; never empty.
    pub reason: String,
    /// Where it stands.
    pub place: Place,
}

impl PartialEq for KnownSafe {
    /// By what it says, wherever it stands.
    fn eq(&self, other: &Self) -> bool {
        let content = |one: &Self| {
            (
                one.pattern.clone(),
                one.rule.clone(),
                one.category.clone(),
                one.labels.clone(),
                one.reason.clone(),
            )
        };
        content(self) == content(other)
    }
}

/// What one file says about streams.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamsLayer {
    pub rules: BTreeMap<String, Mode>,
    pub families: Option<Vec<String>>,
    pub known_safe: Vec<KnownSafe>,
    pub cooldown: Option<Duration>,
    pub kill_from: Option<f64>,
    pub verdicts: [Option<VerdictKind>; 4],
    pub fail: [Option<FailMode>; 4],
}

impl StreamsLayer {
    /// `child` over this.
    pub fn extended(mut self, child: Self) -> Self {
        self.rules.extend(child.rules);
        self.known_safe.extend(child.known_safe);
        let nth = |severity: Severity| severity as usize;
        Self {
            rules: self.rules,
            families: child.families.or(self.families),
            known_safe: self.known_safe,
            cooldown: child.cooldown.or(self.cooldown),
            kill_from: child.kill_from.or(self.kill_from),
            verdicts: Severity::ALL.map(|s| child.verdicts[nth(s)].or(self.verdicts[nth(s)])),
            fail: Severity::ALL.map(|s| child.fail[nth(s)].or(self.fail[nth(s)])),
        }
    }

    /// With the defaults where no file says anything.
    pub fn settings(self) -> StreamSettings {
        let default = StreamSettings::default();
        let nth = |severity: Severity| severity as usize;
        StreamSettings {
            rules: self.rules,
            families: self.families.unwrap_or_default(),
            known_safe: self.known_safe,
            cooldown: self.cooldown.unwrap_or(default.cooldown),
            kill_from: self.kill_from.unwrap_or(default.kill_from),
            verdicts: Severity::ALL.map(|s| self.verdicts[nth(s)].unwrap_or(default.verdicts[nth(s)])),
            fail: Severity::ALL.map(|s| self.fail[nth(s)].unwrap_or(default.fail[nth(s)])),
        }
    }
}
