//! The text that a command is given: an argument, a file or standard input.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use super::Failure;
use crate::setting::system_problem;

/// Largest text, in bytes. A longer one is refused, never cut.
const TEXT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The text of an argument (`-` is standard input), of a file (the same), or of standard input when neither is given
/// and it is no terminal.
pub(super) fn text(argument: Option<&str>, file: Option<&Path>) -> Result<String, Failure> {
    match (argument, file) {
        (Some("-"), _) => standard_input(TEXT_BYTES_MAX),
        (Some(text), _) => Ok(text.to_owned()),
        (None, Some(path)) if path.as_os_str() == "-" => standard_input(TEXT_BYTES_MAX),
        (None, Some(path)) => read(path),
        (None, None) if !io::stdin().is_terminal() => standard_input(TEXT_BYTES_MAX),
        (None, None) => {
            Err(Failure::usage("nothing to check; give a text, --file FILE, or - for standard input"))
        }
    }
}

/// All of standard input, at most `bytes_max` bytes.
pub(super) fn standard_input(bytes_max: u64) -> Result<String, Failure> {
    read_all(io::stdin().lock(), "standard input", bytes_max)
}

fn read(path: &Path) -> Result<String, Failure> {
    let shown = path.display().to_string();
    let file = File::open(path).map_err(|error| cannot_read(&shown, &error))?;
    read_all(file, &shown, TEXT_BYTES_MAX)
}

fn read_all(from: impl Read, shown: &str, bytes_max: u64) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    // One byte more than allowed tells a text of exactly the limit from a longer one.
    from.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| cannot_read(shown, &error))?;
    if bytes.len() as u64 > bytes_max {
        return Err(Failure::data(format_args!("{shown}: longer than the limit of {bytes_max} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::data(format_args!("{shown}: not UTF-8 at byte {at}"))
    })
}

fn cannot_read(shown: &str, error: &io::Error) -> Failure {
    Failure::data(format_args!("{shown}: cannot be read: {}", system_problem(error)))
}

/// The files of `paths`, folders searched for files whose names end in one of `extensions`; sorted within a folder.
pub(super) fn files(paths: &[PathBuf], extensions: &[&str]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let shown = path.display().to_string();
        let entries = std::fs::read_dir(path)
            .and_then(|entries| entries.map(|entry| entry.map(|e| e.path())).collect::<io::Result<Vec<_>>>());
        let mut entries = entries.map_err(|error| cannot_read(&shown, &error))?;
        entries.retain(|entry| {
            let extension = entry.extension().and_then(|extension| extension.to_str());
            entry.is_file() && extension.is_some_and(|extension| extensions.contains(&extension))
        });
        if entries.is_empty() {
            let wanted = extensions.join(" or .");
            return Err(Failure::data(format_args!("{shown}: holds no .{wanted} file")));
        }
        entries.sort();
        files.extend(entries);
    }
    Ok(files)
}

/// The text of a small file, such as a policy.
pub(super) fn small_file(path: &Path) -> Result<String, Failure> {
    read(path)
}
