//! What is held for want of a key goes on once there is one.

use super::change::Brought;
use super::record::{self, Action, Record};
use super::{RACES_MAX, Reviewing, Submissions};
use crate::bundles::life::{Event, Standing};
use crate::decision::HoldReason;
use crate::store::{StoreError, StoredSubmission};
use crate::telemetry::SubmissionMoved;

impl Submissions {
    /// Releases what is held for want of a key, of all tenants, if the settings of this process have an answer for it: a
    /// model that has a key reviews it; where no review is wanted, all checks run again and decide. Answers how many.
    ///
    /// Only for the start of a process: of two replicas one of which has no key, each would undo what the other did.
    ///
    /// # Errors
    /// The store failed.
    pub(in crate::bundles) async fn release_held(&self) -> Result<u64, StoreError> {
        let (event, action) = match self.reviewing() {
            Reviewing::Ready => (Event::Retry, Action::Retry),
            Reviewing::Off => (Event::Rescan, Action::Rescan),
            Reviewing::NoKey => return Ok(0),
        };
        let mut released = 0;
        loop {
            let before = released;
            for row in self.store().held(HoldReason::NoKey).await? {
                released += u64::from(self.release_one(&row, event, action).await?);
            }
            // None left, or none that lets itself be released.
            if released == before {
                break;
            }
        }
        if released > 0 {
            tracing::info!(count = released, "submissions that were held for want of a key go on");
        }
        Ok(released)
    }

    /// Whether it was this process that released it.
    async fn release_one(
        &self,
        row: &StoredSubmission,
        event: Event,
        action: Action,
    ) -> Result<bool, StoreError> {
        for _ in 0..RACES_MAX {
            let now = self.now();
            let Some(ground) = self.ground(&row.tenant, &row.id).await? else { return Ok(false) };
            if ground.standing() != Ok(Standing::HeldNoKey) {
                return Ok(false);
            }
            let Ok(mut change) = ground.change(event, Brought::default(), now, Vec::new()) else {
                return Ok(false);
            };
            let after = change.submissions[0].submission.clone();
            let record = Record::by_system(action, &row.tenant, record::submission(&row.id), now)
                .bundle(&after)
                .with("prior_status", ground.submission.status.as_str())
                .with("prior_hold_reason", HoldReason::NoKey.as_str());
            change.events = vec![record.finish()];
            if self.store().apply(change).await? {
                SubmissionMoved { status: after.status }.emit(&self.parts().metrics);
                self.tell(&after.entity_id);
                return Ok(true);
            }
        }
        Ok(false)
    }
}
