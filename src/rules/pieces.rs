//! The part of a pattern that says most, without the gaps around it.
//!
//! `you\b[^.]*?\bwithout (?:any|all) rules` makes an automaton remember, from every `you` on, that it saw one, for each of its
//! branches and in the order in which they began: hundreds of states that hardly two texts share. `without (?:any|all) rules`
//! has a handful, and stands wherever the other matches. So of each branch the part between two gaps that is rarest is looked
//! for first; nearly always it is not there.
//!
//! Invariant: every match of a pattern holds a match of its piece.

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// A repeat of so many values of a byte is a gap, if it may be so long.
const GAP_VALUES_MIN: usize = 128;
const GAP_BYTES_MIN: u32 = 8;
/// How much a piece must say to be worth a look, in bits.
const BITS_MIN: f64 = 24.0;
/// What a byte of a word says, in bits: less than a byte could, since words are no noise.
const BYTE_BITS: f64 = 3.0;
/// The same of a mark, which stands in words less often.
const MARK_BITS: f64 = 10.0;

/// What every match of a pattern holds; none where the pattern has no gap, or its parts say too little.
pub(super) fn piece(hir: &Hir) -> Option<Hir> {
    if !has_gap(hir) {
        return None;
    }
    let piece = held(hir)?;
    (bits(&piece) >= BITS_MIN).then_some(piece)
}

/// The part of a pattern that says most; none where nothing without a gap must stand in it.
fn held(hir: &Hir) -> Option<Hir> {
    if !has_gap(hir) {
        return Some(hir.clone());
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => None,
        HirKind::Repetition(repetition) if repetition.min == 0 || is_gap(repetition) => None,
        HirKind::Repetition(repetition) => held(&repetition.sub),
        HirKind::Capture(capture) => held(&capture.sub),
        HirKind::Alternation(branches) => {
            branches.iter().map(held).collect::<Option<Vec<_>>>().map(Hir::alternation)
        }
        HirKind::Concat(parts) => {
            let between = parts.split(has_gap).filter(|parts| !parts.is_empty());
            let within = parts.iter().filter(|part| has_gap(part)).filter_map(held);
            let all = between.map(|parts| Hir::concat(parts.to_vec())).chain(within);
            all.max_by(|one, other| bits(one).total_cmp(&bits(other)))
        }
    }
}

/// Whether a gap stands in a pattern.
pub(super) fn has_gap(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => false,
        HirKind::Repetition(repetition) => is_gap(repetition) || has_gap(&repetition.sub),
        HirKind::Capture(capture) => has_gap(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(has_gap),
    }
}

fn is_gap(repetition: &Repetition) -> bool {
    let is_long = repetition.max.is_none_or(|max| max >= GAP_BYTES_MIN);
    is_long && matches!(repetition.sub.kind(), HirKind::Class(class) if values(class) >= GAP_VALUES_MIN)
}

/// How many values of a byte a class takes.
fn values(class: &Class) -> usize {
    match class {
        Class::Bytes(class) => class.ranges().iter().map(|range| range.len()).sum(),
        Class::Unicode(class) => class.ranges().iter().map(|range| range.len()).sum(),
    }
}

/// How much what stands before the first gap says, in bits.
pub(super) fn head_bits(hir: &Hir) -> f64 {
    match hir.kind() {
        _ if !has_gap(hir) => bits(hir),
        HirKind::Capture(capture) => head_bits(&capture.sub),
        HirKind::Concat(parts) => {
            let gap = parts.iter().position(has_gap).unwrap_or(parts.len());
            parts[..gap].iter().map(bits).sum::<f64>() + parts.get(gap).map_or(0.0, head_bits)
        }
        HirKind::Alternation(branches) => {
            -branches.iter().map(|branch| (-head_bits(branch)).exp2()).sum::<f64>().log2()
        }
        _ => 0.0,
    }
}

/// How much it says that a pattern stands somewhere, about, in bits.
fn bits(hir: &Hir) -> f64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0.0,
        HirKind::Literal(literal) => {
            let marks = literal.0.iter().filter(|byte| byte.is_ascii_punctuation()).count();
            BYTE_BITS * (literal.0.len() - marks) as f64 + MARK_BITS * marks as f64
        }
        // A letter in either case says as much as a letter.
        HirKind::Class(class) => BYTE_BITS * (1.0 - (values(class).max(2) as f64 / 2.0).log2() / 7.0),
        HirKind::Repetition(repetition) => f64::from(repetition.min) * bits(&repetition.sub),
        HirKind::Capture(capture) => bits(&capture.sub),
        HirKind::Concat(parts) => parts.iter().map(bits).sum(),
        HirKind::Alternation(branches) => {
            -branches.iter().map(|branch| (-bits(branch)).exp2()).sum::<f64>().log2()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{compile, relax};
    use super::*;

    #[test]
    fn the_rarest_part_is_looked_for() {
        for (pattern, text, is_held) in [
            // Without a gap, or with nothing that says enough, there is none.
            ("send the secret", "", None),
            ("(?:send|post)[^.]{0,4}the secret", "", None),
            ("a[^.]*b", "", None),
            ("(?:ignore[^.]*rules|a[^.]*b)", "", None),
            ("(?:ignore.{0,20})?", "", None),
            // What must stand between gaps, whatever stands around it.
            (r"(?i)you\b[^.]*?\bwithout (?:any|all) rules\b", "WITHOUT any rules", Some(true)),
            (r"(?i)you\b[^.]*?\bwithout (?:any|all) rules\b", "you without any other rules", Some(false)),
            (r"(?i)you\b[^.]*?\bwithout (?:any|all) rules\b", "without all rulesets", Some(false)),
            ("(?:(?:ignore[^.]*your rules)|(?:forget[^.]*the limits))x", "the limits", Some(true)),
            ("(?:(?:ignore[^.]*your rules)|(?:forget[^.]*the limits))x", "the rules", Some(false)),
            ("(?P<value>reveal[^.]{9,}?password){1,2}!", "my password", Some(true)),
        ] {
            let hir = compile::parse(pattern).expect("test patterns are valid");
            let look = piece(&hir).map(|piece| relax::compile(&piece, 1 << 20).expect("it is small"));
            assert_eq!(look.map(|look| look.is_match(text)), is_held, "{pattern} {text}");
        }
    }
}
