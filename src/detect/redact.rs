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

use super::{PII, Request, SECRETS, Scanner};
use crate::decision::{Category, Severity};
use crate::rules::{Budget, ScanStop, Surface};
use crate::text::json::{self, Scalar};

/// Rounds of scanning what redaction left. Two are the most that real texts were seen to need.
const ROUNDS_MAX: usize = 6;

/// Shortest credential that is looked for elsewhere in the text; shorter ones are words by chance.
const REPEATED_BYTES_MIN: usize = 8;
/// Most credentials of one text that are looked for elsewhere in it, each in a pass of its own.
const REPEATED_VALUES_MAX: usize = 64;

/// Something to take out of a text.
#[derive(Clone, Debug)]
pub struct Secret {
    /// Where it stands, in bytes.
    pub range: Range<usize>,
    /// What it is.
    pub category: Category,
    /// How bad it is; the most severe of overlapping ones names the placeholder.
    pub severity: Severity,
}

/// Placeholders given out in one request: the same value of the same kind gets the same one.
#[derive(Debug, Default)]
pub struct Placeholders {
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

/// The kind in a placeholder: `EMAIL` of `pii.email`, `SECRET_GITHUB` of `secrets.github`, `SECRET` of `secrets`.
pub fn kind_of(category: &Category) -> String {
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
pub fn redact<E>(
    text: &str,
    is_json: bool,
    mut secrets: Vec<Secret>,
    placeholders: &mut Placeholders,
    mut find: impl FnMut(&str) -> Result<Vec<Secret>, E>,
) -> Result<String, E> {
    let mut current = text.to_owned();
    let again = repeats(text, &secrets);
    secrets.extend(again);
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

/// Takes the credentials and personal data whose category `is_wanted` out of a plain text that is going to be kept or
/// shown. What could not be looked at to its end is not shown.
pub fn redact_plain(
    scanner: &Scanner,
    text: &str,
    surface: Surface,
    placeholders: &mut Placeholders,
    is_wanted: impl Fn(&Category) -> bool,
) -> String {
    let find = |text: &str| found(scanner, text, surface, &is_wanted);
    masked(text, placeholders, find)
}

/// The same for a text whose lines are told by their numbers: what spans lines is replaced in each of them, so that the text
/// has as many lines as before.
pub fn redact_lines(
    scanner: &Scanner,
    text: &str,
    surface: Surface,
    placeholders: &mut Placeholders,
    is_wanted: impl Fn(&Category) -> bool,
) -> String {
    let find = |text: &str| {
        let found = found(scanner, text, surface, &is_wanted)?;
        Ok(found.iter().flat_map(|secret| of_lines(text, secret)).collect())
    };
    masked(text, placeholders, find)
}

fn masked(
    text: &str,
    placeholders: &mut Placeholders,
    find: impl Fn(&str) -> Result<Vec<Secret>, ScanStop>,
) -> String {
    let masked = find(text).and_then(|secrets| redact(text, false, secrets, placeholders, find));
    masked.unwrap_or_else(|ScanStop| "[REDACTED]".to_owned())
}

/// The credentials and personal data of a plain text whose category `is_wanted`.
fn found(
    scanner: &Scanner,
    text: &str,
    surface: Surface,
    is_wanted: &impl Fn(&Category) -> bool,
) -> Result<Vec<Secret>, ScanStop> {
    let plugins = scanner.rules().plugin_bits([SECRETS, PII]);
    let request = Request { text, plugins, role: None, surface: Some(surface) };
    let scanned = scanner.scan(request, &Budget::UNLIMITED)?;
    let found = scanned.findings.iter().filter(|found| !found.range.is_empty());
    let found = found.filter(|found| is_wanted(&found.info.category)).map(|found| Secret {
        range: found.range.clone(),
        category: found.info.category.clone(),
        severity: found.info.severity,
    });
    Ok(found.collect())
}

/// The parts of a secret that stand in lines of their own, without the ends of those lines.
fn of_lines(text: &str, secret: &Secret) -> Vec<Secret> {
    let Some(value) = text.get(secret.range.clone()).filter(|value| value.contains(['\n', '\r'])) else {
        return vec![secret.clone()];
    };
    let mut at = secret.range.start;
    let mut parts = Vec::new();
    for line in value.split_inclusive(['\n', '\r']) {
        let end = at + line.trim_end_matches(['\n', '\r']).len();
        if end > at {
            parts.push(Secret { range: at..end, ..secret.clone() });
        }
        at += line.len();
    }
    parts
}

/// Where the credentials and personal data of a plain text stand, with further places of the same credentials; merged,
/// in their order.
///
/// # Errors
/// The text could not be looked at to its end.
pub fn secrets_in(scanner: &Scanner, text: &str, surface: Surface) -> Result<Vec<Secret>, ScanStop> {
    let plugins = scanner.rules().plugin_bits([SECRETS, PII]);
    let request = Request { text, plugins, role: None, surface: Some(surface) };
    let scanned = scanner.scan(request, &Budget::UNLIMITED)?;
    let found = scanned.findings.iter().filter(|found| !found.range.is_empty()).map(|found| Secret {
        range: found.range.clone(),
        category: found.info.category.clone(),
        severity: found.info.severity,
    });
    let mut secrets: Vec<Secret> = found.collect();
    secrets.extend(repeats(text, &secrets));
    Ok(merge(secrets))
}

/// Joins overlapping secrets, in the order of the text.
pub fn merged(secrets: Vec<Secret>) -> Vec<Secret> {
    merge(secrets)
}

/// Further places of the credentials that were found.
fn repeats(text: &str, secrets: &[Secret]) -> Vec<Secret> {
    let mut values: Vec<(&str, &Secret)> = secrets
        .iter()
        .filter(|secret| secret.category.family() == SECRETS && secret.severity >= Severity::Medium)
        .filter_map(|secret| Some((text.get(secret.range.clone())?, secret)))
        .filter(|(value, _)| value.len() >= REPEATED_BYTES_MIN)
        .collect();
    values.sort_by(|a, b| (a.0, b.1.severity, a.1.range.start).cmp(&(b.0, a.1.severity, b.1.range.start)));
    values.dedup_by_key(|(value, _)| *value);
    values.truncate(REPEATED_VALUES_MAX);
    let everywhere = |(value, secret): &(&str, &Secret)| {
        let (value, secret) = ((*value).to_owned(), (*secret).clone());
        memchr::memmem::find_iter(text.as_bytes(), &value)
            .map(|at| Secret { range: at..at + value.len(), ..secret.clone() })
            .collect::<Vec<_>>()
    };
    values.iter().flat_map(everywhere).collect()
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
        let value = &text[secret.range.clone()];
        // However a value is escaped, it is the same one.
        let name = match scalars {
            None => placeholders.name(&secret.category, value),
            Some(_) => placeholders.name(&secret.category, json::decode(value).text()),
        };
        let pieces = match &scalars {
            None => vec![(secret.range, false)],
            Some(scalars) => pieces(text.as_bytes(), scalars, &secret.range),
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

/// The parts of `range` that lie in scalars; a touched literal is taken whole, and so is a touched escape.
fn pieces(text: &[u8], scalars: &[Scalar], range: &Range<usize>) -> Vec<(Range<usize>, bool)> {
    let first = scalars.partition_point(|s| s.range().end <= range.start);
    scalars[first..]
        .iter()
        .take_while(|s| s.range().start < range.end)
        .map(|scalar| match scalar {
            Scalar::String(s) => {
                let (start, end) = (s.start.max(range.start), s.end.min(range.end));
                if start >= end {
                    return (start..start, false);
                }
                let first = escape_around(text, s.start, start);
                let last = escape_around(text, s.start, end);
                (first.map_or(start, |e| e.start)..last.map_or(end, |e| e.end), false)
            }
            Scalar::Literal(s) => (s.clone(), true),
        })
        .filter(|(r, _)| !r.is_empty())
        .collect()
}

/// The JSON escape that a cut at `at` would go through, in a string whose contents begin at `from`.
fn escape_around(text: &[u8], from: usize, at: usize) -> Option<Range<usize>> {
    for start in (from.max(at.saturating_sub(5))..at).rev() {
        if text[start] != b'\\' {
            continue;
        }
        let before = text[from..start].iter().rev().take_while(|b| **b == b'\\').count();
        if before % 2 == 1 {
            // The second half of an escaped backslash.
            continue;
        }
        let len = if text.get(start + 1) == Some(&b'u') { 6 } else { 2 };
        return (start + len > at).then(|| start..start + len);
    }
    None
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
    fn a_credential_is_taken_out_wherever_it_stands() {
        let text = "pw Zk3vQ9xT7m, later Zk3vQ9xT7m; a@b.c a@b.c";
        assert_eq!(
            once(text, false, &[(3..13, "secrets.password"), (33..38, "pii.email")]),
            "pw [SECRET_PASSWORD_1], later [SECRET_PASSWORD_1]; [EMAIL_1] a@b.c"
        );
        // A short one is left where nothing says what it is.
        assert_eq!(once("pw abc1, abc1", false, &[(3..7, "secrets")]), "pw [SECRET_1], abc1");
    }

    #[test]
    fn never_cuts_an_escape() {
        let cases = [
            (r#"["\nx@y.z"]"#, "nx@y.z", r#"["[EMAIL_1]"]"#),
            (r#"["\u00e94111"]"#, "94111", r#"["[EMAIL_1]"]"#),
            (r#"["4111\u00e9"]"#, r"4111\u0", r#"["[EMAIL_1]"]"#),
            (r#"["\\nx@y.z"]"#, "nx@y.z", r#"["\\[EMAIL_1]"]"#),
            (r#"["4111\\"]"#, r"4111\", r#"["[EMAIL_1]"]"#),
        ];
        for (text, secret, wanted) in cases {
            let at = text.find(secret).expect("is there");
            assert_eq!(once(text, true, &[(at..at + secret.len(), "pii.email")]), wanted, "{text}");
        }
    }

    #[test]
    fn what_spans_lines_is_taken_out_of_each() {
        let secret = |range| Secret {
            range,
            category: Category::new("secrets.private_key"),
            severity: Severity::Critical,
        };
        let text = "a\nKEY\r\n\r\nabc\nEND, b\n";
        let ranges: Vec<_> = of_lines(text, &secret(2..17)).into_iter().map(|part| part.range).collect();
        assert_eq!(ranges, [2..5, 9..12, 13..17]);
        assert_eq!(of_lines(text, &secret(9..12)).len(), 1);
    }

    #[test]
    fn one_value_has_one_placeholder_however_it_is_escaped() {
        let text = r#"["a@b.c","a\u0040b.c"]"#;
        let out = once(text, true, &[(2..7, "pii.email"), (10..20, "pii.email")]);
        assert_eq!(out, r#"["[EMAIL_1]","[EMAIL_1]"]"#);
    }

    #[test]
    fn a_text_that_stays_dirty_is_not_shown() {
        let secret = || Secret { range: 0..1, category: Category::new("pii.email"), severity: Severity::Low };
        let find = |_: &str| Ok::<_, std::convert::Infallible>(vec![secret()]);
        let out = redact("abc", false, vec![secret()], &mut Placeholders::default(), find);
        assert_eq!(out, Ok("[REDACTED]".to_owned()));
    }
}
