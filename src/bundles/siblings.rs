//! The files of a bundle as code that imports or reads them finds them: read again from the archive, when asked for.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::archive::{Archive, ArchiveLimits, Entry, Source, Totals};
use super::code::Siblings;
use super::files::decode;

/// Bytes that are read again of one bundle.
const BYTES_MAX: usize = 8 << 20;

/// Texts of one archive.
pub(super) struct ArchiveTexts<'a, S: Source + ?Sized> {
    archive: &'a Archive<'a, S>,
    /// The files, sorted by their paths.
    files: &'a [&'a Entry],
    limits: &'a ArchiveLimits,
    read: AtomicUsize,
}

impl<'a, S: Source + ?Sized> ArchiveTexts<'a, S> {
    /// Those of `files`, which are sorted by their paths.
    pub(super) const fn new(
        archive: &'a Archive<'a, S>,
        files: &'a [&'a Entry],
        limits: &'a ArchiveLimits,
    ) -> Self {
        Self { archive, files, limits, read: AtomicUsize::new(0) }
    }
}

impl<S: Source + ?Sized> ArchiveTexts<'_, S> {
    fn entry(&self, path: &str) -> Option<&Entry> {
        let at = self.files.binary_search_by(|entry| entry.path.as_str().cmp(path)).ok()?;
        self.files.get(at).copied()
    }
}

impl<S: Source + ?Sized> Siblings for ArchiveTexts<'_, S> {
    fn is_file(&self, path: &str) -> bool {
        self.entry(path).is_some()
    }

    fn text(&self, path: &str, bytes_max: usize) -> Option<String> {
        let entry = self.entry(path)?;
        let bytes = usize::try_from(entry.size).ok().filter(|bytes| *bytes <= bytes_max)?;
        if self.read.fetch_add(bytes, Ordering::Relaxed) > BYTES_MAX {
            return None;
        }
        // What is broken is refused when its turn comes.
        let mut totals = Totals::new(*self.limits, self.archive.packed_len());
        let bytes = self.archive.read(entry, &mut totals).to_end().ok()?;
        decode(&bytes).map(|decoded| decoded.text)
    }
}
