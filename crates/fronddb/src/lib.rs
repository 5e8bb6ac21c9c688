//! A document database in your process: MongoDB's documents, queries and indexes, and git's
//! history.
//!
//! ```standalone_crate
//! use fronddb::{Merge, Side, doc};
//! use serde::{Deserialize, Serialize};
//! # std::env::set_current_dir(tempfile::tempdir()?.keep())?;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Item {
//!     #[serde(rename = "_id")]
//!     id: i32,
//!     name: String,
//!     price: f64,
//! }
//!
//! let shop = fronddb::open("data")?.database("shop")?;
//! let items = shop.collection::<Item>("items");
//! items.insert_one(Item { id: 1, name: "lamp".to_owned(), price: 30.0 })?;
//! items.insert_one(Item { id: 2, name: "desk".to_owned(), price: 240.0 })?;
//! shop.commit("first items")?;
//!
//! let sale = shop.branch("sale")?; // As `database("shop@sale")` opens it.
//! sale.collection::<Item>("items").update_many(doc! {}, doc! { "$mul": { "price": 0.5 } })?;
//! sale.commit("half price")?;
//!
//! for change in shop.diff("main", "sale")? {
//!     println!("{}", change?); // modified items 1: price 30 -> 15
//! }
//! let merged = match shop.merge("sale")? {
//!     Merge::Merged(id) => id,
//!     Merge::Conflicts(conflicts) => conflicts.resolve_all(Side::Theirs)?,
//! };
//! for item in items.find(doc! { "price": { "$lt": 100 } }).sort(doc! { "name": 1 }).limit(10) {
//!     let item = item?;
//!     println!("{} costs {} as of {merged}", item.name, item.price);
//! }
//! # assert_eq!(items.get(2)?.unwrap().price, 120.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What there is
//!
//! - [`open`], [`Frond`]: a data directory. Its databases, [transactions](Frond::transaction),
//!   [clones](Frond::clone_database), [garbage collection](Frond::gc).
//! - [`Database`]: one branch or version. Its collections; [`commit`](Database::commit),
//!   [`branch`](Database::branch), [`checkout`](Database::checkout), [`diff`](Database::diff),
//!   [`merge`](Database::merge), [`log`](Database::log), [`undo`](Database::undo),
//!   [`push`](Database::push), [`pull`](Database::pull).
//! - [`Collection`]: documents of a type. [`insert_one`](Collection::insert_one),
//!   [`get`](Collection::get), [`find`](Collection::find),
//!   [`update_many`](Collection::update_many), [`delete_one`](Collection::delete_one),
//!   [`aggregate`](Collection::aggregate), [`create_index`](Collection::create_index); the
//!   [`history`](Collection::history) of one document; [`insert_bson`](Collection::insert_bson) of
//!   one that is too large for memory.
//!
//! *Names* are those of MongoDB's drivers and of git. *Filters, updates and pipelines* are
//! MongoDB's, as [`doc!`] writes them. *Options*: what has some has a second method whose name ends
//! with `_with` and takes a struct with defaults; finds and aggregations are put together call by
//! call.
//!
//! *Everything is synchronous*, and may be called from any number of threads. A write is on the
//! disk when it returns ([`Durability`]), also if the process is killed at that moment. Nothing
//! runs in the background but the database's own maintenance; [`Frond::gc`] and
//! [`Frond::expire_documents`] are for the application to call.
//!
//! *A running server* (`frond serve`) has the same databases to offer to MongoDB's drivers: the
//! data directory is the same, opened by one process at a time.
//!
//! # Features
//!
//! - `network`: clone from, fetch from and push to running servers and buckets of object stores,
//!   not only directories. Brings an HTTP client and its dependencies.

/// Makes a [`Document`]: `doc! { "name": "lamp", "sizes": [1, 2], "price": { "$lt": 30 } }`.
#[doc(inline)]
pub use bson::doc;

mod branch;
mod collection;
mod commit;
mod convert;
mod database;
mod diff;
mod error;
mod find;
mod frond;
mod history;
mod index;
mod merge;
mod remote;
mod stream;
mod transaction;

#[doc(no_inline)]
pub use bson::{self, Bson, DateTime, Document, oid::ObjectId};
pub use collection::{Collection, FindOneAndOptions, UpdateOptions, UpdateResult};
pub use commit::{Commit, CommitOptions, Log, LogOptions, Tag};
pub use database::Database;
pub use diff::{Change, ChangeKind, Changed, Diff, DiffOptions, FieldChange};
pub use error::{Error, Result};
pub use find::{Aggregate, Cursor, Find};
pub use frond::{Frond, GcOptions, Options};
pub use frond_db::{Code, Durability, ErrorKind};
pub use frond_vcs::Reclaimed;
pub use frond_vcs::remote::{Depth, FetchReport, FetchedBranch, PushReport, RemoteInfo};
pub use frond_vcs::{BranchInfo, CollectionStatus, CommitId, ConflictKind, Status};
pub use history::{DocumentVersion, History};
pub use index::IndexOptions;
pub use merge::{Conflict, Conflicts, Merge, MergeOptions, Resolution, Side};
pub use remote::{Access, CloneOptions, FetchOptions, PullOptions, PushOptions};
pub use transaction::Transaction;

/// Opens a data directory, making it where it is missing: [`Frond::open`].
///
/// # Errors
/// As there.
pub fn open(directory: impl AsRef<std::path::Path>) -> Result<Frond> {
    Frond::open(directory)
}
