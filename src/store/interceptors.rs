//! The repository of interceptors that were added by API.

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::StoreError;

/// An interceptor to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInterceptor {
    /// Tenant it belongs to; empty when it holds for every tenant.
    pub tenant: String,
    /// Its id, unique within the tenant.
    pub id: String,
    /// Who added it.
    pub creator: String,
    /// When it was added; kept to the microsecond.
    pub created: Timestamp,
    /// What it does, as the JSON form of the contract's `Interceptor`. The store does not look into it.
    pub definition: String,
}

/// An interceptor as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredInterceptor {
    /// Order of registration: later ones have larger numbers, and no number is given twice.
    pub sequence: i64,
    /// Tenant it belongs to; empty when it holds for every tenant.
    pub tenant: String,
    /// Its id, unique within the tenant.
    pub id: String,
    /// Who added it.
    pub creator: String,
    /// When it was added.
    pub created: Timestamp,
    /// What it does, as the JSON form of the contract's `Interceptor`.
    pub definition: String,
}

/// All interceptors of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredInterceptors {
    /// Raised by every change; equal revisions of one database mean equal contents.
    pub revision: i64,
    /// In order of registration.
    pub interceptors: Vec<StoredInterceptor>,
}

/// Keeps interceptors. A change that was answered with `Ok` is on the disk.
pub trait InterceptorStore: Send + Sync {
    /// The revision, which is cheap to ask for often.
    fn revision(&self) -> BoxFuture<'_, Result<i64, StoreError>>;

    /// Everything, as of one moment.
    fn load(&self) -> BoxFuture<'_, Result<StoredInterceptors, StoreError>>;

    /// Adds one. Its id being taken in its tenant is [`StoreError::AlreadyExists`], whoever took it.
    fn add(&self, new: NewInterceptor) -> BoxFuture<'_, Result<StoredInterceptor, StoreError>>;

    /// Removes those of a tenant that have one of `ids`, all at once; answers those that were there, in order of
    /// registration.
    fn remove(
        &self,
        tenant: String,
        ids: Vec<String>,
    ) -> BoxFuture<'_, Result<Vec<StoredInterceptor>, StoreError>>;
}
