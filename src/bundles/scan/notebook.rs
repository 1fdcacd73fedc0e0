//! Notebooks: cells of code one after the other as one program, and the commands in them.

use serde_json::Value;

use super::{Scan, code, config, shell};
use crate::bundles::code::{FILE_BYTES_MAX, Language};
use crate::bundles::coverage::Unscanned;
use crate::bundles::files::Syntax;
use crate::bundles::work::Task;

/// Magics whose cell is a script for a shell.
const SHELL_CELLS: &[&str] = &["%%bash", "%%sh", "%%shell", "%%script"];

/// Bytes of a notebook that are looked through for the lines of its cells.
const SEARCHED_BYTES_MAX: usize = 16 << 20;

/// A program that is put together out of cells.
#[derive(Default)]
struct Program {
    text: String,
    /// By line of the text: the line of the file.
    lines: Vec<u32>,
    /// Where in the file the last line was found: the next one stands behind it.
    cursor: usize,
    /// Bytes of the file that were looked through for lines.
    searched: usize,
}

/// Looks at the cells of a notebook.
pub(super) fn cells(scan: &mut Scan<'_, '_>) {
    if scan.text.len() > FILE_BYTES_MAX {
        scan.done.cut = Some(Unscanned::TooLarge);
        return;
    }
    if !scan.may(Task::Tree, scan.text.len()) {
        return;
    }
    let notebook = match config::parse_json(scan.text) {
        Ok(notebook) => notebook,
        Err(why) => {
            scan.done.cut = Some(why.as_unscanned());
            return;
        }
    };
    scan.engine("config");
    let language = language(&notebook);
    let mut program = Program::default();
    let cells = notebook.get("cells").and_then(Value::as_array);
    for cell in cells.into_iter().flatten() {
        match cell.get("cell_type").and_then(Value::as_str) {
            Some("code") => cell_of(scan, &source(cell), &mut program),
            Some("markdown") => document(scan, &source(cell), &mut program),
            _ => {}
        }
    }
    if let Some(language) = language {
        scan.engine(language.as_str());
        let line_of = |line: u32| program.lines.get(line as usize - 1).copied().unwrap_or(1);
        code::mapped(scan, language, &program.text, true, &line_of);
    }
}

/// The language of the code cells, if it is one that is parsed. A notebook that names none is one of Python.
fn language(notebook: &Value) -> Option<Language> {
    let name = ["/metadata/kernelspec/language", "/metadata/language_info/name"]
        .iter()
        .find_map(|place| notebook.pointer(place)?.as_str())
        .unwrap_or("python");
    match name.to_ascii_lowercase().as_str() {
        "python" | "python3" | "ipython" => Some(Language::Python),
        "javascript" | "typescript" => Some(Language::JavaScript),
        _ => None,
    }
}

/// The source of a cell: one text, or its lines.
fn source(cell: &Value) -> String {
    match cell.get("source") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// A cell of text for people, which is a document of its own: in the file its lines stand in quotes.
fn document(scan: &mut Scan<'_, '_>, source: &str, program: &mut Program) {
    let first = source.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let before = program.line_of(scan, first).saturating_sub(1);
    let outer = scan.found.findings.lines_before;
    scan.found.findings.lines_before = outer.saturating_add(before);
    let able = scan.found.capabilities.len();
    scan.found.work.expect(source.len() as u64);
    let done = super::scan(scan.engines, scan.path, source, Syntax::Markdown, scan.found);
    scan.found.findings.lines_before = outer;
    for one in scan.found.capabilities.iter_mut().skip(able).filter(|one| one.line > 0) {
        one.line = one.line.saturating_add(before);
    }
    scan.done.cut = scan.done.cut.or(done.cut);
}

/// Adds a cell to the program; what in it is for a shell is looked at here.
fn cell_of(scan: &mut Scan<'_, '_>, source: &str, program: &mut Program) {
    let first = source.trim_start().lines().next().unwrap_or_default();
    let word = first.split_whitespace().next().unwrap_or_default();
    if SHELL_CELLS.contains(&word) {
        let line = program.line_of(scan, first);
        scan.engine("shell");
        shell::script(scan, source.split_once('\n').map_or("", |(_, rest)| rest), line, shell::Place::Script);
        return;
    }
    for text in source.lines() {
        let line = program.line_of(scan, text);
        let start = text.trim_start();
        let indent = &text[..text.len() - start.len()];
        let is_magic = start.starts_with(['!', '%']);
        // `!command`, `%sx command`, `name = !command`.
        let command = start
            .strip_prefix('!')
            .or_else(|| start.strip_prefix("%sx "))
            .or_else(|| start.strip_prefix("%system "))
            .or_else(|| {
                start.split_once("= !").filter(|(name, _)| is_name(name)).map(|(_, command)| command)
            });
        if let Some(command) = command {
            scan.engine("shell");
            shell::command(scan, command.trim_start_matches('!'), line);
        }
        program.text.push_str(indent);
        program.text.push_str(if is_magic || command.is_some() { "pass" } else { start });
        program.text.push('\n');
        program.lines.push(line);
    }
}

fn is_name(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

impl Program {
    /// The line of the file that holds the next line of a cell; that of the last one when it is not found as it stands.
    fn line_of(&mut self, scan: &Scan<'_, '_>, text: &str) -> u32 {
        let quoted = serde_json::to_string(text.trim_end()).unwrap_or_default();
        let quoted = quoted.trim_matches('"');
        if !quoted.is_empty() && self.searched < SEARCHED_BYTES_MAX {
            let rest = &scan.text[self.cursor..];
            let found = rest.find(quoted);
            self.searched += found.unwrap_or(rest.len());
            self.cursor += found.unwrap_or_default();
        }
        scan.lines.line_of(self.cursor).max(1)
    }
}
