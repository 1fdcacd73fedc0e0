//! One answer against one label.

use crate::decision::{Decision, Severity};

use super::judge::{Found, Judged};
use super::record::{Kind, Labelled, Record};

/// What an answer is worth.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Graded {
    /// Whether the record was flagged: right for a positive one, wrong for a negative one.
    pub is_flagged: bool,
    /// The score that decides: the risk of a text, or for records with spans the best finding that counts.
    pub score: f64,
    /// One for each expected span.
    pub spans: Vec<SpanGrade>,
}

/// What became of one expected span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SpanGrade {
    /// A finding of the family overlaps it.
    pub is_overlapped: bool,
    /// One of these has exactly its bounds.
    pub is_exact: bool,
    /// One of these names its type.
    pub is_right_type: bool,
    /// Together they cover all of it.
    pub is_covered: bool,
}

/// Grades one answer.
pub(super) fn grade(record: &Record, judged: &Judged) -> Graded {
    if let Some(transcript) = &record.transcript {
        let is_flagged = match &transcript.attack {
            Some(attack) => {
                judged.incidents.iter().any(|seen| seen.is_alarm() && attack.contains(&seen.offset))
            }
            None => !judged.incidents.is_empty(),
        };
        return Graded { is_flagged, ..Graded::default() };
    }
    if record.kind == Kind::Archives {
        let is_refused = judged.reviewed.as_ref().is_some_and(|reviewed| !reviewed.is_accepted);
        return Graded { is_flagged: is_refused, ..Graded::default() };
    }
    let Some(family) = record.kind.family() else {
        return Graded {
            is_flagged: judged.decision == Decision::Block,
            score: judged.risk_score,
            spans: Vec::new(),
        };
    };
    let findings: Vec<&Found> =
        judged.findings.iter().filter(|found| is_within(&found.category, family)).collect();
    let spans: Vec<_> = record.spans.iter().map(|span| grade_span(record.kind, span, &findings)).collect();
    let is_flagged = if record.is_positive {
        spans.iter().any(|span| span.is_overlapped)
    } else {
        findings.iter().any(|found| found.severity >= Severity::Medium)
    };
    let counts =
        |found: &&&Found| !record.is_positive || record.spans.iter().any(|span| overlaps(found, span));
    let score = findings.iter().filter(counts).map(|found| found.score).fold(0.0, f64::max);
    Graded { is_flagged, score, spans }
}

/// Whether `found` and `span` share a byte.
pub(super) fn overlaps(found: &Found, span: &Labelled) -> bool {
    found.start < span.range.end && span.range.start < found.end
}

/// Whether `category` is `family` or stands below it.
pub(super) fn is_within(category: &str, family: &str) -> bool {
    category.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn grade_span(kind: Kind, span: &Labelled, findings: &[&Found]) -> SpanGrade {
    let mut grade = SpanGrade::default();
    // Findings come in the order of the text.
    let mut covered_to = span.range.start;
    for found in findings.iter().filter(|found| overlaps(found, span)) {
        grade.is_overlapped = true;
        grade.is_exact |= (found.start..found.end) == span.range;
        grade.is_right_type |= kind != Kind::Pii || names_type(&found.category, &span.kind);
        if found.start <= covered_to {
            covered_to = covered_to.max(found.end);
        }
    }
    grade.is_covered = covered_to >= span.range.end;
    grade
}

/// Whether a category such as `pii.passport` names a type such as `US_PASSPORT`.
fn names_type(category: &str, expected: &str) -> bool {
    let leaf = category.rsplit('.').next().unwrap_or_default();
    let expected = expected.to_ascii_lowercase();
    match expected.as_str() {
        "us_passport" => leaf == "passport",
        "us_driver_license" => leaf == "driver_license",
        // A social security number is the national identity number of its country.
        "us_ssn" => matches!(leaf, "us_ssn" | "national_id"),
        expected => leaf == expected,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::Role;

    fn record(kind: Kind, is_positive: bool, spans: &[(&str, usize, usize)]) -> Record {
        let spans =
            spans.iter().map(|(kind, start, end)| Labelled { kind: (*kind).to_owned(), range: *start..*end });
        Record {
            id: "a".to_owned(),
            label: String::new(),
            is_positive,
            is_graded: true,
            kind,
            tier: String::new(),
            category: String::new(),
            source: String::new(),
            group: String::new(),
            disguise: None,
            role: Role::User,
            text: " ".repeat(100),
            call: None,
            transcript: None,
            upload: None,
            spans: spans.collect(),
            has_exact_spans: true,
            is_core: true,
        }
    }

    fn judged(decision: Decision, findings: &[(&str, Severity, usize, usize)]) -> Judged {
        let findings = findings.iter().map(|(category, severity, start, end)| Found {
            category: (*category).to_owned(),
            rule_id: "r".to_owned(),
            severity: *severity,
            path: "/text".to_owned(),
            start: *start,
            end: *end,
            score: severity.score(),
        });
        Judged {
            decision,
            risk_score: 0.0,
            findings: findings.collect(),
            unjudged: Vec::new(),
            incidents: Vec::new(),
            reviewed: None,
            elapsed: Duration::ZERO,
        }
    }

    #[test]
    fn injection_and_tool_calls_are_graded_by_the_decision() {
        let attack = record(Kind::Injection, true, &[]);
        let command = record(Kind::Commands, true, &[]);
        assert!(grade(&command, &judged(Decision::Block, &[])).is_flagged);
        assert!(!grade(&command, &judged(Decision::Ask, &[])).is_flagged, "asking is not blocking");
        assert!(grade(&attack, &judged(Decision::Block, &[])).is_flagged);
        for weaker in [Decision::Allow, Decision::Warn, Decision::Ask] {
            assert!(
                !grade(&attack, &judged(weaker, &[("prompt_injection", Severity::High, 0, 1)])).is_flagged
            );
        }
    }

    #[test]
    fn a_positive_needs_an_overlap_of_its_family() {
        let secret = record(Kind::Secrets, true, &[("aws", 10, 20)]);
        let grade_of = |findings: &[_]| grade(&secret, &judged(Decision::Allow, findings));
        assert!(!grade_of(&[("secrets.aws", Severity::High, 20, 30)]).is_flagged, "touching is no overlap");
        assert!(!grade_of(&[("pii.email", Severity::High, 10, 20)]).is_flagged, "another family");
        let near = grade_of(&[("secrets.other", Severity::Low, 19, 30)]);
        assert_eq!(
            near.spans,
            [SpanGrade { is_overlapped: true, is_right_type: true, ..SpanGrade::default() }]
        );
        let exact = grade_of(&[("secrets", Severity::Low, 0, 30), ("secrets.aws", Severity::High, 10, 20)]);
        assert!(exact.is_flagged && exact.spans[0].is_exact && exact.spans[0].is_covered);
        assert_eq!(exact.score, 0.8);
        let halves = grade_of(&[("secrets", Severity::Low, 8, 15), ("secrets", Severity::Low, 15, 22)]);
        assert!(halves.spans[0].is_covered && !halves.spans[0].is_exact);
        let gap = grade_of(&[("secrets", Severity::Low, 8, 14), ("secrets", Severity::Low, 15, 22)]);
        assert!(!gap.spans[0].is_covered);
    }

    #[test]
    fn a_negative_is_flagged_from_medium_on() {
        let negative = record(Kind::Pii, false, &[]);
        let is_flagged = |finding| grade(&negative, &judged(Decision::Block, &[finding])).is_flagged;
        assert!(!is_flagged(("pii.ip", Severity::Low, 0, 1)));
        assert!(is_flagged(("pii.ip", Severity::Medium, 0, 1)));
        assert!(!is_flagged(("secrets", Severity::Critical, 0, 1)));
    }

    #[test]
    fn types_are_matched_by_the_leaf_of_the_category() {
        for (category, expected, is_right) in [
            ("pii.email", "EMAIL", true),
            ("pii.phone", "EMAIL", false),
            ("pii.passport", "US_PASSPORT", true),
            ("pii.driver_license", "US_DRIVER_LICENSE", true),
            ("pii.us_ssn", "US_SSN", true),
            ("pii.national_id", "US_SSN", true),
            ("pii.us_ssn", "NATIONAL_ID", false),
        ] {
            assert_eq!(names_type(category, expected), is_right, "{category} {expected}");
        }
    }
}
