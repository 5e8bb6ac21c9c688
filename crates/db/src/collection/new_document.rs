//! A document that is to be inserted: what is made of it, and what is demanded of it.

use frond_doc::raw::RawElement;
use frond_doc::{DocError, Document, DocumentBuf, DocumentBuilder, ElementType, normalise};
use frond_query::Code;

use crate::database::Database;
use crate::definition::validation::Validator;
use crate::error::Error;
use crate::frond::Notice;

/// The document as it is inserted: with an `_id`, and the time where it asks for that.
pub(super) fn normalise(database: &Database, document: &DocumentBuf) -> Result<DocumentBuf, Error> {
    let document =
        normalise::for_insert(document, || database.frond().new_object_id()).map_err(|error| {
            match error {
                DocError::Invalid { what, .. } => Error::invalid(Code::BadValue, what),
                error => error.into(),
            }
        })?;
    let document = set_zero_timestamps(database, document);
    check_document(database, document.view())?;
    Ok(document)
}

/// Replaces empty timestamps, which stand for "now", outside `_id` and nested documents.
pub(crate) fn set_zero_timestamps(database: &Database, document: DocumentBuf) -> DocumentBuf {
    let is_zero = |element: &RawElement<'_>| {
        let is_empty = element.kind == ElementType::Timestamp && element.value == [0; 8];
        is_empty && element.name != b"_id"
    };
    let is_any_zero = document.view().elements().any(|element| is_zero(&element));
    if !is_any_zero || database.keeps_empty_timestamps() {
        return document;
    }
    let now = database.frond().new_timestamp().0.to_le_bytes();
    let mut builder = DocumentBuilder::with_capacity(document.as_bytes().len());
    for element in document.view().elements() {
        let value: &[u8] = if is_zero(&element) { &now } else { element.value };
        builder.append_element(&RawElement { value, ..element });
    }
    builder.build()
}

/// Checks what is demanded of a document that is to be inserted.
pub(crate) fn check_document(database: &Database, document: Document<'_>) -> Result<(), Error> {
    check_size(database, document.as_bytes().len() as u64)?;
    check_id(document)
}

/// Refuses a document of more bytes than are taken here.
///
/// # Errors
/// `BSONObjectTooLarge` (10334).
pub fn check_size(database: &Database, bytes: u64) -> Result<(), Error> {
    let max = database.frond().document_bytes_max();
    if bytes > max {
        let message =
            format!("object to insert too large. size in bytes: {bytes}, max size: {max}");
        return Err(Error::invalid(Code::BSONObjectTooLarge, message));
    }
    Ok(())
}

/// Refuses a document of a collection that its validator doesn't let through, or warns of it.
///
/// # Errors
/// As [`Validator::check`].
pub(crate) fn check_valid(
    (database, collection): (&Database, &str),
    validator: &Validator,
    before: Option<Document<'_>>,
    after: Document<'_>,
) -> Result<(), Error> {
    match validator.check(before, after) {
        Err(error) if error.code == Code::DocumentValidationFailure && validator.warns() => {
            let details = error.details.map(|details| frond_query::text::value((&details).into()));
            let message = format!(
                "Document would fail validation: {}: {}",
                database.namespace(collection),
                details.unwrap_or_default()
            );
            database.frond().notice(Notice::Warning, &message);
            Ok(())
        }
        checked => checked,
    }
}

/// Checks a document's `_id`.
///
/// # Errors
/// `InvalidIdField` (53), or `DollarPrefixedFieldName` (52) for a field within it.
pub fn check_id(document: Document<'_>) -> Result<(), Error> {
    normalise::check_id(document).map_err(|why| {
        let code =
            if why.contains('$') { Code::DollarPrefixedFieldName } else { Code::InvalidIdField };
        Error::invalid(code, why)
    })
}
