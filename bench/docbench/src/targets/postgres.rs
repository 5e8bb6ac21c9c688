//! PostgreSQL: documents as JSONB, expression indexes, prepared statements, `fsync` on.
//!
//! The `?` of statements become `$1`, `$2` ... Transactions have PostgreSQL's default isolation,
//! `read committed`, as its users run TPC-C: what must not change is locked by `for update`.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::path::PathBuf;

use bson::Document;
use bytes::{BufMut, Bytes, BytesMut};
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, NoTls, Statement};

use crate::machine;
use crate::sql::documents::{Columns, SqlDocuments};
use crate::sql::{Dialect, SqlSession, SqlValue};
use crate::target::{About, Capabilities, Durability, Failure, Session, Target};
use crate::targets::managed::Server;
use crate::targets::{Settings, from_json, to_json};

/// Settings that the results show as the server reports them.
const SETTINGS_SHOWN: [&str; 9] = [
    "fsync",
    "synchronous_commit",
    "synchronous_standby_names",
    "full_page_writes",
    "shared_buffers",
    "max_wal_size",
    "autovacuum",
    "default_transaction_isolation",
    "max_parallel_workers_per_gather",
];

/// A server.
pub struct Postgres {
    about: About,
    address: String,
    columns: Columns,
    directory: Option<PathBuf>,
    server: Option<Server>,
}

impl Postgres {
    /// Connects to the server at `address`; `server` is the one that we started, if we did.
    pub fn connect(
        name: &str,
        address: &str,
        mut server: Option<Server>,
        settings: &Settings<'_>,
    ) -> Result<Postgres, Failure> {
        let connect = || Client::connect(address, NoTls).map_err(failure);
        let mut client = match &mut server {
            Some(server) => server.ready(connect)?,
            None => connect()?,
        };
        let mut server_settings = Vec::new();
        for setting in SETTINGS_SHOWN {
            let row = client.query_one(&format!("show {setting}"), &[]).map_err(failure)?;
            server_settings.push((setting.to_owned(), row.get::<_, String>(0)));
        }
        let synced = server_settings.iter().take(2).all(|(_, value)| value == "on");
        let row = client.query_one("show server_version", &[]).map_err(failure)?;
        let about = About {
            name: name.into(),
            version: format!("PostgreSQL {}", row.get::<_, String>(0)),
            connection: if address.contains("host=/") { "Unix socket" } else { "TCP" }.into(),
            durability: if synced { Durability::Synced } else { Durability::Relaxed },
            capabilities: Capabilities {
                documents: true,
                indexes: true,
                clustered_indexes: false,
                transactions: true,
                sql: true,
                array_positions: true,
                concurrent_writers: true,
            },
            settings: server_settings,
        };
        let directory = server.is_some().then(|| settings.directory.into());
        Ok(Postgres {
            about,
            address: address.into(),
            columns: Columns::default(),
            directory,
            server,
        })
    }
}

impl Target for Postgres {
    fn about(&self) -> &About {
        &self.about
    }

    fn session(&self) -> Result<Box<dyn Session>, Failure> {
        let client = Client::connect(&self.address, NoTls).map_err(failure)?;
        let sql = PostgresSession { client, prepared: HashMap::new() };
        Ok(Box::new(SqlDocuments::new(sql, self.columns.clone())))
    }

    fn encode(&self, document: &Document) -> Result<Bytes, Failure> {
        Ok(to_json(document))
    }

    fn decode(&self, bytes: &[u8]) -> Result<Document, Failure> {
        from_json(bytes)
    }

    /// Also brings the planner's statistics up to date, which autovacuum would do a minute later.
    fn settle(&self) -> Result<(), Failure> {
        let mut client = Client::connect(&self.address, NoTls).map_err(failure)?;
        client.batch_execute("vacuum analyze").map_err(failure)?;
        client.batch_execute("checkpoint").map_err(failure)
    }

    fn disk_bytes(&self) -> Option<u64> {
        self.directory.as_deref().map(machine::disk_bytes)
    }

    fn processes(&self) -> Vec<u32> {
        self.server.iter().flat_map(Server::processes).collect()
    }
}

fn failure(error: postgres::Error) -> Failure {
    use postgres::error::SqlState;
    let conflicts = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
    if error.code().is_some_and(|code| conflicts.contains(code)) {
        return Failure::Conflict(error.to_string());
    }
    match error.as_db_error() {
        Some(cause) => Failure::Other(format!("{error}: {cause}")),
        None => Failure::other(error),
    }
}

struct PostgresSession {
    client: Client,
    prepared: HashMap<String, Statement>,
}

impl PostgresSession {
    fn prepared(&mut self, statement: &str) -> Result<Statement, Failure> {
        if let Some(prepared) = self.prepared.get(statement) {
            return Ok(prepared.clone());
        }
        let prepared = self.client.prepare(&numbered(statement)).map_err(failure)?;
        self.prepared.insert(statement.to_owned(), prepared.clone());
        Ok(prepared)
    }
}

/// `?` as `$1`, `$2` ...
fn numbered(statement: &str) -> String {
    let mut parts = statement.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (position, part) in parts.enumerate() {
        text += &format!("${}{part}", position + 1);
    }
    text
}

impl ToSql for SqlValue {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            SqlValue::Null => Ok(IsNull::Yes),
            SqlValue::Integer(value) => match *kind {
                Type::INT8 => value.to_sql(kind, out),
                Type::INT4 => i32::try_from(*value)?.to_sql(kind, out),
                Type::INT2 => i16::try_from(*value)?.to_sql(kind, out),
                Type::FLOAT8 => (*value as f64).to_sql(kind, out),
                _ => value.to_string().to_sql(&Type::TEXT, out),
            },
            SqlValue::Real(value) => value.to_sql(kind, out),
            SqlValue::Text(text) => {
                if *kind == Type::JSONB {
                    // Its version.
                    out.put_u8(1);
                }
                text.to_sql(&Type::TEXT, out)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for SqlValue {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<SqlValue, Box<dyn StdError + Sync + Send>> {
        Ok(match *kind {
            Type::INT8 => SqlValue::Integer(i64::from_sql(kind, raw)?),
            Type::INT4 => SqlValue::Integer(i64::from(i32::from_sql(kind, raw)?)),
            Type::INT2 => SqlValue::Integer(i64::from(i16::from_sql(kind, raw)?)),
            Type::BOOL => SqlValue::Integer(i64::from(bool::from_sql(kind, raw)?)),
            Type::FLOAT8 => SqlValue::Real(f64::from_sql(kind, raw)?),
            _ => SqlValue::Text(String::from_utf8(raw.to_vec())?),
        })
    }

    fn from_sql_null(_: &Type) -> Result<SqlValue, Box<dyn StdError + Sync + Send>> {
        Ok(SqlValue::Null)
    }

    /// Numbers without bounds (`sum` of `bigint`) aren't: statements cast them.
    fn accepts(kind: &Type) -> bool {
        *kind != Type::NUMERIC
    }
}

fn parameters_of(values: &[SqlValue]) -> impl ExactSizeIterator<Item = &(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync))
}

impl SqlSession for PostgresSession {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn run(&mut self, statement: &str) -> Result<(), Failure> {
        self.client.batch_execute(statement).map_err(failure)
    }

    fn execute(&mut self, statement: &str, parameters: &[SqlValue]) -> Result<u64, Failure> {
        let prepared = self.prepared(statement)?;
        let parameters: Vec<_> = parameters_of(parameters).collect();
        self.client.execute(&prepared, &parameters).map_err(failure)
    }

    fn query(
        &mut self,
        statement: &str,
        parameters: &[SqlValue],
        each: &mut dyn FnMut(&[SqlValue]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let prepared = self.prepared(statement)?;
        let mut rows =
            self.client.query_raw(&prepared, parameters_of(parameters)).map_err(failure)?;
        let mut values = Vec::new();
        while let Some(row) = rows.next().map_err(failure)? {
            values.clear();
            for column in 0..row.len() {
                values.push(row.try_get(column).map_err(failure)?);
            }
            each(&values)?;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.run("begin")
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.run("commit")
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        // Outside a transaction that is a warning.
        self.run("rollback")
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn parameters_are_numbered() {
        assert_eq!(super::numbered("a = ? and b = ?"), "a = $1 and b = $2");
        assert_eq!(super::numbered("a"), "a");
    }
}
