//! Aggregation pipelines.

use frond_doc::{Array, DocumentBuf};

use crate::error::QueryError;
use crate::expression::Variables;
use crate::filter::Filter;
use crate::sort::SortPattern;

/// A stream of documents.
pub type Documents<'a> = Box<dyn Iterator<Item = Result<DocumentBuf, QueryError>> + Send + 'a>;

/// What stages want of the database: other collections, by reading or writing.
pub trait Collections: Send + Sync {
    /// The documents of `collection` (in database `database`, where given) that pass `filter`; an
    /// absent collection has none. May use an index.
    fn find(
        &self,
        database: Option<&str>,
        collection: &str,
        filter: &Filter,
    ) -> Result<Documents<'static>, QueryError>;

    /// Replaces `collection` by `documents`: `$out`.
    fn replace(
        &self,
        database: Option<&str>,
        collection: &str,
        documents: Documents<'_>,
    ) -> Result<(), QueryError>;
}

/// A parsed pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {}

/// The part of a pipeline that a planner can do: what its first stages ask for.
#[derive(Clone, Debug)]
pub struct Prefix {
    /// A leading `$match`.
    pub filter: Filter,
    /// A `$sort` right after it.
    pub sort: Option<SortPattern>,
}

impl Pipeline {
    /// Parses the stages.
    pub fn parse(_stages: Array<'_>) -> Result<Pipeline, QueryError> {
        todo!()
    }

    /// Cuts off a leading `$match` (and, if an index can give the order, a `$sort` after it), for
    /// the planner to do.
    pub fn take_filter(&mut self) -> Filter {
        todo!()
    }

    /// The collection that the last stage writes, if there is one: (database, collection).
    pub fn output(&self) -> Option<(Option<String>, String)> {
        todo!()
    }

    /// Whether the first stage makes its own documents, so that no collection is read.
    pub fn is_source(&self) -> bool {
        todo!()
    }

    /// Runs the stages over `input`. The result is lazy where the stages allow it.
    pub fn run<'a>(
        self,
        _input: Documents<'a>,
        _variables: Variables,
        _collections: std::sync::Arc<dyn Collections>,
    ) -> Result<Documents<'a>, QueryError> {
        todo!()
    }
}
