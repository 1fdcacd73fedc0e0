//! Constants of PowerShell that are put together at run time, put together here: `'a' + 'b'`, `-join ('a', 'b')`,
//! `'{1}{0}' -f 'b', 'a'`, `[char]97`, and variables that hold them.
//!
//! What is called by such a name (`& ('a' + 'b')`) is written down as that name; everything else stays as it is.

use std::borrow::Cow;
use std::collections::HashMap;

/// Pieces of one script; a longer one stays as it is.
const PIECES_MAX: usize = 1 << 13;

/// Bytes of a constant that was put together.
const CONSTANT_MAX: usize = 1 << 10;

/// Elements that one `-f` or `-join` takes.
const ELEMENTS_MAX: usize = 64;

#[derive(Clone, Debug)]
enum Kind {
    /// A constant text.
    Constant(String),
    /// Constants in brackets.
    List(Vec<String>),
    /// A variable, by its name in lower case.
    Variable(String),
    /// An operator or bracket, or a word in lower case.
    Word(String),
}

/// A piece of the script and how it is written.
struct Piece<'t> {
    kind: Kind,
    /// Blanks before it.
    blank: &'t str,
    /// Itself as it stands in the script; what was put together is spelled anew.
    text: Cow<'t, str>,
}

/// The script with constants put together; `None` for one with too many pieces.
pub(super) fn fold(text: &str) -> Option<Cow<'_, str>> {
    let joins = text.contains('+') || text.contains("-join") || text.contains("-f") || text.contains("-Join");
    if !joins && !text.contains("[char]") {
        return Some(text.into());
    }
    let mut out: Vec<Piece<'_>> = Vec::new();
    let mut variables = HashMap::new();
    let mut rest = text;
    let mut count = 0;
    while let Some(piece) = piece(&mut rest) {
        count += 1;
        if count > PIECES_MAX {
            return None;
        }
        push(&mut out, piece, &mut variables);
    }
    assign(&out, &mut variables);
    Some(spell(&out, &variables).into())
}

/// The next piece of a script.
fn piece<'t>(rest: &mut &'t str) -> Option<Piece<'t>> {
    let start = rest.find(|c: char| !c.is_whitespace() || c == '\n').unwrap_or(rest.len());
    let (blank, from) = rest.split_at(start);
    let first = from.chars().next()?;
    let (kind, length) = match first {
        '\'' | '"' => quoted(from, first),
        '$' => {
            let length = 1 + from[1..]
                .find(|c: char| !(c.is_alphanumeric() || "_:".contains(c)))
                .unwrap_or(from.len() - 1);
            (Kind::Variable(from[1..length].to_lowercase()), length)
        }
        '[' if from.get(..6).is_some_and(|head| head.eq_ignore_ascii_case("[char]")) => character(from),
        '+' | '(' | ')' | ',' | '=' | '&' | ';' | '\n' | '|' | '{' | '}' => {
            (Kind::Word(first.to_string()), first.len_utf8())
        }
        _ => {
            let length = from
                .find(|c: char| c.is_whitespace() || "'\"$+(),=&;|{}".contains(c))
                .filter(|length| *length > 0)
                .unwrap_or(from.len());
            (Kind::Word(from[..length].to_lowercase()), length)
        }
    };
    *rest = &from[length..];
    Some(Piece { kind, blank, text: from[..length].into() })
}

/// A text in quotes; one with something to fill in is no constant.
fn quoted(from: &str, quote: char) -> (Kind, usize) {
    let mut value = String::new();
    let mut chars = from.char_indices().skip(1).peekable();
    let mut is_constant = true;
    while let Some((at, c)) = chars.next() {
        if c == quote {
            if chars.next_if(|(_, next)| *next == quote).is_none() {
                let length = at + 1;
                let kind =
                    if is_constant { Kind::Constant(value) } else { Kind::Word(from[..length].to_owned()) };
                return (kind, length);
            }
        } else if quote == '"' && c == '`' {
            value.extend(chars.next().map(|(_, c)| c));
            continue;
        } else if quote == '"' && c == '$' {
            is_constant = false;
        }
        value.push(c);
    }
    (Kind::Word(from.to_owned()), from.len())
}

/// `[char]97`, `[char]0x61`.
fn character(from: &str) -> (Kind, usize) {
    let digits = &from[6..];
    let length = digits.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(digits.len());
    let number = &digits[..length];
    let code = match number.strip_prefix("0x").or_else(|| number.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => number.parse().ok(),
    };
    match code.and_then(char::from_u32).filter(|c| *c != '\0') {
        Some(c) => (Kind::Constant(c.to_string()), 6 + length),
        None => (Kind::Word("[char]".to_owned()), 6),
    }
}

fn constant<'p>(piece: &'p Piece<'_>, variables: &'p HashMap<String, String>) -> Option<&'p str> {
    match &piece.kind {
        Kind::Constant(text) => Some(text),
        Kind::Variable(name) => variables.get(name).map(String::as_str),
        _ => None,
    }
}

fn is(piece: Option<&Piece<'_>>, word: &str) -> bool {
    matches!(piece, Some(Piece { kind: Kind::Word(text), .. }) if text == word)
}

/// A piece behind the others; constants that meet become one.
fn push<'t>(out: &mut Vec<Piece<'t>>, piece: Piece<'t>, variables: &mut HashMap<String, String>) {
    if matches!(&piece.kind, Kind::Word(word) if matches!(word.as_str(), ";" | "\n" | "|" | "}")) {
        assign(out, variables);
    }
    if is(Some(&piece), ")") && close(out, variables) {
        join(out, variables);
        return;
    }
    out.push(piece);
    join(out, variables);
}

/// Joins what stands at the end: `a + b`, `-join list`, `list -join separator`.
fn join(out: &mut Vec<Piece<'_>>, variables: &HashMap<String, String>) {
    let [.., before, sign, last] = out.as_slice() else {
        if let [sign, Piece { kind: Kind::List(list), .. }] = out.as_slice()
            && is(Some(sign), "-join")
        {
            let joined = list.concat();
            replace(out, 2, joined);
        }
        return;
    };
    let joined = match &last.kind {
        Kind::List(list) if is(Some(sign), "-join") => Some((2, list.concat())),
        _ => match (&before.kind, constant(last, variables)) {
            (Kind::List(list), Some(separator)) if is(Some(sign), "-join") => Some((3, list.join(separator))),
            (_, Some(right)) if is(Some(sign), "+") => {
                constant(before, variables).map(|left| (3, format!("{left}{right}")))
            }
            _ => None,
        },
    };
    if let Some((count, text)) = joined.filter(|(_, text)| text.len() <= CONSTANT_MAX) {
        replace(out, count, text);
    }
}

/// The last pieces become one constant.
fn replace(out: &mut Vec<Piece<'_>>, count: usize, text: String) {
    let start = out.len() - count;
    let blank = out[start].blank;
    out.truncate(start);
    let spelled = format!("'{}'", text.replace('\'', "''"));
    out.push(Piece { kind: Kind::Constant(text), blank, text: spelled.into() });
}

/// What stands between the last opening bracket and here becomes a constant or a list, if it is nothing else.
fn close(out: &mut Vec<Piece<'_>>, variables: &HashMap<String, String>) -> bool {
    let behind = out.iter().rev().take(2 * ELEMENTS_MAX + 2).position(|piece| is(Some(piece), "("));
    let Some(open) = behind.map(|behind| out.len() - 1 - behind) else { return false };
    // A bracket right behind a word is a call of a method.
    if open > 0
        && out[open].blank.is_empty()
        && matches!(&out[open - 1].kind, Kind::Word(word) if word.ends_with(char::is_alphanumeric) && word != "-join")
    {
        return false;
    }
    let inner = &out[open + 1..];
    let format = inner.get(1).filter(|piece| is(Some(piece), "-f")).and(inner.first());
    let elements = if format.is_some() { &inner[2..] } else { inner };
    let mut list = Vec::new();
    for (index, piece) in elements.iter().enumerate() {
        match (index % 2, constant(piece, variables)) {
            (0, Some(text)) => list.push(text.to_owned()),
            (1, None) if is(Some(piece), ",") => {}
            _ => return false,
        }
    }
    if list.is_empty() || elements.len().is_multiple_of(2) {
        return false;
    }
    let count = out.len() - open;
    if let Some(format) = format {
        let Some(format) = constant(format, variables) else { return false };
        let text = list
            .iter()
            .enumerate()
            .fold(format.to_owned(), |text, (index, value)| text.replace(&format!("{{{index}}}"), value));
        replace(out, count, text);
    } else if let [one] = list.as_slice() {
        let one = one.clone();
        replace(out, count, one);
    } else {
        let blank = out[open].blank;
        let text: String = out[open..].iter().map(|piece| format!("{}{}", piece.blank, piece.text)).collect();
        out.truncate(open);
        out.push(Piece { kind: Kind::List(list), blank, text: format!("{text})").into() });
    }
    true
}

/// Remembers `$name = constant` at the end of a statement.
fn assign(out: &[Piece<'_>], variables: &mut HashMap<String, String>) {
    if let [.., Piece { kind: Kind::Variable(name), .. }, sign, value] = out
        && is(Some(sign), "=")
    {
        match constant(value, variables).map(str::to_owned) {
            Some(text) => variables.insert(name.clone(), text),
            None => variables.remove(name),
        };
    }
}

/// The script as it stands now. Behind `&` and `.` a constant is the name of a command.
fn spell(out: &[Piece<'_>], variables: &HashMap<String, String>) -> String {
    let mut text = String::new();
    for (index, piece) in out.iter().enumerate() {
        text.push_str(piece.blank);
        let before = index.checked_sub(1).map(|before| &out[before]);
        let names_command = is(before, "&") || is(before, ".");
        match constant(piece, variables).filter(|_| names_command) {
            Some(name) => {
                text.push_str(name);
                text.push(' ');
            }
            None => match (&piece.kind, constant(piece, variables)) {
                (Kind::Variable(_), Some(value)) if !is(out.get(index + 1), "=") => {
                    text.push_str(&format!("'{}'", value.replace('\'', "''")));
                }
                _ => text.push_str(&piece.text),
            },
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn constants_are_put_together() {
        for (script, wanted) in [
            ("& ('Get' + '-Date')", "& Get-Date "),
            ("& ('G'+'et'+'-Date') -Format o", "& Get-Date  -Format o"),
            ("& (-join('l','s')) x", "& ls  x"),
            ("& (('l','s') -join '') x", "& ls  x"),
            ("& ('{1}{0}' -f 'Date','Get-') x", "& Get-Date  x"),
            ("$c = 'Get-' + 'Date'; & $c x", "$c = 'Get-Date'; & Get-Date  x"),
            (". ([char]108 + [char]0x73) x", ". ls  x"),
            ("Write-Output ('a' + 'b')", "Write-Output 'ab'"),
            ("$d = '/' + 'a'; Remove-Item $d", "$d = '/a'; Remove-Item '/a'"),
            ("$a + $b", "$a + $b"),
            ("'a' + $b", "'a' + $b"),
            ("f('a', 1) + 2", "f('a', 1) + 2"),
            ("'a + 'b", "'a + 'b"),
        ] {
            assert_eq!(fold(script).as_deref(), Some(wanted), "{script}");
        }
    }
}
