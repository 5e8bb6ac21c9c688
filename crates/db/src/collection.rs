//! Reads and writes of documents.
//!
//! Requests hold their parts as they came (filters as documents); what they mean is parsed here.
//! Writes are one transaction a request, each document on its own savepoint, and retry write
//! conflicts by themselves.

use frond_doc::{Document, DocumentBuf, ValueBuf};
use frond_engine::Durability;

use crate::database::Database;
use crate::error::Error;

/// A write that failed: position in the request, and why.
#[derive(Clone, Debug)]
pub struct WriteError {
    /// Counted from 0.
    pub position: usize,
    /// Why.
    pub error: Error,
}

/// What an insert or delete did.
#[derive(Clone, Debug, Default)]
pub struct WriteReport {
    /// Documents inserted or deleted.
    pub count: u64,
    /// What failed.
    pub errors: Vec<WriteError>,
}

/// One element of `updates`.
#[derive(Clone, Debug)]
pub struct UpdateStatement {
    /// Which documents.
    pub filter: DocumentBuf,
    /// Operators or a replacement (a pipeline is refused).
    pub update: ValueBuf,
    /// Insert if nothing matches.
    pub upsert: bool,
    /// All that match, not the first.
    pub multi: bool,
    /// The array of `arrayFilters`.
    pub array_filters: Option<ValueBuf>,
    /// Index name or key.
    pub hint: Option<ValueBuf>,
}

/// What an update did.
#[derive(Clone, Debug, Default)]
pub struct UpdateReport {
    /// Documents that matched, upserted ones not counted.
    pub matched: u64,
    /// Documents that changed.
    pub modified: u64,
    /// Position of the statement and `_id` of each document that was upserted.
    pub upserted: Vec<(usize, ValueBuf)>,
    /// What failed.
    pub errors: Vec<WriteError>,
}

/// One element of `deletes`.
#[derive(Clone, Debug)]
pub struct DeleteStatement {
    /// Which documents.
    pub filter: DocumentBuf,
    /// Only the first.
    pub only_first: bool,
    /// Index name or key.
    pub hint: Option<ValueBuf>,
}

/// A `find`.
#[derive(Clone, Debug, Default)]
pub struct FindRequest {
    /// Which documents; `None` is all.
    pub filter: Option<DocumentBuf>,
    /// What of them.
    pub projection: Option<DocumentBuf>,
    /// In which order.
    pub sort: Option<DocumentBuf>,
    /// How many to pass over.
    pub skip: u64,
    /// At most how many; `None` is all.
    pub limit: Option<u64>,
    /// Index name or key.
    pub hint: Option<ValueBuf>,
    /// A command's `let`.
    pub variables: Option<DocumentBuf>,
}

/// An `aggregate`.
#[derive(Clone, Debug)]
pub struct AggregateRequest {
    /// The array of stages.
    pub pipeline: ValueBuf,
    /// A command's `let`.
    pub variables: Option<DocumentBuf>,
    /// Index name or key.
    pub hint: Option<ValueBuf>,
}

/// A `findAndModify`.
#[derive(Clone, Debug)]
pub struct FindAndModify {
    /// Which document.
    pub filter: DocumentBuf,
    /// The first in this order.
    pub sort: Option<DocumentBuf>,
    /// `None` removes it.
    pub update: Option<ValueBuf>,
    /// Insert if nothing matches.
    pub upsert: bool,
    /// Answer with the document after the change, not before.
    pub return_new: bool,
    /// What of it.
    pub projection: Option<DocumentBuf>,
    /// The array of `arrayFilters`.
    pub array_filters: Option<ValueBuf>,
}

/// What a `findAndModify` did.
#[derive(Clone, Debug, Default)]
pub struct FindAndModifyReport {
    /// The document before or after, projected.
    pub value: Option<DocumentBuf>,
    /// Whether one was there.
    pub updated_existing: bool,
    /// How many were changed, inserted or removed: 0 or 1.
    pub count: u64,
    /// `_id` of the upserted document.
    pub upserted: Option<ValueBuf>,
}

/// The documents of a `find` or `aggregate`, at the snapshot when it began. Owns what it needs and
/// can be kept between batches and moved between threads.
pub struct Cursor {}

impl Iterator for Cursor {
    type Item = Result<DocumentBuf, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}

impl Database {
    /// Inserts documents in their order, `_id` made where absent. With `ordered`, stops at the first
    /// that fails; the others before it stay.
    pub fn insert(
        &self,
        _collection: &str,
        _documents: &[DocumentBuf],
        _ordered: bool,
        _durability: Durability,
    ) -> Result<WriteReport, Error> {
        todo!()
    }

    /// Updates by each of `statements`, in their order.
    pub fn update(
        &self,
        _collection: &str,
        _statements: &[UpdateStatement],
        _ordered: bool,
        _durability: Durability,
    ) -> Result<UpdateReport, Error> {
        todo!()
    }

    /// Deletes by each of `statements`, in their order.
    pub fn delete(
        &self,
        _collection: &str,
        _statements: &[DeleteStatement],
        _ordered: bool,
        _durability: Durability,
    ) -> Result<WriteReport, Error> {
        todo!()
    }

    /// Changes or removes one document and answers with it.
    pub fn find_and_modify(
        &self,
        _collection: &str,
        _request: &FindAndModify,
        _durability: Durability,
    ) -> Result<FindAndModifyReport, Error> {
        todo!()
    }

    /// Finds documents.
    pub fn find(&self, _collection: &str, _request: &FindRequest) -> Result<Cursor, Error> {
        todo!()
    }

    /// Runs a pipeline over a collection (`None`: `{aggregate: 1}`).
    pub fn aggregate(
        &self,
        _collection: Option<&str>,
        _request: &AggregateRequest,
    ) -> Result<Cursor, Error> {
        todo!()
    }

    /// Counts documents that pass `filter`.
    pub fn count(
        &self,
        _collection: &str,
        _filter: Option<Document<'_>>,
        _skip: u64,
        _limit: Option<u64>,
        _hint: Option<&ValueBuf>,
    ) -> Result<u64, Error> {
        todo!()
    }

    /// The distinct values at `path` (elements of arrays on their own), in order of their first
    /// appearance.
    pub fn distinct(
        &self,
        _collection: &str,
        _path: &str,
        _filter: Option<Document<'_>>,
    ) -> Result<Vec<ValueBuf>, Error> {
        todo!()
    }

    /// How `find` would go: MongoDB's `explain` with `queryPlanner` and `executionStats`.
    pub fn explain(&self, _collection: &str, _request: &FindRequest) -> Result<DocumentBuf, Error> {
        todo!()
    }
}
