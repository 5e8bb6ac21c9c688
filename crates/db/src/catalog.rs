//! The catalog: collections and their indexes.
//!
//! Reading order: [`IndexSpec`] (the definition of an index), `entry` (a collection in a commit),
//! `index_entry` (an entry of an index's tree), `view` (the catalog of one version at one moment),
//! `lookup` (the meaning of names to a reader), `adopt` (getting a collection into trees that can
//! be written), `cache` (the last results), then the operations: `collections`, `rename`, `drop`,
//! `indexes` (with `prepared` and `build`), `stats`.

pub(crate) mod adopt;
pub(crate) mod build;
pub(crate) mod change_index;
pub mod changed_entries;
pub(crate) mod collections;
mod databases;
pub(crate) mod drop;
pub(crate) mod duplicate;
pub(crate) mod index_entry;
pub(crate) mod indexes;
mod lookup;
pub(crate) mod options;
pub(crate) mod prepared;
pub(crate) mod record;
pub mod reference;
pub(crate) mod rename;
pub(crate) mod stats;
pub(crate) mod view;
mod view_cycle;

pub use crate::definition::{ID_INDEX_NAME, IndexSpec, TextOptions, UnknownOptions, expire_after};
pub use crate::schema::IndexBuild;
pub use change_index::{IndexChange, ambiguous};
pub use collections::CollectionInfo;
pub use databases::DatabaseInfo;
pub use indexes::INDEXES_MAX;
pub use indexes::IndexesCreated;
pub(crate) use lookup::Catalog;
pub use record::{record_definition, record_new_indexes};
pub use view::CatalogView;
