//! What is wrong with a file of command rules, and where.

use std::fmt;

/// One problem in a file of command rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRuleProblem {
    /// The file, as named when it was loaded.
    pub file: String,
    /// 1-based line where the rule, the class or the broken TOML begins; 0 when unknown.
    pub line: usize,
    /// Id of the rule, or name of the class; empty when it is about neither.
    pub rule_id: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for CommandRuleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        f.write_str(": ")?;
        if !self.rule_id.is_empty() {
            write!(f, "`{}`: ", self.rule_id)?;
        }
        f.write_str(&self.message)
    }
}

/// Every problem found in one load, in the order of files and lines; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRuleProblems(pub Vec<CommandRuleProblem>);

impl fmt::Display for CommandRuleProblems {
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

impl std::error::Error for CommandRuleProblems {}
