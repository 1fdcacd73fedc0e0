//! What is wrong with a file of bundle rules, and where.

use std::fmt;

/// One problem in a file of bundle rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleRuleProblem {
    /// The file, as named when it was loaded.
    pub file: String,
    /// 1-based line where the rule (or the broken TOML) begins; 0 when unknown.
    pub line: usize,
    /// Id of the rule; empty when it is not about one.
    pub rule_id: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for BundleRuleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        f.write_str(": ")?;
        if !self.rule_id.is_empty() {
            write!(f, "rule `{}`: ", self.rule_id)?;
        }
        f.write_str(&self.message)
    }
}

/// Every problem found in one load, in the order of files and lines; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleRuleProblems(pub Vec<BundleRuleProblem>);

impl fmt::Display for BundleRuleProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, problem) in self.0.iter().enumerate() {
            if nth > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BundleRuleProblems {}
