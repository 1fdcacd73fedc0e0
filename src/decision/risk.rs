//! From scores to risk to decision.
//!
//! The risk is the **maximum** over the effective findings, never a sum: a hundred harmless findings do not make a
//! dangerous one, and one dangerous finding is not diluted by harmless ones.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Finding;

/// What the caller may do. Ordered by strength; deny wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Decision {
    /// Go ahead.
    #[default]
    Allow,
    /// Go ahead, and let somebody know.
    Warn,
    /// A person must approve first.
    Ask,
    /// Do not.
    Block,
}

impl Decision {
    /// Every decision, mildest first.
    pub const ALL: [Self; 4] = [Self::Allow, Self::Warn, Self::Ask, Self::Block];

    /// The upper-case name, as in the contract without its prefix.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "ALLOW",
            Self::Warn => "WARN",
            Self::Ask => "ASK",
            Self::Block => "BLOCK",
        }
    }

    /// Exit code of `check`: 0 ALLOW, 1 WARN, 2 BLOCK, 3 ASK.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Warn => 1,
            Self::Block => 2,
            Self::Ask => 3,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The risk as a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RiskLevel {
    /// No effective finding.
    #[default]
    Safe,
    /// Below 0.3.
    Low,
    /// From 0.3 to below 0.7.
    Medium,
    /// From 0.7 to below 0.9.
    High,
    /// From 0.9.
    Critical,
}

impl RiskLevel {
    /// The level of a risk score; `None` means that there was no effective finding at all.
    pub fn of(score: Option<f64>) -> Self {
        match score {
            None => Self::Safe,
            Some(s) if s < 0.3 => Self::Low,
            Some(s) if s < 0.7 => Self::Medium,
            Some(s) if s < 0.9 => Self::High,
            Some(_) => Self::Critical,
        }
    }

    /// The upper-case name, as in the contract without its prefix.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "SAFE",
            Self::Low => "LOW",
            Self::Medium => "MEDIUM",
            Self::High => "HIGH",
            Self::Critical => "CRITICAL",
        }
    }
}

/// Highest score among the findings that count, or `None` when none does.
pub fn risk_score<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Option<f64> {
    findings.into_iter().filter(|f| f.is_effective()).map(|f| f.score).reduce(f64::max)
}

/// Scores from which a decision is made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Thresholds {
    /// WARN from this score, 0.0 to 1.0.
    pub warn: f64,
    /// BLOCK from this score, 0.0 to 1.0; at least `warn`.
    pub block: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { warn: 0.3, block: 0.7 }
    }
}

impl Thresholds {
    /// The decision for one score.
    pub fn decide(self, score: f64) -> Decision {
        if score >= self.block {
            Decision::Block
        } else if score >= self.warn {
            Decision::Warn
        } else {
            Decision::Allow
        }
    }
}

/// What a plugin, rule, category or interceptor may do to a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Findings count.
    #[default]
    Enforce,
    /// Findings are reported and counted as would-block, and never change the decision.
    Shadow,
    /// Does not run.
    Off,
}
