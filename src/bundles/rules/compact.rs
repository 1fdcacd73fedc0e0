//! Patterns in few states: characters outside ASCII are told apart only where a pattern names them.
//!
//! `\w`, `\S` and `[^.]` are hundreds of ranges of UTF-8, and a repeat of a hundred such is as many times as large, forwards
//! and backwards. What is between the words of an order is any text: of such a class all characters outside ASCII count alike,
//! as a first byte and those that follow.
//!
//! Invariant: a pattern matches wherever it matched before, and begins and ends where characters do.

use regex_automata::meta::Regex;
use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, Hir, HirKind, Repetition,
};

/// Characters outside ASCII, about: surrogates count, too.
const OUTSIDE: u32 = 0x11_0000 - 0x80;
/// A letter of a script with so many that a class which holds it means all letters.
const LETTER: char = '\u{4e00}';

/// Compiles a pattern with `config`.
pub(super) fn compile(pattern: &str, config: regex_automata::meta::Config) -> Result<Regex, String> {
    let hir = regex_syntax::parse(pattern).map_err(|error| error.to_string())?;
    let builder = Regex::builder().configure(config.utf8_empty(false)).build_from_hir(&compact(&hir));
    builder.map_err(|error| error.to_string())
}

/// The same pattern with classes of few states.
pub(super) fn compact(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) if is_open(class) => any_outside(class),
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(compact(&repetition.sub));
            Hir::repetition(Repetition { sub, ..repetition.clone() })
        }
        HirKind::Capture(capture) => {
            let sub = Box::new(compact(&capture.sub));
            Hir::capture(Capture { sub, ..capture.clone() })
        }
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(compact).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(compact).collect()),
    }
}

/// Whether a class means text as such outside ASCII: letters, or all but a few characters.
fn is_open(class: &ClassUnicode) -> bool {
    let outside = class.ranges().iter().filter(|range| range.end() as u32 >= 0x80);
    let count: u32 = outside.map(|range| range.end() as u32 - (range.start() as u32).max(0x80) + 1).sum();
    count > OUTSIDE / 2 || class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&LETTER))
}

/// The characters of a class within ASCII, and all outside of it.
fn any_outside(class: &ClassUnicode) -> Hir {
    let bytes = |ranges: &mut dyn Iterator<Item = (u8, u8)>| {
        let ranges = ranges.map(|(start, end)| ClassBytesRange::new(start, end));
        Hir::class(Class::Bytes(ClassBytes::new(ranges)))
    };
    let inside = class.ranges().iter().filter(|range| range.start() <= '\x7f');
    let inside = bytes(&mut inside.map(|range| (range.start() as u8, range.end().min('\x7f') as u8)));
    // The first of two to four bytes, and those that follow it (RFC 3629, section 3).
    let (first, next) =
        (bytes(&mut std::iter::once((0xC2, 0xF4))), bytes(&mut std::iter::once((0x80, 0xBF))));
    let rest = Hir::repetition(Repetition { min: 1, max: None, greedy: true, sub: Box::new(next) });
    Hir::alternation(vec![inside, Hir::concat(vec![first, rest])])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(pattern: &str) -> Regex {
        Regex::new(pattern).expect("a pattern")
    }

    fn compacted(pattern: &str) -> Regex {
        compile(pattern, Regex::config()).expect("a pattern")
    }

    #[test]
    fn it_matches_where_the_pattern_matches() {
        for (pattern, text) in [
            (r"a\w+b", "x a\u{e9}\u{4e2d}b y"),
            (r"\bend\b[^.]{0,20}now", "the end \u{2014} \u{1f600} now"),
            (r"(?i)stra\u{df}e\s+\S+", "STRA\u{df}E\u{a0}\u{4e2d}x"),
            (r"[\u{201c}\u{201d}].{1,3}[\u{201c}\u{201d}]", "\u{201c}\u{e9}\u{201d}"),
            (r"\W{2}z", "\u{2014}\u{2014}z"),
            ("k", "\u{212a}"),
        ] {
            assert_eq!(compacted(pattern).find(text), plain(pattern).find(text), "{pattern}");
            assert!(compacted(pattern).find(text).is_some() || !plain(pattern).is_match(text), "{pattern}");
        }
        // What a pattern names stays as it is.
        for (pattern, text) in [(r"a\sb", "a\u{e9}b"), ("a[\u{e0}-\u{ef}]b", "a\u{f1}b"), ("a[^b]c", "abc")] {
            assert!(!compacted(pattern).is_match(text), "{pattern}");
        }
    }

    #[test]
    fn groups_keep_their_names() {
        let pattern = compacted(r"(?P<key>\w+)=(?P<value>[^;]+)");
        let mut captures = pattern.create_captures();
        pattern.captures("a=\u{e9};", &mut captures);
        assert_eq!(captures.get_group_by_name("value").map(|span| span.start..span.end), Some(2..4));
    }

    #[test]
    fn repeats_of_text_take_a_part_of_the_memory() {
        for pattern in [r"(?i)send[^.\n]{0,160}token", r"(?i)\b(?:send|post)\W+\w+\W+\w+\W+(?:to|at)\b"] {
            let (before, after) = (plain(pattern).memory_usage(), compacted(pattern).memory_usage());
            assert!(after * 3 < before * 2, "{pattern}: {after} of {before}");
        }
    }
}
