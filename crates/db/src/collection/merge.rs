//! Writing a pipeline's documents into a collection, each to the one that it is about: `$merge`.
//!
//! Documents are written in batches, each one transaction: a failure leaves what was written before
//! it, as MongoDB does. What a pipeline reads, it reads at one snapshot, so that it never meets
//! what it wrote.

use frond_doc::{DocumentBuf, normalise};
use frond_engine::Durability;
use frond_query::pipeline::{Documents, Merge, MergeAction};
use frond_query::{Code, Filter};

use crate::catalog::CatalogView;
use crate::collection::batch::BATCH_COUNT_MAX;
use crate::collection::plan::Order;
use crate::collection::write::CollectionWriter;
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::error::Error;
use crate::name;
use crate::transact::Outcome;

/// A transaction holds at most so many bytes of documents (or one document).
const BATCH_BYTES_MAX: usize = 8 << 20;

impl Database {
    /// Writes `documents` into `collection` as `merge` says.
    pub(crate) fn merge_into(
        &self,
        collection: &str,
        merge: &Merge,
        documents: Documents<'_>,
        durability: Durability,
    ) -> Result<(), Error> {
        name::check_collection(self.repository_name(), collection)?;
        self.check_unique(collection, merge.on())?;
        let mut batch = Vec::new();
        let mut bytes = 0;
        for document in documents {
            let document = document?;
            let filter = merge.filter(document.view())?;
            // Made before the transaction, which may run more than once.
            let document = normalise::for_insert(&document, || self.frond().new_object_id())?;
            self.check_document(document.view())?;
            bytes += document.as_bytes().len();
            batch.push((filter, document));
            if BATCH_COUNT_MAX <= batch.len() || BATCH_BYTES_MAX <= bytes {
                self.merge_batch(collection, merge, &batch, durability)?;
                batch.clear();
                bytes = 0;
            }
        }
        self.merge_batch(collection, merge, &batch, durability)
    }

    fn merge_batch(
        &self,
        collection: &str,
        merge: &Merge,
        batch: &[(Option<Filter>, DocumentBuf)],
        durability: Durability,
    ) -> Result<(), Error> {
        let branch = self.writable_branch()?;
        let scope = Scope::collection(self.repository_name(), branch, collection);
        self.transact(scope, LatchMode::Writer, durability, |transaction| {
            let mut writer = CollectionWriter::open(transaction, self, branch, collection)?;
            for (filter, document) in batch {
                let found = match filter {
                    Some(filter) => writer.matching(filter, &Order::Any, None, Some(1))?.pop(),
                    None => None,
                };
                let existing = found.as_ref().map(|found| found.document.view());
                match (merge.apply(existing, document.view())?, &found) {
                    (MergeAction::Nothing, _) => {}
                    (MergeAction::Replace(made), Some(found)) => writer.replace(found, &made)?,
                    (MergeAction::Insert(made) | MergeAction::Replace(made), _) => {
                        writer.insert(&made)?;
                    }
                }
            }
            Ok(Outcome::commit_if(writer.changed(), ()))
        })
    }

    /// Refuses `on` fields that no unique index has: they could be about several documents.
    fn check_unique(&self, collection: &str, on: &[String]) -> Result<(), Error> {
        if on == ["_id"] {
            return Ok(());
        }
        let reader = self.reader();
        let found = CatalogView::open(&reader, self)?.collection(collection)?;
        let indexes = found.map_or_else(Vec::new, |found| found.indexes);
        let has_fields = |fields: &[frond_query::sort::SortField]| {
            fields.len() == on.len() && fields.iter().all(|field| on.contains(&field.path))
        };
        if indexes.iter().any(|index| {
            index.spec.unique && index.spec.partial.is_none() && has_fields(index.fields())
        }) {
            return Ok(());
        }
        let message = "Cannot find index to verify that join fields will be unique";
        Err(Error::invalid(Code::Location(51183), message))
    }
}
