//! Strings that code puts together from pieces: `"one" + "two"`, pieces on lines of their own, lists that are joined, and lines that a
//! backslash continues.
//!
//! A credential in two pieces is one to whoever runs the code, and to nobody who looks for it. Pieces are put together only
//! where both end in what a credential is made of, so that prose and lists of words stay as they are.

use super::layer::{Layer, Layers};
use super::rewrite::Rewriter;
use super::stretches;
use super::view::View;
use memchr::memmem;
use std::ops::Range;

/// Longest gap between two pieces, in bytes.
const GAP_MAX: usize = 80;
/// Most signs that join two pieces, as in `" & _`.
const SIGNS_MAX: usize = 3;
/// Longest list of pieces that is joined, in bytes.
const LIST_MAX: usize = 1024;
/// What joins the list of pieces behind it.
const BEFORE_LISTS: [&[u8]; 6] = [b"join([", b"join((", b"concat!(", b"concat(", b"concat([", b"strcat("];
/// What joins the list of pieces before it.
const BEHIND_LISTS: [&[u8]; 2] = [b"].join(", b"].concat("];

/// The text with its strings in pieces put together that may be credentials; none if there are none.
pub fn joined<'t>(parent: &View<'t>) -> Option<View<'t>> {
    join(parent, is_part)
}

/// The text with its strings in pieces put together that may be words; none if there are none.
pub fn joined_words<'t>(parent: &View<'t>) -> Option<View<'t>> {
    join(parent, |byte| is_part(byte) || !byte.is_ascii() || matches!(byte, b' ' | b',' | b':' | b'!' | b'?'))
}

fn join<'t>(parent: &View<'t>, is_part: fn(u8) -> bool) -> Option<View<'t>> {
    let text = parent.text().as_bytes();
    let mut lists = None;
    let mut is_in_list = |at: usize| {
        let lists: &Vec<Range<usize>> = lists.get_or_insert_with(|| lists_in(text));
        lists.get(lists.partition_point(|list| list.end <= at)).is_some_and(|list| list.contains(&at))
    };
    let is_behind_part = |at: &usize| *at > 0 && is_part(text[*at - 1]);
    let quotes = memchr::memchr3_iter(b'"', b'\'', b'`', text).filter(is_behind_part);
    let mut gaps: Vec<_> =
        quotes.filter_map(|at| Some(at..string_goes_on(text, at, is_part, &mut is_in_list)?)).collect();
    let backslashes = memchr::memchr_iter(b'\\', text).filter(is_behind_part);
    gaps.extend(backslashes.filter_map(|at| Some(at..line_goes_on(text, at, is_part)?)));
    if gaps.is_empty() {
        return None;
    }
    gaps.sort_unstable_by_key(|gap| gap.start);
    let mut rewriter = Rewriter::new(parent.text());
    let mut done = 0;
    for gap in gaps {
        if gap.start >= done {
            done = gap.end;
            rewriter.remove(gap, Layers::of(Layer::Joined));
        }
    }
    rewriter.finish(parent)
}

/// Where the next piece begins, if the quotation mark at `at` ends one that is joined to it.
fn string_goes_on(
    text: &[u8],
    at: usize,
    is_part: fn(u8) -> bool,
    is_in_list: &mut impl FnMut(usize) -> bool,
) -> Option<usize> {
    let mark = text[at];
    let (mut signs, mut commas, mut breaks) = (0, 0, 0);
    let gap = text[at + 1..].iter().take(GAP_MAX).take_while(|byte| match byte {
        b' ' | b'\t' | b'\r' | b'\\' => true,
        b'\n' => {
            breaks += 1;
            true
        }
        b'+' | b'.' | b'&' | b'|' | b'_' => {
            signs += 1;
            true
        }
        b',' => {
            commas += 1;
            true
        }
        _ => false,
    });
    let next = at + 1 + gap.count();
    let is_joined = next > at + 1
        && text.get(next) == Some(&mark)
        && text.get(next + 1).is_some_and(|byte| is_part(*byte))
        && signs <= SIGNS_MAX
        // Beside each other on one line, in a shell on several, they are two words.
        && (signs + commas > 0 || breaks > 0 && !text[at..next].contains(&b'\\'))
        && (commas == 0 || commas == 1 && is_in_list(at));
    is_joined.then_some(next + 1)
}

/// Where the text goes on, if the backslash at `at` continues its line amid a word.
fn line_goes_on(text: &[u8], at: usize, is_part: fn(u8) -> bool) -> Option<usize> {
    let line = match text[at + 1..] {
        [b'\n', ..] => at + 2,
        [b'\r', b'\n', ..] => at + 3,
        _ => return None,
    };
    let indent = text[line..].iter().take(GAP_MAX).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    text.get(line + indent).is_some_and(|byte| is_part(*byte)).then_some(line + indent)
}

/// Lists of pieces that are joined, in order and apart from each other.
fn lists_in(text: &[u8]) -> Vec<Range<usize>> {
    let mut lists = Vec::new();
    for marker in BEFORE_LISTS {
        for at in memmem::find_iter(text, marker) {
            let start = at + marker.len();
            let rest = &text[start..text.len().min(start + LIST_MAX)];
            let len = memchr::memchr2(b']', b')', rest).unwrap_or(rest.len());
            lists.push(start..start + len);
        }
    }
    for marker in BEHIND_LISTS {
        for at in memmem::find_iter(text, marker) {
            let from = at.saturating_sub(LIST_MAX);
            if let Some(start) = memchr::memrchr(b'[', &text[from..at]) {
                lists.push(from + start..at);
            }
        }
    }
    lists.sort_unstable_by_key(|list| list.start);
    let mut apart = Vec::with_capacity(lists.len());
    lists.into_iter().for_each(|list| stretches::join(&mut apart, list));
    apart
}

/// Whether a byte may be part of a credential.
fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'=' | b'/' | b'+' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_together() {
        for (text, wanted) in [
            (r#"a = "one" + "two""#, Some(r#"a = "onetwo""#)),
            ("a = 'one'\n  . 'two'\n  . 'three'", Some("a = 'onetwothree'")),
            ("a = (\"one\"\n     \"two\")", Some("a = (\"onetwo\")")),
            ("a = \"one\" & _\r\n \"two\"", Some("a = \"onetwo\"")),
            (r#"a = "".join(["one", "two"])"#, Some(r#"a = "".join(["onetwo"])"#)),
            (r#"a = ["one", "two"].join("")"#, Some(r#"a = ["onetwo"].join("")"#)),
            (r#"a = concat!("one", "two");"#, Some(r#"a = concat!("onetwo");"#)),
            ("TOKEN=one\\\n  two", Some("TOKEN=onetwo")),
            (
                r#"a = ["one", "two"].join("") + "".join(["x", "y"]) + ["z", "z"]"#,
                Some(r#"a = ["onetwo"].join("") + "".join(["xy"]) + ["z", "z"]"#),
            ),
            (r#"a = ["one", "two"]"#, None),
            (r#"{"one": "two", "three": "four"}"#, None),
            ("one \\\n  two", None),
            (r#"curl -u "one" "two""#, None),
            ("curl -u \"one\" \\\n  \"two\"", None),
            (r#"a = "one " + "two""#, None),
            (r#"a = "one" + two + "three""#, None),
            (r#"a = "one""two""#, None),
            ("\"", None),
            ("\\", None),
            ("", None),
        ] {
            let source = View::identity(text);
            assert_eq!(joined(&source).as_ref().map(View::text), wanted, "{text:?}");
        }
    }
}
