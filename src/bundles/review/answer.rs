//! What a model answered, and whether that lets a bundle pass.

use serde_json::Value;

use crate::decision::{CheckFinding, CheckStatus, LlmReview, Severity};
use crate::judge::Answer;

/// Most findings that are kept; a model that has more to say has said enough.
const FINDINGS_MAX: usize = 100;
/// Longest summary, in characters.
const SUMMARY_CHARS_MAX: usize = 2_000;
/// Longest reason or hint, in characters.
const SENTENCE_CHARS_MAX: usize = 600;
/// Longest path, in characters.
const PATH_CHARS_MAX: usize = 300;
/// Longest category, in characters.
const CATEGORY_CHARS_MAX: usize = 60;
/// Rule id of what a model found.
const RULE: &str = "llm.review";

/// A verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What was said; status PASS or FAIL.
    pub review: LlmReview,
    /// Whether the bundle passes.
    pub is_passed: bool,
}

/// Why an answer is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoVerdict {
    /// A field is missing, of another shape, or a number below zero.
    Incomplete,
    /// It calls the bundle safe and names something that must not be published.
    Contradictory,
}

impl NoVerdict {
    /// The error of the attempt.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Incomplete => "bad_answer",
            Self::Contradictory => "contradictory_answer",
        }
    }

    /// One sentence for a person.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Incomplete => "The model's answer lacks a field, or a field has an impossible value.",
            Self::Contradictory => {
                "The model called the bundle safe and reported a finding that must not be published: no verdict."
            }
        }
    }
}

/// Reads an answer. It passes if the risk is safe or low and no finding is high or critical. What the model writes in its
/// own words goes through `mask` first, before anything is cut off it: a model may quote a credential that it saw.
///
/// # Errors
/// It is no verdict.
pub fn read(
    answer: &Answer,
    prompt_version: &str,
    mask: &dyn Fn(&str) -> String,
) -> Result<Verdict, NoVerdict> {
    let plain = |text: &str, chars_max: usize| plain(&mask(text), chars_max);
    let value = &answer.value;
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let risk = text(value, "risk_level").ok_or(NoVerdict::Incomplete)?;
    let summary = text(value, "summary").ok_or(NoVerdict::Incomplete)?;
    let listed = value.get("findings").and_then(Value::as_array).ok_or(NoVerdict::Incomplete)?;
    value.get("placeholders").and_then(Value::as_u64).ok_or(NoVerdict::Incomplete)?;
    let is_low = match risk.as_str() {
        "safe" | "low" => true,
        "medium" | "high" | "critical" => false,
        _ => return Err(NoVerdict::Incomplete),
    };
    let mut findings = Vec::new();
    for listed in listed {
        let field = |key: &str| text(listed, key).ok_or(NoVerdict::Incomplete);
        let line = listed.get("line").and_then(Value::as_u64).ok_or(NoVerdict::Incomplete)?;
        findings.push(CheckFinding {
            rule_id: RULE.to_owned(),
            file: plain(&field("file")?, PATH_CHARS_MAX),
            line: u32::try_from(line).unwrap_or(0),
            category: category(&mask(&field("category")?)),
            severity: severity(&field("severity")?).ok_or(NoVerdict::Incomplete)?,
            reason: plain(&field("reason")?, SENTENCE_CHARS_MAX),
            fix_hint: plain(&field("fix_hint")?, SENTENCE_CHARS_MAX),
            ..CheckFinding::default()
        });
    }
    let has_blocking = findings.iter().any(|f| matches!(f.severity, Severity::High | Severity::Critical));
    if risk == "safe" && has_blocking {
        return Err(NoVerdict::Contradictory);
    }
    // The worst first: what is cut off says less.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings.truncate(FINDINGS_MAX);
    let is_passed = is_low && !has_blocking;
    let review = LlmReview {
        status: if is_passed { CheckStatus::Pass } else { CheckStatus::Fail },
        risk_level: risk,
        summary: plain(&summary, SUMMARY_CHARS_MAX),
        findings,
        model: plain(&answer.model, PATH_CHARS_MAX),
        prompt_version: prompt_version.to_owned(),
        reason: String::new(),
    };
    Ok(Verdict { review, is_passed })
}

fn severity(name: &str) -> Option<Severity> {
    Some(match name {
        "low" => Severity::Low,
        "medium" => Severity::Medium,
        "high" => Severity::High,
        "critical" => Severity::Critical,
        _ => return None,
    })
}

/// A category as others are written: lower case, words joined by `_`.
fn category(text: &str) -> String {
    let kept: String = text
        .trim()
        .chars()
        .map(|c| if c.is_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '_' })
        .take(CATEGORY_CHARS_MAX)
        .collect();
    if kept.is_empty() { "other".to_owned() } else { kept }
}

/// Text of a model for terminals and logs: no control characters, shortened.
fn plain(text: &str, chars_max: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(chars_max).collect();
    text.trim().to_owned()
}
