//! One statement with its values, and one row of an answer: the same for both engines.
//!
//! Statements are written with `?` for each value; PostgreSQL gets `$1`, `$2` and so on instead. No statement holds a
//! `?` of its own, and no text of a caller is ever part of one.

use jiff::Timestamp;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{AssertSqlSafe, Error, Postgres, Row as _, Sqlite};

use super::rows::microseconds_up;
use crate::store::KeyValue;

/// A value of a statement. Everything that is kept is a whole number or a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A number, or none.
    Number(Option<i64>),
    /// A text, or none.
    Text(Option<String>),
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(Some(number.into()))
    }
}

impl From<bool> for Value {
    fn from(is: bool) -> Self {
        Self::Number(Some(is.into()))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(storable(text)))
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(storable))
    }
}

/// PostgreSQL cannot keep a zero character; so that both engines answer the same, neither does.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

/// A statement with its values.
#[derive(Clone, Debug, Default)]
pub(super) struct Statement {
    text: String,
    values: Vec<Value>,
}

impl Statement {
    /// A statement, or the beginning of one; a value for each `?` follows by [`bind`](Self::bind).
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), values: Vec::new() }
    }

    /// The statement behind a word such as `EXPLAIN`.
    #[cfg(test)]
    pub(super) fn after(mut self, word: &str) -> Self {
        self.text.insert_str(0, word);
        self
    }

    /// Adds the value of the next `?`.
    pub(super) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Adds text.
    pub(super) fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Adds a `?` and its value.
    pub(super) fn push_value(&mut self, value: impl Into<Value>) -> &mut Self {
        self.text.push('?');
        self.values.push(value.into());
        self
    }

    /// Adds ` AND {column} IN (…)`; no values at all match nothing.
    pub(super) fn push_in<V: Into<Value>>(&mut self, column: &str, values: impl IntoIterator<Item = V>) {
        self.push(&format!(" AND {column} IN ("));
        let mut is_empty = true;
        for value in values {
            if !is_empty {
                self.push(", ");
            }
            self.push_value(value);
            is_empty = false;
        }
        self.push(if is_empty { "NULL)" } else { ")" });
    }

    /// Adds a condition: the column begins with a text, in this very spelling.
    pub(super) fn push_prefix(&mut self, column: &str, prefix: &str) -> &mut Self {
        let length = storable(prefix).chars().count();
        self.push(&format!("substr({column}, 1, {length}) = ")).push_value(prefix)
    }

    /// Adds ` AND` a condition for each bound that is given: from `start`, before `end`.
    pub(super) fn push_span(&mut self, column: &str, start: Option<Timestamp>, end: Option<Timestamp>) {
        if let Some(start) = start {
            self.push(&format!(" AND {column} >= ")).push_value(microseconds_up(start));
        }
        if let Some(end) = end {
            self.push(&format!(" AND {column} < ")).push_value(microseconds_up(end));
        }
    }

    /// Adds ` AND` the condition that a row comes after a place in the order of [`push_order`](Self::push_order).
    pub(super) fn push_after(
        &mut self,
        column: &str,
        id_column: &str,
        is_descending: bool,
        value: &KeyValue,
        id: &str,
    ) {
        self.push_place(column, id_column, if is_descending { "<" } else { ">" }, value, id);
    }

    /// Adds ` AND` the condition that a row comes no later than a place in that order.
    pub(super) fn push_until(
        &mut self,
        column: &str,
        id_column: &str,
        is_descending: bool,
        value: &KeyValue,
        id: &str,
    ) {
        self.push_place(column, id_column, if is_descending { ">=" } else { "<=" }, value, id);
    }

    /// Compares both at once, so that a walk through an index of both begins or ends at the place.
    fn push_place(&mut self, column: &str, id_column: &str, comparison: &str, value: &KeyValue, id: &str) {
        let value: Value = match value {
            KeyValue::Number(number) => (*number).into(),
            KeyValue::Text(text) => text.into(),
        };
        self.push(&format!(" AND ({column}, {id_column}) {comparison} (")).push_value(value);
        self.push(", ").push_value(id).push(")");
    }

    /// Adds the order, and a limit of one row more than asked for: it tells whether there is a next page. Equal ones stand
    /// in the order of their ids, in the same direction, so that an index of both serves either.
    pub(super) fn push_order(&mut self, column: &str, id_column: &str, is_descending: bool, limit: usize) {
        let direction = if is_descending { "DESC" } else { "ASC" };
        let one_more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        self.push(&format!(" ORDER BY {column} {direction}, {id_column} {direction} LIMIT "))
            .push_value(one_more);
    }

    pub(super) fn for_sqlite(self) -> Query<'static, Sqlite, SqliteArguments> {
        let mut query = sqlx::query(AssertSqlSafe(self.text));
        for value in self.values {
            query = match value {
                Value::Number(number) => query.bind(number),
                Value::Text(text) => query.bind(text),
            };
        }
        query
    }

    pub(super) fn for_postgres(self) -> Query<'static, Postgres, PgArguments> {
        let mut query = sqlx::query(AssertSqlSafe(numbered(&self.text)));
        for value in self.values {
            query = match value {
                Value::Number(number) => query.bind(number),
                Value::Text(text) => query.bind(text),
            };
        }
        query
    }
}

/// The statement with `$1`, `$2` … in place of each `?`.
fn numbered(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for (number, piece) in text.split('?').enumerate() {
        if number > 0 {
            out.push('$');
            out.push_str(&number.to_string());
        }
        out.push_str(piece);
    }
    out
}

/// One row of an answer.
pub(super) enum Row {
    /// Of SQLite.
    Sqlite(SqliteRow),
    /// Of PostgreSQL.
    Postgres(PgRow),
}

impl Row {
    pub(super) fn number(&self, column: &str) -> Result<i64, Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    pub(super) fn number_or_none(&self, column: &str) -> Result<Option<i64>, Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    pub(super) fn text(&self, column: &str) -> Result<String, Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    pub(super) fn text_or_none(&self, column: &str) -> Result<Option<String>, Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_gets_its_number() {
        assert_eq!(numbered("a = ? AND b IN (?, ?)"), "a = $1 AND b IN ($2, $3)");
        let mut statement = Statement::new("SELECT 1 WHERE a = ?").bind("x");
        statement.push_in("b", [1_i64, 2]);
        statement.push_in("c", Vec::<i64>::new());
        assert_eq!(statement.text, "SELECT 1 WHERE a = ? AND b IN (?, ?) AND c IN (NULL)");
        assert_eq!(statement.values.len(), 3);
    }
}
