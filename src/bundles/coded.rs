//! What the review of bundles looks for in code rather than by a rule of a file, told as rules are: for lists of rules and
//! for whoever follows a finding to what it means. Nothing here decides; tests hold it to what the checks do.

mod table;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use super::archive::{REFUSAL_FIX, Rule as ArchiveRule};
use crate::decision::{Category, Severity};
use table::{TOLD, Told};

/// One thing that is looked for in code.
#[derive(Debug)]
pub struct CodedRule {
    /// Stable id, as findings have it.
    pub id: &'static str,
    /// Category of its findings.
    pub category: Category,
    /// Severity of its findings; where it depends on the place, the worst.
    pub severity: Severity,
    /// One sentence for a person.
    pub description: &'static str,
    /// What to do.
    pub fix: &'static str,
    /// Files in which it is found, each with its path in the first line. None for archives, which are no text.
    pub examples: Vec<String>,
}

/// All of them, in the order of their ids.
pub fn coded_rules() -> &'static [CodedRule] {
    static ALL: LazyLock<Vec<CodedRule>> = LazyLock::new(|| {
        let mut all: Vec<CodedRule> = TOLD.iter().map(CodedRule::of).collect();
        all.extend(ArchiveRule::ALL.iter().map(|rule| CodedRule {
            id: rule.id(),
            category: Category::new("archive"),
            severity: Severity::High,
            description: rule.describe(),
            fix: REFUSAL_FIX,
            examples: Vec::new(),
        }));
        all.sort_unstable_by_key(|rule| rule.id);
        all
    });
    &ALL
}

impl CodedRule {
    fn of(told: &Told) -> Self {
        let shown = |(path, text): &(&str, &str)| format!("{path}\n{}", printable(text.trim_end()));
        Self {
            id: told.id,
            category: Category::new(told.category),
            severity: told.severity,
            description: told.description,
            fix: told.fix,
            examples: vec![told.files.iter().map(shown).collect::<Vec<_>>().join("\n\n")],
        }
    }
}

/// A text with what cannot be seen in it spelt out.
fn printable(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        if c != '\n' && (c.is_control() || super::lines::is_invisible(c)) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}
