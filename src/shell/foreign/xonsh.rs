//! Scripts of xonsh: Python with commands in it.

use super::lines::walk;

const QUOTES: &[char] = &['"', '\''];

/// Programs by which a line of a command is told from one of Python.
const PROGRAMS: &[&str] = &[
    "apt",
    "aws",
    "bash",
    "cat",
    "cd",
    "chmod",
    "chown",
    "cp",
    "curl",
    "dd",
    "docker",
    "echo",
    "find",
    "gh",
    "git",
    "gcloud",
    "kill",
    "kubectl",
    "ln",
    "ls",
    "make",
    "mkdir",
    "mkfs",
    "mv",
    "nc",
    "ncat",
    "node",
    "npm",
    "npx",
    "openssl",
    "pip",
    "python",
    "python3",
    "rm",
    "rmdir",
    "rsync",
    "scp",
    "sed",
    "sh",
    "shred",
    "source",
    "ssh",
    "sudo",
    "systemctl",
    "tar",
    "tee",
    "touch",
    "unzip",
    "uv",
    "wget",
    "xargs",
    "zip",
    "zsh",
];

/// The lines that are commands; all others are empty.
pub(super) fn posix(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if is_command(line) {
            out.push_str(line.trim());
        }
        out.push('\n');
    }
    out
}

/// The script as Python: commands are given to a shell.
pub fn python(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for line in text.lines() {
        if is_command(line) {
            let blanks = line.len() - line.trim_start().len();
            out.push_str(&line[..blanks]);
            out.push_str(&format!("__import__('os').system({:?})", line.trim()));
        } else {
            out.push_str(&expression(line));
        }
        out.push('\n');
    }
    out.replace("execx(", "exec(").replace("evalx(", "eval(")
}

fn is_command(line: &str) -> bool {
    let line = line.trim();
    let word = line.split(char::is_whitespace).next().unwrap_or_default();
    let rest = line[word.len()..].trim_start();
    let is_python = rest.starts_with(['=', ',', '.', ':', '(']) || rest.starts_with("in ");
    PROGRAMS.contains(&word) && !rest.is_empty() && !is_python
}

/// A line in which `$(command)`, `!(command)`, `$[command]`, `![command]` are calls and `$NAME` is of the environment.
fn expression(line: &str) -> String {
    let mut starts = Vec::new();
    let mut before = ' ';
    walk(line, QUOTES, |at, c, open| {
        if open.is_none() && matches!(before, '$' | '!') && matches!(c, '(' | '[') {
            starts.push(at);
        }
        before = c;
    });
    let Some(start) = starts.first().copied() else { return line.to_owned() };
    let close = if line[start..].starts_with('(') { ')' } else { ']' };
    let open = if close == ')' { '(' } else { '[' };
    let mut depth = 0;
    let end = line[start..].char_indices().find_map(|(at, c)| {
        depth += i32::from(c == open) - i32::from(c == close);
        (depth == 0).then_some(start + at)
    });
    let Some(end) = end else { return line.to_owned() };
    let command = &line[start + 1..end];
    format!(
        "{}__import__('subprocess').getoutput({command:?}){}",
        &line[..start - 1],
        expression(&line[end + 1..])
    )
}
