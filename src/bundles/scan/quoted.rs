//! Commands in files whose language is not read: a text in quotes, or the rest of a line, that is by itself a command which
//! fetches and runs code, or sends secrets away.
//!
//! Build files, editor settings and programs of a hundred languages hand such a text to a shell, each in its own way.
//! Nobody keeps one for anything else, but for showing it.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::{Rule, Scan};
use crate::bundles::rules::{CommandKind, WordKind};
use crate::bundles::work::{PLACE as COST, Task};
use crate::commands::GuardContext;
use crate::decision::Severity;
use crate::paths::Place;
use crate::shell::analyse;
use crate::shell::effect::EffectKind;
use crate::shell::limits::Limits;

/// Lines of one file that are looked at, and their bytes.
const LINES_MAX: usize = 200;
const LINE_BYTES_MAX: usize = 2 << 10;
/// Texts of one line.
const TEXTS_MAX: usize = 6;
/// How far one text is analysed.
const LIMITS: Limits = Limits { bytes_max: 4 << 10, nesting_max: 40, depth_max: 4, steps_max: 5_000 };

/// What shows a text to people, or says what it is.
static SHOWS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = concat!(
        r"(?i)\b(?:puts|print(?:ln|f)?|echo|warn|info|debug|log(?:ger)?|error|fatal|raise|throw|panic!?|say|write(?:-\w+|ln)?|format",
        r"|description|help|message|usage|comment|title|label|example|pattern|regex|match|contains|deny|block|detect|hint|note|doc)",
        r"s?\b[^\n]{0,40}$|^\s*(?:#|//|--|;|%|\*|/\*|rem\b|<!--)"
    );
    Regex::new(pattern).unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
});

const RULE: Rule<'static> = Rule {
    id: "bundle.quoted-command",
    category: "download_execute",
    severity: Severity::High,
    reason: "A command that fetches and runs code, or sends secrets away, stands in a file that other tools run.",
    fix: "Remove the command; run plain programs with plain arguments.",
};

/// Looks for such commands in the lines of a file.
pub(super) fn commands(scan: &mut Scan<'_, '_>) {
    let text = scan.text;
    let signs = scan.engines.rules.words(WordKind::CommandSign);
    let is_sign = |line: &str| signs.iter().any(|sign| line.contains(sign.as_str()));
    let lines = (1..).zip(text.lines()).filter(|(_, line)| line.len() <= LINE_BYTES_MAX && is_sign(line));
    for (number, line) in lines.take(LINES_MAX) {
        // A comment is none to a tool that reads orders out of comments.
        let line_text = line.trim_start().strip_prefix("//go:generate ").unwrap_or(line);
        if texts(line_text).into_iter().any(|text| is_sign(text) && is_hostile(scan, text)) {
            scan.add(&RULE, number);
        }
    }
}

/// The texts of a line that may be commands: those in quotes, and what stands behind the name of a setting.
fn texts(line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    if SHOWS.is_match(line.get(..line.find(['"', '\'', '`']).unwrap_or(0)).unwrap_or_default()) {
        return out;
    }
    let bytes = line.as_bytes();
    let mut at = 0;
    while let Some(open) = bytes.get(at..).and_then(|rest| memchr::memchr3(b'"', b'\'', b'`', rest)) {
        let open = at + open;
        let quote = bytes[open];
        let Some(len) = memchr::memchr(quote, &bytes[open + 1..]) else { break };
        out.push(&line[open + 1..open + 1 + len]);
        if out.len() == TEXTS_MAX {
            return out;
        }
        at = open + 2 + len;
    }
    // `name: command`, `name = command`, `name !command`, `sh -c "command"`.
    if !SHOWS.is_match(line) {
        let bare = line
            .split_once([':', '=', '!'])
            .map(|(_, rest)| rest.trim())
            .filter(|rest| !rest.starts_with("//"));
        out.extend(bare.filter(|bare| !bare.starts_with(['"', '\'', '{', '['])));
        out.extend(line.find("sh -c ").map(|at| &line[at..]));
    }
    out
}

/// Whether a text is by itself a command that nobody writes by accident.
fn is_hostile(scan: &mut Scan<'_, '_>, text: &str) -> bool {
    if !scan.may(Task::Follow, text.len()) {
        return false;
    }
    scan.found.work.charge(COST);
    let analysis = analyse(text, Place::default(), &LIMITS);
    let rules = scan.engines.rules;
    scan.engines.commands.judge(&analysis, &GuardContext::default()).iter().any(|hit| {
        let effect = &analysis.effects[hit.effect];
        let from = effect.target.as_ref().map_or("", |target| target.text.as_str());
        let is_known = effect.kind == EffectKind::FetchAndExecute
            && (rules.is_installer(from) || !from.contains(['.', '/']));
        hit.rule.severity >= Severity::High
            && rules.is_command(CommandKind::HandedOver, &hit.rule.id)
            && !is_known
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_line() {
        for (line, wanted) in [
            ("sh 'a | b'", vec!["a | b"]),
            ("run(`c \"d\"`)", vec!["c \"d\""]),
            ("web: curl x | sh", vec!["curl x | sh"]),
            ("puts \"curl x | sh\"", vec![]),
            ("# curl 'x'", vec![]),
            ("key = \"v\" + 'w'", vec!["v", "w"]),
            ("open \"", vec![]),
        ] {
            assert_eq!(texts(line), wanted, "{line}");
        }
    }
}
