//! SQLite, embedded: documents as JSONB, expression indexes, write-ahead log, `synchronous=FULL`.
//!
//! SQLite has one writer at a time. Threads take turns by a lock of this process: SQLite's own waiting
//! sleeps between tries, which would measure the sleep.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::measure::Processes;
use crate::order::Order;
use crate::target::{Encoded, Failure, Session, Target};
use crate::targets::CACHE_BYTES;

const SCHEMA: &str = "
    create table orders (number integer primary key, doc blob not null);
    create index by_customer on orders (doc ->> '$.customer.number');
    create index by_created on orders (doc ->> '$.created');
    create index by_total on orders (doc ->> '$.total');
";
const INSERT: &str = "insert into orders values (?1, jsonb(?2))";
const BY_ID: &str = "select json(doc) from orders where number = ?1";
const BY_CUSTOMER: &str = "select json(doc) from orders where doc ->> '$.customer.number' = ?1";
const BY_CITY: &str = "select json(doc) from orders where doc ->> '$.address.city' = ?1";
const SET_STATUS: &str = "update orders set doc = jsonb_set(doc, '$.status', ?2) where number = ?1";

/// A database file.
pub struct Sqlite {
    directory: PathBuf,
    description: String,
    writing: Arc<Mutex<()>>,
}

impl Sqlite {
    /// Makes the file, the table and its indexes.
    pub fn start(directory: &Path) -> Result<Sqlite, Failure> {
        let connection = connect(directory)?;
        connection.execute_batch(SCHEMA)?;
        let version: String =
            connection.query_row("select sqlite_version()", [], |row| row.get(0))?;
        let pragma = |name: &str| -> rusqlite::Result<String> {
            connection.query_row(&format!("pragma {name}"), [], |row| {
                Ok(match row.get_ref(0)? {
                    rusqlite::types::ValueRef::Text(text) => {
                        String::from_utf8_lossy(text).into_owned()
                    }
                    other => format!("{}", other.as_i64().unwrap_or_default()),
                })
            })
        };
        let description = format!(
            "SQLite {version}, embedded (rusqlite, bundled), JSONB; journal_mode={}, \
             synchronous={} (2 is FULL), cache_size={}, page_size={}, wal_autocheckpoint={}; one \
             writer at a time by a lock of the process",
            pragma("journal_mode")?,
            pragma("synchronous")?,
            pragma("cache_size")?,
            pragma("page_size")?,
            pragma("wal_autocheckpoint")?,
        );
        Ok(Sqlite { directory: directory.into(), description, writing: Arc::default() })
    }
}

fn connect(directory: &Path) -> Result<Connection, Failure> {
    let connection = Connection::open(directory.join("orders.db"))?;
    connection.execute_batch(&format!(
        "pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -{};",
        CACHE_BYTES >> 10
    ))?;
    Ok(connection)
}

impl Target for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn processes(&self) -> Processes {
        Processes::Own
    }

    fn directory(&self) -> &Path {
        &self.directory
    }

    fn encode(&self, order: &Order) -> Result<Bytes, Failure> {
        Ok(serde_json::to_vec(order)?.into())
    }

    fn decode(&self, document: &Bytes) -> Result<Order, Failure> {
        Ok(serde_json::from_slice(document)?)
    }

    fn session(&self) -> Result<Box<dyn Session>, Failure> {
        let connection = connect(&self.directory)?;
        Ok(Box::new(SqliteSession { connection, writing: Arc::clone(&self.writing) }))
    }

    fn settle(&self) -> Result<(), Failure> {
        let busy: i64 =
            connect(&self.directory)?
                .query_row("pragma wal_checkpoint(truncate)", [], |row| row.get(0))?;
        if busy != 0 {
            return Err("the write-ahead log is in use".into());
        }
        Ok(())
    }
}

struct SqliteSession {
    connection: Connection,
    writing: Arc<Mutex<()>>,
}

impl SqliteSession {
    fn documents(
        &self,
        query: &str,
        parameter: &dyn rusqlite::ToSql,
    ) -> Result<Vec<Bytes>, Failure> {
        let mut statement = self.connection.prepare_cached(query)?;
        let rows = statement.query_map([parameter], |row| row.get::<_, String>(0))?;
        rows.map(|text| Ok(Bytes::from(text?))).collect()
    }
}

impl Session for SqliteSession {
    fn insert(&mut self, documents: &[Encoded]) -> Result<(), Failure> {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut statement = transaction.prepare_cached(INSERT)?;
            for (number, document) in documents {
                statement.execute(params![number, std::str::from_utf8(document)?])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn by_id(&mut self, number: i64) -> Result<Option<Bytes>, Failure> {
        let mut statement = self.connection.prepare_cached(BY_ID)?;
        let text = statement.query_row([number], |row| row.get::<_, String>(0)).optional()?;
        Ok(text.map(Bytes::from))
    }

    fn by_customer(&mut self, customer: i64) -> Result<Vec<Bytes>, Failure> {
        self.documents(BY_CUSTOMER, &customer)
    }

    fn by_city(&mut self, city: &str) -> Result<Vec<Bytes>, Failure> {
        self.documents(BY_CITY, &city)
    }

    fn set_status(&mut self, number: i64, status: &str) -> Result<u64, Failure> {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement = self.connection.prepare_cached(SET_STATUS)?;
        Ok(statement.execute(params![number, status])? as u64)
    }
}
