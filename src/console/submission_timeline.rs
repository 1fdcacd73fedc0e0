//! What happened to a submission: its attempts, and who did what.

use super::submissions::STATUSES;
use super::view::{self, Moment};
use crate::pb::v1;

/// One run of the checks.
pub(super) struct Attempt {
    pub(super) number: u32,
    pub(super) status: String,
    pub(super) class: String,
    pub(super) started: Moment,
    pub(super) ended: Moment,
    pub(super) error: String,
}

/// One thing that happened.
pub(super) struct Event {
    pub(super) time: Moment,
    pub(super) action: String,
    /// By whom.
    pub(super) by: String,
    pub(super) detail: String,
}

/// A sentence of the services with the names of verdicts as words.
pub(super) fn worded(sentence: &str) -> String {
    let mut sentence = sentence.to_owned();
    for status in STATUSES {
        let name = view::status(status.into());
        sentence = sentence.replace(&name, &view::spoken(&name));
    }
    sentence
}

impl Attempt {
    pub(super) fn of(one: &v1::SubmissionAttempt) -> Self {
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
pub(super) fn events(submission: &v1::Submission) -> Vec<Event> {
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
}
