//! What outlives the process: repositories over a database, which nobody outside of here names.
//!
//! A repository is a trait in terms of the domain; [`open`] gives those over embedded SQLite or PostgreSQL, [`open_bytes`]
//! the place of bundle bytes. What they acknowledged is on the disk: a kill at any moment loses nothing of it. Processes that share the database see each other's changes by
//! a revision that every change raises, and ids are kept unique by the database, not by whoever asked first.

mod audit_events;
mod bytes;
mod config;
mod error;
mod incident_writer;
mod incidents;
mod interceptors;
mod rule_counts;
mod sql;
mod submissions;
/// A PostgreSQL database for each test that asks for one.
#[cfg(test)]
#[path = "../../tests/support/postgres.rs"]
pub(crate) mod test_postgres;

pub use audit_events::{
    AuditFilter, AuditPage, AuditQuery, AuditStore, ChainReport, KnownEnd, NewAuditEvent,
};
pub use bytes::{BundleBytes, BytesError, KeptBytes, S3Config, open as open_bytes};
pub use config::Config;
pub use error::StoreError;
pub use incident_writer::{IncidentWriter, WriterHooks};
pub use incidents::{
    IncidentCounts, IncidentFilter, IncidentKey, IncidentPage, IncidentPlace, IncidentQuery, IncidentStore,
    IncidentsConfig, KeptIncident, KeyValue, RuleCounts, StatsQuery,
};
pub use interceptors::{InterceptorStore, NewInterceptor, StoredInterceptor, StoredInterceptors};
pub use rule_counts::{DayCount, RuleCount, RuleCountStore, RuleCounter};
pub use sql::{SqlStore, with_patience};
pub use submissions::{
    AcceptError, AcceptedEntity, ArchivedFilter, AttemptWrite, Change, ChecksBrief, EntityFilter, EntityKey,
    EntityPage, EntityQuery, EntityWrite, Lease, ListedEntity, ListedSubmission, NewSubmission, Override,
    PURGED_STATUSES, Place, QUOTA_STATUSES, Quota, ReviewBrief, SEARCHED_MAX, StatusCount, StoredAttempt,
    StoredEntity, StoredSubmission, SubmissionFilter, SubmissionKey, SubmissionPage, SubmissionQuery,
    SubmissionStore, SubmissionWrite, VerdictEntry, VerdictKey, WAITING_STATUSES,
};

use std::path::Path;
use std::sync::Arc;

/// The repositories over one database.
#[derive(Clone)]
pub struct Repositories {
    /// Interceptors that were added by API.
    pub interceptors: Arc<dyn InterceptorStore>,
    /// Incidents of the stream monitor.
    pub incidents: Arc<dyn IncidentStore>,
    /// Submissions, their attempts and their entities.
    pub submissions: Arc<dyn SubmissionStore>,
    /// Administrative events.
    pub audit: Arc<dyn AuditStore>,
    /// What each rule found, day by day.
    pub rule_counts: Arc<dyn RuleCountStore>,
}

/// Opens the database of the settings, and brings it to the form that this release needs. `default` is the SQLite file if
/// they name none; one that is missing is made.
///
/// # Errors
/// The database cannot be made, reached, read or written, is damaged, or was written by a newer release.
pub async fn open(config: &Config, default: &Path) -> Result<Repositories, StoreError> {
    let store = Arc::new(SqlStore::open(config, default).await?);
    Ok(Repositories {
        interceptors: store.clone(),
        incidents: store.clone(),
        submissions: store.clone(),
        audit: store.clone(),
        rule_counts: store,
    })
}
