//! What is wrong with a rule, where, and what to do about it.

use std::fmt;

/// One problem in a rule file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleProblem {
    /// The file, as named when it was loaded.
    pub file: String,
    /// 1-based line where the rule (or the broken TOML) begins; 0 when unknown.
    pub line: usize,
    /// Id of the rule; empty when the file could not be read as rules.
    pub rule_id: String,
    /// Field of the rule that is wrong; empty when it is not one field.
    pub field: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for RuleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        f.write_str(": ")?;
        if !self.rule_id.is_empty() {
            write!(f, "rule `{}`", self.rule_id)?;
            if !self.field.is_empty() {
                write!(f, ", {}", self.field)?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

/// Every problem found in one load, in the order of files and lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleProblems(pub Vec<RuleProblem>);

impl fmt::Display for RuleProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for RuleProblems {}
