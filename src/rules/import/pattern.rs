//! A pattern of gitleaks in the syntax of rules: the groups that may hold the secret get the names `value`, `value2` and so on.

use regex_syntax::ast::{self, Ast, GroupKind};
use regex_syntax::hir::{Hir, HirKind};

use super::syntax;

/// A pattern made ready.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The pattern, its groups of values named.
    pub text: String,
    /// What it means.
    pub hir: Hir,
}

/// Reads a pattern and names the group that holds the secret. `group` 0 means the first that matched something, else the whole
/// match.
pub(super) fn translate(regex: &str, group: usize) -> Result<Pattern, String> {
    let mut text = syntax::translate(regex)?;
    let told = |error: ast::Error| match text == regex {
        true => format!("{} at byte {}", error.kind(), error.span().start.offset),
        false => error.kind().to_string(),
    };
    let parsed = ast::parse::Parser::new().parse(&text).map_err(told)?;
    let mut groups = Vec::new();
    collect(&parsed, &mut groups);
    let hir = parse(&text)?;
    let mut needs_whole = false;
    if group > 0 {
        groups.retain(|found| found.index == group);
        if groups.is_empty() {
            return Err(format!("secretGroup is {group}, and there is no such group"));
        }
    } else if !groups.is_empty() {
        let enough = (1..=groups.len()).find(|count| always_holds(&hir, &groups[..*count]));
        groups.truncate(enough.unwrap_or(groups.len()));
        needs_whole = enough.is_none();
    }
    // From the last on, so that places stay.
    for (nth, found) in groups.iter().enumerate().rev() {
        text.insert_str(found.start + 1, &format!("?P<{}>", name_of(nth)));
    }
    if needs_whole {
        text = format!("(?P<{}>{text})", name_of(groups.len()));
    }
    let hir = parse(&text)?;
    Ok(Pattern { text, hir })
}

/// A pattern of which only whether it matches counts.
pub(super) fn translate_plain(regex: &str) -> Result<String, String> {
    let text = syntax::translate(regex)?;
    parse(&text).map(|_| text)
}

fn name_of(nth: usize) -> String {
    if nth == 0 { "value".to_owned() } else { format!("value{}", nth + 1) }
}

fn parse(pattern: &str) -> Result<Hir, String> {
    regex_syntax::ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .nest_limit(64)
        .build()
        .parse(pattern)
        .map_err(|error| match error {
            regex_syntax::Error::Parse(error) => error.kind().to_string(),
            regex_syntax::Error::Translate(error) => error.kind().to_string(),
            other => other.to_string(),
        })
}

/// Whether in every match one of these groups matched something.
fn always_holds(hir: &Hir, groups: &[Group]) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => false,
        HirKind::Repetition(repetition) => repetition.min > 0 && always_holds(&repetition.sub, groups),
        HirKind::Capture(capture) => {
            let is_one = groups.iter().any(|group| group.index == capture.index as usize);
            let is_something = capture.sub.properties().minimum_len().is_some_and(|least| least > 0);
            is_one && is_something || always_holds(&capture.sub, groups)
        }
        HirKind::Concat(parts) => parts.iter().any(|part| always_holds(part, groups)),
        HirKind::Alternation(parts) => parts.iter().all(|part| always_holds(part, groups)),
    }
}

/// A group that captures.
struct Group {
    index: usize,
    /// Where its opening parenthesis stands.
    start: usize,
}

fn collect(ast: &Ast, groups: &mut Vec<Group>) {
    match ast {
        Ast::Repetition(repetition) => collect(&repetition.ast, groups),
        Ast::Group(group) => {
            // Names were left out.
            if let GroupKind::CaptureIndex(index) = &group.kind {
                groups.push(Group { index: *index as usize, start: group.span.start.offset });
            }
            collect(&group.ast, groups);
        }
        Ast::Alternation(alternation) => alternation.asts.iter().for_each(|part| collect(part, groups)),
        Ast::Concat(concat) => concat.asts.iter().for_each(|part| collect(part, groups)),
        _ => {}
    }
}
