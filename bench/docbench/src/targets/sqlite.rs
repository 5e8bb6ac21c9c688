//! SQLite, embedded: JSONB in a `blob`, expression indexes, write-ahead log with
//! `synchronous = full`.
//!
//! One writer at a time is SQLite's own rule: writers queue for its lock, by its busy handler. A
//! read-only transaction that then writes could fail at once, so that transactions begin as
//! writers.

use std::path::PathBuf;
use std::time::Duration;

use bson::Document;
use bytes::Bytes;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ErrorCode, ToSql};

use crate::machine;
use crate::sql::documents::{Columns, SqlDocuments};
use crate::sql::{Dialect, SqlSession, SqlValue};
use crate::target::{About, Capabilities, Durability, Failure, Session, Target};
use crate::targets::{Settings, from_json, to_json};

const PATIENCE: Duration = Duration::from_secs(60);
const STATEMENTS_KEPT: usize = 200;

/// A database file.
pub struct Sqlite {
    directory: PathBuf,
    cache_kilobytes: u64,
    synchronous: &'static str,
    columns: Columns,
    about: About,
}

impl Sqlite {
    /// Makes the file.
    pub fn start(settings: &Settings<'_>) -> Result<Sqlite, Failure> {
        Sqlite::start_with(settings, "full")
    }

    /// Makes the file; `synchronous` other than `full` is for tests of what finds that.
    pub fn start_with(
        settings: &Settings<'_>,
        synchronous: &'static str,
    ) -> Result<Sqlite, Failure> {
        let cache_kilobytes = settings.cache_bytes >> 10;
        let mut sqlite = Sqlite {
            directory: settings.directory.into(),
            cache_kilobytes,
            synchronous,
            columns: Columns::default(),
            about: About {
                name: "sqlite".into(),
                version: format!("SQLite {}", rusqlite::version()),
                connection: "embedded".into(),
                durability: Durability::Synced,
                capabilities: Capabilities {
                    documents: true,
                    indexes: true,
                    clustered_indexes: false,
                    transactions: true,
                    sql: true,
                    array_positions: false,
                    concurrent_writers: false,
                },
                settings: Vec::new(),
            },
        };
        let connection = sqlite.connect()?;
        for name in ["journal_mode", "synchronous", "cache_size", "page_size"] {
            let setting: Value = connection
                .query_row(&format!("pragma {name}"), [], |row| row.get(0))
                .map_err(failure)?;
            sqlite.about.settings.push((name.into(), plain(&setting)));
        }
        Ok(sqlite)
    }

    fn connect(&self) -> Result<Connection, Failure> {
        let connection = Connection::open(self.directory.join("db.sqlite")).map_err(failure)?;
        connection.busy_timeout(PATIENCE).map_err(failure)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        connection
            .execute_batch(&format!(
                "pragma journal_mode = wal; pragma synchronous = {}; pragma cache_size = -{};",
                self.synchronous, self.cache_kilobytes
            ))
            .map_err(failure)?;
        Ok(connection)
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Integer(value) => value.to_string(),
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

impl Target for Sqlite {
    fn about(&self) -> &About {
        &self.about
    }

    fn session(&self) -> Result<Box<dyn Session>, Failure> {
        let sql = SqliteSession { connection: self.connect()? };
        Ok(Box::new(SqlDocuments::new(sql, self.columns.clone())))
    }

    fn encode(&self, document: &Document) -> Result<Bytes, Failure> {
        Ok(to_json(document))
    }

    fn decode(&self, bytes: &[u8]) -> Result<Document, Failure> {
        from_json(bytes)
    }

    fn settle(&self) -> Result<(), Failure> {
        let connection = self.connect()?;
        connection.execute_batch("analyze; pragma wal_checkpoint(truncate);").map_err(failure)
    }

    fn disk_bytes(&self) -> Option<u64> {
        Some(machine::disk_bytes(&self.directory))
    }

    fn processes(&self) -> Vec<u32> {
        vec![std::process::id()]
    }
}

fn failure(error: rusqlite::Error) -> Failure {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Failure::Conflict(error.to_string())
        }
        _ => Failure::other(error),
    }
}

struct SqliteSession {
    connection: Connection,
}

impl ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            SqlValue::Null => ValueRef::Null,
            SqlValue::Integer(value) => ValueRef::Integer(*value),
            SqlValue::Real(value) => ValueRef::Real(*value),
            SqlValue::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl SqlSession for SqliteSession {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn run(&mut self, statement: &str) -> Result<(), Failure> {
        self.connection.execute_batch(statement).map_err(failure)
    }

    fn execute(&mut self, statement: &str, parameters: &[SqlValue]) -> Result<u64, Failure> {
        let mut prepared = self.connection.prepare_cached(statement).map_err(failure)?;
        let changed = prepared.execute(rusqlite::params_from_iter(parameters)).map_err(failure)?;
        Ok(changed as u64)
    }

    fn query(
        &mut self,
        statement: &str,
        parameters: &[SqlValue],
        each: &mut dyn FnMut(&[SqlValue]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut prepared = self.connection.prepare_cached(statement).map_err(failure)?;
        let count = prepared.column_count();
        let mut rows = prepared.query(rusqlite::params_from_iter(parameters)).map_err(failure)?;
        let mut values = Vec::with_capacity(count);
        while let Some(row) = rows.next().map_err(failure)? {
            values.clear();
            for column in 0..count {
                values.push(match row.get_ref(column).map_err(failure)? {
                    ValueRef::Null => SqlValue::Null,
                    ValueRef::Integer(value) => SqlValue::Integer(value),
                    ValueRef::Real(value) => SqlValue::Real(value),
                    ValueRef::Text(text) | ValueRef::Blob(text) => {
                        SqlValue::Text(String::from_utf8_lossy(text).into_owned())
                    }
                });
            }
            each(&values)?;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.connection.execute_batch("begin immediate").map_err(failure)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.connection.execute_batch("commit").map_err(failure)
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.connection.execute_batch("rollback").map_err(failure)
    }
}
