//! JSON text that belongs to others: its scalars, and its strings with a map back to how they were written.
//!
//! Redaction writes into such text: numbers keep their spelling, keys their order, and nesting of any depth costs no
//! stack. [`scalars`] is no validator of everything: it accepts what it can cut into tokens, and says so when it
//! cannot. In JSON a backslash stands in strings only, so [`decode`] takes one string or a whole document alike.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// One scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Contents of a string, without its quotes.
    String(Range<usize>),
    /// A number, `true`, `false` or `null`.
    Literal(Range<usize>),
}

impl Scalar {
    /// Where it stands, in bytes.
    pub fn range(&self) -> &Range<usize> {
        match self {
            Self::String(range) | Self::Literal(range) => range,
        }
    }
}

/// Every scalar of `text` in order, or `None` when it is no JSON.
pub fn scalars(text: &str) -> Option<Vec<Scalar>> {
    if !is_json(text) {
        return None;
    }
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at + 1)?;
                out.push(Scalar::String(at + 1..end));
                at = end + 1;
            }
            b'{' | b'}' | b'[' | b']' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => at += 1,
            _ => {
                let len =
                    bytes[at..].iter().position(|b| b",]} \t\r\n".contains(b)).unwrap_or(bytes.len() - at);
                out.push(Scalar::Literal(at..at + len));
                at += len;
            }
        }
    }
    Some(out)
}

/// Index of the closing quote of a string whose contents begin at `at`.
pub fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// Whether `text` is one JSON value, at any depth of nesting.
pub fn is_json(text: &str) -> bool {
    let mut reader = serde_json::Deserializer::from_str(text);
    // Values are skipped, not built; serde_json keeps the nesting it skips on the heap, so depth costs no stack.
    IgnoredAny::deserialize(&mut reader).is_ok() && reader.end().is_ok()
}

/// A text with its JSON escapes resolved, and where each part of it was written.
#[derive(Clone, Debug)]
pub struct Decoded<'t> {
    text: Cow<'t, str>,
    runs: Vec<Run>,
}

/// Text that came from escapes of one length, or from no escapes.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Where it begins in the decoded text; it ends where the next one begins.
    text: u32,
    /// Where it begins as written.
    raw: u32,
    /// Bytes of text that came from `raw_unit` bytes as written.
    text_unit: u8,
    raw_unit: u8,
}

impl<'t> Decoded<'t> {
    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text, without a copy when nothing was escaped.
    pub fn into_text(self) -> Cow<'t, str> {
        self.text
    }

    /// Whether the text is exactly as it was written.
    pub fn is_verbatim(&self) -> bool {
        self.runs.is_empty()
    }

    /// The bytes as written that `range` of the text came from: whole escapes, and not empty for a range that is not.
    pub fn to_raw(&self, range: Range<usize>) -> Range<usize> {
        if self.runs.is_empty() {
            return range;
        }
        let start = self.unit_at(range.start).start;
        let end = if range.end > range.start { self.unit_at(range.end - 1).end } else { start };
        start..end.max(start)
    }

    /// What was written for the byte at `offset`.
    fn unit_at(&self, offset: usize) -> Range<usize> {
        let nth = self.runs.partition_point(|run| run.text as usize <= offset).saturating_sub(1);
        let run = self.runs[nth];
        let unit = offset.saturating_sub(run.text as usize) / usize::from(run.text_unit);
        let start = run.raw as usize + unit * usize::from(run.raw_unit);
        start..start + usize::from(run.raw_unit)
    }
}

/// Resolves the JSON escapes of `raw`. A lone surrogate becomes U+FFFD; what is no escape stays as it is. Text of 4 GiB
/// and more stays as it is altogether.
pub fn decode(raw: &str) -> Decoded<'_> {
    let bytes = raw.as_bytes();
    let first = memchr::memchr(b'\\', bytes).filter(|_| u32::try_from(raw.len()).is_ok());
    let Some(mut at) = first else { return Decoded { text: Cow::Borrowed(raw), runs: Vec::new() } };
    let mut text = String::with_capacity(raw.len());
    let mut runs: Vec<Run> = Vec::new();
    let mut begin = |text: usize, raw: usize, text_unit: usize, raw_unit: usize| {
        let same = runs
            .last()
            .is_some_and(|r| usize::from(r.text_unit) == text_unit && usize::from(r.raw_unit) == raw_unit);
        if !same {
            let (text, raw) = (text as u32, raw as u32);
            runs.push(Run { text, raw, text_unit: text_unit as u8, raw_unit: raw_unit as u8 });
        }
    };
    if at > 0 {
        begin(0, 0, 1, 1);
        text.push_str(&raw[..at]);
    }
    while at < bytes.len() {
        if let Some((c, len)) = escape_at(bytes, at) {
            begin(text.len(), at, c.len_utf8(), len);
            text.push(c);
            at += len;
            if bytes.get(at) == Some(&b'\\') {
                continue;
            }
        }
        let plain = memchr::memchr(b'\\', &bytes[(at + 1).min(bytes.len())..]);
        let end = plain.map_or(bytes.len(), |plain| at + 1 + plain);
        if at < end {
            begin(text.len(), at, 1, 1);
            text.push_str(&raw[at..end]);
        }
        at = end;
    }
    Decoded { text: Cow::Owned(text), runs }
}

/// The character that the escape at `at` stands for, and its length as written.
fn escape_at(bytes: &[u8], at: usize) -> Option<(char, usize)> {
    let simple = match bytes.get(at + 1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{C}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let first = unit_at(bytes, at)?;
            let second = unit_at(bytes, at + 6).filter(|unit| (0xDC00..0xE000).contains(unit));
            let mut decoded = char::decode_utf16(std::iter::once(first).chain(second));
            let c = decoded.next()?.unwrap_or(char::REPLACEMENT_CHARACTER);
            return Some((c, if c.len_utf16() == 2 { 12 } else { 6 }));
        }
        _ => return None,
    };
    Some((simple, 2))
}

/// The UTF-16 unit of a `\uXXXX` at `at`.
fn unit_at(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)? as u16))
}

/// Appends `text` as the contents of a JSON string, without quotes.
pub fn escape_into(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|b| b < 0x20 || b == b'"' || b == b'\\') {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            sign @ (b'"' | b'\\') => out.extend(['\\', char::from(sign)]),
            control => {
                let _ = write!(out, "\\u{control:04x}"); // a String takes every write
            }
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// `text` as a JSON string, with its quotes.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    escape_into(&mut out, text);
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_scalars() {
        let text = r#"{"a\"b": [1, -2.5e3, true, null, "x"]}"#;
        let shown: Vec<&str> =
            scalars(text).expect("valid").iter().map(|s| &text[s.range().clone()]).collect();
        assert_eq!(shown, [r#"a\"b"#, "1", "-2.5e3", "true", "null", "x"]);
    }

    #[test]
    fn tells_json_from_other_text_at_any_depth() {
        assert!(is_json(&format!("{}{}", "[".repeat(200_000), "]".repeat(200_000))));
        for broken in ["", "{", "{\"a\":}", "[1,]", "hello", "{} {}", "\"a", "\"\\"] {
            assert!(scalars(broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn decodes_and_leads_back() {
        let cases = [
            ("plain", "plain", 1..3, 1..3),
            (r"a\nb", "a\nb", 1..2, 1..3),
            (r"a\nb", "a\nb", 2..3, 3..4),
            (r"a\n\tb", "a\n\tb", 2..4, 3..6),
            (r"\u0041\u0042c", "ABc", 1..3, 6..13),
            (r"\u00e9x", "éx", 0..2, 0..6),
            (r"x\ud83d\ude00y", "x😀y", 1..5, 1..13),
            (r"x\ud83d\ude00y", "x😀y", 5..6, 13..14),
            (r"\ud800z", "\u{FFFD}z", 3..4, 6..7),
            (r"\ud800\ud800", "\u{FFFD}\u{FFFD}", 3..6, 6..12),
            (r"\ud800\u0041", "\u{FFFD}A", 3..4, 6..12),
            (r"\q\", r"\q\", 2..3, 2..3),
            (r"\u12", r"\u12", 0..4, 0..4),
            (r#"{"k\"":"v"}"#, r#"{"k"":"v"}"#, 3..4, 3..5),
        ];
        for (raw, text, range, wanted) in cases {
            let decoded = decode(raw);
            assert_eq!(decoded.text(), text, "{raw}");
            assert_eq!(decoded.to_raw(range.clone()), wanted, "{raw} {range:?}");
            assert_eq!(decoded.to_raw(0..text.len()), 0..raw.len(), "{raw}");
        }
    }

    #[test]
    fn escapes_what_json_wants_escaped() {
        let text = "a\"b\\c\n\r\t\u{1}é😀/";
        assert_eq!(quote(text), r#""a\"b\\c\n\r\t\u0001é😀/""#);
        assert_eq!(decode(&quote(text)[1..quote(text).len() - 1]).text(), text);
    }
}
