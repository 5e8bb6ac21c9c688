//! Writing points of a time series: each to its place, and to another when its source changes.

use std::sync::Arc;

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf, Value as BsonValue, key};
use frond_engine::TreeId;
use frond_query::Code;

use super::CollectionWriter;
use crate::catalog::duplicate;
use crate::collection::scan::FetchedDocument;
use crate::database::Database;
use crate::error::Error;
use crate::schema::Collection;
use crate::timeseries::Series;

/// Refuses to write to a time series in a transaction of several requests.
pub(super) fn refuse_transaction(
    collection: &Collection,
    database: &Database,
    name: &str,
) -> Result<(), Error> {
    if collection.series.is_none() || database.transaction().is_none() {
        return Ok(());
    }
    let message = format!(
        "Cannot insert into a time-series collection in a multi-document transaction: {}",
        database.namespace(name)
    );
    Err(Error::invalid(Code::OperationNotSupportedInTransaction, message))
}

impl CollectionWriter<'_> {
    /// Whether a point that becomes `after` lies where it did.
    pub(super) fn keeps_place(&self, found: &FetchedDocument, after: &DocumentBuf) -> bool {
        let is_place = |series: &Arc<Series>| series.is_place(&found.id_key, after.view());
        self.series.as_ref().is_none_or(is_place)
    }

    /// Puts a point whose source changed to its new place.
    pub(super) fn move_point(
        &mut self,
        found: &FetchedDocument,
        after: &DocumentBuf,
    ) -> Result<(), Error> {
        let savepoint = self.savepoint();
        let moved = self.remove(found).and_then(|()| self.insert(after));
        match moved {
            Ok(()) => self.writes -= 1,
            Err(_) => self.undo(savepoint),
        }
        moved
    }

    /// The key under which a new document is to lie.
    pub(super) fn free_key(
        &mut self,
        documents: TreeId,
        document: Document<'_>,
    ) -> Result<Bytes, Error> {
        let mut is_taken = |key: &Bytes| Ok(!self.transaction.is_free(documents, key)?);
        if let Some(series) = &self.series {
            return series.free_place(document, &mut is_taken);
        }
        let id_key = key::of_id(document.get("_id").unwrap_or(BsonValue::Null));
        match is_taken(&id_key)? {
            true => Err(duplicate::of_id(&self.namespace(), self.collation(), document)),
            false => Ok(id_key),
        }
    }

    /// Whether the time series has points of the same sources, times and `_id`s as all of these,
    /// which are some.
    ///
    /// # Errors
    /// As the transaction's `get`.
    pub fn has_points(&mut self, points: &[DocumentBuf]) -> Result<bool, Error> {
        self.ensure()?;
        let Some(series) = self.series.clone() else { return Ok(false) };
        let documents = self.live()?.documents;
        for point in points {
            if self.transaction.get(documents, &series.place(point.view(), 0))?.is_none() {
                return Ok(false);
            }
        }
        Ok(!points.is_empty())
    }

    /// Returns the time series, if the collection is one.
    pub fn series(&self) -> Option<&Arc<Series>> {
        self.series.as_ref()
    }
}
