//! A database of its own in the PostgreSQL server of the tests, for each test that asks for one.
//!
//! `./test` starts that server (`tests/postgres/server`) and passes its URL on. Without it these tests are left out, and
//! say so; with `PORTCULLIS_TEST_POSTGRES_REQUIRED` set they fail instead.

use sqlx::{AssertSqlSafe, Connection, PgConnection};

/// The URL of the server; its user may make databases.
pub const URL: &str = "PORTCULLIS_TEST_POSTGRES_URL";
/// Set where a missing server is a failure.
pub const REQUIRED: &str = "PORTCULLIS_TEST_POSTGRES_REQUIRED";

/// The URL of a new, empty database; `None` when there is no server.
pub async fn new_database() -> Option<String> {
    let Some(server) = server() else {
        assert!(std::env::var_os(REQUIRED).is_none(), "{URL} is not set");
        eprintln!("left out: {URL} is not set; ./test sets it");
        return None;
    };
    let name = format!("test_{}", uuid::Uuid::now_v7().simple());
    execute(&server, &format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")).await;
    let (before, _) = server.rsplit_once('/').expect("a URL with the name of a database");
    Some(format!("{before}/{name}"))
}

/// The URL of the server of the tests.
pub fn server() -> Option<String> {
    std::env::var(URL).ok().filter(|url| !url.is_empty())
}

/// Runs a statement in the database of a URL.
pub async fn execute(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.expect("PostgreSQL answers");
    sqlx::query(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.expect("it is done");
    connection.close().await.expect("it is closed");
}
