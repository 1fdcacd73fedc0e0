//! The inline checks of one bundle, in the order in which they depend on each other.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::archive::{Archive, ArchiveLimits, Entry, REFUSAL_FIX, Refusal, Source, Totals};
use super::inspection::{Inspection, Manifest};
use super::manifest::Candidates;
use super::mask;
use super::prepare::PreparedBundles;
use super::scan::{Engines, follow_runs};
use super::siblings::ArchiveTexts;
use super::unpack::Unpack;
use super::weigh::{Scales, Terms};
use super::work::{UNITS_MIN, Work};
use crate::decision::{BundleKind, Category, CheckFinding, CheckResult, CheckStatus, Severity};
use crate::detect::redact::{Placeholders, redact_plain};
use crate::detect::{SECRETS, Scanner};
use crate::policy::Snapshot;
use crate::rules::Surface;

/// How much a bundle may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InspectLimits {
    /// Limits of the archive and those within it.
    pub archive: ArchiveLimits,
    /// Work that a bundle of up to 50 MB may make, in units of about a nanosecond; larger ones may make more, in proportion to
    /// their bytes. What is left when it is spent is listed in the coverage and holds the bundle.
    pub work_units_min: u64,
}

impl Default for InspectLimits {
    fn default() -> Self {
        Self { archive: ArchiveLimits::default(), work_units_min: UNITS_MIN }
    }
}

/// Bundles of at most so many bytes are scanned in the order of their paths: hardly anything makes them too much work.
const UNORDERED_BYTES_MAX: u64 = 1 << 20;

/// Runs the inline checks. Immutable and shared; cheap to make.
#[derive(Clone)]
pub struct Inspector {
    scanner: Arc<Scanner>,
    rules: PreparedBundles,
    limits: InspectLimits,
    /// Name of the folder that the bundle was packed from; empty where nothing tells.
    folder: String,
}

impl Inspector {
    /// Checks under the rules of `scanner` and the built-in rules about commands, paths and bundles.
    pub fn new(scanner: Arc<Scanner>, limits: InspectLimits) -> Self {
        Self { scanner, rules: PreparedBundles::default(), limits, folder: String::new() }
    }

    /// Checks under the rules that are in force.
    pub fn of(snapshot: &Snapshot, limits: InspectLimits) -> Self {
        let rules = snapshot.prepared::<PreparedBundles>().cloned().unwrap_or_default();
        Self { scanner: snapshot.shared_scanner().clone(), rules, limits, folder: String::new() }
    }

    /// Checks bundles that were packed from a folder of this name, with its files at the top: a skill is called like its
    /// folder.
    #[must_use]
    pub fn packed_from(mut self, folder: &str) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

    /// Checks one bundle under the built-in policy. Memory is bounded whatever it holds: large files are read piece by
    /// piece.
    pub fn inspect(&self, source: &dyn Source, kind: BundleKind) -> Inspection {
        self.inspect_under(source, kind, Terms::strict())
    }

    /// Checks one bundle under a policy.
    pub fn inspect_under(&self, source: &dyn Source, kind: BundleKind, terms: Terms<'_>) -> Inspection {
        self.unpack(source, kind, terms).unwrap_or_else(|refusal| refused(&refusal))
    }

    fn unpack(&self, source: &dyn Source, kind: BundleKind, terms: Terms<'_>) -> Result<Inspection, Refusal> {
        let archive = Archive::open(source, &self.limits.archive)?;
        let mut totals = Totals::new(self.limits.archive, source.len());
        totals.add_entries(archive.entries().len())?;
        let mut files: Vec<&Entry> = archive.entries().iter().filter(|entry| !entry.is_folder).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let siblings = ArchiveTexts::new(&archive, &files, &self.limits.archive);
        let engines = Engines {
            scanner: &self.scanner,
            commands: self.rules.commands(),
            rules: self.rules.rules(),
            patterns: self.rules.patterns(),
            siblings: &siblings,
        };
        let mut unpack = Unpack::new(
            &engines,
            &self.limits.archive,
            Candidates::new(kind).packed_from(&self.folder),
            Work::new(self.limits.work_units_min),
        );
        let bytes: u64 = files.iter().map(|entry| entry.size).sum();
        // Never more than an archive may be: what claims more is refused when it is read.
        unpack.found.work.expect(bytes.min(self.limits.archive.unpacked_max));
        if bytes > UNORDERED_BYTES_MAX {
            unpack.first(&archive, &files, Totals::new(self.limits.archive, source.len()));
        }
        let mut hash = Sha256::new();
        for entry in &files {
            hash.update(&entry.path);
            hash.update([0]);
            unpack.entry(&archive, entry, &mut totals, &mut |piece| hash.update(piece))?;
            hash.update([0]);
        }
        follow_runs(&engines, &mut unpack.found);
        self.rules.patterns().keep(std::mem::take(&mut unpack.found.memory));
        let names: Vec<&str> = files.iter().map(|entry| entry.path.as_str()).collect();
        let scales = Scales::new(terms, &self.scanner, self.rules.commands());
        Ok(finish(unpack, &names, &hash.finalize(), &scales))
    }
}

/// Puts the answer together from what was noted on the way.
fn finish(unpack: Unpack<'_>, names: &[&str], hash: &[u8], scales: &Scales<'_>) -> Inspection {
    let Unpack { candidates, ledger, quality, mut tree, found, archive, unjudged, .. } = unpack;
    let mut checked = candidates.check(names);
    let mut inspection = Inspection {
        bundle_sha256: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
        file_count: u32::try_from(names.len()).unwrap_or(u32::MAX),
        is_held_for_coverage: ledger.is_held(),
        coverage: ledger.into_files(),
        capabilities: found.capabilities,
        unjudged,
        work_units: found.work.spent(),
        ..Inspection::default()
    };
    inspection.capabilities.sort_by(|a, b| (&a.file, a.line, &a.kind).cmp(&(&b.file, b.line, &b.kind)));
    inspection.capabilities.dedup();
    let (findings, placeholders, advice) = quality.finish(&checked);
    let checks = &mut inspection.checks;
    checks.archive = archive.into_result();
    let manifest = std::mem::take(&mut checked.findings).weighed(scales, CheckStatus::Fail);
    let security = found.findings.weighed(scales, CheckStatus::Fail);
    for (weighed, check) in [(&manifest, "bundles.manifest"), (&security, "bundles.static_security")] {
        inspection.would_block.extend(weighed.would_block.then(|| check.to_owned()));
    }
    checks.manifest = manifest.result;
    checks.static_security = security.result;
    checks.quality = findings.weighed(scales, CheckStatus::Warn).result;
    let results =
        [&mut checks.archive, &mut checks.manifest, &mut checks.static_security, &mut checks.quality];
    for finding in results.into_iter().flat_map(|result| &mut result.findings) {
        finding.snippet = mask(scales.scanner(), &finding.snippet);
    }
    name_plainly(&mut inspection, scales.scanner());
    let checks = &mut inspection.checks;
    checks.template_placeholders = placeholders;
    checks.template_recommendation = advice;
    tree.files.sort_by(|a, b| a.path.cmp(&b.path));
    tree.root = checked.root;
    tree.primary = checked.primary;
    inspection.manifest = checked.manifest;
    // What is listed of a bundle is shown to many; a credential in it is found above, and told nowhere. The description is
    // prose of a person, as lines of files are.
    let Manifest { name, version, description } = &mut inspection.manifest;
    for text in [name, version] {
        *text = without_secrets(scales.scanner(), text);
    }
    *description = mask(scales.scanner(), description);
    inspection.tree = Some(tree);
    inspection
}

/// Takes the credentials out of the paths that are told. Personal data in them stays: by its path a file is found again.
fn name_plainly(inspection: &mut Inspection, scanner: &Scanner) {
    let checks = &mut inspection.checks;
    let results =
        [&mut checks.archive, &mut checks.manifest, &mut checks.static_security, &mut checks.quality];
    let findings = results.into_iter().flat_map(|result| &mut result.findings).map(|one| &mut one.file);
    let files = inspection.coverage.iter_mut().map(|file| &mut file.path);
    let capabilities = inspection.capabilities.iter_mut().map(|one| &mut one.file);
    for path in findings.chain(files).chain(capabilities).filter(|path| has_room_for_a_key(path)) {
        *path = without_secrets(scanner, path);
    }
}

/// Whether a path has a name in it that is as long and as mixed as keys are; hardly any has.
fn has_room_for_a_key(path: &str) -> bool {
    const KEY_BYTES_MIN: usize = 16;
    path.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-')).any(|name| {
        name.len() >= KEY_BYTES_MIN
            && name.bytes().any(|byte| byte.is_ascii_digit())
            && name.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

/// A text of the manifest, or a path, without the credentials in it.
fn without_secrets(scanner: &Scanner, text: &str) -> String {
    let is_secret = |category: &Category| category.family() == SECRETS;
    redact_plain(scanner, text, Surface::Document, &mut Placeholders::default(), is_secret)
}

/// The answer about an archive that was refused.
fn refused(refusal: &Refusal) -> Inspection {
    let finding = refusal_finding(refusal, &refusal.entry);
    let mut inspection = Inspection::default();
    inspection.checks.archive = CheckResult { status: CheckStatus::Fail, findings: vec![finding] };
    inspection
}

/// A refusal as a finding about `file`.
pub(super) fn refusal_finding(refusal: &Refusal, file: &str) -> CheckFinding {
    CheckFinding {
        rule_id: refusal.rule.id().to_owned(),
        file: file.to_owned(),
        line: 0,
        category: "archive".to_owned(),
        severity: Severity::High,
        reason: format!("The archive is refused: {}.", refusal.message),
        fix_hint: REFUSAL_FIX.to_owned(),
        ..CheckFinding::default()
    }
}

#[cfg(test)]
mod tests;
