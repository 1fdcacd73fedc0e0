//! Opening a database: what is made, what is refused, and what survives a server that went away.

use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::Connection;
use sqlx::postgres::PgSslMode;
use sqlx::sqlite::SqliteConnectOptions;

use super::*;
use crate::store::config::Address;
use crate::store::sql::open::connect_options;
use crate::store::sql::{Engine, Statement};
use crate::store::{InterceptorStore, NewInterceptor, StoreError, SubmissionStore, with_patience};

on_both!(a_database_of_another_release_is_left_alone, who_waits_too_long_for_a_row_is_told);

/// Runs statements as a transaction.
async fn run(store: &SqlStore, statements: &[&str]) {
    let mut write = store.database.write().await.expect("begun");
    for statement in statements {
        write.run(Statement::new(*statement)).await.expect("done");
    }
    write.commit().await.expect("committed");
}

fn interceptor(id: &str) -> NewInterceptor {
    NewInterceptor {
        tenant: String::new(),
        id: id.to_owned(),
        creator: "admin".to_owned(),
        created: jiff::Timestamp::UNIX_EPOCH,
        definition: "{}".to_owned(),
    }
}

async fn refused(config: &Config, path: &Path) -> StoreError {
    SqlStore::open(config, path).await.err().expect("refused")
}

async fn a_database_of_another_release_is_left_alone(place: TestPlace) {
    let store = place.open().await;
    let checksum = match store.database.engine() {
        Engine::Sqlite => "x'00'",
        Engine::Postgres => r"'\x00'",
    };
    let later = format!(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'later', TRUE, {checksum}, 0)"
    );
    let changed = format!("UPDATE _sqlx_migrations SET checksum = {checksum} WHERE version = 2");
    for (change, undo) in [(later, "DELETE FROM _sqlx_migrations WHERE version = 9999"), (changed, "")] {
        run(&store, &[&change]).await;
        let error = refused(&place.config, &place.path()).await;
        assert!(matches!(error, StoreError::Schema { .. }), "{change}: {error}");
        if !undo.is_empty() {
            run(&store, &[undo]).await;
            place.open().await;
        }
    }
}

async fn who_waits_too_long_for_a_row_is_told(mut place: TestPlace) {
    place.config.busy_timeout = Duration::from_millis(200);
    let (store, other) = (place.open().await, place.open().await);
    store.add(interceptor("a")).await.expect("added");
    let mut write = store.database.write().await.expect("begun");
    write.run(Statement::new("UPDATE interceptor SET definition = 'x'")).await.expect("written");
    let began = Instant::now();
    let error = other.remove(String::new(), vec!["a".to_owned()]).await.expect_err("it is held");
    assert!(matches!(error, StoreError::Busy { .. }) && error.is_transient(), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    write.rollback().await.expect("given up");
    assert_eq!(other.remove(String::new(), vec!["a".to_owned()]).await.expect("removed").len(), 1);
}

#[tokio::test]
async fn what_is_no_database_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config::default();
    let garbage = folder.path().join("garbage.db");
    std::fs::write(&garbage, "this is a letter, not a database. ".repeat(100)).expect("written");
    let damaged = refused(&config, &garbage).await;
    assert!(matches!(damaged, StoreError::Damaged { .. }), "{damaged}");
    let is_folder = refused(&config, folder.path()).await;
    assert!(matches!(is_folder, StoreError::Open { .. }), "{is_folder}");
    let no_folder = refused(&config, &garbage.join("portcullis.db")).await;
    assert!(matches!(no_folder, StoreError::Open { .. }), "{no_folder}");
    for error in [damaged, is_folder, no_folder] {
        let text = error.to_string();
        assert!(text.contains(folder.path().to_str().expect("UTF-8")) && text.contains("; "), "{text}");
    }
}

#[tokio::test]
async fn a_database_that_can_only_be_read_is_refused_at_the_start() {
    let place = TestPlace::sqlite();
    drop(place.open().await);
    let options = SqliteConnectOptions::new().filename(place.path()).pragma("query_only", "ON");
    let opened = SqlStore::try_open_sqlite(&options, &place.path(), Duration::from_secs(1)).await;
    let error = opened.err().expect("refused");
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    let Some(mut place) = TestPlace::postgres().await else { return };
    drop(place.open().await);
    let url = place.config.url.as_ref().expect("one").reveal().to_owned();
    let server = postgres::server().expect("there is one");
    let reader = format!("reader_{}", uuid::Uuid::now_v7().simple());
    postgres::execute(&server, &format!("CREATE ROLE {reader} LOGIN IN ROLE pg_read_all_data")).await;
    let as_reader = url.replacen("postgres://portcullis@", &format!("postgres://{reader}@"), 1);
    place.config.url = Some(Secret::new(as_reader));
    let error = refused(&place.config, &place.path()).await;
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
}

#[tokio::test]
async fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = TestPlace::sqlite();
    let store = place.open().await;
    store.add(interceptor("a")).await.expect("it is added");
    let mut found = 0;
    for entry in std::fs::read_dir(place.path().parent().expect("a folder")).expect("a folder") {
        let entry = entry.expect("an entry");
        let mode = entry.metadata().expect("metadata").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.file_name());
        found += 1;
    }
    assert!(found >= 2, "the database and its log");
}

#[tokio::test]
async fn a_server_that_cannot_be_used_says_why_and_no_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("unused.db");
    let config = |url: &str| Config {
        url: Some(Secret::new(url)),
        busy_timeout: Duration::from_millis(100),
        ..Config::default()
    };
    // Bound and not listening: nobody else gets the port, and nobody answers.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("an address").port();
    let away = refused(&config(&format!("postgres://ada:hunter2@127.0.0.1:{port}/x")), &path).await;
    assert!(matches!(away, StoreError::Unreachable { .. }) && away.is_transient(), "{away}");
    assert!(!path.exists());
    let mut errors = vec![away];
    if let Some(server) = postgres::server() {
        let (before, _) = server.rsplit_once('/').expect("a database");
        let host = before.replacen("postgres://portcullis@", "postgres://portcullis:hunter2@", 1);
        let missing = refused(&config(&format!("{host}/no_such_database")), &path).await;
        assert!(matches!(missing, StoreError::Unreachable { .. }), "{missing}");
        let nobody = refused(&config(&host.replacen("portcullis:", "nobody_there:", 1)), &path).await;
        assert!(matches!(nobody, StoreError::Unreachable { .. }), "{nobody}");
        let name = format!("latin_{}", uuid::Uuid::now_v7().simple());
        let create = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'");
        postgres::execute(&server, &create).await;
        let encoding = refused(&config(&format!("{host}/{name}")), &path).await;
        assert!(matches!(encoding, StoreError::Settings { .. }), "{encoding}");
        assert!(encoding.to_string().contains("UTF8"), "{encoding}");
        errors.extend([missing, nobody, encoding]);
    }
    for error in errors {
        let text = format!("{error} {error:?}");
        assert!(!text.contains("hunter2") && text.contains("127.0.0.1"), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_was_away_is_used_again() {
    let Some(place) = TestPlace::postgres().await else { return };
    let store = place.open().await;
    store.add(interceptor("a")).await.expect("added");
    // Many connections, some of them in the pool.
    let reads = futures_util::future::join_all((0..20).map(|_| store.counts_by_status())).await;
    assert!(reads.iter().all(Result::is_ok));
    for round in 0..3 {
        // What a restart of the server does to us: every connection is cut.
        let url = place.config.url.as_ref().expect("one").reveal().to_owned();
        let (_, name) = url.rsplit_once('/').expect("a database");
        let server = postgres::server().expect("there is one");
        let cut = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
        postgres::execute(&server, &cut).await;
        let reads = futures_util::future::join_all((0..20).map(|_| store.counts_by_status())).await;
        assert!(reads.iter().all(Result::is_ok), "{round} {reads:?}");
        store.add(interceptor(&format!("b{round}"))).await.expect("added");
    }
    assert_eq!(store.load().await.expect("loaded").interceptors.len(), 4);
}

/// A person at a page does not wait as long as the settings let others wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_less_patience_is_told_sooner_that_there_is_no_connection() {
    let Some(mut place) = TestPlace::postgres().await else { return };
    place.config.connections_max = 1;
    place.config.busy_timeout = Duration::from_secs(600);
    let store = place.open().await;
    let held = store.database.write().await.expect("begun");
    let began = Instant::now();
    let patience = Duration::from_millis(100);
    let row = with_patience(patience, store.revision()).await.map(drop);
    let read = with_patience(patience, store.database.read()).await.map(drop);
    let write = with_patience(patience, store.database.write()).await.map(drop);
    for error in [row, read, write].map(|result| result.expect_err("the one connection is taken")) {
        assert!(matches!(error, StoreError::Unreachable { .. }) && error.is_transient(), "{error}");
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    held.rollback().await.expect("rolled back");
    with_patience(patience, async { store.revision().await }).await.expect("the connection is free");
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_stopped() {
    let Some(mut place) = TestPlace::postgres().await else { return };
    place.config.statement_timeout = Duration::from_millis(200);
    let store = place.open().await;
    let error = store.database.rows(Statement::new("SELECT pg_sleep(60)")).await.err().expect("stopped");
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    store.revision().await.expect("the connection is fine");
}

#[tokio::test]
async fn a_password_may_lie_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    let path = folder.path().join("unused.db");
    let url = match postgres::new_database().await {
        Some(url) => url,
        None => "postgres://ada@127.0.0.1:1/x".to_owned(),
    };
    let config = Config {
        url: Some(Secret::new(&url)),
        password_file: Some(file.clone()),
        busy_timeout: Duration::from_millis(100),
        ..Config::default()
    };
    for content in [None, Some(""), Some("\n"), Some(&*"x".repeat(9_000))] {
        if let Some(content) = content {
            std::fs::write(&file, content).expect("written");
        }
        let error = refused(&config, &path).await;
        assert!(matches!(error, StoreError::Settings { .. }), "{error}");
        assert!(error.to_string().contains("store.password_file"), "{error}");
    }
    if postgres::server().is_some() {
        std::fs::write(&file, "hunter2\n").expect("written");
        SqlStore::open(&config, &path).await.expect("the server asks for none");
    }
}

#[test]
fn a_server_elsewhere_must_prove_who_it_is() {
    for (url, wanted) in [
        ("postgres://ada@db.example.com/x", PgSslMode::VerifyFull),
        ("postgres://ada@10.0.0.1/x", PgSslMode::VerifyFull),
        ("postgresql://ada@localhost.example.com/x", PgSslMode::VerifyFull),
        ("postgres://ada@localhost/x", PgSslMode::Prefer),
        ("postgres://ada@127.0.0.1:5433/x", PgSslMode::Prefer),
        ("postgres://ada@[::1]/x", PgSslMode::Prefer),
        ("postgres://ada@%2Fvar%2Frun%2Fpostgresql/x", PgSslMode::Prefer),
        ("postgres:///x?host=/var/run/postgresql", PgSslMode::Prefer),
        ("postgres://ada@10.0.0.1/x?sslmode=disable", PgSslMode::Disable),
        ("postgres://ada@10.0.0.1/x?sslmode=require", PgSslMode::Require),
    ] {
        let options = connect_options(url, None).expect(url);
        assert_eq!(format!("{:?}", options.get_ssl_mode()), format!("{wanted:?}"), "{url}");
    }
}

#[test]
fn an_address_is_read_or_refused_without_showing_it() {
    for (text, wanted) in [
        ("data/x.db", Some("data/x.db")),
        ("sqlite:data/x.db", Some("data/x.db")),
        ("sqlite://data/x.db", Some("data/x.db")),
        ("sqlite:///var/x.db", Some("/var/x.db")),
        ("SQLite:x.db", Some("x.db")),
    ] {
        assert!(Address::parse(text) == Ok(Address::Sqlite(wanted.expect("one").into())), "{text}");
    }
    for text in [
        "",
        "/",
        "sqlite:",
        "mysql://ada:hunter2@host/x",
        "postgres://ada:hun/ter2@host/x",
        "postgres://ada@host/x?password=hunter2",
        "postgres://ada@host/x?sslmode=hunter2",
        "postgres://ada:hunter2@host:99999/x",
    ] {
        let problem = Address::parse(text).err().unwrap_or_else(|| panic!("{text} is refused"));
        assert!(!problem.contains("ter2"), "{problem}");
    }
    assert!(matches!(Address::parse("postgres://ada:hunter2@host/x"), Ok(Address::Postgres(_))));
}

/// The steps of another process may take longer than we wait for one lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_while_another_one_makes_the_tables_waits_for_it() {
    let Some(mut place) = TestPlace::postgres().await else { return };
    place.config.busy_timeout = Duration::from_millis(100);
    let url = place.config.url.as_ref().expect("one").reveal().to_owned();
    let (_, name) = url.rsplit_once('/').expect("a database");
    let mut other = sqlx::PgConnection::connect(&url).await.expect("PostgreSQL answers");
    sqlx::migrate::Migrate::lock(&mut other).await.expect("nobody else is at it");
    let waits = tokio::spawn(async move {
        let store = place.open().await;
        drop(store);
    });
    // Until it waits for the lock, and then for longer than one wait lasts.
    let server = postgres::server().expect("there is one");
    let mut watcher = sqlx::PgConnection::connect(&server).await.expect("PostgreSQL answers");
    let seen =
        format!("SELECT COUNT(*) FROM pg_stat_activity WHERE datname = '{name}' AND wait_event = 'advisory'");
    let began = Instant::now();
    let mut since = None;
    while since.is_none_or(|since: Instant| since.elapsed() < Duration::from_millis(300)) {
        let waiting: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(seen.clone()))
            .fetch_one(&mut watcher)
            .await
            .expect("counted");
        if waiting > 0 && since.is_none() {
            since = Some(Instant::now());
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it never waited");
    }
    assert!(!waits.is_finished(), "it goes on waiting");
    sqlx::migrate::Migrate::unlock(&mut other).await.expect("given back");
    waits.await.expect("it opens");
}
