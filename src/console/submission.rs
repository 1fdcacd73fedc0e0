//! One submission: how it stands, what was found and where, what was scanned, what happened to it.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::answer::{self, status_of};
use super::filters;
use super::path::Path;
use super::scanned::{Scanned, Told};
use super::shell::Shell;
use super::submission_actions::{Action, actions};
use super::submission_timeline::{Attempt, Event, events};
use super::submissions::{Check, PLACE, checks_of, hold_words, is_changing};
use super::view::{self, Moment};
use super::visitor::Visitor;
use crate::bundles::service::FileLines;
use crate::grpc::Refusal;
use crate::pb::v1;
use crate::policy::CallerRole;
use crate::telemetry::Code;

/// Lines of the manifest that are shown; how many are left out is told.
const MANIFEST_LINES: usize = 2_000;

#[derive(Template)]
#[template(path = "submission.html")]
struct Page {
    shell: Shell,
    href: String,
    is_uploader: bool,
    /// Whether it will change by itself.
    is_changing: bool,
    id: String,
    name: String,
    version: String,
    kind: String,
    description: String,
    submitter: String,
    status: String,
    status_class: String,
    hold: Option<&'static str>,
    decision: String,
    visibility: String,
    is_live: bool,
    /// The version that is live instead of this one.
    live: Option<Beside>,
    created: Moment,
    updated: Moment,
    gone: Option<Gone>,
    size: String,
    file_count: u32,
    sha256: String,
    decision_id: String,
    /// The page of the decision, while it is remembered.
    decision_href: String,
    revision: String,
    checks: Vec<Check>,
    overridden: Option<Overridden>,
    review: Option<Review>,
    scanned: Scanned,
    manifest_path: String,
    manifest: Vec<String>,
    /// Lines of it that are not shown.
    manifest_rest: usize,
    capabilities: Vec<Capability>,
    unjudged: Vec<(String, String, String)>,
    attempts: Vec<Attempt>,
    timeline: Vec<Event>,
    actions: Vec<Action>,
    /// What was typed, where an action was refused.
    reason: String,
    advice: &'static str,
    /// What a model said about the whole, where it named no place.
    blocked_for: String,
}

/// Another version of the same bundle.
pub(super) struct Beside {
    pub(super) href: String,
    /// As its manifest gives it; may be empty.
    pub(super) version: String,
}

impl Beside {
    /// What it is called within a sentence.
    pub(super) fn name(&self) -> String {
        if self.version.is_empty() {
            "another version".to_owned()
        } else {
            format!("version {}", self.version)
        }
    }
}

/// When and why the bytes were removed.
struct Gone {
    time: Moment,
    /// By a person, and not after the retention time.
    is_deleted: bool,
    /// Who deleted it; empty where that is not told.
    by: String,
}

struct Overridden {
    /// Whether the verdict is still the override's.
    is_in_force: bool,
    actor: String,
    reason: String,
    prior: String,
    time: Moment,
}

struct Review {
    status: String,
    risk: String,
    summary: String,
    model: String,
    reason: String,
}

struct Capability {
    kind: String,
    place: String,
    detail: String,
}

/// The page.
pub(super) async fn detail(visitor: Visitor, Path(id): Path<String>) -> Response {
    visitor.show(made(&visitor, &id, None).await)
}

/// What went wrong with an action.
pub(super) struct Failed {
    pub(super) action: String,
    pub(super) reason: String,
    pub(super) refusal: Refusal,
}

/// The page, with what went wrong if something did.
pub(super) async fn made(visitor: &Visitor, id: &str, failed: Option<Failed>) -> Result<Response, Refusal> {
    let request =
        v1::GetSubmissionRequest { submission_id: id.to_owned(), view: v1::SubmissionView::Full.into() };
    let found: v1::GetSubmissionResponse = visitor.call("SubmissionService/GetSubmission", &request).await?;
    let submission = found.submission.unwrap_or_default();
    let has_bytes = has_bytes(&submission);
    let manifest = if has_bytes { manifest_of(visitor, &submission).await? } else { String::new() };
    let told = Told::of(submission.checks.as_ref());
    let lines = if has_bytes { lines(visitor, &submission.id, &manifest, &told).await? } else { Vec::new() };
    let live = live_beside(visitor, &submission).await?;
    let mut page = Page::of(visitor, &submission, &manifest, (&told, &lines), live);
    let mut status = StatusCode::OK;
    if let Some(failed) = failed {
        status = status_of(failed.refusal.code);
        page.shell.error = Some(failed.refusal.message);
        page.reason = failed.reason;
        for action in &mut page.actions {
            action.is_open = action.name == failed.action;
        }
    }
    Ok(answer::page(status, &page))
}

/// Whether the submitted bytes are there still.
fn has_bytes(submission: &v1::Submission) -> bool {
    submission.bundle_purge_time.is_none() && submission.status() != v1::SubmissionStatus::Deleted
}

/// The version that is live instead of this one, if one is: its submission, and its version where it gives one.
async fn live_beside(visitor: &Visitor, submission: &v1::Submission) -> Result<Option<Beside>, Refusal> {
    if submission.live || submission.visibility() == v1::Visibility::Unspecified {
        return Ok(None);
    }
    let request = v1::GetEntityRequest { entity_id: submission.entity_id.clone() };
    let found: Result<v1::GetEntityResponse, Refusal> =
        visitor.call("EntityService/GetEntity", &request).await;
    let entity = match found {
        Ok(found) => found.entity.unwrap_or_default(),
        // It was deleted meanwhile; the page says so the next time.
        Err(refusal) if refusal.code == Code::NotFound => return Ok(None),
        Err(refusal) => return Err(refusal),
    };
    let (id, version) = (entity.live_submission_id, entity.version);
    let href = format!("{PLACE}/{}", view::segment(&id));
    Ok((!id.is_empty()).then_some(Beside { href, version }))
}

/// The lines of the manifest, and of every file that something was found in. None where the bytes are gone.
async fn lines(
    visitor: &Visitor,
    id: &str,
    manifest: &str,
    told: &Told<'_>,
) -> Result<Vec<FileLines>, Refusal> {
    let manifest = Some(manifest.to_owned()).filter(|path| !path.is_empty());
    let others = told.files().into_iter().filter(|path| Some(path) != manifest.as_ref());
    let paths = manifest.iter().cloned().chain(others).collect();
    match visitor.calls().lines(&visitor.identity, id, paths).await {
        // They were removed meanwhile; the page says so the next time.
        Err(refusal) if refusal.code == Code::FailedPrecondition => Ok(Vec::new()),
        other => other,
    }
}

/// Path of the document that says what the bundle is, as its check chose it; empty where there is none. Of skills and
/// plugins the names of files tell it: the one nearest to the top. Of agents their texts do.
async fn manifest_of(visitor: &Visitor, submission: &v1::Submission) -> Result<String, Refusal> {
    let is_manifest = |path: &&str| match submission.kind() {
        v1::BundleKind::Skill => {
            path.rsplit('/').next().is_some_and(|name| name.eq_ignore_ascii_case("SKILL.md"))
        }
        _ => path.ends_with(".claude-plugin/plugin.json"),
    };
    if submission.kind() == v1::BundleKind::Agent {
        return Ok(visitor.calls().primary(&visitor.identity, &submission.id).await?.unwrap_or_default());
    }
    let paths = submission.coverage.iter().map(|file| file.path.as_str()).filter(|path| !path.contains("!/"));
    let nearest = paths.filter(is_manifest).min_by_key(|path| (path.matches('/').count(), *path));
    Ok(nearest.unwrap_or_default().to_owned())
}

impl Page {
    fn of(
        visitor: &Visitor,
        submission: &v1::Submission,
        manifest_path: &str,
        (told, lines): (&Told<'_>, &[FileLines]),
        live: Option<Beside>,
    ) -> Self {
        let known = visitor.calls().rule_ids();
        let checks = submission.checks.as_ref();
        let review = checks.and_then(|checks| checks.llm_review.as_ref());
        let identity = &visitor.identity;
        let is_uploader = !identity.has(CallerRole::Auditor);
        let status = view::status(submission.status);
        let manifest = lines.iter().find(|file| file.path == manifest_path);
        let manifest = manifest.map(|file| file.lines.as_slice()).unwrap_or_default();
        Self {
            shell: visitor.shell(PLACE),
            href: format!("{PLACE}/{}", view::segment(&submission.id)),
            is_uploader,
            is_changing: is_changing(submission),
            id: submission.id.clone(),
            name: submission.name.clone(),
            version: submission.version.clone(),
            kind: view::kind(submission.kind),
            description: submission.description.clone(),
            submitter: submission.submitter.clone(),
            status_class: view::class(&status),
            status: view::spoken(&status),
            hold: hold_words(submission),
            decision: view::decision(submission.decision),
            visibility: match submission.visibility {
                0 => String::new(),
                visibility => view::visibility(visibility),
            },
            is_live: submission.live,
            created: Moment::of(submission.create_time.as_ref()),
            updated: Moment::of(submission.update_time.as_ref()),
            gone: gone(submission),
            size: view::size(submission.file_size),
            file_count: submission.file_count,
            sha256: submission.bundle_sha256.clone(),
            decision_href: match visitor.calls().decision(identity, &submission.decision_id) {
                Ok(_) => format!("{}/{}", super::decisions::PLACE, view::segment(&submission.decision_id)),
                Err(_) => String::new(),
            },
            decision_id: submission.decision_id.clone(),
            revision: submission.policy_revision.clone(),
            checks: checks_of(checks)
                .into_iter()
                .map(|(name, check)| Check { name, status: view::check(check.status) })
                .collect(),
            overridden: submission.r#override.as_ref().map(|one| Overridden {
                is_in_force: submission.status() == v1::SubmissionStatus::Overridden,
                actor: one.actor.clone(),
                reason: one.reason.clone(),
                prior: view::spoken(&view::status(one.prior_status)),
                time: Moment::of(one.time.as_ref()),
            }),
            review: review.map(|review| Review {
                status: view::check(review.status),
                risk: review.risk_level.clone(),
                summary: review.summary.clone(),
                model: review.model.clone(),
                reason: review.reason.clone(),
            }),
            scanned: Scanned::of(told, &submission.coverage, lines, &known, "GetSubmission"),
            manifest_path: manifest_path.to_owned(),
            manifest: manifest.iter().take(MANIFEST_LINES).cloned().collect(),
            manifest_rest: manifest.len().saturating_sub(MANIFEST_LINES),
            capabilities: submission.capabilities.iter().map(Capability::of).collect(),
            unjudged: submission
                .unjudged
                .iter()
                .map(|one| (one.plugin.clone(), one.reason.clone(), one.detail.clone()))
                .collect(),
            attempts: submission.attempts.iter().map(Attempt::of).collect(),
            timeline: events(submission),
            actions: actions(visitor, submission, live.as_ref()),
            live,
            reason: String::new(),
            advice: advice(submission),
            blocked_for: blocked_for(submission),
        }
    }
}

/// What whoever uploaded it can do now.
fn advice(submission: &v1::Submission) -> &'static str {
    let review = submission.checks.as_ref().and_then(|checks| checks.llm_review.as_ref());
    match submission.status() {
        v1::SubmissionStatus::PendingInline => "The checks are running; this page follows them.",
        v1::SubmissionStatus::PendingLlm if is_changing(submission) => {
            "A model is reviewing it; this page follows the review."
        }
        v1::SubmissionStatus::PendingLlm if submission.hold_reason() == v1::HoldReason::Coverage => {
            "It waits for an administrator, as not everything in it could be scanned. An upload with the source instead \
             of what is named below need not wait for that."
        }
        v1::SubmissionStatus::PendingLlm => "It waits for an administrator: there is nothing for you to fix.",
        v1::SubmissionStatus::BlockedLlm if review.is_some_and(|review| review.findings.is_empty()) => {
            "A model blocked it as a whole; its summary below says why. Change that and upload it again. If it is wrong, \
             ask an administrator to override it."
        }
        v1::SubmissionStatus::BlockedInline | v1::SubmissionStatus::BlockedLlm => {
            "Fix what is marked as high or critical below and upload it again. If a finding is wrong, ask an \
             administrator to override it."
        }
        v1::SubmissionStatus::Approved | v1::SubmissionStatus::Overridden => "It is published.",
        v1::SubmissionStatus::ReviewError => {
            "The review ended without a verdict. Ask an administrator to retry it, or upload it again."
        }
        v1::SubmissionStatus::Deleted => "It was deleted. Upload it again if it is still wanted.",
        v1::SubmissionStatus::Unspecified => "",
    }
}

/// What a model said about the whole, where it blocked it and named no place.
fn blocked_for(submission: &v1::Submission) -> String {
    let review = submission.checks.as_ref().and_then(|checks| checks.llm_review.as_ref());
    match (submission.status(), review) {
        (v1::SubmissionStatus::BlockedLlm, Some(review)) if review.findings.is_empty() => {
            review.summary.clone()
        }
        _ => String::new(),
    }
}

/// Where the bytes went, once they are gone.
fn gone(submission: &v1::Submission) -> Option<Gone> {
    let is_deleted = submission.status() == v1::SubmissionStatus::Deleted;
    if !is_deleted && submission.bundle_purge_time.is_none() {
        return None;
    }
    let deletion = submission.timeline.iter().rev().find(|event| event.action.ends_with(".deleted"));
    let deletion = deletion.filter(|_| is_deleted);
    let time = deletion.and_then(|event| event.time.as_ref()).or(submission.bundle_purge_time.as_ref());
    Some(Gone {
        time: Moment::of(time),
        is_deleted,
        by: deletion.map(|event| event.actor.clone()).unwrap_or_default(),
    })
}

impl Capability {
    fn of(one: &v1::Capability) -> Self {
        let place = if one.line == 0 { one.file.clone() } else { format!("{}:{}", one.file, one.line) };
        Self { kind: view::spoken(&one.kind), place, detail: one.detail.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(action: &str, actor: &str, detail: &str) -> v1::SubmissionEvent {
        v1::SubmissionEvent {
            action: action.to_owned(),
            actor: actor.to_owned(),
            detail: detail.to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn what_was_deleted_did_not_wait_for_a_retention_time() {
        let time = Some(pbjson_types::Timestamp { seconds: 1, nanos: 0 });
        let purged = v1::Submission { bundle_purge_time: time, ..Default::default() };
        assert!(gone(&purged).is_some_and(|gone| !gone.is_deleted && gone.time.is_some()));
        let deleted = v1::Submission {
            status: v1::SubmissionStatus::Deleted.into(),
            timeline: vec![event("store.submission.deleted", "root", "")],
            ..purged
        };
        assert!(gone(&deleted).is_some_and(|gone| gone.is_deleted && gone.by == "root"));
        assert!(gone(&v1::Submission::default()).is_none());
    }

    #[test]
    fn an_uploader_is_told_what_ends_the_wait() {
        let held = |hold: v1::HoldReason| v1::Submission {
            status: v1::SubmissionStatus::PendingLlm.into(),
            hold_reason: hold.into(),
            ..Default::default()
        };
        assert!(advice(&held(v1::HoldReason::Coverage)).contains("source instead"));
        assert!(advice(&held(v1::HoldReason::NoKey)).contains("nothing for you to fix"));
        let review = v1::LlmReview { summary: "It steals mail.".to_owned(), ..Default::default() };
        let blocked = v1::Submission {
            status: v1::SubmissionStatus::BlockedLlm.into(),
            checks: Some(v1::BundleChecks { llm_review: Some(review), ..Default::default() }),
            ..Default::default()
        };
        assert!(advice(&blocked).contains("summary"));
        assert_eq!(blocked_for(&blocked), "It steals mail.");
    }
}
