//! Sensitive paths: credentials, keys, system files and their like, as data, and the judgement of one path.

mod builtin;
mod fixtures;
mod glob;
mod index;
mod judge;
mod load;
mod names;
mod pattern;
mod problem;
mod rule;
mod selfcheck;

#[cfg(test)]
mod tests;

pub use builtin::builtin_path_sources;
pub use judge::{PathJudgement, PathRequest, SensitiveHit, Via};
pub use load::PathRuleSource;
pub use problem::{PathRuleProblem, PathRuleProblems};
pub use rule::{Access, Accesses, PathAction, PathRule};
pub use selfcheck::PathSelfCheck;

use fixtures::Fixtures;
use index::Index;

/// A set of rules about sensitive paths, ready to judge.
#[derive(Debug)]
pub struct SensitivePaths {
    rules: Vec<PathRule>,
    index: Index,
    fixtures: Fixtures,
}

impl SensitivePaths {
    /// Compiles rule files. Several files are one set, so ids are unique over all of them.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with any of them, with file and line.
    pub fn load(sources: &[PathRuleSource<'_>]) -> Result<Self, PathRuleProblems> {
        let load::Loaded { rules, patterns, fixtures } = load::load(sources)?;
        let mut index = Index::default();
        for (rule, patterns) in patterns.into_iter().enumerate() {
            patterns.into_iter().for_each(|pattern| index.add(pattern, rule));
        }
        Ok(Self { rules, index, fixtures })
    }

    /// Every rule, in the order of files and lines.
    pub fn rules(&self) -> &[PathRule] {
        &self.rules
    }
}
