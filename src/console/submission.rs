//! One submission: how it stands, what was found and where, what was scanned, what happened to it.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::answer::{self, status_of};
use super::filters;
use super::path::Path;
use super::scanned::{Scanned, Told};
use super::shell::Shell;
use super::submissions::{Check, PLACE, STATUSES, checks_of, hold_words, is_changing};
use super::view::{self, Moment};
use super::visitor::{Known, Sent, Visitor};
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
struct Beside {
    href: String,
    /// As its manifest gives it; may be empty.
    version: String,
}

impl Beside {
    /// What it is called within a sentence.
    fn name(&self) -> String {
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

struct Attempt {
    number: u32,
    status: String,
    class: String,
    started: Moment,
    ended: Moment,
    error: String,
}

struct Event {
    time: Moment,
    action: String,
    /// By whom.
    by: String,
    detail: String,
}

/// One action, or why it is not possible now.
struct Action {
    name: &'static str,
    label: &'static str,
    explanation: String,
    /// Whether it asks for a reason, and whether it needs one.
    reason: Option<bool>,
    is_danger: bool,
    refused: Option<String>,
    is_open: bool,
}

/// What can be asked for: name, label, what it does, whether it asks for a reason and needs one, whether it removes.
const ACTIONS: [(&str, &str, &str, Option<bool>, bool); 6] = [
    (
        "override",
        "Override",
        "Publishes it against its verdict. Reason and verdict are kept for ever.",
        Some(true),
        false,
    ),
    ("rescan", "Rescan", "Runs all checks again over the bytes that were submitted.", None, false),
    ("retry", "Retry review", "Has a model review it again.", None, false),
    (
        "archive",
        "Archive",
        "Takes the bundle down with all its versions: existing installs keep it, nobody new finds it.",
        Some(false),
        false,
    ),
    (
        "restore",
        "Restore",
        "Brings the bundle back with all its versions, as it was before it was archived.",
        Some(false),
        false,
    ),
    ("delete", "Delete", "Removes the bytes for good. The row stays as a tombstone.", Some(false), true),
];

/// The page.
pub(super) async fn detail(visitor: Visitor, Path(id): Path<String>) -> Response {
    visitor.show(made(&visitor, &id, None).await)
}

/// What went wrong with an action.
struct Failed {
    action: String,
    reason: String,
    refusal: Refusal,
}

async fn made(visitor: &Visitor, id: &str, failed: Option<Failed>) -> Result<Response, Refusal> {
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

/// A sentence of the services with the names of verdicts as words.
fn worded(sentence: &str) -> String {
    let mut sentence = sentence.to_owned();
    for status in STATUSES {
        let name = view::status(status.into());
        sentence = sentence.replace(&name, &view::spoken(&name));
    }
    sentence
}

/// What an action does to the version that is live, which need not be this one; empty where it does nothing to it.
fn consequence(name: &str, submission: &v1::Submission, live: Option<&Beside>) -> String {
    let is_overridden = submission.status() == v1::SubmissionStatus::Overridden;
    let other = live.map(Beside::name);
    match (name, submission.live, other) {
        ("override", false, Some(other)) => format!("It goes live instead of {other}."),
        ("rescan", true, _) if is_overridden => {
            "This ends the override. It is the live version: it stays so until there is a verdict, and is taken down if \
             the checks block it."
                .to_owned()
        }
        ("rescan", true, _) => "It is the live version: it stays so until there is a verdict, and is taken down if the \
                                checks block it."
            .to_owned(),
        ("rescan", false, _) if is_overridden => "This ends the override.".to_owned(),
        ("archive", true, _) => "This is the version that is live.".to_owned(),
        ("archive", false, Some(other)) => {
            format!("That takes down {other}, which is live, and not this one alone.")
        }
        ("restore", false, Some(other)) => format!("The live version is {other}, not this one."),
        ("delete", true, _) => {
            "It is the live version: the bundle goes with it, and all its other versions.".to_owned()
        }
        ("delete", false, Some(other)) => format!("The live one, {other}, stays."),
        _ => String::new(),
    }
}

/// What can be done with it, for whoever may do such things at all.
fn actions(visitor: &Visitor, submission: &v1::Submission, live: Option<&Beside>) -> Vec<Action> {
    let (identity, visibility) = (&visitor.identity, submission.visibility());
    let choices = visitor.calls().choices(submission);
    let is_deleted = submission.status() == v1::SubmissionStatus::Deleted;
    let is_owner = identity.has(CallerRole::Submitter) && submission.submitter == identity.name();
    let is_offered = |name: &str| match name {
        "archive" => is_owner || identity.has(CallerRole::Auditor),
        _ => identity.has(CallerRole::Auditor),
    };
    let all = ACTIONS.into_iter().filter(|(name, ..)| is_offered(name));
    all.map(|(name, label, explanation, reason, is_danger)| {
        let is_allowed = identity.is_admin() || (name == "archive" && is_owner);
        let refused = match (name, visibility) {
            _ if !is_allowed => Some("This needs the admin role.".to_owned()),
            ("archive", v1::Visibility::Archived) => Some("It is archived already.".to_owned()),
            ("archive" | "restore", v1::Visibility::Unspecified) => {
                Some("The bundle was deleted; nothing is left.".to_owned())
            }
            ("archive", v1::Visibility::Pending | v1::Visibility::Hidden) if !identity.is_admin() => {
                Some("Only an administrator archives what is not approved.".to_owned())
            }
            ("archive", _) | ("restore", v1::Visibility::Archived) => None,
            ("restore", _) => Some("Only an archived one can be restored.".to_owned()),
            _ if is_deleted => Some("It was deleted: there are no bytes any more.".to_owned()),
            ("rescan" | "retry", _) if submission.bundle_purge_time.is_some() => {
                Some("Its bytes were removed; they must be uploaded again.".to_owned())
            }
            _ => {
                let choice = choices.iter().find(|choice| choice.action == name);
                choice.and_then(|choice| choice.refused.as_deref()).map(worded)
            }
        };
        let explanation = [explanation.to_owned(), consequence(name, submission, live)];
        let explanation = explanation.join(" ").trim_end().to_owned();
        Action { name, label, explanation, reason, is_danger, refused, is_open: false }
    })
    .collect()
}

impl Capability {
    fn of(one: &v1::Capability) -> Self {
        let place = if one.line == 0 { one.file.clone() } else { format!("{}:{}", one.file, one.line) };
        Self { kind: view::spoken(&one.kind), place, detail: one.detail.clone() }
    }
}

impl Attempt {
    fn of(one: &v1::SubmissionAttempt) -> Self {
        let status = view::status(one.status);
        Self {
            number: one.number,
            class: view::class(&status),
            status: view::spoken(&status),
            started: Moment::of(one.start_time.as_ref()),
            ended: Moment::of(one.end_time.as_ref()),
            error: one.error.clone(),
        }
    }
}

/// What happened to it, newest first. A deletion is told of the submission and of its entity: one of both is enough.
fn events(submission: &v1::Submission) -> Vec<Event> {
    let all = &submission.timeline;
    let is_repeated = |at: usize, one: &v1::SubmissionEvent| {
        one.action.ends_with(".deleted")
            && all.iter().enumerate().any(|(other, same)| {
                let is_longer =
                    same.detail.len() > one.detail.len() || (same.detail == one.detail && other < at);
                other != at && is_longer && same.action.ends_with(".deleted") && same.actor == one.actor
            })
    };
    let told = all.iter().enumerate().filter(|(at, one)| !is_repeated(*at, one));
    told.rev().map(|(_, one)| Event::of(one, &submission.submitter)).collect()
}

impl Event {
    fn of(event: &v1::SubmissionEvent, submitter: &str) -> Self {
        let action = event.action.rsplit('.').next().unwrap_or_default();
        // Checks give a verdict, and not whoever had them run by an upload.
        let is_verdict = ["approved", "blocked_inline", "blocked_llm", "review_error"].contains(&action);
        let by = match is_verdict && event.actor == submitter {
            true => format!("by the checks, uploaded by {}", event.actor),
            false => format!("by {}", event.actor),
        };
        Self {
            time: Moment::of(event.time.as_ref()),
            action: view::spoken(action),
            by,
            detail: worded(&event.detail),
        }
    }
}

/// Does what a form asks for.
pub(super) async fn act(Path((id, action)): Path<(String, String)>, sent: Sent) -> Response {
    let Sent { visitor, fields } = sent;
    let place = format!("{PLACE}/{}", view::segment(&id));
    if fields.one("confirm") != "yes" {
        let refusal = Refusal::wrong("Confirm what you want to do; nothing was done.");
        let failed = Failed { action, reason: fields.one("reason").to_owned(), refusal };
        return visitor.show(made(&visitor, &id, Some(failed)).await);
    }
    let (reason, submission_id) = (fields.one("reason").to_owned(), id.clone());
    let done = match action.as_str() {
        "override" => {
            let request = v1::OverrideSubmissionRequest { submission_id, reason: reason.clone() };
            let done = visitor
                .call::<v1::OverrideSubmissionResponse>("SubmissionService/OverrideSubmission", &request);
            done.await.map(|_| "overridden")
        }
        "rescan" => {
            let request = v1::RescanSubmissionRequest { submission_id };
            let done =
                visitor.call::<v1::RescanSubmissionResponse>("SubmissionService/RescanSubmission", &request);
            done.await.map(|_| "rescanned")
        }
        "retry" => {
            let request = v1::RetryReviewRequest { submission_id };
            let done = visitor.call::<v1::RetryReviewResponse>("SubmissionService/RetryReview", &request);
            done.await.map(|_| "retried")
        }
        "delete" => {
            let request = v1::DeleteSubmissionRequest { submission_id, reason: reason.clone() };
            let done =
                visitor.call::<v1::DeleteSubmissionResponse>("SubmissionService/DeleteSubmission", &request);
            done.await.map(|_| "deleted")
        }
        "archive" | "restore" => move_entity(&visitor, &id, &action, reason.clone()).await,
        _ => return answer::no_page(Known(Some(visitor))).await,
    };
    match done {
        Ok(notice) => answer::see(&format!("{place}?notice={notice}")),
        Err(refusal)
            if matches!(refusal.code, Code::Unauthenticated | Code::NotFound | Code::PermissionDenied) =>
        {
            visitor.refused(&refusal)
        }
        Err(refusal) => {
            let typed = reason.clone();
            let failed = Failed { action, reason, refusal };
            let made = made(&visitor, &id, Some(failed)).await;
            // Where the page cannot be made again, what was typed is not lost with it.
            made.unwrap_or_else(|refusal| visitor.refused_for(&refusal, &typed))
        }
    }
}

/// Archives or restores the entity that a submission is a version of.
async fn move_entity(
    visitor: &Visitor,
    id: &str,
    action: &str,
    reason: String,
) -> Result<&'static str, Refusal> {
    let rpc = if action == "archive" { "ArchiveEntity" } else { "RestoreEntity" };
    // Who lacks the role is told so before anything is looked up.
    visitor.calls().check_role(&visitor.identity, &format!("EntityService/{rpc}"))?;
    let request =
        v1::GetSubmissionRequest { submission_id: id.to_owned(), view: v1::SubmissionView::Basic.into() };
    let found: v1::GetSubmissionResponse = visitor.call("SubmissionService/GetSubmission", &request).await?;
    let entity_id = found.submission.unwrap_or_default().entity_id;
    if action == "archive" {
        let request = v1::ArchiveEntityRequest { entity_id, reason };
        visitor.call::<v1::ArchiveEntityResponse>("EntityService/ArchiveEntity", &request).await?;
        Ok("archived")
    } else {
        let request = v1::RestoreEntityRequest { entity_id, reason };
        visitor.call::<v1::RestoreEntityResponse>("EntityService/RestoreEntity", &request).await?;
        Ok("restored")
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
    fn what_happened_is_told_once_and_in_words() {
        let submission = v1::Submission {
            submitter: "ada".to_owned(),
            timeline: vec![
                event("store.submission.blocked_inline", "ada", "version 1.0"),
                event("store.submission.deleted", "root", "gone; was blocked_inline"),
                event("store.entity.deleted", "root", "gone"),
            ],
            ..Default::default()
        };
        let told: Vec<(String, String, String)> =
            events(&submission).into_iter().map(|one| (one.action, one.by, one.detail)).collect();
        let wanted = [
            ("deleted", "by root", "gone; was blocked inline"),
            ("blocked inline", "by the checks, uploaded by ada", "version 1.0"),
        ];
        assert_eq!(told, wanted.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
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
    fn what_an_action_does_to_the_live_version_is_told() {
        let of = |status: v1::SubmissionStatus, live| v1::Submission {
            status: status.into(),
            live,
            ..Default::default()
        };
        let beside = Beside { href: String::new(), version: "1.0.0".to_owned() };
        let (blocked, overridden) =
            (of(v1::SubmissionStatus::BlockedInline, false), of(v1::SubmissionStatus::Overridden, true));
        for (name, submission, live, told) in [
            ("archive", &blocked, Some(&beside), "takes down version 1.0.0"),
            ("archive", &overridden, None, "version that is live"),
            ("restore", &blocked, Some(&beside), "is version 1.0.0, not this one"),
            ("override", &blocked, Some(&beside), "instead of version 1.0.0"),
            ("rescan", &overridden, None, "ends the override"),
            ("rescan", &overridden, None, "taken down if"),
            ("delete", &overridden, None, "all its other versions"),
        ] {
            let said = consequence(name, submission, live);
            assert!(said.contains(told), "{name}: {said}");
        }
        assert_eq!(consequence("archive", &blocked, None), "");
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
