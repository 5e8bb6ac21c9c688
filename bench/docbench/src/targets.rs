//! The databases: how each is found and started, and what it does for each request.
//!
//! A name on the command line is one of [`KNOWN`], or one that `--uri NAME=URI` gives; the scheme
//! of the URI decides the protocol.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bson::{Bson, Document};
use bytes::Bytes;

use crate::sql::documents::json;
use crate::target::{Durability, Failure, Target};

#[cfg(feature = "mysql")]
use self::managed::mariadb::Engine;
#[cfg(feature = "mysql")]
use self::mysql::Variant;

#[cfg(feature = "frond")]
mod frond_embedded;
pub(crate) mod managed;
#[cfg(feature = "mongo")]
mod mongo;
#[cfg(any(feature = "mongo", feature = "frond"))]
mod mongo_form;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

/// A target that needs no address.
pub struct Known {
    /// The name on the command line.
    pub name: &'static str,
    /// A line for `docbench list`.
    pub title: &'static str,
    /// The program that starts the server; empty for a database inside this process.
    pub program: &'static str,
}

/// All targets that need no address, in the order of tables.
pub const KNOWN: &[Known] = &[
    Known { name: "frond", title: "Frond, its server, MongoDB's wire", program: "frond" },
    Known { name: "frond-plain", title: "its server without a driver", program: "frond" },
    Known { name: "frond-secured", title: "its server with TLS and users", program: "frond" },
    Known { name: "frond-set", title: "three servers, a replica set", program: "frond" },
    Known { name: "frond-embedded", title: "Frond, embedded (frond-db)", program: "" },
    Known { name: "postgres", title: "PostgreSQL, documents as JSONB", program: "initdb" },
    Known { name: "postgres-set", title: "with two synchronous standbys", program: "initdb" },
    Known { name: "mariadb", title: "MariaDB, InnoDB, documents as JSON", program: "mariadbd" },
    Known { name: "mariadb-rocksdb", title: "MariaDB, RocksDB, as JSON", program: "mariadbd" },
    Known { name: "dolt", title: "Dolt, documents as JSON", program: "dolt" },
    Known { name: "sqlite", title: "SQLite, embedded, documents as JSONB", program: "" },
    Known { name: "ferretdb", title: "FerretDB over SQLite, MongoDB's wire", program: "ferretdb" },
];

/// The places of targets.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Whether servers may be started.
    pub managed: bool,
    /// Programs that aren't on the path, by target or program.
    pub programs: BTreeMap<String, PathBuf>,
    /// Addresses of servers that run already, by target.
    pub uris: BTreeMap<String, String>,
}

/// The settings that every target is started with.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// A directory on a real disk, ours; empty, or what the same target left here when it was
    /// stopped.
    pub directory: &'a Path,
    /// The database's cache.
    pub cache_bytes: u64,
    /// What each way over the network takes: to the server, and between those of a set.
    pub delay: Duration,
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
        if !settings.delay.is_zero() {
            let text = "docbench delays the network to servers that it starts: --set delay-us";
            return Err(Failure::Missing(text.into()));
        }
        return connect(name, uri, settings);
    }
    let is_embedded = |known: &&Known| known.name == name && known.program.is_empty();
    if !settings.delay.is_zero() && KNOWN.iter().any(|known| is_embedded(&known)) {
        return Err(Failure::Missing("it is reached by no network: --set delay-us".into()));
    }
    start_known(name, places, settings)
}

fn start_known(
    name: &str,
    places: &Places,
    settings: &Settings<'_>,
) -> Result<Box<dyn Target>, Failure> {
    match name {
        #[cfg(feature = "mongo")]
        "frond" => {
            let (server, uri) = managed::frond::start(places, settings)?;
            mongo(name, &uri, Some(server), Durability::Synced, settings)
        }
        #[cfg(feature = "mongo")]
        "frond-plain" => {
            let (server, uri) = managed::frond::start(places, settings)?;
            let uri = format!("{}{uri}", mongo::PLAIN);
            mongo(name, &uri, Some(server), Durability::Synced, settings)
        }
        #[cfg(feature = "mongo")]
        "frond-secured" => {
            let (mut server, uri) = managed::frond::start_secured(places, settings)?;
            let uri = mongo::with_user(&uri, &mut server)?;
            mongo(name, &uri, Some(server), Durability::Synced, settings)
        }
        #[cfg(feature = "mongo")]
        "frond-set" => {
            let (servers, uri) = managed::frond::start_set(places, settings)?;
            mongo(name, &uri, Some(servers), Durability::Synced, settings)
        }
        #[cfg(feature = "mongo")]
        "ferretdb" => {
            let (server, uri) = managed::ferretdb::start(places, settings)?;
            mongo(name, &uri, Some(server), Durability::Relaxed, settings)
        }
        #[cfg(feature = "frond")]
        "frond-embedded" => Ok(Box::new(frond_embedded::Embedded::start(settings)?)),
        #[cfg(feature = "postgres")]
        "postgres" => {
            let (server, address) = managed::postgres::start(places, settings)?;
            Ok(Box::new(postgres::Postgres::connect(name, &address, Some(server), settings)?))
        }
        #[cfg(feature = "postgres")]
        "postgres-set" => {
            let (servers, address) = managed::postgres::start_set(places, settings)?;
            Ok(Box::new(postgres::Postgres::connect(name, &address, Some(servers), settings)?))
        }
        #[cfg(feature = "mysql")]
        "mariadb" => mariadb(name, Variant::MariaDb, Engine::InnoDb, places, settings),
        #[cfg(feature = "mysql")]
        "mariadb-rocksdb" => {
            mariadb(name, Variant::MariaDbRocks, Engine::RocksDb, places, settings)
        }
        #[cfg(feature = "mysql")]
        "dolt" => {
            let (server, address) = managed::dolt::start(places, settings)?;
            let variant = Some(Variant::MySql);
            let server = Some(server);
            Ok(Box::new(mysql::MySql::connect(name, &address, variant, server, settings)?))
        }
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(Box::new(sqlite::Sqlite::start(settings)?)),
        _ if KNOWN.iter().any(|known| known.name == name) => Err(not_built(name)),
        _ => Err(Failure::Missing(format!("unknown, and no --uri {name}=... was given"))),
    }
}

fn not_built(name: &str) -> Failure {
    Failure::Missing(format!("this build of docbench has no client for {name}: see its features"))
}

#[cfg(feature = "mongo")]
fn mongo(
    name: &str,
    uri: &str,
    server: Option<managed::Server>,
    durability: Durability,
    settings: &Settings<'_>,
) -> Result<Box<dyn Target>, Failure> {
    Ok(Box::new(mongo::Mongo::connect(name, uri, server, durability, settings)?))
}

#[cfg(feature = "mysql")]
fn mariadb(
    name: &str,
    variant: Variant,
    engine: Engine,
    places: &Places,
    settings: &Settings<'_>,
) -> Result<Box<dyn Target>, Failure> {
    let (server, address) = managed::mariadb::start(places, settings, engine)?;
    Ok(Box::new(mysql::MySql::connect(name, &address, Some(variant), Some(server), settings)?))
}

/// Connects to a server that isn't ours, by the scheme of its URI.
fn connect(name: &str, uri: &str, settings: &Settings<'_>) -> Result<Box<dyn Target>, Failure> {
    match uri.split("://").next().unwrap_or_default() {
        #[cfg(feature = "mongo")]
        "mongodb" | "mongodb+srv" | "plain+mongodb" => {
            mongo(name, uri, None, Durability::Unknown, settings)
        }
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => {
            Ok(Box::new(postgres::Postgres::connect(name, uri, None, settings)?))
        }
        #[cfg(feature = "mysql")]
        "mysql" => Ok(Box::new(mysql::MySql::connect(name, uri, None, None, settings)?)),
        scheme => Err(not_built(&format!("{scheme}://"))),
    }
}

/// Returns how the target called `name` would be started, in words.
///
/// # Errors
/// As [`start`].
pub fn would_start(name: &str, places: &Places) -> Result<String, Failure> {
    if let Some(uri) = places.uris.get(name) {
        return Ok(format!("at {uri}"));
    }
    match KNOWN.iter().find(|known| known.name == name) {
        Some(known) if known.program.is_empty() => Ok("in this process".into()),
        Some(known) => {
            let path = managed::find_program(places, name, known.program)?;
            Ok(format!("{} on loopback", path.display()))
        }
        None => Err(Failure::Missing(format!("unknown, and no --uri {name}=... was given"))),
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
