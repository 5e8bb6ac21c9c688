//! Replaces a document as a whole: only `_id` stays.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, ObjectId, Value, normalise, order};

use crate::code::Code;
use crate::error::QueryError;
use crate::text;

/// The document that takes the place of `before` as a whole: `made`, with the `_id` that was there.
///
/// # Errors
/// `ImmutableField` if `made` has another `_id`.
pub(crate) fn replaced_whole(
    before: Document<'_>,
    made: &DocumentBuf,
) -> Result<DocumentBuf, QueryError> {
    keep_id_of_whole(before, replaced(before, made)?)
}

/// As [`replaced_whole`], or `None` where `made` is what was there. As in MongoDB, one without
/// `_id` never is: it counts as a change, and validators are asked.
pub(crate) fn replaced_whole_if_other(
    before: Document<'_>,
    made: &DocumentBuf,
) -> Result<Option<DocumentBuf>, QueryError> {
    if made.as_bytes() == before.as_bytes() {
        return Ok(None);
    }
    replaced_whole(before, made).map(Some)
}

/// The document with `id` in front of its fields other than `_id`.
pub(crate) fn with_id(id: Option<Value<'_>>, document: Document<'_>) -> DocumentBuf {
    let mut out = DocumentBuilder::with_capacity(document.as_bytes().len() + 32);
    if let Some(id) = id {
        out.append("_id", id);
    }
    for element in document.elements().filter(|element| element.name != b"_id") {
        out.append_element(&element);
    }
    out.build()
}

/// The whole document `made` in the place of `document`, whose `_id` it gets if it has none.
fn replaced(document: Document<'_>, made: &DocumentBuf) -> Result<DocumentBuf, QueryError> {
    match made.get("_id") {
        Some(_) => normalise::for_insert(made, || ObjectId([0; 12]))
            .map_err(|error| QueryError::new(Code::BadValue, error.to_string())),
        None => Ok(with_id(document.get("_id"), made.view())),
    }
}

/// Refuses a changed `_id` of a document that was replaced whole; an equal one of another number
/// type stays as it was.
fn keep_id_of_whole(before: Document<'_>, after: DocumentBuf) -> Result<DocumentBuf, QueryError> {
    let Some(old) = before.get("_id") else { return Ok(after) };
    match after.get("_id") {
        Some(new) if new == old => Ok(after),
        Some(new) if order::equal(new, old) => Ok(with_id(Some(old), after.view())),
        new => {
            let id = new.map_or("missing".to_owned(), |id| text::field("_id", id));
            let message = format!(
                "After applying the update, the (immutable) field '_id' was found to have been \
                 altered to {id}"
            );
            Err(QueryError::new(Code::ImmutableField, message))
        }
    }
}
