//! The self-check: every rule about code against its own examples, through the whole engine.

use super::BundleRules;
use super::rule::{BundleRule, Matcher, TextCondition};
use crate::bundles::code::{self, Language};
use crate::bundles::flow::{self, World};
use crate::commands::CommandRules;
use crate::rules::RuleProblem;
use crate::rules::caches::Caches;

/// Outcome of a self-check of bundle rules.
#[derive(Debug, Default)]
pub struct BundleSelfCheck {
    /// Rules checked.
    pub rules: usize,
    /// Texts checked.
    pub texts: usize,
    /// What is wrong.
    pub problems: Vec<RuleProblem>,
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
            let (found, not_found, missed) = (&rule.examples, &rule.negative_examples, &rule.known_misses);
            out.rules += 1;
            out.texts += found.texts.len() + not_found.texts.len() + missed.texts.len();
            let mut wrong = |message: String| {
                let (file, line, rule_id) = (rule.file.clone(), rule.line, rule.id.clone());
                out.problems.push(RuleProblem { file, line, rule_id, field: String::new(), message });
            };
            for (language, text) in found.iter() {
                if !self.holds(rule, language, text, commands) {
                    wrong(format!("examples: {text:?} is not seen"));
                }
            }
            for (language, text) in not_found.iter() {
                if self.holds(rule, language, text, commands) {
                    wrong(format!("negative_examples: {text:?} is seen"));
                }
            }
            for (language, text) in missed.iter() {
                if self.holds(rule, language, text, commands) {
                    wrong(format!("known_misses: {text:?} is seen now; move it to examples"));
                }
            }
        }
        out
    }

    fn holds(&self, rule: &BundleRule, language: &str, text: &str, commands: &CommandRules) -> bool {
        let files = match &rule.matcher {
            Matcher::Call(condition) => &condition.files,
            Matcher::Text(condition) => {
                let mut is_found = false;
                let mut caches = Caches::new(TextCondition::SLOTS);
                condition.each(text, (&mut caches, 0), u64::MAX, &mut |_| is_found = true);
                return is_found;
            }
            Matcher::Flow(condition) => {
                let Some(tongue) = self.flows().tongue(language) else { return false };
                let world =
                    World { facts: self.flows(), is_secret: &|path: &str| self.is_private_place(path) };
                return flow::follow(text, tongue, &world).found.iter().any(|reach| condition.holds(reach));
            }
        };
        let (language, name) = match language {
            "javascript" => (Language::JavaScript, "example.js"),
            _ => (Language::Python, "example.py"),
        };
        let name = files.first().map_or(name, String::as_str);
        let report = code::scan(language, name, text, self, commands);
        report.findings.iter().any(|found| found.rule_id == rule.id)
    }
}
