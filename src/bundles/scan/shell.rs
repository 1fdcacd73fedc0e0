//! Shell commands: scripts, recipes of make, instructions of Dockerfiles, hooks and what documents tell to run.

use std::borrow::Cow;

use super::origin::{self, Trust};
use super::{Rule, Scan, capability, code, context, logins, parcel, run};
use crate::bundles::code::Language;
use crate::bundles::coverage::Unscanned;
use crate::bundles::files::{Syntax, is_sample};
use crate::bundles::rules::CommandKind;
use crate::bundles::work::Task;
use crate::commands::GuardContext;
use crate::decision::Severity;
use crate::shell::analysis::{Analysis, UnresolvedCause};
use crate::shell::argument::HOLE;
use crate::shell::effect::{Effect, EffectKind};
use crate::shell::foreign::{self, Foreign};
use crate::shell::limits::Limits;
use crate::shell::programs::Language as InlineLanguage;
use crate::shell::{HOOK, UNCALLED, analyse, analyse_argv};

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

/// Template placeholders stand for a value that is not known yet; as text of the shell they would be braces. Blocks that
/// hold more than a name are left as they are, so that no code hides in them.
fn without_placeholders(text: &str) -> Cow<'_, str> {
    if !text.contains("{{") {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("{{") {
        let after = &rest[at + 2..];
        let name = after[..after.floor_char_boundary(NAME_BYTES_MAX)].split_once("}}").map(|(name, _)| name);
        match name.filter(|name| is_name(name)) {
            Some(name) => {
                out.push_str(&rest[..at]);
                // The same length, so that offsets stay.
                out.extend(std::iter::repeat_n('x', name.len() + 4));
                rest = &rest[at + name.len() + 4..];
            }
            None => {
                out.push_str(&rest[..at + 2]);
                rest = &rest[at + 2..];
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The text that an engine of templates makes: expressions of constants as their values, statements and comments gone;
/// `None` where there are none.
fn without_expressions(text: &str) -> Option<String> {
    if !text.contains("{{") && !text.contains("{%") && !text.contains("{#") {
        return None;
    }
    let (mut out, mut rest, mut is_changed) = (String::with_capacity(text.len()), text, false);
    while let Some(at) = rest.find('{') {
        let (before, block) = rest.split_at(at);
        out.push_str(before);
        match expression(block) {
            // `${#list}` and `${name%end}` are of the shell.
            Some((value, len)) if !before.ends_with('$') => {
                out.push_str(value);
                is_changed = true;
                rest = &block[len..];
            }
            _ => {
                out.push('{');
                rest = &block[1..];
            }
        }
    }
    out.push_str(rest);
    is_changed.then_some(out)
}

/// What an expression of constants, a statement or a comment at the beginning of a text gives, and its length.
fn expression(block: &str) -> Option<(&str, usize)> {
    let within = &block[..block.floor_char_boundary(NAME_BYTES_MAX * 4)];
    let ends = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];
    let (open, close) = ends.into_iter().find(|(open, _)| block.starts_with(open))?;
    let inner = within[open.len()..].split_once(close)?.0;
    let len = open.len() + inner.len() + close.len();
    if inner.contains('\n') {
        return None;
    }
    if open != "{{" {
        return Some(("", len));
    }
    let inner = inner.trim_matches(['-', ' ']);
    // A comment of Handlebars and of Go.
    if inner.starts_with('!') || inner.starts_with("/*") || inner.is_empty() {
        return Some(("", len));
    }
    let quote = inner.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let value = inner.strip_prefix(quote)?.strip_suffix(quote)?;
    (!value.contains(quote)).then_some((value, len))
}

/// Bytes in which a placeholder ends.
const NAME_BYTES_MAX: usize = 80;

fn is_name(text: &str) -> bool {
    !text.trim().is_empty()
        && text.len() <= 60
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b' '))
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
        let rule = Rule {
            id: &hit.rule.id,
            category: hit.rule.category.as_str(),
            severity,
            reason: &hit.rule.description,
            fix: &hit.rule.recommendation,
        };
        scan.add(&rule, line);
    }
    for span in &analysis.decoded {
        let line = line_of(span.start);
        let is_shown = is_shown(scan, line, place);
        let severity = if is_shown { Severity::Medium } else { Severity::High };
        scan.add(&Rule { severity, ..DECODED }, line);
    }
    let talks = |effect: &&Effect| {
        let is_network =
            matches!(effect.kind, EffectKind::Fetch | EffectKind::SendData | EffectKind::OpenTunnel);
        is_network && effect.via.contains(&HOOK)
    };
    if let Some(effect) = analysis.effects.iter().find(talks) {
        let line = line_at(effect);
        let is_shown = is_shown(scan, line, place);
        let severity = if is_shown { Severity::Medium } else { Severity::High };
        scan.add(&Rule { severity, ..TALKING_HOOK }, line);
    }
    if let Some(sent) = parcel::sent(analysis) {
        let line = line_of(sent.span.start);
        let is_shown = is_shown(scan, line, place);
        let severity = if is_shown { Severity::Medium } else { Severity::High };
        scan.add(&Rule { severity, ..PARCEL }, line);
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

/// How bad a hit is where it stands; `None` when it says nothing there.
fn severity_of(scan: &mut Scan<'_, '_>, hit: &Hit<'_>, line: u32, place: Place) -> Option<Severity> {
    let Hit { id, severity, effect, text, analysis } = *hit;
    // What nothing calls runs with words that are not known: only what is hostile whatever they are says something.
    if effect.via.contains(&UNCALLED) && !scan.engines.rules.is_command(CommandKind::Hostile, id) {
        return None;
    }
    if id == "command.fetch-and-execute" {
        let url = effect.target.as_ref().map_or("", |target| target.text.as_str());
        if place == Place::Prose && !url.contains(['.', '/']) && effect.via.is_empty() {
            return None;
        }
        // What hides where it comes from is not trusted for the name that comes out.
        let is_plain = text.is_empty() || url.is_empty() || text.contains(url.trim_end_matches('/'));
        let trust =
            if is_plain { origin::trust_of(scan.engines.rules, url, scan.text) } else { Trust::Unknown };
        if place == Place::Literal && !url.contains(['.', ':']) {
            return None;
        }
        let is_trusted = trust == Trust::Known || trust == Trust::Named && place != Place::Script;
        // A runner that is given a repository is how servers are started before they are released.
        if is_trusted || is_plain && origin::is_repository(scan.engines.rules, url) {
            return Some(Severity::Medium);
        }
    }
    // Whoever is behind the tunnel gets into the machine; of any other service the reader is told.
    if id == "command.tunnel-service"
        && place == Place::Script
        && matches!(&*effect.detail, "shell" | "everything")
    {
        return Some(Severity::High);
    }
    let is_own_hooks = id == "command.git-hooks" && text.get(effect.span.clone()).is_some_and(sets_own_hooks);
    // What is written while an image is built is part of the image, and nothing of the machine.
    let is_of_image = id == "command.write-system-file"
        && (scan.syntax == Syntax::Docker || is_of_container(scan.path, effect));
    let is_hardening = id == "command.write-system-file" && logins::hardens(effect, analysis);
    // What everybody on the machine may know of it.
    let is_public = id == "command.metadata-service"
        && effect.target.as_ref().is_some_and(|target| is_public_metadata(&target.text));
    let is_no_device = id == "command.disk-write"
        && place != Place::Script
        && effect.target.as_ref().is_some_and(|target| {
            is_placeholder_device(&target.text) && !names_device(scan.text, &target.text)
        });
    if is_own_hooks || is_of_image || is_public || is_hardening || is_no_device {
        return Some(severity.min(Severity::Medium));
    }
    if place == Place::Script {
        let is_deliberate = scan.engines.rules.is_command(CommandKind::Deliberate, id);
        let grows = id == "command.write-profile" && is_loaded(effect, text);
        return Some(match severity {
            _ if grows => Severity::High,
            severity
                if scan.engines.rules.is_command(CommandKind::OfMany, id) && is_one_file(effect, text) =>
            {
                severity.min(Severity::Medium)
            }
            Severity::High | Severity::Critical if is_deliberate => Severity::Medium,
            severity => severity,
        });
    }
    if place == Place::Literal {
        let is_told = scan.engines.rules.is_command(CommandKind::HandedOver, id);
        let is_shown = is_told && is_shown(scan, line, place);
        return is_told.then(|| if is_shown { severity.min(Severity::Medium) } else { severity });
    }
    let is_form = effect.target.as_ref().is_some_and(|target| is_placeholder_host(&target.text));
    let blocks =
        scan.engines.rules.is_command(CommandKind::Hostile, id) && !is_form && !scan.is_line_described(line);
    Some(if blocks { severity } else { severity.min(Severity::Medium) })
}

/// Whether a script that sets up a container for development says who may become its administrator.
fn is_of_container(path: &str, effect: &Effect) -> bool {
    let is_inside = path.starts_with(".devcontainer/") || path.contains("/.devcontainer/");
    is_inside && effect.target.as_ref().is_some_and(|target| target.text.starts_with("/etc/sudoers"))
}

/// Parts of the paths by which the service of a cloud tells what a machine is, without a secret (documented by their makers).
const PUBLIC_METADATA: &[&str] = &[
    "/latest/meta-data/placement/",
    "/latest/meta-data/instance-",
    "/latest/meta-data/ami-",
    "/latest/meta-data/hostname",
    "/latest/meta-data/local-",
    "/latest/meta-data/public-hostname",
    "/latest/meta-data/public-ipv4",
    "/latest/meta-data/mac",
    "/latest/meta-data/network/",
    "/latest/meta-data/tags/",
    "/latest/meta-data/services/",
    "/latest/api/token",
    "/latest/dynamic/instance-identity/document",
    "/computeMetadata/v1/instance/zone",
    "/computeMetadata/v1/instance/name",
    "/computeMetadata/v1/instance/id",
    "/computeMetadata/v1/instance/machine-type",
    "/computeMetadata/v1/instance/hostname",
    "/computeMetadata/v1/instance/region",
    "/computeMetadata/v1/project/project-id",
    "/computeMetadata/v1/project/numeric-project-id",
    "/metadata/instance/compute",
];

/// Whether an address asks the service of a cloud for nothing secret.
fn is_public_metadata(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let Some(path) = rest.find('/').map(|at| &rest[at..]) else { return false };
    let is_plain = !path.contains(HOLE) && !path.contains("..") && !path.contains('%');
    is_plain && PUBLIC_METADATA.iter().any(|public| path.starts_with(public))
}

/// Whether a command takes the hooks of this repository from a folder of it, as its own set-up does.
fn sets_own_hooks(command: &str) -> bool {
    let mut words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    let mut is_everywhere = false;
    let setting = words.by_ref().find(|word| {
        is_everywhere |= matches!(*word, "--global" | "--system" | "--file" | "-f");
        word.to_ascii_lowercase().ends_with("core.hookspath")
    });
    let Some(folder) = words.next().filter(|_| setting.is_some() && !is_everywhere) else { return false };
    let leads_away =
        folder.starts_with(['/', '~', '$', '-', '%']) || folder.contains("..") || folder.contains(':');
    !leads_away && !folder.is_empty()
}

/// Whether an address in a document names no machine but the place for one, in capitals: `ATTACKER:4444`,
/// `https://YOUR_HOST/x`.
fn is_placeholder_host(address: &str) -> bool {
    let host = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = host.split([':', '/']).next().unwrap_or_default();
    host.len() >= 3
        && host.bytes().any(|byte| byte.is_ascii_uppercase())
        && host.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'))
}

/// Whether a device in a document is the place for one: no system gives a device a number in capitals.
fn is_placeholder_device(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/dev/") else { return false };
    let (kind, number) = name.split_at(name.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(name.len()));
    ["sd", "hd", "vd", "xvd", "disk", "rdisk", "nvme", "mmcblk"].contains(&kind)
        && number.starts_with(['X', 'Y', 'Z', 'N'])
        && number.len() <= 6
}

/// Whether a document makes a device of the place for one: by a link or a node, or by telling which one it is.
fn names_device(text: &str, device: &str) -> bool {
    let name = device.strip_prefix("/dev/").unwrap_or(device);
    text.lines().filter(|line| line.contains(name)).any(|line| {
        let words = line.to_ascii_lowercase();
        let is_made =
            line.contains(device) && ["ln ", "mknod ", "losetup "].iter().any(|made| words.contains(made));
        let is_told = words.contains("replace") || words.contains("stands for") || words.contains(" set ");
        is_made
            || is_told
                && ["system", "root", "boot", "internal", "main disk"].iter().any(|own| words.contains(own))
    })
}

/// Whether a command means one file, by a name that stands in it and leads nowhere else: `key.pem`, `"$TMP/key.pem"`.
fn is_one_file(effect: &Effect, text: &str) -> bool {
    let Some(target) = &effect.target else { return false };
    let (folder, name) = target.text.rsplit_once('/').unwrap_or(("", &target.text));
    let is_plain = |c: char| c.is_alphanumeric() || "_-. ".contains(c);
    let is_name = name.contains('.') && name.chars().all(is_plain) && !name.trim_matches('.').is_empty();
    // Made absolute where it is known: only what stands in the command as it is can be a name of its own.
    let stands = text.get(effect.span.clone()).unwrap_or_default();
    let is_here = folder.is_empty() || folder.starts_with(HOLE) || stands.contains(&format!(" {name}"));
    let leads_up = folder.split('/').any(|part| part == "..") || stands.contains('~');
    is_name && is_here && !leads_up && !effect.recursive && !target.has_glob && effect.via.is_empty()
}

/// Whether what is written to a profile fetches or decodes something, rather than setting a path.
fn is_loaded(effect: &Effect, text: &str) -> bool {
    let line = text.get(effect.span.clone()).unwrap_or_default();
    let before = text.get(..effect.span.start).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let end = text
        .get(effect.span.end..)
        .and_then(|rest| rest.find('\n'))
        .map_or(text.len(), |at| effect.span.end + at);
    let whole = text.get(start..end).unwrap_or(line);
    ["curl ", "wget ", "base64", "/dev/tcp", "nc ", "python -c", "python3 -c", "eval "]
        .iter()
        .any(|sign| whole.contains(sign))
}

/// A rule that holds, with what it holds for.
struct Hit<'h> {
    id: &'h str,
    severity: Severity,
    effect: &'h Effect,
    /// The text that was followed; empty for a list of arguments.
    text: &'h str,
    /// All that is known of it.
    analysis: &'h Analysis,
}

/// The recipes of a Makefile: lines that begin with a tab (of a file of just: with any blank), and what `$(shell …)` runs.
pub(super) fn recipes(scan: &mut Scan<'_, '_>) {
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
pub(super) fn docker(scan: &mut Scan<'_, '_>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_of_a_repository_are_told_from_those_of_elsewhere() {
        for (command, wanted) in [
            ("git config core.hooksPath .githooks", true),
            ("git config --local core.hooksPath 'scripts/hooks'", true),
            ("git config --global core.hooksPath .githooks", false),
            ("git config core.hooksPath /dev/null", false),
            ("git config core.hooksPath ../hooks", false),
            ("git config core.hooksPath ~/hooks", false),
            ("git config core.hooksPath", false),
            ("git -c core.hooksPath=/dev/null commit", false),
            ("git commit --no-verify", false),
        ] {
            assert_eq!(sets_own_hooks(command), wanted, "{command}");
        }
    }

    #[test]
    fn a_place_for_a_device_is_one_until_the_document_names_the_device() {
        for (text, wanted) in [
            ("ln -sf /dev/sda /dev/sdX", true),
            ("mknod /dev/sdX b 8 0", true),
            ("Replace sdX by the disk the system is on, then run:", true),
            ("Replace sdX by your stick, then run:", false),
            ("dd if=a.img of=/dev/sdX", false),
        ] {
            assert_eq!(names_device(text, "/dev/sdX"), wanted, "{text}");
        }
    }

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
