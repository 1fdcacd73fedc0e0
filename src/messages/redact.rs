//! Redaction: credentials and personal data replaced by stable typed placeholders.
//!
//! Each merged span becomes `[EMAIL_1]`, `[SECRET_GITHUB_1]` and so on; the same value has the same placeholder all
//! through a request. Everything else stays as it was, byte for byte. In JSON fields only scalars are written to, so
//! the JSON stays JSON: a number becomes a string that holds its placeholder.
//!
//! Invariant: what is returned has no remaining finding of the redacted families. Cutting something out can bring two
//! halves together, so the result is scanned again until nothing is left; a text that resists is replaced whole.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::FieldPath;
use super::json::{self, Scalar};
use crate::decision::{Category, Severity};
use crate::detect::SECRETS;

/// Rounds of scanning what redaction left. Two are the most that real texts were seen to need.
const ROUNDS_MAX: usize = 6;

/// A field after redaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactedField {
    /// Index of the message.
    pub message_index: u32,
    /// Where the field stands in it.
    pub path: FieldPath,
    /// Its text now.
    pub text: String,
}

/// Something to take out of a text.
#[derive(Clone, Debug)]
pub(super) struct Secret {
    pub range: Range<usize>,
    pub category: Category,
    pub severity: Severity,
}

/// Placeholders given out in one request.
#[derive(Default)]
pub(super) struct Placeholders {
    given: HashMap<(String, String), usize>,
    next: HashMap<String, usize>,
}

impl Placeholders {
    fn name(&mut self, category: &Category, value: &str) -> String {
        let kind = kind_of(category);
        let next = self.next.entry(kind.clone()).or_insert(0);
        let number = *self.given.entry((kind.clone(), value.to_owned())).or_insert_with(|| {
            *next += 1;
            *next
        });
        format!("[{kind}_{number}]")
    }
}

/// `EMAIL` of `pii.email`, `SECRET_GITHUB` of `secrets.github`, `SECRET` of `secrets`.
fn kind_of(category: &Category) -> String {
    let leaf = category.leaf().to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    match (category.family() == SECRETS, category.as_str() == category.family()) {
        (true, true) => "SECRET".to_owned(),
        (true, false) => format!("SECRET_{leaf}"),
        (false, _) => leaf,
    }
}

/// Redacts one field. `find` finds what must not remain in a text.
///
/// # Errors
/// Whatever `find` could not do.
pub(super) fn redact<E>(
    text: &str,
    is_json: bool,
    mut secrets: Vec<Secret>,
    placeholders: &mut Placeholders,
    mut find: impl FnMut(&str) -> Result<Vec<Secret>, E>,
) -> Result<String, E> {
    let mut current = text.to_owned();
    for _ in 0..ROUNDS_MAX {
        if secrets.is_empty() {
            return Ok(current);
        }
        current = replace(&current, is_json, merge(secrets), placeholders);
        secrets = find(&current)?;
    }
    // It grew back every time. What cannot be cleaned is not shown.
    Ok(if is_json { "\"[REDACTED]\"".to_owned() } else { "[REDACTED]".to_owned() })
}

/// Joins overlapping spans; the most severe names the whole.
fn merge(mut secrets: Vec<Secret>) -> Vec<Secret> {
    secrets.sort_by_key(|s| (s.range.start, s.range.end));
    let mut merged: Vec<Secret> = Vec::with_capacity(secrets.len());
    for secret in secrets {
        match merged.last_mut() {
            Some(last) if secret.range.start < last.range.end => {
                last.range.end = last.range.end.max(secret.range.end);
                if secret.severity > last.severity {
                    last.severity = secret.severity;
                    last.category = secret.category;
                }
            }
            _ => merged.push(secret),
        }
    }
    merged
}

fn replace(text: &str, is_json: bool, secrets: Vec<Secret>, placeholders: &mut Placeholders) -> String {
    let scalars = is_json.then(|| json::scalars(text)).flatten();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for secret in secrets {
        let name = placeholders.name(&secret.category, &text[secret.range.clone()]);
        let pieces = match &scalars {
            None => vec![(secret.range, false)],
            Some(scalars) => pieces(scalars, &secret.range),
        };
        for (range, is_literal) in pieces {
            // Two secrets in one number both claim it; it is replaced once.
            if range.start < at {
                continue;
            }
            out.push_str(&text[at..range.start]);
            let quote = if is_literal { "\"" } else { "" };
            let _ = write!(out, "{quote}{name}{quote}");
            at = range.end;
        }
    }
    out.push_str(&text[at..]);
    out
}

/// The parts of `range` that lie in scalars; a touched literal is taken whole.
fn pieces(scalars: &[Scalar], range: &Range<usize>) -> Vec<(Range<usize>, bool)> {
    let first = scalars.partition_point(|s| s.range().end <= range.start);
    scalars[first..]
        .iter()
        .take_while(|s| s.range().start < range.end)
        .map(|scalar| match scalar {
            Scalar::String(s) => (s.start.max(range.start)..s.end.min(range.end), false),
            Scalar::Literal(s) => (s.clone(), true),
        })
        .filter(|(r, _)| !r.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn once(text: &str, is_json: bool, ranges: &[(Range<usize>, &str)]) -> String {
        let secrets = ranges
            .iter()
            .map(|(range, category)| Secret {
                range: range.clone(),
                category: Category::new(category),
                severity: Severity::High,
            })
            .collect();
        let clean = |_: &str| Ok::<_, std::convert::Infallible>(Vec::new());
        redact(text, is_json, secrets, &mut Placeholders::default(), clean).expect("cannot fail")
    }

    #[test]
    fn replaces_spans_and_nothing_else() {
        assert_eq!(
            once("a@b.c, x, a@b.c", false, &[(0..5, "pii.email"), (10..15, "pii.email")]),
            "[EMAIL_1], x, [EMAIL_1]"
        );
        assert_eq!(once("kkkk", false, &[(0..3, "secrets"), (2..4, "secrets.git-hub")]), "[SECRET_1]");
    }

    #[test]
    fn keeps_json_parseable() {
        let text = r#"{"card":4111111111111111,"to":"a\"b@c.d","k":["x"]}"#;
        let card = text.find("4111").expect("is there");
        let to = text.find("b@c.d").expect("is there");
        let out = once(text, true, &[(card + 2..card + 10, "pii.credit_card"), (to..to + 5, "pii.email")]);
        assert_eq!(out, r#"{"card":"[CREDIT_CARD_1]","to":"a\"[EMAIL_1]","k":["x"]}"#);
        let across = once(text, true, &[(to..text.len() - 1, "secrets")]);
        assert_eq!(across, r#"{"card":4111111111111111,"to":"a\"[SECRET_1]","[SECRET_1]":["[SECRET_1]"]}"#);
        assert!(json::is_json(&across));
    }

    #[test]
    fn a_text_that_stays_dirty_is_not_shown() {
        let secret = || Secret { range: 0..1, category: Category::new("pii.email"), severity: Severity::Low };
        let find = |_: &str| Ok::<_, std::convert::Infallible>(vec![secret()]);
        let out = redact("abc", false, vec![secret()], &mut Placeholders::default(), find);
        assert_eq!(out, Ok("[REDACTED]".to_owned()));
    }
}
