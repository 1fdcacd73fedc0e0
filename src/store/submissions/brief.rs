//! The checks of an attempt as a list shows them: read out of their JSON, without building what a list does not show.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

use crate::decision::{CheckStatus, Severity};

/// Reasons of a review that are told.
const REASONS_MAX: usize = 2;

/// What a list shows of checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChecksBrief {
    /// How archive, manifest, static scan and quality ended.
    pub statuses: [CheckStatus; 4],
    /// The reason of the worst that they found, of what counts; empty where nothing does.
    pub worst: String,
    /// What a model said, if one did.
    pub review: Option<ReviewBrief>,
}

/// What a list shows of a review by a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewBrief {
    /// Its summary; may be empty.
    pub summary: String,
    /// Why there is no verdict; empty when there is one.
    pub reason: String,
    /// The reasons of the first things that it found.
    pub found: Vec<String>,
    /// How many more there are.
    pub more: usize,
}

#[derive(serde::Deserialize)]
struct Checks<'j> {
    #[serde(borrow)]
    archive: Check<'j>,
    #[serde(borrow)]
    manifest: Check<'j>,
    #[serde(borrow)]
    static_security: Check<'j>,
    #[serde(borrow)]
    quality: Check<'j>,
    #[serde(borrow)]
    llm_review: Option<Review<'j>>,
}

#[derive(serde::Deserialize)]
struct Check<'j> {
    status: CheckStatus,
    #[serde(borrow)]
    findings: Worst<'j>,
}

#[derive(serde::Deserialize)]
struct Review<'j> {
    #[serde(borrow)]
    summary: Cow<'j, str>,
    #[serde(borrow)]
    reason: Cow<'j, str>,
    #[serde(borrow)]
    findings: Vec<Finding<'j>>,
}

#[derive(serde::Deserialize)]
struct Finding<'j> {
    severity: Severity,
    #[serde(borrow)]
    reason: Cow<'j, str>,
    #[serde(default)]
    shadow: bool,
    #[serde(default)]
    suppressed: bool,
}

/// The first of the worst findings that count.
struct Worst<'j>(Option<Finding<'j>>);

impl<'de: 'j, 'j> Deserialize<'de> for Worst<'j> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Findings<'j>(PhantomData<&'j ()>);

        impl<'de: 'j, 'j> Visitor<'de> for Findings<'j> {
            type Value = Worst<'j>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("findings of a check")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
                let mut worst: Option<Finding<'j>> = None;
                while let Some(finding) = all.next_element::<Finding<'j>>()? {
                    let counts = !finding.shadow && !finding.suppressed;
                    if counts && worst.as_ref().is_none_or(|worst| finding.severity > worst.severity) {
                        worst = Some(finding);
                    }
                }
                Ok(Worst(worst))
            }
        }

        from.deserialize_seq(Findings(PhantomData))
    }
}

impl ChecksBrief {
    /// Reads the JSON of checks.
    ///
    /// # Errors
    /// It is not that of checks.
    pub fn read(json: &str) -> Result<Self, serde_json::Error> {
        let checks: Checks<'_> = serde_json::from_str(json)?;
        let four = [checks.archive, checks.manifest, checks.static_security, checks.quality];
        let statuses = four.each_ref().map(|check| check.status);
        let worst = four.into_iter().filter_map(|check| check.findings.0);
        let worst = worst.reduce(|worst, one| if one.severity > worst.severity { one } else { worst });
        Ok(Self {
            statuses,
            worst: worst.map(|finding| finding.reason.into_owned()).unwrap_or_default(),
            review: checks.llm_review.map(|review| ReviewBrief {
                summary: review.summary.into_owned(),
                reason: review.reason.into_owned(),
                more: review.findings.len().saturating_sub(REASONS_MAX),
                found: review
                    .findings
                    .into_iter()
                    .take(REASONS_MAX)
                    .map(|one| one.reason.into_owned())
                    .collect(),
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{BundleChecks, CheckFinding, CheckResult, LlmReview};

    #[test]
    fn it_says_what_a_row_shows() {
        let finding = |severity, reason: &str| CheckFinding {
            severity,
            reason: reason.to_owned(),
            ..CheckFinding::default()
        };
        let trial = CheckFinding { shadow: true, ..finding(Severity::Critical, "on trial") };
        let checks = BundleChecks {
            manifest: CheckResult {
                status: CheckStatus::Warn,
                findings: vec![finding(Severity::Low, "low \"quoted\"")],
            },
            static_security: CheckResult {
                status: CheckStatus::Fail,
                findings: vec![
                    finding(Severity::Medium, "medium"),
                    trial,
                    finding(Severity::High, "first \u{e9}"),
                    finding(Severity::High, "second"),
                ],
            },
            llm_review: Some(LlmReview {
                summary: "sum".to_owned(),
                findings: ["a", "b", "c"].map(|reason| finding(Severity::High, reason)).into(),
                ..LlmReview::default()
            }),
            ..BundleChecks::default()
        };
        let json = serde_json::to_string(&checks).expect("written");
        let wanted = ChecksBrief {
            statuses: [CheckStatus::Skipped, CheckStatus::Warn, CheckStatus::Fail, CheckStatus::Skipped],
            worst: "first \u{e9}".to_owned(),
            review: Some(ReviewBrief {
                summary: "sum".to_owned(),
                reason: String::new(),
                found: vec!["a".to_owned(), "b".to_owned()],
                more: 1,
            }),
        };
        assert_eq!(ChecksBrief::read(&json).expect("read"), wanted);
        let empty = serde_json::to_string(&BundleChecks::default()).expect("written");
        assert_eq!(ChecksBrief::read(&empty).expect("read"), ChecksBrief::default());
    }
}
