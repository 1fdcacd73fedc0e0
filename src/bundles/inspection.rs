//! What the inline checks say about one bundle.

use super::tree::Tree;
use crate::decision::{BundleChecks, Capability, CheckStatus, FileCoverage, Unjudged};

/// What a bundle says of itself in its manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Its name; empty when there is none that can be read.
    pub name: String,
    /// Its version as written; empty when it has none.
    pub version: String,
    /// Its description; empty when it has none.
    pub description: String,
}

/// The result of the inline checks.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// The checks; there is no review by a model among them.
    pub checks: BundleChecks,
    /// How much of each file was scanned, ordered by path. Empty when the archive was refused.
    pub coverage: Vec<FileCoverage>,
    /// What the bundle is able to do, ordered by file and line.
    pub capabilities: Vec<Capability>,
    /// Checks that did not run to their end.
    pub unjudged: Vec<Unjudged>,
    /// SHA-256 over the sorted files, hex; empty when the archive was refused.
    pub bundle_sha256: String,
    /// Number of files of the archive, those of nested archives not counted.
    pub file_count: u32,
    /// What the manifest says.
    pub manifest: Manifest,
    /// Whether something that an agent could run or read was not scanned.
    pub is_held_for_coverage: bool,
    /// The files, for the review by a model; `None` when the archive was refused.
    pub tree: Option<Tree>,
}

impl Inspection {
    /// Whether a check failed.
    pub fn is_blocked(&self) -> bool {
        let checks = &self.checks;
        [&checks.archive, &checks.manifest, &checks.static_security]
            .iter()
            .any(|check| check.status == CheckStatus::Fail)
    }
}
