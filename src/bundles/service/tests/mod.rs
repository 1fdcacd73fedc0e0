//! The life of submissions over real stores: SQLite, and PostgreSQL where there is a server.

mod concurrent;
mod life;
mod reasons;
mod release;
mod rig;
mod upkeep;

/// Makes of each function that takes a place a test on SQLite and one on PostgreSQL.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(super::Place::sqlite()).await;
            })+
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                if let Some(place) = super::Place::postgres().await {
                    super::$test(place).await;
                }
            })+
        }
    };
}
use on_both;
