//! The self-check: every rule about code against its own examples, through the whole engine.

use super::rule::{BundleRule, Example, Matcher};
use super::{BundleRuleProblem, BundleRules};
use crate::bundles::code::{self, Language};
use crate::commands::CommandRules;
use crate::decision::CheckFinding;

/// Outcome of a self-check of bundle rules.
#[derive(Debug, Default)]
pub struct BundleSelfCheck {
    /// Rules checked.
    pub rules: usize,
    /// Texts checked.
    pub texts: usize,
    /// What is wrong.
    pub problems: Vec<BundleRuleProblem>,
}

impl BundleRules {
    /// Checks every rule whose file satisfies `is_wanted`: it must hold for its examples, and not for its negative examples
    /// and known misses. Rules about text are matched by their pattern alone.
    pub fn self_check(
        &self,
        commands: &CommandRules,
        is_wanted: impl Fn(&BundleRule) -> bool,
    ) -> BundleSelfCheck {
        let mut out = BundleSelfCheck::default();
        for rule in self.rules.iter().filter(|rule| is_wanted(rule)) {
            out.rules += 1;
            out.texts += rule.examples.len() + rule.negative_examples.len() + rule.known_misses.len();
            let mut wrong = |message: String| {
                let (file, line, rule_id) = (rule.file.clone(), rule.line, rule.id.clone());
                out.problems.push(BundleRuleProblem { file, line, rule_id, message });
            };
            for example in rule.examples.iter().filter(|example| !self.holds(rule, example, commands)) {
                wrong(format!("examples: {:?} is not seen", example.text));
            }
            for example in rule.negative_examples.iter().filter(|example| self.holds(rule, example, commands))
            {
                wrong(format!("negative_examples: {:?} is seen", example.text));
            }
            for example in rule.known_misses.iter().filter(|example| self.holds(rule, example, commands)) {
                wrong(format!("known_misses: {:?} is seen now; move it to examples", example.text));
            }
        }
        out
    }

    fn holds(&self, rule: &BundleRule, example: &Example, commands: &CommandRules) -> bool {
        if let Matcher::Text(condition) = &rule.matcher {
            return condition.find(&example.text).next().is_some();
        }
        let (language, name) = match example.language.as_str() {
            "javascript" => (Language::JavaScript, "example.js"),
            _ => (Language::Python, "example.py"),
        };
        let name = match &rule.matcher {
            Matcher::Call(condition) => condition.files.first().map_or(name, String::as_str),
            Matcher::Text(_) => name,
        };
        let report = code::scan(language, name, &example.text, self, commands);
        report.findings.iter().any(|found: &CheckFinding| found.rule_id == rule.id)
    }
}
