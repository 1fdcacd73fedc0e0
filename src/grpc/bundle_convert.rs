//! Bundles between the contract and the engine's types: checks, findings, coverage, and the two axes of a submission.

use super::RequestError;
use super::convert::severity;
use crate::decision::{
    BundleChecks, BundleKind, Capability, CheckFinding, CheckResult, CheckStatus, FileCoverage, HoldReason,
    LlmReview, SubmissionStatus, Visibility,
};
use crate::pb::v1;

/// The kind of a bundle; `None` when it is not set.
///
/// # Errors
/// A number that the contract does not have.
pub(super) fn kind_of(field: &str, number: i32) -> Result<Option<BundleKind>, RequestError> {
    match v1::BundleKind::try_from(number) {
        Ok(v1::BundleKind::Unspecified) => Ok(None),
        Ok(v1::BundleKind::Skill) => Ok(Some(BundleKind::Skill)),
        Ok(v1::BundleKind::Plugin) => Ok(Some(BundleKind::Plugin)),
        Ok(v1::BundleKind::Agent) => Ok(Some(BundleKind::Agent)),
        Err(_) => Err(unknown(field, number, "BundleKind")),
    }
}

/// The kinds of a filter. One that is not set stands for any, which an empty list says.
///
/// # Errors
/// A number that the contract does not have.
pub(super) fn kinds_of(numbers: &[i32]) -> Result<Vec<BundleKind>, RequestError> {
    listed("kinds", numbers, kind_of)
}

/// The statuses of a filter.
///
/// # Errors
/// A number that the contract does not have, or one that is not set: no submission stands so.
pub(super) fn statuses_of(numbers: &[i32]) -> Result<Vec<SubmissionStatus>, RequestError> {
    listed("statuses", numbers, |field, number| {
        Ok(Some(match v1::SubmissionStatus::try_from(number) {
            Ok(v1::SubmissionStatus::PendingInline) => SubmissionStatus::PendingInline,
            Ok(v1::SubmissionStatus::BlockedInline) => SubmissionStatus::BlockedInline,
            Ok(v1::SubmissionStatus::PendingLlm) => SubmissionStatus::PendingLlm,
            Ok(v1::SubmissionStatus::Approved) => SubmissionStatus::Approved,
            Ok(v1::SubmissionStatus::BlockedLlm) => SubmissionStatus::BlockedLlm,
            Ok(v1::SubmissionStatus::ReviewError) => SubmissionStatus::ReviewError,
            Ok(v1::SubmissionStatus::Overridden) => SubmissionStatus::Overridden,
            Ok(v1::SubmissionStatus::Deleted) => SubmissionStatus::Deleted,
            Ok(v1::SubmissionStatus::Unspecified) => {
                return Err(RequestError::field(field, "is not set; leave the list empty for every status"));
            }
            Err(_) => return Err(unknown(field, number, "SubmissionStatus")),
        }))
    })
}

/// How a submission of ours stands; `None` for numbers that we never send.
pub(super) fn standing_of(submission: &v1::Submission) -> Option<(SubmissionStatus, HoldReason)> {
    let status = statuses_of(&[submission.status]).ok()?.pop()?;
    let hold = match v1::HoldReason::try_from(submission.hold_reason).ok()? {
        v1::HoldReason::Unspecified | v1::HoldReason::None => HoldReason::None,
        v1::HoldReason::NoKey => HoldReason::NoKey,
        v1::HoldReason::Coverage => HoldReason::Coverage,
    };
    Some((status, hold))
}

/// The visibilities of a filter.
///
/// # Errors
/// A number that the contract does not have, or one that is not set: no entity stands so.
pub(super) fn visibilities_of(numbers: &[i32]) -> Result<Vec<Visibility>, RequestError> {
    listed("visibilities", numbers, |field, number| {
        Ok(Some(match v1::Visibility::try_from(number) {
            Ok(v1::Visibility::Pending) => Visibility::Pending,
            Ok(v1::Visibility::Approved) => Visibility::Approved,
            Ok(v1::Visibility::Hidden) => Visibility::Hidden,
            Ok(v1::Visibility::Archived) => Visibility::Archived,
            Ok(v1::Visibility::Unspecified) => {
                return Err(RequestError::field(
                    field,
                    "is not set; leave the list empty for the usual ones",
                ));
            }
            Err(_) => return Err(unknown(field, number, "Visibility")),
        }))
    })
}

/// Each value once, in order: a filter is a set, and the same set must give the same page token. One that is not set
/// lets all pass, beside others too.
fn listed<T: Ord + Copy>(
    field: &str,
    numbers: &[i32],
    read: impl Fn(&str, i32) -> Result<Option<T>, RequestError>,
) -> Result<Vec<T>, RequestError> {
    let mut values = Vec::with_capacity(numbers.len());
    let mut unset = false;
    for (at, number) in numbers.iter().enumerate() {
        match read(&format!("{field}[{at}]"), *number)? {
            Some(value) => values.push(value),
            None => unset = true,
        }
    }
    values.sort_unstable();
    values.dedup();
    Ok(if unset { Vec::new() } else { values })
}

fn unknown(field: &str, number: i32, what: &str) -> RequestError {
    RequestError::field(field, format!("{number} is no {what}"))
}

/// A kind on the wire.
pub(crate) fn kind(kind: BundleKind) -> v1::BundleKind {
    match kind {
        BundleKind::Skill => v1::BundleKind::Skill,
        BundleKind::Plugin => v1::BundleKind::Plugin,
        BundleKind::Agent => v1::BundleKind::Agent,
    }
}

/// A verdict on the wire.
pub(crate) fn status(status: SubmissionStatus) -> v1::SubmissionStatus {
    match status {
        SubmissionStatus::PendingInline => v1::SubmissionStatus::PendingInline,
        SubmissionStatus::BlockedInline => v1::SubmissionStatus::BlockedInline,
        SubmissionStatus::PendingLlm => v1::SubmissionStatus::PendingLlm,
        SubmissionStatus::Approved => v1::SubmissionStatus::Approved,
        SubmissionStatus::BlockedLlm => v1::SubmissionStatus::BlockedLlm,
        SubmissionStatus::ReviewError => v1::SubmissionStatus::ReviewError,
        SubmissionStatus::Overridden => v1::SubmissionStatus::Overridden,
        SubmissionStatus::Deleted => v1::SubmissionStatus::Deleted,
    }
}

/// A visibility on the wire.
pub(crate) fn visibility(visibility: Visibility) -> v1::Visibility {
    match visibility {
        Visibility::Pending => v1::Visibility::Pending,
        Visibility::Approved => v1::Visibility::Approved,
        Visibility::Hidden => v1::Visibility::Hidden,
        Visibility::Archived => v1::Visibility::Archived,
    }
}

/// A hold on the wire.
pub(crate) fn hold_reason(reason: HoldReason) -> v1::HoldReason {
    match reason {
        HoldReason::None => v1::HoldReason::None,
        HoldReason::NoKey => v1::HoldReason::NoKey,
        HoldReason::Coverage => v1::HoldReason::Coverage,
    }
}

/// All checks on the wire.
pub(crate) fn checks(checks: BundleChecks) -> v1::BundleChecks {
    v1::BundleChecks {
        archive: Some(check(checks.archive)),
        manifest: Some(check(checks.manifest)),
        static_security: Some(check(checks.static_security)),
        quality: Some(check(checks.quality)),
        llm_review: checks.llm_review.map(review),
        template_placeholders: checks.template_placeholders,
        template_recommendation: checks.template_recommendation,
    }
}

fn check(check: CheckResult) -> v1::CheckResult {
    v1::CheckResult {
        status: check_status(check.status).into(),
        findings: check.findings.into_iter().map(finding).collect(),
    }
}

fn check_status(status: CheckStatus) -> v1::CheckStatus {
    match status {
        CheckStatus::Pass => v1::CheckStatus::Pass,
        CheckStatus::Warn => v1::CheckStatus::Warn,
        CheckStatus::Fail => v1::CheckStatus::Fail,
        CheckStatus::Skipped => v1::CheckStatus::Skipped,
    }
}

fn finding(finding: CheckFinding) -> v1::CheckFinding {
    v1::CheckFinding {
        rule_id: finding.rule_id,
        file: finding.file,
        line: finding.line,
        category: finding.category,
        severity: severity(finding.severity).into(),
        reason: finding.reason,
        snippet: finding.snippet,
        fix_hint: finding.fix_hint,
        fingerprint: finding.fingerprint,
        shadow: finding.shadow,
        suppressed: finding.suppressed,
    }
}

fn review(review: LlmReview) -> v1::LlmReview {
    v1::LlmReview {
        status: check_status(review.status).into(),
        risk_level: review.risk_level,
        summary: review.summary,
        findings: review.findings.into_iter().map(finding).collect(),
        model: review.model,
        prompt_version: review.prompt_version,
        reason: review.reason,
    }
}

/// The coverage of one file on the wire.
pub(crate) fn coverage(of: FileCoverage) -> v1::FileCoverage {
    let FileCoverage { path, bytes, bytes_scanned, engines, unscanned_reason } = of;
    v1::FileCoverage { path, bytes, bytes_scanned, engines, unscanned_reason }
}

/// A capability on the wire.
pub(crate) fn capability(of: Capability) -> v1::Capability {
    let Capability { kind, file, line, detail } = of;
    v1::Capability { kind, file, line, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_engine_are_those_of_the_contract() {
        for of in BundleKind::ALL {
            assert_eq!(kind(*of).as_str_name(), format!("BUNDLE_KIND_{of}").to_uppercase());
        }
        for of in SubmissionStatus::ALL {
            assert_eq!(status(*of).as_str_name(), format!("SUBMISSION_STATUS_{of}").to_uppercase());
            assert_eq!(statuses_of(&[status(*of).into()]).expect("known"), [*of]);
        }
        for of in Visibility::ALL {
            assert_eq!(visibility(*of).as_str_name(), format!("VISIBILITY_{of}").to_uppercase());
            assert_eq!(visibilities_of(&[visibility(*of).into()]).expect("known"), [*of]);
        }
        for of in HoldReason::ALL {
            assert_eq!(hold_reason(*of).as_str_name(), format!("HOLD_REASON_{of}").to_uppercase());
        }
        for of in CheckStatus::ALL {
            assert_eq!(check_status(*of).as_str_name(), format!("CHECK_STATUS_{of}").to_uppercase());
        }
    }

    #[test]
    fn filters_are_sets() {
        assert_eq!(kinds_of(&[2, 1, 2]).expect("known"), [BundleKind::Skill, BundleKind::Plugin]);
        assert_eq!(kinds_of(&[2, 0]).expect("known"), [], "any kind");
        assert_eq!(kinds_of(&[]).expect("known"), []);
        for (wrong, field) in [
            (kinds_of(&[1, 9]).err(), "kinds[1]"),
            (statuses_of(&[0]).err(), "statuses[0]"),
            (statuses_of(&[4, 77]).err(), "statuses[1]"),
            (visibilities_of(&[0]).err(), "visibilities[0]"),
            (visibilities_of(&[-1]).err(), "visibilities[0]"),
        ] {
            assert_eq!(wrong.expect("refused").field_path(), field);
        }
    }
}
