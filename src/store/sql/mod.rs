//! The repositories over SQLite and PostgreSQL: one set of statements for both.
//!
//! What differs between the engines lies in [`database`] (transactions, errors), [`open`] (connecting, migrations) and a
//! few words of SQL in [`SqlStore`].

mod audit;
mod database;
mod entity_lists;
mod incidents;
mod interceptors;
mod open;
mod rows;
mod rule_counts;
mod statement;
mod submission_lists;
mod submission_selects;
mod submissions;
#[cfg(test)]
mod tests;

pub use database::with_patience;
pub(super) use open::connect_options;

use database::{Database, Engine};
use statement::{Row, Statement};

use super::StoreError;

/// The repositories over one database.
pub struct SqlStore {
    database: Database,
}

impl SqlStore {
    /// The function that tells where a text stands in another one, from 1; 0 when it does not.
    fn position(&self) -> &'static str {
        match self.database.engine() {
            Engine::Sqlite => "instr",
            Engine::Postgres => "strpos",
        }
    }

    /// What a row says, or that it says something which this release does not know.
    fn read<T>(&self, read: Result<T, sqlx::Error>) -> Result<T, StoreError> {
        read.map_err(|error| self.database.failed(&error))
    }

    fn read_all<T>(
        &self,
        rows: &[Row],
        read: impl Fn(&Row) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        self.read(rows.iter().map(read).collect())
    }
}
