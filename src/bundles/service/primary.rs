//! The document of a bundle that says what it is, as the check of the manifest chooses it.

use std::path::Path;

use super::step::open;
use super::triage::check_id;
use super::{Actor, SubmissionError, Submissions};
use crate::bundles::archive::{Archive, ArchiveLimits, Source as _, Totals};
use crate::bundles::manifest::Candidates;
use crate::decision::BundleKind;
use crate::store::BytesError;

/// Most documents that are looked at.
const DOCUMENTS_MAX: usize = 500;
/// Largest document that is looked at, in bytes.
const DOCUMENT_BYTES_MAX: u64 = 256 * 1024;
/// Most bytes of all documents that are looked at.
const TOTAL_BYTES_MAX: u64 = 4 * 1024 * 1024;

impl Submissions {
    /// Path of the primary document of a submission; `None` where there is none, or its bytes are gone.
    ///
    /// # Errors
    /// There is no such submission that the caller may see, or its bytes cannot be read.
    pub async fn primary(&self, actor: &Actor, id: &str) -> Result<Option<String>, SubmissionError> {
        check_id(id, "submission_id")?;
        let row = self.visible(actor, id).await?;
        if row.purged.is_some() {
            return Ok(None);
        }
        let kept = self.parts().spool.spare();
        match self.parts().bytes.get_file(row.id.clone(), kept.path().to_owned()).await {
            Ok(_) => {}
            Err(BytesError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(SubmissionError::Bytes(error.to_string())),
        }
        let (limits, kind) = (*self.limits(), row.kind);
        let reading = tokio::task::spawn_blocking(move || chosen(kept.path(), limits, kind));
        reading.await.map_err(|_| SubmissionError::Bytes("reading broke off".to_owned()))
    }
}

/// What the check chooses among the documents of an archive. What cannot be read is left out: the checks have told why.
fn chosen(archive: &Path, limits: ArchiveLimits, kind: BundleKind) -> Option<String> {
    let source = open(archive).ok()?;
    let archive = Archive::open(&source, &limits).ok()?;
    let mut totals = Totals::new(limits, source.len());
    let (mut candidates, mut left) = (Candidates::new(kind), TOTAL_BYTES_MAX);
    let files = archive.entries().iter().filter(|entry| !entry.is_folder);
    let names: Vec<&str> = files.clone().map(|entry| entry.path.as_str()).collect();
    let documents = files.filter(|entry| [".md", ".json"].iter().any(|end| is_called(&entry.path, end)));
    for entry in documents.take(DOCUMENTS_MAX) {
        if entry.size > DOCUMENT_BYTES_MAX.min(left) {
            continue;
        }
        left -= entry.size;
        let Ok(bytes) = archive.read(entry, &mut totals).to_end() else { continue };
        candidates.note(&entry.path, &String::from_utf8_lossy(&bytes), true);
    }
    Some(candidates.check(&names).primary).filter(|path| !path.is_empty())
}

fn is_called(path: &str, end: &str) -> bool {
    path.len() >= end.len()
        && path.is_char_boundary(path.len() - end.len())
        && path[path.len() - end.len()..].eq_ignore_ascii_case(end)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::write::SimpleFileOptions;

    use super::*;

    #[test]
    fn an_agent_is_told_by_the_document_that_introduces_it() {
        let agent = "---\nname: helper\ndescription: Helps.\n---\nYou help.";
        for (files, kind, wanted) in [
            (&[("README.md", "# Read"), ("my-agent.md", agent)][..], BundleKind::Agent, Some("my-agent.md")),
            (&[("README.md", "# Read"), ("agents/a.MD", agent)], BundleKind::Agent, Some("agents/a.MD")),
            (&[("AGENTS.md", "# Agents"), ("b.md", agent)], BundleKind::Agent, Some("b.md")),
            (&[("README.md", "# Read")], BundleKind::Agent, Some("README.md")),
            (&[("a.txt", agent)], BundleKind::Agent, None),
            (&[("a/SKILL.md", agent), ("README.md", "x")], BundleKind::Skill, Some("a/SKILL.md")),
            (
                &[(".claude-plugin/plugin.json", "{\"name\": \"a\"}")],
                BundleKind::Plugin,
                Some(".claude-plugin/plugin.json"),
            ),
        ] {
            let file = tempfile::NamedTempFile::new().expect("a file");
            let mut writer = zip::ZipWriter::new(file.reopen().expect("the same"));
            for (path, text) in files {
                writer.start_file(*path, SimpleFileOptions::default()).expect("a new file");
                writer.write_all(text.as_bytes()).expect("written");
            }
            writer.finish().expect("a whole archive");
            let found = chosen(file.path(), ArchiveLimits::default(), kind);
            assert_eq!(found.as_deref(), wanted, "{files:?}");
        }
    }
}
