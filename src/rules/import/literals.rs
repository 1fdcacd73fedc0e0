//! Literals of which every match of a pattern holds one, for its gate.

use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Hir, HirKind};

use crate::rules::needs::lower;

/// Shortest literal that a gate takes, in bytes.
pub(super) const LITERAL_MIN: usize = 3;
/// Most literals that are worth a gate.
const LITERALS_MAX: usize = 64;
/// Longest literal that is read: what is longer is no rarer.
const LITERAL_BYTES_MAX: usize = 64;
/// Largest class of which each byte is tried: letters of one case and digits, `-` and `_`.
const CLASS_MAX: usize = 38;
/// Parts of a concatenation that are read together for the literals that begin there.
const PARTS: usize = 16;
/// Literals longer than these are no rarer than such.
const LONG: usize = 6;
/// How much rarer a literal is for each of its bytes: binary logarithm, about.
const BITS_PER_BYTE: usize = 4;

/// Literals of at least three bytes (ASCII lower case) of which every match holds one, rare ones: long and few.
pub(super) fn required(hir: &Hir) -> Option<Vec<String>> {
    of(&lower(hir))
}

/// Without duplicates and without those that hold another one: where they stand, the other one does.
pub(super) fn shortest(mut literals: Vec<String>) -> Vec<String> {
    literals.sort_by_key(String::len);
    let mut kept: Vec<String> = Vec::new();
    for literal in literals {
        if !kept.iter().any(|part| literal.contains(part.as_str())) {
            kept.push(literal);
        }
    }
    kept
}

/// The best set of literals that a pattern in lower case shows.
fn of(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => None,
        HirKind::Literal(_) | HirKind::Class(_) => prefixes(hir),
        HirKind::Repetition(repetition) if repetition.min > 0 => {
            better([prefixes(hir), of(&repetition.sub)].into_iter().flatten())
        }
        HirKind::Repetition(_) => None,
        HirKind::Capture(capture) => of(&capture.sub),
        HirKind::Concat(parts) => better((0..parts.len()).flat_map(|at| {
            let most = parts.len().min(at + PARTS);
            let together =
                (at + 1..=most).filter_map(move |to| prefixes(&Hir::concat(parts[at..to].to_vec())));
            let own = match parts[at].kind() {
                HirKind::Literal(_) | HirKind::Class(_) => None,
                _ => of(&parts[at]),
            };
            together.chain(own)
        })),
        HirKind::Alternation(branches) => {
            let all: Option<Vec<Vec<String>>> = branches.iter().map(of).collect();
            all.map(|all| shortest(all.concat())).filter(|all| all.len() <= LITERALS_MAX)
        }
    }
}

/// The set of which a text holds one most rarely, about.
fn better(sets: impl Iterator<Item = Vec<String>>) -> Option<Vec<String>> {
    let rarity = |set: &Vec<String>| {
        let least = set.iter().map(String::len).min().unwrap_or_default();
        (BITS_PER_BYTE * least.min(LONG)) as f64 - (set.len() as f64).log2()
    };
    sets.max_by(|one, other| rarity(one).total_cmp(&rarity(other)))
}

/// The literals with which matches of a pattern in lower case begin, if it begins with few that are long enough.
fn prefixes(hir: &Hir) -> Option<Vec<String>> {
    let mut extractor = Extractor::new();
    extractor
        .kind(ExtractKind::Prefix)
        .limit_class(CLASS_MAX)
        .limit_repeat(LITERAL_MIN)
        .limit_literal_len(LITERAL_BYTES_MAX)
        .limit_total(LITERALS_MAX);
    let found = extractor.extract(hir);
    let texts: Option<Vec<String>> =
        found.literals()?.iter().map(|literal| String::from_utf8(literal.as_bytes().to_vec()).ok()).collect();
    let texts = shortest(texts?.into_iter().map(|text| text.to_ascii_lowercase()).collect());
    let is_long = !texts.is_empty() && texts.iter().all(|text| text.len() >= LITERAL_MIN);
    is_long.then_some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_literals_are_read_from_a_pattern() {
        let hex: Vec<String> = "0123456789abcdef".chars().map(|digit| format!("sk{digit}")).collect();
        let hex: Vec<&str> = hex.iter().map(String::as_str).collect();
        for (pattern, wanted) in [
            ("(?i)datadogs?(?:_key)?[=:]([0-9a-z]{20})", Some(&["datadog"][..])),
            ("(?i)(?:meraki|mercury)[ =][0-9a-z]{20}", Some(&["meraki", "mercury"])),
            ("(?i)passw(?:or)?d=[0-9a-z]{20}", Some(&["passwd=", "password="])),
            ("SK[0-9a-f]{32}", Some(&hex)),
            ("[a-z]{3}[89]Q~[a-z]{31}", Some(&["8q~", "9q~"])),
            (r"\b(ey[a-z]{17,}\.ey[a-z_]{17,}\.)", Some(&[".ey"])),
            ("(?:abc|abcd|abe)x", Some(&["abcx", "abex", "abcdx"])),
            ("(?:abc|[a-z]+)x", None),
            ("[0-9]{8}", None),
            ("ab", None),
        ] {
            let hir = crate::rules::compile::parse(pattern).expect("test patterns are valid");
            let wanted: Option<Vec<String>> =
                wanted.map(|set| set.iter().map(|text| (*text).to_owned()).collect());
            assert_eq!(required(&hir), wanted, "{pattern}");
        }
    }
}
