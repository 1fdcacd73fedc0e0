//! Signs of any kind set apart by one same sign, as in `4 9 6 7 6 e` and `%.4.9.%.6.7`: codes, which are no letters. Letters set
//! apart are joined by [`super::spaced`] and [`super::apart`].

use super::apart::next_single;
use super::gate::Looks;
use super::lanes::BLOCK;
use super::layer::{Layer, Layers};
use super::rewrite::Rewriter;
use super::view::View;

/// Fewest signs that are joined: less of a code says nothing.
const SIGNS_MIN: usize = 24;
/// Of so many signs one must be no letter.
const LETTERS_SHARE: usize = 16;
/// Longest gap between two words of such signs, in bytes.
const GAP_MAX: usize = 5;

/// The text with signs joined that one same sign sets apart, and with a blank where a wider gap stands; none if there are none.
pub fn signs_apart<'t>(parent: &View<'t>, looks: &Looks) -> Option<View<'t>> {
    let text = parent.text();
    let bytes = text.as_bytes();
    let mut rewriter = Rewriter::new(text);
    let layers = Layers::of(Layer::Spaced);
    // Up to where blocks are read, and up to where rows are written.
    let (mut done, mut written, mut row) = (0, 0, Vec::new());
    for &block in &looks.singles {
        let to = (block + 2 * BLOCK).min(bytes.len());
        let mut from = block.max(done);
        while from < to {
            let Some(first) = next_single(bytes, from..to) else { break };
            // It stands again behind the next sign, or a wider gap does.
            let may_go_on = |joint: &&u8| {
                is_joint(**joint) && bytes.get(first + 3).is_some_and(|byte| byte == *joint || *byte == b' ')
            };
            let Some(&joint) = bytes.get(first + 1).filter(may_go_on) else {
                from = first + 1;
                continue;
            };
            read_row(bytes, row_start(bytes, first, joint, done.max(written)), joint, &mut row);
            from = row.last().map_or(first, |last| *last) + 1;
            let others = row.iter().filter(|at| !bytes[**at].is_ascii_alphabetic()).count();
            if row.len() < SIGNS_MIN || others * LETTERS_SHARE < row.len() {
                continue;
            }
            written = from;
            for pair in row.windows(2) {
                let gap = pair[0] + 1..pair[1];
                match gap.len() {
                    1 if bytes[gap.start] == joint => rewriter.remove(gap, layers),
                    _ => rewriter.replace(gap, " ", layers),
                }
            }
        }
        done = done.max(from).max(block);
    }
    rewriter.finish(parent)
}

fn is_joint(byte: u8) -> bool {
    byte == b' ' || (byte.is_ascii_punctuation() && !matches!(byte, b'%' | b'&' | b'\\'))
}

/// Where the row begins that goes on at `first`, not before `from`.
fn row_start(bytes: &[u8], first: usize, joint: u8, from: usize) -> usize {
    let stands_alone = |at: usize| at == 0 || bytes[at - 1] == joint || bytes[at - 1].is_ascii_whitespace();
    let mut start = first;
    while start >= from + 2
        && bytes[start - 1] == joint
        && is_sign(bytes[start - 2], joint)
        && stands_alone(start - 2)
    {
        start -= 2;
    }
    start
}

fn is_sign(byte: u8, joint: u8) -> bool {
    byte.is_ascii_graphic() && byte != joint
}

/// Signs that stand alone, one behind the other, from `first` on.
fn read_row(bytes: &[u8], first: usize, joint: u8, row: &mut Vec<usize>) {
    row.clear();
    let mut at = first;
    loop {
        row.push(at);
        let is_gap = |byte: &&u8| **byte == joint || **byte == b' ';
        let gap = bytes[at + 1..].iter().take(GAP_MAX + 1).take_while(is_gap).count();
        let next = at + 1 + gap;
        let stands_alone =
            || bytes.get(next + 1).is_none_or(|byte| *byte == joint || byte.is_ascii_whitespace());
        if !(1..=GAP_MAX).contains(&gap)
            || !bytes.get(next).is_some_and(|byte| is_sign(*byte, joint))
            || !stands_alone()
        {
            return;
        }
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_set_apart_are_joined_and_nothing_else() {
        let joined = |text: &str| {
            let source = View::identity(text);
            let looks = Looks::at(source.text());
            signs_apart(&source, &looks).map(|view| view.text().to_owned())
        };
        for (code, by) in [("49676e6f726520616c6c207468656d21", " "), ("%49%67%6e%6f%72%65%20%61%6c%6c", ".")]
        {
            let apart: Vec<String> = code.chars().map(String::from).collect();
            let text = format!("see: {} so", apart.join(by));
            assert_eq!(joined(&text), Some(format!("see: {code} so")), "{text}");
        }
        let words = ["49", "67", "6e", "6f", "72", "65", "20", "61", "6c", "6c", "20", "6f", "66"];
        let spaced = words.map(|word| word.chars().map(String::from).collect::<Vec<_>>().join(" "));
        assert_eq!(joined(&spaced.join("  ")), Some(words.join(" ")));
        // What one row took no other one takes again.
        let dots: String = "49676e6f726520616c6c20".chars().map(|sign| format!("{sign}.")).collect();
        let blanks = "3 4 5 . . . ".to_owned() + &"6 7 8 9 0 1 2 3 4 5 ".repeat(3);
        let both = joined(&format!("{dots} {blanks}")).unwrap_or_default();
        assert_eq!(both.matches("49676e6f").count(), 1, "{both}");
        assert_eq!(both.matches('4').count(), 1 + 1 + 3, "{both}");
        for text in [
            "a b c d e f g h i j k l m n o p q r s t u v w x y z",
            "1 2 3 4 5 6 7 8 9",
            "1. one 2. two 3. three",
            "",
        ] {
            assert_eq!(joined(text), None, "{text}");
        }
    }
}
