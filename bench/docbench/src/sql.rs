//! SQL as the peers have in common: statements with `?` and a few types of values.
//!
//! A [`SqlSession`] prepares each statement once and keeps it. [`Dialect`] has the differences
//! between dialects in the statements that workloads write.

use crate::target::Failure;

pub mod documents;
mod json;

/// A value of a row or of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum SqlValue {
    /// Absent.
    Null,
    /// 64-bit integer.
    Integer(i64),
    /// Double.
    Real(f64),
    /// Text; JSON where the column is.
    Text(String),
}

impl SqlValue {
    /// The integer, or a wrong answer. `sum` and the like answer decimals as text in some
    /// databases.
    pub fn integer(&self) -> Result<i64, Failure> {
        match self {
            SqlValue::Integer(value) => Ok(*value),
            SqlValue::Real(value) => Ok(*value as i64),
            SqlValue::Text(text) => text
                .parse()
                .map_err(|_| Failure::Wrong(format!("{text:?} where an integer must be"))),
            SqlValue::Null => Err(Failure::Wrong("null where an integer must be".into())),
        }
    }

    /// The text, or a wrong answer.
    pub fn text(&self) -> Result<&str, Failure> {
        match self {
            SqlValue::Text(text) => Ok(text),
            other => Err(Failure::Wrong(format!("{other:?} where text must be"))),
        }
    }
}

impl From<i64> for SqlValue {
    fn from(value: i64) -> SqlValue {
        SqlValue::Integer(value)
    }
}

impl From<&str> for SqlValue {
    fn from(value: &str) -> SqlValue {
        SqlValue::Text(value.into())
    }
}

impl From<String> for SqlValue {
    fn from(value: String) -> SqlValue {
        SqlValue::Text(value)
    }
}

/// The dialects of SQL.
#[cfg_attr(
    not(all(feature = "mysql", feature = "postgres", feature = "sqlite")),
    expect(dead_code, reason = "each belongs to a target that may be left out of the build")
)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// PostgreSQL, documents as `jsonb`.
    Postgres,
    /// MariaDB: `json` is text with a check; fields are indexed through virtual columns.
    MariaDb,
    /// MySQL and Dolt: `json` is a binary tree.
    MySql,
    /// SQLite, documents as `jsonb` in a `blob`.
    Sqlite,
}

impl Dialect {
    /// Returns the clause that makes a `select` lock its rows for the transaction; SQLite locks the
    /// database instead.
    pub fn for_update(self) -> &'static str {
        match self {
            Dialect::Sqlite => "",
            _ => " for update",
        }
    }

    /// The sum of a column of `bigint`, which is a number without bounds in PostgreSQL, as one.
    pub fn sum(self, column: &str) -> String {
        match self {
            Dialect::Postgres => format!("sum({column})::bigint"),
            _ => format!("sum({column})"),
        }
    }

    /// Whether an update answers what it changed.
    pub fn has_returning(self) -> bool {
        matches!(self, Dialect::Postgres | Dialect::Sqlite)
    }
}

/// A connection as SQL. Statements have `?` for each parameter, in order.
pub trait SqlSession: Send {
    /// Returns the dialect of the database.
    fn dialect(&self) -> Dialect;

    /// Returns the options that follow `create table (...)`, such as the storage engine.
    fn table_options(&self) -> &str {
        ""
    }

    /// Whether a column may be computed from another one and indexed.
    fn computes_columns(&self) -> bool {
        true
    }

    /// Runs statements without parameters that aren't worth preparing, one each.
    fn run(&mut self, statement: &str) -> Result<(), Failure>;

    /// Runs a prepared statement that answers no rows; answers how many rows it changed (MySQL:
    /// matched).
    fn execute(&mut self, statement: &str, parameters: &[SqlValue]) -> Result<u64, Failure>;

    /// Runs a prepared query and calls `each` with every row.
    fn query(
        &mut self,
        statement: &str,
        parameters: &[SqlValue],
        each: &mut dyn FnMut(&[SqlValue]) -> Result<(), Failure>,
    ) -> Result<(), Failure>;

    /// Begins a transaction that isolates as well as snapshots do.
    fn begin(&mut self) -> Result<(), Failure>;

    /// Ends the transaction, durably.
    fn commit(&mut self) -> Result<(), Failure>;

    /// Ends the transaction without effect.
    fn rollback(&mut self) -> Result<(), Failure>;

    /// The only row of a query, or nothing.
    fn row(
        &mut self,
        statement: &str,
        parameters: &[SqlValue],
    ) -> Result<Option<Vec<SqlValue>>, Failure> {
        let mut row = None;
        self.query(statement, parameters, &mut |values| {
            row = Some(values.to_vec());
            Ok(())
        })?;
        Ok(row)
    }
}
