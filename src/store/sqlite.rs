//! The repository over embedded SQLite.

mod incidents;
#[cfg(test)]
#[path = "tests.rs"]
mod tests;

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow, SqliteSynchronous,
};
use sqlx::{Error, Row, SqlSafeStr, Sqlite, Transaction};

use super::{Config, InterceptorStore, NewInterceptor, StoreError, StoredInterceptor, StoredInterceptors};

/// Connections at most. There is one writer at a time anyway.
const CONNECTIONS_MAX: u32 = 4;

/// How often two processes that make the database at the same moment give way to each other.
const OPEN_ATTEMPTS: u32 = 20;
/// Pause before another attempt.
const OPEN_PAUSE: Duration = Duration::from_millis(50);

/// Takes the write lock at once: a transaction that reads first could find it taken when it wants to write.
const BEGIN_WRITE: &str = "BEGIN IMMEDIATE";

const COLUMNS_BY_SEQUENCE: &str =
    "SELECT sequence, tenant, id, creator, create_time_us, definition FROM interceptor ORDER BY sequence";

/// The repositories over one SQLite file.
pub struct SqliteStore {
    pool: SqlitePool,
    path: PathBuf,
}

impl SqliteStore {
    /// Opens or makes the database, checks it, and brings it to the form that this release needs.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn open(config: &Config, path: &Path) -> Result<Self, StoreError> {
        make_private(path)
            .map_err(|error| StoreError::Open { path: path.to_owned(), cause: error.to_string() })?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(false)
            .journal_mode(SqliteJournalMode::Wal)
            // With anything less a change that was acknowledged could be lost by a power cut.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(config.busy_timeout)
            .foreign_keys(true);
        let mut attempt = 1;
        loop {
            match Self::try_open(&options, path, config.busy_timeout).await {
                // Two processes that make the database in the same moment get in each other's way, once.
                Err(StoreError::Busy { .. } | StoreError::Access { .. }) if attempt < OPEN_ATTEMPTS => {
                    attempt += 1;
                    tokio::time::sleep(OPEN_PAUSE).await;
                }
                result => return result,
            }
        }
    }

    async fn try_open(
        options: &SqliteConnectOptions,
        path: &Path,
        busy_timeout: Duration,
    ) -> Result<Self, StoreError> {
        let pool = SqlitePoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .acquire_timeout(busy_timeout.max(Duration::from_secs(1)) * 2)
            .connect_with(options.clone())
            .await
            .map_err(|error| classify(path, &error))?;
        let store = Self { pool, path: path.to_owned() };
        store.check_integrity().await?;
        store.migrate().await?;
        store.check_writable().await?;
        Ok(store)
    }

    /// Looks for damage now, not at the first access that stumbles over it.
    async fn check_integrity(&self) -> Result<(), StoreError> {
        let said: String = sqlx::query_scalar("PRAGMA quick_check(1)")
            .fetch_one(&self.pool)
            .await
            .map_err(|error| self.failed(&error))?;
        if said == "ok" { Ok(()) } else { Err(StoreError::Damaged { path: self.path.clone(), cause: said }) }
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        migrator().run(&self.pool).await.map_err(|error| match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => self.failed(&error),
            other => StoreError::Schema { path: self.path.clone(), cause: other.to_string() },
        })
    }

    /// A file that can only be read is found out here and not by the first caller who wants to change something.
    async fn check_writable(&self) -> Result<(), StoreError> {
        let mut write = self.write().await?;
        self.raise_revision(&mut write, 0).await?;
        write.rollback().await.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &Error) -> StoreError {
        classify(&self.path, error)
    }

    async fn write(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.pool.begin_with(BEGIN_WRITE).await.map_err(|error| self.failed(&error))
    }

    async fn commit(&self, write: Transaction<'static, Sqlite>) -> Result<(), StoreError> {
        write.commit().await.map_err(|error| self.failed(&error))
    }

    async fn raise_revision(
        &self,
        write: &mut Transaction<'static, Sqlite>,
        by: i64,
    ) -> Result<(), StoreError> {
        sqlx::query("UPDATE interceptor_revision SET revision = revision + ? WHERE only_row = 1")
            .bind(by)
            .execute(&mut **write)
            .await
            .map_err(|error| self.failed(&error))?;
        Ok(())
    }

    async fn revision_now(&self) -> Result<i64, StoreError> {
        sqlx::query_scalar("SELECT revision FROM interceptor_revision WHERE only_row = 1")
            .fetch_one(&self.pool)
            .await
            .map_err(|error| self.failed(&error))
    }

    async fn load_now(&self) -> Result<StoredInterceptors, StoreError> {
        // One transaction, so that the revision is that of the rows.
        let mut read = self.pool.begin().await.map_err(|error| self.failed(&error))?;
        let revision = sqlx::query_scalar("SELECT revision FROM interceptor_revision WHERE only_row = 1")
            .fetch_one(&mut *read)
            .await
            .map_err(|error| self.failed(&error))?;
        let rows = sqlx::query(COLUMNS_BY_SEQUENCE)
            .fetch_all(&mut *read)
            .await
            .map_err(|error| self.failed(&error))?;
        let interceptors =
            rows.iter().map(stored).collect::<Result<_, _>>().map_err(|error| self.failed(&error))?;
        Ok(StoredInterceptors { revision, interceptors })
    }

    async fn add_now(&self, new: NewInterceptor) -> Result<StoredInterceptor, StoreError> {
        let mut write = self.write().await?;
        let created_us = new.created.as_microsecond();
        let inserted = sqlx::query_scalar(
            "INSERT INTO interceptor (tenant, id, creator, create_time_us, definition) VALUES (?, ?, ?, ?, ?) \
             RETURNING sequence",
        )
        .bind(&new.tenant)
        .bind(&new.id)
        .bind(&new.creator)
        .bind(created_us)
        .bind(&new.definition)
        .fetch_one(&mut *write)
        .await;
        let sequence = inserted.map_err(|error| match error.as_database_error() {
            Some(of_database) if of_database.is_unique_violation() => {
                StoreError::AlreadyExists { id: new.id.clone() }
            }
            _ => self.failed(&error),
        })?;
        self.raise_revision(&mut write, 1).await?;
        self.commit(write).await?;
        let NewInterceptor { tenant, id, creator, created, definition } = new;
        let created = Timestamp::from_microsecond(created_us).unwrap_or(created);
        Ok(StoredInterceptor { sequence, tenant, id, creator, created, definition })
    }

    async fn remove_now(&self, tenant: &str, ids: &[String]) -> Result<Vec<StoredInterceptor>, StoreError> {
        let mut write = self.write().await?;
        let mut removed = Vec::new();
        for id in ids {
            let row = sqlx::query(
                "DELETE FROM interceptor WHERE tenant = ? AND id = ? \
                 RETURNING sequence, tenant, id, creator, create_time_us, definition",
            )
            .bind(tenant)
            .bind(id)
            .fetch_optional(&mut *write)
            .await
            .map_err(|error| self.failed(&error))?;
            if let Some(row) = row {
                removed.push(stored(&row).map_err(|error| self.failed(&error))?);
            }
        }
        if removed.is_empty() {
            write.rollback().await.map_err(|error| self.failed(&error))?;
        } else {
            self.raise_revision(&mut write, 1).await?;
            self.commit(write).await?;
        }
        removed.sort_by_key(|one: &StoredInterceptor| one.sequence);
        Ok(removed)
    }
}

impl InterceptorStore for SqliteStore {
    fn revision(&self) -> BoxFuture<'_, Result<i64, StoreError>> {
        self.revision_now().boxed()
    }

    fn load(&self) -> BoxFuture<'_, Result<StoredInterceptors, StoreError>> {
        self.load_now().boxed()
    }

    fn add(&self, new: NewInterceptor) -> BoxFuture<'_, Result<StoredInterceptor, StoreError>> {
        self.add_now(new).boxed()
    }

    fn remove(
        &self,
        tenant: String,
        ids: Vec<String>,
    ) -> BoxFuture<'_, Result<Vec<StoredInterceptor>, StoreError>> {
        async move { self.remove_now(&tenant, &ids).await }.boxed()
    }
}

/// Every step from an empty database to that of this release.
fn migrator() -> Migrator {
    let steps = [
        (1, "interceptors", include_str!("migrations/sqlite/0001_interceptors.sql")),
        (2, "incidents", include_str!("migrations/sqlite/0002_incidents.sql")),
    ];
    let migrations = steps.map(|(version, description, sql)| {
        Migration::new(version, description.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    Migrator::with_migrations(migrations.into())
}

/// Makes an empty file for its owner alone, and its folder; the files beside it get the same mode from SQLite.
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    if path.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(|_| ()),
    }
}

fn stored(row: &SqliteRow) -> Result<StoredInterceptor, Error> {
    let created: i64 = row.try_get("create_time_us")?;
    Ok(StoredInterceptor {
        sequence: row.try_get("sequence")?,
        tenant: row.try_get("tenant")?,
        id: row.try_get("id")?,
        creator: row.try_get("creator")?,
        created: Timestamp::from_microsecond(created).map_err(|error| Error::Decode(error.into()))?,
        definition: row.try_get("definition")?,
    })
}

/// What an operator can do depends on the primary result code, the low byte of SQLite's code.
fn classify(path: &Path, error: &Error) -> StoreError {
    const BUSY: i64 = 5;
    const LOCKED: i64 = 6;
    const READ_ONLY: i64 = 8;
    const IO: i64 = 10;
    const CORRUPT: i64 = 11;
    const FULL: i64 = 13;
    const CANNOT_OPEN: i64 = 14;
    const NO_DATABASE: i64 = 26;
    let path = path.to_owned();
    let cause = error.to_string();
    let code = error.as_database_error().and_then(|e| e.code()).and_then(|code| code.parse::<i64>().ok());
    match (code.map(|code| code & 0xff), error) {
        (Some(BUSY | LOCKED), _) | (_, Error::PoolTimedOut) => StoreError::Busy { path, cause },
        (Some(READ_ONLY | FULL | IO), _) => StoreError::ReadOnly { path, cause },
        (Some(CORRUPT | NO_DATABASE), _) | (_, Error::Decode(_) | Error::ColumnDecode { .. }) => {
            StoreError::Damaged { path, cause }
        }
        (Some(CANNOT_OPEN), _) => StoreError::Open { path, cause },
        _ => StoreError::Access { path, cause },
    }
}
