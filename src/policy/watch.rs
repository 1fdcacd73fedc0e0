//! Notices that files have changed, by looking.
//!
//! A watched path is looked at again and again (twice a second is cheap), because looking sees every kind of change the
//! same way: links that Kubernetes swaps, files that editors replace, network file systems that send no notice.
//!
//! What is compared: which visible files there are, where their links lead, and size, time of change, identity, owner and
//! permissions of each, as a file may have been refused for these alone. The watch is made *before* the first load; then a change during a load shows at the next look.
//!
//! Bounds: depth and number of entries; what lies beyond is not seen. No clock is read, and errors are only "not there":
//! a file may vanish between listing and looking. Not caught: a change in place that keeps the size and happens within
//! the same tick of the file system's clock as the look before it.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Deepest nesting of folders that is looked into.
const DEPTH_MAX: usize = 8;
/// Most entries that one look visits.
const ENTRIES_MAX: usize = 10_000;

/// Watches files and folders for changes.
#[derive(Debug)]
pub struct FolderWatch {
    paths: Vec<PathBuf>,
    seen: u64,
}

impl FolderWatch {
    /// Watches each of `paths`, a file or a folder with everything below it, from now on. A path need not exist yet.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let seen = fingerprint(&paths);
        Self { paths, seen }
    }

    /// What is watched.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Whether anything has changed since the last look, which this call now is.
    pub fn changed(&mut self) -> bool {
        let seen = fingerprint(&self.paths);
        std::mem::replace(&mut self.seen, seen) != seen
    }
}

fn fingerprint(paths: &[PathBuf]) -> u64 {
    let mut look =
        Look { hasher: DefaultHasher::new(), entries_left: ENTRIES_MAX, folders_seen: HashSet::new() };
    for path in paths {
        look.visit(path, DEPTH_MAX);
    }
    look.hasher.finish()
}

/// One look at everything.
struct Look {
    hasher: DefaultHasher,
    entries_left: usize,
    /// Where folders really are: links that lead in a circle end here.
    folders_seen: HashSet<PathBuf>,
}

impl Look {
    fn visit(&mut self, path: &Path, depth_left: usize) {
        if self.entries_left == 0 {
            return;
        }
        self.entries_left -= 1;
        path.hash(&mut self.hasher);
        // Where the links lead: a swapped link may lead to a file of the same size and time.
        let target = fs::canonicalize(path).ok();
        target.hash(&mut self.hasher);
        let (Some(target), Ok(metadata)) = (target, fs::metadata(path)) else {
            return;
        };
        if metadata.is_dir() {
            if depth_left > 0 && self.folders_seen.insert(target) {
                self.visit_folder(path, depth_left - 1);
            }
        } else {
            metadata.len().hash(&mut self.hasher);
            changed_ns(&metadata).hash(&mut self.hasher);
            identity(&metadata).hash(&mut self.hasher);
        }
    }

    /// Visible entries by name: a directory lists them in any order.
    fn visit_folder(&mut self, folder: &Path, depth_left: usize) {
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        let visible = |entry: &fs::DirEntry| !entry.file_name().as_encoded_bytes().starts_with(b".");
        let mut paths: Vec<_> = entries.flatten().filter(visible).map(|entry| entry.path()).collect();
        paths.sort();
        paths.len().hash(&mut self.hasher);
        for path in paths {
            self.visit(&path, depth_left);
        }
    }
}

/// Time of the last change of the content, in nanoseconds since 1970.
fn changed_ns(metadata: &Metadata) -> Option<u128> {
    metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok().map(|since| since.as_nanos())
}

/// What stays the same only for the same file, in the same hands.
#[cfg(unix)]
fn identity(metadata: &Metadata) -> impl Hash {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino(), metadata.mode(), metadata.uid(), metadata.gid())
}

/// What stays the same only for the same file, in the same hands.
#[cfg(not(unix))]
fn identity(metadata: &Metadata) -> impl Hash {
    metadata.permissions().readonly()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// A folder as Kubernetes mounts a config map: `name -> ..data/name`, `..data -> ..<version>`.
    fn mounted(version: &str, text: &str) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        put_version(folder.path(), version, text);
        symlink(version, folder.path().join("..data")).unwrap();
        symlink("..data/strict.yaml", folder.path().join("strict.yaml")).unwrap();
        folder
    }

    fn put_version(folder: &Path, version: &str, text: &str) {
        fs::create_dir(folder.join(version)).unwrap();
        fs::write(folder.join(version).join("strict.yaml"), text).unwrap();
    }

    /// The new version is laid beside the old one, then the link is replaced in one step, then the old one goes.
    fn swap(folder: &Path, old: &str, new: &str, text: &str) {
        put_version(folder, new, text);
        symlink(new, folder.join("..data_tmp")).unwrap();
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
        fs::remove_dir_all(folder.join(old)).unwrap();
    }

    fn watch(folder: &Path) -> FolderWatch {
        FolderWatch::new(vec![folder.to_owned()])
    }

    #[test]
    fn a_swap_of_links_is_seen_once_even_when_the_text_is_the_same() {
        let folder = mounted("..2026_01_01", "name: strict");
        let mut watch = watch(folder.path());
        assert!(!watch.changed());
        swap(folder.path(), "..2026_01_01", "..2026_01_02", "name: strict");
        assert!(watch.changed());
        assert!(!watch.changed());
        swap(folder.path(), "..2026_01_02", "..2026_01_03", "name: strict # new");
        assert!(watch.changed());
        assert!(!watch.changed());
    }

    #[test]
    fn a_hidden_version_laid_beside_the_live_one_is_no_change() {
        let folder = mounted("..2026_01_01", "name: strict");
        let mut watch = watch(folder.path());
        put_version(folder.path(), "..2026_01_02", "name: other");
        fs::write(folder.path().join(".strict.yaml.swp"), "editor").unwrap();
        assert!(!watch.changed());
    }

    #[test]
    fn adding_growing_replacing_and_removing_a_file_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = watch(folder.path());
        let file = folder.path().join("a.yaml");
        fs::write(&file, "one").unwrap();
        assert!(watch.changed());
        fs::write(&file, "three").unwrap();
        assert!(watch.changed());
        let other = folder.path().join(".b");
        fs::write(&other, "seven").unwrap();
        fs::rename(&other, &file).unwrap();
        assert!(watch.changed(), "same size, another file");
        let allow = |mode| {
            fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        };
        allow(0o640);
        watch.changed();
        allow(0o600);
        assert!(watch.changed(), "same content, other permissions");
        fs::remove_file(&file).unwrap();
        assert!(watch.changed());
        assert!(!watch.changed());
    }

    #[test]
    fn a_file_deep_in_a_folder_and_a_single_file_are_watched() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("rules/own");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("a.toml"), "x").unwrap();
        let mut both =
            FolderWatch::new(vec![folder.path().join("rules"), folder.path().join("portcullis.yaml")]);
        assert!(!both.changed());
        fs::write(deep.join("a.toml"), "xy").unwrap();
        assert!(both.changed());
        fs::write(folder.path().join("portcullis.yaml"), "a: 1").unwrap();
        assert!(both.changed(), "a watched path may appear later");
        assert!(!both.changed());
    }

    #[test]
    fn circles_and_dangling_links_end() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            symlink(".", folder.path().join(name)).unwrap();
        }
        symlink("nowhere", folder.path().join("dangling")).unwrap();
        let mut watch = watch(folder.path());
        assert!(!watch.changed());
        fs::write(folder.path().join("nowhere"), "now here").unwrap();
        assert!(watch.changed());
    }

    #[test]
    fn a_missing_path_is_watched_until_it_appears() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policies");
        let mut watch = watch(&path);
        assert!(!watch.changed());
        fs::create_dir(&path).unwrap();
        assert!(watch.changed());
    }
}
