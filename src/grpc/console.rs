//! What the console asks for and no RPC answers: over the same engines, as the same caller.

use super::local::{LocalCalls, Refusal};
use super::bundle_convert::standing_of;
use super::{Identity, RequestError};
use crate::bundles::service::{Choice, FileLines};
use crate::pb::v1;

impl LocalCalls {
    /// The lines of files of a submission that the caller may see.
    ///
    /// # Errors
    /// There is no such submission, or its bytes are gone.
    pub async fn lines(
        &self,
        identity: &Identity,
        submission_id: &str,
        paths: Vec<String>,
    ) -> Result<Vec<FileLines>, Refusal> {
        let submissions = &self.shared().submissions;
        submissions.lines(&identity.actor(""), submission_id, paths).await.map_err(|e| refused(e.into()))
    }

    /// What an administrator could do with a submission as it stands.
    pub fn choices(&self, submission: &v1::Submission) -> Vec<Choice> {
        let standing = standing_of(submission);
        let has_bytes = submission.bundle_purge_time.is_none();
        standing.map(|(status, hold)| self.shared().submissions.choices(status, hold, has_bytes)).unwrap_or_default()
    }
}

fn refused(error: RequestError) -> Refusal {
    Refusal::from(error.to_status())
}
