//! A database without collections, for pipelines that read and write none, such as those of
//! updates.

use frond_doc::Document;

use super::{Collections, Documents, Merge};
use crate::error::QueryError;
use crate::filter::Filter;

/// No collections at all.
pub(super) struct NoCollections;

impl Collections for NoCollections {
    fn find(&self, _: Option<&str>, _: &str, _: &Filter) -> Result<Documents<'static>, QueryError> {
        Ok(Box::new(std::iter::empty()))
    }

    fn replace(
        &self,
        _: Option<&str>,
        _: &str,
        _: Option<Document<'_>>,
        _: Documents<'_>,
    ) -> Result<(), QueryError> {
        unreachable!("the stages of an update write no collection: the parser refuses $out")
    }

    fn merge(
        &self,
        _: Option<&str>,
        _: &str,
        _: &Merge,
        _: Documents<'_>,
    ) -> Result<(), QueryError> {
        unreachable!("the stages of an update write no collection: the parser refuses $merge")
    }
}
