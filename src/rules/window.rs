//! Where in a match a rule's literals stand, read from the pattern itself.
//!
//! A rule runs in a window around a literal. The tighter the window, the cheaper the rule: when every match begins with
//! one of the literals the regex can be anchored there, and dies after a few bytes on most texts.
//!
//! Invariant: a window never hides a match that holds one of the literals. Where the analysis is not sure, it answers
//! with the widest window.

use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

/// How far before a literal a match may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lookback {
    /// Bytes before the first byte of the literal.
    pub bytes: usize,
    /// Whether every match begins exactly at a literal.
    pub is_prefix: bool,
}

/// Where the matches of a pattern can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Begin {
    /// At the byte before a token, which is no ASCII letter or digit, or with the text.
    BeforeToken,
    /// There, or at a letter or digit before that byte.
    NearToken,
    /// With a token: the byte before it, if there is one, is no ASCII letter or digit.
    AtToken,
    /// No one knows.
    Anywhere,
}

/// Reads from a pattern where its matches can begin.
pub(super) fn begin(hir: &Hir) -> Begin {
    let mut parts = Vec::new();
    flatten(hir, &mut parts);
    match parts.split_first().map(|(first, rest)| (first.kind(), rest)) {
        Some((HirKind::Look(Look::WordAscii), rest)) if begins_with_word_byte(rest) => Begin::AtToken,
        Some((HirKind::Alternation(either), _)) if either.iter().all(is_edge) => Begin::BeforeToken,
        Some((HirKind::Alternation(_), _)) if from_edge(hir).is_some() => Begin::NearToken,
        Some((HirKind::Literal(literal), _)) if !literal.0[0].is_ascii_alphanumeric() => Begin::BeforeToken,
        _ => Begin::Anywhere,
    }
}

/// Whether what a pattern matches is made of the bytes that `is_part` knows, but for the byte before and the byte after.
pub(super) fn is_within(hir: &Hir, is_part: fn(u8) -> bool) -> bool {
    let mut parts = Vec::new();
    flatten(hir, &mut parts);
    let is_end = |part: &Hir| match part.kind() {
        HirKind::Alternation(either) => either.iter().all(|one| {
            matches!(one.kind(), HirKind::Look(Look::End))
                || (matches!(one.kind(), HirKind::Class(_)) && one.properties().maximum_len() == Some(1))
        }),
        _ => false,
    };
    let mut inner = &parts[..];
    if let [first, rest @ ..] = inner
        && matches!(first.kind(), HirKind::Alternation(either) if either.iter().all(is_edge))
    {
        inner = rest;
    }
    if let [rest @ .., last] = inner
        && is_end(last)
    {
        inner = rest;
    }
    inner.iter().all(|part| is_made_of(part, is_part))
}

fn is_made_of(hir: &Hir, is_part: fn(u8) -> bool) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => literal.0.iter().all(|byte| is_part(*byte)),
        HirKind::Class(class) => bytes_of(class)
            .is_some_and(|ranges| ranges.into_iter().all(|range| range.into_iter().all(is_part))),
        HirKind::Repetition(repetition) => is_made_of(&repetition.sub, is_part),
        HirKind::Capture(capture) => is_made_of(&capture.sub, is_part),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().all(|part| is_made_of(part, is_part))
        }
    }
}

/// Whether a pattern may match a text and not the same with blanks for line breaks.
pub(super) fn minds_breaks(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty => false,
        HirKind::Look(look) => matches!(look, Look::StartLF | Look::EndLF | Look::StartCRLF | Look::EndCRLF),
        HirKind::Literal(literal) => literal.0.contains(&b'\n'),
        HirKind::Class(class) => bytes_of(class).is_none_or(|ranges| {
            let holds = |byte: u8| ranges.iter().any(|range| range.contains(&byte));
            holds(b'\n') && !holds(b' ')
        }),
        HirKind::Repetition(repetition) => minds_breaks(&repetition.sub),
        HirKind::Capture(capture) => minds_breaks(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(minds_breaks),
    }
}

/// The parts of a concatenation, groups looked through.
fn flatten<'h>(hir: &'h Hir, parts: &mut Vec<&'h Hir>) {
    match hir.kind() {
        HirKind::Concat(all) => all.iter().for_each(|part| flatten(part, parts)),
        HirKind::Capture(capture) => flatten(&capture.sub, parts),
        _ => parts.push(hir),
    }
}

/// What is left of a pattern from the byte before a token on, where a letter or digit may stand before that byte; none where
/// it may begin otherwise.
pub(super) fn from_edge(hir: &Hir) -> Option<Hir> {
    let HirKind::Concat(parts) = hir.kind() else { return None };
    let (first, rest) = parts.split_first()?;
    let HirKind::Alternation(either) = first.kind() else { return None };
    let edge = |one: &Hir| match one.kind() {
        _ if is_edge(one) => Some(one.clone()),
        HirKind::Concat(both) => match &both[..] {
            [letter, edge] if is_letter(letter) && is_edge(edge) => Some(edge.clone()),
            _ => None,
        },
        _ => None,
    };
    let edges = either.iter().map(edge).collect::<Option<Vec<Hir>>>()?;
    Some(Hir::concat(std::iter::once(Hir::alternation(edges)).chain(rest.iter().cloned()).collect()))
}

/// Whether it is one ASCII letter or digit.
fn is_letter(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => matches!(&literal.0[..], [byte] if byte.is_ascii_alphanumeric()),
        HirKind::Class(class) => bytes_of(class).is_some_and(|ranges| {
            ranges.into_iter().all(|range| range.into_iter().all(|byte| byte.is_ascii_alphanumeric()))
        }),
        _ => false,
    }
}

/// Whether it is the beginning of the text, or one byte that is no ASCII letter or digit.
fn is_edge(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Look(Look::Start) => true,
        HirKind::Literal(literal) => matches!(&literal.0[..], [byte] if !byte.is_ascii_alphanumeric()),
        HirKind::Class(class) => bytes_of(class).is_some_and(|ranges| {
            !ranges.into_iter().any(|range| range.into_iter().any(|byte| byte.is_ascii_alphanumeric()))
        }),
        _ => false,
    }
}

/// Whether every match of the parts begins with a letter, a digit or `_`.
fn begins_with_word_byte(parts: &[&Hir]) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let Some((first, rest)) = parts.split_first() else { return false };
    match first.kind() {
        HirKind::Literal(literal) => literal.0.first().is_some_and(|byte| is_word(*byte)),
        HirKind::Class(class) => bytes_of(class)
            .is_some_and(|ranges| ranges.into_iter().all(|range| range.into_iter().all(is_word))),
        HirKind::Repetition(repetition) => {
            begins_with_word_byte(&[&repetition.sub]) && (repetition.min > 0 || begins_with_word_byte(rest))
        }
        HirKind::Alternation(either) => either.iter().all(|one| {
            let mut parts = Vec::new();
            flatten(one, &mut parts);
            begins_with_word_byte(&parts)
        }),
        HirKind::Capture(_) | HirKind::Concat(_) => {
            let mut parts = Vec::new();
            flatten(first, &mut parts);
            begins_with_word_byte(&parts)
        }
        HirKind::Empty | HirKind::Look(_) => false,
    }
}

/// The bytes of a class; none for one of characters beyond ASCII.
fn bytes_of(class: &Class) -> Option<Vec<std::ops::RangeInclusive<u8>>> {
    match class {
        Class::Bytes(class) => Some(class.ranges().iter().map(|r| r.start()..=r.end()).collect()),
        Class::Unicode(class) => {
            let byte = |c: char| u8::try_from(c).ok().filter(u8::is_ascii);
            class.ranges().iter().map(|r| Some(byte(r.start())?..=byte(r.end())?)).collect()
        }
    }
}

/// Finds the look-back of a pattern for its literals (ASCII lower case).
pub(super) fn lookback(hir: &Hir, literals: &[String], match_length_max: usize) -> Lookback {
    let widest = Lookback { bytes: match_length_max, is_prefix: false };
    let folded = fold_ascii_case(hir);
    let parts = byte_by_byte(folded);
    let mut before = 0usize;
    for at in 0..parts.len() {
        if may_begin(&parts[at], literals)
            && begins_with_literal(&Hir::concat(parts[at..].to_vec()), literals)
        {
            return Lookback { bytes: before.min(match_length_max), is_prefix: before == 0 };
        }
        match parts[at].properties().maximum_len() {
            Some(len) => before = before.saturating_add(len),
            None => return widest,
        }
    }
    widest
}

/// The parts of a concatenation, its literals cut into bytes: a gate literal may begin inside one.
fn byte_by_byte(hir: Hir) -> Vec<Hir> {
    let parts = match hir.kind() {
        HirKind::Concat(parts) => parts.clone(),
        _ => vec![hir],
    };
    let mut out = Vec::with_capacity(parts.len());
    for part in parts {
        match part.kind() {
            HirKind::Literal(lit) => out.extend(lit.0.iter().map(|byte| Hir::literal([*byte]))),
            _ => out.push(part),
        }
    }
    out
}

/// A cheap look before the costly one: a literal byte must be the first of some gate literal.
fn may_begin(part: &Hir, literals: &[String]) -> bool {
    match part.kind() {
        HirKind::Literal(lit) => literals.iter().any(|known| known.as_bytes().first() == lit.0.first()),
        _ => true,
    }
}

/// Whether every match of `hir` begins with one of `literals`.
fn begins_with_literal(hir: &Hir, literals: &[String]) -> bool {
    let mut extractor = Extractor::new();
    extractor.kind(ExtractKind::Prefix).limit_class(16).limit_total(2_000).limit_literal_len(64);
    let seq = extractor.extract(hir);
    let Some(found) = seq.literals() else { return false };
    !found.is_empty()
        && found.iter().all(|lit| literals.iter().any(|known| lit.as_bytes().starts_with(known.as_bytes())))
}

/// The pattern with ASCII letters in lower case and `[Xx]` as the literal `x`, since the gate ignores ASCII case.
fn fold_ascii_case(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => hir.clone(),
        HirKind::Literal(lit) => Hir::literal(lit.0.to_ascii_lowercase()),
        HirKind::Class(class) => single_letter(class).map_or_else(|| hir.clone(), |b| Hir::literal([b])),
        HirKind::Repetition(rep) => {
            let sub = Box::new(fold_ascii_case(&rep.sub));
            Hir::repetition(Repetition { min: rep.min, max: rep.max, greedy: rep.greedy, sub })
        }
        // A group changes nothing about where literals stand, and looking through it joins its parts with its neighbours.
        HirKind::Capture(capture) => fold_ascii_case(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(fold_ascii_case).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(fold_ascii_case).collect()),
    }
}

/// The letter of a class that holds exactly one ASCII letter in both cases.
fn single_letter(class: &Class) -> Option<u8> {
    let mut letters = Vec::with_capacity(2);
    match class {
        Class::Bytes(class) => {
            for range in class.ranges() {
                if range.start() != range.end() {
                    return None;
                }
                letters.push(u32::from(range.start()));
            }
        }
        Class::Unicode(class) => {
            for range in class.ranges() {
                if range.start() != range.end() {
                    return None;
                }
                letters.push(range.start() as u32);
            }
        }
    }
    match letters.as_slice() {
        [a, b] => {
            let (a, b) = (u8::try_from(*a).ok()?, u8::try_from(*b).ok()?);
            (a.is_ascii_uppercase() && a.to_ascii_lowercase() == b).then_some(b)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pattern: &str) -> Hir {
        let mut parser = regex_syntax::ParserBuilder::new();
        parser.unicode(false).utf8(false).build().parse(pattern).expect("test patterns are valid")
    }

    fn of(pattern: &str, literals: &[&str]) -> Lookback {
        let hir = parse(pattern);
        let literals: Vec<String> = literals.iter().map(|l| (*l).to_owned()).collect();
        lookback(&hir, &literals, 200)
    }

    #[test]
    fn reads_where_matches_begin() {
        for (pattern, wanted) in [
            (r"\b[0-9a-f]{32}", Begin::AtToken),
            (r"(?i)\b(?P<value>0x[0-9a-f]+|_x)", Begin::AtToken),
            (r"\b(?:a?b|(?:c|d)e)", Begin::AtToken),
            (r"\b(?:a|)b", Begin::Anywhere),
            (r"\b(?:a?-b)", Begin::Anywhere),
            (r"\b-x", Begin::Anywhere),
            (r"(?:^|[^A-Za-z0-9])(?P<value>\+\d)", Begin::BeforeToken),
            (r"(?:^|[^A-Za-z0-9.])(?P<value>\d)", Begin::BeforeToken),
            (r"(?:^|[^A-Za-z])\d", Begin::Anywhere),
            (r"(?:^|[^A-Za-z0-9+]|[A-Z]\+)(?P<value>\d)", Begin::NearToken),
            (r"(?:^|[^A-Za-z0-9]|[A-Z]7)\d", Begin::Anywhere),
            (r"(?:^|[^A-Za-z0-9]|[A-Z][A-Z]\+)\d", Begin::Anywhere),
            (r"%[Bb]\d", Begin::BeforeToken),
            (r"(?m:^|[^A-Za-z0-9])\d", Begin::Anywhere),
            (r"phone \d", Begin::Anywhere),
        ] {
            assert_eq!(begin(&parse(pattern)), wanted, "{pattern}");
        }
    }

    #[test]
    fn reads_what_a_pattern_is_made_of() {
        let is_digit = |byte: u8| byte.is_ascii_digit();
        for (pattern, wanted) in [
            (r"\b\d{3}(?:4|5+)\b", true),
            (r"(?:^|[^0-9A-Za-z])(?P<value>\d{3})(?:[^0-9]|$)", true),
            (r"(?:^|[^0-9A-Za-z])(?P<value>\d{3}-)(?:[^0-9]|$)", false),
            (r"(?:x|\d)\d", false),
            (r"\d(?:[a-z]{2}|$)", false),
        ] {
            assert_eq!(is_within(&parse(pattern), is_digit), wanted, "{pattern}");
        }
    }

    #[test]
    fn reads_where_the_literal_stands() {
        let prefix = Lookback { bytes: 0, is_prefix: true };
        let widest = Lookback { bytes: 200, is_prefix: false };
        assert_eq!(of(r"sk-[a-z]{20}", &["sk-"]), prefix);
        assert_eq!(of(r"(?i)\b(?:ignore|disregard)\s+all", &["ignore", "disregard"]), prefix);
        assert_eq!(of(r"(?i)\b(ignore|omit)\s+all", &["ignore"]), widest);
        assert_eq!(of(r"[a-z]{3,8}://x", &["://"]), Lookback { bytes: 8, is_prefix: false });
        assert_eq!(of(r"\w+@x", &["@x"]), widest);
        assert_eq!(
            of(r"(?i)all (?:previous|prior) instructions", &["instructions"]),
            Lookback { bytes: 13, is_prefix: false }
        );
    }
}
