//! The databases: how each is found and started, and what it does for each request.
//!
//! A name on the command line is one of [`KNOWN`], or one that `--uri NAME=URI` gives; the scheme of the
//! URI tells the protocol.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bson::{Bson, Document};
use bytes::Bytes;

use crate::sql::documents::json;
use crate::target::{Failure, Target};

#[cfg(feature = "sqlite")]
mod sqlite;

/// A target that needs no address.
pub struct Known {
    /// On the command line.
    pub name: &'static str,
    /// A line for `docbench list`.
    pub title: &'static str,
    /// Runs inside this process.
    pub embedded: bool,
}

/// All targets that need no address, in the order of tables.
pub const KNOWN: &[Known] = &[
    Known { name: "frond", title: "Frond, its server, MongoDB's wire", embedded: false },
    Known { name: "frond-embedded", title: "Frond, embedded (frond-db)", embedded: true },
    Known { name: "postgres", title: "PostgreSQL, documents as JSONB", embedded: false },
    Known { name: "mariadb", title: "MariaDB, InnoDB, documents as JSON", embedded: false },
    Known {
        name: "mariadb-rocksdb",
        title: "MariaDB, RocksDB, documents as JSON",
        embedded: false,
    },
    Known { name: "dolt", title: "Dolt, documents as JSON", embedded: false },
    Known { name: "sqlite", title: "SQLite, embedded, documents as JSONB", embedded: true },
    Known { name: "ferretdb", title: "FerretDB over SQLite, MongoDB's wire", embedded: false },
];

/// Where targets are found.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Whether servers may be started.
    pub managed: bool,
    /// Programs that aren't on the path, by target or program.
    pub programs: BTreeMap<String, PathBuf>,
    /// Addresses of servers that run already, by target.
    pub uris: BTreeMap<String, String>,
}

/// What every target is started with.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Empty, on a real disk, ours.
    pub directory: &'a Path,
    /// The database's cache.
    pub cache_bytes: u64,
}

/// Starts the target called `name`, or connects to it.
///
/// # Errors
/// [`Failure::Missing`] if it isn't installed, not built into this program, or has no address.
pub fn start(
    name: &str,
    places: &Places,
    settings: &Settings<'_>,
) -> Result<Box<dyn Target>, Failure> {
    if let Some(uri) = places.uris.get(name) {
        return connect(name, uri, settings);
    }
    match name {
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(Box::new(sqlite::Sqlite::start(settings)?)),
        _ if KNOWN.iter().any(|known| known.name == name) => {
            Err(Failure::Missing("this build of docbench doesn't have it".into()))
        }
        _ => Err(Failure::Missing(format!("unknown, and no --uri {name}=... was given"))),
    }
}

fn connect(_name: &str, uri: &str, _settings: &Settings<'_>) -> Result<Box<dyn Target>, Failure> {
    let scheme = uri.split("://").next().unwrap_or_default();
    Err(Failure::Missing(format!("this build of docbench doesn't speak {scheme}://")))
}

/// How the target called `name` would be started, in words.
///
/// # Errors
/// As [`start`].
pub fn would_start(name: &str, places: &Places) -> Result<String, Failure> {
    if let Some(uri) = places.uris.get(name) {
        return Ok(format!("at {uri}"));
    }
    match KNOWN.iter().find(|known| known.name == name) {
        Some(known) if known.embedded => Ok("in this process".into()),
        Some(_) if !places.managed => Err(Failure::Missing(format!(
            "a server: start it by --managed, or give --uri {name}=..."
        ))),
        _ => Err(Failure::Missing("unknown".into())),
    }
}

/// A document as JSON text, for the targets that speak SQL.
fn to_json(document: &Document) -> Bytes {
    Bytes::from(json(&Bson::Document(document.clone())))
}

/// A document from JSON text; integers are 64 bits wide.
fn from_json(bytes: &[u8]) -> Result<Document, Failure> {
    let value: serde_json::Value = serde_json::from_slice(bytes)?;
    match from_value(value) {
        Bson::Document(document) => Ok(document),
        other => Err(Failure::Wrong(format!("{other} where a document must be"))),
    }
}

fn from_value(value: serde_json::Value) -> Bson {
    use serde_json::Value;
    match value {
        Value::Null => Bson::Null,
        Value::Bool(value) => Bson::Boolean(value),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Bson::Int64(integer),
            None => Bson::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Bson::String(text),
        Value::Array(values) => Bson::Array(values.into_iter().map(from_value).collect()),
        Value::Object(fields) => Bson::Document(
            fields.into_iter().map(|(name, value)| (name, from_value(value))).collect(),
        ),
    }
}
