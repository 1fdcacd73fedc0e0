//! What a rule over effects says.

use std::sync::Arc;

use regex_automata::meta::Regex;

use crate::decision::{Category, Severity};
use crate::shell::effect::{EffectKind, TargetKind};

/// One rule: which effects it means, and what to say about them.
#[derive(Debug)]
pub struct CommandRule {
    /// Stable id: dashboards and suppressions name it.
    pub id: Arc<str>,
    /// Category, below `command`.
    pub category: Category,
    /// How bad it is. HIGH and CRITICAL block under the default thresholds, MEDIUM warns.
    pub severity: Severity,
    /// How certain a hit is, above 0.0 up to 1.0; multiplies the severity's score.
    pub confidence: f64,
    /// Kinds of effects it means.
    pub effects: Vec<EffectKind>,
    /// One sentence for a person.
    pub description: String,
    /// What to do instead.
    pub recommendation: String,
    /// Where the danger is described.
    pub references: Vec<String>,
    /// Commands that the rule must hold for.
    pub examples: Vec<String>,
    /// Commands that the rule must not hold for.
    pub negative_examples: Vec<String>,
    /// Commands that the rule ought to hold for and does not yet.
    pub known_misses: Vec<String>,
    /// The file that the rule comes from.
    pub file: Arc<str>,
    /// 1-based line where it begins.
    pub line: usize,
    pub(super) condition: Condition,
}

/// What must hold of an effect besides its kind.
#[derive(Debug, Default)]
pub(super) struct Condition {
    /// Bits of classes, one of which the target must be in; 0 for any target or none.
    pub classes: u64,
    /// Bits of classes in none of which the target may be.
    pub not_classes: u64,
    /// Kinds of targets; empty for any or none.
    pub target_kinds: Vec<TargetKind>,
    pub recursive: Option<bool>,
    pub forced: Option<bool>,
    /// Whether the target's own glob characters count: it must or must not hold some.
    pub has_target: Option<bool>,
    pub programs: Vec<String>,
    pub not_programs: Vec<String>,
    pub details: Vec<String>,
    pub not_details: Vec<String>,
    pub detail: Option<Regex>,
    pub not_detail: Option<Regex>,
    pub target: Option<Regex>,
    pub not_target: Option<Regex>,
    pub via: Vec<String>,
    pub not_via: Vec<String>,
    /// Kinds of other effects, one of which the command must have too.
    pub with: Vec<EffectKind>,
}
