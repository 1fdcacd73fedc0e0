//! A review in this process: the inline checks alone, under the rules of this place. Nothing is kept and no model asked.

use jiff::Timestamp;
use uuid::Uuid;

use super::bundle::Bundle;
use crate::bundles::service::{Reviewed, decision_of};
use crate::bundles::{InlineVerdict, InspectLimits, Inspector, Terms, life};
use crate::cli::Failure;
use crate::cli::context::snapshot;
use crate::cli::progress::Progress;
use crate::config::Settings;
use crate::decision::{BundleKind, CheckStatus, HoldReason, LlmReview, SubmissionStatus};
use crate::grpc::submission_convert;
use crate::pb::v1;

/// Why there is no review by a model.
const NOT_ASKED: &str =
    "Not asked: only the inline checks were run. A server asks a model where it is set up to.";

/// Checks one bundle.
pub(super) fn review(
    settings: &Settings,
    bundle: &Bundle,
    kind: BundleKind,
    policy: &str,
    progress: &mut Progress,
) -> Result<v1::ReviewBundleResponse, Failure> {
    let snapshot = snapshot(settings)?;
    let limits = InspectLimits { archive: settings.bundles.limits(), ..InspectLimits::default() };
    let Some(policy) = snapshot.policies().get(policy) else {
        let known: Vec<&str> = snapshot.policies().iter().map(|policy| &**policy.name()).collect();
        return Err(Failure::usage(format_args!("--policy: unknown; known: {}", known.join(", "))));
    };
    let terms = Terms { policy, tenant: "", now: Timestamp::now() };
    let inspector = Inspector::of(&snapshot, limits).packed_from(&bundle.folder);
    let source = bundle.source()?;
    let inspection = progress.while_busy("checking", || inspector.inspect_under(&source, kind, terms));
    let (status, hold_reason) = match inspection.verdict() {
        InlineVerdict::Blocked => (SubmissionStatus::BlockedInline, HoldReason::None),
        InlineVerdict::Held => (SubmissionStatus::PendingLlm, HoldReason::Coverage),
        InlineVerdict::Passed => (SubmissionStatus::Approved, HoldReason::None),
    };
    let mut checks = inspection.checks;
    checks.llm_review = Some(LlmReview {
        status: CheckStatus::Skipped,
        reason: NOT_ASKED.to_owned(),
        ..LlmReview::default()
    });
    let reviewed = Reviewed {
        submission_id: String::new(),
        entity_id: String::new(),
        name: String::new(),
        status,
        hold_reason,
        visibility: life::visibility(false, status == SubmissionStatus::Approved, status),
        checks,
        bundle_sha256: inspection.bundle_sha256,
        file_size: bundle.size,
        file_count: inspection.file_count,
        coverage: inspection.coverage,
        capabilities: inspection.capabilities,
        unjudged: inspection.unjudged,
        would_block: inspection.would_block,
        decision: decision_of(status),
        decision_id: Uuid::now_v7().to_string(),
        policy_revision: snapshot.revision().to_string(),
    };
    Ok(submission_convert::reviewed(reviewed))
}
