//! Files that commands of a bundle run: what a script reads into itself, hands to a shell or starts by name is code,
//! whatever it is called.
//!
//! Names are noted while commands are looked at, and the files followed once all others were scanned.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Engines, Found, Scan, Syntax, shell};
use crate::bundles::code;
use crate::bundles::files::{is_sample, syntax_of};

/// Names that are noted of one bundle, and bytes of a line that is looked at.
const NAMES_MAX: usize = 512;
const LINE_BYTES_MAX: usize = 2_000;
/// Bytes of a file that is followed.
const FILE_BYTES_MAX: usize = 256 << 10;
/// Files of one bundle that are followed.
const FILES_MAX: usize = 64;

/// Shells, which read a file of commands.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "ash"];
/// Programs that run a file of their language.
const INTERPRETERS: &[&str] =
    &["python", "python3", "python2", "py", "node", "nodejs", "bun", "deno", "tsx", "ts-node", "pytest"];
/// Programs that print a file.
const PRINTERS: &[&str] = &["cat", "tail", "head", "grep", "sed", "tr", "envsubst"];

/// A file that a command runs, as it is named there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::bundles) struct Run {
    /// Folder of the file with the command.
    folder: Box<str>,
    /// The name in the command.
    name: Box<str>,
    /// Whether a shell reads it.
    by_shell: bool,
}

/// Notes the files that commands run.
pub(super) fn note(scan: &mut Scan<'_, '_>, text: &str) {
    let folder = scan.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    for line in text.lines().filter(|line| line.len() <= LINE_BYTES_MAX) {
        if scan.found.runs.len() >= NAMES_MAX {
            return;
        }
        named_in(line, &mut |name, by_shell| {
            let (folder, name) = (folder.into(), name.into());
            scan.found.runs.insert(Run { folder, name, by_shell });
        });
    }
}

/// Calls `each` with every file that a line of commands runs, and whether a shell reads it.
pub(super) fn named_in(line: &str, each: &mut dyn FnMut(&str, bool)) {
    let line = &*without_folders(line);
    let is_output_run = line.contains("eval") || SHELLS.iter().any(|shell| is_piped_to(line, shell));
    // Whether a command begins here, and what the command before did with a file.
    let (mut is_start, mut wanted): (bool, Option<bool>) = (true, None);
    for word in line.split_whitespace() {
        let begins = word.trim_start_matches(['"', '\'', '`', '(', '{', '$', '!', '@', '<']);
        is_start |= begins.len() < word.len() && word.contains(['(', '`', '"', '\'']) && !word.contains("/");
        let bare = begins.trim_end_matches(['"', '\'', '`', ')', '}', ';', '&', '|', ',']);
        let program = bare.rsplit('/').next().unwrap_or(bare);
        match wanted {
            // `bash -c 'text'` reads no file.
            Some(_) if bare.starts_with("-c") || bare.starts_with("-e") || bare == "-m" => wanted = None,
            Some(_) if bare.starts_with('-') => {}
            Some(_) if bare.is_empty() || bare == "run" => {}
            Some(by_shell) => {
                if let Some(name) = file_name(word) {
                    each(name, by_shell);
                }
                // A program that prints may name several.
                wanted = wanted.filter(|_| is_output_run && !is_start);
            }
            None => {}
        }
        if is_start {
            wanted = match program {
                "." | "source" => Some(true),
                _ if SHELLS.contains(&program) => Some(true),
                _ if INTERPRETERS.contains(&program) => Some(false),
                _ if PRINTERS.contains(&program) && is_output_run => Some(true),
                _ => wanted,
            };
        }
        // `$(<file)`, which prints a file.
        if is_output_run && let Some((_, name)) = word.split_once("(<") {
            file_name(name).into_iter().for_each(|name| each(name, true));
        }
        let ends = word.ends_with([';', '&', '|', '(', '{', '`']);
        if ends {
            wanted = None;
        }
        let goes_on = matches!(
            program,
            "then" | "do" | "else" | "sudo" | "exec" | "env" | "time" | "nohup" | "command" | "eval" | "Run"
        );
        is_start = ends || goes_on || word.contains('=') && !word.starts_with('-');
    }
}

/// A line with a name for every command that gives the folder of a path: `$(dirname "$0")/x` is `$D/x`.
fn without_folders(line: &str) -> Cow<'_, str> {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find("$(") {
        let inner = &rest[at + 2..];
        let mut depth = 1;
        let end = inner.char_indices().find_map(|(nth, c)| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            (depth == 0).then_some(nth)
        });
        match end.filter(|end| inner[end + 1..].trim_start_matches('"').starts_with('/')) {
            Some(end) => {
                out.push_str(&rest[..at]);
                out.push_str("$D");
                rest = &inner[end + 1..];
            }
            None => {
                out.push_str(&rest[..at + 2]);
                rest = inner;
            }
        }
    }
    if out.is_empty() {
        return Cow::Borrowed(line);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether a line hands what is printed to a shell.
fn is_piped_to(line: &str, shell: &str) -> bool {
    line.split('|').skip(1).any(|part| part.split_whitespace().next() == Some(shell))
}

/// A file by the word that names it, below a folder that is not known.
fn file_name(word: &str) -> Option<&str> {
    let word = word.trim_matches(['"', '\'', '`', ')', ';', '&', '|', ',', '<', '(']);
    // Behind `$DIR/`, `${DIR}/` or `$(dirname "$0")/`.
    let at = word.rfind(['}', ')', '"', '\'']).map_or(0, |at| at + 1);
    let name = match word[at..].strip_prefix('/') {
        Some(name) if at > 0 => name,
        _ if word.starts_with('$') => word.split_once('/')?.1,
        _ => &word[at..],
    };
    let is_path = |c: char| c.is_alphanumeric() || "._-+@/".contains(c);
    let name = name.trim_start_matches("./");
    (!name.is_empty() && !name.starts_with('/') && name.chars().all(is_path)).then_some(name)
}

/// Follows the files that were noted and are not scanned as what they are run as.
pub(in crate::bundles) fn follow(engines: &Engines<'_>, found: &mut Found) {
    let mut done = BTreeSet::new();
    for run in std::mem::take(&mut found.runs) {
        let Some((path, text)) = code::above(&run.folder).find_map(|folder| {
            let path = code::joined(folder, &run.name)?;
            let text = engines.siblings.text(&path, FILE_BYTES_MAX)?;
            Some((path, text))
        }) else {
            continue;
        };
        let syntax = syntax_of(&path, &text[..text.floor_char_boundary(256)]);
        let syntax = match (syntax, run.by_shell) {
            (Syntax::Code(language), false) if is_sample(&path) => Syntax::Code(language),
            (Syntax::Shell | Syntax::Code(_) | Syntax::Markdown | Syntax::Make, _) | (_, false) => continue,
            (_, true) => Syntax::Shell,
        };
        if done.len() < FILES_MAX && done.insert((path.clone(), run.by_shell)) {
            let from = found.findings.len();
            let mut scan = Scan::new(engines, &path, &text, syntax, found);
            scan.is_run = true;
            match syntax {
                Syntax::Code(language) => super::code::code(&mut scan, language, &text, 1, true),
                _ => shell::script(&mut scan, &text, 1, shell::Place::Script),
            }
            found.findings.bind_to_lines(from, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_commands_run_are_named() {
        for (line, wanted) in [
            (". ./config.env", vec![("config.env", true)]),
            ("source lib/x.sh && make", vec![("lib/x.sh", true)]),
            ("cd x; . settings", vec![("settings", true)]),
            ("set -a; . \"$HERE/config.env\"; set +a", vec![("config.env", true)]),
            ("source \"$(dirname \"$0\")/config.env\"", vec![("config.env", true)]),
            (". \"$(cd \"$(dirname \"$0\")\" && pwd)\"/lib.sh", vec![("lib.sh", true)]),
            ("eval \"$(cat \"$(dirname \"$0\")/settings.conf\")\"", vec![("settings.conf", true)]),
            ("bash -x install.txt", vec![("install.txt", true)]),
            ("sh < notes.txt", vec![("notes.txt", true)]),
            ("eval \"$(cat settings.conf)\"", vec![("settings.conf", true)]),
            ("eval \"$(<settings.conf)\"", vec![("settings.conf", true)]),
            ("cat a.txt | sh", vec![("a.txt", true)]),
            ("node tests/a.test.js", vec![("tests/a.test.js", false)]),
            ("X=1 python3 -u data/x", vec![("data/x", false)]),
            ("bash -c 'echo x'", vec![]),
            ("python3 -m http.server", vec![]),
            ("find . -name x", vec![]),
            ("cat a.txt | wc -l", vec![]),
            ("echo source of truth", vec![]),
        ] {
            let mut found = Vec::new();
            named_in(line, &mut |name, by_shell| found.push((name.to_owned(), by_shell)));
            let found: Vec<(&str, bool)> = found.iter().map(|(name, by)| (name.as_str(), *by)).collect();
            assert_eq!(found, wanted, "{line}");
        }
    }
}
