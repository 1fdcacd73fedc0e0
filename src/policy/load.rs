//! Reads the policy files of a folder.
//!
//! Policy files are the `*.yaml` and `*.yml` files directly in the folder. Names that begin with a dot are passed over:
//! Kubernetes mounts a volume as links into hidden folders, and editors leave hidden files behind. Links are followed.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::problem::{Place, PolicyProblems, Problem};
use super::{PolicySet, Source, Vocabulary, compile};

/// Largest policy file, in bytes. A policy of a thousand suppressions has a quarter of that.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Most policy files in a folder.
pub const FILES_MAX: usize = 1000;

/// Loads the built-in default and every policy file of `folder`, which may also be one file; an empty folder is fine,
/// and so is none.
///
/// # Errors
/// Returns every problem of every file; also when the folder or a file cannot be read.
pub fn load_dir(folder: Option<&Path>, vocabulary: &Vocabulary<'_>) -> Result<PolicySet, PolicyProblems> {
    let Some(folder) = folder else {
        return compile(&[], vocabulary);
    };
    let mut problems = Vec::new();
    let mut texts = Vec::new();
    for path in policy_files(folder)? {
        let file = path.display().to_string();
        match read_text(&path) {
            Ok(text) => texts.push((file, text)),
            Err((what, fix)) => {
                problems.push(Problem { place: Place::file(&file), what, fix: fix.to_owned() })
            }
        }
    }
    let sources: Vec<_> = texts.iter().map(|(file, text)| Source { file, text }).collect();
    let compiled = compile(&sources, vocabulary);
    if let Err(more) = &compiled {
        problems.extend(more.iter().cloned());
    }
    PolicyProblems::check(problems)?;
    compiled
}

/// Sorted: a folder lists its files in any order, and messages must not depend on it.
fn policy_files(folder: &Path) -> Result<Vec<PathBuf>, PolicyProblems> {
    if folder.is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let name = folder.display().to_string();
    let cannot = |error: std::io::Error| {
        let fix = "check `policy.path` and its permissions";
        PolicyProblems::of_file(&name, format!("the policy folder cannot be read ({error})"), fix)
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if is_policy_file(&path) {
            files.push(path);
        }
    }
    if files.len() > FILES_MAX {
        let what = format!("holds {} policy files, more than the limit of {FILES_MAX}", files.len());
        return Err(PolicyProblems::of_file(&name, what, "put fewer policies into one folder"));
    }
    files.sort();
    Ok(files)
}

fn is_policy_file(path: &Path) -> bool {
    let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    // A folder may be called `old.yaml`; a broken link is kept, and reported when it is read.
    is_yaml && !is_hidden && !path.is_dir()
}

/// The text of a file, or what is wrong and what to do.
fn read_text(path: &Path) -> Result<String, (String, &'static str)> {
    let cannot =
        |error: std::io::Error| (format!("cannot be read ({error})"), "check the file and its permissions");
    let metadata = fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() {
        // Reading a pipe would wait for ever.
        return Err(("is not a regular file".to_owned(), "put a plain file here"));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed, since the size may change between looking and reading.
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(cannot)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let what = format!("is larger than the limit of {FILE_BYTES_MAX} bytes");
        return Err((what, "split it into policies that extend each other"));
    }
    String::from_utf8(bytes).map_err(|_| ("is not UTF-8".to_owned(), "save it as UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(folder: &Path) -> Vec<String> {
        let loaded = load_dir(Some(folder), &Vocabulary::default());
        let problems = loaded.expect_err("the folder has problems");
        problems.to_string().lines().map(|line| line.replace(&folder.display().to_string(), "DIR")).collect()
    }

    #[test]
    fn an_empty_folder_and_no_folder_give_the_built_in_default() {
        let folder = tempfile::tempdir().unwrap();
        let empty = load_dir(Some(folder.path()), &Vocabulary::default()).unwrap();
        let none = load_dir(None, &Vocabulary::default()).unwrap();
        assert_eq!(empty, none);
        assert_eq!(none, PolicySet::built_in());
    }

    #[test]
    fn only_visible_yaml_files_directly_in_the_folder_count() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("nested")).unwrap();
        fs::create_dir(folder.path().join("folder.yaml")).unwrap();
        for file in ["a.yaml", "b.yml", "c.txt", ".hidden.yaml", "..data.yaml", "nested/d.yaml"] {
            fs::write(folder.path().join(file), "description: one").unwrap();
        }
        let set = load_dir(Some(folder.path()), &Vocabulary::default()).unwrap();
        let names: Vec<_> = set.iter().map(|policy| policy.name().to_string()).collect();
        assert_eq!(names, ["a", "b", "default"]);
    }

    #[test]
    fn a_missing_folder_is_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let told = problems(&folder.path().join("absent"));
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("DIR: the policy folder cannot be read ("), "{told:?}");
    }

    #[test]
    fn unreadable_files_are_told_together_with_broken_ones() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("big.yaml"), " ".repeat(1024 * 1024 + 1)).unwrap();
        fs::write(folder.path().join("latin.yaml"), b"description: caf\xe9").unwrap();
        fs::write(folder.path().join("slip.yaml"), "treshold: {}").unwrap();
        assert_eq!(
            problems(folder.path()),
            [
                "DIR/big.yaml: is larger than the limit of 1048576 bytes; split it into policies that extend each other",
                "DIR/latin.yaml: is not UTF-8; save it as UTF-8",
                "DIR/slip.yaml:1:1: unknown key `treshold`; did you mean `thresholds`?",
            ]
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_as_kubernetes_lays_them() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let version = folder.path().join("..2026_01_01");
        fs::create_dir(&version).unwrap();
        fs::write(version.join("strict.yaml"), "thresholds: { block: 0.5 }").unwrap();
        symlink("..2026_01_01", folder.path().join("..data")).unwrap();
        symlink("..data/strict.yaml", folder.path().join("strict.yaml")).unwrap();
        let set = load_dir(Some(folder.path()), &Vocabulary::default()).unwrap();
        assert!(set.get("strict").is_some());
        symlink("..data/absent.yaml", folder.path().join("absent.yaml")).unwrap();
        assert!(problems(folder.path())[0].starts_with("DIR/absent.yaml: cannot be read ("));
    }
}
