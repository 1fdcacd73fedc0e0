//! The self-check: every rule against its own examples.
//!
//! Examples must be found, negative examples and known misses must not. An example that the pattern matches but the
//! gate would never offer to it is named as such, since a gate that loses a match is a bug in the rule.

use std::ops::Range;

use super::compile::CompiledRule;
use super::lost::{self, Lost};
use super::problem::RuleProblem;
use super::schema::{Role, Surface};
use super::set::{RuleSet, on_all_cores};

/// Finds what one rule finds in a text, through every text layer. Given by `detect`, which owns the layers.
pub type FindWith<'f> = dyn Fn(&RuleSet, u32, &str, Role, Surface) -> Vec<Range<usize>> + 'f;

/// Outcome of a self-check.
#[derive(Debug, Default)]
pub struct SelfCheck {
    /// Rules checked.
    pub rules: usize,
    /// Texts checked: examples, negative examples and known misses.
    pub texts: usize,
    /// What is wrong.
    pub problems: Vec<RuleProblem>,
}

/// Checks every rule of `set` whose file satisfies `is_wanted`.
pub fn self_check(
    set: &RuleSet,
    is_wanted: impl Fn(&CompiledRule) -> bool,
    find: &FindWith<'_>,
) -> SelfCheck {
    let mut out = SelfCheck::default();
    for (index, rule) in set.rules().iter().enumerate() {
        if is_wanted(rule) {
            out.rules += 1;
            check_rule(set, index as u32, rule, find, &mut out);
        }
    }
    out
}

/// What gates lose.
#[derive(Debug, Default)]
pub struct LostByGates {
    /// Texts that a pattern matches and for which its gate never opens, a note for each rule. That may be meant so.
    pub notes: Vec<RuleProblem>,
    /// Ids of rules of which it cannot be told.
    pub unknown: Vec<String>,
}

/// What the gates of the wanted rules lose. It takes up to a second of a processor for a rule, so it is for whoever waits for it,
/// not for a server.
pub fn lost_by_gates(set: &RuleSet, is_wanted: impl Fn(&CompiledRule) -> bool) -> LostByGates {
    let wanted: Vec<_> = set.rules().iter().filter(|rule| is_wanted(rule)).collect();
    let lost = on_all_cores(&wanted, |rule| lost::lost(rule));
    let mut out = LostByGates::default();
    for (rule, lost) in wanted.into_iter().zip(lost) {
        match lost {
            Some(Lost::Texts(texts)) if texts.is_empty() => {}
            Some(Lost::Texts(texts)) => {
                let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
                let texts = texts.join(", ");
                let message =
                    format!("also matches {texts}, where no literal opens its gate; add one, or narrow it");
                out.notes.push(problem_of(rule, "pattern", message));
            }
            Some(Lost::Unknown) | None => out.unknown.push(rule.def.id.clone()),
        }
    }
    out
}

fn problem_of(rule: &CompiledRule, field: &str, message: String) -> RuleProblem {
    RuleProblem {
        file: rule.info.file.to_string(),
        line: rule.info.line,
        rule_id: rule.def.id.clone(),
        field: field.to_owned(),
        message,
    }
}

fn check_rule(set: &RuleSet, index: u32, rule: &CompiledRule, find: &FindWith<'_>, out: &mut SelfCheck) {
    let def = &rule.def;
    let role = Role::ALL.into_iter().rev().find(|r| rule.applies_to_role(*r)).unwrap_or(Role::User);
    let surface = Surface::ALL.into_iter().find(|s| rule.applies_to_surface(*s)).unwrap_or(Surface::Text);
    let mut problem = |field: &str, message: String| out.problems.push(problem_of(rule, field, message));
    for (field, texts) in [("examples", &def.examples), ("negative_examples", &def.negative_examples)] {
        if texts.is_empty() {
            problem(field, "has none; give at least one".to_owned());
        }
    }
    for text in &def.examples {
        if find(set, index, text, role, surface).is_empty() {
            problem("examples", why_missed(rule, text));
        }
    }
    for text in &def.negative_examples {
        if let Some(at) = find(set, index, text, role, surface).first() {
            problem("negative_examples", format!("{text:?} is found, at bytes {}..{}", at.start, at.end));
        }
    }
    for text in &def.known_misses {
        if !find(set, index, text, role, surface).is_empty() {
            problem("known_misses", format!("{text:?} is found now; move it to examples"));
        }
    }
    out.texts += def.examples.len() + def.negative_examples.len() + def.known_misses.len();
}

fn why_missed(rule: &CompiledRule, text: &str) -> String {
    if !rule.regex.is_match(text) {
        return format!("{text:?} is not found: the pattern does not match it");
    }
    let lower = text.to_ascii_lowercase();
    let gated = rule.def.trigger.is_some()
        || rule.def.gate_literals().any(|l| lower.contains(&l.to_ascii_lowercase()));
    if gated {
        format!(
            "{text:?} is not found: the pattern matches, but a window, validator, exclusion or context word drops it"
        )
    } else {
        format!("{text:?} is lost by the gate: the pattern matches, but none of the literals occurs in it")
    }
}
