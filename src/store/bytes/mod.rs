//! The bytes of bundles: archives exactly as they were uploaded, keyed by submission.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

/// An archive as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptBytes {
    /// The submission it belongs to.
    pub submission_id: String,
    /// Size in bytes.
    pub size: u64,
    /// When it was written.
    pub written: Timestamp,
}

/// Why bytes cannot be kept or read. Every message names the place and what to do.
#[derive(Debug, thiserror::Error)]
pub enum BytesError {
    /// There are none for this submission.
    #[error("there are no bytes of submission `{id}`")]
    NotFound {
        /// The submission.
        id: String,
    },
    /// There are some for this submission already; they are never replaced.
    #[error("there are bytes of submission `{id}` already")]
    AlreadyExists {
        /// The submission.
        id: String,
    },
    /// The id cannot be a key.
    #[error("`{id}` is no id of a submission")]
    BadId {
        /// What was given.
        id: String,
    },
    /// A file of this machine cannot be read or written.
    #[error("`{path}`: {cause}; check the folder and its disk")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// The place where they are kept does not do what it was asked to.
    #[error(
        "bundle store `{place}`: {cause}; check `bundles.store_url`, its credentials and that it can be reached"
    )]
    Access {
        /// Folder or URL, without credentials.
        place: String,
        /// What it said.
        cause: String,
    },
}

/// Keeps the bytes of bundles. What was answered with `Ok` is durable. No method holds a whole archive in memory.
pub trait BundleBytes: Send + Sync {
    /// Keeps a copy of a file, never over bytes that are there.
    fn put_file(&self, id: String, file: PathBuf) -> BoxFuture<'_, Result<(), BytesError>>;

    /// Copies them into a new file, for its owner alone; answers its size. A file of that name is an error.
    fn get_file(&self, id: String, file: PathBuf) -> BoxFuture<'_, Result<u64, BytesError>>;

    /// Deletes them; that there are none is no error.
    fn delete(&self, id: String) -> BoxFuture<'_, Result<(), BytesError>>;

    /// Whether there are some.
    fn exists(&self, id: String) -> BoxFuture<'_, Result<bool, BytesError>>;

    /// Everything that is kept, in no order.
    fn list(&self) -> BoxFuture<'_, Result<Vec<KeptBytes>, BytesError>>;

    /// Removes what interrupted writes left behind and is older than `before`; answers how many files.
    fn sweep_unfinished(&self, before: Timestamp) -> BoxFuture<'_, Result<u64, BytesError>>;
}
