//! The self-check: every rule against its own examples.

use super::super::{Os, Place};
use super::SensitivePaths;
use super::judge::PathRequest;
use super::problem::PathRuleProblem;
use super::rule::{Access, PathAction, PathRule};

/// Outcome of a self-check of path rules.
#[derive(Debug, Default)]
pub struct PathSelfCheck {
    /// Rules checked.
    pub rules: usize,
    /// Paths checked.
    pub paths: usize,
    /// What is wrong.
    pub problems: Vec<PathRuleProblem>,
}

impl SensitivePaths {
    /// Checks every rule whose file satisfies `is_wanted`: it must hold for its examples, and not for its negative
    /// examples and known misses. An example that another, stricter rule takes is fine as long as it is blocked.
    pub fn self_check(&self, is_wanted: impl Fn(&PathRule) -> bool) -> PathSelfCheck {
        let mut out = PathSelfCheck::default();
        for rule in self.rules.iter().filter(|rule| is_wanted(rule)) {
            out.rules += 1;
            out.paths += rule.examples.len() + rule.negative_examples.len() + rule.known_misses.len();
            let mut wrong = |message: String| {
                let (file, line, rule_id) = (rule.file.to_string(), rule.line, rule.id.to_string());
                out.problems.push(PathRuleProblem { file, line, rule_id, message });
            };
            for path in &rule.examples {
                if !self.holds(rule, path) {
                    wrong(format!("examples: {path:?} is not seen"));
                }
            }
            for path in &rule.negative_examples {
                if self.holds(rule, path) {
                    wrong(format!("negative_examples: {path:?} is seen"));
                }
            }
            for path in &rule.known_misses {
                if self.holds(rule, path) {
                    wrong(format!("known_misses: {path:?} is seen now; move it to examples"));
                }
            }
        }
        out
    }

    /// Whether a rule, or one as strict in its place, holds for a path in some way it may be used.
    fn holds(&self, rule: &PathRule, path: &str) -> bool {
        let place = Place { os: Os::Linux, ..Place::default() };
        Access::ALL.into_iter().any(|access| {
            let Some(action) = rule.file_tools.action(access).or_else(|| rule.shell.action(access)) else {
                return false;
            };
            let request = PathRequest::of_file_tool(path, access, &place);
            let judged = [self.judge(&request), self.judge(&PathRequest::of_shell(path, access, "", &place))];
            judged.iter().filter_map(|judged| judged.hit.as_ref()).any(|hit| {
                std::ptr::eq(hit.rule, rule) || (hit.action >= action && action == PathAction::Block)
            })
        })
    }
}
