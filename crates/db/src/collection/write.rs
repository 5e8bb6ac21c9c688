//! Writing documents of one collection within one transaction, indexes kept with them.
//!
//! 1. The collection is found as the transaction sees it; the records that say so are validated.
//! 2. Before the first write it is adopted or created ([`crate::catalog::adopt`]): a request that
//!    changes nothing leaves nothing behind.
//! 3. Each document is written on a savepoint of its own: if an index refuses it, only it is
//!    undone.
//! 4. Indexes are changed with their documents (`index_entries`): by the difference of the keys
//!    before and after, so that an update that doesn't touch an indexed field doesn't touch the
//!    index.
//!
//! *Uniqueness*: the key of a unique index's entry doesn't hold the `_id`, so two transactions that
//! would file two documents under one key write the same key, and the second one to commit
//! conflicts, runs again, and then finds the first one's entry.

mod capped;
mod damaged;
mod events;
mod index_entries;
mod large;
mod matching;
mod points;

use std::sync::Arc;

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf, Value as BsonValue, key};
use frond_engine::{Savepoint, Transaction, TreeId};
use frond_query::{Code, Collation};
use frond_tree::{Content, Value};

use crate::catalog::adopt;
use crate::collection::new_document::check_valid;
use crate::collection::parse::variables_in;
use crate::collection::plan::OwnFacts;
use crate::collection::scan::{FetchedDocument, Row};
use crate::database::Database;
use crate::definition::capped::{Limits, limits};
use crate::definition::validation::Validator;
use crate::definition::{images, view};
use crate::error::Error;
use crate::event::EventRecorder;
use crate::reader::Reader;
use crate::schema::{CatalogEpoch, Collection, Index, TreeRef};
use crate::timeseries::Series;
pub use damaged::MatchedRow;
pub use events::DocumentChange;
use events::EventDetail;

/// MongoDB's code of an update whose result is too large.
const RESULT_TOO_LARGE: Code = Code::Location(17419);
/// A transaction that has so many bytes to write takes no more documents.
const WRITES_BYTES_MAX: u64 = 4 << 20;

/// Writes documents of one collection in a transaction.
///
/// *Invariants*: 1. `now` is where the transaction reads: `before` until something is written. 2.
/// `live`, once it is there, holds the ids of all trees of `now`.
pub struct CollectionWriter<'t> {
    database: &'t Database,
    branch: &'t str,
    name: &'t str,
    transaction: &'t mut Transaction,
    /// The collection as the snapshot has it; `None` if it isn't there.
    before: Option<Arc<Collection>>,
    /// The collection as the transaction has it.
    now: Option<Arc<Collection>>,
    /// The trees that documents are written to: there since the first write.
    live: Option<LiveTrees>,
    validator: Option<Validator>,
    /// The collection's own.
    collation: Collation,
    own: OwnFacts,
    /// The time series, if it is one.
    series: Option<Arc<Series>>,
    writes: u64,
    /// Records the events of what is written: `None` until it is first needed, `Some(None)` if
    /// there are no events.
    recorder: Option<Option<EventRecorder>>,
    /// No events are recorded now.
    is_silent: bool,
    /// Whether events also have documents as they were before.
    keeps_images: bool,
}

struct LiveTrees {
    documents: TreeId,
    /// Those of the collection's indexes, in their order.
    indexes: Vec<TreeId>,
    /// The order of a capped collection.
    order: Option<TreeId>,
    collection: Arc<Collection>,
}

impl LiveTrees {
    /// The trees of a collection, if all of them are the engine's already.
    fn of(collection: &Arc<Collection>) -> Option<LiveTrees> {
        let live = |place| match place {
            TreeRef::Live(id) => Some(id),
            TreeRef::Committed(_) => None,
        };
        let indexes = collection.indexes.iter().map(|index| live(index.tree));
        Some(LiveTrees {
            documents: live(collection.documents)?,
            indexes: indexes.collect::<Option<_>>()?,
            order: collection.order.and_then(live),
            collection: Arc::clone(collection),
        })
    }
}

impl<'t> CollectionWriter<'t> {
    /// Finds the collection called `name`.
    ///
    /// # Errors
    /// As [`CollectionWriter::open_at`].
    pub fn open(
        transaction: &'t mut Transaction,
        database: &'t Database,
        branch: &'t str,
        name: &'t str,
    ) -> Result<CollectionWriter<'t>, Error> {
        CollectionWriter::open_at(None, transaction, database, branch, name)
    }

    /// As `open`, in a transaction that has written nothing and began after `moment` was noted.
    ///
    /// # Errors
    /// `CommandNotSupportedOnView` (166) if it is a view; `OperationNotSupportedInTransaction`
    /// (263) if it is capped and the transaction is of several requests; as
    /// `CatalogView::collection`.
    pub fn open_at(
        moment: Option<CatalogEpoch>,
        transaction: &'t mut Transaction,
        database: &'t Database,
        branch: &'t str,
        name: &'t str,
    ) -> Result<CollectionWriter<'t>, Error> {
        let before = adopt::find_known(moment, transaction, database, branch, name)?;
        let collation = match &before {
            Some(before) => before.collation()?,
            None => Collation::SIMPLE,
        };
        let validator = match &before {
            Some(before) => {
                refuse_unwritable(before, database, name)?;
                Validator::of_options(before.options.view(), || {
                    variables_in(database, None, database.interrupt())
                })?
            }
            None => None,
        };
        let keeps_images =
            before.as_ref().is_some_and(|before| images::are_kept(before.options.view()));
        let indexes = before.as_ref().map_or(&[][..], |collection| &collection.indexes);
        let made_flags = |index: &Index| match (index.tree, database.transaction()) {
            (TreeRef::Live(tree), Some(transaction)) => transaction.made_flags(tree),
            _ => 0,
        };
        let series = before.as_ref().and_then(|before| before.series.clone());
        let own = OwnFacts { flags: indexes.iter().map(made_flags).collect() };
        Ok(CollectionWriter {
            database,
            branch,
            name,
            transaction,
            now: before.clone(),
            before,
            live: None,
            validator: validator.filter(|_| database.validates()),
            collation,
            own,
            writes: 0,
            // Change streams have no events of points.
            recorder: series.as_ref().map(|_| None),
            series,
            is_silent: false,
            keeps_images,
        })
    }

    /// `shop.things`, for messages.
    fn namespace(&self) -> String {
        self.database.namespace(self.name)
    }

    /// Returns how strings compare where a statement doesn't say.
    pub fn collation(&self) -> &Collation {
        &self.collation
    }

    /// Whether anything was written.
    pub fn changed(&self) -> bool {
        self.writes > 0
    }

    /// Returns how many documents were inserted, replaced or removed.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Makes sure that the collection is there, empty if it wasn't.
    ///
    /// # Errors
    /// As the transaction's `put`.
    pub fn ensure(&mut self) -> Result<(), Error> {
        self.live().map(|_| ())
    }

    /// About how many bytes the transaction has to write.
    pub fn bytes(&self) -> u64 {
        self.transaction.bytes()
    }

    /// Makes room in memory for `bytes` more, which are taken until the transaction is committed.
    ///
    /// # Errors
    /// The error that ends the wait for them.
    pub(super) fn make_room(&self, bytes: u64) -> Result<(), Error> {
        self.transaction.make_room(bytes, || self.database.interrupt().check())
    }

    /// Whether the transaction, if it is this request's alone, has as much to write since it had
    /// `bytes` as a part may.
    pub fn is_full_since(&self, bytes: u64) -> bool {
        self.database.transaction().is_none()
            && WRITES_BYTES_MAX <= self.bytes().saturating_sub(bytes)
    }

    /// Returns where to go back to by [`CollectionWriter::undo`].
    pub fn savepoint(&mut self) -> (Savepoint, u64) {
        (self.transaction.savepoint(), self.writes)
    }

    /// Undoes what was written since. To be the last that this writer is asked.
    pub fn undo(&mut self, (savepoint, writes): (Savepoint, u64)) {
        self.transaction.rollback_to(savepoint);
        self.writes = writes;
    }

    /// Says that what is written deletes: see [`Transaction::give_back`].
    pub fn give_back(&mut self) {
        self.transaction.give_back();
    }

    /// Inserts a document, normalised before.
    ///
    /// # Errors
    /// `DuplicateKey` (11000); `DocumentValidationFailure` (121); what an index can't file the
    /// document for; as the transaction's `put`. Its writes are undone then.
    pub fn insert(&mut self, document: &DocumentBuf) -> Result<(), Error> {
        self.check_valid(None, document.view())?;
        if let Some(series) = &self.series {
            series.check(document.view())?;
        }
        self.ensure()?;
        self.undoing(|writer| {
            let documents = writer.live()?.documents;
            let id_key = writer.free_key(documents, document.view())?;
            let is_recorded = writer.records_whole(document);
            let value = writer.store_document(document, None, is_recorded)?;
            writer.put_inserted(documents, &id_key, document, value)?;
            writer.note_inserted(&id_key, document.as_bytes().len() as u64)?;
            writer.change_indexes(&id_key, None, Some(document.view()))
        })?;
        self.evict()
    }

    /// Puts `after` in the place of the document that was found.
    ///
    /// # Errors
    /// `BSONObjectTooLarge` (10334); otherwise as [`CollectionWriter::insert`], for other indexes
    /// than `_id`'s.
    pub fn replace(
        &mut self,
        found: &FetchedDocument,
        after: &DocumentBuf,
        becoming: DocumentChange,
    ) -> Result<(), Error> {
        self.check_result(after.as_bytes().len() as u64)?;
        self.check_valid(Some(found.document.view()), after.view())?;
        if let Some(series) = self.series.clone().filter(|_| !self.keeps_place(found, after)) {
            series.check(after.view())?;
            return self.move_point(found, after);
        }
        self.ensure()?;
        let id_key = match &self.series {
            Some(_) => found.id_key.clone(),
            None => key::of_id(after.get("_id").unwrap_or(BsonValue::Null)),
        };
        assert!(found.id_key == id_key, "an update keeps the key of its document");
        self.undoing(|writer| {
            let documents = writer.live()?.documents;
            let before = found.document.view();
            let event_detail = writer.event_detail(before, after, becoming);
            let is_recorded =
                matches!(event_detail, EventDetail::Whole) && writer.records_whole(after);
            let value = writer.store_document(after, found.large.as_ref(), is_recorded)?;
            let (id_key, stored) = (found.id_key.clone(), value.clone());
            match (is_recorded, &value.content) {
                // All of it travels: nothing is made of what was there before.
                (true, Content::Chunk { .. }) => {
                    writer.transaction.put_existing(documents, id_key, value)?
                }
                _ => writer.transaction.put_changed_existing(documents, id_key, value)?,
            }
            writer.note_replaced(&found.id_key, after.as_bytes().len() as u64)?;
            writer.record_image(before);
            writer.record_replace(&found.id_key, after, &stored, event_detail);
            writer.change_indexes(&found.id_key, Some(before), Some(after.view()))
        })
    }

    /// Removes the document that was found.
    ///
    /// # Errors
    /// As the transaction's `delete`.
    pub fn remove(&mut self, found: &FetchedDocument) -> Result<(), Error> {
        self.remove_under(&found.id_key, found.document.view())
    }

    /// As [`CollectionWriter::remove`]. Of a large document no more is read than its entries in
    /// indexes depend on.
    ///
    /// # Errors
    /// As [`CollectionWriter::remove`]; `Damaged` if the document can't be read.
    pub fn remove_row(&mut self, row: Row) -> Result<(), Error> {
        match &row.large {
            Some(large) if !self.records_images() => {
                self.ensure()?;
                let indexed = self.indexed(large)?;
                self.remove_under(&row.id_key, indexed.view())
            }
            _ => self.whole(row).and_then(|found| self.remove(&found)),
        }
    }

    /// Removes a document, where `indexed` has the fields that its entries in indexes depend on, or
    /// all if an event shows what it was.
    fn remove_under(&mut self, id_key: &Bytes, indexed: Document<'_>) -> Result<(), Error> {
        self.ensure()?;
        self.undoing(|writer| {
            let documents = writer.live()?.documents;
            writer.transaction.delete_existing(documents, id_key.clone())?;
            writer.record_image(indexed);
            writer.record_delete(indexed);
            writer.note_removed(id_key)?;
            writer.change_indexes(id_key, Some(indexed), None)
        })
    }

    /// Refuses what the validator doesn't let through, or warns of it.
    fn check_valid(&self, before: Option<Document<'_>>, after: Document<'_>) -> Result<(), Error> {
        match &self.validator {
            Some(validator) => check_valid((self.database, self.name), validator, before, after),
            None => Ok(()),
        }
    }

    /// Refuses what an update would make too large.
    fn check_result(&self, bytes: u64) -> Result<(), Error> {
        let max = self.database.frond().document_bytes_max();
        if bytes > max {
            let message = format!("Resulting document after update is larger than {max}");
            return Err(Error::invalid(RESULT_TOO_LARGE, message));
        }
        Ok(())
    }

    fn undoing(&mut self, write: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        let savepoint = self.transaction.savepoint();
        let result = write(self).and_then(|()| match self.database.transaction() {
            Some(transaction) => transaction.hold(self.transaction.bytes()),
            None => Ok(()),
        });
        match &result {
            Ok(()) => self.writes += 1,
            Err(_) => self.transaction.rollback_to(savepoint),
        }
        result
    }

    /// The order of a capped collection; `None` of any other.
    pub(super) fn order(&mut self) -> Result<Option<TreeId>, Error> {
        Ok(self.live()?.order)
    }

    /// Returns the limits of a capped collection.
    pub(super) fn limits(&self) -> Option<Limits> {
        self.now.as_ref().and_then(|now| limits(now.options.view()))
    }

    /// Reads as the transaction does.
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader::within(self.database.frond().engine(), self.transaction)
    }

    /// Returns where the documents lie.
    pub(super) fn documents(&self) -> Option<TreeRef> {
        self.now.as_ref().map(|now| now.documents)
    }

    pub(super) fn put_order(
        &mut self,
        order: TreeId,
        key: Bytes,
        value: Value,
    ) -> Result<(), Error> {
        Ok(self.transaction.put(order, key, value)?)
    }

    pub(super) fn delete_order(&mut self, order: TreeId, key: Bytes) -> Result<(), Error> {
        Ok(self.transaction.delete(order, key)?)
    }

    fn live(&mut self) -> Result<&LiveTrees, Error> {
        if self.live.is_none() {
            self.live = self.before.as_ref().and_then(LiveTrees::of);
        }
        if self.live.is_none() {
            let Self { transaction, database, branch, name, .. } = self;
            let live = match &self.before {
                Some(found) => adopt::adopt(transaction, database, branch, name, found)?,
                None => {
                    let options = DocumentBuf::empty();
                    adopt::create(transaction, database, branch, name, options)?
                }
            };
            let now = Arc::new(Collection::live(&live));
            self.live = Some(LiveTrees {
                documents: live.documents,
                indexes: live.indexes.iter().map(|index| index.tree).collect(),
                order: live.order,
                collection: Arc::clone(&now),
            });
            self.now = Some(now);
        }
        let live = self.live.as_ref().expect("it was just made where it was absent");
        let is_now = self.now.as_ref().is_some_and(|now| Arc::ptr_eq(now, &live.collection));
        debug_assert!(is_now, "invariants 1 and 2");
        Ok(live)
    }
}

/// Refuses what requests don't write: a view, and in a transaction of several requests a capped
/// collection and a time series.
fn refuse_unwritable(found: &Collection, database: &Database, name: &str) -> Result<(), Error> {
    if found.options.get("viewOn").is_some() {
        view::refuse(found.options.view(), &database.namespace(name))?;
    }
    if found.order.is_some() && database.transaction().is_some() {
        let message = format!(
            "Collection '{}' is a capped collection. Writes in transactions are not allowed on \
             capped collections.",
            database.namespace(name)
        );
        return Err(Error::invalid(Code::OperationNotSupportedInTransaction, message));
    }
    points::refuse_transaction(found, database, name)
}

#[cfg(test)]
mod tests;
