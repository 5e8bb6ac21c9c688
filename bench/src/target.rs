//! The interface that a database must implement to be measured.
//!
//! A target is one small module in [`crate::targets`]. It says what it is and how it is set; all
//! work goes through a [`Session`], one a thread. Every write is durable (synced) when the call
//! returns: there is one level of durability, the same for all targets.

use std::path::Path;

use bytes::Bytes;

use crate::measure::Processes;
use crate::order::Order;

/// The reason why something could not be measured.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A database, running on an empty data directory, with the collection and its three indexes.
pub trait Target: Sync {
    /// `Frond`, `SQLite` or `PostgreSQL`.
    fn name(&self) -> &'static str;

    /// Version and settings, by the database's own account where it gives one.
    fn description(&self) -> &str;

    /// Returns the processes whose time and written bytes are counted.
    fn processes(&self) -> Processes;

    /// Returns the directory of its files on disk.
    fn directory(&self) -> &Path;

    /// An order in the form that [`Session::insert`] takes; not part of what is timed.
    fn encode(&self, order: &Order) -> Result<Bytes, Failure>;

    /// An order from the form that sessions answer; not part of what is timed.
    fn decode(&self, document: &Bytes) -> Result<Order, Failure>;

    /// A connection.
    fn session(&self) -> Result<Box<dyn Session>, Failure>;

    /// Moves what waits in logs to where it stays (a checkpoint; Frond: a fold).
    fn settle(&self) -> Result<(), Failure>;

    /// Versions, where the database has them.
    fn versions(&self) -> Option<&dyn Versions> {
        None
    }
}

/// A document on its way in: its `_id`, and what [`Target::encode`] made.
pub type Encoded = (i64, Bytes);

/// One connection, used by one thread.
pub trait Session: Send {
    /// Inserts documents in one durable transaction.
    fn insert(&mut self, documents: &[Encoded]) -> Result<(), Failure>;

    /// The document called `number`.
    fn by_id(&mut self, number: i64) -> Result<Option<Bytes>, Failure>;

    /// The documents whose `customer.number` is this, by the index.
    fn by_customer(&mut self, customer: i64) -> Result<Vec<Bytes>, Failure>;

    /// The documents whose `address.city` is this: there is no index, all documents are looked at.
    fn by_city(&mut self, city: &str) -> Result<Vec<Bytes>, Failure>;

    /// Sets the field `status` of the document called `number`, in one durable transaction; answers
    /// how many there were.
    fn set_status(&mut self, number: i64, status: &str) -> Result<u64, Failure>;
}

/// The operations that only a version-controlled database has. Branches have names, commits have
/// ids.
pub trait Versions {
    /// Records the state of the default branch; answers with the commit's id.
    fn commit(&self, message: &str) -> Result<String, Failure>;

    /// Makes a branch at the default branch's last commit.
    fn branch(&self, name: &str) -> Result<(), Failure>;

    /// Sets `status` of each of `numbers` on the branch called `name` and commits it there.
    fn change_branch(&self, name: &str, numbers: &[i64], status: &str) -> Result<(), Failure>;

    /// Returns how many documents differ between two commits.
    fn diff(&self, from: &str, to: &str) -> Result<u64, Failure>;

    /// Merges a branch into the default one; fails on a conflict and where there is nothing to do.
    fn merge(&self, name: &str) -> Result<(), Failure>;
}
