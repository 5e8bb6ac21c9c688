//! Working trees and committed ones, in a snapshot or a transaction, read alike.
//!
//! A caller that reads a collection holds a [`Reader`] (the moment) and a [`TreeRef`] (the tree),
//! and need not know whether the tree is a live one of the engine or hangs off a commit.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use frond_doc::DocumentBuf;
use frond_doc::field_index::cache::{CACHE_BYTES, FieldIndexes};
use frond_doc::pieces::{LargeDocument, PiecesError};
use frond_engine::{Engine, EngineError, EntryCursor, Snapshot, Transaction};
use frond_store::ChunkStore;
use frond_tree::{Bounds, Content, Cursor, Direction, Entry, EntryRef, Tree, Value};

use crate::error::Error;
use crate::large;
use crate::schema::{CatalogEpoch, TreeRef};
use crate::transaction::Transaction as SharedTransaction;

/// Derived from documents, and named by their hashes: one serves all that the process has open.
static FIELD_INDEXES: LazyLock<FieldIndexes> = LazyLock::new(|| FieldIndexes::new(CACHE_BYTES));

/// Has indexes of documents' fields take no more than this.
pub(crate) fn set_cache_bytes(bytes: u64) {
    FIELD_INDEXES.set_bytes_max(bytes.min(CACHE_BYTES));
}

/// Reads trees at one moment. With a snapshot it owns what it needs ([`Reader::at`]).
#[derive(Clone)]
pub struct Reader<'a> {
    source: Source<'a>,
    store: Arc<dyn ChunkStore>,
    /// The moment of the catalog, noted before the snapshot was taken.
    moment: Option<CatalogEpoch>,
}

#[derive(Clone)]
enum Source<'a> {
    Snapshot(Snapshot),
    Transaction(&'a Transaction),
    /// One of several requests: it may have written more, or have ended, from one call to the next.
    Shared(SharedTransaction),
}

impl Reader<'static> {
    /// Reads what is visible now.
    pub fn now(engine: &Engine) -> Reader<'static> {
        Reader::at(engine.snapshot())
    }

    /// Reads at `snapshot`.
    pub fn at(snapshot: Snapshot) -> Reader<'static> {
        // The snapshot's own: of a moment that was made again it has chunks that no other has.
        let store = Arc::clone(snapshot.store());
        Reader { source: Source::Snapshot(snapshot), store, moment: None }
    }

    /// This reader, whose snapshot was taken after `moment` was noted.
    pub fn at_moment(self, moment: Option<CatalogEpoch>) -> Reader<'static> {
        Reader { moment, ..self }
    }

    /// Reads what a transaction of several requests sees, its later writes included.
    pub fn shared(transaction: SharedTransaction) -> Reader<'static> {
        let moment = transaction.moment();
        let store = transaction.frond().engine().store().clone();
        Reader { source: Source::Shared(transaction), store, moment }
    }
}

impl<'a> Reader<'a> {
    /// Reads what `transaction` sees, its own writes included.
    pub fn within(engine: &Engine, transaction: &'a Transaction) -> Reader<'a> {
        Reader {
            source: Source::Transaction(transaction),
            store: engine.store().clone(),
            moment: None,
        }
    }

    /// The moment of the catalog that was noted before the snapshot was taken.
    pub fn moment(&self) -> Option<CatalogEpoch> {
        self.moment
    }

    /// Returns where chunks lie.
    pub fn store(&self) -> &Arc<dyn ChunkStore> {
        &self.store
    }

    /// The moment, without a transaction's own writes.
    ///
    /// # Errors
    /// `NoSuchTransaction` (251) if the transaction has ended.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        Ok(match &self.source {
            Source::Snapshot(snapshot) => snapshot.clone(),
            Source::Transaction(own) => own.snapshot().clone(),
            Source::Shared(transaction) => transaction.read(|own| Ok(own.snapshot().clone()))?,
        })
    }

    /// Reads a tree of the engine by the snapshot, or by the transaction.
    fn with_source<T>(
        &self,
        snapshot: impl FnOnce(&Snapshot) -> Result<T, EngineError>,
        own: impl FnOnce(&Transaction) -> Result<T, EngineError>,
    ) -> Result<T, Error> {
        Ok(match &self.source {
            Source::Snapshot(found) => snapshot(found)?,
            Source::Transaction(found) => own(found)?,
            Source::Shared(transaction) => transaction.read(|found| Ok(own(found)?))?,
        })
    }

    /// Whether what is read may change from one call to the next.
    pub fn may_change(&self) -> bool {
        matches!(self.source, Source::Shared(_))
    }

    /// Whether what `key` has was written by the transaction that reads: it may be undone from one
    /// call to the next, and no other reader has its chunks.
    ///
    /// # Errors
    /// `NoSuchTransaction` (251) if the transaction has ended.
    pub fn may_be_undone(&self, tree: TreeRef, key: &[u8]) -> Result<bool, Error> {
        match (tree, &self.source) {
            (TreeRef::Live(id), Source::Shared(transaction)) => {
                transaction.read(|own| Ok(own.has_written(id, key)))
            }
            (TreeRef::Live(id), Source::Transaction(own)) => Ok(own.has_written(id, key)),
            _ => Ok(false),
        }
    }

    /// Returns where the entries of a tree are counted: those of one that the transaction itself
    /// made or adopted in the base that it gave it, since its snapshot doesn't know the tree.
    fn place_to_count(&self, tree: TreeRef) -> Result<TreeRef, Error> {
        let TreeRef::Live(id) = tree else {
            return Ok(tree);
        };
        let base = match &self.source {
            Source::Snapshot(_) => None,
            Source::Transaction(own) => own.own_base(id),
            Source::Shared(transaction) => transaction.read(|own| Ok(own.own_base(id)))?,
        };
        Ok(base.map_or(tree, TreeRef::Committed))
    }

    /// Returns the value of `key`.
    ///
    /// # Errors
    /// `Damaged` if a chunk isn't what was written; `Unavailable` if the disk doesn't answer;
    /// `SnapshotTooOld` (239); `NoSuchTransaction` (251) if the transaction has ended.
    pub fn get(&self, tree: TreeRef, key: &[u8]) -> Result<Option<Value>, Error> {
        match (tree, &self.source) {
            (TreeRef::Committed(tree), _) => Ok(tree.get(&*self.store, key)?),
            (TreeRef::Live(id), Source::Snapshot(snapshot)) => Ok(snapshot.get(id, key)?),
            (TreeRef::Live(id), Source::Transaction(own)) => Ok(own.get(id, key)?),
            (TreeRef::Live(id), Source::Shared(transaction)) => {
                transaction.read(|own| Ok(own.get(id, key)?))
            }
        }
    }

    /// Returns the bytes of the value of `key`, wherever they lie.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn get_bytes(&self, tree: TreeRef, key: &[u8]) -> Result<Option<Bytes>, Error> {
        self.get(tree, key)?.map(|value| self.read(&value)).transpose()
    }

    /// Returns the entries within `bounds`, in `direction`. They own what they need.
    ///
    /// # Errors
    /// As [`Reader::get`]. Entries fail one by one.
    pub fn range(
        &self,
        tree: TreeRef,
        bounds: Bounds,
        direction: Direction,
    ) -> Result<Entries, Error> {
        Ok(match (tree, &self.source) {
            (TreeRef::Committed(tree), _) => {
                Entries::Committed(tree.range(&self.store, bounds, direction))
            }
            (TreeRef::Live(id), Source::Snapshot(snapshot)) => {
                Entries::Live(snapshot.range(id, bounds, direction)?)
            }
            (TreeRef::Live(id), Source::Transaction(own)) => {
                Entries::Live(own.range(id, bounds, direction)?)
            }
            (TreeRef::Live(id), Source::Shared(transaction)) => {
                Entries::Live(transaction.read(|own| Ok(own.range(id, bounds, direction)?))?)
            }
        })
    }

    /// Reads a value's bytes, wherever they lie.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn read(&self, value: &Value) -> Result<Bytes, Error> {
        Ok(match &self.source {
            Source::Snapshot(snapshot) => snapshot.read(value)?,
            Source::Transaction(own) => own.read(value)?,
            Source::Shared(transaction) => transaction.read(|own| Ok(own.read(value)?))?,
        })
    }

    /// Reads a document. One that lies out of line finds its index under its hash.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn document(&self, value: &Value) -> Result<DocumentBuf, Error> {
        Ok(self.document_and_pieces(value)?.0)
    }

    /// As [`Reader::document`]; and the document's pieces, if it is large.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn document_and_pieces(
        &self,
        value: &Value,
    ) -> Result<(DocumentBuf, Option<LargeDocument>), Error> {
        if let Some(large) = large::head(value) {
            return Ok((self.large_document(&large)?, Some(large)));
        }
        let document = DocumentBuf::from_validated(self.read(value)?);
        let document = match &value.content {
            Content::Chunk { hash, .. } | Content::Sequence { root: hash, .. } => {
                FIELD_INDEXES.attach(hash.0, document)
            }
            Content::Inline(_) => document,
        };
        Ok((document, None))
    }

    /// Reads all of a large document.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn large_document(&self, large: &LargeDocument) -> Result<DocumentBuf, Error> {
        self.with_store(|store| Ok(large::read(store, large)?))
    }

    /// Reads pieces of large documents.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn read_pieces<T>(
        &self,
        read: impl FnOnce(&dyn ChunkStore) -> Result<T, PiecesError>,
    ) -> Result<T, Error> {
        self.with_store(|store| read(store).map_err(large::unreadable))
    }

    /// Reads some of a large document's outermost fields.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn project(&self, large: &LargeDocument, names: &[&[u8]]) -> Result<DocumentBuf, Error> {
        self.with_store(|store| {
            let fields = large.project(store, names);
            Ok(fields.map_err(|error| large::damaged(&large.value(), error))?)
        })
    }

    fn with_store<R>(
        &self,
        read: impl FnOnce(&dyn ChunkStore) -> Result<R, Error>,
    ) -> Result<R, Error> {
        match &self.source {
            Source::Snapshot(_) => read(&*self.store),
            Source::Transaction(own) => read(&own.store()),
            Source::Shared(transaction) => transaction.read(|own| read(&own.store())),
        }
    }

    /// Returns the number of entries, a transaction's own writes included.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn count(&self, tree: TreeRef) -> Result<u64, Error> {
        self.count_range(tree, &Bounds::all())
    }

    /// About how many entries lie within `bounds`, a transaction's own writes not counted.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn estimate_range(&self, tree: TreeRef, bounds: &Bounds) -> Result<u64, Error> {
        match self.place_to_count(tree)? {
            TreeRef::Committed(tree) => Ok(tree.count_range(&*self.store, bounds)?),
            TreeRef::Live(id) => self.with_source(
                |at| at.estimate_range(id, bounds),
                |own| own.estimate_range(id, bounds),
            ),
        }
    }

    /// Returns how many entries lie within `bounds`, a transaction's own writes included.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn count_range(&self, tree: TreeRef, bounds: &Bounds) -> Result<u64, Error> {
        match tree {
            TreeRef::Committed(tree) => Ok(tree.count_range(&*self.store, bounds)?),
            TreeRef::Live(id) => {
                self.with_source(|at| at.count_range(id, bounds), |own| own.count_range(id, bounds))
            }
        }
    }

    /// `bounds` without entries that come first in `direction`, and how many these are: as many of
    /// `count` as can be counted. `None` within a transaction.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn without_first(
        &self,
        tree: TreeRef,
        bounds: &Bounds,
        direction: Direction,
        count: u64,
    ) -> Result<Option<(Bounds, u64)>, Error> {
        match (tree, &self.source) {
            (TreeRef::Live(id), Source::Snapshot(snapshot)) => {
                Ok(Some(snapshot.without_first(id, bounds, direction, count)?))
            }
            _ => Ok(None),
        }
    }

    /// Cuts `bounds` into at most `count` ranges, in the order of keys, that hold about equally
    /// many entries.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn split(
        &self,
        tree: TreeRef,
        bounds: &Bounds,
        count: usize,
    ) -> Result<Vec<Bounds>, Error> {
        match self.place_to_count(tree)? {
            TreeRef::Committed(tree) => Ok(tree.split(&*self.store, bounds, count)?),
            TreeRef::Live(id) => self.with_source(
                |at| at.split(id, bounds, count),
                |own| own.snapshot().split(id, bounds, count),
            ),
        }
    }

    /// The tree that a snapshot shows as it is stored, if nothing lies over it: its entries can be
    /// found by their places.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn settled(&self, tree: TreeRef) -> Result<Option<Tree>, Error> {
        match (tree, &self.source) {
            (TreeRef::Committed(tree), _) => Ok(Some(tree)),
            (TreeRef::Live(id), Source::Snapshot(snapshot)) => Ok(snapshot.clean_base(id)?),
            (TreeRef::Live(_), Source::Transaction(_) | Source::Shared(_)) => Ok(None),
        }
    }

    /// Bytes of all keys and values, a transaction's own writes not counted.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn bytes(&self, tree: TreeRef) -> Result<u64, Error> {
        match self.place_to_count(tree)? {
            TreeRef::Committed(tree) => {
                let summary = tree.summary(&*self.store)?;
                Ok(summary.key_bytes.saturating_add(summary.value_bytes))
            }
            TreeRef::Live(id) => self.with_source(|at| at.bytes(id), |own| own.tree_bytes(id)),
        }
    }

    /// The OR of all entries' flags, own writes of a transaction of one request not counted; may
    /// include those of entries that are gone.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn flags(&self, tree: TreeRef) -> Result<u8, Error> {
        let own = match (&self.source, tree) {
            (Source::Shared(own), TreeRef::Live(id)) => own.made_flags(id),
            _ => 0,
        };
        match self.place_to_count(tree)? {
            TreeRef::Committed(tree) => Ok(own | tree.flags(&*self.store)?),
            TreeRef::Live(id) => {
                Ok(own
                    | self.with_source(|at| at.flags(id), |transaction| transaction.flags(id))?)
            }
        }
    }
}

/// An iterator over a range of a tree.
#[expect(clippy::large_enum_variant, reason = "a scan has one, and an allocation would cost more")]
pub enum Entries {
    /// A cursor over a tree of the engine.
    Live(EntryCursor),
    /// A cursor over a tree below a commit.
    Committed(Cursor),
}

impl Entries {
    /// Moves to the next entry; false if there is none. Nothing follows an error.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn step(&mut self) -> Result<bool, Error> {
        Ok(match self {
            Entries::Live(cursor) => cursor.step()?,
            Entries::Committed(cursor) => cursor.step()?,
        })
    }

    /// The entry that `step` moved to, lent.
    pub fn entry_ref(&self) -> Option<EntryRef<'_>> {
        match self {
            Entries::Live(cursor) => cursor.entry_ref(),
            Entries::Committed(cursor) => cursor.entry_ref(),
        }
    }

    /// The entry that `step` moved to.
    pub fn entry(&self) -> Option<Entry> {
        match self {
            Entries::Live(cursor) => cursor.entry(),
            Entries::Committed(cursor) => cursor.entry(),
        }
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Entries::Live(cursor) => cursor.next().map(|entry| entry.map_err(Error::from)),
            Entries::Committed(cursor) => cursor.next().map(|entry| entry.map_err(Error::from)),
        }
    }
}
