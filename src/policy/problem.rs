//! What is wrong with policy files: every problem at once, each with its place and its remedy.

use std::fmt;
use std::sync::Arc;

/// Where in the policy files something stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Path of the file as it was given.
    pub file: Arc<str>,
    /// Line from 1; `None` when the problem is with the file as a whole.
    pub line: Option<u64>,
    /// Column from 1, in characters; `None` together with `line`.
    pub column: Option<u64>,
    /// Dotted path of keys, such as `plugins.pii.timeout`; empty for the file as a whole.
    pub key: String,
}

impl Place {
    /// The file as a whole.
    pub(super) fn file(file: &str) -> Self {
        Self { file: file.into(), line: None, column: None, key: String::new() }
    }
}

/// One thing to put right before the policies can be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place.file)?;
        if let (Some(line), Some(column)) = (self.place.line, self.place.column) {
            write!(f, ":{line}:{column}")?;
        }
        if !self.place.key.is_empty() {
            write!(f, ": {}", self.place.key)?;
        }
        write!(f, ": {}; {}", self.what, self.fix)
    }
}

/// Why a set of policy files cannot be used: at least one problem, in the order of files and lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProblems(Vec<Problem>);

impl PolicyProblems {
    /// `Ok` when `problems` is empty. A problem that several policies inherit is told once.
    pub(super) fn check(mut problems: Vec<Problem>) -> Result<(), Self> {
        problems.sort();
        problems.dedup();
        if problems.is_empty() { Ok(()) } else { Err(Self(problems)) }
    }

    /// Problems of an engine with what the policies say; there is at least one.
    pub fn of(mut problems: Vec<Problem>) -> Self {
        problems.sort();
        problems.dedup();
        Self(problems)
    }

    /// A single problem with a file as a whole.
    pub(super) fn of_file(file: &str, what: String, fix: &str) -> Self {
        Self(vec![Problem { place: Place::file(file), what, fix: fix.to_owned() }])
    }

    /// The problems, in the order of files and lines.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }
}

impl fmt::Display for PolicyProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for PolicyProblems {}
