//! Why the store cannot do what it was asked to.

use std::path::PathBuf;

/// Why the store cannot do what it was asked to. Every message names the database and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be made or opened.
    #[error(
        "store `{path}` cannot be opened: {cause}; `store.path` must name a file in a folder that this user may write"
    )]
    Open {
        /// The database.
        path: PathBuf,
        /// What the system or the database said.
        cause: String,
    },
    /// It can be read but not written.
    #[error(
        "store `{path}` cannot be written: {cause}; make the file and its folder writable for this user, and the disk not full"
    )]
    ReadOnly {
        /// The database.
        path: PathBuf,
        /// What the database said.
        cause: String,
    },
    /// What is in the file is no database, or a damaged one.
    #[error(
        "store `{path}` is damaged: {cause}; put back a copy, or move the file away to start with an empty one"
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What the database said.
        cause: String,
    },
    /// The tables are not those of this release.
    #[error(
        "store `{path}` was written by another release: {cause}; run that release, or give this one a `store.path` of its own"
    )]
    Schema {
        /// The database.
        path: PathBuf,
        /// What differs.
        cause: String,
    },
    /// Somebody else held the database for longer than the settings allow.
    #[error("store `{path}` is busy: {cause}; try again, or raise `store.busy_timeout`")]
    Busy {
        /// The database.
        path: PathBuf,
        /// What the database said.
        cause: String,
    },
    /// An access failed for another reason.
    #[error("store `{path}`: {cause}; check the disk, then look whether the last change was made")]
    Access {
        /// The database.
        path: PathBuf,
        /// What the database said.
        cause: String,
    },
    /// There is one with this id already.
    #[error("interceptor `{id}` exists already")]
    AlreadyExists {
        /// The id.
        id: String,
    },
}
