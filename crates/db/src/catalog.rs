//! What exists: collections and their indexes.

pub(crate) mod adopt;
pub(crate) mod entry;
mod spec;
pub(crate) mod view;

pub use spec::{ID_INDEX_NAME, IndexSpec};
pub(crate) use view::{CatalogView, Collection};

use frond_doc::{Document, DocumentBuf};

use crate::database::Database;
use crate::error::Error;

/// What `listCollections` tells of a collection.
#[derive(Clone, Debug)]
pub struct CollectionInfo {
    /// Its name.
    pub name: String,
    /// Its options as given to `create`.
    pub options: DocumentBuf,
    /// Sixteen random bytes, local to this data directory.
    pub uuid: [u8; 16],
}

/// What `createIndexes` answers.
#[derive(Clone, Copy, Debug)]
pub struct IndexesCreated {
    /// Indexes before, `_id` counted.
    pub before: u32,
    /// Indexes after.
    pub after: u32,
    /// Whether the collection was made by this.
    pub created_collection: bool,
}

impl Database {
    /// Makes a collection. `NamespaceExists` (48) if it is there with other options.
    pub fn create_collection(&self, _name: &str, _options: Document<'_>) -> Result<(), Error> {
        todo!()
    }

    /// Drops a collection; tells whether it was there.
    pub fn drop_collection(&self, _name: &str) -> Result<bool, Error> {
        todo!()
    }

    /// Renames a collection within this database.
    pub fn rename_collection(
        &self,
        _from: &str,
        _to: &str,
        _drop_target: bool,
    ) -> Result<(), Error> {
        todo!()
    }

    /// Drops the database with its whole history if this is the default branch; a branch's working
    /// state otherwise can't be dropped this way (an error that names `frondBranch`).
    pub fn drop_database(&self) -> Result<(), Error> {
        todo!()
    }

    /// All collections, by name.
    pub fn list_collections(&self) -> Result<Vec<CollectionInfo>, Error> {
        todo!()
    }

    /// Makes indexes, all or none, filled from the documents that are there.
    pub fn create_indexes(
        &self,
        _collection: &str,
        _specs: &[IndexSpec],
    ) -> Result<IndexesCreated, Error> {
        todo!()
    }

    /// Drops the index called `index` (`*`: all but `_id`'s); answers how many there were.
    pub fn drop_indexes(&self, _collection: &str, _index: &str) -> Result<u32, Error> {
        todo!()
    }

    /// The indexes of a collection, `_id`'s first. `NamespaceNotFound` (26) if there is none.
    pub fn list_indexes(&self, _collection: &str) -> Result<Vec<IndexSpec>, Error> {
        todo!()
    }

    /// Counts and sizes, as `collStats` has them: count, size, avgObjSize, nindexes, indexSizes...
    pub fn collection_stats(&self, _collection: &str) -> Result<DocumentBuf, Error> {
        todo!()
    }
}
