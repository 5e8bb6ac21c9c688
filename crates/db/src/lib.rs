//! Databases, collections, documents, indexes, transactions. Their history is `frond_vcs`; what
//! an application links is `fronddb`.
//!
//! Reading order, the lowest first: [`request_profile`] (what a request does, for the profiler),
//! [`name`] (`shop@main~2`), `definition` (what collections and indexes are asked to be),
//! `timeseries` (collections of points), `system` and `session` (what of all this lies in the
//! engine's own tree), [`access`] (users and roles), `schema` (collections as they can be read),
//! [`frond`] (what all requests share), `transact` and [`transaction`] (changes, and several in
//! one), `reader` (working trees and committed ones read alike), `refs` (what names commits),
//! [`retry`] (writes that are sent twice), [`database`] (one version of one database: what a
//! command works on), `moment` (reading what was), `hook` (the way up to versions), [`catalog`]
//! (what exists), [`collection`] (reads and writes), `api` (all that a database can be asked for),
//! `open`, `inside` (what versions get of all this). Blocking and batched; knows no wire and no
//! socket.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod access;
mod api;
pub mod catalog;
mod changes;
mod clock;
pub mod collection;
mod commit_id;
pub mod database;
pub mod date;
mod definition;
mod ended_cursors;
pub mod error;
mod event;
mod expire;
pub mod fence;
pub mod frond;
mod hook;
#[doc(hidden)]
pub mod inside;
mod interrupt;
mod large;
pub mod name;
mod open;
mod pressure;
mod read_point;
mod refs;
pub mod request_profile;
pub mod retry;
mod rewritten;
mod schema;
mod session;
pub mod set;
mod tail;
mod time;
mod timeseries;
mod transact;
pub mod transaction;
mod uncommitted_writes;

#[cfg(test)]
mod golden;

pub(crate) mod contention;
pub(crate) mod reader;
pub(crate) mod spill;
pub(crate) mod system;

pub use access::{AccessChange, AccessKind};
pub use changes::{
    CHANGE_STREAM_OPTIONS, ChangeStream, ChangeStreamRequest, ChangedPlaces, FullDocument, Image,
    StreamStart, TouchedPlace, Watched,
};
pub use collection::stream::StoredDocument;
pub use collection::{
    AggregateRequest, Checked, CheckedIndex, Cursor, DeleteStatement, Effort, ExecutedSearch,
    FindAndModify, FindRequest, Interrupt, Purpose, StatementCounts, Tail, UpdateReport,
    UpdateStatement, WriteError, WriteReport,
};
pub use database::Database;
pub use error::{Error, ErrorKind};
pub use frond::{Frond, FrondOptions, Notice};
pub use frond_engine::{
    ChangeRetention, DiskStatus, Durability, Fault, ReclaimOptions, Reserve, RetentionBegins,
};
pub use frond_query::{Code, Collation};
pub use frond_store::{GcReport, memory_queue};
pub use name::{DatabaseName, VersionName};
pub use pressure::PRESSURE_MAX;
pub use read_point::ReadPoint;
pub use retry::{RetryKey, RetryableWrite};
pub use schema::{CollectionScans, IndexFilter, QueryShape};
pub use time::ClockState;
pub use transact::{Deferred, HandedCommit};
pub use transaction::Transaction;
