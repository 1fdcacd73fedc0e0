//! Opens a database, checks it, and brings it to the form that this release needs.

use std::fs::OpenOptions;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::SqlSafeStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::database::{Database, Engine, Pools, classify};
use super::{SqlStore, Statement};
use crate::store::StoreError;
use crate::store::config::{Address, Config};
use crate::threads;

/// Connections to an SQLite file at most. There is one writer at a time anyway.
const SQLITE_CONNECTIONS_MAX: u32 = 4;
/// Name of the threads of connections, of at most fifteen bytes.
const SQLITE_THREAD: &str = "store-sqlite";

/// How often two processes that make the database at the same moment give way to each other.
const OPEN_ATTEMPTS: u32 = 20;
/// Pause before another attempt.
const OPEN_PAUSE: Duration = Duration::from_millis(50);

/// How often a lock is waited for while another process brings the tables of PostgreSQL to their form.
const MIGRATE_ATTEMPTS: u32 = 12;

/// Largest file with a password, in bytes.
const PASSWORD_BYTES_MAX: u64 = 8 * 1024;

impl SqlStore {
    /// Opens the database of the settings, makes the file of SQLite if it is missing, checks it, and brings it to the form
    /// that this release needs. `default` is the file if the settings name none.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn open(config: &Config, default: &Path) -> Result<Self, StoreError> {
        match config.address(default).map_err(|cause| StoreError::Settings { cause })? {
            Address::Sqlite(path) => Self::open_sqlite(config, &path).await,
            Address::Postgres(url) => {
                let password = config.password_file.as_deref().map(read_password).transpose()?;
                let options = connect_options(url.reveal(), password.as_deref())
                    .map_err(|cause| StoreError::Settings { cause })?;
                Self::open_postgres(config, options).await
            }
        }
    }

    async fn open_sqlite(config: &Config, path: &Path) -> Result<Self, StoreError> {
        make_private(path).map_err(|error| StoreError::Open {
            place: path.display().to_string(),
            cause: error.to_string(),
        })?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(false)
            .journal_mode(SqliteJournalMode::Wal)
            // With anything less a change that was acknowledged could be lost by a power cut.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(config.busy_timeout)
            .foreign_keys(true)
            .thread_name(|_| SQLITE_THREAD.to_owned());
        let mut attempt = 1;
        loop {
            match Self::try_open_sqlite(&options, path, config.busy_timeout).await {
                // Two processes that make the database in the same moment get in each other's way, once.
                Err(StoreError::Busy { .. } | StoreError::Access { .. }) if attempt < OPEN_ATTEMPTS => {
                    attempt += 1;
                    tokio::time::sleep(OPEN_PAUSE).await;
                }
                result => return result,
            }
        }
    }

    pub(super) async fn try_open_sqlite(
        options: &SqliteConnectOptions,
        path: &Path,
        busy_timeout: Duration,
    ) -> Result<Self, StoreError> {
        let place = path.display().to_string();
        let patience = busy_timeout.max(Duration::from_secs(1)) * 2;
        let pool = SqlitePoolOptions::new()
            .max_connections(SQLITE_CONNECTIONS_MAX)
            // Each connection has a thread of its own.
            .after_connect(|_, _| {
                threads::have_give_way(SQLITE_THREAD, threads::KEEPING);
                Box::pin(async { Ok(()) })
            })
            .acquire_timeout(patience)
            .connect_with(options.clone())
            .await
            .map_err(|error| classify(&place, &error))?;
        let pools = Pools::Sqlite { pool, line: Arc::default(), patience };
        let store = Self { database: Database::new(pools, place) };
        store.check_integrity().await?;
        store.migrate().await?;
        store.check_writable().await?;
        Ok(store)
    }

    async fn open_postgres(config: &Config, options: PgConnectOptions) -> Result<Self, StoreError> {
        let place = place_of(&options);
        let milliseconds = |duration: Duration| format!("{}ms", duration.as_millis());
        let options = options
            .options([
                ("statement_timeout", milliseconds(config.statement_timeout)),
                ("lock_timeout", milliseconds(config.busy_timeout)),
                // A process that hangs in a transaction must not hold the others up for ever.
                ("idle_in_transaction_session_timeout", milliseconds(config.statement_timeout * 2)),
            ])
            .application_name("portcullis");
        let pool = PgPoolOptions::new()
            .max_connections(u32::try_from(config.connections_max).unwrap_or(u32::MAX))
            .acquire_timeout(config.busy_timeout.max(Duration::from_secs(1)) * 2)
            .connect_with(options)
            .await
            .map_err(|error| classify(&place, &error))?;
        let store = Self { database: Database::new(Pools::Postgres(pool), place) };
        store.check_encoding().await?;
        let mut attempt = 1;
        loop {
            match store.migrate().await {
                // Another process is at it; its steps may take longer than one wait for a lock.
                Err(StoreError::Busy { .. }) if attempt < MIGRATE_ATTEMPTS => attempt += 1,
                done => break done?,
            }
        }
        store.check_writable().await?;
        Ok(store)
    }

    /// Looks for damage now, not at the first access that stumbles over it.
    async fn check_integrity(&self) -> Result<(), StoreError> {
        let row = self.database.row(Statement::new("PRAGMA quick_check(1)")).await?;
        let said = self.read(row.map_or(Err(sqlx::Error::RowNotFound), |row| row.text("quick_check")))?;
        let place = self.database.place().to_owned();
        if said == "ok" { Ok(()) } else { Err(StoreError::Damaged { place, cause: said }) }
    }

    /// In another encoding some texts could not be kept.
    async fn check_encoding(&self) -> Result<(), StoreError> {
        let row = self.database.row(Statement::new("SHOW server_encoding")).await?;
        let encoding =
            self.read(row.map_or(Err(sqlx::Error::RowNotFound), |row| row.text("server_encoding")))?;
        if encoding == "UTF8" {
            return Ok(());
        }
        let place = self.database.place();
        let cause =
            format!("the database `{place}` has the encoding {encoding}; make one with ENCODING 'UTF8'");
        Err(StoreError::Settings { cause })
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        let migrator = migrator(self.database.engine());
        let done = match self.database.pools() {
            Pools::Sqlite { pool, .. } => migrator.run(pool).await,
            Pools::Postgres(pool) => migrator.run(pool).await,
        };
        done.map_err(|error| match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                self.database.failed(&error)
            }
            other => StoreError::Schema { place: self.database.place().to_owned(), cause: other.to_string() },
        })
    }

    /// A database that can only be read is found out here and not by the first caller who wants to change something.
    async fn check_writable(&self) -> Result<(), StoreError> {
        let mut write = self.database.write().await?;
        write.run(Statement::new("UPDATE interceptor_revision SET revision = revision")).await?;
        write.rollback().await
    }
}

/// Every step from an empty database to that of this release.
fn migrator(engine: Engine) -> Migrator {
    macro_rules! steps {
        ($folder:literal) => {
            [
                (
                    1,
                    "interceptors",
                    include_str!(concat!("../migrations/", $folder, "/0001_interceptors.sql")),
                ),
                (2, "incidents", include_str!(concat!("../migrations/", $folder, "/0002_incidents.sql"))),
                (3, "submissions", include_str!(concat!("../migrations/", $folder, "/0003_submissions.sql"))),
                (4, "audit", include_str!(concat!("../migrations/", $folder, "/0004_audit.sql"))),
                (
                    5,
                    "submission_policy",
                    include_str!(concat!("../migrations/", $folder, "/0005_submission_policy.sql")),
                ),
                (6, "console", include_str!(concat!("../migrations/", $folder, "/0006_console.sql"))),
                (7, "search", include_str!(concat!("../migrations/", $folder, "/0007_search.sql"))),
                (8, "orders", include_str!(concat!("../migrations/", $folder, "/0008_orders.sql"))),
                (9, "lists", include_str!(concat!("../migrations/", $folder, "/0009_lists.sql"))),
                (
                    12,
                    "incident days",
                    include_str!(concat!("../migrations/", $folder, "/0012_incident_days.sql")),
                ),
            ]
        };
    }
    let mut steps = match engine {
        Engine::Sqlite => {
            let mut steps = steps!("sqlite").to_vec();
            // PostgreSQL has had this beside its texts since the step before.
            steps.push((10, "listed", include_str!("../migrations/sqlite/0010_listed.sql")));
            steps
        }
        Engine::Postgres => {
            let mut steps = steps!("postgres").to_vec();
            // SQLite reads a table without texts as fast as such an index.
            steps.push((11, "classes", include_str!("../migrations/postgres/0011_classes.sql")));
            steps
        }
    };
    steps.sort_by_key(|(version, ..)| *version);
    let migrations = steps.into_iter().map(|(version, description, sql)| {
        Migration::new(version, description.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    Migrator::with_migrations(migrations.collect())
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

/// What a URL of PostgreSQL says.
///
/// # Errors
/// What is wrong with it; holds nothing of the URL, since that may be a password.
pub(in crate::store) fn connect_options(
    url: &str,
    password: Option<&str>,
) -> Result<PgConnectOptions, String> {
    let parameters = url.split_once('?').map_or("", |(_, parameters)| parameters);
    let names = || parameters.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    if names().any(|name| name.eq_ignore_ascii_case("password")) {
        return Err(
            "must not have a parameter `password`; write postgres://user:password@host/database, or name a \
                    file in `store.password_file`"
                .to_owned(),
        );
    }
    let mut options = PgConnectOptions::from_str(url).map_err(|_| {
        "is no URL of PostgreSQL such as postgres://user@host/database?sslmode=verify-full; special characters in a \
         password must be written as %XX"
            .to_owned()
    })?;
    if let Some(password) = password {
        options = options.password(password);
    }
    if !names().any(|name| matches!(name, "sslmode" | "ssl-mode")) {
        let mode = if is_local(&options) { PgSslMode::Prefer } else { PgSslMode::VerifyFull };
        options = options.ssl_mode(mode);
    }
    Ok(options)
}

/// Whether nobody else can be between us and the server.
fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    options.get_socket().is_some()
        || host.starts_with('/')
        || host.eq_ignore_ascii_case("localhost")
        || ip.is_ok_and(|ip| ip.is_loopback())
}

/// How the server is named in messages.
fn place_of(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or(options.get_username());
    match options.get_socket() {
        Some(socket) => {
            format!("postgres:///{database}?host={}&user={}", socket.display(), options.get_username())
        }
        None => format!(
            "postgres://{}@{}:{}/{database}",
            options.get_username(),
            options.get_host(),
            options.get_port()
        ),
    }
}

/// The password in a file, without the end of its line.
fn read_password(path: &Path) -> Result<String, StoreError> {
    let failed = |cause: String| StoreError::Settings {
        cause: format!("`store.password_file` ({}): {cause}", path.display()),
    };
    let metadata = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?;
    if metadata.len() > PASSWORD_BYTES_MAX {
        return Err(failed(format!("has more than {PASSWORD_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let password = text.trim_end_matches(['\r', '\n']);
    if password.is_empty() { Err(failed("is empty".to_owned())) } else { Ok(password.to_owned()) }
}
