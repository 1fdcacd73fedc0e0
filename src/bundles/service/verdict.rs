//! Verdicts that workers reach, for whoever wants to hear of them.

use jiff::SignedDuration;

use super::Submissions;
use crate::decision::{BundleChecks, LlmReview};
use crate::store::StoredSubmission;

/// A verdict that a worker reached and wrote.
#[derive(Clone, Copy, Debug)]
pub struct Verdict<'v> {
    /// The submission as it stands now.
    pub submission: &'v StoredSubmission,
    /// What inline checks found, where they ran again.
    pub checks: Option<&'v BundleChecks>,
    /// What a model said, where one was asked; why it gave no verdict else.
    pub review: Option<&'v LlmReview>,
    /// Since the attempt began.
    pub elapsed: SignedDuration,
}

/// Who hears of verdicts.
pub(super) type Told = Box<dyn Fn(&Verdict<'_>) + Send + Sync>;

impl Submissions {
    /// Tells of each verdict that a worker of this process writes from now on. The first one who asks is told, and nobody
    /// else.
    pub fn on_verdict(&self, told: impl Fn(&Verdict<'_>) + Send + Sync + 'static) {
        // A second one is a mistake of the program that costs nobody anything.
        let _ = self.0.told.set(Box::new(told));
    }

    pub(super) fn tell_verdict(&self, verdict: &Verdict<'_>) {
        if let Some(told) = self.0.told.get() {
            told(verdict);
        }
    }
}
