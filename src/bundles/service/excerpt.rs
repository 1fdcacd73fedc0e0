//! Lines of the files of a submission, for whoever looks at what was found in them.

use super::step::open;
use super::triage::check_id;
use super::{Actor, SubmissionError, Submissions};
use crate::bundles::archive::{Archive, ArchiveLimits, Source, Totals};
use crate::bundles::files::decode;
use crate::store::BytesError;

/// Most files that are looked into at once.
const FILES_MAX: usize = 20;
/// Largest file that is looked into, in bytes.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Most bytes of all files that are looked into at once.
const TOTAL_BYTES_MAX: u64 = 1024 * 1024;
/// Longest line that is answered, in bytes.
const LINE_BYTES_MAX: usize = 400;

/// Lines of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLines {
    /// Its path in the bundle.
    pub path: String,
    /// Its lines, credentials and personal data masked, from the first.
    pub lines: Vec<String>,
}

impl Submissions {
    /// The lines of those of `paths` that can be shown: files at the top level of the archive that are text and not large.
    /// Files in nested archives are left out, and so is one that could not be masked.
    ///
    /// # Errors
    /// There is no such submission that the caller may see, or its bytes are gone.
    pub async fn lines(
        &self,
        actor: &Actor,
        id: &str,
        paths: Vec<String>,
    ) -> Result<Vec<FileLines>, SubmissionError> {
        check_id(id, "submission_id")?;
        let row = self.visible(actor, id).await?;
        let purged = || SubmissionError::Purged { id: row.id.clone() };
        if row.purged.is_some() {
            return Err(purged());
        }
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let kept = self.parts().spool.spare();
        match self.parts().bytes.get_file(row.id.clone(), kept.path().to_owned()).await {
            Ok(_) => {}
            Err(BytesError::NotFound { .. }) => return Err(purged()),
            Err(error) => return Err(SubmissionError::Bytes(error.to_string())),
        }
        let (this, limits) = (self.clone(), *self.limits());
        let reading = tokio::task::spawn_blocking(move || {
            let Ok(source) = open(kept.path()) else { return Vec::new() };
            let files = texts(&source, limits, &paths);
            files.into_iter().filter_map(|(path, text)| this.shown(path, &text)).collect()
        });
        reading.await.map_err(|_| SubmissionError::Bytes("reading broke off".to_owned()))
    }

    /// The same of an archive that is not kept. What cannot be read is left out: the checks have told why.
    pub async fn lines_of(&self, archive: Vec<u8>, paths: Vec<String>) -> Vec<FileLines> {
        let (this, limits) = (self.clone(), *self.limits());
        let reading = tokio::task::spawn_blocking(move || {
            let files = texts(archive.as_slice(), limits, &paths);
            files.into_iter().filter_map(|(path, text)| this.shown(path, &text)).collect()
        });
        reading.await.unwrap_or_default()
    }

    /// A file as it may be shown; `None` where it could not be masked, so that a line would stand at another number.
    fn shown(&self, path: String, text: &str) -> Option<FileLines> {
        let masked = self.masked(text);
        let is_aligned = masked.lines().count() == text.lines().count();
        let cut = |line: &str| {
            let end = line.floor_char_boundary(LINE_BYTES_MAX);
            if end < line.len() { format!("{}…", &line[..end]) } else { line.to_owned() }
        };
        is_aligned.then(|| FileLines { path, lines: masked.lines().map(cut).collect() })
    }
}

/// The texts of files of an archive. What cannot be read is left out: the checks have told why.
fn texts<S: Source + ?Sized>(source: &S, limits: ArchiveLimits, paths: &[String]) -> Vec<(String, String)> {
    let Ok(archive) = Archive::open(source, &limits) else { return Vec::new() };
    let mut totals = Totals::new(limits, source.len());
    let (mut found, mut left) = (Vec::new(), TOTAL_BYTES_MAX);
    for path in paths.iter().take(FILES_MAX) {
        let entry = archive.entries().iter().find(|entry| !entry.is_folder && entry.path == *path);
        let Some(entry) = entry.filter(|entry| entry.size <= FILE_BYTES_MAX.min(left)) else { continue };
        left -= entry.size;
        let Ok(bytes) = archive.read(entry, &mut totals).to_end() else { continue };
        // As the checks read it, so that lines have the same numbers.
        if let Some(decoded) = decode(&bytes) {
            found.push((path.clone(), decoded.text));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::bundles::pack::Packer;

    #[test]
    fn files_are_read_as_the_checks_read_them() {
        let mut packer = Packer::new(Cursor::new(Vec::new()));
        let utf16: Vec<u8> = "\u{feff}one\ntwo".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let files: [(&str, &[u8]); 4] = [
            ("a.md", b"one\ntwo"),
            ("b.md", &utf16),
            ("c.md", b"caf\xe9 one\ntwo"),
            ("d.bin", b"\0\x01\x02"),
        ];
        for (path, mut bytes) in files {
            packer.add_file(path, false, &mut bytes).expect("packed");
        }
        let archive = packer.finish().expect("packed").into_inner();
        let paths = files.map(|(path, _)| path.to_owned());
        let read = texts(archive.as_slice(), ArchiveLimits::default(), &paths);
        let shown: Vec<(&str, &str)> = read.iter().map(|(path, text)| (&**path, &**text)).collect();
        assert_eq!(shown, [("a.md", "one\ntwo"), ("b.md", "one\ntwo"), ("c.md", "caf\u{e9} one\ntwo")]);
    }
}
