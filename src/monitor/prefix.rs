//! What the lines of a comment, a difference, a listing or a log have in common at their start.
//!
//! A phrase that is wrapped over such lines is torn by it.

use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::Regex;

/// Longest line whose end is joined with the next, in bytes.
const LINE_BYTES_MAX: usize = 1024;
/// Longest beginning of a line that is looked at, in bytes.
const PREFIX_BYTES_MAX: usize = 128;

/// A time, a mark of a comment or a difference, a side of a box, the number of a line, its file; or only an indentation.
static PREFIX: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^[ \t]*(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]{5,20}Z?[ \t]",
        r"|\[?[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?\]?[ \t]",
        r"|[0-9]{1,7}(?:[ \t]*[│┃|→:]|\t)|#{1,6}|//[/!]?|--|\+|\*|;{1,2}|%|>|[│┃|]",
        r"|[A-Za-z0-9_./-]{1,80}[:-][0-9]{1,7}[:-]|)[ \t]*",
    ))
    .unwrap_or_else(|error| panic!("a pattern that tests compile: {error}"))
});

/// Whether a line may begin with a time, a mark, a side or a number: a test that is cheap enough for every line.
pub(super) fn may_begin(line: &[u8]) -> bool {
    let first = line.iter().find(|b| !matches!(b, b' ' | b'\t'));
    first.is_some_and(|b| b.is_ascii_digit() || b"#/-+*;%>|[\xe2".contains(b))
}

/// What is left out between `before`, a whole line, and `line`, where both begin alike: the end of the first and the
/// beginning of the second, in bytes of each.
pub(super) fn between(before: &str, line: &str) -> Option<(usize, usize)> {
    if before.len() > LINE_BYTES_MAX || !may_be_alike(before, line) {
        return None;
    }
    let of = |text: &str| PREFIX.find(&text[..text.floor_char_boundary(PREFIX_BYTES_MAX)]).map(|at| at.end());
    let (first, second) = (of(before)?, of(line)?);
    let sign = |c: &char| !c.is_ascii_digit() && !matches!(c, ' ' | '\t');
    if !before[..first].chars().filter(sign).eq(line[..second].chars().filter(sign)) {
        return None;
    }
    let end = match before.trim_end().strip_suffix(['│', '┃']) {
        Some(inside) if inside.len() >= first => inside.trim_end().len(),
        _ => before.trim_end().len(),
    };
    // Two words with one blank between them are together as they are.
    let is_apart = second > 0 || end < before.len();
    (end >= first && second < line.len() && is_apart).then_some((end, second))
}

/// Whether two lines may begin alike: a mark that is one whatever follows stands in both or in neither. Nearly every trace
/// of a shell follows on other output, and this spares it the expression.
fn may_be_alike(before: &str, line: &str) -> bool {
    let mark =
        |text: &str| text.trim_start_matches([' ', '\t']).bytes().next().filter(|b| b"+*%>".contains(b));
    mark(before) == mark(line)
}

/// The last line of a text that ends with a line end, where it is short enough.
pub(super) fn last_line(text: &str) -> Option<&str> {
    let text = text.strip_suffix('\n')?;
    let text = text.strip_suffix('\r').unwrap_or(text);
    let line = &text[text.rfind('\n').map_or(0, |at| at + 1)..];
    (line.len() <= LINE_BYTES_MAX).then_some(line)
}

/// What stands at the ends of lines of `text` between words that belong together, up to the line from byte `line`: all
/// but one blank or line end. Nothing unless that line begins like the one before.
pub(super) fn joints(text: &str, line: usize) -> Vec<Range<usize>> {
    let (mut joints, mut start) = (Vec::new(), line);
    while let Some(before) = last_line(&text[..start]) {
        let at = before.as_ptr() as usize - text.as_ptr() as usize;
        let Some((end, begin)) = between(before, &text[start..]) else { break };
        let end = at + end;
        if text[end..].starts_with([' ', '\t', '\n']) {
            joints.push(end + 1..start + begin);
        } else {
            // No blank follows on the word, but a carriage return or the side of a box: the line end stays instead.
            joints.push(start..start + begin);
            joints.push(end..start - 1);
        }
        start = at;
    }
    joints.retain(|joint| !joint.is_empty());
    joints.reverse();
    joints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lines_have_in_common_is_left_out() {
        for (text, wanted) in [
            ("# a\n# b", "a b"),
            ("    // a\n    // b\n    // c", "a b c"),
            ("+a\r\n+b", "a b"),
            ("│ a      │\n│ b │", "a b │"),
            ("│ a│\n│ b│", "a b│"),
            ("│ a│\r\n│ b", "a b"),
            ("     9\ta\n    10\tb", "a b"),
            ("     1→a\n     2→b", "a b"),
            ("a.md:1:a\na.md:2:b", "a b"),
            ("2026-01-01T10:00:00.1Z a\n2026-01-01T10:00:01.2Z b", "a b"),
            ("[10:00:00] a\n[10:00:01] b", "a b"),
            ("a\n   b", "a b"),
            ("a \nb", "a b"),
            ("a  \r\nb", "a b"),
            ("    a\n  b\n      c", "a b c"),
            ("a\r\n  b", "a b"),
            ("# a\n// b", ""),
            ("a\nb", ""),
            ("a\n# b\n# c", "b c"),
        ] {
            let line = text.rfind('\n').map_or(0, |at| at + 1);
            let (mut out, mut at) = (String::new(), 0);
            let joints = joints(text, line);
            for joint in &joints {
                out.push_str(&text[at..joint.start]);
                at = joint.end;
            }
            out.push_str(&text[at..]);
            let words = out.replace(['\n', '\r'], " ");
            assert_eq!(joints.is_empty(), wanted.is_empty(), "{text:?}");
            assert!(words.ends_with(wanted), "{text:?}: {out:?}");
            let is_plain = text.starts_with("a.md") || text.as_bytes()[line].is_ascii_whitespace();
            assert!(
                may_begin(&text.as_bytes()[line..])
                    || wanted.is_empty()
                    || is_plain
                    || text.starts_with("a ")
            );
        }
    }
}
