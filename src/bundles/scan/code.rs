//! Python and JavaScript: what the parsed code does.

use super::{Engines, Rule, Scan};
use crate::bundles::code::{self, Effort, Language, NotParsed};
use crate::bundles::coverage::Unscanned;
use crate::bundles::files::is_sample;
use crate::bundles::work::Task;
use crate::decision::{CheckFinding, Severity};

/// What code must be able to do for a pattern in its text to block: a list of signatures names what it looks for.
const ACTS: &[&str] =
    &["network", "process", "code_evaluation", "deserialization", "write_files", "delete_files"];

/// The rule about commands that are handed to a function of which nothing is known. Tests and tools about security hand
/// them to what looks at them.
const HANDED_OVER: &str = "code.handed-command";

/// Scans code that begins at `line` of the file.
pub(super) fn code(scan: &mut Scan<'_, '_>, language: Language, text: &str, line: u32, is_file: bool) {
    mapped(scan, language, text, is_file, &|inner| inner + line - 1);
}

/// Scans code whose lines stand in the lines of the file that `line_of` tells, from 1.
pub(super) fn mapped(
    scan: &mut Scan<'_, '_>,
    language: Language,
    text: &str,
    is_file: bool,
    line_of: &dyn Fn(u32) -> u32,
) {
    if !scan.may(Task::Program, text.len()) {
        return;
    }
    let report = among(scan, language, text);
    told(scan, language, report, is_file, line_of);
}

/// Looks at code beside the other files of the bundle.
fn among(scan: &mut Scan<'_, '_>, language: Language, text: &str) -> code::Report {
    let Engines { rules, commands, siblings, .. } = *scan.engines;
    let with = |effort| code::scan_among(language, scan.path, text, effort, rules, commands, siblings);
    let report = with(Effort::Usual);
    scan.found.work.did(Task::Program, report.siblings_bytes);
    // Few files need it, so they get it for as long as the bundle's work allows.
    if report.is_starved && scan.found.work.may(Task::Program, text.len() + Effort::THOROUGH_BYTES) {
        let report = with(Effort::Thorough);
        scan.found.work.did(Task::Program, report.siblings_bytes);
        return report;
    }
    report
}

/// What the first words of lines are in a program; a text without one is not tried.
const PYTHON: &[&str] = &["import ", "from ", "exec(", "eval(", "__import__("];
const JAVASCRIPT: &[&str] = &["require(", "import(", "import ", "eval(", "fetch(", "process.", "Function("];

/// Looks at a file whose name says nothing of its language, where all of it is a program: a command that names it, such as
/// `python3 data`, runs it whatever it is called.
pub(super) fn unnamed(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    if text.len() > code::FILE_BYTES_MAX || !begins_like_code(text) {
        return;
    }
    let starts = |words: &[&str]| {
        text.lines().any(|line| words.iter().any(|word| line.trim_start().starts_with(word)))
    };
    let is_python = starts(PYTHON);
    let is_javascript = JAVASCRIPT.iter().any(|word| text.contains(word)) && text.contains('(');
    for (language, is_tried) in [(Language::Python, is_python), (Language::JavaScript, is_javascript)] {
        if !is_tried || !scan.may(Task::Program, text.len()) {
            continue;
        }
        let report = among(scan, language, text);
        if report.not_parsed.is_none() {
            told(scan, language, report, true, &|line| line);
            return;
        }
    }
}

/// Whether the first line that says something may be one of a program: prose is not parsed.
fn begins_like_code(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "import", "from", "def", "class", "if", "try", "with", "for", "while", "async", "await", "const",
        "let", "var", "function", "export", "new", "return", "throw", "del", "global", "assert",
    ];
    let is_comment =
        |line: &str| line.starts_with(['#', '*']) || line.starts_with("//") || line.starts_with("/*");
    let Some(line) = text.lines().map(str::trim).find(|line| !line.is_empty() && !is_comment(line)) else {
        return false;
    };
    let name = line.find(|c: char| !c.is_alphanumeric() && !"_$".contains(c)).unwrap_or(line.len());
    let (word, rest) = line.split_at(name);
    match rest.trim_start().chars().next() {
        _ if WORDS.contains(&word) => true,
        Some(c) if word.is_empty() => "(!;@\"'`[{+".contains(c),
        Some(c) => "=(.[;:".contains(c),
        None => false,
    }
}

fn told(
    scan: &mut Scan<'_, '_>,
    language: Language,
    report: code::Report,
    is_file: bool,
    line_of: &dyn Fn(u32) -> u32,
) {
    match report.not_parsed {
        // Padding would switch the parser off otherwise: a person looks at what the engines of text alone have read.
        Some(NotParsed::TooLarge) if is_file => scan.done.cut = Some(Unscanned::TooLarge),
        Some(NotParsed::TooDeep) if is_file => scan.done.cut = Some(Unscanned::TooComplex),
        // The parts around the errors were followed, and the rest was read as text alone: the engine is not listed.
        Some(NotParsed::Syntax) => {}
        _ if is_file => scan.engine(language.as_str()),
        _ => {}
    }
    if report.is_unread {
        scan.done.cut = scan.done.cut.or(Some(Unscanned::TooComplex));
    }
    let acts = |kind: &str| report.capabilities.iter().any(|capability| capability.kind == kind);
    if is_file && report.not_parsed.is_none() && !ACTS.iter().any(|kind| acts(kind)) {
        scan.found.findings.soften(scan.path, "script.");
    }
    for finding in report.findings {
        let place = if finding.line == 0 { 0 } else { line_of(finding.line) };
        let snippet = scan.lines.show(place);
        // A block of a document that shows an attack is told, and does not block.
        let is_shown = if finding.rule_id == HANDED_OVER {
            is_sample(scan.path) && !scan.is_run || super::context::is_about_security(scan.text)
        } else {
            !is_file && scan.is_line_described(place)
        };
        let severity = if is_shown { finding.severity.min(Severity::Medium) } else { finding.severity };
        scan.found.findings.add(CheckFinding { line: place, snippet, severity, ..finding });
    }
    if is_file {
        for capability in report.capabilities {
            let line = if capability.line == 0 { 0 } else { line_of(capability.line) };
            scan.can(&capability.kind, line, &capability.detail);
        }
        if scan.path.ends_with(".pth") {
            pth(scan);
        }
    }
}

/// Lines of a path file that begin with `import` run at every start of Python (Python library reference, `site`).
fn pth(scan: &mut Scan<'_, '_>) {
    for (number, line) in (1..).zip(scan.text.lines()) {
        if line.starts_with("import ") || line.starts_with("import\t") {
            scan.can("startup_code", number, line);
            let rule = Rule {
                id: "bundle.startup-code",
                category: "persistence",
                severity: if line.contains(['(', ';']) { Severity::High } else { Severity::Medium },
                reason: "A line of a path file runs at every start of Python.",
                fix: "Leave the path file out, or let it name folders only.",
            };
            scan.add(&rule, number);
        }
    }
}
