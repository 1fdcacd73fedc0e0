//! The static scan of one text: credentials, instructions to models, shell commands, code, configuration.

mod capability;
mod carried;
mod code;
mod config;
mod context;
mod document;
mod flow;
mod git;
mod hidden;
mod listed;
mod literal;
mod lockfile;
mod logins;
mod notebook;
mod origin;
mod package;
mod page;
mod parcel;
mod patterns;
mod role;
mod run;
mod server;
mod shell;
mod told;
mod unit;
mod unseen;
mod windows;

use std::collections::BTreeSet;

use super::code::Siblings;
use super::coverage::Unscanned;
use super::files::{Script, Syntax};
use super::findings::Findings;
use super::lines::Lines;
use super::rules::BundleRules;
use super::work::{PLACE, Task, Work};
use crate::commands::{CommandRule, CommandRules};
use crate::decision::{Capability, CheckFinding, Severity};
use crate::detect::{INJECTION, SECRETS, Scanner, fingerprint};
use crate::rules::{Budget, Role, Surface};
use crate::text::{Limits, views, windows};

pub(super) use patterns::{Memory, Patterns};
pub(super) use run::follow as follow_runs;

/// Bytes of a text that are scanned at once.
const WINDOW_BYTES: usize = 256 << 10;
/// Bytes that windows share: more than the longest match of any rule.
const OVERLAP_BYTES: usize = 20 << 10;
/// Documents that others may order before no more are noted.
const ORDERED_MAX: usize = 500;
/// Most capabilities that are listed for one file.
const PER_FILE_MAX: usize = 50;
/// Most capabilities that are listed for one bundle.
const CAPABILITIES_MAX: usize = 2_000;

/// What texts are scanned with. Immutable and shared.
#[derive(Clone, Copy)]
pub(super) struct Engines<'r> {
    /// The detector core.
    pub scanner: &'r Scanner,
    /// Rules about commands.
    pub commands: &'r CommandRules,
    /// Rules about code and text of bundles.
    pub rules: &'r BundleRules,
    /// The same rules about text, compiled for scanning.
    pub patterns: &'r Patterns,
    /// The other files of the bundle.
    pub siblings: &'r dyn Siblings,
}

/// What scanning found, over all files.
#[derive(Debug)]
pub(super) struct Found {
    /// Findings of the static check.
    pub findings: Findings,
    /// What the bundle is able to do.
    pub capabilities: Vec<Capability>,
    /// The work that it made.
    pub(super) work: Work,
    /// What patterns over texts remember.
    pub(super) memory: Memory,
    /// Files that commands run.
    pub(super) runs: BTreeSet<run::Run>,
    /// Documents that another one has its reader do, as it names them.
    ordered_documents: BTreeSet<String>,
    /// Folders of skills that are about security, as far as their primary documents were read.
    security_folders: Vec<Box<str>>,
}

impl Found {
    /// Nothing yet, and so much work that may be made.
    pub(super) fn new(work: Work) -> Self {
        Self {
            findings: Findings::default(),
            capabilities: Vec::new(),
            work,
            memory: Memory::default(),
            runs: BTreeSet::new(),
            ordered_documents: BTreeSet::new(),
            security_folders: Vec::new(),
        }
    }
}

/// What became of one text.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// The engines that read it.
    pub engines: Vec<&'static str>,
    /// Why some of it was not followed to its end.
    pub cut: Option<Unscanned>,
    /// Bytes of the text that nothing looked at, because the bundle made too much work before.
    pub unread: usize,
}

/// One text that is being scanned.
pub(super) struct Scan<'e, 't> {
    pub(super) engines: &'e Engines<'e>,
    /// Path in the bundle.
    pub(super) path: &'t str,
    /// The text.
    pub(super) text: &'t str,
    pub(super) syntax: Syntax,
    pub(super) lines: Lines<'t>,
    pub(super) found: &'e mut Found,
    pub(super) done: Scanned,
    capabilities: usize,
    /// Whether a command of the bundle runs the file.
    is_run: bool,
    /// Whether the document is about security, once it was asked.
    about_security: Option<bool>,
    /// Whether the document names attacks and tells nobody to carry out a list, once it was asked.
    shows_attacks: Option<bool>,
    /// The fences of the document, once they were asked for.
    fences: Option<role::Fences>,
    /// Where the piece of code in a line begins that is being looked at.
    inline: Option<usize>,
}

/// Scans one text file.
pub(super) fn scan(
    engines: &Engines<'_>,
    path: &str,
    text: &str,
    syntax: Syntax,
    found: &mut Found,
) -> Scanned {
    let from = found.findings.len();
    let mut scan = Scan::new(engines, path, text, syntax, found);
    if let Some(folder) = context::skill_folder(path).filter(|_| context::is_about_security(text)) {
        scan.found.security_folders.push(folder.into());
    }
    if matches!(syntax, Syntax::Markdown | Syntax::Prose) && scan.found.ordered_documents.len() < ORDERED_MAX
    {
        scan.found.ordered_documents.extend(role::ordered_documents(text));
    }
    scan.core();
    scan.by_syntax();
    let Scan { done, found, .. } = scan;
    found.findings.bind_to_lines(from, text);
    done
}

impl<'e, 't> Scan<'e, 't> {
    fn new(
        engines: &'e Engines<'e>,
        path: &'t str,
        text: &'t str,
        syntax: Syntax,
        found: &'e mut Found,
    ) -> Self {
        Self {
            engines,
            path,
            text,
            syntax,
            lines: Lines::new(text),
            found,
            done: Scanned::default(),
            capabilities: 0,
            is_run: false,
            about_security: None,
            shows_attacks: None,
            fences: None,
            inline: None,
        }
    }
}

impl Scan<'_, '_> {
    /// What every text is scanned for.
    fn core(&mut self) {
        self.done.engines.extend(["text", "secrets"]);
        let mut hits = Vec::new();
        for window in windows(self.text, WINDOW_BYTES, OVERLAP_BYTES) {
            if !self.found.work.may_read(window.len()) {
                self.done.cut = Some(Unscanned::TooMuch);
                self.done.unread = self.text.len() - window.start;
                break;
            }
            self.found.work.split(&self.text[window.clone()]);
            let is_cut = self.core_window(window.start, &self.text[window.clone()], &mut hits);
            if is_cut {
                self.done.cut = Some(Unscanned::TooMuch);
                self.done.unread = self.text.len() - window.start;
                break;
            }
        }
        hidden::scan(self);
        for (offset, mut finding) in hits {
            finding.line = self.lines.line_of(offset);
            // One that is only counted is not shown.
            if !self.found.findings.is_crowded(&finding) {
                finding.snippet = self.lines.show_around(offset);
            }
            self.found.findings.add(finding);
        }
    }

    /// Scans a window. Answers whether it stopped because the bundle made too much work.
    fn core_window(&mut self, start: usize, text: &str, hits: &mut Vec<(usize, CheckFinding)>) -> bool {
        // Quotes are how a table is written, and quote nothing.
        let unquoted = is_table(self.path).then(|| text.replace('"', " "));
        let text = unquoted.as_deref().unwrap_or(text);
        let scanner = self.engines.scanner;
        let plugins = scanner.rules().plugin_bits([SECRETS, INJECTION]);
        let request = crate::detect::Request {
            text,
            plugins,
            role: Some(Role::Tool),
            surface: Some(Surface::Document),
        };
        let foreign = text.bytes().filter(|byte| !byte.is_ascii()).count();
        let is_over = !self.found.work.may(Task::Fold, foreign);
        // Plain text needs no view but those of phrases in disguise, which only documents are looked at for.
        let is_plain = foreign == 0 && self.syntax.surface() != "document";
        let limits = match is_over {
            // Making a view costs as much as scanning it: even that none is needed is only asked of plain text.
            true if is_plain => Limits { expansion_max: 1, ..Limits::default() },
            true => {
                self.done.cut = Some(Unscanned::TooMuch);
                Limits { expansion_max: 0, ..Limits::default() }
            }
            false => Limits::default(),
        };
        let views = views(text, &limits);
        let viewed = views.views.iter().skip(1).map(|view| view.text().len()).sum::<usize>();
        let with_phrases = !is_over && self.syntax.surface() == "document";
        self.found.work.did(Task::View, viewed);
        let left = self.found.work.looks_left(text.len());
        let Ok(scanned) = scanner.scan_views(request, &views, with_phrases, left, &Budget::UNLIMITED) else {
            self.done.cut = Some(Unscanned::TooComplex);
            return false;
        };
        self.found.work.did(Task::View, scanned.disguised);
        self.found.work.looked(scanned.cost, text.len(), scanned.is_cut);
        self.found.work.charge(PLACE * scanned.findings.len() as u64);
        if scanned.limit_hit {
            self.done.cut = Some(Unscanned::TooComplex);
        }
        for detected in &scanned.findings {
            let info = &detected.info;
            let at = start + detected.range.start;
            if &*info.plugin == SECRETS {
                self.lines.hide(at..start + detected.range.end);
            }
            let Some(severity) = patterns::core_severity(self, detected, start) else { continue };
            hits.push((
                at,
                CheckFinding {
                    rule_id: info.id.to_string(),
                    file: self.path.to_owned(),
                    line: 0,
                    category: info.category.to_string(),
                    severity,
                    reason: info.description.to_string(),
                    fix_hint: info.recommendation.to_string(),
                    fingerprint: fingerprint(&info.id, &text[detected.range.clone()]),
                    ..CheckFinding::default()
                },
            ));
        }
        self.patterns(start, &views, hits) || scanned.is_cut
    }

    fn by_syntax(&mut self) {
        if self.done.unread > 0 {
            return;
        }
        lockfile::scan(self);
        if self.syntax.surface() == "script" {
            config::hook_script(self);
        }
        if !matches!(self.syntax, Syntax::Markdown | Syntax::Prose) {
            told::scan(self);
        }
        match self.syntax {
            Syntax::Markdown => document::markdown(self),
            Syntax::Prose => {
                git::settings(self);
                carried::scan(self);
                document::prose(self);
                page::scripts(self);
                code::unnamed(self);
            }
            Syntax::Shell => {
                git::active_hook(self);
                self.engine("shell");
                shell::script(self, self.text, 1, shell::Place::Script);
            }
            Syntax::Make => {
                self.engine("shell");
                shell::recipes(self);
            }
            Syntax::Docker => {
                self.engine("shell");
                shell::docker(self);
            }
            Syntax::Code(language) => {
                package::inline_metadata(self);
                code::code(self, language, self.text, 1, true);
            }
            Syntax::Json => {
                config::json_file(self);
                literal::commands(self);
            }
            Syntax::Yaml => {
                config::yaml_file(self);
                literal::commands(self);
            }
            Syntax::Toml => {
                config::toml_file(self);
                literal::commands(self);
            }
            Syntax::Requirements => package::requirements(self),
            Syntax::Notebook => notebook::cells(self),
            Syntax::Config => {
                unit::commands(self);
                git::settings(self);
                literal::commands(self);
            }
            Syntax::Script(kind) => {
                match kind {
                    Script::PowerShell => windows::powershell(self),
                    Script::Batch => windows::batch(self),
                    Script::Other => {}
                }
                flow::program(self);
                literal::commands(self);
                page::scripts(self);
            }
            Syntax::Data => {
                if context::is_read_as_text(self.path) {
                    unseen::spoken(self);
                }
                git::settings(self);
                literal::commands(self);
                code::unnamed(self);
            }
        }
    }

    /// Whether so much work of a kind may be done; notes it if not.
    fn may(&mut self, task: Task, bytes: usize) -> bool {
        let may = self.found.work.may(task, bytes);
        if !may {
            self.done.cut = Some(Unscanned::TooMuch);
        }
        may
    }

    /// Notes that an engine read the text.
    fn engine(&mut self, engine: &'static str) {
        if !self.done.engines.contains(&engine) {
            self.done.engines.push(engine);
        }
    }

    /// Adds a finding in a line of this file.
    fn add(&mut self, rule: &Rule<'_>, line: u32) {
        self.found.findings.add(CheckFinding {
            rule_id: rule.id.to_owned(),
            file: self.path.to_owned(),
            line,
            category: rule.category.to_owned(),
            severity: rule.severity,
            reason: rule.reason.to_owned(),
            snippet: self.lines.show(line),
            fix_hint: rule.fix.to_owned(),
            ..CheckFinding::default()
        });
    }

    /// Lists something that this file is able to do.
    fn can(&mut self, kind: &str, line: u32, detail: &str) {
        self.capabilities += 1;
        if self.capabilities <= PER_FILE_MAX && self.found.capabilities.len() < CAPABILITIES_MAX {
            let detail = capability::shown(self, detail);
            let (kind, file) = (kind.to_owned(), self.path.to_owned());
            self.found.capabilities.push(Capability { kind, file, line, detail });
        }
    }
}

/// Whether a file is a table of values with separators.
fn is_table(path: &str) -> bool {
    let extension = path.rsplit('.').next().unwrap_or_default();
    ["csv", "tsv", "psv"].iter().any(|table| extension.eq_ignore_ascii_case(table))
}

/// What a finding says, wherever it is.
#[derive(Clone, Copy, Debug)]
struct Rule<'r> {
    id: &'r str,
    category: &'r str,
    severity: Severity,
    reason: &'r str,
    fix: &'r str,
}

impl<'r> Rule<'r> {
    /// A rule about commands, as bad as it is where it was found.
    fn of_command(rule: &'r CommandRule, severity: Severity) -> Self {
        Self {
            id: &rule.id,
            category: rule.category.as_str(),
            severity,
            reason: &rule.description,
            fix: &rule.recommendation,
        }
    }
}
