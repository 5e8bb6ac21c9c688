//! Writing a pipeline's documents into a collection, each to the one that it is about: `$merge`.
//!
//! Documents are written in batches, each one transaction: a failure leaves what the batch and
//! those before it wrote, as MongoDB does. A pipeline reads at one snapshot, so that it never meets
//! its own writes. What is erased meanwhile would come back from that snapshot: the next batch ends
//! the pipeline ([`EraseCount`]).

use frond_doc::pieces::{has_deepened, has_references, whole_bytes};
use frond_doc::{DocumentBuf, normalise};
use frond_engine::Durability;
use frond_query::pipeline::{Documents, Merge, MergeAction};
use frond_query::{Code, Collation, Filter};

use crate::catalog::{Catalog, CatalogView};
use crate::collection::WriteError;
use crate::collection::batch::BATCH_COUNT_MAX;
use crate::collection::new_document::{check_id, check_size};
use crate::collection::plan::Order;
use crate::collection::reference_translator::{ReferenceTranslator, Referring};
use crate::collection::scan::Row;
use crate::collection::write::{CollectionWriter, DocumentChange};
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::definition::IndexSpec;
use crate::error::Error;
use crate::name;
use crate::refs::erased::EraseCount;
use crate::transact::Outcome;

/// A transaction holds at most so many bytes of documents (or one document).
const BATCH_BYTES_MAX: u64 = 8 << 20;

/// A document on its way.
struct Merged {
    /// The filter that finds the document to merge with.
    filter: Option<Filter>,
    /// As it came, perhaps with references, with an `_id` only if that matters where one is found.
    given: DocumentBuf,
    /// As it is where none is found.
    new: DocumentBuf,
}

impl Merged {
    fn write(&self, merge: &Merge, writer: &mut CollectionWriter<'_>) -> Result<(), Error> {
        let found = match &self.filter {
            Some(filter) => writer.matching_in_part(filter, &Order::Any, None, Some(1))?.pop(),
            None => None,
        };
        let Some(row) = found else {
            return match merge.apply(None, self.given.view())? {
                MergeAction::Nothing => Ok(()),
                MergeAction::Insert(_) | MergeAction::Replace(_) => {
                    writer.insert_referring(&self.new)
                }
            };
        };
        let existing = writer.referring(&row)?;
        if has_references(existing.view()) {
            merge.large().note_references();
        }
        match merge.apply(Some(existing.view()), self.given.view())? {
            MergeAction::Nothing => Ok(()),
            MergeAction::Insert(_) => writer.insert_referring(&self.new),
            MergeAction::Replace(made) if has_deepened(made.view()) => {
                self.write_whole(merge, writer, row)
            }
            MergeAction::Replace(made) => writer.replace_referring(row, &made),
        }
    }

    /// As `write`, where what is made of references may be nested too deep.
    fn write_whole(
        &self,
        merge: &Merge,
        writer: &mut CollectionWriter<'_>,
        row: Row,
    ) -> Result<(), Error> {
        let found = writer.whole(row)?;
        let whole = merge.large().whole(self.given.view())?;
        let given = whole.as_ref().unwrap_or(&self.given);
        match merge.apply(Some(found.document.view()), given.view())? {
            MergeAction::Replace(made) => writer.replace(&found, &made, DocumentChange::Changed),
            MergeAction::Nothing | MergeAction::Insert(_) => Ok(()),
        }
    }
}

/// A `$merge` of documents into a collection.
pub(crate) struct MergeInto<'a> {
    pub database: &'a Database,
    pub collection: &'a str,
    pub merge: &'a Merge,
    pub durability: Durability,
    /// The count where the documents are read.
    pub erases: EraseCount,
}

impl MergeInto<'_> {
    /// Writes `documents`. They may have references, to what lies there or elsewhere.
    pub(crate) fn run(
        &self,
        (documents, referring): (Documents<'_>, Referring),
    ) -> Result<(), Error> {
        let MergeInto { database, collection, merge, durability, .. } = *self;
        name::check_collection(database.repository_name(), collection)?;
        let found = Catalog::of(&database.reader(), database).collection(collection)?;
        if found.is_some_and(|found| found.series.is_some()) {
            let message = format!(
                "$merge into a time-series collection is not supported: {}",
                database.namespace(collection)
            );
            return Err(Error::invalid(Code::CommandNotSupportedOnView, message));
        }
        self.check_unique()?;
        // Elsewhere what a document refers to goes with it.
        let engine = database.frond().engine();
        let travels = engine.is_carried() || engine.records_events();
        let mut batch = Vec::new();
        let mut bytes = 0;
        // A chunk made here must survive garbage collection until a transaction names it.
        let _session = engine.store().session();
        let mut moving = ReferenceTranslator::new(database, referring, durability);
        for document in documents {
            let document = moving.document(document?)?;
            let filter = merge.filter(document.view())?;
            // Made before the transaction, which may run more than once.
            let new = normalise::for_insert(&document, || database.frond().new_object_id())?;
            check_size(database, whole_bytes(new.view()))?;
            check_id(new.view())?;
            bytes += match travels {
                true => whole_bytes(new.view()),
                false => new.as_bytes().len() as u64,
            };
            // The existing document keeps its `_id`, unless `_id` is what decides which documents
            // match.
            let has_id = document.get("_id").is_some() || merge.on().iter().any(|on| on == "_id");
            let given = if has_id { new.clone() } else { document };
            batch.push(Merged { filter, given, new });
            if BATCH_COUNT_MAX <= batch.len() || BATCH_BYTES_MAX <= bytes {
                moving.flush()?;
                self.write(&batch)?;
                batch.clear();
                bytes = 0;
            }
        }
        moving.flush()?;
        self.write(&batch)
    }

    /// Writes a batch, all of it whatever fails; then fails with what failed first.
    fn write(&self, batch: &[Merged]) -> Result<(), Error> {
        let MergeInto { database, collection, merge, durability, erases } = *self;
        let branch = database.writable_branch()?;
        let scope = Scope::collection(database.repository_name(), branch, collection);
        let failed = database.transact(scope, LatchMode::Writer, durability, |transaction| {
            erases.check(database.frond().engine(), transaction)?;
            let mut writer = CollectionWriter::open(transaction, database, branch, collection)?;
            let mut failed = None;
            for (position, merged) in batch.iter().enumerate() {
                if let Err(error) = merged.write(merge, &mut writer) {
                    let error = WriteError::of_document(position, error)?.error;
                    failed.get_or_insert(error);
                }
            }
            Ok(Outcome::commit_if(writer.changed(), failed))
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Refuses `on` fields that no unique index of the request's collation has: they could be about
    /// several documents. A request that names none is believed, as by MongoDB: what `_id`s are the
    /// same by another collation only are duplicates.
    fn check_unique(&self) -> Result<(), Error> {
        let (on, collation) = (self.merge.on(), self.merge.collation());
        if !self.merge.has_on() {
            return Ok(());
        }
        let reader = self.database.reader();
        let found = CatalogView::open(&reader, self.database)?.collection(self.collection)?;
        let is_of_id = on == ["_id"];
        let is_unique_id = match &found {
            Some(found) => found.collation()? == *collation,
            None => true,
        };
        let indexes = found.map_or_else(Vec::new, |found| found.indexes);
        let has_fields = |fields: &[frond_query::sort::SortField]| {
            fields.len() == on.len() && fields.iter().all(|field| on.contains(&field.path))
        };
        let is_unique = |spec: &IndexSpec| {
            let index_collation = spec.collation.as_ref().unwrap_or(&Collation::SIMPLE);
            spec.unique && spec.partial.is_none() && index_collation == collation
        };
        if is_of_id && is_unique_id
            || indexes.iter().any(|index| is_unique(&index.spec) && has_fields(index.fields()))
        {
            return Ok(());
        }
        let message = "Cannot find index to verify that join fields will be unique";
        Err(Error::invalid(Code::Location(51183), message))
    }
}
