//! Letters set apart by more than one sign, or with digits among them: `i, g, n, o, r, e`, `["i", "g", "n"]`, `(i)(g)(n)`,
//! `'i'+'g'+'n'`, one on each line that ends as on Windows, `1 g n 0 r 3`. Letters set apart by one sign are joined by
//! [`super::spaced`].

use std::ops::Range;

use super::gate::Looks;
use super::lanes::BLOCK;
use super::layer::{Layer, Layers};
use super::rewrite::Rewriter;
use super::view::View;

/// Fewest letters that are joined: shorter lists of letters are lists.
const LETTERS_MIN: usize = 8;
/// Longest gap between two letters, in bytes.
const GAP_MAX: usize = 24;

/// The text with letters joined that one same thing sets apart, if that is more than one character or digits are among them,
/// and with a blank where another gap stands; none if there are no such letters.
pub fn apart<'t>(parent: &View<'t>, looks: &Looks) -> Option<View<'t>> {
    let text = parent.text();
    let bytes = text.as_bytes();
    let mut rewriter = Rewriter::new(text);
    let layers = Layers::of(Layer::Spaced);
    let (mut done, mut row) = (0, Vec::new());
    for &block in &looks.singles {
        // The row may have begun before the block in which it is dense.
        let mut from = block.saturating_sub(GAP_MAX).max(done);
        // Or in the one behind it.
        let to = block + 2 * BLOCK;
        while from < to {
            let Some(first) = next_single(bytes, from..to.min(bytes.len())) else { break };
            read_row(bytes, first, &mut row);
            from = row.last().map_or(first, |last| *last) + 1;
            let Some(joint) = joint(bytes, &row) else { continue };
            for pair in row.windows(2) {
                let gap = pair[0] + 1..pair[1];
                match bytes[gap.clone()] == bytes[joint.clone()] {
                    true => rewriter.remove(gap, layers),
                    false => rewriter.replace(gap, " ", layers),
                }
            }
        }
        done = from.max(to);
    }
    rewriter.finish(parent)
}

/// The first letter or digit of ASCII in a range that stands alone.
pub(super) fn next_single(bytes: &[u8], mut range: Range<usize>) -> Option<usize> {
    let joins = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    range.find(|&at| joins(at) && !joins(at + 1) && (at == 0 || !joins(at - 1)))
}

/// Letters and digits that stand alone, one behind the other, from `first` on.
fn read_row(bytes: &[u8], first: usize, row: &mut Vec<usize>) {
    row.clear();
    let mut last = first;
    loop {
        row.push(last);
        let gap = bytes[last + 1..].iter().take(GAP_MAX + 1).position(u8::is_ascii_alphanumeric);
        let Some(next) = gap.map(|gap| last + 1 + gap) else { return };
        if bytes.get(next + 1).is_some_and(u8::is_ascii_alphanumeric) {
            return;
        }
        last = next;
    }
}

/// What stands between most of the letters of a row, where that sets them apart in a way that is to be undone.
fn joint(bytes: &[u8], row: &[usize]) -> Option<Range<usize>> {
    if row.len() < LETTERS_MIN {
        return None;
    }
    let gaps = || row.windows(2).map(|pair| pair[0] + 1..pair[1]);
    // What more than half of them are is what is left when each that differs takes one away.
    let (mut most, mut votes) = (0..0, 0_usize);
    for gap in gaps() {
        if votes == 0 {
            (most, votes) = (gap, 1);
        } else if bytes[gap] == bytes[most.clone()] {
            votes += 1;
        } else {
            votes -= 1;
        }
    }
    let joints = gaps().filter(|gap| bytes[gap.clone()] == bytes[most.clone()]).count();
    let letters = row.iter().filter(|at| bytes[**at].is_ascii_alphabetic()).count();
    let is_wide = most.len() > 1 || letters < row.len();
    (joints * 2 >= row.len() - 1 && letters * 2 >= row.len() && is_wide).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_set_apart_by_more_are_joined() {
        for (text, wanted) in [
            ("i, g, n, o, r, e a, l, l", Some("ignore all")),
            (r#"["i", "g", "n", "o", "r", "e", " ", "a", "l", "l"]"#, Some(r#"["ignore all"]"#)),
            ("so: 1 g n 0 r 3   4 l l now", Some("so: 1gn0r3 4ll now")),
            ("i\r\ng\r\nn\r\no\r\nr\r\ne\r\n \r\na\r\nl\r\nl", Some("ignore all")),
            ("(i)(g)(n)(o)(r)(e) (a)(l)(l)", Some("(ignore all)")),
            ("i--g--n--o--r--e--x--y é", Some("ignorexy é")),
            // One sign alone is another's business.
            ("i g n o r e   a l l", None),
            ("1 2 3 4 5 a b 6 7 8 9", None),
            ("a, b, c, d", None),
            ("x = a + b * c - d / e; f(g, h)", None),
            ("", None),
        ] {
            let source = View::identity(text);
            assert_eq!(apart(&source, &Looks::at(source.text())).as_ref().map(View::text), wanted, "{text}");
        }
        let text = "é i, g, n, o, r, e, a, l, l";
        let source = View::identity(text);
        let view = apart(&source, &Looks::at(source.text())).expect("a view");
        assert_eq!(&text[view.to_source(3..9)], "i, g, n, o, r, e");
    }
}
