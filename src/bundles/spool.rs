//! Uploads on their way in: one file each, below the data folder, gone in every case.
//!
//! A file is readable by its owner alone and locked for as long as somebody works on it; dropping it removes it. What a
//! killed process leaves is a file without a lock, which the next start removes, whichever process made it.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::archive::FileSource;

/// Ending of the names of spooled files; nothing else in the folder is ever touched.
const EXTENSION: &str = "upload";

/// The folder of uploads.
#[derive(Clone, Debug)]
pub struct Spool {
    folder: PathBuf,
    /// Places that this process gave away. Whoever makes a file there does not lock it, so a sweep must know of it.
    spares: Arc<Mutex<HashSet<PathBuf>>>,
}

/// A file that is being written.
#[derive(Debug)]
pub struct Spooling {
    file: Removed,
    hash: Sha256,
    size: u64,
}

/// A whole upload. Dropping it removes the file.
#[derive(Debug)]
pub struct Spooled {
    file: Removed,
    sha256: String,
    size: u64,
}

/// A locked file that is removed when it is dropped.
#[derive(Debug)]
struct Removed {
    file: File,
    path: PathBuf,
}

impl Drop for Removed {
    fn drop(&mut self) {
        // One that cannot be removed now is removed by the next start: its lock goes with this process.
        let _ = fs::remove_file(&self.path);
    }
}

impl Spool {
    /// The spool in `folder`, which is made if it is missing.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        Ok(Self { folder, spares: Arc::default() })
    }

    /// Removes files that nobody works on any more; answers how many.
    ///
    /// # Errors
    /// The folder cannot be read, or a file not be removed.
    pub fn sweep(&self) -> io::Result<usize> {
        let mut swept = 0;
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != EXTENSION) {
                continue;
            }
            if lock(&self.spares).contains(&path) {
                continue;
            }
            // A lock that cannot be had is somebody's work. A file that went meanwhile is as good as removed.
            let Some(file) = unless_gone(File::open(&path))? else { continue };
            if file.try_lock().is_ok() && unless_gone(fs::remove_file(&path))?.is_some() {
                swept += 1;
            }
        }
        Ok(swept)
    }

    /// A new, empty file.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn begin(&self) -> io::Result<Spooling> {
        let path = self.folder.join(format!("{}.{EXTENSION}", Uuid::new_v4().simple()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        // From here on it is removed, whatever happens.
        let file = Removed { file, path };
        file.file.try_lock().map_err(|error| match error {
            fs::TryLockError::Error(error) => error,
            fs::TryLockError::WouldBlock => io::Error::other("a new file is locked by somebody else"),
        })?;
        if !file.path.exists() {
            // A sweep came between making and locking.
            return Err(io::Error::other("the new file was swept away; try again"));
        }
        Ok(Spooling { file, hash: Sha256::new(), size: 0 })
    }

    /// A place for a file that somebody else makes, such as a copy of bytes that are kept.
    pub fn spare(&self) -> Spare {
        let path = self.folder.join(format!("{}.{EXTENSION}", Uuid::new_v4().simple()));
        lock(&self.spares).insert(path.clone());
        Spare { path, spares: self.spares.clone() }
    }
}

fn lock(spares: &Mutex<HashSet<PathBuf>>) -> MutexGuard<'_, HashSet<PathBuf>> {
    // Nothing panics while it holds the lock.
    spares.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place for one file. Whatever lies there is removed when this is dropped.
#[derive(Debug)]
pub struct Spare {
    path: PathBuf,
    spares: Arc<Mutex<HashSet<PathBuf>>>,
}

impl Spare {
    /// The place, for as long as this value lives. Nothing lies there at first.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        // One that cannot be removed now is removed by the next start.
        let _ = fs::remove_file(&self.path);
        lock(&self.spares).remove(&self.path);
    }
}

impl Spooling {
    /// Appends bytes.
    ///
    /// # Errors
    /// They cannot be written, for example because the disk is full.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.file.write_all(bytes)?;
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Bytes written so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Ends the writing.
    pub fn finish(self) -> Spooled {
        let sha256 = self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Spooled { file: self.file, sha256, size: self.size }
    }
}

impl Spooled {
    /// Where it lies, for as long as this value lives.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// SHA-256 of the bytes, hex in lower case.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// How many bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The bytes at any offset.
    ///
    /// # Errors
    /// The file cannot be opened once more.
    pub fn source(&self) -> io::Result<FileSource> {
        FileSource::new(self.file.file.try_clone()?)
    }
}

fn unless_gone<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::archive::Source as _;
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_is_written_is_counted_hashed_and_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(folder.path().join("deep/spool")).expect("it opens");
        let mut spooling = spool.begin().expect("a file");
        spooling.write(b"ab").expect("written");
        spooling.write(b"").expect("written");
        spooling.write(b"c").expect("written");
        assert_eq!(spooling.size(), 3);
        let spooled = spooling.finish();
        assert_eq!(spooled.size(), 3);
        // SHA-256 of `abc`, from FIPS 180-2, appendix B.1.
        assert_eq!(spooled.sha256(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let mode = fs::metadata(spooled.path()).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let source = spooled.source().expect("a source");
        let mut bytes = [0; 2];
        source.read_exact_at(&mut bytes, 1).expect("read");
        assert_eq!((&bytes, source.len()), (b"bc", 3));
    }

    #[test]
    fn a_file_goes_with_whoever_works_on_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(folder.path()).expect("it opens");
        let begun = spool.begin().expect("a file");
        let whole = spool.begin().expect("a file").finish();
        assert_eq!(names(folder.path()).len(), 2);
        drop((begun, whole));
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn a_sweep_takes_what_nobody_works_on_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(folder.path()).expect("it opens");
        let begun = spool.begin().expect("a file");
        for name in ["0123.upload", "4567.upload", "notes.txt"] {
            fs::write(folder.path().join(name), b"left behind").expect("written");
        }
        let spare = spool.spare();
        fs::write(spare.path(), b"a copy").expect("written");
        assert_eq!(spool.clone().sweep().expect("swept"), 2);
        assert_eq!(spool.sweep().expect("swept"), 0);
        assert!(spare.path().exists(), "nobody locks a copy, and it is in use all the same");
        drop(spare);
        assert!(begun.finish().path().exists());
        assert_eq!(names(folder.path()), ["notes.txt"]);
    }
}
