//! Private keys in PEM form: what stands between the two lines, told from what stands in for it.
//!
//! No more is asked of a body than that it can be one. Keys that were wrapped, quoted, numbered by line, masked in part
//! or cut off are keys all the same, and so their first bytes, which are those of DER or of OpenSSH, prove nothing when
//! they are missing.

use super::encoded::base64_decode;
use super::regular;

/// Fewest characters of a line of the body; shorter ones may be numbers of lines and words of headers.
const LINE_MIN: usize = 20;
/// Most characters of the body that are looked at.
const BODY_MAX: usize = 8192;
/// Fewest bytes that are read as text.
const TEXT_MIN: usize = 30;

/// Words of six letters and more that a body holds only if somebody wrote them: chance needs ten million keys for one.
const SAMPLE_WORDS: [&str; 6] =
    ["example", "placeholder", "redacted", "changeme", "privatekey", "notarealkey"];

/// Whether the body of a PEM block, whole or cut off, can be a key.
pub(super) fn can_be_key(block: &str) -> bool {
    let inner = block.split_once("-----BEGIN").map_or(block, |(_, rest)| rest);
    let inner = inner.split_once("-----").map_or(inner, |(_, rest)| rest);
    let inner = inner.split("-----END").next().unwrap_or(inner);
    let body = body_of(inner);
    if body.is_empty() {
        return true;
    }
    let lower = body.to_ascii_lowercase();
    !is_regular_throughout(&body) && !SAMPLE_WORDS.iter().any(|word| lower.contains(word)) && !is_text(&body)
}

/// The lines of base64 in it, joined; escapes that stand for line breaks part them.
fn body_of(inner: &str) -> String {
    let mut body = String::new();
    let mut line = String::new();
    let mut chars = inner.chars().chain(Some('\n'));
    while let Some(c) = chars.next() {
        match c {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '+' | '/' => line.push(c),
            _ => {
                if line.len() >= LINE_MIN && body.len() + line.len() <= BODY_MAX {
                    body += &line;
                }
                line.clear();
                if c == '\\' {
                    chars.next();
                }
            }
        }
    }
    body
}

/// Whether each piece of the body that is long enough to tell is a row, a repeat or of a few characters.
fn is_regular_throughout(body: &str) -> bool {
    let mut pieces = body.as_bytes().chunks(64).filter_map(|piece| std::str::from_utf8(piece).ok());
    pieces.all(|piece| piece.len() < LINE_MIN || regular::is_regular(piece))
}

/// Whether the body is base64 of plain text. Keys hold bytes of every kind.
fn is_text(body: &str) -> bool {
    let whole = body.get(..body.len() / 4 * 4).unwrap_or_default();
    base64_decode(whole).is_some_and(|bytes| {
        bytes.len() >= TEXT_MIN
            && bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "ecsCZmXEb7G8v0tX31skj1fGsaB92j+WOjiHfEHb6lvrE3q3iE2hwfJdWTfD4csG\n\
                         kUjak+yJ3a+TgDk9WgxbOUIECnNFpYffoBZ6zFBwzzldxPTXg6POof5Sl4U9cp/5\n";

    #[test]
    fn a_key_is_told_from_what_stands_in_for_one() {
        let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
        let escaped = LINES.replace('\n', "\\n");
        let numbered: String =
            LINES.lines().enumerate().map(|(at, line)| format!("{at}\t{line}\n")).collect();
        let masked = LINES.replacen("E3q3iE2hwfJdWTfD4csG", "xxxxxxxxxxxxxxxxxxxx", 1);
        for body in [LINES, &escaped, &numbered, &masked, "MIIEpQIBAAKCAQEA7bq4x0vV\n..."] {
            assert!(can_be_key(&format!("{begin}\n{body}{end}")), "{body}");
            assert!(can_be_key(&format!("{begin}\n{body}")), "{body}");
        }
        for body in [
            "x".repeat(64),
            "AAAABBBBCCCCDDDD".repeat(8),
            format!("MIIE{}", "example".repeat(9)),
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/".to_owned(),
            "VGhpcyBpcyBubyBrZXkgYnV0IGEgc2VudGVuY2UgdGhhdCBzb21lYm9keSB3cm90ZS4K".to_owned(),
        ] {
            assert!(!can_be_key(&format!("{begin}\n{body}\n{end}")), "{body}");
        }
    }
}
