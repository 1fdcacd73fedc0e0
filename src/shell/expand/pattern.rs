//! Shell patterns (`*`, `?`, `[…]`, backslash) over known texts.
//!
//! All ends of a match are found in one pass over the text that keeps the set of places in the pattern, so the work is at
//! most pattern × text; callers charge [`cost`] first.

use super::super::ast::ReplaceScope;

/// Longest text whose matches are cut out or replaced, in bytes.
const TEXT_MAX: usize = 2048;
/// Longest pattern, in bytes.
const PATTERN_MAX: usize = 512;

/// Steps that one match costs.
pub(in crate::shell) fn cost(pattern: &str, text: &str) -> usize {
    1 + pattern.len().min(PATTERN_MAX).saturating_mul(text.len().min(TEXT_MAX)) / 6
}

/// Whether the pattern matches the whole text; `None` when either is too long to compare.
#[cfg(test)]
pub(in crate::shell) fn matches(pattern: &str, text: &str) -> Option<bool> {
    let pattern = compile(pattern)?;
    let text = characters(text)?;
    let mut whole = false;
    walk(&pattern, &text, |end| whole |= end == text.len());
    Some(whole)
}

/// The first of these names, which are ASCII, that the pattern matches, and the steps that it took to find them.
pub(in crate::shell) fn matching<'n>(pattern: &str, names: &[&'n str], most: usize) -> (Vec<&'n str>, usize) {
    let Some(pattern) = compile(pattern) else { return (Vec::new(), 1) };
    let fixed = pattern.iter().filter(|token| !matches!(token, Token::Star)).count();
    let has_star = fixed < pattern.len();
    let mut found = Vec::new();
    let mut work = 10;
    let mut text = Vec::new();
    for &name in names {
        let begins = match (pattern.first(), name.chars().next()) {
            (Some(first), Some(c)) => first.accepts(c),
            _ => false,
        };
        if !begins || name.len() < fixed || (!has_star && name.len() > fixed) {
            continue;
        }
        text.clear();
        text.extend(name.chars());
        let mut whole = false;
        work += walk(&pattern, &text, |end| whole |= end == text.len());
        if whole {
            found.push(name);
            if found.len() == most {
                break;
            }
        }
    }
    (found, work / 4)
}

/// Length in bytes of the part at the beginning of `text` that the pattern matches.
pub(super) fn prefix(pattern: &str, text: &str, longest: bool) -> Option<usize> {
    let pattern = compile(pattern)?;
    let chars = characters(text)?;
    let end = find(&pattern, &chars, longest)?;
    Some(chars[..end].iter().map(|c| c.len_utf8()).sum())
}

/// Where in bytes the part at the end of `text` begins that the pattern matches.
pub(super) fn suffix(pattern: &str, text: &str, longest: bool) -> Option<usize> {
    let mut pattern = compile(pattern)?;
    let mut chars = characters(text)?;
    pattern.reverse();
    chars.reverse();
    let end = find(&pattern, &chars, longest)?;
    Some(text.len() - chars[..end].iter().map(|c| c.len_utf8()).sum::<usize>())
}

/// The text with matches of the pattern replaced; `None` when that would be too much work.
pub(super) fn replace(pattern: &str, text: &str, with: &str, scope: ReplaceScope) -> Option<String> {
    if pattern.is_empty() {
        return Some(match scope {
            ReplaceScope::Prefix => format!("{with}{text}"),
            ReplaceScope::Suffix => format!("{text}{with}"),
            ReplaceScope::First | ReplaceScope::All => text.to_owned(),
        });
    }
    // A pattern without special characters is replaced as text, at any length.
    if !pattern.contains(['*', '?', '[', '\\']) {
        let unchanged = || text.to_owned();
        return Some(match scope {
            ReplaceScope::First => text.replacen(pattern, with, 1),
            ReplaceScope::All => text.replace(pattern, with),
            ReplaceScope::Prefix => {
                text.strip_prefix(pattern).map_or_else(unchanged, |rest| format!("{with}{rest}"))
            }
            ReplaceScope::Suffix => {
                text.strip_suffix(pattern).map_or_else(unchanged, |rest| format!("{rest}{with}"))
            }
        });
    }
    match scope {
        ReplaceScope::Prefix => Some(
            prefix(pattern, text, true)
                .map_or_else(|| text.to_owned(), |end| format!("{with}{}", &text[end..])),
        ),
        ReplaceScope::Suffix => Some(
            suffix(pattern, text, true)
                .map_or_else(|| text.to_owned(), |at| format!("{}{with}", &text[..at])),
        ),
        ReplaceScope::First | ReplaceScope::All => replace_inside(pattern, text, with, scope),
    }
}

fn replace_inside(pattern: &str, text: &str, with: &str, scope: ReplaceScope) -> Option<String> {
    let pattern = compile(pattern)?;
    let chars = characters(text)?;
    let mut replaced = String::with_capacity(text.len());
    let mut at = 0;
    let mut work = 0_usize;
    while at < chars.len() {
        let mut found = None;
        work += walk(&pattern, &chars[at..], |end| found = Some(end));
        if work > 1 << 17 {
            return None;
        }
        match found.filter(|&end| end > 0) {
            Some(end) => {
                replaced.push_str(with);
                at += end;
                if scope == ReplaceScope::First {
                    break;
                }
            }
            None => {
                replaced.push(chars[at]);
                at += 1;
            }
        }
    }
    replaced.extend(&chars[at..]);
    Some(replaced)
}

/// A place of a pattern.
#[derive(Clone, Debug)]
enum Token {
    /// `*`
    Star,
    /// `?`
    Any,
    /// A character that means itself.
    Char(char),
    /// A bracket expression.
    Set { negated: bool, ranges: Vec<(char, char)>, classes: Vec<String> },
}

impl Token {
    fn accepts(&self, c: char) -> bool {
        match self {
            Self::Star | Self::Any => true,
            Self::Char(own) => *own == c,
            Self::Set { negated, ranges, classes } => {
                let is_in = ranges.iter().any(|&(low, high)| (low..=high).contains(&c))
                    || classes.iter().any(|class| in_class(class, c));
                is_in != *negated
            }
        }
    }
}

fn characters(text: &str) -> Option<Vec<char>> {
    (text.len() <= TEXT_MAX).then(|| text.chars().collect())
}

fn compile(pattern: &str) -> Option<Vec<Token>> {
    if pattern.len() > PATTERN_MAX {
        return None;
    }
    let chars: Vec<char> = pattern.chars().collect();
    let mut tokens: Vec<Token> = Vec::with_capacity(chars.len());
    let mut at = 0;
    while at < chars.len() {
        let (token, next) = match chars[at] {
            '*' => (Token::Star, at + 1),
            '?' => (Token::Any, at + 1),
            '\\' if at + 1 < chars.len() => (Token::Char(chars[at + 1]), at + 2),
            '[' => bracket(&chars, at).unwrap_or((Token::Char('['), at + 1)),
            other => (Token::Char(other), at + 1),
        };
        tokens.push(token);
        at = next;
    }
    Some(tokens)
}

/// A bracket expression and where it ends; `None` if it does not end.
fn bracket(chars: &[char], start: usize) -> Option<(Token, usize)> {
    let mut at = start + 1;
    let negated = matches!(chars.get(at), Some('!' | '^'));
    at += usize::from(negated);
    let first = at;
    let (mut ranges, mut classes) = (Vec::new(), Vec::new());
    loop {
        let mut low = *chars.get(at)?;
        if low == ']' && at > first {
            return Some((Token::Set { negated, ranges, classes }, at + 1));
        }
        if low == '[' && chars.get(at + 1) == Some(&':') {
            let end = (at + 2..chars.len().min(at + 12))
                .find(|&end| chars[end] == ':' && chars.get(end + 1) == Some(&']'))?;
            classes.push(chars[at + 2..end].iter().collect());
            at = end + 2;
            continue;
        }
        if low == '\\' && at + 1 < chars.len() {
            at += 1;
            low = chars[at];
        }
        match (chars.get(at + 1), chars.get(at + 2)) {
            (Some('-'), Some(&high)) if high != ']' => {
                ranges.push((low, high));
                at += 3;
            }
            _ => {
                ranges.push((low, low));
                at += 1;
            }
        }
    }
}

fn find(pattern: &[Token], text: &[char], longest: bool) -> Option<usize> {
    let mut found = None;
    walk(pattern, text, |end| {
        if longest || found.is_none() {
            found = Some(end);
        }
    });
    found
}

/// Calls `matched` with every end of a match that begins at the start of `text`, in order. Gives the work done.
fn walk(pattern: &[Token], text: &[char], mut matched: impl FnMut(usize)) -> usize {
    let mut places = vec![false; pattern.len() + 1];
    let mut next = places.clone();
    let mut work = pattern.len();
    enter(pattern, &mut places, 0);
    for at in 0..=text.len() {
        if places[pattern.len()] {
            matched(at);
        }
        let Some(&c) = text.get(at) else { break };
        next.fill(false);
        let mut is_alive = false;
        for (place, token) in pattern.iter().enumerate() {
            if places[place] && token.accepts(c) {
                is_alive = true;
                // A star stays where it is; the way past it was opened on entering it.
                let to = if matches!(token, Token::Star) { place } else { place + 1 };
                enter(pattern, &mut next, to);
            }
        }
        work += pattern.len();
        std::mem::swap(&mut places, &mut next);
        if !is_alive {
            break;
        }
    }
    work
}

/// Marks a place, and those behind it that need no character.
fn enter(pattern: &[Token], places: &mut [bool], mut place: usize) {
    while !places[place] {
        places[place] = true;
        if !matches!(pattern.get(place), Some(Token::Star)) {
            break;
        }
        place += 1;
    }
}

/// Whether a character belongs to a named class.
pub(in crate::shell) fn in_class(class: &str, c: char) -> bool {
    match class {
        "alpha" => c.is_alphabetic(),
        "digit" => c.is_ascii_digit(),
        "alnum" => c.is_alphanumeric(),
        "upper" => c.is_uppercase(),
        "lower" => c.is_lowercase(),
        "space" => c.is_whitespace(),
        "blank" => matches!(c, ' ' | '\t'),
        "punct" => c.is_ascii_punctuation(),
        "print" => !c.is_control(),
        "graph" => !c.is_control() && !c.is_whitespace(),
        "cntrl" => c.is_control(),
        "xdigit" => c.is_ascii_hexdigit(),
        "word" => c.is_alphanumeric() || c == '_',
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, text, wanted) in [
            ("*", "", true),
            ("r?", "rm", true),
            ("r?", "r", false),
            ("/bin/r[a-m]", "/bin/rm", true),
            ("[!a]b", "ab", false),
            ("[]x]", "]", true),
            ("[[:digit:]]*z", "7az", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("*a*b*c", "xxaxxbxxc", true),
            ("[", "[", true),
            ("a**b", "ab", true),
            ("[\\]]", "]", true),
        ] {
            assert_eq!(matches(pattern, text), Some(wanted), "{pattern} {text}");
        }
    }

    #[test]
    fn cuts_and_replacements() {
        assert_eq!(prefix("*/", "a/b/c", false), Some(2));
        assert_eq!(prefix("*/", "a/b/c", true), Some(4));
        assert_eq!(suffix(".*", "a.b.c", false), Some(3));
        assert_eq!(suffix(".*", "a.b.c", true), Some(1));
        assert_eq!(replace("[0-9]", "a1b2", "", ReplaceScope::All).as_deref(), Some("ab"));
        assert_eq!(replace("?", "ab", "x", ReplaceScope::First).as_deref(), Some("xb"));
        assert_eq!(replace("#", "r#m", "", ReplaceScope::All).as_deref(), Some("rm"));
    }

    #[test]
    fn too_much_work_is_not_done() {
        let long = "a".repeat(1 << 17);
        assert_eq!(matches("*a*b", &long), None);
        assert_eq!(prefix("*b", &long, true), None);
    }
}
