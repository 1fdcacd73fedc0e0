//! What outlives the process: repositories over a database, which nobody outside of here names.
//!
//! A repository is a trait in terms of the domain; [`open`] gives the one over embedded SQLite. What it acknowledged is
//! on the disk: a kill at any moment loses nothing of it. Processes that share the database see each other's changes by
//! a revision that every change raises, and ids are kept unique by the database, not by whoever asked first.

mod audit_events;
mod bytes;
mod config;
mod error;
mod incident_writer;
mod incidents;
mod interceptors;
mod sqlite;
mod submissions;

pub use audit_events::{AuditFilter, AuditPage, AuditQuery, AuditStore, ChainReport, NewAuditEvent};
pub use bytes::{BundleBytes, BytesError, KeptBytes};
pub use config::Config;
pub use error::StoreError;
pub use incident_writer::{IncidentWriter, WriterHooks};
pub use incidents::{
    IncidentCounts, IncidentFilter, IncidentKey, IncidentPage, IncidentPlace, IncidentQuery, IncidentStore,
    IncidentsConfig, KeptIncident, KeyValue, RuleCounts, StatsQuery,
};
pub use interceptors::{InterceptorStore, NewInterceptor, StoredInterceptor, StoredInterceptors};
pub use sqlite::SqliteStore;
pub use submissions::{
    AcceptError, AcceptedEntity, ArchivedFilter, AttemptWrite, Change, EntityFilter, EntityKey, EntityPage,
    EntityQuery, EntityWrite, Lease, ListedEntity, ListedSubmission, NewSubmission, Override,
    PURGED_STATUSES, Place, QUOTA_STATUSES, Quota, StatusCount, StoredAttempt, StoredEntity,
    StoredSubmission, SubmissionFilter, SubmissionKey, SubmissionPage, SubmissionQuery, SubmissionStore,
    SubmissionWrite, VerdictEntry, VerdictKey, WAITING_STATUSES,
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
}

/// Opens the database in `path`, makes it if it is missing, and brings it to the form that this release needs.
///
/// # Errors
/// The file cannot be made, read or written, is damaged, or was written by a newer release.
pub async fn open(config: &Config, path: &Path) -> Result<Repositories, StoreError> {
    let store = Arc::new(SqliteStore::open(config, path).await?);
    Ok(Repositories { interceptors: store.clone(), incidents: store })
}
