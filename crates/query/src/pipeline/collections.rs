//! The interface of stages to the database: other collections, to read or write.

use frond_doc::{Document, DocumentBuf};

use super::geo_near::GeoNear;
use super::merge::Merge;
use super::spill::Resources;
use super::stream::Documents;
use crate::error::QueryError;
use crate::expression::{Variables, failure};
use crate::filter::Filter;

/// The database, as stages see it.
pub trait Collections: Send + Sync {
    /// The documents of `collection` (in database `database`, where given) that pass `filter`; an
    /// absent collection has none. May use an index. They may have references for long values that
    /// the request's variables read ([`crate::large`]).
    ///
    /// # Errors
    /// As the stage says it: the collection, or what its search asks for, isn't there or can't be
    /// read.
    fn find(
        &self,
        database: Option<&str>,
        collection: &str,
        filter: &Filter,
    ) -> Result<Documents<'static>, QueryError>;

    /// Replaces `collection` by `documents`: `$out`; `series` are the options of a time series that
    /// it is or becomes. They may have references for long values, which are stored again as they
    /// are.
    ///
    /// # Errors
    /// A refusal of a document or the collection, by MongoDB's codes; an error of `documents`.
    fn replace(
        &self,
        database: Option<&str>,
        collection: &str,
        series: Option<Document<'_>>,
        documents: Documents<'_>,
    ) -> Result<(), QueryError>;

    /// Writes `documents` into `collection` as `merge` says: `$merge`. They may have references as
    /// those of `replace`.
    ///
    /// # Errors
    /// A refusal of a document, by MongoDB's codes; an error of `documents`.
    fn merge(
        &self,
        database: Option<&str>,
        collection: &str,
        merge: &Merge,
        documents: Documents<'_>,
    ) -> Result<(), QueryError>;

    /// The documents of `collection` by their distance, as the `$geoNear` that begins a pipeline
    /// over it says.
    ///
    /// # Errors
    /// That there is no index to find them by; that there is nothing to search here.
    fn near(
        &self,
        _database: Option<&str>,
        _collection: &str,
        _near: GeoNear,
        _variables: &Variables,
    ) -> Result<Documents<'static>, QueryError> {
        let message = "$geoNear is only valid as the first stage in a pipeline";
        Err(failure(40602, message))
    }

    /// The documents of a stage that shows history (`$diff` and so on), of a database or a
    /// collection of it.
    ///
    /// # Errors
    /// A fault of the stage; that there is no history here.
    fn history(
        &self,
        _database: Option<&str>,
        _collection: Option<&str>,
        stage: &DocumentBuf,
    ) -> Result<Documents<'static>, QueryError> {
        let name = stage.iter().next().map_or("", |(name, _)| name);
        let message = format!("Unrecognized pipeline stage name: '{name}'");
        Err(failure(40324, message))
    }

    /// Returns how much memory stages may use, and where the rest goes.
    fn resources(&self) -> Resources {
        Resources::default()
    }
}
