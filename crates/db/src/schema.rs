//! The catalog's content, as types; and the process's memory of it.
//!
//! Reading order: [`TreeRef`] (where a tree lies), `collection` (a collection that can be read),
//! `entry` (one in a commit), `cache` (the last meanings of names), `builds` and `usage` (of
//! indexes), `index_filters`. Reading them is the catalog's.

mod builds;
pub(crate) mod cache;
mod collection;
pub(crate) mod entry;
mod index_filters;
mod usage;

use frond_engine::TreeId;
use frond_tree::Tree;

pub use builds::IndexBuild;
pub(crate) use builds::{Builds, Progress};
pub use cache::{CatalogCache, CatalogEpoch, KnownDatabase};
pub use collection::{Collection, Held, Index, is_key_of};
pub use index_filters::{IndexFilter, QueryShape};
pub(crate) use index_filters::{IndexFilters, ShapeKey};
pub use usage::CollectionScans;
pub(crate) use usage::{COLLECTION_SCANS, IndexUsage, TAILABLE_SCANS};

/// The place of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TreeRef {
    /// In the engine: it changes.
    Live(TreeId),
    /// In the store, below a commit: it never changes.
    Committed(Tree),
}
