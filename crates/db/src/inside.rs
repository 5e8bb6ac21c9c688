//! The parts of databases that the layer of versions (`frond-vcs`) gets beyond those for
//! applications: for no other crate, which tidy checks. Methods of public types that only that
//! layer calls are `#[doc(hidden)]` where they stand.
//!
//! Further parts that versions come to need are added here, and so are seen. The other way leads by
//! [`Versions`] alone.

// Types that applications get, too.
pub use crate::collection::Effort;
pub use crate::commit_id::CommitId;
pub use crate::database::Database;
pub use crate::error::{Error, ErrorKind};
pub use crate::frond::{Frond, FrondOptions};
pub use crate::interrupt::Interrupt;
pub use crate::name::{DatabaseName, VersionName};
pub use crate::time::ClockState;

// Records of the system tree, what names commits, and what a version's catalog holds.
pub use crate::definition::IndexSpec;
pub use crate::definition::validation::Validator;
pub use crate::name::Target;
pub use crate::refs::format::Commit;
pub use crate::schema::entry::CatalogEntry;
pub use crate::schema::{Collection, TreeRef, is_key_of};
pub use crate::session::StatementDone;
pub use crate::system::{BranchRef, LiveCollection, LiveIndex, RepositoryRecord, WorkingEntry};

// Reading, and changing in transactions.
pub use crate::contention::{LatchMode, Scope};
pub use crate::database::Context;
pub use crate::hook::{Rows, Span, Versions};
pub use crate::reader::Reader;
pub use crate::timeseries::{Series, is_any_place, lie_alike};
pub use crate::transact::Outcome;
pub use crate::uncommitted_writes::Changed;

// Collections: their catalogs, their indexes, and writes to them.
pub use crate::catalog::{CatalogView, INDEXES_MAX, changed_entries};
pub use crate::collection::batch::{BatchOptions, Statements};
pub use crate::collection::new_document::{check_id, check_size};
pub use crate::collection::parse::parse_variables;
pub use crate::collection::scan::FetchedDocument;
pub use crate::collection::update::{ParsedUpdate, parse_update};
pub use crate::collection::write::{CollectionWriter, DocumentChange};

// Events for change streams.
pub use crate::catalog::{record_definition, record_new_indexes};
pub use crate::definition::images::are_kept as keeps_images;
pub use crate::event::{EventKind, EventRecorder};
pub use crate::rewritten::{Rewriting, record_rewrite};

// A data directory being opened.
pub use crate::frond::open_machine;

/// The definitions of collections and indexes.
pub mod definition {
    pub use crate::definition::*;
}

/// The rules for merging a collection's documents.
pub mod merge_rules {
    pub use crate::definition::merge_rules::*;
}

/// Large documents, read and changed by pieces.
pub mod large {
    pub use crate::large::*;
}

/// Names of databases and collections.
pub mod name {
    pub use crate::name::*;
}

/// The names of commits.
pub mod refs {
    pub use crate::refs::*;
}

/// Keys and records of the system tree.
pub mod system {
    pub use crate::system::*;
}

/// The names of commits as text.
pub mod commit_id {
    pub use crate::commit_id::*;
}

/// Making a committed collection writable.
pub mod adopt {
    pub use crate::catalog::adopt::*;
}

/// The catalog of a version.
pub mod catalog_view {
    pub use crate::catalog::view::*;
}

/// Capped collections.
pub mod capped {
    pub use crate::collection::capped::*;
}
