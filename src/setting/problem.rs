//! One thing that is wrong with the settings.

use std::fmt;

/// One wrong setting. Problems are collected, so that an operator sees all of them at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Dotted key, such as `server.listen`; empty when the problem is not about one key.
    pub key: String,
    /// What is wrong and what would be right; lower case, no full stop.
    pub message: String,
    /// Where the value comes from, for a person: `file portcullis.yaml:3`, `env NAME`, `flag --x`; empty if unknown.
    pub origin: String,
}

impl Problem {
    /// A problem of `key`, whose origin is filled in by the gatherer of settings.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into(), origin: String::new() }
    }

    /// The same problem with a known origin.
    pub fn from(mut self, origin: impl Into<String>) -> Self {
        self.origin = origin.into();
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if !self.origin.is_empty() {
            write!(f, " ({})", self.origin)?;
        }
        Ok(())
    }
}

/// Runs the check of one section and puts the name of the section before each key that it reports.
pub fn check_section(section: &str, problems: &mut Vec<Problem>, check: impl FnOnce(&mut Vec<Problem>)) {
    let from = problems.len();
    check(problems);
    for problem in &mut problems[from..] {
        problem.key = format!("{section}.{}", problem.key);
    }
}
