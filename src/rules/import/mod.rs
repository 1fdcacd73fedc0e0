//! Rules of other scanners, translated into rules of this one.
//!
//! What cannot be carried over is said rule by rule, never dropped in silence: a rule that is left out finds nothing, and
//! an exception that is left out alarms where it did not before.
//!
//! Does not: read or write files.

mod config;
mod gitleaks;
mod literals;
mod pattern;
mod sample;
mod shape;
mod syntax;
#[cfg(test)]
mod tests;

use crate::decision::Severity;

/// What an import yields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// The rule file, ready for `rules test` and for a folder of `rules.paths`.
    pub toml: String,
    /// Rules in it.
    pub rules: usize,
    /// Rules left out.
    pub left_out: usize,
    /// What is to be known, in the order of the rules.
    pub notes: Vec<ImportNote>,
}

impl Imported {
    /// Whether everything that decides about a text was carried over.
    pub fn is_whole(&self) -> bool {
        self.notes.iter().all(|note| note.weight == NoteWeight::Remark)
    }
}

/// How much a note weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteWeight {
    /// Nothing that texts usually hold was lost, such as a condition on paths or commits.
    Remark,
    /// The rule finds more or less than it did.
    Changed,
    /// The rule was left out.
    LeftOut,
}

impl NoteWeight {
    /// The name in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Remark => "remark",
            Self::Changed => "changed",
            Self::LeftOut => "left_out",
        }
    }
}

/// One thing to know about one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportNote {
    /// Id of the rule as its file has it; empty for the whole file.
    pub rule: String,
    /// How much it weighs.
    pub weight: NoteWeight,
    /// What was not carried over, or how.
    pub message: String,
}

/// A file that is none of the scanner's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", .line.map_or_else(String::new, |line| format!("line {line}: ")))]
pub struct ImportError {
    /// 1-based line; `None` for the file as a whole.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

/// Translates a configuration of gitleaks (`[[rules]]` with `regex`, `keywords`, `entropy` and allow-lists; see
/// <https://github.com/gitleaks/gitleaks#configuration>). All rules get `severity`, since gitleaks has none.
///
/// # Errors
/// A text that is no TOML of that shape.
pub fn import_gitleaks(text: &str, severity: Severity) -> Result<Imported, ImportError> {
    gitleaks::import(text, severity)
}
