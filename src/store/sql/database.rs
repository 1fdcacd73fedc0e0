//! The two engines behind one face: pools, transactions, and what an error of either means to an operator.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgPool;
use sqlx::sqlite::SqlitePool;
use sqlx::{Error, Postgres, Sqlite};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::statement::{Row, Statement};
use crate::store::StoreError;

/// Takes the write lock at once: a transaction that reads first could find it taken when it wants to write.
const SQLITE_WRITE: &str = "BEGIN IMMEDIATE";
const SQLITE_READ: &str = "BEGIN";
/// Statements see what others committed before them; what must not change under us is compared or locked.
const POSTGRES_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
/// All statements see one moment.
const POSTGRES_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Which database program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Sqlite,
    Postgres,
}

tokio::task_local! {
    /// How long whoever asks waits for a database on another machine to be there.
    static PATIENCE: Duration;
}

/// Does `asking` for somebody who waits no longer than `patience` for a connection to a database on another machine, where
/// the settings let others wait longer. What a statement takes is not limited by it.
pub async fn with_patience<F: Future>(patience: Duration, asking: F) -> F::Output {
    PATIENCE.scope(patience, asking).await
}

/// A database that is open.
pub(super) struct Database {
    pools: Pools,
    /// The file, or the URL without its password.
    place: String,
}

pub(super) enum Pools {
    Sqlite {
        pool: SqlitePool,
        /// SQLite has one writer at a time, and those that wait for it poll. Here they stand in a line instead.
        line: Arc<Mutex<()>>,
        /// Longest wait in the line.
        patience: Duration,
    },
    Postgres(PgPool),
}

/// A transaction; dropped without a commit, it leaves nothing.
pub(super) struct Transaction<'d> {
    inner: Inner,
    place: &'d str,
}

enum Inner {
    Sqlite(sqlx::Transaction<'static, Sqlite>, Option<OwnedMutexGuard<()>>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

impl Database {
    pub(super) fn new(pools: Pools, place: String) -> Self {
        Self { pools, place }
    }

    pub(super) fn engine(&self) -> Engine {
        match self.pools {
            Pools::Sqlite { .. } => Engine::Sqlite,
            Pools::Postgres(_) => Engine::Postgres,
        }
    }

    pub(super) fn pools(&self) -> &Pools {
        &self.pools
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn failed(&self, error: &Error) -> StoreError {
        classify(&self.place, error)
    }

    /// Waits until the database on another machine gives a connection, for those who do not wait as long as the pool
    /// would. Asked before anything is begun, so that nothing is cut off half done.
    async fn is_there(&self) -> Result<(), StoreError> {
        let (Pools::Postgres(pool), Ok(patience)) = (&self.pools, PATIENCE.try_with(|patience| *patience))
        else {
            return Ok(());
        };
        let connected = tokio::time::timeout(patience, pool.acquire()).await;
        connected.unwrap_or(Err(Error::PoolTimedOut)).map(drop).map_err(|error| self.failed(&error))
    }

    /// A transaction that writes.
    pub(super) async fn write(&self) -> Result<Transaction<'_>, StoreError> {
        self.is_there().await?;
        let inner = match &self.pools {
            Pools::Sqlite { pool, line, patience } => {
                let Ok(turn) = tokio::time::timeout(*patience, line.clone().lock_owned()).await else {
                    let cause = "too many writers of this process wait".to_owned();
                    return Err(StoreError::Busy { place: self.place.clone(), cause });
                };
                pool.begin_with(SQLITE_WRITE).await.map(|begun| Inner::Sqlite(begun, Some(turn)))
            }
            Pools::Postgres(pool) => pool.begin_with(POSTGRES_WRITE).await.map(Inner::Postgres),
        };
        let inner = inner.map_err(|error| self.failed(&error))?;
        Ok(Transaction { inner, place: &self.place })
    }

    /// A transaction that reads, all of it as of one moment.
    pub(super) async fn read(&self) -> Result<Transaction<'_>, StoreError> {
        self.is_there().await?;
        let inner = match &self.pools {
            Pools::Sqlite { pool, .. } => {
                pool.begin_with(SQLITE_READ).await.map(|begun| Inner::Sqlite(begun, None))
            }
            Pools::Postgres(pool) => pool.begin_with(POSTGRES_READ).await.map(Inner::Postgres),
        };
        let inner = inner.map_err(|error| self.failed(&error))?;
        Ok(Transaction { inner, place: &self.place })
    }

    /// The rows of one statement that reads.
    pub(super) async fn rows(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        self.is_there().await?;
        let rows = match &self.pools {
            Pools::Sqlite { pool, .. } => {
                let rows = statement.for_sqlite().fetch_all(pool).await;
                rows.map(|rows| rows.into_iter().map(Row::Sqlite).collect())
            }
            Pools::Postgres(pool) => {
                let rows = statement.for_postgres().fetch_all(pool).await;
                rows.map(|rows| rows.into_iter().map(Row::Postgres).collect())
            }
        };
        rows.map_err(|error| self.failed(&error))
    }

    /// The first row of one statement that reads.
    pub(super) async fn row(&self, statement: Statement) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// The rows of one statement that writes, as a transaction of its own.
    pub(super) async fn write_one(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        if let Pools::Postgres(_) = self.pools {
            return self.rows(statement).await;
        }
        let mut write = self.write().await?;
        let rows = write.rows(statement).await?;
        write.commit().await?;
        Ok(rows)
    }
}

impl Transaction<'_> {
    fn failed(&self, error: &Error) -> StoreError {
        classify(self.place, error)
    }

    /// The rows of a statement.
    pub(super) async fn rows(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let rows = match &mut self.inner {
            Inner::Sqlite(transaction, _) => {
                let rows = statement.for_sqlite().fetch_all(&mut **transaction).await;
                rows.map(|rows| rows.into_iter().map(Row::Sqlite).collect())
            }
            Inner::Postgres(transaction) => {
                let rows = statement.for_postgres().fetch_all(&mut **transaction).await;
                rows.map(|rows| rows.into_iter().map(Row::Postgres).collect())
            }
        };
        rows.map_err(|error| self.failed(&error))
    }

    /// The first row of a statement.
    pub(super) async fn row(&mut self, statement: Statement) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// The number `column` of the only row of a statement.
    pub(super) async fn number(&mut self, statement: Statement, column: &str) -> Result<i64, StoreError> {
        let row = self.row(statement).await?;
        let number = row.map_or(Err(Error::RowNotFound), |row| row.number(column));
        number.map_err(|error| self.failed(&error))
    }

    /// Runs a statement; answers how many rows it wrote.
    pub(super) async fn run(&mut self, statement: Statement) -> Result<u64, StoreError> {
        let done = match &mut self.inner {
            Inner::Sqlite(transaction, _) => {
                statement.for_sqlite().execute(&mut **transaction).await.map(|done| done.rows_affected())
            }
            Inner::Postgres(transaction) => {
                statement.for_postgres().execute(&mut **transaction).await.map(|done| done.rows_affected())
            }
        };
        done.map_err(|error| self.failed(&error))
    }

    /// Makes it true; only what this answered `Ok` to is on the disk.
    pub(super) async fn commit(self) -> Result<(), StoreError> {
        let done = match self.inner {
            Inner::Sqlite(transaction, _turn) => transaction.commit().await,
            Inner::Postgres(transaction) => transaction.commit().await,
        };
        done.map_err(|error| classify(self.place, &error))
    }

    /// Leaves everything as it was.
    pub(super) async fn rollback(self) -> Result<(), StoreError> {
        let done = match self.inner {
            Inner::Sqlite(transaction, _turn) => transaction.rollback().await,
            Inner::Postgres(transaction) => transaction.rollback().await,
        };
        done.map_err(|error| classify(self.place, &error))
    }
}

/// What an operator can do about an error depends on its code.
pub(super) fn classify(place: &str, error: &Error) -> StoreError {
    let place = place.to_owned();
    let cause = error.to_string();
    let of_database = error.as_database_error();
    if let Some(of_postgres) =
        of_database.and_then(|error| error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>())
    {
        return of_postgres_code(of_postgres.code(), place, cause);
    }
    if let Some(code) = of_database.and_then(|error| error.code()).and_then(|code| code.parse::<i64>().ok()) {
        return of_sqlite_code(code, place, cause);
    }
    let is_server = place.contains("://");
    match error {
        Error::Decode(_) | Error::ColumnDecode { .. } => StoreError::Damaged { place, cause },
        Error::PoolTimedOut if !is_server => StoreError::Busy { place, cause },
        Error::PoolTimedOut | Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::PoolClosed
            if is_server =>
        {
            StoreError::Unreachable { place, cause }
        }
        _ => StoreError::Access { place, cause },
    }
}

/// The primary result code of SQLite is the low byte.
fn of_sqlite_code(code: i64, place: String, cause: String) -> StoreError {
    const BUSY: i64 = 5;
    const LOCKED: i64 = 6;
    const READ_ONLY: i64 = 8;
    const IO: i64 = 10;
    const CORRUPT: i64 = 11;
    const FULL: i64 = 13;
    const CANNOT_OPEN: i64 = 14;
    const CONSTRAINT: i64 = 19;
    const NO_DATABASE: i64 = 26;
    match code & 0xff {
        BUSY | LOCKED => StoreError::Busy { place, cause },
        READ_ONLY | FULL | IO => StoreError::ReadOnly { place, cause },
        CORRUPT | NO_DATABASE => StoreError::Damaged { place, cause },
        CANNOT_OPEN => StoreError::Open { place, cause },
        CONSTRAINT => StoreError::Refused { place, cause },
        _ => StoreError::Access { place, cause },
    }
}

/// Codes by their class, the first two characters (PostgreSQL manual, appendix A).
fn of_postgres_code(code: &str, place: String, cause: String) -> StoreError {
    match (code.get(..2).unwrap_or_default(), code) {
        // Deadlock, serialisation, lock and statement time-outs.
        ("40", _) | (_, "55P03" | "57014") => StoreError::Busy { place, cause },
        // Authorisation, no such database, connections, operator intervention.
        ("28" | "3D" | "08" | "57", _) | (_, "53300") => StoreError::Unreachable { place, cause },
        (_, "25006" | "42501" | "53100") => StoreError::ReadOnly { place, cause },
        ("XX", "XX001" | "XX002") => StoreError::Damaged { place, cause },
        // Constraints, and what the triggers raise.
        ("23", _) | (_, "P0001") => StoreError::Refused { place, cause },
        _ => StoreError::Access { place, cause },
    }
}
