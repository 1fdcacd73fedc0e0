//! The judgement of one path: every way to read it, the strictest hit, and what is odd about it.

use std::borrow::Cow;

use super::super::spelling::{
    Oddity, PATH_BYTES_MAX, folded, from_file_url, is_plain, oddity, percent_decoded, short_names, trim,
    windows_name,
};
use super::super::{HOLE, Os, Place, normalise};
use super::SensitivePaths;
use super::names::{Names, Reading};
use super::pattern::Anchor;
use super::rule::{Access, PathAction, PathRule};
use crate::decision::Severity;

/// Who uses a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via<'a> {
    /// A tool that was given the path as text.
    FileTool,
    /// A shell command: base name of the program, empty for a redirection. The path went through the shell analysis, so
    /// quotes are gone and [`HOLE`] stands for what is not known.
    Shell(&'a str),
    /// A program of a shell command that reads it by itself because an option names it, such as a key, a certificate
    /// or settings (`ssh -i`, `--kubeconfig`, `--env-file`). It uses the file and does not show it, so reading it
    /// warns where it would block.
    ShellOption(&'a str),
}

/// A path and what is to be done to it.
#[derive(Clone, Copy, Debug)]
pub struct PathRequest<'a> {
    /// The path as it was given.
    pub path: &'a str,
    /// What is done to it.
    pub access: Access,
    /// Who does it.
    pub via: Via<'a>,
    /// Whether `*`, `?` and `[` in it are wildcards of a shell.
    pub has_glob: bool,
    /// Whether everything below it is meant as well.
    pub is_recursive: bool,
    /// What relative paths are relative to.
    pub place: &'a Place<'a>,
    /// Roots of the workspace, absolute; none if it is not known.
    pub workspace_roots: &'a [String],
    /// Where the path leads once links are resolved, if somebody looked.
    pub resolved: Option<&'a str>,
}

impl<'a> PathRequest<'a> {
    /// A path that a file tool was given, with nothing known around it.
    pub fn of_file_tool(path: &'a str, access: Access, place: &'a Place<'a>) -> Self {
        Self {
            path,
            access,
            via: Via::FileTool,
            has_glob: false,
            is_recursive: false,
            place,
            workspace_roots: &[],
            resolved: None,
        }
    }

    /// A path that a program uses, as the shell analysis resolved it.
    pub fn of_shell(path: &'a str, access: Access, program: &'a str, place: &'a Place<'a>) -> Self {
        Self { via: Via::Shell(program), ..Self::of_file_tool(path, access, place) }
    }
}

/// A rule that holds for a path.
#[derive(Clone, Debug)]
pub struct SensitiveHit<'r> {
    /// The rule.
    pub rule: &'r PathRule,
    /// Whether to block or to warn.
    pub action: PathAction,
    /// How bad it is: the rule's severity, or at most [`Severity::Medium`] for a warning.
    pub severity: Severity,
    /// The path as it was judged, normalised.
    pub path: String,
}

/// What came out for one path.
#[derive(Clone, Debug, Default)]
pub struct PathJudgement<'r> {
    /// The strictest hit of all ways to read the path.
    pub hit: Option<SensitiveHit<'r>>,
    /// What is odd about it. An odd path is not known to be safe.
    pub oddity: Option<Oddity>,
}

/// The strictest hit so far.
struct Strictest<'s, 'r> {
    set: &'s SensitivePaths,
    request: &'r PathRequest<'r>,
    hit: Option<SensitiveHit<'s>>,
}

impl SensitivePaths {
    /// Judges one path.
    ///
    /// A tool's path is read in every way it may be meant: trimmed and without quotes, as a `file:` URL,
    /// percent-decoded, with `\` as separator, without characters that show nothing and with look-alikes as ASCII,
    /// without streams and trailing dots of Windows. Each is normalised and judged; the strictest counts.
    pub fn judge(&self, request: &PathRequest<'_>) -> PathJudgement<'_> {
        let mut strictest = Strictest { set: self, request, hit: None };
        let mut found = None;
        match request.via {
            Via::FileTool
                if is_plain(request.path, request.place.os) && request.path.len() <= PATH_BYTES_MAX =>
            {
                strictest.look(request.path);
            }
            Via::FileTool => {
                let path = trim(request.path);
                found = oddity(path);
                // What is too long is read as far as a system would read it.
                let end = path.floor_char_boundary(PATH_BYTES_MAX);
                strictest.look_at_readings(&path[..end]);
            }
            Via::Shell(_) | Via::ShellOption(_) => {
                let end = request.path.floor_char_boundary(PATH_BYTES_MAX);
                found = (end < request.path.len()).then_some(Oddity::TooLong);
                let path = &request.path[..end];
                strictest.look(path);
                if let Some(path) = from_file_url(path) {
                    strictest.look(&path);
                }
                strictest.look_at_windows_names(path);
            }
        }
        if let Some(resolved) = request.resolved {
            let end = resolved.floor_char_boundary(PATH_BYTES_MAX);
            strictest.look(&resolved[..end]);
            strictest.look_at_windows_names(&resolved[..end]);
        }
        PathJudgement { hit: strictest.hit, oddity: found }
    }
}

impl Strictest<'_, '_> {
    fn look_at_readings(&mut self, path: &str) {
        self.look_at_reading(path);
        if let Some(path) = from_file_url(path) {
            self.look_at_reading(&path);
        }
        if let Some(decoded) = percent_decoded(path) {
            self.look_at_reading(trim(&decoded));
        }
        if let Some(folded) = folded(path) {
            let folded = trim(&folded);
            self.look_at_reading(folded);
            if let Some(path) = from_file_url(folded) {
                self.look_at_reading(&path);
            }
        }
    }

    fn look_at_reading(&mut self, path: &str) {
        // A program in C stops at a NUL, and whoever cuts lines at a line break.
        let parts =
            [path, path.split(HOLE).next().unwrap_or_default(), path.lines().next().unwrap_or_default()];
        for (nth, part) in parts.iter().enumerate() {
            if nth > 0 && *part == path {
                continue;
            }
            self.look(part);
            // A mention, as chat programs write it.
            if let Some(part) = part.strip_prefix('@') {
                self.look(part);
            }
            if part.contains('\\') {
                self.look(&part.replace('\\', "/"));
                // A backslash before a blank or a quote is the shell's.
                self.look(&part.replace('\\', ""));
            }
            self.look_at_windows_names(part);
        }
    }

    fn look_at_windows_names(&mut self, path: &str) {
        let os = self.request.place.os;
        let has_drive = path.as_bytes().get(1) == Some(&b':');
        if os != Os::Windows && !has_drive && !path.contains(':') {
            return;
        }
        let slashes = Cow::from(path.replace('\\', "/"));
        if let Some(path) = windows_name(&slashes, os) {
            self.look(&path);
        }
        if (os == Os::Windows || has_drive)
            && path.contains('~')
            && let Some(path) = short_names(&slashes)
        {
            self.look_open(&path, true);
        }
    }

    fn look(&mut self, path: &str) {
        self.look_open(path, self.request.has_glob);
    }

    fn look_open(&mut self, path: &str, has_glob: bool) {
        let request = self.request;
        let path = normalise(path, request.place);
        let reading = Reading { has_glob, relative_is_home: request.via == Via::FileTool };
        let names = Names::new(&path, request.place, reading);
        let mut is_fixture = None;
        self.set.index.find(&names, request.is_recursive, |entry| {
            let rule = &self.set.rules[entry.rule];
            let Some(action) = action(rule, request) else { return };
            let severity = match action {
                PathAction::Block => rule.severity,
                PathAction::Warn => rule.severity.min(Severity::Medium),
            };
            let is_stricter =
                self.hit.as_ref().is_none_or(|hit| (action, severity) > (hit.action, hit.severity));
            if !is_stricter || rule.exceptions.iter().any(|exception| exception.excepts(&names)) {
                return;
            }
            if rule.allows_fixtures && entry.pattern.anchor == Anchor::Anywhere {
                let hold = || self.set.fixtures.hold(&path, &names, request.place, request.workspace_roots);
                if *is_fixture.get_or_insert_with(hold) {
                    return;
                }
            }
            self.hit = Some(SensitiveHit { rule, action, severity, path: path.to_string() });
        });
    }
}

/// What a rule asks for.
fn action(rule: &PathRule, request: &PathRequest<'_>) -> Option<PathAction> {
    match request.via {
        Via::FileTool => rule.file_tools.action(request.access),
        Via::Shell(program) | Via::ShellOption(program) => {
            let action = rule.shell.action(request.access)?;
            let is_option = matches!(request.via, Via::ShellOption(_)) && request.access == Access::Read;
            let only_uses = || is_option || rule.shell.warn_programs.iter().any(|name| name == program);
            Some(if action == PathAction::Block && only_uses() { PathAction::Warn } else { action })
        }
    }
}
