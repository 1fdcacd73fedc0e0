//! Which literals every match of a pattern holds.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Shortest literal that a gate takes, in bytes.
pub(super) const LITERAL_MIN: usize = 3;
/// Most alternatives that are worth a gate.
const ALTERNATIVES_MAX: usize = 64;

/// Whether every match of `hir` holds one of `words` (ASCII lower case), in any ASCII case.
pub(super) fn always_holds(hir: &Hir, words: &[String]) -> bool {
    let has_word = |run: &String| words.iter().any(|word| run.contains(word.as_str()));
    match hir.kind() {
        HirKind::Alternation(parts) => parts.iter().all(|part| always_holds(part, words)),
        HirKind::Capture(capture) => always_holds(&capture.sub, words),
        HirKind::Repetition(repetition) => repetition.min > 0 && always_holds(&repetition.sub, words),
        _ => runs(hir).iter().any(has_word) || parts_of(hir).iter().any(|part| always_holds(part, words)),
    }
}

/// Literals of at least three bytes (ASCII lower case) of which every match holds one; the longest there are.
pub(super) fn required(hir: &Hir) -> Option<Vec<String>> {
    let own = runs(hir).into_iter().filter(|run| run.len() >= LITERAL_MIN).map(|run| vec![run]);
    let inner = parts_of(hir).into_iter().filter_map(|part| match part.kind() {
        HirKind::Alternation(parts) => {
            let all: Option<Vec<Vec<String>>> = parts.iter().map(required).collect();
            all.map(|all| all.concat()).filter(|all| all.len() <= ALTERNATIVES_MAX)
        }
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required(&repetition.sub),
        HirKind::Concat(_) => required(part),
        _ => None,
    });
    let shortest = |literals: &Vec<String>| literals.iter().map(String::len).min().unwrap_or_default();
    own.chain(inner).max_by_key(shortest)
}

/// The parts of a concatenation; of anything else, itself.
fn parts_of(hir: &Hir) -> Vec<&Hir> {
    match hir.kind() {
        HirKind::Concat(parts) => parts.iter().collect(),
        HirKind::Literal(_) | HirKind::Class(_) | HirKind::Empty | HirKind::Look(_) => Vec::new(),
        _ => vec![hir],
    }
}

/// Rows of fixed bytes in a concatenation, letter case folded.
fn runs(hir: &Hir) -> Vec<String> {
    let mut done = Vec::new();
    let mut run = String::new();
    collect(hir, &mut run, &mut done);
    done.push(run);
    done.retain(|run| !run.is_empty());
    done
}

fn collect(hir: &Hir, run: &mut String, done: &mut Vec<String>) {
    match hir.kind() {
        HirKind::Literal(literal) if literal.0.is_ascii() => {
            run.extend(literal.0.iter().map(|byte| byte.to_ascii_lowercase() as char));
        }
        HirKind::Class(class) if single_letter(class).is_some() => run.extend(single_letter(class)),
        HirKind::Concat(parts) => parts.iter().for_each(|part| collect(part, run, done)),
        HirKind::Capture(capture) => collect(&capture.sub, run, done),
        HirKind::Empty | HirKind::Look(_) => {}
        _ => done.push(std::mem::take(run)),
    }
}

/// The letter of a class of both its cases, such as `[Xx]`.
fn single_letter(class: &Class) -> Option<char> {
    let Class::Bytes(class) = class else { return None };
    let mut bytes = class.ranges().iter().flat_map(|range| range.start()..=range.end());
    match (bytes.next(), bytes.next(), bytes.next()) {
        (Some(upper), Some(lower), None) if upper.is_ascii_uppercase() && lower == upper + 32 => {
            Some(lower as char)
        }
        (Some(only), None, None) if only.is_ascii() => Some(only.to_ascii_lowercase() as char),
        _ => None,
    }
}
