//! A database as the benchmark sees it.
//!
//! A [`Target`] is a running database; a [`Session`] is one connection to it, used by one thread. A
//! target is one small module in [`crate::targets`] that says in its [`About`] what it can do, and
//! does it by the database's own best means: prepared statements, its own operators, its own
//! indexes. A request that it can't serve it refuses with [`Failure::Unsupported`], and the row
//! says "not run" with the reason.
//!
//! 1. Documents travel as the bytes that the database's client takes and gives: BSON for MongoDB's
//!    wire and Frond, JSON text for SQL. [`Target::encode`] makes them before time counts; answers
//!    are decoded by [`Target::decode`] when they are checked.
//! 2. A write has the durability of [`About::durability`] when the call returns. One level in a
//!    table.
//! 3. A transaction that lost to another one fails with [`Failure::Conflict`] in whatever call
//!    notices it, has ended by then, and may be run again.

use bson::{Bson, Document};
use bytes::Bytes;
use serde::Serialize;

use crate::query::{Change, CollectionSpec, IndexSpec, Query};
use crate::sql::SqlSession;

/// The reason why something was not done.
#[derive(Clone, Debug)]
pub enum Failure {
    /// Another transaction was first: the whole transaction may be run again.
    Conflict(String),
    /// The target can't do it: "not run".
    Unsupported(String),
    /// The program isn't there, or no address was given: "not run".
    Missing(String),
    /// The answer is not what it must be: the row is disqualified.
    Wrong(String),
    /// Anything else.
    Other(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Conflict(text) => write!(formatter, "conflict: {text}"),
            Failure::Wrong(text) => write!(formatter, "wrong answer: {text}"),
            Failure::Unsupported(text) | Failure::Missing(text) | Failure::Other(text) => {
                formatter.write_str(text)
            }
        }
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// Any other failure, from whatever can be printed.
    pub fn other(error: impl std::fmt::Display) -> Failure {
        Failure::Other(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::other(error)
    }
}

impl From<bson::error::Error> for Failure {
    fn from(error: bson::error::Error) -> Failure {
        Failure::other(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::other(error)
    }
}

/// The durability of a write that is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// It survives a power cut.
    Synced,
    /// It may be lost: the target has nothing better.
    Relaxed,
    /// Not known: docbench did not start the server.
    Unknown,
}

/// The features of a target.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Capabilities {
    /// Has collections of documents that are found by fields inside.
    pub documents: bool,
    /// Has secondary indexes on fields.
    pub indexes: bool,
    /// Has indexes that hold the whole document, or can answer without it.
    pub clustered_indexes: bool,
    /// Has transactions over several documents.
    pub transactions: bool,
    /// Speaks SQL: [`Session::sql`] answers.
    pub sql: bool,
    /// Changes a place in an array by itself: [`Change::InsertAt`] and [`Change::RemoveAt`].
    pub array_positions: bool,
    /// Many clients may write at once without waiting for a lock of the whole database.
    pub concurrent_writers: bool,
}

/// A target's description of itself; stands in the results.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// The name on the command line and in every row.
    pub name: String,
    /// Product and version, by its own account.
    pub version: String,
    /// The way clients reach it: `embedded`, `TCP on loopback`, `Unix socket`.
    pub connection: String,
    /// The durability of acknowledged writes.
    pub durability: Durability,
    /// Its features.
    pub capabilities: Capabilities,
    /// Settings that matter, by its own account.
    pub settings: Vec<(String, String)>,
}

/// A document on its way in.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The document's `_id`: text or a 64-bit integer.
    pub id: Bson,
    /// The whole document, as [`Target::encode`] made it.
    pub bytes: Bytes,
}

/// A running database. Dropping it stops what was started for it.
///
/// *Thread safety*: shared by all clients of a workload.
pub trait Target: Send + Sync {
    /// Returns the target's description.
    fn about(&self) -> &About;

    /// A new connection.
    fn session(&self) -> Result<Box<dyn Session>, Failure>;

    /// The form in which sessions take a document.
    fn encode(&self, document: &Document) -> Result<Bytes, Failure>;

    /// A document from the form in which sessions answer it.
    fn decode(&self, bytes: &[u8]) -> Result<Document, Failure>;

    /// Moves what waits in logs to where it stays, and brings statistics up to date.
    fn settle(&self) -> Result<(), Failure>;

    /// Bytes on the disk; `None` where they can't be found out from here.
    fn disk_bytes(&self) -> Option<u64>;

    /// The processes that do the work, for processor time; empty if they aren't known. An embedded
    /// database answers this process.
    fn processes(&self) -> Vec<u32>;
}

/// One connection, used by one thread.
pub trait Session: Send {
    /// Makes an empty collection with its indexes, in place of what has this name.
    fn create(&mut self, collection: &CollectionSpec) -> Result<(), Failure>;

    /// Adds an index to a collection that may have documents; it is complete when the call returns.
    fn create_index(&mut self, collection: &str, index: &IndexSpec) -> Result<(), Failure>;

    /// Inserts documents in one durable step.
    fn insert(&mut self, collection: &str, documents: &[Encoded]) -> Result<(), Failure>;

    /// The document called `id`.
    fn get(&mut self, collection: &str, id: &Bson) -> Result<Option<Bytes>, Failure>;

    /// Calls `each` with what was found, in its order; answers how many.
    ///
    /// With a projection `each` gets a document (or JSON object) of the fields, each named by the
    /// last part of its path; a count calls nothing.
    fn find(
        &mut self,
        query: &Query,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<u64, Failure>;

    /// Changes the document called `id` in one durable step; answers how many there were.
    fn update(&mut self, collection: &str, id: &Bson, changes: &[Change]) -> Result<u64, Failure>;

    /// As `update` of several documents, in their order and one request, of a target that isn't
    /// SQL.
    fn update_each(
        &mut self,
        _collection: &str,
        _changes: &[(Bson, Vec<Change>)],
    ) -> Result<u64, Failure> {
        Err(Failure::Unsupported("it doesn't take several changes at once".into()))
    }

    /// As `update`, of a target that isn't SQL: answers the document as it was before.
    fn modify(
        &mut self,
        _collection: &str,
        _id: &Bson,
        _changes: &[Change],
    ) -> Result<Option<Bytes>, Failure> {
        Err(Failure::Unsupported("it doesn't answer what it changes".into()))
    }

    /// Removes the first document of a query, of a target that isn't SQL, and answers it.
    fn remove_first(&mut self, _query: &Query) -> Result<Option<Bytes>, Failure> {
        Err(Failure::Unsupported("it doesn't answer what it removes".into()))
    }

    /// Copies a whole collection inside the database, with one change applied to each document.
    fn copy(&mut self, from: &str, to: &str, change: &Change) -> Result<(), Failure>;

    /// Begins a transaction; what follows belongs to it until it ends.
    fn begin(&mut self) -> Result<(), Failure>;

    /// Ends the transaction, durably.
    fn commit(&mut self) -> Result<(), Failure>;

    /// Ends the transaction without effect; harmless where it has ended.
    fn rollback(&mut self) -> Result<(), Failure>;

    /// The same connection as SQL.
    fn sql(&mut self) -> Option<&mut dyn SqlSession> {
        None
    }
}
