//! Servers of MySQL's protocol: MariaDB (InnoDB or RocksDB), Dolt, MySQL itself. Documents as
//! `json`, computed columns that are indexed, prepared statements, a synced log.

use std::path::{Path, PathBuf};

use bson::Document;
use bytes::Bytes;
use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, Error, Opts, OptsBuilder, Params, Value};

use crate::machine;
use crate::sql::documents::{Columns, SqlDocuments};
use crate::sql::{Dialect, SqlSession, SqlValue};
use crate::target::{About, Capabilities, Durability, Failure, Session, Target};
use crate::targets::managed::Server;
use crate::targets::{Settings, from_json, to_json};

const STATEMENTS_KEPT: usize = 200;
/// MySQL's deadlock, lock wait timeout, and "record has changed since last read".
const CONFLICTS: [u16; 3] = [1213, 1205, 1020];
/// What Dolt says in an error without a number of its own.
const CONFLICT_WORDS: [&str; 2] = ["conflict", "serialization failure"];
/// Settings that the results show where the server has them.
const SETTINGS_SHOWN: [&str; 9] = [
    "innodb_flush_log_at_trx_commit",
    "innodb_buffer_pool_size",
    "innodb_doublewrite",
    "rocksdb_flush_log_at_trx_commit",
    "rocksdb_block_cache_size",
    "log_bin",
    "sync_binlog",
    "dolt_transaction_commit",
    "transaction_isolation",
];

/// What the servers differ in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// MariaDB with its default engine.
    MariaDb,
    /// MariaDB with RocksDB.
    MariaDbRocks,
    /// Dolt, MySQL.
    MySql,
}

/// A server.
pub struct MySql {
    about: About,
    options: Opts,
    variant: Variant,
    columns: Columns,
    directory: Option<PathBuf>,
    server: Option<Server>,
}

impl MySql {
    /// Connects to the server at `address` (`mysql://` or `unix:`); `server` is the one that we
    /// started.
    pub fn connect(
        name: &str,
        address: &str,
        variant: Option<Variant>,
        mut server: Option<Server>,
        settings: &Settings<'_>,
    ) -> Result<MySql, Failure> {
        let options = options(address, None)?;
        let connect = || Conn::new(options.clone()).map_err(failure);
        let mut connection = match &mut server {
            Some(server) => server.ready(connect)?,
            None => connect()?,
        };
        connection.query_drop("create database if not exists docbench").map_err(failure)?;
        let version: Option<String> =
            connection.query_first("select version()").map_err(failure)?;
        let mut version = version.unwrap_or_default();
        let dolt = connection.query_first::<String, _>("select dolt_version()").ok().flatten();
        if let Some(dolt) = &dolt {
            version = format!("Dolt {dolt}, speaks MySQL {version}");
        }
        let is_maria = version.contains("MariaDB");
        let guessed = if is_maria { Variant::MariaDb } else { Variant::MySql };
        let about = About {
            name: name.into(),
            version,
            connection: if address.starts_with("unix:") { "Unix socket" } else { "TCP" }.into(),
            durability: if server.is_some() { Durability::Synced } else { Durability::Unknown },
            capabilities: Capabilities {
                documents: true,
                indexes: true,
                clustered_indexes: false,
                transactions: true,
                sql: true,
                array_positions: true,
                concurrent_writers: true,
            },
            settings: server_settings(&mut connection)?,
        };
        let directory = server.is_some().then(|| settings.directory.into());
        Ok(MySql {
            about,
            options: self::options(address, Some("docbench"))?,
            variant: variant.unwrap_or(guessed),
            columns: Columns::default(),
            directory,
            server,
        })
    }
}

fn options(address: &str, database: Option<&str>) -> Result<Opts, Failure> {
    let mut builder = match address.strip_prefix("unix:") {
        Some(socket) => OptsBuilder::new().socket(Some(socket)).user(Some("root")),
        None => OptsBuilder::from_opts(Opts::from_url(address).map_err(Failure::other)?)
            .prefer_socket(false),
    };
    if database.is_some() || address.starts_with("unix:") {
        builder = builder.db_name(database);
    }
    // So that an update that changes nothing still tells that it matched.
    let flags = CapabilityFlags::CLIENT_FOUND_ROWS;
    Ok(builder.additional_capabilities(flags).stmt_cache_size(STATEMENTS_KEPT).into())
}

/// The settings that the server has.
fn server_settings(connection: &mut Conn) -> Result<Vec<(String, String)>, Failure> {
    let mut settings = Vec::new();
    for name in SETTINGS_SHOWN {
        let statement = format!("show variables like '{name}'");
        let row: Option<(String, String)> = connection.query_first(statement).map_err(failure)?;
        settings.extend(row);
    }
    Ok(settings)
}

impl Target for MySql {
    fn about(&self) -> &About {
        &self.about
    }

    fn session(&self) -> Result<Box<dyn Session>, Failure> {
        let connection = Conn::new(self.options.clone()).map_err(failure)?;
        let sql = MySqlSession { connection, variant: self.variant };
        Ok(Box::new(SqlDocuments::new(sql, self.columns.clone())))
    }

    fn encode(&self, document: &Document) -> Result<Bytes, Failure> {
        Ok(to_json(document))
    }

    fn decode(&self, bytes: &[u8]) -> Result<Document, Failure> {
        from_json(bytes)
    }

    /// Statistics only: these servers have no statement that ends a checkpoint.
    fn settle(&self) -> Result<(), Failure> {
        let mut connection = Conn::new(self.options.clone()).map_err(failure)?;
        let tables: Vec<String> = connection.query("show tables").map_err(failure)?;
        for table in tables {
            connection.query_drop(format!("analyze table {table}")).map_err(failure)?;
        }
        Ok(())
    }

    fn disk_bytes(&self) -> Option<u64> {
        self.directory.as_deref().map(|directory: &Path| machine::disk_bytes(directory))
    }

    fn processes(&self) -> Vec<u32> {
        self.server.iter().flat_map(Server::processes).collect()
    }
}

fn failure(error: Error) -> Failure {
    if let Error::MySqlError(cause) = &error {
        let message = cause.message.to_lowercase();
        let is_conflict = CONFLICTS.contains(&cause.code)
            || CONFLICT_WORDS.iter().any(|word| message.contains(word));
        if is_conflict {
            return Failure::Conflict(error.to_string());
        }
    }
    Failure::other(error)
}

struct MySqlSession {
    connection: Conn,
    variant: Variant,
}

fn parameters_of(values: &[SqlValue]) -> Params {
    let values = values.iter().map(|value| match value {
        SqlValue::Null => Value::NULL,
        SqlValue::Integer(value) => Value::Int(*value),
        SqlValue::Real(value) => Value::Double(*value),
        SqlValue::Text(text) => Value::Bytes(text.as_bytes().to_vec()),
    });
    let values: Vec<_> = values.collect();
    if values.is_empty() { Params::Empty } else { Params::Positional(values) }
}

fn value_of(value: Value) -> Result<SqlValue, Failure> {
    Ok(match value {
        Value::NULL => SqlValue::Null,
        Value::Int(value) => SqlValue::Integer(value),
        Value::UInt(value) => SqlValue::Integer(i64::try_from(value).map_err(Failure::other)?),
        Value::Float(value) => SqlValue::Real(f64::from(value)),
        Value::Double(value) => SqlValue::Real(value),
        Value::Bytes(bytes) => SqlValue::Text(String::from_utf8(bytes).map_err(Failure::other)?),
        other => return Err(Failure::Other(format!("{other:?} is of no type that is used"))),
    })
}

impl SqlSession for MySqlSession {
    fn dialect(&self) -> Dialect {
        match self.variant {
            Variant::MySql => Dialect::MySql,
            _ => Dialect::MariaDb,
        }
    }

    fn table_options(&self) -> &str {
        match self.variant {
            Variant::MariaDbRocks => " engine=rocksdb",
            _ => "",
        }
    }

    /// RocksDB has no computed columns: triggers fill them.
    fn computes_columns(&self) -> bool {
        self.variant != Variant::MariaDbRocks
    }

    fn run(&mut self, statement: &str) -> Result<(), Failure> {
        self.connection.query_drop(statement).map_err(failure)
    }

    fn execute(&mut self, statement: &str, parameters: &[SqlValue]) -> Result<u64, Failure> {
        self.connection.exec_drop(statement, parameters_of(parameters)).map_err(failure)?;
        Ok(self.connection.affected_rows())
    }

    fn query(
        &mut self,
        statement: &str,
        parameters: &[SqlValue],
        each: &mut dyn FnMut(&[SqlValue]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let rows =
            self.connection.exec_iter(statement, parameters_of(parameters)).map_err(failure)?;
        for row in rows {
            let values: Result<Vec<_>, _> =
                row.map_err(failure)?.unwrap().into_iter().map(value_of).collect();
            each(&values?)?;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.run("start transaction")
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.run("commit")
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.run("rollback")
    }
}
