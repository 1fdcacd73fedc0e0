//! A pattern of gitleaks in the syntax of rules: the secret's group gets the name `value`.

use regex_syntax::ast::{self, Ast, GroupKind};
use regex_syntax::hir::Hir;

/// A pattern made ready.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The pattern, its group `value` named.
    pub text: String,
    /// What it means.
    pub hir: Hir,
    /// Groups that could be the secret where the rule names none.
    pub groups: usize,
}

/// Reads a pattern and names the group that holds the secret. `group` 0 means the first there is, else the whole match.
pub(super) fn translate(regex: &str, group: usize) -> Result<Pattern, String> {
    let parsed = ast::parse::Parser::new().parse(regex).map_err(|error| one_line(&error))?;
    let mut groups = Vec::new();
    collect(&parsed, &mut groups);
    let wanted = if group > 0 { group } else { 1 };
    let text = match groups.iter().find(|found| found.index == wanted) {
        Some(found) => found.named(regex, &groups)?,
        None if group > 0 => return Err(format!("secretGroup is {group}, and there is no such group")),
        None => regex.to_owned(),
    };
    // Classes such as \pL are Unicode by nature; everything else means ASCII, as it does in Go.
    let (text, hir) = match parse(&text) {
        Ok(hir) => (text, hir),
        Err(error) => {
            let unicode = format!("(?u:{text})");
            let hir = parse(&unicode).map_err(|_| error)?;
            (unicode, hir)
        }
    };
    Ok(Pattern { text, hir, groups: groups.len() })
}

/// A pattern of which only whether it matches counts.
pub(super) fn translate_plain(regex: &str) -> Result<String, String> {
    match parse(regex) {
        Ok(_) => Ok(regex.to_owned()),
        Err(error) => {
            let unicode = format!("(?u:{regex})");
            parse(&unicode).map(|_| unicode).map_err(|_| error)
        }
    }
}

fn parse(pattern: &str) -> Result<Hir, String> {
    regex_syntax::ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .nest_limit(64)
        .build()
        .parse(pattern)
        .map_err(|error| match error {
            regex_syntax::Error::Parse(error) => one_line(&error),
            regex_syntax::Error::Translate(error) => error.kind().to_string(),
            other => other.to_string(),
        })
}

fn one_line(error: &ast::Error) -> String {
    format!("{} at byte {}", error.kind(), error.span().start.offset)
}

/// A group that captures.
struct Group {
    index: usize,
    /// Where its opening parenthesis stands.
    start: usize,
    /// Its name and where that stands.
    name: Option<(String, std::ops::Range<usize>)>,
}

impl Group {
    /// The pattern with this group named `value`.
    fn named(&self, regex: &str, all: &[Self]) -> Result<String, String> {
        let is_value = |group: &Self| group.name.as_ref().is_some_and(|(name, _)| name == "value");
        if is_value(self) {
            return Ok(regex.to_owned());
        }
        if all.iter().any(is_value) {
            return Err("another group is named `value` already".to_owned());
        }
        let mut text = regex.to_owned();
        match &self.name {
            Some((_, at)) => text.replace_range(at.clone(), "value"),
            None => text.insert_str(self.start + 1, "?P<value>"),
        }
        Ok(text)
    }
}

fn collect(ast: &Ast, groups: &mut Vec<Group>) {
    match ast {
        Ast::Repetition(repetition) => collect(&repetition.ast, groups),
        Ast::Group(group) => {
            match &group.kind {
                GroupKind::CaptureIndex(index) => {
                    groups.push(Group { index: *index as usize, start: group.span.start.offset, name: None })
                }
                GroupKind::CaptureName { name, .. } => groups.push(Group {
                    index: name.index as usize,
                    start: group.span.start.offset,
                    name: Some((name.name.clone(), name.span.start.offset..name.span.end.offset)),
                }),
                GroupKind::NonCapturing(_) => {}
            }
            collect(&group.ast, groups);
        }
        Ast::Alternation(alternation) => alternation.asts.iter().for_each(|part| collect(part, groups)),
        Ast::Concat(concat) => concat.asts.iter().for_each(|part| collect(part, groups)),
        _ => {}
    }
}
