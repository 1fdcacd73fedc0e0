//! Who answers: this process or a server, behind one interface.

use std::path::Path;
use std::time::Duration;

use super::bundle_record::Reviewed;
use super::stream_record::Seen;
use super::tool_record::ToolCall;
use crate::decision::{BundleKind, Decision, Severity};
use crate::pb::v1;
use crate::rules::Role;

/// One finding of an answer that takes part in the decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its category.
    pub category: String,
    /// Its rule.
    pub rule_id: String,
    /// Its severity.
    pub severity: Severity,
    /// Field of the message or tool call.
    pub path: String,
    /// First byte, in UTF-8 bytes of the field.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Its score.
    pub score: f64,
}

/// One check that did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotJudged {
    /// The plugin.
    pub plugin: String,
    /// Why.
    pub reason: String,
    /// Whether the decision went on without it.
    pub failed_open: bool,
}

/// The answer to one text or tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The decision.
    pub decision: Decision,
    /// Highest score of a finding.
    pub risk_score: f64,
    /// Findings that take part in the decision, in the order of the text.
    pub findings: Vec<Found>,
    /// What could not be judged.
    pub unjudged: Vec<NotJudged>,
    /// Incidents in the output of a process, in the order in which they were reported.
    pub incidents: Vec<Seen>,
    /// What the checks of a bundle said; `None` for everything else.
    pub reviewed: Option<Reviewed>,
    /// How long the answer took.
    pub elapsed: Duration,
}

impl Judged {
    /// An answer on the wire, its offsets in UTF-8 bytes. Its risk is the highest score of a finding that counts.
    pub fn of_wire(
        decision: v1::Decision,
        findings: &[v1::Finding],
        unjudged: &[v1::Unjudged],
        elapsed: Duration,
    ) -> Self {
        let counted = findings.iter().filter(|finding| !finding.shadow && !finding.suppressed);
        let findings: Vec<Found> = counted.map(Found::of_wire).collect();
        let unjudged = unjudged.iter().map(|one| NotJudged {
            plugin: one.plugin.clone(),
            reason: one.reason.clone(),
            failed_open: one.failed_open,
        });
        Self {
            decision: match decision {
                v1::Decision::Allow => Decision::Allow,
                v1::Decision::Warn => Decision::Warn,
                v1::Decision::Ask => Decision::Ask,
                v1::Decision::Block | v1::Decision::Unspecified => Decision::Block,
            },
            risk_score: findings.iter().map(|found| found.score).fold(0.0, f64::max),
            findings,
            unjudged: unjudged.collect(),
            incidents: Vec::new(),
            reviewed: None,
            elapsed,
        }
    }
}

impl Judged {
    /// What the inline checks of a server said about a bundle. Whether a model is to look at it is not asked.
    pub fn of_review(review: &v1::ReviewBundleResponse, elapsed: Duration) -> Self {
        let checks = review.checks.clone().unwrap_or_default();
        let all = [checks.archive, checks.manifest, checks.static_security];
        let counted = all.iter().flatten().flat_map(|check| &check.findings);
        let counted = counted.filter(|finding| !finding.shadow && !finding.suppressed);
        let findings: Vec<Found> = counted
            .map(|finding| {
                let severity = severity_of(finding.severity());
                Found {
                    category: finding.category.clone(),
                    rule_id: finding.rule_id.clone(),
                    severity,
                    path: finding.file.clone(),
                    start: 0,
                    end: 0,
                    score: severity.score(),
                }
            })
            .collect();
        use v1::SubmissionStatus as S;
        let decision = match (review.status(), review.hold_reason()) {
            (S::Approved | S::PendingLlm, v1::HoldReason::None | v1::HoldReason::NoKey) => {
                if findings.is_empty() { Decision::Allow } else { Decision::Warn }
            }
            (S::PendingLlm, v1::HoldReason::Coverage) => Decision::Ask,
            _ => Decision::Block,
        };
        let unjudged = review.unjudged.iter().filter(|one| one.plugin != "llm_review").map(|one| NotJudged {
            plugin: one.plugin.clone(),
            reason: one.reason.clone(),
            failed_open: one.failed_open,
        });
        Self {
            decision,
            risk_score: findings.iter().map(|found| found.score).fold(0.0, f64::max),
            findings,
            unjudged: unjudged.collect(),
            incidents: Vec::new(),
            reviewed: Some(Reviewed::of_wire(review)),
            elapsed,
        }
    }

    /// What became of a watched process: its incidents, and the strongest verdict as a decision.
    pub fn of_stream(incidents: Vec<Seen>, unjudged: Vec<NotJudged>, elapsed: Duration) -> Self {
        let decision = |seen: &Seen| match seen.verdict.as_str() {
            "SAFE" => Decision::Allow,
            "WARN" => Decision::Warn,
            _ => Decision::Block,
        };
        Self {
            decision: incidents.iter().map(decision).max().unwrap_or_default(),
            risk_score: 0.0,
            findings: Vec::new(),
            unjudged,
            incidents,
            reviewed: None,
            elapsed,
        }
    }
}

/// A severity on the wire; one that is not told is the worst.
fn severity_of(severity: v1::Severity) -> Severity {
    match severity {
        v1::Severity::Low => Severity::Low,
        v1::Severity::Medium => Severity::Medium,
        v1::Severity::High => Severity::High,
        v1::Severity::Critical | v1::Severity::Unspecified => Severity::Critical,
    }
}

impl Found {
    fn of_wire(finding: &v1::Finding) -> Self {
        let span = finding.span.clone().unwrap_or_default();
        let offset = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        Self {
            category: finding.category.clone(),
            rule_id: finding.rule_id.clone(),
            severity: severity_of(finding.severity()),
            path: span.path,
            start: offset(span.start),
            end: offset(span.end),
            score: finding.score,
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// The server could not be reached, or went away.
    #[error("the server is away: {0}")]
    Away(String),
    /// The text was refused.
    #[error("not judged: {0}")]
    Refused(String),
}

/// Judges texts as messages of one role, and tool calls before they run, under the default policy.
pub trait Judge {
    /// Judges one text.
    ///
    /// # Errors
    /// When there is no answer; a decision is never an error.
    fn judge(&mut self, text: &str, role: Role) -> Result<Judged, JudgeError>;

    /// Reads a text whose time does not count, so that what is made when it is first needed is there when it does. A server
    /// has been at work before it is asked, so asking one does nothing.
    ///
    /// # Errors
    /// As [`judge`](Self::judge).
    fn warm(&mut self, _text: &str, _role: Role) -> Result<(), JudgeError> {
        Ok(())
    }

    /// Judges one tool call that has not run yet.
    ///
    /// # Errors
    /// When there is no answer; a decision is never an error.
    fn intercept(&mut self, call: &ToolCall) -> Result<Judged, JudgeError>;

    /// Watches the output of a process, written to standard output in these chunks.
    ///
    /// # Errors
    /// When there is no answer; an incident is never an error.
    fn watch(&mut self, chunks: &mut dyn Iterator<Item = &str>) -> Result<Judged, JudgeError>;

    /// Checks the bundle in a file, without a review by a model. `None` when this judge cannot.
    ///
    /// # Errors
    /// When there is no answer; a refusal is never an error.
    fn review(&mut self, path: &Path, kind: BundleKind) -> Result<Option<Judged>, JudgeError> {
        let _ = (path, kind);
        Ok(None)
    }

    /// The text with credentials and personal data replaced.
    ///
    /// # Errors
    /// When there is no answer.
    fn redact(&mut self, text: &str, role: Role) -> Result<String, JudgeError>;
}
