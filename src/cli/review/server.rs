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
    let folder = if bundle.is_in_folder { format!("{}/", bundle.folder) } else { String::new() };
    // A line of its own: the call has the one of the caller only after it.
    let mut line = Progress::new();
    let on_sent = move |sent| line.bytes("uploading", sent, total);
    let mut review = client.review_bundle(header, bundle.file, &caller, on_sent)?;
    let is_running = |review: &v1::ReviewBundleResponse| {
        use v1::SubmissionStatus::{PendingInline, PendingLlm};
        matches!(review.status(), PendingInline | PendingLlm) && hold_sentence(review.hold_reason()).is_none()
    };
    if !arguments.wait || !is_running(&review) {
        return Ok(named_from(review, &folder));
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
    Ok(named_from(review, &folder))
}

/// A review with the paths of files as they are in the folder that was packed, which stands before them in the archive.
fn named_from(mut review: v1::ReviewBundleResponse, folder: &str) -> v1::ReviewBundleResponse {
    let strip = |path: &mut String| {
        if let Some(rest) = path.strip_prefix(folder) {
            *path = rest.to_owned();
        }
    };
    if let Some(checks) = &mut review.checks {
        let results =
            [&mut checks.archive, &mut checks.manifest, &mut checks.static_security, &mut checks.quality];
        let inline = results.into_iter().flatten().flat_map(|result| &mut result.findings);
        let of_model = checks.llm_review.iter_mut().flat_map(|review| &mut review.findings);
        inline.chain(of_model).for_each(|finding| strip(&mut finding.file));
    }
    review.coverage.iter_mut().for_each(|file| strip(&mut file.path));
    review.capabilities.iter_mut().for_each(|capability| strip(&mut capability.file));
    review
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_as_in_the_folder_that_was_packed() {
        let finding = |file: &str| v1::CheckFinding { file: file.to_owned(), ..Default::default() };
        let result = |file: &str| v1::CheckResult { findings: vec![finding(file)], ..Default::default() };
        let review = v1::ReviewBundleResponse {
            checks: Some(v1::BundleChecks {
                manifest: Some(result("notes/SKILL.md")),
                llm_review: Some(v1::LlmReview {
                    findings: vec![finding("notes/a/notes/b.sh")],
                    ..Default::default()
                }),
                ..Default::default()
            }),
            coverage: vec![v1::FileCoverage {
                path: "notes/a.zip!/notes/b".to_owned(),
                ..Default::default()
            }],
            capabilities: vec![v1::Capability { file: "notes/run.py".to_owned(), ..Default::default() }],
            ..Default::default()
        };
        let told = named_from(review.clone(), "notes/");
        let checks = told.checks.expect("checks");
        assert_eq!(checks.manifest.expect("a check").findings[0].file, "SKILL.md");
        assert_eq!(checks.llm_review.expect("a review").findings[0].file, "a/notes/b.sh");
        assert_eq!(told.coverage[0].path, "a.zip!/notes/b");
        assert_eq!(told.capabilities[0].file, "run.py");
        assert_eq!(named_from(review.clone(), ""), review);
    }
}
