//! The inline checks of one bundle, in the order in which they depend on each other.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::archive::{Archive, ArchiveLimits, Entry, Refusal, Source, Totals};
use super::coverage::{Ledger, Unscanned};
use super::inspection::Inspection;
use super::tree::Tree;
use crate::decision::{BundleKind, CheckFinding, CheckResult, CheckStatus, Severity};
use crate::detect::Scanner;

/// How much a bundle may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InspectLimits {
    /// Limits of the archive and those within it.
    pub archive: ArchiveLimits,
}

/// Runs the inline checks. Immutable and shared; cheap to make.
#[derive(Clone)]
pub struct Inspector {
    scanner: Arc<Scanner>,
    limits: InspectLimits,
}

impl Inspector {
    /// Checks under the rules of `scanner` and the built-in rules about commands, paths and bundles.
    pub fn new(scanner: Arc<Scanner>, limits: InspectLimits) -> Self {
        Self { scanner, limits }
    }

    /// Checks one bundle. The archive is read twice at most; memory is bounded whatever it holds.
    pub fn inspect(&self, source: &dyn Source, kind: BundleKind) -> Inspection {
        let _ = (kind, &self.scanner);
        match self.unpack(source) {
            Ok(inspection) => inspection,
            Err(refusal) => refused(&refusal),
        }
    }

    fn unpack(&self, source: &dyn Source) -> Result<Inspection, Refusal> {
        let archive = Archive::open(source, &self.limits.archive)?;
        let mut totals = Totals::new(self.limits.archive, source.len());
        totals.add_entries(archive.entries().len())?;
        let mut files: Vec<&Entry> = archive.entries().iter().filter(|entry| !entry.is_folder).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let (mut hash, mut ledger, mut tree) = (Sha256::new(), Ledger::default(), Tree::default());
        for entry in &files {
            hash.update(&entry.path);
            hash.update([0]);
            let mut content = archive.read(entry, &mut totals);
            while let Some(piece) = content.next_piece()? {
                hash.update(piece);
            }
            hash.update([0]);
            ledger.unscanned(&entry.path, entry.size, Unscanned::Binary);
            tree.add(entry.path.clone(), entry.size, entry.is_executable, None);
        }
        let mut inspection = Inspection {
            bundle_sha256: hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
            file_count: files.len() as u32,
            is_held_for_coverage: ledger.is_held(),
            coverage: ledger.into_files(),
            tree: Some(tree),
            ..Inspection::default()
        };
        inspection.checks.archive.status = CheckStatus::Pass;
        Ok(inspection)
    }
}

/// The answer about an archive that was refused.
fn refused(refusal: &Refusal) -> Inspection {
    let finding = CheckFinding {
        rule_id: refusal.rule.id().to_owned(),
        file: refusal.entry.clone(),
        line: 0,
        category: "archive".to_owned(),
        severity: Severity::High,
        reason: format!("The archive is refused: {}.", refusal.message),
        snippet: String::new(),
        fix_hint: "Pack the folder again with an ordinary tool, files only.".to_owned(),
    };
    let mut inspection = Inspection::default();
    inspection.checks.archive = CheckResult { status: CheckStatus::Fail, findings: vec![finding] };
    inspection
}
