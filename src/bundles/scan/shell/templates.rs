//! What engines of templates put into scripts: places for values, expressions, statements and comments.

use std::borrow::Cow;

/// Bytes in which a placeholder ends.
const NAME_BYTES_MAX: usize = 80;

/// Template placeholders stand for a value that is not known yet; as text of the shell they would be braces. Blocks that
/// hold more than a name are left as they are, so that no code hides in them.
pub(super) fn without_placeholders(text: &str) -> Cow<'_, str> {
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
pub(super) fn without_expressions(text: &str) -> Option<String> {
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

fn is_name(text: &str) -> bool {
    !text.trim().is_empty()
        && text.len() <= 60
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b' '))
}
