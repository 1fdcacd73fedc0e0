//! A place in JSON text, as a place in the string literal that holds it.
//!
//! Findings of a tool call are counted in the JSON text as sent, escapes included. A person reads the command itself, so
//! the literal around a span is decoded and the span moved with it.

use std::ops::Range;

/// The decoded string literal of `json` that holds `span`, and the span within it; `None` when no single literal holds
/// it all, or the literal is broken.
pub(super) fn literal_at(json: &str, span: Range<usize>) -> Option<(String, Range<usize>)> {
    let (mut at, bytes) = (0, json.as_bytes());
    while at < bytes.len() && at < span.end.max(1) {
        if bytes[at] != b'"' {
            at += 1;
            continue;
        }
        let end = literal_end(bytes, at)?;
        if span.start >= at && span.end <= end {
            return decode(json.get(at + 1..end - 1)?, at + 1, &span);
        }
        at = end;
    }
    None
}

/// One past the closing quote of the literal that opens at `open`.
fn literal_end(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

/// Decodes the inside of a literal, which begins at `offset` of the whole.
fn decode(inside: &str, offset: usize, span: &Range<usize>) -> Option<(String, Range<usize>)> {
    let mut text = String::with_capacity(inside.len());
    let (mut start, mut end) = (None, None);
    let mut rest = inside;
    while let Some(first) = rest.chars().next() {
        let at = offset + inside.len() - rest.len();
        if at >= span.start {
            start.get_or_insert(text.len());
        }
        if at >= span.end {
            end.get_or_insert(text.len());
        }
        if first == '\\' {
            let (character, length) = escape(rest)?;
            text.push(character);
            rest = rest.get(length..)?;
        } else {
            text.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    let (start, end) = (start.unwrap_or(text.len()), end.unwrap_or(text.len()));
    Some((text, start..end))
}

/// The character that the escape at the beginning of `rest` stands for, and the length of the escape.
fn escape(rest: &str) -> Option<(char, usize)> {
    let short = match rest.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode_escape(rest),
        _ => return None,
    };
    Some((short, 2))
}

fn unicode_escape(rest: &str) -> Option<(char, usize)> {
    let unit = |from: usize| u16::from_str_radix(rest.get(from..from + 4)?, 16).ok();
    let first = unit(2)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Some((character, 6));
    }
    let second = rest.get(6..8).filter(|mark| *mark == "\\u").and_then(|_| unit(8));
    match second.map(|second| char::decode_utf16([first, second]).next()) {
        Some(Some(Ok(character))) => Some((character, 12)),
        // A lone surrogate is no text; it is shown as what every decoder makes of it.
        _ => Some((char::REPLACEMENT_CHARACTER, 6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that a span of JSON means, found by the piece of JSON it covers.
    fn at(json: &str, covered: &str) -> Option<(String, String)> {
        let start = json.find(covered).expect("the piece is there");
        let (text, span) = literal_at(json, start..start + covered.len())?;
        let cut = text[span].to_owned();
        Some((text, cut))
    }

    #[test]
    fn a_span_moves_with_its_literal() {
        let both = |text: &str, cut: &str| Some((text.to_owned(), cut.to_owned()));
        assert_eq!(at(r#"{"command":"rm -rf /"}"#, "rm -rf"), both("rm -rf /", "rm -rf"));
        assert_eq!(at(r#"{"a":"é\n\"x\" y"}"#, "\\\"x\\\""), both("é\n\"x\" y", "\"x\""));
        assert_eq!(at(r#"["\u0041\ud83d\ude00b"]"#, "\\ud83d\\ude00"), both("A😀b", "😀"));
        assert_eq!(at(r#"["\ud83dx"]"#, "x"), both("\u{FFFD}x", "x"));
        assert_eq!(at(r#"{"a":"b"}"#, "\"b\""), both("b", "b"), "quotes included");
        assert_eq!(at(r#"{"a":"b"}"#, "a"), both("a", "a"), "names are literals too");
    }

    #[test]
    fn what_no_literal_holds_is_none() {
        assert_eq!(at(r#"{"a":"b","c":"d"}"#, r#"b","c"#), None);
        assert_eq!(at(r#"{"a":12}"#, "12"), None);
        assert_eq!(literal_at(r#"{"a":"b\"#, 6..7), None);
        assert_eq!(literal_at(r#"{"a":"\q"}"#, 6..8), None);
        assert_eq!(literal_at("", 0..0), None);
        assert_eq!(literal_at(r#""a""#, 7..9), None);
    }
}
