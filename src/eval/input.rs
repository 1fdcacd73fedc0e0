//! From paths to records: files, folders of them, lines.
//!
//! Lines end at "\n" and nowhere else: texts hold U+2028 and carriage returns, which belong to them.

use std::fs;
use std::path::{Path, PathBuf};

use super::{EvalError, RecordError};
use crate::setting::system_problem;

/// Deepest folder that is looked into; a link that leads back to its own parent ends here.
const DEPTH_MAX: usize = 16;
/// Largest file, in bytes: it is read whole.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// The files to read, in the order of `paths`; those of a folder sorted.
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, EvalError> {
    let mut files = Vec::new();
    for path in paths {
        let before = files.len();
        let is_folder = fs::metadata(path).map_err(|error| unreadable(path, &error))?.is_dir();
        if !is_folder {
            files.push(path.clone());
            continue;
        }
        walk(path, 0, &mut files)?;
        if files.len() == before {
            let message = "holds no `.jsonl` file".to_owned();
            return Err(EvalError::Unreadable { path: path.display().to_string(), message });
        }
    }
    Ok(files)
}

fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), EvalError> {
    if depth > DEPTH_MAX {
        let message = format!("folders nest deeper than {DEPTH_MAX} levels");
        return Err(EvalError::Unreadable { path: folder.display().to_string(), message });
    }
    let entries = fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()
    });
    let mut entries = entries.map_err(|error| unreadable(folder, &error))?;
    entries.sort();
    for entry in entries {
        if is_hidden(&entry) {
            continue;
        }
        if entry.is_dir() {
            walk(&entry, depth + 1, files)?;
        } else if is_record_file(&entry) {
            files.push(entry);
        }
    }
    Ok(())
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Whether a file of that name is read where its folder is.
pub(super) fn is_record_file(path: &Path) -> bool {
    !is_hidden(path) && path.extension().is_some_and(|extension| extension == "jsonl")
}

/// One line of a file with its number, from 1; blank lines are left out.
pub(super) type Line = (usize, Result<String, RecordError>);

/// The lines of a file.
pub(super) fn lines(file: &Path) -> Result<impl Iterator<Item = Line>, EvalError> {
    let size = fs::metadata(file).map_err(|error| unreadable(file, &error))?.len();
    if size > FILE_BYTES_MAX {
        let message = format!("{size} bytes; a file of records has at most {FILE_BYTES_MAX}");
        return Err(EvalError::Unreadable { path: file.display().to_string(), message });
    }
    let bytes = fs::read(file).map_err(|error| unreadable(file, &error))?;
    let mut lines = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let text = std::str::from_utf8(line).map(str::to_owned);
        lines.push((index + 1, text.map_err(|_| RecordError::whole("is not UTF-8"))));
    }
    Ok(lines.into_iter())
}

fn unreadable(path: &Path, error: &std::io::Error) -> EvalError {
    EvalError::Unreadable {
        path: path.display().to_string(),
        message: format!("cannot be read: {}", system_problem(error)),
    }
}
