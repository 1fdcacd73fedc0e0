//! Files that hold commands amid a language of their own: recipes of make and just, and instructions of Dockerfiles.

use super::{Place, script};
use crate::bundles::scan::Scan;

/// The recipes of a Makefile: lines that begin with a tab (of a file of just: with any blank), and what `$(shell …)` runs.
pub(in crate::bundles::scan) fn recipes(scan: &mut Scan<'_, '_>) {
    let mut block = String::new();
    let is_just = scan.path.to_ascii_lowercase().ends_with("justfile");
    for line in scan.text.split_inclusive('\n') {
        let body = if is_just { line.strip_prefix([' ', '\t']) } else { line.strip_prefix('\t') };
        let recipe = body.map(|line| line.trim_start().trim_start_matches(['@', '-', '+']));
        let text = recipe.unwrap_or_else(|| shell_call(line).unwrap_or("\n"));
        // `$$` is the dollar of the shell, `$(NAME)` a variable of make.
        block.push_str(&text.replace("$$", "$"));
        if !block.ends_with('\n') {
            block.push('\n');
        }
    }
    script(scan, &block, 1, Place::Script);
}

fn shell_call(line: &str) -> Option<&str> {
    let inner = line.split_once("$(shell ")?.1;
    Some(inner.rsplit_once(')').map_or(inner, |(inner, _)| inner))
}

/// Instructions of a Dockerfile that run a command, at the build or when a container starts (Dockerfile reference).
const INSTRUCTIONS: &[&str] = &["RUN", "CMD", "ENTRYPOINT", "HEALTHCHECK", "ONBUILD"];

/// The commands of a Dockerfile.
pub(in crate::bundles::scan) fn docker(scan: &mut Scan<'_, '_>) {
    let (mut block, mut goes_on) = (String::new(), false);
    // The name at which a document ends that an instruction began: `RUN <<EOF`.
    let mut until = String::new();
    for line in scan.text.lines() {
        let trimmed = line.trim();
        let (instruction, body) = instruction(trimmed);
        if !until.is_empty() {
            if trimmed == until {
                until.clear();
            } else {
                block.push_str(line);
            }
        } else if goes_on && !trimmed.starts_with('#') {
            block.push_str(trimmed);
            goes_on = trimmed.ends_with('\\');
        } else if goes_on {
            // A comment between the lines of a command is taken out before anything runs.
            block.push('\\');
        } else if INSTRUCTIONS.contains(&instruction.as_str()) {
            let command = without_form(body);
            match document_of(&command) {
                Some(name) => until = name.to_owned(),
                None => block.push_str(&command),
            }
            goes_on = body.ends_with('\\');
        }
        block.push('\n');
    }
    script(scan, &block, 1, Place::Script);
}

/// The name of an instruction in capitals, and what stands behind it.
fn instruction(line: &str) -> (String, &str) {
    let (name, body) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (name.to_ascii_uppercase(), body.trim_start())
}

/// The name at which a document ends that an instruction begins: `RUN <<EOF`.
fn document_of(command: &str) -> Option<&str> {
    let name = command.strip_prefix("<<")?.trim_start_matches('-').trim_matches(['"', '\'']);
    (!name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')).then_some(name)
}

/// The command of an instruction without its options, and without the words of another one before it; a list of arguments,
/// which is run without a shell, as a line that a shell takes for the same.
fn without_form(command: &str) -> String {
    let mut rest = command.trim();
    loop {
        // `--mount=…`, `--interval=30s`, `HEALTHCHECK CMD …`, `ONBUILD RUN …`.
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if !word.starts_with("--") && !INSTRUCTIONS.contains(&word) || after.is_empty() {
            break;
        }
        rest = after.trim_start();
    }
    match serde_json::from_str::<Vec<String>>(rest) {
        Ok(list) => list.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
        Err(_) => rest.to_owned(),
    }
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
