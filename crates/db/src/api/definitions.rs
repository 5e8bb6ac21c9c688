//! The methods that list a database's collections and indexes, and make, change and drop them.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, ValueBuf};

use crate::catalog::{
    CollectionInfo, IndexChange, IndexesCreated, change_index, collections, drop, indexes, rename,
    stats,
};
use crate::collection::{Checked, FindRequest, check, convert, index_filters, moved, view};
use crate::database::Database;
use crate::definition::IndexSpec;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::schema::{CollectionScans, IndexFilter, QueryShape};

impl Database {
    /// All collections, by name.
    ///
    /// # Errors
    /// `Damaged` or `Unavailable` if the catalog can't be read.
    pub fn list_collections(&self) -> Result<Vec<CollectionInfo>, Error> {
        collections::list_collections(self)
    }

    /// Makes a collection. `NamespaceExists` (48) if it is there with other options.
    ///
    /// # Errors
    /// Options that aren't supported yet are refused by name.
    pub fn create_collection(&self, name: &str, options: Document<'_>) -> Result<(), Error> {
        collections::create_collection(self, name, options)
    }

    /// Changes options of a collection (`validator`, `validationLevel`, `validationAction`) or of a
    /// view (`viewOn`, `pipeline`): those of `changes` take the place of what was there.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26); options that a collection, or a view, can't have.
    pub fn change_collection(&self, name: &str, changes: Document<'_>) -> Result<(), Error> {
        collections::change_collection(self, name, changes)
    }

    /// Changes when the documents of a clustered collection expire; `None`: never.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26), `InvalidOptions` (72) if the collection isn't clustered.
    pub fn change_expiry(&self, name: &str, seconds: Option<i64>) -> Result<(), Error> {
        collections::change_expiry(self, name, seconds)
    }

    /// Changes the limits of a capped collection. Documents above the limits go with the next
    /// insertion.
    ///
    /// # Errors
    /// `InvalidOptions` (72) if the collection isn't capped.
    pub fn change_limits(
        &self,
        collection: &str,
        size: Option<i64>,
        max: Option<i64>,
    ) -> Result<(), Error> {
        convert::change_limits(self, collection, size, max)
    }

    /// Renames a collection within this database.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26), `NamespaceExists` (48), `IllegalOperation` (20) for the same name,
    /// `CommandNotSupportedOnView` (166).
    pub fn rename_collection(&self, from: &str, to: &str, drop_target: bool) -> Result<(), Error> {
        rename::rename_collection(self, from, to, drop_target)
    }

    /// Moves a collection into another database, under the name `to`.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26), `NamespaceExists` (48), `CommandNotSupportedOnView` (166);
    /// `UserWritesBlocked` (371) if one of the branches takes no direct writes.
    pub fn move_collection(
        &self,
        from: &str,
        target: &Database,
        to: &str,
        drop_target: bool,
    ) -> Result<(), Error> {
        moved::move_collection(self, from, target, to, drop_target)
    }

    /// Makes the collection `to` a capped one of `size` bytes with the last documents of `from`;
    /// `to` may be `from`.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26); `NamespaceExists` (48) if `to` is there and another.
    pub fn copy_capped(&self, from: &str, to: &str, size: i64) -> Result<(), Error> {
        convert::copy_capped(self, from, to, size)
    }

    /// Drops a collection; returns whether it was there.
    ///
    /// # Errors
    /// `UserWritesBlocked` if this is a commit; as a commit. That the disk is full is no reason:
    /// what could be undone later is given up first.
    pub fn drop_collection(&self, name: &str) -> Result<bool, Error> {
        drop::drop_collection(self, name)
    }

    /// Drops the database with its whole history if this is the default branch; a branch's working
    /// state otherwise can't be dropped this way (an error that names `frondBranch`).
    ///
    /// # Errors
    /// `IllegalOperation` (20) if a branch of it is protected.
    pub fn drop_database(&self) -> Result<(), Error> {
        drop::drop_database(self)
    }

    /// Counts and sizes, as `collStats` has them: count, size, avgObjSize, nindexes, indexSizes...
    ///
    /// Sizes are uncompressed. The documents lie in the tree of `_id`, or of source and time, so
    /// that index has no size of its own. A collection that doesn't exist has zeros; a view:
    /// `CommandNotSupportedOnView`.
    ///
    /// # Errors
    /// `CommandNotSupportedOnView` (166) if it is a view.
    pub fn collection_stats(&self, collection: &str) -> Result<DocumentBuf, Error> {
        stats::collection_stats(self, collection)
    }

    /// Reads a whole collection and compares its indexes with its documents. Faults are counted,
    /// unless the collection can't be read.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26); `CommandNotSupportedOnView` (166); what `interrupt` says;
    /// `Damaged` or `Unavailable` at the first entry that can't be read.
    pub fn check_collection(&self, name: &str, interrupt: &Interrupt) -> Result<Checked, Error> {
        check::check_collection(self, name, interrupt)
    }

    /// The collection that a view reads in the end, and the stages that a `find` over the view is
    /// short for: the view's own (and those of views below it), then the request's. `None` if it is
    /// no view.
    ///
    /// # Errors
    /// `ViewDepthLimitExceeded` (165); `InvalidPipelineOperator` (168) for an option of `find` that
    /// no pipeline has.
    pub fn pipeline_of_view(
        &self,
        name: &str,
        request: &FindRequest,
    ) -> Result<Option<(String, ValueBuf)>, Error> {
        view::pipeline_of_view(self, name, request)
    }

    /// The indexes of a collection, its own tree first: `_id`'s, or that of source and time.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26) if there is none, `CommandNotSupportedOnView` (166) if it is a
    /// view.
    pub fn list_indexes(&self, collection: &str) -> Result<Vec<IndexSpec>, Error> {
        indexes::list_indexes(self, collection)
    }

    /// The indexes of a collection as `listIndexes` shows them.
    ///
    /// # Errors
    /// As [`Database::list_indexes`].
    pub fn describe_indexes(&self, collection: &str) -> Result<Vec<DocumentBuf>, Error> {
        indexes::describe_indexes(self, collection)
    }

    /// The indexes of a collection, and how often each was used since it was used first, or since
    /// the data directory was opened.
    ///
    /// # Errors
    /// As [`Database::list_indexes`].
    pub fn index_uses(&self, collection: &str) -> Result<Vec<(IndexSpec, u64)>, Error> {
        indexes::index_uses(self, collection)
    }

    /// How often a collection was read whole, since it was first, or since the data directory was
    /// opened.
    ///
    /// # Errors
    /// As [`Database::list_indexes`].
    pub fn collection_scans(&self, collection: &str) -> Result<CollectionScans, Error> {
        indexes::collection_scans(self, collection)
    }

    /// Makes indexes, all or none, filled from the documents that are there.
    ///
    /// # Errors
    /// `IndexOptionsConflict` (85), `IndexKeySpecsConflict` (86), `DuplicateKey` (11000).
    pub fn create_indexes(
        &self,
        collection: &str,
        specs: &[IndexSpec],
    ) -> Result<IndexesCreated, Error> {
        indexes::create_indexes(self, collection, specs)
    }

    /// As [`Database::create_indexes`]; `interrupt` may stop it.
    ///
    /// # Errors
    /// As [`Database::create_indexes`]; what `interrupt` says.
    pub fn create_indexes_unless(
        &self,
        collection: &str,
        specs: &[IndexSpec],
        interrupt: &Interrupt,
    ) -> Result<IndexesCreated, Error> {
        indexes::create_indexes_unless(self, collection, specs, interrupt)
    }

    /// Changes the index that `index`, a name or a key, stands for; answers with it before and
    /// after.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26), `IndexNotFound` (27); `InvalidOptions` (72) for what that index
    /// can't be; `IndexKeySpecsConflict` (86) if another has the name.
    pub fn change_index(
        &self,
        collection: &str,
        index: &ValueBuf,
        change: &IndexChange,
    ) -> Result<(IndexSpec, IndexSpec), Error> {
        change_index::change_index(self, collection, index, change)
    }

    /// Does all of [`Database::change_index`] but the change.
    ///
    /// # Errors
    /// The same.
    pub fn try_change_index(
        &self,
        collection: &str,
        index: &ValueBuf,
        change: &IndexChange,
    ) -> Result<(), Error> {
        change_index::try_change_index(self, collection, index, change)
    }

    /// Drops the index called `index` (`*`: all but `_id`'s); answers how many there were.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26), `IndexNotFound` (27), `InvalidOptions` (72) for `_id`'s.
    pub fn drop_indexes(&self, collection: &str, index: &str) -> Result<u32, Error> {
        indexes::drop_indexes(self, collection, index)
    }

    /// Returns the index filters that were set for queries of a collection.
    ///
    /// # Errors
    /// If the catalog can't be read.
    pub fn index_filters(&self, collection: &str) -> Result<Vec<Arc<IndexFilter>>, Error> {
        index_filters::index_filters(self, collection)
    }

    /// Sets which indexes queries of a shape may use. Answers whether there is the collection.
    ///
    /// # Errors
    /// An invalid query; if there are too many filters.
    pub fn set_index_filter(&self, collection: &str, filter: IndexFilter) -> Result<bool, Error> {
        index_filters::set_index_filter(self, collection, filter)
    }

    /// Forgets what was set for queries of a shape, or for all of a collection.
    ///
    /// # Errors
    /// An invalid query.
    pub fn clear_index_filters(
        &self,
        collection: &str,
        shape: Option<&QueryShape>,
    ) -> Result<(), Error> {
        index_filters::clear_index_filters(self, collection, shape)
    }
}
