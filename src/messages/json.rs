//! Scalars of a JSON text, found without parsing it into a tree.
//!
//! Redaction writes into JSON that belongs to others: numbers keep their spelling, keys their order, and nesting of any
//! depth costs no stack. This is a scanner, not a validator of everything: it accepts what it can cut into tokens, and
//! says so when it cannot.

use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// One scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    /// Contents of a string, without its quotes.
    String(Range<usize>),
    /// A number, `true`, `false` or `null`.
    Literal(Range<usize>),
}

impl Scalar {
    pub(super) fn range(&self) -> &Range<usize> {
        match self {
            Self::String(range) | Self::Literal(range) => range,
        }
    }
}

/// Every scalar of `text` in order, or `None` when it is no JSON.
pub(super) fn scalars(text: &str) -> Option<Vec<Scalar>> {
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
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// Whether `text` is one JSON value, at any depth of nesting.
pub(super) fn is_json(text: &str) -> bool {
    let mut reader = serde_json::Deserializer::from_str(text);
    // Values are skipped, not built; serde_json keeps the nesting it skips on the heap, so depth costs no stack.
    IgnoredAny::deserialize(&mut reader).is_ok() && reader.end().is_ok()
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
}
