//! The life of submissions and entities over the store, as API, command line and worker ask for it.
//!
//! Order of a write: bytes durable, then one transaction of rows and audit events, then the answer. Order of a removal: the
//! rows first, then the bytes. So a crash leaves bytes without a row, which the sweep collects, and never a row without its
//! bytes.
//!
//! Every change is worked out by [`super::life`] from the rows as they were read, and written only where they still are
//! as they were. What the caller may not see is not found.

mod change;
mod checkers;
mod download;
mod entities;
mod error;
mod excerpt;
mod options;
mod primary;
mod record;
mod release;
mod retention;
pub(super) mod step;
mod submit;
mod triage;
mod types;
mod verdict;
mod watch;

#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Notify, Semaphore, broadcast};

pub use download::Download;
pub use error::SubmissionError;
pub use excerpt::FileLines;
pub use options::Choice;
pub use record::Action;
pub use types::{
    Actor, Attempt, Details, Entities, Entity, Overridden, Purged, Reviewed, Submission, SubmissionList,
    TimelineEvent, Upload, Watched, decision_of,
};
pub use verdict::Verdict;

use super::Inspection;
use super::archive::{ArchiveLimits, Source};
use super::config::{BundlesConfig, GuardrailsConfig};
use super::spool::Spool;
use crate::decision::{BundleKind, LlmReview};
use crate::judge::Judge;
use crate::store::{AuditStore, BundleBytes, StoreError, SubmissionStore, VerdictKey};
use crate::telemetry::Metrics;
use change::Ground;
use checkers::Checkers;

/// How often a change is worked out anew after somebody else was quicker.
const RACES_MAX: usize = 16;

/// What tells the time. Injected, so that tests need not wait.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The inline checks under the rules in force.
pub trait Inspect: Send + Sync {
    /// Checks one bundle, and says under which revision of the policy. Blocks; panics are caught by the caller.
    ///
    /// # Errors
    /// Why there are no rules to check by, for a person.
    fn inspect(
        &self,
        source: &dyn Source,
        kind: BundleKind,
        asked: &Asked,
    ) -> Result<(Inspection, String), String>;

    /// Revision of the policy in force; empty when there is none.
    fn revision(&self) -> String;

    /// A text of a model or a person without the credentials and personal data in it; nothing of it where they cannot be
    /// looked for.
    fn mask(&self, text: &str) -> String;
}

/// Under whose policy a bundle is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Name of the policy; empty is the default one. One that is not there any more stands for the built-in one, which
    /// excuses nothing.
    pub policy: String,
    /// Tenant of the uploader.
    pub tenant: String,
    /// The time, for suppressions that expire.
    pub now: Timestamp,
}

/// What [`Submissions`] stands on.
pub struct Parts {
    /// Rows.
    pub store: Arc<dyn SubmissionStore>,
    /// Audit events.
    pub audit: Arc<dyn AuditStore>,
    /// Bytes.
    pub bytes: Arc<dyn BundleBytes>,
    /// Files under way.
    pub spool: Spool,
    /// The inline checks.
    pub inspect: Arc<dyn Inspect>,
    /// The model that reviews; `None` when none has a key.
    pub judge: Option<Arc<dyn Judge>>,
    /// Settings of uploads.
    pub bundles: BundlesConfig,
    /// Settings of review, quota and retention.
    pub guardrails: GuardrailsConfig,
    /// How often changes by other processes are looked for.
    pub poll_interval: Duration,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// What tells the time.
    pub clock: Clock,
}

/// See the module.
#[derive(Clone)]
pub struct Submissions(Arc<Inner>);

struct Inner {
    parts: Parts,
    limits: ArchiveLimits,
    /// Inline checks at once.
    checks: Arc<Semaphore>,
    /// Where they run.
    checkers: Checkers,
    /// Ids of entities of which something changed in this process.
    changed: broadcast::Sender<Arc<str>>,
    /// Wakes a worker.
    waiting: Notify,
    /// Who is told of verdicts that workers reach.
    told: OnceLock<verdict::Told>,
}

/// What becomes of a bundle that passed the inline checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reviewing {
    /// A model reviews it.
    Ready,
    /// It is approved without.
    Off,
    /// It is held.
    NoKey,
}

impl Submissions {
    /// The service over `parts`. Nothing runs by itself: see [`super::worker`].
    pub fn new(parts: Parts) -> Self {
        let (changed, _) = broadcast::channel(256);
        Self(Arc::new(Inner {
            limits: parts.bundles.limits(),
            checks: Arc::new(Semaphore::new(parts.bundles.checks_max)),
            checkers: Checkers::default(),
            changed,
            waiting: Notify::new(),
            told: OnceLock::new(),
            parts,
        }))
    }

    /// Where uploads are written on their way in.
    pub fn spool(&self) -> &Spool {
        &self.parts().spool
    }

    /// How much an upload may be.
    pub fn limits(&self) -> &ArchiveLimits {
        &self.0.limits
    }

    /// The model that reviews, as the settings name it; `None` when there is none.
    pub fn review_model(&self) -> Option<&str> {
        self.parts().judge.as_ref().map(|judge| judge.model())
    }

    pub(super) fn guardrails(&self) -> &GuardrailsConfig {
        &self.parts().guardrails
    }

    pub(super) fn poll_interval(&self) -> Duration {
        self.parts().poll_interval
    }

    pub(super) fn stray_grace(&self) -> Duration {
        self.parts().bundles.stray_grace
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.parts().metrics
    }

    /// The model that reviews; `None` when there is none, or none is wanted.
    pub(super) fn reviewer(&self) -> Option<Arc<dyn Judge>> {
        self.parts().judge.clone().filter(|_| self.reviewing() == Reviewing::Ready)
    }

    /// A text of a model or a person as it may be kept and shown.
    pub(super) fn masked(&self, text: &str) -> String {
        self.parts().inspect.mask(text)
    }

    /// The verdict that these bytes were given before.
    pub(super) async fn verdict(&self, key: &VerdictKey) -> Result<Option<LlmReview>, StoreError> {
        self.store().verdict(key.clone()).await
    }

    /// Shows how many submissions stand how, and for how long the oldest one waits.
    pub(super) async fn show_gauges(&self) -> Result<(), StoreError> {
        let counts = self.store().counts_by_status().await?;
        let counts: Vec<_> = counts.into_iter().map(|count| (count.status, count.count)).collect();
        let oldest = self.store().oldest_waiting().await?;
        let age = oldest.map_or(SignedDuration::ZERO, |oldest| self.now().duration_since(oldest));
        // A clock that was set back makes no negative age.
        self.metrics().show_submissions(&counts, age.try_into().unwrap_or(Duration::ZERO));
        Ok(())
    }

    fn parts(&self) -> &Parts {
        &self.0.parts
    }

    fn store(&self) -> &dyn SubmissionStore {
        &*self.parts().store
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.parts().clock)()
    }

    fn reviewing(&self) -> Reviewing {
        let parts = self.parts();
        match (&parts.judge, parts.guardrails.enabled, parts.guardrails.without_key) {
            (_, false, _) | (None, true, super::WithoutKey::Approve) => Reviewing::Off,
            (Some(_), true, _) => Reviewing::Ready,
            (None, true, super::WithoutKey::Hold) => Reviewing::NoKey,
        }
    }

    /// Tells whoever watches the entity, and wakes a worker.
    fn tell(&self, entity_id: &str) {
        // An error means that nobody watches.
        let _ = self.0.changed.send(entity_id.into());
        self.0.waiting.notify_one();
    }

    /// Everything that a transition of a submission looks at; `None` when the tenant has no such submission.
    async fn ground(&self, tenant: &str, id: &str) -> Result<Option<Ground>, StoreError> {
        let store = self.store();
        let Some(submission) = store.submission(tenant.to_owned(), id.to_owned()).await? else {
            return Ok(None);
        };
        let entity = store.entity(tenant.to_owned(), submission.entity_id.clone()).await?;
        let siblings = store.submissions_of(tenant.to_owned(), submission.entity_id.clone()).await?;
        let mut attempts = store.attempts(tenant.to_owned(), vec![id.to_owned()]).await?;
        let Some(attempt) = attempts.pop() else {
            return Err(StoreError::Access {
                place: "submissions".into(),
                cause: format!("submission `{id}` has no attempt"),
            });
        };
        Ok(Some(Ground { submission, attempt, entity, siblings }))
    }

    /// Removes bytes that no row points to any more. What cannot be removed now is left to the sweep.
    async fn drop_bytes(&self, id: &str) {
        if let Err(error) = self.parts().bytes.delete(id.to_owned()).await {
            tracing::warn!(%error, "bytes of a bundle could not be removed; the sweep tries again");
        }
    }
}
