//! A data directory, open.

use std::path::Path;

use frond_store::io::Machine;

use crate::database::Database;
use crate::error::Error;

/// Settings of a data directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrondOptions {
    /// The engine's settings.
    pub engine: frond_engine::EngineOptions,
}

/// A data directory, open: many databases, each a repository. Cloning shares it.
///
/// *Thread safety*: every method may be called from any number of threads at once.
#[derive(Clone)]
pub struct Frond {}

/// What `listDatabases` tells of a database.
#[derive(Clone, Debug)]
pub struct DatabaseInfo {
    /// Its name; branches are not listed.
    pub name: String,
    /// Bytes of its documents and indexes, uncompressed (from the trees' counts).
    pub bytes: u64,
    /// Whether it has no collections.
    pub empty: bool,
}

impl Frond {
    /// Opens `directory`, making it where it is missing.
    pub fn open(directory: &Path, options: FrondOptions) -> Result<Frond, Error> {
        let machine = Machine::system(directory).map_err(|error| {
            Error::invalid(
                frond_query::Code::BadValue,
                format!("data directory {}: {error}", directory.display()),
            )
        })?;
        Frond::open_on(&machine, options)
    }

    /// Opens the data directory that is `machine`'s disk.
    pub fn open_on(_machine: &Machine, _options: FrondOptions) -> Result<Frond, Error> {
        todo!()
    }

    /// The version of a database that `name` (as it comes over the wire: `shop@feature`) names. A
    /// database that doesn't exist yet is empty and begins to exist with the first write; a branch
    /// or commit that doesn't exist is an error.
    pub fn database(&self, _name: &str) -> Result<Database, Error> {
        todo!()
    }

    /// All databases, by name.
    pub fn list_databases(&self) -> Result<Vec<DatabaseInfo>, Error> {
        todo!()
    }

    /// What engine and store have done: for `serverStatus`.
    pub fn counters(&self) -> (frond_engine::EngineCounters, frond_store::StoreCounters) {
        todo!()
    }

    /// Now, by the machine's clock: milliseconds since 1970.
    pub fn now_millis(&self) -> i64 {
        todo!()
    }

    /// A new, unique ObjectId.
    pub fn new_object_id(&self) -> frond_doc::ObjectId {
        todo!()
    }

    /// The engine, for maintenance.
    pub fn engine(&self) -> &frond_engine::Engine {
        todo!()
    }

    /// Folds what is in memory, syncs and lets go of the directory.
    pub fn close(&self) -> Result<(), Error> {
        todo!()
    }
}
