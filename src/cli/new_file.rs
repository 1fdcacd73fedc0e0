//! Files that a command makes: what exists is somebody's work, and is left alone unless told otherwise. What the command
//! itself reads is left alone in any case, and what cannot be written is found out before the work is done.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::Failure;
use crate::setting::system_problem;

/// Says early what [`write`] would say.
///
/// # Errors
/// The file exists, and `force` is not set; or it cannot be written.
pub(super) fn may_be_written(path: &Path, force: bool) -> Result<(), Failure> {
    let tried = match std::fs::symlink_metadata(path) {
        Ok(_) if !force => return Err(exists(path)),
        // Opened and nothing more: whoever reads a pipe would take that for its end.
        Ok(_) if path.is_file() || path.is_dir() => OpenOptions::new().write(true).open(path).map(drop),
        Ok(_) => return Ok(()),
        // That there is no such file is found out by making it, since folders have many ways to refuse one.
        Err(_) => File::create_new(path).and_then(|_| std::fs::remove_file(path)),
    };
    tried.map_err(|error| cannot_write(path, &error))
}

/// Whether two paths lead to one file, be it there yet or not: by another spelling, a link or a second name.
pub(super) fn is_same(a: &Path, b: &Path) -> bool {
    match (std::fs::metadata(a), std::fs::metadata(b)) {
        // What is no regular file, such as a terminal, may well be read and written at once.
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        (Err(_), Err(_)) => resolved(a).is_some_and(|a| Some(a) == resolved(b)),
        _ => false,
    }
}

/// Whether `path` lies in `folder` or somewhere below it.
pub(super) fn is_within(path: &Path, folder: &Path) -> bool {
    let folder = folder.canonicalize();
    resolved(path).is_some_and(|path| folder.is_ok_and(|folder| path.starts_with(folder)))
}

/// The path without links; of what is not there yet, that of its folder and its name.
fn resolved(path: &Path) -> Option<PathBuf> {
    if let Ok(whole) = path.canonicalize() {
        return Some(whole);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Some(folder.unwrap_or(Path::new(".")).canonicalize().ok()?.join(path.file_name()?))
}

/// Refuses to write over what the command reads. `option` is the one that names `path`.
///
/// # Errors
/// `path` is one of `inputs`.
pub(super) fn is_no_input<'p>(
    option: &str,
    path: &Path,
    inputs: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<(), Failure> {
    match inputs.into_iter().find(|input| is_same(path, input)) {
        None => Ok(()),
        Some(input) if input == path => Err(Failure::usage(format_args!(
            "{option} {}: is read by this command; name another file",
            path.display()
        ))),
        Some(input) => Err(Failure::usage(format_args!(
            "{option} {}: is {}, which is read by this command; name another file",
            path.display(),
            input.display()
        ))),
    }
}

/// Writes a file that does not exist yet; with `force`, over one that does.
///
/// # Errors
/// The file exists, or cannot be written.
pub(super) fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => cannot_write(path, &error),
    };
    let mut options = OpenOptions::new();
    if force {
        options.write(true).create(true).truncate(true);
    } else {
        options.write(true).create_new(true);
    }
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
}

/// What is said of a file that cannot be written.
pub(super) fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format_args!("{}: cannot be written: {}", path.display(), system_problem(error)))
}

fn exists(path: &Path) -> Failure {
    Failure::usage(format_args!("{}: exists already; --force writes over it", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exists_is_left_alone_unless_told_otherwise() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.toml");
        assert!(may_be_written(&path, false).is_ok());
        write(&path, "a long text", false).expect("a new file");
        let refused = [may_be_written(&path, false), write(&path, "b", false)];
        for refused in refused {
            let told = refused.expect_err("it exists").message;
            assert!(told.ends_with("a.toml: exists already; --force writes over it"), "{told}");
        }
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "a long text");
        write(&path, "b", true).expect("by force");
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "b");
    }

    #[test]
    fn what_cannot_be_written_is_said_before_the_work() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for (path, force) in [(at("gone/a.md"), false), (at("gone/a.md"), true), (at("."), true)] {
            let told = may_be_written(&path, force).expect_err("it cannot be written").message;
            assert!(told.contains(": cannot be written: "), "{told}");
        }
        assert!(may_be_written(&at("a.md"), false).is_ok());
        assert!(!at("a.md").exists(), "nothing is left of the attempt");
        std::fs::write(at("a.md"), "kept").expect("a file");
        assert!(may_be_written(&at("a.md"), true).is_ok());
        assert_eq!(std::fs::read_to_string(at("a.md")).expect("a file"), "kept");
    }

    #[test]
    fn a_file_is_known_by_any_of_its_paths() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("sub")).expect("a folder");
        std::fs::write(at("a"), "a").expect("a file");
        std::fs::write(at("b"), "a").expect("a file");
        std::fs::hard_link(at("a"), at("second")).expect("a second name");
        std::os::unix::fs::symlink(at("a"), at("link")).expect("a link");
        for (one, other, wanted) in [
            ("a", "a", true),
            ("a", "sub/../a", true),
            ("a", "second", true),
            ("link", "second", true),
            ("a", "b", false),
            ("new", "sub/../new", true),
            ("new", "sub/new", false),
            ("a", "new", false),
            // Nothing is written over by writing to it.
            ("sub", "sub", false),
        ] {
            assert_eq!(is_same(&at(one), &at(other)), wanted, "{one} {other}");
        }
        assert!(!is_same(Path::new("/dev/null"), Path::new("/dev/null")));
        assert!(is_within(&at("sub/new"), &at("sub")) && !is_within(&at("new"), &at("sub")));
        let told = is_no_input("--card", &at("link"), &[at("b"), at("a")]).expect_err("it is read").message;
        assert!(
            told.starts_with("--card ") && told.contains("/link: is ") && told.contains("/a, which"),
            "{told}"
        );
        assert!(is_no_input("--card", &at("new"), &[at("b"), at("a")]).is_ok());
    }
}
