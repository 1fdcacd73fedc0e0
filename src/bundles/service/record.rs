//! Audit events of submissions and entities: one for each change, by a name of its own.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::Actor;
use crate::decision::{BundleChecks, SubmissionStatus};
use crate::store::{NewAuditEvent, StoredSubmission};

/// Who acts where nobody asked: checks and regular jobs.
pub(super) const SYSTEM: &str = "system";

/// Declares the actions.
macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)+) => {
        /// What is recorded. A bounded set.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Action { $($(#[$doc])* $name,)+ }

        impl Action {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Its name, as audit events have it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

actions! {
    /// An upload passed the inline checks and was taken.
    Accepted = "store.submission.accepted";
    /// An inline check blocked a submission.
    BlockedInline = "store.submission.blocked_inline";
    /// A submission passed every check.
    Approved = "store.submission.approved";
    /// The review by a model blocked a submission.
    BlockedLlm = "store.submission.blocked_llm";
    /// The review of a submission ended without a verdict.
    ReviewError = "store.submission.review_error";
    /// A submission that waited for its review is held.
    Held = "store.submission.held";
    /// An administrator published a submission against its verdict.
    Overridden = "store.submission.overridden";
    /// An administrator downloaded the submitted bytes.
    Downloaded = "store.submission.bundle_downloaded";
    /// An administrator had all checks run again.
    Rescan = "store.submission.rescan";
    /// An administrator had the review run again.
    Retry = "store.submission.retry";
    /// A submission was deleted for good.
    Deleted = "store.submission.deleted";
    /// The bytes of a blocked submission were removed after the retention time.
    BundlePurged = "store.submission.bundle_purged";
    /// A verdict came too late: somebody had changed the submission meanwhile. It was thrown away.
    VerdictSkipped = "store.submission.verdict_skipped";
    /// An entity was archived.
    EntityArchived = "store.entity.archived";
    /// An archived entity was brought back.
    EntityRestored = "store.entity.restored";
    /// An entity was deleted for good.
    EntityDeleted = "store.entity.deleted";
    /// A purge of blocked bundles ran and removed some, or was asked for.
    RunBlockedPurge = "run_blocked_purge";
    /// A look for stuck reviews ran and found some, or was asked for.
    RunReapStuckReviews = "run_reap_stuck_reviews";
}

/// One event under way.
#[derive(Clone, Debug)]
pub(super) struct Record {
    event: NewAuditEvent,
    detail: Map<String, Value>,
}

impl Record {
    /// Something that the service did by itself.
    pub(super) fn by_system(action: Action, tenant: &str, resource: String, time: Timestamp) -> Self {
        let event = NewAuditEvent {
            id: Uuid::now_v7().to_string(),
            time,
            action: action.as_str().to_owned(),
            actor: SYSTEM.to_owned(),
            tenant: tenant.to_owned(),
            resource,
            ..NewAuditEvent::default()
        };
        Self { event, detail: Map::new() }
    }

    /// Something that a caller did.
    pub(super) fn by(action: Action, actor: &Actor, resource: String, time: Timestamp) -> Self {
        let mut record = Self::by_system(action, &actor.tenant, resource, time);
        record.event.actor.clone_from(&actor.name);
        record.event.request_id.clone_from(&actor.request_id);
        record
    }

    pub(super) fn reason(mut self, reason: &str) -> Self {
        reason.clone_into(&mut self.event.reason);
        self
    }

    /// The decision and policy that a row holds.
    pub(super) fn decided(mut self, decision_id: &str, policy_revision: &str) -> Self {
        decision_id.clone_into(&mut self.event.decision_id);
        policy_revision.clone_into(&mut self.event.policy_revision);
        self
    }

    /// One more detail. Never text of a bundle.
    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.detail.insert(key.to_owned(), value.into());
        self
    }

    /// What a bundle is, in numbers and hashes.
    pub(super) fn bundle(self, row: &StoredSubmission) -> Self {
        self.with("kind", row.kind.as_str())
            .with("attempt", row.attempt)
            .with("bundle_sha256", row.bundle_sha256.as_str())
            .with("file_size", row.file_size)
            .with("file_count", row.file_count)
    }

    /// The rules that fired, each once.
    pub(super) fn rules(self, checks: &BundleChecks) -> Self {
        let mut rules: Vec<&str> = [&checks.archive, &checks.manifest, &checks.static_security]
            .iter()
            .flat_map(|check| &check.findings)
            .filter(|finding| finding.is_effective())
            .map(|finding| finding.rule_id.as_str())
            .collect();
        rules.sort_unstable();
        rules.dedup();
        rules.truncate(50);
        self.with("rules", json!(rules))
    }

    pub(super) fn finish(mut self) -> NewAuditEvent {
        self.event.detail_json = Value::Object(self.detail).to_string();
        self.event
    }
}

/// The name of a submission in events.
pub(super) fn submission(id: &str) -> String {
    format!("submission:{id}")
}

/// The name of an entity in events.
pub(super) fn entity(id: &str) -> String {
    format!("entity:{id}")
}

/// What an event says to a person: its reason, and what of its details matters to an uploader.
pub(super) fn sentence(event: &NewAuditEvent) -> String {
    let detail: Value = serde_json::from_str(&event.detail_json).unwrap_or_default();
    let text = |key: &str| detail.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut parts = Vec::new();
    if !event.reason.is_empty() {
        parts.push(event.reason.clone());
    }
    for (key, label) in
        [("prior_status", "was"), ("hold_reason", "held for"), ("risk_level", "risk"), ("error", "")]
    {
        match text(key) {
            Some(value) if label.is_empty() => parts.push(value.to_owned()),
            Some(value) => parts.push(format!("{label} {value}")),
            None => {}
        }
    }
    let rules = detail.get("rules").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let rules: Vec<&str> = rules.iter().filter_map(Value::as_str).collect();
    if !rules.is_empty() {
        parts.push(rules.join(", "));
    }
    parts.join("; ")
}

/// The action that tells of a verdict.
pub(super) const fn action_of(status: SubmissionStatus) -> Option<Action> {
    match status {
        SubmissionStatus::BlockedInline => Some(Action::BlockedInline),
        SubmissionStatus::Approved => Some(Action::Approved),
        SubmissionStatus::BlockedLlm => Some(Action::BlockedLlm),
        SubmissionStatus::ReviewError => Some(Action::ReviewError),
        SubmissionStatus::Overridden => Some(Action::Overridden),
        SubmissionStatus::Deleted => Some(Action::Deleted),
        SubmissionStatus::PendingInline | SubmissionStatus::PendingLlm => None,
    }
}
