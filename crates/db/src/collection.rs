//! Reads and writes of documents.
//!
//! Requests hold their parts as they came (filters as documents); what they mean is parsed here.
//! Writes are one transaction a request, each document on its own savepoint, and retry write
//! conflicts by themselves.

pub(crate) mod aggregate;
pub(crate) mod batch;
pub(crate) mod buckets;
mod by_id;
mod by_ids;
pub(crate) mod capped;
pub(crate) mod check;
pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod covered;
mod cursor;
pub(crate) mod cursor_validity;
pub(crate) mod deferred_errors;
pub(crate) mod delete;
pub(crate) mod distinct;
pub(crate) mod explain;
mod express;
pub(crate) mod find;
pub(crate) mod find_and_modify;
pub(crate) mod handles;
pub(crate) mod index_filters;
pub(crate) mod insert;
mod merge;
pub(crate) mod moved;
mod nearest;
pub(crate) mod new_document;
pub(crate) mod parse;
pub(crate) mod parts;
pub(crate) mod plan;
pub(crate) mod query;
mod reference_translator;
pub(crate) mod replace;
mod result_shape;
pub(crate) mod scan;
pub(crate) mod search;
mod skip;
mod sort;
pub(crate) mod stored_functions;
pub(crate) mod stream;
mod sweep;
pub(crate) mod tail;
pub(crate) mod update;
pub(crate) mod view;
pub(crate) mod walk;
pub(crate) mod write;

pub use crate::interrupt::Interrupt;
pub use crate::session::FindAndModifyReport;
pub use check::{Checked, CheckedIndex};
pub use cursor::Cursor;
pub use explain::{Effort, ExecutedSearch};
pub use tail::Tail;

use frond_doc::{Document, DocumentBuf, ValueBuf};
use frond_query::Collation;

use crate::error::Error;

/// A write that failed: position in the request, and why.
#[derive(Clone, Debug)]
pub struct WriteError {
    /// Counted from 0.
    pub position: usize,
    /// The error.
    pub error: Error,
}

impl WriteError {
    /// The error of one document or statement.
    ///
    /// # Errors
    /// `error` itself if it concerns the request as a whole: only wrong requests are reported per
    /// document, while a full disk or damage ends everything.
    fn of_document(position: usize, error: Error) -> Result<WriteError, Error> {
        match error.is_of_statement() {
            true => Ok(WriteError { position, error }),
            false => Err(error),
        }
    }
}

/// The counts of one statement of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatementCounts {
    /// Counted from 0.
    pub position: usize,
    /// Documents inserted, matched or deleted; one that was upserted isn't counted.
    pub count: u64,
    /// Documents that an update changed.
    pub modified: u64,
}

/// The result of an insert or delete.
#[derive(Clone, Debug, Default)]
pub struct WriteReport {
    /// Documents inserted or deleted.
    pub count: u64,
    /// The errors.
    pub errors: Vec<WriteError>,
    /// The statements that were done before, of a write that may be sent again.
    pub retried: Vec<i32>,
    /// The counts of each statement that succeeded.
    pub each: Vec<StatementCounts>,
}

/// One element of `updates`.
#[derive(Clone, Debug)]
pub struct UpdateStatement {
    /// The filter of the documents.
    pub filter: DocumentBuf,
    /// Operators, a replacement or a pipeline.
    pub update: ValueBuf,
    /// Insert if nothing matches.
    pub upsert: bool,
    /// All that match, not the first.
    pub multi: bool,
    /// The order in which the first match is chosen.
    pub sort: Option<DocumentBuf>,
    /// The array of `arrayFilters`.
    pub array_filters: Option<ValueBuf>,
    /// Variables of a pipeline, with their values: `c`.
    pub constants: Option<DocumentBuf>,
    /// Index name or key.
    pub hint: Option<ValueBuf>,
    /// The command's `let`.
    pub variables: Option<DocumentBuf>,
    /// The rules by which strings compare; `None`: as the collection says.
    pub collation: Option<Collation>,
}

impl UpdateStatement {
    /// Changes the first document that matches, with no options.
    pub fn new(filter: DocumentBuf, update: impl Into<ValueBuf>) -> UpdateStatement {
        UpdateStatement {
            filter,
            update: update.into(),
            upsert: false,
            multi: false,
            sort: None,
            array_filters: None,
            constants: None,
            hint: None,
            variables: None,
            collation: None,
        }
    }
}

/// The result of an update.
#[derive(Clone, Debug, Default)]
pub struct UpdateReport {
    /// Documents that matched, upserted ones not counted.
    pub matched: u64,
    /// Documents that changed.
    pub modified: u64,
    /// Position of the statement and `_id` of each document that was upserted.
    pub upserted: Vec<(usize, ValueBuf)>,
    /// The errors.
    pub errors: Vec<WriteError>,
    /// The statements that were done before, of a write that may be sent again.
    pub retried: Vec<i32>,
    /// The counts of each statement that succeeded.
    pub each: Vec<StatementCounts>,
}

/// One element of `deletes`.
#[derive(Clone, Debug, Default)]
pub struct DeleteStatement {
    /// The filter of the documents.
    pub filter: DocumentBuf,
    /// Whether only the first counts.
    pub only_first: bool,
    /// Index name or key.
    pub hint: Option<ValueBuf>,
    /// The command's `let`.
    pub variables: Option<DocumentBuf>,
    /// The rules by which strings compare; `None`: as the collection says.
    pub collation: Option<Collation>,
}

/// A `find`.
#[derive(Clone, Debug, Default)]
pub struct FindRequest {
    /// The filter of the documents; `None` is all.
    pub filter: Option<DocumentBuf>,
    /// The part of them to return.
    pub projection: Option<DocumentBuf>,
    /// The order.
    pub sort: Option<DocumentBuf>,
    /// The number of documents to pass over.
    pub skip: u64,
    /// The greatest number; `None` is all.
    pub limit: Option<u64>,
    /// Index name or key.
    pub hint: Option<ValueBuf>,
    /// The first key of the hinted index that is read.
    pub min: Option<DocumentBuf>,
    /// The first key of the hinted index that isn't read any more.
    pub max: Option<DocumentBuf>,
    /// A command's `let`.
    pub variables: Option<DocumentBuf>,
    /// The rules by which strings compare; `None`: as the collection says.
    pub collation: Option<Collation>,
    /// Whether a sort may not go to disk.
    pub in_memory_only: bool,
    /// Whether each document shows the key by which it lies, as `$recordId`.
    pub shows_record_id: bool,
    /// Whether, instead of documents, the keys of the index by which they are found are given.
    pub gives_keys: bool,
    /// The places between which documents of a capped collection count, in the order of insertion.
    pub placed: Option<(u64, u64)>,
    /// An option of it that no pipeline has, and therefore no view.
    pub refused_in_views: Option<&'static str>,
    /// Interrupts the request.
    pub interrupt: Interrupt,
}

impl FindRequest {
    /// A find of the documents that pass `filter`, with no options.
    pub fn of(filter: Document<'_>) -> FindRequest {
        FindRequest { filter: Some(filter.to_buf()), ..FindRequest::default() }
    }
}

/// The use that a command makes of the documents that it finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// It gives them.
    Find,
    /// It counts them.
    Count,
    /// It gives the distinct values of one field.
    Distinct,
    /// It gives them to the stages of a pipeline.
    Stages,
    /// It gives them to the stages of a pipeline, which may run over parts of them.
    DividedStages,
    /// It shows the stages of a pipeline how many there are.
    CountedStages,
    /// It changes them.
    Update,
    /// It removes them.
    Delete,
}

impl Purpose {
    /// Whether it asks nothing of documents but how many there are.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Purpose::Count | Purpose::CountedStages)
    }
}

/// An `aggregate`.
#[derive(Clone, Debug)]
pub struct AggregateRequest {
    /// The array of stages.
    pub pipeline: ValueBuf,
    /// A command's `let`.
    pub variables: Option<DocumentBuf>,
    /// The rules by which strings compare; `None`: as the collection says.
    pub collation: Option<Collation>,
    /// Index name or key.
    pub hint: Option<ValueBuf>,
    /// Whether stages may not go to disk.
    pub in_memory_only: bool,
    /// Interrupts the request.
    pub interrupt: Interrupt,
}

/// A `findAndModify`.
#[derive(Clone, Debug, Default)]
pub struct FindAndModify {
    /// The filter of the document.
    pub filter: DocumentBuf,
    /// The first in this order.
    pub sort: Option<DocumentBuf>,
    /// `None` removes it.
    pub update: Option<ValueBuf>,
    /// Insert if nothing matches.
    pub upsert: bool,
    /// Answer with the document after the change, not before.
    pub return_new: bool,
    /// The part of it to return.
    pub projection: Option<DocumentBuf>,
    /// The array of `arrayFilters`.
    pub array_filters: Option<ValueBuf>,
    /// Index name or key.
    pub hint: Option<ValueBuf>,
    /// A command's `let`.
    pub variables: Option<DocumentBuf>,
    /// The rules by which strings compare; `None`: as the collection says.
    pub collation: Option<Collation>,
}
