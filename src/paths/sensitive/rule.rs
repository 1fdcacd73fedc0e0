//! What a rule about sensitive paths says.

use std::sync::Arc;

use serde::Deserialize;

use super::pattern::Pattern;
use crate::decision::{Category, Severity};

/// What is done to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Its contents are read.
    Read,
    /// It is written, made or changed.
    Write,
    /// It is deleted.
    Delete,
}

impl Access {
    /// Every access.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Delete];

    /// The lower-case name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }
}

/// What a hit asks for, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathAction {
    /// Worth telling; natural work does this.
    Warn,
    /// Not without leave.
    Block,
}

/// Accesses that block, and accesses that only warn. What is in neither is nothing to the rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { block = ['read'] }")]
pub struct Accesses {
    /// Accesses that block.
    #[serde(default)]
    pub block: Vec<Access>,
    /// Accesses that warn.
    #[serde(default)]
    pub warn: Vec<Access>,
    /// Base names of programs whose block is a warning: they use the file and do not show it. For shell commands only.
    #[serde(default)]
    pub warn_programs: Vec<String>,
}

impl Accesses {
    /// Every access blocks.
    pub(super) fn all() -> Self {
        Self { block: Access::ALL.to_vec(), ..Self::default() }
    }

    /// What an access asks for.
    pub(super) fn action(&self, access: Access) -> Option<PathAction> {
        if self.block.contains(&access) {
            Some(PathAction::Block)
        } else {
            self.warn.contains(&access).then_some(PathAction::Warn)
        }
    }
}

/// One rule about sensitive paths.
#[derive(Debug)]
pub struct PathRule {
    /// Stable id: dashboards and suppressions name it.
    pub id: Arc<str>,
    /// Category, below `path`.
    pub category: Category,
    /// How bad a blocked access is. What only warns is reported as [`Severity::Medium`] at most.
    pub severity: Severity,
    /// The paths, as written.
    pub paths: Vec<String>,
    /// Names or paths that the rule does not mean, as written.
    pub except: Vec<String>,
    /// Whether files of a project's tests and dependencies are left out.
    pub allows_fixtures: bool,
    /// What counts when a file tool is called.
    pub file_tools: Accesses,
    /// What counts when a shell command does it.
    pub shell: Accesses,
    /// One sentence for a person.
    pub description: String,
    /// What to do.
    pub recommendation: String,
    /// Where the file is described.
    pub references: Vec<String>,
    /// Paths that the rule must block when a file tool uses them in some way.
    pub examples: Vec<String>,
    /// Paths that the rule must have nothing to say of.
    pub negative_examples: Vec<String>,
    /// Paths that the rule ought to see and does not yet.
    pub known_misses: Vec<String>,
    /// The file that the rule comes from.
    pub file: Arc<str>,
    /// 1-based line where it begins.
    pub line: usize,
    pub(super) exceptions: Vec<Pattern>,
}
