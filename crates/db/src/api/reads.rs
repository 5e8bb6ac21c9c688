//! The methods that read documents, count them, and explain how they are found.

use frond_doc::{Array, Document, DocumentBuf, ValueBuf};

use crate::collection::explain::pipeline;
use crate::collection::stream::StoredDocument;
use crate::collection::{
    AggregateRequest, Cursor, Effort, ExecutedSearch, FindRequest, Purpose, Tail, aggregate, count,
    distinct, explain, find, stored_functions, stream, tail,
};
use crate::database::Database;
use crate::error::Error;

impl Database {
    /// Finds documents.
    ///
    /// # Errors
    /// `BadValue` (2) and MongoDB's other codes for a filter, sort, projection or hint that can't
    /// be; `Damaged` or `Unavailable` if the catalog can't be read. Documents fail one by one, when
    /// the cursor reads them; a sort has read all of them before this returns.
    pub fn find(&self, collection: &str, request: &FindRequest) -> Result<Cursor, Error> {
        find::find(self, collection, request)
    }

    /// The functions, and other values, that clients stored in `system.js`, by their names; `None`
    /// if there are none.
    ///
    /// # Errors
    /// 10209 and 10210 for documents that name nothing or have no value; `ExceededMemoryLimit`.
    pub fn stored_functions(&self) -> Result<Option<DocumentBuf>, Error> {
        stored_functions::stored_functions(self)
    }

    /// Follows a capped collection.
    ///
    /// # Errors
    /// `BadValue` if it isn't capped, or is to be sorted otherwise than by `$natural: 1`.
    pub fn tail(&self, collection: &str, request: &FindRequest) -> Result<Tail, Error> {
        tail::tail(self, collection, request)
    }

    /// Runs a pipeline over a collection (`None`: `{aggregate: 1}`).
    ///
    /// # Errors
    /// `TypeMismatch` (14) if the pipeline is no array; what a stage can't be, by MongoDB's codes;
    /// `ExceededMemoryLimit` (146). Documents fail one by one, when the cursor reads them.
    pub fn aggregate(
        &self,
        collection: Option<&str>,
        request: &AggregateRequest,
    ) -> Result<Cursor, Error> {
        aggregate::aggregate(self, collection, request)
    }

    /// Counts what a `find` would give. Of all documents, without a hint, the tree knows.
    ///
    /// # Errors
    /// As [`Database::find`].
    pub fn count(&self, collection: &str, request: &FindRequest) -> Result<u64, Error> {
        count::count(self, collection, request)
    }

    /// The distinct values at `path` (elements of arrays on their own) of what a `find` would give,
    /// in their order. Values that are equal, numbers of different types too,
    /// count once; under a collation, of strings that are equal the one that came first.
    ///
    /// # Errors
    /// As [`Database::find`]; 17217 if they are more than 16 MB.
    pub fn distinct(
        &self,
        collection: &str,
        path: &str,
        request: &FindRequest,
    ) -> Result<Vec<ValueBuf>, Error> {
        distinct::distinct(self, collection, path, request)
    }

    /// Shows each document of `collection` that passes `filter` to `visit`, by `_id`. Large ones
    /// are not put together.
    ///
    /// # Errors
    /// As [`Database::find`]; of a view; what `visit` fails with.
    pub fn export<E: From<Error>>(
        &self,
        collection: &str,
        filter: Option<Document<'_>>,
        visit: &mut dyn FnMut(&StoredDocument<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        stream::export(self, collection, filter, visit)
    }

    /// Returns how `find` would go: MongoDB's `explain` with `queryPlanner` and `executionStats`.
    ///
    /// # Errors
    /// As [`Database::find`], the reading of documents included.
    pub fn explain(&self, collection: &str, request: &FindRequest) -> Result<DocumentBuf, Error> {
        explain::explain(self, collection, request)
    }

    /// As [`Database::explain`], without running the query: `queryPlanner` only.
    ///
    /// # Errors
    /// As [`Database::find`].
    pub fn explain_plan(
        &self,
        collection: &str,
        request: &FindRequest,
    ) -> Result<DocumentBuf, Error> {
        explain::explain_plan(self, collection, request)
    }

    /// Returns how a command would go that finds what `request` says.
    ///
    /// # Errors
    /// As [`Database::find`]; with [`Effort::Run`] the reading of documents included.
    pub fn explain_as(
        &self,
        collection: &str,
        request: &FindRequest,
        purpose: Purpose,
        effort: Effort,
    ) -> Result<DocumentBuf, Error> {
        explain::explain_as(self, collection, request, purpose, effort)
    }

    /// The hashes of a query's shape and of its plan's key, as `explain` shows them; `None` where
    /// there is no collection of that name.
    ///
    /// # Errors
    /// `Damaged` or `Unavailable` if the catalog can't be read.
    pub fn query_hashes(
        &self,
        collection: &str,
        request: &FindRequest,
    ) -> Result<Option<[String; 2]>, Error> {
        explain::query_hashes(self, collection, request)
    }

    /// Returns what a search that has run did, as [`Database::explain_as`] shows the stages of one
    /// that it runs; `None` if that can't be known from what was counted.
    ///
    /// # Errors
    /// As [`Database::find`].
    pub fn executed_stages(
        &self,
        collection: &str,
        request: &FindRequest,
        purpose: Purpose,
        executed: &ExecutedSearch<'_>,
    ) -> Result<Option<DocumentBuf>, Error> {
        explain::executed_stages(self, collection, request, purpose, executed)
    }

    /// Returns how the search of a pipeline over `collection` would go, as [`Database::explain_as`]
    /// shows it, and the stages that its documents go through; `stages` are those of `request`. A
    /// view is no collection here.
    ///
    /// # Errors
    /// As [`Database::aggregate`]; with [`Effort::Run`] the reading of documents included.
    pub fn explain_aggregate(
        &self,
        collection: &str,
        stages: Array<'_>,
        request: &AggregateRequest,
        effort: Effort,
    ) -> Result<(DocumentBuf, Vec<DocumentBuf>), Error> {
        pipeline::explain_aggregate(self, collection, stages, request, effort)
    }
}
