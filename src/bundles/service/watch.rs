//! Following one submission: how it stands, then after each change.

use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::{Actor, Submission, SubmissionError, Submissions, Watched};

/// One watcher.
struct Watcher {
    submissions: Submissions,
    actor: Actor,
    id: String,
    details: bool,
    changed: Receiver<Arc<str>>,
    /// What was told last.
    told: Option<Submission>,
    is_over: bool,
}

impl Submissions {
    /// Answers at once with how a submission stands, then after each change, whoever made it, and ends once nothing more
    /// will happen by itself. An error is the last item.
    pub fn watch(
        &self,
        actor: Actor,
        id: String,
        details: bool,
    ) -> impl Stream<Item = Result<Watched, SubmissionError>> + Send + use<> {
        // Listening begins before the first look, so that nothing falls in between.
        let changed = self.0.changed.subscribe();
        let watcher =
            Watcher { submissions: self.clone(), actor, id, details, changed, told: None, is_over: false };
        stream::unfold(watcher, |mut watcher| async move {
            if watcher.is_over {
                return None;
            }
            let item = watcher.next().await;
            watcher.is_over = !matches!(&item, Ok(watched) if !watched.is_final);
            Some((item, watcher))
        })
    }
}

impl Watcher {
    async fn next(&mut self) -> Result<Watched, SubmissionError> {
        loop {
            let mut now = self.submissions.get(&self.actor, &self.id, false).await?;
            if self.told.as_ref() != Some(&now) {
                self.told = Some(now.clone());
                let is_final = now.is_final();
                if self.details {
                    self.submissions.fill(&self.actor, std::slice::from_mut(&mut now)).await?;
                }
                return Ok(Watched { submission: now, is_final });
            }
            self.change().await;
        }
    }

    /// Waits until it may have changed: at once when this process did it, else at the next look.
    async fn change(&mut self) {
        let entity = self.told.as_ref().map(|told| told.entity_id.clone()).unwrap_or_default();
        let told = async {
            loop {
                match self.changed.recv().await {
                    Ok(changed) if *changed == *entity => return,
                    Ok(_) => {}
                    // So much changed that some of it was missed.
                    Err(RecvError::Lagged(_)) => return,
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        // Either way the row is looked at.
        let _ = tokio::time::timeout(self.submissions.parts().poll_interval, told).await;
    }
}
