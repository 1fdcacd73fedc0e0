//! Files that a command makes: what exists is somebody's work, and is left alone unless told otherwise.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use super::Failure;
use crate::setting::system_problem;

/// Says early what [`write`] would say of a file that exists.
///
/// # Errors
/// The file exists, and `force` is not set.
pub(super) fn may_be_written(path: &Path, force: bool) -> Result<(), Failure> {
    if force || std::fs::symlink_metadata(path).is_err() { Ok(()) } else { Err(exists(path)) }
}

/// Writes a file that does not exist yet; with `force`, over one that does.
///
/// # Errors
/// The file exists, or cannot be written.
pub(super) fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => {
            Failure::usage(format_args!("{}: cannot be written: {}", path.display(), system_problem(&error)))
        }
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
}
