//! What an administrator could do with a submission as it stands, and why not the rest.

use super::triage::advice;
use super::{Reviewing, Submissions};
use crate::bundles::life::{Bytes, Event, Refused, Standing, next};
use crate::decision::{HoldReason, SubmissionStatus};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// `override`, `rescan`, `retry` or `delete`.
    pub action: &'static str,
    /// Why it would be refused now, as a sentence; `None` when it would not.
    pub refused: Option<String>,
}

impl Submissions {
    /// Every action on a submission that stands so. Whether it is allowed is decided again when it is asked for.
    pub fn choices(&self, status: SubmissionStatus, hold: HoldReason, bytes: Bytes) -> Vec<Choice> {
        let retry = match (self.reviewing(), self.guardrails().enabled) {
            (Reviewing::Ready, _) => Some(Event::Retry),
            (_, true) => Some(Event::RetryHeld),
            (_, false) => None,
        };
        [
            ("override", "overridden", Some(Event::Override)),
            ("rescan", "rescanned", Some(Event::Rescan)),
            ("retry", "retried", retry),
            ("delete", "deleted", Some(Event::Delete)),
        ]
        .map(|(action, participle, event)| {
            let Some(event) = event else {
                let refused = "Review by a model is switched off (guardrails.enabled); rescan it instead.";
                return Choice { action, refused: Some(refused.to_owned()) };
            };
            let refused = match Standing::of(status, hold).map(|from| next(from, bytes, event)) {
                Some(Ok(_)) => None,
                Some(Err(Refused::Purged)) => {
                    Some("Its bytes were removed; they must be uploaded again.".to_owned())
                }
                Some(Err(Refused::Unopened)) => Some(
                    "Its archive could not be opened, so there is nothing to publish; what the archive check found must \
                     be fixed, and the bundle uploaded again."
                        .to_owned(),
                ),
                Some(Err(Refused::Illegal)) | None => {
                    let advice = advice(status, hold, participle);
                    Some(format!("One that is {status} cannot be {participle}; {advice}."))
                }
            };
            Choice { action, refused }
        })
        .into()
    }
}
