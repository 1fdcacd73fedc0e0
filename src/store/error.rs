//! Why the store cannot do what it was asked to.

/// Why the store cannot do what it was asked to. Every message names the database and what to do. `place` is the path of
/// the file, or the URL of the server without its password.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The settings that name the database cannot be used.
    #[error("the settings of the store cannot be used: {cause}")]
    Settings {
        /// What is wrong; holds no secret.
        cause: String,
    },
    /// The file cannot be made or opened.
    #[error(
        "store `{place}` cannot be opened: {cause}; `store.path` must name a file in a folder that this user may write"
    )]
    Open {
        /// The database.
        place: String,
        /// What the system or the database said.
        cause: String,
    },
    /// The server cannot be reached, is full, is about to stop, or does not let us in.
    #[error(
        "store `{place}` cannot be reached: {cause}; check `store.url`, that PostgreSQL runs there, and that it lets this user in"
    )]
    Unreachable {
        /// The database.
        place: String,
        /// What the system or the database said.
        cause: String,
    },
    /// It can be read but not written.
    #[error(
        "store `{place}` cannot be written: {cause}; this user must be allowed to write there, and the disk not full"
    )]
    ReadOnly {
        /// The database.
        place: String,
        /// What the database said.
        cause: String,
    },
    /// What is there is no database, or a damaged one.
    #[error("store `{place}` is damaged: {cause}; put back a copy, or start with an empty one")]
    Damaged {
        /// The database.
        place: String,
        /// What the database said.
        cause: String,
    },
    /// The tables are not those of this release.
    #[error(
        "store `{place}` was written by another release: {cause}; run that release, or give this one a store of its own"
    )]
    Schema {
        /// The database.
        place: String,
        /// What differs.
        cause: String,
    },
    /// Somebody else held what was needed for longer than the settings allow.
    #[error(
        "store `{place}` is busy: {cause}; try again, or raise `store.busy_timeout` or `store.statement_timeout`"
    )]
    Busy {
        /// The database.
        place: String,
        /// What the database said.
        cause: String,
    },
    /// The database refused what would break one of its rules, such as a change of an attempt that has ended.
    #[error("store `{place}` refused a write: {cause}; nothing was written")]
    Refused {
        /// The database.
        place: String,
        /// The rule.
        cause: String,
    },
    /// A text is longer than what can be searched by.
    #[error("`{column}` takes {limit} bytes, and got {found}; nothing was written: shorten it")]
    TooLong {
        /// Table and column.
        column: &'static str,
        /// Bytes that it got.
        found: usize,
        /// Bytes that it takes.
        limit: usize,
    },
    /// An access failed for another reason.
    #[error("store `{place}`: {cause}; check the database, then look whether the last change was made")]
    Access {
        /// The database.
        place: String,
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

impl StoreError {
    /// Whether the same may well work a little later: the database is busy, or cannot be reached at the moment.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Unreachable { .. })
    }
}
