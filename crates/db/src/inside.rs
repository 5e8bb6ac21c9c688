//! What versions get of databases: all that the rooms above this one import of those below it.
//!
//! Versions are to be a crate of their own above databases. This list is what that crate will be given: whatever
//! else of databases versions come to need is added here, and so is seen. The other way leads by
//! [`crate::hook`] alone.

// What applications get, too.
pub use crate::collection::Effort;
pub use crate::commit_id::CommitId;
pub use crate::database::Database;
pub use crate::error::{Error, ErrorKind};
pub use crate::frond::{Frond, FrondOptions};
pub use crate::interrupt::Interrupt;
pub use crate::name::{DatabaseName, VersionName};
pub use crate::time::ClockState;

// Records of the system tree, what names commits, and what a version's catalog holds.
pub(crate) use crate::definition::validation::Validator;
pub(crate) use crate::definition::{self, IndexSpec, merge_rules};
pub(crate) use crate::large;
pub(crate) use crate::name::{self, Target};
pub(crate) use crate::refs;
pub(crate) use crate::refs::format::Commit;
pub(crate) use crate::schema::entry::CatalogEntry;
pub(crate) use crate::schema::{Collection, TreeRef};
pub(crate) use crate::session::StatementDone;
pub(crate) use crate::system::{
    self, BranchRef, LiveCollection, LiveIndex, Repository, WorkingEntry,
};
pub(crate) use crate::{commit_id, hook};

// Reading, and changing in transactions.
pub(crate) use crate::contention::{LatchMode, Scope};
pub(crate) use crate::database::Context;
pub(crate) use crate::hook::{Rows, Versions};
pub(crate) use crate::reader::Reader;
pub(crate) use crate::transact::Outcome;
pub(crate) use crate::written::Changed;

// Collections: their catalogs, their indexes, and writes to them.
pub(crate) use crate::catalog::{
    CatalogView, INDEXES_MAX, adopt, changed_entries, view as catalog_view,
};
pub(crate) use crate::collection::batch::BatchOptions;
pub(crate) use crate::collection::capped;
pub(crate) use crate::collection::insert::check_id;
pub(crate) use crate::collection::scan::Found;
pub(crate) use crate::collection::update::ParsedUpdate;
pub(crate) use crate::collection::write::CollectionWriter;

// A data directory being opened.
pub(crate) use crate::clock::BelievedClock;
pub(crate) use crate::frond::open_machine;
