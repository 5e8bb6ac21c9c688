//! Documents on their way through the stages, and what bounds them.

use frond_doc::document::DOCUMENT_BYTES_MAX;
use frond_doc::pieces::{has_deepened, whole_bytes};
use frond_doc::{DocumentBuf, Value};

use crate::code::Code;
use crate::error::QueryError;
use crate::expression::check_depth;
use crate::large::{Depth, Large, NeededPaths};

/// A stream of documents.
pub type Documents<'a> = Box<dyn Iterator<Item = Result<DocumentBuf, QueryError>> + Send + 'a>;

/// A result may be this much larger than a stored document: MongoDB's allowance for what a command
/// adds to it.
pub const RESULT_BYTES_MAX: usize = DOCUMENT_BYTES_MAX + (16 << 10);

/// The `_id` alone.
pub(super) fn of_id() -> NeededPaths {
    let mut needed = NeededPaths::default();
    needed.add("_id", Depth::Whole);
    needed
}

/// Documents that are to be stored: none is nested too deep once it is whole.
pub(super) fn storable<'a>(documents: Documents<'a>, large: &Large) -> Documents<'a> {
    let bounded = bounded(documents, large);
    if !large.may_have_references() {
        return bounded;
    }
    let large = large.clone();
    Box::new(bounded.map(move |document| {
        let document = document?;
        if !has_deepened(document.view()) {
            return Ok(document);
        }
        let whole = large.open_document(&NeededPaths::all(), document)?;
        check_depth(Value::Document(whole.view()), 1)?;
        Ok(whole)
    }))
}

/// Refuses results that are too large, and ends after the first error. Values that references stand
/// for are counted, and not read.
pub(super) fn bounded<'a>(documents: Documents<'a>, large: &Large) -> Documents<'a> {
    let may_refer = large.may_have_references();
    let checked = documents.map(move |document| {
        let document = document?;
        let bytes = match may_refer {
            true => whole_bytes(document.view()),
            false => document.as_bytes().len() as u64,
        };
        if bytes <= RESULT_BYTES_MAX as u64 {
            return Ok(document);
        }
        let message = format!(
            "BSONObj size: {bytes} (0x{bytes:X}) is invalid. \
             Size must be between 0 and {RESULT_BYTES_MAX}"
        );
        Err(QueryError::new(Code::BSONObjectTooLarge, message))
    });
    let mut has_failed = false;
    Box::new(checked.take_while(move |document| {
        let keep_going = !has_failed;
        has_failed |= document.is_err();
        keep_going
    }))
}
