//! What the code of a bundle does: Python and JavaScript parsed, names and constants followed, calls judged by rules.
//!
//! Both languages are brought to one tree, which is walked as if it ran: assignments are followed, texts put together,
//! encoded constants decoded, functions of the file entered. Every call that can be named becomes a fact (its canonical
//! name, the texts of its arguments, where their values come from), and rules over facts decide. Text that is run as code
//! is looked at in the same way, shell commands by the engine of shell commands.
//!
//! Limits: files up to [`FILE_BYTES_MAX`], nesting, steps; what is beyond is told and never taken for harmless. Pure: the
//! same report for the same text. The parsers run on a thread of their own with a stack to match.
//!
//! Members of instances, classes, functions, modules and tables are followed, with getters, operators and decorators; so
//! are functions that are given away, called with what stands beside them.
//!
//! Modules of the bundle that a file imports are followed, too, and texts of the bundle that it reads.
//!
//! Not caught: values that travel through files written by another program, through queues between threads, objects whose members have names
//! that are computed at run time, and what a library does inside.

mod assign;
mod blind;
mod call;
mod callback;
mod classes;
mod decode;
mod define;
mod evaluate;
mod fold;
mod follow;
mod generator;
mod javascript;
mod javascript_expression;
mod judge;
mod large;
mod library;
mod library_files;
mod library_functions;
mod library_modules;
mod making;
mod name;
mod origin;
mod own_text;
mod page;
mod places;
mod printed;
mod process;
mod program;
mod python;
mod python2;
mod python_expression;
mod read;
mod shape;
mod siblings;
mod stand_in;
mod taint;
mod template;
mod tree;
mod value;
mod worker;

use crate::bundles::rules::BundleRules;
use crate::commands::CommandRules;
use crate::decision::{Capability, CheckFinding};

pub use siblings::{Alone, Siblings};
pub(super) use siblings::{above, joined};
pub use taint::Taint;

/// Largest file that is parsed, in bytes. Larger ones are left to the engines of text.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// A language that is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Python 3.
    Python,
    /// JavaScript and TypeScript, with or without JSX.
    JavaScript,
}

impl Language {
    /// The name that the coverage ledger uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
        }
    }
}

/// The language of a file: by its extension, else by the first line of `head`, its first bytes.
pub fn language_of(path: &str, head: &[u8]) -> Option<Language> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let name = without_template(name);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("py" | "pyw" | "pyi" | "py3" | "pth") => return Some(Language::Python),
        Some("js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx") => {
            return Some(Language::JavaScript);
        }
        _ => {}
    }
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let line = head.split(|byte| *byte == b'\n').next().filter(|line| line.starts_with(b"#!"))?;
    let line = String::from_utf8_lossy(line);
    // `#!/usr/bin/env -S deno run`, `#!/usr/bin/python3 -u`
    let program = |word: &str| {
        let word = word.rsplit('/').next().unwrap_or_default();
        word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned()
    };
    line[2..].split_whitespace().find_map(|word| match program(word).as_str() {
        "python" | "pypy" | "pythonw" => Some(Language::Python),
        "node" | "nodejs" | "deno" | "bun" | "tsx" | "ts-node" | "zx" => Some(Language::JavaScript),
        _ => None,
    })
}

/// The name of what a template makes: `run.py` for `run.py.j2`.
fn without_template(name: &str) -> &str {
    /// Extensions of templates behind that of what they make.
    const TEMPLATES: &[&str] = &[
        ".j2",
        ".jinja",
        ".jinja2",
        ".tmpl",
        ".tpl",
        ".template",
        ".mustache",
        ".hbs",
        ".erb",
        ".ejs",
        ".in",
        ".dist",
    ];
    TEMPLATES
        .iter()
        .find_map(|template| name.strip_suffix(template))
        .filter(|inner| inner.contains('.'))
        .unwrap_or(name)
}

/// Why there is no whole tree of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotParsed {
    /// It is not of the language. What could be parsed was judged.
    Syntax,
    /// Larger than [`FILE_BYTES_MAX`], or with more signs and words than a tree of it may have parts.
    TooLarge,
    /// Nested deeper than the limit, or more steps than the limit. What could be seen was judged.
    TooDeep,
}

impl NotParsed {
    /// The snake-case name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::TooLarge => "too_large",
            Self::TooDeep => "too_deep",
        }
    }
}

/// What was found in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What breaks a rule, in the order of lines.
    pub findings: Vec<CheckFinding>,
    /// What the code is able to do, in the order of lines.
    pub capabilities: Vec<Capability>,
    /// Why there is no whole tree; `None` when all of it was parsed and followed.
    pub not_parsed: Option<NotParsed>,
    /// Bytes of other files that were followed with it.
    pub siblings_bytes: usize,
    /// Whether more [`Effort`] may tell more.
    pub is_starved: bool,
    /// Whether the file does something and a module of the bundle that it imports was not followed: one beyond the limits of
    /// size, number or depth.
    pub is_unread: bool,
}

/// How many steps a file may take to be followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// As many as nearly every file needs.
    #[default]
    Usual,
    /// As many as any file may take, for one whose functions call each other over and over.
    Thorough,
}

impl Effort {
    /// What following a file thoroughly costs besides reading it, in bytes of a file that would cost as much.
    pub const THOROUGH_BYTES: usize = follow::STEPS_MAX / 2;
}

/// Looks at one file. `path` is its place in the bundle, for the report and for rules about certain files.
pub fn scan(
    language: Language,
    path: &str,
    text: &str,
    rules: &BundleRules,
    commands: &CommandRules,
) -> Report {
    scan_among(language, path, text, Effort::Usual, rules, commands, &Alone)
}

/// Looks at one file of a bundle, whose other files are followed where it imports or reads them.
pub fn scan_among(
    language: Language,
    path: &str,
    text: &str,
    effort: Effort,
    rules: &BundleRules,
    commands: &CommandRules,
    siblings: &dyn Siblings,
) -> Report {
    if text.len() > FILE_BYTES_MAX {
        return Report { not_parsed: Some(NotParsed::TooLarge), ..Report::default() };
    }
    worker::run(language, text, Context { path, effort, rules, commands, siblings, depth: 0 })
}

/// What a walk is done with.
#[derive(Clone, Copy)]
struct Context<'a> {
    path: &'a str,
    effort: Effort,
    rules: &'a BundleRules,
    commands: &'a CommandRules,
    /// The other files of the bundle.
    siblings: &'a dyn Siblings,
    /// How many texts that are run as code this one is inside of.
    depth: usize,
}
