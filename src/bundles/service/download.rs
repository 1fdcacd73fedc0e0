//! Handing out bytes: the files of a bundle, freshly packed.

use std::fs::File;
use std::io::{BufWriter, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::record::{self, Action, Record};
use super::step::open;
use super::triage::admin;
use super::{Actor, SubmissionError, Submissions};
use crate::bundles::archive::ArchiveLimits;
use crate::bundles::pack;
use crate::bundles::spool::Spare;
use crate::decision::Visibility;
use crate::store::{BytesError, StoredSubmission};

/// An archive that is ready to be sent. Dropping it removes the file.
#[derive(Debug)]
pub struct Download {
    file: Spare,
    /// The submission that these bytes were uploaded as.
    pub submission_id: String,
    /// The entity they belong to.
    pub entity_id: String,
    /// A safe name for the file: letters, digits, `-`, `_` and `.`.
    pub file_name: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 of the archive, hex.
    pub sha256: String,
    /// Hash over the sorted files, hex.
    pub bundle_sha256: String,
}

impl Download {
    /// The archive, for as long as this value lives.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

impl Submissions {
    /// The submitted bytes, whatever the verdict. Recorded.
    ///
    /// # Errors
    /// The caller is no administrator, there is no such submission, or its bytes are gone.
    pub async fn download(&self, actor: &Actor, id: &str) -> Result<Download, SubmissionError> {
        admin(actor)?;
        let row = self.visible(actor, id).await?;
        let (download, _) = self.packed(&row).await?;
        let record = Record::by(Action::Downloaded, actor, record::submission(id), self.now()).bundle(&row);
        // Nothing is handed out that is not recorded.
        self.parts()
            .audit
            .append_audit(vec![record.with("sha256", download.sha256.as_str()).finish()])
            .await?;
        Ok(download)
    }

    /// The live, approved bytes of an entity. Archived ones are handed out too: existing installs keep them.
    ///
    /// # Errors
    /// There is no entity that the caller may see, or none of its versions is published.
    pub async fn download_entity(&self, actor: &Actor, id: &str) -> Result<Download, SubmissionError> {
        let entity = match self.visible_entity(actor, id).await {
            Ok(entity) => entity,
            // Whoever installed it before it was archived may go on to.
            Err(SubmissionError::NotFound { what, id }) => {
                let found = self.store().entity(actor.tenant.clone(), id.clone()).await?;
                let archived = found.filter(|row| row.visibility == Visibility::Archived);
                let live = archived.filter(|row| row.live_submission_id.is_some());
                live.ok_or(SubmissionError::NotFound { what, id })?
            }
            Err(error) => return Err(error),
        };
        let not_approved = || SubmissionError::NotApproved { id: id.to_owned() };
        if !matches!(entity.visibility, Visibility::Approved | Visibility::Archived) {
            return Err(not_approved());
        }
        let live = entity.live_submission_id.ok_or_else(not_approved)?;
        let row = self.store().submission(actor.tenant.clone(), live).await?.ok_or_else(not_approved)?;
        let (download, hash) = self.packed(&row).await?;
        // A verdict is about the very files that are handed out, whatever became of the bytes since.
        if hash.as_ref() != Some(&row.bundle_sha256) {
            tracing::error!(submission = row.id, "the kept bytes are not those that were approved");
            return Err(SubmissionError::Bytes("they are not those that were approved".to_owned()));
        }
        Ok(download)
    }

    /// The files as they are kept, with the hash over them.
    async fn packed(&self, row: &StoredSubmission) -> Result<(Download, Option<String>), SubmissionError> {
        if row.purged.is_some() {
            return Err(SubmissionError::Purged { id: row.id.clone() });
        }
        let kept = self.parts().spool.spare();
        match self.parts().bytes.get_file(row.id.clone(), kept.path().to_owned()).await {
            Ok(_) => {}
            // The purge came between looking and fetching.
            Err(BytesError::NotFound { .. }) => {
                return Err(SubmissionError::Purged { id: row.id.clone() });
            }
            Err(error) => return Err(SubmissionError::Bytes(error.to_string())),
        }
        let (file, limits) = (self.parts().spool.spare(), *self.limits());
        let packing = tokio::task::spawn_blocking(move || repack(&kept, file, limits)).await;
        let packed = packing.map_err(|_| "packing broke off".to_owned()).and_then(|packed| packed);
        let (file, size, sha256, hash) = packed.map_err(SubmissionError::Bytes)?;
        let download = Download {
            file,
            submission_id: row.id.clone(),
            entity_id: row.entity_id.clone(),
            file_name: file_name(&row.name, &row.version_text),
            size,
            sha256,
            // Of what is handed out, so that whoever compares sees that the kept bytes were changed.
            bundle_sha256: hash.clone().unwrap_or_else(|| row.bundle_sha256.clone()),
        };
        Ok((download, hash))
    }
}

/// A new archive: its file, size and hash, and the hash over the files in it.
type Repacked = (Spare, u64, String, Option<String>);

/// Packs the files of an archive afresh.
fn repack(kept: &Spare, file: Spare, limits: ArchiveLimits) -> Result<Repacked, String> {
    let source = open(kept.path()).map_err(|error| error.to_string())?;
    let out = private(file.path()).map_err(|error| error.to_string())?;
    let (out, files) =
        pack::repack(&source, limits, BufWriter::new(out)).map_err(|error| error.to_string())?;
    drop(out.into_inner().map_err(|error| error.to_string())?);
    let (mut hash, mut size) = (Sha256::new(), 0);
    let mut read = File::open(file.path()).map_err(|error| error.to_string())?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match read.read(&mut buffer).map_err(|error| error.to_string())? {
            0 => break,
            count => {
                hash.update(&buffer[..count]);
                size += count as u64;
            }
        }
    }
    let hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((file, size, hash, files))
}

/// A new file that only its owner can read.
fn private(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// A name that means the same on every system: `name-version.zip`, without anything that could lead elsewhere.
fn file_name(name: &str, version: &str) -> String {
    let safe = |text: &str| -> String {
        let kept = text.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' });
        let kept: String = kept.take(64).collect();
        kept.trim_matches(['-', '.']).to_owned()
    };
    let parts: Vec<String> =
        [safe(name), safe(version)].into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "bundle.zip".to_owned() } else { format!("{}.zip", parts.join("-")) }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn file_names_are_safe_everywhere() {
        for (name, version, wanted) in [
            ("notes", "1.2.0", "notes-1.2.0.zip"),
            ("notes", "", "notes.zip"),
            ("../../etc/passwd", "", "etc-passwd.zip"),
            ("..", "..", "bundle.zip"),
            ("a b\nc\"d", "v1/2", "a-b-c-d-v1-2.zip"),
            ("☃", "", "bundle.zip"),
        ] {
            assert_eq!(file_name(name, version), wanted, "{name}");
        }
        assert!(file_name(&"x".repeat(500), &"9".repeat(500)).len() < 140);
    }
}
