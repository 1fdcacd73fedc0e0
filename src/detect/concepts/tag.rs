//! Whether a closing tag ends an element that the text itself began: then it closes no part of the prompt.
//!
//! *What it misses*: elements longer than [`BEFORE_MAX`], and tags whose brackets are written as escapes.

use std::ops::Range;

/// How far before a closing tag its element may begin, in bytes.
const BEFORE_MAX: usize = 2048;

/// Whether `range` of `text` is a closing tag, and the nearest tag of that name before it is an opening one.
pub(super) fn ends_own_element(text: &str, range: &Range<usize>) -> bool {
    let bytes = text.as_bytes();
    let Some(name) = bytes.get(range.clone()).and_then(closing_name) else { return false };
    let from = range.start.saturating_sub(BEFORE_MAX);
    let before = &bytes[from..range.start];
    let nearest = memchr::memrchr_iter(b'<', before).find_map(|at| {
        let tag = &before[at..];
        match closing_name(tag) {
            Some(other) => other.eq_ignore_ascii_case(name).then_some(false),
            None => name_of(&tag[1..]).eq_ignore_ascii_case(name).then_some(true),
        }
    });
    nearest == Some(true)
}

/// The name in a closing tag, whose stroke may be escaped as in JSON.
fn closing_name(tag: &[u8]) -> Option<&[u8]> {
    let rest = tag.strip_prefix(b"</").or_else(|| tag.strip_prefix(b"<\\/"))?;
    Some(name_of(rest)).filter(|name| !name.is_empty())
}

/// The letters, digits, `_`, `-`, `.` and `:` that a text begins with.
fn name_of(text: &[u8]) -> &[u8] {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(byte);
    &text[..text.iter().take_while(|byte| is_part(byte)).count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_end_of_an_element_from_a_stray_one() {
        for (text, wanted) in [
            ("<user>ann</user>", true),
            ("<User id=\"3\">ann</user>", true),
            (r#"{"a":"<user>ann<\/user>"}"#, true),
            ("<users>ann</user>", false),
            ("ann</user>", false),
            ("<user>ann</user> go </user>", false),
            ("<user>ann</user><user>bob</user>", true),
            ("<user></data></user>", true),
            ("< user>ann</user>", false),
        ] {
            let at = text.rfind("</").or_else(|| text.rfind("<\\/")).expect("has a closing tag");
            assert_eq!(ends_own_element(text, &(at..text.len())), wanted, "{text}");
        }
        let long = format!("<user>{}</user>", "x".repeat(BEFORE_MAX));
        assert!(!ends_own_element(&long, &(long.len() - 7..long.len())));
        assert!(!ends_own_element("<user>", &(0..6)) && !ends_own_element("</", &(0..2)));
    }
}
