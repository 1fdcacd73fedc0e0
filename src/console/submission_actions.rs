//! What can be done with a submission by whom, and doing it.

use axum::response::Response;

use super::answer;
use super::path::Path;
use super::submission::{Beside, Failed, made};
use super::submission_timeline::worded;
use super::submissions::PLACE;
use super::view;
use super::visitor::{Known, Sent, Visitor};
use crate::grpc::Refusal;
use crate::pb::v1;
use crate::policy::CallerRole;
use crate::telemetry::Code;

/// One action, or why it is not possible now.
pub(super) struct Action {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) explanation: String,
    /// Whether it asks for a reason, and whether it needs one.
    pub(super) reason: Option<bool>,
    pub(super) is_danger: bool,
    pub(super) refused: Option<String>,
    pub(super) is_open: bool,
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
pub(super) fn actions(visitor: &Visitor, submission: &v1::Submission, live: Option<&Beside>) -> Vec<Action> {
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
        // The page would wait for the database once more, and not come either.
        Err(refusal) if refusal.code == Code::Unavailable => visitor.refused_for(&refusal, &reason),
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
}
