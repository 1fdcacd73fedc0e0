//! A review on a server: the upload, and the wait for its verdict.

use super::bundle::Bundle;
use super::{ReviewArguments, hold_sentence, status_name};
use crate::cli::context::Context;
use crate::cli::progress::Progress;
use crate::cli::{Failure, Output, remote};
use crate::decision::BundleKind;
use crate::grpc::client::{Caller, sha256_of};
use crate::grpc::submission_convert::wire_kind;
use crate::pb::v1;

/// Uploads one bundle, and waits for the model if that was asked.
pub(super) fn review(
    arguments: &ReviewArguments,
    url: &str,
    mut bundle: Bundle,
    kind: BundleKind,
    context: &Context,
    progress: &mut Progress,
    output: &mut Output,
) -> Result<v1::ReviewBundleResponse, Failure> {
    let client = remote::connect_for_uploads(url, context)?;
    let token = if arguments.as_admin { Some(arguments.token.read(context)?) } else { None };
    let caller = Caller { token, submitter: arguments.submitter.clone() };
    let sha256 = sha256_of(&mut bundle.file).map_err(Failure::internal)?;
    let header = v1::BundleHeader {
        kind: wire_kind(kind).into(),
        name: arguments.name.clone().unwrap_or_default(),
        submitter: arguments.submitter.clone().unwrap_or_default(),
        entity_id: arguments.entity.clone().unwrap_or_default(),
        sha256,
        size: bundle.size,
        dry_run: arguments.dry_run,
        policy: arguments.policy.clone().unwrap_or_default(),
        ..Default::default()
    };
    let total = bundle.size;
    // A line of its own: the call has the one of the caller only after it.
    let mut line = Progress::new();
    let on_sent = move |sent| line.bytes("uploading", sent, total);
    let mut review = client.review_bundle(header, bundle.file, &caller, on_sent)?;
    let is_running = |review: &v1::ReviewBundleResponse| {
        use v1::SubmissionStatus::{PendingInline, PendingLlm};
        matches!(review.status(), PendingInline | PendingLlm) && hold_sentence(review.hold_reason()).is_none()
    };
    if !arguments.wait || !is_running(&review) {
        return Ok(review);
    }
    output.note(format_args!("submission {}: {}", review.submission_id, status_name(review.status())));
    let request =
        v1::WatchSubmissionRequest { submission_id: review.submission_id.clone(), ..Default::default() };
    let watching = || client.watch_submission(request, &caller, |_| {});
    let submission = progress.while_busy("waiting for the model", watching)?;
    review.status = submission.status;
    review.hold_reason = submission.hold_reason;
    review.visibility = submission.visibility;
    review.decision = submission.decision;
    review.decision_id = submission.decision_id;
    review.policy_revision = submission.policy_revision;
    review.checks = submission.checks;
    review.coverage = submission.coverage;
    review.capabilities = submission.capabilities;
    review.unjudged = submission.unjudged;
    Ok(review)
}
