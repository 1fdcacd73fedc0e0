//! A finding: one thing a detector saw, where it stands, and how bad it is.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How bad a finding is when it is certain.
///
/// Ordered: `Low < Medium < High < Critical`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth recording, harmless alone. Score 0.2.
    Low,
    /// Worth a warning. Score 0.5.
    Medium,
    /// Blocks under the default thresholds. Score 0.8.
    High,
    /// Blocks, and wakes somebody up. Score 1.0.
    Critical,
}

impl Severity {
    /// Every severity, mildest first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// The score of a certain finding of this severity, from 0.0 to 1.0.
    pub const fn score(self) -> f64 {
        match self {
            Self::Low => 0.2,
            Self::Medium => 0.5,
            Self::High => 0.8,
            Self::Critical => 1.0,
        }
    }

    /// The lower-case name used in rules, policies and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A dotted category such as `pii.email` or `prompt_injection.override`.
///
/// Dots build a hierarchy: a policy entry for `pii` holds for every category below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Category(Arc<str>);

impl Category {
    /// Wraps a category name as a rule or an extension gave it.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The whole dotted name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the first dot: `pii` of `pii.email`.
    pub fn family(&self) -> &str {
        self.0.split('.').next().unwrap_or_default()
    }

    /// The part after the last dot: `email` of `pii.email`.
    pub fn leaf(&self) -> &str {
        self.0.rsplit('.').next().unwrap_or_default()
    }

    /// Whether this category is `ancestor` or stands below it.
    pub fn is_within(&self, ancestor: &str) -> bool {
        self.0.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a finding stands: a half-open range of UTF-8 bytes in one field of one message, as the caller sent it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanRef {
    /// Index of the message in the request; 0 where a request has one text only.
    pub message_index: u32,
    /// JSON Pointer of the field in the message (`/text`, `/parts/0/json`, …), or the file in a bundle.
    pub path: Arc<str>,
    /// First byte, in UTF-8 bytes of the field.
    pub start: usize,
    /// One past the last byte, in UTF-8 bytes of the field.
    pub end: usize,
}

/// One thing a detector saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Id of the plugin that reports it: `injection`, `pii`, `secrets`, `code`, or a configured name.
    pub plugin: Arc<str>,
    /// Version of that plugin.
    pub plugin_version: Arc<str>,
    /// Stable id of the rule.
    pub rule_id: Arc<str>,
    /// What kind of thing was found.
    pub category: Category,
    /// How bad it is when certain.
    pub severity: Severity,
    /// `severity.score()` lowered by confidence, from 0.0 to 1.0.
    pub score: f64,
    /// One sentence for a person.
    pub description: Arc<str>,
    /// What to do about it; empty when there is nothing to say.
    pub recommendation: Arc<str>,
    /// Where it stands.
    pub span: SpanRef,
    /// Names of the text layers it was found through; empty when it stands in plain sight.
    pub evasions: Vec<&'static str>,
    /// Reported and counted, but without effect on the decision.
    pub shadow: bool,
    /// Silenced by a suppression of the policy; reported, without effect on the decision.
    pub suppressed: bool,
}

impl Finding {
    /// Whether this finding takes part in risk and decision.
    pub fn is_effective(&self) -> bool {
        !self.shadow && !self.suppressed
    }
}
