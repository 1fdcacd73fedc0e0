//! The bytes of bundles: archives exactly as they were uploaded, keyed by submission.

mod config;
mod objects;
#[cfg(test)]
mod tests;

pub use config::S3Config;

use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        "bundle store `{place}`: {cause}; check `store.bundles`, its credentials and that it can be reached"
    )]
    Access {
        /// Folder or URL, without credentials.
        place: String,
        /// What it said.
        cause: String,
    },
}

/// Where bytes are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) enum Place {
    /// A folder of this machine, or one that several share.
    Folder(PathBuf),
    /// S3, or what speaks like it.
    S3 {
        /// The bucket.
        bucket: String,
        /// What comes before each name; may be empty, no `/` at its ends.
        prefix: String,
    },
}

impl Place {
    /// Reads a `store.bundles`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(in crate::store) fn parse(text: &str) -> Result<Self, &'static str> {
        const FORMS: &str = "must name a folder, or a bucket as s3://bucket/prefix";
        let Some(rest) = text.strip_prefix("s3://") else {
            let is_folder = !text.trim().is_empty() && !text.contains("://");
            return if is_folder { Ok(Self::Folder(text.into())) } else { Err(FORMS) };
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let is_prefix = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
        if bucket.is_empty() || !bucket.chars().all(is_name) || !prefix.chars().all(is_prefix) {
            return Err(FORMS);
        }
        Ok(Self::S3 { bucket: bucket.to_owned(), prefix: prefix.trim_matches('/').to_owned() })
    }
}

/// Opens the place of the settings, `default` if they name none; makes a folder that is missing, for its owner alone.
///
/// # Errors
/// The folder cannot be made, or the settings of S3 cannot be used. S3 itself is not asked.
pub fn open(config: &super::Config, default: &Path) -> Result<Arc<dyn BundleBytes>, BytesError> {
    if config.is_shared() && config.bundles.is_none() {
        tracing::warn!(
            folder = %default.display(),
            "store.url names a database that several replicas can share, and store.bundles names no place: bundles lie \
             in a folder of this replica, where others cannot read them"
        );
    }
    let place = match config.bundles.as_deref().map(Place::parse) {
        None => Place::Folder(default.to_owned()),
        Some(Ok(place)) => place,
        Some(Err(cause)) => {
            let place = config.bundles.clone().unwrap_or_default();
            return Err(BytesError::Access { place, cause: cause.to_owned() });
        }
    };
    Ok(Arc::new(objects::Objects::open(place, &config.s3)?))
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
