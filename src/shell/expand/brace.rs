//! Brace expansion: `{a,b}`, nested, and ranges, over the parts of a word.

use super::super::argument::HOLE;
use super::super::ast::Part;

/// Most words one word may become.
const WORDS_MAX: usize = 1024;
/// Deepest nesting that is expanded.
const DEPTH_MAX: usize = 16;

/// A piece of a word after brace expansion.
#[derive(Clone, Copy)]
pub(super) enum Piece<'p, 's> {
    /// Bare text, a piece of a part.
    Bare(&'p str),
    /// Bare text made by a range.
    Item(char),
    /// A number made by a range, and its width when zeros fill it.
    Number(i64, usize),
    /// A whole part.
    Part(&'p Part<'s>),
}

/// What came of an expansion.
pub(super) enum Expansion<'p, 's> {
    /// The word holds no braces that mean anything.
    Plain,
    /// The words it becomes.
    Words(Vec<Vec<Piece<'p, 's>>>),
    /// More words than the limit.
    TooMany,
}

#[derive(Clone, Copy)]
enum Token<'p, 's> {
    Piece(Piece<'p, 's>),
    Open(usize),
    Comma,
    Close,
}

/// The words that a word becomes.
pub(super) fn expand<'p, 's>(parts: &'p [Part<'s>]) -> Expansion<'p, 's> {
    let has_braces = |part: &Part<'_>| matches!(part, Part::Bare(text) if text.contains('{'));
    if !parts.iter().any(has_braces) {
        return Expansion::Plain;
    }
    let tokens = tokens(parts);
    if !tokens.iter().any(|token| matches!(token, Token::Open(_))) {
        return Expansion::Plain;
    }
    let mut words = vec![Vec::new()];
    let mut left = WORDS_MAX * 8;
    match sequence(&tokens, 0, tokens.len(), &mut words, DEPTH_MAX, &mut left) {
        Some(()) => Expansion::Words(words),
        None => Expansion::TooMany,
    }
}

/// Cuts parts at braces and commas; braces without partner or without a comma or range stay text.
fn tokens<'p, 's>(parts: &'p [Part<'s>]) -> Vec<Token<'p, 's>> {
    let mut raw: Vec<(Token<'p, 's>, &'p str)> = Vec::new();
    for part in parts {
        let Part::Bare(text) = part else {
            raw.push((Token::Piece(Piece::Part(part)), ""));
            continue;
        };
        let mut rest = *text;
        while let Some(at) = rest.find(['{', ',', '}']) {
            if at > 0 {
                raw.push((Token::Piece(Piece::Bare(&rest[..at])), &rest[..at]));
            }
            let sign = &rest[at..=at];
            raw.push((
                match sign {
                    "{" => Token::Open(0),
                    "," => Token::Comma,
                    _ => Token::Close,
                },
                sign,
            ));
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            raw.push((Token::Piece(Piece::Bare(rest)), rest));
        }
    }
    // For each open brace: where it closes, and whether there is a comma at its own level or a range inside.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut partner = vec![usize::MAX; raw.len()];
    let mut owner = vec![usize::MAX; raw.len()];
    for at in 0..raw.len() {
        match raw[at].0 {
            Token::Open(_) => open.push((at, false)),
            Token::Comma => {
                if let Some(last) = open.last_mut() {
                    last.1 = true;
                    owner[at] = last.0;
                }
            }
            Token::Close => {
                if let Some((start, has_comma)) = open.pop() {
                    let is_range = at == start + 2 && range(raw[start + 1].1).is_some();
                    if has_comma || is_range {
                        partner[start] = at;
                        partner[at] = start;
                    }
                }
            }
            Token::Piece(_) => {}
        }
    }
    raw.iter()
        .enumerate()
        .map(|(at, &(token, text))| match token {
            Token::Open(_) if partner[at] != usize::MAX => Token::Open(partner[at]),
            Token::Close if partner[at] != usize::MAX => Token::Close,
            Token::Comma if owner[at] != usize::MAX && partner[owner[at]] != usize::MAX => Token::Comma,
            Token::Piece(piece) => Token::Piece(piece),
            _ => Token::Piece(Piece::Bare(text)),
        })
        .collect()
}

/// Appends what tokens `start..end` become to each of the words.
fn sequence<'p, 's>(
    tokens: &[Token<'p, 's>],
    start: usize,
    end: usize,
    words: &mut Vec<Vec<Piece<'p, 's>>>,
    depth: usize,
    left: &mut usize,
) -> Option<()> {
    let mut at = start;
    while at < end {
        *left = left.checked_sub(words.len())?;
        match tokens[at] {
            Token::Piece(piece) => words.iter_mut().for_each(|word| word.push(piece)),
            Token::Open(close) => {
                let items = items(tokens, at, close, depth.checked_sub(1)?, left)?;
                if words.len().saturating_mul(items.len()) > WORDS_MAX {
                    return None;
                }
                let mut product = Vec::with_capacity(words.len() * items.len());
                for word in words.iter() {
                    for item in &items {
                        *left = left.checked_sub(1)?;
                        product.push(word.iter().chain(item).copied().collect());
                    }
                }
                *words = product;
                at = close;
            }
            Token::Comma | Token::Close => {}
        }
        at += 1;
    }
    Some(())
}

/// The alternatives between two braces.
fn items<'p, 's>(
    tokens: &[Token<'p, 's>],
    open: usize,
    close: usize,
    depth: usize,
    left: &mut usize,
) -> Option<Vec<Vec<Piece<'p, 's>>>> {
    if close == open + 2
        && let Token::Piece(Piece::Bare(text)) = tokens[open + 1]
        && let Some(range) = range(text)
    {
        return Some(range.into_iter().map(|piece| vec![piece]).collect());
    }
    let mut all = Vec::new();
    let mut start = open + 1;
    let mut at = start;
    while at <= close {
        match tokens[at] {
            Token::Open(end) => at = end,
            Token::Comma | Token::Close => {
                let mut words = vec![Vec::new()];
                sequence(tokens, start, at, &mut words, depth, left)?;
                all.append(&mut words);
                if all.len() > WORDS_MAX {
                    return None;
                }
                start = at + 1;
            }
            Token::Piece(_) => {}
        }
        at += 1;
    }
    Some(all)
}

/// Items of `x..y` or `x..y..step`; one unknown item stands for more than the limit. `None`: no range.
fn range<'p, 's>(text: &str) -> Option<Vec<Piece<'p, 's>>> {
    let mut ends = text.split("..");
    let (from, to, step) = (ends.next()?, ends.next()?, ends.next());
    if ends.next().is_some() {
        return None;
    }
    let step = match step {
        None => 1,
        Some(step) => step.parse::<i64>().ok()?.checked_abs()?.max(1),
    };
    let (low, high, width) = match (single(from), single(to)) {
        (Some(low), Some(high)) => (i64::from(u32::from(low)), i64::from(u32::from(high)), None),
        _ => {
            let fills =
                |n: &str| n.trim_start_matches('-').starts_with('0') && n.trim_start_matches('-').len() > 1;
            let width = if fills(from) || fills(to) { from.len().max(to.len()) } else { 0 };
            (from.parse::<i64>().ok()?, to.parse::<i64>().ok()?, Some(width))
        }
    };
    if low.abs_diff(high) / step.unsigned_abs() >= WORDS_MAX as u64 {
        return Some(vec![Piece::Item(HOLE)]);
    }
    let mut all = Vec::new();
    let mut value = low;
    loop {
        all.push(match width {
            Some(width) => Piece::Number(value, width),
            None => Piece::Item(u32::try_from(value).ok().and_then(char::from_u32).unwrap_or('?')),
        });
        let next = if low <= high { value.checked_add(step) } else { value.checked_sub(step) };
        match next {
            Some(next) if (low <= high && next <= high) || (low > high && next >= high) => value = next,
            _ => return Some(all),
        }
    }
}

fn single(text: &str) -> Option<char> {
    let mut chars = text.chars();
    let first = chars.next().filter(char::is_ascii_alphabetic)?;
    chars.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Option<Vec<String>> {
        let parts = [Part::Bare(text)];
        match expand(&parts) {
            Expansion::Plain => Some(vec![text.to_owned()]),
            Expansion::TooMany => None,
            Expansion::Words(words) => Some(
                words
                    .iter()
                    .map(|pieces| {
                        pieces
                            .iter()
                            .map(|piece| match piece {
                                Piece::Bare(text) => (*text).to_owned(),
                                Piece::Item(c) => c.to_string(),
                                Piece::Number(n, width) => format!("{n:0width$}"),
                                Piece::Part(_) => "?".to_owned(),
                            })
                            .collect()
                    })
                    .collect(),
            ),
        }
    }

    #[test]
    fn braces_expand_as_in_bash() {
        for (text, wanted) in [
            ("{rm,-rf,/}", "rm -rf /"),
            ("a{b,c}d", "abd acd"),
            ("{a,{b,c}}", "a b c"),
            ("{a,b}{1,2}", "a1 a2 b1 b2"),
            ("{1..3}", "1 2 3"),
            ("{03..1}", "03 02 01"),
            ("{a..e..2}", "a c e"),
            ("{a}", "{a}"),
            ("{a,b", "{a,b"),
            ("a,b}", "a,b}"),
            ("{}", "{}"),
            ("{,a}b", "b ab"),
            ("{{a},b}", "{a} b"),
            ("{x{a,b}", "{xa {xb"),
        ] {
            assert_eq!(words(text).map(|w| w.join(" ")).as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn explosions_are_refused() {
        assert_eq!(words(&"{a,b}".repeat(30)), None);
        assert_eq!(words("{1..100000}"), Some(vec!["\0".to_owned()]));
        assert_eq!(words(&format!("{}a,b{}", "{".repeat(100), "}".repeat(100))).map(|w| w.len()), Some(2));
    }
}
