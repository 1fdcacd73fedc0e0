//! Paths of entries: one reading on every system, inside the folder they are unpacked to, no two the same anywhere.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization as _;

use super::central::{Record, UTF8};
use super::refusal::{Refusal, Rule};

/// Longest path, in bytes.
const PATH_BYTES_MAX: usize = 1_024;
/// Longest name between two slashes, in bytes: what most file systems take.
const NAME_BYTES_MAX: usize = 255;
/// How many layers of % escapes are read.
const ESCAPES_DEEP: usize = 3;
/// Names that stand for devices on Windows, with any extension (Microsoft, Naming Files, Paths, and Namespaces).
const WINDOWS_DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// A path that may be used.
#[derive(Debug)]
pub(super) struct CleanPath {
    /// In NFC, without a slash at the end.
    pub path: String,
    /// The same as it is written.
    pub written: String,
    pub is_folder: bool,
}

/// Reads the name of an entry.
pub(super) fn read(record: &Record, depth_max: usize) -> Result<CleanPath, Refusal> {
    let refuse = |rule, message: &str| Err(Refusal::new(rule, message));
    if record.name.is_empty() {
        return refuse(Rule::ReservedName, "has no name");
    }
    if record.name.len() > PATH_BYTES_MAX {
        return refuse(Rule::PathLength, "its path is too long");
    }
    let Ok(name) = std::str::from_utf8(&record.name) else {
        return refuse(Rule::PathEncoding, "its path is not UTF-8");
    };
    if !name.is_ascii() && record.flags & UTF8 == 0 {
        // Some readers take this for code page 437, and find another path.
        return refuse(
            Rule::PathEncoding,
            "its path is not marked as UTF-8 ; pack it with a program that marks such names, or let `portcullis review` pack the folder",
        );
    }
    check_root(name)?;
    check_escapes(name)?;
    if let Some((rule, what)) = name.chars().find_map(unsafe_character) {
        return refuse(rule, what);
    }
    let (path, is_folder) = match name.strip_suffix('/') {
        Some(path) => (path, true),
        None => (name, false),
    };
    let mut depth = 0;
    for part in path.split('/') {
        depth += 1;
        if part.len() > NAME_BYTES_MAX {
            return refuse(Rule::PathLength, "a name in its path is too long");
        }
        if let Some((rule, what)) = unsafe_name(part) {
            return refuse(rule, what);
        }
    }
    if depth > depth_max {
        return refuse(Rule::PathLength, "its path is too deep");
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    if is_folder && last.eq_ignore_ascii_case("skill.md") {
        return refuse(Rule::KindConflict, "is a folder with the name of a document");
    }
    Ok(CleanPath { path: path.nfc().collect(), written: path.to_owned(), is_folder })
}

/// A path begins in the folder it is unpacked to, not at a root, a drive, a share or a home folder.
fn check_root(name: &str) -> Result<(), Refusal> {
    let plain: String = name.chars().take(4).collect::<String>().nfkc().collect();
    let mut start = plain.chars();
    let (first, second) = (start.next(), start.next());
    let is_slash = |c: Option<char>| matches!(c, Some('/' | '\\'));
    if is_slash(first) {
        return Err(Refusal::new(Rule::AbsolutePath, "its path begins at the root or at a share"));
    }
    if first == Some('~') && (second.is_none() || is_slash(second)) {
        return Err(Refusal::new(Rule::AbsolutePath, "its path begins in a home folder"));
    }
    if first.is_some_and(|c| c.is_ascii_alphabetic()) && second == Some(':') {
        return Err(Refusal::new(Rule::DrivePath, "its path begins with a drive"));
    }
    Ok(())
}

/// Readers that take a path for part of a URL decode `%2e%2e%2f`, and some decode twice.
fn check_escapes(name: &str) -> Result<(), Refusal> {
    let mut decoded = name.as_bytes().to_vec();
    for _ in 0..ESCAPES_DEEP {
        let next: Vec<u8> = percent_encoding::percent_decode(&decoded).collect();
        if next == decoded {
            return Ok(());
        }
        decoded = next;
        // Two bytes for a character of one (RFC 3629, section 3) are a dot or a slash to a careless reader.
        if decoded.iter().any(|byte| matches!(byte, 0xC0 | 0xC1)) {
            let message = "its path has an overlong character once its % escapes are read";
            return Err(Refusal::new(Rule::PathTraversal, message));
        }
        let leads_away =
            decoded.split(|b| matches!(b, b'/' | b'\\')).any(|part| matches!(part, b"." | b".."));
        let separators = |bytes: &[u8]| bytes.iter().filter(|b| matches!(b, b'/' | b'\\')).count();
        if leads_away || separators(&decoded) != separators(name.as_bytes()) {
            let message = "its path leads to another folder once its % escapes are read";
            return Err(Refusal::new(Rule::PathTraversal, message));
        }
        check_root(&String::from_utf8_lossy(&decoded))?;
        if decoded.iter().any(u8::is_ascii_control) {
            let message = "its path has a control character once its % escapes are read";
            return Err(Refusal::new(Rule::ControlCharacter, message));
        }
    }
    Ok(())
}

/// Why a path with this character is refused.
fn unsafe_character(c: char) -> Option<(Rule, &'static str)> {
    let invisible = Some((Rule::InvisibleCharacter, "its path has a character that cannot be seen"));
    match c {
        '\\' => Some((Rule::Backslash, "its path has a backslash, which separates names on some systems")),
        ':' => {
            Some((Rule::DrivePath, "its path has a colon, which names a drive or a stream on some systems"))
        }
        '*' | '?' | '"' | '<' | '>' | '|' => {
            Some((Rule::ReservedName, "its path has a character that some systems refuse"))
        }
        c if u32::from(c) & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}') => {
            Some((Rule::ReservedName, "its path has a character that no text may hold"))
        }
        c if c.is_control() => Some((Rule::ControlCharacter, "its path has a control character")),
        // Formatting characters are not seen: two names look the same, or read in another direction.
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => invisible,
        '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => {
            invisible
        }
        // Letters that are drawn as nothing: fillers, joiners of letters, and the blank of Braille.
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{17b4}' | '\u{17b5}' => invisible,
        '\u{2800}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => invisible,
        _ => None,
    }
}

/// Why a path with this name between two slashes is refused.
fn unsafe_name(name: &str) -> Option<(Rule, &'static str)> {
    if name.is_empty() {
        return Some((Rule::ReservedName, "its path has an empty name"));
    }
    // Compatibility forms of dots and slashes become plain ones on some systems.
    let plain: String = name.nfkc().collect();
    if matches!(plain.as_str(), "." | "..") || plain.contains(['/', '\\']) {
        return Some((Rule::PathTraversal, "its path leads to another folder"));
    }
    if leads_up(&plain) {
        return Some((
            Rule::PathTraversal,
            "its path leads to another folder, as some readers take its characters",
        ));
    }
    if plain.ends_with(['.', ' ']) {
        let what = "a name in its path ends with a dot or a space, which some systems drop";
        return Some((Rule::ReservedName, what));
    }
    // The short name that Windows gives to `.git`: whoever opens the folder there runs what its settings say.
    let is_git = |name: &str| {
        name.strip_prefix("git~").is_some_and(|n| n.len() == 1 && n.as_bytes()[0].is_ascii_digit())
    };
    if is_git(&plain.to_ascii_lowercase()) {
        return Some((Rule::ReservedName, "a name in its path is that of `.git` on Windows"));
    }
    let stem = plain.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let is_port = |prefix: &str| {
        stem.strip_prefix(prefix)
            .is_some_and(|n| n.chars().count() == 1 && n.chars().all(|c| c.is_ascii_digit()))
    };
    if WINDOWS_DEVICES.contains(&stem.as_str()) || is_port("com") || is_port("lpt") {
        return Some((Rule::ReservedName, "a name in its path is that of a device on Windows"));
    }
    None
}

/// Whether a name leads up once every character counts as the separator or the dot that some reader makes of it: look-alikes
/// of slashes, signs that code pages have in place of the backslash, references of HTML, and parameters of a path.
fn leads_up(name: &str) -> bool {
    if !name.contains(['.', '&']) {
        return false;
    }
    let mut read = name.to_ascii_lowercase();
    for (reference, plain) in
        [("&#46;", "."), ("&#x2e;", "."), ("&#47;", "/"), ("&#x2f;", "/"), ("&#92;", "/"), ("&#x5c;", "/")]
    {
        if read.contains('&') {
            read = read.replace(reference, plain);
        }
    }
    let is_separator = |c: char| {
        matches!(
            c,
            '/' | ';'
                | '\u{a5}'
                | '\u{20a9}'
                | '\u{2044}'
                | '\u{2215}'
                | '\u{2216}'
                | '\u{2571}'
                | '\u{2572}'
                | '\u{29f5}'
                | '\u{29f8}'
                | '\u{29f9}'
                | '\u{27cb}'
                | '\u{27cd}'
                | '\u{3033}'
                | '\u{4e3f}'
        )
    };
    read.split(is_separator).any(|part| matches!(part, ".." | "..."))
}

/// All paths of an archive, as a file system that knows neither case nor spelling would see them.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Folded path -> as written, and whether it is a folder.
    paths: HashMap<String, (String, bool)>,
}

impl Names {
    /// Adds a path as it is written, which must not be there yet in any spelling.
    pub(super) fn add(&mut self, path: &str, is_folder: bool) -> Result<(), Refusal> {
        match self.paths.insert(fold(path), (path.to_owned(), is_folder)) {
            None => Ok(()),
            Some((other, _)) => {
                let other: String = other.chars().take(200).flat_map(char::escape_debug).collect();
                let message = format!("has the same path as {other} on some systems");
                Err(Refusal::new(Rule::DuplicatePath, message))
            }
        }
    }

    /// Whether no file stands where others need a folder, and no folder is spelt in two ways.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let mut folders: HashMap<&str, &str> = HashMap::new();
        for (folded, (path, is_folder)) in &self.paths {
            // Reports name what lies in an archive of the bundle like that.
            let is_archive =
                |at: usize| self.paths.get(&folded[..at]).is_some_and(|(_, is_folder)| !is_folder);
            if folded.match_indices("!/").any(|(at, _)| is_archive(at)) {
                let message = "has the path of what lies in another entry";
                return Err(Refusal::new(Rule::DuplicatePath, message).at_path(path));
            }
            for (at, _) in folded.match_indices('/') {
                let above = &folded[..at];
                if self.paths.get(above).is_some_and(|(_, is_folder)| !is_folder) {
                    let message = "lies in a folder that is a file, too";
                    return Err(Refusal::new(Rule::KindConflict, message).at_path(path));
                }
            }
            // Folding keeps the number of slashes, so names pair up.
            let above = path.match_indices('/').zip(folded.match_indices('/'));
            let above = above.map(|((at, _), (folded_at, _))| (&path[..at], &folded[..folded_at]));
            let itself = is_folder.then_some((path.as_str(), folded.as_str()));
            for (written, folded) in above.chain(itself) {
                if let Some(other) = folders.insert(folded, written)
                    && other != written
                {
                    let message = "lies in a folder that is spelt in two ways";
                    return Err(Refusal::new(Rule::DuplicatePath, message).at_path(path));
                }
            }
        }
        Ok(())
    }
}

/// One spelling for all paths that some system takes for the same: compatibility forms, letters without case.
fn fold(path: &str) -> String {
    // Upper case first: ß and ſ have only that in common with ss and s. Before it lower case, which alone makes ß of ẞ.
    let upper: String = path.nfkc().flat_map(char::to_lowercase).flat_map(char::to_uppercase).collect();
    let lower: String = upper.chars().flat_map(char::to_lowercase).collect();
    lower.nfkc().collect()
}
