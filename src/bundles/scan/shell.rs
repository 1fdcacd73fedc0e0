//! Shell commands: scripts, recipes of make, instructions of Dockerfiles, hooks and what documents tell to run.

mod recipes;
mod severity;
mod templates;

use std::borrow::Cow;

use super::{Rule, Scan, capability, code, context, parcel, run};
use crate::bundles::code::Language;
use crate::bundles::coverage::Unscanned;
use crate::bundles::files::is_sample;
use crate::bundles::work::Task;
use crate::commands::GuardContext;
use crate::decision::Severity;
use crate::shell::analysis::{Analysis, UnresolvedCause};
use crate::shell::effect::{Effect, EffectKind};
use crate::shell::foreign::{self, Foreign};
use crate::shell::limits::Limits;
use crate::shell::programs::Language as InlineLanguage;
use crate::shell::{HOOK, analyse, analyse_argv};
use severity::{Hit, severity_of};
use templates::{without_expressions, without_placeholders};

pub(super) use recipes::{docker, recipes};

/// Scripts up to this many bytes are followed as a whole; longer ones piece by piece.
const WHOLE_BYTES: usize = 256 << 10;
/// Pieces of a longer script, cut between lines.
const PIECE_BYTES: usize = 64 << 10;
/// Most pieces that are followed.
const PIECES_MAX: usize = 128;

/// Where a command stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a script, a recipe or a setting: it runs as it stands.
    Script,
    /// In a document, in a block that is marked as commands.
    Fence,
    /// In the text of a document.
    Prose,
    /// A text in a file that no parser follows: whether anything runs it is not known for sure.
    Literal,
}

/// Follows a script that begins at `line` of the file.
pub(super) fn script(scan: &mut Scan<'_, '_>, text: &str, line: u32, place: Place) {
    if text.len() <= WHOLE_BYTES {
        judge(scan, text, line, place);
        return;
    }
    let mut pieces = 0;
    let (mut piece, mut first) = (String::new(), line);
    for (number, content) in (line..).zip(text.split_inclusive('\n')) {
        // Padding costs nothing: a comment cannot do anything.
        let is_idle = content.trim_start().starts_with('#') || content.trim().is_empty();
        if piece.is_empty() {
            first = number;
        }
        piece.push_str(if is_idle { "\n" } else { content });
        if piece.len() >= PIECE_BYTES {
            if pieces == PIECES_MAX {
                scan.done.cut = Some(Unscanned::TooLarge);
                return;
            }
            pieces += 1;
            judge(scan, &piece, first, place);
            piece.clear();
        }
    }
    judge(scan, &piece, first, place);
}

/// Follows one command of a setting, given as one text.
pub(super) fn command(scan: &mut Scan<'_, '_>, text: &str, line: u32) {
    if !scan.may(Task::Follow, text.len()) {
        return;
    }
    run::note(scan, text);
    let analysis = analyse(text, crate::paths::Place::default(), &Limits::default());
    report(scan, &analysis, text, line, true, Place::Script);
}

/// Follows one command of a setting, given as a list of arguments.
pub(super) fn argv(scan: &mut Scan<'_, '_>, argv: &[String], line: u32) {
    if !scan.may(Task::Follow, argv.iter().map(String::len).sum()) {
        return;
    }
    run::note(scan, &argv.join(" "));
    let analysis = analyse_argv(argv, crate::paths::Place::default(), &Limits::default());
    report(scan, &analysis, "", line, true, Place::Script);
}

/// Follows a text that is a command, in a file that no parser here follows.
pub(super) fn literal(scan: &mut Scan<'_, '_>, text: &str, line: u32) {
    if scan.may(Task::Follow, text.len()) {
        let analysis = analyse(text, crate::paths::Place::default(), &Limits::default());
        report(scan, &analysis, text, line, true, Place::Literal);
    }
}

fn judge(scan: &mut Scan<'_, '_>, text: &str, line: u32, place: Place) {
    if !scan.may(Task::Follow, text.len()) {
        return;
    }
    let text = text.replace("\r\n", "\n");
    run::note(scan, &text);
    let foreign = Foreign::of_file(scan.path, &text).filter(|_| place == Place::Script);
    if foreign == Some(Foreign::Xonsh) {
        code::code(scan, Language::Python, &foreign::python(&text), line, false);
    }
    let text = match foreign {
        Some(shell) => shell.posix(&text),
        None => text,
    };
    // What an engine of templates leaves behind, beside what stands there.
    if let Some(made) = without_expressions(&text) {
        let analysis = analyse(&made, crate::paths::Place::default(), &Limits::default());
        report(scan, &analysis, &made, line, false, place);
    }
    for (below, line_text) in (0..).zip(text.lines()) {
        if let Some(command) = server_of(line_text) {
            let analysis = analyse(command, crate::paths::Place::default(), &Limits::default());
            report(scan, &analysis, command, line + below, true, place);
        }
    }
    let text = with_ends(&without_placeholders(&text)).into_owned();
    let limits = Limits { is_whole: true, ..Limits::default() };
    let analysis = analyse(&text, crate::paths::Place::default(), &limits);
    if place == Place::Script && analysis.unresolved.iter().any(|one| one.cause.is_limit()) {
        scan.done.cut = Some(Unscanned::TooComplex);
    }
    report(scan, &analysis, &text, line, false, place);
}

/// A script in which functions of one line end as they do in a POSIX shell: in zsh nothing need stand before the brace.
fn with_ends(text: &str) -> Cow<'_, str> {
    let is_open = |line: &str| {
        let line = line.trim_end();
        let body = line.strip_suffix('}').map(str::trim_end);
        line.contains("() {")
            && body.is_some_and(|body| !body.ends_with([';', '{', '&', '}']) && line.len() > body.len() + 1)
    };
    if !text.lines().any(is_open) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        match is_open(line) {
            true => {
                let end = line.rfind('}').unwrap_or(line.len());
                out.push_str(line[..end].trim_end());
                out.push_str("; ");
                out.push_str(&line[end..]);
            }
            false => out.push_str(line),
        }
    }
    Cow::Owned(out)
}

/// The command that a line has a client start as a server of tools: `claude mcp add name -- command`.
fn server_of(line: &str) -> Option<&str> {
    let (before, command) = line.split_once(" -- ")?;
    let mut words = before.split_whitespace().rev().skip_while(|word| *word != "add").skip(1);
    (words.next() == Some("mcp") && words.next().is_some()).then(|| command.trim())
}

/// What an analysis says of a text that begins at `line`.
fn report(scan: &mut Scan<'_, '_>, analysis: &Analysis, text: &str, line: u32, one_line: bool, place: Place) {
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
    let line_of = |start: usize| {
        if one_line { line } else { line + ends.partition_point(|end| *end < start) as u32 }
    };
    let line_at = |effect: &Effect| line_of(effect.span.start);
    for hit in scan.engines.commands.judge(analysis, &GuardContext::default()) {
        let effect = &analysis.effects[hit.effect];
        let line = line_at(effect);
        let found = Hit { id: &hit.rule.id, severity: hit.rule.severity, effect, text, analysis };
        let Some(severity) = severity_of(scan, &found, line, place) else { continue };
        scan.add(&Rule::of_command(hit.rule, severity), line);
    }
    for span in &analysis.decoded {
        add_as_shown(scan, &DECODED, line_of(span.start), place);
    }
    let talks = |effect: &&Effect| {
        let is_network =
            matches!(effect.kind, EffectKind::Fetch | EffectKind::SendData | EffectKind::OpenTunnel);
        is_network && effect.via.contains(&HOOK)
    };
    if let Some(effect) = analysis.effects.iter().find(talks) {
        add_as_shown(scan, &TALKING_HOOK, line_at(effect), place);
    }
    if let Some(sent) = parcel::sent(analysis) {
        add_as_shown(scan, &PARCEL, line_of(sent.span.start), place);
    }
    for inline in &analysis.inline {
        if let Some(language) = language_of(inline.language) {
            let text = inline.text.replace(crate::shell::argument::HOLE, "_");
            code::code(scan, language, &text, line_of(inline.span.start), false);
        }
    }
    for effect in &analysis.effects {
        let Some(kind) = capability::of_effect(effect.kind).filter(|_| place == Place::Script) else {
            continue;
        };
        let target = effect.target.as_ref().map_or("", |target| target.text.as_str());
        if matches!(effect.kind, EffectKind::ReadPath | EffectKind::WritePath) && !leads_away(target) {
            continue;
        }
        let target = target.replace(crate::shell::argument::HOLE, "…");
        scan.can(kind, line_at(effect), format!("{} {target}", effect.program).trim());
    }
    let is_unknown = |cause| matches!(cause, UnresolvedCause::UnknownCommand);
    if place == Place::Script && analysis.unresolved.iter().any(|one| is_unknown(one.cause)) {
        scan.can("run_computed_command", line, "");
    }
}

/// Adds a finding, which only warns where the line is shown rather than run.
fn add_as_shown(scan: &mut Scan<'_, '_>, rule: &Rule<'_>, line: u32, place: Place) {
    let severity = if is_shown(scan, line, place) { Severity::Medium } else { rule.severity };
    scan.add(&Rule { severity, ..*rule }, line);
}

/// Whether what stands in a line is only shown there.
fn is_shown(scan: &mut Scan<'_, '_>, line: u32, place: Place) -> bool {
    match place {
        Place::Script => false,
        Place::Literal => is_sample(scan.path) || context::is_about_security(scan.text),
        Place::Fence | Place::Prose => scan.is_line_described(line),
    }
}

/// What a decoder printed is run, whatever it is: there is no honest reason to hide a command from its reader.
const DECODED: Rule<'static> = Rule {
    id: "bundle.decoded-execution",
    category: "obfuscation",
    severity: Severity::High,
    reason: "Text that is encoded in the bundle is decoded and run at once, so that nobody reads it before.",
    fix: "Write the commands as they are.",
};

/// Functions, traps and variables that a shell runs by itself, at every command of whoever types.
const TALKING_HOOK: Rule<'static> = Rule {
    id: "bundle.shell-hook-network",
    category: "persistence",
    severity: Severity::High,
    reason: "A hook of the shell, which runs by itself at commands of the user, talks to another machine.",
    fix: "Let the user run what talks to other machines.",
};

/// See [`parcel`].
const PARCEL: Rule<'static> = Rule {
    id: "bundle.packed-secrets",
    category: "exfiltration",
    severity: Severity::High,
    reason: "Credentials are printed or put into a file, and what holds them is sent to another machine.",
    fix: "Leave credentials where they are.",
};

/// The language of a script inside a command, if it is one that is parsed.
const fn language_of(language: InlineLanguage) -> Option<Language> {
    match language {
        InlineLanguage::Python => Some(Language::Python),
        InlineLanguage::JavaScript => Some(Language::JavaScript),
        _ => None,
    }
}

/// Whether a path leads out of the working directory.
fn leads_away(path: &str) -> bool {
    path.starts_with(['/', '~', '$']) && !path.starts_with("/dev/") && !path.starts_with("/tmp")
        || path.starts_with("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_a_client_is_told_to_start_are_found() {
        for (line, wanted) in [
            ("claude mcp add -s user helper -- bash -c 'x | sh'", Some("bash -c 'x | sh'")),
            ("codex mcp add helper -- npx server", Some("npx server")),
            ("git add -- a.txt", None),
            ("claude mcp add helper https://h.somewhere.example", None),
        ] {
            assert_eq!(server_of(line), wanted, "{line}");
        }
    }
}
