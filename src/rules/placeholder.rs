//! Placeholders that redaction writes: `[EMAIL_1]`, `[SECRET_GITHUB_2]`.
//!
//! What was taken out says nothing about what stands beside it: the name of a kind is no context word, and a placeholder
//! is no value. Otherwise a second look at redacted text finds what the first did not.

use std::ops::Range;

/// Longest name of a kind, in bytes.
const KIND_BYTES_MAX: usize = 48;
/// Most digits of the number of a placeholder.
const NUMBER_DIGITS_MAX: usize = 5;
/// Most digits in a row of a kind. More of them may be the very number that is looked for.
const KIND_DIGITS_MAX: usize = 2;

/// The placeholder, brackets included, that all of `part` lies in.
pub(super) fn around(text: &[u8], part: Range<usize>) -> Option<Range<usize>> {
    let is_inner = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let reach = KIND_BYTES_MAX + NUMBER_DIGITS_MAX + 2;
    let head = text.get(part.end.saturating_sub(reach)..part.end)?;
    let tail = text.get(part.start..text.len().min(part.start + reach))?;
    let start = part.end - head.len() + head.iter().rposition(|byte| *byte == b'[')?;
    let end = part.start + tail.iter().position(|byte| *byte == b']')? + 1;
    if start > part.start || end < part.end {
        return None;
    }
    let inner = &text[start + 1..end - 1];
    let (kind, number) = inner.split_at(inner.iter().rposition(|byte| *byte == b'_')?);
    let number = &number[1..];
    let is_number = (1..=NUMBER_DIGITS_MAX).contains(&number.len()) && number.iter().all(u8::is_ascii_digit);
    let longest = kind.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).max().unwrap_or(0);
    let is_kind = kind.first().is_some_and(u8::is_ascii_uppercase)
        && kind.len() <= KIND_BYTES_MAX
        && kind.iter().all(is_inner)
        && longest <= KIND_DIGITS_MAX;
    (is_number && is_kind).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_redaction_writes_is_a_placeholder() {
        for (text, part, wanted) in [
            ("x [NATIONAL_ID_1] y", "NATIONAL_ID", true),
            ("x [NATIONAL_ID_1] y", "[NATIONAL_ID_1]", true),
            ("x [SECRET_PASSWORD_12]", "PASSWORD", true),
            ("x [EMAIL_1] y", "y", false),
            ("[EMAIL_1] tax [EMAIL_2]", "tax", false),
            ("[EMAIL_1", "EMAIL", false),
            ("[email_1]", "email", false),
            ("[TAX]", "TAX", false),
            ("[ID_11144477735]", "ID", false),
            ("[DE89370400440532013000_1]", "DE89370400440532013000", false),
        ] {
            let at = text.find(part).expect("is there");
            let found = around(text.as_bytes(), at..at + part.len());
            assert_eq!(found.is_some(), wanted, "{text} {part}");
        }
    }
}
