//! One suite of tests for the repositories, run on both engines.

mod incidents;
mod interceptors;
mod open;
mod plans;
mod submissions;

use std::path::PathBuf;

use super::SqlStore;
use crate::setting::Secret;
use crate::store::{Config, test_postgres as postgres};

/// Makes of each function that takes a [`TestPlace`] a test on SQLite and one on PostgreSQL.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(super::TestPlace::sqlite()).await;
            })+
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                if let Some(place) = super::TestPlace::postgres().await {
                    super::$test(place).await;
                }
            })+
        }
    };
}
use on_both;

/// A place for one database, empty at first.
struct TestPlace {
    config: Config,
    folder: tempfile::TempDir,
}

impl TestPlace {
    fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { config: Config::default(), folder }
    }

    async fn postgres() -> Option<Self> {
        let url = postgres::new_database().await?;
        let config = Config { url: Some(Secret::new(url)), connections_max: 8, ..Config::default() };
        Some(Self { config, folder: tempfile::tempdir().expect("a folder") })
    }

    /// The file, if it is one of SQLite.
    fn path(&self) -> PathBuf {
        self.folder.path().join("below/portcullis.db")
    }

    /// Opens it as another process would.
    async fn open(&self) -> SqlStore {
        SqlStore::open(&self.config, &self.path()).await.expect("it opens")
    }
}
