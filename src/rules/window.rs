//! Where in a match a rule's literals stand, read from the pattern itself.
//!
//! A rule runs in a window around a literal. The tighter the window, the cheaper the rule: when every match begins with
//! one of the literals the regex can be anchored there, and dies after a few bytes on most texts.
//!
//! Invariant: a window never hides a match that holds one of the literals. Where the analysis is not sure, it answers
//! with the widest window.

use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Class, Hir, HirKind};

/// How far before a literal a match may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lookback {
    /// Bytes before the first byte of the literal.
    pub bytes: usize,
    /// Whether every match begins exactly at a literal.
    pub is_prefix: bool,
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
            let mut rep = rep.clone();
            rep.sub = Box::new(fold_ascii_case(&rep.sub));
            Hir::repetition(rep)
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

    fn of(pattern: &str, literals: &[&str]) -> Lookback {
        let hir = regex_syntax::ParserBuilder::new()
            .unicode(false)
            .utf8(false)
            .build()
            .parse(pattern)
            .expect("test patterns are valid");
        let literals: Vec<String> = literals.iter().map(|l| (*l).to_owned()).collect();
        lookback(&hir, &literals, 200)
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
