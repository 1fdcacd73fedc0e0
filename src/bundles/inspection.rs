//! What the inline checks say about one bundle.

use super::tree::Tree;
use crate::decision::{BundleChecks, Capability, CheckStatus, Decision, FileCoverage, Unjudged};

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
    /// The checks that would have blocked, had what a policy has on trial been in force.
    pub would_block: Vec<String>,
    /// The files, for the review by a model; `None` when the archive was refused.
    pub tree: Option<Tree>,
    /// Units of work that the bundle made; what a unit is and how many there may be stands in `bundles::work`. The same for
    /// the same bytes and rules.
    pub work_units: u64,
}

/// What follows from the inline checks, whoever ran them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InlineVerdict {
    /// Something must not be published, or nothing could be opened.
    Blocked,
    /// Nothing was found, and not everything was looked at: a person decides.
    Held,
    /// Nothing is in the way.
    Passed,
}

impl Inspection {
    /// What follows. A check that did not run to its end never passes, unless its failing is to have no effect.
    pub fn verdict(&self) -> InlineVerdict {
        let unjudged = self.unjudged.iter().map(Unjudged::decision).max().unwrap_or_default();
        // A bundle of which nothing could be opened did not pass anything.
        if self.is_blocked() || self.bundle_sha256.is_empty() || unjudged == Decision::Block {
            InlineVerdict::Blocked
        } else if self.is_held_for_coverage || unjudged > Decision::Allow {
            InlineVerdict::Held
        } else {
            InlineVerdict::Passed
        }
    }

    /// Whether a check failed.
    pub fn is_blocked(&self) -> bool {
        let checks = &self.checks;
        [&checks.archive, &checks.manifest, &checks.static_security]
            .iter()
            .any(|check| check.status == CheckStatus::Fail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{FailMode, Reason};

    #[test]
    fn what_was_not_judged_never_passes() {
        let unjudged = |mode: FailMode, shadow: bool| {
            vec![Unjudged {
                plugin: "static_security".into(),
                reason: Reason::Limit,
                detail: String::new(),
                fail_mode: mode,
                shadow,
            }]
        };
        use InlineVerdict::{Blocked, Held, Passed};
        for (hash, is_failed, is_held, unjudged, wanted) in [
            ("ab", false, false, vec![], Passed),
            ("ab", false, true, vec![], Held),
            ("ab", true, true, vec![], Blocked),
            ("", false, false, vec![], Blocked),
            ("ab", false, false, unjudged(FailMode::Ask, false), Held),
            ("ab", false, false, unjudged(FailMode::Closed, false), Blocked),
            ("ab", false, false, unjudged(FailMode::Open, false), Passed),
            ("ab", false, false, unjudged(FailMode::Closed, true), Passed),
            ("ab", true, false, unjudged(FailMode::Ask, false), Blocked),
        ] {
            let mut inspection = Inspection {
                bundle_sha256: hash.to_owned(),
                is_held_for_coverage: is_held,
                unjudged,
                ..Inspection::default()
            };
            if is_failed {
                inspection.checks.manifest.status = CheckStatus::Fail;
            }
            assert_eq!(inspection.verdict(), wanted, "{inspection:?}");
        }
    }
}
