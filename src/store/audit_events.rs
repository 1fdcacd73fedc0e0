//! The repository of administrative events: append-only, each linked to the one before by a hash.
//!
//! Each tenant has a chain of its own. A hash covers every field of its event and the hash before it, so that an event
//! that was changed, removed or put in between later is found ([`AuditStore::verify_audit`]). That tells of a change in
//! the database, it does not prevent one by whoever owns it: keep the last hash elsewhere for that.

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::{KeyValue, Place, StoreError};

/// An administrative event to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewAuditEvent {
    /// Id (UUIDv7); one that is there already is an error.
    pub id: String,
    /// When.
    pub time: Timestamp,
    /// What, such as `store.submission.overridden`.
    pub action: String,
    /// Who: an identity, or `system`.
    pub actor: String,
    /// Tenant it belongs to.
    pub tenant: String,
    /// What it is about, as kind and id, such as `submission:…`.
    pub resource: String,
    /// The reason that was given; may be empty.
    pub reason: String,
    /// A JSON object as text, secrets masked; may be empty.
    pub detail_json: String,
    /// The decision it goes with; may be empty.
    pub decision_id: String,
    /// Revision of the policy in force; may be empty.
    pub policy_revision: String,
    /// The caller's own id of the request; may be empty.
    pub request_id: String,
}

/// Which events. What is `None` or empty lets every one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only these actions; one that ends in `.` stands for all that begin so.
    pub actions: Vec<String>,
    /// Only those of this actor.
    pub actor: String,
    /// Only those about this.
    pub resource: String,
    /// Only those of this decision.
    pub decision_id: String,
    /// Only those at or after this time.
    pub start: Option<Timestamp>,
    /// Only those before this time.
    pub end: Option<Timestamp>,
}

/// One page of events, ordered by time. Equal ones are ordered by id.
#[derive(Clone, Debug)]
pub struct AuditQuery {
    /// Whose.
    pub tenant: String,
    /// Which of them.
    pub filter: AuditFilter,
    /// Whether later ones come first.
    pub is_descending: bool,
    /// Where the page before ended; `None` asks for the first. Its value is a number: microseconds.
    pub after: Option<Place>,
    /// How many at most.
    pub limit: usize,
}

/// The answer to an [`AuditQuery`].
#[derive(Clone, Debug)]
pub struct AuditPage {
    /// In the order asked for.
    pub events: Vec<NewAuditEvent>,
    /// Where the next page begins; `None` when this is the last.
    pub next: Option<Place>,
}

/// The end of a chain as somebody noted it elsewhere, so that nobody can put another chain in its place. The default
/// knows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownEnd {
    /// Events that the chain had then; 0 for none known.
    pub length: u64,
    /// Hash of the last of them, hex.
    pub last_hash: String,
}

/// What a check of a chain found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainReport {
    /// Events in it.
    pub length: u64,
    /// Hash of the last one, hex; empty when there is none.
    pub last_hash: String,
    /// Number, from 1, of the first event that is not as it was written, or missing; of the end that was noted, where that
    /// is not what is there.
    pub broken_at: Option<u64>,
}

/// Keeps administrative events.
pub trait AuditStore: Send + Sync {
    /// Appends events that no change of the store goes with. All or none.
    fn append_audit(&self, events: Vec<NewAuditEvent>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// One page of events.
    fn audit_events(&self, query: AuditQuery) -> BoxFuture<'_, Result<AuditPage, StoreError>>;

    /// Events about any of these, oldest first.
    fn audit_events_of(
        &self,
        tenant: String,
        resources: Vec<String>,
    ) -> BoxFuture<'_, Result<Vec<NewAuditEvent>, StoreError>>;

    /// Tenants that have events, in order; the empty one is the default tenant.
    fn audit_tenants(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>>;

    /// Computes every hash of a tenant's chain again, and compares it with an end that was noted elsewhere.
    fn verify_audit(&self, tenant: String, known: KnownEnd)
    -> BoxFuture<'_, Result<ChainReport, StoreError>>;
}

impl NewAuditEvent {
    /// Where it stands in a list.
    pub fn place(&self) -> Place {
        Place { value: KeyValue::Number(self.time.as_microsecond()), id: self.id.clone() }
    }
}
