//! What is wrong with a rule, where, and what to do about it.

use std::fmt;

/// One problem in a rule file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleProblem {
    /// The file, as named when it was loaded.
    pub file: String,
    /// 1-based line of the field, where it is one of a file that is loaded, else where the rule (or the broken TOML) begins;
    /// 0 when unknown.
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

/// Moves problems of rules that begin at a line of `text` to the lines of their fields, as far as these begin a line.
pub(super) fn at_fields<'p>(problems: impl Iterator<Item = &'p mut RuleProblem>, text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    for problem in problems.filter(|problem| problem.line > 0 && !problem.field.is_empty()) {
        let is_field = |line: &&str| {
            let rest = line.trim_start().strip_prefix(&*problem.field);
            rest.is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        let own = lines.iter().skip(problem.line).take_while(|line| !line.starts_with("[["));
        if let Some(after) = own.into_iter().position(is_field) {
            problem.line += after + 1;
        }
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
